"""From an adversary's confidence to the costs of changing its guesses.

Ferry et al. (SaTML 2023, section IV-A) scale the confidences to [1, 2] and raise them to a power
k in 0..99, chosen as the one whose correction is most accurate where the adversary knows the
truth. Powers keep the order of the weights, so one sort serves every k.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from fpbench.components.records import Problem
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.solve import solve_exact
from fpbench.correction.exact.two_group_moves import Quadrant, Slice
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.correction.exact.two_groups import Scan, make_slices
from fpbench.data.sample import Codes

_Weights = NDArray[np.float64]

_CORRECTIONS = 5
"""Most corrections that are solved to score exponents."""
_EXPONENTS: dict[Hashable, int | None] = {}
"""Best exponents by what they depend on."""


def scale_confidence(confidence: NDArray[np.float64]) -> _Weights:
    """Confidences scaled linearly onto [1, 2] over the set they apply to; all 1 if all equal.

    `confidence`: (n,) the adversary's probability for the group it guessed.
    """
    low, high = float(confidence.min()), float(confidence.max())
    if high <= low:
        return np.ones(len(confidence))
    return 1.0 + (confidence - low) / (high - low)


def find_best_exponent(problem: Problem, truth: Codes, most: int = 99) -> int | None:
    """The power of the weights whose correction of a two-group problem is most accurate.

    `problem`: a problem whose truth the adversary knows, its weights not yet raised to a power.
    `truth`: (n,) true group codes. `most`: greatest exponent tried; 0..most are.

    Returns: the smallest of the most accurate exponents; None if the constraint cannot hold here,
    so that nothing is learnt about exponents.
    """
    correct = score_exponents(problem, truth, most)
    return None if correct is None else int(np.argmax(correct))


def score_exponents(problem: Problem, truth: Codes, most: int) -> NDArray[np.int64] | None:
    """Net number of guesses put right by the correction with each exponent 0..most.

    (most + 1,) counts; None if the constraints cannot hold. Equals the change in the number of
    right guesses that `solve_exact` makes with the weights raised to that power; for equalized
    odds of two groups, unless a group must be kept from being empty in both slices.
    """
    assert problem.constraints and problem.weights is not None
    counted = CountedProblem(problem)
    ways = separate_regions(counted.conditions, counted.classes) if problem.groups == 2 else None
    if ways is None or len(ways) > 1 or counted.known:
        return _score_corrections(problem, truth, most)
    total = np.zeros(most + 1, dtype=np.int64)
    for people, (_, region) in zip(make_slices(counted, ways[0]), ways[0].parts, strict=True):
        quadrants = people.frontier(region)
        if not quadrants:
            return None
        sides = [_Side(people, quadrant, problem.weights, truth) for quadrant in quadrants]
        for exponent in range(most + 1):
            candidates = [side.next_power() for side in sides]
            total[exponent] += min(candidates, key=lambda cost_score: cost_score[0])[1]
    return total


def _score_corrections(problem: Problem, truth: Codes, most: int) -> NDArray[np.int64] | None:
    """The same counts, from at most five corrections, of which each exponent gets the cheapest.

    Between two exponents another correction is sought where those of both cost the same; if none is
    cheaper there, these two are taken to be the cheapest all along (Eisner and Severance, 1976:
    exact if costs were linear in the exponent). The widest gap is searched first.
    """
    found: dict[int, Codes] = {}
    costs: dict[int, _Weights] = {}

    def solve(exponent: int) -> bool:
        assert problem.weights is not None
        values = solve_exact(replace(problem, weights=problem.weights**exponent)).values
        if values is not None:
            changed = problem.weights[values != problem.guess]
            found[exponent] = values
            costs[exponent] = (changed[:, None] ** np.arange(most + 1)).sum(axis=0)
        return values is not None

    if not (solve(0) and solve(most)):
        return None
    gaps = [(0, most)]
    while gaps and len(found) < _CORRECTIONS:
        low, high = gaps.pop(int(np.argmax([(b + 1) / (a + 1) for a, b in gaps])))
        if high - low < 2 or (found[low] == found[high]).all():
            continue
        apart = np.abs(np.log(costs[low] / costs[high]))
        middle = low + 1 + int(np.argmin(apart[low + 1 : high]))
        solve(middle)
        if costs[middle][middle] < (1 - 1e-12) * min(costs[low][middle], costs[high][middle]):
            gaps += [(low, middle), (middle, high)]
    solved = sorted(found)
    right = np.array([np.count_nonzero(found[e] == truth) for e in solved])
    cheapest = np.array([costs[e] for e in solved]).argmin(axis=0)
    cheapest[solved] = np.arange(len(solved))
    return np.asarray(right[cheapest] - np.count_nonzero(problem.guess == truth), dtype=np.int64)


class _Side:
    """One quadrant of candidates; every call evaluates the next power of the weights."""

    def __init__(self, people: Slice, quadrant: Quadrant, weights: _Weights, truth: Codes) -> None:
        self._scan = Scan(quadrant)
        self._quadrant = quadrant
        self._exponent = 0
        self._base, self._power, self._scores, self._plain = [], [], [], []
        for prediction, up, count in quadrant.cells:
            rows = np.flatnonzero(people.cell(prediction, up))
            order = _take_cheapest(weights, rows, count)
            self._base.append(weights[order])
            self._power.append(np.ones(count))
            self._scores.append(_score(truth[order], up))
            # At power 0 all weights are equal, and among equals the first are chosen.
            self._plain.append(_score(truth[rows[:count]], up))

    def next_power(self) -> tuple[float, int]:
        """Cost of the best candidate at this power, and the net number of guesses it puts right."""
        index, cost = self._scan.best(*self._power)
        scores = self._plain if self._exponent == 0 else self._scores
        a, d = self._quadrant.a[index], self._quadrant.d[index]
        self._exponent += 1
        for power, base in zip(self._power, self._base, strict=True):
            np.multiply(power, base, out=power)
        return cost, int(scores[0][a] + scores[1][d])


def _take_cheapest(weights: _Weights, rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The `count` rows of least weight, ascending; among equals, the first rows first."""
    if count == 0:
        return rows[:0]
    values = weights[rows]
    if count < len(rows):
        least = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
        rows, values = rows[least], values[least]
    order = np.argsort(values)
    rows, values = rows[order], values[order]
    another = np.diff(values) > 0
    if not another.all():
        # A stable sort takes several times longer; sorting the rows of equals is enough.
        level = np.concatenate([[0], np.cumsum(another)])
        rows = np.sort(level * len(weights) + rows) % len(weights)
    return rows[:count]


def _score(truth: Codes, up: bool) -> NDArray[np.int64]:
    """Net guesses put right by moving the first 0, 1, 2, ... people to group 1 (up) or 0."""
    right = np.where(truth == (1 if up else 0), 1, -1)
    return np.concatenate([[0], np.cumsum(right)])


def sharpen(
    confidence: NDArray[np.float64],
    held_out: Problem,
    held_out_confidence: NDArray[np.float64],
    truth: Codes,
    most: int = 99,
) -> tuple[_Weights, int]:
    """Weights as in the paper: scaled confidences raised to the most accurate power.

    `confidence`: (n,) confidences of the guesses to be corrected. `held_out`,
    `held_out_confidence`, `truth`: the same problem where the adversary knows the truth: (m,)
    confidences and group codes. `most`: greatest exponent tried.

    Returns: (n,) weights in [1, 2**exponent]; the exponent is 1 if the held-out part has no
    constraints, or they cannot hold there.
    """
    exponent = None
    if held_out.constraints:
        scored = replace(held_out, weights=scale_confidence(held_out_confidence))
        # Several correctors of one guess ask the same: the answer is kept.
        key = _name_problem(scored, truth, most)
        if key not in _EXPONENTS:
            _EXPONENTS[key] = find_best_exponent(scored, truth, most)
        exponent = _EXPONENTS[key]
    if exponent is None:
        exponent = min(1, most)
    return scale_confidence(confidence) ** exponent, exponent


def _name_problem(problem: Problem, truth: Codes, most: int) -> Hashable:
    """All that its best exponent depends on, with a hash of each array."""
    arrays = (problem.guess, problem.predictions, problem.labels, problem.weights, truth)
    hashes = (None if a is None else sha256(a.tobytes()).digest() for a in arrays)
    return problem.groups, problem.constraints, most, *hashes
