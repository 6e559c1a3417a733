"""The rows of a published report: values by metric, group and slice, and how exact they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.fairness_reports.facts import Floats
from fpbench.auditing.fairness_reports.slices import REPORT_METRICS, Codes, SliceColumn


@dataclass(frozen=True)
class Noise:
    """A law of noise that was added to each count.

    Attributes
    ----------
    law
        `laplace` (discrete) or `gaussian` (rounded).
    scale
        Scale of Laplace noise, standard deviation of Gaussian noise.
    """

    law: Literal["laplace", "gaussian"]
    scale: float

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Whole numbers; not by a generator that would be safe from those who attack it."""
        if self.law == "gaussian":
            return np.rint(rng.normal(0, self.scale, size))
        above, below = (rng.geometric(-np.expm1(-1 / self.scale), size) for _ in range(2))
        return (above - below).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ReportRows:
    """R rows, each a metric of one group in one slice.

    Attributes
    ----------
    columns
        The C columns that slices are cut by.
    groups
        Names of the K groups.
    cells
        (R, C) code of each column's value; -1 where the slice is not cut by the column.
    metric
        (R,) names, of `METRICS`.
    group
        (R,) group codes.
    value
        (R,) rate, or number of people; NaN for a rate of nobody.
    n
        (R,) the people a rate is taken over, all of the group; of a number of people, the people
        of all groups among whom they are counted.
    within
        (R,) how far the truth may be from a rounded value; 0 where it is exact.
    noise
        What was added to the counts; None if nothing.
    """

    columns: tuple[SliceColumn, ...]
    groups: tuple[str, ...]
    cells: Codes
    metric: NDArray[np.str_]
    group: Codes
    value: Floats
    n: Codes
    within: Floats
    noise: Noise | None = None

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def label(self) -> Codes:
        """(R,) the label that a metric looks at; -1 for none."""
        return self._look_up([-1 if m.label is None else m.label for m in REPORT_METRICS.values()])

    @cached_property
    def prediction(self) -> Codes:
        """(R,) the prediction whose people are counted; -1 of a rate."""
        return self._look_up(
            [-1 if m.prediction is None else m.prediction for m in REPORT_METRICS.values()]
        )

    def _look_up(self, values: list[int]) -> Codes:
        names, inverse = np.unique(self.metric, return_inverse=True)
        of = dict(zip(REPORT_METRICS, values, strict=True))
        return np.asarray(np.array([of[str(name)] for name in names], np.int64)[inverse])

    def describe_slice(self, row: int) -> str:
        """The slice of a row, in words.

        Parameters
        ----------
        row
            Its number.
        """
        parts = [
            f"{column.name} {column.values[code]}"
            for column, code in zip(self.columns, self.cells[row], strict=True)
            if code >= 0
        ]
        return " and ".join(parts) or "everybody"
