"""The command `curator`: serve a curator to auditors on other machines."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpbench import InputError

if TYPE_CHECKING:
    from fpbench_curator.service import Service

app = typer.Typer(help="Curators: answer auditors on other machines.")


@app.callback()
def _root() -> None:
    """Keep `serve` a command of its own: typer takes the only command of a group for the group."""


@app.command()
def serve(
    file: Annotated[
        Path, typer.Argument(help="CSV or Parquet file, one row per person.", metavar="FILE")
    ],
    sensitive: Annotated[
        list[str],
        typer.Option(help="Column with groups; repeat it to cross columns.", metavar="COLUMN"),
    ],
    epsilon: Annotated[float, typer.Option(help="Epsilon budget of all answers together.")],
    ledger: Annotated[
        Path, typer.Option(help="File that records the spent budget; a restart continues with it.")
    ],
    token_file: Annotated[
        Path, typer.Option(help="File with the token that auditors must present.")
    ],
    delta: Annotated[float, typer.Option(help="Delta of the budget.")] = 0.0,
    neighbours: Annotated[
        str,
        typer.Option(help="Neighbouring data sets: attribute or add-remove."),
    ] = "attribute",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any.")] = 8731,
    certfile: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    keyfile: Annotated[
        Path | None, typer.Option(help="Key of the certificate, if in another file.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests per second from one address.")] = 20.0,
    allow_simulation: Annotated[
        bool,
        typer.Option(
            "--allow-simulation",
            help="Accept simulated noise: for trials, not for real people's data.",
        ),
    ] = False,
) -> None:
    """Serve a curator of the sensitive columns of a table, until interrupted.

    Every query is logged on standard output, one line of JSON without data.
    """
    from fpbench_curator.web import listen, log, make_server

    if keyfile is not None and certfile is None:
        raise InputError("--keyfile needs --certfile, the certificate of this key")
    budget = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    service, about = _open_service(
        file, sensitive, budget, ledger, token_file, rate=rate, allow_simulation=allow_simulation
    )
    server = make_server(service, certfile, keyfile)
    with listen(host, port) as door:
        url_host = f"[{host}]" if ":" in host else host
        place = f"http{'s' if certfile else ''}://{url_host}:{door.getsockname()[1]}"
        _warn_of(host, certfile, token_file, allow_simulation)
        log.setLevel(logging.INFO)
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.propagate = False
        typer.echo(f"curator of {about} at {place}")
        server.run(sockets=[door])


def _open_service(
    file: Path,
    sensitive: list[str],
    budget: dict[str, Any],
    ledger_file: Path,
    token_file: Path,
    **options: Any,
) -> "tuple[Service, str]":
    """The service, and a description of its people, groups and budget."""
    from fpbench.privacy import Curator, Ledger
    from fpbench_curator.files import read_sensitive, read_token
    from fpbench_curator.service import Service

    token, people = read_token(token_file), read_sensitive(file, sensitive)

    def open_with(path: Path | None) -> tuple[Service, Curator]:
        ledger = Ledger(**budget, path=path)
        curator = Curator(people, ledger=ledger)
        return Service(curator, ledger, token, **options), curator

    # A ledger's file keeps its budget for ever, so a refused service must not leave one behind.
    open_with(None)
    service, curator = open_with(ledger_file)
    return service, (
        f"{curator.people:,} people, groups {', '.join(curator.groups)}, epsilon "
        f"{curator.remaining.epsilon:g} left of {budget['epsilon']:g},"
    )


def _warn_of(host: str, certfile: Path | None, token_file: Path, allow_simulation: bool) -> None:
    from fpbench_curator.files import is_readable_by_others

    def warn(text: str) -> None:
        typer.echo(f"warning: {text}", err=True)

    if certfile is None and host not in ("127.0.0.1", "localhost", "::1"):
        warn("without --certfile, anybody on the network path can read the token and the answers")
    if is_readable_by_others(token_file):
        warn(f"other users of this machine may read {token_file}: chmod 600 it")
    if allow_simulation:
        warn("simulated noise protects nobody: --allow-simulation is for trials")
