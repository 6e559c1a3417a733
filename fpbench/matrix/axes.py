"""The axes of a matrix: the components of each kind, swept parameters expanded, and exclusions.

Combinations are counted before they are expanded: a few words of a stranger's file may ask for more
than fit into memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, overload

from fpbench.base.arguments import show_value
from fpbench.base.errors import MatrixError, find_near_name, suggest_name
from fpbench.base.text import add_article
from fpbench.components.names import ATTACK, AUDIT, KINDS

MAX_CELLS = 1_000_000
"""A larger matrix counts as a mistake, unless the user allows it."""

_LARGEST = 1e150
_LONGEST = 1000
"""Letters of a label."""
_SPACES = ("linspace", "geomspace")


class _Space(Sequence[float]):
    """Evenly spaced numbers between two ends, computed on access."""

    def __init__(self, how: str, low: float, high: float, count: int) -> None:
        self._how, self._low, self._high, self._count = how, low, high, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...
    def __getitem__(self, index: int | slice) -> float | list[float]:
        places = range(self._count)[index]
        if isinstance(places, range):
            return [self._compute(i) for i in places]
        return self._compute(places)

    def _compute(self, place: int) -> float:
        """The number as a short decimal: tolerances are taken as written."""
        low, high, part = self._low, self._high, place / max(self._count - 1, 1)
        linear = self._how == "linspace"
        value = low + (high - low) * part if linear else low * (high / low) ** part
        return float(f"{value:.12g}")


def read_sweep(value: Any, where: str, most: int = MAX_CELLS) -> Sequence[Any]:
    """The values that a parameter takes: one, or those of its sweep; at most `most`.

    The length is known at once; the numbers of a space are computed only when they are read.

    Raises MatrixError if the sweep makes no sense.
    """
    if not (isinstance(value, dict) and len(value) == 1):
        return [value]
    ((how, values),) = value.items()
    words = ("sweep", *_SPACES)
    if how not in words and isinstance(values, list) and (near := find_near_name(how, words)):
        raise MatrixError(f"{where}: unknown key {how!r}; did you mean {near!r}?")
    if how == "sweep":
        if not isinstance(values, list) or not values:
            raise MatrixError(f"{where}: sweep: must be a list of at least one value")
        return values
    return _read_space(how, values, where, most) if how in _SPACES else [value]


def _read_space(how: str, values: Any, where: str, most: int) -> _Space:
    if not (isinstance(values, list) and len(values) == 3 and all(map(_is_number, values))):
        raise MatrixError(f"{where}: {how}: must be [low, high, number of values]")
    low, high, count = values
    if not isinstance(count, int) or count < 1:
        raise MatrixError(
            f"{where}: {how}: the number of values must be whole and 1 or more, not "
            f"{show_value(count)}"
        )
    _check_size(count, f"{where}: {how} is", most)
    if how == "geomspace" and (low <= 0 or high <= 0):
        raise MatrixError(f"{where}: geomspace: both ends must be above 0")
    # Their difference and their ratio must be finite, too.
    for end in (low, high):
        if not (abs(end) <= _LARGEST and (how == "linspace" or end >= 1 / _LARGEST)):
            raise MatrixError(f"{where}: {how}: {end} is out of range (1e-150 to 1e150)")
    return _Space(how, float(low), float(high), count)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(parameters: Mapping[str, Sequence[Any]]) -> int:
    """Number of combinations of the values of parameters."""
    return math.prod(map(len, parameters.values()))


def _expand(
    parameters: Mapping[str, Sequence[Any]], name: str, where: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A label and the parameters of every combination of values.

    A label holds the swept values; the name of the parameter comes before a number.
    """
    many = [key for key, values in parameters.items() if len(values) > 1]
    for values in product(*parameters.values()):
        combination = dict(zip(parameters, values, strict=True))
        variants = (v if isinstance(v := combination[k], str) else f"{k}={v}" for k in many)
        label = " ".join((name, *variants))
        if len(label) > _LONGEST:
            raise MatrixError(f"{where}: {label[:40]!r}... is too long for a label")
        yield label, combination


def _check_size(cells: int, what: str, most: int) -> None:
    if cells > most:
        count = f"{cells:,}" if cells < 10**30 else "more than 10^30"
        raise MatrixError(f"{what} too large: {count} combinations, more than {most:,}")


_MOST_LETTERS = 2**29
"""Greatest length of the parameters of all components that a table expands to, written out."""


@dataclass(frozen=True)
class ComponentChoice:
    """One value of one axis: a component by name, with parameters."""

    kind: str
    use: str
    label: str
    parameters: dict[str, Any]
    where: str
    """Its place in the file, for messages."""


class _AxisTable(NamedTuple):
    """A table of the file, such as a `[[learner]]`, not yet expanded."""

    use: str
    label: str
    parameters: dict[str, Sequence[Any]]
    """The values that each parameter takes."""
    where: str

    def expand(self, kind: str) -> Iterator[ComponentChoice]:
        """One choice for every combination of the swept values."""
        for label, parameters in _expand(self.parameters, self.label, self.where):
            yield ComponentChoice(kind, self.use, label, parameters, self.where)


def _read_tables(
    kind: str, tables: list[dict[str, Any]], origin: str, most: int
) -> list[_AxisTable]:
    axis = []
    for number, table in enumerate(tables, 1):
        where = f"{origin}: [[{kind}]] no. {number}"
        use, label = table.get("use"), table.get("label")
        if not isinstance(use, str):
            several = f"; give each its own [[{kind}]]" if isinstance(use, list) else ""
            raise MatrixError(
                f'{where}: needs use = "NAME", one that `fpbench describe {kind}` lists{several}'
            )
        if label is not None and not (isinstance(label, str) and label):
            raise MatrixError(f"{where}: label: must be a text that is not empty")
        where += f" ({use})"
        written = {key: value for key, value in table.items() if key not in ("use", "label")}
        swept = {k: read_sweep(value, f"{where}: {k}", most) for k, value in written.items()}
        _check_size(_count(swept), f"{where}: sweeps", most)
        # Every choice is stored with all its parameters.
        if _count(swept) * len(repr(written)) > _MOST_LETTERS:
            raise MatrixError(f"{where}: sweeps too large: long parameters, repeated too often")
        axis.append(_AxisTable(use, label or use, swept, where))
    return axis


def expand_axes(
    tables: Mapping[str, list[dict[str, Any]]], seeds: int, origin: str, most: int = MAX_CELLS
) -> dict[str, tuple[ComponentChoice, ...]]:
    """The choices of every kind, counted before they are expanded.

    `most`: how many cells there may be.

    Raises MatrixError if a kind is missing, a table is not valid, two choices have the same label,
    or there are too many combinations.
    """
    written = {kind: _read_tables(kind, tables.get(kind, []), origin, most) for kind in KINDS}
    sizes = {
        kind: sum(_count(table.parameters) for table in listed) for kind, listed in written.items()
    }
    _check_kinds(sizes, origin)
    attacks = math.prod(sizes[kind] for kind in ATTACK)
    audits = math.prod(sizes[kind] or 1 for kind in AUDIT) if sizes["auditor"] else 0
    _check_size((attacks + audits) * seeds, f"{origin}: is", most)
    axes = {kind: _expand_tables(kind, listed) for kind, listed in written.items()}
    _check_labels(axes)
    return axes


def _expand_tables(kind: str, tables: list[_AxisTable]) -> tuple[ComponentChoice, ...]:
    return tuple(choice for table in tables for choice in table.expand(kind))


def _check_labels(axes: dict[str, tuple[ComponentChoice, ...]]) -> None:
    for kind, choices in axes.items():
        seen: dict[str, ComponentChoice] = {}
        for choice in choices:
            if choice.label in seen:
                raise MatrixError(
                    f"{choice.where}: the label {choice.label!r} is taken by another {kind}; "
                    'give one of them label = "..."'
                )
            seen[choice.label] = choice


def _check_kinds(sizes: dict[str, int], origin: str) -> None:
    """Refuse a matrix without a kind that an attack or an audit needs."""
    for kind in ("dataset", "learner"):
        if not sizes[kind]:
            raise MatrixError(f"{origin}: needs at least one [[{kind}]]")
    attack = [kind for kind in ATTACK[2:] if sizes[kind]]
    if attack and len(attack) < 3:
        lacking = next(kind for kind in ATTACK[2:] if not sizes[kind])
        raise MatrixError(
            f"{origin}: names {add_article(attack[0])} but no [[{lacking}]]: an attack needs both"
        )
    if not attack and not sizes["auditor"]:
        raise MatrixError(
            f"{origin}: nothing to measure: needs an attack ([[disclosure]], [[adversary]] and "
            "[[corrector]]) or an [[auditor]]"
        )
    for kind in AUDIT[3:]:
        if sizes[kind] and not sizes["auditor"]:
            raise MatrixError(
                f"{origin}: names {add_article(kind)} but no [[auditor]] that could use it"
            )


def check_exclude(
    exclude: Sequence[Mapping[str, str]],
    axes: Mapping[str, tuple[ComponentChoice, ...]],
    origin: str,
) -> None:
    """Refuse rules that exclude everything or nothing.

    Raises MatrixError: names the rule, and the nearest valid name.
    """
    names = {kind: {n for c in choices for n in (c.use, c.label)} for kind, choices in axes.items()}
    for number, rule in enumerate(exclude, 1):
        where = f"{origin}: [[exclude]] no. {number}"
        if not rule:
            raise MatrixError(f"{where}: is empty, so it would exclude everything")
        for kind, name in rule.items():
            if kind not in KINDS:
                raise MatrixError(f"{where}: unknown key {kind!r}; {suggest_name(kind, KINDS)}")
            if name not in names[kind]:
                hint = suggest_name(name, names[kind])
                raise MatrixError(f"{where}: {kind}: no {kind} {name!r} in this matrix; {hint}")
