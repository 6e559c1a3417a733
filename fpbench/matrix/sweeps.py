"""Parameters that take several values: what a table of a matrix expands to, counted beforehand.

Nothing is expanded before it has been counted: a few words of a stranger's file may ask for more
combinations than there is memory for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, overload

from fpbench.base.errors import MatrixError

MAX_CELLS = 1_000_000
"""More cells than this are taken for a slip of the pen, unless the user says otherwise."""

_LARGEST = 1e150
_LONGEST = 1000
"""Letters of a label."""
_SPACES = ("linspace", "geomspace")


class _Space(Sequence[float]):
    """Numbers between two ends, each made when it is asked for."""

    def __init__(self, how: str, low: float, high: float, count: int) -> None:
        self._how, self._low, self._high, self._count = how, low, high, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> float: ...
    @overload
    def __getitem__(self, at: slice) -> list[float]: ...
    def __getitem__(self, at: int | slice) -> float | list[float]:
        places = range(self._count)[at]
        return [self._at(i) for i in places] if isinstance(places, range) else self._at(places)

    def _at(self, place: int) -> float:
        """A short decimal: tolerances are taken as written."""
        low, high, part = self._low, self._high, place / max(self._count - 1, 1)
        linear = self._how == "linspace"
        value = low + (high - low) * part if linear else low * (high / low) ** part
        return float(f"{value:.12g}")


def swept(value: Any, where: str, most: int = MAX_CELLS) -> Sequence[Any]:
    """The values that a parameter takes: one, or those of its sweep.

    Parameters
    ----------
    value
        What a matrix says: `{ sweep = [...] }`, `{ linspace = [low, high, number] }`,
        `{ geomspace = ... }`, or anything else, which is the one value.
    where
        Where it stands, for messages.
    most
        How many values there may be.

    Returns
    -------
    Sequence
        Its length is known at once; the numbers of a space are made only when they are read.

    Raises
    ------
    MatrixError
        If it is no sweep that makes sense.
    """
    if not (isinstance(value, dict) and len(value) == 1):
        return [value]
    ((how, said),) = value.items()
    if how == "sweep":
        if not isinstance(said, list) or not said:
            raise MatrixError(f"{where}: sweep: must be a list of at least one value")
        return said
    return _space(how, said, where, most) if how in _SPACES else [value]


def _space(how: str, said: Any, where: str, most: int) -> _Space:
    if not (isinstance(said, list) and len(said) == 3 and all(map(_is_number, said))):
        raise MatrixError(f"{where}: {how}: must be [low, high, number of values]")
    low, high, count = said
    if not isinstance(count, int) or count < 1:
        raise MatrixError(
            f"{where}: {how}: the number of values must be whole and 1 or more, not {count!r}"
        )
    check_size(count, f"{where}: {how} is", most)
    if how == "geomspace" and (low <= 0 or high <= 0):
        raise MatrixError(f"{where}: geomspace: both ends must be above 0")
    # Their difference and their ratio must be numbers, too.
    for end in (low, high):
        if not (abs(end) <= _LARGEST and (how == "linspace" or end >= 1 / _LARGEST)):
            raise MatrixError(f"{where}: {how}: {end} is out of range (1e-150 to 1e150)")
    return _Space(how, float(low), float(high), count)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def count(parameters: Mapping[str, Sequence[Any]]) -> int:
    """How many combinations there are of the values of parameters."""
    return math.prod(map(len, parameters.values()))


def combinations(
    parameters: Mapping[str, Sequence[Any]], name: str, where: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A label and the parameters of every combination of values.

    A label names what differs: a word says itself what it is about, a number does not.

    Raises
    ------
    MatrixError
        If a label is too long to be read.
    """
    many = [key for key, values in parameters.items() if len(values) > 1]
    for values in product(*parameters.values()):
        chosen = dict(zip(parameters, values, strict=True))
        variants = (v if isinstance(v := chosen[k], str) else f"{k}={v}" for k in many)
        label = " ".join((name, *variants))
        if len(label) > _LONGEST:
            raise MatrixError(f"{where}: {label[:40]!r}... is too long for a label")
        yield label, chosen


def check_size(cells: int, what: str, most: int = MAX_CELLS) -> None:
    """Refuse what would be too many.

    Raises
    ------
    MatrixError
        Says how many.
    """
    if cells > most:
        many = f"{cells:,}" if cells < 10**30 else "more than 10^30"
        raise MatrixError(f"{what} too large: {many} combinations, more than {most:,}")
