"""Auditors: the base class, its input, the release of an audit; and the bases of all kinds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.sheet import InWords
from fpbench.base.text import show_lines
from fpbench.claims.rates import Metric
from fpbench.components.attack_kinds import (
    Adversary,
    Component,
    Corrector,
    Dataset,
    Disclosure,
    Learner,
)
from fpbench.components.guarantee import Guarantee, Neighbours
from fpbench.components.mechanism import Mechanism, Policy
from fpbench.components.records import MeasureValues
from fpbench.components.sights import explain_lack
from fpbench.data.sample import Codes, Sample, Shares

if TYPE_CHECKING:
    from pandas import DataFrame


NOISES = ("simulation", "secure")
"""Where the noise of a release may come from."""


@dataclass(frozen=True, eq=False)
class Shadows:
    """Outputs of models of the learner, trained on other people, for the people of the split.

    The n people are those of the training part, then those of the test part.

    Attributes
    ----------
    members
        (S, n) who is in the training data of each shadow model: everybody is in exactly half.
    scores
        (S, n) in [0, 1]: each shadow model's probability of label 1; its label if not `soft`.
    target
        (n,) the same for the audited model, trained on the training part.
    soft
        Whether scores are probabilities; otherwise the learner gives labels only.
    """

    members: NDArray[np.bool_]
    scores: Shares
    target: Shares
    soft: bool


@dataclass(frozen=True)
class Subject:
    """All that an auditor gets; columns that it does not declare in `sees` are missing.

    Attributes
    ----------
    train
        The people the model was trained on.
    test
        The people it is audited on.
    model
        The trained model, a `Classifier`; None if not in `sees`.
    curator
        Answers queries about the groups of the people it is audited on; None if not in `sees`.
    learner
        The learner, to be trained on other people; None without `fit` in `sees`.
    shadows
        Scores of the audited model, and of shadow models; None if `shadow_models` is None.
    twin
        The same for the learner without its fairness, trained on the same people; None unless
        the auditor `needs_twin`.
    """

    train: Sample
    test: Sample
    model: Any = None
    curator: HistogramSource | None = None
    learner: Learner | None = None
    shadows: Shadows | None = None
    twin: Shadows | None = None


@dataclass(frozen=True, eq=False)
class Release(InWords):
    """The result of a private audit of fairness, R times over, each time with fresh noise.

    Fairness is the ratio of the least to the greatest group rate, in [0, 1]: 1 is fair. For
    equalized odds it is the smaller of the two labels' ratios.

    Attributes
    ----------
    metric
        Which rates are compared.
    values
        (R,) estimates of the ratio.
    low
        (R,) lower ends of the intervals, which combine sampling and noise.
    high
        (R,) upper ends.
    confidence
        Confidence level of the intervals, in (0, 1).
    guarantee
        The privacy guarantee of one of the audits.
    noise
        Where the noise came from: `simulation` or `secure`.
    measures
        Further measures for the row: queries, share of invalid answers, ...
    rules
        The rules with their noisy counts, of the first audit; None if there are no rules.
    """

    metric: Metric
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float
    guarantee: Guarantee
    noise: str
    measures: MeasureValues = field(default_factory=dict)
    rules: DataFrame | None = None

    def __str__(self) -> str:
        guarantee, low, high = self.guarantee, self.low[0], self.high[0]
        price = f"epsilon {guarantee.epsilon:g}" + (
            f", delta {guarantee.delta:g}" if guarantee.delta else ""
        )
        more = f"; the first of {len(self.values)} audits" if len(self.values) > 1 else ""
        between = ""
        if not np.isnan(low):
            between = f", {low:.3f} to {high:.3f} at {100 * self.confidence:.6g}% confidence"
        return show_lines([
            f"{self.metric}: least / greatest group rate {self.values[0]:.3f}{between} ({price}, "
            f"neighbours by {guarantee.neighbours}, {self.noise} noise{more})"
        ])  # fmt: skip

    __repr__ = __str__


class HistogramSource(Protocol):
    """The owner of people's groups, who answers histogram queries under differential privacy.

    `fpbench.privacy.Curator` in this process; `RemoteCurator` of the package `fpbench-curator`, on
    another machine.
    """

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""

    @property
    def people(self) -> int:
        """Number of people n."""

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation of epsilon."""

    def histogram(
        self,
        cells: Codes,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy counts of people of every group in every cell.

        Parameters
        ----------
        cells
            (n,) the cell of each person, in 0..n_cells-1, or -1 for none; public.
        n_cells
            Number of cells C.
        epsilon
            Epsilon of one answer; one or several, shape (...). Cells are disjoint, so each gets the
            full epsilon.
        mechanism
            Adds the noise.
        repetitions
            Number R of answers for each epsilon; each has fresh noise, and each costs epsilon.

        Returns
        -------
        ndarray
            (..., R, C, K).

        Raises
        ------
        InputError
            If the cells are not n such codes.
        BudgetError
            If the answers cost more than the remaining budget; then nothing is spent.
        """


class Auditor(Component):
    """Measures a trained model."""

    kind = "auditor"
    sees: ClassVar[frozenset[str]]
    """What it sees: words of the table `SIGHTS` that auditors may declare."""

    @property
    def needs_rules(self) -> bool:
        """Whether it can audit models with `rules` only."""
        return False

    @property
    def needs_baseline(self) -> bool:
        """Whether it can audit models with a `baseline` only."""
        return False

    @property
    def needs_twin(self) -> bool:
        """Whether it can audit learners with a `twin` only."""
        return False

    @property
    def shadow_models(self) -> int | None:
        """Even number of shadow models that it compares the audited model with.

        With 0 it gets the scores of the audited model only; with None, no scores. Auditors of a
        learner with the same number share the shadow models.
        """
        return None

    @property
    def relation(self) -> Neighbours:
        """Which data sets are neighbours for its curator in a matrix."""
        return "attribute"

    @property
    def protects(self) -> frozenset[str]:
        """The sensitive attribute, if it asks a curator."""
        return frozenset({"sensitive"} if "curator" in self.sees else ())

    def incompatible(self, other: Component) -> str | None:
        """Why a learner lacks the rules, baseline or twin that it needs; None if it has them."""
        if not isinstance(other, Learner):
            return None
        if self.needs_rules and not other.gives_rules:
            return f"auditor {self.name!r} reads rules, and learner {other.name!r} gives none"
        if self.needs_baseline and not other.gives_baseline:
            return (
                f"auditor {self.name!r} compares a model with its baseline without privacy, and "
                f"learner {other.name!r} gives none"
            )
        sights = self.sees | ({"twin"} if self.needs_twin else frozenset())
        return explain_lack(f"auditor {self.name!r}", sights, other)

    @abstractmethod
    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues | Release:
        """Measures of the model by name, in snake_case; a `Release` of a private audit.

        A private audit does not see the sensitive attribute. fpbench, which knows the truth,
        measures the error of its `Release`.
        """


_BASES = (Dataset, Learner, Disclosure, Adversary, Corrector, Mechanism, Policy, Auditor)

BASES: dict[str, type[Component]] = {base.kind: base for base in _BASES}
"""Base class of each kind."""
