"""Interfaces of models with a counterpart without privacy, for audits of excessive risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.data.sample import Codes

if TYPE_CHECKING:
    from pandas import DataFrame

VoteLabels: TypeAlias = Literal["hard", "soft", "soft-clipped", "equation-12"]
"""Labels from noisy votes: the label with more votes; the share of label 1, which noise may push
out of [0, 1]; that share, cut to [0, 1]; or the noisy count of label 1 over the teachers."""


class Scored(Protocol):
    """A model that gives probabilities."""

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""


class PrivateModel(Scored, Protocol):
    """A model with a counterpart without privacy, for audits of excessive risk.

    It may have `redraw(repetitions, rng)`, which returns `RedrawnModels`, or be a `VotedModel`.
    Without either, it is the only draw of its learner.
    """

    @property
    def baseline(self) -> Scored:
        """The model of the same training without privacy."""


class RedrawnModels(Protocol):
    """R models from the same training, each with its own private randomness."""

    def proba(self, features: DataFrame) -> NDArray[np.float64]:
        """Probabilities (R, n) of label 1."""


class VotedModel(PrivateModel, Protocol):
    """A student that learnt from noisy votes of teachers, and can learn again from fresh noise.

    A logistic student, or one of least squares (half the squared difference of x'theta and label),
    minimises the mean loss + `penalty` ||theta||^2; the intercept is a part of theta. With labels
    `equation-12` it may have `find_not_convex(weights)`, whether the objectives of students (R,)
    are shown not to be convex. Any other student may have
    `distances(parameters)`, the distances (R,) of students from the baseline, and
    `gradient_norms(design, labels)`, the norms (n,) of gradients of its losses.
    """

    @property
    def public_rows(self) -> NDArray[np.intp]:
        """(m,) rows of the training sample that teachers voted on; the others are theirs."""

    @property
    def votes(self) -> NDArray[np.int64]:
        """(m, 2) votes of the teachers for label 0 and label 1, without noise: not private."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of each count."""

    @property
    def labels(self) -> str:
        """The student's kind of labels: a `VoteLabels`."""

    @property
    def penalty(self) -> float:
        """Lambda of the mean objective."""

    @property
    def student(self) -> str:
        """`logistic`, `least-squares` or `mlp`."""

    @property
    def theta_star(self) -> NDArray[np.float64] | None:
        """(d,) parameters of a linear baseline, the intercept last; None for any other."""

    def design(self, features: DataFrame) -> NDArray[np.float64]:
        """Inputs (n, d) of students, with a last column of ones."""

    def draw_noise(
        self, repetitions: int, rng: np.random.Generator, antithetic: bool = False
    ) -> NDArray[np.float64]:
        """Noise (R, m, 2) of the counts; antithetic: the second half is minus the first.

        It may be (R, m, 3 or more) if more than the counts is noisy.
        """

    def targets(
        self, noise: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Labels (R, m) that students learn from noise (R, m, 2), and weights (R, m) or None."""

    def fit_students(
        self, targets: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> Any:
        """Students trained on labels (R, m): parameters (R, d) if linear, else any object."""

    def student_proba(self, parameters: Any, design: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities (R, n) of label 1 by all students."""
