"""The command line. The only module that ends the process.

Commands import what they need when they are called, so that `--help` shows at once.
"""

import io
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from fpbench.base.errors import FpbenchError, InputError, PluginError, RunLostError
from fpbench.cli import assess as assess_cli
from fpbench.cli import attack as attack_cli
from fpbench.cli import check as check_cli
from fpbench.cli import data as data_cli
from fpbench.cli import leaderboard as leaderboard_cli
from fpbench.cli import release as release_cli
from fpbench.cli import report as report_cli
from fpbench.cli.groups import (
    STANDARD,
    NoThirdParty,
    Output,
    RunDirectory,
    complete_component,
    complete_engine,
    complete_kind,
    group,
)
from fpbench.cli.records import check_outputs, record_statements, write_record
from fpbench.cli.screen import console
from fpbench.components.names import KINDS, Status
from fpbench.matrix.axes import MAX_CELLS

if TYPE_CHECKING:
    from fpbench.api.reproduce import Reproduction
    from fpbench.api.saved_run import Run

COMPLETE = "_FPBENCH_COMPLETE"
"""Environment variable by which typer's scripts ask for completions."""

_BEGIN = """\b
Begin with a table of yours:  fpbench assess TABLE --people PEOPLE
or, in a checkout, with this matrix:  fpbench run benchmarks/quickstart.toml
"""
app = group("fpbench", "Measure what fair machine-learning models give away about people.", _BEGIN)
app.add_typer(data_cli.app, name="data")
app.command()(leaderboard_cli.leaderboard)
app.command()(leaderboard_cli.compare)

MatrixFile = Annotated[Path, typer.Argument(help="Matrix file (TOML).", metavar="MATRIX")]
Out = Annotated[Path | None, typer.Option(help="Run directory; runs/NAME if not given.")]
Profile = Annotated[str | None, typer.Option(help="Profile of the matrix, `quick` for instance.")]
Seeds = Annotated[int | None, typer.Option(help="Number of seeds, instead of the matrix's.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of worker processes.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if a number deviates from an [[expect]].")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help="Choose components (learner=plain,pate*) or override a value (seeds=3, "
        "dataset.rows=500); may be repeated.",
        metavar="KEY=VALUE",
    ),
]
Record = Annotated[
    Path | None,
    typer.Option("--json", help="Record of statements and measurements; - for standard output."),
]
MaxCells = Annotated[int, typer.Option(min=1, help="Refuse a matrix with more cells than this.")]


class Format(StrEnum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


_RESULTS = "`fpbench leaderboard RUN` shows the results of a run"
_MEANT = {
    **dict.fromkeys(
        ("list", "ls", "components"),
        "`fpbench plugins` lists components, `fpbench data` has the commands about data sets",
    ),
    **dict.fromkeys(("show", "view", "results", "table", "board"), (
        f"{_RESULTS}, `fpbench describe KIND NAME` a component"
    )),
    **dict.fromkeys(("info", "explain"), "`fpbench describe KIND NAME` tells of a component"),
    **dict.fromkeys(("plot", "draw", "chart"), "`fpbench figure RUN NAME` draws"),
    **dict.fromkeys(("test", "lint", "validate"), (
        "`fpbench check PACKAGE` tests a plugin, `fpbench plan MATRIX` reads a matrix"
    )),
    **dict.fromkeys(("create", "init"), "`fpbench new KIND NAME` writes a plugin"),
    "audit": "in Python `fpbench.audit` takes a model; `fpbench attack PEOPLE` its predictions",
    "publish": "`fpbench release PEOPLE -o FILE` makes a table that may be published",
    "help": "`fpbench --help` lists all, `fpbench COMMAND --help` tells of one",
    "version": "`fpbench --version`",
}  # fmt: skip
"""Answers to commands that people expect."""


def _has_command(part: typer.Typer, name: str) -> bool:
    """Whether a command of this name was added, as a package may."""
    return name in {c.name for c in part.registered_commands} | {
        g.name for g in part.registered_groups
    }


def main() -> None:
    """Run the command line; bad input is one clear message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # replace characters that the terminal cannot show
            stream.reconfigure(errors="replace")
    try:
        completing = COMPLETE in os.environ
        typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = typed.split()[1:] if completing else sys.argv[1:]
        if not completing and any(re.fullmatch(r"(--[a-z-]+=)?", word) for word in words):
            # Python would take it for the current folder.
            raise InputError("an argument is empty: name a file or a folder (. is this one)")
        _take_command(words, completing=completing)(complete_var=COMPLETE)
    except FpbenchError as error:
        console.show_error(str(error))
        sys.exit(1 if isinstance(error, RunLostError) else 2)
    except BrokenPipeError:  # the reader, `head` for instance, has closed its end
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:  # a file that cannot be read or written, anywhere
        where = f"{error.filename}: " if error.filename else ""
        console.show_error(f"{where}{error.strerror or error}")
        sys.exit(2)


def _take_command(words: Sequence[str], *, completing: bool = False) -> typer.Typer:
    """The app; with commands of other packages if the words call one, or list all.

    `words`: the command line. Options before a command are flags, so the first other word is the
    command.
    """
    name = next((word for word in words if not word.startswith("-")), "")
    options = words[: words.index(name)] if name else words
    own = {getattr(c.callback, "__name__", "") for c in app.registered_commands}
    own |= {str(g.name) for g in app.registered_groups}
    listing = not words or bool({"-h", "--help"} & {*options})
    if not listing and (not name or name in own):
        return app
    part = copy(app)
    part.registered_commands, part.registered_groups = (
        [*app.registered_commands], [*app.registered_groups],
    )  # fmt: skip
    _add_commands(part, None if listing or completing else name, own)
    if name in _MEANT and not (listing or completing or _has_command(part, name)):
        raise InputError(f"there is no command {name!r}: {_MEANT[name]}")
    return part


def _add_commands(whole: typer.Typer, called: str | None, own: Collection[str | None]) -> None:
    """Add commands of other packages: the `called` one, if it is one of theirs; None: all.

    Where all are added, one that cannot be loaded is an error message.

    Raises PluginError if the called one cannot be loaded; NameUnknownError, with the command that
    installs it, if it is that of a package of ours.
    """
    from fpbench.components.catalog import OWN_PLUGINS, discover

    catalog = discover()
    if called and ("command", called) in OWN_PLUGINS:
        catalog.load("command", called)
    for entry in catalog.of_kind("command"):
        if called not in (None, entry.name):
            continue
        try:
            if entry.name in own:
                raise PluginError(f"{entry.source}: fpbench itself has a command {entry.name!r}")
            command = catalog.load("command", entry.name)
        except PluginError as error:
            if called:
                raise
            console.show_error(str(error))
            continue
        if isinstance(command, typer.Typer):
            whole.add_typer(command, name=entry.name)
        else:
            whole.command(entry.name)(command)


def _show_version(show: bool) -> None:
    if show:
        from fpbench import __version__

        typer.echo(f"fpbench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Show no progress, and no leaderboard after a run."),
    ] = False,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Use no colours, frames or drawings (for screen readers)."),
    ] = False,
) -> None:
    console.MODE.quiet, console.MODE.plain = quiet, plain


@app.command()
def run(
    matrix: MatrixFile,
    settings: Settings = None,
    profile: Profile = None,
    seeds: Seeds = None,
    out: Out = None,
    jobs: Jobs = 1,
    engine: Annotated[
        str | None,
        typer.Option(
            help="inline, loky, or that of a package, such as dask; by default chosen from --jobs "
            "and --scheduler.",
            autocompletion=complete_engine,
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Scheduler of a dask cluster: tcp://HOST:PORT.")
    ] = None,
    connect_timeout: Annotated[
        float, typer.Option(help="Seconds to wait for the scheduler.")
    ] = 30.0,
    allow_mismatch: Annotated[
        bool, typer.Option("--allow-mismatch", help="Accept workers with other versions or code.")
    ] = False,
    retries: Annotated[int, typer.Option(min=0, help="How often to retry a failed step.")] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start a new run; an earlier run is renamed.")
    ] = False,
    strict: Strict = False,
    record: Record = None,
    long: Annotated[
        bool, typer.Option("--long", help="Show the whole leaderboard, too, not only the answer.")
    ] = False,
    max_cells: MaxCells = MAX_CELLS,
    no_third_party: NoThirdParty = False,
) -> None:
    """Run a matrix (a TOML file), and say what its results mean.

    Cells that are done are not run again.

    With --strict or --json, what the matrix states in [[expect]] is compared with the results.
    Exit code 0: all cells done or skipped; 1: some failed, or the run directory was removed, or
    --strict and an expectation deviates; 2: bad input; 130: interrupted.
    """
    from fpbench.api import reproduce
    from fpbench.api import run as api
    from fpbench.cli.screen import results as boards

    check_outputs([matrix], json=record)
    chosen = settings or ()
    stated = None
    if strict or record:
        stated = reproduce.read_stated(matrix, profile, seeds, max_cells, chosen)
    with _catch_interrupt() as stop, console.RunProgress() as progress:
        result = api.run(
            matrix, profile=profile, seeds=seeds, out=out, jobs=jobs, engine=engine,
            scheduler=scheduler, connect_timeout=connect_timeout, allow_mismatch=allow_mismatch,
            retries=retries, fresh=fresh, on_plan=progress.planned, on_cell=progress.finished,
            stop=stop, max_cells=max_cells, settings=chosen,
        )  # fmt: skip
    judged = reproduce.judge(result, stated) if stated else None
    if judged and record:
        write_record(record, record_statements(judged))
    if judged and record != STANDARD:
        boards.show_reproduction(judged)
    elif not judged and not console.MODE.quiet:
        boards.show_answer(result.leaderboards(), result.path, long=long)
    _end(result, progress, judged if strict else None, silent=record == STANDARD)


@contextmanager
def _handle_signals(on_stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Whether the first Ctrl-C came while this is open; child processes end with it.

    The first one finishes running steps; a second one, or SIGTERM, stops at once.

    `on_stop`: called at the first Ctrl-C, from a signal handler: it must not use buffered output.

    Raises KeyboardInterrupt: at the second Ctrl-C, and at SIGTERM. Later signals are ignored, so
    that nothing interrupts the cleanup.
    """
    from fpbench.execution.isolation.families import end_descendants

    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return

    def handle(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and not stop.is_set():
            stop.set()
            on_stop()
            return
        stop.set()
        for kind in before:
            signal.signal(kind, signal.SIG_IGN)
        raise KeyboardInterrupt

    kinds = (signal.SIGINT, signal.SIGTERM)
    # A background command may be started with Ctrl-C ignored.
    handled = [kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN]
    before = {kind: signal.signal(kind, handle) for kind in handled}
    try:
        with end_descendants():
            yield stop.is_set
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def _catch_interrupt() -> Iterator[Callable[[], bool]]:
    """A flag that Ctrl-C sets; an interrupted command exits with the command that resumes it."""
    try:
        with _handle_signals(console.show_stopping) as stop:
            yield stop
    except KeyboardInterrupt:
        again = shlex.join(["fpbench", *(word for word in sys.argv[1:] if word != "--fresh")])
        console.show_error(f"interrupted, finished cells are kept; continue with: {again}")
        sys.exit(130)


def _end(
    run: "Run",
    progress: console.RunProgress,
    strictly: "Reproduction | None" = None,
    *,
    silent: bool = False,
) -> None:
    """Show skipped cells and the run directory, and exit with the code of a run.

    The code is 1, too, if expectations judged `strictly` deviate. If `silent`, only errors are
    shown.
    """
    from fpbench.cli.screen.runs import show_skipped

    if not silent:
        show_skipped(progress.skipped)
        console.show_text(f"run directory: {run.path}")
    failed = [cell for cell in run.finished if cell.status is Status.FAILED]
    if failed:
        console.show_error(f"{len(failed)} of {len(run.finished)} cells failed")
        raise typer.Exit(2 if any(cell.bad_input for cell in failed) else 1)
    if strictly and strictly.deviates:
        console.show_error("--strict: measured numbers deviate from what the matrix states")
        raise typer.Exit(1)


@app.command()
def plan(
    matrix: MatrixFile,
    settings: Settings = None,
    profile: Profile = None,
    seeds: Seeds = None,
    out: Out = None,
    max_cells: MaxCells = MAX_CELLS,
    no_third_party: NoThirdParty = False,
) -> None:
    """List what a matrix would run and skip, and how long it takes."""
    from fpbench.api import run as api
    from fpbench.cli.screen.runs import show_plan

    show_plan(
        api.plan(
            matrix,
            profile=profile,
            seeds=seeds,
            out=out,
            max_cells=max_cells,
            settings=settings or (),
        )
    )


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the study; without it, list the studies.", metavar="NAME"),
    ] = None,
    settings: Settings = None,
    profile: Annotated[
        str | None, typer.Option(help="`full`, or a profile of the matrix; quick by default.")
    ] = None,
    seeds: Seeds = None,
    out: Out = None,
    jobs: Jobs = 1,
    strict: Strict = False,
    record: Record = None,
    long: Annotated[
        bool, typer.Option("--long", help="Show the checks of each statement one by one, too.")
    ] = False,
    max_cells: MaxCells = MAX_CELLS,
    no_third_party: NoThirdParty = False,
) -> None:
    """Run a paper's matrix, and say which of its statements hold.

    NAME may also be a matrix file with `[[expect]]` tables. Exit codes are those of
    `run`.
    """
    from fpbench.api import reproduce
    from fpbench.cli.screen import results as boards

    if name is None:
        console.show_listing(reproduce.list_studies().items())
        return
    check_outputs([Path(name)], json=record)
    matrix = reproduce.find(name, profile, seeds, max_cells, settings or ())
    with _catch_interrupt() as stop, console.RunProgress() as progress:
        result = reproduce.reproduce(
            matrix, out=out, jobs=jobs, on_plan=progress.planned, on_cell=progress.finished,
            stop=stop,
        )  # fmt: skip
    if record:
        write_record(record, record_statements(result))
    if record != STANDARD:
        boards.show_reproduction(result, long=long)
    _end(result.run, progress, result if strict else None, silent=record == STANDARD)


@app.command()
def export(
    run: RunDirectory,
    format: Annotated[
        Format | None,
        typer.Option(help="File format; by default that of the file's ending, else csv."),
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", help="One row per measure instead of one per cell.")
    ] = False,
    output: Output = None,
) -> None:
    """Write the rows of a run as tidy CSV, Parquet or JSON lines."""
    from fpbench.api.saved_run import load
    from fpbench.cli.screen.runs import warn_unshown
    from fpbench.store.export import choose_format, export_rows

    snapshot = load(run).read()
    export_rows(snapshot.results, choose_format(output, format), output, long=long)
    warn_unshown({run: snapshot.unshown_seeds})


app.command()(attack_cli.attack)
app.command()(assess_cli.assess)
app.command()(release_cli.release)
app.command()(report_cli.page)
app.command()(report_cli.figure)


@app.command()
def plugins(
    long: Annotated[
        bool,
        typer.Option("--long", help="Show distributions too, and what cannot be used here."),
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the tracebacks of broken plugins.")
    ] = False,
    no_third_party: NoThirdParty = False,
) -> None:
    """List installed components, and broken plugins."""
    from fpbench.cli.screen import catalog as listings
    from fpbench.components.catalog import discover

    catalog = discover()
    listings.show_catalog(catalog, long=long)
    listings.show_broken(catalog, trace=trace)


@app.command()
def describe(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(KINDS)}; not needed if the name is unique.",
            metavar="KIND",
            autocompletion=complete_kind,
        ),
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=complete_component)
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", help="Show how it works, too: all of its documentation.")
    ] = False,
    no_third_party: NoThirdParty = False,
) -> None:
    """Show a component and its parameters, or those of a kind."""
    from fpbench.cli.screen import catalog as listings
    from fpbench.components.catalog import discover

    catalog = discover()
    if name is None and kind in KINDS:
        listings.show_kind(catalog, kind)
        return
    if name is None:
        kind, name = listings.find_kind(catalog, kind), kind
    listings.show_component(catalog, kind, name, long=long)


@app.command()
def doctor(no_third_party: NoThirdParty = False) -> None:
    """Show what works here, and how to install what is missing."""
    from fpbench.cli.screen import catalog as listings
    from fpbench.components.catalog import discover

    listings.show_health(discover())


app.command()(check_cli.check)
app.command()(check_cli.new)


@app.command()
def merge(
    runs: Annotated[
        list[Path], typer.Argument(help="Two or more run directories.", metavar="RUN...")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new run directory.")],
) -> None:
    """Merge runs of one matrix from several machines.

    Exit code 2 if runs have different results for a cell; then nothing is written.
    """
    from fpbench.cli.screen import runs as boards
    from fpbench.store import merging

    boards.show_merged(merging.merge(runs, out), len(runs))
    boards.warn_unshown(boards.read_unshown(runs))


@app.command()
def verify(
    run: RunDirectory,
    sample: Annotated[int, typer.Option(min=1, help="Number of cells to run again.")] = 10,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed that draws the sample; without it, each sample is new."),
    ] = None,
    jobs: Jobs = 1,
    no_third_party: NoThirdParty = False,
) -> None:
    """Run a sample of cells again and compare them with the run.

    All cells are compared with the plan of the matrix, and failed ones have to fail again.
    Numbers must agree to the last bit if this machine's kernels computed the run, else within 1e-6;
    cells that are not portable are then shown apart. Exit code 0: all comparable cells are the
    same; 1: some differ, could not be run again or are not those of the matrix.
    """
    from fpbench.cli.screen import runs as boards
    from fpbench.execution import verification

    result = verification.verify(run, sample, seed=seed, jobs=jobs)
    boards.show_page(result)
    if not result.same:
        raise typer.Exit(1)
