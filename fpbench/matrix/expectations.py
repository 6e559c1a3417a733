"""The `[[expect]]` tables of a matrix: statements about results, as data.

Each check reduces rows to a number, and gives the region in which it lies if the statement is true.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fpbench.base.errors import MatrixError, suggest_name
from fpbench.base.validation import validate
from fpbench.components.names import KINDS
from fpbench.components.own_measures import MEASURES

Scalar: TypeAlias = str | bool | int | float
"""A value in a column."""

_SLACK = 1e-9
"""Rounding of floats: a mean of numbers that are all 0.83 is not always 0.83."""

Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
ShareOfRows = Annotated[float, Field(ge=0, le=1)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class NumberRegion:
    """The region of a number in which a statement about it is true.

    `low`, `high`: the ends; infinite for none. `strict`: whether the ends themselves lie outside.
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
    `per` and `readings`: one verdict each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    words: ClassVar[str]
    statistic: ClassVar[str] = "difference"
    """What kind of number `quantity` is."""
    check: str
    says: Text = Field(description="the statement, in words")
    source: Text = Field(description="where the statement is: a section, a figure, a table")
    where: dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]] = Field(
        {}, description="columns and the value, or the values, that rows must have there"
    )
    per: list[Text] = Field([], description="columns: one verdict for each of their values")
    readings: list[Text] = Field(
        [],
        description="columns whose values are readings of the source, which does not fix them: "
        "where they decide differently, nothing is decided",
    )
    other_measures: list[Text] = Field(
        [], description="measures that the source may mean instead of `measure`: readings, too"
    )
    tolerance: Tolerance = Field(0.0, description="greatest deviation that still counts as true")
    strongest: bool = Field(True, description="whether to check it on the strongest adversary too")

    def list_by_measure(self) -> list[Self]:
        """The statement by each measure that the source may mean."""
        others = [
            self.model_copy(update={"measure": name, "says": f"{self.says} ({name})"})
            for name in self.other_measures
        ]
        return [self, *others]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose values the check reads, apart from those of `where` and `per`."""
        names = (getattr(self, field, None) for field in ("measure", "parameter", "of"))
        return tuple(name for name in names if name is not None)

    @property
    @abstractmethod
    def region(self) -> NumberRegion:
        """The region of the number in which the statement is true."""

    @property
    def quantity(self) -> str:
        """What the number is, in words."""
        return self.words.format_map(dict(self))

    @property
    def stated(self) -> float | str:
        """The statement without the tolerance: a number, or a condition in words."""
        region = self.region
        if math.isinf(region.low):
            return f"{'<' if region.strict else '<='} {region.high - self.tolerance:g}"
        return f"{'>' if region.strict else '>='} {region.low + self.tolerance:g}"


class Value(Expectation):
    """`value`: the mean of a measure is a number, within a tolerance.

    One number per seed: the mean of the measure over its rows. The tolerance should cover the error
    of the stated number itself: its rounding, and the variation of the runs that it averages.
    """

    words = "mean {measure}"
    statistic = "mean"
    check: Literal["value"]
    measure: Text = Field(description="the measure")
    expected: Number = Field(description="its mean, as stated")

    @property
    def region(self) -> NumberRegion:
        """Within the tolerance of the stated number."""
        return NumberRegion(self.expected - self.tolerance, self.expected + self.tolerance)

    @property
    def stated(self) -> float:
        """The number."""
        return self.expected


class Share(Expectation):
    """`share`: a share of the rows has a value in a column.

    One number per seed: the share of its rows. As most seeds have one row, and shares of 0 and 1
    have no spread, the interval is Wilson's (1927), with as many trials as seeds. `expected` 0 or
    1 (or `at_least` 1) with tolerance 0 says "never" or "always": one row against it refutes it,
    and no interval is needed.
    """

    words = "share of {measure} = {equals}"
    statistic = "share"
    check: Literal["share"]
    measure: Text = Field(description="the column")
    equals: Scalar = Field(description="the value that is counted")
    expected: ShareOfRows | None = Field(None, description="the share, as stated")
    at_least: ShareOfRows | None = Field(None, description="or the least share, as stated")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.expected is None) == (self.at_least is None):
            raise ValueError("a share needs either expected or at_least")
        return self

    @property
    def region(self) -> NumberRegion:
        """Within the tolerance of the share, or not below it."""
        if self.expected is None:
            assert self.at_least is not None
            return NumberRegion(low=self.at_least - self.tolerance)
        return NumberRegion(self.expected - self.tolerance, self.expected + self.tolerance)

    @property
    def every(self) -> bool:
        """Whether it states "never" or "always": one row against it refutes it."""
        return self.tolerance == 0 and (self.expected in (0, 1) or self.at_least == 1)

    @property
    def stated(self) -> float | str:
        """The share, or the least share in words."""
        return super().stated if self.expected is None else self.expected


class Bound(Expectation):
    """`at-least`, `at-most`: a measure is not below, or not above, another measure or a number.

    One number per seed: the mean over its rows of the measure, minus the other measure of the same
    row if there is one. True if it is at least, or at most, the bound, give or take the tolerance.
    """

    statistic = "mean"
    check: Literal["at-least", "at-most"]
    measure: Text = Field(description="the measure")
    than: Number | Text = Field(description="another measure of the same row, or a number")

    @property
    def columns(self) -> tuple[str, ...]:
        """The measure, and the other one if there is one."""
        return (self.measure, self.than) if isinstance(self.than, str) else (self.measure,)

    @property
    def region(self) -> NumberRegion:
        """On the right side of the bound."""
        bound = 0.0 if isinstance(self.than, str) else float(self.than)
        if self.check == "at-least":
            return NumberRegion(low=bound - self.tolerance)
        return NumberRegion(high=bound + self.tolerance)

    @property
    def quantity(self) -> str:
        """The measure, or the difference of the two."""
        other = f" - {self.than}" if isinstance(self.than, str) else ""
        return f"mean {self.measure}{other}"


class _Sided(Expectation):
    """A statement that a number is below 0, or above it."""

    @property
    def region(self) -> NumberRegion:
        """Numbers of one sign, give or take the tolerance."""
        if self.check in ("falls-with", "least", "lower"):
            return NumberRegion(high=self.tolerance, strict=True)
        return NumberRegion(low=0 - self.tolerance, strict=True)  # never -0


class Trend(_Sided):
    """`falls-with`, `rises-with`: a measure falls, or rises, as a parameter grows.

    One number per seed: Spearman's rank correlation of the parameter with the mean of the measure
    at each of its values; 0 if the measure does not change. True if it is below 0 (above 0),
    give or take the tolerance.
    """

    words = "rank correlation of {measure} with {parameter}"
    statistic = "rank correlation"
    check: Literal["falls-with", "rises-with"]
    measure: Text = Field(description="the measure")
    parameter: Text = Field(description="a column of numbers")


class Steady(Expectation):
    """`steady`: a measure hardly changes with a parameter.

    One number per seed: the standard deviation (n - 1), over the values of the parameter, of the
    mean of the measure at each. True if it is at most the tolerance.
    """

    words = "deviation of {measure} over {parameter}"
    statistic = "deviation"
    check: Literal["steady"]
    measure: Text = Field(description="the measure")
    parameter: Text = Field(description="a column of numbers")
    tolerance: Tolerance = Field(description="greatest standard deviation")

    @property
    def region(self) -> NumberRegion:
        """Numbers up to the tolerance."""
        return NumberRegion(high=self.tolerance)

    @property
    def stated(self) -> str:
        """The tolerance, as a condition in words."""
        return f"<= {self.tolerance:g}"


class Extreme(_Sided):
    """`least`, `most`: of the values of a column, one has the least, or greatest, measure.

    One number per seed: the mean of the measure over its rows with that value, minus the mean over
    its rows with the next best value: the best of the others over all seeds that both have. Its
    interval is at least as wide as the bootstrap's and Student's t, and covers the difference to
    the truly next best value: a false statement is refuted only after a correction for the number
    of other values (Bonferroni), and a statement is true only if it is true of each of them. True
    if it is below 0 (above 0), give or take the tolerance; a tie is not least.
    """

    words = "mean {measure} of {value} minus the next best"
    check: Literal["least", "most"]
    measure: Text = Field(description="the measure")
    of: Text = Field(description="the column whose values are compared")
    value: Scalar = Field(description="the value with the least, or greatest, measure")


class VariesMore(_Sided):
    """`varies-more`: a measure varies more over the seeds with one value of a column than another.

    The statistic: the standard deviation over seeds (n - 1), averaged over combinations of
    components, of rows with `value` minus that of rows with `than`, over the seeds that both have.
    Its interval is the percentile bootstrap over these seeds, the same for both. True if it is
    above 0, give or take the tolerance; fewer than five seeds decide nothing.
    """

    words = "deviation of {measure} over seeds, {value} minus {than}"
    check: Literal["varies-more"]
    measure: Text = Field(description="the measure")
    of: Text = Field(description="the column whose values are compared")
    value: Scalar = Field(description="the value with the greater spread")
    than: Scalar = Field(description="the value with the smaller spread")


class Lower(_Sided):
    """`lower`: a measure of repeated audits is significantly lower, by Welch's t-test.

    Lower in rows with `value` in the column `of` than in those with `than`; without `of` and
    `value`, lower than another measure of the same rows, which is known without error. A row has
    its mean, its standard deviation (`error_deviation` for `error`) and the number of independent
    `repetitions`. The number is the difference of the means, over the seeds that both have. Its
    interval covers other noise, but no other people or models. True if it is below 0, give or take
    the tolerance.
    """

    check: Literal["lower"]
    measure: Text = Field(description="the measure")
    of: Text | None = Field(None, description="the column whose values are compared")
    value: Scalar | None = Field(None, description="the value with the lower measure")
    than: Scalar = Field(description="the other value, or another measure of the same rows")

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.of is None) != (self.value is None):
            raise ValueError("of and value go together: a column, and one of its values")
        if self.of is None and not isinstance(self.than, str):
            raise ValueError("than must name another measure if there is no of")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a t-test needs, and the column that is compared."""
        other = str(self.than) if self.of is None else self.of
        return (self.measure, f"{self.measure}_deviation", "repetitions", other)

    @property
    def quantity(self) -> str:
        """The difference of the two."""
        of = "" if self.of is None else f" of {self.value}"
        return f"mean {self.measure}{of} minus that of {self.than}"


CHECKS: dict[str, type[Expectation]] = {
    "value": Value,
    "share": Share,
    "at-least": Bound,
    "at-most": Bound,
    "falls-with": Trend,
    "rises-with": Trend,
    "steady": Steady,
    "least": Extreme,
    "most": Extreme,
    "varies-more": VariesMore,
    "lower": Lower,
}
"""Models of the tables, by what `check` says."""


def parse_expectations(tables: Iterable[Mapping[str, Any]], origin: str) -> tuple[Expectation, ...]:
    """The expectations in `[[expect]]` tables.

    `tables`: the tables, as `Matrix.expect` holds them.

    Raises MatrixError if one of them is not valid; names table, key, value and the nearest valid
    name.
    """
    expectations = []
    for number, table in enumerate(tables, 1):
        where, check = f"{origin}: [[expect]] no. {number}", table.get("check")
        if not isinstance(check, str):
            raise MatrixError(f'{where}: needs check = "NAME"; {suggest_name("", CHECKS)}')
        if check not in CHECKS:
            raise MatrixError(f"{where}: unknown check {check!r}; {suggest_name(check, CHECKS)}")
        expectations.append(validate(CHECKS[check], dict(table), f"{where} ({check})"))
    return tuple(expectations)


_Where: TypeAlias = dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SummaryColumn(_Strict):
    """A column: the mean of a measure over the matching rows."""

    measure: Text = Field(description="the measure")
    name: Text | None = Field(None, description="its heading; the measure, if not given")
    where: _Where = Field(
        {}, description="columns and the value, or the values, that rows must have there"
    )

    statistic: Literal["mean", "sd", "seeds"] = Field(
        "mean", description="the mean over seeds, the standard deviation, or the number of seeds"
    )
    spare: bool = Field(False, description="whether a narrow terminal leaves it out first")

    @property
    def heading(self) -> str:
        """The text above the column."""
        return self.name or self.measure


class SummaryTable(_Strict):
    """A `[[summary]]` of a matrix."""

    title: str = Field("", description="heading above the table")
    rows: Annotated[list[Text], Field(min_length=1)] = Field(
        ["learner"],
        description="a line for each combination of their values: kinds, or measures of attacks "
        "such as `asked_metric`",
    )
    where: _Where = Field({}, description="which rows it is about")
    strongest: bool = Field(
        False, description="whether only rows of the strongest adversary of each learner count"
    )
    columns: Annotated[list[SummaryColumn], Field(min_length=1)] = Field(description="its columns")

    @field_validator("rows")
    @classmethod
    def _kinds(cls, rows: list[str]) -> list[str]:
        for name in rows:
            if name not in KINDS and name not in MEASURES:
                known = [*KINDS, *MEASURES]
                raise ValueError(f"unknown kind {name!r}; {suggest_name(name, known)}")
        return rows

    @field_validator("columns")
    @classmethod
    def _distinct(cls, columns: list[SummaryColumn]) -> list[SummaryColumn]:
        headings = [column.heading for column in columns]
        for heading in headings:
            if headings.count(heading) > 1:
                raise ValueError(f"two columns are headed {heading!r}: give one a name")
        return columns


def parse_summaries(tables: Iterable[Mapping[str, Any]], origin: str) -> tuple[SummaryTable, ...]:
    """The summary tables of a matrix.

    Raises MatrixError if one of them is not valid; names table, key, value and the nearest valid
    name.
    """
    return tuple(
        validate(SummaryTable, dict(table), f"{origin}: [[summary]] no. {number}")
        for number, table in enumerate(tables, 1)
    )
