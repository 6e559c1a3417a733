"""The `attack` command."""

from pathlib import Path
from typing import Annotated

import typer

from fpbench.base.errors import InputError
from fpbench.cli.assess import Label, Positive, Threshold, name_column
from fpbench.cli.groups import NoThirdParty
from fpbench.cli.screen import console


def attack(
    people: Annotated[
        Path,
        typer.Argument(
            help="The people with the model's predictions, one row a person: CSV, parquet, Excel.",
            metavar="PEOPLE",
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
    known: Annotated[
        float, typer.Option(help="Share of the people whose groups the attacker knows.")
    ] = 0.5,
    adversary: Annotated[str, typer.Option(help="Component that guesses groups.")] = "a2",
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions, each with others known.")] = 6,
    no_third_party: NoThirdParty = False,
) -> None:
    """Say what a model's predictions give away about people's groups.

    The attacker learns from people whose groups are known, and guesses those of the others.
    """
    from fpbench.api.attack import attack as attack_model
    from fpbench.reports.assessments.input_files import ColumnNames, read_people

    names = ColumnNames.of(
        group or (), (prediction,) if prediction else (), label=label, positive=positive,
        threshold=threshold,
    )  # fmt: skip
    read = read_people(people, names)
    if read.labels is None:
        raise InputError(f"{people}: no column 'label': name the column of true labels by --label")
    result = attack_model(
        read.predictions, read.X, read.labels, read.groups.to_numpy(), known=known,
        adversary=adversary, seeds=seeds,
    )  # fmt: skip
    console.show_text(str(result))
