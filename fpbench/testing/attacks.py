"""Attacks that third parties can run on their own mechanisms.

Statistics cannot prove privacy, but can disprove it: two neighbouring inputs are released many
times, an event that distinguishes them is chosen, and its two frequencies bound epsilon from below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.auditing.epsilon_bounds import bound_epsilon
from fpbench.base.errors import InputError
from fpbench.components.guarantee import COUNT_SENSITIVITY, NEIGHBOURS, Guarantee, Neighbours
from fpbench.components.mechanism import Mechanism, Policy

ReleaseFunction: TypeAlias = Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.float64]]
"""Releases every row of inputs (draws, ...) independently, as outputs (draws, ...)."""

Counts: TypeAlias = tuple[int, ...]
PAIRS: dict[Neighbours, tuple[tuple[Counts, Counts], ...]] = {
    "attribute": (((6, 4), (5, 5)), ((60, 0), (59, 1)), ((1, 0, 3), (0, 1, 3))),
    "add-remove": (((6, 4), (5, 4)), ((60, 0), (59, 0)), ((1, 0, 3), (0, 0, 3))),
}
"""Neighbouring histograms to attack: within the range, at its ends, and with empty cells."""


def list_relations(mechanism: Mechanism) -> tuple[Neighbours, ...]:
    """The relations of neighbouring data sets that a mechanism guarantees at epsilon 1."""
    relations = []
    for relation in NEIGHBOURS:
        with suppress(InputError):
            mechanism.guarantee(1.0, relation)
            relations.append(relation)
    return tuple(relations)


@dataclass(frozen=True)
class Attack:
    """The result of an attack on one pair of neighbouring histograms.

    Attributes
    ----------
    one
        Counts of one data set.
    other
        Counts of its neighbour.
    claimed
        The mechanism's guarantee.
    epsilon
        Proven lower bound, at the requested confidence.
    """

    one: tuple[int, ...]
    other: tuple[int, ...]
    claimed: Guarantee
    epsilon: float

    @property
    def broken(self) -> bool:
        """Whether the claim is disproved."""
        return self.epsilon > self.claimed.epsilon


def epsilon_lower_bound(
    release: ReleaseFunction,
    one: ArrayLike,
    other: ArrayLike,
    *,
    delta: float = 0.0,
    draws: int = 100_000,
    confidence: float = 0.999,
    rng: np.random.Generator,
) -> float:
    """A lower bound on the epsilon of a release, with confidence, from its outputs alone.

    Parameters
    ----------
    release
        Gets an array (draws, ...) that repeats an input, and releases each row independently.
    one, other
        Neighbouring inputs, of one shape.
    delta
        The allowed delta.
    draws
        Number of draws from each of the two inputs. Half choose the event, half test it.
    confidence
        Probability with which the bound is true, for any release; in (0, 1).
    rng
        Random generator of the release.

    Returns
    -------
    float
        At least 0; the true epsilon at this delta is above it, or the draws were unlucky.

    Raises
    ------
    InputError
        If the inputs differ in shape, there are fewer than 1,000 draws, a parameter is out of
        range, or the release does not give a finite output for every draw.

    See Also
    --------
    fpbench.auditing.bound_epsilon : the method, and why it is valid.
    """
    inputs = [np.asarray(one_input) for one_input in (one, other)]
    if inputs[0].shape != inputs[1].shape:
        raise InputError(f"inputs of shapes {inputs[0].shape} and {inputs[1].shape}")
    if draws < 1000:
        raise InputError(f"draws must be at least 1000, not {draws}")
    outputs = [_draw_outputs(release, one_input, draws, rng) for one_input in inputs]
    direction = (inputs[0] - inputs[1]).ravel()
    return bound_epsilon(*outputs, delta=delta, confidence=confidence, direction=direction)


def attack_mechanism(
    mechanism: Mechanism,
    policy: Policy | None = None,
    *,
    epsilon: float = 1.0,
    neighbours: Sequence[Neighbours] = NEIGHBOURS,
    draws: int = 100_000,
    confidence: float = 0.999,
    rng: np.random.Generator,
) -> list[Attack]:
    """Results of attacks on a mechanism, or on a mechanism followed by a policy.

    Parameters
    ----------
    mechanism
        Its guarantee at `epsilon` is attacked.
    policy
        Repairs every histogram; its total is public, the same for neighbours.
    epsilon
        Epsilon of the releases.
    neighbours
        Relations to attack under.
    draws
        Number of draws from each of two neighbours, for each pair.
    confidence
        Probability with which all bounds are true together (Bonferroni).
    rng
        For simulated noise.
    """
    pairs = [(relation, *pair) for relation in neighbours for pair in PAIRS[relation]]
    attacks = []
    for relation, one, other in pairs:
        total = max(sum(one), sum(other))
        claimed = mechanism.guarantee(epsilon, relation)

        def release(
            counts: NDArray[np.int64],
            rng: np.random.Generator,
            relation: Neighbours = relation,
            total: int = total,
        ) -> NDArray[np.float64]:
            noisy = mechanism.release(
                counts, COUNT_SENSITIVITY[relation], epsilon, rng, upper=total
            )
            return noisy if policy is None else policy.repair(noisy, total)

        bound = epsilon_lower_bound(
            release,
            one,
            other,
            delta=claimed.delta,
            draws=draws,
            confidence=1 - (1 - confidence) / len(pairs),
            rng=rng,
        )
        attacks.append(Attack(one, other, claimed, bound))
    return attacks


def check_mechanism(
    mechanism: Mechanism,
    policy: Policy | None = None,
    *,
    epsilon: float = 1.0,
    neighbours: Sequence[Neighbours] = NEIGHBOURS,
    draws: int = 100_000,
    confidence: float = 0.999,
    rng: np.random.Generator | None = None,
) -> None:
    """Fail if an attack disproves the guarantee of a mechanism, with a policy if given.

    It fails for a private one with probability at most 1 - confidence; the default generator is
    seeded, so the outcome is always the same.

    Parameters
    ----------
    mechanism, policy, epsilon, neighbours, draws, confidence
        As for `attack_mechanism`.
    rng
        For simulated noise; by default a generator with seed 0.

    Raises
    ------
    AssertionError
        If the claim is disproved, with the bound that disproves it.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    for attack in attack_mechanism(
        mechanism, policy, epsilon=epsilon, neighbours=neighbours, draws=draws,
        confidence=confidence, rng=rng,
    ):  # fmt: skip
        if attack.broken:
            chain = f"mechanism {mechanism.name!r}"
            chain += f" with policy {policy.name!r}" if policy else ""
            claimed = attack.claimed
            raise AssertionError(
                f"{chain} claims epsilon {claimed.epsilon:g} at delta {claimed.delta:g} for "
                f"neighbours = {claimed.neighbours!r}, but has at least {attack.epsilon:.4g} "
                f"(confidence {confidence:.12g}): counts {attack.one} and {attack.other} are "
                "easier to tell apart than that"
            )


def _draw_outputs(
    release: ReleaseFunction, repeated: NDArray[np.int64], draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    drawn = np.asarray(
        release(np.broadcast_to(repeated, (draws, *repeated.shape)), rng), np.float64
    )
    if drawn.shape[:1] != (draws,):
        raise InputError(f"the release gave an array {drawn.shape}, not ({draws}, ...)")
    if not np.isfinite(drawn).all():
        raise InputError("the release gave numbers that are not finite")
    return drawn.reshape(draws, -1)
