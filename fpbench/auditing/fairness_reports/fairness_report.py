"""Fairness reports: rates by group for slices of people, as dashboards and model cards do."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from fpbench.auditing.fairness_reports.facts import Facts
from fpbench.auditing.fairness_reports.long_form import read_frame
from fpbench.auditing.fairness_reports.report_facts import find_facts
from fpbench.auditing.fairness_reports.report_rows import Noise, ReportRows
from fpbench.auditing.fairness_reports.slices import (
    REPORT_METRICS,
    SliceColumn,
    check_bits,
    find_column,
)
from fpbench.auditing.fairness_reports.tabulating import tabulate
from fpbench.base.errors import InputError, check_choice, suggest_name
from fpbench.base.files import read_file
from fpbench.components.guarantee import check_epsilon
from fpbench.privacy.accounting import gaussian_sigma

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_BYTES = 2**28
"""Of a report as a CSV file, which may be a stranger's."""


class FairnessReport(ReportRows):
    """A published report: rates, or numbers of people, by group for slices of people.

    Make it by `from_predictions`, `from_frame` or `from_csv`.
    """

    @classmethod
    def from_predictions(
        cls,
        X: DataFrame,
        predictions: ArrayLike,
        groups: ArrayLike,
        *,
        by: Iterable[str],
        order: int = 1,
        bins: int | Mapping[str, int | Sequence[float]] = 5,
        labels: ArrayLike | None = None,
        metrics: Sequence[str] = ("selection-rate",),
        min_cell: int = 10,
        min_group: int = 0,
        decimals: int | None = None,
        round_to: int | None = None,
        noise: Literal["laplace", "gaussian"] | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        rng: np.random.Generator | int | None = None,
    ) -> FairnessReport:
        """The report about people.

        Parameters
        ----------
        X
            n rows with the columns of `by`: numbers and categories.
        predictions
            (n,) in {0, 1}.
        groups
            (n,) names of the groups; their order is that of a pandas categorical, or sorted.
        by
            Columns that slices are cut by. Columns of one value are left out.
        order
            Slices cross up to so many columns; everybody together is a slice of order 0.
        bins
            Number of equally large bins of numbers, or, by column, that or the edges between bins.
        labels
            (n,) in {0, 1}; needed by metrics that look at labels.
        metrics
            Names from `REPORT_METRICS`. From a rate, the numbers of both predictions follow;
            numbers of people (`selected`, `rejected`, ...) are published for each prediction.
        min_cell
            A rate or number is published for slices where it is taken over at least so many
            people, of all groups together.
        min_group
            And of each group.
        decimals
            Rates are rounded to so many.
        round_to
            Numbers of people are rounded at random to a multiple of this: up with a probability
            that keeps the mean, as statistical offices do with 5.
        noise, epsilon, delta
            Noise is added to numbers of people, so that the whole report is
            epsilon-differentially private (Gaussian: (epsilon, delta)) for a person whose group
            changes. Slices, their sizes and predictions are taken to be known.
        rng
            A generator or seed of noise and random rounding.

        Raises
        ------
        InputError
            If lengths differ, a name is unknown, or parameters exclude each other.
        """
        import pandas as pd

        n, names = len(X), [by] if isinstance(by, str) else list(map(str, by))
        kinds = pd.Categorical(cast(Any, groups)).remove_unused_categories()
        if len(kinds) != n or (kinds.codes < 0).any() or len(kinds.categories) < 2:
            raise InputError(f"groups must be {n} names, one a person of X, of two groups or more")
        predicted = check_bits(predictions, n, "predictions")
        labelled = np.zeros(n, np.int64) if labels is None else check_bits(labels, n, "labels")
        _check_parameters(metrics, labels, order, min_cell, min_group, decimals, round_to, noise)
        if isinstance(bins, Mapping):
            for name in bins:
                check_choice("column of bins", name, names)
        per_column = bins if isinstance(bins, Mapping) else dict.fromkeys(names, bins)
        columns = [SliceColumn.of(find_column(X, name), per_column.get(name, 5)) for name in names]
        columns = [column for column in columns if len(column.values) > 1]
        rows = tabulate(
            columns, [column.code(X) for column in columns], kinds, predicted, labelled,
            order=order, metrics=metrics, min_cell=min_cell, min_group=min_group,
        )  # fmt: skip
        report = cls._of(rows)
        generator = np.random.default_rng(rng)
        if decimals is not None:
            report = report._rounded(decimals)
        if round_to is not None:
            below = report.value // round_to
            up = generator.random(len(below)) < report.value / round_to - below
            half = np.full(len(below), round_to - 1.0)
            report = replace(report, value=(below + up) * round_to, within=half)
        if noise is not None:
            check_epsilon(epsilon)
            assert epsilon is not None
            # A person is in one cell of each table, for metrics with labels and for those without;
            # another group changes two counts there.
            views = len({REPORT_METRICS[name].label is None for name in metrics})
            changes = 2.0 * views * sum(comb(len(columns), r) for r in range(order + 1))
            if noise == "laplace":
                law = Noise(noise, changes / epsilon)
            else:
                law = Noise(noise, gaussian_sigma(epsilon, delta, changes**0.5))
            report = replace(
                report, value=report.value + law.draw(len(report), generator), noise=law
            )
        return report

    @classmethod
    def _of(cls, rows: ReportRows) -> FairnessReport:
        return cls(**{own.name: getattr(rows, own.name) for own in fields(rows)})

    def _rounded(self, decimals: int) -> FairnessReport:
        half = np.where(self.prediction < 0, 0.5 * 10.0**-decimals, 0.0)
        value = np.where(half > 0, np.round(self.value, decimals), self.value)
        return replace(self, value=value, within=half)

    def to_frame(self) -> DataFrame:
        """Long form: slice columns (blank where a slice is not cut), group, metric, value, n.

        And `within` if values are rounded, `noise` if there is some.
        """
        import pandas as pd

        frame: dict[str, object] = {
            column.name: np.array([*column.values, ""], dtype=object)[self.cells[:, c]]
            for c, column in enumerate(self.columns)
        }
        frame["group"] = np.array(self.groups, dtype=object)[self.group]
        frame |= {"metric": self.metric.astype(object), "value": self.value, "n": self.n}
        if self.within.any():
            frame["within"] = self.within
        if self.noise is not None:
            frame["noise"] = f"{self.noise.law} {self.noise.scale!r}"
        return pd.DataFrame(frame)

    @classmethod
    def from_frame(
        cls, frame: DataFrame, *, groups: Sequence[str] | None = None, decimals: int | None = None
    ) -> FairnessReport:
        """A report in long form, as `to_frame` writes it.

        Parameters
        ----------
        frame
            Slice columns (blank where a slice is not cut), group, metric, value, n.
        groups
            Names of the groups in the order of beliefs' columns; sorted by default.
        decimals
            Rates were rounded to so many; needed if they were and no column `within` says so.

        Raises
        ------
        InputError
            If a column is missing, or a row is wrong: names both.
        """
        report = cls._of(read_frame(frame, groups))
        if decimals is None:
            return report
        half = report._rounded(decimals).within
        return replace(report, within=np.maximum(report.within, half))

    def to_csv(self, file: str | Path) -> None:
        """Write the long form.

        Parameters
        ----------
        file
            Where to.
        """
        self.to_frame().to_csv(file, index=False)

    @classmethod
    def from_csv(
        cls, file: str | Path, *, groups: Sequence[str] | None = None, decimals: int | None = None
    ) -> FairnessReport:
        """Read the long form; see `from_frame`."""
        import pandas as pd

        try:
            content = read_file(Path(file), most=_MOST_BYTES, named=True)
            texts = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
        except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as e:
            raise InputError(f"{file} cannot be read as a CSV file: {e}") from None
        return cls.from_frame(texts, groups=groups, decimals=decimals)

    def facts(self, X: DataFrame, predictions: ArrayLike, labels: ArrayLike | None = None) -> Facts:
        """What the report tells whoever knows everybody's columns and predictions.

        Parameters
        ----------
        X
            n rows, the people of the report, with its columns.
        predictions, labels
            (n,) in {0, 1}; labels are needed by metrics that look at them.

        Raises
        ------
        InputError
            If the report is about other people, columns or bins: names row and column.
        ContradictionError
            If cells contradict each other or the people.
        """
        return find_facts(self, X, predictions, labels)


def _check_parameters(
    metrics: Sequence[str],
    labels: ArrayLike | None,
    order: int,
    min_cell: int,
    min_group: int,
    decimals: int | None,
    round_to: int | None,
    noise: str | None,
) -> None:
    if isinstance(metrics, str) or not metrics:
        raise InputError(f"metrics must be a list of names, not {metrics!r}")
    for name in metrics:
        if name not in REPORT_METRICS:
            raise InputError(f"unknown metric {name!r}; {suggest_name(str(name), REPORT_METRICS)}")
        if REPORT_METRICS[name].label is not None and labels is None:
            raise InputError(f"the metric {name!r} looks at labels: give labels")
    for what, number in (("order", order), ("min_cell", min_cell), ("min_group", min_group)):
        if not isinstance(number, int | np.integer) or number < 0:
            raise InputError(f"{what} must be a whole number of at least 0, not {number!r}")
    rates = [name for name in metrics if REPORT_METRICS[name].is_rate]
    if decimals is not None and (not rates or not 0 <= decimals <= 15):
        raise InputError("decimals (0 to 15) are of rates: selection-rate, ...")
    if rates and (round_to is not None or noise is not None):
        raise InputError(
            "noise and round_to are of numbers of people (selected, rejected, ...), from which "
            f"rates follow; not of {rates[0]!r}"
        )
    if round_to is not None and (noise is not None or round_to < 2):
        raise InputError("round_to must be at least 2, and not together with noise")
    if noise is not None:
        check_choice("noise", noise, ("laplace", "gaussian"))
        if min_group:
            raise InputError("min_group suppresses cells by their true counts, which noise hides")
