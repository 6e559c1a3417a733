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
from pathlib import Path
from typing import Any, NamedTuple

from fpbench import FpbenchError, SolverStatus
from fpbench.base import tell_extra

VARIABLE = "FPBENCH_CPOPTIMIZER"
"""Environment variable with the path of the executable, which disables the search."""

_INSTALL = tell_extra("cp")
_START = 20.0
"""Seconds within which the engine must report its version."""
_GRACE = 30.0
"""Seconds past its time limit after which the engine is killed: it is expected to stop itself."""
_STUDIOS = ("/opt/ibm/ILOG", "/Applications", "C:/Program Files/IBM/ILOG")
"""Default installation folders of CPLEX Optimization Studio."""
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
    where: str
    """How it was found."""

    @classmethod
    def find(cls) -> CpEngine:
        """The configured engine, or else the first one found.

        `FPBENCH_CPOPTIMIZER` configures it. Otherwise the search covers the scripts of this
        Python (the `cplex` wheel installs it there, off PATH unless the environment is activated),
        PATH, and full installations, newest first.

        Raises CpError, with the command that installs it, if there is none.
        """
        if named := os.environ.get(VARIABLE):
            if path := shutil.which(named):
                return cls(os.path.abspath(path), VARIABLE)
            raise CpError(
                f"{VARIABLE} names {named!r}, which is not a program: set it to the path of "
                f"cpoptimizer, or unset it"
            )
        for folder, where in _list_folders():
            if path := shutil.which("cpoptimizer", path=folder):
                return cls(os.path.abspath(path), where)
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
                f"to a search space of 2^1000: {_explain_full_edition()}, or use corrector 'exact'"
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


def _list_folders() -> Iterator[tuple[str, str]]:
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        yield sysconfig.get_path("scripts", scheme), "scripts of this Python"
    yield os.environ.get("PATH", ""), "PATH"
    for folder in _find_full_installations():
        yield folder, "full installation"


def _find_full_installations() -> list[str]:
    """Folders of cpoptimizer in all CPLEX Optimization Studios, newest first."""
    named = {
        value: name for name, value in os.environ.items() if name.startswith("CPLEX_STUDIO_DIR")
    }
    usual = {str(path): path.name for root in _STUDIOS for path in Path(root).glob("CPLEX_Studio*")}
    studios = [*sorted(named, key=lambda p: _read_release(named[p]), reverse=True),
               *sorted(usual, key=lambda p: _read_release(usual[p]), reverse=True)]  # fmt: skip
    return [str(folder) for path in studios for folder in Path(path).glob("cpoptimizer/bin/*")]


def _read_release(name: str) -> tuple[int, int]:
    """Release at the end of a name: 12.10 for CPLEX_STUDIO_DIR1210, 22.1 for CPLEX_Studio221."""
    digits = re.search(r"(\d{2})(\d*)$", name)
    return (int(digits[1]), int(digits[2] or 0)) if digits else (0, 0)


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


def _explain_full_edition() -> str:
    """How to use the full edition."""
    for folder in _find_full_installations():
        if path := shutil.which("cpoptimizer", path=folder):
            return f"set {VARIABLE}={path}, which is installed here"
    return f"install the full edition (free for academia) and set {VARIABLE} to its cpoptimizer"
