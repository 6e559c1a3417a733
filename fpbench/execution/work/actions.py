"""What a step does. The only module in which kinds meet.

A step is a pure function of its component, its parameters, its parents' results and the seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError, PluginError
from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import (
    Adversary,
    Corrector,
    Dataset,
    Disclosure,
    Learner,
)
from fpbench.components.auditor import NOISES, Auditor, Release, Subject
from fpbench.components.guarantee import Guarantee
from fpbench.components.own_measures import CorrectionMeasures
from fpbench.components.protocols import Classifier
from fpbench.components.records import (
    Claim,
    Correction,
    Guess,
    MeasureValues,
    Predictions,
    Problem,
    Scores,
    View,
)
from fpbench.data.data_files import DataHome
from fpbench.data.sample import Codes, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.work.rows import Words, make_row
from fpbench.execution.work.scores import (
    measure_attack,
    measure_claim,
    measure_model,
    measure_release,
)
from fpbench.matrix.step import Corrected, Sealed, Step
from fpbench.privacy.curator.curator import Curator


@dataclass(frozen=True)
class _Context:
    """The input of a disclosure."""

    asked: RateConstraint | None
    train: Sample
    attack: Sample


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
        # In the order of the file: who redoes a paper wants its folds, too.
        train, attack = map(np.sort, _cut(step.rng().permutation(rest), (shares[0], shares[2])))
    else:
        train, test, attack = _cut(step.rng().permutation(len(table)), shares)
    everyone = table.sample()
    return Split(*(_take_part(table, everyone, n, rows) for n, rows in
                   (("training", train), ("test", test), ("attack", attack))))  # fmt: skip


def _cut(rows: NDArray[np.intp], shares: tuple[Any, ...]) -> list[NDArray[np.intp]]:
    """Consecutive parts of rows."""
    ends = np.rint(np.cumsum(shares) * len(rows)).astype(int)
    return np.split(rows[: ends[-1]], ends[:-1])


def _take_part(table: Table, everyone: Sample, name: str, rows: Any) -> Sample:
    part = everyone.take(rows)
    if name == "attack" and not len(part):  # which audits do without
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

    def predict(part: Sample) -> Codes:
        if not len(part):
            return np.zeros(0, np.int8)
        sensitive = part.sensitive if learner.predicts_with_sensitive else None
        answer = np.asarray(model.predict(part.features, rng, sensitive))
        if answer.shape != (len(part),) or not ((answer == 0) | (answer == 1)).all():
            raise PluginError(f"predictions must be {len(part)} values 0 or 1")
        return answer.astype(np.int8)

    train, test, attack = predict(split.train), predict(split.test), predict(split.attack)
    notes = dict(getattr(model, "notes", {}))
    return Predictions(train, test, attack, learner.asked(), notes, _read_guarantee(model))


def _read_guarantee(model: Classifier) -> Guarantee | None:
    """What a model guarantees."""
    guarantee = getattr(model, "guarantee", None)
    if guarantee is None:
        return None
    return _check_guarantee(guarantee, "a model", "an fpbench.Guarantee or None")


def _check_guarantee(guarantee: Any, whose: str, expected: str) -> Guarantee:
    """A guarantee, checked once more, because a component may subclass it."""
    if not isinstance(guarantee, Guarantee):
        kind = type(guarantee).__name__
        raise PluginError(f"the guarantee of {whose} must be {expected}, not {kind}")
    return Guarantee(guarantee.epsilon, guarantee.delta, guarantee.neighbours, guarantee.rho)


def _reveal(learner: Learner, parents: tuple[Any, Split], step: Step) -> Scores:
    model, split = parents
    rng = step.rng()

    def reveal(part: Sample) -> NDArray[np.float64]:
        sensitive = part.sensitive if learner.predicts_with_sensitive else None
        answer = np.asarray(model.predict_proba(part.features, rng, sensitive))
        if answer.shape != (len(part), 2) or not ((answer >= 0) & (answer <= 1)).all():
            raise PluginError(f"predicted probabilities must be ({len(part)}, 2) values in [0, 1]")
        return answer[:, 1]

    return Scores(reveal(split.train), reveal(split.attack))


def _disclose(
    disclosure: Disclosure, parents: tuple[Split, Predictions], step: Step
) -> Claim | None:
    split, predictions = parents
    context = _Context(
        predictions.asked,
        split.train.having(predictions=predictions.train),
        split.attack.having(predictions=predictions.attack),
    )
    rng = step.rng()
    context.train.check_cuts(disclosure.protects, f"disclosure {disclosure.name!r}")
    claim = disclosure.claim(context, rng)
    if not disclosure.also:
        return claim
    also = tuple(fact.constraint(context.train, rng) for fact in disclosure.also)
    claim = claim or Claim(None, disclosure.name)
    return replace(claim, also=(*claim.also, *also))


def view_for(
    adversary: Adversary,
    split: Split,
    predictions: Predictions | None = None,
    scores: Scores | None = None,
) -> View:
    """An adversary's view: the columns that it declares, never the groups of the training part."""
    target, attack = split.train, split.attack
    if predictions is not None:
        target = target.having(predictions=predictions.train)
        attack = attack.having(predictions=predictions.attack)
    if scores is not None:
        target, attack = target.having(scores=scores.train), attack.having(scores=scores.attack)
    sees = adversary.sees - {"sensitive"}
    return View(target.only(sees), attack.only(sees | {"sensitive"}))


def _show_attack(adversary: Adversary, parents: tuple[Split], step: Step) -> tuple[Sample]:
    return (view_for(adversary, parents[0]).attack,)


def _tune(adversary: Adversary, handed: tuple[Sample], step: Step) -> Adversary:
    tuned = adversary.tune(handed[0], step.rng())
    if not isinstance(tuned, type(adversary)):
        raise PluginError(f"tuning must give a {type(adversary).__name__}, not {tuned!r}")
    return tuned


def _make_view(
    adversary: Adversary, parents: tuple[Any, ...], step: Step
) -> tuple[View, Adversary | Sealed]:
    split, *others = parents
    seen: dict[type, Any] = {type(other): other for other in others}
    view = view_for(adversary, split, seen.get(Predictions), seen.get(Scores))
    tuned = next((other for other in others if isinstance(other, Adversary | Sealed)), adversary)
    return view, tuned


def _guess(adversary: Adversary, handed: tuple[View, Adversary], step: Step) -> Guess:
    view, tuned = handed
    return tuned.guess(view, step.rng())


def _check_guess(guess: Guess, handed: tuple[View, Any], step: Step) -> Guess:
    """The guess, after its sizes and values were checked."""
    target, attack = handed[0].target, handed[0].attack
    k, n, m = len(target.groups), len(target), len(guess.held_out)
    if guess.held_out.dtype.kind not in "iu" or guess.held_out.ndim != 1:
        raise PluginError("held_out must be whole numbers: rows of the attack set")
    if m and not (guess.held_out.min() >= 0 and guess.held_out.max() < len(attack)):
        raise PluginError(f"held_out must be rows of the attack set, in 0..{len(attack) - 1}")
    for what, values, confidence, size in (
        ("the guess", guess.values, guess.confidence, n),
        ("the held-out guess", guess.held_out_values, guess.held_out_confidence, m),
    ):
        if values.shape != (size,) or confidence.shape != (size,):
            raise PluginError(f"{what} must have {size} values and confidences")
        if values.dtype.kind not in "biu" or confidence.dtype.kind not in "biuf":
            raise PluginError(f"{what} must be whole numbers, and its confidence numbers")
        if size and not (values.min() >= 0 and values.max() < k):
            raise PluginError(f"{what} must be group codes in 0..{k - 1}")
        if not (np.isfinite(confidence).all() and (confidence >= 0).all()):
            raise PluginError(f"the confidence of {what} must be finite and not negative")
    return guess


def _correct(corrector: Corrector, parents: tuple[Any, ...], step: Step) -> Corrected:
    split, predictions, guess, claim = parents
    k = len(split.train.groups)
    rows = guess.held_out
    # What else is known is known of the training people only.
    on_rates = (claim.constraint,) if claim is not None and claim.constraint else ()
    held_out = Problem(
        guess.held_out_values, k, predictions.attack[rows], split.attack.labels[rows], on_rates
    )
    weighing = corrector.weigh(guess, held_out, split.attack.sensitive[rows])
    weights, values = weighing.weights, weighing.values
    if weights is not None and not (np.isfinite(weights).all() and (weights > 0).all()):
        raise PluginError("the weights must be finite and positive")
    problem = Problem(
        guess.values if values is None else values, k, predictions.train, split.train.labels,
        claim.constraints if claim is not None else (), weights,
    )  # fmt: skip
    started = time.perf_counter()
    correction = corrector.correct(problem)
    seconds = time.perf_counter() - started
    if not isinstance(correction, Correction):
        raise PluginError(f"a correction must be a Correction, not a {type(correction).__name__}")
    return Corrected(correction, seconds, weighing.measures, values)


def _measure_correction(
    corrected: Corrected, parents: tuple[Any, ...], step: Step
) -> tuple[Correction, CorrectionMeasures, MeasureValues]:
    """The correction, what is measured of it, and what the corrector says of its weights."""
    truth: Codes = parents[0].train.sensitive
    measured: CorrectionMeasures = {"correct_seconds": corrected.seconds}
    if corrected.reconsidered is not None:
        # How much of a gain is the change of mind alone, without the claim.
        measured["reconsidered_accuracy"] = float(np.mean(corrected.reconsidered == truth))
    return corrected.correction, measured, corrected.weighed


def _score(_: None, parents: tuple[Any, ...], step: Step) -> MeasureValues:
    split, predictions, guess, claim, (correction, timed, weighed) = parents
    names = dict(step.uses)
    measured = {
        **measure_attack(split, predictions, guess, correction),
        **measure_claim(claim, split.train, predictions.train),
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
    words = [Words(kind, names.get(kind, ""), values) for kind, values in notes]
    return make_row(measured, words, predictions.guarantee)


def _audit(auditor: Auditor, parents: tuple[Any, ...], step: Step) -> MeasureValues | Release:
    split, predictions = parents[:2]
    train = split.train.having(predictions=predictions.train).only(auditor.sees)
    test = split.test.having(predictions=predictions.test).only(auditor.sees)
    model = parents[2] if len(parents) > 2 else None
    rng = step.rng()
    curator = None
    if "curator" in auditor.sees:
        test.check_cuts(auditor.protects | {"sensitive"}, f"auditor {auditor.name!r}")
        curator = Curator(
            split.test.sensitive, split.test.groups, neighbours=auditor.relation,
            rng=rng.spawn(1)[0],
        )  # fmt: skip
    return auditor.audit(Subject(train, test, model, curator), rng)


def _check_release(release: Release) -> Release:
    """A release, after its numbers were checked, which are compared with the truth."""
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
    learner = Words("learner", names.get("learner", ""), predictions.notes)
    words = [learner, Words("auditor", names.get("auditor", ""), answer)]
    return make_row(measured, words, predictions.guarantee)


ACTIONS: dict[str, Callable[[Any, Any, Step], Any]] = {
    "load": _load,
    "split": _split,
    "train": _train,
    "predict": _predict,
    "disclose": _disclose,
    "reveal": _reveal,
    "tune": _tune,
    "guess": _guess,
    "correct": _correct,
    "score": _score,
    "audit": _audit,
}
"""What is done, by name, in the order of the flow."""

HANDED: dict[str, Callable[[Any, Any, Step], tuple[Any, ...]]] = {
    "tune": _show_attack,
    "guess": _make_view,
}
"""Inputs of adversaries, instead of their parents' results, which hold the truth."""

MEASURING: dict[str, Callable[[Any, Any, Step], Any]] = {
    "guess": _check_guess,
    "correct": _measure_correction,
    "audit": _measure_audit,
}
"""Checks of a component's answer, and its measures against the truth; never done in the component's
one-use process."""
