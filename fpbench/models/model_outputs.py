"""Predictions and rules of any fitted model, ours or not."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.data.sample import Codes
from fpbench.models.rules import Rules, tree_rules


def predict_any(model: Any, X: Any, rng: np.random.Generator) -> tuple[Codes, Rules | None]:
    """Predictions (n,) in {0, 1} of a model, and its rules.

    Parameters
    ----------
    model
        Any object with `predict`, and optionally `rules`; a fitted decision tree like
        scikit-learn's; or predictions (n,).
    X
        n rows of features, as the model takes them.
    rng
        For a model that draws.

    Raises
    ------
    InputError
        If the model predicts anything but 0 and 1, or not once for each row.
    """
    if not hasattr(model, "predict"):
        predictions = check_binary("model (predictions, as it has no predict)", model)
    else:
        options = {"rng": rng} if "rng" in signature(model.predict).parameters else {}
        predictions = check_binary("predictions of the model", model.predict(X, **options))
    if len(predictions) != len(X):
        raise InputError(f"X: has {len(X)} rows, and there are {len(predictions)} predictions")
    return predictions, get_rules(model)


def get_rules(model: Any) -> Rules | None:
    """The rules of a model: its own, or those of a tree like scikit-learn's; None if it has none.

    Raises
    ------
    InputError
        If the tree predicts anything but 0 and 1.
    """
    rules = tree_rules(model) if is_bare_tree(model) else getattr(model, "rules", None)
    return rules if isinstance(rules, Rules) else None


def is_bare_tree(model: Any) -> bool:
    """Whether a model is a fitted decision tree like scikit-learn's, without `rules`."""
    tree = hasattr(model, "tree_") and hasattr(model, "classes_")
    return tree and getattr(model, "rules", None) is None


def check_binary(name: str, raw_values: Any) -> Codes:
    """Values (n,) as bytes, all of them 0 or 1.

    Raises
    ------
    InputError
        If there are other values.
    """
    values: NDArray[Any] = np.asarray(raw_values)
    if values.ndim != 1:
        raise InputError(f"{name}: must have one dimension, not {values.ndim}")
    if not len(values):
        raise InputError(f"{name}: is empty")
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name}: must be 0 or 1, not {values[0]!r} at 0")
    if values.dtype.kind == "b":
        return values.view(np.int8)
    binary = values.dtype.kind != "f" and values.min() >= 0 and values.max() <= 1
    wrong = np.empty(0) if binary else np.flatnonzero((values != 0) & (values != 1))
    if len(wrong):
        raise InputError(f"{name}: must be 0 or 1, not {values[wrong[0]]!s} at {wrong[0]}")
    return values.astype(np.int8, copy=False)
