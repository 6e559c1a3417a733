"""Logistic regression and small networks trained with differential privacy by DP-SGD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fpbench import Classifier, Guarantee, Learner, Measure, Sample
from fpbench.builtin.batched.noisy_steps import NoisyTraining
from fpbench.builtin.learners._fitted import ScoredModel
from fpbench.models import BoundedFeatures, random_state
from fpbench.plugin import Codes, MeasureValues
from fpbench.privacy import sampled_gaussian_sigma

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats = NDArray[np.float64]
_Units = Annotated[int, Field(ge=1, le=4096)]


@dataclass(frozen=True)
class NoisyModels(ScoredModel):
    """R models of one training: a `fpbench.auditing.RedrawnModels`."""

    training: NoisyTraining
    design: BoundedFeatures
    parameters: _Floats
    """(R, parameters)."""

    def proba(self, features: DataFrame) -> _Floats:
        """Probabilities (R, n) of label 1."""
        return self.training.proba(self.parameters, self.design(features))

    def find_positive(self, features: DataFrame) -> _Floats:
        """Probabilities (n,) of label 1 by the first model."""
        return np.asarray(self.proba(features)[0])


@dataclass(frozen=True)
class DPSGDModel(NoisyModels):
    """A model trained by DP-SGD: a `fpbench.auditing.PrivateModel` that can be redrawn.

    Its parameters, predictions and notes are private, by `guarantee`. The training people, the
    baseline, and redrawn models are not private.
    """

    guarantee: Guarantee | None
    """None without noise."""
    people: DataFrame
    """The n training people."""
    labels: Codes
    """(n,), or (n, columns) as the training takes them."""
    seed: int
    """Of the beginning, samples and noise."""

    @property
    def notes(self) -> MeasureValues:
        """A row's measures of the training; all are parameters."""
        return {"sgd_sigma": self.training.sigma, "sgd_steps": self.training.steps}

    @cached_property
    def baseline(self) -> NoisyModels:
        """The same training, from the same beginning on the same samples, without clip or noise."""
        clean = replace(self.training, clip=math.inf, sigma=0.0)
        return self._train(clean, [np.random.default_rng(self.seed)])

    def redraw(self, repetitions: int, rng: np.random.Generator) -> NoisyModels:
        """R models of the same people, each with a beginning, samples and noise of its own."""
        return self._train(self.training, rng.spawn(repetitions))

    def _train(self, training: NoisyTraining, rngs: Sequence[np.random.Generator]) -> NoisyModels:
        everybody = [np.arange(len(self.labels))] * len(rngs)
        labels = self.labels.astype(np.float64)
        parameters = training.fit(self.design(self.people), labels, everybody, rngs)
        return NoisyModels(training, self.design, parameters)


class DPSGD(Learner):
    """Logistic regression or a network, trained by noisy sums of clipped gradients (DP-SGD).

    Every step takes a Poisson sample of the people, shortens each person's gradient to `clip`, adds
    the gradients up with Gaussian noise, and moves the parameters. Numbers are scaled to
    [0, 1] by their declared bounds, and categories are one-hot as declared.

    **Privacy.** `guarantee` holds if anybody is added or removed, for all parameters of all steps.
    The noise is the least for which the Renyi divergences of the steps give epsilon at delta.

    **Departures.** Steps are Adam's instead of plain gradient descent. They are the same for any
    multiple of the gradients, so that sums need not be divided by the number of people, which is
    private. The baseline has neither noise nor clip.
    """

    name = "dp-sgd"
    summary = "DP-SGD: logistic regression or a network, trained by noisy clipped gradients"
    reference = (
        "Martin Abadi et al. Deep Learning with Differential Privacy. CCS 2016; Ilya Mironov, "
        "Kunal Talwar, Li Zhang. Renyi Differential Privacy of the Sampled Gaussian Mechanism. 2019"
    )
    needs = frozenset({"features", "labels"})
    gives_scores = True
    measures = Measure.table("asked", """
        sgd_sigma | neither | standard deviation of a step's noise, over the clip
        sgd_steps | neither | number of noisy steps
    """)  # fmt: skip

    epsilon: float = Field(
        1.0, ge=0.01, description="epsilon of the whole training; inf: no noise and no guarantee"
    )
    delta: float = Field(1e-5, ge=1e-20, lt=1, description="delta of the guarantee")
    model: Literal["logistic", "mlp"] = Field("logistic", description="what is trained")
    clip: float = Field(1.0, gt=0, le=1e12, description="greatest length of a person's gradient")
    steps: int = Field(200, ge=1, le=1_000_000, description="number of noisy steps")
    share: float = Field(
        0.05, gt=0, le=1, description="probability that a person is in the sample of a step"
    )
    rate: float = Field(0.1, gt=0, le=1, description="learning rate of Adam")
    hidden: tuple[_Units, _Units] = Field(
        (32, 16), strict=False, description="mlp: units of the two hidden layers"
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Few steps, of both models."""
        return [{"steps": 20}, {"steps": 20, "model": "mlp", "hidden": (4, 3)}]

    @model_validator(mode="after")
    def _refuse_unused(self) -> DPSGD:
        if self.model != "mlp" and self.hidden != type(self).model_fields["hidden"].default:
            raise ValueError('hidden has an effect only with model = "mlp"')
        return self

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    @property
    def protects(self) -> frozenset[str]:
        """All columns that it trains on; none without noise."""
        return self.needs if self.epsilon < math.inf else frozenset()

    def noise(self) -> float:
        """Standard deviation of a step's noise, over `clip`; 0 if epsilon is infinite."""
        if self.epsilon == math.inf:
            return 0.0
        return sampled_gaussian_sigma(self.epsilon, self.delta, self.share, self.steps)

    def make_labels(self, people: Sample) -> Codes:
        """What the training takes as labels: (n,) or (n, columns)."""
        return np.asarray(people.labels)

    def training(self, people: Sample) -> NoisyTraining:
        """Its parameters, with the noise that epsilon needs."""
        hidden = self.hidden if self.model == "mlp" else None
        return NoisyTraining(self.steps, self.share, self.clip, self.noise(), self.rate, hidden)

    def fit(self, sample: Sample, rng: np.random.Generator) -> DPSGDModel:
        """Train one model; its counterpart without noise is trained on first use.

        Raises InputError if a feature's bounds or categories are not declared, or labels are cut at
        a statistic of everybody; DataError if a number is missing.
        """
        (model,) = self.fit_many(sample, np.ones((1, len(sample)), bool), [rng])
        assert isinstance(model, DPSGDModel)
        return model

    def fit_many(
        self,
        people: Sample,
        members: NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
    ) -> list[Classifier]:
        """Train models of parts of the people, all at once."""
        people.check_cuts(self.protects, f"learner {self.name!r}")
        features, labels = people.features, self.make_labels(people)
        design = BoundedFeatures.of(features, people.domain, f"learner {self.name!r}")
        training, seeds = self.training(people), [random_state(rng) for rng in rngs]
        parts = [np.flatnonzero(chosen) for chosen in members]
        own_rngs = [np.random.default_rng(seed) for seed in seeds]
        fitted = training.fit(design(features), labels.astype(np.float64), parts, own_rngs)
        guarantee = None
        if self.epsilon < math.inf:
            guarantee = Guarantee(self.epsilon, self.delta, "add-remove")
        return [
            DPSGDModel(
                training, design, fitted[number : number + 1], guarantee,
                features.iloc[rows].reset_index(drop=True), labels[rows], seeds[number],
            )
            for number, rows in enumerate(parts)
        ]  # fmt: skip

    def score_many(
        self, models: Sequence[Classifier], people: Sample, rng: np.random.Generator
    ) -> _Floats:
        """Outputs of models of one training for people, whose features are encoded once."""
        own = [model for model in models if isinstance(model, DPSGDModel)]
        alike = all((one.design, one.training) == (own[0].design, own[0].training) for one in own)
        if not own or len(own) < len(models) or not alike:
            return super().score_many(models, people, rng)
        parameters = np.concatenate([one.parameters for one in own])
        return NoisyModels(own[0].training, own[0].design, parameters).proba(people.features)
