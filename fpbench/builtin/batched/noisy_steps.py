"""Many models trained at once by noisy sums of shortened gradients over samples (DP-SGD)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.builtin.batched.logistic import logistic_proba
from fpbench.builtin.batched.mlp import (
    Adam,
    Networks,
    apply_sigmoid,
    limit_lengths,
    sum_gradients,
)

_Floats = NDArray[np.float64]

_AT_ONCE = 1 << 18
"""Features of the samples of models that are trained together (2 MB)."""


@dataclass(frozen=True)
class NoisyTraining:
    """How models are trained with differential privacy: DP-SGD.

    In each step everybody is in a model's sample with probability `share`, each by a draw of their
    own (a Poisson sample). The gradients of the sample are shortened to `clip` and added up, with
    Gaussian noise of standard deviation sigma times `clip`. Adam moves the parameters by these
    sums: it takes the same steps for any multiple of them, so that the number of people, which
    is private, is not needed.

    Attributes
    ----------
    steps
        Number of steps, at least 1.
    share
        Above 0 and at most 1.
    clip
        Greatest length of a person's gradient; infinite without noise.
    sigma
        Standard deviation of the noise over `clip`; 0 for no noise.
    rate
        Learning rate of Adam.
    hidden
        Units of the two hidden layers of networks; None for logistic regression.
    """

    steps: int
    share: float
    clip: float
    sigma: float
    rate: float
    hidden: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        fine = 0 < self.share <= 1 and min(self.clip, self.rate) > 0 and self.sigma >= 0
        if not fine or self.steps < 1 or (self.sigma and self.clip == math.inf):
            raise InputError(
                f"needs steps of at least 1, a share above 0 and at most 1, a positive rate and "
                f"clip, and for noise a finite clip: {self}"
            )

    def fit(
        self,
        design: _Floats,
        labels: _Floats,
        groups: Sequence[NDArray[np.intp]],
        rngs: Sequence[np.random.Generator],
    ) -> _Floats:
        """Parameters (B, parameters) of B models, each trained on its own rows.

        Parameters
        ----------
        design, labels
            (n, d), the last column of ones, and (n,) in {0, 1}: everybody. A subclass may take
            more columns of labels.
        groups
            B arrays of row numbers.
        rngs
            B generators, of beginnings, samples and noise; the first two do not depend on sigma.
        """
        expected = max(self.share * max(map(len, groups), default=0), 1.0) * design.shape[1]
        size = max(1, int(_AT_ONCE / expected))
        chunks = [
            self._fit_some(design, labels, groups[first : first + size], rngs[first : first + size])
            for first in range(0, len(groups), size)
        ]
        return np.concatenate(chunks)

    def proba(self, flat: _Floats, design: _Floats) -> _Floats:
        """Probabilities (B, n) of label 1 for people (n, d), by parameters (B, parameters)."""
        if self.hidden is None:
            return logistic_proba(flat, design)
        return Networks(flat, design.shape[1], self.hidden).proba(design)

    def _fit_some(
        self,
        design: _Floats,
        labels: _Floats,
        groups: Sequence[NDArray[np.intp]],
        rngs: Sequence[np.random.Generator],
    ) -> _Floats:
        begin, draw, noise = zip(*(rng.spawn(3) for rng in rngs), strict=True)
        flat = self.begin(design.shape[1], labels, groups, begin)
        adam, sums = Adam(flat, self.rate), np.zeros_like(flat)
        for _ in range(self.steps):
            samples = [
                _draw_sample(rows, self.share, rng) for rows, rng in zip(groups, draw, strict=True)
            ]
            sizes = np.array([len(sample) for sample in samples])
            present = np.arange(max(sizes.max(), 1)) < sizes[:, None]
            padded = np.zeros(present.shape, np.intp)
            padded[present] = np.concatenate(samples)
            self.sum_shortened(
                np.take(design, padded, axis=0), labels[padded], present.astype(float), flat, sums
            )
            if self.sigma:
                self.add_noise(sums, noise)
            adam.move(flat, sums)
        return flat

    def begin(
        self,
        width: int,
        labels: _Floats,
        groups: Sequence[NDArray[np.intp]],
        rngs: Sequence[np.random.Generator],
    ) -> _Floats:
        """Parameters (B, parameters) before the first step, of models with d = width inputs."""
        if self.hidden is None:
            return np.zeros((len(groups), width))
        return Networks.random(width, self.hidden, rngs).flat

    def add_noise(self, sums: _Floats, rngs: Sequence[np.random.Generator]) -> None:
        """Add a step's noise to the sums (B, parameters)."""
        drawn = np.stack([rng.standard_normal(sums.shape[1]) for rng in rngs])
        sums += self.sigma * self.clip * drawn

    def sum_shortened(
        self, x: _Floats, y: _Floats, w: _Floats, flat: _Floats, into: _Floats
    ) -> None:
        """Write sums of the gradients of people (B, n, d) at parameters, each shortened."""
        if self.hidden is None:
            off = w * (apply_sigmoid(np.matmul(x, flat[..., None])[..., 0]) - y)
            off *= limit_lengths(off**2 * np.einsum("bnd,bnd->bn", x, x), self.clip)
            into[:] = np.matmul(off[:, None], x)[:, 0]
            return
        networks = Networks(flat, x.shape[-1], self.hidden)
        sum_gradients(x, y, w, networks, replace(networks, flat=into), clip=self.clip)


def _draw_sample(
    rows: NDArray[np.intp], share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """A Poisson sample: its size first, then who is in it."""
    size = rng.binomial(len(rows), share)
    return rows[rng.choice(len(rows), size, replace=False, shuffle=False)]
