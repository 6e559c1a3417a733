"""Many models trained with fresh private randomness, and people's losses under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.auditing import PrivateModel, RedrawnModels, VotedModel
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.pate.least_squares import fit_least_squares

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats = NDArray[np.float64]

Scale: TypeAlias = Literal["chances", "logits", "values"]
"""What scores are: probabilities of label 1; x'theta, of a logistic student or of least squares."""

NORM_RANGES = 6
"""Ranges of the input norm, of equally many people."""
_AT_ONCE = 2_000_000
"""Greatest size of an array of losses."""
_SMALLEST = float(np.finfo(np.float64).eps)
"""Probabilities are at least this far from 0 and 1, as in scikit-learn's `log_loss`."""


@dataclass(frozen=True, eq=False)
class People:
    """The people that risks are measured on, and their labels."""

    name: str
    """`train`, what the model learnt from, or `test`."""
    features: DataFrame
    labels: _Floats
    """(n,) in {0, 1}: of `train`, those without privacy."""
    sensitive: NDArray[np.intp]
    """(n,) group codes in 0..K-1; no group is empty."""
    rows: NDArray[np.intp]
    """(n,) row numbers in the sample they come from."""
    design: _Floats | None = None
    """(n, d) design matrix of students; None if the model does not expose it."""


@dataclass(frozen=True, eq=False)
class ModelBatch:
    """Scores and parameters of some of the R models."""

    scores: list[_Floats]
    """For each evaluation (R, n) scores of one scale."""
    distances: _Floats | None = None
    """(R,) distances of parameters to the baseline's."""
    pulls: _Floats | None = None
    """(R,) bounds on these distances from the gradient at the baseline."""
    flips: NDArray[np.bool_] | None = None
    """(R, m) whether the noise changed a majority of votes."""
    not_convex: NDArray[np.bool_] | None = None
    """(R,) whether the objective of a student is shown not to be convex; None if all are."""
    range_distances: _Floats | None = None
    """(R, 6) distances of students of each range of input norms; None if there are none."""

    def without_scores(self) -> ModelBatch:
        """The batch without its largest arrays."""
        return replace(self, scores=[])


@dataclass(eq=False)
class RiskSums:
    """Sums over independent units: models, or pairs of antithetic ones."""

    people: People
    base: _Floats
    """(n,) losses by the baseline."""
    belongs: _Floats
    """(n, K) 1 / members of a group for its members, else 0."""
    models: int = 0
    right: _Floats = field(default_factory=lambda: np.zeros(1))
    total: _Floats = field(default_factory=lambda: np.zeros(1))
    squares: _Floats = field(default_factory=lambda: np.zeros(1))
    by_group: list[_Floats] = field(default_factory=list)
    """Mean excess loss of each group and unit, (units, K)."""

    @classmethod
    def of(cls, people: People, base: _Floats) -> RiskSums:
        """Empty sums."""
        members = np.bincount(people.sensitive)
        return cls(people, base, np.eye(len(members))[people.sensitive] / members)

    def add(self, scores: _Floats, scale: Scale, paired: bool) -> None:
        """Add the scores (R, n) of some models."""
        labels = self.people.labels
        self.models += len(scores)
        favourable = scores > (0.0 if scale == "logits" else 0.5)
        self.right = self.right + (favourable == (labels == 1)).sum(axis=0)
        excess = compute_losses(scores, labels, scale) - self.base
        if paired:
            excess = average_pairs(excess)
        self.total = self.total + excess.sum(axis=0)
        self.squares = self.squares + (excess**2).sum(axis=0)
        self.by_group.append(excess @ self.belongs)

    @property
    def group_risks(self) -> _Floats:
        """(units, K) mean excess losses of groups."""
        return np.concatenate(self.by_group)

    @property
    def risk(self) -> _Floats:
        """(n,) mean excess losses."""
        return self.total / len(self.group_risks)

    @property
    def risk_error(self) -> _Floats:
        """(n,) their standard errors; NaN for a single unit."""
        units = len(self.group_risks)
        if units < 2:
            return np.full(len(self.base), np.nan)
        variance = (self.squares / units - self.risk**2) / (units - 1)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    @property
    def accuracy(self) -> _Floats:
        """(n,) shares of models that predict the label."""
        return self.right / self.models


def estimate_error(units: NDArray[Any]) -> Any:
    """Standard error of the mean over the first axis; NaN for a single unit."""
    if len(units) < 2:
        return np.full(units.shape[1:], np.nan)[()]
    return np.std(units, axis=0, ddof=1) / np.sqrt(len(units))


def average_pairs(values: NDArray[Any]) -> _Floats:
    """Elementwise means of the first and the second half of an array."""
    half = len(values) // 2
    return np.asarray((values[:half].astype(np.float64) + values[half:]) / 2)


def find_scale(model: VotedModel) -> Scale:
    """The scale of the scores of a model's students."""
    if model.theta_star is None:
        return "chances"
    return "values" if model.student == "least-squares" else "logits"


def compute_losses(scores: _Floats, labels: _Floats, scale: Scale) -> _Floats:
    """Cross entropy of labels (n,) in {0, 1}; of values, half the squared difference."""
    if scale == "values":
        return np.asarray((scores - labels) ** 2 / 2)
    if scale == "logits":
        return np.asarray(np.logaddexp(0.0, (1 - 2 * labels) * scores))
    chance = np.where(labels == 1, scores, 1 - scores)
    return np.asarray(-np.log(np.clip(chance, _SMALLEST, 1 - _SMALLEST)))


def draw_students(
    model: VotedModel,
    evaluations: list[People],
    repetitions: int,
    antithetic: bool,
    rng: np.random.Generator,
) -> Iterator[ModelBatch]:
    """Batches of students trained with fresh noise, each as large as fits into memory.

    Students learn from the people of the first evaluation.
    """
    star, scale, width = (
        model.theta_star,
        find_scale(model),
        max(len(people.labels) for people in evaluations),
    )
    clean = model.votes[:, 1] > model.votes[:, 0]
    find_not_convex = getattr(model, "find_not_convex", None)
    most = max(_AT_ONCE // max(width, 1) // 2, 1) * 2
    for start in range(0, repetitions, most):
        noise = model.draw_noise(min(most, repetitions - start), rng, antithetic)
        targets, weights = model.targets(noise)
        students = model.fit_students(targets, weights)
        noisy = model.votes + noise[..., :2]  # what comes after counts is no vote
        flips = (noisy[..., 1] > noisy[..., 0]) != clean
        designs = [cast("_Floats", people.design) for people in evaluations]
        if star is None:
            scores = [model.student_proba(students, design) for design in designs]
            distances = getattr(model, "distances", None)
            away = None if distances is None else np.asarray(distances(students), np.float64)
            yield ModelBatch(scores, away, flips=flips)
        else:
            public = designs[0]
            yield ModelBatch(
                [students @ design.T for design in designs],
                np.linalg.norm(students - star, axis=1),
                _measure_gradients(public, star, targets, weights, model.penalty, scale), flips,
                None if find_not_convex is None else find_not_convex(weights),
                measure_ranges(model, public, noise) if weights is None else None,
            )  # fmt: skip


def split_by_norm(design: _Floats) -> list[NDArray[np.intp]]:
    """Rows of people (m, d) in ranges of their norms, the least first; none if m is below six."""
    order = np.argsort(np.linalg.norm(design, axis=1), kind="stable")
    return np.array_split(order, NORM_RANGES) if len(order) >= NORM_RANGES else []


def measure_ranges(model: VotedModel, design: _Floats, noise: _Floats) -> _Floats | None:
    """Distances (R, 6) of students of one range of norms alone from its own clean student.

    Without weights and with a penalty a student is known from its labels: see `VotedModel`.
    """
    ranges = split_by_norm(design)
    if not ranges or not model.penalty > 0:
        return None
    targets = np.concatenate([model.targets(each)[0] for each in (np.zeros_like(noise[:1]), noise)])
    fit = fit_least_squares if find_scale(model) == "values" else fit_logistic
    students = [fit(design[rows], targets[:, rows], model.penalty) for rows in ranges]
    return np.stack([np.linalg.norm(s[1:] - s[0], axis=1) for s in students], axis=1)


def _measure_gradients(
    design: _Floats, star: _Floats, targets: _Floats, weights: _Floats | None, penalty: float,
    scale: Scale,
) -> _Floats:  # fmt: skip
    """Norms (R,) of the gradients at theta*, divided by the modulus of strong convexity."""
    from scipy.special import expit

    values = design @ star
    residuals = (expit(values) if scale == "logits" else values) - targets
    if weights is None:
        shares = np.full(targets.shape, 1 / targets.shape[1])
    else:
        answered = weights.sum(axis=1, keepdims=True)
        shares = np.divide(weights, answered, out=np.zeros_like(weights), where=answered > 0)
    gradients = (residuals * shares) @ design + 2 * penalty * star
    with np.errstate(divide="ignore", invalid="ignore"):  # without a penalty there is no bound
        return np.asarray(np.linalg.norm(gradients, axis=1) / (2 * penalty))


def draw_models(
    model: PrivateModel, evaluations: list[People], repetitions: int, rng: np.random.Generator
) -> ModelBatch:
    """Scores of redrawn models, or of the one model; InputError if they are no probabilities."""
    redraw = getattr(model, "redraw", None)
    if redraw is None:
        scores_of_parts = [predict_chances(model, people, rng)[None] for people in evaluations]
        return ModelBatch(scores_of_parts)
    drawn: RedrawnModels = redraw(repetitions, rng)
    scores_of_parts = [
        np.asarray(drawn.proba(people.features), np.float64) for people in evaluations
    ]
    for people, scores in zip(evaluations, scores_of_parts, strict=True):
        _check(scores, (repetitions, len(people.labels)), "the redrawn models")
    return ModelBatch(scores_of_parts)


def predict_chances(model: Any, people: People, rng: np.random.Generator) -> _Floats:
    """Probabilities (n,) of label 1 by one model."""
    probabilities = np.asarray(
        model.predict_proba(people.features, rng, people.sensitive), np.float64
    )
    _check(probabilities, (len(people.labels), 2), f"predict_proba of {type(model).__name__}")
    return probabilities[:, 1]


def _check(probabilities: _Floats, shape: tuple[int, ...], who: str) -> None:
    if probabilities.shape != shape or not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InputError(f"{who} must give probabilities {shape} in [0, 1]")
