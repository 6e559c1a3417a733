"""Differential privacy in numbers: sensitivities, guarantees and their composition."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Rational, Real
from typing import Any, Literal, TypeAlias, get_args

from fpbench.base.errors import InputError, check_choice
from fpbench.base.text import to_fraction

LEAST_EPSILON = 1e-9
"""Less is refused everywhere. It would be worth nothing, as its noise is in the billions, it would
cost nothing, and simulated noise must be right at every epsilon that is allowed."""


def check_epsilon(epsilon: Any, name: str = "epsilon", *, infinite: bool = False) -> None:
    """Refuse an epsilon that is no number, not above 0, or below `LEAST_EPSILON`.

    Parameters
    ----------
    epsilon
        A number, or an array of several.
    name
        Name of the number, for the message: it may be a share of another epsilon.
    infinite
        Whether it may be infinite, which is no privacy.

    Raises
    ------
    InputError
        If one is no number, not above 0, below 1e-9, or infinite where it must be finite.
    """
    if isinstance(epsilon, int | float) and not isinstance(epsilon, bool):
        _check(epsilon, name, infinite)
        return
    import numpy as np

    try:
        values = np.asarray(epsilon)
    except ValueError:  # lists of different lengths
        values = np.empty(0, np.object_)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a number, not {epsilon!r:.60}")
    if values.size:  # a minimum is NaN if any is
        _check(values.min().item(), name, infinite)
        _check(values.max().item(), name, infinite)


def to_python_number(value: Any, name: str) -> float:
    """One number, as Python's own: whole numbers stay whole, those of NumPy are not NumPy's.

    Raises
    ------
    InputError
        If it is none, or several.
    """
    kind: type = type(value)
    if kind is not bool and isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    raise InputError(f"{name} must be a number, not {value!r:.60}")


def _check(epsilon: float, name: str, infinite: bool) -> None:
    value = f"{float(epsilon)!r}" if isinstance(epsilon, float) else f"{epsilon!r:.40}"
    infinity = infinite and epsilon == math.inf
    if not (0 < epsilon <= sys.float_info.max or infinity):
        range_ = "above 0" if infinite else "above 0 and finite"
        raise InputError(f"{name} must be {range_}, not {value}")
    if epsilon < LEAST_EPSILON:
        raise InputError(f"{name} must be at least {LEAST_EPSILON:g}, not {value}")


Neighbours: TypeAlias = Literal["attribute", "add-remove"]
"""Which data sets must be hard to tell apart: those that differ in one person's group, or in
whether one person is counted at all. Who takes part, and so the size of every cell, is public under
both; a person's group then has twice the epsilon of `add-remove`."""

NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)

Relation: TypeAlias = Literal["attribute", "add-remove", "replace-one"]
"""What a guarantee may be measured by: a relation that a curator answers under, or that one person,
and with that all of a record, is replaced by another."""


@dataclass(frozen=True)
class Sensitivity:
    """How far the answers of neighbouring data sets may lie apart.

    Attributes
    ----------
    l1
        Greatest sum of absolute differences.
    l2
        Greatest root of the sum of squared differences.
    """

    l1: float
    l2: float


COUNT_SENSITIVITY: dict[Neighbours, Sensitivity] = {
    "attribute": Sensitivity(2.0, math.sqrt(2.0)),
    "add-remove": Sensitivity(1.0, 1.0),
}
"""Sensitivity of counts of disjoint cells: one person leaves a cell for another, or just a cell."""


@dataclass(frozen=True)
class Guarantee:
    """What an observer of a release may learn of a person, at most.

    Attributes
    ----------
    epsilon
        Greatest privacy loss, at least 1e-9 and finite.
    delta
        Probability that the loss may be exceeded, in [0, 1); 0 is pure differential privacy.
    neighbours
        Which data sets are hard to tell apart: `attribute`, `add-remove` or `replace-one`.
    rho
        Of zero-concentrated differential privacy, where the mechanism has it; None if unknown.

    Raises
    ------
    InputError
        If one of them is not one number, epsilon is not at least 1e-9 and finite, rho is not
        positive and finite, delta is not in [0, 1), or the relation is unknown.
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Relation = "attribute"
    rho: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho"):
            if name != "rho" or self.rho is not None:
                object.__setattr__(self, name, to_python_number(getattr(self, name), name))
        check_epsilon(self.epsilon)
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must be at least 0 and below 1, not {self.delta!r}")
        if self.rho is not None and not 0 < self.rho <= sys.float_info.max:
            raise InputError(f"rho must be above 0 and finite, or None, not {self.rho!r}")
        check_choice("neighbours", self.neighbours, get_args(Relation))


def check_neighbours(name: str) -> None:
    """Refuse an unknown relation of neighbours.

    Raises
    ------
    InputError
        If it is unknown.
    """
    check_choice("neighbours", name, NEIGHBOURS)


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of several releases about the same people, by basic composition.

    Epsilons, deltas and rhos add up (Dwork & Roth 2014, Theorem 3.16; Bun & Steinke 2016, Lemma
    1.7); `rho_to_epsilon` of the summed rho is often much better than the summed epsilon.

    Parameters
    ----------
    guarantees
        Of each release; all by one relation of neighbours.

    Raises
    ------
    InputError
        If there is none, or they are of different relations, or delta reaches 1.
    """
    parts = _check_relation(guarantees)
    rhos = [part.rho for part in parts]
    return Guarantee(
        float(sum(to_fraction(part.epsilon) for part in parts)),
        float(sum(to_fraction(part.delta) for part in parts)),
        parts[0].neighbours,
        None if None in rhos else math.fsum(rho for rho in rhos if rho is not None),
    )


def compose_disjoint(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of releases that share nobody, by parallel composition: the worst of them.

    Who belongs to which part must be public (McSherry 2009, Theorem 4): cells of a histogram over
    features or predictions are such parts, groups of the sensitive attribute are not.

    Parameters
    ----------
    guarantees
        Of each release; all by one relation of neighbours.

    Raises
    ------
    InputError
        If there is none, or they are of different relations.
    """
    parts = _check_relation(guarantees)
    rhos = [part.rho for part in parts]
    return Guarantee(
        max(part.epsilon for part in parts),
        max(part.delta for part in parts),
        parts[0].neighbours,
        None if None in rhos else max(rho for rho in rhos if rho is not None),
    )


def _check_relation(guarantees: Iterable[Guarantee]) -> list[Guarantee]:
    parts = list(guarantees)
    if not parts:
        raise InputError("there is no guarantee to compose")
    relations = sorted({part.neighbours for part in parts})
    if len(relations) > 1:
        raise InputError(
            f"guarantees of different neighbours do not compose: {' and '.join(relations)}"
        )
    return parts
