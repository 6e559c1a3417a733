"""Results of steps as bytes and back: each action has a codec that accepts only its own answers.

The process that did a step writes results, and the process that holds the truth reads them. Sizes
follow from the step's inputs: a guess of n people has n numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fpbench.base.errors import PluginError
from fpbench.claims.rates import METRICS
from fpbench.claims.set_counts import Facts
from fpbench.components.auditor import NOISES, Release, Shadows
from fpbench.components.records import (
    Claim,
    Correction,
    Guess,
    MeasureValues,
    Predictions,
    Scores,
    SolverStatus,
    SplitAnswers,
)
from fpbench.data.sample import ModelAnswers
from fpbench.execution.wire.counts import read_facts, write_facts
from fpbench.execution.wire.frames import read_split, read_table, write_split, write_table
from fpbench.execution.wire.message import Message, Unreadable, compute_byte_limit, pack, unpack
from fpbench.execution.wire.values import (
    Arrays,
    read_constraint,
    read_guarantee,
    read_measures,
    read_texts,
    write_constraint,
    write_guarantee,
    write_measures,
    write_scalar,
    write_texts,
)
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Corrected, Failure, Result, Sealed, SealedClaim, shorten
from fpbench.store.packing import why_not_storable

_MOST_BYTES = 2**32
"""Greatest size of an answer of unknown size, such as a model, if memory has no limit."""

ROW = "score"
"""The action whose answer is a row."""

_MOST_AUDITS = 2**20
"""Greatest number of repeated audits in a release."""

Written = tuple[dict[str, Any], Arrays]


class _Codec(NamedTuple):
    """Functions that write and read the answers of an action."""

    write: Callable[[Any], Written]
    read: Callable[[Message, tuple[Any, ...]], Any]
    sizes: Callable[[tuple[Any, ...]], list[int]] | None
    """Greatest lengths of its arrays, from the step's inputs; None: unknown."""


def write_result(action: str, result: Result) -> bytes:
    """The result of a step as bytes; PluginError if its action may not give it."""
    header: dict[str, Any] = {"seconds": result.seconds}
    value = result.value
    if isinstance(value, Failure):
        reason, trace = shorten(value.reason), shorten(value.trace)
        header |= {"kind": "failure", "bad_input": value.bad_input}
        return pack(header, write_texts([reason, trace]))
    fields, arrays = CODECS[action].write(value)
    return pack({"kind": action, **header, **fields}, arrays)


def read_result(action: str, content: bytearray | bytes, inputs: tuple[Any, ...] = ()) -> Result:
    """The result of a step, read from untrusted bytes.

    `inputs`: the inputs of its component, from which sizes follow.

    Raises PluginError if the bytes are not a result that the action may give.
    """
    try:
        message = unpack(content)
        seconds, kind = message.number("seconds", least=0.0), message.field("kind", str)
        if kind == "failure":
            value: Any = _read_failure(message)
        elif kind == action:
            value = CODECS[action].read(message, inputs)
        else:
            raise Unreadable("its answer is that of another action")
        message.end()
    except PluginError:
        raise
    except Exception as error:  # a record refused the content, which its message would repeat
        raise Unreadable(f"its answer is not one: {type(error).__name__}") from None
    return Result(value, seconds)


def compute_size_limit(action: str, inputs: tuple[Any, ...], limits: Limits) -> int:
    """The greatest size in bytes of an accepted answer."""
    sizes = CODECS[action].sizes
    if sizes is not None:
        return compute_byte_limit(sizes(inputs))
    return compute_byte_limit([(limits.memory_limit or _MOST_BYTES) // 8])


def _read_failure(message: Message) -> Failure:
    reason, trace = read_texts(message, 2)
    return Failure(
        shorten(" ".join(reason.split())), shorten(trace), message.field("bad_input", bool)
    )


def _write_row(measures: MeasureValues) -> Written:
    """The measures of a row."""
    if why := why_not_storable(measures):
        raise PluginError(why)
    return {}, write_measures(measures)


def _write_sealed(sealed: Sealed) -> Written:
    return {}, [np.frombuffer(sealed.content, np.uint8)]


def _read_sealed(message: Message, inputs: tuple[Any, ...]) -> Sealed:
    return Sealed(message.array("what is sealed", "u", None).tobytes())


def _write_claim(claim: Claim | None) -> Written:
    if claim is None:
        return {"source": None}, []
    header = {
        "source": str(claim.source),
        "constraint": write_constraint(claim.constraint),
        "guarantee": write_guarantee(claim.guarantee),
        "noise": None if claim.noise is None else str(claim.noise),
        "nats": write_scalar(claim.nats),
        "fact_nats": write_scalar(claim.fact_nats),
        "counted_labels": None if claim.counted_labels is None else list(claim.counted_labels),
        "possible": claim.possible is not None,
        "facts": len(claim.also),
    }
    sealed = claim.content if isinstance(claim, SealedClaim) else b""
    arrays = [*write_measures(claim.notes), np.frombuffer(sealed, np.uint8)]
    arrays += [claim.possible] if claim.possible is not None else []
    for facts in claim.also:
        if not isinstance(facts, Facts):
            raise PluginError(f"a claim besides rates must be Facts, not {type(facts).__name__}")
        arrays += write_facts(facts)
    return header, arrays


def _read_claim(message: Message, inputs: tuple[Any, ...]) -> Claim | None:
    source = message.field("source", str, type(None))
    if source is None:
        return None
    rates, notes = read_constraint(message, "constraint"), read_measures(message)
    guarantee, noise = read_guarantee(message), message.field("noise", str, type(None))
    nats, fact_nats = _read_nats(message, "nats"), _read_nats(message, "fact_nats")
    sealed = message.array("what is sealed", "u", None).tobytes()
    labels = message.field("counted_labels", list, type(None))
    if labels is not None and not set(labels) <= {None, 0, 1}:
        raise Unreadable("the labels of a claim must be 0, 1 or nothing")
    target = inputs[0].target
    shape = len(target), len(target.groups)
    possible = None
    if message.field("possible", bool):
        possible = message.array("the possible groups", "b", *shape)
    facts = tuple(read_facts(message, *shape) for _ in range(message.field("facts", int)))
    claim = Claim(
        rates, source, facts, notes, guarantee, noise, nats, fact_nats or 0.0,
        None if labels is None else tuple(labels), possible,
    )  # fmt: skip
    return SealedClaim(**vars(claim), content=sealed) if sealed else claim


def _read_nats(message: Message, name: str) -> float | None:
    """A finite number of nats that is not negative; None if unknown."""
    nats: float | None = message.field(name, int, float, type(None))
    if nats is not None:
        message.number(name, least=0.0)
    return nats


def _write_predictions(predictions: Predictions) -> Written:
    arrays = [predictions.train, predictions.test, predictions.attack]
    arrays += write_measures(predictions.notes)
    header = {
        "asked": write_constraint(predictions.asked),
        "guarantee": write_guarantee(predictions.guarantee),
        "trained_with_groups": predictions.trained_with_groups,
        "made_with_groups": predictions.made_with_groups,
    }
    return header, arrays


def _read_predictions(message: Message, inputs: tuple[Any, ...]) -> Predictions:
    split = inputs[1]
    train, test, attack = (
        message.array("predictions", "i", len(p)) for p in (split.train, split.test, split.attack)
    )
    if not all(((part == 0) | (part == 1)).all() for part in (train, test, attack)):
        raise Unreadable("predictions must be values 0 or 1")
    trained_for, notes = read_constraint(message, "asked"), read_measures(message)
    return Predictions(
        train, test, attack, trained_for, notes, read_guarantee(message),
        message.field("trained_with_groups", bool), message.field("made_with_groups", bool),
    )  # fmt: skip


def _read_scores(message: Message, inputs: tuple[Any, ...]) -> Scores:
    parts = [message.array("scores", "biuf", len(p)) for p in (inputs[1].target, inputs[1].attack)]
    if not all(((part >= 0) & (part <= 1)).all() for part in parts):
        raise Unreadable("scores must be values in [0, 1]")
    return Scores(*parts)


def _write_answers(answers: SplitAnswers) -> Written:
    arrays: Arrays = []
    soft = []
    for part in (answers.target, answers.attack):
        soft.append(part.scores is not None)
        arrays += [part.predictions] if part.scores is None else [part.predictions, part.scores]
    return {"soft": soft, "each_group": answers.target.predictions.ndim == 2}, arrays


def _read_answers(message: Message, inputs: tuple[Any, ...]) -> SplitAnswers:
    split, soft = inputs[1], message.field("soft", list)
    if len(soft) != 2 or not all(type(one) is bool for one in soft):
        raise Unreadable("its answer does not say whether it has scores")
    each_group = message.field("each_group", bool)
    parts = []
    for people, scored in zip((split.target, split.attack), soft, strict=True):
        shape = (len(people), len(people.groups)) if each_group else (len(people),)
        labels = message.array("predictions", "i", *shape)
        if not ((labels == 0) | (labels == 1)).all():
            raise Unreadable("predictions must be values 0 or 1")
        scores = message.array("scores", "f", *shape) if scored else None
        if scores is not None and not ((scores >= 0) & (scores <= 1)).all():
            raise Unreadable("scores must be values in [0, 1]")
        parts.append(ModelAnswers(labels, scores))
    return SplitAnswers(*parts)


def _write_shadows(shadows: Shadows) -> Written:
    arrays = [shadows.members, shadows.scores, shadows.target]
    return {"soft": shadows.soft, "number": len(shadows.scores)}, arrays


def _read_shadows(message: Message, inputs: tuple[Any, ...]) -> Shadows:
    n = len(inputs[1].train) + len(inputs[1].test)
    number = int(message.number("number", least=0.0))
    members = message.array("who trained the shadow models", "b", number, n)
    scores = message.array("scores of the shadow models", "f", number, n)
    target = message.array("scores of the model", "f", n)
    if not all(((part >= 0) & (part <= 1)).all() for part in (scores, target)):
        raise Unreadable("scores must be values in [0, 1]")
    return Shadows(members, scores, target, message.field("soft", bool))


def _write_guess(guess: Guess) -> Written:
    if not isinstance(guess, Guess):
        raise PluginError(f"what it gives must be a Guess, not a {type(guess).__name__}")
    more = {
        name: getattr(guess, name)
        for name in ("beliefs", "held_out_beliefs", "abstains")
        if getattr(guess, name) is not None
    }
    return {"more": list(more)}, [
        guess.values, guess.confidence, guess.held_out, guess.held_out_values,
        guess.held_out_confidence, *more.values(), *write_measures(guess.notes),
    ]  # fmt: skip


def _read_guess(message: Message, inputs: tuple[Any, ...]) -> Guess:
    """A guess of the right length; its numbers are checked elsewhere, as those of any guess."""
    n = len(inputs[0].target)
    values, confidence = (
        message.array("the guess", "iu", n), message.array("the confidence", "biuf", n),
    )  # fmt: skip
    rows = message.array("held_out", "iu", None)
    m = len(rows)
    held_out = (
        message.array("the held-out guess", "iu", m),
        message.array("the confidence of the held-out guess", "biuf", m),
    )
    k = len(inputs[0].target.groups)
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "beliefs": ("f", (n, k)), "held_out_beliefs": ("f", (m, k)), "abstains": ("b", (n,))
    }  # fmt: skip
    more = message.field("more", list)
    if more != [name for name in shapes if name in more]:
        raise Unreadable("its answer has beliefs of no kind")
    arrays = {name: message.array(f"the {name}", kinds, *shape)
              for name, (kinds, shape) in shapes.items() if name in more}  # fmt: skip
    return Guess(values, confidence, rows, *held_out, read_measures(message), **arrays)


def _write_correction(corrected: Corrected) -> Written:
    correction = corrected.correction
    header = {
        "status": None if correction.status is None else SolverStatus(correction.status).value,
        "took": write_scalar(correction.seconds),
        "correct_seconds": write_scalar(corrected.seconds),
    }
    costs: MeasureValues = {"objective": correction.objective, "bound": correction.bound}
    arrays = [
        array
        for measures in (costs, correction.measures, corrected.weighed)
        for array in write_measures(measures)
    ]
    for name, array in (
        ("values", correction.values), ("moves", correction.moves),
        ("posterior", correction.posterior), ("reconsidered", corrected.reconsidered),
    ):  # fmt: skip
        header[name] = array is not None
        arrays += [array] if array is not None else []
    return header, arrays


def _read_cost(value: Any) -> float | None:
    """A number that a float can hold, or None."""
    if type(value) not in (int, float, type(None)) or (type(value) is int and abs(value) > 2**1000):
        raise Unreadable("objective and bound must be numbers that a float can hold")
    return value  # type: ignore[no-any-return]  # checked


def _read_correction(message: Message, inputs: tuple[Any, ...]) -> Corrected:
    target = inputs[0].target
    n, k = len(target), len(target.groups)
    costs, own, weighed = (read_measures(message) for _ in range(3))
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "values": ("iu", (n,)),
        "moves": ("iu", (2, k, k)),
        "posterior": ("f", (n, k)),
        "reconsidered": ("iu", (n,)),
    }
    arrays = {
        name: message.array(f"the corrected {name}", kinds, *shape)
        for name, (kinds, shape) in shapes.items()
        if message.field(name, bool)
    }
    for name in ("values", "reconsidered"):
        codes = arrays.get(name)
        if codes is not None and n and not (codes.min() >= 0 and codes.max() < k):
            raise Unreadable(f"the corrected {name} must be group codes in 0..{k - 1}")
    status = message.field("status", str, type(None))
    objective, bound = _read_cost(costs.get("objective")), _read_cost(costs.get("bound"))
    correction = Correction(
        arrays.get("values"), None if status is None else SolverStatus(status), objective, bound,
        arrays.get("moves"), message.number("took", least=0.0), own, arrays.get("posterior"),
    )  # fmt: skip
    seconds = message.number("correct_seconds", least=0.0)
    return Corrected(correction, seconds, weighed, arrays.get("reconsidered"))


def _write_audit(answer: MeasureValues | Release) -> Written:
    if not isinstance(answer, Release):
        return {"release": False}, write_measures(answer)
    header = {
        "release": True,
        "metric": str(answer.metric),
        "confidence": write_scalar(answer.confidence),
        "guarantee": write_guarantee(answer.guarantee),
        "noise": str(answer.noise),
    }
    return header, [*write_measures(answer.measures), answer.values, answer.low, answer.high]


def _read_word(message: Message, name: str, words: tuple[str, ...]) -> Any:
    """A field that is one of a few words."""
    word = message.field(name, str)
    if word not in words:
        raise Unreadable(f"the field {name!r} of its answer is not one of {', '.join(words)}")
    return word


def _read_audit(message: Message, inputs: tuple[Any, ...]) -> MeasureValues | Release:
    """Measures or a release, whose table of rules is not transferred."""
    measures = read_measures(message)
    if not message.field("release", bool):
        return measures
    guarantee = read_guarantee(message)
    if guarantee is None:
        raise Unreadable("a release must have a guarantee")
    values = message.array("the estimates of a release", "biuf", None)
    low, high = (message.array("the intervals of a release", "biuf", len(values)) for _ in range(2))
    return Release(
        _read_word(message, "metric", METRICS), values, low, high,
        message.number("confidence", least=0.0), guarantee, _read_word(message, "noise", NOISES),
        measures,
    )  # fmt: skip


CODECS: dict[str, _Codec] = {
    "load": _Codec(write_table, lambda message, _: read_table(message), None),
    "split": _Codec(write_split, lambda message, _: read_split(message), None),
    "train": _Codec(_write_sealed, _read_sealed, None),
    "predict": _Codec(
        _write_predictions,
        _read_predictions,
        lambda inputs: [len(p) for p in (inputs[1].train, inputs[1].test, inputs[1].attack)],
    ),
    "shadow": _Codec(_write_shadows, _read_shadows, None),
    "disclose": _Codec(_write_claim, _read_claim, None),
    "reveal": _Codec(
        lambda scores: ({}, [scores.target, scores.attack]),
        _read_scores,
        lambda inputs: [len(inputs[1].target), len(inputs[1].attack)],
    ),
    "ask": _Codec(
        _write_answers,
        _read_answers,
        lambda inputs: [
            len(part) * len(part.groups)
            for part in (inputs[1].target, inputs[1].attack)
            for _ in range(2)
        ],
    ),
    "tune": _Codec(_write_sealed, _read_sealed, None),
    "guess": _Codec(
        _write_guess,
        _read_guess,
        lambda inputs: [
            *[len(inputs[0].target)] * 3,
            *[len(inputs[0].attack)] * 3,
            *(len(part) * len(part.groups) for part in (inputs[0].target, inputs[0].attack)),
        ],
    ),
    "correct": _Codec(
        _write_correction,
        _read_correction,
        lambda inputs: [
            *[len(inputs[0].target)] * 2,
            2 * len(inputs[0].target.groups) ** 2,
            len(inputs[0].target) * len(inputs[0].target.groups),
        ],
    ),
    ROW: _Codec(_write_row, lambda message, _: read_measures(message), lambda _: []),
    "audit": _Codec(_write_audit, _read_audit, lambda _: [_MOST_AUDITS] * 3),
}
"""The codec of every action."""
