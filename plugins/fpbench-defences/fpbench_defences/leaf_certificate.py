"""Upper bounds on the distance of two groups in the leaves of a tree, from counts of people.

The distance of two groups is the total variation of their leaves, max over sets A of leaves of
P(A | one group) - P(A | other). It bounds the difference of their selection rates under any model
that sees leaves only, and (1 + distance) / 2 bounds the balanced accuracy of any adversary that
sees leaves only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.plugin import Codes

Bound: TypeAlias = Literal["sets", "leaves"]

_SHARE_ERROR = 0.1
"""Part of the error for shares of groups, and again for shares of leaves, as in FARE's code."""
_SHARE_PEOPLE = 1 / 3
"""Part of the held-out people for the shares of leaves, as in FARE's code."""

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """Upper bounds for anybody who sees leaves only, with joint confidence."""

    parity: float
    """Upper bound on any model's difference of selection rates between two groups."""
    accuracy: float
    """Upper bound on the balanced accuracy of guesses of groups."""


@dataclass(frozen=True)
class LeafPeople:
    """Leaves and groups of people."""

    leaves: NDArray[np.intp]
    """(n,) in 0..k-1"""
    groups: Codes
    """(n,)"""

    def take(self, rows: NDArray[np.intp]) -> LeafPeople:
        """The given rows."""
        return LeafPeople(self.leaves[rows], self.groups[rows])

    def count(self, k: int, pair: tuple[int, int]) -> NDArray[np.int64]:
        """People of two groups in each leaf, (2, k)."""
        return np.stack([np.bincount(self.leaves[self.groups == g], minlength=k) for g in pair])


def certify_leaves(
    bound: Bound,
    grown: LeafPeople,
    held_out: LeafPeople,
    k: int,
    n_groups: int,
    error: float,
    rng: np.random.Generator,
) -> Certificate:
    """Bounds on what k leaves reveal of groups, with probability 1 - error over draws of people.

    All pairs of groups share the error. With distances d of pairs, the balanced accuracy among K
    groups is at most (1 + min over r of the sum over a of d(a, r)) / K: in a leaf the best guess
    gains at most the summed excess of each group over r.

    `bound`: the bound on a pair's distance. `grown`: people on whom the tree was grown; only their
    shares of groups are used. `held_out`: people of the same distribution, unseen by the tree;
    `rng` divides them for `leaves`.
    """
    pairs = list(combinations(range(n_groups), 2))
    distances = np.zeros((n_groups, n_groups))
    order = rng.permutation(len(held_out.leaves))
    cut = round(_SHARE_PEOPLE * len(order))
    for pair in pairs:
        own_error = error / len(pairs)
        if bound == "sets":
            distance = bound_by_sets(held_out.count(k, pair), own_error)
        else:
            distance = bound_by_leaves(
                grown.count(k, pair).sum(axis=1),
                held_out.take(order[cut:]).count(k, pair),
                held_out.take(order[:cut]).count(k, pair).sum(axis=0),
                own_error,
            )
        distances[pair] = distances[pair[::-1]] = distance
    nearest = float(distances.sum(axis=1).min())
    return Certificate(float(distances.max()), min(1.0, (1 + nearest) / n_groups))


def bound_by_sets(counts: NDArray[np.int64], error: float) -> float:
    """Upper bound on the distance of two groups from Clopper-Pearson bounds of all sets of leaves.

    All 2^k sets and both groups share the error, so all one-sided bounds hold simultaneously. The
    maximum over sets is taken over the convex hull of their counts: for each count of the first
    group, leaves in the order of their ratio, with the last leaf cut, give the least count of the
    second. That never lowers the bound.

    `counts`: (2, k) people of both groups in each leaf, independent of the leaves. `error`: in
    (0, 1).
    """
    k = counts.shape[1]
    n, m = (int(total) for total in counts.sum(axis=1))
    if not (n and m):
        return 1.0
    log_error = np.log(error) - np.log(2) * (k + 1)
    each = float(np.exp(max(log_error, -700.0)))  # above 1,000 leaves the bound is 1 anyway
    if log_error < -700.0:
        return 1.0
    occupied = counts[:, counts.any(axis=0)]
    order = np.argsort(occupied[1] / occupied.sum(axis=0), kind="stable")
    corners = np.hstack([np.zeros((2, 1), np.int64), occupied[:, order].cumsum(axis=1)])
    first = np.arange(n + 1)
    # Leaves without people of the first group come last and only add to the second.
    second = np.interp(first, *corners[:, : np.searchsorted(corners[0], n) + 1])
    return float(np.clip((_raise(first, n, each) - _lower(second, m, each)).max(), 0.0, 1.0))


def bound_by_leaves(
    groups: NDArray[np.int64], counts: NDArray[np.int64], leaves: NDArray[np.int64], error: float
) -> float:
    """The bound of FARE on the distance of two groups, 2 T - 1 (section 5, its code's defaults).

    With q the share of the first group and p that of a leaf z, the best guess has a balanced
    accuracy of sum_z p(z) max(P(0 | z) / 2q, P(1 | z) / 2(1 - q)). Clopper-Pearson bounds 1 / 2q
    and 1 / 2(1 - q) from `groups` (error / 10), and the maximum in each leaf from `counts`
    (8 error / 10, shared by leaves); Hoeffding bounds their mean from `leaves` (error / 10).

    `groups`: (2,) people of both groups. `counts`: (2, k) people of both groups in each leaf.
    `leaves`: (k,) people in each leaf, disjoint from those of `counts`. `error`: in (0, 1).
    """
    total, k, people = int(groups.sum()), len(leaves), int(leaves.sum())
    half = _SHARE_ERROR * error / 2
    least = _lower(groups, total, half) if total else np.zeros(2)
    if not (least.min() > 0 and people):
        return 1.0
    scales = 1 / (2 * least)[:, None]
    each = (1 - 2 * _SHARE_ERROR) * error / k / 2
    sizes = np.broadcast_to(counts.sum(axis=0), counts.shape)
    worst = (scales * _raise(counts, sizes, each)).max(axis=0)
    mean = float(worst @ (leaves / people))
    slack = float(np.ptp(worst)) * np.sqrt(-np.log(_SHARE_ERROR * error) / (2 * people))
    return float(np.clip(2 * (mean + slack) - 1, 0.0, 1.0))


def _lower(hits: NDArray[np.generic], n: object, error: float) -> _Floats:
    """One-sided Clopper-Pearson lower bounds of shares; hits may be fractional."""
    from scipy.special import betaincinv

    x = np.asarray(hits, np.float64)
    low = betaincinv(np.maximum(x, 1e-300), np.asarray(n, np.float64) - x + 1, error)
    return np.where(x > 0, low, 0.0)


def _raise(hits: NDArray[np.generic], n: object, error: float) -> _Floats:
    """One-sided Clopper-Pearson upper bounds of shares."""
    return np.asarray(1 - _lower(np.asarray(n, np.float64) - np.asarray(hits), n, error))
