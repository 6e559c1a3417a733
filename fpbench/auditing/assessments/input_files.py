"""Files that an assessment reads: reports, their people, and people whose groups are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.auditing.assessments.known_people import KNOWN_COLUMNS, code_groups
from fpbench.auditing.assessments.report_series import ReadReports, ReportSeries
from fpbench.auditing.fairness_reports.fairness_report import FairnessReport
from fpbench.auditing.fairness_reports.slices import Codes
from fpbench.base.errors import InputError, suggest_name
from fpbench.tabular.table_files import load_content, load_table

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_BITS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that are no features; none where nobody named one.

    Attributes
    ----------
    group, label
        Of the true group and the label.
    predictions
        Of the model's predictions: one for all reports, or one for each.
    """

    group: str | None = None
    predictions: tuple[str, ...] = ()
    label: str | None = None

    def find(self, what: str, frame: DataFrame) -> str | None:
        """The column of a frame: the one that was named, or that is called so; None if none is."""
        named: str | None
        if what == "prediction":
            named = next((name for name in self.predictions if name in frame), None)
            if named is None and what not in frame:
                named = next(iter(self.predictions), None)
        else:
            named = getattr(self, what)
        return named if named is not None else what if what in frame else None


@dataclass(frozen=True)
class AssessmentFiles:
    """What `fpbench.assess` is given, as it was in files.

    Attributes
    ----------
    series
        The reports, called by their files, and the predictions.
    X, labels, groups, known
        As parameters of `fpbench.assess`.
    paths, checksums
        Each file that was read, and its SHA-256.
    """

    series: ReportSeries
    X: DataFrame
    labels: Codes | None
    groups: Series | None
    known: DataFrame | None
    paths: dict[str, Path]
    checksums: dict[str, str]

    def read_reports(self) -> ReadReports:
        """What the reports tell; errors name the file."""
        try:
            return self.series.read(self.X, self.labels)
        except InputError as error:
            if len(self.series.names) > 1:
                raise
            raise InputError(f"{self.series.names[0]}: {error}") from None


def read_files(
    reports: Sequence[Path],
    people: Path,
    known: Path | None = None,
    names: ColumnNames | None = None,
    decimals: int | None = None,
) -> AssessmentFiles:
    """Everything that an assessment needs, checked.

    Parameters
    ----------
    reports
        Long form: CSV, JSON (.json) or parquet (.parquet); in the order of publishing.
    people
        The people of the reports, CSV or parquet, one row a person.
    known
        Other people, in the same columns, whose groups the adversary knows.
    names
        Columns of both that are no features; by default those called `group`, `prediction` and
        `label`. Of several reports there may be a column of predictions for each, blank where a
        person is not in it.
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
    paths = _number_reports(reports)
    checksums = {what: sha256(load_content(file)).hexdigest() for what, file in paths.items()}
    checksums["people"] = table.checksum
    frame = table.frame
    other = None
    if known is not None:
        read = load_table(known)
        other, checksums["known"] = read.frame, read.checksum
    _check_named(names, frame, people, other, known)
    predicted = _find_predictions(names, frame, people, len(reports))
    label, group = names.find("label", frame), names.find("group", frame)
    if group is not None and group not in frame:
        group = None  # that of the known people
    labels = None if label is None else _read_bits(frame, label, people)
    blank = len(predicted) > 1
    predictions = np.stack([_read_bits(frame, name, people, blank) for name in predicted], axis=1)
    if (nowhere := (predictions < 0).all(axis=1)).any():
        raise InputError(
            f"{people}, row {np.flatnonzero(nowhere)[0]}, columns {', '.join(predicted)}: the "
            "person is in no report: leave the row out"
        )
    series = _read_series(reports, predictions, decimals)
    groups = None
    if group is not None:
        groups = frame[group].astype(object)
        _check_groups(groups, series.groups, people, group)
        series.check_groups(groups)
    features = frame.drop(columns=[name for name in (*predicted, label, group) if name])
    if other is not None and known is not None:
        other = _rename_known(other, known, names, label is not None, series.groups)
        features = _drop_clashes(features, people)
    paths |= {"people": people} | ({} if known is None else {"known": known})
    return AssessmentFiles(series, features, labels, groups, other, paths, checksums)


def _number_reports(reports: Sequence[Path]) -> dict[str, Path]:
    if len(reports) == 1:
        return {"report": reports[0]}
    return {f"report {number}": file for number, file in enumerate(reports, 1)}


def _find_predictions(
    names: ColumnNames, frame: DataFrame, people: Path, reports: int
) -> tuple[str, ...]:
    """Columns of the predictions: one, or one a report."""
    if len(names.predictions) not in (0, 1, reports):
        raise InputError(
            f"--prediction: give one column, or one for each of the {reports} reports, not "
            f"{len(names.predictions)}"
        )
    if names.predictions:
        return names.predictions
    if "prediction" not in frame:
        raise InputError(
            f"{people}: no column 'prediction'; {suggest_name('prediction', frame.columns)} "
            "(--prediction names the column)"
        )
    return ("prediction",)


def _read_series(reports: Sequence[Path], predictions: Codes, decimals: int | None) -> ReportSeries:
    """The reports, by the groups of any of them."""
    if len({str(file) for file in reports}) < len(reports):
        raise InputError(f"{reports[-1]}: a report is named twice")
    read = [FairnessReport.from_file(file, decimals=decimals) for file in reports]
    groups = read[0].groups
    if any(report.groups != groups for report in read):
        groups = tuple(sorted({name for report in read for name in report.groups}))
        read = [FairnessReport.from_file(f, decimals=decimals, groups=groups) for f in reports]
    wide = np.repeat(predictions, len(reports) // predictions.shape[1], axis=1)
    series = ReportSeries(tuple(map(str, reports)), tuple(read), wide)
    if nobody := [name for name, own in zip(series.names, wide.T, strict=True) if (own < 0).all()]:
        raise InputError(f"{nobody[0]}: its column of predictions is blank: nobody is in it")
    return series


def _check_named(
    names: ColumnNames, frame: DataFrame, people: Path, other: DataFrame | None, known: Path | None
) -> None:
    """Refuse names of columns that are not there; that of the group may be in either file."""
    needed = [(frame, people, name) for name in (*names.predictions, names.label)]
    if other is None or known is None:
        needed.append((frame, people, names.group))
    else:
        prediction = names.find("prediction", other) if names.predictions else None
        needed += [(other, known, name) for name in (names.group, prediction, names.label)]
    for table, file, name in needed:
        if name is not None and name not in table:
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


def _read_bits(frame: DataFrame, name: str, file: Path, blank: bool = False) -> Codes:
    """(n,) 0 and 1; and -1 where a value is missing, if it may be `blank`."""
    texts = frame[name].map(lambda value: str(value).casefold())
    bits = texts.map(_BITS)
    if blank:
        bits = bits.mask(frame[name].isna() | (texts.str.strip() == ""), -1)
    wrong = np.flatnonzero(bits.isna())
    if len(wrong):
        value = frame[name].iloc[wrong[0]]
        text = "a blank" if value != value or str(value) in ("", "<NA>") else repr(str(value))  # noqa: PLR0124
        raise InputError(f"{file}, row {wrong[0]}, column {name!r}: {text} is neither 0 nor 1")
    return np.asarray(bits, np.int64)
