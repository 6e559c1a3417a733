"""Calibration of an adversary's confidence on people whose groups it knows.

Platt scaling (Platt, Probabilistic outputs for support vector machines, 1999): log-odds are
corrected by a slope and an intercept of maximum likelihood, with his smoothed targets. With
calibrated probabilities p, weights |log(p / (1 - p))| make the least costly correction of two
groups the likeliest vector that satisfies the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
"""Least cost of changing a guess, even of one no better than its opposite."""

_FOLDS = 5
_MOST_COMPARED = 2_000
"""Held-out people, at most, on whom ways of calibrating are compared."""
_LEAST_ISOTONIC = 200
"""Held-out people, at least, before an increasing function is fitted to them."""
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
        # Calibrate P(group 1), not "right": only so can a skew towards one group be mended.
        s = np.where(values == 1, s, -s)
        held_out_s = np.where(held_out_values == 1, held_out_s, -held_out_s)
        happened = truth == 1
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
    """Likeliest slope (0 or more) and intercept of the log-odds; None if all are of one kind."""
    if happened.all() or not happened.any():
        return None
    slope, offsets = _fit_scaling(np.stack([np.zeros_like(s), s]), happened.astype(int))
    return slope, float(offsets[1])


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
        If beliefs are no probabilities, are of other groups, or all held-out people belong to one
        group.

    Notes
    -----
    `scaled`: log-probabilities times a slope (one over a temperature) plus an offset a group, of
    maximum likelihood with Platt's smoothed targets; a negative slope is taken for chance. Of two
    groups that is Platt scaling. `isotonic`: the likeliest increasing function of the probability
    (Zadrozny & Elkan, Transforming classifier scores into accurate multiclass probability
    estimates, 2002), kept away from 0 and 1 by one person more of each group.
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
            "to trust an adversary: hold out more people, or enlarge the attack set ([split] "
            "attack)"
        )
    method = "scaled"
    if chances.shape[1] == 2 and len(known) >= _LEAST_ISOTONIC:
        some = slice(_MOST_COMPARED)
        loss = partial(_cross_validate, held_out[some], known[some])
        method = min(("scaled", "isotonic"), key=loss)
    calibrated: _Floats = _APPLY[method](chances, held_out, known)
    return calibrated, method


def _cross_validate(held_out: _Floats, truth: _Integers, method: str) -> float:
    """Mean surprise (nats) at the groups of people that a method was not fitted to."""
    fold = np.arange(len(truth)) % _FOLDS
    surprise = 0.0
    for number in range(_FOLDS):
        inside, rest = fold == number, fold != number
        if (truth[rest] == truth[rest][0]).all():
            continue
        chances = _APPLY[method](held_out[inside], held_out[rest], truth[rest])
        surprise -= float(np.log(chances[np.arange(len(chances)), truth[inside]]).sum())
    return surprise / len(truth)


def _scale(beliefs: _Floats, held_out: _Floats, truth: _Integers) -> _Floats:
    slope, offsets = _fit_scaling(_to_logits(held_out.T), truth)
    logits = slope * _to_logits(beliefs.T) + offsets[:, None]
    chances = np.exp(logits - logits.max(axis=0))
    return np.ascontiguousarray((chances / chances.sum(axis=0)).T)


def _fit_monotone(beliefs: _Floats, held_out: _Floats, truth: _Integers) -> _Floats:
    from scipy.optimize import isotonic_regression

    m = len(truth)
    # One person more of each group, at either end.
    scores, place = np.unique(np.concatenate([held_out[:, 1], [0.0, 1.0]]), return_inverse=True)
    people = np.bincount(place)
    members = np.bincount(place, np.concatenate([truth == 1, [True, False]]))
    curve = isotonic_regression(members / people, weights=people).x
    chance = np.interp(beliefs[:, 1], scores, np.clip(curve, 1 / (m + 2), 1 - 1 / (m + 2)))
    return np.stack([1 - chance, chance], axis=1)


_APPLY: dict[str, Callable[[_Floats, _Floats, _Integers], _Floats]] = {
    "scaled": _scale, "isotonic": _fit_monotone
}  # fmt: skip


def _to_logits(beliefs: _Floats) -> _Floats:
    """(K, n) log-probabilities less the greatest, at least -10: log-odds of two groups."""
    with np.errstate(divide="ignore"):
        logits = np.log(beliefs)
    return np.asarray(np.maximum(logits - logits.max(axis=0), -_LARGEST))


def _fit_scaling(logits: _Floats, truth: _Integers) -> tuple[float, _Floats]:
    """Likeliest slope (0 or more) of (K, m) logits, and offsets (K,), the first of them 0.

    Newton's method with step halving (Lin, Lin and Weng, A note on Platt's probabilistic outputs
    for support vector machines, 2007). The logits are standardised first, for a Hessian that is
    well conditioned.
    """
    k, m = logits.shape
    members = np.bincount(truth, minlength=k)
    # Platt's targets: of each group, one person more, and everybody of the others.
    targets = np.repeat(1 / (members + k)[:, None], k, axis=1)
    np.fill_diagonal(targets, (members + 1) / (members + k))
    target = targets.T[1:, truth]
    share = target.mean(axis=1)
    flat = np.log(share) - np.log(1 - share.sum())
    # All is relative to the first group, whose offset is 0.
    logits = logits[1:] - logits[0]
    centre, scale = logits.mean(axis=1), logits.std(axis=1).max()
    if scale == 0:
        return 0.0, np.append(0.0, flat)
    rows = (logits - centre[:, None]) / scale
    # The loss is convex: its slope at (0, flat) tells the sign of the best one.
    if (target * rows).sum() <= 0:
        return 0.0, np.append(0.0, flat)

    def evaluate(line: _Floats) -> tuple[float, _Floats]:
        """The loss, and the probabilities of all groups but the first."""
        z = line[0] * rows + line[1:, None]
        most = np.maximum(z.max(axis=0), 0.0)
        powers = np.exp(z - most)
        total = powers.sum(axis=0) + np.exp(-most)
        loss = float((most + np.log(total)).sum() - (target * z).sum())
        return loss, powers / total

    line = np.append(0.0, flat)
    loss, p = evaluate(line)
    for _ in range(100):
        weighted = p * rows
        mean = weighted.sum(axis=0)
        miss = p - target
        gradient = np.append((miss * rows).sum(), miss.sum(axis=1))
        hessian = np.empty((k, k))
        hessian[0, 0] = (weighted * rows).sum() - mean @ mean
        hessian[0, 1:] = hessian[1:, 0] = weighted.sum(axis=1) - p @ mean
        hessian[1:, 1:] = np.diag(p.sum(axis=1)) - p @ p.T
        step = np.linalg.solve(hessian + 1e-12 * m * np.eye(k), gradient)
        # Once even the full step promises less than rounding, nothing is left to gain.
        if gradient @ step <= 1e-14 * m:
            break
        size, before = 1.0, loss
        loss, p = evaluate(line - step)
        while size > 1e-10 and loss > before - 1e-4 * size * (gradient @ step):
            size /= 2
            loss, p = evaluate(line - size * step)
        line = line - size * step
    slope = float(line[0] / scale)
    return slope, np.append(0.0, line[1:] - slope * centre)
