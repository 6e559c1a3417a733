"""The efficient model of Ferry et al. for CP-SAT (OR-Tools), to compare fpbench's correctors with.

Net numbers of people who leave each cell, element constraints on the prefix costs, the rows of the
claim as they stand. CP-SAT knows whole numbers only: costs are rounded to a 10^-9 of the greatest.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from fpbench import Correction, Problem
from fpbench.correction import CountedProblem
from fpbench.plugin import SolverStatus

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import IntVar


def solve_cp_sat(problem: Problem, time_limit: float) -> Correction:
    """Correct a guess under claims that are rows of counts; one thread."""
    from ortools.sat.python import cp_model

    started = time.perf_counter()
    counted, model = CountedProblem(problem), cp_model.CpModel()
    now, movable = counted.counts, counted.movable
    shape = now.shape
    prefix = {(j, k): counted.prefix_costs(j, k) for j, k in np.ndindex(*shape) if movable[j, k]}
    unit = max((float(costs[-1]) for costs in prefix.values()), default=1.0) / 10**9
    counts: dict[tuple[int, int], IntVar] = {}
    terms = []
    for j, k in np.ndindex(*shape):
        size = int(counted.classes.sizes[j])
        counts[j, k] = model.new_int_var(int(now[j, k] - movable[j, k]), size, "")
        if (j, k) in prefix:
            costs = np.rint(prefix[j, k] / unit).astype(np.int64)
            leaving = model.new_int_var(0, int(movable[j, k]), "")
            model.add_max_equality(leaving, [int(now[j, k]) - counts[j, k], 0])
            cost = model.new_int_var(0, int(costs[-1]), "")
            model.add_element(leaving, costs.tolist(), cost)
            terms.append(cost)
    for j in range(shape[0]):
        model.add(sum(counts[j, k] for k in range(shape[1])) == int(counted.classes.sizes[j]))
    for condition in counted.conditions:
        for row in condition.rows():
            model.add(sum(a * counts[j, k] for j, k, a in row.terms) <= row.most)
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = max(time_limit - (time.perf_counter() - started), 0.01)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Correction(None, SolverStatus.INFEASIBLE)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Correction(None, SolverStatus.TIMEOUT)
    numbers = np.zeros(shape, dtype=np.int64)
    for cell, variable in counts.items():
        numbers[cell] = solver.value(variable)
    proven = SolverStatus.OPTIMAL if status == cp_model.OPTIMAL else SolverStatus.FEASIBLE
    return counted.correction(numbers, proven, solver.best_objective_bound * unit)
