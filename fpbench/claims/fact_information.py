"""Upper bounds, in nats, of the information that facts about sets give about people's groups."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import xlogy

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_floats
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import EXPONENTIAL, LAPLACE, ROUNDING
from fpbench.claims.information import (
    compute_share_variances,
    count_nats,
    count_ways,
    limit_integer_nats,
)
from fpbench.claims.set_counts import Facts, Floats, Mask

Numbers = NDArray[np.intp]

_FIRST: Final = 1024
"""Sets in a block, whose counts are predicted together; the largest sets come first."""
_OWN: Final = 256
"""Sets in later blocks."""
_GIVEN: Final = 256
"""Earlier sets that a block is conditioned on."""
_TABLES: Final = 400
"""Tables that are searched for sets that include others."""
_SEEN: Final = 4
"""Members of a set who are looked up in them."""
_RIDGE: Final = 1e-6
"""Variance added to counts, so that those that follow from others need no special case. It lies
far above the errors of floating point and costs less than .001 nats a set."""


@check_arguments
def limit_fact_nats(
    facts: Facts, beliefs: ArrayLike | None = None, *, seconds: float = math.inf
) -> float:
    """The most that facts can tell about everybody's group, if people's groups are independent.

    Parameters
    ----------
    facts
        Counts of K groups in M sets of n people.
    beliefs
        (n, K) each person's prior probabilities; without them the limit holds for any.
    seconds
        If it takes longer, the result is the trivial limit n ln K.

    Returns
    -------
    float
        Nats: at least the mutual information of groups and facts, and at most n ln K.

    Raises
    ------
    InputError
        If beliefs are not (n, K) probabilities.

    Notes
    -----
    What is published and how exactly must not depend on anybody's group: a range is a count that
    was rounded once, to the nearest or at random to a neighbour, on a grid set beforehand. A rule
    that suppresses small counts tells at most what all counts would have told: their sets must be
    among the facts, with counts NaN, which stand for any exact ones.

    The information is a sum over sets of what each tells given some of those before it. Given
    those, the best linear prediction of an exact count has a mean squared error V, and a whole
    number of this variance has at most the entropy `limit_integer_nats` (V): about
    1/2 ln(2 pi e V), and nothing where the count follows from others. The error is a pivot of the
    Cholesky factor of M D M', D the variances of single people, so the sum is a log-determinant.
    Ranges count the roundings, or use that a rounding on a grid of step g has a standard deviation
    of at most sqrt(V) / g + 1/2. A noisy count has at most the entropy of a Gaussian of its
    variance, and 1/12 more; less the entropy of the noise, be it real or whole numbers. That is
    about 1/2 ln(1 + V / sigma^2), a Gaussian channel (Cover & Thomas, Elements of Information
    Theory, 9.4). Of Laplace noise of scale b also (V + 1/4) / (2 b^2), the divergence of noise from
    noise at the mean. A number rounded at random to a multiple of m is the number plus a uniform
    one of 0 to m - 1, rounded down; who knew the uniform one would have learnt as much as a number
    with uniform noise tells (Zamir & Feder, On Universal Quantization by Randomized Uniform/Lattice
    Quantizers, IEEE Trans. Inform. Theory 38, 1992), whose entropy is ln m. Numbers chosen by the
    exponential mechanism, or perturbed by cell keys, tell at most what the exact ones do. The
    greatest information is at equal probabilities of all groups, as every term is concave in the
    covariance and the average over permutations of groups is symmetric.
    """
    deadline = time.perf_counter() + seconds
    people, k = facts.people, facts.groups
    chances = None
    if beliefs is not None:
        chances = to_floats("beliefs", beliefs)
        if (
            chances.shape != (people, k)
            or not (chances >= 0).all()
            or not np.allclose(chances.sum(axis=1), 1)
        ):
            raise InputError(f"beliefs must be ({people}, {k}) probabilities that sum to 1")
    if seconds <= 0:
        return float(people * math.log(k))
    kept = ~facts.derived & _find_informative(facts)
    facts = facts if kept.all() else facts.take(kept)
    if not len(facts):
        return 0.0
    covered = np.diff(facts.membership.indptr) > 0
    nats = covered.sum() * math.log(k)
    if chances is not None:
        nats = float(-xlogy(chances[covered], chances[covered]).sum())
    parts = _split_groups(chances, people, k)
    wide = _measure_width(facts) > _WIDE
    nats = _add_up(facts, parts, np.zeros_like(wide), nats, deadline)
    if wide.any():
        kept = ~_find_complements(facts, wide)
        nats = _add_up(facts.take(kept), parts, wide[kept], nats, deadline)
    return float(nats)


_WIDE: Final = 2
"""Counts of a range that is taken for an exact count: a grid of step 1 may make it."""


def _find_informative(facts: Facts) -> Mask:
    """(M,) whether any group's count is known of a set."""
    unknown = (facts.low <= 0) & (facts.high >= facts.sizes[:, None])
    unknown &= ~np.isfinite(facts.laws.rounded)
    return np.asarray(~np.where(facts.noisy[:, None], np.isinf(facts.low), unknown).all(axis=1))


def _find_random(facts: Facts) -> Mask:
    """(M,) whether noise, or rounding at random, is independent of the true number."""
    rounded = (facts.laws.kind == ROUNDING) & np.isfinite(facts.laws.rounded).any(axis=1)
    return np.asarray(facts.noisy & (facts.laws.kind < EXPONENTIAL) | rounded)


def _measure_width(facts: Facts) -> Floats:
    """(M,) the number of counts in a set's narrowest range; 1 if it has a law."""
    widths = np.where(facts.laws.kind[:, None] > 0, 1.0, facts.high - facts.low + 1)
    return np.asarray(widths.min(axis=1))


def _find_complements(facts: Facts, wide: Mask) -> Mask:
    """(M,) whether a range is of the complement, in a set with exact counts, of the set before."""
    draws = np.random.default_rng(20260103).integers(2**63, size=facts.people)
    sums = facts.count(draws)  # of wholes and of their two parts: equal by chance once in 2^63
    exact = np.flatnonzero((facts.low == facts.high).all(axis=1) & (facts.laws.kind == 0))
    order = exact[np.argsort(sums[exact])]
    both = sums[:-1] + sums[1:]
    place = np.searchsorted(sums[order], both)
    whole = np.append(order, -1)[place]
    left = facts.low[whole] - facts.low[:-1], facts.high[whole] - facts.high[:-1]
    mirrored = (whole >= 0) & (sums[whole] == both) & wide[:-1] & wide[1:]
    mirrored &= (left[0] == facts.high[1:]).all(axis=1) & (left[1] == facts.low[1:]).all(axis=1)
    return np.concatenate([[False], mirrored])


class _Part(NamedTuple):
    """A coordinate of the groups: the variance of each person, and which facts have it."""

    variances: Floats
    """(n,)."""
    exact: tuple[float, ...] = ()
    """Exact counts have this coordinate once for each of these factors of its variances."""
    noise: float = 0.0
    """Noisy ones have it `times` times, with this factor."""
    times: int = 0
    rounded: float = 0.0
    """No group varies more than with this factor."""


def _split_groups(chances: Floats | None, people: int, k: int) -> list[_Part]:
    """Coordinates whose information adds up to at least that of the groups together."""
    if chances is None:
        factors = tuple(compute_share_variances(k).tolist())
        return [_Part(np.ones(people), factors, 1 / k, k - 1, 0.25)]
    if k == 2:
        return [_Part(chances[:, 0] * chances[:, 1], (1.0,), 2.0, 1, 1.0)]
    moment = np.diag(chances.mean(axis=0)) - chances.T @ chances / people

    def variances(turn: Floats) -> Floats:
        return np.asarray(np.maximum(chances @ turn**2 - (chances @ turn) ** 2, 0))

    # A group's count minus its prediction from earlier groups, on average over people.
    lower = np.linalg.cholesky(moment[:-1, :-1] + _RIDGE * np.eye(k - 1))
    turns = np.pad(np.linalg.inv(lower / np.diag(lower)), ((0, 0), (0, 1)))
    # Noise is the same in all directions; in that of the sum of all groups nothing varies.
    axes = np.linalg.eigh(moment + 2 * np.ones((k, k)))[1].T[:-1]
    return [
        *(_Part(variances(turn), exact=(1.0,)) for turn in turns),
        *(_Part(variances(axis), noise=1.0, times=1) for axis in axes),
        _Part((chances * (1 - chances)).max(axis=1), rounded=1.0),
    ]


def _add_up(facts: Facts, parts: list[_Part], loose: Mask, most: float, deadline: float) -> float:
    """The sum over sets of what each tells, up to `most`; loose counts are rounded, not exact.

    After the deadline, `most`.
    """
    noisy, k = _find_random(facts), facts.groups
    firm = ~noisy & ~loose
    has = {"exact": not noisy.all(), "noise": noisy.any(), "rounded": loose.any()}
    parts = [part for part in parts if any(has[name] and getattr(part, name) for name in has)]
    error = _compute_noise_variance(facts)
    nats = 0.0
    for own, before in _make_blocks(facts):
        if nats >= most or time.perf_counter() > deadline:
            return most
        exact, wide, random = own[firm[own]], own[loose[own]], own[noisy[own]]
        known, rest = before[firm[before]], before[noisy[before]]
        counted = np.zeros(len(exact) + len(wide))
        deviation, measured = np.zeros(len(wide)), np.zeros(len(random))
        for part in parts:
            left, noise = _predict(facts, part, (known, exact, wide, rest, random), error)
            for factor in part.exact:
                counted += limit_integer_nats(factor * left)
            deviation = np.maximum(deviation, np.sqrt(part.rounded * left[len(exact) :]))
            measured += part.times / 2 * np.log(noise)
        counted = np.minimum(counted, count_ways(facts.sizes[np.concatenate([exact, wide])], k))
        nats += counted[: len(exact)].sum()
        roundings = _limit_roundings(facts.take(wide), deviation)
        nats += np.minimum(counted[len(exact) :], roundings).sum()
        nats += _limit_noise(facts.take(random), parts, measured).sum()
    return min(float(nats), most)


def _limit_noise(facts: Facts, parts: list[_Part], measured: Floats) -> Floats:
    """(M,) what noisy counts tell; `measured` is what Gaussian laws would."""
    k, laplace = facts.groups, facts.laws.kind == LAPLACE
    variance = _compute_noise_variance(facts)
    excess = 0.5 * np.log(2 * math.pi * math.e * variance) - _compute_noise_nats(facts)
    total = sum(part.times * part.noise * facts.count(part.variances) for part in parts)
    total = total + np.minimum(total, k / 4)
    divergence = np.where(laplace, total / np.maximum(2 * facts.scale**2, 1e-300), np.inf)
    least = np.minimum(measured + k * excess, divergence)
    return np.asarray(np.minimum(least, count_nats(facts.sizes, k)))


def _compute_noise_variance(facts: Facts) -> Floats:
    """(M,) of noise; and 1/12, by which a whole number has a density."""
    rounded, base = facts.laws.kind == ROUNDING, facts.laws.width
    variance = facts.sigma**2 + 2 * facts.scale**2 + np.where(rounded, base**2 - 1, 0) / 12
    return np.asarray(variance + 1 / 12)


def _compute_noise_nats(facts: Facts) -> Floats:
    """(M,) entropy of noise: the less of that of real and that of whole numbers."""
    sigma, scale = np.maximum(facts.sigma, 1e-300), np.maximum(facts.scale, 1e-3)
    steps = np.arange(-8, 9)[:, None]  # of more than 1, both are the same to 8 digits
    with np.errstate(under="ignore"):
        power = np.exp(-0.5 * (steps / np.clip(sigma, 1e-3, 1.0)) ** 2)
        fall = np.exp(-1 / scale)
    law = power / power.sum(axis=0)
    whole = np.where(sigma < 1, -xlogy(law, law).sum(axis=0), np.inf)
    gaussian = np.minimum(0.5 * np.log(2 * math.pi * math.e) + np.log(sigma), whole)
    whole = np.log((1 + fall) / (1 - fall)) + 2 * fall / (1 - fall**2) / scale
    laplace = np.minimum(1 + np.log(2 * np.maximum(facts.scale, 1e-300)), whole)
    noise = np.where(facts.sigma > 0, gaussian, laplace)
    rounded = facts.laws.kind == ROUNDING
    return np.where(rounded, np.log(np.maximum(facts.laws.width, 1)), noise)


def _limit_roundings(facts: Facts, spread: Floats) -> Floats:
    """(M,) the entropy of rounded counts whose errors of prediction have this deviation."""
    width, size = facts.high - facts.low + 1, facts.sizes[:, None]
    step = (width + 1) // 2
    # Two groups share one count, which is rounded once for each of them.
    double = 2 if facts.groups == 2 else 1
    values = double * (size // step + 2)
    index = double * (spread[:, None] / step + 0.5)
    nats = np.minimum(np.log(values), limit_integer_nats(index**2))
    nats[width > size] = 0
    return np.asarray(nats.max(axis=1) if double == 2 else nats.sum(axis=1))


def _predict(
    facts: Facts, part: _Part, blocks: tuple[Numbers, ...], error: Floats
) -> tuple[Floats, Floats]:
    """Mean squared errors of the best linear predictions of counts from those before.

    Of exact and of ranged counts; of noisy ones as a multiple of the noise.
    """
    before, exact, wide, rest, random = blocks
    sets = facts.sets[np.concatenate(blocks)]
    columns = sets.T.tocsr()
    columns.data = np.repeat(part.variances, np.diff(columns.indptr))
    moment = (sets @ columns).toarray()
    firm = len(before) + len(exact)
    lower = cholesky(moment[:firm, :firm] + _RIDGE * np.eye(firm), lower=True)
    across = solve_triangular(lower, moment[:firm, firm:], lower=True)
    after = moment[firm:, firm:] - across.T @ across
    left = np.concatenate([np.diag(lower)[len(before) :] ** 2, np.diag(after)[: len(wide)]]).clip(0)
    if not part.noise:
        return left, np.ones(len(random))
    after = after[len(wide) :, len(wide) :]
    noise = error[np.concatenate([rest, random])] / part.noise
    after[np.diag_indices(len(after))] += noise
    return left, (np.diag(cholesky(after, lower=True)) ** 2 / noise)[len(rest) :]


def _make_blocks(facts: Facts) -> Iterator[tuple[Numbers, Numbers]]:
    """Blocks of sets that are predicted together, and the earlier sets they are conditioned on.

    Sets in succession that share nobody are a table; tables of large sets come first. Given are
    the sets that seem to include one of the block: in tables that are crossed further, margins.
    """
    membership, sizes = facts.membership.sorted_indices(), facts.sizes
    previous = membership.copy()
    previous.data = np.concatenate([[-1], membership.indices[:-1]])
    previous.data[membership.indptr[:-1][np.diff(membership.indptr) > 0]] = -1
    sets = previous.T.tocsr()
    before = np.maximum.reduceat(sets.data, sets.indptr[:-1])
    starts = [0]
    for number, last in enumerate(before.tolist()):
        if last >= starts[-1]:
            starts.append(number)
    table = np.repeat(np.arange(len(starts)), np.diff([*starts, len(facts)]))
    mean = np.bincount(table, sizes) / np.bincount(table)
    rank = np.empty(len(starts), np.intp)
    rank[np.argsort(-mean, kind="stable")] = np.arange(len(starts))
    table = rank[table]
    order = np.argsort(table, kind="stable")
    place = np.argsort(order)
    yield order[:_FIRST], order[:0]
    for first in range(_FIRST, len(order), _OWN):
        own = order[first : first + _OWN]
        # Members of each set, and of the first tables the sets that they are in.
        nth = facts.sets.indptr[own][:, None] + np.arange(_SEEN) % sizes[own][:, None]
        rows = membership[facts.sets.indices[nth.ravel()]]
        person = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        seen = table[rows.indices] < _TABLES
        where = np.full((rows.shape[0], min(_TABLES, len(starts))), -1)
        where[person[seen], table[rows.indices[seen]]] = rows.indices[seen]
        where = where.reshape(len(own), _SEEN, -1)
        larger = np.unique(where[:, 0][(where == where[:, :1]).all(axis=1) & (where[:, 0] >= 0)])
        larger = larger[place[larger] < first]
        yield own, larger[np.argsort(sizes[larger], kind="stable")[:_GIVEN]]
