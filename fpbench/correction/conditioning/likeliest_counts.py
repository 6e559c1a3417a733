"""The tilt of the likeliest totals that satisfy conditions: maximum entropy under linear rows.

Each step is the projection of expected totals onto the rows, in the metric of their covariance
(Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23: least distance programming); what
is not linear is replaced by its tangent. The steps converge to the beliefs of least relative
entropy to the given ones under which expected totals satisfy the rows (Csiszar, I-divergence
geometry, 1975): given the conditions, totals are concentrated near these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Gap, RatesWithin
from fpbench.claims.counts import Condition, Part
from fpbench.correction.conditioning.tilted_people import TiltedPeople, TiltMoments

_Floats: TypeAlias = NDArray[np.float64]
LinearRow: TypeAlias = tuple[_Floats, float]
"""(J K + L,) coefficients, and the greatest value of their sum."""

_LONGEST = 3.0
"""Longest step, as a change of log-odds."""
_STEPS = 60


@dataclass(frozen=True)
class Likeliest:
    """A tilt under which expected totals satisfy conditions, or nearly."""

    tilt: _Floats
    moments: TiltMoments
    satisfied: bool
    """Whether the steps converged."""

    @property
    def log_height(self) -> float:
        """Log-probability of the expected totals under the beliefs, up to what they all share."""
        return self.moments.log_scale - float(self.tilt @ self.moments.mean)


def find_likeliest(
    people: TiltedPeople, conditions: Sequence[Condition], bounds: Sequence[LinearRow] = ()
) -> Likeliest:
    """The likeliest totals that satisfy conditions and bounds.

    `people`: whose totals. `conditions`: on counts (J, K). `bounds`: further rows over all totals.
    """
    rows = [_flatten(row.coefficients, row.most, people) for c in conditions for row in c.rows()]
    rows += bounds
    bent = [c for c in conditions if isinstance(c, RatesWithin | Gap)]
    tilt = np.zeros(people.totals)
    moments = people.moments(tilt)
    satisfied = False
    for _ in range(_STEPS):
        tangents = [row for c in bent for row in _list_tangents(c, moments.mean, people)]
        wanted = _project(tilt, moments, [*rows, *tangents])
        if wanted is None:
            break
        step = wanted - tilt
        far = float(np.abs(step).max(initial=0.0))
        step *= min(1.0, _LONGEST / max(far, 1e-300))
        tilt, length = tilt + step, float(step @ moments.covariance @ step)
        if length == 0.0:
            satisfied = True
            break
        moments = people.moments(tilt)
        if far <= _LONGEST and length < 1e-4:
            satisfied = True
            break
    return Likeliest(tilt, moments, satisfied)


def _flatten(coefficients: Sequence[Sequence[int]], most: float, people: TiltedPeople) -> LinearRow:
    flat = np.zeros(people.totals)
    own = np.asarray(coefficients, dtype=np.float64).ravel()
    flat[: len(own)] = own
    return flat, float(most)


def _project(tilt: _Floats, moments: TiltMoments, rows: Sequence[LinearRow]) -> _Floats | None:
    """The tilt of the nearest totals that satisfy rows, if totals were normal."""
    from scipy.optimize import nnls

    if not rows:
        return np.zeros_like(tilt)
    matrix, most = np.array([row for row, _ in rows]), np.array([most for _, most in rows])
    values, vectors = np.linalg.eigh(moments.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    centre = moments.mean - moments.covariance @ tilt
    slope, room = matrix @ root, most - matrix @ centre
    norms = np.linalg.norm(slope, axis=1)
    live = norms > 1e-9 * np.maximum(np.abs(matrix).max(axis=1), 1e-300)
    if not live.any():
        return np.zeros_like(tilt)
    slope, room = slope[live] / norms[live, None], room[live] / norms[live]
    # Least distance: minimise |z| with slope z <= room.
    size = max(float(np.abs(room).max()), 1.0)
    equations = np.vstack([-slope.T, -room / size])
    goal = np.zeros(len(equations))
    goal[-1] = 1.0
    try:
        multipliers, _ = nnls(equations, goal)
    except RuntimeError:
        return None
    rest = equations @ multipliers - goal
    if np.linalg.norm(rest) < 1e-10 or -rest[-1] < 1e-12:
        return None
    scaled = multipliers * size / -rest[-1]
    return np.asarray(-(matrix[live] / norms[live, None]).T @ scaled)


def _list_tangents(
    condition: RatesWithin | Gap, mean: _Floats, people: TiltedPeople
) -> list[LinearRow]:
    """Rows that agree with a comparison of rates at the expected counts, and with its slope."""
    counts = mean[: people.classes * people.groups].reshape(people.classes, people.groups)
    if isinstance(condition, Gap):
        row, value = _compare(condition, counts, condition.high, condition.low, people)
        # A gap is at least 0 here; within, it is at most 0.
        return [(-row, value - float(row @ mean))]
    rows = []
    for high, low in permutations(range(people.groups), 2):
        row, value = _compare(condition, counts, high, low, people)
        rows.append((row, float(row @ mean) - value))
    return rows


def _compare(
    condition: RatesWithin | Gap, counts: _Floats, high: int, low: int, people: TiltedPeople
) -> tuple[_Floats, float]:
    """By how much two rates differ beyond the tolerance, and the gradient by the counts."""
    tolerance = float(condition.tolerance)
    flat = np.zeros(people.totals)
    table = flat[: people.classes * people.groups].reshape(people.classes, people.groups)
    value = -tolerance if not condition.ratio else 0.0
    for group, sign in ((high, 1 - tolerance if condition.ratio else 1.0), (low, -1.0)):
        rate, slopes = _compute_rate(condition.part, counts, group)
        value += sign * rate
        for j, slope in slopes.items():
            table[j, group] += sign * slope
    return flat, value


def _compute_rate(part: Part, counts: _Floats, group: int) -> tuple[float, dict[int, float]]:
    positives = float(counts[list(part.positive), group].sum())
    members = max(positives + float(counts[list(part.negative), group].sum()), 1e-9)
    rate = positives / members
    slopes = dict.fromkeys(part.positive, (1 - rate) / members)
    return rate, slopes | dict.fromkeys(part.negative, -rate / members)
