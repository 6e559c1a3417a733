from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fpbench import InputError
from fpbench.api.correct import check_problem
from fpbench.claims import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)

PARITY = RateConstraint()


def check(
    guess=(0, 1, 1), predictions=(1, 0, 1), labels=None, weights=None, groups=None, known=(PARITY,)
):
    return check_problem(guess, predictions, labels, weights, known, groups)


@pytest.mark.parametrize(
    "guess",
    [
        [0, 1, 1],
        (0, 1, 1),
        [False, True, True],
        [0.0, 1.0, 1.0],
        pd.Series([0, 1, 1], index=[7, 8, 9]),
        pd.Series([0, 1, 1], dtype="Int64"),
        np.array([0, 1, 1], dtype=np.uint8),
        np.array([0, 1, 1], dtype=np.int16),
        np.array([0, 1, 1], dtype=np.float32),
        np.array([[0, 9], [1, 9], [1, 9]])[:, 0],
    ],
    ids=repr,
)
def test_anything_that_holds_whole_numbers(guess):
    for problem in (check(guess=guess), check(predictions=guess), check(labels=guess)):
        for codes in (problem.guess, problem.predictions, problem.labels):
            assert codes is None or codes.dtype.kind == "i"
    assert check(guess=guess).guess.tolist() == [0, 1, 1]
    assert check(predictions=guess).predictions.tolist() == [0, 1, 1]
    assert check(labels=guess).labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "weights",
    [[1, 2, 3], pd.Series([1.0, 2, 3]), np.array([1, 2, 3], dtype=np.float32),
     np.array([1, 2, 3], dtype=np.uint8)],
)  # fmt: skip
def test_weights_become_floats(weights):
    found = check(weights=weights).weights
    assert found.dtype == np.float64
    assert found.tolist() == [1, 2, 3]


def test_arrays_that_are_right_are_not_copied():
    guess, weights = np.array([0, 1, 1], dtype=np.int8), np.array([1.0, 2.0, 3.0])
    problem = check(guess=guess, predictions=guess, labels=guess, weights=weights)
    assert problem.guess is guess
    assert problem.predictions is guess
    assert problem.labels is guess
    assert problem.weights is weights


def test_the_number_of_groups():
    assert check().groups == 2
    assert check(guess=[0, 0, 0]).groups == 2
    assert check(guess=[0, 4, 0]).groups == 5
    assert check(guess=[0, 1, 0], groups=3).groups == 3


BAD = {
    "guess empty": ({"guess": [], "predictions": []}, "guess: is empty"),
    "guess negative": ({"guess": [0, 1, -1]}, "guess: must be in 0..1, not -1 at 2"),
    "guess beyond": ({"guess": [0, 5, 1], "groups": 3}, "guess: must be in 0..2, not 5 at 1"),
    "guess beyond, in bytes": (
        {"guess": np.array([0, 200, 1], dtype=np.uint8), "groups": 3},
        "guess: must be in 0..2, not 200 at 1",
    ),
    "guess broken": ({"guess": [0, 0.5, 1]}, "guess: must be whole numbers, not 0.5 at 1"),
    "guess nan": ({"guess": [0, 1, np.nan]}, "guess: must be whole numbers, not nan at 2"),
    "guess words": (
        {"guess": ["f", "m", "f"]},
        "guess: must be whole numbers, not of type <U1; they are 'f' and 'm': pass (values == 'm')",
    ),
    "guess missing": (
        {"guess": [0, None, 1]},
        "guess: row 1 is missing; leave out people without a value",
    ),
    "guess table": ({"guess": [[0, 1, 1]]}, "guess: must have one dimension, not 2"),
    "guess one number": ({"guess": 1}, "guess: must have one dimension, not 0"),
    "guess huge": (
        {"guess": [0, 1, 1e300], "groups": 2},
        "guess: must be whole numbers, not 1e+300 at 2",
    ),
    "guess huge, groups unsaid": (
        {"guess": [0, 1, 1e300]},
        "guess: must be whole numbers, not 1e+300 at 2",
    ),
    "one group": ({"groups": 1}, "groups: must be 2 or more, not 1"),
    "groups broken": ({"groups": 2.5}, "groups: must be a whole number, not 2.5"),
    "groups a word": ({"groups": "2"}, "groups: must be a whole number, not '2'"),
    "predictions 2": ({"predictions": [1, 0, 2]}, "predictions: must be in 0..1, not 2 at 2"),
    "predictions -1": ({"predictions": [-1, 1, 1]}, "predictions: must be in 0..1, not -1 at 0"),
    "predictions scores": (
        {"predictions": [1, 0, 0.25]},
        "predictions: must be whole numbers, not 0.25 at 2; turn scores into predictions first: "
        "(scores >= 0.5) for instance",
    ),
    "predictions inf": (
        {"predictions": [1, 0, np.inf]},
        "predictions: must be whole numbers, not inf at 2",
    ),
    "predictions short": (
        {"predictions": [1, 0]},
        "predictions: has 2 values, but guess has 3",
    ),
    "labels long": ({"labels": [1, 0, 1, 1]}, "labels: has 4 values, but guess has 3"),
    "labels 1 and 2": ({"labels": [1, 2, 1]}, "labels: must be in 0..1, not 2 at 1"),
    "labels missing": (
        {"known": [RateConstraint("equal-opportunity")]},
        "labels: constraint RateConstraint(metric='equal-opportunity', tolerance=0.0, "
        "form='to-overall') needs them",
    ),
    "labels missing for a bound": (
        {"known": [PARITY, RateBounds(0, metric="equalized-odds")]},
        "labels: constraint RateBounds(group=0, low=0.0, high=1.0, metric='equalized-odds') "
        "needs them",
    ),
    "labels missing for an unfairness": (
        {"known": [KnownUnfairness("predictive-equality", 0.1, 0.2)]},
        "labels: constraint KnownUnfairness(metric='predictive-equality', low=0.1, high=0.2, "
        "form='to-overall') needs them",
    ),
    "not a constraint": ({"known": ["share"]}, "constraints: 'share' is not a constraint"),
    "share of nobody's group": ({"known": [ShareBounds(2)]}, "group: must be in 0..1, not 2"),
    "share of group -1": ({"known": [ShareBounds(-1)]}, "group: must be in 0..1, not -1"),
    "rate of nobody's group": ({"known": [RateBounds(7)]}, "group: must be in 0..1, not 7"),
    "sum of nobody's group": (
        {"known": [LinearConstraint(3, [1, 2, 3])]},
        "group: must be in 0..1, not 3",
    ),
    "sum of other people": (
        {"known": [LinearConstraint(1, [1.0, 2.0])]},
        "linear constraint: has 2 coefficients for 3 people",
    ),
    "known nobody": ({"known": [KnownPeople([3], [0])]}, "known people: row 3 is not in 0..2"),
    "known row -1": (
        {"known": [KnownPeople([0, -1], [0, 1])]},
        "known people: row -1 is not in 0..2",
    ),
    "known to be of no group": (
        {"known": [KnownPeople([0, 1], [0, 2])]},
        "group: must be in 0..1, not 2",
    ),
    "weights nan": (
        {"weights": [1, np.nan, 1]},
        "weights: must be positive and finite, not nan at 1",
    ),
    "weights inf": (
        {"weights": [1, 1, np.inf]},
        "weights: must be positive and finite, not inf at 2",
    ),
    "weights zero": (
        {"weights": [0.0, 1, 1]},
        "weights: must be positive and finite, not 0.0 at 0",
    ),
    "weights negative": (
        {"weights": [1, 1, -2.5]},
        "weights: must be positive and finite, not -2.5 at 2",
    ),
    "weights words": (
        {"weights": ["1", "2", "3"]},
        "weights: must be numbers, not of type <U1",
    ),
    "weights short": ({"weights": [1.0, 2.0]}, "weights: has 2 values, but guess has 3"),
    "weights table": ({"weights": np.ones((3, 2))}, "weights: must have one dimension, not 2"),
    "weights ragged": ({"weights": [[1, 2], [3]]}, "weights: is not an array: "),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_says_what_and_where(arguments, message):
    with pytest.raises(InputError) as error:
        check(**arguments)
    assert str(error.value).startswith(message)
    if not message.endswith(": "):
        assert str(error.value) == message


def test_constraints_become_a_tuple_in_order():
    known = [PARITY, ShareBounds(1, 0.5), KnownPeople([], []), LinearConstraint(0, [1, 2, 3])]
    assert check(known=known).constraints == tuple(known)
    assert check(known=[]).constraints == ()


BAD_CONSTRAINTS = {
    "share low above high": (
        lambda: ShareBounds(0, 0.5, 0.25),
        "share: needs bounds 0 <= low <= high <= 1, not 0.5 and 0.25",
    ),
    "share below 0": (
        lambda: ShareBounds(0, -0.1),
        "share: needs bounds 0 <= low <= high <= 1, not -0.1 and 1.0",
    ),
    "share a word": (
        lambda: ShareBounds(0, high="all"),
        "high must be a number or a fraction, not 'all'",
    ),
    "rate above 1": (
        lambda: RateBounds(0, 0, 1.5),
        "positive rate: needs bounds 0 <= low <= high <= 1, not 0 and 1.5",
    ),
    "rate nan": (
        lambda: RateBounds(0, np.nan),
        "low must be a number or a fraction, not nan",
    ),
    "rate of what": (
        lambda: RateBounds(0, metric="parity"),
        "unknown metric 'parity'; ",
    ),
    "unfairness low above high": (
        lambda: KnownUnfairness("statistical-parity", 0.2, 0.1),
        "unfairness: needs bounds 0 <= low <= high <= 1, not 0.2 and 0.1",
    ),
    "unfairness of what": (
        lambda: KnownUnfairness("equal-odds", 0, 1),
        "unknown metric 'equal-odds'; ",
    ),
    "unfairness how": (
        lambda: KnownUnfairness("statistical-parity", 0, 1, "ration"),
        "unknown form 'ration'; did you mean 'ratio'?",
    ),
    "known lengths": (
        lambda: KnownPeople([0, 1], [0]),
        "known people: rows and groups must be two lists of the same length",
    ),
    "known table": (
        lambda: KnownPeople([[0]], [[0]]),
        "known people: rows and groups must be two lists of the same length",
    ),
    "known broken": (
        lambda: KnownPeople([0.5], [0]),
        "known people: rows and groups must be whole numbers",
    ),
    "known words": (
        lambda: KnownPeople([0], ["f"]),
        "known people: rows and groups must be whole numbers",
    ),
    "sum nan": (
        lambda: LinearConstraint(0, [1, np.nan]),
        "linear constraint: coefficients must be (n,) finite numbers, one a person",
    ),
    "sum inf": (
        lambda: LinearConstraint(0, [1, np.inf]),
        "linear constraint: coefficients must be (n,) finite numbers, one a person",
    ),
    "sum table": (
        lambda: LinearConstraint(0, [[1, 2]]),
        "linear constraint: coefficients must be (n,) finite numbers, one a person",
    ),
    "sum words": (
        lambda: LinearConstraint(0, ["a"]),
        "linear constraint: coefficients must be numbers",
    ),
    "sum low word": (lambda: LinearConstraint(0, [1], "a"), "low must be a number, not 'a'"),
    "sum low above high": (
        lambda: LinearConstraint(0, [1, 2], 3, 2),
        "linear constraint: low 3 is above high 2",
    ),
    "sum low nan": (
        lambda: LinearConstraint(0, [1, 2], np.nan),
        "low must be a number, not nan",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_CONSTRAINTS.values(), ids=BAD_CONSTRAINTS)
def test_a_constraint_that_makes_no_sense_says_why(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value).startswith(message)
    if not message.endswith("; "):
        assert str(error.value) == message
