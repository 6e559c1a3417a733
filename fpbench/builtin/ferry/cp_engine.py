"""CP Optimizer: its path, its version, and its solution of a model."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fpbench import FpbenchError
from fpbench.base import tell_extra
from fpbench.plugin import SolverStatus

VARIABLE = "FPBENCH_CPOPTIMIZER"
"""Environment variable with the path of the executable, which disables the search."""

_INSTALL = tell_extra("cp")
_START = 20.0
"""Seconds within which the engine must report its version."""
_GRACE = 30.0
"""Seconds past its time limit after which the engine is killed: it is expected to stop itself."""
_STATUSES = {
    ("Optimal", "SearchHasNotBeenStopped"): SolverStatus.OPTIMAL,
    ("Infeasible", "SearchHasNotBeenStopped"): SolverStatus.INFEASIBLE,
    ("Feasible", "SearchStoppedByLimit"): SolverStatus.FEASIBLE,
    ("Unknown", "SearchStoppedByLimit"): SolverStatus.TIMEOUT,
}
"""Status by CP Optimizer's solve status and stop cause."""


class CpError(FpbenchError):
    """CP Optimizer is missing or failed; the message says how to fix that."""


class CpEngine(NamedTuple):
    """An executable of CP Optimizer."""

    path: str

    @classmethod
    def find(cls) -> CpEngine:
        """The configured engine, or else the first one found.

        `FPBENCH_CPOPTIMIZER` configures it. Otherwise it is on PATH, or among the scripts of this
        Python, where the `cplex` wheel installs it: off PATH unless the environment is activated.

        Raises CpError, with the command that installs it, if there is none.
        """
        if named := os.environ.get(VARIABLE):
            if path := shutil.which(named):
                return cls(os.path.abspath(path))
            raise CpError(
                f"{VARIABLE} names {named!r}, which is not a program: set it to the path of "
                f"cpoptimizer, or unset it"
            )
        folders = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
        if path := shutil.which("cpoptimizer", path=folders):
            return cls(os.path.abspath(path))
        raise CpError(f"CP Optimizer is not installed here: {_INSTALL}")

    def version(self) -> str:
        """The version that the program reports.

        Raises CpError if it is not CP Optimizer, by its answer.
        """
        try:
            done = subprocess.run(
                [self.path, "-angel"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_START,
                check=False,
            )
        except OSError as error:
            raise self.failed(str(error)) from None
        except subprocess.TimeoutExpired:
            raise self.failed(f"did not answer in {_START:g} s") from None
        version = re.search(rb'"SolverVersion"\s*:\s*"([^"]*)"', done.stdout)
        if version is None:
            output = done.stdout.decode(errors="replace")
            raise self.failed(f"ended with code {done.returncode} and wrote {output!r}")
        return version[1].decode(errors="replace")

    def run(self, model: Any, seconds: float) -> tuple[SolverStatus, Any]:
        """Status and docplex's `CpoSolveResult` of a model: one worker, no tolerance, no log.

        `model`: of `docplex.cp`. `seconds`: time limit. An engine that exceeds it is killed a
        little later. The solution is deterministic.

        Raises CpError if the engine crashes, gives an unreadable answer, has no licence, or refuses
        the model for its size.
        """
        result, failure = _attempt(self, model, seconds)
        if result is None:
            _drop_start_timer(model)
            raise self.failed(failure)
        end = result.get_solve_status(), result.get_stop_cause()
        if end not in _STATUSES:
            raise self.failed(f"ended with {end}")
        return _STATUSES[end], result

    def failed(self, problem: str) -> CpError:
        """The error for a failure, with its remedy."""
        problem = " ".join(problem.split()).rstrip(".")
        name = f"CP Optimizer ({self.path})"
        if "Community Edition" in problem:
            return CpError(
                f"the problem is too large for the Community Edition of {name}, which is limited "
                f"to a search space of 2^1000: install the full edition (free for academia) and "
                f"set {VARIABLE} to its cpoptimizer, or use corrector 'exact'"
            )
        if "licen" in problem.lower():
            return CpError(
                f"{name} has no valid licence: {problem}; renew it, or use the Community Edition: "
                f"{_INSTALL}, with {VARIABLE} unset"
            )
        return CpError(
            f"{name} failed: {problem}; `fpbench doctor` tests it, `pip install --force-reinstall "
            f"cplex` repairs that of the extra `cp`, and {VARIABLE} selects another"
        )


def _attempt(engine: CpEngine, model: Any, seconds: float) -> tuple[Any, str]:
    """The result, or the failure as text: docplex's exceptions keep the process alive."""
    from docplex.cp.solver.solver import CpoSolver

    try:
        with (
            CpoSolver(model, execfile=engine.path, TimeLimit=seconds, **_make_settings()) as solver,
            _kill_late(solver.agent.process, seconds + _GRACE),
        ):
            return solver.solve(), ""
    except Exception as error:
        return None, str(error)


def _make_settings() -> dict[str, Any]:
    return {
        "Workers": 1,
        "RandomSeed": 0,
        "OptimalityTolerance": 0,
        "RelativeOptimalityTolerance": 0,
        "LogVerbosity": "Quiet",
        "agent": "local",
        "process_start_timeout": _START,
        "log_output": io.StringIO(),  # without one, errors are written to standard output
        "trace_log": False,
        "add_log_to_solution": False,
        "listeners": None,
        "add_source_location": False,
    }


@contextmanager
def _kill_late(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kill a process after these seconds, and on exit: docplex waits for it to read."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if late.is_set():
            raise TimeoutError(
                f"ran past its time limit and was killed after {seconds:g} s"
            ) from None
        raise
    finally:
        timer.cancel()
        process.kill()


def _drop_start_timer(model: Any) -> None:
    """Stop the timer that docplex leaves running if it could not start the process."""
    for thread in threading.enumerate():
        agent = getattr(getattr(thread, "function", None), "__self__", None)
        if isinstance(thread, threading.Timer) and getattr(agent, "model", None) is model:
            thread.cancel()
