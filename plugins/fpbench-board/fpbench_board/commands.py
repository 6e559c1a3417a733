"""The command `board`: check a run that somebody sent, and build the site of many."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fpbench import InputError
from fpbench.base import hide_paths
from fpbench.errors import StoreError

app = typer.Typer(help="Check runs that others send, and build a leaderboard of them.")

Sample = Annotated[int, typer.Option(min=0, help="Cells of each run to run again; 0 for none.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed that draws the sample; without it, each sample is new."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of worker processes.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds that a step may take.")]
Memory = Annotated[float, typer.Option(min=0.1, help="GiB of memory that a step may take.")]
ThirdParty = Annotated[
    bool,
    typer.Option(
        "--third-party/--no-third-party", help="Whether a run may use components of other packages."
    ),
]


@app.command("check")
def check_run(
    run: Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")],
    sample: Sample = 10,
    seed: Seed = None,
    jobs: Jobs = 1,
    timeout: Timeout = 600.0,
    memory: Memory = 4.0,
    third_party: ThirdParty = True,
    record: Annotated[
        Path | None, typer.Option("--json", help="File for the checks, for programs.")
    ] = None,
) -> None:
    """Check a stranger's run: its data, seeds, components, and a sample of its cells.

    The cells of the sample are run again, each step in its own process with limits. Exit code 0: it
    passes; 1: some check fails; 2: it is no run.
    """
    import fpbench
    from fpbench_board.checking import CheckOptions, check

    fpbench.load(run)
    checkup = check(run, CheckOptions(sample, seed, jobs, third_party, True, timeout, memory))
    if record is not None:
        if record.resolve().is_relative_to(run.resolve()):
            raise InputError(f"--json: {record} is in the run, which is only read")
        findings = [finding._asdict() for finding in checkup.findings]
        content = {"passes": checkup.verified, "checks": findings}
        _write(record, hide_paths(json.dumps(content, indent=1)) + "\n")
    typer.echo(f"{run} passes" if checkup.verified else f"{run} does not pass: {checkup.reason}")
    for each in checkup.findings:
        typer.echo(f"{each.outcome:8}{each.name}: {_make_printable(each.words)}")
    if not checkup.verified:
        raise typer.Exit(1)


@app.command("build")
def build(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the site.")],
    title: Annotated[str, typer.Option(help="Title of the site.")] = "fpbench leaderboard",
    sample: Sample = 10,
    seed: Seed = None,
    jobs: Jobs = 1,
    timeout: Timeout = 600.0,
    memory: Memory = 4.0,
    third_party: ThirdParty = True,
    again: Annotated[
        bool, typer.Option("--again", help="Check unchanged runs again, too.")
    ] = False,
) -> None:
    """Write a leaderboard of many runs as a static site: boards by task, components, submissions.

    A sample of the cells of each run is run again. Results that this does not verify have no rank,
    and are shown as not verified. Runs that have not changed since the site was built are not
    checked again.
    """
    from fpbench_board.checking import CheckOptions
    from fpbench_board.site import build_site

    options = CheckOptions(sample, seed, jobs, third_party, False, timeout, memory)
    site = build_site(runs, output, options, title=title, again=again)
    for entrant in site.entrants:
        reason = _make_printable(f": {entrant.reason}" if entrant.reason else "")
        typer.echo(f"{'' if entrant.verified else 'not '}verified: {entrant.run}{reason}")
    typer.echo(f"site: {site.directory / 'index.html'} ({site.pages} pages)")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error.strerror or error}") from error


def _make_printable(text: str) -> str:
    """A stranger's text without what controls a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
