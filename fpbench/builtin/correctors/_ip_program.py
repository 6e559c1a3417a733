"""A mixed-integer program as arrays; nothing here knows what it is about, nor a solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_HUGE = 1e9
"""A cost, in units, that is as good as any greater one."""


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
    """(m,) of the first columns, which lie between 0 and 1."""
    whole: NDArray[np.bool_]
    """(m,) which of these are declared whole."""
    others: list[tuple[int, int]] = field(default_factory=list)
    """Bounds of the columns after them: whole numbers without a cost."""
    lines: list[ProgramRow] = field(default_factory=list)
    decisive: float | None = None
    """The greatest cost in a solution, if one is known."""

    @property
    def scaled_costs(self) -> NDArray[np.float64]:
        """(m,) costs as a solver should see them: none so great that it upsets the solver."""
        costs: NDArray[np.float64] = np.minimum(self.costs / self.unit, _HUGE)
        return costs

    @property
    def unit(self) -> float:
        """What a solver should call 1: the decisive cost, or that of a typical column.

        Solvers have absolute tolerances, under which small costs vanish; no scale keeps
        both of two costs whose ratio is above 1e9.
        """
        if self.decisive is not None:
            return self.decisive
        if not len(self.costs):
            return 1.0
        return float(max(np.median(self.costs), self.costs.max() * 1e-9))

    def add(self, low: int, high: int) -> int:
        """Add a whole number between bounds; returns its column."""
        self.others.append((low, high))
        return len(self.costs) + len(self.others) - 1

    def add_line(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        """Add a line of few terms."""
        columns, values = zip(*terms, strict=True)
        self.lines.append(ProgramRow(np.array(columns, dtype=np.intp), np.array(values), low, high))

    def forbid(self) -> None:
        """Make the program infeasible."""
        self.add_line([(self.add(0, 0), 1.0)], 1, 1)
