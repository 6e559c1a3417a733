"""The axes of a matrix: the choices of every kind, and what is to be left out of their product."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fpbench.base.errors import MatrixError, nearest
from fpbench.components.names import ATTACK, AUDIT, KINDS
from fpbench.matrix import sweeps
from fpbench.matrix.sweeps import MAX_CELLS

_MOST_LETTERS = 2**29
"""Of the parameters of all choices of a table, written out."""


@dataclass(frozen=True)
class Choice:
    """One value of one axis: a component by name, with parameters."""

    kind: str
    use: str
    label: str
    parameters: dict[str, Any]
    where: str
    """Where it stands in the file, for messages."""


class _Written(NamedTuple):
    """A table of an axis, counted and not yet expanded."""

    use: str
    label: str
    parameters: dict[str, Sequence[Any]]
    """The values that each parameter takes."""
    where: str

    def expanded(self, kind: str) -> Iterator[Choice]:
        """One choice for every combination of the swept values."""
        for label, chosen in sweeps.combinations(self.parameters, self.label, self.where):
            yield Choice(kind, self.use, label, chosen, self.where)


def _written(kind: str, tables: list[dict[str, Any]], origin: str, most: int) -> list[_Written]:
    found = []
    for number, table in enumerate(tables, 1):
        where = f"{origin}: [[{kind}]] no. {number}"
        use, label = table.get("use"), table.get("label")
        if not isinstance(use, str):
            raise MatrixError(f'{where}: needs use = "NAME", the name of a {kind}')
        if label is not None and not (isinstance(label, str) and label):
            raise MatrixError(f"{where}: label: must be a text that is not empty")
        where += f" ({use})"
        given = {key: value for key, value in table.items() if key not in ("use", "label")}
        swept = {k: sweeps.swept(value, f"{where}: {k}", most) for k, value in given.items()}
        sweeps.check_size(sweeps.count(swept), f"{where}: sweeps", most)
        # Every choice is written down with all its parameters.
        if sweeps.count(swept) * len(repr(given)) > _MOST_LETTERS:
            raise MatrixError(f"{where}: sweeps too large: says too much too often")
        found.append(_Written(use, label or use, swept, where))
    return found


def expanded(
    tables: Mapping[str, list[dict[str, Any]]], seeds: int, origin: str, most: int = MAX_CELLS
) -> dict[str, tuple[Choice, ...]]:
    """The choices of every kind, counted before they are expanded.

    Parameters
    ----------
    tables
        What the file says, by kind.
    seeds
        How many seeds there are.
    origin
        The file, for messages.
    most
        How many cells there may be.

    Raises
    ------
    MatrixError
        If a kind is lacking, a table says what it may not say, two choices have the same label,
        or there are too many combinations.
    """
    written = {kind: _written(kind, tables.get(kind, []), origin, most) for kind in KINDS}
    sizes = {
        kind: sum(sweeps.count(table.parameters) for table in listed)
        for kind, listed in written.items()
    }
    _check_kinds(sizes, origin)
    attacks = math.prod(sizes[kind] for kind in ATTACK)
    audits = math.prod(sizes[kind] or 1 for kind in AUDIT) if sizes["auditor"] else 0
    sweeps.check_size((attacks + audits) * seeds, f"{origin}: is", most)
    axes = {
        kind: tuple(choice for table in listed for choice in table.expanded(kind))
        for kind, listed in written.items()
    }
    _check_labels(axes)
    return axes


def _check_labels(axes: dict[str, tuple[Choice, ...]]) -> None:
    for kind, choices in axes.items():
        seen: dict[str, Choice] = {}
        for choice in choices:
            if choice.label in seen:
                raise MatrixError(
                    f"{choice.where}: the label {choice.label!r} is taken by another {kind}; "
                    'give one of them label = "..."'
                )
            seen[choice.label] = choice


def _check_kinds(sizes: dict[str, int], origin: str) -> None:
    """Whether there is something of every kind that is needed."""
    for kind in ("dataset", "learner"):
        if not sizes[kind]:
            raise MatrixError(f"{origin}: needs at least one [[{kind}]]")
    attack = [kind for kind in ATTACK[2:] if sizes[kind]]
    if attack and len(attack) < 3:
        lacking = next(kind for kind in ATTACK[2:] if not sizes[kind])
        raise MatrixError(
            f"{origin}: names a {attack[0]} but no [[{lacking}]]: an attack needs both"
        )
    if not attack and not sizes["auditor"]:
        raise MatrixError(
            f"{origin}: nothing to measure: needs an attack ([[disclosure]], [[adversary]] and "
            "[[corrector]]) or an [[auditor]]"
        )
    for kind in AUDIT[3:]:
        if sizes[kind] and not sizes["auditor"]:
            raise MatrixError(f"{origin}: names a {kind} but no [[auditor]] that could use it")


def check_exclude(
    exclude: Sequence[Mapping[str, str]], axes: Mapping[str, tuple[Choice, ...]], origin: str
) -> None:
    """Refuse rules that exclude everything, or nobody.

    Raises
    ------
    MatrixError
        Names the rule, and the nearest name that it may have meant.
    """
    names = {kind: {n for c in choices for n in (c.use, c.label)} for kind, choices in axes.items()}
    for number, rule in enumerate(exclude, 1):
        where = f"{origin}: [[exclude]] no. {number}"
        if not rule:
            raise MatrixError(f"{where}: is empty, and would exclude everything")
        for kind, name in rule.items():
            if kind not in KINDS:
                raise MatrixError(f"{where}: unknown key {kind!r}; {nearest(kind, KINDS)}")
            if name not in names[kind]:
                hint = nearest(name, names[kind])
                raise MatrixError(f"{where}: {kind}: no {kind} {name!r} in this matrix; {hint}")


class Rules:
    """What is to be left out, as bits: the i-th says something of the i-th rule."""

    def __init__(self, exclude: Sequence[Mapping[str, str]]) -> None:
        self._named: dict[tuple[str, str], int] = {}
        """Rules that name a component, by kind and name or label."""
        self._of_kind: dict[str, int] = dict.fromkeys(KINDS, 0)
        """Rules that name any component of a kind."""
        self._all = (1 << len(exclude)) - 1
        for number, rule in enumerate(exclude):
            for named in rule.items():
                self._named[named] = self._named.get(named, 0) | 1 << number
                self._of_kind[named[0]] |= 1 << number

    def __bool__(self) -> bool:
        return bool(self._all)

    def all_of(self, kinds: Iterable[str]) -> int:
        """The rules that name components of these kinds only."""
        left, among = self._all, set(kinds)
        for kind, rules in self._of_kind.items():
            if kind not in among:
                left &= ~rules
        return left

    def met_by(self, choice: Choice) -> int:
        """The rules that a choice is no reason against: they name it, or nothing of its kind."""
        kind = choice.kind
        named = self._named.get((kind, choice.use), 0) | self._named.get((kind, choice.label), 0)
        return named | (self._all & ~self._of_kind[kind])
