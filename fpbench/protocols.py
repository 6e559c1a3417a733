"""What plugins hand back or are handed that is no plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.privacy import Neighbours
from fpbench.rates import RateConstraint
from fpbench.records import Codes, Sample

if TYPE_CHECKING:
    from pandas import DataFrame

    from fpbench.auditing import Mechanism


@runtime_checkable
class Classifier(Protocol):
    """What a learner gives back.

    It may also have `predict_proba(features, rng)`, `rules`, `guarantee` and `baseline`.
    """

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; `sensitive` only if the learner says it needs it."""


class Context(Protocol):
    """What a disclosure is handed: samples with labels, groups and predictions."""

    @property
    def asked(self) -> RateConstraint | None:
        """The fairness that the learner was trained for."""

    @property
    def train(self) -> Sample:
        """The people it was trained on."""

    @property
    def attack(self) -> Sample:
        """The attack set."""


class HistogramSource(Protocol):
    """Who owns people's groups and answers histogram queries under differential privacy.

    `fpbench.Curator` in this process, `fpbench.RemoteCurator` on another machine.
    """

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""

    @property
    def people(self) -> int:
        """Number of people n."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation that epsilon is measured by."""

    def histogram(
        self,
        cells: Codes,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy numbers of people of every group in every cell.

        Parameters
        ----------
        cells
            (n,) the cell of each person, in 0..n_cells-1, or -1 for none; public.
        n_cells
            Number of cells C.
        epsilon
            Of one answer; one or several, shape (...). Cells share nobody, so each uses all of it.
        mechanism
            Adds the noise.
        repetitions
            Number R of answers for each epsilon, each of fresh noise and each paid for.

        Returns
        -------
        ndarray
            (..., R, C, K).

        Raises
        ------
        InputError
            If the cells are not n such codes.
        BudgetError
            If the answers cost more than is left; nothing is spent then.
        """
