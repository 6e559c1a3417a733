"""Published models: learner `group-aware` and disclosure `structure`."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench import InputError, Sample
from fpbench.correction import condition_beliefs, find_likeliest_groups, prove
from fpbench.data import Domain


def make_people(n=400, k=2, seed=0):
    rng = np.random.default_rng(seed)
    sensitive = rng.integers(0, k, n)
    features = pd.DataFrame({
        "age": rng.integers(18, 80, n) + 8 * sensitive,
        "city": pd.Categorical(rng.choice(["a", "b", "c"], n)),
    })  # fmt: skip
    labels = (rng.random(n) < 0.2 + 0.5 * (sensitive == 0)).astype(np.int8)
    names = tuple(f"group {code}" for code in range(k))
    domain = {"age": [0, 120], "city": ["a", "b", "c"]}
    return Sample(
        names, features=features, labels=labels, sensitive=sensitive.astype(np.int8),
        domain=fpbench.data.Domain.of(domain),
    )  # fmt: skip


def train(people, base, seed=0):
    learner = fpbench.component("learner", "group-aware", base=base)
    return learner, learner.fit(people.only(learner.needs), np.random.default_rng(seed))


def disclose(people, model, **changes):
    context = SimpleNamespace(
        **({"target": people, "model": model, "trained_on_target": True} | changes)
    )
    structure = fpbench.component("disclosure", "structure")
    return structure.claim(context, np.random.default_rng(0))


FOREST = {"use": "plain", "base": "random-forest", "base_parameters": {"bootstrap": False}}


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("base", [{"use": "plain"}, {"use": "decision-tree"}, FOREST])
def test_a_published_model_proves_groups_rightly(base, k):
    people = make_people(k=k)
    _, model = train(people, base)
    claim = disclose(people, model)
    (facts,) = claim.also
    possible = prove(facts, seconds=600)
    assert possible[np.arange(len(people)), people.sensitive].all()
    assert claim.guarantee is None
    assert claim.nats == pytest.approx(len(people) * np.log(k))


def test_beliefs_given_a_forest_name_nearly_everybody():
    people = make_people()
    _, model = train(people, FOREST)
    (facts,) = disclose(people, model).also
    after = condition_beliefs(
        facts, np.full((len(people), 2), 0.5), prove(facts, seconds=600)
    ).beliefs
    assert (after.argmax(axis=1) == people.sensitive).mean() > 0.8


def test_a_private_tree_tells_noisy_counts_and_its_guarantee():
    people = make_people(k=2)
    _, model = train(people, {"use": "private-tree", "epsilon": 50.0, "max_depth": 3})
    claim = disclose(people, model)
    (facts,) = claim.also
    assert facts.noisy.all()
    assert claim.guarantee == model.guarantee
    told = np.isfinite(facts.low)
    assert told.sum() == len(facts)  # a count is one measurement, of one group
    off = (facts.count(np.eye(2)[people.sensitive]) - facts.low)[told]
    assert np.abs(off).max() < 40 * facts.scale.max()


def test_the_group_decides_predictions_and_is_needed():
    people = make_people()
    learner, model = train(people, {"use": "plain"})
    rng = np.random.default_rng(0)
    rates = [
        model.predict(people.features, rng, np.full(len(people), code)).mean() for code in (0, 1)
    ]
    assert rates[0] > rates[1] + 0.2
    with pytest.raises(InputError, match="needs everyone's group"):
        model.predict(people.features, rng)
    assert learner.predicts_with_sensitive
    assert learner.gives_trees


def test_a_feature_called_group_keeps_its_name():
    people = make_people()
    people = people.having(features=people.features.rename(columns={"age": "group"}))
    _, model = train(people, {"use": "plain"})
    assert model.column == "group_"
    assert list(model.add_group(people.features, people.sensitive)) == ["group", "city", "group_"]


def test_people_the_model_was_not_trained_on_are_refused():
    people = make_people()
    _, model = train(people, {"use": "plain"})
    with pytest.raises(InputError, match="held-out"):
        disclose(people, model, trained_on_target=False)
    with pytest.raises(InputError, match="no trees with groups"):
        disclose(people, SimpleNamespace())


def test_a_matrix_skips_models_without_trees(tmp_path):
    matrix = {
        "seeds": 1,
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [
            {"use": "plain"},
            {"use": "group-aware", "label": "aware",
             "base": {"use": "plain", "base_parameters": {"max_depth": "none"}}},
            {"use": "group-aware", "label": "logistic",
             "base": {"use": "plain", "base": "logistic-regression"}},
        ],
        "disclosure": [{"use": "structure"}],
        "adversary": [{"use": "a1"}],
        "corrector": [{"use": "posterior"}],
    }  # fmt: skip
    run = fpbench.run(matrix, out=tmp_path / "run")
    frame = run.frame()
    row = frame[frame.learner == "aware"].iloc[0]
    assert row.leak_expected > 0
    assert row.people_proven > 0
    assert (frame.status == "done").sum() == 1
    assert frame[frame.learner == "logistic"].reason.str.contains("reads trees").all()


def test_a_private_forest_tells_noisy_counts_of_all_people_in_each_tree():
    people = make_people(n=200)
    _, model = train(people, {"use": "private-forest", "epsilon": 8.0, "trees": 4, "max_depth": 3})
    assert model.guarantee.epsilon == 8.0
    assert model.guarantee.neighbours == "add-remove"
    trees = model.published_trees
    assert len(trees) == 4
    for tree in trees:
        features = model.add_group(people.features, people.sensitive)
        leaves = np.unique(tree.find_leaves(features))
        assert tree.scale[leaves] == pytest.approx(4 / 8.0)  # epsilon is shared by the trees
        assert abs(tree.counts[leaves].sum() - 200) < 20 * 0.5 * 16**0.5
    claim = disclose(people, model)
    (facts,) = claim.also
    assert claim.guarantee == model.guarantee
    off = (facts.count(np.eye(2)[people.sensitive]) - facts.low)[np.isfinite(facts.low)]
    assert np.abs(off).mean() == pytest.approx(0.5, rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_without_noise_the_likeliest_groups_of_a_forest_are_those_it_proves(k):
    people = make_people(n=60, k=k)
    base = {"use": "private-forest", "trees": 40, "max_depth": 6}
    exact, quiet = (train(people, {**base, "epsilon": e})[1] for e in (float("inf"), 4e3))
    assert exact.guarantee is None
    (facts,), (noisy,) = (disclose(people, model).also for model in (exact, quiet))
    assert noisy.noisy.any()
    assert not facts.noisy.any()
    possible = prove(facts, seconds=600)
    proven = possible.sum(axis=1) == 1
    assert possible[np.arange(60), people.sensitive].all()
    assert proven.any()
    for told in (facts, noisy):  # the same trees: splits do not depend on epsilon
        best = find_likeliest_groups(told)
        assert best.proven
        assert (best.groups[proven] == people.sensitive[proven]).all()


def test_splits_of_a_private_forest_are_drawn_by_feature_and_without_people():
    people = make_people(n=100)
    base = {"use": "private-forest", "trees": 300, "max_depth": 2}
    models = [train(part, base)[1].model for part in (people, people.take(np.arange(9)))]
    splits = [model.trees.split for model in models]
    np.testing.assert_array_equal(*splits)
    table = models[0].trees.candidates.table
    roots = np.bincount(table.feature[splits[0][:, 0]], minlength=3) / 300
    assert roots == pytest.approx(1 / 3, abs=0.1)  # age has 64 thresholds, city 3 categories


@pytest.mark.parametrize(("k", "seed"), [(2, 43), (2, 0), (3, 0)])
def test_beliefs_and_likeliest_groups_given_a_private_forest_are_those_of_all_worlds(k, seed):
    rng, n = np.random.default_rng(seed), 14 - 2 * k
    features = pd.DataFrame({name: rng.integers(0, 2, n).astype(float) for name in "ab"})
    labels, groups = (rng.integers(0, top, n).astype(np.int8) for top in (2, k))
    people = Sample(
        tuple("uvw"[:k]), features=features, labels=labels, sensitive=groups,
        domain=Domain.of({"a": [0, 1], "b": [0, 1]}),
    )  # fmt: skip
    base = {"use": "private-forest", "epsilon": 20.0, "trees": 5, "max_depth": 3}
    model = fpbench.component("learner", "group-aware", base=base).fit(people, rng)
    (facts,) = disclose(people, model).also
    worlds = np.array(list(product(range(k), repeat=n)))
    weights = np.zeros(len(worlds))
    for tree in model.published_trees:
        leaves = np.stack([tree.find_leaves(model.add_group(features, np.full(n, own)))
                           for own in range(k)], axis=1)  # fmt: skip
        for leaf, label in product(np.unique(leaves), (0, 1)):
            counts = ((leaves[np.arange(n), worlds] == leaf) & (labels == label)).sum(axis=1)
            weights -= np.abs(tree.counts[leaf, label] - counts) / (5 / 20.0)
    best = find_likeliest_groups(facts)
    assert best.proven
    assert weights[(worlds == best.groups).all(axis=1)] == pytest.approx(weights.max())
    chances = np.exp(weights - weights.max())
    chances /= chances.sum()
    exact = np.stack([chances @ (worlds == own) for own in range(k)], axis=1)
    found = condition_beliefs(facts, np.full((n, k), 1 / k), np.ones((n, k), bool), error=1e-4)
    np.testing.assert_allclose(found.beliefs, exact, atol=1e-3)


def test_likeliest_names_groups_in_a_matrix(tmp_path):
    matrix = {
        "seeds": 1,
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [
            {"use": "group-aware", "base": {"use": "private-forest", "epsilon": 50.0}},
            {"use": "private-forest", "label": "unaware"},
        ],
        "disclosure": [{"use": "structure"}],
        "adversary": [{"use": "prior"}, {"use": "a1"}],
        "corrector": [{"use": "likeliest"}, {"use": "posterior"}],
    }  # fmt: skip
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    done = frame[frame.status == "done"]
    assert len(done) == 4
    assert (done.likeliest_gap.dropna() == 0).all()
    assert (done.with_accuracy > done.majority_accuracy - 0.1).all()
    assert frame[frame.learner == "unaware"].reason.str.contains("reads trees").all()
