"""The commands of a living leaderboard: `submit`, `sign` and `site`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fpbench.base.errors import InputError
from fpbench.cli.groups import STANDARD, Command, NoThirdParty, RunDirectory, group
from fpbench.cli.records import check_outputs, record_checkup, write_record
from fpbench.cli.screen import console

if TYPE_CHECKING:
    from fpbench.testing.submissions.checking import CheckOptions

app = group("submit", "Make and check submissions to a leaderboard.")

Folder = Annotated[Path, typer.Argument(help="Folder of the submission.", metavar="SUBMISSION")]
Signed = Annotated[
    Path | None,
    typer.Option(
        "--signed",
        help="Require a signature of a signer in this file (OpenSSH allowed signers).",
        metavar="SIGNERS",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed that draws the sample; without it, each sample is new."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of worker processes.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds that a step may take.")]
Memory = Annotated[str, typer.Option(help="Memory that a step may take.", metavar="SIZE")]


@app.command("new", cls=Command)
def new_submission(
    run: RunDirectory,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The new folder; RUN-submission if not given."),
    ] = None,
) -> None:
    """Make a submission of a run: its results, the locked versions, and a manifest."""
    from fpbench.testing.submissions.folder import make_submission

    target = out or run.absolute().with_name(f"{run.absolute().name}-submission")
    folder = make_submission(run, target)
    console.show_text(f"submission: {folder}")
    console.show_listing(
        [
            (f"fpbench submit check {folder}", "# what a leaderboard checks"),
            (f"fpbench sign {folder} --key ~/.ssh/id_ed25519", "# say that it is yours"),
        ]
    )


@app.command("check", cls=Command)
def check_submission(
    submission: Folder,
    sample: Annotated[int, typer.Option(min=1, help="Number of cells to run again.")] = 10,
    seed: Seed = None,
    jobs: Jobs = 1,
    signed: Signed = None,
    timeout: Timeout = 600.0,
    memory: Memory = "4 GiB",
    record: Annotated[
        Path | None, typer.Option("--json", help="Record of the checks; - for standard output.")
    ] = None,
    no_third_party: NoThirdParty = False,
) -> None:
    """Check a stranger's submission: files, signature, versions, components, and a sample of cells.

    The cells of the sample are run again, each step in its own process with limits. No code of the
    submission is imported. Exit code 0: it passes; 1: some check fails; 2: bad input.
    """
    from fpbench.cli.screen.submissions import show_checkup
    from fpbench.testing.submissions.checking import check
    from fpbench.testing.submissions.folder import require_submission

    options = _read_options(sample, seed, jobs, signed, timeout, memory, kit=True)
    check_outputs([], json=record)
    checkup = check(require_submission(submission), options)
    if record:
        write_record(record, record_checkup(checkup))
    if record != STANDARD:
        show_checkup(checkup)
    if not checkup.verified:
        raise typer.Exit(1)


def sign(
    submission: Folder,
    key: Annotated[Path, typer.Option(help="Your private SSH key, ~/.ssh/id_ed25519 for example.")],
) -> None:
    """Sign a submission with your SSH key: all its files, as they are now."""
    from fpbench.testing.submissions.folder import require_submission
    from fpbench.testing.submissions.signing import sign

    folder = require_submission(submission).folder
    console.show_text(f"signature: {sign(folder, key.expanduser())}")


def site(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories and folders of submissions.", metavar="RUN..."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the site.")],
    title: Annotated[str, typer.Option(help="Title of the site.")] = "fpbench leaderboard",
    sample: Annotated[
        int, typer.Option(min=0, help="Cells of each run to run again; 0 for none.")
    ] = 10,
    seed: Seed = None,
    jobs: Jobs = 1,
    signed: Signed = None,
    timeout: Timeout = 600.0,
    memory: Memory = "4 GiB",
    again: Annotated[
        bool, typer.Option("--again", help="Check unchanged runs again, too.")
    ] = False,
    no_third_party: NoThirdParty = False,
) -> None:
    """Write a leaderboard of many runs as a static site: boards by task, components, submissions.

    A sample of the cells of each run is run again. Results that this does not verify have no rank,
    and are shown as not verified. Runs that have not changed since the site was built are not
    checked again.
    """
    from fpbench.cli.screen.submissions import show_site
    from fpbench.report.site.building import build_site

    options = _read_options(sample, seed, jobs, signed, timeout, memory, kit=False)
    show_site(build_site(runs, output, options, title=title, again=again))


def _read_options(
    sample: int,
    seed: int | None,
    jobs: int,
    signed: Path | None,
    timeout: float,
    memory: str,
    *,
    kit: bool,
) -> "CheckOptions":
    from pydantic import ValidationError

    from fpbench.matrix.limits import Limits
    from fpbench.testing.submissions.checking import CheckOptions

    values = {"timeout": timeout, "memory_limit": memory}
    try:
        limits = Limits.model_validate(values)
    except ValidationError as error:
        wrong = error.errors()[0]
        key, why = str(wrong["loc"][0]), wrong["msg"].removeprefix("Value error, ")
        raise InputError(f"--{key.removesuffix('_limit')}: {values[key]!r}: {why}") from None
    return CheckOptions(signed, sample, seed, jobs, kit, limits)
