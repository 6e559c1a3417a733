"""Learning that is fair and private at once: DP-SGD on a loss that is penalised by ERMI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Sample
from fpbench.builtin.batched.noisy_steps import NoisyTraining
from fpbench.builtin.learners.dp_sgd import DPSGD
from fpbench.plugin import Codes
from fpbench.privacy import sampled_gaussian_sigma

_Floats = NDArray[np.float64]

_LONGEST = math.sqrt(2)
"""Greatest length of half a person's gradient by the dual variables, where these are 1."""


@dataclass(frozen=True)
class ErmiTraining(NoisyTraining):
    """DP-SGD on mean loss + penalty times ERMI, by descent of the model and ascent of a dual.

    ERMI is the greatest value, over dual variables U (K, 2), of the mean over people of

        2 sum_j f_j U[s, j] - sum_j f_j sum_r P(r) U[r, j]^2 - 1,

    f the chances of both labels and s the person's group; it is at U[r, j] = P(j | r) / P(j). So
    its gradients are sums over people. A person's gradient by the model is shortened to `clip`
    with that of the loss, the one by U is made as long at most: together sqrt 2 `clip`. P is
    measured in a step of its own, and wrong shares still penalise what is not independent: by
    Cauchy-Schwarz the value is least, whatever P, if labels do not depend on groups.

    Parameters of a model: its own, U, and P. Labels are (n, 1 + K): the label, and memberships.
    """

    penalty: float = 0.0
    groups: int = 0

    def proba(self, flat: _Floats, design: _Floats) -> _Floats:
        """Probabilities (B, n) of label 1 for people (n, d), by parameters (B, parameters)."""
        return super().proba(self.split(flat)[0], design)

    def split(self, flat: _Floats) -> tuple[_Floats, _Floats, _Floats]:
        """Views: the model's own parameters (B, p), U (B, K, 2) and P (B, K)."""
        own = flat.shape[1] - 3 * self.groups
        dual, shares = flat[:, own : -self.groups], flat[:, -self.groups :]
        return flat[:, :own], dual.reshape(len(flat), self.groups, 2), shares

    def begin(
        self,
        width: int,
        labels: _Floats,
        groups: Sequence[NDArray[np.intp]],
        rngs: Sequence[np.random.Generator],
    ) -> _Floats:
        """The model's beginning, U of 1, and P from noisy sizes of groups in a sample."""
        own = super().begin(width, labels, groups, rngs)
        parts = []
        for rows, rng in zip(groups, rngs, strict=True):
            sizes = labels[rows, 1:].sum(axis=0)
            if self.sigma:
                noise = self.sigma / math.sqrt(2) * rng.standard_normal(self.groups)
                sizes = rng.binomial(sizes.astype(np.intp), self.share) + noise
            sizes = np.maximum(sizes, 1.0)
            parts.append(np.concatenate([np.ones(2 * self.groups), sizes / sizes.sum()]))
        return np.concatenate([own, parts], axis=1)

    def sum_shortened(
        self, x: _Floats, y: _Floats, w: _Floats, flat: _Floats, into: _Floats
    ) -> None:
        """Write sums of gradients of people (B, n, d), each shortened; U climbs."""
        theta, dual, shares = self.split(flat)
        label, member = y[..., 0], y[..., 1:]
        chance = np.stack([
            NoisyTraining.proba(self, one[None], people)[0]
            for one, people in zip(theta, x, strict=True)
        ])  # fmt: skip
        both = np.stack([1 - chance, chance], axis=2)
        slope = 2 * np.matmul(member, dual[..., 1:] - dual[..., :1])[..., 0]
        squares = np.einsum("bk,bkj->bj", shares, dual**2)
        slope -= (squares[:, 1] - squares[:, 0])[:, None]
        # d/dscore of the loss is f - y, and of the penalty f (1 - f) slope: as if y were another.
        pulled = label - self.penalty * chance * (1 - chance) * slope
        own = np.empty_like(theta)
        super().sum_shortened(x, pulled, w, np.ascontiguousarray(theta), own)
        up = both[..., None, :] * (member[..., None] - (shares[..., None] * dual)[:, None])
        if self.clip < math.inf:
            w = w * self.clip / np.maximum(np.sqrt((up**2).sum(axis=(2, 3))), _LONGEST)
        step = -np.einsum("bn,bnkj->bkj", w, up)
        into[:] = np.concatenate([own, step.reshape(len(flat), -1), 0 * shares], axis=1)

    def add_noise(self, sums: _Floats, rngs: Sequence[np.random.Generator]) -> None:
        """Add a step's noise to the sums (B, parameters), those of P left out."""
        super().add_noise(sums, rngs)
        sums[:, -self.groups :] = 0.0


class DPFermi(DPSGD):
    """DP-SGD whose loss has a penalty on what predictions tell of groups (DP-FERMI).

    The penalty is the exponential Renyi mutual information (ERMI) of label and group, for
    demographic parity: 0 if chances of label 1 do not depend on groups. Every step moves the model
    down, and dual variables of groups and labels up, by noisy sums of people's gradients.

    **Privacy.** As for `dp-sgd`, of whole records and groups: the noise is that of one step more,
    which measures the shares of groups, and of gradients sqrt 2 times as long, for the dual
    variables.

    **Departures.** Adam's steps, Poisson samples and the accounting are those of `dp-sgd`. The
    paper protects groups alone, takes their shares as known, and keeps the dual variables in a
    ball; here their gradients are shortened. It has equalized odds and more labels, too.
    """

    name = "dp-fermi"
    summary = "DP-SGD with a penalty on what predictions tell of groups: private and fair"
    reference = (
        "Andrew Lowy, Devansh Gupta, Meisam Razaviyayn. Stochastic Differentially Private and Fair "
        "Learning. ICLR 2023"
    )
    needs = frozenset({"features", "labels", "sensitive"})

    penalty: float = Field(
        1.0, ge=0, le=1e6, description="weight of ERMI beside the mean loss; 0: plain `dp-sgd`"
    )

    rate: float = Field(
        0.03,
        gt=0,
        le=1,
        description="learning rate of Adam: at the 0.1 of `dp-sgd`, model and dual variables "
        "chase each other",
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Few steps."""
        return [{"steps": 20}, {"steps": 20, "model": "mlp", "hidden": (4, 3)}]

    def noise(self) -> float:
        """Standard deviation of a step's noise, over `clip`; 0 if epsilon is infinite."""
        if self.penalty == 0 or self.epsilon == math.inf:
            return super().noise()
        sigma = sampled_gaussian_sigma(self.epsilon, self.delta, self.share, self.steps + 1)
        return math.sqrt(2) * sigma

    def make_labels(self, people: Sample) -> Codes:
        """The label and memberships (n, 1 + K); (n,) without a penalty."""
        labels = super().make_labels(people)
        if self.penalty == 0:
            return labels
        return np.column_stack(
            [labels, np.eye(len(people.groups), dtype=np.int8)[people.sensitive]]
        )

    def training(self, people: Sample) -> NoisyTraining:
        """Its parameters, with the noise that epsilon needs."""
        plain = super().training(people)
        if self.penalty == 0:
            return plain
        return ErmiTraining(**asdict(plain), penalty=self.penalty, groups=len(people.groups))
