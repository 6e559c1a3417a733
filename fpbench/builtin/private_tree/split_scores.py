"""Impurity of splits, its sensitivity to one person, and the private choice of a split.

Proofs, and what the literature uses instead, are in docs/paper-private-fair-tree.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

Criterion: TypeAlias = Literal["gini", "entropy", "max"]
"""Impurity that a split minimises, summed over both children."""

Selection: TypeAlias = Literal["noisy-max", "exponential", "reference"]
"""How a split is chosen: the best after Laplace noise; the exponential mechanism; or the best by
noisy impurities of children, which share epsilon."""

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
SELECTIONS: tuple[Selection, ...] = get_args(Selection)


def _compute_gini(zeros: Floats, ones: Floats) -> Floats:
    total = zeros + ones
    # The product is 0 in empty children, too.
    return np.asarray(zeros * ones / np.where(total > 0, total, 1.0))


def _compute_entropy(zeros: Floats, ones: Floats) -> Floats:
    bits = np.asarray(
        _multiply_by_log2(zeros + ones) - _multiply_by_log2(zeros) - _multiply_by_log2(ones)
    )
    return np.maximum(bits, 0.0, out=bits)


def _multiply_by_log2(mass: Floats) -> Floats:
    """A mass times its logarithm to base 2; 0 at 0."""
    return np.asarray(mass * np.log2(np.where(mass > 0, mass, 1.0)))


_IMPURITY: dict[Criterion, Callable[[Floats, Floats], Floats]] = {
    "gini": _compute_gini,
    "entropy": _compute_entropy,
    "max": np.minimum,
}


def impurity(criterion: Criterion, zeros: Floats, ones: Floats) -> Floats:
    """Impurity of children, not divided by their sizes.

    With a and b people of the two labels: `gini` is a b / (a + b), half the size times the Gini
    impurity; `entropy` is the size times the entropy in bits; `max` is min(a, b), the number of
    errors. All are concave, homogeneous (twice the people, twice the impurity), and 0 for a pure
    child, so adding a person raises the sum over the children of a split by 0 to
    `compute_impurity_sensitivity`, whichever child the person is in, or however divided between
    both.

    Parameters
    ----------
    criterion
        Which of the three.
    zeros, ones
        Arrays of one shape, people or masses of each label, not negative.

    Returns
    -------
    ndarray
        Of that shape, at least 0.

    References
    ----------
    Friedman, Schuster: Data Mining with Differential Privacy. KDD 2010.
    """
    return _IMPURITY[criterion](zeros, ones)


def compute_impurity_sensitivity(criterion: Criterion, most_people: int) -> float:
    """Greatest change of the impurity of a split when one person is added, to make `most_people`.

    It is the impurity of a child of one person of a label and all others of the other.
    """
    others = most_people - 1
    if criterion == "max":
        return float(others > 0)
    if criterion == "gini":
        return others / most_people
    if others < 1:
        return 0.0
    return math.log2(most_people) + others * math.log1p(1 / others) / math.log(2)


def choose_splits(
    impurities: Floats,
    possible: NDArray[np.bool_],
    selection: Selection | Literal["random"],
    scale: float,
    rngs: Sequence[np.random.Generator],
) -> NDArray[np.intp]:
    """Candidates (g,) of small impurity, one in each node; -1 where none is possible.

    Of `impurities` (g, c) and `possible` (g, c), which is public, `noisy-max` takes the least
    impurity after Laplace noise; `exponential` and `random` a candidate with probability
    proportional to exp(-impurity / scale), by adding Gumbel noise. Adding a person never lowers an
    impurity, so with scale = sensitivity / epsilon all are epsilon-differentially private.
    `reference` adds Laplace noise to the impurities of both children of every possible candidate,
    at a scale as many times greater as there are of these: then epsilon pays for all the noisy
    impurities, and not for the choice alone. At scale 0 the least is chosen, the first of equals.
    `rngs`: each for the noise of equally many nodes, in order.
    """
    if scale > 0:
        noisy = np.empty(impurities.shape)
        for rng, part in zip(rngs, np.split(noisy, len(rngs)), strict=True):
            draw = rng.laplace if selection in ("noisy-max", "reference") else rng.gumbel
            part[:] = draw(size=part.shape)
            if selection == "reference":
                np.add(part, draw(size=part.shape), out=part)
        noisy *= scale
        if selection == "reference":
            noisy *= possible.sum(axis=1, keepdims=True)
        noisy -= impurities
    else:
        noisy = -impurities
    noisy[~possible] = -np.inf
    return np.where(possible.any(axis=1), noisy.argmax(axis=1), -1)
