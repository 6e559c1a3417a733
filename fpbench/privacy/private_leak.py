"""Upper bounds on what a differentially private release about groups adds to anybody's accuracy.

Privacy of a person's group bounds how well any adversary can guess it, whatever it knows about
others. The bound holds person by person, and people with *known* groups need not be independent;
but people with unknown groups that depend on the person's multiply epsilon by their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.components.beliefs import check_beliefs
from fpbench.components.guarantee import Guarantee
from fpbench.privacy.accounting import rho_to_delta

_Floats = NDArray[np.floating[Any]]

_POINTS = 2_000
"""Number of tabulated points of the privacy profile of zero-concentrated privacy."""


@check_arguments
def limit_private_leak(
    beliefs: ArrayLike, guarantee: Guarantee, *, household_size: int = 1
) -> float:
    """The greatest leak of a release with a guarantee for every person's group.

    Parameters
    ----------
    beliefs
        (n, K) each person's exact probability of each group before the release.
    guarantee
        Of the release; under `add-remove` a change of group is a removal and an addition.
    household_size
        Most people whose unknown groups depend on each other, the person included.

    Returns
    -------
    float
        Expected rise of the share of the n people who are guessed right.

    Raises
    ------
    InputError
        If beliefs are not probabilities, or the size is below 1.

    Notes
    -----
    (epsilon, delta), any K: best accuracy delta + (1 - delta) max_r P_r e^eps / (e^eps + r - 1),
    P_r the sum of the r greatest beliefs; reached by randomised response on the r likeliest groups.
    Zero-concentrated, m >= 1/2: (1 - m) delta(logit m), by the profile delta(.) of every such
    release; other people by the former at the best epsilon. The least of these bounds is taken. For
    s dependent people epsilon is multiplied by s, delta by s e^((s - 1) epsilon), and rho by s
    squared (group privacy; Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014,
    section 2.3; Bun & Steinke, 2016, proposition 27).
    """
    ordered = -np.sort(-check_beliefs(beliefs), axis=1)
    if household_size < 1:
        raise InputError(f"a household has at least 1 person, not {show_value(household_size)}")
    epsilon, delta, rho = _protect_group(guarantee)
    size = household_size
    delta = min(size * math.exp(min((size - 1) * epsilon, 700.0)) * delta, 1.0)
    epsilon, rho = size * epsilon, None if rho is None else size**2 * rho
    top = ordered[:, 0]
    limit = _limit_accuracy(ordered, epsilon, delta)
    if rho is not None:
        limit = np.minimum(limit, _limit_concentrated(ordered, rho))
    return float(np.maximum(limit - top, 0).mean())


@check_arguments
def limit_private_nats(guarantee: Guarantee, people: int) -> float:
    """The most that a release with a guarantee can tell about everybody's group, in nats.

    Parameters
    ----------
    guarantee
        Of the release; under `add-remove` a change of group is a removal and an addition.
    people
        n independent people whom it covers.

    Returns
    -------
    float
        Infinite for an (epsilon, delta) that is not zero-concentrated as well.

    Notes
    -----
    Its information about a person is at most the divergence of two neighbours: epsilon tanh(epsilon
    / 2) for a pure guarantee, which randomised response reaches, and rho for a zero-concentrated
    one (Bun & Steinke, Concentrated Differential Privacy, 2016).
    """
    epsilon, delta, rho = _protect_group(guarantee)
    each = epsilon * math.tanh(epsilon / 2) if delta == 0 else math.inf
    return people * min(each, math.inf if rho is None else rho)


def _limit_concentrated(ordered: _Floats, rho: float) -> _Floats:
    """(n,) best accuracy about each person under every release with this rho."""
    top = ordered[:, 0]
    with np.errstate(divide="ignore"):
        logits = np.log(top) - np.log1p(-top)
    # The profile decreases, so reading it a little to the left is safe.
    epsilons = np.linspace(
        0, float(np.minimum(logits[np.isfinite(logits)].max(initial=0), 60)), _POINTS
    )
    variation = _limit_variation(rho)
    deltas = np.array([min(rho_to_delta(rho, float(at)), variation) for at in epsilons])
    limit = np.ones(len(ordered))
    sure = top >= 0.5
    place = np.searchsorted(epsilons, logits[sure], side="right") - 1
    limit[sure] = top[sure] + (1 - top[sure]) * deltas[place]
    if not sure.all():  # the profile is no bound there, but every epsilon with its delta is one
        for epsilon in np.geomspace(1e-3, 30, 100):
            delta = min(rho_to_delta(rho, float(epsilon)), variation)
            others = _limit_accuracy(ordered[~sure], float(epsilon), delta)
            limit[~sure] = np.minimum(limit[~sure], others)
    return limit


def _limit_accuracy(ordered: _Floats, epsilon: float, delta: float) -> _Floats:
    """(n,) best accuracy about each person, whose beliefs (n, K) are greatest first."""
    more = np.arange(ordered.shape[1]) * math.exp(-epsilon)
    best = (np.cumsum(ordered, axis=1) / (1 + more)).max(axis=1)
    return np.asarray(np.minimum(delta + (1 - delta) * best, 1.0))


def _protect_group(guarantee: Guarantee) -> tuple[float, float, float | None]:
    """Epsilon, delta and rho for changing one person's group."""
    epsilon, delta, rho = guarantee.epsilon, guarantee.delta, guarantee.rho
    if guarantee.neighbours != "add-remove":
        return epsilon, delta, rho
    twice = min(delta * (1 + math.exp(min(epsilon, 700.0))), 1.0)
    return 2 * epsilon, twice, None if rho is None else 4 * rho


def _limit_variation(rho: float) -> float:
    """The greatest total variation of two neighbours: the t with 2 t artanh(t) = rho."""
    from scipy.optimize import brentq

    if rho > 30:
        return 1.0
    return float(brentq(lambda t: 2 * t * math.atanh(t) - rho, 0.0, 1 - 1e-16))
