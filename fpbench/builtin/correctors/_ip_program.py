"""A mixed-integer program as arrays, independent of its meaning and of solvers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_HUGE = 1e9
"""Costs above this, in units, are equivalent to it."""


@dataclass(frozen=True)
class ProgramRow:
    """low <= sum of values * columns <= high."""

    columns: NDArray[np.intp]
    values: NDArray[np.float64]
    low: float
    high: float


@dataclass(frozen=True)
class IntegerProgram:
    """Columns between bounds, and lines over them; the cost is minimised."""

    costs: NDArray[np.float64]
    """(m,) costs of the first columns, which are between 0 and 1."""
    whole: NDArray[np.bool_]
    """(m,) which of these are declared integer."""
    others: list[tuple[int, int]] = field(default_factory=list)
    """Bounds of the following columns: integers without a cost."""
    lines: list[ProgramRow] = field(default_factory=list)
    decisive: float | None = None
    """The greatest cost in a solution, if known."""

    @property
    def scaled_costs(self) -> NDArray[np.float64]:
        """(m,) costs for a solver, capped to avoid numerical trouble."""
        costs: NDArray[np.float64] = np.minimum(self.costs / self.unit, _HUGE)
        return costs

    @property
    def unit(self) -> float:
        """The unit of costs for a solver: the decisive cost, or that of a typical column.

        Solvers have absolute tolerances, below which small costs vanish; no scale preserves two
        costs with a ratio above 1e9.
        """
        if self.decisive is not None:
            return self.decisive
        if not len(self.costs):
            return 1.0
        return float(max(np.median(self.costs), self.costs.max() * 1e-9))

    def add(self, low: int, high: int) -> int:
        """The column of a new integer between bounds."""
        self.others.append((low, high))
        return len(self.costs) + len(self.others) - 1

    def add_line(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        """Add a line of few terms."""
        columns, values = zip(*terms, strict=True)
        self.lines.append(ProgramRow(np.array(columns, dtype=np.intp), np.array(values), low, high))

    def forbid(self) -> None:
        """Make the program infeasible."""
        self.add_line([(self.add(0, 0), 1.0)], 1, 1)
