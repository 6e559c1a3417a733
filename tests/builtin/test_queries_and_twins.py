"""Adversaries that ask a model about every group, compare it with its twin, or see its scores only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import View
from fpbench.builtin.adversaries._learned_adversary import guess_weighted, weigh_groups
from fpbench.builtin.adversaries.aalmoes import AdaptAIA, AdaptAIAHard
from fpbench.builtin.adversaries.mehnaz import CSMIA, LOMIA, A2Query, find_cases
from fpbench.builtin.adversaries.twin import Twin
from fpbench.builtin.ferry.adversaries import A2, A2Proba
from fpbench.data import ModelAnswers

SMALL = {"parameters": {"max_iter": 20}}


def copies(people):
    """A model that says the group as its label: what it is told, or the person's own."""
    n = len(people)
    told = np.tile(np.arange(2, dtype=np.int8), (n, 1))
    own = (people.sensitive > 0).astype(np.int8)
    return people.having(predictions=own, query=ModelAnswers(told, 0.2 + 0.6 * told))


def ignores(people):
    """A model of another thing, which answers the same whatever the group."""
    scores = np.random.default_rng(len(people)).random(len(people))
    labels = (scores > 0.5).astype(np.int8)
    both = ModelAnswers(np.stack([labels] * 2, 1), np.stack([scores] * 2, 1))
    return people.having(predictions=labels, scores=scores, query=both)


def view_of(adversary, make_people, model, n=500, m=600, same_labels=False):
    target, attack = (
        people.having(labels=people.sensitive.astype(np.int8)) if same_labels else people
        for people in (make_people(n, 2, seed=1), make_people(m, 2, seed=2))
    )
    return (
        View(model(target).only(adversary.sees), model(attack).only(adversary.sees | {"sensitive"})),
        target.sensitive,
    )  # fmt: skip


def accuracy(adversary, view, truth):
    guess = adversary.guess(view, np.random.default_rng(0))
    return np.mean(guess.values == truth)


def test_predictions_that_copy_the_group_name_all_who_asks_about_every_group(make_people):
    view, truth = view_of(A2Query, make_people, copies)
    assert accuracy(A2Query(**SMALL), view, truth) == 1


@pytest.mark.parametrize("kind", [CSMIA, LOMIA])
@pytest.mark.parametrize("scored", [True, False])
def test_labels_that_the_model_learned_from_groups_name_all(kind, scored, make_people):
    def model(people):
        told = copies(people)
        return told if scored else told.having(query=ModelAnswers(told.query.predictions))

    view, truth = view_of(kind, make_people, model, same_labels=True)
    assert accuracy(kind(), view, truth) == 1


def test_a_model_that_ignores_groups_adds_nothing(make_people):
    """Rules of the answers name the most frequent group; what learns from them learns nothing."""
    for kind in (CSMIA, LOMIA):
        view, truth = view_of(kind, make_people, ignores)
        guess = kind().guess(view, np.random.default_rng(0))
        assert len(set(guess.values)) == 1
        assert abs(accuracy(kind(), view, truth) - 0.5) < 0.07
    (asks, truth), (sees, _) = (view_of(kind, make_people, ignores) for kind in (A2Query, A2))
    assert abs(accuracy(A2Query(**SMALL), asks, truth) - accuracy(A2(**SMALL), sees, truth)) < 0.05


def test_a_twin_that_is_the_model_itself_adds_nothing(make_people):
    def twins(people):
        shown = ignores(people)
        return shown.having(twin=ModelAnswers(shown.predictions, shown.scores))

    (compares, truth), (sees, _) = (view_of(kind, make_people, twins) for kind in (Twin, A2Proba))
    assert (
        abs(accuracy(Twin(**SMALL), compares, truth) - accuracy(A2Proba(**SMALL), sees, truth))
        < 0.05
    )


def test_a_twin_whose_scores_were_moved_by_group_names_all(make_people):
    """A fair model that lowers the scores of a group: neither model alone tells whose."""

    def moved(people):
        shown = ignores(people)
        low = shown.scores - 0.1 * (people.sensitive > 0)
        return shown.having(twin=ModelAnswers(shown.predictions, shown.scores), scores=low)

    (compares, truth), (sees, _) = (view_of(kind, make_people, moved) for kind in (Twin, A2Proba))
    assert accuracy(Twin(**SMALL), compares, truth) == 1
    assert accuracy(A2Proba(**SMALL), sees, truth) < 0.9


def test_csmia_names_the_group_of_the_papers_three_cases():
    """Right for one group; for several, the surest; for none, the least sure; of equals, the many."""
    scores = np.array([[0.9, 0.3, 0.2], [0.6, 0.8, 0.7], [0.4, 0.1, 0.3], [0.7, 0.7, 0.2]])
    answers = ModelAnswers((scores > 0.5).astype(np.int8), scores)
    cases = find_cases(answers, np.ones(4, np.int8), np.array([0.2, 0.5, 0.3]))
    assert cases.case.tolist() == [0, 1, 2, 1]
    assert cases.values.tolist() == [0, 1, 0, 1]
    other = find_cases(answers, np.zeros(4, np.int8), np.array([0.2, 0.5, 0.3]))
    assert other.case.tolist() == [1, 2, 1, 0]
    assert other.values.tolist() == [2, 0, 1, 2]


@given(st.integers(0, 2**32))
def test_csmia_names_a_group_with_a_right_prediction_whatever_the_scores(seed):
    """A model may predict the label that its own scores say is the less probable."""
    rng = np.random.default_rng(seed)
    scores = rng.random((40, 3))
    predictions, labels = (rng.integers(0, 2, size, np.int8) for size in ((40, 3), 40))
    values = find_cases(ModelAnswers(predictions, scores), labels, np.full(3, 1 / 3)).values
    right = predictions == labels[:, None]
    assert right[np.arange(40), values][right.any(axis=1)].all()
    probable = np.where(labels[:, None] == 1, scores, 1 - scores)
    first = np.where(right == right.any(axis=1, keepdims=True), probable, -1)
    assert np.array_equal(values, first.argmax(axis=1))


def test_thresholds_have_the_greatest_balanced_accuracy():
    rng = np.random.default_rng(3)
    truth = (rng.random(300) < 0.1).astype(np.int8)
    chance = np.round(np.clip(0.1 + 0.1 * truth + rng.normal(0, 0.05, 300), 0, 1), 2)
    beliefs = np.stack([1 - chance, chance], axis=1)

    def balance(values):
        return np.mean([(values == truth)[truth == group].mean() for group in (0, 1)])

    weights = weigh_groups(beliefs, truth)
    rows = np.arange(len(truth))
    guess = guess_weighted(beliefs, rows, beliefs, weights)
    best = max(balance((chance >= at).astype(int)) for at in np.unique(chance))
    assert balance(guess.values) == pytest.approx(best)
    assert best > balance(beliefs.argmax(axis=1)) + 0.2
    assert np.array_equal(guess.beliefs, beliefs)
    assert np.array_equal(guess.confidence, beliefs[rows, guess.values])
    three = weigh_groups(np.full((4, 3), 1 / 3), np.array([0, 0, 1, 2]))
    assert np.allclose(three / three.sum(), [0.2, 0.4, 0.4])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AdaptAIA, AdaptAIAHard])
def test_adapt_aia_names_a_rare_group_that_is_likely_nowhere(kind, make_people):
    def rare(people):
        n = len(people)
        groups = (np.arange(n) % 10 == 0).astype(np.int8)
        scores = np.clip(0.4 + 0.3 * groups + np.random.default_rng(n).normal(0, 0.15, n), 0, 1)
        return people.having(
            sensitive=groups, scores=scores, predictions=(scores > 0.5).astype(np.int8)
        )

    target, attack = rare(make_people(500, 2, seed=1)), rare(make_people(600, 2, seed=2))
    view = View(target.only(kind.sees), attack.only(kind.sees | {"sensitive"}))
    recalls = {}
    for naming in ("likeliest", "balanced"):
        guess = kind(naming=naming).guess(view, np.random.default_rng(0))
        right = guess.values == target.sensitive
        recalls[naming] = np.mean([right[target.sensitive == group].mean() for group in (0, 1)])
    assert recalls["balanced"] > max(recalls["likeliest"], 0.65)


def test_a_search_without_the_model_needs_something_else_to_see():
    with pytest.raises(fpbench.InputError, match="scope"):
        fpbench.component("adversary", "adapt-aia", scope="dataset")


MATRIX = """
seeds = 1
[split]
train = 0.4
test = 0.2
attack = 0.4
[[dataset]]
use = "census-synthetic"
rows = 300
[[learner]]
use = "group-aware"
base = { use = "exponentiated-gradient", base = "decision-tree", max_iter = 3 }
[[learner]]
use = "plain"
[[disclosure]]
use = "hidden"
[[adversary]]
use = "csmia"
[[adversary]]
use = "twin"
parameters = { max_iter = 5 }
[[corrector]]
use = "none"
"""


def test_a_run_asks_the_model_and_its_twin_and_says_why_it_does_not(tmp_path):
    (tmp_path / "matrix.toml").write_text(MATRIX)
    rows = fpbench.run(tmp_path / "matrix.toml", out=tmp_path / "run").rows()
    seen = {(row["learner"], row["adversary"]): row for row in rows}
    assert seen["group-aware", "csmia"]["adversary_sees"] == "labels, query"
    assert (
        seen["group-aware", "twin"]["adversary_sees"]
        == "features, labels, predictions, scores, twin"
    )
    assert 0 < seen["group-aware", "csmia"]["balanced_accuracy"] <= 1
    assert "do not take people's groups" in seen["plain", "csmia"]["reason"]
    assert "has none" in seen["plain", "twin"]["reason"]
