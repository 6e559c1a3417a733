"""The measures of a cell, from what its steps gave."""

from __future__ import annotations

import numpy as np

from fpbench.rates import RateConstraint
from fpbench.records import (
    Claim,
    Codes,
    Correction,
    Guess,
    Measures,
    Predictions,
    Sample,
    Split,
)

MEASURES = (
    "majority_accuracy", "initial_accuracy", "corrected_accuracy", "gain", "changes",
    "change_precision", "objective", "solver_status", "solver_gap", "correct_seconds",
    "claim_metric", "claim_tolerance", "train_accuracy", "test_accuracy", "train_unfairness",
    "test_unfairness",
)  # fmt: skip
"""Names of the measures that every attack cell has."""


def attack_measures(
    split: Split,
    predictions: Predictions,
    guess: Guess,
    claim: Claim | None,
    correction: Correction,
) -> Measures:
    """Measures of an attack cell.

    Accuracies are shares of the target's training people whose group is right:
    `majority_accuracy` of calling everyone a member of the largest group, `initial_accuracy` of
    the guess, `corrected_accuracy` of the correction; `gain` is the difference of the last two.
    `changes` counts changed guesses, `change_precision` is the share of them that are now right.
    Whatever rests on a correction is None where there is none.
    """
    truth = split.train.sensitive
    initial = _accuracy(guess.values, truth)
    measures: Measures = {
        "majority_accuracy": float(np.bincount(truth).max() / len(truth)),
        "initial_accuracy": initial,
        "corrected_accuracy": None,
        "gain": None,
        "changes": None,
        "change_precision": None,
        "objective": correction.objective,
        "solver_status": correction.status.value if correction.status else None,
        "solver_gap": correction.gap,
        "claim_metric": claim.constraint.metric if claim else None,
        "claim_tolerance": claim.constraint.tolerance if claim else None,
    }
    if correction.values is not None:
        corrected = _accuracy(correction.values, truth)
        changed = correction.values != guess.values
        count = int(np.count_nonzero(changed))
        right = int(np.count_nonzero(correction.values[changed] == truth[changed]))
        measures |= {
            "corrected_accuracy": corrected,
            "gain": corrected - initial,
            "changes": count,
            "change_precision": right / count if count else None,
        }
    return measures | model_measures(split, predictions, claim)


def model_measures(split: Split, predictions: Predictions, claim: Claim | None) -> Measures:
    """Accuracy and unfairness of the target model on its training people and on the test part.

    Unfairness is that of the claim's metric and form; without a claim, of what the learner was
    trained for; otherwise statistical parity, compared with the overall rate.
    """
    constraint = claim.constraint if claim else predictions.asked or RateConstraint()
    return {
        "train_accuracy": _accuracy(predictions.train, split.train.labels),
        "test_accuracy": _accuracy(predictions.test, split.test.labels),
        "train_unfairness": _unfairness(constraint, split.train, predictions.train),
        "test_unfairness": _unfairness(constraint, split.test, predictions.test),
    }


def _accuracy(values: Codes, truth: Codes) -> float:
    return float(np.mean(values == truth))


def _unfairness(constraint: RateConstraint, part: Sample, predictions: Codes) -> float:
    k = len(part.groups)
    return float(constraint.unfairness(part.sensitive, predictions, part.labels, k))
