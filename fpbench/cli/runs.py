"""The commands that compare and combine runs: `merge`, `diff`, `verify`."""

from pathlib import Path
from typing import Annotated

import typer

from fpbench.cli.groups import Command, NoThirdParty

app = typer.Typer()

Run = Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")]


@app.command(cls=Command)
def merge(
    runs: Annotated[
        list[Path], typer.Argument(help="Two or more run directories.", metavar="RUN...")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new run directory.")],
) -> None:
    """Put runs of one matrix together, from many machines; conflicts are named.

    Exit code 2 if cells are not the same in all runs: nothing is written then.
    """
    from fpbench.cli.screen import runs as run_boards
    from fpbench.store import merging

    run_boards.show_merged(merging.merge(runs, out), len(runs))


@app.command(cls=Command)
def diff(
    one: Run,
    other: Annotated[Path, typer.Argument(help="Another run directory.", metavar="RUN")],
    most: Annotated[int, typer.Option(min=0, help="How many changes are told one by one.")] = 20,
) -> None:
    """Show which cells of two runs differ, by how much, and what versions made them.

    Exit code 0: the results are the same; 1: they differ.
    """
    from fpbench.cli.screen import runs as run_boards
    from fpbench.store import differences

    found = differences.diff(one, other, most=most)
    run_boards.show_difference(found)
    if found:
        raise typer.Exit(1)


@app.command(cls=Command)
def verify(
    run: Run,
    sample: Annotated[int, typer.Option(min=1, help="How many cells are run again.")] = 10,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws the sample; a new one each time if not given.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes.")] = 1,
    no_third_party: NoThirdParty = False,
) -> None:
    """Run a sample of cells again and compare them with the run.

    To the last bit if the kernels here computed it, else within 1e-6; what is not portable is
    then shown apart. Exit code 0: all that can be compared are the same; 1: some are not, or could
    not be run again.
    """
    from fpbench.cli.screen import runs as run_boards
    from fpbench.execution import verification

    found = verification.verify(run, sample, seed=seed, jobs=jobs)
    run_boards.show_verification(found)
    if not found.same:
        raise typer.Exit(1)
