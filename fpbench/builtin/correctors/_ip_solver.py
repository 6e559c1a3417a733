"""A program in pyomo, and the solvers that pyomo knows."""

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

from fpbench import FpbenchError, InputError, SolverStatus
from fpbench.base import nearest
from fpbench.builtin.correctors._ip_program import Line, Program

_TOLERANCE = 1e-9
"""Of feasibility and integrality."""


_FAR = 1e3
"""Factor from which a wrong unit of costs shows."""


@dataclass(frozen=True)
class Answer:
    """What a solver says."""

    status: SolverStatus
    values: NDArray[np.float64] | None = None
    """Of every column; None if it has no solution."""
    bound: float | None = None
    """No solution costs less, it says."""


@dataclass(frozen=True)
class _Known:
    """A solver whose options are known: it stops at no gap, uses one thread, keeps to the time."""

    name: str
    """Pyomo's name for it."""
    remedy: str
    """How to get it."""
    time: str
    """Its option for seconds."""
    options: dict[str, float | str]
    whole_seconds: bool = False


# Presolve compares people with people: it takes quadratic time, in which HiGHS does not look at
# the clock, and finds nothing. Its tolerances are left as they are: with one of 1e-9 for whole
# numbers HiGHS 1.15 pruned an optimum.
_HIGHS = _Known("appsi_highs", "pip install highspy", "time_limit", {
    "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0,
    "presolve": "off", "mip_root_presolve_only": True,
})  # fmt: skip
_GLPK = _Known("glpk", "apt install glpk-utils, or conda install -c conda-forge glpk", "tmlim", {
    "mipgap": 0.0,
}, whole_seconds=True)  # fmt: skip
_CBC = _Known("cbc", "apt install coinor-cbc, or conda install -c conda-forge coin-or-cbc", "sec", {
    "ratio": 0.0, "allow": 0.0, "integerT": _TOLERANCE, "primalT": _TOLERANCE,
})  # fmt: skip
_SCIP = _Known("scip", "conda install -c conda-forge scip", "limits/time", {
    "limits/gap": 0.0, "limits/absgap": 0.0, "lp/threads": 1, "numerics/feastol": _TOLERANCE,
})  # fmt: skip


def _gurobi(name: str) -> _Known:
    remedy = "pip install gurobipy, and a licence" if name != "gurobi" else "install Gurobi"
    return _Known(name, remedy, "TimeLimit", {
        "Threads": 1, "MIPGap": 0.0, "MIPGapAbs": 0.0,
        "IntFeasTol": _TOLERANCE, "FeasibilityTol": _TOLERANCE,
    })  # fmt: skip


def _cplex(name: str) -> _Known:
    remedy = "pip install 'fpbench[cp]'" if name != "cplex" else "install CPLEX Optimization Studio"
    return _Known(name, remedy, "timelimit", {
        "threads": 1, "mip_tolerances_mipgap": 0.0, "mip_tolerances_absmipgap": 0.0,
        "mip_tolerances_integrality": _TOLERANCE, "simplex_tolerances_feasibility": _TOLERANCE,
    })  # fmt: skip


_KNOWN: dict[str, _Known] = {
    "highs": _HIGHS,
    **{known.name: known for known in (_HIGHS, _GLPK, _CBC, _SCIP)},
    **{name: _gurobi(name) for name in ("gurobi", "gurobi_direct", "appsi_gurobi")},
    **{name: _cplex(name) for name in ("cplex", "cplex_direct", "appsi_cplex")},
}


def check_solver(name: str) -> str:
    """The name of a solver that pyomo knows, installed or not.

    Raises
    ------
    InputError
        Suggests the nearest one.
    """
    if name in _KNOWN or find_spec("pyomo") is None:
        return name
    SolverFactory = _pyomo().SolverFactory

    names = {n for n in SolverFactory if not n.startswith("_") and "persistent" not in n}
    if name not in names:
        raise InputError(f"unknown solver; {nearest(name, names | set(_KNOWN))}")
    return name


def solve(program: Program, name: str, deadline: float) -> Answer:
    """Minimise; on one thread and to no gap, if the solver's options are known.

    Parameters
    ----------
    program
        What to solve.
    name
        Of the solver.
    deadline
        On the clock of `time.perf_counter`.

    Raises
    ------
    FpbenchError
        If the solver is not installed, refuses the program, or gives up.
    """
    answer, tried = _solve(program, name, deadline), set[float]()
    while answer.values is not None:
        moved = program.costs[answer.values[: len(program.costs)] > 0.5]
        dearest = float(moved.max(initial=0.0))
        tried.add(program.unit)
        # Whoever is dearest decides: what is far below the unit is nothing to a solver.
        if not dearest or dearest in tried or 1 / _FAR < dearest / program.unit < _FAR:
            break
        program = replace(program, decisive=dearest)
        again = _solve(program, name, deadline)
        if again.status is SolverStatus.TIMEOUT:  # so nothing is proven of what was found before
            return replace(answer, status=SolverStatus.FEASIBLE, bound=0.0)
        answer = again
    return answer


def _solve(program: Program, name: str, deadline: float) -> Answer:
    """The same, with costs in the unit that they are in."""
    from pyomo.common.log import LoggingIntercept
    from pyomo.common.tee import capture_output
    from pyomo.common.tempfiles import TempfileManager

    if time.perf_counter() > deadline:
        return Answer(SolverStatus.TIMEOUT)
    if not len(program.costs) and not program.others:  # of nothing, solvers say nothing
        if all(line.low <= 0 <= line.high for line in program.lines):
            return Answer(SolverStatus.OPTIMAL, np.zeros(0), 0.0)
        return Answer(SolverStatus.INFEASIBLE)
    model, log = translate(program), io.StringIO()
    # Some solvers write to the file descriptors, whatever they are told.
    with LoggingIntercept(log, "pyomo"), TempfileManager, capture_output(log, capture_fd=True):
        try:
            results = _run(_available(name), name, model, deadline)
            if results is None:
                return Answer(SolverStatus.TIMEOUT)
            return _answer(program, model, results, name in _KNOWN)
        except FpbenchError:
            raise
        except Exception as error:  # every solver has its own, from missing licences to crashes
            said = " ".join(f"{error} {log.getvalue()}".split())
            raise FpbenchError(f"solver {name!r} failed: {_explained(said)}") from error


def _available(name: str) -> Any:
    """The solver, ready to be used."""
    SolverFactory = _pyomo().SolverFactory

    known = _KNOWN.get(name)
    # Without this, variables are handed over as they turn up, a few at a time.
    options = {"only_child_vars": True} if _appsi(known) else {}
    solver = SolverFactory(known.name if known else name, **options)
    if not solver.available(exception_flag=False):
        remedy = known.remedy if known else "install it so that its executable is on PATH"
        other = "" if known is _HIGHS else ", or use solver = 'highs'"
        raise FpbenchError(f"solver {name!r} is not installed here: {remedy}{other}")
    return solver


def _pyomo() -> Any:
    """Everything of pyomo.

    If docplex is imported already, pyomo 6.10 looks into it before it is itself complete, and
    fails; one that is not imported yet is left alone.
    """
    if find_spec("pyomo") is None:
        raise FpbenchError("corrector 'ip' needs pyomo: pip install 'fpbench[ip]'")
    hidden = [name for name in sys.modules if name.partition(".")[0] == "docplex"]
    modules = {name: sys.modules.pop(name) for name in hidden}
    try:
        from pyomo import environ
    finally:
        sys.modules.update(modules)
    return environ


def _appsi(known: _Known | None) -> bool:
    """Whether it is one of pyomo's interfaces that keep a model."""
    return known is not None and known.name.startswith("appsi_")


def translate(program: Program) -> Any:
    """The program as a pyomo model: linear expressions from lists, nothing taken apart."""
    from pyomo.common.gc_manager import PauseGC
    from pyomo.core.expr.numeric_expr import LinearExpression

    pyomo = _pyomo()
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
        given: Line = program.lines[number]
        low, high = (b if math.isfinite(b) else None for b in (given.low, given.high))
        return low, total(given.values, given.columns), high

    with PauseGC():  # which would go through all these terms again and again
        model.cost = pyomo.Objective(expr=total(program.scaled_costs, slice(len(people))))
        model.lines = pyomo.Constraint(range(len(program.lines)), rule=line)
    return model


def _run(solver: Any, name: str, model: Any, deadline: float) -> Any:
    """What the solver makes of a model; None if no time is left."""
    from pyomo.common.gc_manager import PauseGC

    known = _KNOWN.get(name)
    if _appsi(known):
        # This kind is handed the model before it is asked to solve it, and that takes time too.
        for check in solver.update_config:
            solver.update_config[check] = False
        if time.perf_counter() < deadline:
            with PauseGC():
                solver.set_instance(model)
    left = deadline - time.perf_counter()
    if left <= 0:
        return None
    if known is None:
        return solver.solve(model, load_solutions=False, timelimit=left)
    solver.options.update(known.options)
    solver.options[known.time] = math.ceil(left) if known.whole_seconds else left
    return solver.solve(model, load_solutions=False)


def _answer(program: Program, model: Any, results: Any, known: bool) -> Answer:
    """What the results say."""
    from pyomo.opt import TerminationCondition as Ended

    ended = results.solver.termination_condition
    if ended in (Ended.infeasible, Ended.infeasibleOrUnbounded):  # costs are never below 0
        return Answer(SolverStatus.INFEASIBLE)
    if ended in (Ended.error, Ended.unbounded, Ended.invalidProblem, Ended.internalSolverError):
        raise FpbenchError(f"the solver gave up: {ended}; {results.solver.message}")
    bound = _number(results.problem.lower_bound)
    bound = None if bound is None else bound * program.unit
    if not len(results.solution):
        return Answer(SolverStatus.TIMEOUT, bound=bound)
    model.solutions.load_from(results)
    columns = [*model.people.values(), *model.others.values()]
    values = np.array([column.value or 0.0 for column in columns])
    # For example a solver of continuous programs, which does not know of whole numbers.
    must_be_whole = np.append(program.whole, np.ones(len(program.others), dtype=bool))
    if (np.abs(values - np.rint(values))[must_be_whole] > 1e-3).any():
        raise FpbenchError("the solver does not keep whole numbers whole")
    # A solver whose options are not known may stop at a gap of its own, and call that optimal.
    cost = float(program.costs @ values[: len(program.costs)])
    no_gap = known or (bound is not None and cost - bound <= 1e-6 * cost)
    optimal = ended == Ended.optimal and no_gap
    return Answer(SolverStatus.OPTIMAL if optimal else SolverStatus.FEASIBLE, values, bound)


def _number(value: Any) -> float | None:
    """A finite number, or None for what solvers say when they have none."""
    try:
        return float(value) if math.isfinite(value) else None
    except TypeError:
        return None


def _explained(said: str) -> str:
    """What a solver said, shortened, with the remedy if it is known."""
    if "1016" in said or "size limits" in said.lower() or "size-limited" in said.lower():
        return (
            "the problem is larger than its licence allows (CPLEX Community Edition: 1,000 "
            "variables and constraints); install a licensed edition, or use solver = 'highs'"
        )
    return said[:300]
