"""Predictions and rules of any fitted model, ours or not."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from fpbench.base.arrays import check_binary
from fpbench.base.errors import FpbenchError, InputError
from fpbench.data.sample import Codes
from fpbench.models.rules import Rules, tree_rules


def predict_any(
    model: Any, X: Any, rng: np.random.Generator, positive: Any = None
) -> tuple[Codes, Rules | None]:
    """Predictions (n,) in {0, 1} of a model, and its rules.

    `model`: any object with `predict`, and optionally `rules`; a fitted decision tree like
    scikit-learn's; or predictions (n,). `X`: n rows of features, as the model takes them.
    `positive`: the label that counts as 1; needed if labels are not 0 and 1 or truth values.

    Raises InputError if the model predicts other labels, or not once for each row.
    """
    if not hasattr(model, "predict"):
        name, answer = "model (predictions, as it has no predict)", model
    else:
        name, answer = "predictions of the model", ask_predictions(model, X, rng)
    predictions = check_binary(name, answer, positive, nameable=True)
    if len(predictions) != len(X):
        raise InputError(f"X: has {len(X)} rows, and there are {len(predictions)} predictions")
    return predictions, get_rules(model, positive)


def ask_predictions(model: Any, X: Any, rng: np.random.Generator | None = None) -> Any:
    """What a model predicts, with `rng` if it takes one.

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
        raise InputError(f"model: {type(model).__name__}.predict(X) fails: {why}") from error


def get_rules(model: Any, positive: Any = None) -> Rules | None:
    """The rules of a model: its own, or those of a tree like scikit-learn's; None if it has none.

    Raises InputError if the tree predicts anything but 0 and 1, and none of its labels is
    `positive`.
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
