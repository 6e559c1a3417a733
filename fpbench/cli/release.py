"""The `release` command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fpbench.base.errors import InputError
from fpbench.cli.assess import (
    EXCEEDS,
    Household,
    Label,
    Positive,
    Threshold,
    name_column,
    write_report,
)
from fpbench.cli.groups import STANDARD, NoThirdParty
from fpbench.cli.records import check_outputs, write_record
from fpbench.cli.screen import console


def release(
    people: Annotated[
        Path,
        typer.Argument(help="The people, one row a person: CSV, parquet, Excel.", metavar="PEOPLE"),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File for the table: JSON (.json), parquet (.parquet), or else CSV; with --check "
            "the table that is checked.",
        ),
    ],
    group: Annotated[
        list[str] | None,
        name_column("Column of the group; `group` if not given. Repeated, they are crossed."),
    ] = None,
    prediction: Annotated[
        str | None,
        name_column("Column of the model's prediction; `prediction` if not given."),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    threshold: Threshold = None,
    household: Household = None,
    by: Annotated[
        list[str] | None,
        name_column("Column that slices are cut by; may be repeated.  [default: all others]"),
    ] = None,
    order: Annotated[int, typer.Option(min=0, help="Most columns that a slice crosses.")] = 1,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric that is published; may be repeated.  [default: selection-rate]"),
    ] = None,
    min_cell: Annotated[
        int, typer.Option(min=0, help="Least number of people, of all groups, behind a value.")
    ] = 10,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Privacy parameter of the whole table.  [default: the greatest of .1 to 10 within "
            "the limits, by attacks on the data]"
        ),
    ] = None,
    noise: Annotated[str, typer.Option(help="Mechanism of the noise.")] = "discrete-laplace",
    public: Annotated[
        str,
        typer.Option(
            help="What readers know: `sizes` of slices by prediction, or `nothing` but columns, "
            "their values and groups' names."
        ),
    ] = "sizes",
    max_leak: Annotated[
        str,
        typer.Option(help="Greatest rise of the share guessed right: 1% or 0.01, not 1."),
    ] = "1%",
    max_proven: Annotated[
        int, typer.Option(min=0, help="Greatest number of people proven or sure.")
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of simulated noise, for benchmarks; else noise is drawn from the operating "
            "system."
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="File of everything published about these people, made if there is none; the "
            "table is paid from its budget.  [needs --budget, and --epsilon or --horizon]"
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Epsilon of all tables together that the ledger pays.")
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tables still to be paid from the ledger, this one included: epsilon is its part "
            "of what remains.",
        ),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            help="Table that was released before, about the same people: its noisy numbers are "
            "used too, and the attack is that of a reader of all tables; may be repeated."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Certificate to write, for who holds the data; - for standard output."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Make nothing, but recount a certificate from the table and the people.",
            metavar="CERTIFICATE",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Time limit of each attack.")] = 120.0,
    no_third_party: NoThirdParty = False,
) -> None:
    """Make a table of rates by group that may be published.

    It is within limits, and has a certificate.

    Exit code 0: it is within the limits; 3: no table is, and none is written; 2: bad input. With
    --check: 0 if the certificate is right, 1 if not.
    """
    from fpbench.privacy.ledger import Ledger
    from fpbench.reports.assessments.input_files import ColumnNames, read_people
    from fpbench.reports.assessments.releasing import release as make_release
    from fpbench.reports.fairness_report import FairnessReport

    names = ColumnNames.of(
        group or (), (prediction,) if prediction else (), label=label, positive=positive,
        household=household, threshold=threshold,
    )  # fmt: skip
    if check is not None:
        if certificate is not None:
            raise InputError(f"{certificate}: --check writes no file: leave out --certificate")
        _check(check, output, people, names, earlier or (), seconds)
        return
    check_outputs([people, *(earlier or ())], output=output, certificate=certificate)
    if (ledger is None) != (budget is None):
        raise InputError("--ledger and --budget go together: a file, and the epsilon of all tables")
    book = None if ledger is None or budget is None else Ledger(budget, path=ledger)
    read = read_people(people, names)
    with console.AttackProgress() as progress:
        made = make_release(
            read.X, read.predictions, read.groups, by=by or list(map(str, read.X.columns)),
            order=order, epsilon=epsilon, max_leak=max_leak, max_proven=max_proven,
            labels=read.labels, metrics=metric or ["selection-rate"], min_cell=min_cell,
            noise=noise, public=public, households=read.households, ledger=book, horizon=horizon,
            earlier={str(file): FairnessReport.from_file(file) for file in earlier or ()},
            seed=seed, seconds=seconds, tell=progress.tell,
        )  # fmt: skip
    if made.passes:
        write_report(made.report, output)
    if certificate is not None:
        inputs = {"people": {"file": str(people), "sha256": read.checksum}}
        write_record(certificate, {"gate": "release", "inputs": inputs, **made.to_json()})
    if certificate != STANDARD:
        console.show_text(str(made))
        if made.passes:
            console.show_text(f"the table: {output}")
    if not made.passes:
        raise typer.Exit(EXCEEDS)


def _check(
    certificate: Path, table: Path, people: Path, names: object, earlier: Sequence[Path],
    seconds: float,
) -> None:  # fmt: skip
    """Recount a certificate; exit with 1 if a line does not hold."""
    from json import loads

    from fpbench.reports.assessments.input_files import ColumnNames, read_people
    from fpbench.reports.assessments.releasing import check_release
    from fpbench.reports.fairness_report import FairnessReport

    assert isinstance(names, ColumnNames)
    try:
        content = loads(certificate.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{certificate}: is no certificate in JSON: {error}") from None
    read, report = read_people(people, names), FairnessReport.from_file(table)
    try:
        lines = check_release(
            content, report, read.X, read.predictions, read.groups, labels=read.labels,
            households=read.households, seconds=seconds,
            earlier=[FairnessReport.from_file(file) for file in earlier],
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{certificate}: {error}") from None
    for line, holds in lines.items():
        console.show_text(f"{'right' if holds else 'WRONG'}: {line}")
    if not all(lines.values()):
        raise typer.Exit(1)
