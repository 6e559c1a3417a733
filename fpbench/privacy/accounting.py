"""Conversions between Gaussian noise, on samples too, zCDP, and (epsilon, delta)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_whole_number, show_value, to_python_number
from fpbench.base.errors import InputError, suggest_name
from fpbench.components.guarantee import check_epsilon

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@check_arguments
def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """The least delta for which Gaussian noise gives (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon
        At least 0.
    sigma
        Standard deviation of the noise.
    sensitivity
        L2 sensitivity of the answers that noise is added to.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Phi(D / 2s - es / D) - exp(e) Phi(-D / 2s - es / D): Balle & Wang, Improving the Gaussian
    Mechanism for Differential Privacy, ICML 2018, Theorem 8. Both terms share the factor
    exp(-z^2 / 2), z the first argument; taken out, neither overflows and little cancels.
    """
    from scipy.special import erfcx, ndtr

    epsilon = _check("epsilon", epsilon, zero=True)
    mu = 1 / _compute_multiplier(sigma, sensitivity)
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    common = math.exp(-near * near / 2) / 2
    above = common * erfcx(near / math.sqrt(2)) if near > 0 else ndtr(-near)
    return float(above - common * erfcx(far / math.sqrt(2)))


@check_arguments
def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """The least epsilon of Gaussian noise at this delta; the inverse of `gaussian_delta`.

    It is 0 if the releases of neighbours differ by no more than delta anyway.

    Parameters
    ----------
    sigma
        Standard deviation of the noise.
    delta
        Above 0 and below 1.
    sensitivity
        Of the answers, in the L2 norm.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    delta = _check("delta", delta, below=1)
    _compute_multiplier(sigma, sensitivity)
    if gaussian_delta(0, sigma, sensitivity) <= delta:
        return 0.0
    return _find_least(lambda epsilon: gaussian_delta(epsilon, sigma, sensitivity) <= delta)


@check_arguments
@lru_cache(maxsize=4096)
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The least standard deviation for (epsilon, delta): the analytic calibration.

    Parameters
    ----------
    epsilon
        At least 1e-9.
    delta
        Above 0 and below 1.
    sensitivity
        Of the answers, in the L2 norm.

    Raises
    ------
    InputError
        If a parameter is out of range.

    References
    ----------
    Balle & Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018.
    """
    check_epsilon(epsilon)
    delta = _check("delta", delta, below=1)
    _compute_multiplier(1.0, sensitivity)
    return sensitivity * _find_least(lambda sigma: gaussian_delta(epsilon, sigma) <= delta)


@check_arguments
def compose_gaussians(sigmas: Iterable[float]) -> float:
    """The standard deviation of one Gaussian release that reveals as much as several together.

    Each sigma is relative to the L2 sensitivity of its release, and so is the answer; it is exact
    (Dong, Roth & Su, Gaussian Differential Privacy, JRSS B 2022, Corollary 3.3).

    Parameters
    ----------
    sigmas
        Standard deviation of each release, over its sensitivity.

    Raises
    ------
    InputError
        If there is none, or one is not positive.
    """
    total = math.fsum(1 / _compute_multiplier(sigma, 1.0) ** 2 for sigma in sigmas)
    if not total:
        raise InputError("sigmas must not be empty: give at least one")
    return 1 / math.sqrt(total)


@check_arguments
def gaussian_rho(sigma: float, sensitivity: float = 1.0) -> float:
    """Rho of Gaussian noise, continuous or discrete: D^2 / 2 s^2 (Bun & Steinke 2016).

    Parameters
    ----------
    sigma
        Standard deviation of the noise.
    sensitivity
        Of the answers, in the L2 norm.
    """
    return 1 / (2 * _compute_multiplier(sigma, sensitivity) ** 2)


@check_arguments
def rho_to_delta(rho: float, epsilon: float) -> float:
    """The delta that zero-concentrated differential privacy has at this epsilon.

    The least over a > 1 of exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1): Canonne, Kamath
    & Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020, Corollary 13. Any a
    gives a valid delta, so the search need not be perfect to be safe.

    Parameters
    ----------
    rho
        At least 0.
    epsilon
        At least 0.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    rho, epsilon = _check("rho", rho), _check("epsilon", epsilon, zero=True)

    if epsilon / rho > 1e300:  # far below any float, and b would be above all
        return 0.0

    def log_share(b: float) -> float:
        return math.log(b) - math.log1p(b)  # of 1 - 1/a, where b = a - 1

    # The logarithm is convex in b: its derivative rises from minus infinity.
    b = _find_least(lambda b: b > 0 and (1 + 2 * b) * rho - epsilon + log_share(b) >= 0)
    log_delta = b * ((1 + b) * rho - epsilon) - math.log(b) + (1 + b) * log_share(b)
    return math.exp(min(log_delta, 0.0))


@check_arguments
def rho_to_epsilon(
    rho: float, delta: float, conversion: Literal["optimal", "classic"] = "optimal"
) -> float:
    """The epsilon that zero-concentrated differential privacy has at this delta.

    Parameters
    ----------
    rho
        Of the release, or of several: rhos add up.
    delta
        Above 0 and below 1.
    conversion
        `optimal`, see `rho_to_delta`; or `classic`: rho + 2 sqrt(rho ln(1 / delta)) (Bun &
        Steinke 2016, Proposition 1.3), never better.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    rho, delta = _check("rho", rho), _check("delta", delta, below=1)
    if conversion == "classic":
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))
    if conversion != "optimal":
        raise InputError(
            f"unknown conversion {conversion!r}; {suggest_name(conversion, ('optimal', 'classic'))}"
        )
    if rho_to_delta(rho, 0) <= delta:
        return 0.0
    return _find_least(lambda epsilon: rho_to_delta(rho, epsilon) <= delta)


@check_arguments
@lru_cache(maxsize=4096)
def epsilon_to_rho(epsilon: float, delta: float) -> float:
    """The greatest rho that has this epsilon at this delta; the inverse of `rho_to_epsilon`.

    Parameters
    ----------
    epsilon
        At least 1e-9.
    delta
        Above 0 and below 1.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_epsilon(epsilon)
    if epsilon > 1e300:
        raise InputError(f"epsilon must be at most 1e300, not {show_value(epsilon)}")
    delta = _check("delta", delta, below=1)
    return 1 / _find_least(lambda inverse: rho_to_delta(1 / inverse, epsilon) <= delta)


@check_arguments
def sampled_gaussian_epsilon(share: float, sigma: float, steps: int, delta: float) -> float:
    """An epsilon of Gaussian noise on sums over Poisson samples of the people, in several steps.

    It holds if anybody is added or removed. It is by Renyi divergences of whole orders: of usual
    trainings 8 to 30 % above what numerical composition gives, of single steps up to several times.

    Parameters
    ----------
    share
        Probability that a person is in the sample of a step; each person is drawn apart.
    sigma
        Standard deviation of the noise of a step, over the L2 sensitivity of its sum.
    steps
        Number of steps; later ones may depend on earlier results.
    delta
        Above 0 and below 1.

    Raises
    ------
    InputError
        If a parameter is out of range.

    References
    ----------
    Mironov, Talwar & Zhang, Renyi Differential Privacy of the Sampled Gaussian Mechanism, 2019,
    section 3.3; converted by Canonne, Kamath & Steinke, NeurIPS 2020, Proposition 12.
    """
    import numpy as np

    share = _check("share", share, below=math.nextafter(1, 2))
    sigma, delta = _check("sigma", sigma), _check("delta", delta, below=1)
    check_whole_number("steps", steps, 1)
    orders = _list_terms(share)[0]
    epsilons = steps * _measure_renyi(share, sigma) + np.log1p(-1 / orders)
    epsilons -= (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(epsilons.min()))


@check_arguments
@lru_cache(maxsize=4096)
def sampled_gaussian_sigma(epsilon: float, delta: float, share: float, steps: int) -> float:
    """The least sigma for which `sampled_gaussian_epsilon` is at most epsilon.

    Parameters
    ----------
    epsilon
        Above what the Renyi orders up to 4,000 can show at this delta: 0.01 always suffices.
    delta
        At least 1e-20, and below 1.
    share, steps
        As in `sampled_gaussian_epsilon`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_epsilon(epsilon)
    least = sampled_gaussian_epsilon(share, 1e12, steps, delta)
    if epsilon <= least:
        raise InputError(
            f"epsilon must be above {least:.3g}, which is as little as this accounting can show "
            f"at delta = {delta:g}, not {show_value(epsilon)}"
        )
    return _find_least(lambda s: sampled_gaussian_epsilon(share, s, steps, delta) <= epsilon)


def _measure_renyi(share: float, sigma: float) -> NDArray[np.float64]:
    """Renyi divergences of one step: log(sum_k B(k) exp(k (k - 1) / 2 s^2)) / (order - 1).

    B are the probabilities of Binomial(order, share). They add up to 1, so the logarithm is that of
    1 + sum_k B(k) expm1(...), in which nothing cancels.
    """
    import numpy as np

    orders, starts, pairs, chances = _list_terms(share)
    with np.errstate(divide="ignore", over="ignore"):
        gains = np.minimum(pairs / sigma / sigma, sys.float_info.max)
        logs = np.log(-np.expm1(-gains)) + gains + chances
        most = np.maximum(np.maximum.reduceat(logs, starts), -sys.float_info.max)
        sums = np.add.reduceat(np.exp(logs - np.repeat(most, orders - 1)), starts)
        return np.asarray(np.logaddexp(0.0, most + np.log(sums)) / (orders - 1))


@lru_cache(maxsize=16)
def _list_terms(share: float) -> tuple[NDArray[Any], ...]:
    """Orders, from 2 to 3,855; starts of their terms k = 2 to order; k (k - 1) / 2; logs of B."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    orders = np.array([*range(2, 64), *(round(64 * 1.1**i) for i in range(44))])
    k = np.concatenate([np.arange(2.0, order + 1) for order in orders])
    order = np.repeat(orders, orders - 1)
    chances = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    chances += xlogy(k, share) + xlog1py(order - k, -share)
    return orders, np.cumsum(orders - 1) - orders + 1, k * (k - 1) / 2, chances


def _compute_multiplier(sigma: float, sensitivity: float) -> float:
    return _check("sigma", sigma) / _check("sensitivity", sensitivity)


def _check(name: str, value: Any, *, zero: bool = False, below: float = math.inf) -> float:
    """A number above 0, or at least 0, and below another, as a float."""
    number = to_python_number(value, name)
    if not (0 < number <= sys.float_info.max or (zero and number == 0)) or number >= below:
        least, most = "at least" if zero else "above", "below" if below <= 1 else "at most"
        end = "finite" if below == math.inf else f"{most} {below:g}"
        raise InputError(f"{name} must be {least} 0 and {end}, not {show_value(value)}")
    return float(number)


def _find_least(enough: Callable[[float], bool]) -> float:
    """The least positive number that is enough, rounded up; `enough` must turn true once."""
    low, high = 1.0, 1.0
    while enough(low):
        low /= 4
    while not enough(high):
        high *= 4
    # Down to neighbouring floats; the middle of widely different ends is the geometric one.
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high and high / low > 1 + 1e-15:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
