"""The laws of mechanisms: what they promise withstands attacks, and secure noise is secure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.components.guarantee import COUNT_SENSITIVITY, NEIGHBOURS, Neighbours
from fpbench.components.mechanism import Mechanism
from fpbench.testing.attacks import PAIRS, check_mechanism, epsilon_lower_bound
from fpbench.testing.cases import Case
from fpbench.testing.watching import difference

_EPSILONS = (1.0, 0.2, 5.0)
"""A mechanism may be right at one epsilon only."""
_FORCE: dict[str, dict[str, Any]] = {
    "simulation": {"draws": 10_000, "confidence": 0.999},
    # Slow to draw, and never the same: no false alarm, ever.
    "secure": {"draws": 2000, "confidence": 1 - 1e-9},
}
"""How hard noise of either source is attacked; draws are of each of two neighbours."""


def keeps_promise(case: Case) -> None:
    """Attack it at several epsilons, alone and beside each other; two seeds, two noises."""
    mechanism = case.component
    assert isinstance(mechanism, Mechanism)
    one, other = case.ran(seed=0), case.ran(seed=1)
    assert difference(one.result, other.result), "its noise is the same for every seed"
    attacked = list(_attacked(mechanism, NEIGHBOURS))
    assert attacked, f"it refuses every epsilon of {', '.join(map(str, _EPSILONS))}"
    if len(attacked) == len(_EPSILONS):
        _attack_side_by_side(mechanism)


def secures(case: Case) -> None:
    """Secure noise is not drawn from the generator, is never the same, and withstands attacks."""
    try:
        secure, _ = case.made({**case.parameters, "noise": "secure"})
    except InputError:
        return  # it says that it cannot
    assert isinstance(secure, Mechanism)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    counts = np.full((32, 2), 5)
    one, other = (
        secure.release(counts, COUNT_SENSITIVITY["attribute"], 1.0, rng, 10) for _ in range(2)
    )
    assert rng.bit_generator.state == before, 'noise = "secure" is drawn from the seeded generator'
    assert (one != other).any(), 'noise = "secure" is the same for every release'
    if case.component != secure:  # otherwise it is attacked anyway
        list(_attacked(secure, NEIGHBOURS[:1], _EPSILONS[:1]))


def _attacked(
    mechanism: Mechanism,
    neighbours: tuple[Neighbours, ...],
    epsilons: tuple[float, ...] = _EPSILONS,
) -> Iterator[float]:
    """The epsilons at which it withstood an attack; those that it refuses are left out."""
    force = _FORCE[mechanism.noise]
    for epsilon in epsilons:
        try:
            mechanism.guarantee(epsilon, neighbours[0])
        except InputError:
            continue
        check_mechanism(mechanism, epsilon=epsilon, neighbours=neighbours, **force)
        yield epsilon


def _attack_side_by_side(mechanism: Mechanism) -> None:
    """Attack releases of the least epsilon that are made in one call with those of the greatest."""
    least, greatest = min(_EPSILONS), max(_EPSILONS)
    relation = NEIGHBOURS[0]
    pair = PAIRS[relation][0]

    def release(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        prices = np.tile([[least], [greatest]], (len(counts), 1))
        both = np.repeat(counts, 2, axis=0)
        return mechanism.release(
            both, COUNT_SENSITIVITY[relation], prices, rng, upper=sum(pair[0])
        )[::2]

    claimed = mechanism.guarantee(least, relation)
    found = epsilon_lower_bound(
        release, *pair, delta=claimed.delta, rng=np.random.default_rng(0), **_FORCE[mechanism.noise]
    )
    assert found <= claimed.epsilon, (
        f"of an array of epsilons, the release at {least:g} has at least {found:.4g}"
    )
