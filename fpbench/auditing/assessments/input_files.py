"""Files that an assessment reads: the report, its people, and people whose groups are known."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.assessments.known_people import KNOWN_COLUMNS, code_groups
from fpbench.auditing.fairness_reports.fairness_report import FairnessReport
from fpbench.auditing.fairness_reports.report_facts import find_facts_and_rows
from fpbench.auditing.fairness_reports.slices import Codes
from fpbench.base.errors import InputError, suggest_name
from fpbench.claims.set_counts import Facts
from fpbench.tabular.table_files import load_content, load_table

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_BITS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that are no features; None where nobody named one.

    Attributes
    ----------
    group, prediction, label
        Of the true group, the model's prediction, and the label.
    """

    group: str | None = None
    prediction: str | None = None
    label: str | None = None

    def find(self, what: str, frame: DataFrame) -> str | None:
        """The column of a frame: the one that was named, or that is called so; None if none is."""
        named: str | None = getattr(self, what)
        return named if named is not None else what if what in frame else None


@dataclass(frozen=True)
class AssessmentFiles:
    """What `fpbench.assess` is given, as it was in files.

    Attributes
    ----------
    report
        What is to be published.
    X, predictions, labels, groups, known
        As parameters of `fpbench.assess`.
    paths, checksums
        Each file that was read, and its SHA-256.
    """

    report: FairnessReport
    X: DataFrame
    predictions: Codes
    labels: Codes | None
    groups: Series | None
    known: DataFrame | None
    paths: dict[str, Path]
    checksums: dict[str, str]

    def find_facts(self) -> tuple[Facts, NDArray[np.intp]]:
        """The facts of the report, and (M,) a row of it for each; errors name its file."""
        try:
            return find_facts_and_rows(self.report, self.X, self.predictions, self.labels)
        except InputError as error:
            raise InputError(f"{self.paths['report']}: {error}") from None


def read_files(
    report: Path,
    people: Path,
    known: Path | None = None,
    names: ColumnNames | None = None,
    decimals: int | None = None,
) -> AssessmentFiles:
    """Everything that an assessment needs, checked.

    Parameters
    ----------
    report
        Long form: CSV, JSON (.json) or parquet (.parquet).
    people
        The people of the report, CSV or parquet, one row a person.
    known
        Other people, in the same columns, whose groups the adversary knows.
    names
        Columns of both that are no features; by default those called `group`, `prediction` and
        `label`.
    decimals
        Rates were rounded to so many.

    Raises
    ------
    InputError
        If a column is missing or a value is wrong: names file, row (counted from 0) and column.
    DataError
        If a file cannot be read: names file and line.
    """
    names = names or ColumnNames()
    table = load_table(people)
    checksums = {"report": sha256(load_content(report)).hexdigest(), "people": table.checksum}
    frame = table.frame
    other = None
    if known is not None:
        read = load_table(known)
        other, checksums["known"] = read.frame, read.checksum
    _check_named(names, frame, people, other, known)
    prediction = names.find("prediction", frame)
    if prediction is None:
        raise InputError(
            f"{people}: no column 'prediction'; {suggest_name('prediction', frame.columns)} "
            "(--prediction names the column)"
        )
    predictions = _read_bits(frame, prediction, people)
    label, group = names.find("label", frame), names.find("group", frame)
    if group is not None and group not in frame:
        group = None  # that of the known people
    labels = None if label is None else _read_bits(frame, label, people)
    published = FairnessReport.from_file(report, decimals=decimals)
    groups = None
    if group is not None:
        groups = frame[group].astype(object)
        _check_groups(groups, published.groups, people, group)
    features = frame.drop(columns=[name for name in (prediction, label, group) if name])
    if other is not None and known is not None:
        other = _rename_known(other, known, names, label is not None, published.groups)
        features = _drop_clashes(features, people)
    paths = {"report": report, "people": people} | ({} if known is None else {"known": known})
    return AssessmentFiles(
        published, features, predictions, labels, groups, other, paths, checksums
    )


def _check_named(
    names: ColumnNames, frame: DataFrame, people: Path, other: DataFrame | None, known: Path | None
) -> None:
    """Refuse names of columns that are not there; that of the group may be in either file."""
    for what in KNOWN_COLUMNS:
        name = getattr(names, what)
        if name is None:
            continue
        places = [(frame, people)]
        if other is not None and known is not None:
            places = [(other, known)] if what == "group" else [*places, (other, known)]
        for table, file in places:
            if name not in table:
                raise InputError(f"{file}: no column {name!r}; {suggest_name(name, table.columns)}")


def _rename_known(
    other: DataFrame, known: Path, names: ColumnNames, labelled: bool, groups: tuple[str, ...]
) -> DataFrame:
    """Known people with the names that `fpbench.assess` knows, checked."""
    roles = {}
    for what in KNOWN_COLUMNS if labelled else KNOWN_COLUMNS[:2]:
        name = names.find(what, other)
        if name is None:
            raise InputError(
                f"{known}: no column {what!r}; {suggest_name(what, other.columns)} (--{what} names "
                "the column)"
            )
        roles[name] = what
    values: dict[str, Any] = {}
    for name, what in roles.items():
        if what == "group":
            values[what] = other[name].astype(object)
            _check_groups(values[what], groups, known, name)
        else:
            values[what] = _read_bits(other, name, known)
    rest = other.drop(
        columns=[*roles, *(n for n in [names.find("label", other)] if n)], errors="ignore"
    )
    return _drop_clashes(rest, known).assign(**values)


def _drop_clashes(features: DataFrame, file: Path) -> DataFrame:
    for name in KNOWN_COLUMNS:
        if name in features:
            raise InputError(
                f"{file}: the column {name!r} would be a feature; rename it, or drop it"
            )
    return features


def _check_groups(values: Series, groups: tuple[str, ...], file: Path, column: str) -> None:
    missing = np.flatnonzero(values.isna())
    if len(missing):
        raise InputError(f"{file}, row {missing[0]}, column {column!r}: no group")
    code_groups(values, groups, f"{file}, column {column!r}")


def _read_bits(frame: DataFrame, name: str, file: Path) -> Codes:
    texts = frame[name].map(lambda value: str(value).casefold())
    bits = texts.map(_BITS)
    wrong = np.flatnonzero(bits.isna())
    if len(wrong):
        text = str(frame[name].iloc[wrong[0]])
        raise InputError(f"{file}, row {wrong[0]}, column {name!r}: {text!r} is neither 0 nor 1")
    return np.asarray(bits, np.int64)
