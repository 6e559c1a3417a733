"""COMPAS: ProPublica's data of people with scores for the risk of reoffending."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from fpbench.builtin.datasets._published import (
    Codes,
    ColumnKind,
    Content,
    Day,
    Label,
    Layout,
    PublishedDataset,
    Whole,
    derive_domain,
    parse_words,
    read,
)
from fpbench.data import Attribute, DatasetFacts, Sensitive
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import LabelledColumns, sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame

_RACES = ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other")
_NAMING = ("name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number")
"""Columns that identify people: they are never written to disk."""
_ROWS, _FILTERED = 7_214, 6_172
_DAYS = 30
_FEATURES: dict[str, ColumnKind] = {
    "age": Whole(),
    "sex": parse_words("Female Male"),
    "race": Codes({race: race for race in _RACES}),
    "juv_fel_count": Whole(),
    "juv_misd_count": Whole(),
    "juv_other_count": Whole(),
    "priors_count": Whole(),
    "c_charge_degree": Codes({"F": "felony", "M": "misdemeanor", "O": "ordinary traffic offence"}),
    "days_b_screening_arrest": Whole(optional=True),
}
_JAIL = "days_in_jail"
_FILE = DataFile(
    "compas-scores-two-years.csv",
    "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
    "compas-scores-two-years.csv",
    "873148a4dbb099b891ddd96d8f78cd63587d04256c3a74be4efa14a8ac78fcac",
)
_LAYOUT = Layout(
    what="ProPublica's file",
    columns={
        **_FEATURES,
        "c_jail_in": Day(),
        "c_jail_out": Day(),
        "is_recid": parse_words("0 1 -1"),
        "score_text": parse_words("Low Medium High N/A"),
        "two_year_recid": Label({"0": 1, "1": 0}),
    },
    check="`fpbench data verify compas` compares it with the known one",
)


class Compas(PublishedDataset):
    """COMPAS: 6,172 people arrested in Broward County, Florida, 2013 and 2014.

    ProPublica's filters leave 6,172 of 7,214 rows: the arrest at most 30 days before or after the
    screening, a known outcome (`is_recid` not -1), no ordinary traffic offence, and a score.

    Label 1 is the favourable outcome, no new offence within two years (54.5 %). Features are age,
    sex, race, the counts of juvenile felonies, misdemeanors and other offences and of priors, the
    degree of the charge, the days between screening and arrest, and the days spent in jail (from
    the day in to the day out, as ProPublica counts them); without the sensitive columns. COMPAS
    scores and later information are not features.

    `jail = "years"` has the years of going in and out instead of the days, as van der Steen et al.
    (2023) have; only these come near their reported unfairness. Such years reflect data collection
    more than people: people who left jail later were observed for a shorter time.

    By default, groups are African-Americans (51.4 %) and others.

    Names, dates of birth and case numbers of a download are removed before it is written to disk.
    """

    name = "compas"
    summary = "COMPAS: 6,172 people, no new offence in two years; groups by race, sex or age"
    reference = (
        "Jeff Larson, Surya Mattu, Lauren Kirchner, Julia Angwin. How we analyzed the COMPAS "
        "recidivism algorithm. ProPublica, 2016. https://github.com/propublica/compas-analysis"
    )
    about = DatasetFacts(
        rows=_FILTERED,
        features=9,
        label="no new offence within two years",
        label_rate=0.5449,
        groups=("African-American", "others"),
        source="https://github.com/propublica/compas-analysis (compas-scores-two-years.csv)",
        licence="none stated; public records, published for others to analyse",
        dropped=(
            "1,042 rows by ProPublica's filters; names, dates of birth and case numbers; the "
            "COMPAS scores; all later information"
        ),
    )
    published = (_FILE,)
    layout = _LAYOUT
    columns = (*_FEATURES, _JAIL)
    n_values: ClassVar[Mapping[str, int]] = {"sex": 2, "race": 6, "c_charge_degree": 2}

    declared = derive_domain(
        _FEATURES,
        {
            "age": (18, 100), "juv_fel_count": (0, 20), "juv_misd_count": (0, 20),
            "juv_other_count": (0, 20), "priors_count": (0, 40),
            "days_b_screening_arrest": (-_DAYS, _DAYS), _JAIL: (0, 1_000),
            "jail_in_year": (2012, 2016), "jail_out_year": (2012, 2022),
        },
    )  # fmt: skip

    sensitive: Sensitive = sensitive_field(Attribute(column="race", one_of=("African-American",)))
    jail: Literal["days", "years"] = Field(
        "days",
        description="features about jail: the days there (days_in_jail), or the years of going in "
        "and out (jail_in_year, jail_out_year)",
    )

    def fetch(self, home: DataHome) -> list[Path]:
        """Download the file if it is missing; identifying columns are never written to disk.

        No checksum of ProPublica's file is known: the file is accepted by its content.

        Raises DataError if it cannot be downloaded, or its content is not as expected.
        """
        return [home.fetch(_FILE, accept=_anonymise)]

    def read(self, home: DataHome) -> LabelledColumns:
        """Read the file and filter its rows.

        Raises DataError if the file is missing, or has a row unlike ProPublica's.
        """
        (path,) = self.find_files(home)
        frame = _filter_rows(read([path], _LAYOUT))
        if not len(frame):
            raise DataError(f"{path}: ProPublica's filters leave no row")
        stay = frame["c_jail_out"] - frame["c_jail_in"]
        if stay.isna().any():
            raise DataError(f"{path}: holds people without days in jail; {_LAYOUT.check}")
        labels = frame["two_year_recid"].to_numpy()
        known = {_JAIL: stay.dt.days}
        if self.jail == "years":
            known = {f"jail_{way}_year": frame[f"c_jail_{way}"].dt.year for way in ("in", "out")}
        columns = frame[list(_FEATURES)].assign(
            **{name: column.astype(np.int32) for name, column in known.items()}
        )
        columns["days_b_screening_arrest"] = columns["days_b_screening_arrest"].astype(np.int32)
        columns["c_charge_degree"] = columns["c_charge_degree"].cat.remove_unused_categories()
        return LabelledColumns(columns.reset_index(drop=True), labels, self.about.label)


def _filter_rows(frame: DataFrame) -> DataFrame:
    """The rows that ProPublica analysed."""
    return frame[
        frame["days_b_screening_arrest"].between(-_DAYS, _DAYS)
        & (frame["is_recid"] != "-1")
        & (frame["c_charge_degree"] != "ordinary traffic offence")
        & (frame["score_text"] != "N/A")
    ]


def _anonymise(content: bytes) -> bytes:
    """The file without identifying columns; DataError if its content is not as expected."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the downloaded file is not ProPublica's: {error}") from error
    header = rows[0] if rows else []
    for name in _NAMING:
        if name not in header:
            raise DataError(f"the downloaded file is not ProPublica's: it has no column {name!r}")
    blank = {place for place, name in enumerate(header) if name in _NAMING}
    without_names = [header] + [
        ["" if place in blank else field for place, field in enumerate(row)] for row in rows[1:]
    ]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(without_names)
    frame = read([Content("the download", text.getvalue())], _LAYOUT)
    counts = len(frame), len(_filter_rows(frame))
    if counts != (_ROWS, _FILTERED):
        raise DataError(
            f"the download has {counts[0]:,} rows, {counts[1]:,} after the filters, but "
            f"ProPublica's file has {_ROWS:,} and {_FILTERED:,}"
        )
    return text.getvalue().encode()
