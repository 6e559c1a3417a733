"""Reports that are assessed together: about the same people, or about people who overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arrays import check_binary
from fpbench.base.errors import InputError, suggest_name
from fpbench.claims.combined_facts import join_reports
from fpbench.claims.set_counts import ContradictionError, Facts, Mask
from fpbench.data.groups import group_codes
from fpbench.reports.facts import Suppressed, find_facts
from fpbench.reports.fairness_report import FairnessReport, read_by_names
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.slices import Codes, check_bits, cross_groups, name_values

if TYPE_CHECKING:
    from pandas import DataFrame


class ReadReports(NamedTuple):
    """What reports tell of n people."""

    facts: Facts
    """Facts of all reports together."""
    report: NDArray[np.intp]
    row: NDArray[np.intp]
    """(M,) number of the report that each fact is from, and a row of it; -1 of differences."""
    alone: tuple[Facts, ...]
    """What each report tells of the n people."""
    hidden: tuple[Facts, ...]
    """Sets, with counts NaN, that groups decided whether, or how exactly, to publish."""
    suppressed: tuple[Suppressed, ...]
    """Numbers of people that each report suppresses."""


@dataclass(frozen=True, eq=False)
class ReportSeries:
    """R reports, in the order in which they are published; make it by `of`."""

    names: tuple[str, ...]
    """Names of the reports, as in messages."""
    reports: tuple[FairnessReport, ...]
    """The reports, all about the same groups."""
    predictions: Codes
    """(n, R) predictions in {0, 1}; -1 where a person is not in that report."""

    @classmethod
    def of(
        cls,
        reports: FairnessReport | Sequence[FairnessReport] | Mapping[str, FairnessReport],
        predictions: ArrayLike,
        people: int,
        positive: Any = None,
    ) -> ReportSeries:
        """Reports, predictions and the positive one of these as `fpbench.assess` takes them.

        Raises InputError if one is no report, groups differ, or predictions are none of these
        people.
        """
        if isinstance(reports, FairnessReport):
            return cls(
                ("the report",), (reports,),
                check_bits(predictions, people, "predictions", positive, nameable=True)[:, None],
            )  # fmt: skip
        named = _name_reports(reports)
        first = next(iter(named))
        for name, report in named.items():
            if not isinstance(report, FairnessReport):
                raise InputError(
                    f"{name} must be a FairnessReport, not {type(report).__name__}; from_frame, "
                    "from_file and others make one"
                )
            if report.groups != named[first].groups:
                raise InputError(
                    f"{name} is by the groups {', '.join(report.groups)}, and {first} by "
                    f"{', '.join(named[first].groups)}: read both with the same `groups`"
                )
        codes = _read_predictions(predictions, people, tuple(named), positive)
        return cls(tuple(named), tuple(named.values()), codes)

    @property
    def read_as(self) -> tuple[str, ...]:
        """What tables of other forms were read as, and what was not read."""
        several = len(self.reports) > 1
        return tuple(
            f"{name}: {text}" if several else text
            for name, report in zip(self.names, self.reports, strict=True)
            for text in (report.read_as, report.unread)
            if text
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""
        return self.reports[0].groups

    @property
    def last(self) -> FairnessReport:
        """The report that may still be changed; those before it are out."""
        return self.reports[-1]

    @property
    def first_predictions(self) -> Codes:
        """(n,) each person's prediction in the first report that they are in."""
        first = (self.predictions >= 0).argmax(axis=1)
        return np.asarray(self.predictions[np.arange(len(first)), first])

    @property
    def inside(self) -> Mask:
        """(n,) whether a person is in any report."""
        return np.asarray((self.predictions >= 0).any(axis=1))

    def take(self, people: Mask) -> ReportSeries:
        """The same series about some of the people."""
        return replace(self, predictions=self.predictions[people])

    def change_last(self, report: FairnessReport) -> ReportSeries:
        """The same series with another last report."""
        return replace(self, reports=(*self.reports[:-1], report))

    def check_groups(self, groups: ArrayLike) -> None:
        """Refuse a group that reports tell of and that none of the people is in.

        `groups`: (n,) names of the true groups.

        Raises InputError: names report, row and column, and the nearest group of the people.
        """
        there = sorted(set(name_values(np.asarray(groups, dtype=object).ravel())))
        for name, report in zip(self.names, self.reports, strict=True):
            unknown = ~np.isin(np.array(report.groups), there)[report.group]
            # A group without people may be published as 0 people; with noise, as anything.
            tells = np.where(report.is_rate, report.n != 0, report.value != 0) & ~report.noisy
            if (unknown & tells).any():
                row = int(np.flatnonzero(unknown & tells)[0])
                group = report.groups[report.group[row]]
                raise InputError(
                    f"{name}: row {row}, column 'group': {group!r} is the group of none of the "
                    f"people; {suggest_name(group, there)}"
                )

    def read(self, X: DataFrame, labels: Codes | None) -> ReadReports:
        """The facts of the reports, of each about the people who are in it.

        `X`, `labels`: as of `fpbench.assess`.

        Raises InputError if a report is about other people; of several, the message names it;
        ContradictionError if published cells contradict each other.
        """
        if len(self.reports) == 1:
            own = self.predictions[:, 0]
            facts, row, unsure, secret = find_facts(self.last, X, own, labels)
            first = np.zeros(len(row), np.intp)
            return ReadReports(facts, first, row, (facts,), (unsure,), (secret,))
        n = len(X)
        parts, row_of, members, hidden, suppressed = [], [], [], [], []
        for name, report, own in zip(self.names, self.reports, self.predictions.T, strict=True):
            inside = np.flatnonzero(own >= 0)
            told = None if labels is None else labels[inside]
            try:
                facts, row, unsure, secret = find_facts(report, X.iloc[inside], own[inside], told)
            except ContradictionError as error:
                raise ContradictionError(f"{name}: {cell}" for cell in error.names) from None
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
            parts.append(facts)
            row_of.append(row)
            members.append(inside)
            hidden.append(unsure.over(inside, n))
            suppressed.append(secret.over(inside, n))
        joined = join_reports(parts, members, n, self.names)
        # Sets of differences follow those of the reports.
        own = np.repeat(np.arange(len(parts)), [len(row) for row in row_of])
        source = np.append(own, -1)[np.minimum(joined.origin, len(own))]
        row = np.append(np.concatenate(row_of), -1)[np.minimum(joined.origin, len(own))]
        alone = tuple(part.over(where, n) for part, where in zip(parts, members, strict=True))
        return ReadReports(joined, source, row, alone, tuple(hidden), tuple(suppressed))


def name_people(
    X: DataFrame,
    predictions: Any,
    labels: Any,
    groups: Any,
    known_people: DataFrame | None,
    positive: Any,
) -> tuple[KnownNames, tuple[str, ...]]:
    """What a table may call people's columns, and the attribute.

    Parameters as of `fpbench.assess`.
    """
    import pandas as pd

    if groups is None and known_people is not None and "group" in known_people:
        groups = known_people["group"]
    secrets: dict[str, tuple[str, ...]] = {}
    names = None
    if isinstance(groups, pd.DataFrame) and groups.shape[1] > 1:
        secrets = {str(name): _list_groups(groups.iloc[:, place])
                   for place, name in enumerate(groups.columns)}  # fmt: skip
        names = name_values(group_codes(groups, name="groups")[1])
    elif groups is not None and np.ndim(groups := cross_groups(groups)) == 1:
        called = getattr(groups, "name", None)
        names = _list_groups(groups)
        secrets = {"group" if called is None else str(called): names}
    own = [str(getattr(part, "name", None) or "") for part in (predictions, labels)]
    known = KnownNames(
        secrets, X.loc[:, ~X.columns.duplicated()], (own[0],) if own[0] else (), own[1] or None,
        None if positive is None else str(positive), groups=names,
    )  # fmt: skip
    return known, tuple(secrets)


def _list_groups(groups: Any) -> tuple[str, ...]:
    import pandas as pd

    return name_values(pd.Categorical(groups).remove_unused_categories().categories)


def read_reports(reports: Any, names: KnownNames, secret: tuple[str, ...]) -> Any:
    """Reports, or tables of any form read as reports; those that are reports already stay."""
    if isinstance(reports, Mapping) and not hasattr(reports, "by_group"):
        return {name: read_reports(one, names, secret) for name, one in reports.items()}
    if isinstance(reports, list | tuple):
        return [read_reports(one, names, secret) for one in reports]
    if isinstance(reports, FairnessReport):
        return reports
    return read_by_names(reports, names, secret)


def _name_reports(reports: Any) -> dict[str, Any]:
    if isinstance(reports, Mapping):
        named = {str(name): report for name, report in reports.items()}
    elif isinstance(reports, Sequence) and not isinstance(reports, str):
        named = {f"report {number}": report for number, report in enumerate(reports, 1)}
    else:
        raise InputError(
            f"report must be a FairnessReport, not {type(reports).__name__}; from_frame, from_file "
            "and others make one"
        )
    if not named:
        raise InputError("there is no report to assess: give at least one")
    return named


def _read_predictions(
    predictions: ArrayLike, people: int, names: tuple[str, ...], positive: Any
) -> Codes:
    """(n, R) predictions; -1 where there is none."""
    import pandas as pd

    frame = pd.DataFrame(predictions)  # type: ignore[arg-type]
    count = len(names)
    if len(frame) != people or frame.shape[1] not in (1, count):
        raise InputError(
            f"predictions of {count} reports must be ({people},), if everybody is in all of them, "
            f"or ({people}, {count}), missing where a person is not in a report; not "
            f"{np.shape(predictions)}"
        )
    columns = list(_read_columns(frame, names, positive))
    codes = np.stack(columns * (count // len(columns)), axis=1)
    for name, own in zip(names, codes.T, strict=True):
        if (own < 0).all():
            raise InputError(f"predictions: nobody is in {name}")
    return codes


def _read_columns(frame: DataFrame, names: tuple[str, ...], positive: Any) -> Iterator[Codes]:
    for place, name in enumerate(names[: frame.shape[1]]):
        column = frame.iloc[:, place]
        codes = np.full(len(column), -1, np.int64)
        here = column.notna().to_numpy()
        rows = np.flatnonzero(here)
        bits = column[here].to_numpy()
        if positive is not None and len(bits):
            bits = check_binary(f"predictions of {name}", bits, positive)
        wrong = ~np.isin(bits, (0, 1))
        if wrong.any():
            whose = f"of {name}" if frame.shape[1] > 1 else ""
            row = rows[np.flatnonzero(wrong)[0]]
            raise InputError(
                f"predictions {whose}".strip()
                + f", row {row}: {bits[wrong].tolist()[0]!r} is neither 0 nor 1, nor missing"
            )
        codes[here] = bits.astype(np.int64)
        yield codes
