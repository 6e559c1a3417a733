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

_Floats = NDArray[np.float64]
_Integers = NDArray[np.integer[Any]]

LEAST_WEIGHT = 1e-6
"""Least cost of changing a guess, even of one no better than its opposite."""

_LARGEST = 10.0
"""Log-odds are clipped to +-10 (1 in 22,000): a forest's 0 or 1 rests on few people."""


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
        (n,) probabilities. They are the beliefs as they are if the held-out part is empty or all
        of one kind, which says nothing of the slope. They are all equal to the (smoothed)
        held-out share if the held-out beliefs are, or if they contradict the truth: a negative
        slope is taken for chance, and the likeliest of the others is 0.
    """
    line = _fit_line(_to_log_odds(held_out_belief), np.asarray(happened, dtype=bool))
    if line is None:
        return np.array(belief, dtype=np.float64)
    return _to_probabilities(line, _to_log_odds(belief))


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
        (n,) likeliest groups. Of two groups, this is not the guess where the calibrated
        probability of the guess is below one half (a class-balanced forest guesses too many of
        the rarer group). Of more, it is the guess.
    weights
        (n,) positive log-odds, `LEAST_WEIGHT` or more. Of two groups, |log(p / (1 - p))|.

    Notes
    -----
    Of more than two groups only the guess has a probability: "the guess is right" is calibrated to
    p, and the other groups are taken to share the rest equally. Then log(p (k - 1) / (1 - p)) is
    what changing the guess costs, to whichever group. A single confidence allows no better.
    """
    values, held_out_values = np.asarray(values), np.asarray(held_out_values)
    s, held_out_s = _to_log_odds(confidence), _to_log_odds(held_out_confidence)
    if k == 2:
        # Calibrate P(group 1), not "right": only so can a skew towards one group be mended.
        s = np.where(values == 1, s, -s)
        held_out_s = np.where(held_out_values == 1, held_out_s, -held_out_s)
        happened = np.asarray(truth) == 1
    else:
        happened = held_out_values == truth
    slope, intercept = _fit_line(held_out_s, happened) or (1.0, 0.0)
    log_odds = slope * s + intercept
    if k > 2:
        return values, np.maximum(log_odds + np.log(k - 1), LEAST_WEIGHT)
    likeliest = np.where(log_odds == 0, values, log_odds > 0).astype(values.dtype)
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
    """Likeliest slope (0 or more) and intercept of the log-odds; None if all are of one kind.

    Newton's method with step halving (Lin, Lin and Weng, A note on Platt's probabilistic outputs
    for support vector machines, 2007). The scores are standardised first, for a Hessian that is
    well conditioned.
    """
    yes, no = np.count_nonzero(happened), np.count_nonzero(~happened)
    if yes == 0 or no == 0:
        return None
    target = np.where(happened, (yes + 1) / (yes + 2), 1 / (no + 2))
    share = target.mean()
    flat = float(np.log(share / (1 - share)))
    if np.ptp(s) == 0:
        return 0.0, flat
    centre, scale = s.mean(), s.std()
    columns = np.stack([(s - centre) / scale, np.ones(len(s))])
    # The loss is convex: its slope at (0, flat) tells the sign of the best one.
    if columns[0] @ target <= 0:
        return 0.0, flat

    def loss(line: _Floats) -> float:
        z = line @ columns
        return float((np.logaddexp(0, z) - target * z).sum())

    line = np.array([0.0, flat])
    for _ in range(100):
        p = np.exp(-np.logaddexp(0, -(line @ columns)))
        gradient = columns @ (p - target)
        step = np.linalg.solve((columns * (p * (1 - p))) @ columns.T, gradient)
        # Once even the full step promises less than rounding, nothing is left to gain.
        if gradient @ step <= 1e-14 * len(s):
            break
        size, now = 1.0, loss(line)
        while size > 1e-10 and loss(line - size * step) > now - 1e-4 * size * (gradient @ step):
            size /= 2
        line = line - size * step
    slope = float(line[0] / scale)
    return slope, float(line[1] - slope * centre)
