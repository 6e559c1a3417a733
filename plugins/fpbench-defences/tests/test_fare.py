"""The learner `fare`: its tree, and the certificate of what leaves tell of groups."""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from fpbench_defences.fair_tree import grow_fair_tree
from fpbench_defences.leaf_certificate import (
    LeafPeople,
    bound_by_leaves,
    bound_by_sets,
    certify_leaves,
)
from pydantic import ValidationError
from scipy.stats import beta, binom

import fpbench
from fpbench import Sample
from fpbench.errors import DataError

pytestmark = pytest.mark.numeric

BOUNDS = ("sets", "leaves")
CELLS = [(a, b, c) for a in range(4) for b in range(3) for c in range(2)]


def make_law(k, seed):
    """P(group), P(cell | group), P(label 1 | cell, group) of people with 24 different features."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.full(len(CELLS), 2.0), size=k)
    return rng.dirichlet(np.full(k, 8.0)), cells, rng.random((len(CELLS), k))


def make_features(cells):
    a, b, c = np.array(CELLS)[cells].T
    return pd.DataFrame(
        {"a": a * 1.5, "b": pd.Categorical.from_codes(b, list("xyz")), "c": c.astype(np.int64)}
    )


def draw(law, n, rng):
    groups = rng.choice(len(law[0]), n, p=law[0])
    cells = (rng.random((n, 1)) > law[1][groups].cumsum(axis=1)).sum(axis=1).clip(max=23)
    labels = (rng.random(n) < law[2][cells, groups]).astype(np.int8)
    names = tuple("pqrs"[: len(law[0])])
    sensitive = groups.astype(np.int8)
    return Sample(names, features=make_features(cells), labels=labels, sensitive=sensitive)


def find_truth(model, law):
    """The greatest parity gap and balanced accuracy that anything of the leaves can have."""
    leaves = model.encoder.tree.find_leaves(make_features(np.arange(len(CELLS))))
    shares = np.stack([np.bincount(leaves, p, minlength=model.encoder.tree.k) for p in law[1]])
    gaps = [np.maximum(p - q, 0).sum() for p, q in combinations(shares, 2)]
    return max(gaps), shares.max(axis=0).sum() / len(shares)


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("k", [2, 3])
def test_the_certificate_fails_no_oftener_than_it_says(bound, k):
    # Two dozen laws; at confidence .8 a bound without its errors would fail in most runs.
    learner = fpbench.component(
        "learner", "fare", base={"use": "plain"}, bound=bound, confidence=0.8, leaves=4, minleaf=5
    )
    failures, looseness = 0, []
    for seed in range(25):
        rng, law = np.random.default_rng([seed, k]), make_law(k, seed)
        model = learner.fit(draw(law, 1500, rng), rng)
        gap, accuracy = find_truth(model, law)
        failures += (
            gap > model.notes["fare_parity_bound"] or accuracy > model.notes["fare_accuracy_bound"]
        )
        looseness.append(model.notes["fare_parity_bound"] - gap)
    assert failures <= binom.ppf(0.999, 25, 0.2)
    assert np.mean(looseness) < (0.65 if bound == "leaves" else 0.25)


@pytest.mark.slow
def test_counts_of_people_who_grew_the_tree_would_not_certify_it():
    failures = 0
    for seed in range(40):
        rng, law = np.random.default_rng(seed), make_law(2, seed)
        people = draw(law, 300, rng)
        tree = grow_fair_tree(people, fairness=0.9, leaves=8, minleaf=5)
        leaves = tree.find_leaves(people.features)
        plain = np.stack(
            [np.bincount(leaves[people.sensitive == g], minlength=tree.k) for g in (0, 1)]
        )
        shares = plain / plain.sum(axis=1, keepdims=True)
        own = tree.find_leaves(make_features(np.arange(len(CELLS))))
        truth = np.stack([np.bincount(own, p, minlength=tree.k) for p in law[1]])
        failures += np.abs(np.diff(truth, axis=0)).sum() > np.abs(np.diff(shares, axis=0)).sum()
    assert failures > 20


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_by_sets_is_that_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    k, error = int(rng.integers(2, 8)), 0.1
    counts = rng.integers(0, [[60], [90]], size=(2, k))
    (n, m), each, best = counts.sum(axis=1), error / 2 ** (k + 1), 0.0
    for chosen in chain.from_iterable(combinations(range(k), size) for size in range(k + 1)):
        x, y = counts[:, list(chosen)].sum(axis=1)
        upper = 1.0 if x == n else beta.isf(each, x + 1, n - x)
        best = max(best, upper - (beta.ppf(each, y, m - y + 1) if y else 0.0))
    bound = bound_by_sets(counts, error)
    assert best - 1e-9 <= bound <= best + 0.02


def test_the_papers_bound_by_hand():
    groups, counts, leaves = np.array([60, 40]), np.array([[30, 10], [8, 32]]), np.array([22, 18])
    error = 0.05
    least = [beta.ppf(0.0025, x, 100 - x + 1) for x in groups]
    worst = [
        max(beta.isf(0.01, x + 1, n - x) / (2 * low) for x, low in zip(column, least, strict=True))
        for column, n in zip(counts.T, counts.sum(axis=0), strict=True)
    ]
    mean = (worst[0] * 22 + worst[1] * 18) / 40
    slack = abs(worst[0] - worst[1]) * np.sqrt(np.log(1 / 0.005) / 80)
    expected = min(1.0, 2 * (mean + slack) - 1)
    assert bound_by_leaves(groups, counts, leaves, error) == pytest.approx(expected)


def test_nothing_is_certified_without_people_of_a_group():
    alone = LeafPeople(np.zeros(50, np.intp), np.zeros(50, np.int8))
    for bound in BOUNDS:
        got = certify_leaves(bound, alone, alone, 2, 3, 0.05, np.random.default_rng(0))
        assert (got.parity, got.accuracy) == (1.0, 1.0)


def test_the_tree_trades_labels_for_groups():
    people = draw(make_law(2, 5), 4000, np.random.default_rng(0))
    gaps, impurities = [], []
    for fairness in (0.0, 0.5, 1.0):
        tree = grow_fair_tree(people, fairness=fairness, leaves=6, minleaf=50)
        leaves = tree.find_leaves(people.features)
        sizes = np.bincount(leaves, minlength=tree.k)
        assert sizes.min() >= 50
        assert tree.k <= 6
        own = [np.bincount(leaves[people.sensitive == g], minlength=tree.k) for g in (0, 1)]
        gaps.append(np.abs(own[0] / own[0].sum() - own[1] / own[1].sum()).sum() / 2)
        ones = np.bincount(leaves, people.labels, minlength=tree.k)
        impurities.append((ones * (1 - ones / sizes)).sum())
    assert gaps[0] > gaps[1] >= gaps[2]
    assert impurities[0] < impurities[1] <= impurities[2]


def test_without_fairness_it_is_the_tree_of_scikit_learn(make_people):
    from sklearn.tree import DecisionTreeClassifier

    people = make_people(300)
    numbers = people.having(features=people.features[["skill", "income"]].round(1).clip(-3, 3))
    tree = grow_fair_tree(numbers, fairness=0.0, leaves=5, minleaf=10)
    other = DecisionTreeClassifier(max_leaf_nodes=5, min_samples_leaf=10, random_state=0)
    other.fit(numbers.features, numbers.labels)
    ours, theirs = tree.find_leaves(numbers.features), other.apply(numbers.features)
    assert len(set(zip(ours, theirs, strict=True))) == 5


def test_nothing_but_the_leaf_is_shown(make_people, rng):
    people, learner = (
        make_people(500, 3),
        fpbench.component("learner", "fare", base={"use": "private-tree", "epsilon": 2.0}),
    )
    domain = fpbench.data.Domain.of(
        {"skill": [-6, 6], "income": [-9000, 9000], "job": [f"job {g}" for g in range(3)]}
    )
    known = Sample(people.groups, features=people.features, labels=people.labels,
                   sensitive=people.sensitive, domain=domain)  # fmt: skip
    model = learner.fit(known, rng)
    encoded = model.encoder.encode(people.features)
    assert encoded.dtypes.equals(people.features.dtypes)
    assert len(encoded.drop_duplicates()) <= model.notes["fare_leaves"]
    strange = people.features.assign(
        job=pd.Categorical(["nobody's"] * 500), skill=np.nan, income=people.features["income"]
    )
    assert set(model.predict(strange, rng)) <= {0, 1}
    # The tree is not private, so neither is what stands behind it.
    assert getattr(model, "guarantee", None) is None
    assert not [name for name in model.notes if "epsilon" in name]
    assert learner.protects == frozenset()


def test_bad_input_is_refused(make_people, rng):
    def make(**options):
        return fpbench.component("learner", "fare", **({"base": {"use": "plain"}} | options))

    with pytest.raises(DataError, match="of 30 training people 27 grow the tree and 3 certify it"):
        make(held_out=0.1).fit(make_people(30), rng)
    with pytest.raises((ValidationError, fpbench.FpbenchError), match="take another base"):
        make(base={"use": "threshold-optimizer"})
    with pytest.raises((ValidationError, fpbench.FpbenchError), match="confidence"):
        make(confidence=1.0)


def test_the_certificate_stands_in_rows_and_on_leaderboards(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 3000}],
        "learner": [{"use": "fare", "base": {"use": "plain"}}],
        "auditor": [{"use": "group-fairness", "resamples": 0}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run")
    (row,) = run.frame().to_dict("records")
    assert row["status"] == "done"
    assert row["independence_gap"] <= row["fare_parity_bound"] < 1
    assert 0.5 < row["fare_accuracy_bound"] < 1
    shown = str(run.leaderboard())
    assert "certified parity" in shown and "certified guess" in shown
