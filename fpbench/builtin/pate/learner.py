"""Private aggregation of teacher ensembles: a student trained on noisy votes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fpbench import Guarantee, InputError, Learner, Measure, Sample
from fpbench.auditing import VoteLabels
from fpbench.builtin.batched.mlp import MLPTraining
from fpbench.builtin.pate.model import (
    ConfidenceTest,
    Floats,
    LinearFamily,
    MLPFamily,
    ModelFamily,
    ParityRefusal,
    PateModel,
    Rows,
    StandardizedFeatures,
    Student,
    derive_targets,
    draw_noise,
    encode_finite,
)
from fpbench.builtin.pate.noisy_votes import VoteCost, count_votes, flip_probabilities, vote_labels
from fpbench.models import Encoding, random_state
from fpbench.plugin import MeasureValues
from fpbench.privacy import LEAST_EPSILON

Partition = Literal["hash", "equal"]


def deal_parts(
    partition: Partition,
    encoded: NDArray[np.float32],
    labels: NDArray[np.integer[Any]],
    private: NDArray[np.intp],
    teachers: int,
    rng: np.random.Generator,
) -> list[NDArray[np.intp]]:
    """Rows of each teacher; each private row is in exactly one part.

    `hash`: a record's part depends only on a hash of the record and a public salt. Equal records
    are numbered before hashing, which spreads them: adding or removing one changes one part by one
    record. A part is ordered by hash, so that networks, which learn from batches, see no other
    order. `equal`: shuffled and cut into parts of about equal size.
    """
    if partition == "equal":
        return check_disjoint(np.array_split(rng.permutation(private), teachers), private)
    salt = rng.integers(1 << 63, dtype=np.uint64)
    hashes = hash_records(encoded[private], labels[private], salt)
    teacher = mix_column(hashes, count_earlier(hashes)) % np.uint64(teachers)
    order = np.lexsort((hashes, teacher))
    ends = np.cumsum(np.bincount(teacher.astype(np.intp), minlength=teachers))
    return check_disjoint(np.split(private[order], ends[:-1]), private)


def check_disjoint(
    parts: list[NDArray[np.intp]], private: NDArray[np.intp]
) -> list[NDArray[np.intp]]:
    """The parts, after checking that each private row is in exactly one, for the guarantee."""
    together = np.concatenate(parts)
    if len(together) != len(private) or not np.array_equal(np.sort(together), np.sort(private)):
        raise AssertionError("the parts of the teachers are not disjoint parts of the private rows")
    return parts


def hash_records(
    encoded: NDArray[np.float32], labels: NDArray[np.integer[Any]], salt: np.uint64
) -> NDArray[np.uint64]:
    """A 64-bit hash (n,) of every record with its label."""
    bits = np.ascontiguousarray(encoded + np.float32(0)).view(np.uint32)  # -0 is 0
    hashes = np.full(len(encoded), salt, dtype=np.uint64)
    for column in (*bits.T, np.asarray(labels)):
        hashes = mix_column(hashes, column)
    return hashes


def mix_column(hashes: NDArray[np.uint64], column: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Hashes combined with one more column of integers.

    By the finaliser of splitmix64 (Steele, Lea & Flood, Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014).
    """
    mixed = hashes ^ column.astype(np.uint64)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def count_earlier(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Number of equal values before each value (n,)."""
    order = np.argsort(values, kind="stable")
    ranked, places = values[order], np.arange(len(values))
    first = np.ones(len(values), dtype=bool)
    first[1:] = ranked[1:] != ranked[:-1]
    earlier = np.empty(len(values), dtype=np.intp)
    earlier[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return earlier


Model = Literal["logistic", "least-squares", "mlp"]
_Units = Annotated[int, Field(ge=1, le=4096)]
_CONFIDENT_ONLY = ("threshold", "ratio", "answers")
_MLP_ONLY = ("hidden", "epochs", "batch", "rate")
_UNBOUNDED = ("soft", "equation-12")
"""Labels, or weights of labels, that noise pushes out of [0, 1]."""
_SIGMA = 50.0
_TIE = 1e-9
"""Margin above 1/2 of the probability for a vote for label 1: processors may round a probability of
exactly 1/2 differently."""


class Pate(Learner):
    """A student that learns from public people, labelled by noisy votes of private teachers.

    `public` training people are drawn; only their features are used. The others are private: each
    is in the part of one of k teachers. Teachers vote on every public person, Gaussian noise is
    added to both counts, and a student learns the resulting labels. It uses no other information
    about private people: columns are scaled by the public people, and columns that are constant
    among these are left out.

    **Privacy.** `guarantee` is that of all m answers together, computed exactly (analytic Gaussian
    mechanism): one teacher's vote moves two counts by 1, so the sensitivity is sqrt(2 m). With
    `partition = "hash"`, a person's part depends on that person's record alone, and the guarantee
    holds if anybody is added or removed. With `"equal"`, one more person shifts all later
    people, so it holds only if somebody is replaced, and the number of people is public. It
    protects single records: a person with several has less protection. The paper's epsilon is
    `pate_epsilon_paper` in rows. Hyperparameters, names of columns and categories are assumed to be
    public.

    **Objective.** The mean loss + penalty ||theta||^2; the paper's lambda, for a sum, is m times
    `penalty`. The intercept is a component of theta, and penalised. scikit-learn's C is
    1 / (2 m penalty). Networks (`mlp`) penalise weights, not biases. The loss is cross entropy, and
    half the squared difference of x'theta and the label for `least-squares`.

    **Voting.** `gnmax` answers every public person. `confident` (Confident-GNMax) first tests
    whether the greatest count plus separate noise passes a threshold, and answers only then, with
    fresh noise. The test of every person costs privacy too, and whether a person is answered
    depends on private data: the guarantee is for at most `answers` answers, with sensitivity
    sqrt(2 answers + m / ratio^2). The baseline is trained on all votes, so that an audit shows the
    effect of omitting people.

    **Departures.** `soft` labels are 1/2 + (n1 - n0) / (2 k): the weights n1 / k and n0 / k of the
    paper's equation (12) do not sum to 1 with noise, and its loss need not be convex.
    `equation-12` is that loss as printed. A tie of votes is label 0. A teacher votes for
    label 0 if its probability is at most 1/2 + 1e-9 (a tie up to rounding), or if it has no people,
    which may happen with a hash partition. Public people are drawn from the training part
    of the split.
    """

    name = "pate"
    summary = "PATE: a student trained on noisy votes of teachers that see disjoint people"
    reference = (
        "Cuong Tran, My H. Dinh, Kyle Beiter, Ferdinando Fioretto. A Fairness Analysis on Private "
        "Aggregation of Teacher Ensembles. arXiv:2109.08630, 2021; Nicolas Papernot et al. "
        "Scalable Private Learning with PATE. ICLR 2018, Algorithm 1; Borja Balle, Yu-Xiang Wang. "
        "Improving the Gaussian Mechanism for Differential Privacy. ICML 2018"
    )
    needs = frozenset({"features", "labels"})
    gives_scores = True
    measures = Measure.table("asked", """
        pate_epsilon | less | epsilon of the votes
        pate_epsilon_paper | less | epsilon by the paper's formula
        pate_delta | less | delta of the votes
        pate_neighbours | neither | which data sets the guarantee compares
        pate_sigma | neither | standard deviation of the noise of a vote
        pate_teachers | neither | number of teachers
        pate_penalty | neither | penalty of the student
        pate_labels | neither | kind of labels of the student
        pate_encoding | neither | how categories became numbers
        pate_student | neither | model of the student
        pate_queries | less | public people for whom teachers vote
        pate_answered | greater | public people whose votes are answered
        pate_teachers_empty | less | teachers without training people
        pate_flip_probability | less share | mean probability that noise flips a vote
        pate_votes_for_1 | neither share | noise-free votes for label 1
        pate_vote_accuracy | greater share | public people for whom student and noise-free votes
            agree
        pate_baseline_vote_accuracy | greater share | the same for the student without noise
        pate_warning | neither | set if all noise-free votes are for one label
    """)  # fmt: skip

    teachers: int = Field(150, ge=1, le=100_000, description="number k of teachers")
    public: int = Field(
        200, ge=1, description="number m of training people on whom teachers vote, drawn at random"
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")
    partition: Partition = Field(
        "hash",
        description="how people are dealt to teachers: by record `hash`, or in `equal` parts",
    )
    teacher: Model = Field("logistic", description="model of the teachers")
    student: Model = Field("logistic", description="model of the student")
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
        "hard",
        description="labels of the student: the winner of the votes, their noisy share, or both "
        "labels by the noisy counts (`equation-12`)",
    )
    voting: Literal["gnmax", "confident"] = Field(
        "gnmax", description="answer everybody, or only people on whom teachers agree"
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
        description="epsilon of all answers together; sets the smallest valid sigma",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="delta of the guarantee")
    threshold: float = Field(
        0.6, ge=0.5, le=1, description="confident: share of the teachers who must agree"
    )
    ratio: float = Field(
        2.0, gt=0, le=1e6, description="confident: noise of the test, in multiples of sigma"
    )
    answers: int | None = Field(
        None, ge=1, description="confident: greatest number of answers; all people by default"
    )
    hidden: tuple[_Units, _Units] = Field(
        (32, 16), strict=False, description="mlp: units of the two hidden layers"
    )
    epochs: int = Field(50, ge=1, le=100_000, description="mlp: passes over the people")
    batch: int = Field(32, ge=1, description="mlp: people per step")
    rate: float = Field(2e-3, gt=0, le=1, description="mlp: learning rate of Adam")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Few teachers and few people."""
        kinds: tuple[dict[str, Any], ...]
        kinds = ({}, {"labels": "soft"}, {"labels": "equation-12"}, {"student": "least-squares"})
        return [{"teachers": 5, "public": 60, **kind} for kind in kinds]

    @model_validator(mode="after")
    def _check_combination(self) -> Pate:
        if self.epsilon is not None and self.sigma is not None:
            raise ValueError(
                f"sigma = 0 gives no privacy, but epsilon = {self.epsilon} claims some"
                if self.sigma == 0
                else "sigma and epsilon are equivalent: give one of them"
            )
        for model, penalty, name in (
            (self.teacher, self.teacher_penalty, "teacher_penalty"),
            (self.student, self.penalty, "penalty"),
        ):
            if model != "mlp" and penalty == 0:
                why = "if a plane separates the labels, there are no best parameters"
                if model == "least-squares":
                    why = "fewer people than columns have many best parameters"
                elif name == "penalty" and self.labels in _UNBOUNDED:
                    why = "with soft labels beyond 0 and 1 the loss has no lower bound"
                raise ValueError(f"{name} = 0: {why}; give one above 0")
        if self.student == "mlp" and self.labels in _UNBOUNDED:
            raise ValueError(
                f'labels = "{self.labels}" goes beyond 0 and 1, where training a network '
                'diverges: use "soft-clipped"'
            )
        if self.student == "least-squares" and self.labels == "equation-12":
            raise ValueError(
                'labels = "equation-12" may have no minimum by least squares: use "soft", or '
                'student = "logistic"'
            )
        if self.voting == "confident" and self.labels == "equation-12":
            raise ValueError('labels = "equation-12" needs an answer for everybody: use "gnmax"')
        self._refuse_unused()
        return self

    def _refuse_unused(self) -> None:
        unused = [] if self.voting == "confident" else [*_CONFIDENT_ONLY]
        if "mlp" not in (self.teacher, self.student):
            unused += _MLP_ONLY
        for name in unused:
            # Components are also built from all parameters, so only values show what was set.
            if getattr(self, name) != type(self).model_fields[name].default:
                needs = 'voting = "confident"' if name in _CONFIDENT_ONLY else "an mlp"
                raise ValueError(f"{name} has an effect only with {needs}")

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    @property
    def protects(self) -> frozenset[str]:
        """All columns that it trains on; none without noise."""
        return self.needs if self.noise() > 0 else frozenset()

    def cost(self) -> VoteCost:
        """The sensitivity of all answers together to a change of one teacher."""
        if self.voting == "gnmax":
            return VoteCost(self.public)
        return VoteCost(self._limit_answers(), self.public, self.ratio)

    def noise(self) -> float:
        """Standard deviation of the noise of each count: `sigma`, or calibrated to epsilon."""
        if self.epsilon is not None:
            return self.cost().sigma(self.epsilon, self.delta)
        return _SIGMA if self.sigma is None else self.sigma

    def fit(self, sample: Sample, rng: np.random.Generator) -> PateModel:
        """Deal the people to teachers, train these, count their votes, and train the student.

        Raises InputError if there are fewer private people than teachers, or labels are cut at a
        statistic of everybody; DataError if a number is missing or not finite.
        """
        sample.check_cuts(self.protects, f"learner {self.name!r}")
        rows_rng, parts_rng, noise_rng, models_rng = rng.spawn(4)
        public, private = self._draw_public(len(sample), rows_rng)
        matrix = encode_finite(sample.features, self.name, self.encoding)
        scaled = StandardizedFeatures.of(matrix[public], self.encoding)
        design = scaled(matrix)
        public_design = design[public]
        marks = sample.labels.astype(np.int64)
        if "sensitive" in self.needs:  # equal records have equal groups, too
            marks += 2 * sample.sensitive
        parts = deal_parts(self.partition, matrix, marks, private, self.teachers, parts_rng)
        family = self._make_family(self.teacher, self.teacher_penalty, models_rng)
        private_design = self._prepare_private(design, sample, parts)
        teachers = family.teachers(private_design, sample.labels.astype(np.float64), parts)
        votes = count_votes(family.proba(teachers, public_design) > 0.5 + _TIE)
        confident, sigma = self._make_confidence_test(), self.noise()
        noise = draw_noise((1, self.public), sigma, confident, noise_rng)
        scaled = self._constrain_student(scaled, design, sample, parts, public, rng)
        public_design = scaled(matrix[public])
        refusal = self._make_refusal(sample, public)
        targets, weights = derive_targets(
            votes, noise, self.labels, self.teachers, confident, refusal
        )
        family = self._make_family(self.student, self.penalty, models_rng)
        clean_targets = vote_labels(votes, self.labels, self.teachers)[None]
        clean_student = family.students(public_design, clean_targets, None)
        private_student = family.students(public_design, targets, weights)
        guarantee = self._compute_guarantee(sigma)
        notes = self._collect_notes(votes, sigma, guarantee)
        notes["pate_answered"] = self.public
        if weights is not None and self.labels != "equation-12":
            notes["pate_answered"] = int(weights.sum())
        notes["pate_teachers_empty"] = sum(not len(part) for part in parts)
        won = votes[:, 1] > votes[:, 0]
        for name, parameters in (("", private_student), ("_baseline", clean_student)):
            agree = (family.proba(parameters, public_design)[0] > 0.5) == won
            notes[f"pate{name}_vote_accuracy"] = float(agree.mean())
        return PateModel(
            family=family, scaled=scaled, parameters=private_student, guarantee=guarantee,
            baseline=Student(family, scaled, clean_student), public_rows=public,
            public_design=public_design,
            votes=votes, teachers=self.teachers, sigma=sigma, labels=self.labels,
            penalty=self.penalty, student=self.student, confident=confident, refusal=refusal,
            notes=notes,
        )  # fmt: skip

    def _limit_answers(self) -> int:
        return self.public if self.answers is None else min(self.answers, self.public)

    def _draw_public(self, n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Public and private rows."""
        if self.public >= n or self.teachers > n - self.public:
            raise InputError(
                f"learner {self.name!r}: {n} training people are too few for public = "
                f"{self.public} and teachers = {self.teachers}: there must be a private person "
                "for each teacher; choose fewer teachers, or a larger share in [split]"
            )
        order = rng.permutation(n)
        return np.sort(order[: self.public]), np.sort(order[self.public :])

    def _make_family(self, model: Model, penalty: float, rng: np.random.Generator) -> ModelFamily:
        if model != "mlp":
            return LinearFamily(penalty, "equation-12" if self.labels == "equation-12" else model)
        training = MLPTraining(self.hidden, penalty, self.epochs, self.batch, self.rate)
        return MLPFamily(training, random_state(rng))

    def _prepare_private(self, design: Floats, sample: Sample, parts: list[Rows]) -> Floats:
        """Features (n, d) as the teachers of these parts see them."""
        return design

    def _constrain_student(
        self, scaled: StandardizedFeatures, design: Floats, sample: Sample, parts: list[Rows],
        public: Rows, rng: np.random.Generator,
    ) -> StandardizedFeatures:  # fmt: skip
        """Features as the student sees them."""
        return scaled

    def _make_refusal(self, sample: Sample, public: Rows) -> ParityRefusal | None:
        return None

    def _make_confidence_test(self) -> ConfidenceTest | None:
        if self.voting == "gnmax":
            return None
        return ConfidenceTest(self.threshold * self.teachers, self.ratio, self._limit_answers())

    def _compute_guarantee(self, sigma: float) -> Guarantee | None:
        if sigma == 0:
            return None
        cost = self.cost()
        # With enough noise delta alone suffices and epsilon is 0; any greater epsilon holds too.
        least = max(cost.epsilon(sigma, self.delta), LEAST_EPSILON)
        epsilon = least if self.epsilon is None else self.epsilon
        return Guarantee(
            epsilon, self.delta, "add-remove" if self.partition == "hash" else "replace-one",
            cost.rho(sigma),
        )  # fmt: skip

    def _collect_notes(
        self, votes: NDArray[np.int64], sigma: float, guarantee: Guarantee | None
    ) -> MeasureValues:
        """A row's measures of the votes and their privacy; they are not private."""
        won = votes[:, 1] > votes[:, 0]
        unanimous = won.all() or not won.any()
        return {
            "pate_epsilon": guarantee.epsilon if guarantee else None,
            "pate_epsilon_paper": self.cost().papers_epsilon(sigma, self.delta) if sigma else None,
            "pate_delta": guarantee.delta if guarantee else None,
            "pate_neighbours": guarantee.neighbours if guarantee else None,
            "pate_sigma": sigma,
            "pate_teachers": self.teachers,
            "pate_penalty": self.penalty,
            "pate_labels": self.labels,
            "pate_encoding": self.encoding,
            "pate_student": self.student,
            "pate_queries": self.public,
            "pate_flip_probability": float(flip_probabilities(votes, sigma).mean()),
            "pate_votes_for_1": float(won.mean()),
            "pate_warning": f"all votes without noise are for label {won[0]:d}"
            if unanimous
            else None,
        }
