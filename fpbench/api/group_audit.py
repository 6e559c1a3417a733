"""A model's fairness from visible groups: a table by group, and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from fpbench.base.sheet import Column, Sheet, write_html, write_plain
from fpbench.base.text import format_number
from fpbench.components.records import MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

_NOTIONS = {
    "independence": ("selection_rate",),
    "separation": ("true_positive_rate", "false_positive_rate"),
    "sufficiency": ("positive_predictive_value", "false_omission_rate"),
}
"""Rates shown by group, for each notion of fairness."""
_ENDS = ("low", "high")


@dataclass(frozen=True, eq=False)
class GroupAudit:
    """Rates of predictions by group, without any privacy; prints itself as a table.

    Attributes
    ----------
    by_group
        A row for each group: `people`, and for each rate its value, and `..._low` and `..._high`,
        the ends of its interval. Without labels there is only the selection rate. A rate over no
        members is NaN.
    gaps
        A row for each notion of fairness: `gap`, the greatest difference of a rate between groups,
        and `ratio`, the least rate over the greatest, each with its interval.
    confidence
        Confidence level of the intervals, which are about the population behind the sample.
    """

    by_group: DataFrame
    gaps: DataFrame
    confidence: float

    def _sheets(self) -> list[Sheet]:
        rates, gaps = _format_columns(self.by_group), _format_columns(self.gaps)
        lines = [(name.replace("_", " "), *cells) for name, cells in rates.items()]
        notions = list(zip(map(str, self.gaps.index), *gaps.values(), strict=True))
        level = f"{100 * self.confidence:.6g} % intervals, by bootstrap of the people"
        return [
            Sheet("", "", _make_columns("rate", map(str, self.by_group.index)), tuple(lines)),
            Sheet("", level, _make_columns("fairness", gaps), tuple(notions)),
        ]

    def __str__(self) -> str:
        return write_plain(self._sheets())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The HTML for notebooks."""
        return write_html(self._sheets())


def tabulate_audit(
    measures: MeasureValues, groups: Sequence[str], confidence: float, *, labelled: bool
) -> GroupAudit:
    """The measures of the auditor `group-fairness` as tables.

    `groups`: names of the K groups, in the order of their measures. `labelled`: whether to include
    rates that depend on labels.
    """
    import pandas as pd

    # The auditor respells groups for names of measures; their order is the same.
    spelt = [name.removeprefix("people_") for name in measures if name.startswith("people_")]
    notions = _NOTIONS if labelled else {"independence": _NOTIONS["independence"]}
    by_group: dict[str, list[object]] = {"people": [measures[f"people_{name}"] for name in spelt]}
    for rate in (rate for rates in notions.values() for rate in rates):
        by_group[rate] = [measures[f"{rate}_{name}"] for name in spelt]
        for end in _ENDS:
            by_group[f"{rate}_{end}"] = [
                measures.get(f"{rate}_{name}_interval_{end}") for name in spelt
            ]
    gaps: dict[str, list[object]] = {}
    for what in ("gap", "ratio"):
        gaps[what] = [measures[f"{notion}_{what}"] for notion in notions]
        for end in _ENDS:
            gaps[f"{what}_{end}"] = [
                measures.get(f"{notion}_{what}_interval_{end}") for notion in notions
            ]
    tables = pd.DataFrame(by_group, [*groups]), pd.DataFrame(gaps, [*notions])
    rates, compared = (
        table.astype({name: float for name in table.columns if name != "people"})
        for table in tables
    )
    return GroupAudit(rates, compared, confidence)


def _make_columns(first: str, names: Iterable[str]) -> tuple[Column, ...]:
    return Column(first, number=False, whole=True), *map(Column, names)


def _format_columns(frame: DataFrame) -> dict[str, list[str]]:
    """The cells of each column, an interval in brackets beside its number."""
    cells = {}
    for name in map(str, frame.columns):
        if name == "people":
            cells[name] = [f"{int(count):,}" for count in frame[name]]
        elif not name.endswith(_ENDS):
            numbers = (frame[column] for column in (name, f"{name}_low", f"{name}_high"))
            cells[name] = [_format_interval(*three) for three in zip(*numbers, strict=True)]
    return cells


def _format_interval(number: float, low: float, high: float) -> str:
    if isnan(number):
        return "-"
    ends = "" if isnan(low) else f" ({format_number(low)} to {format_number(high)})"
    return f"{format_number(number)}{ends}"
