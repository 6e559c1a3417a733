r"""Upper bounds on what a disclosure about groups adds to anybody's expected accuracy.

The *leak* of a disclosure is the expected rise of the accuracy of the best guess. Any disclosure
has some information I, in nats, about n people's groups: at most the logarithm of the number of its
possible values. If groups are independent given all that is seen before, the information about
single people adds up to at most I, and so the leak is at most (h is the binary
entropy in nats, m_i the greatest belief about person i, e the expected error without the
disclosure)

    limit_leak(beliefs, I)  <=  limit_leak_by_error(e, I, n)  <=  sqrt(e I / n)

The first is valid for exact beliefs; the second for the error e of any guess without the
disclosure. Proofs, and what may not be concluded, are in `docs/limits.md`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value, to_floats
from fpbench.base.errors import InputError
from fpbench.components.beliefs import check_beliefs, name_likeliest

_Floats = NDArray[np.floating[Any]]

_SAMPLE = 50_000
"""About as many people are sampled to choose the price of a nat, and the t of a realised gain."""
_NEWTON_STEPS = 5
"""Newton steps: the start is off by 1 % at most, and each step squares the error."""
_ROUNDED = 1e-12
"""Relative amount by which an advantage is rounded up,"""
_LAST_BITS = 1e-15
"""and absolute amount, more than the cancellation in a small one."""
_ROUNDING = 1e-9
"""Nats below 0 that are an error of rounding: an entropy in floats may be -1e-16."""
_LEAST = np.finfo(np.float64).tiny
"""Stands for 0 in logarithms."""
_LOG_PRICES = (-6.5, 30.0)
"""Logarithms of the least and the greatest price of a nat, in people, that are tried."""


@check_arguments
def limit_leak(
    beliefs: ArrayLike, nats: float, *, household_sizes: ArrayLike | None = None
) -> float:
    """The greatest leak of a disclosure to an adversary whose beliefs are exact.

    Calibrated beliefs that treat different people alike are not exact, and their limit can be
    exceeded: print it as "if these beliefs are exact"; `limit_leak_by_error` needs no such
    condition.

    Parameters
    ----------
    beliefs
        (n, K) probability of each group, of each person, before the disclosure.
    nats
        Greatest information of the disclosure about the groups, in nats: bits times ln 2; at most
        the entropy of what is disclosed. Not -ln of the probability of what *was* disclosed: that
        goes into `limit_realised_gain`.
    household_sizes
        (n,) number of people whose groups depend on each other, the person included; 1 by default.
        Households are independent of each other.

    Returns
    -------
    float
        A share of the n people.

    Raises
    ------
    InputError
        If beliefs are not probabilities, sizes are below 1, or nats are negative or not a number.

    Notes
    -----
    Two groups: mean (q - m_i)+ where the q in [1/2, 1] solves sum_i (h(m_i) - h(q))+ = I, the
    reverse water-filling of rate-distortion theory (Cover & Thomas, Elements of Information
    Theory, 10.3). K groups: the concave envelope of max p + mu H(p) in closed form (Erokhin,
    1958), mu the price of a nat; every mu gives a valid limit, and the best is found by bisection.
    """
    chances = check_beliefs(beliefs)
    sizes = _check_sizes(household_sizes, len(chances))
    nats = _check_nats(nats)
    if chances.shape[1] == 2 and (sizes == 1).all():
        return _fill_water(name_likeliest(chances)[1], nats)
    # One row a group: NumPy is several times as fast along long rows as along short ones.
    ordered = np.sort(chances, axis=1).T[::-1].copy()
    surprise = -_compute_x_log_x(ordered).cumsum(axis=0)
    entropy = surprise[-1]
    if nats >= (entropy / sizes).sum():
        return float(1 - ordered[0].mean())
    rows = _sample_evenly(ordered[0])
    some = (ordered.take(rows, axis=1), surprise.take(rows, axis=1), sizes[rows % len(sizes)])
    price = _find_price(*some, nats * len(rows) / len(chances))
    gain, information = _spend(ordered, surprise, price / sizes)
    limit = (gain.sum() + price * (nats - (information / sizes).sum())) / len(gain)
    return float(min(max(limit, 0.0), 1 - ordered[0].mean()))


@check_arguments
def limit_leak_by_error(error: float, nats: float, people: int, groups: int = 2) -> float:
    """The greatest leak of a disclosure, given the error of a guess without it.

    It rises with the error, so the error of any guess without the disclosure may replace that of
    the best one.

    Parameters
    ----------
    error
        Expected share of people guessed wrong, in [0, 1].
    nats
        Greatest information of the disclosure about the groups, in nats; see `limit_leak`.
    people
        n, at least 1.
    groups
        K, at least 2.

    Returns
    -------
    float
        A share of the people, at most the error.

    Raises
    ------
    InputError
        If a number is out of range.

    Notes
    -----
    Two groups: 2 e (q - 1/2) with h(q) = ln 2 - I / (2 n e): the worst case is 2 n e people about
    whom nothing is known and others who are certain. More groups: sqrt(e I / n), which is proven
    for any number of groups.
    """
    nats = _check_nats(nats)
    if not 0 <= error <= 1:
        raise InputError(f"error must be a share in [0, 1], not {show_value(error)}")
    if people < 1 or groups < 2:
        raise InputError(
            f"people must be at least 1 and groups 2, not {show_value(people)} "
            f"and {show_value(groups)}"
        )
    return float(
        limit_leaks_by_error(*(np.array([one]) for one in (error, nats, people, groups)))[0]
    )


def limit_leaks_by_error(
    errors: _Floats, nats: _Floats, people: _Floats, groups: _Floats
) -> NDArray[np.float64]:
    """`limit_leak_by_error` of each of many disclosures.

    `errors`, `nats`, `people`, `groups`: (m,) each; NaN where unknown, and so is the limit.
    """
    groups = np.asarray(groups)
    # Two groups leave no guess worse than one half.
    capped = np.where(groups == 2, np.minimum(errors, 0.5), errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(capped > 0, nats / (2 * people * capped), np.inf)
    shares = np.sqrt(2 * each)
    binary = groups == 2
    shares[binary] = _find_advantage(each[binary])
    with np.errstate(invalid="ignore"):  # 0 people have an infinite share
        limits = np.minimum(np.where(capped > 0, capped * shares, 0.0), capped)
    limits[np.isnan(nats + people + groups)] = np.nan
    return np.asarray(limits, np.float64)


def _find_advantage(nats: _Floats) -> _Floats:
    """The x in [0, 1] with ln 2 - h((1 + x) / 2) = nats, rounded up; NaN for NaN.

    Newton's method from above: the left side is convex in x, so that no step passes the root. It
    starts where h(q) <= ln 2 (4 q (1 - q))^(1 / ln 4) puts the root at most (Topsoe, Bounds for
    entropy and divergence for distributions over a two-element set, JIPAM 2, 2001).
    """
    shares = np.where(np.isnan(nats), np.nan, 1.0)
    with np.errstate(invalid="ignore"):
        places = np.flatnonzero((nats >= 0) & (nats < math.log(2)))
    wanted = nats[places]
    x = np.sqrt(-np.expm1(math.log(4) * np.log1p(-wanted / math.log(2))))
    inside = (x > 0) & (x < 1)
    wanted, root = wanted[inside], x[inside]
    for _ in range(_NEWTON_STEPS):
        spent = ((1 + root) * np.log1p(root) + (1 - root) * np.log1p(-root)) / 2
        root = root - np.maximum(spent - wanted, 0) / np.arctanh(root)
    x[inside] = np.minimum(root * (1 + _ROUNDED) + _LAST_BITS, 1.0)
    shares[places] = x
    return shares


@check_arguments
def limit_realised_gain(
    beliefs: ArrayLike,
    nats: float,
    *,
    delta: float = 1.0,
    household_sizes: ArrayLike | None = None,
) -> float:
    """The greatest gain over the best guess, given what *was* disclosed.

    With probability 1 - delta over the groups and the disclosure, no guess from the disclosure
    exceeds the accuracy of the best guess without it by more than this. With delta = 1 it limits
    the *expected* gain given the disclosure.

    Parameters
    ----------
    beliefs
        (n, K) exact probability of each group before the disclosure.
    nats
        -ln of the probability that exactly this was disclosed (`claim_bits` times ln 2); the
        logarithm of the number of possible values does, too.
    delta
        Probability with which the limit may be exceeded, in (0, 1].
    household_sizes
        (n,) people whose groups depend on each other's; see `limit_leak`.

    Returns
    -------
    float
        A share of the n people, at most 1.

    Raises
    ------
    InputError
        As `limit_leak`, or if delta is not in (0, 1].

    Notes
    -----
    min over t > 0 of (L + ln 1/delta + sum_i (ln((1 - m_i) e^t + m_i e^-t))+) / (t n), L the nats:
    Chernoff's bound for the people whose guess changed, and a union over disclosures. Dependent
    people enter by Hoelder's inequality. Any t gives a valid limit.
    """
    from scipy.optimize import minimize_scalar

    chances = check_beliefs(beliefs)
    sizes = _check_sizes(household_sizes, len(chances))
    nats = _check_nats(nats)
    if not 0 < delta <= 1:
        raise InputError(f"delta must be above 0 and at most 1, not {show_value(delta)}")
    unsure = chances.max(axis=1) < 1
    if not unsure.any():
        return 0.0
    most, people = chances.max(axis=1)[unsure], len(chances)
    sizes = np.broadcast_to(sizes, people)[unsure]

    def limit(log_t: float, rows: NDArray[np.intp] | slice = slice(None)) -> float:
        size = sizes[rows]
        t = size * math.exp(log_t)
        moments = np.logaddexp(np.log1p(-most[rows]) + t, np.log(most[rows]) - t)
        gains = (np.maximum(moments, 0) / size).sum() * (len(most) / len(size))
        return float((nats - math.log(delta) + gains) / (math.exp(log_t) * people))

    rows = _sample_evenly(most)
    grid = np.linspace(-7, 4, 23)
    best = int(np.argmin([limit(log_t, rows) for log_t in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    refined = minimize_scalar(limit, bounds=around, args=(rows,), method="bounded")
    return min(limit(float(refined.x)), limit(float(grid[best])), 1.0)


def _fill_water(most: _Floats, nats: float) -> float:
    """Two groups: the mean of (q - m)+ at the level q that spends all nats."""
    from scipy.special import entr

    level = np.sort(most)
    entropies = entr(level) + entr(1 - level)
    total = np.cumsum(entropies)
    if nats >= total[-1]:
        return float(1 - level.mean())
    spent = total - np.arange(1, len(level) + 1) * entropies
    raised = int(np.searchsorted(spent, nats, side="right"))
    entropy = (total[raised - 1] - nats) / raised
    lowest = float(level[raised - 1])
    q = _find_upper_root(entropy, lowest) if entropy < entropies[raised - 1] else lowest
    return max(float(raised * q - level[:raised].sum()), 0.0) / len(level)


def _find_upper_root(entropy: float, least: float) -> float:
    """The q in [least, 1] whose binary entropy is this one, rounded up."""
    from scipy.optimize import brentq
    from scipy.special import entr

    def miss(q: float) -> float:
        return float(entr(q) + entr(1 - q)) - entropy

    if miss(least) <= 0:
        return least
    return float(min(brentq(miss, least, 1.0, xtol=1e-15, rtol=1e-15) + 1e-15, 1.0))


def _sample_evenly(most: _Floats) -> NDArray[np.intp]:
    """Rows of a sample that is spread evenly over the beliefs.

    It serves to find the price, or the t, of a limit: any gives a valid limit, and near the best
    one limits hardly differ.
    """
    return np.argsort(most, kind="stable")[:: max(len(most) // _SAMPLE, 1)]


def _find_price(ordered: _Floats, surprise: _Floats, sizes: _Floats, nats: float) -> float:
    """The price of a nat, in people, at which all nats are spent."""
    from scipy.optimize import brentq

    def miss(log_price: float) -> float:
        information = _spend(ordered, surprise, math.exp(log_price) / sizes)[1]
        return float((information / sizes).sum()) - nats

    low, high = _LOG_PRICES
    if miss(low) <= 0 or miss(high) >= 0:
        return math.exp(low if miss(low) <= 0 else high)
    return math.exp(brentq(miss, low, high, xtol=1e-9))


def _spend(ordered: _Floats, surprise: _Floats, price: _Floats) -> tuple[_Floats, _Floats]:
    """Gain and information (n,) of each person at the price of a nat in people, (n,) or (1,).

    `ordered` are beliefs (K, n), greatest first, and `surprise` is the sum of -p ln p up to each.
    """
    # If r groups are distinguished, the odds of a wrong guess are this share of the right one's.
    wrong = np.exp(-1 / price)
    right = ordered.cumsum(axis=0) / (1 + np.multiply.outer(np.arange(len(ordered)), wrong))
    # Groups that are less likely than what is left for a wrong guess are never guessed.
    floor = right * wrong
    last = (ordered[1:] > floor[:-1]).sum(axis=0)
    chosen = last, np.arange(len(last))
    right, floor = right[chosen], floor[chosen]
    information = surprise[chosen] + _compute_x_log_x(right) + last * _compute_x_log_x(floor)
    return np.maximum(right - ordered[0], 0), np.maximum(information, 0)


def _compute_x_log_x(values: _Floats) -> _Floats:
    return np.asarray(values * np.log(np.maximum(values, _LEAST)))


def _check_sizes(sizes: ArrayLike | None, people: int) -> _Floats:
    """(n,) sizes of households, or (1,) if everybody is alone."""
    if sizes is None:
        return np.ones(1)
    checked = to_floats("household_sizes", sizes)
    if checked.shape != (people,) or not (checked >= 1).all():
        raise InputError(f"household sizes must be ({people},) numbers of at least 1")
    return checked


def _check_nats(nats: float) -> float:
    if not -_ROUNDING <= nats < math.inf:
        raise InputError(f"nats must be at least 0 and finite, not {show_value(nats)}")
    return max(float(nats), 0.0)
