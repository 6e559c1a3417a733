"""Calibration of an adversary's confidence on people whose groups it knows.

Platt scaling (Platt, Probabilistic outputs for support vector machines, 1999): log-odds are
corrected by a slope and an intercept of maximum likelihood, with his smoothed targets. With
calibrated probabilities p, weights |log(p / (1 - p))| make the least costly correction of two
groups the likeliest vector that satisfies the claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_array, to_floats
from fpbench.base.errors import InputError
from fpbench.components.beliefs import check_beliefs

_Floats = NDArray[np.float64]
_Integers = NDArray[np.integer[Any]]

LEAST_WEIGHT = 1e-6
"""Least cost of changing a guess, even of one with probability 1/2."""

_FOLDS = 5
_MOST_COMPARED = 2_000
"""Most held-out people on whom ways of calibrating are compared."""
_LEAST_ISOTONIC = 200
"""Least number of held-out people for isotonic calibration."""
_LARGEST = 10.0
"""Log-odds are clipped to +-10 (1 in 22,000): a forest's 0 or 1 rests on few people."""
_EQUAL = 1e-12
"""A standard deviation of log-odds, or log-odds, of at most this are 0 up to rounding."""


def calibrate(belief: ArrayLike, held_out_belief: ArrayLike, happened: ArrayLike) -> _Floats:
    """Calibrated probabilities of an event.

    Parameters
    ----------
    belief
        (n,) probabilities as the adversary gives them, 0 and 1 included.
    held_out_belief, happened
        (m,) the same where the adversary knows the truth, and whether the event happened.

    Returns
    -------
    ndarray
        (n,) probabilities. The beliefs are unchanged if the held-out part is empty or all of one
        kind, which says nothing about the slope. All are equal to the (smoothed) held-out share if
        the held-out beliefs are equal, or if they contradict the truth: a negative slope is taken
        for chance, and the best one of at least 0 is 0.
    """
    line = _fit_line(_to_log_odds(held_out_belief), np.asarray(happened, dtype=bool))
    if line is None:
        return np.array(belief, dtype=np.float64)
    return _to_probabilities(line, _to_log_odds(belief))


@check_arguments
def calibrate_guess(
    values: _Integers,
    confidence: ArrayLike,
    held_out_values: _Integers,
    held_out_confidence: ArrayLike,
    truth: _Integers,
    k: int,
) -> tuple[_Integers, _Floats]:
    """The likeliest group of each person and the cost of changing it, from calibrated confidence.

    Parameters
    ----------
    values, confidence
        (n,) guessed group codes in 0..k-1, and the adversary's probability for the guess.
    held_out_values, held_out_confidence, truth
        (m,) the same where the adversary knows the true group codes.
    k
        Number of groups.

    Returns
    -------
    values
        (n,) likeliest groups. With two groups, this is not the guess where the calibrated
        probability of the guess is below one half (a class-balanced forest guesses too many of the
        rarer group). With more groups it is the guess.
    weights
        (n,) positive log-odds, `LEAST_WEIGHT` or more. With two groups, |log(p / (1 - p))|.

    Notes
    -----
    With more than two groups only the guess has a probability: "the guess is right" is calibrated
    to p, and the other groups share the rest equally. Then changing the guess, to any group, costs
    log(p (k - 1) / (1 - p)). A single confidence allows no better.
    """
    for name, codes, of in (
        ("values", values, confidence), ("held_out_values", held_out_values, held_out_confidence),
    ):  # fmt: skip
        chances = to_floats(f"the confidence in {name}", of, codes.shape)
        inside = codes.ndim == 1 and ((codes >= 0) & (codes < k)).all()
        if not inside or not ((chances >= 0) & (chances <= 1)).all():
            raise InputError(f"{name} must be (n,) codes of 0 to {k - 1}, each with a probability")
    to_array("truth", truth, "biu", held_out_values.shape)
    s, held_out_s = _to_log_odds(confidence), _to_log_odds(held_out_confidence)
    if k == 2:
        # Calibrate P(group 1), not P(right): only this corrects a bias towards one group.
        s = np.where(values == 1, s, -s)
        held_out_s = np.where(held_out_values == 1, held_out_s, -held_out_s)
        happened = truth == 1
    else:
        happened = held_out_values == truth
    slope, intercept = _fit_line(held_out_s, happened) or (1.0, 0.0)
    log_odds = slope * s + intercept
    if k > 2:
        return values, np.maximum(log_odds + np.log(k - 1), LEAST_WEIGHT)
    likeliest = np.where(np.abs(log_odds) < _EQUAL, values, log_odds > 0).astype(values.dtype)
    return likeliest, np.maximum(np.abs(log_odds), LEAST_WEIGHT)


def _to_log_odds(p: ArrayLike) -> _Floats:
    p = np.asarray(p, dtype=np.float64)
    with np.errstate(divide="ignore"):
        s: _Floats = np.log(p) - np.log1p(-p)
    return np.clip(s, -_LARGEST, _LARGEST)


def _to_probabilities(line: tuple[float, float], s: _Floats) -> _Floats:
    slope, intercept = line
    return np.asarray(np.exp(-np.logaddexp(0, -(slope * s + intercept))))


def _fit_line(s: _Floats, happened: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Likeliest slope (0 or more) and intercept of the log-odds; None if all are of one kind."""
    if happened.all() or not happened.any():
        return None
    slopes, offsets = _fit_scaling(np.stack([np.zeros_like(s), s]), happened.astype(int))
    return float(slopes[0]), float(offsets[0, 1])


@check_arguments
def calibrate_beliefs(
    beliefs: ArrayLike, held_out_beliefs: ArrayLike, truth: ArrayLike
) -> tuple[_Floats, str]:
    """Calibrated probabilities of K groups, and how they were calibrated.

    Parameters
    ----------
    beliefs
        (n, K) probability of each group, of each person, as the adversary gives them.
    held_out_beliefs
        (m, K) the same of people whose groups it knows and has not learnt from.
    truth
        (m,) their groups.

    Returns
    -------
    beliefs
        (n, K) calibrated probabilities.
    method
        `none` if nobody is held out, `scaled`, or `isotonic` (two groups): the likelier of the two
        on held-out people that each was not fitted to, five times a fifth of the first 2,000.

    Raises
    ------
    InputError
        If beliefs are not probabilities, are of other groups, or all held-out people belong to one
        group.

    Notes
    -----
    `scaled`: log-probabilities times a slope (one over a temperature) plus an offset a group, of
    maximum likelihood with Platt's smoothed targets; a negative slope is taken for chance. With two
    groups that is Platt scaling. `isotonic`: the likeliest increasing function of the probability
    (Zadrozny & Elkan, Transforming classifier scores into accurate multiclass probability
    estimates, 2002), kept away from 0 and 1 by one added person of each group.
    """
    chances, known = check_beliefs(beliefs), to_array("truth", truth, "biu").ravel()
    if len(known) == 0:
        return chances, "none"
    held_out = check_beliefs(held_out_beliefs)
    if held_out.shape != (len(known), chances.shape[1]):
        raise InputError(
            f"held-out beliefs must be ({len(known)}, {chances.shape[1]}), one row a held-out "
            f"person and one column a group, not {held_out.shape}"
        )
    if (known == known[0]).all():
        raise InputError(
            f"all {len(known)} held-out people belong to one group, which tells nothing of how far "
            "to trust an adversary: hold out more people, make known more of them ([split] attack "
            "in a matrix, known= of fpbench.attack), or merge rare groups"
        )
    logits = _to_logits(held_out)
    scaling = _fit_scaling(logits, known)
    if chances.shape[1] == 2 and len(known) >= _LEAST_ISOTONIC:
        some = slice(_MOST_COMPARED)
        scaled, isotonic = _cross_validate(logits[:, some], held_out[some, 1], known[some], scaling)
        if isotonic < scaled:
            curve, fold = np.zeros(1, np.intp), np.full(len(known), -1)
            chance = _fit_monotone(chances[:, 1], curve, held_out[:, 1], known, fold)
            return np.stack([1 - chance, chance], axis=1), "isotonic"
    (slope,), (offsets,) = scaling
    calibrated = _normalise(slope * _to_logits(chances) + offsets[:, None])
    return np.ascontiguousarray(calibrated.T), "scaled"


def _cross_validate(
    logits: _Floats, chances: _Floats, truth: _Integers, scaling: tuple[_Floats, _Floats]
) -> tuple[float, float]:
    """Cross-validated log loss (nats) of the scaling and of the isotonic curve.

    `chances` are those of group 1; `scaling` is one of all, near which the others are.
    """
    fold = np.arange(len(truth)) % _FOLDS
    others = fold != np.arange(_FOLDS)[:, None]
    slopes, offsets = _fit_scaling(logits, truth, others, scaling)
    scaled = _normalise(slopes[fold] * logits + offsets[fold].T)[1]
    isotonic = _fit_monotone(chances, fold, chances, truth, fold)
    # Nothing can be learnt from one group alone.
    members = others @ (truth == 1)
    counted = (members > 0) & (members < others.sum(axis=1))

    def measure_surprise(chance: _Floats) -> float:
        return -float(np.log(np.where(truth == 1, chance, 1 - chance)) @ counted[fold])

    return measure_surprise(scaled), measure_surprise(isotonic)


def _fit_monotone(
    chances: _Floats, curve: _Integers, held_out: _Floats, truth: _Integers, fold: _Integers
) -> _Floats:
    """(n,) probabilities of group 1, each by the isotonic curve of its number in `curve`.

    The curve is the likeliest for the held-out people (m,) who are not of the fold of that number.
    """
    from scipy.optimize import isotonic_regression

    # One added person of each group, at either end.
    places = np.append(held_out, [0.0, 1.0])
    members = np.append(truth == 1, [1.0, 0.0])
    order = np.argsort(places)
    curves = np.arange(curve.max() + 1)
    number, person = (np.append(fold, [-1, -1])[order] != curves[:, None]).nonzero()
    person = order[person]
    # All curves are fitted as one: each lies to the right of the one before, and above it.
    places = places[person] + 2 * number
    starts = np.append(True, places[1:] != places[:-1]).nonzero()[0]
    people = np.diff(starts, append=len(places))
    sums = np.add.reduceat(members[person], starts)
    floor, least = number[starts], 1 / np.bincount(number)[number[starts]]
    shares = isotonic_regression(sums / people + floor, weights=people).x - floor
    shares = np.minimum(np.maximum(shares, least), 1 - least)
    found: _Floats = np.interp(chances + 2 * curve, places[starts], shares)
    return found


def _normalise(logits: _Floats) -> _Floats:
    """(K, n) probabilities."""
    powers = np.exp(logits - logits.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def _to_logits(beliefs: _Floats) -> _Floats:
    """(K, n) log-probabilities minus the greatest, at least -10: log-odds of two groups."""
    with np.errstate(divide="ignore"):
        logits = np.log(np.ascontiguousarray(beliefs.T))
    return np.asarray(np.maximum(logits - logits.max(axis=0), -_LARGEST))


def _fit_scaling(
    logits: _Floats,
    truth: _Integers,
    used: NDArray[np.bool_] | None = None,
    start: tuple[_Floats, _Floats] | None = None,
) -> tuple[_Floats, _Floats]:
    """Likeliest slopes (F,), 0 or more, of (K, m) logits, and offsets (F, K), the first of them 0.

    F scalings are fitted at once, to the people that are `used` (F, m) in each; one scaling to all
    if left out. They are found from `start`, slopes and offsets, if it is given.

    Newton's method with step halving (Lin, Lin and Weng, A note on Platt's probabilistic outputs
    for support vector machines, 2007). The logits are standardised first, for a Hessian that is
    well conditioned.
    """
    k, m = logits.shape
    weights = np.ones((1, m)) if used is None else used.astype(np.float64)
    is_member = (truth == np.arange(k)[:, None]).astype(np.float64)
    members = weights @ is_member.T
    people = members.sum(axis=1)
    # Platt's targets: of each group, one person more, and everybody of the others.
    targets = (1 + members[:, None] * np.eye(k)[1:]) / (members + k)[:, None]
    expected = np.empty((len(people), k))
    expected[:, 1:] = (targets * members[:, None]).sum(axis=2)
    share = expected[:, 1:] / people[:, None]
    flat = np.log(share) - np.log(1 - share.sum(axis=1, keepdims=True))
    # All is relative to the first group, whose offset is 0.
    logits = logits[1:] - logits[0]
    centre = weights @ logits.T / people[:, None]
    rows = logits - centre[:, :, None]
    scale = np.sqrt((rows * rows @ weights[:, :, None]).max(axis=(1, 2)) / people)
    # Equal logits differ from their mean by rounding only.
    rows[scale < _EQUAL], scale[scale < _EQUAL] = 0.0, 1.0
    rows /= scale[:, None, None]
    # The loss is convex: its derivative at (0, flat) tells the sign of the best slope.
    sums = rows * weights[:, None] @ is_member.T
    expected[:, 0] = (targets * sums).sum(axis=(1, 2))
    rising = expected[:, 0] > 0
    lines = np.column_stack([np.zeros(len(people)), flat])
    if start is not None:
        slopes, offsets = start
        near = np.column_stack([slopes * scale, offsets[:, 1:] + slopes[:, None] * centre])
        lines = np.where(rising[:, None], near, lines)
    lines = _descend(lines, rows, weights, expected, rising)
    slopes = lines[:, 0] / scale
    offsets = np.column_stack([np.zeros(len(people)), lines[:, 1:] - slopes[:, None] * centre])
    return slopes, offsets


def _descend(
    lines: _Floats, rows: _Floats, weights: _Floats, expected: _Floats, moving: NDArray[np.bool_]
) -> _Floats:
    """Lines (F, K), slope and offsets, of least loss; those that are not `moving` stay.

    `rows` (F, K - 1, m) are what slopes multiply, and `expected` (F, K) what lines multiply under
    the targets: of least loss, it is as great under the probabilities.
    """
    k = lines.shape[1]
    people = weights.sum(axis=1)
    ridge = 1e-12 * people[:, None, None] * np.eye(k)
    others = np.arange(1, k)

    def evaluate(lines: _Floats) -> tuple[_Floats, _Floats]:
        """The losses (F,), and the weighted probabilities of all groups but the first."""
        z = lines[:, :1, None] * rows + lines[:, 1:, None]
        most = np.maximum(z.max(axis=1), 0.0)
        powers = np.exp(z - most[:, None])
        total = powers.sum(axis=1) + np.exp(-most)
        losses = np.einsum("fi,fi->f", most + np.log(total), weights)
        return losses - (lines * expected).sum(axis=1), powers * (weights / total)[:, None]

    losses, p = evaluate(lines)
    for _ in range(100):
        weighted = p * rows
        # What lines multiply, as each person's probabilities expect it.
        means = np.concatenate([weighted.sum(axis=1, keepdims=True), p], axis=1)
        sums = means.sum(axis=2)
        gradient = sums - expected
        hessian = ridge - means @ means.swapaxes(1, 2)
        hessian[:, 0, 0] += np.einsum("fki,fki->f", weighted, rows)
        hessian[:, 0, 1:] += (across := weighted.sum(axis=2))
        hessian[:, 1:, 0] += across
        hessian[:, others, others] += sums[:, 1:]
        steps = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        promise = (gradient * steps).sum(axis=1)
        # Stop once the full step promises less than rounding.
        size = np.where(moving & (promise > 1e-14 * people), 1.0, 0.0)
        before, start = losses, lines
        lines = start - size[:, None] * steps
        # Convergence is quadratic near the optimum: this step is the last that matters.
        if (size * promise <= 1e-9 * people).all():
            break
        losses, p = evaluate(lines)
        while (short := (size > 1e-10) & (losses > before - 1e-4 * size * promise)).any():
            size[short] /= 2
            lines = start - size[:, None] * steps
            losses, p = evaluate(lines)
    return lines
