"""How exactly a reader knows the numbers of people that reports suppress."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from fpbench.claims.set_counts import Floats, Mask
from fpbench.correction.facts.count_ranges import CountRanges, find_ranges
from fpbench.correction.facts.linear_programs import number_rows
from fpbench.correction.facts.worlds import Worlds
from fpbench.reports.assessments.report_series import ReadReports

_TENTH = 0.1
"""Distance from the true number, as a share of it, at which it counts as known."""
_EXACT = 1e-9
"""People: what floats leave of a share of a whole number."""


@dataclass(frozen=True, eq=False)
class HiddenNumbers:
    """The ranges that published numbers leave for suppressed ones.

    A suppressed number is that of one group's people with one prediction (and label) in a slice; a
    suppressed rate hides two, the people it counts, and the others among whom it counts them. The
    same people in several slices or reports are one number. The true one is that of the true
    groups, if they are given, else the middle of its range.

    A number is known exactly if its range holds one number; within 1 person, or 10 %, if all of its
    range is that near to the true number, one tenth of it for instance. It is protected to P % if
    its range reaches P % of the true number below it and above it, as far as the people of its
    slice allow, and holds more than one number: the rule of statistical offices (Fischetti &
    Salazar, Solving the cell suppression problem on tabular data with linear constraints,
    Management Science 47, 2001; Hundepool et al., Statistical Disclosure Control, 2012, 4).

    What is still open when the time is up, or because facts say more than programs do, is
    `undecided`.

    Attributes
    ----------
    sizes
        (C,) people among whom each is counted, of all groups.
    true
        (C,) true numbers; None if they are not known.
    low, high
        (C,) the range: no groups of all people that satisfy everything published have fewer, more.
    least, most
        (C,) the fewest and most in such groups that were found; inf and -inf where none were.
    protect
        P as a share; None if no rule is asked for.
    """

    sizes: NDArray[np.intp]
    true: Floats | None
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    protect: float | None = None

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """(4, C) what is known exactly, within 1 person and 10 %, and what is not protected."""
        return judge_ranges(self.low, self.high, self.true, self.sizes, self.protect)

    @cached_property
    def undecided(self) -> Mask:
        """(C,) of which more may be known."""
        most = judge_ranges(self.least, self.most, self.true, self.sizes, self.protect)
        return np.asarray((self.judged != most).any(axis=0))

    @property
    def unprotected(self) -> int:
        """How many are not protected."""
        return int(self.judged[3].sum())

    @property
    def maybe_unprotected(self) -> int:
        """How many more may not be protected; 0 if no rule is asked for."""
        most = judge_ranges(self.least, self.most, self.true, self.sizes, self.protect)
        return int((self.judged != most)[3].sum())

    def to_dict(self) -> dict[str, Any]:
        """Counts, as plain data."""
        exactly, within, tenth, unprotected = (int(row.sum()) for row in self.judged)
        return {
            "suppressed": len(self),
            "exactly": exactly,
            "within_1": within,
            "within_10_percent": tenth,
            "undecided": int(self.undecided.sum()),
            "unprotected": None if self.protect is None else unprotected,
        }

    def __str__(self) -> str:
        exactly, within, tenth, _ = (int(row.sum()) for row in self.judged)
        text = (
            f"{len(self):,} number{'s' * (len(self) != 1)} of people {_is(len(self))} suppressed; "
            f"{exactly:,} {_is(exactly)} known exactly, {within:,} within 1 person, {tenth:,} "
            "within 10 %"
        )
        if self.protect is not None:
            text += f"; {self.unprotected:,} {_is(self.unprotected)} not protected to "
            text += f"{100 * self.protect:g} %"
        if undecided := int(self.undecided.sum()):
            text += f"; of {undecided:,} more may be known"
        return text


def _is(many: int) -> str:
    return "is" if many == 1 else "are"


def judge_ranges(
    low: Floats, high: Floats, true: Floats | None, sizes: NDArray[np.intp], protect: float | None
) -> NDArray[np.bool_]:
    """(4, ...) whether numbers are known exactly, within 1 person, 10 %, and are not protected.

    The wider a range, the less of it is so; of an empty one (`low` above `high`) all is.
    """
    with np.errstate(invalid="ignore"):  # of an empty range
        middle = (low + high) / 2 if true is None else true
        off = np.maximum(high - middle, middle - low)
        rows = [high <= low, off <= 1, off <= _TENTH * middle + _EXACT]
        share = 0.0 if protect is None else protect
        below = low <= (1 - share) * middle + _EXACT
        above = high >= np.minimum((1 + share) * middle, sizes) - _EXACT
        rows.append((protect is not None) & ~((low < high) & below & above))
    judged = np.stack(rows) | (low > high)
    judged[3] &= protect is not None
    return np.asarray(judged)


def find_hidden(
    read: ReadReports,
    worlds: Worlds,
    truth: NDArray[np.intp] | None,
    protect: float | None,
    deadline: float,
) -> HiddenNumbers | None:
    """What is known of suppressed numbers; None if nothing is suppressed.

    Parameters
    ----------
    read
        What reports tell, and suppress.
    worlds
        Groups that people may have, as far as was proven, and worlds that the reports allow.
    truth
        (n,) codes of the true groups; None if they are not known.
    protect
        As of `HiddenNumbers`.
    deadline
        By `time.perf_counter`.
    """
    every = csr_array(vstack([own.sets for own in read.suppressed], format="csr"))
    if not every.shape[0]:
        return None
    n, k = worlds.possible.shape
    first, place = number_rows(
        every.astype(np.int64) @ np.random.default_rng(20260108).integers(2**63, size=(n, 2))
    )
    numbers = np.zeros((len(first), k), np.bool_)
    np.logical_or.at(numbers, place, np.concatenate([own.numbers for own in read.suppressed]))
    sets = every[first]
    sizes = np.diff(sets.indptr)
    true = None
    if truth is not None:
        own = (truth[:, None] == np.arange(k)).astype(np.int64)
        true = (sets.astype(np.int64) @ own).astype(np.float64)

    def is_open(ranges: CountRanges, number: int) -> Mask:
        outer, inner = (
            judge_ranges(
                low[number], high[number], None if true is None else true[number], sizes[number],
                protect,
            )
            for low, high in ((ranges.low, ranges.high), (ranges.least, ranges.most))
        )  # fmt: skip
        return np.asarray(numbers[number] & (outer != inner).any(axis=0))

    ranges = find_ranges(read.facts, worlds.possible, sets, worlds.examples, is_open, deadline)
    return HiddenNumbers(
        np.broadcast_to(sizes[:, None], numbers.shape)[numbers],
        None if true is None else true[numbers],
        ranges.low[numbers], ranges.high[numbers], ranges.least[numbers], ranges.most[numbers],
        protect,
    )  # fmt: skip


def is_protected(hidden: HiddenNumbers | None) -> bool:
    """Whether all suppressed numbers are shown to be protected, if there are any, and a rule."""
    return hidden is None or not (hidden.unprotected or hidden.maybe_unprotected)
