"""How a component of each kind of an attack is run, and what its result must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from fpbench.claims.rates import FORMS, RateConstraint
from fpbench.components.attack_kinds import Adversary, Component, Corrector, Disclosure, Learner
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import Claim, Guess, Predictions, Problem, SolverStatus
from fpbench.data.data_files import DataHome
from fpbench.data.sample import Codes, Sample, Split
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.models.rules import Rules
from fpbench.testing.brute_force import satisfies
from fpbench.testing.checking import check_measures, check_probabilities, check_whole
from fpbench.testing.problems import unknown_constraint
from fpbench.testing.round_trips import carried
from fpbench.testing.world import ASKED, KitDisclosure, KitLearner, KitPeople, fill, step, world

Attempts = Iterator[tuple[str, Callable[[], Any]]]
"""What is wrong, and a call that is given it."""


class Stage(ABC):
    """How components of one kind are run by the kit."""

    groups: ClassVar[bool] = True
    """Whether the number of groups of what it is handed can be chosen."""

    def partners(self, component: Any, k: int) -> list[Component]:
        """What it is combined with."""
        return [KitPeople(groups=k), KitLearner()]

    @abstractmethod
    def given(self, component: Any, k: int, home: DataHome) -> Any:
        """What it is handed, for people of k groups."""

    @abstractmethod
    def run(self, component: Any, given: Any, seed: int) -> Any:
        """Run it as a step does."""

    @abstractmethod
    def check(self, component: Any, given: Any, result: Any) -> None:
        """Raise AssertionError if the result is not as its kind declares."""

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """The notes and measures of its own in a result, and what the model in it guarantees."""
        return [], None

    def attempts(self, component: Any, home: DataHome) -> Attempts:
        """Calls with bad input; each must raise an error of fpbench, or give a good result."""
        yield from ()


def _one_label(sample: Sample) -> Sample:
    """A few people, all of label 0."""
    few = sample.take(np.arange(60))
    return few.having(labels=np.zeros(len(few), np.int8))


class LearnerStage(Stage):
    """Trains a model, and asks it."""

    def partners(self, component: Learner, k: int) -> list[Component]:
        """A data set."""
        return [KitPeople(groups=k)]

    def given(self, component: Learner, k: int, home: DataHome) -> Any:
        """The people."""
        return (world(k).split,)

    def run(self, component: Learner, given: Any, seed: int) -> Any:
        """Train, predict, and ask for scores and rules if it has them."""
        (split,) = given
        model = carried(ACTIONS["train"](component, given, step(seed)), "the model")
        said: dict[str, Any] = {
            "predictions": ACTIONS["predict"](component, (model, split), step(seed))
        }
        if component.gives_scores:
            said["scores"] = ACTIONS["reveal"](component, (model, split), step(seed))
            said["proba"] = self._proba(component, model, split.test, seed)
        if component.gives_rules:
            said["rules"] = model.rules
        if component.gives_baseline:
            features = split.test.features
            said["baseline"] = model.baseline.predict_proba(features, step(seed).rng())
        return said

    @staticmethod
    def _proba(component: Learner, model: Any, people: Sample, seed: int) -> Any:
        sensitive = people.sensitive if component.predicts_with_sensitive else None
        return model.predict_proba(people.features, step(seed).rng(), sensitive)

    def check(self, component: Learner, given: Any, result: Any) -> None:
        """Predictions of 0 and 1 (the step sees to it); rules that predict them."""
        split: Split = given[0]
        predictions: Predictions = result["predictions"]
        check_measures(predictions.notes, "notes")
        if "rules" in result:
            rules = result["rules"]
            assert isinstance(rules, Rules), f"rules are a {type(rules).__name__}, not Rules"
            by_rules = rules.predict(split.test.features)
            assert np.array_equal(by_rules, predictions.test), "the rules predict something else"
        for whose, name in (("the model", "proba"), ("the baseline", "baseline")):
            if name in result:
                check_probabilities(result[name], len(split.test), whose)

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """Notes of the model."""
        predictions: Predictions = result["predictions"]
        return [predictions.notes], predictions.guarantee

    def attempts(self, component: Learner, home: DataHome) -> Attempts:
        """Everybody has the same label; a column is missing."""
        split = world(2).split

        def fit(sample: Sample) -> Any:
            return component.fit(sample, step(0).rng())

        yield "everybody has label 0", lambda: fit(_one_label(split.train).only(component.needs))
        yield "nothing of what it needs is there", lambda: fit(split.train.only(frozenset()))


class DisclosureStage(Stage):
    """Claims."""

    def partners(self, component: Disclosure, k: int) -> list[Component]:
        """A learner."""
        return [KitLearner()]

    def given(self, component: Disclosure, k: int, home: DataHome) -> Any:
        """People and predictions."""
        return world(k).split, world(k).predictions

    def run(self, component: Disclosure, given: Any, seed: int) -> Any:
        """Claim."""
        return ACTIONS["disclose"](component, given, step(seed))

    def check(self, component: Disclosure, given: Any, result: Any) -> None:
        """A claim in words it announced, or none."""
        if result is None:
            return
        assert isinstance(result, Claim), f"claim gave a {type(result).__name__}, not a Claim"
        for constraint in result.constraints:
            words = component.words()
            assert constraint.word in words, f"it claims {constraint.word!r}, and announces {words}"
            constraint.check(len(given[0].train), len(given[0].train.groups))
        assert result.source, "its claim says no source"
        check_measures(result.notes, "notes")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """Notes of the claim."""
        return [result.notes] if isinstance(result, Claim) else [], None

    def attempts(self, component: Disclosure, home: DataHome) -> Attempts:
        """The learner aims at nothing."""
        split, said = world(2).split, world(2).predictions
        aimless = Predictions(said.train, said.test, said.attack, None)
        yield "the learner asks for no fairness", lambda: self.run(component, (split, aimless), 0)


class AdversaryStage(Stage):
    """Guesses."""

    def given(self, component: Adversary, k: int, home: DataHome) -> Any:
        """People, predictions, scores, of which the step hands over what it sees."""
        return world(k).split, world(k).predictions, world(k).scores

    def run(self, component: Adversary, given: Any, seed: int) -> Guess:
        """Tune, if it is tuned once, and guess."""
        said, tuned = step(seed), component
        if component.tunes_once:
            known = HANDED["tune"](component, given[:1], said)
            tuned = carried(ACTIONS["tune"](component, known, said), "the tuned adversary")
        handed = HANDED["guess"](tuned, given, said)
        guess: Guess = ACTIONS["guess"](tuned, handed, said)
        assert isinstance(guess, Guess), f"guess gave a {type(guess).__name__}, not a Guess"
        for what in ("values", "held_out", "held_out_values"):
            check_whole(getattr(guess, what), what)
        MEASURING["guess"](guess, handed, said)
        return guess

    def check(self, component: Adversary, given: Any, result: Guess) -> None:
        """Codes and confidences (the step sees to it), of rows of the attack set, once each."""
        rows, m = np.asarray(result.held_out), len(given[0].attack)
        inside = len(rows) == 0 or (rows.min() >= 0 and rows.max() < m)
        assert inside, f"held_out must be rows of the attack set, 0..{m - 1}"
        assert len(np.unique(rows)) == len(rows), "held_out names a row twice"
        for confidence in (result.confidence, result.held_out_confidence):
            assert (confidence <= 1).all(), "a confidence is above 1"
        check_measures(result.notes, "notes")

    def words(self, result: Guess) -> tuple[list[Any], Guarantee | None]:
        """Notes of the guess."""
        return [result.notes], None

    def attempts(self, component: Adversary, home: DataHome) -> Attempts:
        """The attack set is of one person, and of nobody."""
        for what, n in (("the attack set is one person", 1), ("the attack set is empty", 0)):
            w = world(2)
            few = Split(w.split.train, w.split.test, w.split.attack.take(np.arange(n)))
            train, attack = w.predictions.train, w.predictions.attack[:n]
            said = Predictions(train, w.predictions.test, attack, ASKED)
            scores = type(w.scores)(w.scores.train, w.scores.attack[:n])
            yield what, lambda given=(few, said, scores): self.run(component, given, 0)  # type: ignore[misc]


class CorrectorStage(Stage):
    """Corrects."""

    def claim(self, component: Corrector) -> RateConstraint | None:
        """A claim of a form that it can express; None if it expresses none."""
        forms = [form for form in FORMS if form in component.expresses]
        return RateConstraint("statistical-parity", 0.05, forms[0]) if forms else None

    def partners(self, component: Corrector, k: int) -> list[Component]:
        """A data set, and a disclosure of something it can express."""
        claim = self.claim(component)
        words = [claim.word] if claim else sorted(component.expresses)[:1]
        return [KitPeople(groups=k), KitLearner(), KitDisclosure(words_claimed=words)]

    def given(self, component: Corrector, k: int, home: DataHome) -> Any:
        """A guess that is right for most, and a claim."""
        w, rng = world(k), fill(f"guess {k}")
        held_out = np.arange(0, len(w.split.attack), 2)

        def guessed(truth: Any) -> tuple[Any, Any]:
            right = rng.random(len(truth)) < 0.7
            values = np.where(right, truth, rng.integers(0, k, len(truth))).astype(np.int8)
            return values, rng.uniform(0.5, 1, len(truth))

        values = guessed(w.split.train.sensitive)
        guess = Guess(*values, held_out, *guessed(w.split.attack.sensitive[held_out]))
        claim = self.claim(component)
        return w.split, w.predictions, guess, claim and Claim(claim, "kit")

    def run(self, component: Corrector, given: Any, seed: int) -> Any:
        """Weigh, and correct."""
        said = step(seed)
        return MEASURING["correct"](ACTIONS["correct"](component, given, said), given, said)

    def check(self, component: Corrector, given: Any, result: Any) -> None:
        """Everyone's group; a bound that is not above the objective."""
        correction, _, weighed = result
        n, k = len(given[0].train), len(given[0].train.groups)
        status = correction.status
        assert isinstance(status, SolverStatus | None), f"{status!r} is not a SolverStatus"
        if correction.values is not None:
            values = correction.values
            check_whole(values, "values")
            assert values.shape == (n,), f"values are {values.shape}, not ({n},)"
            assert ((values >= 0) & (values < k)).all(), f"values must be codes in 0..{k - 1}"
            self._check_claim(given, values, status)
        if correction.objective is not None and correction.bound is not None:
            slack = 1e-9 * max(1, abs(correction.objective))
            assert correction.bound <= correction.objective + slack, "the bound is above the cost"
        if correction.moves is not None:
            assert correction.moves.shape == (2, k, k), f"moves are {correction.moves.shape}"
        for measures in (weighed, correction.measures):
            check_measures(measures, "measures")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """Measures of the weights and of the correction."""
        correction, _, weighed = result
        return [weighed, correction.measures], None

    def _check_claim(self, given: Any, values: Codes, status: SolverStatus | None) -> None:
        split, predictions, guess, claim = given
        if status is None or claim is None:  # then it says nothing of a claim
            return
        labels, k = split.train.labels, len(split.train.groups)
        problem = Problem(guess.values, k, predictions.train, labels, claim.constraints)
        assert satisfies(problem, values), f"it says {status}, and the claim does not hold"

    def attempts(self, component: Corrector, home: DataHome) -> Attempts:
        """A constraint that it cannot express."""
        guess, said = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
        problem = Problem(guess, 2, said, said, (unknown_constraint(),))
        yield "a constraint that nobody can express", lambda: component.correct(problem)
