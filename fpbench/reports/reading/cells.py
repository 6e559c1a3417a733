"""Cells of tables as people write them: numbers, percentages, ranges, and what is suppressed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError

SUPPRESSED = frozenset({
    "*", "**", "***", "-", "--", "\u2013", "\u2014", ".", "..", "...", "x", "c", "s", "u", "ns",
    "z", "na", "n/a", "n.a.", "#n/a", "nan", "none", "null", "<na>", "suppressed", "redacted",
    "masked", "hidden", "withheld", "confidential", "not shown", "not published", "too few",
    "low count", "insufficient data", "unterdr\u00fcckt", "geheim", ":", "d", "\u2020", "\u2021",
})  # fmt: skip
"""What stands for a number that is not published, in lower case and without brackets."""
NO_MORE = 2.0**40
"""A number of people that no slice has: the end of an open range."""
FULL = 10
"""Decimals of a number that was not rounded: programs write all digits of a float."""
_LONGEST = 80
"""Letters of a number with all that is written beside it."""
_SPACES = "' \u00a0\u2009\u202f\u2019"
_DIGITS = r"[0-9](?:[0-9.,'\u00a0\u2009\u202f\u2019 ]*[0-9])?"
_PLAIN = rf"-?(?:{_DIGITS}|[.,][0-9]+)\.?(?:e[+-]?[0-9]{{1,3}})?"
_UNIT = r"\s*(?P<unit{0}>%|percent|per cent|pct\.?|prozent|\u2030)?"
_NUMBER = re.compile(rf"(?P<number>{_PLAIN}){_UNIT.format('')}")
_BELOW = re.compile(
    r"(?:n\s*)?(?P<sign><=|\u2264|<|>=|\u2265|>|under|below|fewer than|less than|at most|up to|"
    r"over|above|more than|at least|weniger als|unter)\s*"
    rf"(?P<number>{_PLAIN}){_UNIT.format('')}"
)
_BETWEEN = re.compile(
    rf"(?:n\s*=?\s*)?(?P<low>{_PLAIN})\s*(?:-|\u2013|\u2014|to|bis|\.\.)\s*(?P<high>{_PLAIN})"
    rf"{_UNIT.format('')}"
)
_INTERVAL = re.compile(
    rf"[(\[]\s*{_PLAIN}\s*%?\s*(?:,|;|-|\u2013|to)\s*{_PLAIN}\s*%?\s*[)\]]$"
    rf"|[(\[]?\s*(?:\u00b1|\+/-|\+-)\s*{_PLAIN}\s*%?\s*[)\]]?$"
)
_MARKS = re.compile(
    r"(?<=[^\s*])\s*(?:[*\u2020\u2021\u00a7\u00b9\u00b2\u00b3\u2070-\u2079]|[\[(][a-z][\])]|(?<=[^\s\d])\[\d\d?\])+$"
)
"""Marks of footnotes behind a text."""
_PARTS = re.compile(
    rf"(?P<count>{_PLAIN})\s*(?:(?:/|of|out of|von)\s*(?P<of>{_PLAIN}))?"
    rf"(?:\s*\(\s*(?P<rate>{_PLAIN})\s*(?P<percent>%)?\s*\))?"
)
_REVERSED = re.compile(
    rf"(?P<rate>{_PLAIN})\s*%\s*\(\s*(?P<count>{_PLAIN})(?:\s*(?:/|of|out of)\s*(?P<of>{_PLAIN}))?"
    r"\s*\)"
)
_CURRENCY = re.compile(
    r"^[$\u00a3\u20ac] ?(?=[\d.])|(?<=^-)[$\u00a3\u20ac] ?(?=[\d.])|(?<=\d) ?\u20ac$"
)
_LEAST = {">", ">=", "\u2265", "over", "above", "more than", "at least"}
_STRICT = {"<", ">", "under", "below", "fewer than", "less than", "over", "above", "more than",
           "weniger als", "unter"}  # fmt: skip


class Cell(NamedTuple):
    """What a cell says: a number, a range, or that the number is suppressed (NaN)."""

    text: str
    """As it is written."""
    low: float = np.nan
    high: float = np.nan
    """Ends of the range; a strict one is `open`."""
    decimals: int = 0
    """Digits behind the decimal mark; of a number that was written as a range, none count."""
    unit: float | None = None
    """.01 of a percentage, .001 per thousand; None if the cell does not say."""
    open: bool = False
    """Whether an end of the range is left out, as by `<10`."""
    parts: tuple[tuple[str, Cell], ...] = ()
    """`816/2,659 (30.7%)` has several numbers: count, of, rate."""

    @property
    def hidden(self) -> bool:
        """Whether it says that the number is suppressed, or is blank."""
        return self.low != self.low and not self.parts

    @property
    def exact(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    def as_count(self) -> Cell:
        """The whole numbers of people that it allows."""
        if not self.open:
            return self
        high = self.high - 1 if self.high < NO_MORE else self.high
        return self._replace(low=self.low + (self.low > 0), high=high, open=False)


def drop_marks(text: str) -> str:
    """A text without the marks of footnotes behind it."""
    return _MARKS.sub("", text)


def has_interval(text: str) -> bool:
    """Whether a number is followed by its confidence interval."""
    match = _INTERVAL.search(text)
    return match is not None and match.start() > 0


def has_shares(values: Iterable[object]) -> bool:
    """Whether numbers are shares: none is above 1, and one has decimals."""
    cells = [cell for value in values if (cell := read_cell(value)) and cell.exact]
    return any(cell.low % 1 for cell in cells) and all(0 <= cell.low <= 1 for cell in cells)


def find_decimal_mark(texts: Iterable[str]) -> str | None:
    """The decimal mark of a table, by what only one reading allows; None if nothing tells.

    Raises InputError if cells tell different marks: names both.
    """
    told: dict[str, str] = {}
    for text in texts:
        for number in re.findall(_DIGITS, _INTERVAL.sub("", text)):
            marks = [letter for letter in number if letter in ".,"]
            if len(set(marks)) == 2:
                told.setdefault(marks[-1], text)
            elif len(marks) == 1:
                before, _, after = number.partition(marks[0])
                if len(after) != 3 or before.strip(_SPACES) in ("", "0") or len(before) > 3:
                    told.setdefault(marks[0], text)
            elif marks:  # repeated: it separates thousands
                told.setdefault(",."[marks[0] == ","], text)
    if len(told) > 1:
        raise InputError(
            f"{show_value(told['.'])} has a decimal point, and {show_value(told[','])} a decimal "
            "comma: write all numbers alike"
        )
    return next(iter(told), None)


def read_number(text: str, mark: str) -> tuple[float, int] | None:
    """A number and its decimals, with this decimal mark; None if it is none."""
    text, _, power = text.partition("e")
    apart = "".join(_SPACES) + (",." if mark == "." else ".,")[0]
    whole, _, part = text.partition(mark)
    sign, whole = whole.startswith("-"), whole.lstrip("-")
    groups = re.split(f"[{re.escape(apart)}]", whole)
    if any(letter in part for letter in apart) or (
        len(groups) > 1
        and (not 1 <= len(groups[0]) <= 3 or any(len(group) != 3 for group in groups[1:]))
    ):
        return None
    try:
        digits = f"{''.join(groups) or '0'}.{part or '0'}{'e' + power if power else ''}"
        number = float(digits)
    except ValueError:
        return None
    return -number if sign else number, max(len(part) - int(power or 0), 0)


def read_cell(value: object, mark: str = ".") -> Cell | None:
    """What a cell says; None if it is no number, range or word for a suppressed one."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | float | np.number):
        number = float(value)
        if number != number:  # noqa: PLR0124
            return Cell("")
        digits = repr(number)
        found = read_number(digits, ".")
        return Cell(f"{number:g}", number, number, 0 if found is None else found[1])
    return _read_text(str(value)[: 2 * _LONGEST], mark)


@lru_cache(maxsize=2**16)
def _read_text(text: str, mark: str) -> Cell | None:  # noqa: PLR0911, PLR0912
    text = normalize("NFC", text).strip()
    plain = _CURRENCY.sub("", text.casefold().strip("\u200b").replace("\u2212", "-"))
    if plain.startswith(("[", "(")) and plain.endswith(("]", ")")):
        plain = plain[1:-1].strip()
    if not plain or plain in SUPPRESSED:
        return Cell(text)
    if len(plain) > _LONGEST:
        return None
    plain = drop_marks(plain)
    if has_interval(plain):
        plain = _INTERVAL.sub("", plain).strip()
    if match := _NUMBER.fullmatch(plain):
        read = read_number(match["number"], mark)
        if read is None:
            return None
        return Cell(text, read[0], read[0], read[1], _find_unit(match["unit"]))
    if match := _BELOW.fullmatch(plain):
        read = read_number(match["number"], mark)
        if read is None:
            return None
        least, strict = match["sign"] in _LEAST, match["sign"] in _STRICT
        ends = (read[0], NO_MORE) if least else (0.0, read[0])
        return Cell(text, *ends, read[1], _find_unit(match["unit"]), strict)
    if match := _BETWEEN.fullmatch(plain):
        low, high = read_number(match["low"], mark), read_number(match["high"], mark)
        if low is None or high is None or low[0] > high[0]:
            return None
        return Cell(text, low[0], high[0], 0, _find_unit(match["unit"]))
    match = _REVERSED.fullmatch(plain) or _PARTS.fullmatch(plain)
    if match is None:
        return None
    parts = []
    for name, own in match.groupdict().items():
        if name == "percent" or own is None:
            continue
        read = read_number(own, mark)
        if read is None:
            return None
        percent = name == "rate" and ("%" in plain)
        parts.append((name, Cell(own, read[0], read[0], read[1], 0.01 if percent else None)))
    return Cell(text, parts=tuple(parts))


def _find_unit(unit: str | None) -> float | None:
    return None if unit is None else 0.001 if unit == "\u2030" else 0.01
