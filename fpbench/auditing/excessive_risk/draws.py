"""Models trained again and again from fresh private randomness, and what people lose by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.private_models import PrivateModel, RedrawnModels, VotedModel
from fpbench.base.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats = NDArray[np.float64]

_AT_ONCE = 2_000_000
"""Numbers that a batch of losses has."""
_SMALLEST = float(np.finfo(np.float64).eps)
"""Probabilities are at least this far from 0 and 1, as in scikit-learn's `log_loss`."""


@dataclass(frozen=True, eq=False)
class People:
    """Whom risks are measured on, and by which labels."""

    name: str
    """`train`, what the model learnt from, or `test`."""
    features: DataFrame
    labels: _Floats
    """(n,) in {0, 1}: of `train`, those without privacy."""
    sensitive: NDArray[np.intp]
    """(n,) group codes in 0..K-1, all of them there."""
    rows: NDArray[np.intp]
    """(n,) row numbers in the sample they come from."""
    design: _Floats | None = None
    """(n, d) what students take, if the model says."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some of the models."""

    scores: list[_Floats]
    """Of the people of each evaluation: probabilities of label 1, or logits; (R, n)."""
    logits: bool
    distances: _Floats | None = None
    """(R,) of parameters to those of the baseline."""
    pulls: _Floats | None = None
    """(R,) how far the gradient at the baseline lets them go at most."""
    flips: NDArray[np.bool_] | None = None
    """(R, m) whose majority of votes the noise changed."""

    def without_scores(self) -> Batch:
        """What is small of it."""
        return replace(self, scores=[])


@dataclass(eq=False)
class Tally:
    """Sums over independent units: models, or pairs of antithetic ones."""

    people: People
    base: _Floats
    """(n,) losses by the baseline."""
    belongs: _Floats
    """(n, K) 1 / members of a group for its members, else 0."""
    models: int = 0
    right: float = 0.0
    total: _Floats = field(default_factory=lambda: np.zeros(1))
    squares: _Floats = field(default_factory=lambda: np.zeros(1))
    by_group: list[_Floats] = field(default_factory=list)
    """Mean excess loss of each group and unit, (units, K)."""

    @classmethod
    def of(cls, people: People, base: _Floats) -> Tally:
        """Of nothing yet."""
        members = np.bincount(people.sensitive)
        return cls(people, base, np.eye(len(members))[people.sensitive] / members)

    def add(self, scores: _Floats, logits: bool, paired: bool) -> None:
        """Count some models in: (R, n)."""
        labels = self.people.labels
        self.models += len(scores)
        self.right += float(((scores > (0.0 if logits else 0.5)) == (labels == 1)).mean(1).sum())
        excess = loss(scores, labels, logits) - self.base
        if paired:
            excess = paired_mean(excess)
        self.total = self.total + excess.sum(axis=0)
        self.squares = self.squares + (excess**2).sum(axis=0)
        self.by_group.append(excess @ self.belongs)

    @property
    def group_risks(self) -> _Floats:
        """(units, K)."""
        return np.concatenate(self.by_group)

    @property
    def risk(self) -> _Floats:
        """(n,) mean excess losses."""
        return self.total / len(self.group_risks)

    @property
    def risk_error(self) -> _Floats:
        """(n,) their standard errors; NaN of a single unit."""
        units = len(self.group_risks)
        if units < 2:
            return np.full(len(self.base), np.nan)
        variance = (self.squares / units - self.risk**2) / (units - 1)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    @property
    def accuracy(self) -> float:
        """Mean over models."""
        return self.right / self.models


def standard_error(units: NDArray[Any]) -> Any:
    """Of the mean over the first axis; NaN of a single unit."""
    if len(units) < 2:
        return np.full(units.shape[1:], np.nan)[()]
    return np.std(units, axis=0, ddof=1) / np.sqrt(len(units))


def paired_mean(values: NDArray[Any]) -> _Floats:
    """Means of the first and the second half of an array, one by one."""
    half = len(values) // 2
    return np.asarray((values[:half].astype(np.float64) + values[half:]) / 2)


def loss(scores: _Floats, labels: _Floats, logits: bool) -> _Floats:
    """Cross entropy of labels (n,) in {0, 1}, by probabilities of label 1 or by logits."""
    if logits:
        return np.asarray(np.logaddexp(0.0, (1 - 2 * labels) * scores))
    chance = np.where(labels == 1, scores, 1 - scores)
    return np.asarray(-np.log(np.clip(chance, _SMALLEST, 1 - _SMALLEST)))


def voted_batches(
    model: VotedModel,
    evaluations: list[People],
    repetitions: int,
    antithetic: bool,
    rng: np.random.Generator,
) -> Iterator[Batch]:
    """Students of fresh noise, as many at once as fit into memory.

    The first of the evaluations is what they learn from.
    """
    star, width = model.theta_star, max(len(people.labels) for people in evaluations)
    clean = model.votes[:, 1] > model.votes[:, 0]
    most = max(_AT_ONCE // max(width, 1) // 2, 1) * 2
    for start in range(0, repetitions, most):
        noise = model.draw_noise(min(most, repetitions - start), rng, antithetic)
        targets, weights = model.targets(noise)
        students = model.fit_students(targets, weights)
        noisy = model.votes + noise[..., :2]  # what comes after counts is no vote
        flips = (noisy[..., 1] > noisy[..., 0]) != clean
        designs = [cast("_Floats", people.design) for people in evaluations]
        if star is None:
            said = [model.student_proba(students, design) for design in designs]
            distances = getattr(model, "distances", None)
            away = None if distances is None else np.asarray(distances(students), np.float64)
            yield Batch(said, False, away, flips=flips)
        else:
            public = designs[0]
            yield Batch(
                [students @ design.T for design in designs], True,
                np.linalg.norm(students - star, axis=1),
                _pulls(public, star, targets, weights, model.penalty), flips,
            )  # fmt: skip


def _pulls(
    design: _Floats, star: _Floats, targets: _Floats, weights: _Floats | None, penalty: float
) -> _Floats:
    """Norms (R,) of the gradients at theta*, divided by how convex the objective is at least."""
    from scipy.special import expit

    residuals = expit(design @ star) - targets
    if weights is None:
        shares = np.full(targets.shape, 1 / targets.shape[1])
    else:
        answered = weights.sum(axis=1, keepdims=True)
        shares = np.divide(weights, answered, out=np.zeros_like(weights), where=answered > 0)
    gradients = (residuals * shares) @ design + 2 * penalty * star
    with np.errstate(divide="ignore", invalid="ignore"):  # without a penalty nothing is known
        return np.asarray(np.linalg.norm(gradients, axis=1) / (2 * penalty))


def other_batch(
    model: PrivateModel, evaluations: list[People], repetitions: int, rng: np.random.Generator
) -> Batch:
    """Models of any other learner: redrawn, if it can be, else the one that there is.

    Raises
    ------
    InputError
        If what they say are not probabilities of such a shape.
    """
    redraw = getattr(model, "redraw", None)
    if redraw is None:
        said = [chances(model, people, rng)[None] for people in evaluations]
        return Batch(said, False)
    drawn: RedrawnModels = redraw(repetitions, rng)
    said = [np.asarray(drawn.proba(people.features), np.float64) for people in evaluations]
    for people, scores in zip(evaluations, said, strict=True):
        _check(scores, (repetitions, len(people.labels)), "the redrawn models")
    return Batch(said, False)


def chances(model: Any, people: People, rng: np.random.Generator) -> _Floats:
    """Probabilities (n,) of label 1, by one model."""
    said = np.asarray(model.predict_proba(people.features, rng, people.sensitive), np.float64)
    _check(said, (len(people.labels), 2), f"predict_proba of {type(model).__name__}")
    return said[:, 1]


def _check(said: _Floats, shape: tuple[int, ...], who: str) -> None:
    if said.shape != shape or not ((said >= 0) & (said <= 1)).all():
        raise InputError(f"{who} must give probabilities {shape} in [0, 1]")
