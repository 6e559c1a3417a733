"""UCI Adult: the census extract most used in fair learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from fpbench.builtin.datasets._published import (
    ColumnKind,
    Label,
    Layout,
    PublishedDataset,
    Whole,
    Words,
    read_parts,
)
from fpbench.data import DatasetFacts, Domain, Sensitive
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import LabelledColumns, sensitive_field

_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    "native-country",
)
_KINDS: dict[str, ColumnKind] = {
    name: Whole() if name in _NUMBERS else Words() for name in _COLUMNS
}
_WORDS = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov "
    "Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th "
    "12th Masters 1st-4th 10th Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed "
    "Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany "
    "Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras Philippines "
    "Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador "
    "Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
    "Trinadad&Tobago Peru Hong Holand-Netherlands",
}
_DOMAIN = Domain(
    {
        "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16),
        "capital-gain": (0, 99_999), "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
    },
    {name: tuple(text.split()) for name, text in _WORDS.items()},
)  # fmt: skip
"""Categories from `adult.names`; bounds from its conditions, the survey's limits, or rounded."""
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"


class Adult(PublishedDataset):
    """UCI Adult: 45,222 people of the 1994 US census; the label is an income above 50,000 USD.

    Both UCI files are read, first the 30,162 complete rows of `adult.data`, then the 15,060 of
    `adult.test`. The 3,620 rows with a missing value (workclass, occupation or native-country) are
    dropped, as in the literature that benchmarks compare with. Repeated rows are kept.

    Label 1 is an income above 50K (24.8 %). All columns but the sensitive attributes are
    features; nothing else is dropped: age, fnlwgt (the census weight), education-num,
    capital-gain, capital-loss and hours-per-week as whole numbers; workclass, education,
    marital-status, occupation, relationship, native-country (and race or sex, if not
    sensitive) as categoricals with the sorted categories of the whole table.

    Groups, in order: sex: Female, Male (32.5 %, 67.5 %); race: Amer-Indian-Eskimo,
    Asian-Pac-Islander, Black, Other, White; both: their 10 combinations, none of them empty. Any
    other column may be the sensitive attribute, too.

    Note that `relationship` has the values Husband and Wife, which reveal sex: `drop =
    ["relationship"]` leaves it out.
    """

    name = "adult"
    summary = "UCI Adult: 45,222 people, income above 50K; groups by sex, or any other column"
    reference = (
        "Barry Becker and Ronny Kohavi. Adult. UCI Machine Learning Repository, 1996. "
        "https://doi.org/10.24432/C5XW20"
    )
    about = DatasetFacts(
        rows=45_222,
        features=13,
        label="income above 50K",
        label_rate=0.2478,
        groups=("Female", "Male"),
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20",
        licence="CC BY 4.0",
        dropped="3,620 rows with a missing value, as in the literature; no column",
    )
    published = (
        DataFile(
            "adult.data",
            f"{_URL}/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        DataFile(
            "adult.test",
            f"{_URL}/adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ),
    )
    layout = Layout(
        what="UCI Adult",
        columns={**_KINDS, "income": Label({"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1})},
        check="`fpbench data verify adult` compares it with the original",
        header=False,
        comment="|",  # the test file's first line is a comment
        missing="?",
    )
    columns = _COLUMNS
    n_values: ClassVar[Mapping[str, int]] = {
        "workclass": 7, "education": 16, "education-num": 16, "marital-status": 7,
        "occupation": 14, "relationship": 6, "race": 5, "sex": 2, "native-country": 41,
    }  # fmt: skip

    declared = _DOMAIN

    sensitive: Sensitive = sensitive_field("sex")

    def read(self, home: DataHome) -> LabelledColumns:
        """Read both files, one after the other.

        Raises DataError if a file is missing, cannot be read, is empty, or holds a row that is not
        UCI Adult's; the message names the file and the line.
        """
        frame, (train, test) = read_parts(self.find_files(home), self.layout)
        labels = frame.pop("income").to_numpy()
        return LabelledColumns(
            frame, labels, self.about.label, np.repeat([False, True], [train, test])
        )
