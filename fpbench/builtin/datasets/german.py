"""Statlog German credit: good and bad credit risks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from fpbench.builtin.datasets._published import (
    Codes,
    ColumnKind,
    Label,
    Layout,
    PublishedDataset,
    Whole,
    derive_domain,
)
from fpbench.data import DatasetFacts, Sensitive
from fpbench.plugin import DataFile
from fpbench.tabular import sensitive_field

_KINDS: dict[str, ColumnKind] = {
    "checking-account": Codes({
        "A11": "below 0 DM", "A12": "0 to 200 DM", "A13": "200 DM or more, or salary",
        "A14": "none",
    }),
    "duration": Whole(),
    "credit-history": Codes({
        "A30": "no credits, or all paid back", "A31": "all credits here paid back",
        "A32": "paid back till now", "A33": "delays in the past",
        "A34": "critical, or credits elsewhere",
    }),
    "purpose": Codes({
        "A40": "new car", "A41": "used car", "A42": "furniture", "A43": "radio or television",
        "A44": "domestic appliances", "A45": "repairs", "A46": "education", "A47": "vacation",
        "A48": "retraining", "A49": "business", "A410": "other",
    }),
    "amount": Whole(),
    "savings": Codes({
        "A61": "below 100 DM", "A62": "100 to 500 DM", "A63": "500 to 1000 DM",
        "A64": "1000 DM or more", "A65": "unknown or none",
    }),
    "employed-since": Codes({
        "A71": "unemployed", "A72": "below 1 year", "A73": "1 to 4 years", "A74": "4 to 7 years",
        "A75": "7 years or more",
    }),
    "instalment-rate": Whole(),
    "sex": Codes({"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}),
    "other-debtors": Codes({"A101": "none", "A102": "co-applicant", "A103": "guarantor"}),
    "residence-since": Whole(),
    "property": Codes({
        "A121": "real estate", "A122": "savings contract or life insurance", "A123": "car or other",
        "A124": "unknown or none",
    }),
    "age": Whole(),
    "other-instalments": Codes({"A141": "bank", "A142": "stores", "A143": "none"}),
    "housing": Codes({"A151": "rent", "A152": "own", "A153": "for free"}),
    "credits-here": Whole(),
    "job": Codes({
        "A171": "unemployed, or unskilled non-resident", "A172": "unskilled resident",
        "A173": "skilled", "A174": "management, self-employed or highly qualified",
    }),
    "dependents": Whole(),
    "telephone": Codes({"A191": "none", "A192": "yes"}),
    "foreign-worker": Codes({"A201": "yes", "A202": "no"}),
}  # fmt: skip
"""The codes of sex are those of personal status."""


class German(PublishedDataset):
    """Statlog German credit: 1,000 applicants for a loan of 1973 to 1975, 70 % of them good.

    Label 1 is a good credit risk. The file has one column for sex and marital status; sex is
    derived from it (A92 and A95 female, the others male, as in the literature) and it is then
    dropped, since A92, the only female code in the data, reveals sex. The other 19 columns are
    features: seven of them whole numbers, the rest categoricals in the words of UCI's description
    instead of its codes.

    That description is known to be wrong in places (Grömping, 2019): A92 may include single
    men, and the codes of foreign workers may be swapped. Sex is therefore uncertain in these data.
    """

    name = "german"
    summary = "German credit: 1,000 applicants, good credit risk; groups by sex"
    reference = (
        "Hans Hofmann. Statlog (German Credit Data). UCI Machine Learning Repository, 1994. "
        "https://doi.org/10.24432/C5NC77; Ulrike Grömping. South German credit data: correcting a "
        "widely used data set. Reports in Mathematics, Physics and Chemistry 4, Beuth University "
        "of Applied Sciences Berlin, 2019"
    )
    about = DatasetFacts(
        rows=1_000,
        features=19,
        label="good credit risk",
        label_rate=0.7,
        groups=("male", "female"),
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5NC77",
        licence="CC BY 4.0",
        dropped="personal status: sex is derived from it, and its only female code reveals sex",
    )
    published = (
        DataFile(
            "german.data",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data",
            "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        ),
    )
    layout = Layout(
        what="German credit",
        columns={**_KINDS, "credit": Label({"1": 1, "2": 0})},
        check="`fpbench data verify german` compares it with the original",
        header=False,
        separator=" ",
    )
    columns = tuple(_KINDS)
    n_values: ClassVar[Mapping[str, int]] = {
        "checking-account": 4, "credit-history": 5, "purpose": 10, "savings": 5,
        "employed-since": 5, "instalment-rate": 4, "sex": 2, "other-debtors": 3,
        "residence-since": 4, "property": 4, "other-instalments": 3, "housing": 3,
        "credits-here": 4, "job": 4, "dependents": 2, "telephone": 2, "foreign-worker": 2,
    }  # fmt: skip

    declared = derive_domain(
        _KINDS,
        {
            "duration": (0, 80), "amount": (0, 20_000), "instalment-rate": (1, 4),
            "residence-since": (1, 4), "age": (18, 100), "credits-here": (1, 4),
            "dependents": (1, 2),
        },
    )  # fmt: skip

    sensitive: Sensitive = sensitive_field("sex")
