"""Published models: learner `group-aware` and disclosure `structure`."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench import InputError, Sample
from fpbench.correction import condition_beliefs, prove


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
    off = facts.count(np.eye(2)[people.sensitive]) - facts.low
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
