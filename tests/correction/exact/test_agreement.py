"""Correctors that share no method find the same optimum, with the same status.

`exact` scans or searches counts, `cp` is CP Optimizer on counts of moves, `ip` HiGHS on persons.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import oracles
import pytest
from instances import KINDS, check_values, draw

import fpbench
from fpbench import InputError, Problem
from fpbench.claims import (
    METRICS,
    KnownPeople,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.plugin import SolverStatus

SMALL, LARGER, LINEAR = 240, 80, 40
NAMES = ("exact", "cp", "ip")
MOST = {2: 9, 3: 7, 4: 6}
WEIGHTS = ("none", "identity", "tied", "random", "random", "sharp", "tiny", "huge")
PRECISE = {"exact": 2e-9, "cp": 2e-9, "ip": 1e-6}
"""Relative error of the optimum: what each says of itself."""


@cache
def corrector(name):
    """Built once: this finds the plugins."""
    return fpbench.component("corrector", name, time_limit=120.0)


def needs(name):
    reason = corrector(name).unavailable()
    if reason:
        pytest.skip(reason)


def able(name, problem) -> bool:
    """Whether a corrector can express everything, and solve it in seconds."""
    if not {constraint.word for constraint in problem.constraints} <= corrector(name).expresses:
        return False
    # An integer program over more persons may take minutes.
    return name != "ip" or len(problem.guess) * (problem.groups - 1) <= 130


@cache
def small() -> list[Problem]:
    """Problems of so few people that every vector can be tried."""
    rng = np.random.default_rng(1)
    return [_drawn(rng, at, int(rng.integers(1, MOST[2 + at % 3] + 1))) for at in range(SMALL)]


@cache
def larger() -> list[Problem]:
    """Problems of up to 60 people."""
    rng = np.random.default_rng(2)
    return [_drawn(rng, at, int(rng.integers(12, 61))) for at in range(LARGER)]


def _drawn(rng, at, n) -> Problem:
    kinds = ["rate"] if at % 2 else rng.choice(KINDS, rng.choice([1, 2, 3]))
    # What compares two groups with each other only some can express: let half of it be for all.
    forms = ["to-overall"] if at % 4 < 2 else FORMS
    return draw(rng, n, 2 + at % 3, kinds, weights=str(rng.choice(WEIGHTS)), forms=forms)


@cache
def least(at) -> float | None:
    """Least cost of a small problem, from all vectors."""
    return oracles.brute_force(small()[at])


@cache
def optimum(at):
    """What `exact` finds of a larger problem."""
    return corrector("exact").correct(larger()[at])


def agrees(name, problem, status, objective):
    """Whether a corrector finds an optimum that is known; True if it can express the problem."""
    if not able(name, problem):
        return False
    found = corrector(name).correct(problem)
    assert found.status is status
    assert found.objective == (
        None if objective is None else pytest.approx(objective, rel=PRECISE[name], abs=0)
    )
    if objective is not None:
        assert found.bound == pytest.approx(objective, rel=PRECISE[name], abs=0)
        check_values(problem, found)
    return True


BLOCKS = 5


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("name", NAMES)
def test_small_problems_have_the_optimum_of_all_vectors(name, block):
    needs(name)
    solved = 0
    for at in range(block, SMALL, BLOCKS):
        status = SolverStatus.INFEASIBLE if least(at) is None else SolverStatus.OPTIMAL
        solved += agrees(name, small()[at], status, least(at))
    assert solved >= SMALL // BLOCKS // 3


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("name", ["cp", "ip"])
def test_larger_problems_have_the_same_optimum(name, block):
    needs(name)
    solved = 0
    for at in range(block, LARGER, BLOCKS):
        solved += agrees(name, larger()[at], optimum(at).status, optimum(at).objective)
    assert solved >= 2


@pytest.mark.slow
def test_sums_over_individuals_have_the_optimum_of_all_vectors():
    """Only `ip` knows individuals."""
    needs("ip")
    rng = np.random.default_rng(3)
    statuses = set()
    for at in range(LINEAR):
        k = 2 + at % 3
        kinds = ["linear", *(["rate"] if at % 2 else [])]
        problem = draw(rng, MOST[k] - 1, k, kinds, weights="random", forms=["to-overall"])
        cost = oracles.brute_force(problem)
        statuses.add(cost is None)
        status = SolverStatus.INFEASIBLE if cost is None else SolverStatus.OPTIMAL
        assert not able("exact", problem)
        assert not able("cp", problem)
        assert agrees("ip", problem, status, cost)
    assert statuses == {True, False}


@pytest.mark.slow
def test_the_problems_are_of_every_sort():
    problems = small() + larger()
    assert len(problems) >= 300
    assert {problem.groups for problem in problems} == {2, 3, 4}
    assert max(len(problem.guess) for problem in problems) >= 58
    solvable = Counter(least(at) is None for at in range(SMALL))
    assert min(solvable.values()) > 80
    costly = [optimum(at) for at in range(LARGER)]
    assert sum(found.objective is not None and found.objective > 0 for found in costly) > 40
    assert sum(found.status is SolverStatus.INFEASIBLE for found in costly) > 20
    everything = [constraint for problem in problems for constraint in problem.constraints]
    claims = [c for c in everything if isinstance(c, RateConstraint)]
    combinations = Counter((claim.metric, claim.form) for claim in claims)
    assert set(combinations) == {(metric, form) for metric in METRICS for form in FORMS}
    assert min(combinations.values()) >= 5
    words = Counter(constraint.word for constraint in everything)
    assert set(words) == fpbench.claims.COUNT_CONSTRAINTS
    assert min(words.values()) > 5
    assert sum(claim.tolerance == 0 for claim in claims) > 30
    assert sum(isinstance(claim.tolerance, Fraction) for claim in claims) > 10
    assert sum(len(problem.constraints) > 1 for problem in problems) > 80
    assert sum(_ties(problem) for problem in problems) > 100
    assert sum(len(set(problem.guess)) < problem.groups for problem in problems) > 100
    empty = [p for p in problems if any(not mask.any() for mask in _slices(p))]
    assert len(empty) > 30
    for name, enough in zip(NAMES, (300, 300, 200), strict=True):
        assert sum(able(name, problem) for problem in problems) >= enough


def _ties(problem) -> bool:
    return problem.weights is None or len(set(problem.weights)) < len(problem.weights)


def _slices(problem):
    for constraint in problem.constraints:
        if isinstance(constraint, RateConstraint | RateBounds):
            yield from oracles.masks(problem, constraint.metric)


GUESS = [0, 0, 0, 0, 1, 1, 1, 1]
PREDICTIONS = [1, 1, 1, 0, 1, 0, 0, 0]
LABELS = [0, 1, 0, 1, 0, 1, 0, 1]
ONES = [1.0] * 8


EVERYONE = ("exact", "cp", "ip", "posterior")


def correct(name, **arguments):
    usual = {"guess": GUESS, "predictions": PREDICTIONS, "labels": LABELS, "tolerance": 0.1}
    given = usual | arguments
    return fpbench.correct(given.pop("guess"), given.pop("predictions"), corrector=name, **given)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [0, 0.0, -1.0])
def test_no_time_at_all_is_an_error_of_all_correctors(name, limit):
    with pytest.raises(InputError, match="time_limit.*greater than 0"):
        correct(name, time_limit=float(limit))


IMPOSSIBLE = {
    "empty slice": {"metric": "equal-opportunity", "labels": [0] * 8},
    "empty slice at 1": {"metric": "predictive-equality", "labels": [1] * 8, "tolerance": 1.0},
    "slice of one": {"metric": "equal-opportunity", "labels": [1] + [0] * 7, "tolerance": 1.0},
    "more groups than people": {"guess": [0], "predictions": [0], "labels": [1]},
    "shares": {"constraints": [ShareBounds(0, 0.0, 0.25), ShareBounds(0, 0.5, 1.0)]},
    "shares of all": {"constraints": [ShareBounds(0, 0.0, 0.25), ShareBounds(1, 0.0, 0.5)]},
    "no whole share": {"constraints": [ShareBounds(0, 0.3, 0.3)]},
    "rates": {"constraints": [RateBounds(0, 0.0, 0.2), RateBounds(0, 0.8, 1.0)]},
    "known twice": {"constraints": [KnownPeople([0, 0], [0, 1])]},
    "all known": {"constraints": [KnownPeople(range(8), GUESS)]},
    "known alike": {"constraints": [KnownPeople(range(8), [1] * 8)]},
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYONE)
@pytest.mark.parametrize("arguments", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_contradictions_are_infeasible_for_all_correctors(name, arguments):
    needs(name) if name in NAMES else None
    found = correct(name, **arguments)
    assert found.status is SolverStatus.INFEASIBLE
    assert (found.values, found.objective, found.moves, found.gap) == (None,) * 4


def test_sums_that_cannot_be_are_infeasible():
    needs("ip")
    both = [LinearConstraint(0, ONES, high=2), LinearConstraint(0, ONES, low=3)]
    for name in ("ip", "posterior"):
        assert correct(name, constraints=both).status is SolverStatus.INFEASIBLE


@pytest.mark.parametrize("name", ["exact", "cp"])
def test_sums_over_individuals_are_refused_by_those_that_count(name):
    with pytest.raises(InputError, match=f"corrector '{name}' cannot express the constraint 'lin"):
        correct(name, constraints=[LinearConstraint(0, ONES, low=3)])


@pytest.mark.parametrize("name", EVERYONE)
def test_nothing_known_is_nothing_to_correct_with(name):
    with pytest.raises(InputError, match=f"corrector '{name}' needs a claim"):
        correct(name, metric=None)
