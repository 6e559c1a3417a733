"""Significant differences of neighbours in a ranking: signed ranks over shared seeds, and Holm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALPHA = 0.05
"""Significance level of all comparisons of a board together."""

_EXACT = 60
"""Differences up to which p-values are exact; above, ranks are normal to four digits."""
_DIGITS = 9
"""Digits in which tied magnitudes agree: the last digits of means of shares are inexact."""
_NOISE = 1e-12
"""A difference of this share of the compared values is a rounding error, not a difference."""

_Floats = NDArray[np.float64]


def compare_signed_ranks(first: ArrayLike, second: ArrayLike) -> tuple[_Floats, NDArray[np.int64]]:
    """Two-sided p-values of paired comparisons, and the sides that ranks favour.

    `first`, `second`: (pairs, n) the values of both sides at the same seeds; a seed that one of
    them lacks (NaN) does not count.

    Returns: (pairs,) between 0 and 1; 1 if nothing differs, NaN if no seed is shared. And (pairs,)
    above 0 for the first side, below 0 for the second.

    Wilcoxon's signed-rank test (Biometrics Bulletin 1, 1945): differences of 0 are left out, ties
    share their mean rank. Up to 60 differences the p-value is over all assignments of signs to the
    actual ranks, so it is exact with ties, too; above, it is the normal approximation.
    """
    one, other = np.atleast_2d(np.asarray(first, float)), np.atleast_2d(np.asarray(second, float))
    gap, counted = one - other, _find_differing(one, other)
    magnitude = np.where(counted, np.abs(gap), 0.0)
    greatest = magnitude.max(axis=1, initial=0, keepdims=True)
    magnitude = np.round(magnitude / np.where(greatest > 0, greatest, 1), _DIGITS)
    ranks = _rank_doubled(magnitude, counted)
    above = (ranks * (gap > 0)).sum(axis=1)
    below = ranks.sum(axis=1) - above
    rarer = np.minimum(above, below)
    p_values = np.ones(len(one))
    for pattern, pairs in _group_alike(np.sort(ranks, axis=1)):
        p_values[pairs] = _compute_two_sided(pattern, rarer[pairs])
    p_values[np.isnan(gap).all(axis=1)] = np.nan
    return p_values, above - below


def count_differing(one: _Floats, other: _Floats) -> NDArray[np.int64]:
    """(pairs,) number of seeds at which both sides differ."""
    return np.asarray(_find_differing(one, other).sum(axis=1))


def _find_differing(one: _Floats, other: _Floats) -> NDArray[np.bool_]:
    """(pairs, n) whether both values exist and differ by more than a rounding error."""
    size = np.maximum(np.abs(one), np.abs(other))
    return np.asarray(np.abs(one - other) > _NOISE * size)  # false for NaN


def _rank_doubled(magnitude: _Floats, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Twice the mean ranks of those that count, which are whole; 0 for the others."""
    order = np.argsort(np.where(counted, magnitude, np.inf), axis=1)  # ties share a rank anyway
    ascending = np.take_along_axis(magnitude, order, axis=1)
    places = np.arange(magnitude.shape[1])
    first, last = np.ones((2, *magnitude.shape), np.bool_)
    first[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    last[:, :-1] = first[:, 1:]
    start = np.maximum.accumulate(np.where(first, places, 0), axis=1)
    end = np.where(last, places, len(places))[:, ::-1]
    end = np.minimum.accumulate(end, axis=1)[:, ::-1]
    ranks = np.empty(magnitude.shape, np.int64)
    np.put_along_axis(ranks, order, start + end + 2, axis=1)
    return np.where(counted, ranks, 0)


def _group_alike(ranks: NDArray[np.int64]) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp]]]:
    """Pairs with the same ranks: mostly 1 to n, whose distribution is needed once."""
    usual = 2 * np.arange(1, ranks.shape[1] + 1)
    is_usual = (ranks == usual).all(axis=1)
    if is_usual.any():
        yield tuple(usual.tolist()), np.flatnonzero(is_usual)
    others = np.flatnonzero(~is_usual)
    if not len(others):
        return
    patterns, which = np.unique(ranks[others], axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(patterns)))[:-1]
    for pattern, pairs in zip(patterns.tolist(), np.split(others[order], ends), strict=True):
        yield tuple(rank for rank in pattern if rank), pairs


def _compute_two_sided(ranks: tuple[int, ...], rarer: NDArray[np.int64]) -> _Floats:
    if not ranks:
        return np.ones(len(rarer))
    if len(ranks) <= _EXACT:
        return np.minimum(2 * _compute_distribution(ranks)[rarer], 1.0)
    counted = np.array(ranks, np.float64)
    mean, deviation = counted.sum() / 2, math.sqrt((counted**2).sum()) / 2
    far = (mean - rarer) / deviation
    return np.array([math.erfc(distance / math.sqrt(2)) for distance in far])


@lru_cache(maxsize=256)
def _compute_distribution(ranks: tuple[int, ...]) -> _Floats:
    """P(sum of the ranks with a plus <= s) for each s, all signs being as likely."""
    chances = np.ones(1)
    for rank in ranks:
        drawn = np.zeros(len(chances) + rank)
        drawn[: len(chances)] += chances / 2
        drawn[rank:] += chances / 2
        chances = drawn
    return np.cumsum(chances)


def adjust_by_holm(p_values: ArrayLike) -> _Floats:
    """P-values that may be compared with a level as if there were only one.

    `p_values`: (m,) of m comparisons; NaN for those that could not be made, which do not count.

    Holm, A simple sequentially rejective multiple test procedure (Scand. J. Statist. 6, 1979).
    """
    given = np.asarray(p_values, float)
    made = np.flatnonzero(~np.isnan(given))
    order = made[np.argsort(given[made], kind="stable")]
    factors = len(order) - np.arange(len(order))
    found = np.full(len(given), np.nan)
    found[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return found


def adjust_p_values(one: _Floats, other: _Floats, shown: _Floats | None = None) -> _Floats:
    """P-values of several paired comparisons together.

    `one`, `other`: (pairs, seeds) the values of both sides; NaN where one lacks a seed. `shown`:
    (pairs,) the shown differences of means, if they are not over the seeds that both sides have.

    Returns: (pairs,) p-values that may be compared with a level as if each were the only one; NaN
    if no seed is shared, and 1 if the means differ in one direction and the ranks in the other.

    Wilcoxon's signed ranks and Holm's correction. The test is of ranks, but leaderboards show
    means: if few seeds with large differences outweigh many with small ones, ranks and means
    contradict each other, and no difference is significant. This only withdraws results: no error
    becomes more frequent.

    A comparison with so few differences that no signs could make it significant on its own is not
    counted (Tarone, A modified Bonferroni method for discrete data, Biometrics 46, 1990). Sides
    that are the same at every seed are not counted either, as for a corrector that never changes
    anything.
    """
    p_values, contrary = _test_directions(one, other, shown)
    p_values[contrary] = 1.0
    able = 2.0 ** (1 - count_differing(one, other)) <= ALPHA
    p_values[able] = adjust_by_holm(p_values[able])
    return p_values


def find_opposed(one: _Floats, other: _Floats, shown: _Floats | None = None) -> NDArray[np.bool_]:
    """(pairs,) whether ranks alone are significant, but in the opposite direction of the means."""
    p_values, contrary = _test_directions(one, other, shown)
    return contrary & (p_values < ALPHA)


def _test_directions(
    one: _Floats, other: _Floats, shown: _Floats | None
) -> tuple[_Floats, NDArray[np.bool_]]:
    """(pairs,) p-values of the ranks; and whether means and ranks differ in direction."""
    p_values, favour = compare_signed_ranks(one, other)
    there = ~(np.isnan(one) | np.isnan(other))
    seeds = np.maximum(there.sum(axis=1), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # a stranger's numbers may be huge
        gap = np.where(there, one - other, 0.0).sum(axis=1) / seeds
        size = np.where(there, np.maximum(np.abs(one), np.abs(other)), 0.0).sum(axis=1) / seeds
    agree = np.ones(len(one), np.bool_)
    for mean in (gap,) if shown is None else (gap, shown):
        agree &= favour * np.where(np.abs(mean) > _NOISE * size, np.sign(mean), 0.0) > 0
    return p_values, ~agree & ~np.isnan(p_values)


def compare_neighbours(
    values: _Floats, starts: NDArray[np.bool_] | None = None
) -> tuple[_Floats, list[str]]:
    """P-values of the difference of each line from the next, and notes on them.

    `values`: (lines, seeds) of lines in the order of their means; NaN where a line lacks a seed.
    `starts`: (lines,) whether a line begins a group: it is not compared with the line before it.
    None for a single group.

    Returns: (lines - 1,) p-values for all comparisons together; NaN if no seed is shared, or no
    comparison is made. And notes: why lines share ranks if no comparison could be significant.
    """
    pairs = slice(None) if starts is None else np.flatnonzero(~starts[1:])
    one, other = values[:-1][pairs], values[1:][pairs]
    there = ~np.isnan(values)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.where(there, values, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        shown = (means[:-1] - means[1:])[pairs]
    compared, notes = adjust_p_values(one, other, shown), []
    p_values = np.full(len(values) - 1, np.nan)
    p_values[pairs] = compared
    alone = int(np.isnan(compared).sum())
    if alone:
        sharing = (
            "pair of neighbouring lines has" if alone == 1 else "pairs of neighbouring lines have"
        )
        it = "it shares" if alone == 1 else "they share"
        notes.append(f"{alone} {sharing} no seed in common, so {it} a rank")
    notes += note_contrary(find_opposed(one, other, shown), "so they share a rank")
    return p_values, [*notes, *note_too_few(count_differing(one, other), "ranks are shared: ")]


def note_contrary(contrary: NDArray[np.bool_], so: str) -> list[str]:
    """A note about pairs whose means and ranks contradict each other, and the consequence `so`."""
    count = int(contrary.sum())
    pairs = "1 pair of lines" if count == 1 else f"{count} pairs of lines"
    return [f"{pairs}: means and signed ranks point in opposite directions, {so}"] * bool(count)


def note_too_few(differences: NDArray[np.int64], so: str = "") -> list[str]:
    """A note if there are too few seeds for any significant difference; else an empty list.

    `differences`: (pairs,) number of seeds at which both sides differ. `so`: the consequence.
    """
    compared, seeds = int((differences > 0).sum()), int(differences.max(initial=0))
    enough = count_needed_seeds(compared)
    if not compared or seeds >= enough:
        return []
    few = "one seed is" if seeds == 1 else f"{seeds} seeds are"
    return [
        f"{so}{few} too few for any significant difference, use at least {enough} "
        "(signed ranks, Holm, 5 %)"
    ]


def share_ranks(p_values: _Floats, starts: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Ranks of lines in order, best first; neighbours share one unless they differ significantly.

    `p_values`: (lines - 1,) p-value of each line against the next; NaN if they were not compared.
    `starts`: (lines,) whether a line begins a group, whose ranks begin at 1; None for a single
    group.
    """
    places = np.arange(len(p_values) + 1)
    first = places == 0 if starts is None else starts
    begins = first | np.concatenate([[True], p_values < ALPHA])
    of_group, of_rank = (
        np.maximum.accumulate(np.where(each, places, 0)) for each in (first, begins)
    )
    return np.asarray(1 + of_rank - of_group)


def count_needed_seeds(comparisons: int) -> int:
    """The least number of seeds with which this many comparisons can be significant at all.

    Of n differences the least p-value is 2^(1 - n): that all have the same sign.
    """
    return 1 + math.ceil(math.log2(max(comparisons, 1) / ALPHA) + 1e-9)
