"""Intervals of numbers as tables name them, `(0.2, 0.4]`, `10-19`, `65+`, and who is in them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError

_PLAIN = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
_N = rf"[\u00a3$\u20ac]?({_PLAIN})\s?[\u00a3$\u20ac]?"
_END = rf"({_PLAIN}|[+-]?(?:inf|infinity|\u221e))"
_BRACKETS = re.compile(rf"([\[\](])\s*{_END}\s*(?:,|;|-|\u2013|to)\s*{_END}\s*([\])\[])")
_BETWEEN = re.compile(
    rf"(?:from |between )?{_N}\s*(?:-|\u2013|\u2014|\.\.|to|and|bis|up to)\s*{_N}"
)
_SIGN = re.compile(rf"(<=?|>=?|=?)\s*{_N}")
_WORDS = (
    (r"\s*(?:years?|yrs?|jahre)(?: old)?$", ""),
    (r"(.+?) (?:and|or) (?:under|below|less|younger|lower|fewer)|(?:\u2264|at most|up to) ?(.+)",
     r"<=\1\2"),
    (r"(.+?) ?(?:\+|(?:and|or) (?:over|above|more|older|up|higher))|(?:\u2265|at least) ?(.+)",
     r">=\1\2"),
    (r"(?:under|below|less than) (.+)", r"<\1"), (r"(?:over|above|more than) (.+)", r">\1"),
)  # fmt: skip
"""What stands for a sign, of a whole text; and what says nothing."""


class Interval(NamedTuple):
    """Numbers between two ends."""

    text: str
    low: float
    high: float
    low_in: bool | None
    high_in: bool | None
    """Whether an end is in; None if the text does not say."""

    def find_inside(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) the numbers that are in it; those at an end that is not told are not."""
        above = (numbers >= self.low) if self.low_in else (numbers > self.low)
        return above & ((numbers <= self.high) if self.high_in else (numbers < self.high))


def read_interval(text: str) -> Interval | None:
    """The interval that a text names, a single number too; None for another text."""
    plain = text.strip().casefold()
    for words, sign in _WORDS:
        plain = re.sub(words if words.endswith("$") else f"^(?:{words})$", sign, plain)
    if match := _BRACKETS.fullmatch(plain):
        first, low, high, last = match.groups()
        interval = Interval(text, _to_float(low), _to_float(high), first == "[", last == "]")
    elif match := _SIGN.fullmatch(plain):
        sign, number = match[1], _to_float(match[2])
        interval = Interval(
            text, -math.inf if "<" in sign else number, math.inf if ">" in sign else number,
            sign != ">", sign != "<",
        )  # fmt: skip
    elif match := _BETWEEN.fullmatch(plain):
        interval = Interval(text, _to_float(match[1]), _to_float(match[2]), None, None)
    else:
        return None
    return interval if interval.low <= interval.high else None


def code_intervals(
    name: str, texts: Sequence[str], numbers: NDArray[np.float64]
) -> NDArray[np.int64] | None:
    """(n,) the text whose interval each number of a column is in, -1 of none.

    None if a text names no interval, or all are single numbers. InputError if a number may be in
    one or another: names both readings.
    """
    read = [read_interval(text) for text in texts]
    intervals = [one for one in read if one is not None]
    if len(intervals) < len(texts) or all(one.low == one.high for one in intervals):
        return None
    _check_digits(name, intervals, numbers)
    intervals = _settle_ends(name, intervals, numbers)
    codes = np.full(len(numbers), -1)
    for code, one in enumerate(intervals):
        inside = one.find_inside(numbers)
        if (both := inside & (codes >= 0)).any():
            other = intervals[codes[both][0]].text
            raise InputError(
                f"column {name!r}: {numbers[both][0]:.15g} is in {other!r} and in {one.text!r}; "
                "slices by a column must not overlap: leave one of the two out"
            )
        codes[inside] = code
    _check_gaps(name, intervals, numbers[codes < 0])
    return codes


def _to_float(text: str) -> float:
    return float(text.replace(",", "").replace("\u221e", "inf"))


def _ask(name: str, one: Interval, why: str, readings: Sequence[str]) -> InputError:
    both = ", or ".join(f"--map {one.text!r}={reading!r}" for reading in readings)
    return InputError(f"column {name!r}: {why}: say which, {both}")


def _settle_ends(
    name: str, intervals: list[Interval], numbers: NDArray[np.float64]
) -> list[Interval]:
    """The intervals with ends told: by others that begin or end there, or by all such others.

    Of `10-19` and `20-29` both ends are in. InputError if somebody is at an end that nothing tells.
    """
    left: dict[float, bool | None] = {}
    for end in {one.high for one in intervals} & {one.low for one in intervals}:
        sides = {
            not one.high_in for one in intervals if one.high == end and one.high_in is not None
        }
        sides |= {one.low_in for one in intervals if one.low == end and one.low_in is not None}
        left[end] = sides.pop() if len(sides) == 1 else None
    told = {side for side in left.values() if side is not None}
    rule = told.pop() if len(told) == 1 else None
    bounded = [one for one in intervals if one.low < one.high and math.isfinite(one.high - one.low)]
    # Then an inner end that meets none may be of a slice whose neighbour is left out.
    touching = {one.low for one in bounded} & {one.high for one in bounded}
    outer = {min(one.low for one in intervals), max(one.high for one in intervals)}
    singles = {one.low for one in intervals if one.low == one.high}
    settled = []
    for one in intervals:
        ends = [one.low_in, one.high_in]
        for upper, end in enumerate((one.low, one.high)):
            if ends[upper] is not None or not math.isfinite(end):
                continue
            if end in singles or (end not in left and (not touching or end in outer)):
                ends[upper] = end not in singles
                continue
            side = left.get(end)
            side = rule if side is None else side
            if side is None and (numbers == end).any():
                low, high = f"{one.low:.15g}", f"{one.high:.15g}"
                raise _ask(
                    name, one, f"somebody has {end:.15g}, an end of {one.text!r}, which may be in "
                    "or not", [f"[{low}, {high})", f"({low}, {high}]"],
                )  # fmt: skip
            ends[upper] = bool(side) != bool(upper)
        settled.append(one._replace(low_in=ends[0], high_in=ends[1]))
    return settled


def _count_decimals(intervals: list[Interval]) -> dict[float, int]:
    """Digits that are written behind the point of the size of each end."""
    decimals: dict[float, int] = {}
    for one in intervals:
        for text in re.findall(r"\d[\d,]*(?:\.\d+)?", one.text):
            end, count = _to_float(text), len(text.partition(".")[2])
            decimals[end] = max(count, decimals.get(end, 0))
    return decimals


def _check_gaps(name: str, intervals: list[Interval], numbers: NDArray[np.float64]) -> None:
    """Refuse numbers between `10-19` and `20-29`: 19.5 may be of the first, or of none."""
    decimals = _count_decimals(intervals)
    for one, other in product(intervals, intervals):
        gap = 1.5 * 10.0 ** -decimals.get(abs(one.high), 0)
        if read_interval(one.text) == one or not 0 < other.low - one.high < gap:
            continue
        between = numbers[(numbers > one.high) & (numbers < other.low)]
        if len(between):
            low, high, above = (f"{end:.15g}" for end in (one.low, one.high, other.low))
            raise _ask(
                name, one, f"somebody has {between[0]:.15g}, between {one.text!r} and "
                f"{other.text!r}", [f"[{low}, {high}]", f"[{low}, {above})"],
            )  # fmt: skip


def _check_digits(name: str, intervals: list[Interval], numbers: NDArray[np.float64]) -> None:
    """Refuse numbers so near an end that its rounding decides: pandas writes three digits."""
    decimals = _count_decimals(intervals)
    ends = sorted({end for one in intervals for end in one[1:3] if math.isfinite(end)})
    steps = 0.05, min(np.diff(ends), default=0.05)
    for end in ends:
        count = decimals.get(abs(end), 0)
        if count < 2 or any(abs(end / step - round(end / step)) < 1e-9 for step in steps):
            continue
        near = numbers[(np.abs(numbers - end) <= 0.5 * 10.0**-count) & (numbers != end)]
        if len(near):
            one = next(one for one in intervals if end in one[1:3])
            raise InputError(
                f"column {name!r}: somebody has {near[0]:.15g}, and the end {end:g} of "
                f"{one.text!r} may be rounded: --map {one.text!r}=INTERVAL with all its digits (of "
                "an end that is not rounded, with zeros behind)"
            )
