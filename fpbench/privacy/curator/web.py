"""The HTTP of a curator's service: FastAPI carries requests, uvicorn serves them."""

# No `from __future__ import annotations`: FastAPI reads the annotations of routes, and could not
# find names that are imported in the function that makes them.

import asyncio
import json
import logging
import math
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench.base.distribution import tell_extra
from fpbench.base.errors import FpbenchError, InputError
from fpbench.privacy.curator.connections import (
    Peer,
    compute_connection_limit,
    create_limited_server,
    get_place,
)
from fpbench.privacy.curator.service import RefusedError, Service
from fpbench.privacy.curator.uploads import Uploads
from fpbench.privacy.curator.wire import ABOUT, HISTOGRAM_QUERY

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.responses import Response
    from uvicorn import Server

log = logging.getLogger("fpbench.privacy.curator.curator")
"""One line of JSON for each query: time, kind and outcome; no data, no token."""

_WAITING = 1024
"""Callers that may wait to be accepted; further ones try again after 1 s."""
_AT_ONCE = 8
"""Queries that are answered at the same time, each with its cells in memory."""

Work = Callable[[dict[str, Any]], Awaitable[Any]]
"""Answers a request, and completes its log entry."""


def make_app(service: Service) -> "FastAPI":
    """The service as an ASGI application."""
    from fastapi import FastAPI, Request
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    # A redirection of /v1/about/ would lead to any host that the caller names.
    app = FastAPI(
        title="fpbench curator", docs_url=None, redoc_url=None, openapi_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    turns = asyncio.Semaphore(_AT_ONCE)
    uploads = Uploads(service.most_bytes, _AT_ONCE)

    async def about(request: Request) -> Response:
        async def work(_: dict[str, Any]) -> Any:
            return await run_in_threadpool(service.about)

        return await _handle(service, request, "about", work)

    async def histogram(request: Request) -> Response:
        async def work(entry: dict[str, Any]) -> Any:
            _refuse_long(request, service.most_bytes)
            # Read before its turn, so that a slow sender does not delay others.
            async with (
                uploads.read(request.stream(), get_place(_get_address(request))) as parts,
                turns,
            ):
                return await run_in_threadpool(service.answer, b"".join(parts), entry)

        return await _handle(service, request, "histogram", work)

    async def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, detail = error.status_code, error.detail

        async def work(_: dict[str, Any]) -> Any:
            raise RefusedError(status, "unknown", detail)

        response = await _handle(service, request, "unknown", work)
        if response.status_code == status:
            response.headers.update(error.headers or {})  # which methods there are
        return response

    app.add_api_route(ABOUT, about, methods=["GET"])
    app.add_api_route(HISTOGRAM_QUERY, histogram, methods=["POST"])
    app.add_exception_handler(HTTPException, unknown)
    return app


async def _handle(service: Service, request: "Request", what: str, work: Work) -> "Response":
    """The response to a request; every outcome is logged, and no error stops the service."""
    from starlette.responses import JSONResponse

    entry: dict[str, Any] = {}
    address = _get_address(request)
    try:
        service.admit(address, request.headers.get("authorization", "").encode("latin-1"))
        peer = request.scope.get("state", {}).get("peer")
        if isinstance(peer, Peer):
            peer.known = True
        answer = JSONResponse(await work(entry))
    except RefusedError as refused:
        _log(what, address, refused.status, refused.outcome, entry)
        return _make_refusal(refused)
    except Exception as error:
        _log(what, address, 503, f"failed: {_describe(error)}", entry)
        why = "the curator failed at this; what was asked for may have been paid for"
        return _make_refusal(RefusedError(503, "failed", why))
    _log(what, address, 200, "answered", entry)
    return answer


def _get_address(request: "Request") -> str:
    return request.client.host if request.client else ""


def _make_refusal(refused: RefusedError) -> "Response":
    from starlette.responses import JSONResponse

    headers = {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after" in refused.body:
        headers["Retry-After"] = str(math.ceil(refused.body["retry_after"]))
    return JSONResponse(refused.body, refused.status, headers)


def _refuse_long(request: "Request", most: int) -> None:
    """Refuse a query by its announced length, before any of it is read."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > most:
        raise RefusedError(413, "too long", f"longer than {most:,} bytes, the most a query can be")


def _log(what: str, address: str, status: int, outcome: str, entry: dict[str, Any]) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "query": what, "from": address, **entry}
    log.info(json.dumps({**line, "status": status, "outcome": outcome}))


def _describe(error: Exception) -> str:
    """An error of fpbench as text, or where another was raised: its message may hold data."""
    if isinstance(error, FpbenchError):
        return str(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{where}"


def explain_unavailable() -> str | None:
    """Why this machine cannot serve, with the command that helps; None if it can."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if not missing:
        return None
    return f"needs {' and '.join(missing)}: {tell_extra('serve')}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens for auditors; InputError if the address is wrong or in use."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must be in 0..65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror}") from error


def make_server(
    service: Service, certfile: Path | None = None, keyfile: Path | None = None
) -> "Server":
    """The server, to be run with sockets; InputError if the certificate or its key is unusable."""
    import uvicorn

    compute_connection_limit()  # refuses now what would fail at the first connection
    config = uvicorn.Config(
        make_app(service),
        loop="asyncio",
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
        log_config=None,
        access_log=False,
        server_header=False,
        # Limits by address must not believe a header that anybody can send.
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=10,
    )
    try:
        config.load()
    except OSError as error:  # ssl's included
        raise InputError(f"the certificate or its key cannot be used: {error}") from error
    return create_limited_server(config)
