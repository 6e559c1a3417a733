"""A student of noisy votes, which can learn again from fresh noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Guarantee, InputError, Measures
from fpbench.builtin.learners._fitted import as_labels, both_labels
from fpbench.builtin.learners._pate_families import Family, Floats, Rows
from fpbench.builtin.learners._pate_parts import Design
from fpbench.models import encode
from fpbench.privacy import VoteLabels, flip_probabilities, vote_labels

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Confident:
    """Answers only where the greatest noisy count passes a threshold (Confident-GNMax)."""

    threshold: float
    """In votes."""
    ratio: float
    """Standard deviation of the noise of that test, in multiples of sigma."""
    answers: int
    """After so many answers, none is given."""

    def answered(self, votes: NDArray[np.int64], noise: Floats) -> Floats:
        """Whether a row is answered (R, m), 1 or 0, from noise (R, m) of the tests."""
        passed = votes.max(axis=1) + noise >= self.threshold
        told: Floats = (passed & (np.cumsum(passed, axis=1) <= self.answers)).astype(np.float64)
        return told


@dataclass(frozen=True)
class Student:
    """A trained model of a family."""

    family: Family
    scaled: Design
    parameters: Any
    """Of one model, in the form of several."""

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; a probability of one half is label 0."""
        return as_labels(self._positive(features) > 0.5)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Floats:
        """Probabilities (n, 2) of label 0 and label 1."""
        return both_labels(self._positive(features))

    def _positive(self, features: DataFrame) -> Floats:
        found: Floats = self.family.proba(self.parameters, self.scaled(encode(features)))[0]
        return found


@dataclass(frozen=True)
class PateModel(Student):
    """The student of noisy votes: a `fpbench.auditing.VotedModel`.

    What it predicts is private, by `guarantee`. Not private are the votes, the baseline, the
    notes that are computed from them, and whatever is fitted again.
    """

    guarantee: Guarantee | None
    """None without noise."""
    baseline: Student
    """The same student, taught by all the votes without noise."""
    public_rows: Rows
    """(m,) rows of the training sample that the teachers voted on, ascending."""
    public_design: Floats
    """(m, d) those rows, as students take them."""
    votes: NDArray[np.int64]
    """(m, 2) votes without noise."""
    teachers: int
    """Their number k."""
    sigma: float
    labels: VoteLabels
    penalty: float
    student: Literal["logistic", "mlp"]
    confident: Confident | None = None
    notes: Measures = field(default_factory=dict)

    @property
    def theta_star(self) -> Floats | None:
        """(d,) parameters of the baseline, the intercept last; None if it is a network."""
        return None if self.student == "mlp" else np.asarray(self.baseline.parameters[0])

    @property
    def flips(self) -> Floats:
        """(m,) probabilities that noise changes the winner of the votes."""
        return flip_probabilities(self.votes, self.sigma)

    def design(self, features: DataFrame) -> Floats:
        """What students take: (n, d), one-hot, standardised on the public rows; a one is last."""
        return self.scaled(encode(features))

    def draw_noise(
        self, repetitions: int, rng: np.random.Generator, antithetic: bool = False
    ) -> Floats:
        """Noise (R, m, 2) of the counts; (R, m, 3) if answers are tested first, theirs is last.

        Antithetic: the second half is minus the first, which leaves each repetition as it would
        be alone, and the mean of the two nearer to what is expected.
        """
        return draw_noise(
            (repetitions, len(self.votes)), self.sigma, self.confident, rng, antithetic
        )

    def targets(self, noise: Floats) -> tuple[Floats, Floats | None]:
        """Labels (R, m) that students learn from noise, and whether they do (R, m), or None.

        Raises
        ------
        InputError
            If it is not noise as `draw_noise` gives it.
        """
        return learnt(self.votes, noise, self.labels, self.teachers, self.confident)

    def fit_students(self, targets: Floats, weights: Floats | None = None) -> Any:
        """Students of labels (R, m): parameters (R, d) of logistic ones."""
        return self.family.students(self.public_design, targets, weights, self.theta_star)

    def student_proba(self, parameters: Any, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1 by all students."""
        return self.family.proba(parameters, design)

    def distances(self, parameters: Any) -> Floats:
        """How far all students (R,) are from the baseline, in the norm of their parameters."""
        away = self.family.flat(parameters) - self.family.flat(self.baseline.parameters)
        return np.asarray(np.linalg.norm(away, axis=1))


def draw_noise(
    shape: tuple[int, int],
    sigma: float,
    confident: Confident | None,
    rng: np.random.Generator,
    antithetic: bool = False,
) -> Floats:
    """Noise (R, m, 2) of counts, or (R, m, 3) with that of the tests."""
    repetitions, m = shape
    drawn = -(-repetitions // 2) if antithetic else repetitions
    noise = rng.standard_normal((drawn, m, 2 if confident is None else 3))
    noise *= sigma
    if confident is not None:
        noise[..., 2] *= confident.ratio
    return np.concatenate([noise, -noise[: repetitions - drawn]]) if antithetic else noise


def learnt(
    votes: NDArray[np.int64],
    noise: Floats,
    labels: VoteLabels,
    teachers: int,
    confident: Confident | None,
) -> tuple[Floats, Floats | None]:
    """Labels (R, m) of noisy votes, and which are told, if not all."""
    want = (len(votes), 2 if confident is None else 3)
    if noise.ndim != 3 or noise.shape[1:] != want:
        raise InputError(f"noise must be (R, {want[0]}, {want[1]}), not {noise.shape}")
    found = vote_labels(votes + noise[..., :2], labels, teachers)
    return found, None if confident is None else confident.answered(votes, noise[..., 2])
