"""Nearest people are those of a comparison of everybody with everybody, ties included."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import crowd
from sklearn.neighbors import NearestNeighbors

from fpbench import InputError
from fpbench.builtin.private_tree.individual_fairness.similarity import (
    measure_nearest_people,
    scale_people,
)
from fpbench.data import Domain
from fpbench.errors import DataError
from fpbench.models import encode

BOUNDS = Domain.of({"a": [0, 4], "b": [-1, 6]})


def distances(frame, domain, free=()):
    """Of everybody to everybody (n, n), from the definition; infinite for other categories."""
    n = len(frame)
    found = np.zeros((n, n))
    for name, column in frame.items():
        if name in free:
            continue
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy()
            found[codes[:, None] != codes] = np.inf
        else:
            low, high = domain.bounds[name]
            z = (column.to_numpy(np.float32).astype(float) - low) / (high - low)
            found = np.maximum(found, np.abs(z[:, None] - z))
    return found


def cut(values, most):
    return np.where(values <= most, values, np.inf)


seeds = st.integers(0, 2**32 - 1)
frees = st.sampled_from([(), ("a",), ("job",), ("a", "sex"), ("a", "b"), ("a", "b", "job", "sex")])


@given(seeds, st.integers(1, 40), frees, st.sampled_from([0.0, 1 / 7, 0.25, 0.5, 0.99]))
def test_nearest_people_are_the_nearest_of_all(seed, n, free, most):
    rng = np.random.default_rng(seed)
    frame, labels = crowd(rng, n), rng.integers(0, 2, n)
    other, anybody = measure_nearest_people(
        scale_people(frame, domain=BOUNDS, free=free), labels, most
    )
    apart = distances(frame, BOUNDS, free)
    unlike = np.where(labels[:, None] != labels, apart, np.inf)
    np.fill_diagonal(apart, np.inf)
    assert (other == cut(unlike.min(axis=1), most)).all()
    assert (anybody == cut(apart.min(axis=1), most)).all()


@settings(max_examples=30)
@given(seeds, st.integers(2, 60), st.sampled_from([0.01, 0.1, 0.3, 0.9]))
def test_people_are_similar_to_those_whom_scikit_learn_finds(seed, n, tau):
    rng = np.random.default_rng(seed)
    frame, labels = crowd(rng, n, step=0.01, missing=False), rng.integers(0, 2, n)
    other, anybody = measure_nearest_people(scale_people(frame, domain=BOUNDS), labels, 0.95)
    matrix = encode(frame).astype(float)
    for i, (low, high) in enumerate(BOUNDS.bounds.values()):
        matrix[:, i] = (matrix[:, i] - low) / (high - low)
    trees = NearestNeighbors(radius=tau, metric="chebyshev", algorithm="brute").fit(matrix)
    for i, near in enumerate(trees.radius_neighbors(matrix, return_distance=False)):
        assert (other[i] > tau) == (labels[near] == labels[i]).all()
        assert (anybody[i] > tau) == (len(near) == 1)


@given(seeds, frees, frees)
def test_more_free_features_bring_people_nearer(seed, some, more):
    rng = np.random.default_rng(seed)
    frame, labels = crowd(rng, 30), rng.integers(0, 2, 30)
    few = measure_nearest_people(scale_people(frame, domain=BOUNDS, free=some), labels, 0.9)
    many = measure_nearest_people(
        scale_people(frame, domain=BOUNDS, free={*some, *more}), labels, 0.9
    )
    assert (many[0] <= few[0]).all()
    assert (many[1] <= few[1]).all()


@given(seeds)
def test_the_order_of_people_and_of_features_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    frame, labels = crowd(rng, 30), rng.integers(0, 2, 30)
    found = measure_nearest_people(scale_people(frame, domain=BOUNDS), labels, 0.5)
    who = rng.permutation(30)
    mixed = frame.iloc[who, rng.permutation(4)]
    again = measure_nearest_people(scale_people(mixed, domain=BOUNDS), labels[who], 0.5)
    assert (found[0][who] == again[0]).all()
    assert (found[1][who] == again[1]).all()


def test_people_are_compared_as_models_see_them():
    frame = pd.DataFrame({"a": [2.0**24, 2.0**24 + 1]})  # one number, in single precision
    placed = scale_people(frame, domain=Domain.of({"a": [0, 2.0**25]}))
    other, _ = measure_nearest_people(placed, np.array([0, 1]), 0.5)
    assert other.tolist() == [0, 0]


def test_more_combinations_of_categories_than_there_are_numbers():
    """With a power of two of values, the first columns would be lost beyond 64 bits."""
    words = [f"w{i}" for i in range(1_023)]
    codes = np.random.default_rng(0).integers(0, 1_022, (200, 12))
    codes[100:] = codes[:100]
    codes[150:, 0] += 1  # another word
    frame = pd.DataFrame(
        {f"c{j}": pd.Categorical.from_codes(codes[:, j], words) for j in range(12)}
    )
    _, anybody = measure_nearest_people(scale_people(frame), np.zeros(200, int), 0.5)
    assert (anybody == np.tile(np.repeat([0, np.inf], 50), 2)).all()


def test_many_people_in_one_place_are_no_burden():
    frame = pd.DataFrame({"a": np.repeat([0.0, 1.0, 2.0], [100_000, 100_000, 1])})
    labels = np.repeat([0, 1, 1], [100_000, 99_999, 2])
    other, anybody = measure_nearest_people(scale_people(frame), labels, 0.9)
    assert (other == 0.5).sum() == 200_000
    assert np.isinf(other[-1])
    assert anybody[0] == 0
    assert anybody[-1] == 0.5


def test_a_scale_is_declared_or_the_range_of_the_reference():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0, 1.0]})
    reference = pd.DataFrame({"a": [0.0, 8.0], "b": [0.0, 8.0], "c": [0.0, 8.0]})
    placed = scale_people(frame, domain=Domain.of({"a": [0, 4]}), reference=reference, free=["c"])
    assert placed.scales == ("declared", "range", None)
    assert placed.at[:, :2].tolist() == [[0.25, 0.125], [0.5, 0.25]]
    assert scale_people(frame, free=["c"]).at[:, 0].tolist() == [0, 1]


def test_categories_that_are_declared_are_there():
    frame = pd.DataFrame({"job": pd.Categorical(["u", "v"])})
    placed = scale_people(frame, domain=Domain.of({"job": ["w", "v"]}))
    assert placed.words == {"job": ("u", "v", "w")}


PEOPLE = pd.DataFrame({"age": [20.0, 30.0], "job": pd.Categorical(["u", "v"])})


@pytest.mark.parametrize(("features", "more", "error", "message"), [
    (PEOPLE, {"free": ["agee"]}, InputError, "no feature 'agee'; did you mean 'age'"),
    (PEOPLE, {"free": ["sex"]}, InputError, "sensitive attribute that is no feature is free"),
    (PEOPLE[:0], {}, InputError, "X: is empty"),
    (PEOPLE[:1], {}, InputError, r"'age' is 20 for everybody.*declare its bounds.*free"),
    (PEOPLE, {"reference": PEOPLE[["job"]]}, InputError, "reference: has other numeric"),
    (PEOPLE.assign(age=[1.0, np.nan]), {}, DataError, "'age' has missing or infinite"),
    (PEOPLE.assign(age=[1.0, 1e300]), {}, DataError, "'age' has missing or infinite"),
    (PEOPLE.assign(job=["u", 1]), {}, DataError, "'job' is object, neither"),
    (PEOPLE.assign(job=["u", None]), {}, DataError, "'job' has missing values, first in row 1"),
    (np.zeros(3), {}, DataError, "has 1 dimensions"),
    (np.array([["u", "v"]]), {}, DataError, "a matrix of numbers"),
    ([[0.0], [1.0, 2.0]], {}, DataError, "a matrix of numbers"),
    (PEOPLE.set_axis(["a", "a"], axis=1), {}, InputError, "two features are called 'a'"),
    (np.eye(3), {"names": ["a"]}, InputError, "has 3 columns, not 1"),
    (np.eye(3), {"free": ["x3"]}, InputError, "no feature 'x3'; valid: x0, x1, x2"),
])  # fmt: skip
def test_people_that_cannot_be_scaled(features, more, error, message):
    with pytest.raises(error, match=message):
        scale_people(features, **more)


def test_what_is_the_same_for_everybody_may_be_declared_or_free():
    assert scale_people(PEOPLE[:1], domain=Domain.of({"age": [0, 100]})).at.tolist() == [[0.2]]
    assert scale_people(PEOPLE[:1], free=["age"]).scales == (None,)


def test_texts_are_categories():
    words = PEOPLE.assign(job=["u", "v"])
    as_texts, as_categories = scale_people(words), scale_people(PEOPLE)
    assert as_texts.words == as_categories.words
    assert (as_texts.profiles() == as_categories.profiles()).all()
