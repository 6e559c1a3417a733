from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fpbench import InputError
from fpbench.api.correct import check_problem
from fpbench.claims import (
    KnownPeople,
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


@pytest.mark.parametrize("guess", [
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
], ids=repr)  # fmt: skip
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


BAD = [
    ({"guess": [], "predictions": []}, "guess: is empty"),
    ({"guess": [0, 1, -1]}, "guess: must be in 0..1, not -1 at 2"),
    ({"guess": [0, 5, 1], "groups": 3}, "guess: must be in 0..2, not 5 at 1"),
    ({"guess": np.array([0, 200, 1], dtype=np.uint8), "groups": 3}, "guess: must be in 0..2, not"),
    ({"guess": [0, 0.5, 1]}, "guess: must be whole numbers, not 0.5 at 1"),
    ({"guess": [0, 1, np.nan]}, "guess: must be whole numbers, not nan at 2"),
    ({"guess": ["f", "m", "f"]}, "guess: must be whole numbers, not of type <U1; they are 'f' and"),
    ({"guess": [0, None, 1]}, "guess: row 1 is missing; leave out people without a value"),
    ({"guess": [[0, 1, 1]]}, "guess: must have one dimension, not 2"),
    ({"guess": 1}, "guess: must have one dimension, not 0"),
    ({"guess": [0, 1, 1e+300]}, "guess: must be whole numbers, not 1e+300 at 2"),
    ({"groups": 1}, "groups must be 2 or more, not 1"),
    ({"groups": 2.5}, "groups must be a whole number, not 2.5"),
    ({"predictions": [1, 0, 2]}, "predictions: must be in 0..1, not 2 at 2"),
    ({"predictions": [1, 0, 0.25]}, "predictions: must be whole numbers, not 0.25 at 2; turn"),
    ({"predictions": [1, 0]}, "predictions: has 2 values, but guess has 3"),
    ({"labels": [1, 2, 1]}, "labels: must be in 0..1, not 2 at 1"),
    ({"known": [RateConstraint("equal-opportunity")]}, "labels: constraint"),
    ({"known": [PARITY, RateBounds(0, metric="equalized-odds")]}, "labels: constraint"),
    ({"known": ["share"]}, "constraints: 'share' is not a constraint"),
    ({"known": [ShareBounds(2)]}, "group: must be in 0..1, not 2"),
    ({"known": [LinearConstraint(3, [1, 2, 3])]}, "group: must be in 0..1, not 3"),
    ({"known": [LinearConstraint(1, [1.0, 2.0])]}, "linear constraint: has 2 coefficients for 3"),
    ({"known": [KnownPeople([3], [0])]}, "known people: row 3 is not in 0..2"),
    ({"known": [KnownPeople([0, -1], [0, 1])]}, "known people: row -1 is not in 0..2"),
    ({"known": [KnownPeople([0, 1], [0, 2])]}, "group: must be in 0..1, not 2"),
    ({"weights": [1, 1, np.inf]}, "weights: must be positive and finite, not inf at 2"),
    ({"weights": [0.0, 1, 1]}, "weights: must be positive and finite, not 0.0 at 0"),
    ({"weights": [1, 1, -2.5]}, "weights: must be positive and finite, not -2.5 at 2"),
    ({"weights": ["1", "2", "3"]}, "weights: must be numbers, not of type <U1"),
    ({"weights": [1.0, 2.0]}, "weights: has 2 values, but guess has 3"),
    ({"weights": [[1, 2], [3]]}, "weights: must not be lists of different lengths"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_says_what_and_where(arguments, message):
    with pytest.raises(InputError) as error:
        check(**arguments)
    assert str(error.value).startswith(message)


def test_constraints_become_a_tuple_in_order():
    known = [PARITY, ShareBounds(1, 0.5), KnownPeople([], []), LinearConstraint(0, [1, 2, 3])]
    assert check(known=known).constraints == tuple(known)
    assert check(known=[]).constraints == ()
