"""Boxes walked down a tree find what a fine lattice of inputs finds."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import any_rules, crowd
from sklearn.tree import DecisionTreeClassifier

from fpbench.builtin.private_tree.individual_fairness.similarity import (
    measure_nearest_people,
    scale_people,
)
from fpbench.builtin.private_tree.individual_fairness.tree_boxes import measure_nearest_region
from fpbench.data import Domain
from fpbench.models import encode, encoded_names, tree_rules

BOUNDS = Domain.of({"a": [0, 4], "b": [-1, 6]})
ENCODINGS = st.sampled_from(["one-hot", "ordinal"])
seeds = st.integers(0, 2**32 - 1)
frees = st.sampled_from([(), ("a",), ("job",), ("a", "sex"), ("a", "b"), ("a", "b", "job", "sex")])

STEPS = np.arange(-1, 6, 0.25, dtype=np.float32)
LATTICE = np.unique([STEPS, np.nextafter(STEPS, np.float32(99))])
"""Multiples of a quarter, on which all thresholds lie, and the next numbers: both sides of each."""


def lattice(frame):
    """Every combination of numbers of the lattice and categories, those that are missing too."""
    jobs = [*range(3), *([-1] if frame["job"].isna().any() else [])]
    cells = np.array(
        list(itertools.product(range(len(LATTICE)), range(len(LATTICE)), jobs, (0, 1)))
    )
    return pd.DataFrame(
        {
            "a": LATTICE[cells[:, 0]],
            "job": pd.Categorical.from_codes(cells[:, 2], list("uvw")),
            "b": LATTICE[cells[:, 1]],
            "sex": pd.Categorical.from_codes(cells[:, 3], ["f", "m"]),
        }
    )


def by_lattice(frame, rules, free):
    """Distance of everybody to the nearest input of another label on the lattice."""
    inputs = lattice(frame)
    labels, said = rules.predict(frame), rules.predict(inputs)
    found = []
    for row, label in enumerate(labels):
        apart = np.zeros(len(inputs))
        for name in frame:
            if name in free:
                continue
            if name in BOUNDS.bounds:
                low, high = BOUNDS.bounds[name]
                ours, theirs = (
                    (f[name].to_numpy(np.float32).astype(float) - low) / (high - low)
                    for f in (frame, inputs)
                )
                apart = np.maximum(apart, np.abs(theirs - ours[row]))
            else:
                codes = inputs[name].cat.codes.to_numpy()
                apart[codes != frame[name].cat.codes.iloc[row]] = np.inf
        found.append(apart[said != label].min(initial=np.inf))
    return np.array(found)


@pytest.mark.slow
@given(seeds, ENCODINGS, frees, st.sampled_from([0.0, 0.1, 0.25, 0.6, 0.99]))
def test_boxes_find_what_a_fine_lattice_finds(seed, encoding, free, most):
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 6, step=rng.choice([0.25, 1.0]))
    rules = any_rules(rng, frame, encoding)
    placed = scale_people(frame, domain=BOUNDS, free=free)
    found = measure_nearest_region(rules.branches, placed, rules.predict(frame), most)
    slow = by_lattice(frame, rules, free)
    assert (found == np.where(slow <= most, slow, np.inf)).all()


@given(seeds, ENCODINGS, frees, st.integers(0, 6), st.sampled_from([0.25, 1.0, 0.013]))
def test_nobody_of_another_label_is_nearer_than_the_region(seed, encoding, free, depth, step):
    """Certified people are consistent in pairs, whatever tau is, and however values are rounded."""
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 40, step=step)
    low = rng.choice([0.0, -0.1, 1 / 3, -1e6])
    domain = Domain.of({"a": [low, low + rng.choice([4.0, 0.7, 1e7])], "b": [-1, 6]})
    rules = any_rules(rng, frame, encoding, depth)
    labels, placed = rules.predict(frame), scale_people(frame, domain=domain, free=free)
    region = measure_nearest_region(rules.branches, placed, labels, 0.9)
    other, _ = measure_nearest_people(placed, labels, 0.9)
    assert (region <= other).all()


@given(seeds)
def test_nobody_of_another_label_is_nearer_among_neighbouring_numbers(seed):
    """Thresholds between numbers that differ in their last bit."""
    rng = np.random.default_rng(seed)
    around = np.float32(rng.choice([0.1, 1.0, 12345.6]))
    ladder = [around]
    for _ in range(12):
        ladder.append(np.nextafter(ladder[-1], np.float32(np.inf)))
    matrix = rng.choice(np.array(ladder), (30, 2))
    labels = rng.integers(0, 2, 30)
    tree = DecisionTreeClassifier(random_state=0).fit(matrix, labels)
    rules, placed = tree_rules(tree), scale_people(matrix)
    said = rules.predict(matrix)
    region = measure_nearest_region(rules.branches, placed, said, 0.9)
    assert (region <= measure_nearest_people(placed, said, 0.9)[0]).all()


@given(seeds, ENCODINGS)
def test_everybody_is_certified_at_distance_zero(seed, encoding):
    """A threshold is between numbers: who is right on it is on one side."""
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 30, step=0.25)
    rules = any_rules(rng, frame, encoding)
    # From a greater low end, numbers around 0 could not be told apart.
    placed = scale_people(frame, domain=Domain.of({"a": [0, 4], "b": [0, 7]}))
    assert (measure_nearest_region(rules.branches, placed, rules.predict(frame), 0.9) > 0).all()


@given(seeds, ENCODINGS, frees, frees)
def test_more_free_features_bring_regions_nearer(seed, encoding, some, more):
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 20)
    rules = any_rules(rng, frame, encoding)
    few, many = (
        measure_nearest_region(rules.branches, scale_people(frame, domain=BOUNDS, free=free),
                       rules.predict(frame), 0.9)
        for free in (some, {*some, *more})
    )  # fmt: skip
    assert (many <= few).all()


def job_tree(frame, labels, encoding="one-hot"):
    columns = encoded_names(frame, encoding)
    tree = DecisionTreeClassifier(random_state=0).fit(encode(frame, encoding), labels)
    return tree_rules(tree, columns, encoding)


def test_a_person_has_one_category_and_no_other():
    """Neither two categories nor none: where that leads, nobody can get."""
    frame = pd.DataFrame({"job": pd.Categorical(["u", "v"]), "age": [1.0, 2.0]})
    rules = job_tree(frame.iloc[[0, 1, 0]].assign(age=1.0), [0, 1, 0])
    labels = rules.predict(frame)
    assert labels.tolist() == [0, 1]
    free = scale_people(frame, free=["job"])
    assert measure_nearest_region(rules.branches, free, labels, 0.5).tolist() == [0, 0]
    assert np.isinf(measure_nearest_region(rules.branches, scale_people(frame), labels, 0.5)).all()
    # Of a list of three, those who are neither are the third; of a list of two they are nobody.
    three = pd.DataFrame({"job": pd.Categorical(["u", "v", "w"], categories=["u", "v", "w"])})
    rules = job_tree(three, [0, 0, 1])
    both = three.iloc[:2]
    found = measure_nearest_region(
        rules.branches, scale_people(both, free=["job"]), np.array([0, 0]), 0.5
    )
    assert found.tolist() == [0, 0]
    two = pd.DataFrame({"job": pd.Categorical(["u", "v"])})
    found = measure_nearest_region(
        rules.branches, scale_people(two, free=["job"]), np.array([0, 0]), 0.5
    )
    assert np.isinf(found).all()


def test_a_missing_category_is_one_if_somebody_has_it():
    frame = pd.DataFrame({"job": pd.Categorical(["u", "v", None])})
    rules = job_tree(frame, [0, 0, 1])
    everybody = scale_people(frame, free=["job"])
    assert (
        measure_nearest_region(rules.branches, everybody, np.array([0, 0, 1]), 0.5).tolist()
        == [0] * 3
    )
    others = scale_people(frame[:2], free=["job"])
    assert np.isinf(measure_nearest_region(rules.branches, others, np.array([0, 0]), 0.5)).all()


def test_a_tree_of_a_matrix_and_of_one_label():
    matrix = np.array([[0.0], [0.4], [0.6], [1.0]])
    tree = tree_rules(DecisionTreeClassifier(random_state=0).fit(matrix, [0, 0, 1, 1]))
    found = measure_nearest_region(tree.branches, scale_people(matrix), np.array([0, 0, 1, 1]), 0.9)
    assert found == pytest.approx([0.5, 0.1, 0.1, 0.5])
    constant = tree_rules(DecisionTreeClassifier(random_state=0).fit(matrix, [1, 1, 1, 1]))
    assert np.isinf(
        measure_nearest_region(constant.branches, scale_people(matrix), np.ones(4, int), 0.9)
    ).all()


def test_a_tree_of_other_features_is_not_walked():
    frame = pd.DataFrame({"job": pd.Categorical(["u", "v"]), "age": [1.0, 2.0]})
    rules = job_tree(frame, [0, 1])
    assert (
        measure_nearest_region(rules.branches, scale_people(frame[["age"]]), np.array([0, 1]), 0.5)
        is None
    )
    matrix = tree_rules(DecisionTreeClassifier(random_state=0).fit(np.eye(2), [0, 1]))
    assert (
        measure_nearest_region(matrix.branches, scale_people(frame), np.array([0, 1]), 0.5) is None
    )
    assert (
        measure_nearest_region(matrix.branches, scale_people(np.eye(3)), np.array([0, 1, 1]), 0.5)
        is None
    )


def test_thresholds_beyond_all_numbers():
    frame = pd.DataFrame({"a": [0.0, 4.0]})
    tree = DecisionTreeClassifier(random_state=0).fit(encode(frame), [0, 1])
    for threshold, labels in ((1e300, [0, 0]), (-1e300, [1, 1])):
        tree.tree_.threshold[0] = threshold
        rules = tree_rules(tree, encoded_names(frame), "one-hot")
        assert rules.predict(frame).tolist() == labels
        for free in ((), ("a",)):
            found = measure_nearest_region(
                rules.branches, scale_people(frame, free=free), np.array(labels), 0.9
            )
            assert np.isinf(found).all()
