"""The exact correction: the cheapest one for any number of groups, proven."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from fpbench.base.argument_types import check_arguments
from fpbench.components.records import Correction, Problem
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.many_groups import solve_many_groups
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.correction.exact.two_groups import solve_two_groups


@check_arguments
def solve_exact(problem: Problem, time_limit: float = np.inf) -> Correction:
    """The cheapest correction that satisfies constraints on counts, proven optimal.

    Parameters
    ----------
    problem
        With constraints that are about counts: any but `LinearConstraint`.
    time_limit
        Seconds. Two groups whose constraints separate take milliseconds and are not limited.

    Returns
    -------
    Correction
        `optimal` or `infeasible`; when time runs out `feasible`, with a bound, or `timeout`.
    """
    started = time.perf_counter()
    counted = CountedProblem(problem)
    ways = separate_regions(counted.conditions, counted.classes) if problem.groups == 2 else None
    if ways is not None:
        correction = solve_two_groups(counted, ways)
    else:
        correction = solve_many_groups(counted, time_limit)
    return replace(correction, seconds=time.perf_counter() - started)
