"""The auditor `epsilon-lower-bound` on learners that keep their promise, and that do not."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fpbench_membership import bound_epsilon_one_run
from fpbench_membership._canaries import find_public, keep_few, make_canaries
from fpbench_membership.epsilon_lower_bound import EpsilonLowerBound
from pydantic import ValidationError
from scipy.stats import binom

import fpbench
from fpbench import Guarantee, InputError, Learner
from fpbench.plugin import Subject

Pate, Plain, PrivateFairTree, PrivateTree = (
    fpbench.plugin.discover().component("learner", name)
    for name in ("pate", "plain", "private-fair-tree", "private-tree")
)


@pytest.fixture(scope="module")
def people():
    """People with a declared domain."""
    return fpbench.dataset("census-synthetic", rows=300).sample()


def audit(learner, crowd, seed=0, **options):
    """What the auditor says of a learner."""
    model = learner.fit(crowd.only(learner.needs), np.random.default_rng(9))
    subject = Subject(crowd, crowd, model=model, learner=learner)
    return EpsilonLowerBound(**options).audit(subject, np.random.default_rng(seed))


class HalfTheNoise(PrivateTree):
    """Claims half of the epsilon that it has."""

    name = "half-the-noise"

    def fit_many(self, people, members, rngs):
        options = {name: getattr(self, name) for name in PrivateTree.model_fields}
        honest = PrivateTree(**{**options, "epsilon": 2 * self.epsilon})
        claimed = Guarantee(self.epsilon, 0.0, "add-remove")
        models = honest.fit_many(people, members, rngs)
        return [replace(model, guarantee=claimed) for model in models]


class Greedy(type(PrivateTree().recipe())):
    """Splits without noise."""

    noise_scale = property(lambda self: 0.0)


class LooksAtData(PrivateTree):
    """Chooses splits without noise, and claims that they have some."""

    name = "looks-at-data"

    def recipe(self):
        return Greedy(**{name: getattr(self, name) for name in type(self).model_fields})


@pytest.mark.slow
def test_half_the_noise_is_caught(people):
    tree = {"max_depth": 1, "leaf_share": 0.9}
    bad = [audit(HalfTheNoise(epsilon=1.0, **tree), people, s, runs=1500) for s in range(3)]
    caught = [measures["epsilon_claim_holds"] == 0 for measures in bad]
    assert sum(caught) >= 2
    assert all(measures["epsilon_bound"] < 2 for measures in bad)  # which it has


@pytest.mark.slow
def test_a_split_that_looks_at_data_is_caught(people):
    bad = [audit(LooksAtData(epsilon=0.5, max_depth=1), people, s, runs=200) for s in range(3)]
    assert sum(measures["epsilon_bound"] > 1 for measures in bad) >= 2
    assert sum(measures["epsilon_claim_holds"] == 0 for measures in bad) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (PrivateTree(epsilon=0.5, max_depth=1, leaf_share=0.9), {"runs": 200}),
        (PrivateTree(epsilon=4.0, max_depth=2), {"runs": 200, "place": "far"}),
        (PrivateFairTree(epsilon=1.0, max_depth=2), {"runs": 200}),
        (PrivateTree(epsilon=1.0, max_depth=3), {"mode": "one-run"}),
    ],
    ids=str,
)
def test_honest_trees_are_not_accused(learner, options, people):
    audits = [audit(learner, people, seed, **options) for seed in range(5)]
    above = sum(measures["epsilon_claim_holds"] == 0 for measures in audits)
    assert above <= binom.ppf(0.999, len(audits), 0.05)
    assert {measures["epsilon_neighbours"] for measures in audits} == {"add-remove"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (Pate(epsilon=1.0, teachers=4, public=20), {"runs": 160, "people": 40}),
        (Pate(epsilon=1.0, teachers=4, public=20, partition="equal"), {"runs": 160, "people": 40}),
        (Pate(epsilon=1.0, teachers=4, public=60), {"mode": "one-run", "canaries": 60}),
    ],
    ids=["pate by hash", "pate in equal parts", "pate in one run"],
)
def test_other_private_learners_are_audited_by_their_own_relation(learner, options, people):
    measures = audit(learner, people, **options)
    equal = getattr(learner, "partition", "hash") == "equal"
    assert measures["epsilon_neighbours"] == ("replace-one" if equal else "add-remove")
    assert measures["epsilon_claim_holds"] == 1
    assert 0 <= measures["epsilon_bound"] <= measures["epsilon_most_provable"]
    if options.get("mode") == "one-run":  # who is public may change: two steps to a neighbour
        delta = learner.fit(people.only(learner.needs), np.random.default_rng(9)).guarantee.delta
        guesses = measures["epsilon_guesses"]
        most = bound_epsilon_one_run(options["canaries"], guesses, guesses, delta=delta, steps=2)
        assert measures["epsilon_most_provable"] == most


def test_few_features_are_numbers_first(people):
    names = [list(keep_few(people, n).features) for n in (1, 4, 99)]
    assert names[0] == ["age"]
    assert names[1] == ["age", "hours", "capital_gain", "education"]
    assert len(names[2]) == people.features.shape[1]
    few = keep_few(people, 1)
    assert list(few.domain.to_lists()) == ["age"]
    assert (few.sensitive == people.sensitive).all()
    words = people.features.columns[[3, 0]]
    turned = people.having(features=people.features[words])
    assert list(keep_few(turned, 1).features) == ["age"]


@dataclass
class Recalled:
    """Says whether a person was there, with noise or without."""

    known: set
    guarantee: Guarantee | None = None

    def predict_proba(self, features, rng, sensitive=None):
        there = [tuple(row) in self.known for row in features.itertuples(index=False)]
        return np.column_stack([1 - np.array(there), there]).astype(float)

    def predict(self, features, rng, sensitive=None):
        return self.predict_proba(features, rng)[:, 1].astype(np.int8)


class Parrot(Learner):
    """Remembers everybody of label 1, and claims epsilon 1."""

    name = "memory"
    summary = "remembers"
    needs = frozenset({"features", "labels"})
    gives_scores = True

    def fit(self, sample, rng):
        rows = sample.features[sample.labels == 1].itertuples(index=False)
        return Recalled(set(map(tuple, rows)), Guarantee(1.0, 0.0, "add-remove"))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"runs": 100}, {"mode": "one-run", "canaries": 60}])
def test_memory_is_proven_as_far_as_so_many_runs_can(options, people):
    measures = audit(Parrot(), people, **options)
    assert measures["epsilon_claim_holds"] == 0
    assert measures["epsilon_bound"] > 1
    if "runs" in options:
        assert measures["epsilon_bound"] == pytest.approx(measures["epsilon_most_provable"])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["near", "far"])
def test_the_canary_of_many_runs_lies_where_the_parameter_says(place, people):
    trained = []

    class Witness(Parrot):
        def fit(self, sample, rng):
            trained.append(sample)
            return super().fit(sample, rng)

    audit(Witness(), people, runs=40, people=10, place=place)
    sample = trained[1]  # the first is that of the audited model
    (canary,) = np.flatnonzero(sample.labels == 1)
    (differs,) = (sample.features.iloc[[canary]].ne(sample.features.iloc[0])).to_numpy()
    assert differs.sum() == (differs.size if place == "far" else 2)  # a number and a category
    assert differs[-1]


@dataclass
class GroupRate:
    """Says a noisy number of people in group 1."""

    rate: float
    guarantee: Guarantee

    def predict(self, features, rng, sensitive=None):
        return np.zeros(len(features), np.int8)

    def predict_proba(self, features, rng, sensitive=None):
        return np.tile([1 - self.rate, self.rate], (len(features), 1))


class GroupCounter(Learner):
    """A learner whose guarantee is about people's groups only."""

    name = "group-counter"
    summary = "counts group 1"
    needs = frozenset({"labels", "sensitive"})
    gives_scores = True
    true_epsilon: float = 1.0

    def fit(self, sample, rng):
        count = (sample.sensitive == 1).sum() + rng.laplace(scale=1 / self.true_epsilon)
        rate = float(np.clip(0.5 + count / 100, 0, 1))
        return GroupRate(rate, Guarantee(1.0, 0.0, "attribute"))


def test_of_a_guarantee_about_groups_the_canary_is_a_group(people):
    honest = audit(GroupCounter(), people, runs=800)
    assert honest["epsilon_neighbours"] == "attribute"
    assert 0.3 < honest["epsilon_bound"] < 1.3
    liar = audit(GroupCounter(true_epsilon=3.0), people, runs=800)
    assert liar["epsilon_claim_holds"] == 0
    with pytest.raises(InputError, match='use mode = "many-runs"'):
        audit(GroupCounter(), people, mode="one-run")


def test_a_learner_without_a_guarantee_has_a_bound_and_no_claim(people):
    measures = audit(Plain(base="logistic-regression"), people, runs=60)
    assert measures["epsilon_claim_holds"] is None
    assert measures["epsilon_neighbours"] == "add-remove"


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "attribute"])
@pytest.mark.parametrize("place", ["near", "far"])
def test_data_sets_with_and_without_a_canary_are_neighbours(relation, place, people):
    pool = make_canaries(people, 20, 3, relation, np.random.default_rng(0), place=place, worst=True)
    included = np.zeros((2, 3), bool)
    included[1, 1] = True
    without, within = pool.choose(included)
    assert not within[pool.probes].any()

    def records(members):
        chosen = pool.people.take(np.flatnonzero(members))
        return Counter(
            (*row, int(label), int(group))
            for row, label, group in zip(
                chosen.features.itertuples(index=False),
                chosen.labels,
                chosen.sensitive,
                strict=True,
            )
        )

    added, removed = records(within) - records(without), records(without) - records(within)
    assert added.total() == 1
    assert removed.total() == (relation != "add-remove")
    (one,) = added
    assert one[-2] == 1  # nobody else has this label
    if relation == "attribute":
        (other,) = removed
        assert one[:-1] == other[:-1]
        assert (one[-1], other[-1]) == (1, 0)


def test_who_is_public_is_found_by_rows_of_the_training_data():
    class Public:
        public_rows = np.array([1, 2])

    members = np.array([True, False, True, True, False, True])
    public = [find_public(Public(), row, members) for row in range(6)]
    assert public == [False, False, True, True, False, False]
    assert not find_public(object(), 2, members)
    assert not find_public(Public(), -1, members)


def test_of_an_odd_number_of_canaries_one_is_not_guessed_twice(people):
    measures = audit(
        PrivateTree(epsilon=1.0, max_depth=1), people, mode="one-run", canaries=11, guesses=1.0
    )
    assert measures["epsilon_guesses"] == 10


def test_without_a_learner_it_says_what_it_needs(people):
    with pytest.raises(InputError, match="needs to train the learner on other people"):
        EpsilonLowerBound().audit(Subject(people, people), np.random.default_rng(0))


@pytest.mark.parametrize(
    "wrong",
    [{"runs": 39}, {"mode": "one-run", "runs": 100}, {"canaries": 50}, {"confidence": 1.0},
     {"mode": "one-run", "place": "far"}, {"guesses": 0.5}, {"people": 1}, {"features": 0}],
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError):
        EpsilonLowerBound(**wrong)


def test_in_a_matrix_the_bound_stands_beside_the_claim(tmp_path):
    matrix = {
        "seeds": 1,
        "split": {"train": 0.5, "test": 0.5, "attack": 0.0},
        "dataset": [{"use": "census-synthetic", "rows": 200}],
        "learner": [{"use": "private-tree", "max_depth": 1, "epsilon": 2.0}],
        "auditor": [{"use": "epsilon-lower-bound", "runs": 60}],
    }
    (row,) = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert row["status"] == "done"
    assert row["model_epsilon"] == 2.0
    assert row["epsilon_bound"] <= 2.0
    assert row["epsilon_claim_holds"] == 1
