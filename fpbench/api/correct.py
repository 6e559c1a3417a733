"""Corrections of guesses without a matrix."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arguments import check_same_rows, check_type, check_whole_number, show_value
from fpbench.base.arrays import suggest_binary, to_plain
from fpbench.base.errors import InputError
from fpbench.claims.conditions import Constraint
from fpbench.claims.rates import Form, Metric, RateConstraint
from fpbench.components.attack_kinds import Corrector
from fpbench.components.records import Correction, Problem
from fpbench.components.spec import resolve_component
from fpbench.data.groups import group_codes
from fpbench.data.sample import Codes

_MOST_GROUPS = 10_000
"""Greatest number of groups: more would only waste memory."""


def correct(
    guess: ArrayLike,
    predictions: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    metric: Metric | None = "statistical-parity",
    tolerance: float | Fraction = 0.0,
    form: Form = "to-overall",
    constraints: Sequence[Constraint] = (),
    groups: int | Sequence[str] | None = None,
    corrector: str | Mapping[str, Any] | Corrector = "exact",
    **parameters: Any,
) -> Correction:
    """Change a guess of everyone's group as little as possible so that a fairness claim holds.

    Parameters
    ----------
    guess
        (n,) guessed groups: codes in 0..K-1, or names.
    predictions
        (n,) the model's predictions in {0, 1}.
    labels
        (n,) true labels in {0, 1}; needed by every metric but statistical parity.
    weights
        (n,) positive costs of changing each guess; by default every change costs 1.
    metric, tolerance, form
        The claim; see `RateConstraint`. With metric None there is no claim about rates.
    constraints
        Further constraints: `ShareBounds`, `RateBounds`, `KnownUnfairness`, `KnownPeople`,
        `LinearConstraint`, `Facts`, or more `RateConstraint`s.
    groups
        K, or the names of the K groups in the order of their codes. By default K is the greatest
        code in the guess plus one, and at least 2; names are sorted.
    corrector
        Name of an installed corrector; a table, `{"use": NAME, ...}`; or a corrector object.
    **parameters
        Parameters of a corrector given by name.

    Returns
    -------
    Correction
        Corrected values (n,), names if the guess has names; objective, status, moves and seconds.

    Raises
    ------
    InputError
        If an argument is not as described.

    Examples
    --------
    >>> import fpbench
    >>> guess, predictions = [0, 0, 0, 1, 1, 1], [1, 1, 0, 1, 0, 0]
    >>> answer = fpbench.correct(guess, predictions, weights=[3, 2, 1, 1, 1, 2], tolerance=0.1)
    >>> answer.values.tolist(), answer.objective
    ([0, 0, 0, 1, 0, 1], 1.0)
    """
    solver = resolve_component("corrector", corrector, **parameters)
    assert isinstance(solver, Corrector)
    claim = () if metric is None else (RateConstraint(metric, tolerance, form),)
    check_type("constraints", constraints, Sequence, "a sequence of constraints")
    known = (*claim, *constraints)
    check_same_rows(guess=guess, predictions=predictions, labels=labels, weights=weights)
    codes, number, names = _read_guess(guess, groups)
    for constraint in known:
        if called := getattr(constraint, "group_names", ()):
            _check_order(called, names or groups)
    problem = check_problem(codes, predictions, labels, weights, known, number)
    started = time.perf_counter()
    correction = solver.correct(problem)
    seconds = time.perf_counter() - started
    values = correction.values
    if names and values is not None:
        values = cast("Any", np.array(names, object)[values])
    return replace(correction, seconds=seconds, values=values)


def _check_order(known: Sequence[str], given: Any) -> None:
    """Refuse codes of groups that facts number otherwise, or nobody says how."""
    named = isinstance(given, Sequence) and not isinstance(given, str)
    if not named or list(given) != list(known):
        said = f"not {', '.join(map(str, given))}" if named else "and a guess of codes has no names"
        raise InputError(
            f"groups: the facts number groups as {', '.join(known)}, {said}: give "
            f"groups={list(known)}, and a guess of names or of codes in this order"
        )


def _read_guess(
    guess: ArrayLike, groups: int | Sequence[str] | None
) -> tuple[ArrayLike, int | None, tuple[str, ...]]:
    """Group codes (n,), number of groups if known, and names of the groups if given."""
    named = isinstance(groups, Sequence) and not isinstance(groups, str)
    names = cast("Sequence[str]", groups) if named else None
    first = next(iter(guess), None) if np.iterable(guess) else None
    if not isinstance(first, str):
        return guess, cast("int | None", groups) if names is None else len(names), ()
    if groups is not None and names is None:
        raise InputError(f"groups: must be names, as the guess has names, not {show_value(groups)}")
    try:
        codes, known = group_codes(guess, names)
    except InputError as error:
        raise InputError(f"guess: {error}") from None
    return codes, len(known), known


def check_problem(
    guess: ArrayLike,
    predictions: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    constraints: Sequence[Constraint],
    groups: int | None,
) -> Problem:
    """A problem from checked arrays.

    Raises InputError, with the argument and its first wrong value.
    """
    values = _read_integers("guess", guess)
    n = len(values)
    if n == 0:
        raise InputError("guess: is empty")
    if groups is not None:
        check_whole_number("groups", groups, 2)
    k = max(int(values.max()) + 1, 2) if groups is None else groups
    if k > _MOST_GROUPS:
        raise InputError(
            f"{'guess' if groups is None else 'groups'}: there may be at most {_MOST_GROUPS:,} "
            f"groups, not {show_value(k)}"
        )
    _check_within("guess", values, k - 1)
    predicted = _read_integers("predictions", predictions, n)
    _check_within("predictions", predicted, 1)
    truth = None if labels is None else _read_integers("labels", labels, n)
    if truth is not None:
        _check_within("labels", truth, 1)
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise InputError(f"constraints: {constraint!r} is not a constraint")
        constraint.check(n, k)
        if truth is None and set(constraint.labels) - {None}:
            raise InputError(f"labels: constraint {constraint!r} needs them")
    costs = None if weights is None else _read_weights(weights, n)
    return Problem(values, k, predicted, truth, tuple(constraints), costs)


def _read_array(name: str, values: ArrayLike, length: int | None) -> NDArray[Any]:
    array = to_plain(name, values)
    if array.ndim != 1:
        raise InputError(f"{name}: must have one dimension, not {array.ndim}")
    if length is not None and len(array) != length:
        raise InputError(f"{name}: has {len(array)} values, but guess has {length}")
    return array


def _read_integers(name: str, values: ArrayLike, length: int | None = None) -> Codes:
    array = _read_array(name, values, length)
    if array.dtype.kind in "bu":
        return array.astype(np.int8 if array.dtype.kind == "b" else np.int64)
    if array.dtype.kind == "i":
        return array
    if array.dtype.kind == "f":
        # Beyond 2**53 every float is whole, and beyond 2**63 none fits an integer.
        whole = (np.abs(array) < np.float64(2**53)) & (array == np.rint(array))
        wrong = np.flatnonzero(~whole)
        if not len(wrong):
            return array.astype(np.int64)
        hint = suggest_binary(array) if name != "guess" else ""
        raise InputError(
            f"{name}: must be whole numbers, not {array[wrong[0]]!s} at {wrong[0]}{hint}"
        )
    if array.size == 0:
        return array.astype(np.int64)
    hint = suggest_binary(array)
    raise InputError(f"{name}: must be whole numbers, not of type {array.dtype}{hint}")


def _check_within(name: str, array: Codes, most: int) -> None:
    if len(array) and (array.min() < 0 or array.max() > most):
        at = int(np.flatnonzero((array < 0) | (array > most))[0])
        raise InputError(f"{name}: must be in 0..{most}, not {array[at]} at {at}")


def _read_weights(values: ArrayLike, length: int) -> NDArray[np.float64]:
    array = _read_array("weights", values, length)
    if array.dtype.kind not in "iuf":
        raise InputError(f"weights: must be numbers, not of type {array.dtype}")
    weights: NDArray[np.float64] = array.astype(np.float64, copy=False)
    # One pass checks all values; only on failure the wrong value is looked up.
    least = weights.min()
    if not (least > 0 and np.isfinite(weights.max())):
        at = int(np.flatnonzero(~((weights > 0) & np.isfinite(weights)))[0])
        raise InputError(f"weights: must be positive and finite, not {weights[at]!s} at {at}")
    return weights
