"""The base classes of components that attacks combine, which plugin authors subclass.

A component is a frozen set of validated parameters and one method. Its fields are its parameters
in a matrix; everything else about it is class attributes. Randomness comes only from the generator
argument, and heavy libraries are imported inside the method that needs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from fpbench.base.errors import InputError
from fpbench.claims.facts import Fact
from fpbench.claims.rates import FORMS, RateConstraint
from fpbench.components.measures import Measure
from fpbench.components.records import Claim, Correction, Guess, Problem, View, Weighing
from fpbench.components.sights import explain_lack, keep_model_sights
from fpbench.data.attributes import explain_no_guarantee
from fpbench.data.data_files import check_leave, compute_sha256
from fpbench.data.sample import Codes, Sample
from fpbench.data.table import DatasetFacts, Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from fpbench.data.data_files import DataFile, DataHome


@runtime_checkable
class Classifier(Protocol):
    """A trained model.

    It may also have `predict_proba(features, rng)`, `rules`, `published_trees`, `guarantee` and
    `baseline`.
    """

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Labels (n,) in {0, 1}; `sensitive` is None unless the learner predicts with it."""


class Context(Protocol):
    """What a disclosure reads: samples with labels, groups and predictions."""

    @property
    def asked(self) -> RateConstraint | None:
        """The fairness that the learner was trained for."""

    @property
    def target(self) -> Sample:
        """The people that the claim is about."""

    @property
    def attack(self) -> Sample:
        """The attack set."""

    @property
    def model(self) -> Classifier | None:
        """The trained model, for disclosures that need it; None for others."""

    @property
    def trained_on_target(self) -> bool:
        """Whether the model was trained on the target people."""


class Component(BaseModel, ABC):
    """Parameters and one method; the base of every kind.

    Fields are keyword-only, validated strictly and frozen. Unknown names are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    kind: ClassVar[str]
    """Set by the base class of each kind."""
    name: ClassVar[str]
    """Its name in a matrix: lower case, words joined by hyphens."""
    summary: ClassVar[str]
    """One line for listings."""
    reference: ClassVar[str] = ""
    """Citation of its source, if it has one."""
    measures: ClassVar[tuple[Measure, ...]] = ()
    """Declarations of its notes and measures, the most important first: leaderboards rank audits
    by the first measure of their auditor."""

    @classmethod
    def unavailable(cls) -> str | None:
        """Why it cannot run here, with the command that helps; None if it can."""
        return None

    @classmethod
    def runs_on(cls) -> str | None:
        """The solver or program that it uses here, or the command that installs a missing one.

        None if it needs Python packages only. `fpbench doctor` shows the text.
        """
        return None

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Parameters with which it can be tested, as a matrix has them; none, by default.

        `fpbench check` tests a component with each of them. Components in its slots are tables
        with `use`; `fpbench check` fills the required slots that an example leaves empty.

        Parameters
        ----------
        directory
            An empty directory for files that the examples read.
        """
        return [{}]

    @property
    def portable(self) -> bool:
        """Whether it computes the same on every processor, within 1e-6.

        Sums of products differ in their last bits between processors, and an algorithm that breaks
        ties or stops early amplifies the difference. Rows of a component that is not portable have
        `portable = false`, and are compared only if the same kernels computed them.
        """
        return True

    def portable_throughout(self) -> bool:
        """Whether this component and all components in its slots are portable."""
        return self.portable and all(inner.portable_throughout() for inner in self._inner())

    def declared_measures(self) -> Iterator[Measure]:
        """The measures that it declares, then those of the components in its slots."""
        for measure in self.measures:
            yield replace(measure, source=f"{self.kind} {self.name}")
        for inner in self._inner():
            yield from inner.declared_measures()

    def _inner(self) -> list[Component]:
        return [value for value in self.__dict__.values() if isinstance(value, Component)]

    @property
    def protects(self) -> frozenset[str]:
        """Columns of people whose privacy it guarantees; see `Sample.check_cuts`."""
        return frozenset()

    def incompatible(self, other: Component) -> str | None:
        """Why a cell that combines it with `other` makes no sense; None if it does."""
        return None


class Dataset(Component):
    """People with features, a label and a sensitive attribute."""

    kind = "dataset"
    about: ClassVar[DatasetFacts | None] = None
    """Facts about the original; None if they depend on the parameters."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make its `load` raise in an adversary's process, also for generated tables."""
        super().__init_subclass__(**options)
        if "load" in vars(cls):
            cls.load = _require_leave(cls.load)  # type: ignore[method-assign]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Files it reads from the data directories, and where they come from."""
        return ()

    @property
    def n_groups(self) -> int | None:
        """Number of groups K, if it is known before loading."""
        return None

    @property
    def measured_cuts(self) -> dict[str, str]:
        """Columns known to be cut at a statistic of everybody, and how."""
        return {}

    def incompatible(self, other: Component) -> str | None:
        """Why a private component refuses cuts that are not public; None if it accepts them."""
        return explain_no_guarantee(
            self.measured_cuts, other.protects, f"{other.kind} {other.name!r}"
        )

    def absent(self, home: DataHome) -> str | None:
        """Why it cannot be loaded here, with the command that helps; None if it can."""
        missing = home.missing(self.files)
        if not missing:
            return None
        names = " and ".join(file.name for file in missing)
        return (
            f"data of {self.name!r} not found ({names}): fpbench data fetch {self.name}"
            f"{home.explain_gap()}"
        )

    def check(self, home: DataHome) -> None:
        """Check the data before anything is run.

        Published data needs no check.

        Raises
        ------
        InputError
            If the data does not match the parameters; `DataError` if it cannot be used.
        """

    def checksums(self, home: DataHome) -> dict[str, Callable[[], str]]:
        """Functions that compute the checksum of each file that it reads, by name."""
        return {file.name: partial(compute_sha256, home.find(file)) for file in self.files}

    def unlike(self, home: DataHome, sums: Mapping[str, str]) -> list[str]:
        """Warnings about files that are not the known originals, from their checksums by name."""
        return [
            f"{home.find(file)} is not the known original: its sha256 is {sums[file.name]}, that "
            f"of the original {file.sha256}; `fpbench data fetch {self.name}` gets it"
            for file in self.files
            if file.sha256 and sums[file.name] != file.sha256
        ]

    def fetch(self, home: DataHome) -> list[Path]:
        """Download the files that are missing, or are not the known originals.

        Raises
        ------
        DataError
            If a file cannot be downloaded, or the download is not the known original.
        """
        return [home.fetch(file) for file in self.files]

    @abstractmethod
    def load(self, home: DataHome) -> Table:
        """Read or generate the table.

        Parameters
        ----------
        home
            Finds files by name in the data directories.

        Raises
        ------
        DataError
            If a file is missing, or its content is not as expected.
        """


def _require_leave(load: Callable[..., Table]) -> Callable[..., Table]:
    @wraps(load)
    def checked(*arguments: Any, **options: Any) -> Table:
        check_leave()
        return load(*arguments, **options)

    return checked


class Learner(Component):
    """Trains the model that is attacked or audited."""

    kind = "learner"
    needs: ClassVar[frozenset[str]] = frozenset({"features", "labels", "sensitive"})
    """Columns of the training people that it trains on; fpbench hides the others."""
    predicts_with_sensitive: ClassVar[bool] = False
    """Whether the model needs people's groups to predict; an adversary who does not know them can
    only query it with every group."""
    gives_scores: ClassVar[bool] = False
    """Whether its models have `predict_proba`."""

    @property
    def gives_rules(self) -> bool:
        """Whether its models have `rules`, see `fpbench.Rules`."""
        return False

    @property
    def gives_baseline(self) -> bool:
        """Whether its models have a `baseline`: are a `fpbench.auditing.PrivateModel`."""
        return False

    def has_scores(self) -> bool:
        """Whether its models give probabilities with these parameters."""
        return self.gives_scores and self.explain_no_scores() is None

    def explain_no_scores(self) -> str | None:
        """Why a learner that `gives_scores` gives none with these parameters; None if it does."""
        return None

    @property
    def gives_trees(self) -> bool:
        """Whether its models have `published_trees`: `fpbench.models.PublishedTree` objects."""
        return False

    def asked(self) -> RateConstraint | None:
        """The fairness it is trained for; None if it aims at none in particular."""
        return None

    @abstractmethod
    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on a sample that has the columns it `needs`.

        A model may have a `notes` dictionary of measures about its training, which go into rows.
        A private model has a `guarantee`, a `Guarantee`; its notes state no other.
        """

    def fit_many(
        self,
        people: Sample,
        members: NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
    ) -> list[Classifier]:
        """Train B models, each on its own part of the same people.

        It must give what `fit` gives one by one, within 1e-6 of every score. A learner that can
        train many models at once overrides it.

        Parameters
        ----------
        people
            n people, with the columns that it `needs`.
        members
            (B, n) who is in the training data of each model.
        rngs
            B generators, one for each model.
        """
        return [
            self.fit(people.take(np.flatnonzero(chosen)), rng)
            for chosen, rng in zip(members, rngs, strict=True)
        ]

    def score_many(
        self, models: Sequence[Classifier], people: Sample, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Outputs of models for people: (B, n) probabilities of label 1, or labels without scores.

        A learner that can query many of its models at once overrides it.

        Parameters
        ----------
        models
            B models of this learner.
        people
            n people with features, and with groups if it `predicts_with_sensitive`.
        rng
            For randomised models.
        """
        groups = people.sensitive if self.predicts_with_sensitive else None
        scores = np.empty((len(models), len(people)))
        soft = self.has_scores()
        for row, model in zip(scores, models, strict=True):
            if soft:
                positive = model.predict_proba(people.features, rng, groups)  # type: ignore[attr-defined]
                row[:] = np.asarray(positive)[:, 1]
            else:
                row[:] = model.predict(people.features, rng, groups)
        return scores

    def twin(self) -> Learner | None:
        """The same learner without its fairness; None if it has none, or is nothing but fairness.

        Auditors that compare both models (`needs_twin`) train it too.
        """
        return None


class Disclosure(Component):
    """Publishes a claim about the target's fairness."""

    kind = "disclosure"
    shows: ClassVar[frozenset[str]] = frozenset()
    """What it shows besides claims about rates: words of the table `SIGHTS`."""

    also: list[Fact] = Field(
        [], description="further public facts: tables with use = share, positive-rate, unfairness, "
        "known or linear"
    )  # fmt: skip

    @property
    def needs_model(self) -> bool:
        """Whether it reads the model itself: `Context.model`."""
        return False

    def forms(self) -> tuple[str, ...]:
        """Forms that its claims about rates may have; empty if it makes no such claim."""
        return ("to-overall",)

    def words(self) -> list[str]:
        """Words of all the constraints it may disclose."""
        return [*self.forms(), *(fact.word for fact in self.also)]

    def incompatible(self, other: Component) -> str | None:
        """Why a learner's models lack what it shows; None if they do not."""
        if isinstance(other, Learner):
            return explain_lack(f"disclosure {self.name!r}", self.shows, other)
        return None

    @abstractmethod
    def claim(self, context: Context, rng: np.random.Generator) -> Claim | None:
        """The claim that is disclosed; None if nothing is."""


class Adversary(Component):
    """Guesses the group of each person the target was trained on."""

    kind = "adversary"
    sees: ClassVar[frozenset[str]]
    """What it sees of the target people: words of the table `SIGHTS` that adversaries may declare,
    each a column of the samples of its `View`. Of the attack set it also sees the sensitive
    attribute."""

    @property
    def sees_without_model(self) -> frozenset[str]:
        """What it sees that does not come from the trained model."""
        return self.sees - frozenset(keep_model_sights(self.sees))

    @property
    def tunes_once(self) -> bool:
        """Whether it is tuned once for a dataset, in a step that all learners and seeds share."""
        return False

    def incompatible(self, other: Component) -> str | None:
        """Why a learner's models cannot give what it sees; None if they can."""
        if isinstance(other, Learner):
            return explain_lack(f"adversary {self.name!r}", self.sees, other)
        return None

    def tune(self, known: Sample, rng: np.random.Generator) -> Adversary:
        """A tuned adversary, which then guesses instead of this one.

        `known` is an attack set: its columns are the sensitive attribute and those that the
        adversary `sees_without_model`.
        """
        return self

    @abstractmethod
    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Guesses of the groups of everyone, and of a held-out part of the attack set."""


class Corrector(Component):
    """Changes a guess as little as possible so that it satisfies a claim."""

    kind = "corrector"
    expresses: ClassVar[frozenset[str]] = frozenset(FORMS)
    """Words of the constraints that it accepts (`Constraint.word`)."""

    def incompatible(self, other: Component) -> str | None:
        """Why a disclosure makes no claim, or one that this corrector cannot express; else None."""
        if not isinstance(other, Disclosure):
            return None
        words = other.words()
        if not words:
            return f"disclosure {other.name!r} makes no claim, so there is nothing to correct with"
        return self._explain_refusal(words)

    def check(self, problem: Problem) -> None:
        """Refuse a problem that it cannot express.

        Raises
        ------
        InputError
            If the problem has no constraint, or one that this corrector cannot express.
        """
        words = [constraint.word for constraint in problem.constraints]
        reason = self._explain_refusal(words) if words else "needs a claim, and nothing was claimed"
        if reason:
            raise InputError(f"corrector {self.name!r} {reason}" if not words else reason)

    def _explain_refusal(self, words: Iterable[str]) -> str | None:
        for word in words:
            if word not in self.expresses:
                able = ", ".join(sorted(self.expresses))
                return (
                    f"corrector {self.name!r} cannot express the constraint {word!r}; it can "
                    f"express: {able}"
                )
        return None

    def weigh(self, guess: Guess, held_out: Problem, truth: Codes) -> Weighing:
        """Costs of changing each guess, from the adversary's confidence.

        Parameters
        ----------
        guess
            The guess, n people.
        held_out, truth
            The same problem for the m held-out people of the attack set, without weights, and their
            groups, which the adversary knows. The claim about rates is its only constraint.

        Returns
        -------
        Weighing
            (n,) positive costs, or None if every change costs the same; measures for the row; and
            groups to be corrected instead of the guess.
        """
        return Weighing(None)

    @abstractmethod
    def correct(self, problem: Problem) -> Correction:
        """The solution; an infeasible problem is a result with a status, not an error."""
