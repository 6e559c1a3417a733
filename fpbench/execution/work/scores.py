"""The measures of a cell, from the results of its steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.rates import RateConstraint
from fpbench.components.auditor import Release
from fpbench.components.own_measures import (
    AttackMeasures,
    ClaimMeasures,
    ModelMeasures,
    ReleaseMeasures,
)
from fpbench.components.records import CalibratedGuess, Claim, Correction, Predictions, SolverStatus
from fpbench.data.sample import Codes, Sample, Split

_FOUR_FIFTHS = 0.8
"""The rule of US law: the least rate must be at least this share of the greatest."""
_PROVEN = (SolverStatus.OPTIMAL, SolverStatus.INFEASIBLE)


def measure_attack(
    split: Split,
    predictions: Predictions,
    guess: CalibratedGuess,
    correction: Correction,
) -> AttackMeasures:
    """Measures of a guess and its correction, in the words of `OWN` (`components/own_measures.py`).

    Measures of a correction are None if there is none.
    """
    truth, trained_for = split.target.sensitive, predictions.asked
    initial = _compute_accuracy(guess.values, truth)
    measures: AttackMeasures = {
        "people": len(truth),
        "n_groups": len(split.target.groups),
        "secret": split.target.secret,
        "group_names": ", ".join(split.target.groups),
        "adversary_sees": ", ".join(guess.sees),
        "majority_accuracy": float(np.bincount(truth).max() / len(truth)),
        "prior_accuracy": _compute_prior_accuracy(split),
        "initial_accuracy": initial,
        "balanced_accuracy": _compute_balanced_accuracy(guess.values, truth),
        "corrected_accuracy": None,
        "gain": None,
        "asked_metric": trained_for.metric if trained_for else None,
        "asked_tolerance": float(trained_for.tolerance) if trained_for else None,
        "changes": None,
        "change_precision": None,
        "objective": correction.objective,
        "solver_status": correction.status.value if correction.status else None,
        "solver_gap": correction.gap,
        "proven": int(correction.status in _PROVEN) if correction.status else None,
    }
    if correction.values is not None:
        corrected = _compute_accuracy(correction.values, truth)
        changed = correction.values != guess.values
        count = int(np.count_nonzero(changed))
        right = int(np.count_nonzero(correction.values[changed] == truth[changed]))
        measures |= {
            "corrected_accuracy": corrected,
            "gain": corrected - initial,
            "changes": count,
            "change_precision": right / count if count else None,
        }
    return measures


def measure_claim(claim: Claim | None, people: Sample, predictions: Codes) -> ClaimMeasures:
    """The claim about the target people, its guarantee to them, and whether it is true.

    `claim_holds` is 1 if the claim about rates is true of them, 0 if not: an estimated or noisy
    claim may be false. Values that are not claimed are None; only a private claim has an epsilon.
    """
    constraint = claim.constraint if claim else None
    measures: ClaimMeasures = {
        "claim_metric": None,
        "claim_form": None,
        "claim_tolerance": None,
        "claim_holds": None,
    }
    if constraint is not None:
        holds = constraint.holds(people.sensitive, predictions, people.labels, len(people.groups))
        measures = {
            "claim_metric": constraint.metric,
            "claim_form": constraint.form,
            "claim_tolerance": float(constraint.tolerance),
            "claim_holds": int(holds),
        }
    if claim is not None and claim.guarantee is not None:
        measures |= {
            "claim_epsilon": claim.guarantee.epsilon,
            "claim_delta": claim.guarantee.delta,
            "claim_neighbours": claim.guarantee.neighbours,
            "claim_noise": claim.noise,
        }
    return measures


def measure_model(split: Split, predictions: Predictions, claim: Claim | None) -> ModelMeasures:
    """Accuracy and unfairness of the target model, and its guarantee to its training people.

    Unfairness has the claim's metric and form; without a claim, those that the learner was trained
    for; otherwise it is statistical parity, compared with the overall rate. `model_epsilon` is None
    if the model has no guarantee; only this function puts one into a row.
    """
    claimed = claim.constraint if claim else None
    constraint = claimed or predictions.asked or RateConstraint()
    measures: ModelMeasures = {
        "train_accuracy": _compute_accuracy(predictions.train, split.train.labels),
        "test_accuracy": _compute_accuracy(predictions.test, split.test.labels),
        "train_unfairness": _compute_unfairness(constraint, split.train, predictions.train),
        "test_unfairness": _compute_unfairness(constraint, split.test, predictions.test),
        "model_epsilon": None,
    }
    if (guarantee := predictions.guarantee) is not None:
        measures |= {
            "model_epsilon": guarantee.epsilon,
            "model_delta": guarantee.delta,
            "model_neighbours": guarantee.neighbours,
            "model_rho": guarantee.rho,
        }
    return measures


def measure_release(release: Release, people: Sample, predictions: Codes) -> ReleaseMeasures:
    """The errors of a private audit against the truth that it never saw, in the words of `OWN`.

    Over R estimates: `error` is the AASPE of van der Steen et al. (2023), `error_deviation` is over
    R (n - 1), and `random_guess_error` is (s^2 + (1 - s)^2) / 2 at the true ratio s. Intervals
    should hold the truth more often than their confidence, as they are for the people that these
    were drawn from; `coverage` and `interval_width` are None without intervals. The mean of
    `tenth_recall` over classes is the UAR of the paper's section 5.1.3.
    """
    k = len(people.groups)
    constraint = RateConstraint(release.metric, form="ratio")
    unfair = constraint.unfairness(people.sensitive, predictions, people.labels, k)
    truth, values = float(1 - unfair), release.values
    errors = np.abs(values - truth)
    known = not np.isnan(release.low).any()
    inside = (release.low <= truth) & (truth <= release.high)
    tenth = _floor_to_tenths(np.array([truth]))[0]
    return {
        "audit_metric": release.metric,
        "epsilon": release.guarantee.epsilon,
        "delta": release.guarantee.delta,
        "neighbours": release.guarantee.neighbours,
        "noise": release.noise,
        "repetitions": len(values),
        "true_ratio": truth,
        "estimated_ratio": float(values.mean()),
        "error": float(errors.mean()),
        "error_deviation": float(errors.std(ddof=1)) if len(values) > 1 else None,
        "bias": float(values.mean() - truth),
        "coverage": float(inside.mean()) if known else None,
        "interval_width": float((release.high - release.low).mean()) if known else None,
        "random_guess_error": (truth**2 + (1 - truth) ** 2) / 2,
        "four_fifths_right": float(((values >= _FOUR_FIFTHS) == (truth >= _FOUR_FIFTHS)).mean()),
        "true_tenth": float(tenth),
        "tenth_recall": float((_floor_to_tenths(values) == tenth).mean()),
    }


def _floor_to_tenths(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded down to tenths; 0.3 with a rounding error counts as 0.3."""
    return np.asarray(np.floor(values * 10 + 1e-9) / 10)


def _compute_prior_accuracy(split: Split) -> float:
    k, parts = len(split.target.groups), (split.target, split.attack)
    shares = [np.bincount(part.sensitive, minlength=k) / len(part) for part in parts]
    return float(shares[0] @ shares[1])


def _compute_accuracy(values: Codes, truth: Codes) -> float:
    return float(np.mean(values == truth))


def _compute_balanced_accuracy(values: Codes, truth: Codes) -> float:
    right = values == truth
    return float(np.mean([right[truth == group].mean() for group in np.unique(truth)]))


def _compute_unfairness(constraint: RateConstraint, part: Sample, predictions: Codes) -> float:
    k = len(part.groups)
    return float(constraint.unfairness(part.sensitive, predictions, part.labels, k))
