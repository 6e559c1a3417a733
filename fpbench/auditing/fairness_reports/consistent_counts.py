"""Noisy numbers of people made consistent: whole, at least 0, and sums of each other.

The nearest real numbers are found first, on the dual of least squares; then whole numbers beside
them that keep all sums, by a program in whole numbers. Both see noisy numbers and public sizes
only, so they cost no privacy.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, minimize
from scipy.sparse import diags_array

from fpbench.auditing.fairness_reports.exact_blocks import WHOLE
from fpbench.auditing.fairness_reports.sums_of_counts import Sums
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Floats
from fpbench.privacy.consistent_counts import project_counts

_ROUNDS = 400
"""Most steps to the nearest real numbers."""
_NEAR = 1e-2
"""How far scaled sums may be off before numbers are made whole."""
_UNMEASURED = 1e-2
"""Weight of numbers that were not measured, beside 1 of those that were."""
_WIDER = (0, 1, 3, 10, 100, np.inf)
"""How far beside the nearest two whole numbers are looked for, until some keep all sums."""
_SECONDS = 30.0
"""Limit of each look."""


def make_consistent(sums: Sums, answers: Floats) -> Floats:
    """(A, K) whole numbers near noisy ones, which keep all sums.

    Parameters
    ----------
    sums
        Which numbers are sums of which; the first A are measured.
    answers
        (A, K) noisy numbers.

    Raises
    ------
    InputError
        If none are found in time, of very many tables.
    """
    measured = len(answers)
    near = _project(sums, answers)
    whole = _round(sums, near)
    return whole[:measured]


def _project(sums: Sums, answers: Floats) -> Floats:
    """(A + others, K) the nearest numbers of at least 0 that keep all sums, about."""
    m, k = sums.matrix, answers.shape[1]
    weight = np.full(len(sums.total), _UNMEASURED)
    weight[: len(answers)] = 1
    share = np.maximum(answers, 0).sum(axis=0) + 1
    x = sums.total[:, None] * (share / share.sum())
    x[: len(answers)] = answers
    # The dual has no constraints: the nearest histograms to shifted answers, for multipliers of
    # the sums. They are scaled, so that all curve alike.
    scale = 1 / np.sqrt(abs(m) @ (1 / weight))
    rows = diags_array(scale) @ m
    back = (diags_array(1 / weight) @ rows.T).tocsr()

    def descend(multipliers: Floats) -> tuple[float, Floats]:
        shift = back @ multipliers.reshape(-1, k)
        z = project_counts(x - shift, sums.total)
        off = rows @ z
        value = 0.5 * (weight[:, None] * (z - x) ** 2).sum() + (weight[:, None] * shift * z).sum()
        return -float(value), -off.ravel()

    start = np.zeros(m.shape[0] * k)
    options = {"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS, "maxcor": 20, "gtol": _NEAR, "ftol": 0.0}
    optimum = minimize(descend, start, jac=True, method="L-BFGS-B", options=options)
    return project_counts(x - back @ optimum.x.reshape(-1, k), sums.total)


def _round(sums: Sums, near: Floats) -> Floats:
    """Whole numbers beside real ones that keep all sums, one group after the other."""
    left, whole = sums.total.copy(), np.empty(near.shape)
    none = np.zeros(sums.matrix.shape[0])
    keep = LinearConstraint(sums.matrix, none, none)
    for group in range(near.shape[1] - 1):
        values = np.minimum(near[:, group], left)
        below = np.floor(values + WHOLE)
        cost = 1 - 2 * (values - below)  # of the upper of two whole numbers, beside the lower
        for wider in _WIDER:
            rounding = milp(
                np.where(cost == 0, WHOLE, cost), integrality=np.ones(len(values)),
                bounds=Bounds(np.maximum(below - wider, 0), np.minimum(below + 1 + wider, left)),
                constraints=keep, options={"time_limit": _SECONDS, "mip_rel_gap": 1.0},
            )  # fmt: skip
            if rounding.x is not None:
                break
        else:
            raise InputError(
                "consistent: no whole numbers that keep all sums were found in time; publish fewer "
                "tables"
            )
        whole[:, group] = np.rint(rounding.x)
        left -= whole[:, group]
    whole[:, -1] = left
    return whole
