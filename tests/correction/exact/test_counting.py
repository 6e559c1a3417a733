from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from instances import draw

from fpbench import Problem
from fpbench.claims import KnownPeople, RateConstraint, ShareBounds
from fpbench.claims.rates import METRICS
from fpbench.correction import CountedProblem
from fpbench.plugin import SolverStatus


def random_tallies(seed, count):
    """Small problems, whose known people do not contradict each other."""
    rng = np.random.default_rng(seed)
    while count:
        k = int(rng.integers(2, 4))
        tally = CountedProblem(draw(rng, int(rng.integers(1, {2: 8, 3: 6}[k])), k))
        if tally.known is not None:
            count -= 1
            yield tally


def counts_of(tally, vector):
    """Counts of a vector, and whether it leaves those alone whom no constraint looks at."""
    return CountedProblem(replace(tally.problem, guess=vector)).counts


def agrees_with_known(tally, vector):
    return all(vector[row] == group for row, group in tally.known.items())


def test_cost_is_the_least_of_all_vectors_with_the_same_counts():
    for tally in random_tallies(1, 25):
        problem = tally.problem
        weights, least = oracles.costs(problem), {}
        for vector in oracles.all_vectors(len(problem.guess), problem.groups):
            if agrees_with_known(tally, vector):
                counts = CountedProblem(replace(problem, constraints=tuple(
                    c for c in problem.constraints if not isinstance(c, KnownPeople)
                ), guess=vector)).counts  # fmt: skip
                cost = weights[vector != problem.guess].sum()
                key = counts.tobytes()
                least[key] = min(least.get(key, np.inf), cost)
        for key, cost in least.items():
            counts = np.frombuffer(key, dtype=np.int64).reshape(tally.counts.shape)
            assert tally.cost(counts) == pytest.approx(cost, rel=1e-12, abs=0)


def test_holds_exactly_for_counts_of_some_vector_that_satisfies_everything():
    answers = set()
    for tally in random_tallies(2, 25):
        problem = tally.problem
        vectors = oracles.all_vectors(len(problem.guess), problem.groups)
        allowed = oracles.satisfied(problem, vectors)
        plain = tuple(c for c in problem.constraints if not isinstance(c, KnownPeople))
        held: dict[bytes, bool] = {}
        for vector, ok in zip(vectors, allowed, strict=True):
            counts = CountedProblem(replace(problem, guess=vector, constraints=plain)).counts
            held[counts.tobytes()] = held.get(counts.tobytes(), False) or bool(ok)
        for key, expected in held.items():
            counts = np.frombuffer(key, dtype=np.int64).reshape(tally.counts.shape)
            assert tally.holds(counts) == expected
            answers.add(expected)
            more = counts.copy()
            more[0, 0] += 1  # one more person than there are
            assert not tally.holds(more)
    assert answers == {True, False}


def test_a_correction_has_the_counts_that_were_asked_for_at_their_cost():
    rng = np.random.default_rng(3)
    for tally in random_tallies(3, 40):
        problem = tally.problem
        for _ in range(5):
            goal = rng.integers(0, problem.groups, len(problem.guess))
            goal[list(tally.known)] = list(tally.known.values())
            goal = np.where(tally.members >= 0, goal, tally.start)
            counts = counts_of(tally, goal)
            found = tally.correction(counts, SolverStatus.OPTIMAL)
            np.testing.assert_array_equal(counts_of(tally, found.values), counts)
            assert agrees_with_known(tally, found.values)
            changed = found.values != problem.guess
            cost = oracles.costs(problem)[changed].sum()
            assert found.objective == found.bound == tally.cost(counts)
            assert found.objective == pytest.approx(cost, rel=1e-12, abs=0)
            assert found.moves.sum() == changed.sum()
            assert found.moves[1].sum() == (changed & (problem.predictions == 1)).sum()
            outside = (tally.members < 0) & ~np.isin(np.arange(len(goal)), list(tally.known))
            np.testing.assert_array_equal(found.values[outside], problem.guess[outside])


def test_a_correction_that_is_not_proven_keeps_its_bound():
    tally = next(random_tallies(4, 1))
    found = tally.correction(tally.counts, SolverStatus.FEASIBLE, tally.base / 2)
    assert (found.status, found.bound) == (SolverStatus.FEASIBLE, tally.base / 2)


def test_the_cheapest_leave_and_among_equals_the_first():
    guess, predictions = np.zeros(6, int), np.ones(6, int)
    weights = np.array([2.0, 1.0, 1.0, 3.0, 1.0, 0.5])
    tally = CountedProblem(Problem(guess, 3, predictions, None, (RateConstraint(),), weights))
    counts = np.array([[0, 0, 0], [3, 2, 1]])
    assert tally.correction(counts, SolverStatus.OPTIMAL).values.tolist() == [0, 1, 2, 0, 0, 1]
    np.testing.assert_array_equal(tally.prefix_costs(1, 0), [0, 0.5, 1.5, 2.5, 3.5, 5.5, 8.5])
    np.testing.assert_array_equal(tally.prefix_costs(0, 2), [0])


@pytest.mark.parametrize("metric", METRICS)
def test_there_are_as_few_classes_as_the_constraints_need(metric):
    predictions, labels = np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1])
    problem = Problem(np.zeros(5, int), 2, predictions, labels, (RateConstraint(metric),))
    of_label = {None: (2, 3), 0: (1, 1), 1: (1, 2)}
    wanted = oracles.SLICES[metric]
    classes = CountedProblem(problem).classes
    assert classes.labels == tuple(np.repeat(wanted, 2))
    assert classes.predictions == (0, 1) * len(wanted)
    assert classes.sizes == sum((of_label[label] for label in wanted), ())
    # People whom nobody looks at are of no class.
    members = CountedProblem(problem).members
    assert (members >= 0).sum() == sum(classes.sizes)
    for person, j in enumerate(members):
        if j >= 0:
            assert classes.predictions[j] == predictions[person]
            assert classes.labels[j] in (None, labels[person])
    both = CountedProblem(
        replace(problem, constraints=(RateConstraint(metric), ShareBounds(0)))
    ).classes
    assert both.sizes == ((2, 3) if wanted == [None] else (1, 1, 1, 2))


def test_without_labels_there_are_two_classes():
    problem = Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (ShareBounds(0),))
    assert CountedProblem(problem).classes.labels == (None, None)
    assert CountedProblem(replace(problem, constraints=())).classes.sizes == (1, 1)


def test_known_people_start_where_they_belong_and_stay():
    guess = np.array([0, 0, 1, 1, 2])
    known = KnownPeople([0, 3, 0], [2, 1, 2]), KnownPeople(np.array([4]), np.array([0]))
    weights = np.array([4.0, 1, 1, 2, 8])
    problem = Problem(guess, 3, np.array([0, 0, 0, 1, 1]), None, (ShareBounds(0), *known), weights)
    tally = CountedProblem(problem)
    assert tally.known == {0: 2, 3: 1, 4: 0}
    assert tally.start.tolist() == [2, 0, 1, 1, 0]
    assert tally.free.tolist() == [False, True, True, False, False]
    assert tally.base == 12.0
    assert tally.counts.tolist() == [[1, 1, 1], [1, 1, 0]]
    assert tally.movable.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert tally.cost(tally.counts) == 12.0
    assert tally.holds(tally.counts)
    assert not tally.holds(np.array([[2, 1, 0], [1, 1, 0]])), "the known of group 2 is not there"
    found = tally.correction(tally.counts, SolverStatus.OPTIMAL)
    assert found.moves.sum() == 2
    assert guess.tolist() == [0, 0, 1, 1, 2], "the guess is not modified"


def test_people_known_to_be_of_two_groups_are_a_contradiction():
    problem = Problem(np.zeros(3, int), 2, np.zeros(3, int), None, (KnownPeople([1, 1], [0, 1]),))
    assert CountedProblem(problem).known is None
    two = KnownPeople([1], [0]), KnownPeople([1], [1])
    assert CountedProblem(replace(problem, constraints=two)).known is None


def test_nobody_known_means_everybody_is_free():
    problem = Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (RateConstraint(),))
    tally = CountedProblem(problem)
    assert tally.free is None
    assert tally.start is problem.guess
    assert tally.base == 0
    np.testing.assert_array_equal(tally.movable, tally.counts)
