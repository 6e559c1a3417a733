"""Possible sizes of groups whose rates are published without sizes.

A slice has N people, of whom X have prediction 1; both are known. A rate of x in n people is known
up to rounding, and so only some n are possible: those for which a whole x gives the rate, and the
others, N - n and X - x, can have the other rates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fpbench.claims.set_counts import Floats
from fpbench.reports.exact_blocks import WHOLE
from fpbench.reports.slices import Codes


class SizeRanges(NamedTuple):
    """(2, S, K) least and greatest numbers; the least is above the greatest if nothing fits."""

    size: Floats
    selected: Floats
    rejected: Floats
    rate: Codes
    """(2, S, K, 2) numerator and denominator of the least and greatest rate of sizes that fit."""


def find_sizes(
    people: Codes,
    selected: Codes,
    low: Floats,
    high: Floats,
    least: Floats,
    most: Floats,
    slack: Floats,
) -> SizeRanges:
    """Ranges of the groups' sizes and numbers in S slices.

    With two groups no size in between is impossible for the two together; with more, the others
    count as one group with a rate between the least and the greatest of theirs.

    `people`, `selected`: (S,) people of each slice, and those with prediction 1. `low`, `high`: (S,
    K) ends of the rates; 0 and 1 for a group without a published rate. `least`, `most`: (S, K)
    ends of the sizes, as far as they are known. `slack`: (S, K) how far the number of people may be
    from a rate times their size.
    """
    s, k = low.shape
    starts = np.concatenate([[0], np.cumsum(people[:-1] + 1)]) if s else np.zeros(0, np.int64)
    slice_ = np.repeat(np.arange(s), people + 1)
    n = (np.arange(len(slice_)) - starts[slice_]).astype(np.float64)  # every size of the group
    others = people[slice_] - n
    x_all = selected[slice_]
    ranges = np.empty((3, 2, s, k))
    rate = np.array([[0, 1], [1, 1]])[:, None, None].repeat(s, 1).repeat(k, 2)
    for group in range(k):
        rest = np.arange(k) != group
        ends = (
            np.minimum(low[:, rest].min(axis=1), 1), np.maximum(high[:, rest].max(axis=1), 0),
            least[:, rest].sum(axis=1), most[:, rest].sum(axis=1), slack[:, rest].sum(axis=1),
        )  # fmt: skip
        low_rest, high_rest, least_rest, most_rest, off_rest = (end[slice_] for end in ends)
        off = slack[slice_, group]
        fewest = np.maximum.reduce([
            np.ceil(low[slice_, group] * n - off - WHOLE),
            x_all - np.floor(high_rest * others + off_rest + WHOLE),
            np.zeros(len(n)),
            n - (people[slice_] - x_all),
        ])  # fmt: skip
        greatest = np.minimum.reduce([
            np.floor(high[slice_, group] * n + off + WHOLE),
            x_all - np.ceil(low_rest * others - off_rest - WHOLE),
            n, x_all.astype(np.float64),
        ])  # fmt: skip
        fits = (fewest <= greatest) & (n >= least[slice_, group]) & (n <= most[slice_, group])
        fits &= (others >= least_rest) & (others <= most_rest)
        for which, (from_, to) in enumerate(
            ((n, n), (fewest, greatest), (n - greatest, n - fewest))
        ):
            ranges[which, 0, :, group] = np.minimum.reduceat(np.where(fits, from_, np.inf), starts)
            ranges[which, 1, :, group] = np.maximum.reduceat(np.where(fits, to, -np.inf), starts)
        some = np.flatnonzero(fits & (n > 0))
        for end, of, sign in zip(rate, (fewest, greatest), (1, -1), strict=True):
            order = some[np.lexsort((sign * of[some] / n[some], slice_[some]))]
            which_, first = np.unique(slice_[order], return_index=True)
            pair = np.column_stack([of, n])[order[first]].astype(np.int64)
            end[which_, group] = pair // np.gcd(*pair.T)[:, None]
    return SizeRanges(ranges[0], ranges[1], ranges[2], rate)
