"""Private aggregation of teacher ensembles: a student taught by noisy votes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from fpbench import LEAST_EPSILON, Guarantee, InputError, Learner, Measures, Sample
from fpbench.builtin.learners._pate_families import MLP, Family, Logistic, Rows
from fpbench.builtin.learners._pate_model import Confident, PateModel, Student, draw_noise, learnt
from fpbench.builtin.learners._pate_parts import Design, Partition, encoded, parts
from fpbench.models import MLPTraining, random_state
from fpbench.privacy import VoteCost, VoteLabels, count_votes, flip_probabilities, vote_labels

Model = Literal["logistic", "mlp"]
_Units = Annotated[int, Field(ge=1, le=4096)]
_OF_CONFIDENT = ("threshold", "ratio", "answers")
_OF_MLP = ("hidden", "epochs", "batch", "rate")
_SIGMA = 50.0
_TIE = 1e-9
"""By how much a teacher's probability must be above 1/2 for a vote for label 1: what is 1/2 in
exact arithmetic is a little more or less in floating point, otherwise on another processor."""


class Pate(Learner):
    """A student that learns from public people, labelled by noisy votes of private teachers.

    `public` training people are drawn; only their features are used. The others are private: each
    of them is in the part of one of k teachers. Teachers vote on every public person, Gaussian
    noise is added to both counts, and a student learns what comes of it. It needs nothing else of
    the private people: columns are scaled by the public ones, and columns that do not vary among
    these are left out.

    **Privacy.** `guarantee` is that of all m answers together, computed exactly (analytic Gaussian
    mechanism): one teacher's vote moves two counts by 1, so the sensitivity is sqrt(2 m). With
    `partition = "hash"`, which part somebody is in depends on the own record alone, and the
    guarantee holds if anybody is added or removed. With `"equal"`, one more person shifts
    everybody behind, so it holds only if somebody is replaced by another, and the number of
    people is public. It protects records: who has many has less. The paper's epsilon is a row's
    `pate_epsilon_paper`. Hyperparameters, names of columns and categories are taken as public.

    **Objective.** The mean loss + penalty ||theta||^2; the paper's lambda, of a sum, is m times
    `penalty`. The intercept is a component of theta, and penalised. scikit-learn's C is
    1 / (2 m penalty). Networks (`mlp`) penalise weights and no biases.

    **Voting.** `gnmax` answers every public person. `confident` (Confident-GNMax) first tests
    whether the greatest count, with noise of its own, passes a threshold, and answers only then,
    with fresh noise. The test costs too, for every person, and that a person is answered depends
    on private data: the guarantee is for `answers` of them, after which no more is answered:
    sensitivity sqrt(2 answers + m / ratio^2). The baseline is taught all votes all the same, so
    that an audit finds what leaving people out does.

    **Departures.** Soft labels are 1/2 + (n1 - n0) / (2 k): those of the paper's equation (12)
    do not sum to 1, and its loss is then not convex. A tie of votes is label 0, and a teacher
    whose probability is above 1/2 by no more than 1e-9, a tie but for rounding, votes for label 0;
    so does one without people, which a hash partition may have. Public people are drawn from the
    training part of the split.

    References
    ----------
    Tran, Dinh, Beiter, Fioretto: A Fairness Analysis on Private Aggregation of Teacher Ensembles.
    2021. Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson: Scalable Private Learning with
    PATE. ICLR 2018, Algorithm 1. Balle, Wang: Improving the Gaussian Mechanism for Differential
    Privacy. ICML 2018.
    """

    name = "pate"
    summary = "PATE: a student taught by the noisy votes of teachers on disjoint parts"
    reference = (
        "Cuong Tran, My H. Dinh, Kyle Beiter, Ferdinando Fioretto. A Fairness Analysis on Private "
        "Aggregation of Teacher Ensembles. arXiv:2109.08630, 2021; Nicolas Papernot et al. "
        "Scalable Private Learning with PATE. ICLR 2018"
    )
    needs = frozenset({"features", "labels"})
    gives_scores = True

    teachers: int = Field(150, ge=1, le=100_000, description="number k of teachers")
    public: int = Field(
        200, ge=1, description="number m of training people the teachers vote on, drawn at random"
    )
    partition: Partition = Field(
        "hash", description="a person's teacher: `hash` of the own record, or in `equal` parts"
    )
    teacher: Model = Field("logistic", description="what teachers are")
    student: Model = Field("logistic", description="what the student is")
    teacher_penalty: float = Field(
        0.01, ge=0, le=1e12, description="lambda in the mean objective of each teacher"
    )
    penalty: float = Field(
        0.5,
        ge=0,
        le=1e12,
        description="lambda in the mean objective of the student; times m, the paper's",
    )
    labels: VoteLabels = Field(
        "hard", description="what the student learns: the winner of the votes, or their noisy share"
    )
    voting: Literal["gnmax", "confident"] = Field(
        "gnmax", description="answer everybody, or only where teachers agree"
    )
    sigma: float | None = Field(
        None,
        ge=0,
        le=1e12,
        description="standard deviation of each count's noise, in votes; 50 by default",
    )
    epsilon: float | None = Field(
        None,
        ge=LEAST_EPSILON,
        le=1e9,
        description="of all answers together; sigma is then as small as it allows",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="delta of the guarantee")
    threshold: float = Field(
        0.6, ge=0.5, le=1, description="confident: share of the teachers who must agree"
    )
    ratio: float = Field(
        2.0, gt=0, le=1e6, description="confident: noise of the test, in multiples of sigma"
    )
    answers: int | None = Field(
        None, ge=1, description="confident: greatest number of people answered; all by default"
    )
    hidden: tuple[_Units, _Units] = Field(
        (32, 16), strict=False, description="mlp: units of the two hidden layers"
    )
    epochs: int = Field(50, ge=1, le=100_000, description="mlp: passes over the people")
    batch: int = Field(32, ge=1, description="mlp: people of a step")
    rate: float = Field(2e-3, gt=0, le=1, description="mlp: learning rate of Adam")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Few teachers, of few people."""
        return [{"teachers": 5, "public": 60, "labels": labels} for labels in ("hard", "soft")]

    @field_validator("labels", mode="before")
    @classmethod
    def _not_as_printed(cls, given: Any) -> Any:
        if given in ("equation-12", "soft-weighted"):
            raise ValueError(
                "equation (12) weighs both labels by noisy shares that do not sum to "
                "1 and may be negative; its loss is then not convex and may have no minimum. "
                "`soft` keeps the difference of the shares, and is convex"
            )
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Pate:
        if self.epsilon is not None and self.sigma is not None:
            raise ValueError(
                f"sigma = 0 is no privacy, and epsilon = {self.epsilon} claims some"
                if self.sigma == 0
                else "sigma and epsilon say the same: give one of them"
            )
        for model, penalty, name in (
            (self.teacher, self.teacher_penalty, "teacher_penalty"),
            (self.student, self.penalty, "penalty"),
        ):
            if model == "logistic" and penalty == 0:
                why = "where a plane parts the labels, there are no best parameters"
                if name == "penalty" and self.labels == "soft":
                    why = "with soft labels beyond 0 and 1 the loss has no lower bound"
                raise ValueError(f"{name} = 0: {why}; give one above 0")
        if self.student == "mlp" and self.labels == "soft":
            raise ValueError(
                'labels = "soft" goes beyond 0 and 1, where a network diverges: use "soft-clipped"'
            )
        self._nothing_in_vain()
        return self

    def _nothing_in_vain(self) -> None:
        unused = [] if self.voting == "confident" else [*_OF_CONFIDENT]
        if "mlp" not in (self.teacher, self.student):
            unused += _OF_MLP
        for name in unused:
            # A component is also built from all its parameters, so that being given says nothing.
            if getattr(self, name) != type(self).model_fields[name].default:
                needs = 'voting = "confident"' if name in _OF_CONFIDENT else "an mlp"
                raise ValueError(f"{name} means something only with {needs}")

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    @property
    def protects(self) -> frozenset[str]:
        """All that it learns from, but without noise."""
        return self.needs if self.noise() > 0 else frozenset()

    def cost(self) -> VoteCost:
        """How far all answers together may move when one teacher changes."""
        if self.voting == "gnmax":
            return VoteCost(self.public)
        return VoteCost(self._most_answers(), self.public, self.ratio)

    def noise(self) -> float:
        """Standard deviation of the noise of each count, given or calibrated to epsilon."""
        if self.epsilon is not None:
            return self.cost().sigma(self.epsilon, self.delta)
        return _SIGMA if self.sigma is None else self.sigma

    def fit(self, sample: Sample, rng: np.random.Generator) -> PateModel:
        """Deal out the people, train all teachers, count their votes, and teach the student.

        Raises
        ------
        InputError
            If there are fewer private people than teachers, or labels are cut at a statistic of
            everybody.
        DataError
            If a number is missing or not finite.
        """
        sample.check_cuts(self.protects, f"learner {self.name!r}")
        of_rows, of_parts, of_noise, of_models = rng.spawn(4)
        public, private = self._dealt(len(sample), of_rows)
        matrix = encoded(sample.features, self.name)
        scaled = Design.of(matrix[public])
        design = scaled(matrix)
        shown = design[public]
        dealt = parts(self.partition, matrix, sample.labels, private, self.teachers, of_parts)
        family = self._family(self.teacher, self.teacher_penalty, of_models)
        taught = family.teachers(design, sample.labels.astype(np.float64), dealt)
        votes = count_votes(family.proba(taught, shown) > 0.5 + _TIE)
        confident, sigma = self._confident(), self.noise()
        noise = draw_noise((1, self.public), sigma, confident, of_noise)
        targets, weights = learnt(votes, noise, self.labels, self.teachers, confident)
        family = self._family(self.student, self.penalty, of_models)
        clean = family.students(shown, vote_labels(votes, self.labels, self.teachers)[None], None)
        private_student = family.students(shown, targets, weights)
        guarantee = self._guarantee(sigma)
        notes = self._notes(votes, sigma, guarantee)
        notes["pate_answered"] = self.public if weights is None else int(weights.sum())
        notes["pate_teachers_empty"] = sum(not len(part) for part in dealt)
        won = votes[:, 1] > votes[:, 0]
        for name, parameters in (("", private_student), ("_baseline", clean)):
            agree = (family.proba(parameters, shown)[0] > 0.5) == won
            notes[f"pate{name}_vote_accuracy"] = float(agree.mean())
        return PateModel(
            family=family, scaled=scaled, parameters=private_student, guarantee=guarantee,
            baseline=Student(family, scaled, clean), public_rows=public, public_design=shown,
            votes=votes, teachers=self.teachers, sigma=sigma, labels=self.labels,
            penalty=self.penalty, student=self.student, confident=confident, notes=notes,
        )  # fmt: skip

    def _most_answers(self) -> int:
        return self.public if self.answers is None else min(self.answers, self.public)

    def _dealt(self, n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Public and private rows."""
        if self.public >= n or self.teachers > n - self.public:
            raise InputError(
                f"learner {self.name!r}: {n} training people are too few for public = "
                f"{self.public} and teachers = {self.teachers}: there must be a private person "
                "for each teacher; choose fewer of them, or a larger share in [split]"
            )
        order = rng.permutation(n)
        return np.sort(order[: self.public]), np.sort(order[self.public :])

    def _family(self, model: Model, penalty: float, rng: np.random.Generator) -> Family:
        if model == "logistic":
            return Logistic(penalty)
        training = MLPTraining(self.hidden, penalty, self.epochs, self.batch, self.rate)
        return MLP(training, random_state(rng))

    def _confident(self) -> Confident | None:
        if self.voting == "gnmax":
            return None
        return Confident(self.threshold * self.teachers, self.ratio, self._most_answers())

    def _guarantee(self, sigma: float) -> Guarantee | None:
        if sigma == 0:
            return None
        cost = self.cost()
        # So much noise that delta alone covers it has an epsilon of 0; any above it is right too.
        least = max(cost.epsilon(sigma, self.delta), LEAST_EPSILON)
        epsilon = least if self.epsilon is None else self.epsilon
        return Guarantee(
            epsilon, self.delta, "add-remove" if self.partition == "hash" else "replace-one",
            cost.rho(sigma),
        )  # fmt: skip

    def _notes(
        self, votes: NDArray[np.int64], sigma: float, guarantee: Guarantee | None
    ) -> Measures:
        """What a row says of the votes and their privacy; not private itself."""
        won = votes[:, 1] > votes[:, 0]
        same = won.all() or not won.any()
        return {
            "pate_epsilon": guarantee.epsilon if guarantee else None,
            "pate_epsilon_paper": self.cost().papers_epsilon(sigma, self.delta) if sigma else None,
            "pate_delta": guarantee.delta if guarantee else None,
            "pate_neighbours": guarantee.neighbours if guarantee else None,
            "pate_sigma": sigma,
            "pate_teachers": self.teachers,
            "pate_penalty": self.penalty,
            "pate_labels": self.labels,
            "pate_queries": self.public,
            "pate_flip_probability": float(flip_probabilities(votes, sigma).mean()),
            "pate_votes_for_1": float(won.mean()),
            "pate_warning": f"all votes without noise are for label {won[0]:d}" if same else None,
        }
