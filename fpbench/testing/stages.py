"""How the kit runs components of each kind, and checks of their results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.claims.rates import FORMS, RateConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.attack_kinds import (
    Adversary,
    Component,
    Corrector,
    Dataset,
    Disclosure,
    Learner,
)
from fpbench.components.auditor import Auditor, Release, Subject
from fpbench.components.guarantee import COUNT_SENSITIVITY, LEAST_EPSILON, NEIGHBOURS, Guarantee
from fpbench.components.mechanism import Mechanism, Policy
from fpbench.components.records import Claim, Guess, Predictions, Problem, SolverStatus
from fpbench.components.spec import describe_component
from fpbench.data.data_files import DataHome
from fpbench.data.sample import Codes, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.execution.work.execute import make_read_only
from fpbench.models.rules import Rules
from fpbench.testing.attacks import list_relations
from fpbench.testing.brute_force import make_unknown_constraint, satisfies, state_facts
from fpbench.testing.fixtures import (
    KitDisclosure,
    KitLearner,
    KitPeople,
    make_cell_inputs,
    make_generator,
    make_kit_learner,
    make_step,
    show_to,
)
from fpbench.testing.watching import Watched, transfer, watch

_RUBBISH = {
    "empty": b"",
    "not text": b"\x00\xff\xfe rubbish\n,,,\n" * 5,
    "of other columns": b"a,b,c\n1,2,3\n",
}
"""Contents of invalid files."""
_BAD_EPSILONS = (0.0, -1.0, math.inf, math.nan, LEAST_EPSILON / 2)

Attempts = Iterator[tuple[str, Callable[[], Any]]]
"""Descriptions of bad inputs, each with a call with that input."""


class Stage(ABC):
    """How the kit runs components of one kind."""

    groups: ClassVar[bool] = True
    """Whether the number of groups of its input can be chosen."""

    def partners(self, component: Any, k: int) -> list[Component]:
        """The components it is combined with."""
        return [KitPeople(groups=k), KitLearner()]

    @abstractmethod
    def prepare(self, component: Any, k: int, home: DataHome) -> Any:
        """Its input, for people of k groups."""

    @abstractmethod
    def run(self, component: Any, inputs: Any, seed: int) -> Any:
        """Its result, run as a step does."""

    @abstractmethod
    def check(self, component: Any, inputs: Any, result: Any) -> None:
        """Raise AssertionError if the result does not match its kind's declaration."""

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """Its own notes and measures in a result, and the guarantee of the model in it."""
        return [], None

    def attempts(self, component: Any, home: DataHome) -> Attempts:
        """Calls with bad input; each must raise an error of fpbench, or give a valid result."""
        yield from ()


def check_measures(measures: Any, what: str) -> None:
    """Raise AssertionError unless they are numbers or texts, by names in snake_case."""
    assert isinstance(measures, dict), f"{what} are a {type(measures).__name__}, not a dict"
    for name, value in measures.items():
        assert isinstance(name, str), f"{what} are named by texts, not {show_value(name)}"
        assert name.isidentifier() and name.lower() == name, f"{what}: {name!r} is not snake_case"
        plain = isinstance(value, str | int | float | np.number | np.bool_ | None)
        assert plain, f"{what}: {name!r} is a {type(value).__name__}, not a number or a text"
        nan = isinstance(value, float | np.floating) and np.isnan(value)
        assert not nan, f"{what}: {name!r} is NaN; use None for undefined values"


def check_probabilities(proba: Any, n: int, whose: str) -> None:
    """Raise AssertionError if they are not (n, 2) probabilities of label 0 and label 1."""
    assert np.shape(proba) == (n, 2), f"{whose}'s scores are {np.shape(proba)}, not ({n}, 2)"
    values = np.asarray(proba)
    assert ((values >= 0) & (values <= 1)).all(), f"{whose}'s scores are not in [0, 1]"
    assert np.allclose(values.sum(axis=1), 1), f"{whose}'s scores of a person do not sum to 1"


def check_whole(values: Any, what: str) -> None:
    """Raise AssertionError if they are not an array of whole numbers."""
    whole = isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.integer)
    assert whole, f"{what} must be an array of whole numbers"


class _DatasetStage(Stage):
    """Loads."""

    groups = False

    def prepare(self, component: Dataset, k: int, home: DataHome) -> Any:
        return (home,)

    def run(self, component: Dataset, inputs: Any, seed: int) -> Table:
        table: Table = ACTIONS["load"](component, inputs, make_step(seed))
        return table

    def check(self, component: Dataset, inputs: Any, result: Any) -> None:
        """A table, which has checked itself, with the announced number of groups."""
        assert isinstance(result, Table), f"load gave a {type(result).__name__}, not a Table"
        k = component.n_groups
        assert k in (None, len(result.groups)), f"n_groups says {k}, but there are {result.groups}"
        both = {*result.features.columns} & {*result.sensitive.columns}
        assert not both, f"sensitive columns are features, too: {', '.join(sorted(both))}"
        result.domain.check_names(result.features.columns)

    def attempts(self, component: Dataset, home: DataHome) -> Attempts:
        """Its files are missing or invalid."""
        nowhere = DataHome((home.directories[0] / "nowhere",))
        if component.files and component.absent(nowhere):
            yield "its files are missing", lambda: component.load(nowhere)
        for what, content in _RUBBISH.items():
            rubbish = home.directories[0] / what.replace(" ", "-")
            if _write_files(component, rubbish, content) and not component.absent(
                DataHome((rubbish,))
            ):
                yield f"its files are {what}", partial(_load, component, DataHome((rubbish,)))


def _load(component: Dataset, home: DataHome) -> None:
    component.load(home)
    raise AssertionError("they are loaded")


def _write_files(component: Dataset, folder: Path, content: bytes) -> bool:
    """Whether its files are now in a folder, with this content."""
    places = [folder.resolve() / file.name for file in component.files]
    # A path to elsewhere, such as an absolute one, may be a user's file.
    if not all(place.resolve().is_relative_to(folder.resolve()) for place in places):
        return False
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return bool(places)


def _make_one_label(sample: Sample) -> Sample:
    """A few people, all of label 0."""
    few = sample.take(np.arange(60))
    return few.having(labels=np.zeros(len(few), np.int8))


class _LearnerStage(Stage):
    """Trains a model, and queries it."""

    def partners(self, component: Learner, k: int) -> list[Component]:
        return [KitPeople(groups=k)]

    def prepare(self, component: Learner, k: int, home: DataHome) -> Any:
        return (make_cell_inputs(k).split,)

    def run(self, component: Learner, inputs: Any, seed: int) -> Any:
        (split,) = inputs
        model = transfer(ACTIONS["train"](component, inputs, make_step(seed)), "the model")
        results: dict[str, Any] = {
            "predictions": ACTIONS["predict"](component, (model, split), make_step(seed))
        }
        if component.gives_scores:
            results["scores"] = ACTIONS["reveal"](component, (model, split), make_step(seed))
            results["proba"] = self._proba(component, model, split.test, seed)
        if component.gives_rules:
            results["rules"] = model.rules
        if component.gives_baseline:
            features = split.test.features
            results["baseline"] = model.baseline.predict_proba(features, make_step(seed).rng())
        return results

    @staticmethod
    def _proba(component: Learner, model: Any, people: Sample, seed: int) -> Any:
        sensitive = people.sensitive if component.predicts_with_sensitive else None
        return model.predict_proba(people.features, make_step(seed).rng(), sensitive)

    def check(self, component: Learner, inputs: Any, result: Any) -> None:
        """Predictions of 0 and 1 (checked by the step); rules that predict the same."""
        split: Split = inputs[0]
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
        predictions: Predictions = result["predictions"]
        return [predictions.notes], predictions.guarantee

    def attempts(self, component: Learner, home: DataHome) -> Attempts:
        """Everybody has the same label; a column is missing."""
        split = make_cell_inputs(2).split

        def fit(sample: Sample) -> Any:
            return component.fit(sample, make_step(0).rng())

        yield (
            "everybody has label 0",
            lambda: fit(_make_one_label(split.train).only(component.needs)),
        )
        yield "all columns that it needs are missing", lambda: fit(split.train.only(frozenset()))


class _DisclosureStage(Stage):
    """Claims."""

    def partners(self, component: Disclosure, k: int) -> list[Component]:
        return [KitLearner()]

    def prepare(self, component: Disclosure, k: int, home: DataHome) -> Any:
        return make_cell_inputs(k).split, make_cell_inputs(k).predictions

    def run(self, component: Disclosure, inputs: Any, seed: int) -> Any:
        return ACTIONS["disclose"](component, inputs, make_step(seed))

    def check(self, component: Disclosure, inputs: Any, result: Any) -> None:
        """A claim in announced words, or none."""
        if result is None:
            return
        assert isinstance(result, Claim), f"claim gave a {type(result).__name__}, not a Claim"
        for constraint in result.constraints:
            words = component.words()
            assert constraint.word in words, f"it claims {constraint.word!r}, but announces {words}"
            constraint.check(len(inputs[0].train), len(inputs[0].train.groups))
        assert result.source, "its claim has no source"
        check_measures(result.notes, "notes")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        return [result.notes] if isinstance(result, Claim) else [], None

    def attempts(self, component: Disclosure, home: DataHome) -> Attempts:
        """The learner aims at no fairness."""
        split, predictions = make_cell_inputs(2).split, make_cell_inputs(2).predictions
        aimless = Predictions(predictions.train, predictions.test, predictions.attack, None)
        yield "the learner asks for no fairness", lambda: self.run(component, (split, aimless), 0)


class _AdversaryStage(Stage):
    """Guesses."""

    def partners(self, component: Adversary, k: int) -> list[Component]:
        return [KitPeople(groups=k), make_kit_learner(component.sees)]

    def prepare(self, component: Adversary, k: int, home: DataHome) -> Any:
        return show_to(component.sees, k)

    def run(self, component: Adversary, inputs: Any, seed: int) -> Guess:
        stage_step, tuned = make_step(seed), component
        if component.tunes_once:
            known = HANDED["tune"](component, inputs[:1], stage_step)
            tuned = transfer(ACTIONS["tune"](component, known, stage_step), "the tuned adversary")
        view = HANDED["guess"](tuned, inputs, stage_step)
        guess: Guess = ACTIONS["guess"](tuned, view, stage_step)
        assert isinstance(guess, Guess), f"guess gave a {type(guess).__name__}, not a Guess"
        for what in ("values", "held_out", "held_out_values"):
            check_whole(getattr(guess, what), what)
        MEASURING["guess"](guess, view, stage_step)
        return guess

    def check(self, component: Adversary, inputs: Any, result: Guess) -> None:
        """Codes and confidences (checked by the step); distinct rows of the attack set."""
        rows, m = np.asarray(result.held_out), len(inputs[0].attack)
        inside = len(rows) == 0 or (rows.min() >= 0 and rows.max() < m)
        assert inside, f"held_out must be rows of the attack set, 0..{m - 1}"
        for confidence in (result.confidence, result.held_out_confidence):
            assert (confidence <= 1).all(), "a confidence is above 1"
        check_measures(result.notes, "notes")

    def words(self, result: Guess) -> tuple[list[Any], Guarantee | None]:
        return [result.notes], None

    def attempts(self, component: Adversary, home: DataHome) -> Attempts:
        """The attack set has one person, or nobody."""
        for what, n in (("the attack set is one person", 1), ("the attack set is empty", 0)):
            rows = np.arange(n)
            few = tuple(
                replace(part, attack=part.attack.take(rows, axis=0))
                if not isinstance(part, Split)
                else replace(part, attack=part.attack.take(rows))
                for part in show_to(component.sees, 2)
            )
            yield what, partial(self.run, component, few, 0)


class _CorrectorStage(Stage):
    """Corrects."""

    def claim(self, component: Corrector) -> RateConstraint | None:
        """A claim in a form that it can express; None if there is none."""
        forms = [form for form in FORMS if form in component.expresses]
        return RateConstraint("statistical-parity", 0.05, forms[0]) if forms else None

    def partners(self, component: Corrector, k: int) -> list[Component]:
        claim = self.claim(component)
        words = [claim.word] if claim else sorted(component.expresses)[:1]
        return [KitPeople(groups=k), KitLearner(), KitDisclosure(words_claimed=words)]

    def prepare(self, component: Corrector, k: int, home: DataHome) -> Any:
        world, rng = make_cell_inputs(k), make_generator(f"guess {k}")
        held_out = np.arange(0, len(world.split.attack), 2)

        def draw_guess(truth: Any) -> tuple[Any, Any]:
            right = rng.random(len(truth)) < 0.7
            values = np.where(right, truth, rng.integers(0, k, len(truth))).astype(np.int8)
            return values, rng.uniform(0.5, 1, len(truth))

        values = draw_guess(world.split.train.sensitive)
        guess = Guess(*values, held_out, *draw_guess(world.split.attack.sensitive[held_out]))
        claim = self.claim(component)
        facts = Facts.word in component.expresses and claim is None
        also = (state_facts(len(values[0]), k),) if facts else ()
        shown = Claim(claim, "kit", also) if claim or also else None
        return world.split, world.predictions, guess, shown

    def run(self, component: Corrector, inputs: Any, seed: int) -> Any:
        stage_step = make_step(seed)
        return MEASURING["correct"](
            ACTIONS["correct"](component, inputs, stage_step), inputs, stage_step
        )

    def check(self, component: Corrector, inputs: Any, result: Any) -> None:
        """Everyone's group; a bound that is not above the objective."""
        correction, _, weighed = result
        n, k = len(inputs[0].train), len(inputs[0].train.groups)
        status = correction.status
        assert isinstance(status, SolverStatus | None), f"{status!r} is not a SolverStatus"
        if correction.values is not None:
            values = correction.values
            check_whole(values, "values")
            assert values.shape == (n,), f"values are {values.shape}, not ({n},)"
            assert ((values >= 0) & (values < k)).all(), f"values must be codes in 0..{k - 1}"
            self._check_claim(inputs, values, status)
        if correction.objective is not None and correction.bound is not None:
            slack = 1e-9 * max(1, abs(correction.objective))
            assert correction.bound <= correction.objective + slack, "the bound is above the cost"
        if correction.moves is not None:
            assert correction.moves.shape == (2, k, k), f"moves are {correction.moves.shape}"
        for measures in (weighed, correction.measures):
            check_measures(measures, "measures")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        correction, _, weighed = result
        return [weighed, correction.measures], None

    def _check_claim(self, inputs: Any, values: Codes, status: SolverStatus | None) -> None:
        split, predictions, guess, claim = inputs
        if status is None or claim is None:  # then it makes no statement about a claim
            return
        labels, k = split.train.labels, len(split.train.groups)
        problem = Problem(guess.values, k, predictions.train, labels, claim.constraints)
        assert satisfies(problem, values), f"it says {status}, but the claim does not hold"

    def attempts(self, component: Corrector, home: DataHome) -> Attempts:
        """A constraint that it cannot express."""
        guess, labels = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
        problem = Problem(guess, 2, labels, labels, (make_unknown_constraint(),))
        yield "a constraint that nobody can express", lambda: component.correct(problem)


class _MechanismStage(Stage):
    """Releases counts of several shapes."""

    def prepare(self, component: Mechanism, k: int, home: DataHome) -> Any:
        counts = make_generator(f"counts {k}").integers(0, 30, (4, k))
        return [(counts, 1.0, counts.sum(axis=-1, keepdims=True)),
                (counts[0], np.array([[0.5], [2.0]]), counts[0].sum()),
                (np.zeros(k, np.int64), 1.0, 5)]  # fmt: skip

    def run(self, component: Mechanism, inputs: Any, seed: int) -> Any:
        rng = make_step(seed).rng()
        return [
            component.release(counts, COUNT_SENSITIVITY[relation], epsilon, rng, upper=upper)
            for relation in list_relations(component)
            for counts, epsilon, upper in inputs
        ]

    def check(self, component: Mechanism, inputs: Any, result: Any) -> None:
        """Finite numbers of the broadcast shape; the requested guarantee."""
        relations = list_relations(component)
        assert relations, f"it guarantees neither of {', '.join(NEIGHBOURS)} at epsilon 1"
        for answer, (counts, epsilon, _) in zip(result, len(relations) * inputs, strict=True):
            shape = np.broadcast_shapes(counts.shape, np.shape(epsilon))
            assert np.shape(answer) == shape, f"an answer is {np.shape(answer)}, not {shape}"
            assert np.isfinite(answer).all(), "an answer is not finite"
        for relation in relations:
            guarantee = component.guarantee(1.0, relation)
            assert isinstance(guarantee, Guarantee), f"guarantee gave a {type(guarantee).__name__}"
            assert guarantee.neighbours == relation, (
                f"asked for {relation}, it guarantees {guarantee}"
            )
            assert guarantee.epsilon <= 1 + 1e-9, (
                f"asked for epsilon 1, it guarantees {guarantee.epsilon}"
            )

    def attempts(self, component: Mechanism, home: DataHome) -> Attempts:
        """An invalid epsilon."""
        for bad in _BAD_EPSILONS:

            def guarantee(bad: float = bad) -> None:
                component.guarantee(bad, "attribute")
                raise AssertionError("it is guaranteed")

            def release(bad: float = bad) -> None:
                component.release(
                    np.array([3, 4]), COUNT_SENSITIVITY["attribute"], bad, make_step(0).rng(), 7
                )
                raise AssertionError("it is released")

            yield f"guarantee of epsilon {bad}", guarantee
            yield f"release with epsilon {bad}", release


class _PolicyStage(Stage):
    """Repairs noisy histograms."""

    def prepare(self, component: Policy, k: int, home: DataHome) -> Any:
        rng = make_generator(f"noisy {k}")
        totals = rng.integers(0, 40, (3, 5))
        shares = rng.dirichlet(np.ones(k), (3, 5))
        noisy = shares * totals[..., None] + rng.normal(0, 8, (3, 5, k))
        return [(noisy, totals, None), (noisy[0, 0], 40, None), (noisy, 40, np.full((3, 5), 20))]

    def run(self, component: Policy, inputs: Any, seed: int) -> Any:
        return [component.repair(*one) for one in inputs]

    def check(self, component: Policy, inputs: Any, result: Any) -> None:
        """Counts of the same shape between 0 and the total."""
        for repaired, (answers, total, _) in zip(result, inputs, strict=True):
            assert np.shape(repaired) == answers.shape, (
                f"{answers.shape} answers became {np.shape(repaired)}"
            )
            assert (repaired >= 0).all(), "a repaired count is below 0"
            most = np.asarray(total)[..., None] * (1 + 1e-12) + 1e-9
            assert (repaired <= most).all(), "a repaired count is above the total"

    def attempts(self, component: Policy, home: DataHome) -> Attempts:
        """Counts that are not finite, a total below 0."""

        def repair(answers: list[float], total: float) -> None:
            component.repair(np.array(answers), total)
            raise AssertionError("it is repaired")

        yield "a count that is NaN", lambda: repair([1.0, math.nan], 3)
        yield "an infinite count", lambda: repair([1.0, math.inf], 3)
        yield "a total below 0", lambda: repair([1.0, 2.0], -3)


class _AuditorStage(Stage):
    """Audits a small tree that has rules and a baseline."""

    def prepare(self, component: Auditor, k: int, home: DataHome) -> Any:
        world = make_cell_inputs(k)
        inputs = [world.split, world.predictions]
        if "model" in component.sees:
            inputs.append(world.model)
        if (number := component.shadow_models) is not None:
            shadows = ACTIONS["shadow"](
                KitLearner(), (world.model, world.split), make_step(0, number, "0")
            )
            inputs += [shadows] * (1 + component.needs_twin)
        return (*inputs, *([KitLearner()] if "fit" in component.sees else []))

    def run(self, component: Auditor, inputs: Any, seed: int) -> Any:
        lent = describe_component(KitLearner()) if "fit" in component.sees else None
        stage_step = replace(make_step(seed), uses=(("auditor", component.name),), learner=lent)
        answer = ACTIONS["audit"](component, inputs, stage_step)
        kind = type(answer).__name__
        assert isinstance(answer, dict | Release), f"audit gave a {kind}, not a dict or a Release"
        return answer, MEASURING["audit"](answer, inputs, stage_step)

    def check(self, component: Auditor, inputs: Any, result: Any) -> None:
        """Measures by name, or a release with intervals."""
        answer, measured = result
        check_measures(measured, "measures")
        if isinstance(answer, Release):
            values = np.asarray(answer.values)
            assert values.ndim == 1, "a release must have one value per repetition"
            assert ((values >= 0) & (values <= 1)).all(), "a released ratio is not in [0, 1]"
            for end in (answer.low, answer.high):
                assert np.shape(end) == values.shape, "intervals must have one end per value"
            assert not (answer.low > answer.high).any(), "an interval ends before it begins"
        else:
            check_measures(answer, "measures")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        answer, _ = result
        return [answer.measures if isinstance(answer, Release) else answer], None

    def attempts(self, component: Auditor, home: DataHome) -> Attempts:
        """There is no model, no curator and no other models."""
        split, predictions = make_cell_inputs(2).split, make_cell_inputs(2).predictions
        sees = component.sees
        train = split.train.having(predictions=predictions.train).only(sees)
        test = split.test.having(predictions=predictions.test).only(sees)
        if sees & {"model", "curator", "fit"}:
            bare = Subject(train, test)
            yield (
                "no model, no curator and no other models",
                lambda: component.audit(bare, make_step(0).rng()),
            )


STAGES: dict[str, Stage] = {
    "dataset": _DatasetStage(),
    "learner": _LearnerStage(),
    "disclosure": _DisclosureStage(),
    "adversary": _AdversaryStage(),
    "corrector": _CorrectorStage(),
    "mechanism": _MechanismStage(),
    "policy": _PolicyStage(),
    "auditor": _AuditorStage(),
}
"""How the components of each kind are run."""


def run_watched(
    component: Component, home: DataHome, k: int = 2, seed: int = 0, *, read_only: bool = False
) -> Watched:
    """The watched run of a component with people of k groups.

    With `read_only` its inputs are write-protected, as in the run of a matrix.
    """
    stage = STAGES[component.kind]
    inputs = stage.prepare(component, k, home)

    def run(copied: Any) -> Any:
        if read_only:
            make_read_only(copied)
        return stage.run(component, copied, seed)

    return watch(run, inputs)
