"""Random problems of every sort, and what must be true of any answer to them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracles
import pytest

from fpbench import Correction, Problem
from fpbench.claims import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS, METRICS
from fpbench.plugin import SolverStatus

TOLERANCES = (0.0, 0.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.25, 1 / 3, Fraction(1, 3), 0.5, 0.9, 1.0)
AWKWARD = (1e-17, 0.1 + 0.2, 0.12345678901234567, 0.049999999999999996, 1 - 2**-53, 5e-324)

WEIGHTS = {
    "none": lambda rng, n: None,
    "identity": lambda rng, n: np.ones(n),
    "tied": lambda rng, n: rng.integers(1, 4, n) / 2,
    "random": lambda rng, n: rng.uniform(1, 2, n) ** 6,
    "sharp": lambda rng, n: rng.uniform(1, 2, n) ** 99,
    "tiny": lambda rng, n: rng.uniform(1, 2, n) * 1e-9,
    "huge": lambda rng, n: rng.uniform(1, 2, n) * 1e12,
    "mixed": lambda rng, n: 10.0 ** rng.uniform(-9, 12, n),
    "powers": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, 2.0**99),
}
KINDS = ("rate", "share", "bounds", "unfairness", "known")


def draw_constraint(rng, kind, n, k, *, metrics=METRICS, forms=FORMS):
    """A constraint of a kind about n people of k groups."""
    metric, form = str(rng.choice(metrics)), str(rng.choice(forms))
    group = int(rng.integers(k))
    low, high = _bounds(rng)
    if kind == "rate":
        chosen = TOLERANCES if rng.random() < 0.9 else AWKWARD
        tolerance = chosen[rng.integers(len(chosen))]
        return RateConstraint(metric, tolerance, form, bool(rng.random() < 0.3))
    if kind == "share":
        return ShareBounds(group, low, high)
    if kind == "bounds":
        return RateBounds(group, low, high, metric)
    if kind == "unfairness":
        return KnownUnfairness(metric, low, high, form)
    people = rng.integers(0, n, int(rng.integers(0, min(n, 3) + 1)))
    if kind == "known":
        return KnownPeople(people, rng.integers(0, k, len(people)))
    assert kind == "linear"
    least = int(rng.integers(-4, 2))
    return LinearConstraint(group, rng.integers(-2, 4, n), least, least + int(rng.integers(0, 5)))


def _bounds(rng) -> tuple[float, float]:
    """Simple numbers, 0 <= low <= high <= 1, now and then both the same."""
    low, high = sorted(round(float(rng.random()), int(rng.integers(1, 4))) for _ in range(2))
    choice = rng.random()
    if choice < 0.2:
        return 0.0, high
    if choice < 0.4:
        return low, 1.0
    return (high, high) if choice < 0.5 else (low, high)


def draw(rng, n, k, kinds=None, *, weights=None, metrics=METRICS, forms=FORMS) -> Problem:
    """A problem of n people and k groups.

    Its groups differ in size and in rates; some may be empty, and so may a slice.
    """
    if kinds is None:
        kinds = rng.choice(KINDS, rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    guess = rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0]))))
    predictions = (rng.random(n) < rng.random(k)[guess]).astype(int)
    labels = (rng.random(n) < rng.choice([0, 0.3, 0.6, 1], p=[0.05, 0.5, 0.4, 0.05])).astype(int)
    constraints = tuple(
        draw_constraint(rng, kind, n, k, metrics=metrics, forms=forms) for kind in kinds
    )
    costs = WEIGHTS[weights or str(rng.choice(list(WEIGHTS)))](rng, n)
    return Problem(guess, k, predictions, labels, constraints, costs)


def check_correction(problem: Problem, found: Correction, least: float | None) -> None:
    """The answer is the optimum, and all it says of itself is true.

    Parameters
    ----------
    least
        Least cost; None if the problem is impossible.
    """
    if least is None:
        assert found.status is SolverStatus.INFEASIBLE
        assert (found.values, found.objective, found.moves, found.gap) == (None,) * 4
        return
    assert found.status is SolverStatus.OPTIMAL
    assert found.objective == pytest.approx(least, rel=2e-9, abs=0)
    assert found.bound == found.objective
    assert found.gap == 0
    check_values(problem, found)


def check_values(problem: Problem, found: Correction) -> None:
    """Values satisfy all that is known, cost the objective, and change nobody without need."""
    assert oracles.admissible(problem, found.values)
    changed = found.values != problem.guess
    cost = oracles.costs(problem)[changed].sum()
    assert found.objective == pytest.approx(cost, rel=1e-12, abs=0)
    assert not changed[~oracles.looked_at(problem)].any()
    moves = np.zeros((2, problem.groups, problem.groups), dtype=int)
    at = problem.predictions[changed], problem.guess[changed], found.values[changed]
    np.add.at(moves, at, 1)
    np.testing.assert_array_equal(found.moves, moves)
