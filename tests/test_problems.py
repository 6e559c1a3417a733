from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fpbench import InputError, RateConstraint
from fpbench.problems import check_problem

PARITY = RateConstraint()


def check(
    guess=(0, 1, 1), predictions=(1, 0, 1), labels=None, weights=None, groups=None, claim=PARITY
):
    return check_problem(guess, predictions, labels, weights, claim, groups)


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
        "guess: must be whole numbers, not of type <U1",
    ),
    "guess missing": (
        {"guess": [0, None, 1]},
        "guess: must be whole numbers, not of type object",
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
        "predictions: must be whole numbers, not 0.25 at 2",
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
        {"claim": RateConstraint("equal-opportunity")},
        "labels: metric 'equal-opportunity' needs them",
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
    "weights table": ({"weights": np.ones((3, 1))}, "weights: must have one dimension, not 2"),
    "weights ragged": ({"weights": [[1, 2], [3]]}, "weights: is not an array: "),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_says_what_and_where(arguments, message):
    with pytest.raises(InputError) as error:
        check(**arguments)
    assert str(error.value).startswith(message)
    if not message.endswith(": "):
        assert str(error.value) == message
