"""A table and its people, as files of a user: read, judged, and released."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fpbench
from fpbench import Assessment, FairnessReport, InputError
from fpbench.reports import REPORT_METRICS
from fpbench.tabular import load_table

if TYPE_CHECKING:
    from pandas import DataFrame, Series

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Of the releases between nothing and everything."""
SECONDS = 60.0
"""Time limit of each attack."""
_GROUPS = ("group", "sex", "gender", "race", "ethnicity")
_PREDICTIONS = ("prediction", "predicted", "decision", "selected", "hired", "score")
_LABELS = ("label", "target", "outcome", "y")
"""Usual names of columns, the surest first."""
_ONES = ("1", "1.0", "true", "yes")
_FEW = 20
"""Most values of a column of groups, where no name tells."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Choices:
    """What the user has chosen, where files do not tell; "" where nothing is."""

    group: str
    prediction: str
    label: str = ""
    positive: str = ""
    positive_label: str = ""
    """Values that count as 1."""
    threshold: str = ""
    """The least score that is prediction 1."""
    unit: str = ""
    decimals: str = ""
    """That rates of the table were rounded to."""
    names: dict[str, str] = field(default_factory=dict)
    """What texts of the table stand for."""

    @classmethod
    def guess(cls, people: DataFrame) -> Choices:
        """The likeliest columns."""
        values = {str(name): people[name].nunique() for name in people}
        group = _find(_GROUPS, list(values)) or next(
            (name for name in values if 2 <= values[name] <= _FEW), next(iter(values))
        )
        others = [name for name in values if name != group]
        label = _find(_LABELS, others)
        others = [name for name in others if name != label]
        prediction = _find(_PREDICTIONS, others) or next(
            (name for name in others if values[name] == 2), others[0] if others else group
        )
        return cls(group, prediction, label)


class Step(NamedTuple):
    """A table between nothing and everything, and what it gives away."""

    name: str
    passes: bool
    leak: float
    told: int
    """People proven or sure."""
    error: float | None
    """Mean error of its rates; None of no rates."""
    report: FairnessReport | None
    words: tuple[str, ...]
    record: dict[str, Any] | None
    """The certificate; of the exact table, which has none, the record of its assessment."""

    def write(self, kind: str) -> str:
        """The table as `csv`, or its record as `json`; InputError if there is none."""
        if self.report is not None and kind == "csv":
            return self.report.to_frame().to_csv(index=False)
        if self.record is not None and kind == "json":
            content = {"versions": {"fpbench": fpbench.__version__}, **self.record}
            return json.dumps(content, indent=2, allow_nan=False) + "\n"
        raise InputError(f"there is no {kind} of {self.name}")


class People(NamedTuple):
    """Arguments of `fpbench.assess` and `fpbench.release`."""

    X: DataFrame
    predictions: Any
    labels: Any
    groups: Series


class Case:
    """A table, if there is one, and its people.

    `people`, `table`: their files.
    """

    def __init__(self, people: Path, table: Path | None = None) -> None:
        self.file, self.table = people, table
        self.frame, self.checksum = load_table(people)
        self.frame.columns = self.frame.columns.map(str)
        self.choices = Choices.guess(self.frame)

    def take_people(self) -> People:
        """The people by the chosen columns; InputError if a choice is wrong."""
        own = self.choices
        roles = [name for name in (own.group, own.prediction, own.label) if name]
        for name in roles:
            if name not in self.frame:
                raise InputError(f"{self.file.name}: no column {name!r}")
            if roles.count(name) > 1:
                raise InputError(f"{name!r} cannot be two of group, prediction and label")
            if (missing := np.flatnonzero(self.frame[name].isna())).size:
                raise InputError(f"{self.file.name}, row {missing[0]}, column {name!r}: no value")
        predictions = self._take_bits(own.prediction, own.positive, own.threshold)
        labels = self._take_bits(own.label, own.positive_label) if own.label else None
        X = self.frame.drop(columns=roles)
        return People(X, predictions, labels, self.frame[own.group].astype(str))

    def list_values(self, column: str) -> list[str]:
        """The values of a column that may be predictions, as texts; that which is 1 first."""
        if column not in self.frame:
            return []
        values = sorted(map(str, self.frame[column].dropna().unique()), reverse=True)
        if len(values) != 2:
            return []
        return sorted(values, key=lambda text: text.casefold() not in _ONES)

    def _take_bits(self, column: str, positive: str, threshold: str = "") -> Any:
        if threshold:
            try:
                return (self.frame[column].astype(float) >= float(threshold)).astype(int)
            except ValueError:
                raise InputError(
                    f"{self.file.name}, column {column!r}: not all values, and the least score "
                    f"{threshold!r}, are numbers"
                ) from None
        values = self.list_values(column)
        if not values:
            raise InputError(
                f"{self.file.name}, column {column!r}: has {self.frame[column].nunique():,} values:"
                " choose a column of two, or give the least score that counts as 1"
            )
        one = positive if positive in values else values[0]
        return (self.frame[column].astype(str) == one).astype(int)

    def read(self) -> FairnessReport:
        """The table as it is read by the choices."""
        assert self.table is not None
        people, own = self.take_people(), self.choices
        if own.decimals and not own.decimals.isdecimal():
            raise InputError(f"decimals: {own.decimals!r} is no whole number")
        return FairnessReport.read(
            self.table, X=people.X, group=own.group,
            groups={own.group: sorted(people.groups.unique())}, names=own.names,
            unit=own.unit or None, decimals=int(own.decimals) if own.decimals else None,
        )  # fmt: skip

    def assess(self) -> Assessment:
        """What the table gives away."""
        people = self.take_people()
        return fpbench.assess(self.read(), *people, seconds=SECONDS)

    def list_meanings(self) -> list[str]:
        """What a text of the table may stand for."""
        own = self.choices
        columns = [name for name in self.frame if name not in (own.prediction, own.label)]
        groups = self.frame[own.group].dropna().astype(str).unique() if own.group in columns else ()
        return [*REPORT_METRICS, "n", "value", *columns, *sorted(groups)[:_FEW], "suppressed"]

    @cached_property
    def _inputs(self) -> dict[str, Any]:
        return {"people": {"file": self.file.name, "sha256": self.checksum}}

    def release(self, tell: Tell) -> list[Step]:
        """Tables with the slices and metrics of this one, from nothing to everything.

        `tell`: called with what is done.
        """
        people = self.take_people()
        cut: dict[str, Any] = {"by": list(people.X.columns), "order": 1}
        if self.table is not None:
            report = self.read()
            metrics = np.unique(report.metric[report.view == 0]).tolist()
            cut = {
                "by": [column.name for column in report.columns],
                "order": int((report.cells >= 0).sum(axis=1).max(initial=0)),
                "bins": {column.name: column.edges for column in report.columns if column.edges},
                "metrics": metrics or ["selection-rate"],
            }
        steps = [Step("nothing", True, 0.0, 0, None, None, ("Nothing is published.",), None)]
        given = people.X, people.predictions, people.groups
        for number, epsilon in enumerate(EPSILONS, 1):
            tell(f"table {number} of {len(EPSILONS) + 1}: epsilon {epsilon:g}")
            # One is picked by what is measured on true groups, and so must the certificate say.
            made = replace(
                fpbench.release(
                    *given, labels=people.labels, epsilon=epsilon, seconds=SECONDS, **cut
                ),
                chosen=True,
            )
            record = {"gate": "release", "inputs": self._inputs, **made.to_json()}
            steps.append(
                _make_step(
                    f"epsilon {epsilon:g}", made.assessment, made.utility.rate_error, made.report,
                    str(made), record,
                )
            )  # fmt: skip
        tell(f"table {len(EPSILONS) + 1} of {len(EPSILONS) + 1}: everything, exactly")
        exact = FairnessReport.from_predictions(*given, labels=people.labels, min_cell=0, **cut)
        told = fpbench.assess(exact, *people, seconds=SECONDS)
        record = {"gate": "assessment of reports", "inputs": self._inputs, **told.to_json()}
        return [*steps, _make_step("everything", told, 0.0, exact, told.verdict, record)]


def _make_step(
    name: str, told: Assessment, error: float | None, report: FairnessReport, words: str,
    record: dict[str, Any],
) -> Step:  # fmt: skip
    people = int((told.proven | told.sure).sum())
    lines = tuple(words.splitlines())
    return Step(name, told.passes, told.leak, people, error, report, lines, record)


def _find(names: tuple[str, ...], columns: list[str]) -> str:
    """The column of one of these names; "" if there is none."""
    known = {column.casefold(): column for column in reversed(columns)}
    return next((known[name] for name in names if name in known), "")
