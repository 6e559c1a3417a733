"""The `curator` commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from fpbench.cli.groups import Command, NoThirdParty, group
from fpbench.cli.screen import console

if TYPE_CHECKING:
    from fpbench.components.guarantee import Neighbours
    from fpbench.privacy.curator.service import Service

app = group("curator", "Curators: answer auditors on other machines.")


@app.callback()
def _root() -> None:
    """Keep `serve` a command of its own: typer takes the only command of a group for the group."""


@app.command(cls=Command)
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
    no_third_party: NoThirdParty = False,
) -> None:
    """Serve a curator of the sensitive columns of a table, until interrupted.

    Every query is logged on standard output, one line of JSON without data.
    """
    from fpbench.base.errors import InputError
    from fpbench.privacy.curator.web import explain_unavailable, listen, make_server

    if (why := explain_unavailable()) is not None:
        raise InputError(f"fpbench curator serve is unavailable: it {why}")
    if keyfile is not None and certfile is None:
        raise InputError("--keyfile needs --certfile, the certificate of this key")
    service, about = _open_curator(
        file, sensitive, epsilon, delta, neighbours, ledger, token_file, rate, allow_simulation
    )  # fmt: skip
    server = make_server(service, certfile, keyfile)
    with listen(host, port) as door:
        url_host = f"[{host}]" if ":" in host else host
        place = f"http{'s' if certfile else ''}://{url_host}:{door.getsockname()[1]}"
        _warn_of(host, certfile, token_file, allow_simulation)
        _log_lines()
        console.show_listing([(f"curator of {about} at {place}",)], indent=0)
        server.run(sockets=[door])


def _open_curator(
    file: Path,
    sensitive: list[str],
    epsilon: float,
    delta: float,
    neighbours: str,
    ledger_file: Path,
    token_file: Path,
    rate: float,
    allow_simulation: bool,
) -> "tuple[Service, str]":
    """The service, and a description of its people, groups and budget."""
    from fpbench.components.guarantee import check_neighbours
    from fpbench.data.groups import group_codes
    from fpbench.privacy.curator.curator import Curator
    from fpbench.privacy.curator.files import read_sensitive, read_token
    from fpbench.privacy.curator.service import Service
    from fpbench.privacy.ledger import Ledger

    check_neighbours(neighbours)
    token = read_token(token_file)
    codes, groups = group_codes(read_sensitive(file, sensitive))

    def open_service(path: Path | None) -> tuple[Service, Curator, Ledger]:
        ledger = Ledger(epsilon, delta, neighbours=cast("Neighbours", neighbours), path=path)
        curator = Curator(codes, groups, ledger=ledger)
        service = Service(curator, ledger, token, rate=rate, allow_simulation=allow_simulation)
        return service, curator, ledger

    # A ledger's file keeps its budget for ever, so a refused service must not leave one behind.
    open_service(None)
    service, curator, ledger = open_service(ledger_file)
    left = ledger.remaining
    return service, (
        f"{curator.people:,} people, groups {', '.join(curator.groups)}, epsilon "
        f"{left.epsilon:g} left of {epsilon:g},"
    )


def _warn_of(host: str, certfile: Path | None, token_file: Path, allow_simulation: bool) -> None:
    from fpbench.privacy.curator.files import is_readable_by_others

    warnings = []
    if certfile is None and host not in ("127.0.0.1", "localhost", "::1"):
        warnings.append(
            "without --certfile, anybody on the network path can read the token and the answers"
        )
    if is_readable_by_others(token_file):
        warnings.append(f"other users of this machine may read {token_file}: chmod 600 it")
    if allow_simulation:
        warnings.append("simulated noise protects nobody: --allow-simulation is for trials")
    console.warn(warnings)


def _log_lines() -> None:
    """Show what the service logs, line by line."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                console.show_listing([(record.getMessage(),)], indent=0)
            except (OSError, ValueError):  # output closed; the ledger has what was spent
                self.handleError(record)

    logger = logging.getLogger("fpbench.privacy.curator.curator")
    logger.setLevel(logging.INFO)
    logger.addHandler(Lines())
    logger.propagate = False
