"""The work of a step. The only module in which kinds meet.

A step is a pure function of its component, its parameters, its parents' results and the seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.halves import draw_halves
from fpbench.base.arguments import show_value, to_python_number
from fpbench.base.errors import InputError, PluginError
from fpbench.claims.constraints import COUNT_CONSTRAINTS
from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import (
    Adversary,
    Classifier,
    Corrector,
    Dataset,
    Disclosure,
    Learner,
)
from fpbench.components.auditor import NOISES, Auditor, Release, Shadows, Subject
from fpbench.components.beliefs import check_beliefs, spread_confidence
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import (
    CalibratedGuess,
    Claim,
    Correction,
    Guess,
    MeasureValues,
    Predictions,
    Problem,
    Scores,
    SolverStatus,
    SplitAnswers,
    View,
)
from fpbench.components.sights import SIGHTS, keep_model_sights, list_sights
from fpbench.correction.calibration import calibrate_beliefs
from fpbench.correction.proven import find_possible
from fpbench.data.data_files import DataHome
from fpbench.data.sample import Codes, ModelAnswers, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.work.rows import ComponentWords, make_row
from fpbench.execution.work.scores import (
    measure_attack,
    measure_beliefs,
    measure_claim,
    measure_leak,
    measure_model,
    measure_release,
)
from fpbench.matrix.matrix import HELD_OUT
from fpbench.matrix.step import EACH_GROUP, Corrected, Sealed, Step
from fpbench.privacy.curator import Curator

_OF_CELLS = COUNT_CONSTRAINTS - {"known"}
"""Names of constraints that depend only on counts of groups in cells of people."""


@dataclass(frozen=True)
class _Context:
    """The input of a disclosure."""

    asked: RateConstraint | None
    target: Sample
    attack: Sample
    model: Classifier | None
    trained_on_target: bool


def _load(dataset: Dataset, parents: tuple[DataHome], step: Step) -> Table:
    return dataset.load(parents[0])


def _split(_: None, parents: tuple[Table], step: Step) -> Split:
    (table,) = parents
    shares = step.options
    if shares[1] == "original":
        if table.test is None:
            raise InputError(
                f"data set {table.name!r} comes without a test set of its own: [split] test must "
                "be a share"
            )
        test, rest = np.flatnonzero(table.test), np.flatnonzero(~table.test)
        # In the order of the file: a reproduction of a paper needs its folds, too.
        train, attack = map(np.sort, _cut(step.rng().permutation(rest), (shares[0], shares[2])))
    else:
        train, test, attack = _cut(step.rng().permutation(len(table)), shares[:3])
    everyone = table.sample()
    return Split(
        _take_part(table, everyone, "training", train),
        _take_part(table, everyone, "test", test),
        _take_part(table, everyone, "attack", attack),
        held_out_target=shares[3:] == (HELD_OUT,),
    )


def _cut(rows: NDArray[np.intp], shares: tuple[Any, ...]) -> list[NDArray[np.intp]]:
    """Consecutive parts of rows."""
    ends = np.rint(np.cumsum(shares) * len(rows)).astype(int)
    return np.split(rows[: ends[-1]], ends[:-1])


def _take_part(table: Table, everyone: Sample, name: str, rows: Any) -> Sample:
    part = everyone.take(rows)
    if name == "attack" and not len(part):  # audits do not need this part
        return part
    for group in np.flatnonzero(np.bincount(part.sensitive, minlength=len(table.groups)) == 0):
        raise InputError(
            f"data set {table.name!r}: nobody of group {table.groups[group]!r} falls into the "
            f"{name} part; choose larger shares in [split], more rows or fewer groups"
        )
    return part


def _train(learner: Learner, parents: tuple[Split], step: Step) -> Classifier:
    people = parents[0].train.only(learner.needs)
    model = learner.fit(people, step.rng())
    if getattr(model, "guarantee", None) is not None:
        people.check_cuts(learner.needs, f"learner {learner.name!r}")
    return model


def _predict(learner: Learner, parents: tuple[Classifier, Split], step: Step) -> Predictions:
    model, split = parents
    rng = step.rng()
    train, test, attack = (
        _predict_labels(learner, model, part, rng)
        for part in (split.train, split.test, split.attack)
    )
    notes = dict(getattr(model, "notes", {}))
    return Predictions(
        train, test, attack, learner.asked(), notes, _read_guarantee(model),
        "sensitive" in learner.needs, learner.predicts_with_sensitive,
    )  # fmt: skip


def _predict_labels(
    learner: Learner, model: Any, people: Sample, rng: np.random.Generator
) -> Codes:
    """(n,) labels that a model predicts."""
    if not len(people):
        return np.zeros(0, np.int8)
    sensitive = people.sensitive if learner.predicts_with_sensitive else None
    answer = np.asarray(model.predict(people.features, rng, sensitive))
    if answer.shape != (len(people),) or not ((answer == 0) | (answer == 1)).all():
        raise PluginError(f"predictions must be {len(people)} values 0 or 1")
    return answer.astype(np.int8)


def _predict_positive(
    learner: Learner, model: Any, people: Sample, rng: np.random.Generator
) -> NDArray[np.float64]:
    """(n,) probabilities of label 1 that a model predicts."""
    sensitive = people.sensitive if learner.predicts_with_sensitive else None
    answer = np.asarray(model.predict_proba(people.features, rng, sensitive))
    if answer.shape != (len(people), 2) or not ((answer >= 0) & (answer <= 1)).all():
        raise PluginError(f"predicted probabilities must be ({len(people)}, 2) values in [0, 1]")
    return np.asarray(answer[:, 1], np.float64)


def _take_target(split: Split, predictions: Predictions) -> Codes:
    """(n,) predictions for the target people."""
    return predictions.test if split.held_out_target else predictions.train


def _read_guarantee(model: Classifier) -> Guarantee | None:
    """The guarantee of a model."""
    guarantee = getattr(model, "guarantee", None)
    if guarantee is None:
        return None
    return _check_guarantee(guarantee, "a model", "an fpbench.Guarantee or None")


def _check_guarantee(guarantee: Any, whose: str, expected: str) -> Guarantee:
    """A guarantee, checked again, because a component may subclass `Guarantee`."""
    if not isinstance(guarantee, Guarantee):
        kind = type(guarantee).__name__
        raise PluginError(f"the guarantee of {whose} must be {expected}, not {kind}")
    return Guarantee(guarantee.epsilon, guarantee.delta, guarantee.neighbours, guarantee.rho)


def _train_shadows(learner: Learner, parents: tuple[Any, Split], step: Step) -> Shadows:
    """Scores of shadow models: of each random pair of halves of the people, each trains one."""
    trained, split = parents
    number, halves = int(step.options[0]), str(step.options[1])
    everyone = _join(*(part.only(_POOLED) for part in (split.train, split.test)))
    cells = everyone.labels.astype(np.int64) * len(everyone.groups) + everyone.sensitive
    rng, members, models = step.rng(), np.zeros((0, len(everyone)), bool), []
    if number:  # otherwise the model is scored alone
        members = draw_halves(cells, number, np.random.default_rng(int(halves, 16)))
        models = learner.fit_many(everyone.only(learner.needs), members, rng.spawn(number))
    if len(models) != number:
        raise PluginError(f"fit_many must give {number} models, not {len(models)}")
    columns = {"features", "sensitive"} if learner.predicts_with_sensitive else {"features"}
    seen = everyone.only(frozenset(columns))
    scores = np.asarray(learner.score_many([*models, trained], seen, rng))
    if scores.shape != (number + 1, len(everyone)) or not ((scores >= 0) & (scores <= 1)).all():
        raise PluginError(
            f"score_many must give {(number + 1, len(everyone))} values in [0, 1], not "
            f"{scores.shape}"
        )
    return Shadows(members, scores[:-1], scores[-1], learner.has_scores())


_POOLED = frozenset({"features", "labels", "sensitive"})


def _join(one: Sample, other: Sample) -> Sample:
    """The people of two parts of a table, one after the other."""
    import pandas as pd

    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in one.seen - {"features"}
    }
    features = pd.concat([one.features, other.features], ignore_index=True)
    return one.having(features=features, **columns)


def _reveal(learner: Learner, parents: tuple[Any, Split], step: Step) -> Scores:
    model, split = parents
    rng = step.rng()
    return Scores(
        _predict_positive(learner, model, split.target, rng),
        _predict_positive(learner, model, split.attack, rng),
    )


def _ask(learner: Learner, parents: tuple[Any, Split], step: Step) -> SplitAnswers:
    """A model's answers about people in their own groups, or as if they were in each group."""
    model, split = parents
    rng = step.rng()
    ask = _ask_about_each_group if step.options == (EACH_GROUP,) else _ask_about
    return SplitAnswers(*(ask(learner, model, part, rng) for part in (split.target, split.attack)))


def _ask_about(
    learner: Learner, model: Any, people: Sample, rng: np.random.Generator
) -> ModelAnswers:
    """Answers (n,) about people in their own groups."""
    labels = _predict_labels(learner, model, people, rng)
    if not learner.has_scores():
        return ModelAnswers(labels)
    none = not len(people)
    scores = np.zeros(0) if none else _predict_positive(learner, model, people, rng)
    return ModelAnswers(labels, scores)


def _ask_about_each_group(
    learner: Learner, model: Any, people: Sample, rng: np.random.Generator
) -> ModelAnswers:
    """Answers (n, K) about people as if in each group, whatever their own group is."""
    about = [
        _ask_about(learner, model, people.having(sensitive=np.full(len(people), group)), rng)
        for group in range(len(people.groups))
    ]
    scores = [answers.scores for answers in about if answers.scores is not None]
    return ModelAnswers(
        np.stack([answers.predictions for answers in about], axis=1),
        np.stack(scores, axis=1) if scores else None,
    )


def _disclose(disclosure: Disclosure, parents: tuple[Any, ...], step: Step) -> Claim | None:
    split, predictions, *models = parents
    context = _Context(
        predictions.asked,
        split.target.having(predictions=_take_target(split, predictions)),
        split.attack.having(predictions=predictions.attack),
        models[0] if models else None,
        not split.held_out_target,
    )
    rng = step.rng()
    context.target.check_cuts(disclosure.protects, f"disclosure {disclosure.name!r}")
    claim = disclosure.claim(context, rng)
    if disclosure.also:
        also = tuple(fact.constraint(context.target, rng) for fact in disclosure.also)
        nats = sum(fact.limit_nats(context.target) for fact in disclosure.also)
        claim = claim or Claim(None, disclosure.name, nats=0.0)
        claim = replace(claim, also=(*claim.also, *also), fact_nats=nats)
    return None if claim is None else _read_claim(claim, context.target)


def _read_claim(claim: Claim, target: Sample) -> Claim:
    """The claim, and the consequences of its constraints, which other code may not understand."""
    if claim.nats is not None and not 0 <= claim.nats < np.inf:
        raise PluginError(f"the nats of a claim must be at least 0 and finite, not {claim.nats}")
    labels = {label for constraint in claim.constraints for label in constraint.labels}
    of_counts = all(constraint.word in _OF_CELLS for constraint in claim.constraints)
    problem = Problem(
        target.sensitive, len(target.groups), target.predictions, target.labels, claim.constraints
    )
    return replace(
        claim, counted_labels=tuple(sorted(labels, key=str)) if of_counts else None,
        possible=find_possible(problem),
    )  # fmt: skip


def make_view(adversary: Adversary, split: Split, shown: Mapping[str, Any] | None = None) -> View:
    """An adversary's view: what it declares to see, never the groups of the target people.

    `shown`: answers of the model, by the names of the table `SIGHTS`: a `Predictions`, a `Scores`,
    and one `SplitAnswers` each of a query and of the twin.
    """
    target, attack = split.target, split.attack
    for name, values in (shown or {}).items():
        if isinstance(values, Predictions):
            target = target.having(predictions=_take_target(split, values))
        else:
            target = target.having(**{name: values.target})
        attack = attack.having(**{name: values.attack})
    sees = adversary.sees & list_sights("adversary")
    return View(target.only(sees), attack.only(sees | {"sensitive"}))


def _show_attack(adversary: Adversary, parents: tuple[Split], step: Step) -> tuple[Sample]:
    return (make_view(adversary, parents[0]).attack,)


def _tune(adversary: Adversary, handed: tuple[Sample], step: Step) -> Adversary:
    tuned = adversary.tune(handed[0], step.rng())
    if not isinstance(tuned, type(adversary)):
        raise PluginError(f"tuning must give a {type(adversary).__name__}, not {show_value(tuned)}")
    return tuned


def _make_view(
    adversary: Adversary, parents: tuple[Any, ...], step: Step
) -> tuple[View, Adversary | Sealed]:
    split, *others = parents
    names = keep_model_sights(adversary.sees)
    view = make_view(adversary, split, dict(zip(names, others, strict=False)))
    tuned = others[len(names)] if len(others) > len(names) else adversary
    return view, tuned


def _guess(adversary: Adversary, handed: tuple[View, Adversary], step: Step) -> Guess:
    view, tuned = handed
    return tuned.guess(view, step.rng())


def _calibrate_guess(guess: Guess, handed: tuple[View, Any], step: Step) -> CalibratedGuess:
    """The guess, checked, with beliefs that are calibrated on the held-out people."""
    guess = _to_plain(guess)
    _check_guess(guess, handed[0])
    known, k = handed[0].attack.sensitive[guess.held_out], len(handed[0].target.groups)
    beliefs, held_out = guess.beliefs, guess.held_out_beliefs
    if beliefs is None or held_out is None:
        beliefs = spread_confidence(guess.values, np.minimum(guess.confidence, 1), k)
        held_out = spread_confidence(
            guess.held_out_values, np.minimum(guess.held_out_confidence, 1), k
        )
    calibrated, method = calibrate_beliefs(beliefs, held_out, known)
    sees = tuple(name for name in SIGHTS if name in handed[0].target.seen)
    return CalibratedGuess(
        **{**vars(guess), "beliefs": calibrated, "held_out_beliefs": None},
        calibration=method, sees=sees,
    )  # fmt: skip


def _to_plain(answer: Any) -> Any:
    """An answer whose arrays are NumPy's own: other classes may define their own comparisons."""
    arrays = {
        name: np.asarray(value)
        for name, value in vars(answer).items()
        if isinstance(value, np.ndarray) and type(value) is not np.ndarray
    }
    return replace(answer, **arrays) if arrays else answer


def _check_guess(guess: Guess, view: View) -> None:
    """Refuse a guess of wrong sizes or values."""
    n, m, k = len(view.target), len(guess.held_out), len(view.target.groups)
    people = len(view.attack)
    if guess.held_out.dtype.kind not in "iu" or guess.held_out.ndim != 1:
        raise PluginError("held_out must be whole numbers: rows of the attack set")
    if m and not (guess.held_out.min() >= 0 and guess.held_out.max() < people):
        raise PluginError(f"held_out must be rows of the attack set, in 0..{people - 1}")
    if len(np.unique(guess.held_out)) != m:
        raise PluginError("held_out names a row twice")
    for what, values, confidence, size in (
        ("the guess", guess.values, guess.confidence, n),
        ("the held-out guess", guess.held_out_values, guess.held_out_confidence, m),
    ):
        if values.shape != (size,) or confidence.shape != (size,):
            raise PluginError(f"{what} must have {size} values and confidences")
        # Truth values would be a mask of rows, not groups.
        if values.dtype.kind not in "iu" or confidence.dtype.kind not in "biuf":
            raise PluginError(f"{what} must be whole numbers, and its confidence numbers")
        if size and not (values.min() >= 0 and values.max() < k):
            raise PluginError(f"{what} must be group codes in 0..{k - 1}")
        if not (np.isfinite(confidence).all() and (confidence >= 0).all()):
            raise PluginError(f"the confidence of {what} must be finite and not negative")
    if (guess.beliefs is None) != (guess.held_out_beliefs is None):
        raise PluginError("a guess must have both beliefs and held-out beliefs, or neither")
    _check_shape("the beliefs of the guess", guess.beliefs, (n, k), "f")
    _check_shape("the beliefs of the held-out guess", guess.held_out_beliefs, (m, k), "f")
    _check_shape("abstains", guess.abstains, (n,), "b")


def _check_shape(what: str, array: Any, shape: tuple[int, ...], kind: str) -> None:
    """Refuse an array of another shape or kind; None passes."""
    if array is None:
        return
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
        held = getattr(array, "shape", type(array).__name__)
        numbers = {"f": "probabilities", "b": "true or false"}[kind]
        raise PluginError(f"{what} must be {shape} {numbers}, not {held}")
    if kind == "f" and len(array):
        try:
            check_beliefs(array)
        except InputError as error:
            raise PluginError(f"{what}: {error}") from None


def _correct(corrector: Corrector, parents: tuple[Any, ...], step: Step) -> Corrected:
    split, predictions, guess, claim = parents
    k = len(split.target.groups)
    rows = guess.held_out
    # All other knowledge is about the target people only.
    on_rates = (claim.constraint,) if claim is not None and claim.constraint else ()
    held_out = Problem(
        guess.held_out_values, k, predictions.attack[rows], split.attack.labels[rows], on_rates
    )
    weighing = corrector.weigh(guess, held_out, split.attack.sensitive[rows])
    weights, values = weighing.weights, weighing.values
    if weights is not None and not (np.isfinite(weights).all() and (weights > 0).all()):
        raise PluginError("the weights must be finite and positive")
    problem = Problem(
        guess.values if values is None else values, k, _take_target(split, predictions),
        split.target.labels, claim.constraints if claim is not None else (), weights, guess.beliefs,
        None if claim is None else claim.possible,
    )  # fmt: skip
    started = time.perf_counter()
    correction = corrector.correct(problem)
    seconds = time.perf_counter() - started
    if not isinstance(correction, Correction):
        raise PluginError(f"a correction must be a Correction, not a {type(correction).__name__}")
    return Corrected(correction, seconds, weighing.measures, values)


def _measure_correction(
    corrected: Corrected, parents: tuple[Any, ...], step: Step
) -> tuple[Correction, MeasureValues, MeasureValues]:
    """The correction, its measures, and the corrector's own measures of its weights."""
    truth: Codes = parents[0].target.sensitive
    correction, groups = _to_plain(corrected.correction), len(parents[0].target.groups)
    _check_codes("the corrected groups", correction.values, len(truth), groups)
    _check_codes("the groups corrected instead", corrected.reconsidered, len(truth), groups)
    _check_shape("the posterior", correction.posterior, (len(truth), groups), "f")
    _check_costs(correction)
    measured: MeasureValues = {"correct_seconds": corrected.seconds}
    if corrected.reconsidered is not None:
        # The part of a gain that comes from the new guess alone, without the claim.
        measured["reconsidered_accuracy"] = float(np.mean(corrected.reconsidered == truth))
    return correction, measured, corrected.weighed


def _check_codes(what: str, codes: Any, people: int, groups: int) -> None:
    """Refuse codes that are not one group per person; None passes."""
    if codes is None:
        return
    if not isinstance(codes, np.ndarray) or codes.dtype.kind not in "iu":
        raise PluginError(f"{what} must be an array of whole numbers")
    if codes.shape != (people,) or (people and not (codes.min() >= 0 and codes.max() < groups)):
        raise PluginError(f"{what} must be {people} group codes in 0..{groups - 1}")


def _check_costs(correction: Correction) -> None:
    """Refuse an unknown status, and costs that are not numbers."""
    if not isinstance(correction.status, SolverStatus | None):
        raise PluginError(f"the status of a correction must be one of {', '.join(SolverStatus)}")
    for name in ("objective", "bound"):
        value = getattr(correction, name)
        if value is not None:
            try:
                to_python_number(value, f"the {name} of a correction")
            except InputError as error:
                raise PluginError(str(error)) from None


def _score(_: None, parents: tuple[Any, ...], step: Step) -> MeasureValues:
    split, predictions, guess, claim, (correction, timed, weighed) = parents
    names = dict(step.uses)
    measured = {
        **measure_attack(split, predictions, guess, correction),
        **measure_leak(split, predictions, guess, claim, correction),
        **measure_beliefs(split, guess, correction),
        **measure_claim(claim, split.target, _take_target(split, predictions)),
        **measure_model(split, predictions, claim),
        **timed,
    }
    notes = (
        ("disclosure", claim.notes if claim else {}),
        ("corrector", weighed),
        ("corrector", correction.measures),
        ("adversary", guess.notes),
        ("learner", predictions.notes),
    )
    words = [ComponentWords(kind, names.get(kind, ""), values) for kind, values in notes]
    return make_row(measured, words, predictions.guarantee)


def _audit(auditor: Auditor, parents: tuple[Any, ...], step: Step) -> MeasureValues | Release:
    split, predictions = parents[:2]
    train = split.train.having(predictions=predictions.train).only(auditor.sees)
    test = split.test.having(predictions=predictions.test).only(auditor.sees)
    others = list(parents[2:])
    learner = others.pop() if step.learner is not None else None
    rng = step.rng()
    curator = None
    if "curator" in auditor.sees:
        test.check_cuts(auditor.protects | {"sensitive"}, f"auditor {auditor.name!r}")
        curator = Curator(
            split.test.sensitive, split.test.groups, neighbours=auditor.relation,
            rng=rng.spawn(1)[0],
        )  # fmt: skip
    model = others.pop(0) if others and "model" in auditor.sees else None
    return auditor.audit(Subject(train, test, model, curator, learner, *others), rng)


def _check_release(release: Release) -> Release:
    """A release, after a check of its numbers, which are compared with the truth."""
    count = np.size(release.values)
    for what, numbers in (
        ("estimates", release.values), ("lower ends", release.low), ("upper ends", release.high),
    ):  # fmt: skip
        if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "biuf":
            raise PluginError(f"the {what} of a release must be an array of numbers")
        if numbers.shape != (count,) or not count:
            raise PluginError(f"the {what} of a release must be (R,) numbers, one or more")
    if not ((release.values >= 0) & (release.values <= 1)).all():
        raise PluginError("the estimates of a release must be ratios, in [0, 1]")
    unknown = np.isnan(release.low) & np.isnan(release.high)
    ends = np.isfinite(release.low) & np.isfinite(release.high) & (release.low <= release.high)
    if not (unknown | ends).all():
        raise PluginError("the intervals of a release must be finite, the lower end first, or NaN")
    if release.noise not in NOISES:
        raise PluginError(f"the noise of a release must be one of {', '.join(NOISES)}")
    guarantee = _check_guarantee(release.guarantee, "a release", "an fpbench.Guarantee")
    return replace(release, guarantee=guarantee)


def _measure_audit(
    answer: MeasureValues | Release, parents: tuple[Any, ...], step: Step
) -> MeasureValues:
    """The row of an audit: a release is measured against the truth that it never saw."""
    split, predictions = parents[:2]
    measured: dict[str, object] = {**measure_model(split, predictions, None)}
    if isinstance(answer, Release):
        answer = _check_release(answer)
        measured |= measure_release(answer, split.test, predictions.test)
        answer = answer.measures
    names = dict(step.uses)
    learner = ComponentWords("learner", names.get("learner", ""), predictions.notes)
    words = [learner, ComponentWords("auditor", names.get("auditor", ""), answer)]
    return make_row(measured, words, predictions.guarantee)


ACTIONS: dict[str, Callable[[Any, Any, Step], Any]] = {
    "load": _load,
    "split": _split,
    "train": _train,
    "predict": _predict,
    "shadow": _train_shadows,
    "disclose": _disclose,
    "reveal": _reveal,
    "ask": _ask,
    "tune": _tune,
    "guess": _guess,
    "correct": _correct,
    "score": _score,
    "audit": _audit,
}
"""The functions of the actions by name, in the order of the flow."""

HANDED: dict[str, Callable[[Any, Any, Step], tuple[Any, ...]]] = {
    "tune": _show_attack,
    "guess": _make_view,
}
"""Functions that make the inputs of adversaries, whose parents' results hold the truth."""

MEASURING: dict[str, Callable[[Any, Any, Step], Any]] = {
    "guess": _calibrate_guess,
    "correct": _measure_correction,
    "audit": _measure_audit,
}
"""Checks of a component's answer, and its measures against the truth; never done in the component's
one-use process."""
