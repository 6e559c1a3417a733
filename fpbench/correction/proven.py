"""Who is proven: people whose group follows from what is known, whatever else anybody believes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench.components.records import Problem
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.two_group_regions import separate_regions


def find_proven(problem: Problem) -> NDArray[np.bool_]:
    """Mask (n,) of people whose group is the same in every assignment that satisfies a problem.

    Known people are. Of two groups so are the members of a class (a prediction, or a prediction and
    a label) that can only belong to one group as a whole. Where constraints tie slices to each
    other, and for more groups, only known people are found: nobody is called proven who is not.

    Parameters
    ----------
    problem
        What is known; its guess, weights and beliefs are not looked at.
    """
    counted = CountedProblem(problem)
    proven = np.zeros(len(problem.guess), np.bool_)
    if counted.known is None:
        return proven
    proven[list(counted.known)] = True
    if problem.groups != 2:
        return proven
    ways = separate_regions(counted.conditions, counted.classes)
    if ways is None or len(ways) != 1:
        return proven
    groups = np.zeros(len(proven), np.int8)
    groups[list(counted.known)] = list(counted.known.values())
    for label, region in ways[0].parts:
        inside = counted.inside(label)
        part = np.ones(len(proven), np.bool_) if inside is None else inside
        positive = problem.predictions == 1
        sides = [part & positive, part & ~positive]
        known = [proven & side for side in sides]
        x = np.arange(region.part.positives + 1)
        low, high = region.interval(x)
        # Members of group 1 among the positives (x) and the others (y = size - x), known included.
        least = [int(groups[mask].sum()) for mask in known]
        free = [int((side & ~mask).sum()) for side, mask in zip(sides, known, strict=True)]
        low = np.maximum(low - x, least[1])
        high = np.minimum(high - x, least[1] + free[1])
        possible = (low <= high) & (x >= least[0]) & (x <= least[0] + free[0])
        if not possible.any():
            continue  # nothing satisfies it, and nothing follows
        ends = ((x[possible].min(), x[possible].max()), (low[possible].min(), high[possible].max()))
        for side, mask, base, room, (lowest, highest) in zip(
            sides, known, least, free, ends, strict=True
        ):
            if room and (highest == base or lowest == base + room):
                proven = proven | (side & ~mask)
    return proven
