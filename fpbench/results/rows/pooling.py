"""Rows averaged over settings: only the components that a view is about remain.

A mean over settings compares like with like: only settings that every line has count, and only
seeds at which a line has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import find_unique
from fpbench.components.names import KINDS, Status
from fpbench.store.results import Results

_Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Means(Results):
    """Rows that are means of others, each measure computed at the first request."""

    mean: Callable[[str], NDArray[np.float64]] = field(default=lambda name: np.zeros(0), repr=False)
    """(n,) values of a measure; NaN where there is none."""
    known: tuple[str, ...] = ()
    """The measures that rows may have."""

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return list(self.known)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(n,) a measure, or `seconds`; NaN where there is no number."""
        return self.seconds if name == "seconds" else self.mean(name)

    def measured(self, name: str, among: NDArray[np.bool_]) -> bool:
        """Whether some of these rows have a number of a measure."""
        return bool(np.isfinite(self.numbers(name)[among]).any())

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per row, as for any results; unknown values are None."""
        columns = {name: self.mean(name).tolist() for name in self.known}
        return [
            row | {name: None if values[i] != values[i] else values[i]
                   for name, values in columns.items()}
            for i, row in enumerate(super().rows())
        ]  # fmt: skip


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
    _, line = results.merge_combinations(keep)
    settings, setting = results.merge_combinations({*KINDS} - {*keep})
    # A line in a setting is one combination, so that rows need not be looked at.
    finished = np.bincount(results.combination[done], minlength=len(line)) > 0
    met = np.zeros(len(settings), np.bool_)
    met[setting[find_unique(results.combination[done | failed])[0]]] = True
    having = np.bincount(setting[finished], minlength=len(settings))
    common = (having == len(np.unique(line[finished]))) & (having > 0)
    inside = common[setting[results.combination]]
    return inside, int(common.sum()), int((met & ~common).sum())


def pool(results: Results, keep: Sequence[str]) -> Pooled:
    """Average over all kinds but those that are kept.

    If lines have no setting in common, each is averaged over its own: `settings` is 0 then, and
    the lines should not be compared.

    `keep`: the kinds whose labels lines differ in.
    """
    inside, count, left_out = find_shared(results, keep)
    done, failed = results.finished()
    rows = np.flatnonzero(done | failed)
    lines, line_of = results.merge_combinations(keep)
    groups = _Groups(line_of[results.combination[rows]], results.seeds[rows])
    counted = (done & inside)[rows] if count else done[rows]
    needed = (
        np.full(len(groups), count)
        if count
        else _count_settings(results, rows[counted], line_of, groups)
    )
    whole = np.bincount(groups.of[counted], minlength=len(groups)) == needed
    whole &= needed > 0

    def mean(name: str) -> NDArray[np.float64]:
        means = groups.means(results.numbers(name)[rows], counted, needed)
        return np.where(whole, means, np.nan)

    pooled_rows = Means(
        combinations=lines,
        combination=groups.line,
        seeds=groups.seed,
        statuses=np.where(whole, Status.DONE.value, Status.FAILED.value),
        seconds=groups.sums(results.seconds[rows]),
        cells=np.full(len(groups), "", object),
        reasons=_find_reasons(results, rows, groups, whole),
        mean=mean,
        known=tuple(results.names),
        glossary=results.glossary,
    )
    finished = [results.combinations[i] for i in find_unique(results.combination[rows])[0].tolist()]
    several = {kind for kind, labels in zip(KINDS, zip(*finished, strict=True), strict=False)
               if len(set(labels)) > 1}  # fmt: skip
    over = tuple(kind for kind in KINDS if kind in several and kind not in keep)
    return Pooled(pooled_rows, over, count, left_out)


def _count_settings(
    results: Results, done: NDArray[np.intp], line_of: _Whole, groups: _Groups
) -> NDArray[np.int64]:
    """(groups,) number of settings of the line of each group."""
    combinations = find_unique(results.combination[done])[0]
    counts = np.bincount(line_of[combinations], minlength=int(groups.line.max(initial=0)) + 1)
    return np.asarray(counts[groups.line])


class _Groups:
    """Rows of the same line and seed.

    `line`, `seed`: (rows,) of each row.
    """

    def __init__(self, line: _Whole, seed: _Whole) -> None:
        seeds, place = find_unique(seed)
        width = max(len(seeds), 1)
        places, self.of = find_unique(line * width + place)
        self.line, self.seed = places // width, seeds[places % width]

    def __len__(self) -> int:
        return len(self.line)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(groups,)."""
        totals = np.bincount(self.of, np.nan_to_num(values), minlength=len(self))
        return totals.astype(np.float64)

    def means(
        self, values: NDArray[np.float64], counted: NDArray[np.bool_], needed: _Whole
    ) -> NDArray[np.float64]:
        """(groups,) means of finite values; NaN unless a group has as many as it needs."""
        fine = counted & np.isfinite(values)
        sums = np.bincount(self.of[fine], values[fine], minlength=len(self))
        counts = np.bincount(self.of[fine], minlength=len(self))
        means = sums / np.maximum(counts, 1)
        means[(counts != needed) | (counts == 0)] = np.nan
        return means


def _find_reasons(
    results: Results, rows: NDArray[np.intp], groups: _Groups, whole: NDArray[np.bool_]
) -> NDArray[Any]:
    """Why a line lacks a seed: the reason of its first failed cell."""
    reasons = np.full(len(groups), None, object)
    reasons[~whole] = "not every setting has been run at this seed"
    for place in np.flatnonzero(~whole[groups.of])[::-1].tolist():
        if (reason := results.reasons[rows[place]]) is not None:
            reasons[groups.of[place]] = reason
    return reasons
