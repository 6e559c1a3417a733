"""Events that tell two releases apart, and what their frequencies prove about epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[Floats], Floats]
"""How much likelier outputs (draws, m) are from the first input than from the second: (draws,)."""

MARGINAL_BINS, JOINT_BINS, THRESHOLDS = 64, 1500, 64


def scores(one: Floats, other: Floats, direction: NDArray[np.int64]) -> Iterator[Score]:
    """Estimates of the log-likelihood ratio of outputs (draws, m), in several ways."""
    m = one.shape[1]
    cells = [_binned(one[:, [j]], other[:, [j]], MARGINAL_BINS) for j in range(m)]

    def cell_by_cell(outputs: Floats) -> Floats:
        return sum((cells[j](outputs[:, [j]]) for j in range(m)), np.zeros(len(outputs)))

    yield cell_by_cell
    if m == 1:
        return
    telling = [np.abs(cells[j](one[:, [j]])).mean() for j in range(m)]
    most = np.argsort(telling)[::-1][:3]
    joint = _binned(one[:, most], other[:, most], round(JOINT_BINS ** (1 / len(most))))
    yield lambda outputs: joint(outputs[:, most])
    sums = [np.ones(m)]
    if direction.size == m:
        sums.append(direction.astype(np.float64))
    for weights in sums:
        column = weights[:, None]
        total = _binned(one @ column, other @ column, MARGINAL_BINS)
        yield partial(_after, total, column)


def _after(score: Score, weights: Floats, outputs: Floats) -> Floats:
    return score(outputs @ weights)


def _binned(one: Floats, other: Floats, bins: int) -> Score:
    """Logarithm of the ratio of frequencies in a grid of bins that are about equally full."""
    edges = [_edges(np.concatenate([a, b]), bins) for a, b in zip(one.T, other.T, strict=True)]
    sizes = [len(of_one) + 1 for of_one in edges]

    def places(outputs: Floats) -> NDArray[np.intp]:
        found = np.zeros(len(outputs), dtype=np.intp)
        for starts, values, size in zip(edges, outputs.T, sizes, strict=True):
            found = found * size + np.searchsorted(starts, values, side="right")
        return found

    counts = [np.bincount(places(part), minlength=math.prod(sizes)) for part in (one, other)]
    ratio = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)

    def score(outputs: Floats) -> Floats:
        found: Floats = ratio[places(outputs)]
        return found

    return score


def _edges(values: Floats, bins: int) -> Floats:
    """Where bins start: at quantiles; values that many draws share have bins of their own."""
    distinct, times = np.unique(values, return_counts=True)
    steps = np.arange(1, bins) * (len(values) / bins)
    quantiles = distinct[np.searchsorted(np.cumsum(times), steps)]
    common = np.argsort(times)[::-1][: bins // 4]
    shared = distinct[common[times[common] >= 8]]
    edges: Floats = np.unique(np.concatenate([quantiles, shared, np.nextafter(shared, np.inf)]))
    return edges


def promise(p: Floats, q: Floats, n: int, delta: float, alpha: float) -> tuple[float, float]:
    """The bound that the best threshold promises for n draws, and the threshold.

    `p` and `q` are sorted scores; the event is a score of at least the threshold, likelier in `p`.
    """
    # From all of the draws down to a handful: rare events may tell most.
    sizes = np.geomspace(4, len(p), THRESHOLDS).astype(int)
    thresholds = np.unique(np.concatenate([p[len(p) - sizes], q[len(q) - sizes]]))
    above = [len(part) - np.searchsorted(part, thresholds) for part in (p, q)]
    promised = bounds(above[0] * (n / len(p)), above[1] * (n / len(q)), n, delta, alpha)
    top = int(promised.argmax())
    return float(promised[top]), float(thresholds[top])


def bounds(p: NDArray[Any], q: NDArray[Any], n: int, delta: float, alpha: float) -> Floats:
    """Lower bounds on epsilon from numbers of hits among n draws each, at error alpha in all."""
    from scipy.special import betaincinv

    # Clopper-Pearson, one-sided, half of the error each; the ends need no inversion.
    low = np.where(p > 0, betaincinv(np.maximum(p, 0.5), n - p + 1, alpha / 2), 0.0)
    high = np.where(q < n, betaincinv(q + 1, np.maximum(n - q, 0.5), 1 - alpha / 2), 1.0)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return found
