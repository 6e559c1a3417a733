"""Rows averaged over settings: only the components that a view is about remain.

A mean over settings compares like with like: only settings that every line has count, and only
seeds at which a line has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.base.arrays import find_unique
from fpbench.components.names import KINDS, Status
from fpbench.store.packing import Column
from fpbench.store.results import Block, Results


@dataclass(frozen=True)
class Pooled:
    """Rows averaged over settings."""

    results: Results
    """One row for each line and seed. A seed at which a line lacks a setting is `failed`."""
    kinds: tuple[str, ...]
    """The kinds that were averaged over, of those that rows use."""
    settings: int
    """The settings that every line has, which are averaged over."""
    left_out: int
    """The settings that only some lines have, which are left out."""


def find_shared(results: Results, keep: Sequence[str]) -> tuple[NDArray[np.bool_], int, int]:
    """The rows of the settings that every line has.

    Returns: (n,) a mask of rows; the number of settings that every line has; and the number that
    only some have.
    """
    done, failed = results.finished()
    finished = pd.unique(results.combination[done])
    _, line = results.merge_combinations(keep)
    settings, setting = results.merge_combinations({*KINDS} - {*keep})
    # A line in a setting is one combination, so that rows need not be looked at.
    having = np.bincount(setting[finished], minlength=len(settings))
    common = (having == len(pd.unique(line[finished]))) & (having > 0)
    met = len(pd.unique(setting[pd.unique(results.combination[done | failed])]))
    return common[setting][results.combination], int(common.sum()), met - int(common.sum())


def pool(results: Results, keep: Sequence[str]) -> Pooled:
    """Average over all kinds but those that are kept.

    If lines have no setting in common, each is averaged over its own: `settings` is 0 then, and
    the lines should not be compared.

    `keep`: the kinds whose labels lines differ in.
    """
    inside, count, left_out = find_shared(results, keep)
    done, failed = results.finished()
    rows = np.flatnonzero(done | failed)
    labels, line_of = results.merge_combinations(keep)
    line = line_of[results.combination[rows]]
    seeds, seed = find_unique(results.seeds[rows])
    places, group = find_unique(line * max(len(seeds), 1) + seed)  # by line and seed
    lines, seeds = places // max(len(seeds), 1), seeds[places % max(len(seeds), 1)]
    counted = (done & inside)[rows] if count else done[rows]
    needed = np.full(len(places), count)
    if not count:
        finished = line_of[pd.unique(results.combination[done])]
        needed = np.bincount(finished, minlength=len(labels))[lines]
    whole = (np.bincount(group[counted], minlength=len(places)) == needed) & (needed > 0)

    def average(name: str) -> NDArray[np.float64]:
        """(groups,) means of finite values; NaN unless a group has as many as it needs."""
        values = results.numbers(name)[rows[counted]]
        fine = np.isfinite(values)
        sums, counts = (
            np.bincount(group[counted], each, minlength=len(places))
            for each in (np.where(fine, values, 0.0), fine)
        )
        return np.where(whole & (counts == needed), sums / np.maximum(counts, 1), np.nan)

    reasons = np.full(len(places), None, object)
    reasons[~whole] = "not every setting has been run at this seed"
    told = pd.Series(results.reasons[rows], group, dtype=object)[~whole[group]].dropna()
    told = told[~told.index.duplicated()]
    reasons[told.index] = told
    pooled = Results(
        combinations=labels,
        combination=lines,
        seeds=seeds,
        statuses=np.where(whole, Status.DONE.value, Status.FAILED.value),
        seconds=np.bincount(
            group, np.nan_to_num(results.seconds[rows]), minlength=len(places)
        ).astype(np.float64),
        cells=np.full(len(places), "", object),
        reasons=reasons,
        glossary=results.glossary,
        blocks=[Block(np.arange(len(places)), _Averages(results.names, average))],
    )
    several = results.components.iloc[pd.unique(results.combination[rows])].nunique() > 1
    over = tuple(kind for kind in KINDS if several[kind] and kind not in keep)
    return Pooled(pooled, over, count, left_out)


class _Averages(Mapping[str, Column]):
    """Means of measures, each computed at the first request: most are never read."""

    def __init__(self, names: Sequence[str], average: Callable[[str], NDArray[np.float64]]) -> None:
        self._columns: dict[str, Column | None] = dict.fromkeys(names)
        self._average = average

    def __getitem__(self, name: str) -> Column:
        column = self._columns[name]
        if column is None:
            values = self._average(name)
            column = self._columns[name] = Column.of_numbers(values, np.isnan(values))
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
