"""One linear program, solved by an interior-point method in a process of its own.

The method does not look at the clock within a factorisation, which may take minutes; a process can
be ended. This file is its program, and reads arrays from its input.
"""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """An approximate solution."""

    x: Floats
    """(columns,)."""
    duals: Floats
    """(rows,)."""


def maximise(
    cost: Floats, matrix: csr_array, low: Floats, high: Floats, most: Floats, seconds: float
) -> Solution | None:
    """Maximise cost @ x with low <= matrix @ x <= high and 0 <= x <= most; None without success.

    Interior: of many solutions it returns one with as few numbers at their ends as possible.

    Raises
    ------
    RuntimeError
        If the process cannot solve anything, for want of a package for instance.
    """
    if seconds <= 0:
        return None
    question = io.BytesIO()
    np.savez(
        question, cost=cost, low=low, high=high, most=most,
        indptr=matrix.indptr, indices=matrix.indices, data=matrix.data,
    )  # fmt: skip
    command = [sys.executable, "-P", __file__]
    try:
        done = subprocess.run(
            command, input=question.getvalue(), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode > 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"a linear program was not solved: {''.join(last)}")
    if not done.stdout:
        return None
    with np.load(io.BytesIO(done.stdout)) as answer:
        return Solution(answer["x"], answer["duals"])


def _solve(arrays: dict[str, NDArray[Any]]) -> Solution | None:
    """Solve what stands in arrays."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False, "threads": 1, "solver": "ipm", "run_crossover": "off",
        # Presolve takes longer over dependent rows than the rest of the work.
        "presolve": "off", "ipm_optimality_tolerance": 1e-6,
    }  # fmt: skip
    for name, value in options.items():
        highs.setOptionValue(name, value)
    program: Any = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(arrays["cost"]), len(arrays["low"])
    program.col_cost_ = -arrays["cost"]
    program.col_lower_, program.col_upper_ = np.zeros(len(arrays["cost"])), arrays["most"]
    program.row_lower_, program.row_upper_ = arrays["low"], arrays["high"]
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = arrays["indptr"].astype(np.int32)
    program.a_matrix_.index_ = arrays["indices"].astype(np.int32)
    program.a_matrix_.value_ = arrays["data"].astype(np.float64)
    highs.passModel(program)
    highs.run()
    status = highs.getModelStatus()
    if status not in {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown}:
        return None
    solution = highs.getSolution()
    if not (len(solution.col_value) and len(solution.row_dual)):
        return None
    # Those of the minimum of -cost @ x, as HiGHS was asked, have the other sign.
    return Solution(np.array(solution.col_value), -np.array(solution.row_dual))


if __name__ == "__main__":
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as asked:
        solved = _solve(dict(asked))
    if solved is not None:
        answer = io.BytesIO()
        np.savez(answer, x=solved.x, duals=solved.duals)
        sys.stdout.buffer.write(answer.getvalue())
