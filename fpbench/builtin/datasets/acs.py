"""The American Community Survey's data sets of folktables: files, checks, two tasks."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fpbench.base import tell_extra
from fpbench.builtin.datasets._published import Code, Codes, ColumnKind, Layout, Whole, read
from fpbench.data import Attribute, Domain, Sensitive
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import LabelledColumns, TabularDataset, sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame, Series

State = Literal[
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS",
    "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY",
    "NC", "ND", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV",
    "WI", "WY", "PR",
]  # fmt: skip
_FIPS = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 LA22 "
    "ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 OK40 "
    "OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
STATES: dict[str, str] = {entry[:2]: entry[2:] for entry in _FIPS.split()}
"""Numbers of the states."""

NUMBERS = ("AGEP", "SCHL", "WKHP", "PINCP")
"""Numeric and ordinal columns; all others are codes."""
_SEX = {"1": "Male", "2": "Female"}
_RACE = {
    "1": "White", "2": "Black", "3": "American Indian", "4": "Alaska Native",
    "5": "American Indian or Alaska Native", "6": "Asian", "7": "Pacific Islander",
    "8": "Other", "9": "Two or more",
}  # fmt: skip
_MISSING = -1
_RANGES = {
    "COW": (1, 9), "MAR": (1, 5), "RELP": (0, 17), "RELSHIPP": (20, 38), "DIS": (1, 2),
    "ESP": (1, 8), "CIT": (1, 5), "MIG": (1, 3), "MIL": (1, 5), "ANC": (1, 8), "NATIVITY": (1, 2),
    "DEAR": (1, 2), "DEYE": (1, 2), "DREM": (1, 2), "ESR": (1, 6), "FER": (1, 2),
}  # fmt: skip
"""First and last code, from the PUMS data dictionaries."""
_EXTRA = tell_extra("acs")
_URL = "https://www2.census.gov/programs-surveys/acs/data/pums"


@dataclass(frozen=True)
class _OfState:
    """The number of one state, the same in every row."""

    state: str

    @property
    def expected(self) -> str:
        return f"{STATES[self.state]}, the number of {self.state}"

    def parse(self, text: str) -> int:
        if not text.isdecimal() or int(text) != int(STATES[self.state]):
            raise ValueError
        return int(text)

    def column(self, values: list[Any]) -> Any:
        return Code().column(values)


@dataclass(frozen=True)
class _OfYears:
    """Serial numbers; the longer ones begin with the year."""

    first: int
    last: int

    @property
    def expected(self) -> str:
        years = f"{self.first} to {self.last}" if self.first < self.last else f"{self.last}"
        return f"a serial number of {years}"

    def parse(self, text: str) -> int:
        if not text:
            raise ValueError
        if len(text) < 13:  # from a one-year file before 2017, without the year
            return self.last
        year = int(text[:4]) if text[:4].isdecimal() else 0
        if not self.first <= year <= self.last:
            raise ValueError
        return year

    def column(self, values: list[Any]) -> Any:
        return np.array(values, np.int16)


def _list_codes(first: int, last: int) -> tuple[str, ...]:
    return tuple(map(str, (_MISSING, *range(first, last + 1))))


class Survey(TabularDataset):
    """People of one state in the American Community Survey's public use microdata."""

    task_columns: ClassVar[tuple[str, ...]]
    """Features, in the order of folktables; RELP is RELSHIPP from 2019 on."""
    other_columns: ClassVar[tuple[str, ...]]
    """Further columns, for the label and the filter."""
    n_values: ClassVar[Mapping[str, int]] = {"SEX": 2, "RAC1P": 9}
    declared = Domain(
        {"AGEP": (0, 99), "SCHL": (-1, 24), "WKHP": (0, 99), "PINCP": (-20_000, 30_000)},
        {
            "SEX": tuple(_SEX.values()), "RAC1P": tuple(_RACE.values()),
            **{name: _list_codes(first, last) for name, (first, last) in _RANGES.items()},
        },
    )  # fmt: skip
    """OCCP, POBP and ST are not declared: they have hundreds of codes, or one."""

    state: State = Field("TX", description="two-letter code of the state")
    year: int = Field(2018, ge=2014, le=2100, description="year of the survey")
    horizon: Literal["1-Year", "5-Year"] = Field("1-Year", description="period of a file")

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The state's file of people, named as the Census Bureau and folktables name it."""
        lower = self.state.lower()
        old = f"ss{self.year % 100}p{lower}.csv"
        name = f"psam_p{STATES[self.state]}.csv" if self.year >= 2017 else old
        url = f"{_URL}/{self.year}/{self.horizon}/csv_p{lower}.zip"
        return (DataFile(f"{self.year}/{self.horizon}/{name}", url, other_names=(name,)),)

    def absent(self, home: DataHome) -> str | None:
        """Why it cannot be loaded here, with the command that helps."""
        if not home.missing(self.files):
            return None
        how, extra = self._fetch_command(), "" if find_spec("folktables") else f", after {_EXTRA}"
        return f"data of {self.name!r} not found ({self.files[0].name}): {how}{extra}"

    def _fetch_command(self) -> str:
        fields = type(self).model_fields
        options = [
            f" --set {name}={getattr(self, name)}"
            for name in ("state", "year", "horizon")
            if getattr(self, name) != fields[name].default
        ]
        return f"fpbench data fetch {self.name}{''.join(options)}"

    def fetch(self, home: DataHome) -> list[Path]:
        """Let folktables download the file to a temporary folder, check it, and keep it.

        Raises DataError if folktables is not installed, the file cannot be downloaded, or it is of
        another state or year.
        """
        (file,) = self.files
        return [home.keep(file, self._download, check=self._read)]

    def _download(self, path: Path) -> None:
        try:
            from folktables.load_acs import initialize_and_download
        except ImportError as error:
            raise DataError(
                f"folktables, which downloads it, is not installed: {_EXTRA}"
            ) from error
        output = StringIO()
        with TemporaryDirectory(dir=path.parent) as place:
            with redirect_stdout(output):
                arguments = (place, self.state, str(self.year), self.horizon, "person")
                downloaded = Path(initialize_and_download(*arguments, download=True))
            # folktables prints an error and continues; the file may then be incomplete.
            problem = output.getvalue().partition("Exception:")[2].strip()
            if problem or not downloaded.is_file():
                raise DataError(problem or "folktables downloaded nothing")
            shutil.move(downloaded, path)

    def read(self, home: DataHome) -> LabelledColumns:
        """Read the needed columns, and filter the rows.

        Raises DataError if the file is missing, of another state or year, or has unexpected
        content.
        """
        if (why := self.absent(home)) is not None:
            raise DataError(why)
        path = home.find(self.files[0])
        frame = self._read(path)
        frame = frame[self.select_people(frame)].reset_index(drop=True)
        if not len(frame):
            raise DataError(f"{path}: no rows are left after the filter of {self.name!r}")
        labels, positive = self.label_people(frame)
        columns = frame[list(self._list_features())].copy()
        for name in columns:
            if name in NUMBERS:
                columns[name] = columns[name].fillna(_MISSING).astype(np.int32)
            else:
                columns[name] = columns[name].cat.remove_unused_categories()
        return LabelledColumns(columns, labels.to_numpy().astype(np.int8), positive)

    @abstractmethod
    def select_people(self, frame: DataFrame) -> Series:
        """Whether a person passes the filter, (n,)."""

    @abstractmethod
    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Label of everyone, and the meaning of label 1."""

    def _list_features(self) -> tuple[str, ...]:
        renamed = {"RELP": "RELSHIPP"} if self.year >= 2019 else {}
        return tuple(renamed.get(name, name) for name in self.task_columns)

    def _read(self, path: Path) -> DataFrame:
        first = self.year - 4 if self.horizon == "5-Year" else self.year
        kinds: dict[str, ColumnKind] = {
            "SERIALNO": _OfYears(first, self.year),
            "ST": _OfState(self.state),
        }
        for name in (*self._list_features(), *self.other_columns):
            kinds.setdefault(name, _choose_kind(name))
        layout = Layout(
            what="the first line",
            columns=kinds,
            check=f"is it the {self.horizon} file of {self.state} of {self.year}?",
            other_names={"ST": ("STATE",)},  # its name from 2023 on
        )
        frame: DataFrame = read([path], layout)
        return frame


def _choose_kind(name: str) -> ColumnKind:
    if name in NUMBERS or name == "PWGTP":
        return Whole(optional=True, loose=True)
    return {"SEX": Codes(_SEX), "RAC1P": Codes(_RACE)}.get(name) or Code()


class ACSIncome(Survey):
    """ACSIncome of folktables: working adults of one state; the label is a high income.

    People are above 16 years, earned more than 100 USD, work more than 0 hours a week, and have a
    weight of at least 1. Label 1 is an income (PINCP) above 50,000 USD. Ferry et al. report 135,924
    people for Texas, 2018; this loader was not run on the real file.

    Features: AGEP (age), SCHL (schooling, 24 levels in order) and WKHP (hours a week) as whole
    numbers; COW, MAR, OCCP, POBP, RELP (RELSHIPP from 2019 on), SEX and RAC1P as categoricals of
    the Census Bureau's codes, SEX and RAC1P in words. folktables gives all of them as numbers;
    occupation (OCCP) and place of birth (POBP) have hundreds of codes, and `drop = ["OCCP",
    "POBP"]` saves much memory. Missing values are -1 (folktables writes 0 instead of the
    intended -1: `numpy.nan_to_num(x, -1)` does not set the value).

    By default, groups are White and others, by RAC1P, as in Ferry et al.

    The file of people is read from folktables' path, `YEAR/HORIZON/psam_pNN.csv` (before 2017:
    `ssYYpXX.csv`) in a data directory, or without the folders. The state is checked, and the
    year if serial numbers have it. There is no standard 1-year file of 2020.

    Source: the Census Bureau's public use microdata; licence: its terms of service,
    https://www.census.gov/data/developers/about/terms-of-service.html.
    """

    name = "acs-income"
    summary = "ACSIncome of folktables: one state, income above 50,000; groups by race"
    reference = (
        "Frances Ding, Moritz Hardt, John Miller, Ludwig Schmidt. Retiring Adult: new datasets for "
        "fair machine learning. NeurIPS 2021."
    )
    task_columns = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
    other_columns = ("PINCP", "PWGTP")
    columns = (*task_columns, "RELSHIPP")

    sensitive: Sensitive = sensitive_field(Attribute(column="RAC1P", one_of=("White",)))

    def select_people(self, frame: DataFrame) -> Series:
        """Whether a person is an adult who earns and works."""
        return (
            (frame["AGEP"] > 16)
            & (frame["PINCP"] > 100)
            & (frame["WKHP"] > 0)
            & (frame["PWGTP"] >= 1)
        )

    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Whether the income is above 50,000."""
        return frame["PINCP"] > 50_000, "income above 50,000"


class ACSPublicCoverage(Survey):
    """ACSPublicCoverage of folktables: people of one state with a low income, and their insurance.

    People are below 65 years with an income of at most 30,000 USD (incomes of people below 15 are
    unknown). Label 1 is public health coverage (PUBCOV is 1). Ferry et al. report 98,928 people for
    Texas, 2018; this loader was not run on the real file.

    Features: AGEP (age), SCHL (schooling, 24 levels in order) and PINCP (income) as whole numbers;
    MAR, SEX, DIS, ESP, CIT, MIG, MIL, ANC, NATIVITY, DEAR, DEYE, DREM, ESR, ST, FER and RAC1P as
    categoricals of the Census Bureau's codes, SEX and RAC1P in words. ST, the state, is the
    same for everyone. Missing values are -1 (folktables writes 0 instead of the
    intended -1: `numpy.nan_to_num(x, -1)` does not set the value).

    By default, groups are people below 25 years and others: the United Nations count ages 15 to 24
    as youth, and the cut is the same for every state and year. Ferry et al. cut at the first
    quartile of the table, which they do not print: `sensitive = { column = "AGEP", quantile = 0.25
    }`. Private learners and audits refuse that cut, since every person moves a quartile.

    The file of people is read from folktables' path, `YEAR/HORIZON/psam_pNN.csv` (before 2017:
    `ssYYpXX.csv`) in a data directory, or without the folders. The state is checked, and the
    year if serial numbers have it. There is no standard 1-year file of 2020.

    Source: the Census Bureau's public use microdata; licence: its terms of service,
    https://www.census.gov/data/developers/about/terms-of-service.html.
    """

    name = "acs-public-coverage"
    summary = "ACSPublicCoverage of folktables: one state, low incomes; groups by age"
    reference = (
        "Frances Ding, Moritz Hardt, John Miller, Ludwig Schmidt. Retiring Adult: new datasets for "
        "fair machine learning. NeurIPS 2021."
    )
    task_columns = (
        *("AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY"),
        *("DEAR", "DEYE", "DREM", "PINCP", "ESR", "ST", "FER", "RAC1P"),
    )
    other_columns = ("PUBCOV",)
    columns = task_columns

    sensitive: Sensitive = sensitive_field(Attribute(column="AGEP", cuts=(25,)))

    def select_people(self, frame: DataFrame) -> Series:
        """Whether a person is below 65 with a low income."""
        return (frame["AGEP"] < 65) & (frame["PINCP"] <= 30_000)

    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Whether a person is covered."""
        return frame["PUBCOV"] == "1", "public health coverage"
