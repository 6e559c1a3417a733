"""UCI default of credit card clients: who fails to pay next month."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

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
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame

_AMOUNT = Whole(loose=True)  # the file went through a spreadsheet: 1.00E+05
_EDUCATION = {
    "1": "graduate school", "2": "university", "3": "high school", "4": "others",
    "5": "undocumented 5", "6": "undocumented 6", "0": "undocumented 0",
}  # fmt: skip
_MONTHS = ("0", "2", "3", "4", "5", "6")  # of PAY; there is no PAY_1
_KINDS: dict[str, ColumnKind] = {
    "LIMIT_BAL": _AMOUNT,
    "SEX": Codes({"1": "male", "2": "female"}),
    "EDUCATION": Codes(_EDUCATION),
    "MARRIAGE": Codes({"1": "married", "2": "single", "3": "others", "0": "undocumented 0"}),
    "AGE": _AMOUNT,
    **{f"PAY_{month}": _AMOUNT for month in _MONTHS},
    **{f"BILL_AMT{month}": _AMOUNT for month in range(1, 7)},
    **{f"PAY_AMT{month}": _AMOUNT for month in range(1, 7)},
}
_LABEL = "Default"
_OPENML = 42477
_FILE = DataFile(
    "UCI_Credit_Card.csv",
    f"https://www.openml.org/d/{_OPENML}",
    "36b56c4d0bc2ac0ff2a1e4a1f29ba91bd4cc94cc81cce1629e5750da08f59f7c",
)


class CreditCard(PublishedDataset):
    """UCI default of credit card clients: 30,000 clients of a bank in Taiwan, 2005.

    Label 1 is a client who did not pay in the next month (22.1 %). `ID` is dropped. SEX, EDUCATION
    and MARRIAGE are categoricals in words (codes that UCI does not document are "undocumented" with
    the code); all other columns are whole numbers: the limit, age, and for six months the state of
    payment (PAY, -2 to 9), the bill and the amount paid, in New Taiwan dollars.

    Groups: male (39.6 %) and female.

    The usual file is read (`UCI_Credit_Card.csv`; the label may be called
    `default.payment.next.month`); data fetched from OpenML are converted to exactly that file.
    """

    name = "credit-card"
    summary = "credit card clients of Taiwan: 30,000 people, who fails to pay; groups by sex"
    reference = (
        "I-Cheng Yeh and Che-hui Lien. The comparisons of data mining techniques for the "
        "predictive accuracy of probability of default of credit card clients. Expert Systems with "
        "Applications 36, 2009. https://doi.org/10.24432/C55S3H"
    )
    about = DatasetFacts(
        rows=30_000,
        features=22,
        label="did not pay next month",
        label_rate=0.2212,
        groups=("male", "female"),
        source=(
            f"UCI Machine Learning Repository, https://doi.org/10.24432/C55S3H; OpenML {_OPENML}"
        ),
        licence="CC BY 4.0",
        dropped="ID, an identifier",
    )
    published = (_FILE,)
    layout = Layout(
        what="the credit card data",
        columns={**_KINDS, _LABEL: Label({"0": 0, "1": 1})},
        check="`fpbench data verify credit-card` compares it with the original",
        other_names={
            _LABEL: ("default.payment.next.month", "default payment next month"),
            "PAY_0": ("PAY_1",),
        },
    )
    columns = tuple(_KINDS)
    n_values: ClassVar[Mapping[str, int]] = {"SEX": 2, "EDUCATION": 7, "MARRIAGE": 4}

    declared = derive_domain(
        _KINDS,
        {
            "LIMIT_BAL": (0, 1_000_000), "AGE": (20, 80),
            **{f"PAY_{month}": (-2, 9) for month in _MONTHS},
            **{f"BILL_AMT{month}": (-400_000, 1_700_000) for month in range(1, 7)},
            **{f"PAY_AMT{month}": (0, 1_700_000) for month in range(1, 7)},
        },
    )  # fmt: skip

    sensitive: Sensitive = sensitive_field("SEX")

    def fetch(self, home: DataHome) -> list[Path]:
        """Make the file from OpenML's data, if it is missing.

        Raises DataError if OpenML cannot be reached, or its data do not give the known original.
        """
        return [home.keep(_FILE, lambda path: path.write_bytes(to_spread_file(_fetch_openml())))]


def _fetch_openml() -> DataFrame:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about retries; the last failure is reported below
            got = fetch_openml(data_id=_OPENML, as_frame=True, parser="auto", cache=False)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"OpenML gave no data set {_OPENML}: {error}") from error
    frame: DataFrame = got.frame
    return frame


def to_spread_file(frame: DataFrame) -> bytes:
    """The usual file, from OpenML's data.

    `frame`: columns x1 to x23 and y, whole numbers.

    Raises DataError if a column is missing, or has other values.
    """
    import pandas as pd

    named = {str(name).lower(): column for name, column in frame.items()}
    columns = [list(range(1, len(frame) + 1))]
    for name in (*(f"x{number}" for number in range(1, 24)), "y"):
        if name not in named:
            raise DataError(f"the downloaded file has no column {name!r}")
        numbers = pd.to_numeric(named[name].astype(str), errors="coerce")
        if not (numbers % 1 == 0).all():
            raise DataError(
                f"the downloaded file has values that are not whole numbers in {name!r}"
            )
        columns.append(numbers.astype("int64").tolist())
    lines = [",".join(["ID", *_KINDS, _LABEL])]
    lines += [",".join(map(_format_number, row)) for row in zip(*columns, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def _format_number(number: int) -> str:
    """A whole number in the spreadsheet notation of the original file."""
    return f"{number:.2E}" if number and number % 100_000 == 0 else str(number)
