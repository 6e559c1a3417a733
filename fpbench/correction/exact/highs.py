"""Linear and mixed-integer programs for HiGHS, built as arrays."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import FpbenchError

_Numbers = NDArray[np.float64]

TOLERANCE = 1e-9
"""Tolerance of primal and dual feasibility of linear programs."""
WHOLE_TOLERANCE = 1e-7
"""The same with whole variables: at 1e-9, HiGHS 1.15 called an answer optimal that was not."""


class HighsAnswer(NamedTuple):
    """The result of a program for which HiGHS did not prove infeasibility."""

    values: _Numbers | None
    """Value of every column; None if time ran out before a solution."""
    bound: float
    """Lower bound of the cost."""
    proven: bool
    """Whether it is optimal."""
    prices: _Numbers | None = None
    """Dual values of the rows of a linear program."""


class HighsModel:
    """A minimisation problem: columns and rows."""

    def __init__(self) -> None:
        self._columns: list[tuple[_Numbers, ...]] = []
        self._rows: list[tuple[NDArray[np.intp], _Numbers, float, float]] = []
        self._count = 0

    def columns(
        self, low: ArrayLike, high: ArrayLike, cost: ArrayLike = 0.0, *, whole: bool = False
    ) -> NDArray[np.intp]:
        """Add variables; returns their numbers, in the shape of the bounds."""
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        size = int(np.prod(shape))
        self._columns.append(tuple(
            np.broadcast_to(np.asarray(v, dtype=np.float64), shape).ravel()
            for v in (low, high, cost, float(whole))
        ))  # fmt: skip
        first, self._count = self._count, self._count + size
        return np.arange(first, first + size).reshape(shape)

    def row(self, index: ArrayLike, value: ArrayLike, low: float, high: float) -> None:
        """Add low <= sum of value * variable <= high."""
        indices, coefficients = (
            np.asarray(index, dtype=np.intp),
            np.asarray(value, dtype=np.float64),
        )
        self._rows.append((indices, coefficients, low, high))

    def solve(
        self,
        time_limit: float = np.inf,
        *,
        gap: float = 0.0,
        start: tuple[NDArray[np.intp], _Numbers] | None = None,
    ) -> HighsAnswer | None:
        """Minimise, on one thread; None if there is no solution.

        `gap`: how far from the optimum an answer of whole variables may be, relative to its cost.
        `start`: numbers of columns and their values in a known solution.

        Raises FpbenchError if HiGHS gives up.
        """
        import highspy

        swallow_banner()
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in _OPTIONS.items():
            highs.setOptionValue(option, value)
        highs.setOptionValue("mip_rel_gap", gap)
        tolerance = WHOLE_TOLERANCE if self._has_whole else TOLERANCE
        for kind in ("primal", "dual"):
            highs.setOptionValue(f"{kind}_feasibility_tolerance", tolerance)
        if np.isfinite(time_limit):
            highs.setOptionValue("time_limit", max(float(time_limit), 0.0))
        highs.passModel(self._build_program(highspy))
        if start is not None:
            highs.setSolution(len(start[0]), start[0].astype(np.int32), start[1])
        highs.run()
        statuses = highspy.HighsModelStatus
        infeasible = (
            statuses.kInfeasible,
            statuses.kUnboundedOrInfeasible,
        )  # no program here is unbounded
        handled = (statuses.kOptimal, statuses.kTimeLimit, *infeasible)
        for option, value in _RETRIES:
            if highs.getModelStatus() in handled:
                break
            highs.setOptionValue(option, value)
            highs.run()
        status, info = highs.getModelStatus(), highs.getInfo()
        if status in infeasible:
            return None
        if status not in handled:
            raise FpbenchError(f"HiGHS gave up: {highs.modelStatusToString(status)}")
        proven = status == statuses.kOptimal
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        solution = highs.getSolution()
        values = np.array(solution.col_value) if feasible else None
        whole = self._has_whole
        bound = info.mip_dual_bound if whole else info.objective_function_value
        prices = None if whole else np.array(solution.row_dual)
        return HighsAnswer(values, float(bound) if whole or proven else -np.inf, proven, prices)

    @property
    def _has_whole(self) -> bool:
        return any(kind.any() for *_, kind in self._columns)

    def _build_program(self, highspy: Any) -> Any:
        low, high, cost, whole = (
            np.concatenate(parts) for parts in zip(*self._columns, strict=True)
        )
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self._count, len(self._rows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, low, high
        lp.row_lower_ = np.array([row[2] for row in self._rows], dtype=np.float64)
        lp.row_upper_ = np.array([row[3] for row in self._rows], dtype=np.float64)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        ends = np.cumsum([0, *(len(row[0]) for row in self._rows)])
        lp.a_matrix_.start_ = ends.astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate([row[0] for row in self._rows]).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate([row[1] for row in self._rows])
        if whole.any():
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in whole]
        return lp


_RETRIES = (("simplex_strategy", 4), ("presolve", "off"))
"""Options that are added in turn if HiGHS gives up. The dual simplex method may fail on costs of
very different size, the primal (4) does not. Presolve of HiGHS 1.16 ends some small infeasible
programs with an error."""
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "mip_abs_gap": 0.0,
    "mip_feasibility_tolerance": WHOLE_TOLERANCE,
}


@cache
def swallow_banner() -> None:
    """Create the first HiGHS of this process with its banner discarded.

    HiGHS 1.16 prints it to the standard output of C before any option can be set.
    """
    import highspy

    if os.name != "posix":
        return
    sys.stdout.flush()
    try:
        output = os.dup(1)
    except OSError:  # there is no standard output
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        highspy.Highs()  # type: ignore[no-untyped-call]
        ctypes.CDLL(None).fflush(None)  # C keeps what goes to a pipe or a file for a while
    finally:
        os.dup2(output, 1)
        os.close(output)
        os.close(nowhere)
