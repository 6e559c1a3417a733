"""Values of an answer: texts, measures, claims about rates, guarantees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import PluginError
from fpbench.claims.rates import RateConstraint
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import MeasureValues
from fpbench.execution.wire.message import Message, Unreadable
from fpbench.store.packing import pack, split, unpack_values

Arrays = list[NDArray[Any]]
_MOST_MEASURES = 2**16


def write_texts(texts: Iterable[str]) -> Arrays:
    """Texts as two arrays: lengths, and UTF-8 bytes."""
    letters = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.array([len(each) for each in letters], np.int64)
    return [sizes, np.frombuffer(b"".join(letters), np.uint8)]


def read_texts(message: Message, most: int = 2**24) -> list[str]:
    """The texts in the next two arrays, of which there may be `most`."""
    sizes = message.array("lengths of texts", "i", None)
    letters = message.array("texts", "u", None)
    if letters.itemsize != 1 or len(sizes) > most:
        raise Unreadable("its answer has texts that are none")
    ends = [0]
    for size in sizes.tolist():
        if not 0 <= size <= len(letters) - ends[-1]:
            raise Unreadable("its answer has texts that are longer than all of them")
        ends.append(ends[-1] + size)
    if ends[-1] != len(letters):
        raise Unreadable("its answer has texts that are shorter than all of them")
    content = letters.tobytes()
    try:
        return [
            content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)
        ]
    except UnicodeDecodeError:
        raise Unreadable("its answer has texts that are none") from None


def write_measures(measures: Mapping[str, Any]) -> Arrays:
    """Measures as arrays: names, texts, and values as the store packs them.

    Raises PluginError if a measure is neither a number nor a text.
    """
    if not isinstance(measures, Mapping):
        raise PluginError(f"measures must be a dictionary, not a {type(measures).__name__}")
    words: list[str] = []

    def number_word(word: str) -> int:
        words.append(word)
        return len(words) - 1

    blob = pack(measures, number_word)
    return [*write_texts(measures), *write_texts(words), np.frombuffer(blob, np.uint8)]


def write_scalar(value: Any) -> Any:
    """A value as JSON can write it."""
    return value.item() if isinstance(value, np.generic) else value


def read_measures(message: Message) -> MeasureValues:
    """The measures in the next arrays."""
    names, words = (read_texts(message, _MOST_MEASURES) for _ in range(2))
    blob = message.array("measures", "u", 9 * len(names)).tobytes()
    kinds, bits = split([blob], len(names))
    return dict(zip(names, unpack_values(kinds[:, 0], bits[:, 0], words.__getitem__), strict=True))


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
