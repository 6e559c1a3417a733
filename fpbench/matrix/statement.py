"""A statement about results: which rows it is about, and where its number lies if it is true."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Scalar: TypeAlias = str | bool | int | float
"""What a column of a row may hold."""

_SLACK = 1e-9
"""Rounding of floats: a mean of numbers that are all 0.83 is not always 0.83."""

Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
ShareOfRows = Annotated[float, Field(ge=0, le=1)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Region:
    """Where a number lies if a statement about it is true.

    Parameters
    ----------
    low, high
        The ends; infinite for none.
    strict
        Whether the ends themselves lie outside.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value lies inside."""
        if self.strict:
            return self.low < value < self.high
        return self.low - _SLACK <= value <= self.high + _SLACK

    def misses(self, low: float, high: float) -> bool:
        """Whether all of an interval lies outside."""
        if self.strict:
            return high <= self.low or low >= self.high
        return high < self.low - _SLACK or low > self.high + _SLACK


class Expectation(BaseModel, ABC):
    """A statement about results, and which rows it is about.

    It is checked for every combination of the values of `dataset` and of the columns named in
    `per`: one verdict each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    words: ClassVar[str]
    check: str
    says: Text = Field(description="the statement, in words")
    source: Text = Field(description="where it stands: a section, a figure, a table")
    where: dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]] = Field(
        {}, description="columns and the value, or the values, that rows must have there"
    )
    per: list[Text] = Field([], description="columns: one verdict for each of their values")
    tolerance: Tolerance = Field(0.0, description="how far off still counts as true")
    strongest: bool = Field(True, description="whether to check it on the strongest adversary too")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose values the check reads, apart from those of `where` and `per`."""
        names = (getattr(self, field, None) for field in ("measure", "parameter", "of"))
        return tuple(name for name in names if name is not None)

    @property
    @abstractmethod
    def region(self) -> Region:
        """Where the number lies if the statement is true."""

    @property
    def quantity(self) -> str:
        """What the number is, in words."""
        return self.words.format_map(dict(self))

    @property
    def stated(self) -> float | str:
        """What is stated, without the tolerance: a number, or a condition in words."""
        region = self.region
        if math.isinf(region.low):
            return f"{'<' if region.strict else '<='} {region.high - self.tolerance:g}"
        return f"{'>' if region.strict else '>='} {region.low + self.tolerance:g}"
