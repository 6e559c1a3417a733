"""Parameters of a private tree, its budget and its guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fpbench import Guarantee, InputError
from fpbench.base import to_fraction
from fpbench.base.arguments import show_value
from fpbench.base.errors import check_choice
from fpbench.builtin.private_tree.split_scores import (
    CRITERIA,
    SELECTIONS,
    Criterion,
    Selection,
    compute_impurity_sensitivity,
)
from fpbench.privacy import COUNT_SENSITIVITY, check_epsilon, compose, compose_disjoint

if TYPE_CHECKING:
    from fpbench import Mechanism

Floats: TypeAlias = NDArray[np.float64]
Similarity: TypeAlias = Literal["none", "grid", "ball"]
"""How a tree treats similar people alike: not at all; by thresholds on borders of cells; by
spreading a person's mass over all similar values."""

MOST_DEPTH, MOST_THRESHOLDS = 16, 10_000
_LEAST = 1e-9
"""Below it, numbers of cells, or counts with their noise, lose exactness."""


@dataclass(frozen=True, kw_only=True)
class TreeRecipe:
    """Parameters of a private tree: everything but the data that it depends on; all public.

    Attributes
    ----------
    epsilon
        Of the whole tree; infinite means without privacy.
    leaf_share
        Share of epsilon for the counts in the leaves; the rest chooses splits.
    max_depth
        Number of levels of splits.
    criterion
        Impurity that a split minimises: `gini`, `entropy` or `max`.
    selection
        How splits are chosen: `noisy-max`, `exponential`, `reference`, or `random`: a feature, then
        one of its splits, without looking at people, so that all of epsilon is for the leaves.
    thresholds
        Number of thresholds of each number, regular between its bounds.
    similarity
        Which people the tree treats alike: `none`, `grid` (those of one cell) or `ball` (those
        within `tau`).
    tau
        People are similar whose numbers, scaled to [0, 1], differ by at most this.
    most_people
        Public bound on how many people there may be; the sensitivity of entropy depends on it.
    mechanism
        Adds noise to the counts in the leaves; Laplace noise by default.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """

    epsilon: float = 1.0
    leaf_share: float = 0.5
    max_depth: int = 6
    criterion: Criterion = "gini"
    selection: Selection | Literal["random"] = "noisy-max"
    thresholds: int = 64
    similarity: Similarity = "none"
    tau: float = 0.0
    most_people: int = 1_000_000
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("selection", self.selection, (*SELECTIONS, "random"))
        check_choice("similarity", self.similarity, get_args(Similarity))
        check_epsilon(self.epsilon, infinite=True)
        for name in ("leaf_share", "tau"):
            value = getattr(self, name)
            real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            _check_number(name, value, real, "a number")
        _check_number("leaf_share", self.leaf_share, 0 < self.leaf_share < 1, "above 0 and below 1")
        share = min(self.leaf_share, 1 - self.leaf_share)
        _check_number("leaf_share", self.leaf_share, share >= _LEAST, f"{_LEAST:g} from 0 and 1")
        _check_number("tau", self.tau, 0 <= self.tau < 1, "at least 0 and below 1")
        exact = self.tau == 0 or self.tau >= _LEAST
        _check_number("tau", self.tau, exact, f"0 or at least {_LEAST:g}")
        _check_whole("max_depth", self.max_depth, 1, MOST_DEPTH)
        _check_whole("thresholds", self.thresholds, 1, MOST_THRESHOLDS)
        _check_whole("most_people", self.most_people, 2, 2**53)
        if self.similarity == "none" and self.tau > 0:
            raise InputError('tau has an effect only with similarity = "grid" or "ball"')
        if self.private:
            check_epsilon(self.leaf_epsilon, "epsilon * leaf_share")
            if self.selection != "random":
                check_epsilon(self.level_epsilon, "epsilon of each of max_depth levels")
        if self.mechanism is not None:
            _check_mechanism(self.mechanism)
            if self.private:  # that it can give this epsilon
                self.mechanism.guarantee(self.leaf_epsilon, "add-remove")

    @property
    def private(self) -> bool:
        """Whether epsilon is finite."""
        return self.epsilon < math.inf

    @property
    def leaf_epsilon(self) -> float:
        """Epsilon of the counts in all leaves; leaves are disjoint."""
        if not self.private:
            return math.inf
        if self.selection == "random":
            return float(self.epsilon)
        return float(to_fraction(self.epsilon) * to_fraction(self.leaf_share))

    @property
    def level_epsilon(self) -> float:
        """Epsilon of the choice of splits in the nodes of one level; nodes are disjoint."""
        if not self.private:
            return math.inf
        return divide_epsilon(
            to_fraction(self.epsilon) - to_fraction(self.leaf_epsilon), self.max_depth
        )

    @property
    def noise_scale(self) -> float:
        """Scale of the noise that splits are chosen with."""
        if self.selection == "random":
            return 1.0
        if not self.private:
            return 0.0
        return compute_impurity_sensitivity(self.criterion, self.most_people) / self.level_epsilon

    @property
    def guarantee(self) -> Guarantee | None:
        """Guarantee of the whole tree, if one person is added or removed; None at infinite epsilon.

        Nodes of a level are disjoint, so their cost is paid once; costs of levels and leaves add
        up.
        """
        if not self.private:
            return None
        leaves = (
            Guarantee(self.leaf_epsilon, 0.0, "add-remove", _find_rho(self.leaf_epsilon))
            if self.mechanism is None
            else self.mechanism.guarantee(self.leaf_epsilon, "add-remove")
        )
        levels = []
        if self.selection != "random":
            rho = _find_rho(self.level_epsilon)
            splits = Guarantee(self.level_epsilon, 0.0, "add-remove", rho)
            levels = [compose_disjoint([splits, splits]) for _ in range(self.max_depth)]
        whole = compose([*levels, compose_disjoint([leaves, leaves])])
        # Levels are rounded down; the epsilon of the user holds, too.
        return replace(whole, epsilon=max(whole.epsilon, float(self.epsilon)))

    def find_noise_law(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Standard deviation of Gaussian, and scale of Laplace noise in counts of this shape."""
        none = np.zeros(shape)
        if not self.private:
            return none, none
        if self.mechanism is None:
            return none, none + 1 / self.leaf_epsilon
        upper = np.full(shape, self.most_people)
        sensitivity = COUNT_SENSITIVITY["add-remove"]
        return self.mechanism.find_noise_law(sensitivity, self.leaf_epsilon, upper)

    def without_privacy(self) -> TreeRecipe:
        """The same tree at infinite epsilon."""
        return replace(self, epsilon=math.inf, mechanism=None)


def divide_epsilon(epsilon: float | Fraction, parts: int) -> float:
    """The greatest number of which so many parts are at most an epsilon."""
    if epsilon == math.inf:
        return math.inf
    whole = to_fraction(epsilon)
    share = float(whole / parts)
    while to_fraction(share) * parts > whole:  # rounded up, it would cost too much
        share = float(np.nextafter(share, 0.0))
    return share


def _find_rho(epsilon: float) -> float | None:
    rho = epsilon * epsilon / 2
    return rho if 0 < rho < math.inf else None


def _check_mechanism(mechanism: Mechanism) -> None:
    if getattr(mechanism, "kind", None) != "mechanism":
        raise InputError(
            f'mechanism must be a component, component("mechanism", "NAME"), not '
            f"{show_value(mechanism)}"
        )
    if getattr(mechanism, "noise", "simulation") == "secure":
        raise InputError(
            'mechanism: noise = "secure" protects nothing here: the noise that chooses splits is '
            'simulated in floating point; use noise = "simulation"'
        )


def _check_number(name: str, value: object, fits: bool, want: str) -> None:
    if not fits:
        raise InputError(f"{name} must be {want}, not {show_value(value)}")


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:  # type: ignore[operator]
        raise InputError(
            f"{name} must be a whole number from {least} to {most:,}, not {show_value(value)}"
        )
