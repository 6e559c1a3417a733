"""Values in the header of an answer: measures, claims about rates, guarantees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from fpbench.base.errors import PluginError
from fpbench.claims.rates import RateConstraint
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import MeasureValues
from fpbench.execution.wire.message import Message, Unreadable
from fpbench.store.packing import pack

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""Numbers that JSON cannot write."""


def write_measures(measures: MeasureValues) -> dict[str, Any]:
    """Measures as plain values for JSON.

    Raises PluginError if a measure is neither a number nor a text.
    """
    if not isinstance(measures, Mapping):
        raise PluginError(f"measures must be a dictionary, not a {type(measures).__name__}")
    pack(measures, lambda _: 0)  # raises if a measure is not plain
    return {str(name): write_scalar(value) for name, value in measures.items()}


def write_scalar(value: Any) -> Any:
    """A plain value; a number that JSON cannot write becomes a list with its name."""
    match value:
        case None:
            return None
        case bool() | np.bool_():
            return bool(value)
        case float() | np.floating():
            plain = float(value)
            return plain if math.isfinite(plain) else [str(plain)]
        case int() | np.integer():
            return int(value)
    return str(value)


def read_measures(message: Message, name: str = "measures") -> MeasureValues:
    """The measures in a field."""
    return {key: read_scalar(value) for key, value in message.field(name, dict).items()}


def read_scalar(value: Any) -> Any:
    """The value that `write_scalar` wrote."""
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], str) and value[0] in _NON_FINITE:
            return _NON_FINITE[value[0]]
    elif not isinstance(value, dict):
        return value
    raise Unreadable("a measure must be a text, None, or a number")


def write_constraint(constraint: RateConstraint | None) -> list[Any] | None:
    """A claim about rates as a list, with its exact tolerance."""
    if constraint is None:
        return None
    if not isinstance(constraint, RateConstraint):
        raise PluginError(f"a claim must be a RateConstraint, not {type(constraint).__name__}")
    tolerance = constraint.tolerance
    if isinstance(tolerance, Fraction):
        numbers: list[Any] = [tolerance.numerator, tolerance.denominator]
    else:
        numbers = [write_scalar(tolerance)]
    return [constraint.metric, constraint.form, *numbers]


def read_constraint(message: Message, name: str) -> RateConstraint | None:
    """The claim about rates in a field."""
    fields = message.field(name, list, type(None))
    if fields is None:
        return None
    metric, form, *tolerance = fields
    if not all(type(word) is str for word in (metric, form)):
        raise Unreadable(f"the field {name!r} of its answer is not a claim about rates")
    if len(tolerance) == 2 and all(type(number) is int for number in tolerance):
        return RateConstraint(metric, Fraction(*tolerance), form)
    (number,) = tolerance
    if type(number) not in (int, float):
        raise Unreadable(f"the field {name!r} of its answer is not a claim about rates")
    return RateConstraint(metric, number, form)


def write_guarantee(guarantee: Guarantee | None) -> list[Any] | None:
    """A guarantee as a list."""
    if guarantee is None:
        return None
    if not isinstance(guarantee, Guarantee):
        raise PluginError(f"a guarantee must be a Guarantee, not a {type(guarantee).__name__}")
    numbers = (guarantee.epsilon, guarantee.delta, guarantee.rho)
    return [str(guarantee.neighbours), *map(write_scalar, numbers)]


def read_guarantee(message: Message) -> Guarantee | None:
    """The guarantee in a field."""
    fields = message.field("guarantee", list, type(None))
    if fields is None:
        return None
    neighbours, epsilon, delta, rho = fields
    numbers = {type(epsilon), type(delta), *([] if rho is None else [type(rho)])}
    if type(neighbours) is not str or not numbers <= {int, float}:
        raise Unreadable("the field 'guarantee' of its answer is not a guarantee")
    return Guarantee(epsilon, delta, neighbours, rho)  # type: ignore[arg-type]  # which checks it
