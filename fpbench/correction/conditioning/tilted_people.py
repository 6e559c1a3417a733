"""Tilted beliefs about people, and the moments of the totals that conditions are about.

A *tilt* multiplies the probability that a person belongs to a group by a factor of the person's
class and the group, and divides by the sum: the maximum-entropy beliefs under which totals expect a
value. Totals are the counts of every class and group, and weighted sums over people of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]

_LONGEST = 3.0
"""Longest step of a tilt, as a change of log-odds: moments are those of where it starts."""
_MATCHED = 1e-4
"""Tolerance, in people, of matching expected totals."""


@dataclass(frozen=True)
class WeightedSum:
    """A sum of coefficients over the people of one group."""

    group: int
    coefficients: _Floats
    """(n,)."""


@dataclass(frozen=True)
class TiltMoments:
    """Moments of the totals under a tilt: J K counts, class after class, and then L sums."""

    mean: _Floats
    """(J K + L,)."""
    covariance: _Floats
    """(J K + L, J K + L)."""
    skew: _Floats
    """(J K + L,) third central moments over variances, of counts; 0 of sums."""
    log_scale: float
    """Log of the expected factor of the tilt, under the beliefs."""


class TiltedPeople:
    """Independent people of some classes and their beliefs."""

    def __init__(
        self,
        beliefs: _Floats,
        members: NDArray[np.int8],
        classes: int,
        sums: Sequence[WeightedSum] = (),
    ) -> None:
        self.classes, self.groups, self.sums = classes, beliefs.shape[1], tuple(sums)
        self.rows = [np.flatnonzero(members == j) for j in range(classes)]
        with np.errstate(divide="ignore"):
            self._logs = [np.log(beliefs[rows]) for rows in self.rows]
        self._coefficients = [[one.coefficients[rows] for one in self.sums] for rows in self.rows]
        self.sizes = np.array([len(rows) for rows in self.rows])
        possible = [beliefs[rows] > 0 for rows in self.rows]
        self.most = np.array([p.sum(axis=0) for p in possible]).reshape(classes, self.groups)
        """(J, K) greatest counts."""
        self.least = np.array(
            [(p & (p.sum(axis=1, keepdims=True) == 1)).sum(axis=0) for p in possible]
        ).reshape(classes, self.groups)
        """(J, K) least counts: the people whose group is certain."""

    @property
    def totals(self) -> int:
        """J K + L."""
        return int(self.classes * self.groups + len(self.sums))

    def beliefs(self, tilt: _Floats) -> list[_Floats]:
        """(n_j, K) tilted beliefs of every class."""
        return [self._tilt_class(j, tilt)[0] for j in range(self.classes)]

    def moments(self, tilt: _Floats) -> TiltMoments:
        """Moments under a tilt (J K + L,)."""
        size, k = self.totals, self.groups
        mean, covariance, third = np.zeros(size), np.zeros((size, size)), np.zeros(size)
        log_scale = 0.0
        for j in range(self.classes):
            q, log_class = self._tilt_class(j, tilt)
            log_scale += log_class
            own = slice(j * k, (j + 1) * k)
            mean[own] = q.sum(axis=0)
            covariance[own, own] = np.diag(mean[own]) - q.T @ q
            third[own] = (q * (1 - q) * (1 - 2 * q)).sum(axis=0)
            self._add_sums(j, q, mean, covariance)
        variance = np.diag(covariance)
        skew = np.divide(third, variance, where=variance > 1e-12, out=np.zeros(size))
        return TiltMoments(mean, covariance, skew, log_scale)

    def _add_sums(self, j: int, q: _Floats, mean: _Floats, covariance: _Floats) -> None:
        first, k = self.classes * self.groups, self.groups
        for r, one in enumerate(self.sums):
            own, coefficients = q[:, one.group], self._coefficients[j][r]
            mean[first + r] += coefficients @ own
            shared = -(coefficients * own) @ q
            shared[one.group] += coefficients @ own
            covariance[first + r, j * k : (j + 1) * k] += shared
            covariance[j * k : (j + 1) * k, first + r] += shared
            for s, other in enumerate(self.sums):
                both = coefficients * self._coefficients[j][s]
                covariance[first + r, first + s] -= both @ (own * q[:, other.group])
                if other.group == one.group:
                    covariance[first + r, first + s] += both @ own

    def _tilt_class(self, j: int, tilt: _Floats) -> tuple[_Floats, float]:
        k = self.groups
        logs = self._logs[j] + tilt[j * k : (j + 1) * k]
        for r, one in enumerate(self.sums):
            logs[:, one.group] += tilt[self.classes * k + r] * self._coefficients[j][r]
        if not len(logs):
            return logs, 0.0
        top = logs.max(axis=1, keepdims=True)
        logs -= top
        q = np.exp(logs, out=logs)
        scale = q.sum(axis=1, keepdims=True)
        q /= scale
        return q, float(top.sum() + np.log(scale).sum())

    def match(self, wanted: _Floats, start: _Floats) -> _Floats:
        """The tilt under which totals have the wanted expectation, by Newton's method.

        `wanted`: (J K + L,) totals; those that cannot be are moved to the nearest that can.
        `start`: (J K + L,) tilt to start from.
        """
        counts = self.classes * self.groups
        slack = np.minimum(1e-6, (self.most - self.least) / 2).ravel()
        target = wanted.copy()
        target[:counts] = np.clip(
            wanted[:counts], self.least.ravel() + slack, self.most.ravel() - slack
        )
        # Of a class, counts sum to its people.
        tilt, moments = start, self.moments(start)
        value = moments.log_scale - tilt @ target
        for _ in range(60):
            missing = target - moments.mean
            if np.abs(missing).max() < _MATCHED:
                break
            step = solve_semidefinite(moments.covariance, missing)
            step *= min(1.0, _LONGEST / max(np.abs(self._spread(step)), 1e-300))
            for _ in range(12):
                after = self.moments(tilt + step)
                lower = after.log_scale - (tilt + step) @ target
                if lower <= value + 1e-9 * abs(value):
                    break
                step = step / 2
            tilt, moments, value = tilt + step, after, lower
        return tilt

    def _spread(self, step: _Floats) -> float:
        """Greatest change of log-odds by a step."""
        counts = step[: self.classes * self.groups].reshape(self.classes, self.groups)
        greatest = float(np.ptp(counts, axis=1).max())
        for r, one in enumerate(self.sums):
            change = step[self.classes * self.groups + r]
            greatest += float(abs(change) * np.abs(one.coefficients).max())
        return greatest


def solve_semidefinite(matrix: _Floats, right: _Floats) -> _Floats:
    """A solution of a system whose matrix is positive and may be singular, after scaling."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    wide = values > 1e-11 * max(float(values.max(initial=0.0)), 1e-300)
    inner = vectors[:, wide].T @ (right / scale)
    return np.asarray((vectors[:, wide] @ (inner / values[wide])) / scale)
