"""Lower bounds on epsilon from outputs on two neighbouring inputs, drawn many times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value, to_floats
from fpbench.base.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[Floats], Floats]
"""How much likelier outputs (draws, m) are from the first input than from the second: (draws,)."""

MARGINAL_BINS, JOINT_BINS, THRESHOLDS = 64, 1500, 64
_A_BIN = 12
"""Draws that a bin should have, of both inputs together: fewer tell of luck, not of epsilon."""


@check_arguments
def bound_epsilon(
    one: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    direction: ArrayLike | None = None,
) -> float:
    """A lower bound on epsilon, with confidence, from outputs on two neighbouring inputs.

    Parameters
    ----------
    one, other
        (N, m) outputs on each input, drawn independently; at least 40 of each. Their order must
        not depend on their values.
    delta
        The delta that is allowed.
    confidence
        Probability in (0, 1) that the bound is true, whatever made the outputs.
    direction
        (m,) weights of a further sum of outputs that may tell the inputs apart.

    Returns
    -------
    float
        At least 0; the true epsilon at this delta is above it with this confidence.

    Raises
    ------
    InputError
        If shapes do not agree, there are fewer than 40 draws, a parameter is out of range, or an
        output is not finite.

    Notes
    -----
    A quarter of the draws estimates how much likelier outputs are under one input than under the
    other, from binned outputs, all of them jointly, one by one, and in sums; a quarter chooses the
    set of outputs above a threshold of that, and which of the inputs it favours, by what it
    promises; the other half counts how often both inputs fall into that one set. The bound is
    ln((p - delta) / q), with p and q at the far ends of Clopper-Pearson intervals which are both
    true with the requested confidence. Chosen on other draws, a single event needs no correction
    for having been chosen.

    References
    ----------
    Clopper, Pearson: The Use of Confidence or Fiducial Limits. Biometrika 1934.
    Jagielski, Ullman, Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    """
    outputs = [to_floats(name, part) for name, part in (("one", one), ("other", other))]
    if outputs[0].ndim != 2 or outputs[0].shape != outputs[1].shape:
        raise InputError(
            f"one and other must both be (N, m), not {outputs[0].shape} and {outputs[1].shape}"
        )
    draws = len(outputs[0])
    if draws < 40:
        raise InputError(f"draws of each input must be at least 40, not {draws}")
    if not (0 <= delta < 1 and 0 < confidence < 1):
        raise InputError(
            f"delta must be in [0, 1), confidence in (0, 1), not {show_value(delta)} and "
            f"{show_value(confidence)}"
        )
    if not all(np.isfinite(part).all() for part in outputs):
        raise InputError("outputs must be finite numbers")
    cuts = [draws // 4, draws // 2]
    (fit, choose, test), others = (np.split(drawn, cuts) for drawn in outputs)
    n, alpha = len(test), 1 - confidence
    weights = np.zeros(0) if direction is None else to_floats("direction", direction).ravel()
    best, hits = -math.inf, [np.array(0), np.array(0)]
    for score in fit_scores(fit, others[0], weights):
        chosen_scores = [np.sort(score(part)) for part in (choose, others[1])]
        for sign in (1, -1):  # which of the two inputs the event favours
            p, q = ((sign * part)[::sign] for part in chosen_scores[::sign])
            # Stricter than the test below: the greatest of many estimated bounds is often luck.
            promised, threshold = choose_threshold(p, q, n, delta, alpha / 100)
            if promised > best:
                best = promised
                test_scores = [sign * score(part) for part in (test, others[2])][::sign]
                hits = [np.array(np.count_nonzero(part >= threshold)) for part in test_scores]
    return max(float(bound_by_hits(hits[0], hits[1], n, delta, alpha)), 0.0)


@check_arguments
def find_most_provable(draws: int, delta: float, confidence: float) -> float:
    """The greatest bound that this number of draws can give: that of an event that never fails.

    Parameters
    ----------
    draws
        Of each input; half of them are counted.
    delta, confidence
        As in `bound_epsilon`.
    """
    n = draws - draws // 2
    bound = bound_by_hits(np.array(n), np.array(0), n, delta, 1 - confidence)
    return max(float(bound), 0.0)


def fit_scores(one: Floats, other: Floats, direction: Floats) -> Iterator[Score]:
    """Estimates of the log-likelihood ratio of outputs (draws, m), in several ways."""
    m = one.shape[1]
    draws = len(one) + len(other)
    bins = min(MARGINAL_BINS, max(4, draws // _A_BIN))
    cells = [_estimate_log_ratio(one[:, [j]], other[:, [j]], bins) for j in range(m)]

    def score_cells(outputs: Floats) -> Floats:
        return sum((cells[j](outputs[:, [j]]) for j in range(m)), np.zeros(len(outputs)))

    yield score_cells
    if m == 1:
        return
    telling = [np.abs(cells[j](one[:, [j]])).mean() for j in range(m)]
    most = np.argsort(telling)[::-1][:3]
    each = round(min(JOINT_BINS, max(8, draws // _A_BIN)) ** (1 / len(most)))
    joint = _estimate_log_ratio(one[:, most], other[:, most], max(each, 2))
    yield lambda outputs: joint(outputs[:, most])
    yield lambda outputs: cells[most[0]](outputs[:, [most[0]]])
    sums = [np.ones(m)]
    if direction.size == m:
        sums.append(direction.astype(np.float64))
    for weights in sums:
        column = weights[:, None]
        total = _estimate_log_ratio(one @ column, other @ column, bins)
        yield partial(_score_sums, total, column)


def _score_sums(score: Score, weights: Floats, outputs: Floats) -> Floats:
    return score(outputs @ weights)


def _estimate_log_ratio(one: Floats, other: Floats, bins: int) -> Score:
    """Logarithm of the ratio of frequencies in a grid of bins that are about equally full."""
    edges = [
        _find_bin_edges(np.concatenate([a, b]), bins) for a, b in zip(one.T, other.T, strict=True)
    ]
    sizes = [len(of_one) + 1 for of_one in edges]

    def find_places(outputs: Floats) -> NDArray[np.intp]:
        cells = np.zeros(len(outputs), dtype=np.intp)
        for starts, values, size in zip(edges, outputs.T, sizes, strict=True):
            cells = cells * size + np.searchsorted(starts, values, side="right")
        return cells

    counts = [np.bincount(find_places(part), minlength=math.prod(sizes)) for part in (one, other)]
    ratio = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)

    def score(outputs: Floats) -> Floats:
        cells: Floats = ratio[find_places(outputs)]
        return cells

    return score


def _find_bin_edges(values: Floats, bins: int) -> Floats:
    """Starts of bins: quantiles; values that many draws share get bins of their own."""
    distinct, times = np.unique(values, return_counts=True)
    steps = np.arange(1, bins) * (len(values) / bins)
    quantiles = distinct[np.searchsorted(np.cumsum(times), steps)]
    common = np.argsort(times)[::-1][: bins // 4]
    shared = distinct[common[times[common] >= 8]]
    edges: Floats = np.unique(np.concatenate([quantiles, shared, np.nextafter(shared, np.inf)]))
    return edges


def choose_threshold(
    p: Floats, q: Floats, n: int, delta: float, alpha: float
) -> tuple[float, float]:
    """The bound that the best threshold would give for n draws, and the threshold.

    `p` and `q` are sorted scores; the event is a score of at least the threshold, likelier in `p`.
    """
    # From all draws down to a handful: rare events may distinguish best.
    sizes = np.geomspace(4, len(p), THRESHOLDS).astype(int)
    thresholds = np.unique(np.concatenate([p[len(p) - sizes], q[len(q) - sizes]]))
    above = [len(part) - np.searchsorted(part, thresholds) for part in (p, q)]
    promised = bound_by_hits(above[0] * (n / len(p)), above[1] * (n / len(q)), n, delta, alpha)
    top = int(promised.argmax())
    return float(promised[top]), float(thresholds[top])


def bound_by_hits(p: NDArray[Any], q: NDArray[Any], n: int, delta: float, alpha: float) -> Floats:
    """Lower bounds on epsilon from numbers of hits among n draws each, at error alpha in all."""
    from scipy.special import betaincinv

    # Clopper-Pearson, one-sided, half of the error each; the ends need no inversion.
    low = np.where(p > 0, betaincinv(np.maximum(p, 0.5), n - p + 1, alpha / 2), 0.0)
    high = np.where(q < n, betaincinv(q + 1, np.maximum(n - q, 0.5), 1 - alpha / 2), 1.0)
    with np.errstate(divide="ignore"):
        epsilons: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return epsilons
