"""Predictions and rules of any fitted model, ours or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import count_rows, show_value
from fpbench.base.arrays import check_binary, to_plain
from fpbench.base.errors import FpbenchError, InputError
from fpbench.data.sample import Codes
from fpbench.models.rules import Rules, tree_rules

_LONGEST = 300
"""Most characters of a foreign error message that are shown."""


def predict_any(
    model: Any, X: Any, rng: np.random.Generator, positive: Any = None
) -> tuple[Codes, Rules | None]:
    """Predictions (n,) in {0, 1} of a model, and its rules.

    Parameters
    ----------
    model
        Any object with `predict`, and optionally `rules`; a fitted decision tree like
        scikit-learn's; or predictions (n,).
    X
        n rows of features, as the model takes them.
    rng
        For a model that draws its predictions.
    positive
        The label that counts as 1; needed if labels are not 0 and 1 or truth values.

    Raises
    ------
    InputError
        If the model predicts other labels, or not once for each row.
    """
    name, answer = read_predictions(model, X, rng)
    return check_binary(name, answer, positive, nameable=True), get_rules(model, positive)


def read_predictions(
    model: Any, X: Any, rng: np.random.Generator | None = None
) -> tuple[str, NDArray[Any]]:
    """The name of the predictions for messages, and the predictions (n,), of any values.

    `model` may be predictions (n,), beside which X may be None. Raises InputError if it is neither,
    if the model fails, or if there is not one prediction for each row.
    """
    if hasattr(model, "predict"):
        name, answer = "predictions of the model", ask_predictions(model, X, rng)
    else:
        _check_no_model(model, X)
        name, answer = "predictions (model has no predict)", model
    predictions, rows = to_plain(name, answer), count_rows(X)
    if predictions.ndim == 1 and rows is not None and len(predictions) != rows:
        raise InputError(f"X: has {rows} rows, and there are {len(predictions)} predictions")
    return name, predictions


def _check_no_model(model: Any, X: Any) -> None:
    """Refuse what is neither a model nor predictions, and say what it is."""
    if hasattr(X, "predict"):
        raise InputError(
            f"X: must be people, not {type(X).__name__}, which has predict: the model comes first"
        )
    refused = isinstance(model, type | str | bytes | Mapping) or model is None or callable(model)
    if not refused and getattr(model, "ndim", isinstance(model, Sequence)):
        return
    mend = "give a fitted model, or its predictions"
    if hasattr(model, "decision_function"):
        mend = "give its predictions, (model.decision_function(X) > 0)"
    elif isinstance(model, type):
        mend = f"{model.__name__} is a class: fit a model of it"
    elif callable(model):
        mend = "of a function, give what it predicts, model(X)"
    plain = model is None or isinstance(model, str | bytes | type)
    what = show_value(model) if plain else f"a {type(model).__name__}"
    raise InputError(f"model: {what} has no predict; {mend}")


def ask_predictions(model: Any, X: Any, rng: np.random.Generator | None = None) -> Any:
    """The predictions of a model, with `rng` if it takes one.

    Raises InputError if it is a class, or fails, as a model does that is not fitted or takes other
    columns.
    """
    if isinstance(model, type):
        raise InputError(f"model must be fitted, not the class {model.__name__}")
    try:
        draws = rng is not None and "rng" in signature(model.predict).parameters
        return model.predict(X, **({"rng": rng} if draws else {}))
    except FpbenchError:
        raise
    except Exception as error:  # of somebody's code
        why = " ".join(f"{type(error).__name__}: {error}".split())
        if len(why) > _LONGEST:
            why = f"{why[:_LONGEST]} ..."
        framed = not hasattr(X, "columns") and hasattr(model, "feature_names_in_")
        hint = "; it was fitted to a data frame: give one with its columns" if framed else ""
        raise InputError(f"model: {type(model).__name__}.predict(X) fails: {why}{hint}") from error


def get_rules(model: Any, positive: Any = None) -> Rules | None:
    """The rules of a model: its own, or those of a tree like scikit-learn's; None if it has none.

    Parameters
    ----------
    model
        Any object.
    positive
        The label that counts as 1.

    Raises
    ------
    InputError
        If the tree predicts anything but 0 and 1, and none of its labels is `positive`.
    """
    rules = (
        tree_rules(model, positive=positive)
        if is_bare_tree(model)
        else getattr(model, "rules", None)
    )
    return rules if isinstance(rules, Rules) else None


def is_bare_tree(model: Any) -> bool:
    """Whether a model is a fitted decision tree like scikit-learn's, without `rules`."""
    tree = hasattr(model, "tree_") and hasattr(model, "classes_")
    return tree and getattr(model, "rules", None) is None
