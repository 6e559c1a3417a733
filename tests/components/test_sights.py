"""One table says what may be seen: checks, plans, the kit and the documentation follow it."""

import re

import numpy as np
import pytest
from pages import ROOT

import fpbench
from fpbench import Adversary, Guess
from fpbench.components.auditor import BASES
from fpbench.components.sights import SIGHTS, explain_lack, keep_model_sights, list_sights
from fpbench.data.sample import Sample
from fpbench.matrix.step import EACH_GROUP
from fpbench.testing import Outcome, checks
from fpbench.testing.fixtures import (
    hide_otherwise,
    make_cell_inputs,
    make_kit_learner,
    make_step,
    show_to,
)


def sightseer(*sights):
    """An adversary that sees exactly this, and reads all of it."""

    class Sightseer(Adversary):
        """Reads everything."""

        name, summary = "sightseer", "reads what it sees"
        sees = frozenset(sights)

        def guess(self, view, rng):
            for people in (view.target, view.attack):
                for sight in self.sees:
                    assert len(getattr(people, sight)) == len(people)
            n, k = len(view.target), len(view.target.groups)
            held_out = np.arange(len(view.attack))
            even = np.full((n, k), 1 / k), np.full((len(held_out), k), 1 / k)
            return Guess.from_beliefs(even[0], held_out, even[1])

    return Sightseer


@pytest.mark.parametrize("sight", sorted(list_sights("adversary")))
def test_who_sees_one_thing_is_shown_that_and_never_the_truth(sight):
    laws = {check.law.words: check for check in checks(sightseer(sight))}
    for law in (
        "declares what it may see",
        "needs no more than it may see",
        "is shown what it declares, and never the truth",
    ):
        assert laws[law]().outcome is Outcome.KEPT


@pytest.mark.parametrize("sight", ["structure", "series", "sensitive", "model", "fit", "quarry"])
def test_what_adversaries_may_not_see_they_may_not_declare(sight):
    check = next(c for c in checks(sightseer(sight)) if c.law.words == "declares what it may see")
    assert check().outcome is Outcome.BROKEN


def test_columns_of_people_are_named_as_what_is_seen():
    assert list_sights("adversary") <= set(Sample.COLUMNS) - Sample.HIDDEN - {"sensitive"}
    assert {kind for sight in SIGHTS.values() for kind in sight.kinds} <= set(BASES)


def test_a_query_says_nothing_of_anybodys_own_group():
    """Of a model that predicts with groups, predictions do, and answers about every group do not."""
    from fpbench.execution.work.actions import ACTIONS

    sees = frozenset({"predictions", "query"})
    split, predictions, answers = show_to(sees, 2)
    learner = make_kit_learner(sees)
    model = ACTIONS["train"](learner, (split,), make_step(0))
    (other, *_) = hide_otherwise((split,))
    again = ACTIONS["ask"](learner, (model, other), make_step(0, EACH_GROUP))
    assert np.array_equal(again.target.predictions, answers.target.predictions)
    assert np.array_equal(again.target.scores, answers.target.scores)
    moved = ACTIONS["predict"](learner, (model, other), make_step(0))
    assert (moved.train != predictions.train).any()
    own = split.train.sensitive
    rows = np.arange(len(own))
    assert np.array_equal(answers.target.predictions[rows, own], predictions.train)


def test_the_twin_answers_about_people_as_they_are():
    split, answers = show_to(frozenset({"twin"}), 2)
    assert answers.target.predictions.shape == (len(split.train),)
    assert np.array_equal(answers.target.predictions, make_cell_inputs(2).predictions.train)
    few = answers.attack.take(np.array([3, 1]))
    assert np.array_equal(few.scores, answers.attack.scores[[3, 1]])


@pytest.mark.parametrize(("adversary", "learner", "reason"), [
    ("csmia", {"name": "plain"}, "adversary 'csmia' asks the model about every group, and models"),
    ("twin", {"name": "plain"}, "adversary 'twin' compares a fair model with its unfair twin, and"),
    ("a2-proba", {"name": "plain", "base": "sklearn.svm:LinearSVC"}, "adversary 'a2-proba' sees"),
    ("a2-proba",
     {"name": "group-aware", "base": {"use": "plain", "base": "sklearn.svm:LinearSVC"}},
     "adversary 'a2-proba' sees scores, and of learner 'group-aware' "),
])  # fmt: skip
def test_a_model_that_cannot_give_it_is_refused_with_the_reason(adversary, learner, reason):
    kind = fpbench.component("adversary", adversary)
    why = kind.incompatible(fpbench.component("learner", **learner))
    assert why.startswith(reason)


@pytest.mark.parametrize(
    ("adversary", "learner"),
    [
        ("csmia", {"name": "threshold-optimizer"}),
        ("lomia", {"name": "group-aware", "base": {"use": "plain"}}),
        ("twin", {"name": "exponentiated-gradient"}),
        ("twin", {"name": "group-aware", "base": {"use": "exponentiated-gradient"}}),
        ("a2-proba", {"name": "plain"}),
    ],
)
def test_a_model_that_gives_it_is_not(adversary, learner):
    kind = fpbench.component("adversary", adversary)
    assert kind.incompatible(fpbench.component("learner", **learner)) is None


def test_reasons_begin_with_who_wants_to_see():
    plain = fpbench.component("learner", "plain")
    assert explain_lack("auditor 'x'", {"twin"}, plain).startswith("auditor 'x' compares a fair")
    assert explain_lack("auditor 'x'", {"features", "fit"}, plain) is None
    structure = fpbench.component("disclosure", "structure")
    assert structure.incompatible(plain).startswith("disclosure 'structure' reads trees that have")


def test_what_the_model_gives_comes_in_the_order_of_the_table():
    assert keep_model_sights({"twin", "scores", "labels", "predictions"}) == (
        "predictions",
        "scores",
        "twin",
    )


def test_the_documentation_has_the_table():
    page = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)` \|", page.partition("## What may be seen")[2], re.M)
    assert rows[: len(SIGHTS)] == list(SIGHTS)
