"""The command `app`: serve a page on this machine, to be used in its browser."""

import secrets
import signal
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated

import typer


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any.")] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, and open no browser.")
    ] = False,
) -> None:
    """Assess and release tables on a page in the browser.

    The page is this machine's alone; files are removed at the end: Ctrl-C.
    """
    from fpbench_app.web import listen, make_server

    for kind in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, kind):
            signal.signal(getattr(signal, kind), _stop)
    token = secrets.token_urlsafe(24)
    try:
        with TemporaryDirectory(prefix="fpbench-app-") as folder, listen(port) as door:
            address = f"http://127.0.0.1:{door.getsockname()[1]}/{token}/"
            typer.echo(f"the page: {address}\nCtrl-C ends it, and removes what was uploaded.")
            if not no_open:
                webbrowser.open(address)
            make_server(Path(folder), token).run(sockets=[door])
    except KeyboardInterrupt:
        typer.echo("ended; what was uploaded is removed")


def _stop(_: int, __: FrameType | None) -> None:
    """End as Ctrl-C does: the default would leave the files."""
    raise KeyboardInterrupt
