"""Private and fair logistic regression, by noise on the objective and a penalty of unfairness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fpbench import Classifier, Guarantee, Learner, Measure, Sample
from fpbench.models import BoundedFeatures
from fpbench.plugin import Codes, MeasureValues
from fpbench.privacy import LEAST_EPSILON
from fpbench_defences.pflr_objective import (
    Floats,
    NoiseBudget,
    PeopleSums,
    Repair,
    Variant,
    find_fair_weights,
    group_covariances,
    invert_repaired,
    release_sums,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_AT_ONCE = 1 << 22
"""Entries of the curvatures of a batch of models (32 MB)."""
_FARTHEST = 1e6
"""Greatest shift; with two groups, a shift of about 1 reverses most gaps."""
_LEAST = 1e-9
"""Least nonzero share or weight: below it, scales of noise overflow."""
_SHARES: dict[Variant, float] = {"pflr": 0.2, "pflr*": 0.05}


@dataclass(frozen=True)
class RedrawnLogistic:
    """R logistic models of one design: a `fpbench.auditing.RedrawnModels`."""

    design: BoundedFeatures
    weights: Floats
    """(R, d), the intercept last."""

    def proba(self, features: DataFrame) -> Floats:
        """Probabilities (R, n) of label 1."""
        from scipy.special import expit

        return np.asarray(expit(self.weights @ self.design(features).T))


@dataclass(frozen=True)
class LogisticModel:
    """A logistic model with one vector of weights."""

    design: BoundedFeatures
    weights: Floats
    """(d,) weights of numbers scaled to [0, 1], then of categories, the intercept last."""

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; log-odds of 0 are label 0."""
        return (self.design(features) @ self.weights > 0).astype(np.int8)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Floats:
        """Probabilities (n, 2) of label 0 and label 1."""
        positive = RedrawnLogistic(self.design, self.weights[None]).proba(features)[0]
        return np.column_stack([1.0 - positive, positive])


@dataclass(frozen=True)
class PflrModel(LogisticModel):
    """A private logistic model: a `fpbench.auditing.PrivateModel` that can be redrawn.

    Its weights, predictions and notes are private, by `guarantee`. The sums of its training, the
    baseline, and redrawn models are not private.
    """

    guarantee: Guarantee | None
    """None without noise."""
    baseline: LogisticModel
    """The minimum of the same objective without noise."""
    learner: Pflr
    sums: PeopleSums
    notes: MeasureValues = field(default_factory=dict)

    def redraw(self, repetitions: int, rng: np.random.Generator) -> RedrawnLogistic:
        """R models of the same people, each with fresh noise."""
        budget = self.learner.budget(self.design, len(self.sums.groups))
        weights, _ = self.learner.draw(self.sums, self.design, budget, repetitions, rng)
        return RedrawnLogistic(self.design, weights)


class Pflr(Learner):
    """Logistic regression on a noisy quadratic objective, with a penalty of unfairness.

    The loss is replaced by its Taylor polynomial of degree 2 at 0 (the functional mechanism), which
    needs only sums over people: of x x' / 4 and of (1/2 - y) x. These are released with
    Laplace noise, and everything else is post-processing. Numbers are scaled to [0, 1] by their
    declared bounds and categories are one-hot as declared, so nothing else depends on people.

    **Fairness.** `pflr` penalises the covariance of group and log-odds, fairness |c'w|, with
    c = sum (z - mean z) x (decision boundary fairness); for K groups, fairness / sqrt 2 times the
    norm of the K covariances. The sums of x in each group are released too, because the penalty
    needs sign and size of c'w. `pflr*` has no penalty: before the noise, fairness c is added to
    or subtracted from the slope, in favour of the group with the lower share of label 1 in a noisy
    table of groups and labels.

    **Privacy.** `guarantee` holds if anybody is added or removed. A row x sums to at most s, the
    number of features and 1, so the objective changes by at most s^2/8 + s/2 in L1, and sums of
    groups by s. The shift of `pflr*` depends on people too: it changes by at most fairness times
    the number of numeric features and twice that of categorical ones, and noise must cover this.
    The epsilon without this noise is `pflr_epsilon_claimed` in rows; it does not hold.

    **Departures.** The sensitivity of Zhang et al., d^2/4 + 3d for replacing one person, is valid
    but many times too large for one-hot columns. See docs/pflr.md.
    """

    name = "pflr"
    summary = "private and fair logistic regression: noise on the objective's coefficients"
    reference = (
        "Depeng Xu, Shuhan Yuan, Xintao Wu. Achieving Differential Privacy and Fairness in "
        "Logistic Regression. Companion Proceedings of The Web Conference 2019; Jun Zhang et al. "
        "Functional Mechanism: Regression Analysis under Differential Privacy. PVLDB 2012; "
        "Muhammad Bilal Zafar et al. Fairness Constraints: Mechanisms for Fair Classification. "
        "AISTATS 2017"
    )
    gives_scores = True
    measures = Measure.table("asked", """
        pflr_epsilon | less | epsilon of the weights
        pflr_neighbours | neither | which data sets the guarantee compares
        pflr_epsilon_claimed | less | epsilon that the paper claims for the same noise
        pflr_sensitivity | less | sensitivity of the coefficients
        pflr_scale | less | scale of the coefficients' noise
        pflr_columns | neither | number of columns of the encoded features
        pflr_eigenvalues_repaired | less | repaired eigenvalues, which noise had made too small
    """)  # fmt: skip

    epsilon: float = Field(
        1.0,
        ge=LEAST_EPSILON,
        description="epsilon of the whole training; infinite: no noise and no guarantee",
    )
    variant: Variant = Field(
        "pflr", description="`pflr`: a penalty of unfairness; `pflr*`: a shift of the slope"
    )
    fairness: float = Field(
        0.3,
        ge=0,
        description="alpha, weight of the penalty, or size of the shift; infinite (`pflr` only): "
        "zero covariance of group and log-odds",
    )
    fairness_share: float | None = Field(
        None,
        ge=_LEAST,
        le=1 - _LEAST,
        description="share of epsilon for releases that only fairness needs; by default 0.2, and "
        "0.05 for `pflr*`, which needs only the direction of its shift",
    )
    penalty: float = Field(
        1.0, gt=0, le=1e12, description="lambda in lambda/2 ||w||^2, added to the summed loss"
    )
    repair: Repair = Field(
        "floor",
        description="repair of noisy objectives without a minimum: small eigenvalues are raised "
        "(`floor`), or trimmed after a ridge of 10 standard deviations (`trim`)",
    )

    @model_validator(mode="after")
    def _check_shift(self) -> Pflr:
        if 0 < self.fairness < _LEAST:
            raise ValueError(
                f"fairness = {self.fairness} is too close to 0: choose 0, or at least {_LEAST:g}"
            )
        if self.variant == "pflr*" and self.fairness > _FARTHEST:
            raise ValueError(
                f"a shift of fairness = {self.fairness} has too large a sensitivity: choose "
                f'at most {_FARTHEST:g}, or variant = "pflr"'
            )
        return self

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    @property
    def protects(self) -> frozenset[str]:
        """All columns that it trains on; none without noise."""
        return self.needs if self.epsilon < math.inf else frozenset()

    def twin(self) -> Pflr | None:
        """The same learner without a penalty of unfairness; it releases nothing about groups."""
        if self.fairness == 0:
            return None
        return self.model_copy(update={"variant": "pflr", "fairness": 0.0, "fairness_share": None})

    def budget(self, design: BoundedFeatures, k: int) -> NoiseBudget:
        """The division of epsilon for k groups."""
        share = self.fairness_share or _SHARES[self.variant]
        return NoiseBudget(
            self.variant, self.epsilon, self.fairness, share, design.norm, design.spread, k
        )

    def fit(self, sample: Sample, rng: np.random.Generator) -> PflrModel:
        """Compute sums over people, add noise, and minimise the noisy objective.

        Raises InputError if a feature has no declared bounds or categories, or labels or groups are
        cut at a statistic of everybody; DataError if a number is missing.
        """
        (model,) = self.fit_many(sample, np.ones((1, len(sample)), bool), [rng])
        assert isinstance(model, PflrModel)
        return model

    def fit_many(
        self,
        people: Sample,
        members: NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
    ) -> list[Classifier]:
        """Train models of parts of the people, whose features are encoded once."""
        people.check_cuts(self.protects, f"learner {self.name!r}")
        design = BoundedFeatures.of(people.features, people.domain, f"learner {self.name!r}")
        k = len(people.groups)
        matrix, budget = design(people.features), self.budget(design, k)
        clean = self.model_copy(update={"epsilon": math.inf})
        models: list[Classifier] = []
        for chosen, rng in zip(members, rngs, strict=True):
            sums = PeopleSums.of(matrix[chosen], people.labels[chosen], people.sensitive[chosen], k)
            weights, changed = self.draw(sums, design, budget, 1, rng)
            best, _ = clean.draw(sums, design, clean.budget(design, k), 1, rng)
            models.append(
                PflrModel(
                    design=design, weights=weights[0], guarantee=budget.guarantee(),
                    baseline=LogisticModel(design, best[0]), learner=self, sums=sums,
                    notes=self._collect_notes(budget, int(changed[0]), len(sums.slope)),
                )
            )  # fmt: skip
        return models

    def score_many(
        self, models: Sequence[Classifier], people: Sample, rng: np.random.Generator
    ) -> Floats:
        """Outputs of models of one design for people, whose features are encoded once."""
        own = [model for model in models if isinstance(model, PflrModel)]
        if not own or len(own) < len(models) or any(one.design != own[0].design for one in own):
            return super().score_many(models, people, rng)
        weights = np.stack([one.weights for one in own])
        return RedrawnLogistic(own[0].design, weights).proba(people.features)

    def draw(
        self,
        sums: PeopleSums,
        design: BoundedFeatures,
        budget: NoiseBudget,
        repetitions: int,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Weights (R, d) of R models, and numbers of repaired eigenvalues (R,)."""
        weights, changed = [], []
        size = max(1, _AT_ONCE // len(sums.slope) ** 2)
        for first in range(0, repetitions, size):
            drawn = release_sums(sums, design, budget, min(size, repetitions - first), rng)
            inverse, repairs = invert_repaired(
                drawn.curvature, self.penalty, budget.scale, self.repair
            )
            c = None if drawn.groups is None else group_covariances(drawn.groups)
            weights.append(find_fair_weights(inverse, drawn.slope, c, self.fairness))
            changed.append(repairs)
        return np.concatenate(weights), np.concatenate(changed)

    def _collect_notes(self, budget: NoiseBudget, changed: int, d: int) -> MeasureValues:
        """A row's measures of the noise; the guarantee covers all of them."""
        guarantee = budget.guarantee()
        return {
            "pflr_epsilon": guarantee.epsilon if guarantee else None,
            "pflr_neighbours": guarantee.neighbours if guarantee else None,
            "pflr_epsilon_claimed": budget.claimed,
            "pflr_sensitivity": budget.sensitivity,
            "pflr_scale": budget.scale,
            "pflr_columns": d,
            "pflr_eigenvalues_repaired": changed,
        }
