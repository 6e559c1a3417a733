"""Linear programs, solved by an interior-point method in a process of its own.

The method does not check the time within a factorisation, which may take minutes; a process can be
killed. This file is that process's program: it reads arrays from its input until that ends, and
writes the solution of each program.
"""

from __future__ import annotations

import io
import math
import os
import struct
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

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


class LinearSolver:
    """A process that solves linear programs, from the first one on; a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.started_by = -math.inf
        """Until when the process may start, by `time.perf_counter`: the time that it takes to start
        is not taken from the program that happens to be the first, where there is more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def maximise(
        self,
        cost: Floats,
        matrix: csr_array,
        low: Floats,
        high: Floats,
        most: Floats,
        deadline: float,
        *,
        corner: bool = False,
    ) -> Solution | None:
        """Maximise cost @ x with low <= matrix @ x <= high, 0 <= x <= most; None without success.

        Interior: of many solutions it returns one with as few numbers at their bounds as possible.

        `cost`, `matrix`, `low`, `high`, `most`: the program: (columns,), (rows, columns), (rows,),
        (rows,), (columns,). `deadline`: by `time.perf_counter`; the process is ended then.
        `corner`: return a corner instead, by the simplex method: as many numbers and multipliers as
        possible are at their bounds or 0.

        Raises RuntimeError if the process cannot solve anything, for example if a package is
        missing.
        """
        left = deadline - time.perf_counter()
        if left <= 0:
            return None
        question = io.BytesIO()
        np.savez(
            question, cost=cost, low=low, high=high, most=most, corner=np.array(corner),
            indptr=matrix.indptr, indices=matrix.indices, data=matrix.data,
        )  # fmt: skip
        if self._process is None:
            latest = max(deadline, self.started_by)
            command = [sys.executable, "-P", __file__]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
            if self._exchange(self._process, None, latest) is None:  # what it says when it is ready
                return None
            deadline = min(time.perf_counter() + left, latest)
        answer = self._exchange(self._process, question.getvalue(), deadline)
        if not answer:
            return None
        with np.load(io.BytesIO(answer)) as arrays:
            return Solution(arrays["x"], arrays["duals"])

    def _exchange(
        self, process: subprocess.Popen[bytes], question: bytes | None, deadline: float
    ) -> bytes | None:
        """What the process says, perhaps to a question; None if it has ended, or is ended then."""
        assert process.stdin is not None and process.stdout is not None
        left = max(deadline - time.perf_counter(), 0.0)
        timer = threading.Timer(min(left, threading.TIMEOUT_MAX), process.kill)
        timer.start()
        try:
            if question is not None:
                _send(process.stdin, question)
            answer = _receive(process.stdout)
        except BrokenPipeError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            self._process = None
            error = process.communicate()[1]
            if process.returncode > 0:
                last = error.decode(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"a linear program was not solved: {''.join(last)}")
        return answer


def _send(file: IO[bytes], content: bytes) -> None:
    file.write(struct.pack("<q", len(content)) + content)
    file.flush()


def _receive(file: IO[bytes]) -> bytes | None:
    """The next object sent; None at the end of the file."""
    head = file.read(8)
    if len(head) < 8:
        return None
    content = file.read(size := struct.unpack("<q", head)[0])
    return content if len(content) == size else None


def _solve(arrays: dict[str, NDArray[Any]]) -> Solution | None:
    """Solve the program that the arrays hold."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False, "threads": 1, "run_crossover": "off",
        "solver": "simplex" if arrays.get("corner", False) else "ipm",
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
    # Those of the minimum of -cost @ x, as HiGHS is asked for, have the other sign.
    return Solution(np.array(solution.col_value), -np.array(solution.row_dual))


if __name__ == "__main__":
    # Answers have their own pipe, as a solver may print against its options.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import highspy  # noqa: F401, which takes most of the time to start

    _send(answers, b"")
    while (request := _receive(sys.stdin.buffer)) is not None:
        with np.load(io.BytesIO(request)) as program_:
            solved = _solve(dict(program_))
        answer_ = io.BytesIO()
        if solved is not None:
            np.savez(answer_, x=solved.x, duals=solved.duals)
        _send(answers, answer_.getvalue())
