"""Tables that a matrix asks for: one line for each label, a column for each measure.

A cell measures one thing of a model; attacks and audits of the same model stand in different rows.
A `[[summary]]` brings them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fpbench.base.errors import nearest
from fpbench.base.validation import validate
from fpbench.components.names import KINDS
from fpbench.components.own_measures import MEASURES
from fpbench.matrix.statement import Scalar, Text

_Where: TypeAlias = dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Column(_Model):
    """A column: the mean of a measure over the rows that are meant."""

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
        """What stands above it."""
        return self.name or self.measure


class Summary(_Model):
    """A `[[summary]]` of a matrix."""

    title: str = Field("", description="shown above it")
    rows: Annotated[list[Text], Field(min_length=1)] = Field(
        ["learner"],
        description="a line for each combination of their values: kinds, or measures of attacks "
        "such as `asked_metric`",
    )
    where: _Where = Field({}, description="which rows it is about")
    strongest: bool = Field(
        False, description="whether only rows of the strongest adversary of each learner count"
    )
    columns: Annotated[list[Column], Field(min_length=1)] = Field(description="its columns")

    @field_validator("rows")
    @classmethod
    def _kinds(cls, rows: list[str]) -> list[str]:
        for name in rows:
            if name not in KINDS and name not in MEASURES:
                known = [*KINDS, *MEASURES]
                raise ValueError(f"unknown kind {name!r}; {nearest(name, known)}")
        return rows

    @field_validator("columns")
    @classmethod
    def _distinct(cls, columns: list[Column]) -> list[Column]:
        headings = [column.heading for column in columns]
        for heading in headings:
            if headings.count(heading) > 1:
                raise ValueError(f"two columns are headed {heading!r}: give one a name")
        return columns


def parse(tables: Iterable[Mapping[str, Any]], origin: str) -> tuple[Summary, ...]:
    """The summaries that `[[summary]]` tables ask for.

    Raises
    ------
    MatrixError
        If one of them says something it may not say; names table, key, value and the nearest
        valid name.
    """
    return tuple(
        validate(Summary, dict(table), f"{origin}: [[summary]] no. {number}")
        for number, table in enumerate(tables, 1)
    )
