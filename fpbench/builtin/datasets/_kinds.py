"""Kinds of columns in published files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from fpbench.data import Domain

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)  # nine digits fit the 32 bits of a column
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
"""Accepted spelling of a number."""


class ColumnKind(Protocol):
    """The kind of a column of a file."""

    @property
    def expected(self) -> str:
        """Description of a valid value, for messages."""

    def parse(self, text: str) -> Any:
        """The value of a field; ValueError if invalid."""

    def column(self, values: list[Any]) -> Any:
        """Values as a column of a data frame."""


@dataclass(frozen=True)
class Whole:
    """Whole numbers."""

    optional: bool = False
    """Whether an empty field is a missing value: the column is then of floats."""
    loose: bool = False
    """Whether spreadsheet notation is accepted: 1.00E+05, 20000.0."""
    expected = "a whole number"

    def parse(self, text: str) -> float:
        """A whole number of up to nine digits."""
        if self.optional and not text:
            return float("nan")
        if _WHOLE.fullmatch(text):
            return int(text)
        value = float(text) if self.loose and NUMBER.fullmatch(text) else float("nan")
        if abs(value) < 10**9 and value.is_integer():
            return int(value)
        raise ValueError

    def column(self, values: list[Any]) -> Any:
        """Integers, or floats if some may be missing."""
        return np.array(values, np.float64 if self.optional else np.int32)


@dataclass(frozen=True)
class Number:
    """Numbers."""

    expected = "a number"

    def parse(self, text: str) -> float:
        """A finite number."""
        if not NUMBER.fullmatch(text) or not np.isfinite(value := float(text)):
            raise ValueError
        return value

    def column(self, values: list[Any]) -> Any:
        """Floats."""
        return np.array(values, np.float64)


@dataclass(frozen=True)
class Words:
    """Any words: a categorical with the sorted categories of the whole table."""

    expected = "a word"

    def parse(self, text: str) -> str:
        """A word, not empty."""
        if not text:
            raise ValueError
        return text

    def column(self, values: list[Any]) -> Any:
        """A categorical."""
        return make_categorical(values, sorted(set(values)))


@dataclass(frozen=True)
class Codes:
    """Codes and their names: a categorical with categories in this order."""

    names: Mapping[str, str]

    @property
    def expected(self) -> str:
        """The codes."""
        return " or ".join(map(repr, self.names))

    def parse(self, text: str) -> str:
        """The name of a code."""
        if text not in self.names:
            raise ValueError
        return self.names[text]

    def column(self, values: list[Any]) -> Any:
        """A categorical without unused categories."""
        present = set(values)
        return make_categorical(
            values, [n for n in dict.fromkeys(self.names.values()) if n in present]
        )


@dataclass(frozen=True)
class Label:
    """Words for 0 and 1."""

    values: Mapping[str, int]

    @property
    def expected(self) -> str:
        """The words."""
        return " or ".join(map(repr, self.values))

    def parse(self, text: str) -> int:
        """0 or 1."""
        if text not in self.values:
            raise ValueError
        return self.values[text]

    def column(self, values: list[Any]) -> Any:
        """Labels."""
        return np.array(values, np.int8)


@dataclass(frozen=True)
class Code:
    """Numeric codes without names: a categorical of whole numbers, sorted; -1 if empty."""

    expected = "a code"

    def parse(self, text: str) -> int:
        """A number of up to nine digits, besides leading zeros."""
        if not text:
            return -1
        if not _WHOLE.fullmatch(text):
            raise ValueError
        return int(text)

    def column(self, values: list[Any]) -> Any:
        """A categorical of strings."""
        order = [str(value) for value in sorted(set(values))]
        return make_categorical([str(value) for value in values], order)


@dataclass(frozen=True)
class Day:
    """Times, rounded down to days; an empty field is missing."""

    expected = "a time like 2013-08-13 06:03:42"

    def parse(self, text: str) -> np.datetime64:
        """A day."""
        if not text:
            return np.datetime64("NaT", "D")
        return np.datetime64(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").date())

    def column(self, values: list[Any]) -> Any:
        """Days."""
        return np.array(values, "datetime64[D]").astype("datetime64[s]")


def derive_domain(
    kinds: Mapping[str, ColumnKind], bounds: Mapping[str, tuple[float, float]]
) -> Domain:
    """The public domain of columns: names of their codes, and bounds."""
    coded = {
        name: tuple(dict.fromkeys(kind.names.values()))
        for name, kind in kinds.items()
        if isinstance(kind, Codes)
    }
    return Domain(bounds, coded)


def parse_words(text: str) -> Codes:
    """Codes that are their own names, from words separated by blanks."""
    return Codes({word: word for word in text.split()})


def make_categorical(values: Sequence[Any], categories: Sequence[str]) -> Any:
    """A categorical of strings."""
    import pandas as pd

    return pd.Categorical(values, categories=list(categories))
