"""A lower bound on epsilon from one training run, which each canary is in at random."""

from __future__ import annotations

import numpy as np

from fpbench import InputError
from fpbench.privacy import LEAST_EPSILON, check_epsilon
from fpbench_membership._checks import check_number

_STEPS = 400
"""Epsilons that are tried before the first crossing is made exact."""
_GREATEST = 40.0
_EXACT = 60


def compute_one_run_p_value(
    canaries: int, guesses: int, right: int, *, epsilon: float, delta: float = 0.0
) -> float:
    """Greatest probability that this many guesses are right, if the training is private.

    Each of m canaries is in the training data or not by a fair coin of its own; somebody who sees
    the model guesses about r of them and abstains about the others. If training is
    (epsilon, delta)-differentially private with regard to one canary, P[v or more are right] is at
    most P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i, with B binomial of r trials of
    probability e^epsilon / (1 + e^epsilon).

    Parameters
    ----------
    canaries
        m.
    guesses
        r, at most m; fixed before the truth is known.
    right
        v, at most r.
    epsilon, delta
        Of the guarantee that is tested.

    Raises
    ------
    InputError
        If numbers are not 0 <= v <= r <= m, epsilon is invalid (`fpbench.privacy.check_epsilon`),
        or delta is not in [0, 1].

    References
    ----------
    Steinke, Nasr, Jagielski. Privacy Auditing with One (1) Training Run. NeurIPS 2023, Theorem 5.2
    and appendix D.
    """
    from scipy.stats import binom

    for name, count in (("canaries", canaries), ("guesses", guesses), ("right", right)):
        check_number(name, count, 0, whole=True)
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"right, guesses, canaries: want 0 <= right <= guesses <= canaries, not {right}, "
            f"{guesses}, {canaries}"
        )
    check_epsilon(epsilon)
    check_number("delta", delta, 0, 1)
    chance = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return min(tail, 1.0)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    worst = float((below / np.arange(1, right + 1)).max())
    return min(tail + 2 * canaries * delta * worst, 1.0)


def bound_epsilon_one_run(
    canaries: int,
    guesses: int,
    right: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    steps: int = 1,
) -> float:
    """The greatest epsilon such that this many right guesses refute all below it.

    Parameters
    ----------
    canaries, guesses, right
        m, r and v of `compute_one_run_p_value`.
    delta
        The delta that is allowed.
    confidence
        Probability in (0, 1) that the bound is true.
    steps
        Number s of neighbouring data sets from a canary in to out: 2, if it is replaced and epsilon
        is for adding or removing one person. An (epsilon, delta) of one step is a (s epsilon, delta
        sum e^(j epsilon), j < s) of all of them.

    Raises
    ------
    InputError
        If a number is out of range.

    Notes
    -----
    With delta, the p-value need not grow with epsilon, so that the first epsilon is sought that is
    not refuted; bisection alone could find a later one.
    """
    check_number("confidence", confidence, 0, 1)
    check_number("delta", delta, 0, 1)
    check_number("steps", steps, 1, whole=True)
    if not 0 < confidence < 1:
        raise InputError(f"confidence: must be in (0, 1), not {confidence}")

    def refuted(epsilon: float) -> bool:
        together = delta * float(np.exp(epsilon * np.arange(steps)).sum())
        p_value = compute_one_run_p_value(
            canaries, guesses, right, epsilon=steps * epsilon, delta=min(together, 1.0)
        )
        return p_value < 1 - confidence

    tried = np.linspace(LEAST_EPSILON, _GREATEST, _STEPS + 1)
    first = next((i for i, epsilon in enumerate(tried) if not refuted(float(epsilon))), None)
    if first is None:
        return _GREATEST
    if first == 0:
        return 0.0
    low, high = float(tried[first - 1]), float(tried[first])
    for _ in range(_EXACT):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
