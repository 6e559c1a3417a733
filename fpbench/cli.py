"""The command line. The only module that ends the process.

Commands import what they need when they are called, so that `--help` shows at once.
"""

import io
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fpbench import console
from fpbench.errors import FpbenchError
from fpbench.kinds import KINDS, Status


class _Light:
    """A command whose `--help` has a value when it is not given.

    typer (0.29) loads pydantic to convert a missing one, which costs more than all the rest.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.default = False
        return option


class _Command(_Light, TyperCommand):
    pass


class _Group(_Light, TyperGroup):
    pass


def _typer(name: str, text: str) -> typer.Typer:
    """A group of commands that starts light: plain help, no completion options to convert."""
    return typer.Typer(
        name=name,
        help=text,
        cls=_Group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _typer("fpbench", "Measure what fair machine-learning models give away about people.")
data_app = _typer("data", "Data files: where they are looked for, fetched, verified.")
app.add_typer(data_app)

MatrixFile = Annotated[Path, typer.Argument(help="Matrix file (TOML).", metavar="MATRIX")]
RunDirectory = Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")]
Out = Annotated[Path | None, typer.Option(help="Run directory; runs/NAME if not given.")]


class Format(StrEnum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


def main() -> None:
    """Run the command line; bad input is one clear message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal that lacks a letter still shows the rest
            stream.reconfigure(errors="replace")
    try:
        app()
    except FpbenchError as error:
        console.error(str(error))
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output, `head` for instance, has seen enough
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:  # a place that cannot be read or written, wherever it was touched
        where = f"{error.filename}: " if error.filename else ""
        console.error(f"{where}{error.strerror or error}")
        sys.exit(2)


def _version(asked: bool) -> None:
    if asked:
        from fpbench import __version__

        typer.echo(f"fpbench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(cls=_Command)
def run(
    matrix: MatrixFile,
    out: Out = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes.")] = 1,
    engine: Annotated[
        str | None, typer.Option(help="inline or loky; by default as the jobs need.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew; an earlier run is moved aside.")
    ] = False,
) -> None:
    """Run what is not yet done of a matrix, then show the leaderboard.

    Exit code 0: all cells done or skipped; 1: some failed; 2: bad input; 130: interrupted.
    """
    from fpbench import api
    from fpbench.matrix import read

    checked = read(matrix)
    directory = out or api.default_directory(checked)
    try:
        with console.RunProgress() as progress:
            made = api.run(
                checked, out=directory, jobs=jobs, engine=engine, fresh=fresh,
                on_plan=progress.planned, on_cell=progress.finished,
            )  # fmt: skip
    except KeyboardInterrupt:
        again = shlex.join(["fpbench", "run", str(matrix), *(["--out", str(out)] if out else [])])
        console.error(f"interrupted; what is done is kept, and this goes on: {again}")
        sys.exit(130)
    _show(made)
    console.show_skipped(progress.skipped)
    typer.echo(f"run directory: {directory}")
    failed = [cell for cell in made.finished if cell.status is Status.FAILED]
    if failed:
        console.error(f"{len(failed)} of {len(made.finished)} cells failed")
        raise typer.Exit(2 if any(cell.bad_input for cell in failed) else 1)


def _show(made: object, rank_by: str | None = None) -> None:
    from fpbench.api import Run

    assert isinstance(made, Run)
    for board in made.leaderboards(rank_by):
        console.show_leaderboard(board)


@app.command(cls=_Command)
def plan(matrix: MatrixFile, out: Out = None) -> None:
    """Show what would run: cells, unique steps, skips with reasons, rough time."""
    from fpbench import api
    from fpbench.matrix import read
    from fpbench.plan import make_plan
    from fpbench.plugins import discover
    from fpbench.runner import remaining
    from fpbench.store import Store

    checked = read(matrix)
    planned = make_plan(checked, discover())
    directory = out or api.default_directory(checked)
    done: set[str] = set()
    seconds = None
    if (directory / "store.sqlite").exists():
        with Store(directory) as store:
            done = store.done() & {cell.key for cell in planned.runnable}
            means = store.timings()
        names = [(s.action, s.spec.use if s.spec else "") for s in remaining(planned, done)]
        if all(name in means for name in names):
            seconds = sum(means[name] for name in names)
    console.show_plan(planned, seconds, len(done))


@app.command(cls=_Command)
def leaderboard(
    run: RunDirectory,
    by: Annotated[str | None, typer.Option(help="Measure to rank by.")] = None,
) -> None:
    """Rank the combinations of a run."""
    from fpbench import api

    made = api.load(run)
    made.leaderboard(by)  # says so if there is nothing to rank
    _show(made, by)


@app.command(cls=_Command)
def export(
    run: RunDirectory,
    format: Annotated[Format, typer.Option(help="File format.")] = Format.CSV,
    long: Annotated[bool, typer.Option("--long", help="One row a measure, not a cell.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; standard output if not given.")
    ] = None,
) -> None:
    """Write the rows of a run, tidy."""
    from fpbench import api
    from fpbench.export import write

    write(api.load(run).frame(), format.value, output, long=long)


@app.command(cls=_Command)
def plugins(
    long: Annotated[
        bool, typer.Option("--long", help="Import every component and show its summary.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the tracebacks of broken plugins.")
    ] = False,
) -> None:
    """List what is installed, from which distribution, and what is broken."""
    from fpbench import listings
    from fpbench.plugins import discover

    catalog = discover()
    listings.show_catalog(catalog, long=long)
    listings.show_broken(catalog, trace=trace)


@app.command(cls=_Command)
def describe(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.", metavar="KIND")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
) -> None:
    """Show a component: what it does, its parameters, its source."""
    from fpbench import listings
    from fpbench.plugins import discover

    listings.show_component(discover(), kind, name)


@app.command(cls=_Command)
def doctor() -> None:
    """Show what works here, and how to get what does not."""
    from fpbench import listings
    from fpbench.plugins import discover

    listings.show_health(discover())


Names = Annotated[list[str] | None, typer.Argument(help="Datasets; all if not given.")]


@data_app.command("list", cls=_Command)
def data_list() -> None:
    """List the files of every dataset, and which are here."""
    from fpbench import listings
    from fpbench.plugins import discover

    listings.show_data(discover())


@data_app.command(cls=_Command)
def fetch(names: Annotated[list[str], typer.Argument(help="Datasets.", metavar="NAME...")]) -> None:
    """Download what is missing of datasets, or is not the known original."""
    from fpbench import listings
    from fpbench.plugins import discover

    listings.fetch(discover(), names)


@data_app.command(cls=_Command)
def verify(names: Names = None) -> None:
    """Compare files with the known originals; exit code 1 if one differs."""
    from fpbench import listings
    from fpbench.plugins import discover

    if not listings.verify(discover(), names or []):
        raise typer.Exit(1)


@data_app.command(cls=_Command)
def path() -> None:
    """Show the directories in which data is looked for, first match wins."""
    from fpbench.home import DataHome

    for directory in DataHome.default().directories:
        typer.echo(str(directory))
