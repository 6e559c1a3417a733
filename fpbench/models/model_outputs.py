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
    model: Any, X: Any, rng: np.random.Generator | None = None, groups: Any = None
) -> tuple[str, NDArray[Any]]:
    """The name of the predictions for messages, and the predictions (n,), of any values.

    `model` may be predictions (n,), beside which X may be None. `groups`: of the people, for a
    model that predicts with them. Raises InputError if it is neither, if the model fails, or if
    there is not one prediction for each row.
    """
    if hasattr(model, "predict"):
        name, answer = "predictions of the model", ask_predictions(model, X, rng, groups)
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
        if any(kind.__module__.partition(".")[0] == "torch" for kind in type(model).__mro__):
            mend = (
                "of a module of PyTorch, give its scores, "
                "torch.sigmoid(model(torch.tensor(X.to_numpy(), dtype=torch.float32)))"
                ".detach().numpy()"
            )
    plain = model is None or isinstance(model, str | bytes | type)
    what = show_value(model) if plain else f"a {type(model).__name__}"
    raise InputError(f"model: {what} has no predict; {mend}")


def ask_predictions(
    model: Any, X: Any, rng: np.random.Generator | None = None, groups: Any = None
) -> Any:
    """The predictions of a model, with `rng` and the people's `groups` if it takes them.

    Groups are what fairlearn calls `sensitive_features`; a model of fairlearn that draws its
    predictions always draws the same.

    Raises InputError if it is a class, or fails, as a model does that is not fitted or takes other
    columns.
    """
    if isinstance(model, type):
        raise InputError(f"model must be fitted, not the class {model.__name__}")
    options: dict[str, Any] = {}
    try:
        taken = signature(model.predict).parameters
        if rng is not None and "rng" in taken:
            options["rng"] = rng
        if groups is not None and "sensitive_features" in taken:
            options["sensitive_features"] = groups
        if "random_state" in taken:
            options["random_state"] = 0
    except (TypeError, ValueError):  # of a predict that is not written in Python
        pass
    try:
        return model.predict(X, **options)
    except FpbenchError:
        raise
    except Exception as error:  # of somebody's code
        why = " ".join(f"{type(error).__name__}: {error}".split())
        if len(why) > _LONGEST:
            why = f"{why[:_LONGEST]} ..."
        hint = ""
        if not hasattr(X, "columns") and hasattr(model, "feature_names_in_"):
            hint = "; it was fitted to a data frame: give one with its columns"
        elif hasattr(model, "inplace_predict"):  # a Booster of xgboost
            hint = "; of a Booster, give what it predicts, model.inplace_predict(X)"
        raise InputError(f"model: {type(model).__name__}.predict(X) fails: {why}{hint}") from error


def choose_people(model: Any, X: Any, without_groups: Any) -> Any:
    """The people as a model takes them: `X`, or without the columns of groups if it knows none.

    `without_groups`: X without the columns that groups name.
    """
    if not hasattr(model, "predict"):
        return without_groups
    # What wraps a model, as in fairlearn, does not say its columns itself.
    inner = [getattr(model, name, None) for name in ("estimator_", "estimator")]
    names = (getattr(one, "feature_names_in_", None) for one in (model, *inner))
    known = {*map(str, next((own for own in names if own is not None), ()))}
    own = {*map(str, getattr(X, "columns", ()))}
    left = {*map(str, getattr(without_groups, "columns", ()))}
    return without_groups if known and not known & (own - left) else X


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
