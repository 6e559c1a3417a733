"""Facts in a matrix: public knowledge besides a claim, turned into constraints by the truth.

A fact is true: a bound that the matrix leaves out is the true value minus or plus a `margin`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Annotated, Literal, Self, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fpbench.base.errors import InputError, suggest_name
from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    ShareBounds,
)
from fpbench.claims.information import count_cells, limit_claim_nats, limit_count_nats
from fpbench.claims.rates import Form, Metric, RateConstraint, group_counts
from fpbench.data.sample import Sample

_Share = Annotated[float, Field(ge=0, le=1)]


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def limit_nats(self, people: Sample) -> float:
        """The most that it tells about everybody's group, in nats."""
        return len(people) * math.log(len(people.groups))

    @property
    def word(self) -> str:
        """The word of its constraint."""
        return str(self.use)  # type: ignore[attr-defined]


class _Bounded(_Fact, ABC):
    """A value in [0, 1] that is known to lie between bounds."""

    def limit_nats(self, people: Sample) -> float:
        """One bit for bounds that were set beforehand: they hold; for others, what counts tell."""
        if self.low is not None and self.high is not None:
            return math.log(2)
        return self._limit_count_nats(people)

    @abstractmethod
    def _limit_count_nats(self, people: Sample) -> float:
        """What the counts behind the value tell."""

    low: _Share | None = Field(None, description="least value; by default true value less margin")
    high: _Share | None = Field(None, description="greatest value; by default true plus margin")
    margin: _Share = Field(0.0, description="how far the true value may be from an unsaid bound")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def _bounds(self, truth: Fraction) -> tuple[float | Fraction, float | Fraction]:
        margin = Fraction(str(self.margin))
        low = max(truth - margin, Fraction(0)) if self.low is None else self.low
        high = min(truth + margin, Fraction(1)) if self.high is None else self.high
        return low, high


class Share(_Bounded):
    """The share of a group among the training people is known."""

    use: Literal["share"]
    group: str = Field(description="name of the group")

    def _limit_count_nats(self, people: Sample) -> float:
        return limit_count_nats([len(people)])

    def constraint(self, people: Sample, rng: np.random.Generator) -> Constraint:
        """Bounds on the share."""
        group = _group(self.group, people)
        members = int(np.count_nonzero(people.sensitive == group))
        return ShareBounds(group, *self._bounds(Fraction(members, len(people))))


class PositiveRate(_Bounded):
    """A group's rate of positive predictions is known."""

    use: Literal["positive-rate"]
    group: str = Field(description="name of the group")
    metric: Metric = Field("statistical-parity", description="over whom the rate is taken")

    def _limit_count_nats(self, people: Sample) -> float:
        return limit_count_nats(count_cells(self.metric, people))

    def constraint(self, people: Sample, rng: np.random.Generator) -> Constraint:
        """Bounds that hold in every slice of the metric."""
        group, k = _group(self.group, people), len(people.groups)
        bounds = []
        for part in RateConstraint(self.metric).slices(people.labels):
            members, positives = group_counts(people.sensitive, people.predictions, k, part)
            if members[group]:
                bounds.append(self._bounds(Fraction(int(positives[group]), int(members[group]))))
        low, high = (
            min((b[0] for b in bounds), default=0.0),
            max((b[1] for b in bounds), default=1.0),
        )
        return RateBounds(group, low, high, self.metric)


class Unfairness(_Bounded):
    """The unfairness itself is known, from below too."""

    use: Literal["unfairness"]
    metric: Metric = Field(description="whose rates are compared")
    form: Form = Field("to-overall", description="how rates are compared")

    @property
    def word(self) -> str:
        """The word of its constraint."""
        return KnownUnfairness(self.metric, 0, 1, self.form).word

    def _limit_count_nats(self, people: Sample) -> float:
        return limit_claim_nats(self.metric, people)

    def constraint(self, people: Sample, rng: np.random.Generator) -> Constraint:
        """Bounds on the unfairness."""
        measured = RateConstraint(self.metric, form=self.form).unfairness(
            people.sensitive, people.predictions, people.labels, len(people.groups)
        )
        return KnownUnfairness(self.metric, *self._bounds(measured), self.form)


class Known(_Fact):
    """The groups of some training people, drawn at random, are known."""

    use: Literal["known"]
    share: _Share = Field(description="share of the people whose group is known")

    def limit_nats(self, people: Sample) -> float:
        """Their groups; who they are is random and tells nothing."""
        return round(self.share * len(people)) * math.log(len(people.groups))

    def constraint(self, people: Sample, rng: np.random.Generator) -> Constraint:
        """Their groups."""
        count = round(self.share * len(people))
        rows = np.sort(rng.choice(len(people), count, replace=False))
        return KnownPeople(rows, people.sensitive[rows].astype(np.int64))


class Linear(_Fact):
    """The total of a numeric column over a group is known."""

    use: Literal["linear"]
    group: str = Field(description="name of the group")
    column: str = Field(description="name of a numeric feature")
    margin: float = Field(0.0, ge=0, description="how far the total may be off, as a share of it")

    def constraint(self, people: Sample, rng: np.random.Generator) -> Constraint:
        """Bounds on the total."""
        group = _group(self.group, people)
        numeric = people.features.select_dtypes("number")
        if self.column not in numeric:
            names = list(map(str, numeric.columns))
            hint = suggest_name(self.column, names)
            raise InputError(f"linear fact: no numeric column {self.column!r}; {hint}")
        values = numeric[self.column].to_numpy(dtype=np.float64)
        total = float(values[people.sensitive == group].sum())
        # Sums of floats in another order differ in the last digits.
        slack = abs(total) * self.margin + 1e-9 * float(np.abs(values).sum())
        return LinearConstraint(group, values, total - slack, total + slack)


Fact: TypeAlias = Annotated[
    Share | PositiveRate | Unfairness | Known | Linear, Field(discriminator="use")
]
"""Any of these facts, by `use`."""


def _group(name: str, people: Sample) -> int:
    if name not in people.groups:
        raise InputError(f"no group {name!r}; {suggest_name(name, people.groups)}")
    return people.groups.index(name)
