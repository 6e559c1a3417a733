"""Attacks that third parties can run on mechanisms of their own.

Statistics cannot prove privacy, but they disprove it: two neighbouring inputs are released many
times, an event that tells them apart is chosen, and its two frequencies bound epsilon from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import InputError
from fpbench.components.guarantee import COUNT_SENSITIVITY, NEIGHBOURS, Guarantee, Neighbours
from fpbench.components.mechanism import Mechanism, Policy

ReleaseFunction: TypeAlias = Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.float64]]
"""Releases every row of an array (draws, ...) of inputs on its own: (draws, ...) outputs."""

Counts: TypeAlias = tuple[int, ...]
Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[Floats], Floats]
"""How much likelier outputs (draws, m) are from the first input than from the second: (draws,)."""

MARGINAL_BINS, JOINT_BINS, THRESHOLDS = 64, 1500, 64

PAIRS: dict[Neighbours, tuple[tuple[Counts, Counts], ...]] = {
    "attribute": (((6, 4), (5, 5)), ((60, 0), (59, 1)), ((1, 0, 3), (0, 1, 3))),
    "add-remove": (((6, 4), (5, 4)), ((60, 0), (59, 0)), ((1, 0, 3), (0, 0, 3))),
}
"""Neighbouring histograms to attack: inside the range, at its ends, and with empty cells."""


@dataclass(frozen=True)
class Attack:
    """What an attack on one pair of neighbouring histograms found.

    Attributes
    ----------
    one
        Counts of one data set.
    other
        Counts of its neighbour.
    claimed
        What the mechanism guarantees.
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
        Is handed an array (draws, ...) that repeats an input, and releases each row on its own.
    one, other
        Neighbouring inputs, of one shape.
    delta
        The delta that the release is allowed.
    draws
        From each of the two inputs. Half of them choose the event, the other half test it.
    confidence
        With which the bound is true, whatever the release; in (0, 1).
    rng
        For the release.

    Returns
    -------
    float
        At least 0; the true epsilon at this delta is above it, or the draws were unlucky.

    Raises
    ------
    InputError
        If the inputs differ in shape, there are fewer than 1,000 draws, a parameter is out of
        range, or the release does not give a finite output for every draw.

    Notes
    -----
    A quarter of the draws estimates how much likelier outputs are under one input than under the
    other, from binned outputs, all cells jointly, cell by cell, and in sums over cells; a quarter
    chooses the set of outputs above a threshold of that, and which of the inputs it favours, by
    what it promises; the other half counts how often both releases fall into that one set. The
    bound is ln((p - delta) / q), with p and q at the far ends of Clopper-Pearson intervals which
    are both true with the requested confidence. Chosen on other draws, a single event needs no
    correction for having been chosen.

    References
    ----------
    Clopper, Pearson: The Use of Confidence or Fiducial Limits. Biometrika 1934.
    Jagielski, Ullman, Oprea: Auditing Differentially Private Machine Learning. NeurIPS 2020.
    """
    inputs = [np.asarray(one_input) for one_input in (one, other)]
    if inputs[0].shape != inputs[1].shape:
        raise InputError(f"inputs of shapes {inputs[0].shape} and {inputs[1].shape}")
    if draws < 1000:
        raise InputError(f"draws must be at least 1000, not {draws}")
    if not (0 <= delta < 1 and 0 < confidence < 1):
        raise InputError(f"delta {delta!r} or confidence {confidence!r} is out of range")
    outputs = [_draw_outputs(release, one_input, draws, rng) for one_input in inputs]
    cuts = [draws // 4, draws // 2]
    (fit, choose, test), others = (np.split(drawn, cuts) for drawn in outputs)
    n, alpha = len(test), 1 - confidence
    best, hits = -math.inf, [np.array(0), np.array(0)]
    for score in candidate_scores(fit, others[0], (inputs[0] - inputs[1]).ravel()):
        chosen_scores = [np.sort(score(part)) for part in (choose, others[1])]
        for sign in (1, -1):  # which of the two inputs the event favours
            p, q = ((sign * part)[::sign] for part in chosen_scores[::sign])
            # More doubt than in the test: the greatest of many promises is often mere luck.
            promised, threshold = best_threshold(p, q, n, delta, alpha / 100)
            if promised > best:
                best = promised
                test_scores = [sign * score(part) for part in (test, others[2])][::sign]
                hits = [np.array(np.count_nonzero(part >= threshold)) for part in test_scores]
    return max(float(epsilon_bounds(hits[0], hits[1], n, delta, alpha)), 0.0)


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
    """Attacks on a mechanism, or on a mechanism followed by a policy.

    Parameters
    ----------
    mechanism
        Its guarantee at `epsilon` is what is attacked.
    policy
        Repairs every histogram; the total it is told is public, the same for neighbours.
    epsilon
        Of the releases.
    neighbours
        Relations to attack under.
    draws
        From each of two neighbours, for each pair.
    confidence
        With which all the bounds are true together (Bonferroni).
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
    """Fail if an attack disproves what a mechanism, or it and a policy, guarantees.

    It fails for a private one with probability 1 - confidence at most; the default generator is
    seeded, so that it either always does or never.

    Parameters
    ----------
    mechanism, policy, epsilon, neighbours, draws, confidence
        As of `attack_mechanism`.
    rng
        For simulated noise; by default a generator with seed 0.

    Raises
    ------
    AssertionError
        If the claim is disproved, with the bound that disproves it.
    """
    for attack in attack_mechanism(
        mechanism,
        policy,
        epsilon=epsilon,
        neighbours=neighbours,
        draws=draws,
        confidence=confidence,
        rng=np.random.default_rng(0) if rng is None else rng,
    ):
        if attack.broken:
            chain = f"mechanism {mechanism.name!r}"
            chain += f" with policy {policy.name!r}" if policy else ""
            claimed = attack.claimed
            raise AssertionError(
                f"{chain} claims epsilon {claimed.epsilon:g} at delta {claimed.delta:g} for "
                f"neighbours = {claimed.neighbours!r}, and has at least {attack.epsilon:.4g} "
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


def candidate_scores(one: Floats, other: Floats, direction: NDArray[np.int64]) -> Iterator[Score]:
    """Estimates of the log-likelihood ratio of outputs (draws, m), in several ways."""
    m = one.shape[1]
    cells = [_log_ratio_by_bins(one[:, [j]], other[:, [j]], MARGINAL_BINS) for j in range(m)]

    def cell_by_cell(outputs: Floats) -> Floats:
        return sum((cells[j](outputs[:, [j]]) for j in range(m)), np.zeros(len(outputs)))

    yield cell_by_cell
    if m == 1:
        return
    telling = [np.abs(cells[j](one[:, [j]])).mean() for j in range(m)]
    most = np.argsort(telling)[::-1][:3]
    joint = _log_ratio_by_bins(one[:, most], other[:, most], round(JOINT_BINS ** (1 / len(most))))
    yield lambda outputs: joint(outputs[:, most])
    sums = [np.ones(m)]
    if direction.size == m:
        sums.append(direction.astype(np.float64))
    for weights in sums:
        column = weights[:, None]
        total = _log_ratio_by_bins(one @ column, other @ column, MARGINAL_BINS)
        yield partial(_score_sums, total, column)


def _score_sums(score: Score, weights: Floats, outputs: Floats) -> Floats:
    return score(outputs @ weights)


def _log_ratio_by_bins(one: Floats, other: Floats, bins: int) -> Score:
    """Logarithm of the ratio of frequencies in a grid of bins that are about equally full."""
    edges = [_bin_edges(np.concatenate([a, b]), bins) for a, b in zip(one.T, other.T, strict=True)]
    sizes = [len(of_one) + 1 for of_one in edges]

    def places(outputs: Floats) -> NDArray[np.intp]:
        cells = np.zeros(len(outputs), dtype=np.intp)
        for starts, values, size in zip(edges, outputs.T, sizes, strict=True):
            cells = cells * size + np.searchsorted(starts, values, side="right")
        return cells

    counts = [np.bincount(places(part), minlength=math.prod(sizes)) for part in (one, other)]
    ratio = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)

    def score(outputs: Floats) -> Floats:
        cells: Floats = ratio[places(outputs)]
        return cells

    return score


def _bin_edges(values: Floats, bins: int) -> Floats:
    """Starts of bins: quantiles; values that many draws share get bins of their own."""
    distinct, times = np.unique(values, return_counts=True)
    steps = np.arange(1, bins) * (len(values) / bins)
    quantiles = distinct[np.searchsorted(np.cumsum(times), steps)]
    common = np.argsort(times)[::-1][: bins // 4]
    shared = distinct[common[times[common] >= 8]]
    edges: Floats = np.unique(np.concatenate([quantiles, shared, np.nextafter(shared, np.inf)]))
    return edges


def best_threshold(p: Floats, q: Floats, n: int, delta: float, alpha: float) -> tuple[float, float]:
    """The bound that the best threshold would give for n draws, and the threshold.

    `p` and `q` are sorted scores; the event is a score of at least the threshold, likelier in `p`.
    """
    # From all draws down to a handful: rare events may distinguish best.
    sizes = np.geomspace(4, len(p), THRESHOLDS).astype(int)
    thresholds = np.unique(np.concatenate([p[len(p) - sizes], q[len(q) - sizes]]))
    above = [len(part) - np.searchsorted(part, thresholds) for part in (p, q)]
    promised = epsilon_bounds(above[0] * (n / len(p)), above[1] * (n / len(q)), n, delta, alpha)
    top = int(promised.argmax())
    return float(promised[top]), float(thresholds[top])


def epsilon_bounds(p: NDArray[Any], q: NDArray[Any], n: int, delta: float, alpha: float) -> Floats:
    """Lower bounds on epsilon from numbers of hits among n draws each, at error alpha in all."""
    from scipy.special import betaincinv

    # Clopper-Pearson, one-sided, half of the error each; the ends need no inversion.
    low = np.where(p > 0, betaincinv(np.maximum(p, 0.5), n - p + 1, alpha / 2), 0.0)
    high = np.where(q < n, betaincinv(q + 1, np.maximum(n - q, 0.5), 1 - alpha / 2), 1.0)
    with np.errstate(divide="ignore"):
        epsilons: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return epsilons
