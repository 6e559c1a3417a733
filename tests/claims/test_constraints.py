from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import pytest
from instances import draw_constraint

from fpbench import InputError, Problem
from fpbench.claims import (
    COUNT_CONSTRAINTS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS, METRICS
from fpbench.correction import CountedProblem


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["rate", "share", "bounds", "unfairness"])
def test_conditions_hold_exactly_for_the_vectors_that_satisfy_a_constraint(kind, metric):
    rng = np.random.default_rng([len(kind), METRICS.index(metric)])
    answers = set()
    for _ in range(12):
        k = int(rng.integers(2, 4))
        n = int(rng.integers(1, {2: 8, 3: 6}[k]))
        constraint = draw_constraint(rng, kind, n, k, metrics=[metric])
        predictions, labels = rng.integers(0, 2, (2, n))
        # A constraint on another slice has people told apart by more than this one needs.
        beside = ShareBounds(0) if rng.random() < 0.3 else constraint
        vectors = oracles.all_vectors(n, k)
        problem = Problem(vectors[0], k, predictions, labels, (constraint, beside))
        wanted = oracles.satisfied(replace(problem, constraints=(constraint,)), vectors)
        conditions = constraint.conditions(CountedProblem(problem).classes)
        for vector, expected in zip(vectors, wanted, strict=True):
            counts = CountedProblem(replace(problem, guess=vector)).counts
            assert all(condition.holds(counts) for condition in conditions) == expected
            answers.add(bool(expected))
    assert answers == {True, False}


def test_constraints_on_persons_demand_nothing_of_counts():
    rng = np.random.default_rng(0)
    for kind in ("known", "linear"):
        constraint = draw_constraint(rng, kind, 5, 2)
        classes = CountedProblem(
            Problem(np.zeros(5, int), 2, np.zeros(5, int), None, (constraint,))
        ).classes
        assert constraint.conditions(classes) == []
        assert constraint.labels == ()


def test_every_constraint_has_a_word():
    words = {
        RateConstraint(): "to-overall",
        RateConstraint(form="ratio"): "ratio",
        RateConstraint(form="between-groups"): "between-groups",
        ShareBounds(0): "share",
        RateBounds(0): "positive-rate",
        KnownUnfairness("equalized-odds", 0.1, 0.2): "unfairness",
        KnownUnfairness("equalized-odds", 0.1, 0.2, "ratio"): "unfairness ratio",
        KnownUnfairness("equalized-odds", 0.1, 0.2, "between-groups"): "unfairness between-groups",
        KnownPeople([0], [1]): "known",
    }
    assert {constraint.word for constraint in words} == set(words.values()) == COUNT_CONSTRAINTS
    assert all(constraint.word == word for constraint, word in words.items())
    assert LinearConstraint(0, [1.0]).word not in COUNT_CONSTRAINTS


@pytest.mark.parametrize("metric", METRICS)
def test_the_metric_says_whose_labels_matter(metric):
    labels = tuple(oracles.SLICES[metric])
    assert RateConstraint(metric).labels == labels
    assert RateBounds(0, metric=metric).labels == labels
    assert KnownUnfairness(metric, 0, 1).labels == labels
    assert ShareBounds(0).labels == (None,)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_unfairness_known_from_above_only_is_a_claim(metric, form):
    classes = CountedProblem(
        Problem(np.array([0, 1, 1]), 2, np.array([0, 1, 0]), np.array([0, 1, 1]),
                (RateConstraint(metric),))
    ).classes  # fmt: skip
    known = KnownUnfairness(metric, 0, 0.3, form)
    assert known.conditions(classes) == RateConstraint(metric, 0.3, form).conditions(classes)


def test_a_fraction_is_taken_as_it_is_and_a_float_as_written():
    problem = Problem(np.array([0, 0, 0, 1]), 2, np.array([1, 0, 0, 0]), None, ())
    third, short = Fraction(1, 3), 0.3333333333333333
    for bound, held in ((third, True), (short, False)):
        constraint = RateBounds(0, 0, bound)
        tally = CountedProblem(replace(problem, constraints=(constraint,)))
        assert all(condition.holds(tally.counts) for condition in tally.conditions) == held


def test_a_group_of_nobody_satisfies_bounds_on_its_rate_but_not_on_its_share():
    problem = Problem(np.array([0, 0]), 2, np.array([1, 0]), None, ())
    for constraint, held in ((RateBounds(1, 0.9, 1.0), True), (ShareBounds(1, 0.1, 1.0), False)):
        tally = CountedProblem(replace(problem, constraints=(constraint,)))
        assert all(condition.holds(tally.counts) for condition in tally.conditions) == held


NAN = float("nan")
BAD = {
    "share above 1": (lambda: ShareBounds(0, 0, 1.5), "share: needs bounds 0 <= low <= high <= 1, not 0 and 1.5"),
    "share crossed": (lambda: ShareBounds(0, 0.5, 0.4), "share: needs bounds 0 <= low <= high <= 1, not 0.5 and 0.4"),
    "share nan": (lambda: ShareBounds(0, NAN, 1), "low must be a number or a fraction, not nan"),
    "share word": (lambda: ShareBounds(0, "a", 1), "low must be a number or a fraction, not 'a'"),
    "rate below 0": (lambda: RateBounds(0, -0.1), "positive rate: needs bounds 0 <= low <= high <= 1, not -0.1 and 1.0"),
    "rate metric": (lambda: RateBounds(0, metric="statistical-parit"), "unknown metric 'statistical-parit'; did you mean 'statistical-parity'?"),
    "unfairness crossed": (lambda: KnownUnfairness("equalized-odds", 0.2, 0.1), "unfairness: needs bounds 0 <= low <= high <= 1, not 0.2 and 0.1"),
    "unfairness metric": (lambda: KnownUnfairness("equal-odds", 0, 1), "unknown metric 'equal-odds'; did you mean 'equalized-odds'?"),
    "unfairness form": (lambda: KnownUnfairness("equalized-odds", 0, 1, "ratios"), "unknown form 'ratios'; did you mean 'ratio'?"),
    "tolerance below 0": (lambda: RateConstraint(tolerance=-0.1), "tolerance must be between 0 and 1, not -0.1"),
    "tolerance above 1": (lambda: RateConstraint(tolerance=Fraction(3, 2)), "tolerance must be between 0 and 1, not Fraction(3, 2)"),
    "known lengths": (lambda: KnownPeople([0, 1], [1]), "known people: rows and groups must be two lists of the same length"),
    "known matrix": (lambda: KnownPeople([[0]], [[1]]), "known people: rows and groups must be two lists of the same length"),
    "known halves": (lambda: KnownPeople([0.5], [1]), "known people: rows and groups must be whole numbers"),
    "known names": (lambda: KnownPeople([0], ["a"]), "known people: rows and groups must be whole numbers"),
    "linear nan": (lambda: LinearConstraint(0, [1.0, NAN]), "linear constraint: coefficients must be (n,) finite numbers, one a person"),
    "linear matrix": (lambda: LinearConstraint(0, [[1.0]]), "linear constraint: coefficients must be (n,) finite numbers, one a person"),
    "linear words": (lambda: LinearConstraint(0, ["a"]), "linear constraint: coefficients must be numbers"),
    "linear bound": (lambda: LinearConstraint(0, [1.0], low="a"), "low must be a number, not 'a'"),
    "linear crossed": (lambda: LinearConstraint(0, [1.0], 2, 1), "linear constraint: low 2 is above high 1"),
    "linear bound nan": (lambda: LinearConstraint(0, [1.0], NAN, 1), "low must be a number, not nan"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_a_constraint_that_makes_no_sense_is_one_clear_error(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message


ABSENT = [
    (ShareBounds(3), "group: must be in 0..2, not 3"),
    (ShareBounds(-1), "group: must be in 0..2, not -1"),
    (RateBounds(3), "group: must be in 0..2, not 3"),
    (KnownPeople([0], [3]), "group: must be in 0..2, not 3"),
    (KnownPeople([1, 5], [0, 0]), "known people: row 5 is not in 0..4"),
    (KnownPeople([-1], [0]), "known people: row -1 is not in 0..4"),
    (LinearConstraint(3, [1.0] * 5), "group: must be in 0..2, not 3"),
    (LinearConstraint(0, [1.0] * 4), "linear constraint: has 4 coefficients for 5 people"),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "message"), ABSENT)
def test_a_constraint_on_who_is_not_there_is_one_clear_error(constraint, message):
    with pytest.raises(InputError) as error:
        constraint.check(5, 3)
    assert str(error.value).startswith(message)


def test_a_constraint_on_who_is_there_is_no_error():
    for constraint in (
        ShareBounds(2), ShareBounds(np.int8(2)), RateBounds(0), KnownPeople([4, 0], [2, 0]),
        KnownPeople([], []), LinearConstraint(1, range(5)), RateConstraint(),
    ):  # fmt: skip
        constraint.check(5, 3)
