"""A program in pyomo, and pyomo's solvers."""

from __future__ import annotations

import io
import math
import sys
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import FpbenchError, InputError
from fpbench.base import suggest_name, tell_extra
from fpbench.builtin.ferry.ip_model import IntegerProgram, ProgramRow
from fpbench.plugin import SolverStatus

_FAR = 1e3
"""Error factor of the unit of costs from which the program is solved again."""


@dataclass(frozen=True)
class SolverAnswer:
    """The result of a solver."""

    status: SolverStatus
    values: NDArray[np.float64] | None = None
    """Value of every column; None if there is no solution."""
    bound: float | None = None
    """Lower bound of the cost of every solution, as the solver reports it."""


_HIGHS = {
    "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0,
    "presolve": "off", "mip_root_presolve_only": True,
}  # fmt: skip
"""Options of HiGHS for one thread and no gap.

Its presolve compares people with each other, in quadratic time, ignores the time limit and finds
nothing. With an integrality tolerance of 1e-9 HiGHS 1.15 pruned an optimum.
"""


def check_solver(name: str) -> str:
    """The name of a solver that pyomo knows, installed or not.

    Raises InputError, with the nearest name.
    """
    if name != "highs" and find_spec("pyomo") is not None:
        factory = _import_pyomo().SolverFactory
        names = {n for n in factory if not n.startswith("_") and "persistent" not in n}
        if name not in names:
            raise InputError(f"unknown solver; {suggest_name(name, names)}")
    return name


def solve(program: IntegerProgram, name: str, deadline: float) -> SolverAnswer:
    """The cheapest solution; HiGHS on one thread and without a gap.

    `deadline`: on the clock of `time.perf_counter`.

    Raises FpbenchError if the solver is not installed, refuses the program, or gives up.
    """
    answer, tried = _solve(program, name, deadline), set[float]()
    while answer.values is not None:
        moved = program.costs[answer.values[: len(program.costs)] > 0.5]
        dearest = float(moved.max(initial=0.0))
        tried.add(program.unit)
        # The most expensive column decides: a solver ignores costs far below the unit.
        if not dearest or dearest in tried or 1 / _FAR < dearest / program.unit < _FAR:
            break
        program = replace(program, decisive=dearest)
        again = _solve(program, name, deadline)
        if again.status is SolverStatus.TIMEOUT:  # the first answer is not proven
            return replace(answer, status=SolverStatus.FEASIBLE, bound=0.0)
        answer = again
    return answer


def _solve(program: IntegerProgram, name: str, deadline: float) -> SolverAnswer:
    """The solution, with costs in the program's unit."""
    from pyomo.common.log import LoggingIntercept
    from pyomo.common.tee import capture_output
    from pyomo.common.tempfiles import TempfileManager

    if time.perf_counter() > deadline:
        return SolverAnswer(SolverStatus.TIMEOUT)
    if not len(program.costs) and not program.others:  # solvers refuse a program without columns
        if all(line.low <= 0 <= line.high for line in program.lines):
            return SolverAnswer(SolverStatus.OPTIMAL, np.zeros(0), 0.0)
        return SolverAnswer(SolverStatus.INFEASIBLE)
    model, log = translate(program), io.StringIO()
    # Some solvers write to the file descriptors, whatever their options.
    with LoggingIntercept(log, "pyomo"), TempfileManager, capture_output(log, capture_fd=True):
        try:
            results = _run(_make_solver(name), name, model, deadline)
            if results is None:
                return SolverAnswer(SolverStatus.TIMEOUT)
            return _read_answer(program, model, results, known=name == "highs")
        except FpbenchError:
            raise
        except Exception as error:  # each solver raises its own, from missing licences to crashes
            message = " ".join(f"{error} {log.getvalue()}".split())
            other = "" if name == "highs" else "; or use solver = 'highs'"
            raise FpbenchError(f"solver {name!r} failed: {message[:300]}{other}") from error


def _make_solver(name: str) -> Any:
    """Pyomo's interface to a solver; FpbenchError if the solver is not installed."""
    interface = "appsi_highs" if name == "highs" else name
    # Without the option, appsi passes variables as they occur, a few at a time.
    options = {"only_child_vars": True} if interface.startswith("appsi_") else {}
    solver = _import_pyomo().SolverFactory(interface, **options)
    if not solver.available(exception_flag=False):
        remedy = "pip install highspy"
        if name != "highs":
            remedy = "install it (an executable must be on PATH), or use solver = 'highs'"
        raise FpbenchError(f"solver {name!r} is not installed here: {remedy}")
    return solver


def _import_pyomo() -> Any:
    """`pyomo.environ`.

    If docplex is already imported, pyomo 6.10 inspects it while itself incomplete, and fails; it
    ignores a docplex that is not imported.
    """
    if find_spec("pyomo") is None:
        raise FpbenchError(f"corrector 'ip' needs pyomo: {tell_extra('ip')}")
    hidden = [name for name in sys.modules if name.partition(".")[0] == "docplex"]
    modules = {name: sys.modules.pop(name) for name in hidden}
    try:
        from pyomo import environ
    finally:
        sys.modules.update(modules)
    return environ


def translate(program: IntegerProgram) -> Any:
    """The program as a pyomo model, with linear expressions built from lists."""
    from pyomo.common.gc_manager import PauseGC
    from pyomo.core.expr.numeric_expr import LinearExpression

    pyomo = _import_pyomo()
    model, whole = pyomo.ConcreteModel(), program.whole.tolist()
    model.people = pyomo.Var(
        range(len(whole)),
        domain=lambda _, i: pyomo.Binary if whole[i] else pyomo.UnitInterval,
    )
    model.others = pyomo.Var(
        range(len(program.others)),
        domain=pyomo.Integers,
        bounds=lambda _, i: program.others[i],
    )
    people = list(model.people.values())
    columns = np.array([*people, *model.others.values()], dtype=object)

    def total(values: NDArray[np.float64], at: Any) -> Any:
        return LinearExpression(
            constant=0.0, linear_coefs=values.tolist(), linear_vars=columns[at].tolist()
        )

    def line(_: Any, number: int) -> tuple[float | None, Any, float | None]:
        row: ProgramRow = program.lines[number]
        low, high = (b if math.isfinite(b) else None for b in (row.low, row.high))
        return low, total(row.values, row.columns), high

    with PauseGC():  # which would traverse all these terms repeatedly
        model.cost = pyomo.Objective(expr=total(program.scaled_costs, slice(len(people))))
        model.lines = pyomo.Constraint(range(len(program.lines)), rule=line)
    return model


def _run(solver: Any, name: str, model: Any, deadline: float) -> Any:
    """Pyomo's results for a model; None if no time remains."""
    from pyomo.common.gc_manager import PauseGC

    keeps_model = hasattr(solver, "update_config")
    if keeps_model:
        # Passing the model to the solver takes time too.
        for check in solver.update_config:
            solver.update_config[check] = False
        if time.perf_counter() < deadline:
            with PauseGC():
                solver.set_instance(model)
    remaining = deadline - time.perf_counter()
    if remaining <= 0:
        return None
    if name == "highs":
        solver.options.update(_HIGHS)
    # Executables may accept whole seconds only.
    limit = remaining if keeps_model else math.ceil(remaining)
    return solver.solve(model, load_solutions=False, timelimit=limit)


def _read_answer(program: IntegerProgram, model: Any, results: Any, *, known: bool) -> SolverAnswer:
    """The answer in the results, proven only if the solver allows no gap."""
    from pyomo.opt import TerminationCondition as Ended

    ended = results.solver.termination_condition
    if ended in (Ended.infeasible, Ended.infeasibleOrUnbounded):  # costs are never below 0
        return SolverAnswer(SolverStatus.INFEASIBLE)
    if ended in (Ended.error, Ended.unbounded, Ended.invalidProblem, Ended.internalSolverError):
        raise FpbenchError(f"the solver gave up: {ended}; {results.solver.message}")
    bound = results.problem.lower_bound  # without one: None, infinite, or pyomo's `undefined`
    finite = isinstance(bound, int | float) and math.isfinite(bound)
    bound = bound * program.unit if finite else None
    if not len(results.solution):
        return SolverAnswer(SolverStatus.TIMEOUT, bound=bound)
    model.solutions.load_from(results)
    columns = [*model.people.values(), *model.others.values()]
    values = np.array([column.value or 0.0 for column in columns])
    # For example a solver of continuous programs, which ignores integrality.
    must_be_whole = np.append(program.whole, np.ones(len(program.others), dtype=bool))
    if (np.abs(values - np.rint(values))[must_be_whole] > 1e-3).any():
        raise FpbenchError("the solver returned fractions for whole-number variables")
    # Another solver than HiGHS may stop at its own gap, and call that optimal.
    cost = float(program.costs @ values[: len(program.costs)])
    no_gap = known or (bound is not None and cost - bound <= 1e-6 * cost)
    optimal = ended == Ended.optimal and no_gap
    return SolverAnswer(SolverStatus.OPTIMAL if optimal else SolverStatus.FEASIBLE, values, bound)
