"""UCI Adult: the census extract on which fair learning is most often tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from fpbench import DataError, DataHome, Dataset, RemoteFile, Table

if TYPE_CHECKING:
    from pandas import Categorical

_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_LABELS = {"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1}
_GROUPS = {"sex": 2, "race": 5}
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_CHECK = "`fpbench data verify adult` compares it with the original"

_Attribute = Literal["sex", "race"]


def _listed(given: Any) -> Any:
    """Accept one name, and a list where strict validation wants a tuple."""
    if isinstance(given, str):
        return (given,)
    return tuple(given) if isinstance(given, list) else given


def _distinct(names: tuple[_Attribute, ...]) -> tuple[_Attribute, ...]:
    if not names:
        raise ValueError("names no attribute; give 'sex', 'race' or both")
    if len(set(names)) < len(names):
        raise ValueError("names an attribute twice")
    return names


class Adult(Dataset):
    """UCI Adult: 45,222 people of the 1994 US census, and who earns above 50,000 USD a year.

    Both of UCI's files are read, the 30,162 complete rows of `adult.data` first, then the 15,060
    of `adult.test`. The 3,620 rows that miss a value (workclass, occupation or native-country) are
    dropped, as they are in the literature that these benchmarks are compared with. Repeated rows
    are kept.

    Label 1 is an income above 50K (24.8 %). The chosen sensitive attributes are not features; the
    rest are, and nothing else is dropped: age, fnlwgt (the census weight), education-num,
    capital-gain, capital-loss and hours-per-week as whole numbers; workclass, education,
    marital-status, occupation, relationship, native-country (and race or sex, where not
    sensitive) as categoricals whose categories are those of the whole table, sorted.

    Groups, in order: sex: Female, Male (32.5 %, 67.5 %); race: Amer-Indian-Eskimo,
    Asian-Pac-Islander, Black, Other, White; both: their 10 combinations, all of which have members.

    Note that `relationship` holds Husband and Wife, and so nearly names the sex of the married.

    References
    ----------
    Barry Becker and Ronny Kohavi, Adult, UCI Machine Learning Repository, 1996.
    https://doi.org/10.24432/C5XW20
    """

    name = "adult"
    summary = "UCI Adult: 45,222 people, income above 50K; groups by sex, race or both"
    reference = (
        "Barry Becker and Ronny Kohavi. Adult. UCI Machine Learning Repository, 1996. "
        "https://doi.org/10.24432/C5XW20"
    )
    files: ClassVar[tuple[RemoteFile, ...]] = (
        RemoteFile(
            "adult.data",
            f"{_URL}/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        RemoteFile(
            "adult.test",
            f"{_URL}/adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ),
    )

    sensitive: Annotated[
        tuple[_Attribute, ...],
        AfterValidator(_distinct),
        BeforeValidator(_listed, json_schema_input_type=_Attribute | list[_Attribute]),
    ] = Field(
        ("sex",),
        description='sensitive attribute: "sex", "race", or ["sex", "race"] for both crossed',
    )

    @property
    def n_groups(self) -> int:
        """2 by sex, 5 by race, 10 by both."""
        return int(np.prod([_GROUPS[attribute] for attribute in self.sensitive]))

    def load(self, home: DataHome) -> Table:
        """Read both files.

        Raises
        ------
        DataError
            If a file is missing, cannot be read, is empty, or holds a row that is not UCI Adult's;
            the message names the file and the line.
        """
        import pandas as pd

        rows = [row for file in self.files for row in _rows(_found(home, file.name))]
        by_name = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
        labels = np.fromiter(by_name.pop("income"), np.int8, len(rows))
        columns = {
            name: np.array(values, np.int32) if name in _NUMERIC else _categorical(values)
            for name, values in by_name.items()
        }
        sensitive = {name: columns.pop(name) for name in self.sensitive}
        return Table(
            name=self.name,
            features=pd.DataFrame(columns),
            labels=labels,
            sensitive=pd.DataFrame(sensitive),
            positive="income above 50K",
        )


def _found(home: DataHome, name: str) -> Path:
    try:
        return home.find(name)
    except DataError as error:
        raise DataError(f"{error}; `fpbench data fetch adult` downloads it") from None


def _categorical(values: tuple[str, ...]) -> Categorical[str]:
    import pandas as pd

    # Categories of the whole table, so that any part of it is encoded alike.
    return pd.Categorical(values, categories=sorted(set(values)))


def _rows(path: Path) -> list[list[str | int]]:
    """Complete rows of a file.

    Parsed here and not by pandas, which fills a short row with missing values: it would then be
    dropped in silence.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}; {_CHECK}") from error
    rows = [_row(fields, f"{path}, line {number}") for number, fields in _complete(path, text)]
    if not rows:
        raise DataError(f"{path}: holds no complete row; {_CHECK}")
    return rows


def _complete(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields of the rows in which nothing is missing."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("|"):  # the test file's first line is a comment
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(_COLUMNS):
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns where UCI Adult has "
                f"{len(_COLUMNS)}; {_CHECK}"
            )
        if "?" not in fields:
            yield number, fields


def _row(fields: list[str], where: str) -> list[str | int]:
    row: list[str | int] = []
    for name, field in zip(_COLUMNS, fields, strict=True):
        if name == "income":
            if field not in _LABELS:
                raise DataError(f"{where}: income is {field!r}, not '<=50K' or '>50K'; {_CHECK}")
            row.append(_LABELS[field])
        elif name in _NUMERIC:
            # Nine digits fit the 32 bits of a column; the file has at most seven.
            if not (field.isdecimal() and len(field) <= 9):
                raise DataError(f"{where}: {name} is {field!r}, not a whole number; {_CHECK}")
            row.append(int(field))
        else:
            row.append(field)
    return row
