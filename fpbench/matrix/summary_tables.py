"""The `[[summary]]` tables of a matrix: a line for each combination, a column for each measure.

Attacks and audits of the same model are in different rows; a summary table brings them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fpbench.base.errors import suggest_name
from fpbench.base.validation import validate
from fpbench.components.names import KINDS
from fpbench.components.own_measures import MEASURES
from fpbench.matrix.expectations import Scalar, Text

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
