"""Files that an assessment reads: reports, their people, and people whose groups are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.base.errors import InputError, suggest_name
from fpbench.reports.assessments.prior_beliefs import KNOWN_COLUMNS
from fpbench.reports.assessments.report_series import ReadReports, ReportSeries
from fpbench.reports.fairness_report import FairnessReport, read_by_names
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.reading.long_form import LEAVE_INDEX, numbers_rows
from fpbench.reports.slices import Codes, code_groups, cross_groups, name_values, strip_zeros
from fpbench.tabular.table_files import load_content, load_table

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_BITS = {"0": 0, "1": 1, "false": 0, "true": 1}


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that are not features, as given by the user."""

    group: str | None = None
    """Of the true group."""
    predictions: tuple[str, ...] = ()
    """Of the model's predictions: one for all reports, or one for each."""
    label: str | None = None
    """Of the label."""
    positive: str | None = None
    """The value of predictions and labels that counts as 1, where they are not 0 and 1."""
    household: str | None = None
    """Of people's households."""
    crossed: tuple[str, ...] = ()
    """Of several attributes that are crossed; `group` is then the name of what they make."""
    threshold: float | None = None
    """The least score that is prediction 1, where predictions are scores."""

    @classmethod
    def of(cls, group: Sequence[str], predictions: Sequence[str], **others: Any) -> ColumnNames:
        """The names as a command line has them: none, one or several of groups, to be crossed."""
        crossed = tuple(group) if len(group) > 1 else ()
        return cls(" x ".join(group) or None, tuple(predictions), crossed=crossed, **others)

    def cross(self, frame: DataFrame, file: Path) -> DataFrame:
        """The people with one column of groups in place of several; without these, as they are."""
        if not {*self.crossed} & {*frame.columns}:
            return frame
        for name in self.crossed:
            if name not in frame:
                raise InputError(f"{file}: no column {name!r}; {suggest_name(name, frame.columns)}")
        several = frame[list(self.crossed)]
        if several.isna().any(axis=None):
            row = int(np.flatnonzero(several.isna().any(axis=1))[0])
            raise InputError(f"{file}, row {row}: no {' or '.join(self.crossed)}")
        rest = frame.drop(columns=list(self.crossed))
        return rest.assign(**{str(self.group): cross_groups(several).astype(str)})

    def find(self, what: str, frame: DataFrame) -> str | None:
        """The column of a frame: the one given, or else the one called `what`; None if missing."""
        named: str | None
        if what == "prediction":
            named = next((name for name in self.predictions if name in frame), None)
            if named is None and what not in frame:
                named = next(iter(self.predictions), None)
        else:
            named = getattr(self, what)
        return named if named is not None else what if what in frame else None


@dataclass(frozen=True)
class TableOptions:
    """How tables are read, where they do not tell."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    """What texts of the table stand for."""
    unit: str | None = None
    """`percent` or `share`, of rates."""
    strict: bool = False
    """Whether to refuse a table with columns that are not read."""


@dataclass(frozen=True)
class AssessmentFiles:
    """The arguments of `fpbench.assess`, read from files."""

    series: ReportSeries
    """The reports, named after their files, and the predictions."""
    X: DataFrame
    labels: Codes | None
    groups: Series | None
    known: DataFrame | None
    households: Series | None
    """As parameters of `fpbench.assess`."""
    paths: dict[str, Path]
    checksums: dict[str, str]
    """Each file that was read, and its SHA-256."""

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
    options: TableOptions | None = None,
) -> AssessmentFiles:
    """Everything that an assessment needs, checked.

    Parameters
    ----------
    reports
        Tables, as `FairnessReport.read` takes them; in the order of publishing.
    people
        The people of the reports, CSV or parquet, one row a person.
    known
        Other people, in the same columns, whose groups the adversary knows.
    names
        Columns of both that are no features; by default those called `group`, `prediction` and
        `label`. Of several reports there may be a column of predictions for each, blank where a
        person is not in it.
    decimals
        Decimals that rates were rounded to.
    options
        How tables are read.

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
    checksums = {
        what: sha256(load_content(file)).hexdigest()
        for what, file in paths.items() if str(file) != "-" and not file.is_dir()
    }  # fmt: skip
    checksums["people"] = table.checksum
    attributes = table.frame[list(names.crossed)] if names.crossed else None
    frame = names.cross(table.frame, people)
    other = None
    if known is not None:
        read = load_table(known)
        other, checksums["known"] = names.cross(read.frame, known), read.checksum
        if read.checksum == table.checksum:
            raise InputError(
                f"{known}: --known is the file of the people themselves, whose groups are guessed: "
                "name others, or leave it out"
            )
    _check_named(names, frame, people, other, known)
    predicted = _find_predictions(names, frame, people, len(reports))
    label, group = names.find("label", frame), names.find("group", frame)
    if group is not None and group not in frame:
        group = None  # that of the known people
    bits = _BitReader(names.positive)
    labels = None if label is None else bits.column(frame, label, people)
    blank = len(predicted) > 1
    columns = [bits.predictions(frame, name, people, names.threshold, blank) for name in predicted]
    predictions = np.stack(columns, axis=1)
    bits.check_met(people)
    vocabulary = _name_columns(names, frame, other, attributes, (*predicted, label, group))
    series = _read_series(reports, predictions, decimals, *vocabulary, options or TableOptions())
    groups = None
    if group is not None:
        groups = frame[group].astype(object)
        _check_groups(groups, series.groups, people, group)
    apart = (*predicted, label, group, names.household)
    features = frame.drop(columns=[name for name in apart if name])
    households = None if names.household is None else frame[names.household]
    if other is not None and known is not None:
        other = _rename_known(other, known, names, label is not None, series.groups, bits)
        features = _check_features(features, people)
    paths |= {"people": people} | ({} if known is None else {"known": known})
    inside = series.inside  # who is in no report does not count
    return AssessmentFiles(
        series.take(inside), features[inside], None if labels is None else labels[inside],
        None if groups is None else groups[inside], other,
        None if households is None else households[inside], paths, checksums,
    )  # fmt: skip


@dataclass(frozen=True)
class PeopleFile:
    """People with their groups, of whom a table is to be released."""

    X: DataFrame
    predictions: Codes
    labels: Codes | None
    groups: Series
    households: Series | None
    checksum: str
    """SHA-256 of the file."""


def read_people(people: Path, names: ColumnNames) -> PeopleFile:
    """The people of a table to be released; errors as of `read_files`."""
    table = load_table(people)
    frame = names.cross(table.frame, people)
    _check_named(names, frame, people, None, None)
    (predicted,) = _find_predictions(names, frame, people, 1)
    label, group = names.find("label", frame), names.find("group", frame)
    if group is None:
        raise InputError(
            f"{people}: no column 'group': name the column by --group; {_list_columns(frame)}"
        )
    bits = _BitReader(names.positive)
    labels = None if label is None else bits.column(frame, label, people)
    predictions = bits.predictions(frame, predicted, people, names.threshold)
    bits.check_met(people)
    groups = frame[group].astype(object)
    if (missing := np.flatnonzero(groups.isna())).size:
        raise InputError(f"{people}, row {missing[0]}, column {group!r}: no group")
    apart = [name for name in (predicted, label, group, names.household) if name]
    households = None if names.household is None else frame[names.household]
    features = frame.drop(columns=apart)
    return PeopleFile(features, predictions, labels, groups, households, table.checksum)


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
            f"{people}: no column 'prediction': name the column by --prediction; "
            + _list_columns(frame, two_values=True)
        )
    return ("prediction",)


def _name_columns(
    names: ColumnNames,
    frame: DataFrame,
    other: DataFrame | None,
    attributes: DataFrame | None,
    apart: Sequence[str | None],
) -> tuple[KnownNames, tuple[str, ...]]:
    """What a table may call the people's columns, and the attribute."""
    where = next(
        (one for one in (frame, other) if one is not None and names.find("group", one) in one), None
    )
    groups, secrets = None, {}
    if where is not None:
        groups = name_values(sorted(set(map(str, where[names.find("group", where)].dropna()))))
        secrets = {str(names.find("group", where)): groups}
    if attributes is not None:
        secrets = {name: name_values(sorted(set(map(str, attributes[name].dropna()))))
                   for name in map(str, attributes)}  # fmt: skip
    label = apart[-2]
    features = frame.drop(columns=[name for name in apart if name is not None])
    predicted = tuple(name for name in apart[:-2] if name is not None)
    known = KnownNames(secrets, features, predicted, label, names.positive, groups=groups)
    return known, tuple(secrets)


def _list_columns(frame: DataFrame, two_values: bool = False) -> str:
    """The columns of a file for a message, those of `two_values` if there are any."""
    named = [name for name in frame.columns if two_values and frame[name].nunique() == 2]
    what = "those of two values are" if named else "there are"
    return f"{what} {', '.join(map(str, named or frame.columns))}"


def _read_series(
    reports: Sequence[Path],
    predictions: Codes,
    decimals: int | None,
    names: KnownNames,
    secret: tuple[str, ...],
    options: TableOptions,
) -> ReportSeries:
    """The reports, all with the groups that occur in any of them."""
    if len({str(file) for file in reports}) < len(reports):
        raise InputError(f"{reports[-1]}: a report is named twice")

    def read_each(groups: tuple[str, ...] | None) -> list[FairnessReport]:
        own = replace(names, mapping=options.mapping)
        return [
            read_by_names(
                file, own, secret, groups=groups, decimals=decimals, unit=options.unit,
                strict=options.strict,
            )
            for file in reports
        ]  # fmt: skip

    read = read_each(None)
    groups = read[0].groups
    if any(report.groups != groups for report in read):
        groups = tuple(sorted({name for report in read for name in report.groups}))
        read = read_each(groups)
    wide = np.repeat(predictions, len(reports) // predictions.shape[1], axis=1)
    series = ReportSeries(tuple(map(str, reports)), tuple(read), wide)
    if nobody := [name for name, own in zip(series.names, wide.T, strict=True) if (own < 0).all()]:
        raise InputError(f"{nobody[0]}: its column of predictions is blank: nobody is in it")
    return series


def _check_named(
    names: ColumnNames, frame: DataFrame, people: Path, other: DataFrame | None, known: Path | None
) -> None:
    """Refuse given columns that do not exist; the one of the group may be in either file."""
    roles = {"--group": names.group, "--label": names.label}
    roles |= {"--prediction": next(iter(names.predictions), None), "--household": names.household}
    for option, column in roles.items():
        for other_option, other_column in roles.items():
            if column is not None and column == other_column and option != other_option:
                raise InputError(
                    f"{other_option} and {option} both name the column {column!r}: name one of its "
                    "own for each"
                )
    needed = [(frame, people, name) for name in (*names.predictions, names.label, names.household)]
    if other is None or known is None:
        needed.append((frame, people, names.group))
    else:
        prediction = names.find("prediction", other) if names.predictions else None
        needed += [(other, known, name) for name in (names.group, prediction, names.label)]
    for table, file, name in needed:
        if name is not None and name not in table:
            if {"metric", "value"} <= {*table.columns}:
                raise InputError(
                    f"{file}: is a report, and no file of people: are REPORT and --people swapped?"
                )
            raise InputError(f"{file}: no column {name!r}; {suggest_name(name, table.columns)}")


def _rename_known(
    other: DataFrame,
    known: Path,
    names: ColumnNames,
    labelled: bool,
    groups: tuple[str, ...],
    bits: _BitReader,
) -> DataFrame:
    """Known people with the names that `fpbench.assess` knows, checked."""
    roles = {}
    for what in KNOWN_COLUMNS if labelled else KNOWN_COLUMNS[:2]:
        name = names.find(what, other)
        if name is None:
            raise InputError(
                f"{known}: no column {what!r}: name the column by --{what}; {_list_columns(other)}"
            )
        roles[name] = what
    values: dict[str, Any] = {}
    for name, what in roles.items():
        if what == "group":
            values[what] = other[name].astype(object)
            _check_groups(values[what], groups, known, name)
        elif what == "prediction":
            values[what] = bits.predictions(other, name, known, names.threshold)
        else:
            values[what] = bits.column(other, name, known)
    rest = other.drop(
        columns=[*roles, *(n for n in [names.find("label", other)] if n)], errors="ignore"
    )
    return _check_features(rest, known).assign(**values)


def _check_features(features: DataFrame, file: Path) -> DataFrame:
    """The columns that beliefs are learnt from; refuse an index, and names of other columns."""
    for name in features.columns:
        if numbers_rows(list(map(str, features[name]))):
            raise InputError(f"{file}: column {name!r} numbers the rows: {LEAVE_INDEX}")
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


class _BitReader:
    """Reads columns of predictions and labels as 0 and 1.

    `positive`: the value that counts as 1, of columns that have it; None where all are 0 and 1.
    """

    def __init__(self, positive: str | None) -> None:
        self.positive = None if positive is None else strip_zeros(positive.strip())
        self.columns: list[str] = []
        self.met = positive is None
        """Whether a column has the positive value."""

    def predictions(
        self,
        frame: DataFrame,
        name: str,
        file: Path,
        threshold: float | None,
        blank: bool = False,
    ) -> Codes:
        """(n,) as `column`; of scores, whether they reach the threshold."""
        scores = frame[name]
        if threshold is None:
            if scores.dtype.kind in "iuf" and scores.nunique() > 2:
                raise InputError(
                    f"{file}, column {name!r}: {scores.nunique()} numbers, not two: of scores, "
                    "name the least that counts as 1, --threshold"
                )
            return self.column(frame, name, file, blank)
        if scores.dtype.kind not in "iuf":
            raise InputError(f"{file}, column {name!r}: --threshold is for scores, not texts")
        if not np.isfinite(threshold):
            raise InputError(f"--threshold must be a number, not {threshold}")
        missing = np.asarray(scores.isna())
        if missing.any() and not blank:
            raise InputError(f"{file}, row {missing.argmax()}, column {name!r}: no score")
        return np.where(missing, -1, scores >= threshold).astype(np.int64)

    def column(self, frame: DataFrame, name: str, file: Path, blank: bool = False) -> Codes:
        """(n,) 0 and 1; and -1 where a value is missing, if it may be `blank`."""
        self.columns.append(name)
        texts = frame[name].map(lambda value: strip_zeros(str(value).strip()))
        missing = frame[name].isna() | (texts == "")
        values = list(dict.fromkeys(texts[~missing]))
        bits: Any = texts.str.casefold().map(_BITS)
        if self.positive in values:
            self.met = True
            if len(values) > 2:
                other = next(value for value in values if value != self.positive)
                third = next(value for value in values if value not in (self.positive, other))
                row = int(np.flatnonzero(texts == third)[0])
                raise InputError(
                    f"{file}, row {row}, column {name!r}: {third!r} is a third value beside "
                    f"{self.positive!r}, which counts as 1, and {other!r}"
                )
            bits = (texts == self.positive).astype(float)
        elif self.positive is not None and bits[~missing].isna().any():
            if len(values) > 1:  # all may be alike, and none of them positive
                raise InputError(
                    f"{file}, column {name!r}: none is {self.positive!r} (--positive); "
                    f"{suggest_name(self.positive, values)}"
                )
            bits = texts.map(dict.fromkeys(values, 0))
        bits = bits.mask(missing, -1 if blank else np.nan)
        wrong = np.flatnonzero(bits.isna())
        if len(wrong):
            row = int(wrong[0])
            what = "a blank" if missing.iloc[row] else repr(texts.iloc[row])
            mend = ""
            if len(values) == 2 and not missing.iloc[row]:
                low, high = sorted(values)
                mend = (
                    f"; values are {low!r} and {high!r}: name what counts as 1, --positive {high}"
                )
            raise InputError(f"{file}, row {row}, column {name!r}: {what} is neither 0 nor 1{mend}")
        return np.asarray(bits, np.int64)

    def check_met(self, file: Path) -> None:
        """Refuse a positive value that no column has."""
        if not self.met:
            raise InputError(
                f"{file}: --positive {self.positive!r} is no value of "
                f"{' or '.join(dict.fromkeys(self.columns))}"
            )
