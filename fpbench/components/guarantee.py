"""Differential privacy in numbers: sensitivities, guarantees and their composition."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_type, show_value, to_python_number
from fpbench.base.errors import InputError, check_choice
from fpbench.base.text import to_fraction

LEAST_EPSILON = 1e-9
"""Lower bound on every epsilon. A smaller one would need noise in the billions, and simulated noise
must be correct for every valid epsilon."""


@check_arguments
def check_epsilon(epsilon: Any, name: str = "epsilon", *, infinite: bool = False) -> None:
    """Refuse an epsilon that is not a number, not above 0, or below `LEAST_EPSILON`.

    Parameters
    ----------
    epsilon
        A number, or an array of several.
    name
        Name of the number, for the message: it may be a share of another epsilon.
    infinite
        Whether it may be infinite, which means no privacy.

    Raises
    ------
    InputError
        If one is not a number, not above 0, below 1e-9, or infinite where it must be finite.
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
        raise InputError(f"{name} must be a number, not {show_value(epsilon)}")
    if values.size:  # a minimum is NaN if any is
        _check(values.min().item(), name, infinite)
        _check(values.max().item(), name, infinite)


def _check(epsilon: float, name: str, infinite: bool) -> None:
    value = f"{float(epsilon)!r}" if isinstance(epsilon, float) else f"{show_value(epsilon):.40}"
    infinity = infinite and epsilon == math.inf
    if not (0 < epsilon <= sys.float_info.max or infinity):
        range_ = "above 0" if infinite else "above 0 and finite"
        raise InputError(f"{name} must be {range_}, not {value}")
    if epsilon < LEAST_EPSILON:
        raise InputError(f"{name} must be at least {LEAST_EPSILON:g}, not {value}")


Neighbours: TypeAlias = Literal["attribute", "add-remove"]
"""Which data sets are neighbours: those that differ in one person's group, or in whether one person
is counted. For both, membership is public, and so is the size of every cell; under `add-remove`,
the epsilon for a person's group is therefore twice as large."""

NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)

Relation: TypeAlias = Literal["attribute", "add-remove", "replace-one"]
"""The relation of a guarantee: one of `Neighbours`, or the replacement of one whole record."""


@dataclass(frozen=True)
class Sensitivity:
    """Greatest distances between the answers on neighbouring data sets.

    Attributes
    ----------
    l1
        Greatest sum of absolute differences.
    l2
        Greatest square root of the sum of squared differences.
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
    """A limit on what an observer of a release can learn about a person.

    Attributes
    ----------
    epsilon
        Greatest privacy loss, at least 1e-9 and finite.
    delta
        Probability that the loss may be exceeded, in [0, 1); 0 is pure differential privacy.
    neighbours
        Which data sets are neighbours: `attribute`, `add-remove` or `replace-one`.
    rho
        Rho of zero-concentrated differential privacy; None if unknown.

    Raises
    ------
    InputError
        If a value is not one number, epsilon is not at least 1e-9 and finite, rho is not
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
            raise InputError(f"delta must be at least 0 and below 1, not {show_value(self.delta)}")
        if self.rho is not None and not 0 < self.rho <= sys.float_info.max:
            raise InputError(f"rho must be above 0 and finite, or None, not {show_value(self.rho)}")
        check_choice("neighbours", self.neighbours, get_args(Relation))


@check_arguments
def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of several releases about the same people, by basic composition.

    Epsilons, deltas and rhos add up (Dwork & Roth 2014, Theorem 3.16; Bun & Steinke 2016, Lemma
    1.7); `rho_to_epsilon` of the summed rho is often much smaller than the summed epsilon.

    Parameters
    ----------
    guarantees
        One of each release; all with the same relation of neighbours.

    Raises
    ------
    InputError
        If there is none, their relations differ, or delta reaches 1.
    """
    return _combine(guarantees, lambda values: float(sum(map(to_fraction, values))), math.fsum)


@check_arguments
def compose_disjoint(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of releases about disjoint people, by parallel composition: the weakest one.

    The partition must be public (McSherry 2009, Theorem 4): cells of a histogram over features or
    predictions qualify, groups of the sensitive attribute do not.

    Parameters
    ----------
    guarantees
        One of each release; all with the same relation of neighbours.

    Raises
    ------
    InputError
        If there is none, or their relations differ.
    """
    return _combine(guarantees, max, max)


_Combination: TypeAlias = Callable[[list[float]], float]


def _combine(
    guarantees: Iterable[Guarantee], combine: _Combination, combine_rhos: _Combination
) -> Guarantee:
    check_type("guarantees", guarantees, Iterable, "an iterable of guarantees")
    parts = list(guarantees)
    for part in parts:
        check_type("each of guarantees", part, Guarantee, "a Guarantee")
    if not parts:
        raise InputError("no guarantee to compose was given")
    relations = sorted({part.neighbours for part in parts})
    if len(relations) > 1:
        raise InputError(
            f"guarantees of different neighbours do not compose: {' and '.join(relations)}"
        )
    rhos = [part.rho for part in parts if part.rho is not None]
    return Guarantee(
        combine([part.epsilon for part in parts]),
        combine([part.delta for part in parts]),
        parts[0].neighbours,
        combine_rhos(rhos) if len(rhos) == len(parts) else None,
    )
