"""Measures of a cell, from the results of its steps."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import Claim, Correction, Guarantee, Release, Sample
from fpbench.claims import METRICS, RateConstraint, ShareBounds
from fpbench.claims.rates import FORMS
from fpbench.components.beliefs import spread_confidence
from fpbench.components.own_measures import IN_ATTACKS, IN_AUDITS
from fpbench.components.records import CalibratedGuess, Predictions
from fpbench.execution.work.scores import (
    measure_attack,
    measure_beliefs,
    measure_claim,
    measure_leak,
    measure_model,
    measure_release,
)
from fpbench.plugin import SolverStatus, Split

CLAIMED = ("claim_metric", "claim_form", "claim_tolerance", "claim_holds")
NONE = np.array([], dtype=int)


def people(sensitive, labels):
    features = pd.DataFrame({"number": np.arange(len(labels))})
    return Sample(
        ("a", "b"), features=features, sensitive=np.array(sensitive), labels=np.array(labels)
    )


UNSOLVED = Correction(None, None)


def measured(claim, correction=UNSOLVED, asked=None, guess=(0, 0, 1, 1), guarantee=None):
    """Of four people, two in each group; positive rates 1 and 1/2."""
    train = people([0, 0, 1, 1], [0, 1, 0, 1])
    said = np.array([1, 1, 0, 1])
    predictions = Predictions(said, said, said, asked, guarantee=guarantee)
    values = np.array(guess)
    guessed = CalibratedGuess(
        values, np.ones(4), NONE, NONE, NONE.astype(float),
        beliefs=spread_confidence(values, np.ones(4), 2),
    )  # fmt: skip
    split = Split(train, train, train)
    return {
        **measure_attack(split, predictions, guessed, correction),
        **measure_leak(split, predictions, guessed, claim, correction),
        **measure_beliefs(split, guessed, correction),
        **measure_claim(claim, train, said),
        **measure_model(split, predictions, claim),
    }


PRIVATE = Guarantee(0.5, 1e-6, "replace-one", 0.1)
OF_CLAIM = {"claim_epsilon": 0.5, "claim_delta": 1e-6, "claim_neighbours": "replace-one",
            "claim_noise": "secure"}  # fmt: skip
OF_MODEL = {"model_epsilon": 0.5, "model_delta": 1e-6, "model_neighbours": "replace-one",
            "model_rho": 0.1}  # fmt: skip


def test_what_every_cell_has_is_there():
    for claim in (None, Claim(None, "x"), Claim(RateConstraint(), "x")):
        # Times and second thoughts are measured by the step that corrects; the plan knows the rest,
        # and an attack without the model is one of `fpbench.attack`.
        elsewhere = {
            "correct_seconds", "reconsidered_accuracy", "portable", "without_model_accuracy"
        }  # fmt: skip
        private = {*OF_CLAIM, *OF_MODEL, "dp_limit"} - {"model_epsilon"}
        known = {
            "disclosure_bits",
            "limit_beliefs",
            "limit_exact",
            "facts",
            "people_proven",
            "proven_unsure",
            "people_sure",
        }
        sometimes = {
            "bayes_accuracy", "worst_slice", "worst_slice_accuracy", "answered",
            "answered_accuracy",
        }  # fmt: skip
        assert {*measured(claim), *elsewhere, *private, *known, *sometimes} == IN_ATTACKS


def test_guarantees_come_from_guarantees():
    for claim in (None, Claim(RateConstraint(), "x")):
        found = measured(claim)
        assert found["model_epsilon"] is None
        assert not (found.keys() & (OF_CLAIM.keys() | OF_MODEL.keys())) - {"model_epsilon"}
    found = measured(Claim(None, "x", guarantee=PRIVATE, noise="secure"), guarantee=PRIVATE)
    assert found.items() >= (OF_CLAIM | OF_MODEL).items()


def test_no_claim_is_no_claim():
    for claim in (None, Claim(None, "x", (ShareBounds(0, 0.5),))):
        found = measured(claim)
        assert [found[name] for name in CLAIMED] == [None] * 4
        assert found["train_unfairness"] == 0.25  # of statistical parity, to overall
        asked = RateConstraint("equal-opportunity", 0.1, "between-groups")
        assert measured(claim, asked=asked)["train_unfairness"] == 0
        asked = RateConstraint("predictive-equality", 0.1, "between-groups")
        assert measured(claim, asked=asked)["train_unfairness"] == 1


@given(
    st.sampled_from(METRICS), st.sampled_from(FORMS), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
)
def test_a_claim_is_said_in_full_and_whether_it_is_true(metric, form, tolerance):
    constraint = RateConstraint(metric, tolerance, form)
    found = measured(Claim(constraint, "x"))
    unfairness = {
        ("statistical-parity", "to-overall"): 0.25, ("equal-opportunity", "to-overall"): 0,
        ("statistical-parity", "between-groups"): 0.5, ("equal-opportunity", "between-groups"): 0,
        ("statistical-parity", "ratio"): 0.5, ("equal-opportunity", "ratio"): 0,
    }.get((metric, form), 0.5 if form == "to-overall" else 1)  # fmt: skip
    assert [found[name] for name in CLAIMED] == [metric, form, tolerance, tolerance >= unfairness]
    assert found["train_unfairness"] == found["test_unfairness"] == unfairness


def test_whether_a_claim_holds_is_decided_exactly():
    sample = people([0, 0, 0, 1], [0] * 4)
    said = np.array([1, 0, 0, 1])
    predictions = Predictions(said, said, said, None)
    split = Split(sample, sample, sample)
    for tolerance, holds in (
        (0.6666666666666666, 0),
        (Fraction(2, 3), 1),
        (0.66666666666666674, 1),
    ):
        claim = Claim(RateConstraint(tolerance=tolerance, form="between-groups"), "x")
        found = measure_claim(claim, split.train, predictions.train)
        assert found["claim_holds"] == holds
        assert found["claim_tolerance"] == float(tolerance)


@pytest.mark.parametrize(
    ("status", "proven"),
    [(None, None), *((s, int(s in ("optimal", "infeasible"))) for s in SolverStatus)],
)
def test_optima_are_proven(status, proven):
    assert measured(None, Correction(None, status))["proven"] == proven


def test_accuracies_and_changes():
    correction = Correction(np.array([0, 1, 1, 0]), SolverStatus.OPTIMAL, objective=2.0, bound=1.5)
    found = measured(None, correction, guess=(1, 1, 1, 1))
    assert found["majority_accuracy"] == found["initial_accuracy"] == 0.5
    assert found["corrected_accuracy"] == 0.5
    assert found["gain"] == 0
    assert found["changes"] == 2
    assert found["change_precision"] == 0.5
    assert found["solver_gap"] == 0.25
    infeasible = measured(None, Correction(None, SolverStatus.INFEASIBLE), guess=(1, 1, 1, 1))
    unknown = ("corrected_accuracy", "gain", "changes", "change_precision", "objective")
    assert [infeasible[name] for name in unknown] == [None] * 5
    assert infeasible["initial_accuracy"] == 0.5
    unchanged = measured(None, Correction(np.array([0, 0, 1, 1]), SolverStatus.OPTIMAL, 0.0, 0.0))
    assert (unchanged["changes"], unchanged["change_precision"], unchanged["gain"]) == (0, None, 0)


def released(values, low, high, metric="statistical-parity"):
    ends = [np.array(end, dtype=float) for end in (values, low, high)]
    guarantee = Guarantee(0.5, 0.0, "add-remove")
    return Release(metric, *ends, 0.9, guarantee, "simulation", {"queries": 2})


def test_a_release_is_measured_against_the_truth():
    people_ = people([0] * 10 + [1] * 10, [1] * 20)
    predictions = np.array([1] * 8 + [0] * 2 + [1] * 6 + [0] * 4)  # rates .8 and .6
    found = measure_release(
        released([0.75, 0.85, 0.65, 0.71], [0.7, 0.8, 0.5, 0.1], [0.8, 0.9, 0.7, 0.9]),
        people_, predictions,
    )  # fmt: skip
    assert found["true_ratio"] == pytest.approx(0.75)
    assert found["estimated_ratio"] == pytest.approx(0.74)
    assert found["bias"] == pytest.approx(-0.01)
    assert found["error"] == pytest.approx((0 + 0.1 + 0.1 + 0.04) / 4)
    assert found["error_deviation"] == pytest.approx(np.std([0, 0.1, 0.1, 0.04], ddof=1))
    assert found["coverage"] == 0.5
    assert found["interval_width"] == pytest.approx((0.1 + 0.1 + 0.2 + 0.8) / 4)
    assert found["random_guess_error"] == pytest.approx((0.75**2 + 0.25**2) / 2)
    assert found["four_fifths_right"] == 0.75
    assert found["true_tenth"] == pytest.approx(0.7)
    assert found["tenth_recall"] == 0.5
    assert found.keys() == IN_AUDITS - IN_ATTACKS
    assert (found["epsilon"], found["delta"], found["neighbours"]) == (0.5, 0.0, "add-remove")
    assert found["repetitions"] == 4
    assert found["noise"] == "simulation"


def test_a_guess_at_random_is_off_by_what_is_said():
    everyone = people([0] * 10 + [1] * 10, [1] * 20)
    predictions = np.array([1] * 5 + [0] * 5 + [1] * 2 + [0] * 8)
    values = np.random.default_rng(0).random(200_000)
    found = measure_release(released(values, values, values), everyone, predictions)
    assert found["error"] == pytest.approx(found["random_guess_error"], abs=0.003)


@pytest.mark.parametrize("tenth", range(11))
def test_a_tenth_is_not_the_one_below(tenth):
    """0.3 * 10 is more than 3, but 0.29999999999999999 is 0.3."""
    everyone = people([0] * 10 + [1] * 10, [1] * 20)
    predictions = np.array([1] * 10 + [1] * tenth + [0] * (10 - tenth))
    exact = released([tenth / 10], [0], [1])
    found = measure_release(exact, everyone, predictions)
    assert found["true_tenth"] == pytest.approx(tenth / 10)
    assert found["tenth_recall"] == 1


def test_equalized_odds_is_the_worse_of_both_ratios():
    everyone = people([0] * 4 + [1] * 4, [1, 1, 0, 0] * 2)
    predictions = np.array([1, 1, 1, 1, 1, 0, 1, 1])
    found = measure_release(released([0.5], [0], [1], "equalized-odds"), everyone, predictions)
    assert found["true_ratio"] == pytest.approx(0.5)
    assert found["error"] == pytest.approx(0)
    assert found["error_deviation"] is None


def test_audits_without_intervals_cover_nothing():
    nothing = [np.nan]
    everyone = people([0] * 10 + [1] * 10, [1] * 20)
    found = measure_release(released([0.5], nothing, nothing), everyone, np.ones(20, int))
    assert found["coverage"] is found["interval_width"] is None
    assert found["error"] == 0.5


def test_a_release_says_itself_in_one_line():
    said = str(released([0.75, 0.8], [0.7, 0.7], [0.8, 0.9]))
    assert said == (
        "statistical-parity: least / greatest group rate 0.750, 0.700 to 0.800 at 90% confidence "
        "(epsilon 0.5, neighbours by add-remove, simulation noise; the first of 2 audits)"
    )
    surer = replace(released([0.75], [0.5], [0.9]), confidence=0.999)
    assert "0.500 to 0.900 at 99.9% confidence (" in str(surer)
    assert "group rate 0.750 (epsilon" in str(released([0.75], [np.nan], [np.nan]))
