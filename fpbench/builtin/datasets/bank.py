"""UCI Bank marketing: who takes up a deposit after a telephone call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from fpbench.builtin.datasets._published import (
    ColumnKind,
    Label,
    Layout,
    PublishedDataset,
    Whole,
    derive_domain,
    parse_words,
)
from fpbench.data import Attribute, DatasetFacts, Sensitive
from fpbench.plugin import DataFile
from fpbench.tabular import sensitive_field

_KINDS: dict[str, ColumnKind] = {
    "age": Whole(),
    "job": parse_words(
        "admin. blue-collar entrepreneur housemaid management retired self-employed services "
        "student technician unemployed unknown"
    ),
    "marital": parse_words("single married divorced"),
    "education": parse_words("primary secondary tertiary unknown"),
    "default": parse_words("no yes"),
    "balance": Whole(),
    "housing": parse_words("no yes"),
    "loan": parse_words("no yes"),
    "contact": parse_words("cellular telephone unknown"),
    "day": Whole(),
    "month": parse_words("jan feb mar apr may jun jul aug sep oct nov dec"),
    "duration": Whole(),
    "campaign": Whole(),
    "pdays": Whole(),
    "previous": Whole(),
    "poutcome": parse_words("failure success other unknown"),
}


class Bank(PublishedDataset):
    """UCI Bank marketing: 45,211 clients of a Portuguese bank who were called, 2008 to 2010.

    Label 1 is a client who took up the term deposit (11.7 %). No row and no column is dropped; the
    16 columns except the sensitive ones are features, whole numbers or categoricals. "unknown" is
    an ordinary value; `pdays` is -1 for people who were never called before.

    By default, groups are people below 60 years (96.1 %) and of 60 or more.

    Note that `duration`, the length of the call in seconds, is known only together with the label:
    `drop = ["duration"]` leaves it out.
    """

    name = "bank"
    summary = "UCI Bank marketing: 45,211 clients, who takes up a deposit; groups by age"
    reference = (
        "Sérgio Moro, Paulo Cortez, Paulo Rita. A data-driven approach to predict the success of "
        "bank telemarketing. Decision Support Systems 62, 2014. https://doi.org/10.24432/C5K306"
    )
    about = DatasetFacts(
        rows=45_211,
        features=15,
        label="took up the deposit",
        label_rate=0.1170,
        groups=("age < 60", "age >= 60"),
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5K306 (bank-full.csv)",
        licence="CC BY 4.0",
        dropped="nothing",
    )
    published = (
        DataFile(
            "bank-full.csv",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank.zip",
            "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            member="bank-full.csv",
        ),
    )
    layout = Layout(
        what="Bank marketing",
        columns={**_KINDS, "y": Label({"no": 0, "yes": 1})},
        check="`fpbench data verify bank` compares it with the original",
        separator=";",
    )
    columns = tuple(_KINDS)
    n_values: ClassVar[Mapping[str, int]] = {
        "job": 12, "marital": 3, "education": 4, "default": 2, "housing": 2, "loan": 2,
        "contact": 3, "month": 12, "poutcome": 4,
    }  # fmt: skip

    declared = derive_domain(
        _KINDS,
        {
            "age": (18, 100), "balance": (-10_000, 110_000), "day": (1, 31), "duration": (0, 5_000),
            "campaign": (1, 65), "pdays": (-1, 900), "previous": (0, 300),
        },
    )  # fmt: skip

    sensitive: Sensitive = sensitive_field(Attribute(column="age", cuts=(60,)))
