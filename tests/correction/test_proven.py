"""Who is proven, against all assignments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import Problem
from fpbench.claims import (
    KnownPeople,
    KnownUnfairness,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.correction import find_possible
from fpbench.testing.brute_force import satisfies


def find_proven(problem):
    """People who are left one group."""
    return find_possible(problem).sum(axis=1) == 1


def list_proven(problem):
    """People whose group is the same in all assignments that satisfy the problem."""
    n = len(problem.guess)
    ways = [
        np.array(values)
        for values in product(range(problem.groups), repeat=n)
        if satisfies(problem, np.array(values))
    ]
    return np.ptp(ways, axis=0) == 0 if ways else None


CONSTRAINTS = st.sampled_from([
    ShareBounds(1, 0.0, 0.0), ShareBounds(1, 0.9, 1.0), ShareBounds(0, 0.2, 0.4),
    RateBounds(1, 1.0, 1.0), RateBounds(0, 0.0, 0.0), RateBounds(1, 0.0, 0.2),
    RateConstraint("statistical-parity", 0.0), RateConstraint("equalized-odds", 0.1),
    KnownUnfairness("statistical-parity", 1.0, 1.0, "between-groups"),
    KnownPeople(np.array([0, 1]), np.array([1, 0])),
])  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=3, max_size=7),
    st.lists(CONSTRAINTS, min_size=1, max_size=3, unique_by=repr),
    st.integers(2, 3),
)
def test_nobody_is_called_proven_who_is_not(people, constraints, k):
    predictions, labels = map(np.array, zip(*people, strict=True))
    k = min(k, 2 if len(people) > 6 else k)
    problem = Problem(np.zeros(len(people), int), k, predictions, labels, tuple(constraints))
    wanted = list_proven(problem)
    if wanted is not None:
        assert not (find_proven(problem) & ~wanted).any()


@pytest.mark.parametrize(
    ("constraints", "proven"),
    [
        ((RateBounds(1, 1.0, 1.0),), [0, 0, 1, 1]),  # no member of group 1 is predicted 0
        ((RateBounds(1, 0.0, 0.0), ShareBounds(1, 0.5, 0.5)), [1, 1, 1, 1]),
        ((ShareBounds(1, 0.5, 0.5),), [0, 0, 0, 0]),
        ((KnownPeople(np.array([2]), np.array([1])),), [0, 0, 1, 0]),
        ((KnownPeople(np.array([2]), np.array([1])), ShareBounds(1, 0.25, 0.25)), [1, 1, 1, 1]),
    ],
)
def test_who_follows_is_found(constraints, proven):
    predictions = np.array([1, 1, 0, 0])
    problem = Problem(np.zeros(4, int), 2, predictions, np.zeros(4, int), constraints)
    assert find_proven(problem).astype(int).tolist() == proven
    assert (list_proven(problem) == np.array(proven, bool)).all()
