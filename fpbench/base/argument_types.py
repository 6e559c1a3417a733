"""A decorator that checks arguments by their annotations and refuses wrong ones at once."""

from __future__ import annotations

import ast
import math
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from inspect import unwrap
from numbers import Integral
from types import FunctionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from fpbench.base.arguments import show_value, to_array, to_python_number
from fpbench.base.errors import InputError, check_choice

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class")
_MOST = 2**63
"""Whole numbers must be smaller in magnitude, so that NumPy can hold them."""


def check_arguments(function: _Function) -> _Function:
    """The function or class, which refuses arguments of other types than annotated.

    Numbers, texts, choices, functions, sequences and instances of classes are checked: InputError
    names the argument and what it should be. Aliases of choices are resolved, and lists
    become arrays where one is annotated (`NDArray`; `ArrayLike` stays what it is). No number is
    NaN or larger than Python's floats or NumPy's whole numbers. The function itself checks shapes.
    Annotations are read at the first call; a type that is imported for annotations only is not
    checked.
    """
    if isinstance(function, type):
        function.__init__ = check_arguments(function.__init__)  # type: ignore[misc]
        return function
    inner = unwrap(function)
    code = inner.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    places = names[: code.co_argcount]
    checks: dict[str, _Check] = {}

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not checks:
            for name in names:
                checks[name] = _Check.read(inner.__annotations__.get(name), inner.__globals__)
        few = [checks[name].apply(name, value) for name, value in zip(places, args, strict=False)]
        named = {
            name: checks[name].apply(name, value) if name in checks else value
            for name, value in kwargs.items()
        }
        return function(*few, *args[len(places) :], **named)

    return checked  # type: ignore[return-value]


def check_methods(cls: type[_Class]) -> type[_Class]:
    """The class, whose public methods refuse arguments as `check_arguments` does."""
    for name, method in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(method, classmethod):
            setattr(cls, name, classmethod(check_arguments(method.__func__)))
        elif isinstance(method, FunctionType):
            setattr(cls, name, check_arguments(method))
    return cls


@dataclass(frozen=True)
class _Check:
    """What an argument may be."""

    tests: tuple[Callable[[Any], bool], ...] = (lambda _: True,)
    what: str = ""
    choices: tuple[str, ...] = ()
    convert: Callable[[str, Any], Any] | None = None
    """Converts to an array, or from an alias to the name of a choice."""

    def apply(self, name: str, value: Any) -> Any:
        """The value, converted; InputError that says what it should be if it is wrong."""
        for test in self.tests:
            if test(value):
                return value
        if self.convert is not None:
            value = self.convert(name, value)
            if not self.choices or value in self.choices:
                return value
        if self.choices and isinstance(value, str):
            check_choice(name, value, self.choices)
        column = isinstance(value, str) and "an array" in self.what
        hint = f"; if that is a column of X, pass X[{show_value(value)}]" if column else ""
        raise InputError(f"{name} must be {self.what}, not {show_value(value)}{hint}")

    @classmethod
    def read(cls, annotation: str | None, names: dict[str, Any]) -> _Check:
        """The check of an annotation; one that accepts everything if it is not understood."""
        members = [_read_type(text, names) for text in _split_union(annotation or "Any")]
        if None in members:
            return cls()
        checks = [member for member in members if member is not None]
        return cls(
            tuple(test for check in checks for test in check.tests),
            " or ".join(check.what for check in checks),
            tuple(choice for check in checks for choice in check.choices),
            next((check.convert for check in checks if check.convert), None),
        )


def _split_union(annotation: str) -> list[str]:
    """The members of `A | B | C`."""
    node, members = ast.parse(annotation, mode="eval").body, []
    while isinstance(node, ast.BinOp):
        members.append(ast.unparse(node.right))
        node = node.left
    return [ast.unparse(node), *reversed(members)]


def _read_type(text: str, names: dict[str, Any]) -> _Check | None:  # noqa: PLR0911
    """The check of a type; None if it is not understood."""
    if text in _TYPES:
        return _TYPES[text]
    try:
        kind = eval(text, names)
    except NameError:  # imported for annotations only
        return None
    if hasattr(origin := get_origin(kind), "__value__"):  # as numpy 2.5 writes NDArray
        kind = origin.__value__[get_args(kind)]
    alias = None
    if get_origin(kind) is Annotated:
        kind, *rest = get_args(kind)
        alias = next((one.func for one in rest if hasattr(one, "func")), None)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        what = f"one of {', '.join(map(repr, choices))}"
        convert = None if alias is None else lambda _, v: alias(v) if isinstance(v, str) else None
        return _Check((lambda v: isinstance(v, str) and v in choices,), what, choices, convert)
    origin = get_origin(kind)
    if getattr(origin, "__name__", "") == "ndarray":
        return _read_array(kind)
    if origin in _CONTAINERS:
        # The function itself checks the members of what can be read only once, such as a generator.
        each = _read_each(text, names)
        what = _CONTAINERS[origin] + (f" (each {each.what})" if each.what else "")
        return _Check((lambda v: _is_container(v, origin) and _is_each(v, each),), what)
    if isinstance(kind, type) and origin is None and not getattr(kind, "_is_protocol", False):
        return _Check((lambda v: isinstance(v, kind),), f"a {kind.__name__}")
    return None


def _read_each(text: str, names: dict[str, Any]) -> _Check:
    """The check of each member of a list: `str` of `Sequence[str]`."""
    inner = ast.parse(text, mode="eval").body
    if isinstance(inner, ast.Subscript) and not isinstance(inner.slice, ast.Tuple):
        return _Check.read(ast.unparse(inner.slice), names)
    return _Check()


def _is_each(value: Any, check: _Check) -> bool:
    return not isinstance(value, abc.Collection) or all(
        any(test(one) for test in check.tests) for one in value
    )


def _read_array(kind: Any) -> _Check:
    """The check of `NDArray[...]`, by the data type."""
    import numpy as np

    numbers = get_args(get_args(kind)[1])[0]
    numbers = get_origin(numbers) or numbers
    kinds = "biuf"
    if isinstance(numbers, type):
        kinds = "b" if issubclass(numbers, np.bool_) else kinds
        kinds = "biu" if issubclass(numbers, np.integer) else kinds
    return _Check(
        (lambda v: isinstance(v, np.ndarray) and v.dtype.kind in kinds.replace("f", ""),),
        "an array",
        convert=lambda name, v: to_array(name, v, kinds),
    )


def _is_container(value: Any, kind: type) -> bool:
    """Whether a value is a list, mapping or function; a row of an array counts as a list."""
    if isinstance(value, str | bytes | type):
        return False
    if getattr(value, "ndim", 1) == 0:
        return False
    if kind is tuple:
        return isinstance(value, tuple | list)
    return isinstance(value, kind) or (
        kind in {abc.Sequence, abc.Collection} and getattr(value, "ndim", 0) == 1
    )


def _is_frame(value: Any) -> bool:
    """Whether a value is a data frame, without an import of pandas."""
    names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    return ("pandas", "DataFrame") in names


def _is_array(value: Any) -> bool:
    """Whether NumPy reads a value as an array, a number or a text."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        if value is None or isinstance(value, str | bytes | dict):
            return False
        try:
            value = np.asarray(value)
        except (
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
        ):  # rows of different lengths
            return False
    return value.dtype.kind in "biufUS" or (value.dtype.kind == "O" and value.ndim > 0)


def _is_number(value: Any) -> bool:
    try:
        return not math.isnan(float(to_python_number(value, "")))
    except (InputError, OverflowError):
        return False


def _is_whole(value: Any) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and -_MOST < int(value) < _MOST


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}


_CONTAINERS: dict[Any, str] = {
    abc.Iterable: "a list", abc.Sequence: "a list", abc.Collection: "a list",
    abc.Mapping: "a mapping", abc.Callable: "a function", tuple: "a tuple", list: "a list",
}  # fmt: skip
_TYPES: dict[str, _Check | None] = {
    "None": _Check((lambda v: v is None,), "None"),
    "float": _Check((_is_number,), "a number"),
    "int": _Check((_is_whole,), "a whole number"),
    "bool": _Check((_is_bool,), "True or False"),
    "str": _Check((lambda v: isinstance(v, str),), "a text"),
    "Fraction": _Check((lambda v: isinstance(v, Fraction),), "a fraction"),
    "DataFrame": _Check((_is_frame,), "a data frame"),
    "Any": None,
    "ArrayLike": _Check((_is_array,), "an array"),
}  # fmt: skip
