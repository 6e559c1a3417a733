"""What a model of any sort that was given predicts of people, beside what is true of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value
from fpbench.base.arrays import (
    are_fractions,
    check_binary,
    check_present,
    explain_shape,
    list_values,
    suggest_binary,
    to_plain,
)
from fpbench.base.errors import InputError, suggest_name
from fpbench.data.attributes import MOST_VALUES, format_value
from fpbench.data.sample import Codes
from fpbench.models.model_outputs import read_predictions

if TYPE_CHECKING:
    from pandas import DataFrame

LABEL, PREDICTION, SCORE = "label in full", "prediction in full", "score of {}"
"""Columns of an adversary's features that hold what two classes cannot."""


class Answers(NamedTuple):
    """Labels and predictions of n people."""

    labels: Codes
    predictions: Codes
    """(n,) 1 for the class that counts as 1; of numbers, for those above the mean label."""
    scores: NDArray[np.float64] | None
    """(n,) of the class that counts as 1, if an adversary sees scores."""
    in_full: DataFrame
    """n rows of what the adversary sees of numbers, or of more than two classes: else nothing."""
    numeric: bool
    """Whether the model predicts numbers."""
    notes: tuple[str, ...]
    """What was assumed, in sentences."""


def read_answers(
    model: Any,
    X: Any,
    labels: Any,
    groups: Any,
    *,
    positive: Any,
    threshold: float | None,
    group_names: Collection[str],
    sees: Collection[str],
) -> Answers:
    """Labels, and what the model predicts, as an adversary sees them.

    `X`: n rows, as the model takes them. `labels`: (n,) values. `groups`: for models that predict
    with them. `sees`: the sights of the adversary. Others: as of `fpbench.attack`.

    Raises InputError if labels and predictions do not fit each other, or the model fails.
    """
    truth = to_plain("labels", labels)
    if truth.ndim != 1:
        raise InputError(f"labels: {explain_shape(truth)}")
    check_present("labels", truth)
    name, answer = read_predictions(model, X, groups=groups)
    check_present(name, answer)
    if _are_numbers(model, truth, answer):
        return _read_numbers(name, truth, answer, sees)
    classes = _find_classes(model, truth, group_names)
    if len(classes) > 2:
        if threshold is not None:
            raise InputError(
                f"threshold: cuts scores of two classes, and labels have {len(classes)}"
            )
        _check_features_seen(sees, f"of {len(classes)} classes")
    second, notes = _choose_positive(classes, truth, positive)
    table = _find_scores(answer, classes, second, threshold)
    if table is None:
        predicted = _check_predictions(name, answer, classes)
    elif len(classes) > 2:
        predicted = _pick(classes, table.argmax(axis=1))
    else:
        limit = 0.5 if threshold is None else float(threshold)
        place = classes.index(second)
        predicted = _pick(classes, np.where(table[:, place] >= limit, place, 1 - place))
        notes.append(
            f"Predictions are taken to be scores: {show_value(second)} is predicted from "
            f"{limit:g} on (threshold=)."
        )
    scores = None
    if "scores" in sees:
        table = _ask_scores(model, X, classes, len(truth)) if table is None else table
        scores = table[:, classes.index(second)]
        if not ((scores >= 0) & (scores <= 1)).all():
            raise InputError(f"{name}: scores must be in [0, 1] for an adversary who sees them")
    in_full = _show_classes(classes, truth, predicted, table, sees)
    return Answers(
        _compare(truth, second), _compare(predicted, second), scores, in_full, False, tuple(notes)
    )


def _check_predictions(name: str, answer: NDArray[Any], classes: list[Any]) -> NDArray[Any]:
    """(n,) predictions, each of which is a class."""
    if answer.ndim != 1:
        raise InputError(f"{name}: {explain_shape(answer)}")
    predicted = answer.astype(object)
    known = np.isin(predicted, np.array(classes, object))
    if not known.all():
        fractions = are_fractions(answer)
        mend = suggest_binary(answer, cuttable=True) if fractions else "; both need the same values"
        raise InputError(
            f"{name}: {show_value(predicted[~known][0])} is among them, but labels are "
            f"{list_values(classes)}{mend}"
        )
    return predicted


def _show_classes(
    classes: list[Any],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    scores: NDArray[np.float64] | None,
    sees: Collection[str],
) -> DataFrame:
    """What an adversary sees of more than two classes, beside one against the rest."""
    import pandas as pd

    columns: dict[str, Any] = {}
    texts = [*map(format_value, classes)]
    shown = {"labels": (LABEL, truth), "predictions": (PREDICTION, predicted)}
    for what, (name, values) in shown.items() if len(classes) > 2 else ():
        if what in sees:
            codes = [classes.index(value) for value in values.tolist()]
            columns[name] = pd.Categorical.from_codes(codes, pd.Index(texts))
    if "scores" in sees and scores is not None and len(classes) > 2:
        columns |= {SCORE.format(text): scores[:, i] for i, text in enumerate(texts)}
    return pd.DataFrame(columns, index=range(len(truth)))


def _are_numbers(model: Any, truth: NDArray[Any], answer: NDArray[Any]) -> bool:
    """Whether labels and predictions are numbers, as of a regression."""
    kinds = {truth.dtype.kind, answer.dtype.kind}
    if hasattr(model, "classes_") or answer.ndim != 1 or not kinds <= {*"iuf"}:
        return False
    distinct = len(np.unique(truth))
    fractions = are_fractions(truth) or are_fractions(answer)
    return distinct > 2 and (fractions or distinct > MOST_VALUES)


def _read_numbers(
    name: str, truth: NDArray[Any], answer: NDArray[Any], sees: Collection[str]
) -> Answers:
    import pandas as pd

    for what, values in (("labels", truth), (name, answer)):
        if not np.isfinite(values).all():
            raise InputError(f"{what}: holds infinite numbers")
    _check_features_seen(sees, "that predicts numbers")
    if "scores" in sees:
        raise InputError("adversary: sees scores, which a model of numbers has not; choose 'a2'")
    shown = {"labels": (LABEL, truth), "predictions": (PREDICTION, answer)}
    in_full = {
        column: values.astype(np.float64)
        for what, (column, values) in shown.items()
        if what in sees
    }
    mean = float(truth.mean())
    bits = [(values > mean).astype(np.int8) for values in (truth, answer)]
    note = (
        "The model predicts numbers, which the adversary sees; claims and rates of the frame are "
        f"about those above the mean label, {mean:.6g}."
    )
    frame = pd.DataFrame(in_full, index=range(len(truth)))
    return Answers(bits[0], bits[1], None, frame, True, (note,))


def _check_features_seen(sees: Collection[str], which: str) -> None:
    """Refuse an adversary who sees a prediction only as 0 or 1."""
    if "features" not in sees:
        raise InputError(
            f"adversary: of a model {which} it must see features beside predictions, as 'a2' does"
        )


def _find_classes(model: Any, truth: NDArray[Any], group_names: Collection[str]) -> list[Any]:
    """The classes of the model, or else of the labels, in order."""
    of_model = [*getattr(model, "classes_", ())]
    distinct = list(dict.fromkeys(truth.tolist()))
    of_model = of_model if len(of_model) > 1 else []
    classes = of_model or sorted(distinct, key=lambda value: (str(type(value)), value))
    if len(distinct) < 2 or {*distinct} - {*classes}:
        like = f", as the model has ({list_values(classes)})" if of_model else ""
        swapped = (
            "; are labels and groups swapped?" if {*map(str, classes)} <= {*group_names} else ""
        )
        raise InputError(
            f"labels must have two values or more{like}, not {list_values(distinct)}{swapped}"
        )
    if len(classes) > MOST_VALUES:
        raise InputError(
            f"labels have {len(classes):,} values: merge them into {MOST_VALUES} classes at most"
        )
    return classes


def _choose_positive(
    classes: list[Any], truth: NDArray[Any], positive: Any
) -> tuple[Any, list[str]]:
    """The class that counts as 1, and a sentence if it was chosen here."""
    if positive is not None:
        if len(classes) == 2:
            check_binary("labels", truth, positive, nameable=True)  # which explains what is wrong
        place = next((i for i, one in enumerate(classes) if one == positive), None)
        if place is None:
            hint = suggest_name(str(positive), map(str, classes))
            raise InputError(f"positive: {show_value(positive)} is not among labels; {hint}")
        return classes[place], []
    if len(classes) == 2:
        plain = {*classes} == {0, 1}  # truth values, too
        said = f"{show_value(classes[1])} counts as 1, the last of the classes (positive=)."
        return classes[1], [] if plain else [said]
    codes = np.array([classes.index(value) for value in truth.tolist()])
    second = classes[int(np.bincount(codes).argmax())]
    return second, [
        f"The adversary sees which of {len(classes)} classes is predicted; the claim is about the "
        f"largest, {show_value(second)}, against the rest (positive=)."
    ]


def _find_scores(
    answer: NDArray[Any], classes: Sequence[Any], second: Any, threshold: float | None
) -> NDArray[np.float64] | None:
    """(n, C) scores of the classes, if the answer is scores; else None."""
    if answer.dtype.kind not in "iuf":
        return None
    values = answer.astype(np.float64)
    shares = bool(((values >= 0) & (values <= 1)).all())
    if answer.ndim == 2:
        sums = np.allclose(values.sum(axis=1), 1, atol=1e-3)
        return values if shares and sums and answer.shape[1] == len(classes) else None
    if (
        answer.ndim != 1
        or len(classes) > 2
        or not (threshold is not None or (are_fractions(answer) and shares))
    ):
        return None
    both = np.stack([1 - values, values], axis=1)
    return both if classes[1] == second else both[:, ::-1]


def _ask_scores(model: Any, X: Any, classes: Sequence[Any], n: int) -> NDArray[np.float64]:
    """(n, C) the model's probabilities of the classes."""
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "model: has no predict_proba, but the adversary sees scores; choose one that sees "
            "predictions, such as 'a2', or give scores in place of the model"
        )
    answer = np.asarray(model.predict_proba(X), np.float64)
    if answer.shape != (n, len(classes)) or not ((answer >= 0) & (answer <= 1)).all():
        raise InputError(f"model: predict_proba must give ({n}, {len(classes)}) probabilities")
    order = [*getattr(model, "classes_", classes)]
    return answer[:, [order.index(one) for one in classes]]


def _pick(classes: Sequence[Any], codes: NDArray[np.intp]) -> NDArray[Any]:
    """(n,) the classes of these codes."""
    values = np.empty(len(classes), object)
    values[:] = classes
    return values[codes]


def _compare(values: NDArray[Any], second: Any) -> Codes:
    """(n,) 1 where a value is the class that counts as 1."""
    return np.asarray(values.astype(object) == second, np.int8)
