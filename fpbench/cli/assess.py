"""The `assess` command."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpbench.base.errors import InputError
from fpbench.cli.groups import STANDARD, NoThirdParty
from fpbench.cli.records import check_outputs, write_record
from fpbench.cli.screen import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from fpbench.reports.assessments.assessment import Assessment
    from fpbench.reports.assessments.input_files import AssessmentFiles
    from fpbench.reports.fairness_report import FairnessReport


class Beliefs(StrEnum):
    """What a reader knows beforehand."""

    LEARNT = "learnt"
    SHARES = "shares"


def name_column(what: str) -> Any:
    """An option that names a column of the people."""
    return typer.Option(help=what, metavar="COLUMN")


Label = Annotated[str | None, name_column("Column of the label; `label` if there is one.")]
Positive = Annotated[
    str | None,
    typer.Option(
        help="Value of predictions and labels that counts as 1, where they are not 0 and 1.",
        metavar="VALUE",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Least score that is prediction 1, where the predictions are scores."),
]
Household = Annotated[
    str | None, name_column("Column of the household: its people are cross-fitted together.")
]
EXCEEDS = 3
"""Exit code of a report that exceeds the limits."""


def assess(
    report: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The table: CSV, a spreadsheet, JSON, Parquet, HTML, or - for standard input; of "
            "any form. Several are assessed together, in the order of publishing.",
            metavar="TABLE",
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="The people of the reports, one row a person: CSV, parquet, Excel."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="Other people whose group is known, to learn beliefs from."),
    ] = None,
    group: Annotated[
        list[str] | None,
        name_column(
            "Column of the group; `group` if there is one. Repeated: the table is judged for each, "
            "and for all of them crossed; the worst verdict counts."
        ),
    ] = None,
    prediction: Annotated[
        list[str] | None,
        name_column(
            "Column of the model's prediction; `prediction` if not given. Repeated, one for "
            "each report, blank where a person is not in it."
        ),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    threshold: Threshold = None,
    household: Household = None,
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
    unit: Annotated[
        str | None,
        typer.Option(help="Unit of rates, where the table does not tell: percent or share."),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="What a heading, value or cell of the table stands for: a metric, n, value, a "
            "column of the people, a group; - leaves a column out. Repeated; or a file with a line "
            "for each.",
            metavar="TEXT=MEANING",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Only write what the table was read as, for --map."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse a table with numbers of groups that are not read."),
    ] = False,
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
    """Say whether a table of rates by group may be published.

    Exit code 0: it is within the limits; 3: it exceeds them, or is not decided; 2: bad input. With
    --check: 0 if the record is right, 1 if not.
    """
    import time

    if check is not None:
        _check(check, report or [], people, json or protected)
        return
    if not report or people is None:
        raise InputError("name a TABLE, and its people by --people FILE")

    started = time.perf_counter()
    from fpbench.reports.assessments.assessing import assess_series
    from fpbench.reports.assessments.attack import Allowed
    from fpbench.reports.assessments.input_files import ColumnNames, TableOptions, read_files

    allowed = Allowed.of(max_leak, max_proven, sure, max_undecided, protect_hidden)
    reads = [*report, people, *([] if known is None else [known])]
    check_outputs(reads, json=json, protected=protected)
    attributes = _list_attributes(group or [])
    if witnesses and json is None:
        raise InputError("--witnesses are written into a record: name one by --json FILE")
    if protected is not None and no_search:
        raise InputError("--protected writes what the search finds: leave out --no-search")
    _check_attributes(attributes, protected, witnesses)
    tables = TableOptions(_read_mapping(mapping or []), unit, strict)

    def read(crossed: tuple[str, ...]) -> "AssessmentFiles":
        names = ColumnNames(
            " x ".join(crossed) or None, tuple(prediction or ()), label, positive, household,
            crossed if len(crossed) > 1 else (), threshold,
        )  # fmt: skip
        return read_files(report, people, known, names, decimals, tables)

    results: dict[str, Assessment] = {}
    with console.AttackProgress() as progress:
        each = _read_each(attributes, read)
        if explain:
            _explain(each)
            return
        for number, (name, files) in enumerate(each.items()):
            told = files.read_reports()
            left = max(seconds - (time.perf_counter() - started), 1.0) / (len(each) - number)
            results[name] = assess_series(
                files.series, told, files.X, files.labels, files.groups,
                "shares" if beliefs is Beliefs.SHARES else None, files.known,
                households=files.households, allowed=allowed, search=not no_search,
                placebo=placebo, seconds=left, tell=progress.tell,
            )  # fmt: skip
    passes, result = all(one.passes for one in results.values()), next(iter(results.values()))
    change = result.change.cheapest if result.change else None
    if change is not None and protected is not None:
        write_report(change.report, protected)
    if json is not None:
        options = {
            "seconds": seconds, "search": not no_search, "decimals": decimals, "positive": positive,
            "prediction": prediction or [], "label": label,
            "group": group[0] if group and len(group) == 1 else group,
            "threshold": threshold,
            "beliefs": beliefs.value, "household": household, "placebo": placebo,
            "unit": unit, "map": tables.mapping,
        }  # fmt: skip
        inputs = {
            name: {"file": str(path), "sha256": files.checksums.get(name)}
            for name, path in files.paths.items()
        }
        content = result.to_json(witnesses=witnesses)
        if len(attributes) > 1:
            own = {name: one.to_json() for name, one in results.items()}
            content = {"passes": passes, "assessments": own}
        write_record(
            json, {"gate": "assessment of reports", "inputs": inputs, "options": options, **content}
        )
    if json != STANDARD:
        _show(results)
        if protected is not None and change is not None:
            console.show_text(f"the changed report: {protected}")
    if not passes:
        raise typer.Exit(EXCEEDS)


def _read_each(
    attributes: list[tuple[str, ...]], read: "Callable[[tuple[str, ...]], AssessmentFiles]"
) -> "dict[str, AssessmentFiles]":
    """The files, read for each attribute that a table tells of."""
    from fpbench.reports.reading.tables import NothingToldError

    each, errors = {}, []
    for crossed in attributes:
        try:
            each[" x ".join(crossed) or "group"] = read(crossed)
        except NothingToldError as error:
            errors.append(error)
    if not each:
        raise errors[0]
    return each


def _explain(each: "dict[str, AssessmentFiles]") -> None:
    """Show what tables were read as, in lines that --map takes."""
    for name, files in each.items():
        for one in files.series.reports:
            console.show_text(f"# {name}: {one.read_as or 'the long form of fpbench'}")
            for line in (*one.mapped, *([f"# {one.unread}"] if one.unread else [])):
                console.show_text(line)


def _show(results: "dict[str, Assessment]") -> None:
    """Show the verdict; of several attributes, the worst one first."""
    if len(results) > 1:
        failed = {name: one for name, one in results.items() if not one.passes}
        judged = f"judged for {', '.join(results)}"
        if not failed:
            console.show_text(f"May be published within these limits; {judged}.")
        else:
            worse = any(one.verdict.startswith("Do not") for one in failed.values())
            verdict = "Do not publish" if worse else "Not decided"
            console.show_text(f"{verdict}, because of {', '.join(failed)}; {judged}.")
    for name, one in results.items():
        if len(results) > 1:
            console.show_text(f"\n{name}")
        console.show_assessment(one)


def _check_attributes(
    attributes: list[tuple[str, ...]], protected: Path | None, witnesses: bool
) -> None:
    if len(attributes) > 1 and (protected is not None or witnesses):
        raise InputError("--protected and --witnesses need one attribute: give one --group")


def _list_attributes(groups: list[str]) -> list[tuple[str, ...]]:
    """Columns of groups, each alone, and all crossed; () where none is named."""
    if not groups:
        return [()]
    for name in groups:
        if groups.count(name) > 1:
            raise InputError(f"--group names {name!r} twice")
    return [*((name,) for name in groups), *([tuple(groups)] if len(groups) > 1 else [])]


def _read_mapping(texts: list[str]) -> dict[str, str]:
    """What texts of a table stand for, by options or lines of files."""
    mapping = {}
    for text in texts:
        lines = [text]
        if "=" not in text:
            try:
                lines = Path(text).read_text("utf-8").splitlines()
            except (OSError, ValueError):
                raise InputError(
                    f"--map {text}: write TEXT=MEANING, or name a file with such lines"
                ) from None
        for line in lines:
            if not line.strip() or line.startswith("# "):
                continue
            name, mark, meaning = line.rpartition("=")
            if not (mark and name.strip() and meaning.strip()):
                raise InputError(
                    f"--map {line}: write TEXT=MEANING, as --map 'Hired (%)=selection-rate'"
                )
            mapping[name.strip()] = meaning.strip()
    return mapping


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
