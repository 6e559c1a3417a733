"""The HTTP of a curator's service: Starlette carries requests, uvicorn serves them."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fpbench import FpbenchError, InputError
from fpbench_curator.service import RefusedError, Service
from fpbench_curator.wire import ABOUT, HISTOGRAM_QUERY

log = logging.getLogger("fpbench_curator")
"""One line of JSON for each query: time, kind and outcome; no data, no token."""

SECONDS_TO_SEND = 60.0
"""Limit for a whole query to arrive."""

Work = Callable[[dict[str, Any]], Awaitable[Any]]
"""Answers a request, and completes its log entry."""


def make_app(service: Service) -> Starlette:
    """The service as an ASGI application."""

    async def about(request: Request) -> Response:
        async def work(_: dict[str, Any]) -> Any:
            return await run_in_threadpool(service.about)

        return await _handle(service, request, "about", work)

    async def histogram(request: Request) -> Response:
        async def work(entry: dict[str, Any]) -> Any:
            body = await _read_query(request, service.most_bytes)
            return await run_in_threadpool(service.answer, body, entry)

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

    app = Starlette(
        routes=[
            Route(ABOUT, about, methods=["GET"]),
            Route(HISTOGRAM_QUERY, histogram, methods=["POST"]),
        ],
        exception_handlers={HTTPException: unknown},
    )
    # A redirection of /v1/about/ would lead to any host that the caller names.
    app.router.redirect_slashes = False
    return app


async def _handle(service: Service, request: Request, what: str, work: Work) -> Response:
    """The response to a request; every outcome is logged, and no error stops the service."""
    entry: dict[str, Any] = {}
    address = request.client.host if request.client else ""
    try:
        service.admit(address, request.headers.get("authorization", "").encode("latin-1"))
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


async def _read_query(request: Request, most: int) -> bytes:
    """The body of a request; RefusedError if it is too long, too slow or cut off."""
    too_long = RefusedError(413, "too long", f"longer than {most:,} bytes, the most a query can be")
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise too_long
    except TimeoutError:
        why = f"the query did not arrive within {SECONDS_TO_SEND:.0f} seconds"
        raise RefusedError(408, "too slow", why) from None
    except ClientDisconnect:
        raise RefusedError(400, "cut off", "the query was cut off") from None
    return bytes(body)


def _make_refusal(refused: RefusedError) -> Response:
    headers = {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after" in refused.body:
        headers["Retry-After"] = str(math.ceil(refused.body["retry_after"]))
    return JSONResponse(refused.body, refused.status, headers)


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


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens for auditors; InputError if the address is wrong or in use."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must be in 0..65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror}") from error


def make_server(
    service: Service, certfile: Path | None = None, keyfile: Path | None = None
) -> uvicorn.Server:
    """The server, to be run with sockets; InputError if the certificate or its key is unusable."""
    config = uvicorn.Config(
        make_app(service),
        loop="asyncio",
        http="h11",  # httptools reads heads of any length
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
    return uvicorn.Server(config)
