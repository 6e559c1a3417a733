"""Numbers and strings as text: exact decimals, numbers for tables, escaped control characters."""

from __future__ import annotations

import math
import os
import re
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of control, invisible and unpaired characters."""
_GAPS = re.compile(r"[\s_-]+")
"""Separator of the words of a name."""


def to_fraction(number: float | Fraction) -> Fraction:
    """The decimal that a float was written as, exactly (0.1 is 1/10); a fraction unchanged.

    Decisions made in fractions never depend on rounding.

    Parameters
    ----------
    number
        A finite number.
    """
    from fractions import Fraction

    if isinstance(number, Fraction):  # perhaps of numpy's integers, which overflow
        return Fraction(int(number.numerator), int(number.denominator))
    return Fraction(str(float(number)))


DECIMALS = 4
"""Number of decimals that are shown."""


def format_number(number: float | None, decimals: int = DECIMALS) -> str:
    """A number with some decimals, with four without a zero before the point; "-" for None."""
    if number is None:
        return "-"
    text = f"{number:z.{decimals}f}" if abs(number) < 100 else f"{number:,.0f}"
    short = decimals == DECIMALS and text.startswith(("0.", "-0."))
    return text.replace("0.", ".", 1) if short else text


def format_percent(share: float) -> str:
    """A share in percent, to one decimal."""
    return _round_half_up(100 * share, 1)


def format_points(share: float) -> str:
    """A difference of shares in percentage points, to two decimals, with its sign."""
    text = _round_half_up(abs(100 * share), 2)
    return text if not text.strip("0.-") else f"{'-' if share < 0 else '+'}{text}"


def _round_half_up(number: float, digits: int) -> str:
    """A number as the page of a report rounds it, from fewer digits; "-" if it is too large."""
    unit = 10**digits
    scaled = number * unit  # infinite for the greatest numbers that a store can hold
    if not math.isfinite(scaled):
        return "-"
    return f"{math.floor(round(scaled, 4) + 0.5) / unit:.{digits}f}"


def format_points_above(share: float) -> str:
    """An upper bound on a share in percentage points, rounded up to two decimals."""
    # An error in the last bits does not round up to the next decimal.
    scaled = 1e4 * share - 1e-6
    return f"{math.ceil(scaled) / 100:.2f}" if math.isfinite(scaled) else "-"


def escape_unprintable(text: str, but: str = "") -> str:
    """Text that is safe to print: control and invisible characters, except `but`, are escaped.

    The text may come from a stranger's matrix or run directory.
    """
    if text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode()
        if category(letter) in _UNSEEN and letter not in but
        else letter
        for letter in text
    )


def show_lines(lines: Iterable[str]) -> str:
    """Lines that are safe to print, as one text: what `print` shows of every result."""
    return "\n".join(map(escape_unprintable, lines))


def hide_paths(text: str) -> str:
    """Text for publication: of each absolute path of this machine, only the last name is kept.

    A path is recognised by its first folder, which must be in the root of this machine.

    Parameters
    ----------
    text
        A message or a page.
    """
    return _compile_path().sub(lambda path: path[0].rpartition("/")[2], text)


@cache
def _compile_path() -> re.Pattern[str]:
    """A pattern of paths of two names or more, but for system paths, the same on all machines."""
    folders = sorted({*os.listdir("/"), "home", "tmp"} - {"dev", "proc", "sys"})
    first = "|".join(map(re.escape, folders))
    # No letter of a name, a URL, a tag or Base64 may come before the path.
    return re.compile(
        rf"""(?<![\w.:/~<+=-])(?:file://)?/(?:{first})(?:/[^\s/"'`<>&|,;:()\[\]{{}}\\]+)+"""
    )


def hyphenate(name: str) -> str:
    """A name in lower case, its words joined by hyphens: `Selection rate` is `selection-rate`."""
    return _GAPS.sub("-", name.strip().casefold())


def add_article(noun: str) -> str:
    """`a learner`, `an adversary`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def count_noun(number: int, noun: str) -> str:
    """`1 cell`, `2,000 cells`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
