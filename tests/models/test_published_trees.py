"""What published trees tell of their training people's groups is true, and found to be false of
others."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from fpbench import InputError
from fpbench.correction import condition_beliefs, prove
from fpbench.models import PublishedTree, RuleList, find_tree_facts, read_trees


def make_people(n, k, seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, k, n)
    matrix = np.column_stack([rng.integers(0, 5, (n, 3)), rng.random(n)])
    labels = (rng.random(n) < 0.3 + 0.4 * (groups == 0)).astype(int)
    return matrix, groups, labels


def read(model, matrix, groups, labels, k):
    trees = read_trees(model.fit(np.column_stack([matrix, groups]), labels))

    def take_group(code):
        return np.column_stack([matrix, np.full(len(matrix), code)])

    return find_tree_facts(trees, take_group, k, labels)


MODELS = {
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "balanced tree": lambda seed: DecisionTreeClassifier(
        class_weight="balanced", max_depth=4, random_state=seed
    ),
    "forest": lambda seed: RandomForestClassifier(
        n_estimators=5, bootstrap=False, random_state=seed
    ),
    "extra trees": lambda seed: ExtraTreesClassifier(n_estimators=5, random_state=seed),
    "bootstrap": lambda seed: RandomForestClassifier(
        n_estimators=8, max_depth=4, random_state=seed
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=12)
@given(n=st.integers(20, 150), k=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
def test_what_trees_tell_is_true_of_those_they_were_trained_on(kind, n, k, seed):
    matrix, groups, labels = make_people(n, k, seed)
    if len(np.unique(labels)) < 2:
        return
    facts = read(MODELS[kind](seed), matrix, groups, labels, k)
    truth = np.eye(k)[groups]
    counts, exact = facts.count(truth), ~facts.noisy
    assert ((counts >= facts.low) & (counts <= facts.high))[exact].all()
    possible = prove(facts, seconds=600)
    assert possible[np.arange(n), groups].all()


def test_a_deep_tree_proves_whom_it_can_tell_apart():
    matrix, groups, labels = make_people(300, 2, 0)
    facts = read(DecisionTreeClassifier(random_state=0), matrix, groups, labels, 2)
    assert (prove(facts, seconds=600).sum(axis=1) == 1).mean() > 0.1
    without = read_trees(DecisionTreeClassifier(random_state=0).fit(matrix, labels))
    assert len(find_tree_facts(without, lambda _: matrix, 2, labels)) == 0


@pytest.mark.parametrize("size", [None, 0.3, 500])
def test_different_people_of_a_bootstrap_sample_measure_how_many_there_are(size):
    """A sample may be smaller than the data."""
    matrix, groups, labels = make_people(4000, 2, 1)
    forest = RandomForestClassifier(n_estimators=60, max_depth=5, max_samples=size, random_state=1)
    facts = read(forest, matrix, groups, labels, 2)
    noisy = facts.noisy
    off = (facts.count(np.eye(2)[groups]) - facts.low)[noisy] / facts.sigma[noisy, None]
    off = off[np.isfinite(off)]
    # Sets of few people have skewed errors; means of hundreds are near those of a normal law.
    assert len(off) > 200
    assert abs(off.mean()) < 0.25
    assert 0.75 < off.std() < 1.25


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_rule_list_tells_what_is_true(k, seed):
    """Rules before a rule tie groups to other features: as A few reach it, as B more."""
    rng = np.random.default_rng(seed)
    age, groups = rng.integers(18, 80, 200), rng.integers(0, k, 200)
    labels = rng.integers(0, 2, 200)
    rules = RuleList(
        [
            ([("group", "=", 0), ("age", "<", 30)], 1),
            ([("group", "in", [0, 1]), ("age", "<", 50)], 0),
            ([("group", "=", k - 1), ("age", ">=", 70)], 1),
            ([("age", "<", 60)], 0),
        ],
        default=1,
    ).rules

    def take_group(code):
        return pd.DataFrame({"age": age, "group": code})

    cells = rules.apply(take_group(groups)) * 2 + labels
    by_label = np.bincount(cells, minlength=10).reshape(5, 2).astype(float)
    proven = []
    for counts in (by_label, by_label.sum(axis=1, keepdims=True)):
        published = PublishedTree(rules.apply, counts)
        facts = find_tree_facts([published], take_group, k, labels)
        told = facts.count(np.eye(k)[groups])
        assert ((told >= facts.low) & (told <= facts.high)).all()
        possible = prove(facts, seconds=600)
        assert possible[np.arange(200), groups].all()
        proven.append((~possible).sum())
    assert proven[0] >= proven[1]
    assert len(facts)
    with pytest.raises(InputError, match="trained on other people"):
        find_tree_facts([PublishedTree(rules.apply, by_label + 200)], take_group, k, labels)
    noisy = PublishedTree(rules.apply, by_label, scale=1.0)
    assert find_tree_facts([noisy], take_group, k, labels).noisy.all()


@pytest.mark.parametrize("forest", [False, True])
def test_balanced_weights_of_equal_shares_are_no_numbers_by_label(forest):
    """Where labels are as frequent in every leaf as in all, weights add up to numbers of people."""
    feature, groups = np.tile([0.0, 1.0], 64), np.repeat([0, 1], 64)
    labels = (np.arange(128) // 2 % 4 == 0).astype(int)
    kind = RandomForestClassifier if forest else DecisionTreeClassifier
    options = {"n_estimators": 3, "bootstrap": False} if forest else {}
    model = kind(class_weight="balanced", random_state=0, **options)
    trees = read_trees(model.fit(np.column_stack([feature, groups]), labels))

    def take_group(code):
        return np.column_stack([feature, np.full(128, code)])

    facts = find_tree_facts(trees, take_group, 2, labels)
    told = facts.count(np.eye(2)[groups])
    assert len(facts)
    assert ((told >= facts.low) & (told <= facts.high)).all()


def test_people_of_no_weight_are_in_no_leaf():
    matrix, groups, labels = make_people(200, 2, 2)
    tree = DecisionTreeClassifier(random_state=0, max_depth=2)
    tree.fit(np.column_stack([matrix, groups]), labels, sample_weight=np.arange(200) % 3)

    def take_group(code):
        return np.column_stack([matrix, np.full(200, code)])

    with pytest.raises(InputError, match="^tree 0: 133 people are in its leaves, .* no weight"):
        find_tree_facts(read_trees(tree), take_group, 2, labels)


def test_trees_of_other_people_are_refused():
    matrix, groups, labels = make_people(200, 2, 2)
    trees = read_trees(
        DecisionTreeClassifier(random_state=0).fit(np.column_stack([matrix, groups]), labels)
    )
    few = np.arange(20)

    def take_group(code):
        return np.column_stack([matrix[few], np.full(20, code)])

    with pytest.raises(InputError, match="trained on other people"):
        find_tree_facts(trees, take_group, 2, labels[few])


def test_other_estimators_have_no_trees():
    from sklearn.linear_model import LogisticRegression

    assert read_trees(LogisticRegression()) == ()


def test_features_may_be_frames_of_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": pd.Categorical(rng.choice(list("abc"), 60))})
    from fpbench.models import encode

    labels = rng.integers(0, 2, 60)
    tree = DecisionTreeClassifier(random_state=0).fit(encode(frame), labels)
    (published,) = read_trees(tree, "one-hot")
    assert published.find_leaves(frame).tolist() == tree.apply(encode(frame)).tolist()
    assert published.counts.sum(axis=1)[0] == 60


@pytest.mark.parametrize("noise", [{"scale": 2.0}, {"sigma": 1.5}])
def test_a_noisy_count_is_believed_as_one_measurement(noise):
    counts, labels = np.array([[0.4, 1.2], [0.7, 1.9]]), np.ones(3, int)

    def find_leaves(group):
        return np.full(3, group, np.intp)

    facts = find_tree_facts([PublishedTree(find_leaves, counts, **noise)], lambda k: k, 2, labels)
    worlds = np.array(list(product((0, 1), repeat=3)))
    away = np.abs(np.stack([1.2 - (3 - worlds.sum(axis=1)), 1.9 - worlds.sum(axis=1)]))
    logs = -away / 2.0 if "scale" in noise else -((away / 1.5) ** 2) / 2
    weights = np.exp(logs.sum(axis=0))
    beliefs = condition_beliefs(facts, np.full((3, 2), 0.5)).beliefs
    assert beliefs[:, 1] == pytest.approx((weights / weights.sum()) @ worlds)
