"""The models of PATE: families of teachers and students, and a student of noisy votes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fpbench import Guarantee, InputError
from fpbench.auditing import VoteLabels
from fpbench.builtin.batched.logistic import fit_logistic, fit_logistic_apart, logistic_proba
from fpbench.builtin.batched.mlp import MLPTraining, Networks, fit_networks, fit_networks_apart
from fpbench.builtin.learners._fitted import ScoredModel
from fpbench.builtin.pate.equation_12 import find_not_convex, fit_weighted_labels
from fpbench.builtin.pate.least_squares import fit_least_squares
from fpbench.builtin.pate.noisy_votes import flip_probabilities, vote_labels
from fpbench.errors import DataError
from fpbench.models import Encoding, encode
from fpbench.plugin import MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class StandardizedFeatures:
    """Features as a matrix: encoded, standardised on the public part, and a column of ones."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    columns: NDArray[np.intp]
    """Columns that vary in the public part; the others have no public scale."""
    encoding: Encoding
    fair: NDArray[np.float64] | None = None
    """(d, d) projection that takes out the directions in which groups differ, or None."""

    @classmethod
    def of(cls, public: NDArray[np.float32], encoding: Encoding) -> StandardizedFeatures:
        """The scaling by encoded public rows (m, columns)."""
        mean, scale = public.mean(axis=0, dtype=np.float64), public.std(axis=0, dtype=np.float64)
        # By range, as the standard deviation of a constant column is not exactly 0.
        columns = np.flatnonzero(np.ptp(public, axis=0) > 0)
        return cls(mean[columns], scale[columns], columns, encoding)

    def encode(self, features: DataFrame) -> NDArray[np.float64]:
        """The scaled matrix (n, d) of features."""
        return self(encode(features, self.encoding))

    def __call__(self, encoded: NDArray[np.float32]) -> NDArray[np.float64]:
        """The scaled matrix (n, d); its last column is ones."""
        matrix = np.empty((len(encoded), len(self.columns) + 1))
        np.subtract(encoded[:, self.columns], self.mean, out=matrix[:, :-1])
        matrix[:, :-1] /= self.scale
        matrix[:, -1] = 1.0
        return matrix if self.fair is None else matrix @ self.fair


def encode_finite(features: DataFrame, learner: str, encoding: Encoding) -> NDArray[np.float32]:
    """Finite encoded features; DataError if a number is missing or infinite."""
    matrix = encode(features, encoding)
    if not np.isfinite(matrix).all():
        import pandas as pd

        for name, column in features.items():
            if pd.api.types.is_numeric_dtype(column) and not np.isfinite(
                column.to_numpy(np.float32)
            ).all():  # fmt: skip
                raise DataError(
                    f"learner {learner!r}: the feature {name!r} has values that are missing or "
                    "not finite; fill or drop them first"
                )
    return matrix


class ModelFamily(Protocol):
    """Trains many models of one kind at once, and evaluates them."""

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Any:
        """One model for each part of the rows."""

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Any:
        """One model for each row of targets (R, m), all on the same people."""

    def proba(self, models: Any, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1."""

    def flat(self, models: Any) -> Floats:
        """All parameters (R, parameters)."""


@dataclass(frozen=True)
class LinearFamily:
    """Ridge regressions, exact."""

    penalty: float
    loss: Literal["logistic", "equation-12", "least-squares"]
    """With `equation-12` students learn both labels, by its weights."""

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Floats:
        """Parameters (k, d)."""
        if self.loss != "least-squares":
            return fit_logistic_apart(design, labels, parts, self.penalty)
        own = [(design[rows], labels[None, rows]) for rows in parts]
        return np.concatenate([fit_least_squares(x, y, self.penalty) for x, y in own])

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Floats:
        """Parameters (R, d)."""
        if self.loss == "least-squares":
            return fit_least_squares(design, targets, self.penalty, weights)
        if self.loss == "equation-12" and weights is not None:
            return fit_weighted_labels(design, targets, weights, self.penalty)
        return fit_logistic(design, targets, self.penalty, weights, start=start)

    def proba(self, models: Floats, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1; of least squares, values cut to [0, 1]."""
        if self.loss == "least-squares":
            return np.clip(models @ design.T, 0.0, 1.0)
        return logistic_proba(models, design)

    def flat(self, models: Floats) -> Floats:
        """All parameters (R, d)."""
        return models


@dataclass(frozen=True)
class MLPFamily:
    """Networks of two hidden ReLU layers, by Adam."""

    training: MLPTraining
    seed: int
    """Seed of initial weights and batches, shared by all students: they differ by noise only."""

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Networks:
        """One network for each part."""
        rng = np.random.default_rng(self.seed)
        return fit_networks_apart(design, labels, parts, self.training, rng)

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Networks:
        """One network for each row of targets."""
        rng = np.random.default_rng(self.seed)
        return fit_networks(design, targets, self.training, rng, weights)

    def proba(self, models: Networks, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1."""
        return models.proba(design)

    def flat(self, models: Networks) -> Floats:
        """All their parameters (R, parameters)."""
        return models.flat


@dataclass(frozen=True)
class ConfidenceTest:
    """The test of Confident-GNMax: the greatest noisy count must pass a threshold."""

    threshold: float
    """Threshold, in votes."""
    ratio: float
    """Standard deviation of the test's noise, in multiples of sigma."""
    answers: int
    """Greatest number of answers."""

    def select_answers(self, votes: NDArray[np.int64], noise: Floats) -> Floats:
        """Whether a row is answered (R, m), as 1 or 0, given noise (R, m) of the tests."""
        passed = votes.max(axis=1) + noise >= self.threshold
        within_limit = np.cumsum(passed, axis=1) <= self.answers
        return np.asarray(passed & within_limit, dtype=np.float64)


@dataclass(frozen=True)
class ParityRefusal:
    """FairPATE's test: no more label 1 for a group that leads by the greatest gap already.

    It reads labels that are released anyway, and people who are public: it is post-processing.
    """

    groups: NDArray[np.intp]
    """(m,) group codes of the public people, in the order in which they are asked."""
    gap: float
    """Greatest lead: a group's share of label 1 minus that of all others, among the answered."""
    least: int
    """Number of people of a group who are answered in any case."""

    def select_answers(self, targets: Floats, answered: Floats) -> Floats:
        """Whether a row is still answered (R, m), as 1 or 0, of labels (R, m) and earlier tests."""
        people = np.zeros((len(targets), int(self.groups.max()) + 1))
        ones, kept = np.zeros_like(people), answered.copy()
        for row, group in enumerate(self.groups):
            label = targets[:, row] > 0.5
            count, others = people[:, group], people.sum(axis=1) - people[:, group]
            lead = ones[:, group] / np.maximum(count, 1)
            lead -= (ones.sum(axis=1) - ones[:, group]) / np.maximum(others, 1)
            kept[:, row] *= ~(label & (count >= self.least) & (others > 0) & (lead >= self.gap))
            people[:, group] += kept[:, row]
            ones[:, group] += kept[:, row] * label
        return kept


@dataclass(frozen=True)
class Student(ScoredModel):
    """A trained model of a family."""

    family: ModelFamily
    scaled: StandardizedFeatures
    parameters: Any
    """Parameters of one model, in the form of several."""

    def find_positive(self, features: DataFrame) -> Floats:
        """Probabilities (n,) of label 1."""
        positive: Floats = self.family.proba(self.parameters, self.scaled.encode(features))[0]
        return positive


@dataclass(frozen=True)
class PateModel(Student):
    """The student of noisy votes: a `fpbench.auditing.VotedModel`.

    Its predictions are private, by `guarantee`. The votes, the baseline, the notes computed from
    them, and refitted students are not private.
    """

    guarantee: Guarantee | None
    """None without noise."""
    baseline: Student
    """The student trained on all votes without noise."""
    public_rows: Rows
    """(m,) rows of the training sample that the teachers voted on, ascending."""
    public_design: Floats
    """(m, d) their scaled features."""
    votes: NDArray[np.int64]
    """(m, 2) votes without noise."""
    teachers: int
    """Number k of teachers."""
    sigma: float
    labels: VoteLabels
    penalty: float
    student: Literal["logistic", "least-squares", "mlp"]
    confident: ConfidenceTest | None = None
    refusal: ParityRefusal | None = None
    notes: MeasureValues = field(default_factory=dict)

    @property
    def theta_star(self) -> Floats | None:
        """(d,) parameters of the baseline, the intercept last; None if it is a network."""
        return None if self.student == "mlp" else np.asarray(self.baseline.parameters[0])

    @property
    def flips(self) -> Floats:
        """(m,) probabilities that noise changes the winner of the votes."""
        return flip_probabilities(self.votes, self.sigma)

    def design(self, features: DataFrame) -> Floats:
        """Input of students (n, d): standardised on the public rows; ones are last."""
        return self.scaled.encode(features)

    def draw_noise(
        self, repetitions: int, rng: np.random.Generator, antithetic: bool = False
    ) -> Floats:
        """Noise (R, m, 2) of the counts, or (R, m, 3) with that of the confidence tests last.

        Antithetic: the second half is the negative of the first. Each repetition has the same
        distribution, and means over pairs vary less.
        """
        return draw_noise(
            (repetitions, len(self.votes)), self.sigma, self.confident, rng, antithetic
        )

    def targets(self, noise: Floats) -> tuple[Floats, Floats | None]:
        """Training labels (R, m) of students, and weights (R, m), 0 if unanswered; None if all 1.

        With labels `equation-12`: weights of label 1, and those of both labels together.

        Raises InputError if the noise does not have the shape of `draw_noise`.
        """
        return derive_targets(
            self.votes, noise, self.labels, self.teachers, self.confident, self.refusal
        )

    def fit_students(self, targets: Floats, weights: Floats | None = None) -> Any:
        """Students trained on labels (R, m): parameters (R, d) of linear ones."""
        return self.family.students(self.public_design, targets, weights, self.theta_star)

    def student_proba(self, parameters: Any, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1 by all students."""
        return self.family.proba(parameters, design)

    def find_not_convex(self, weights: Floats | None) -> NDArray[np.bool_] | None:
        """Whether students' objectives (R,) are shown not to be convex; None if all are convex."""
        if self.labels != "equation-12" or weights is None:
            return None
        return find_not_convex(self.public_design, weights, self.penalty)

    def gradient_norms(self, design: Floats, labels: Floats) -> Floats:
        """Norms (n,) of gradients of the losses of people (n, d) at a network's baseline."""
        norms: Floats = self.baseline.parameters.gradient_norms(design, labels)[0]
        return norms

    def distances(self, parameters: Any) -> Floats:
        """Euclidean distances (R,) of students' parameters from the baseline's."""
        shift = self.family.flat(parameters) - self.family.flat(self.baseline.parameters)
        return np.asarray(np.linalg.norm(shift, axis=1))


def draw_noise(
    shape: tuple[int, int],
    sigma: float,
    confident: ConfidenceTest | None,
    rng: np.random.Generator,
    antithetic: bool = False,
) -> Floats:
    """Noise (R, m, 2) of counts, or (R, m, 3) with that of the confidence tests last."""
    repetitions, m = shape
    drawn = -(-repetitions // 2) if antithetic else repetitions
    noise = rng.standard_normal((drawn, m, 2 if confident is None else 3))
    noise *= sigma
    if confident is not None:
        noise[..., 2] *= confident.ratio
    return np.concatenate([noise, -noise[: repetitions - drawn]]) if antithetic else noise


def derive_targets(
    votes: NDArray[np.int64],
    noise: Floats,
    labels: VoteLabels,
    teachers: int,
    confident: ConfidenceTest | None,
    refusal: ParityRefusal | None = None,
) -> tuple[Floats, Floats | None]:
    """Labels (R, m) of noisy votes, and weights (R, m), 0 if unanswered; None if all 1.

    With labels `equation-12`: weights of label 1, and those of both labels together.
    """
    shape = (len(votes), 2 if confident is None else 3)
    if noise.ndim != 3 or noise.shape[1:] != shape:
        raise InputError(f"noise must be (R, {shape[0]}, {shape[1]}), not {noise.shape}")
    noisy = votes + noise[..., :2]
    targets = vote_labels(noisy, labels, teachers)
    if labels == "equation-12":
        return targets, noisy.sum(axis=-1) / teachers
    weights = None if confident is None else confident.select_answers(votes, noise[..., 2])
    if refusal is not None:
        weights = refusal.select_answers(
            targets, np.ones_like(targets) if weights is None else weights
        )
    return targets, weights
