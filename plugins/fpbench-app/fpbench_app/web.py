"""The HTTP of the page: Starlette carries requests, Jinja writes pages, uvicorn serves them."""

from __future__ import annotations

import hmac
import shutil
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import date
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

import fpbench
from fpbench import FpbenchError, InputError
from fpbench_app.case import Case, Choices, Tell

MOST_BYTES = 2**26
"""Most bytes of an upload."""
_MOST_ROWS = 500
"""Most rows of a table that are shown."""
_LONGEST_NAME = 100
_ASSETS = "app.css", "app.js", "icon.svg"
_TYPES = {".csv": "text/csv", ".json": "application/json"}
_HEADERS = {
    # Colours of the heat map are attributes of its cells.
    "Content-Security-Policy": "default-src 'self'; style-src-attr 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # or the token would leave with a link
    "Cache-Control": "no-store",
}

Handler = Callable[[Request], Awaitable[Response]]


class Job:
    """Work in a thread: how far it is, and what comes of it."""

    def __init__(self, title: str, work: Callable[[Tell], Any]) -> None:
        self.title, self.words = title, ""
        self.result: Any = None
        self.error = ""
        self.done = False
        self.day = date.today()
        self._began = time.monotonic()
        Thread(target=self._run, args=(work,), daemon=True).start()

    def tell(self, words: str) -> None:
        """Say what is done now."""
        self.words = words

    @property
    def text(self) -> str:
        """What is done, and for how long."""
        parts = [self.words, f"{time.monotonic() - self._began:.0f} seconds so far"]
        return "; ".join(part for part in parts if part)

    def _run(self, work: Callable[[Tell], Any]) -> None:
        try:
            self.result = work(self.tell)
        except Exception as error:
            self.error = _explain(error)
        self.done = True


class App:
    """The pages of one user, about one case at a time.

    `folder`: of uploads and what is made of them. `token`: the secret in the address.
    """

    def __init__(self, folder: Path, token: str, most: int = MOST_BYTES) -> None:
        self.folder, self.most = folder, most
        self._token = token.encode()
        self.case: Case | None = None
        self.jobs: dict[str, Job] = {}
        self._pages = Environment(
            loader=PackageLoader("fpbench_app"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._pages.filters["points"] = _write_points

    def to_asgi(self) -> Starlette:
        """The application; other hosts' names are refused, as a rebound address would have."""
        routes = [
            ("/", self.start, "GET"), ("/files", self.take_files, "POST"),
            ("/reading", self.show_reading, "GET"), ("/reading", self.choose, "POST"),
            ("/verdict", self.judge, "POST"), ("/verdict", self.show_verdict, "GET"),
            ("/releases", self.release, "POST"), ("/releases", self.show_releases, "GET"),
            ("/progress/{job}", self.show_progress, "GET"),
            ("/download/{number:int}.{kind}", self.download, "GET"),
            ("/assets/{name}", self.show_asset, "GET"),
        ]  # fmt: skip
        return Starlette(
            routes=[
                Route(f"/{{token}}{path}", self._guard(handler), methods=[method])
                for path, handler, method in routes
            ],
            middleware=[
                Middleware(
                    TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"],
                    www_redirect=False,
                )
            ],
        )  # fmt: skip

    def _guard(self, handler: Handler) -> Handler:
        """The handler, for who has the token; bad input becomes a page."""

        async def answer(request: Request) -> Response:
            if not hmac.compare_digest(request.path_params["token"].encode(), self._token):
                text = "Not this address: use the one that `fpbench app` printed."
                return HTMLResponse(text, 403, _HEADERS)
            try:
                response = await handler(request)
            except Exception as error:
                response = self._write("error.html", 400, error=self._shorten(_explain(error)))
            response.headers.update(_HEADERS)
            return response

        return answer

    def _write(self, page: str, status: int = 200, **values: Any) -> Response:
        table = self.case is not None and self.case.table is not None
        links = {"./", *(["reading"] if self.case is not None else []), *self.jobs}
        values |= {"case": self.case, "table": table, "links": links}
        values["version"] = fpbench.__version__
        return HTMLResponse(self._pages.get_template(page).render(values), status)

    def _shorten(self, text: str) -> str:
        """A message without the folder of uploads."""
        for kind in ("people", "table"):
            text = text.replace(f"{self.folder / kind}/", "")
        return text

    async def start(self, _: Request) -> Response:
        """The form for files."""
        return self._write("start.html", most=self.most)

    async def take_files(self, request: Request) -> Response:
        """Keep a table and its people, instead of those before."""
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > self.most:
            async for _ in request.stream():  # a browser reads the answer after it has sent all
                pass
            text = f"the files are too large: at most {self.most / 2**20:,.0f} MiB together"
            return self._write("error.html", 413, error=text)
        async with request.form(max_files=2, max_fields=2) as form:
            people, table = form.get("people"), form.get("table")
            if not isinstance(people, UploadFile) or not people.filename:
                raise InputError("choose the file of the people, one row a person")
            self.case, self.jobs = None, {}
            files = [await self._keep("people", people)]
            if isinstance(table, UploadFile) and table.filename:
                files.append(await self._keep("table", table))
        self.case = await run_in_threadpool(Case, *files)
        return RedirectResponse("reading", 303)

    async def _keep(self, kind: str, upload: UploadFile) -> Path:
        name = (upload.filename or "").replace("\\", "/").rpartition("/")[2][-_LONGEST_NAME:]
        name = "".join(letter for letter in name if letter.isprintable()).strip(" .")
        shutil.rmtree(self.folder / kind, ignore_errors=True)
        (self.folder / kind).mkdir()
        file = self.folder / kind / (name or kind)
        file.write_bytes(await upload.read())
        return file

    def _take_case(self) -> Case:
        if self.case is None:
            raise InputError("there are no files yet: choose them on the first page")
        return self.case

    async def show_reading(self, _: Request) -> Response:
        """What was read, and what may be chosen otherwise."""
        return await run_in_threadpool(self._write_reading, self._take_case())

    def _write_reading(self, case: Case) -> Response:
        report, error, rows = None, "", []
        try:
            case.take_people()
            if case.table is not None:
                report = case.read()
                frame = report.to_frame().astype(object)
                rows = frame.where(frame.notna(), "").to_numpy().tolist()
        except Exception as problem:
            error = self._shorten(_explain(problem))
        headings = {} if report is None else dict(one.rsplit("=", 1) for one in report.mapped)
        names = headings | case.choices.names
        return self._write(
            "reading.html", 400 if error else 200, report=report, error=error, names=names,
            heads=[] if report is None else list(report.to_frame().columns),
            rows=rows[:_MOST_ROWS], count=len(rows), meanings=case.list_meanings(),
        )  # fmt: skip

    async def choose(self, request: Request) -> Response:
        """Take other choices."""
        case = self._take_case()
        async with request.form(max_files=0) as form:
            case.choices = _read_choices(form)
        self.jobs = {}
        return RedirectResponse("reading", 303)

    async def judge(self, _: Request) -> Response:
        """Begin to attack the table."""
        case = self._take_case()
        if case.table is None:
            raise InputError("there is no table to judge")
        self.jobs["verdict"] = Job("The table is attacked", lambda _: case.assess())
        return RedirectResponse("verdict", 303)

    async def show_verdict(self, _: Request) -> Response:
        """The verdict, or how far it is."""
        return self._show_job(
            "verdict", "verdict.html", lambda told: {"told": Markup(told._repr_html_())}
        )

    async def release(self, _: Request) -> Response:
        """Begin to make tables."""
        case = self._take_case()
        self.jobs["releases"] = Job("Tables are made, and each is attacked", case.release)
        return RedirectResponse("releases", 303)

    async def show_releases(self, _: Request) -> Response:
        """The tables that were made, or how far it is."""

        def find_best(steps: Any) -> dict[str, Any]:
            passing = [number for number, step in enumerate(steps[:-1]) if step.passes]
            return {"steps": steps, "best": passing[-1]}

        return self._show_job("releases", "releases.html", find_best)

    def _show_job(
        self, name: str, page: str, describe: Callable[[Any], dict[str, Any]]
    ) -> Response:
        self._take_case()
        job = self.jobs.get(name)
        if job is None:
            raise InputError("the files or choices are others now: begin from what was read")
        if not job.done:
            return self._write("waiting.html", job=job, name=name)
        if job.error:
            raise InputError(job.error)
        return self._write(page, day=job.day, **describe(job.result))

    async def show_progress(self, request: Request) -> Response:
        """How far work is."""
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            return JSONResponse({"done": True, "text": ""})
        return JSONResponse({"done": job.done, "text": job.text})

    async def download(self, request: Request) -> Response:
        """A released table, or its certificate."""
        number, kind = request.path_params["number"], request.path_params["kind"]
        job = self.jobs.get("releases")
        steps = job.result if job is not None and job.done else None
        if not steps or number >= len(steps):
            raise InputError("there is no such table: make the tables again")
        content = steps[number].write(kind)
        name = f"{'table' if kind == 'csv' else 'certificate'}-{steps[number].name}.{kind}"
        headers = {"Content-Disposition": f'attachment; filename="{name.replace(" ", "-")}"'}
        return Response(content, media_type=_TYPES[f".{kind}"], headers=headers)

    async def show_asset(self, request: Request) -> Response:
        """A file of the pages."""
        name = request.path_params["name"]
        if name not in _ASSETS:
            return Response(status_code=404)
        return FileResponse(Path(__file__).parent / "assets" / name)


def _read_choices(form: FormData) -> Choices:
    """The choices of a form; a text without a meaning is read as the table tells."""
    own = {key: str(value).strip() for key, value in form.multi_items()}
    texts, meanings = form.getlist("text"), form.getlist("meaning")
    pairs = [(str(text).strip(), str(one)) for text, one in zip(texts, meanings, strict=False)]
    names = {text: meaning for text, meaning in pairs if text and meaning}
    kinds = [one.name for one in fields(Choices) if one.name != "names"]
    return Choices(**{kind: own.get(kind, "") for kind in kinds}, names=names)


def _explain(error: Exception) -> str:
    """An error in a sentence; one that is no fault of the input says so."""
    if isinstance(error, FpbenchError):
        return str(error)
    return f"fpbench failed at this ({type(error).__name__}: {error}); please tell us"


def _write_points(share: float) -> str:
    return f"{100 * share:+.2f} points"


def listen(port: int) -> socket.socket:
    """A socket of this machine's own; InputError if the port is in use."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror}") from error


def make_server(folder: Path, token: str, most: int = MOST_BYTES) -> uvicorn.Server:
    """The server, to be run with a socket."""
    config = uvicorn.Config(
        App(folder, token, most).to_asgi(), loop="asyncio", http="h11", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    return uvicorn.Server(config)
