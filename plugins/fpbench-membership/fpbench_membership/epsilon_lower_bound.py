"""Lower bounds on a learner's epsilon, from training with and without canaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fpbench import Auditor, Classifier, InputError, Learner, Measure, Sample
from fpbench.auditing import bound_epsilon, find_most_provable
from fpbench.plugin import MeasureFigure, MeasureValues, Subject
from fpbench_membership._canaries import (
    CanaryPool,
    Place,
    Relation,
    find_public,
    keep_few,
    make_canaries,
)
from fpbench_membership.one_run import bound_epsilon_one_run

_AT_ONCE = 250
"""Greatest number of models in memory at a time."""
_DESCRIBED = 7
"""Number of statistics of a model that are compared."""
_LEAST_DRAWS = 40


class EpsilonLowerBound(Auditor):
    """A lower bound on the epsilon of a learner, to compare with its models' guarantee.

    NOT PRIVATE: it trains on data whose privacy nothing protects (`audit_private` is 0).

    The data are a worst case: `people` identical people of label 0 in one corner of the declared
    domain, and canaries of label 1 in other corners; with `many-runs` near to the others (which
    exposes a split chosen by data) or far away. The guarantee says which data sets are neighbours:
    the canary is absent, replaces somebody, or is in another group.

    `many-runs` trains `runs` models with one canary and as many without it. Half of them choose an
    event (of the canary's score, others' scores, and the number of equal ones, which shows where a
    tree splits), and the other half estimate its probability. The bound is ln((p - delta) / q),
    with p and q at conservative ends of Clopper-Pearson intervals (Jagielski et al., 2020).
    `epsilon_most_provable` is the greatest bound possible with this number of runs. With `features
    = 1` people have one feature only, which is also a worst case.

    `one-run` trains one model; each of `canaries` canaries is in its data by a fair coin flip. From
    the model's scores it guesses membership of a share `guesses` of them, and the bound follows
    from the number of right guesses (Steinke et al., 2023). A model that draws public people, whom
    it does not protect, from its data is trained with every canary, of label 1 or 0; these data
    sets are two neighbour steps apart, so the bound is halved.

    `epsilon_bound` is true with probability at least `confidence`, for any learner; compare it with
    `model_epsilon`, the claim. `epsilon_claim_holds` is 0 if the bound is above the claim: a
    violation, or a false alarm, with probability at most 1 - confidence. A bound below the claim
    does not confirm the claim. Without a guarantee there is a bound and no claim.
    """

    name = "epsilon-lower-bound"
    summary = "lower bound on epsilon by canaries, in one run or many, beside the claim"
    reference = (
        "Steinke, Nasr, Jagielski. Privacy Auditing with One (1) Training Run. NeurIPS 2023; "
        "Jagielski, Ullman, Oprea. Auditing Differentially Private Machine Learning. NeurIPS 2020"
    )
    sees = frozenset({"features", "labels", "sensitive", "model", "fit"})
    measures = (
        Measure(
            "epsilon_bound", "eps at least", "less", "",
            "lower bound on epsilon, proven by training with and without canaries",
            figure=MeasureFigure(
                "epsilon", "Epsilon from below",
                "Lower bound on epsilon proven by canaries, and the model's guarantee "
                "(dashed). Bands are 95 % intervals.",
                "epsilon", (("epsilon_bound", "proven"), ("model_epsilon", "claimed")),
            ),
        ),
        Measure(
            "epsilon_claim_holds", "eps holds", "greater", "yes or no",
            "whether the proven bound does not exceed the model's guaranteed epsilon", "always",
            if_no="A bound above the claim: the guarantee is wrong, or the audit was unlucky, as "
            "one in twenty may be at 95 %.",
        ),
        *Measure.table("asked", """
        epsilon_most_provable | neither | greatest bound possible with this number of runs
        epsilon_confidence | neither share | probability with which the bound is true
        epsilon_neighbours | neither | which data sets are neighbours
        epsilon_mode | neither | one training run, or many
        epsilon_runs | neither | number of trained models
        epsilon_guesses | neither | guessed canaries in one run
        epsilon_guesses_right | neither | right guesses
        """),
        Measure(
            "audit_private", "", "greater", "yes or no",
            "whether the audit's result is itself private", "asked",
            if_no="The audit's result is not private: do not release it.",
        ),
    )  # fmt: skip

    mode: Literal["many-runs", "one-run"] = Field(
        "many-runs", description="train many models with one canary, or one with many"
    )
    runs: int = Field(
        500,
        ge=_LEAST_DRAWS,
        le=1_000_000,
        description="`many-runs`: models for each of the two data sets",
    )
    canaries: int = Field(200, ge=10, le=100_000, description="`one-run`: number of canaries")
    guesses: float = Field(
        0.25, gt=0, le=1, description="`one-run`: share of canaries that are guessed; it abstains "
        "on the others"
    )  # fmt: skip
    place: Place = Field(
        "near", description="the canary differs from everybody else in the last features, or "
        "in all (`far`)"
    )  # fmt: skip
    people: int = Field(
        200,
        ge=10,
        le=1_000_000,
        description="people besides the canaries, not above the number of training people",
    )
    features: int | None = Field(
        None,
        ge=1,
        description="number of features kept, numbers first; all by default. If noise grows with "
        "the number of features, one exposes a canary best",
    )
    confidence: float = Field(
        0.95, ge=0.5, lt=1, description="probability with which the bound is true"
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Both modes, with as few models as possible."""
        return [
            {"runs": _LEAST_DRAWS, "people": 40},
            {"mode": "one-run", "canaries": 20, "people": 40},
        ]

    @model_validator(mode="after")
    def _check_unused(self) -> EpsilonLowerBound:
        unused = ("canaries", "guesses") if self.mode == "many-runs" else ("runs", "place")
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect with mode = {self.mode!r}")
        return self

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """The bound, and whether the claim holds, for one row.

        Raises InputError if the learner cannot be trained on other people; or with `one-run` and a
        guarantee for people's groups, for which scores have no direction.
        """
        if subject.learner is None:
            raise InputError(f"auditor {self.name!r}: needs to train the learner on other people")
        guarantee = getattr(subject.model, "guarantee", None)
        relation: Relation = "add-remove" if guarantee is None else guarantee.neighbours
        delta = 0.0 if guarantee is None else guarantee.delta
        people = subject.train if self.features is None else keep_few(subject.train, self.features)
        trial = _Trial(subject.learner, people, self.place, guarantee is not None, rng)
        audit = self._audit_many if self.mode == "many-runs" else self._audit_one
        measured = audit(trial, relation, delta, subject.model)
        holds = None if guarantee is None else int(measured["epsilon_bound"] <= guarantee.epsilon)
        return {
            **measured,
            "epsilon_claim_holds": holds,
            "epsilon_confidence": self.confidence,
            "epsilon_neighbours": relation,
            "epsilon_mode": self.mode,
            "audit_private": 0,
        }

    def _audit_many(
        self, trial: _Trial, relation: Relation, delta: float, model: Any
    ) -> dict[str, Any]:
        pool = trial.make_pool(self.people, 1, relation)
        scored = np.concatenate([pool.present, pool.present, [0], pool.probes])
        # If the model predicts with groups: the canary in both groups.
        groups = np.zeros(len(scored), np.int8)
        groups[0] = relation == "attribute"
        outputs = []
        for present in (True, False):
            included = np.full((self.runs, 1), present)
            row = int((pool.present if present else pool.absent)[0])
            drawn = [
                _describe(answers)
                for one, members, answers in trial.train(pool, included, scored, groups)
                if not find_public(one, row, members)
            ]
            outputs.append(np.array(drawn).reshape(-1, _DESCRIBED))
        fewest = min(map(len, outputs))
        if fewest < _LEAST_DRAWS:
            raise InputError(
                f"auditor {self.name!r}: the canary is public in most of {self.runs} runs; choose "
                "more runs, more people, or fewer public people"
            )
        one, other = (part[:fewest] for part in outputs)
        bound = bound_epsilon(one, other, delta=delta, confidence=self.confidence)
        return {
            "epsilon_bound": bound,
            "epsilon_most_provable": find_most_provable(fewest, delta, self.confidence),
            "epsilon_runs": 2 * self.runs,
        }

    def _audit_one(
        self, trial: _Trial, relation: Relation, delta: float, model: Any
    ) -> dict[str, Any]:
        if relation == "attribute":
            raise InputError(
                f"auditor {self.name!r}: one run cannot tell which group raises a score; "
                'use mode = "many-runs" for guarantees by neighbours = "attribute"'
            )
        # The public people must not depend on who is in the data.
        replaced = relation == "add-remove" and getattr(model, "public_rows", None) is not None
        steps = 2 if replaced else 1
        pool = trial.make_pool(self.people, self.canaries, "replace-one" if replaced else relation)
        included = trial.rng.random((1, self.canaries)) < 0.5
        groups = np.zeros(self.canaries, np.int8)
        ((_, _, scores),) = trial.train(pool, included, pool.present, groups)
        order = np.lexsort((trial.rng.random(self.canaries), scores))
        half = min(max(round(self.guesses * self.canaries / 2), 1), self.canaries // 2)
        right = int(included[0, order[-half:]].sum() + (~included[0, order[:half]]).sum())
        bound, most = (
            bound_epsilon_one_run(
                self.canaries, 2 * half, hits, delta=delta, confidence=self.confidence, steps=steps
            )
            for hits in (right, 2 * half)
        )
        return {
            "epsilon_bound": bound,
            "epsilon_most_provable": most,
            "epsilon_runs": 1,
            "epsilon_guesses": 2 * half,
            "epsilon_guesses_right": right,
        }


@dataclass(frozen=True, eq=False)
class _Trial:
    """Trains models, and queries them."""

    learner: Learner
    people: Sample
    place: Place
    worst: bool
    """Whether all people but canaries are identical; learners without guarantee may refuse."""
    rng: np.random.Generator

    def make_pool(self, people: int, canaries: int, relation: Relation) -> CanaryPool:
        """People and canaries."""
        return make_canaries(
            self.people, people, canaries, relation, self.rng, place=self.place, worst=self.worst
        )

    def train(
        self,
        pool: CanaryPool,
        included: NDArray[np.bool_],
        scored: NDArray[np.intp],
        groups: NDArray[np.int8],
    ) -> Iterator[tuple[Classifier, NDArray[np.bool_], NDArray[np.float64]]]:
        """Models, each with its canaries (B, m), their data, and their scores of people."""
        people = pool.people.take(scored).having(sensitive=groups)
        for first in range(0, len(included), _AT_ONCE):
            members = pool.choose(included[first : first + _AT_ONCE])
            rngs = self.rng.spawn(len(members))
            seen = pool.people.only(self.learner.needs)
            models = self.learner.fit_many(seen, members, rngs)
            scores = self.learner.score_many(models, people, self.rng)
            yield from zip(models, members, scores, strict=True)


def _describe(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Statistics of a model: the canary's score, others' scores, and which are equal."""
    canary, others = answers[0], answers[2:]
    return np.array(
        [canary, canary - answers[1], canary - others.mean(), *others[:2],
         (others == canary).sum(), len(np.unique(others))],
    )  # fmt: skip
