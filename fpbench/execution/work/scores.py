"""The measures of a cell, from the results of its steps: of guesses, claims, models and beliefs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from hashlib import sha256
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.rates import RateConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.auditor import Release
from fpbench.components.beliefs import SURE, name_likeliest
from fpbench.components.records import (
    CalibratedGuess,
    Claim,
    Correction,
    MeasureValues,
    Predictions,
    SolverStatus,
)
from fpbench.components.sights import keep_model_sights
from fpbench.correction.count_leak import compute_count_leak
from fpbench.correction.leak_limits import limit_leak
from fpbench.data.sample import Codes, Sample, Split
from fpbench.privacy.private_leak import limit_private_leak

_FOUR_FIFTHS = 0.8
"""The rule of US law: the least rate must be at least this share of the greatest."""
_PROVEN = (SolverStatus.OPTIMAL, SolverStatus.INFEASIBLE)


def measure_attack(
    split: Split,
    predictions: Predictions,
    guess: CalibratedGuess,
    correction: Correction,
) -> MeasureValues:
    """Measures of a guess and its correction, in the words of `OWN` (`components/own_measures.py`).

    Measures of a correction are None if there is none.
    """
    truth, trained_for = split.target.sensitive, predictions.asked
    initial = _compute_accuracy(guess.values, truth)
    measures: MeasureValues = {
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


def measure_claim(claim: Claim | None, people: Sample, predictions: Codes) -> MeasureValues:
    """The claim about the target people, its guarantee to them, and whether it is true.

    `claim_holds` is 1 if the claim about rates is true of them, 0 if not: an estimated or noisy
    claim may be false. Values that are not claimed are None; only a private claim has an epsilon.
    """
    constraint = claim.constraint if claim else None
    measures: MeasureValues = {
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


def measure_model(split: Split, predictions: Predictions, claim: Claim | None) -> MeasureValues:
    """Accuracy and unfairness of the target model, and its guarantee to its training people.

    Unfairness has the claim's metric and form; without a claim, those that the learner was trained
    for; otherwise it is statistical parity, compared with the overall rate. `model_epsilon` is None
    if the model has no guarantee; only this function puts one into a row.
    """
    claimed = claim.constraint if claim else None
    constraint = claimed or predictions.asked or RateConstraint()
    measures: MeasureValues = {
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


def measure_release(release: Release, people: Sample, predictions: Codes) -> MeasureValues:
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


_Floats = NDArray[np.float64]

_UNSURE = 0.05, 0.95
"""An adversary whose belief in a group is between these is unsure of it."""
_EVEN = 1e-9
"""Beliefs that differ by less count as equal."""
_RANKED_DIGITS = 9
"""Decimals of beliefs by which people are ranked or put into bins."""
_BINS = 15
"""Number of bins of the calibration error."""
_LEAST_SLICE = 50
"""Least number of people of a slice."""
_CLASSES = 5
"""Number of classes, of about equal size, of a numeric column,"""
_ENDS = np.linspace(0, 1, _CLASSES + 1)[1:-1]
"""and the shares of people below their ends."""


def measure_leak(
    split: Split,
    predictions: Predictions,
    guess: CalibratedGuess,
    claim: Claim | None,
    correction: Correction,
) -> MeasureValues:
    """What the disclosure adds to the adversary's calibrated beliefs, and the most it can add.

    `with_accuracy` is the accuracy of the likeliest groups given the disclosure or, for a corrector
    that gives no such beliefs, of its correction; None if it corrects nothing. `leak_expected` is
    the difference that the beliefs given the disclosure expect. `limit_beliefs`, `limit_exact` and
    `dp_limit` hold if the calibrated beliefs are exact; an unknown limit is left out.
    """
    truth, beliefs = split.target.sensitive, _get_beliefs(guess)
    named, _ = name_likeliest(beliefs)
    after, rise = _name_groups(guess, named, correction)
    without = float(np.mean(named == truth))
    accuracy = None if after is None else float(np.mean(after == truth))
    sizes = split.target.household_sizes
    # A claim about predictions is used with them, even if the guess did not use them.
    unseen = "" if "predictions" in guess.sees or claim is None else ", not predictions"
    size = 1 if sizes is None else int(sizes.max())
    of_model = split.held_out_target or not predictions.trained_with_groups
    measures: MeasureValues = {
        "without_accuracy": without,
        "with_accuracy": accuracy,
        "leak": None if accuracy is None else accuracy - without,
        "leak_expected": rise,
        "limit_covers": f"disclosure{unseen}" if of_model else f"disclosure, not model{unseen}",
        "household_size": size,
    }
    if (best := _find_bayes_accuracy(split, predictions, guess.sees)) is not None:
        measures["bayes_accuracy"] = best
    if claim is None:
        return measures | {
            "disclosure_bits": 0.0, "limit_beliefs": 0.0, "people_proven": 0.0,
            "proven_unsure": 0.0, "people_sure": 0.0,
        }  # fmt: skip
    known = np.zeros(len(truth), np.bool_)
    if claim.possible is not None:
        known = claim.possible @ np.ones(beliefs.shape[1], np.int64) == 1
        proven = np.flatnonzero(known)
        believed = beliefs[proven, claim.possible[proven].argmax(axis=1)]
        unsure = (believed > _UNSURE[0]) & (believed < _UNSURE[1])
        measures["people_proven"] = len(proven) / len(truth)
        measures["proven_unsure"] = int(unsure.sum()) / len(truth)
    if correction.posterior is not None:
        likeliest, believed = name_likeliest(correction.posterior)
        sure = ~known & (believed > SURE) & (_pick(beliefs, likeliest) <= SURE)
        measures["people_sure"] = float(sure.mean())
    facts = [one for one in claim.also if isinstance(one, Facts)]
    if facts:
        measures["facts"] = sum(int((~one.derived).sum()) for one in facts)
    if claim.nats is not None:
        nats = claim.nats + claim.fact_nats
        measures["disclosure_bits"] = nats / math.log(2)
        measures["limit_beliefs"] = limit_leak(beliefs, nats, household_sizes=sizes)
        if claim.counted_labels is not None and beliefs.shape[1] == 2 and sizes is None:
            cells = predictions.test if split.held_out_target else predictions.train
            if any(label is not None for label in claim.counted_labels):
                cells = 2 * split.target.labels + cells
            measures["limit_exact"] = _recall_count_leak(beliefs, cells) if nats > 0 else 0.0
    if claim.guarantee is not None and claim.fact_nats == 0:
        measures["dp_limit"] = limit_private_leak(beliefs, claim.guarantee, household_size=size)
    return measures


def measure_beliefs(split: Split, guess: CalibratedGuess, correction: Correction) -> MeasureValues:
    """The quality of the calibrated beliefs, and whom beliefs given the disclosure expose.

    `log_loss` and `calibration_error` are of the beliefs without the disclosure. All others are of
    the beliefs given the disclosure if the corrector computes them, else without it. The worst
    slice is chosen on every second person, and measured on the others.
    """
    target = split.target
    truth, calibrated = target.sensitive, _get_beliefs(guess)
    given = calibrated if correction.posterior is None else correction.posterior
    # Last digits depend on the processor, and must not rank people with equal beliefs.
    given = np.round(given, _RANKED_DIGITS)
    named, sure = name_likeliest(given)
    right = named == truth
    k = len(target.groups)
    by_group = np.bincount(truth[right], minlength=k) / np.bincount(truth, minlength=k)
    worst = int(np.argmax(by_group))
    auc, tenth, one = _measure_ranking(given, truth)
    measures: MeasureValues = {
        "calibration": guess.calibration,
        "log_loss": float(-np.log(np.maximum(_pick(calibrated, truth), 1e-12)).mean()),
        "calibration_error": _measure_calibration(np.round(calibrated, _RANKED_DIGITS), truth),
        "auc": auc,
        "tpr_at_tenth_percent": tenth,
        "tpr_at_one_percent": one,
        "surest_one_percent": float(
            right[_find_greatest(sure, math.ceil(len(truth) / 100))].mean()
        ),
        "surest_ten_percent": float(right[_find_greatest(sure, math.ceil(len(truth) / 10))].mean()),
        "worst_group": target.groups[worst],
        "worst_group_accuracy": float(by_group[worst]),
        "safest_group_accuracy": float(by_group.min()),
    }
    if (slice_of := _find_worst_slice(target, right)) is not None:
        measures["worst_slice"], measures["worst_slice_accuracy"] = slice_of
    if guess.abstains is not None:
        answered = ~guess.abstains
        measures["answered"] = float(answered.mean())
        measures["answered_accuracy"] = float(right[answered].mean()) if answered.any() else None
    return measures


def _recall_count_leak(beliefs: _Floats, cells: Codes) -> float:
    """`compute_count_leak`, computed once per process, as all correctors of a guess share it."""
    key = sha256(beliefs.tobytes() + cells.tobytes()).digest()
    if key not in _COUNT_LEAKS:
        if len(_COUNT_LEAKS) >= _MOST_RECALLED:
            _COUNT_LEAKS.clear()
        _COUNT_LEAKS[key] = compute_count_leak(beliefs[:, 1], cells)
    return _COUNT_LEAKS[key]


_COUNT_LEAKS: dict[bytes, float] = {}
_MOST_RECALLED = 10_000


def _get_beliefs(guess: CalibratedGuess) -> _Floats:
    assert guess.beliefs is not None
    return guess.beliefs


def _find_bayes_accuracy(
    split: Split, predictions: Predictions, sees: Collection[str]
) -> float | None:
    """`measure_bayes`, where predictions and scores add nothing to features and label."""
    of_groups = predictions.made_with_groups or (
        predictions.trained_with_groups and not split.held_out_target
    )
    if of_groups and keep_model_sights(sees):
        return None
    return measure_bayes(split.target, sees)


def measure_bayes(people: Sample, sees: Collection[str]) -> float | None:
    """Expected accuracy of the best possible guess from features and label, mean_i max_g P(g | i).

    No guess from these, and from nothing else that depends on the groups, is more accurate on
    average. Predictions and scores of a model that knows nothing of these people's groups add
    nothing.

    Parameters
    ----------
    people
        The attacked people, with all their columns.
    sees
        The columns that the adversary sees.

    Returns
    -------
    float or None
        In [1 / K, 1]; None if the distribution is not known, or the adversary does not see both
        features and label.
    """
    chances = people.group_chances
    if chances is None or not len(people) or not {"features", "labels"} <= {*sees}:
        return None
    return float(name_likeliest(chances)[1].mean())


def _pick(beliefs: _Floats, groups: Codes) -> _Floats:
    """(n,) the belief in one group of each person."""
    return np.asarray(beliefs[np.arange(len(groups)), groups])


def _name_groups(
    guess: CalibratedGuess, named: Codes, correction: Correction
) -> tuple[Codes | None, float | None]:
    """(n,) the guessed groups given the disclosure, None if nothing was corrected.

    And the gain in accuracy that the beliefs given the disclosure expect.
    """
    if (given := correction.posterior) is not None:
        likeliest, sure = name_likeliest(given)
        kept = _pick(given, named)
        return np.where(kept >= sure - _EVEN, named, likeliest), float(np.mean(sure - kept))
    if correction.values is None:
        return None, None
    unsolved = correction.status is None and np.array_equal(correction.values, guess.values)
    return None if unsolved else correction.values, None


def _find_greatest(values: _Floats, count: int) -> Codes:
    """Rows of the `count` greatest values; of equal values the first."""
    least = np.partition(values, len(values) - count)[len(values) - count]
    above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.concatenate([above, equal[: count - len(above)]])


def _measure_calibration(beliefs: _Floats, truth: Codes) -> float:
    """The expected calibration error of the likeliest group, over bins of equal width.

    Guo et al., On calibration of modern neural networks, 2017.
    """
    named, sure = name_likeliest(beliefs)
    place = np.minimum((sure * _BINS).astype(np.intp), _BINS - 1)
    excess = np.bincount(place, weights=sure - (named == truth), minlength=_BINS)
    return float(np.abs(excess).sum() / len(truth))


def _measure_ranking(
    beliefs: _Floats, truth: Codes
) -> tuple[float | None, float | None, float | None]:
    """AUC, averaged over groups, and the greatest true-positive rates at .1 % and 1 % false.

    Ties count half: between two points of a curve the adversary tosses a coin.
    """
    k = beliefs.shape[1]
    curves = [
        _trace_curve(beliefs[:, group], truth == group)
        for group in range(k == 2, k)
        if 0 < np.count_nonzero(truth == group) < len(truth)
    ]
    if k == 2:  # one group's ranking is the other's, reversed
        curves += [(true[-1] - true[::-1], false[-1] - false[::-1]) for false, true in curves]
    if not curves:
        return None, None, None
    rates = [(false / false[-1], true / true[-1]) for false, true in curves]
    areas = [np.diff(false) @ (true[1:] + true[:-1]) / 2 for false, true in rates]
    tenths, ones = zip(*(np.interp((0.001, 0.01), *each) for each in rates), strict=True)
    return float(np.mean(areas)), float(max(tenths)), float(max(ones))


def _trace_curve(scores: _Floats, members: NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """False and true positives among all above each score, from nobody to everybody."""
    order = np.argsort(-scores)
    ordered = scores[order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # the last of equal scores
    positives = np.append(0, last.nonzero()[0] + 1)
    true = np.append(0, members[order].cumsum()[last])
    return positives - true, true


def _find_worst_slice(target: Sample, right: NDArray[np.bool_]) -> tuple[str, float] | None:
    """The slice with the most right guesses among every second person; its share of the others."""
    features = target.features
    if len(target) < 2 * _LEAST_SLICE or not len(features.columns):
        return None
    # The half, and whether the guess is right.
    kind = 2 * (np.arange(len(target)) % 2) + right
    slices = [(name, *_cut_column(column)) for name, column in features.items()]
    people = np.concatenate([
        np.bincount(4 * codes + kind, minlength=4 * len(classes)) for _, codes, classes in slices
    ]).reshape(-1, 2, 2)  # fmt: skip
    half, rest = people.sum(axis=2).T
    enough = (half + rest >= _LEAST_SLICE) & (half > 0) & (rest > 0)
    shares = np.where(enough, people[:, 0, 1] / np.maximum(half, 1), -1.0)
    best = int(shares.argmax())
    if not enough[best]:
        return None
    words = ((name, classes, at) for name, _, classes in slices for at in range(len(classes)))
    name, classes, at = next(islice(words, best, None))
    return f"{name} = {classes[at]}", float(people[best, 1, 1] / rest[best])


def _cut_column(column: Any) -> tuple[NDArray[np.integer[Any]], Sequence[Any]]:
    """(n,) classes of a column of features, and the names of the classes."""
    values = column.array
    if hasattr(values, "codes"):
        return values.codes.astype(np.intp), values.categories
    values = values.to_numpy()
    ordered = np.sort(values).astype(np.float64)
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(distinct) <= 2 * _CLASSES:
        return np.searchsorted(distinct, values), [f"{value:g}" for value in distinct]
    ends = np.unique(np.quantile(ordered, _ENDS))
    classes = [f"up to {ends[0]:g}"]
    classes += [f"{low:g} to {high:g}" for low, high in pairwise(ends)]
    classes += [f"above {ends[-1]:g}"]
    return np.searchsorted(ends, values), classes
