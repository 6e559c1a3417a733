"""The `assess` command."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpbench.base.errors import InputError
from fpbench.cli.completion import complete_column
from fpbench.cli.groups import STANDARD, NoThirdParty
from fpbench.cli.records import check_outputs, write_record
from fpbench.cli.screen import console

if TYPE_CHECKING:
    from fpbench.reports.fairness_report import FairnessReport


class Beliefs(StrEnum):
    """What a reader knows beforehand."""

    LEARNT = "learnt"
    SHARES = "shares"


def name_column(what: str) -> Any:
    """An option that names a column of the people."""
    return typer.Option(help=what, autocompletion=complete_column, metavar="COLUMN")


EXCEEDS = 3
"""Exit code of a report that exceeds the limits."""


def assess(
    report: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The report in long form: CSV, JSON or parquet. Several are assessed together, in "
            "the order of publishing.",
            metavar="REPORT",
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="The people of the reports: CSV or parquet, one row a person."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="Other people whose group is known, to learn beliefs from."),
    ] = None,
    group: Annotated[
        str | None,
        name_column("Column of the group; `group` if there is one."),
    ] = None,
    prediction: Annotated[
        list[str] | None,
        name_column(
            "Column of the model's prediction; `prediction` if not given. Repeated, one for "
            "each report, blank where a person is not in it."
        ),
    ] = None,
    label: Annotated[
        str | None,
        name_column("Column of the label; `label` if there is one."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            help="Value of predictions and labels that counts as 1, where they are not 0 and 1.",
            metavar="VALUE",
        ),
    ] = None,
    household: Annotated[
        str | None,
        name_column("Column of the household: its people are cross-fitted together."),
    ] = None,
    beliefs: Annotated[
        Beliefs,
        typer.Option(
            help="What the reader knows beforehand: learnt from --known, or else from the other "
            "people of the table, if it has groups; or the groups' shares alone."
        ),
    ] = Beliefs.LEARNT,
    max_leak: Annotated[
        str | None,
        typer.Option(
            help="Greatest rise of the share guessed right: 1% or 0.01, not 1.  [default: 1%, "
            "where beliefs are learnt]"
        ),
    ] = None,
    max_proven: Annotated[
        int, typer.Option(min=0, help="Greatest number of people proven or sure.")
    ] = 0,
    max_undecided: Annotated[
        int,
        typer.Option(
            min=0, help="Greatest number of people of whom it is open whether they can be proven."
        ),
    ] = 0,
    sure: Annotated[
        str, typer.Option(help="Belief above which a group is as good as proven: 99.9% or 0.999.")
    ] = "99.9%",
    protect_hidden: Annotated[
        str | None,
        typer.Option(
            help="Share of a suppressed number that readers must not tell it to, below or above: "
            "10% or 0.1.  [default: any]",
            metavar="PERCENT",
        ),
    ] = None,
    decimals: Annotated[
        int | None, typer.Option(min=0, help="Decimals that rates of the report were rounded to.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Record of the assessment to write; - for standard output.")
    ] = None,
    witnesses: Annotated[
        bool,
        typer.Option(
            "--witnesses",
            help="With --json: the record holds worlds and proofs for --check, and so everybody's "
            "possible groups, the true ones among them.",
        ),
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Assess nothing, but recount the worlds and proofs in a record; REPORT and "
            "--people are the files that it names, if left out.",
            metavar="RECORD",
        ),
    ] = None,
    protected: Annotated[
        Path | None,
        typer.Option(
            help="File for the changed report, if one passes: JSON (.json), parquet (.parquet), "
            "or else CSV."
        ),
    ] = None,
    placebo: Annotated[
        bool,
        typer.Option("--placebo", help="Measure the leak of a table of other people, too."),
    ] = False,
    no_search: Annotated[
        bool, typer.Option("--no-search", help="Do not search for a change that passes.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1, help="Time limit of attack and search together.")
    ] = 120.0,
    no_third_party: NoThirdParty = False,
) -> None:
    """Say whether a table of rates by group may be published: people proven, and leak.

    Exit code 0: it is within the limits; 3: it exceeds them, or is not decided; 2: bad input. With
    --check: 0 if the record is right, 1 if not.
    """
    import time

    if check is not None:
        _check(check, report or [], people, json or protected)
        return
    if not report or people is None:
        raise InputError("name a REPORT, and its people by --people FILE")
    if witnesses and json is None:
        raise InputError("--witnesses are written into a record: name one by --json FILE")

    started = time.perf_counter()
    from fpbench.reports.assessments.assessing import assess_series
    from fpbench.reports.assessments.attack import Allowed
    from fpbench.reports.assessments.input_files import ColumnNames, read_files

    allowed = Allowed.of(max_leak, max_proven, sure, max_undecided, protect_hidden)
    reads = [*report, people, *([] if known is None else [known])]
    check_outputs(reads, json=json, protected=protected)
    if protected is not None and no_search:
        raise InputError("--protected writes what the search finds: leave out --no-search")
    names = ColumnNames(group, tuple(prediction or ()), label, positive, household)
    with console.AttackProgress() as progress:
        files = read_files(report, people, known, names, decimals)
        read = files.read_reports()
        left = max(seconds - (time.perf_counter() - started), 1.0)
        result = assess_series(
            files.series, read, files.X, files.labels, files.groups,
            "shares" if beliefs is Beliefs.SHARES else None, files.known,
            households=files.households, allowed=allowed, search=not no_search, placebo=placebo,
            seconds=left, tell=progress.tell,
        )  # fmt: skip
    change = result.change.cheapest if result.change else None
    if protected is not None and change is not None:
        write_report(change.report, protected)
    if json is not None:
        options = {
            "seconds": seconds, "search": not no_search, "decimals": decimals, "positive": positive,
            "prediction": prediction or [], "label": label, "group": group,
            "beliefs": beliefs.value, "household": household, "placebo": placebo,
        }  # fmt: skip
        inputs = {
            name: {"file": str(path), "sha256": files.checksums[name]}
            for name, path in files.paths.items()
        }
        write_record(
            json,
            {
                "gate": "assessment of reports",
                "inputs": inputs,
                "options": options,
                **result.to_json(witnesses=witnesses),
            },
        )
    if json != STANDARD:
        console.show_assessment(result)
        if protected is not None and change is not None:
            console.show_text(f"the changed report: {protected}")
    if not result.passes:
        raise typer.Exit(EXCEEDS)


def _check(record: Path, reports: list[Path], people: Path | None, output: Path | None) -> None:
    """Recount a record; exit with 1 if it is not right."""
    from fpbench.reports.assessments.evidence import check_record

    if output is not None:
        raise InputError(f"{output}: --check writes no file: leave out --json and --protected")
    recount = check_record(record, reports, people)
    console.show_text(str(recount))
    if not recount.passes:
        raise typer.Exit(1)


def write_report(report: "FairnessReport", file: Path) -> None:
    """Write a report in the format that files of this name are read in."""
    others = {".json": report.to_json, ".parquet": report.to_parquet, ".pq": report.to_parquet}
    others.get(file.suffix.lower(), report.to_csv)(file)
