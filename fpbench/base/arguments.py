"""Checks of arguments: each raises InputError that names the argument and what it should be."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def show_value(value: object) -> str:
    """The beginning of a value, for messages; Python refuses to write an int of 5,000 digits."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "an int of thousands of digits"


def to_path(name: str, value: Any) -> Path:
    """The path that a text or a path stands for."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if isinstance(text, str) and "\0" not in text:
        return Path(text)
    raise InputError(f"{name} must be a path, not {show_value(value)}")


def check_whole_number(name: str, value: Any, least: int) -> None:
    """Refuse anything but an int, of Python or NumPy, of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {show_value(value)}")
    if value < least:
        raise InputError(f"{name} must be {least} or more, not {show_value(value)}")


def check_callable(name: str, value: Any) -> None:
    """Refuse what cannot be called; a class is meant to be called by nobody here."""
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} must be a function, not {show_value(value)}")


def to_generator(name: str, value: Any) -> np.random.Generator:
    """The generator that a seed or a generator stands for; a fresh one of None."""
    import numpy as np

    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a seed or a generator, not {show_value(value)}") from None


def check_type(name: str, value: Any, cls: type, what: str) -> None:
    """Refuse anything but an instance of a class, which `what` calls by name."""
    if not isinstance(value, cls):
        raise InputError(f"{name} must be {what}, not {show_value(value)}")
