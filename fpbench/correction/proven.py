"""Proven people: those whose group follows from the constraints, whatever the beliefs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.claims.set_counts import Facts
from fpbench.components.records import Problem
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.correction.facts.collecting import collect_facts
from fpbench.correction.facts.linear_programs import prove


@check_arguments
def find_possible(problem: Problem, *, seconds: float = 120.0) -> NDArray[np.bool_]:
    """(n, K) the groups that each person may have; a person with only one is proven.

    Known people have one. With two groups, so have the members of a class (a prediction, or a
    prediction and a label) that can only belong to one group as a whole. What follows from `Facts`,
    and from other counts with them, is found by `prove`. Where other constraints link slices, and
    for more groups, nothing else is ruled out; what is ruled out is always impossible.

    Parameters
    ----------
    problem
        Its constraints are used; its guess, weights and beliefs are not.
    seconds
        Limit of the linear programs of `prove`.

    Raises
    ------
    ContradictionError
        If `Facts` contradict each other or other counts. Nothing follows from other constraints
        that contradict each other.
    """
    counted = CountedProblem(problem)
    possible = np.ones((len(problem.guess), problem.groups), np.bool_)
    if counted.known is None:
        return possible
    if counted.known:
        possible[list(counted.known)] = np.eye(problem.groups, dtype=np.bool_)[
            list(counted.known.values())
        ]
    if problem.groups == 2:
        _rule_out_classes(counted, possible)
    if any(isinstance(one, Facts) for one in problem.constraints):
        possible = prove(collect_facts(counted)[0], possible, seconds=seconds)
    return possible


def _rule_out_classes(counted: CountedProblem, possible: NDArray[np.bool_]) -> None:
    """Rule out, in place, the group that no free member of a class has; of two groups."""
    problem = counted.problem
    ways = separate_regions(counted.conditions, counted.classes)
    if ways is None or len(ways) != 1:
        return
    proven = possible.sum(axis=1) == 1
    positive = problem.predictions == 1
    for label, region in ways[0].parts:
        inside = counted.inside(label)
        part = np.ones(len(proven), np.bool_) if inside is None else inside
        sides = [part & positive, part & ~positive]
        known = [proven & side for side in sides]
        x = np.arange(region.part.positives + 1)
        low, high = region.interval(x)
        # Members of group 1 among the positives (x) and the others (y = size - x), known included.
        least = [int(possible[mask, 1].sum()) for mask in known]
        free = [int((side & ~mask).sum()) for side, mask in zip(sides, known, strict=True)]
        low = np.maximum(low - x, least[1])
        high = np.minimum(high - x, least[1] + free[1])
        reached = (low <= high) & (x >= least[0]) & (x <= least[0] + free[0])
        if not reached.any():
            continue  # nothing satisfies it, so nothing follows
        ends = ((x[reached].min(), x[reached].max()), (low[reached].min(), high[reached].max()))
        for side, mask, base, room, (lowest, highest) in zip(
            sides, known, least, free, ends, strict=True
        ):
            if room and (highest == base or lowest == base + room):
                possible[side & ~mask, int(highest == base)] = False
                proven = proven | side
