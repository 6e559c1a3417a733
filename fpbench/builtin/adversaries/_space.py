"""Where the parameters of an attack model are searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from fpbench import InputError


class Range(BaseModel):
    """Numbers between two ends, both included; whole numbers if both ends are whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    low: int | Annotated[float, Field(allow_inf_nan=False)]
    high: int | Annotated[float, Field(allow_inf_nan=False)]
    log: bool = False
    """Whether a number is as likely as its multiples."""

    @model_validator(mode="after")
    def _in_order(self) -> Range:
        if self.low >= self.high:
            raise InputError(f"low must be less than high, and {self.low} is not")
        if self.log and self.low <= 0:
            raise InputError(f"with log, low must be above 0, not {self.low}")
        return self

    @property
    def whole(self) -> bool:
        """Whether it has whole numbers only: both ends are written without a point."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def __contains__(self, value: object) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (self.whole and not isinstance(value, int)):
            return False
        return bool(self.low <= value <= self.high)  # type: ignore[operator]


def _of_a_kind(given: Any) -> Any:
    """Refuse here what is neither: of two kinds, pydantic would name the one that was not meant."""
    if isinstance(given, Range | Mapping) or (isinstance(given, list) and given):
        return given
    raise InputError("must be a list of choices, or a table of low, high and log")


def ends(where: Range | list[JsonValue]) -> list[JsonValue]:
    """Every choice, or both ends of the numbers."""
    return [where.low, where.high] if isinstance(where, Range) else where


Choices: TypeAlias = list[JsonValue]

Space: TypeAlias = dict[str, Annotated[Range | Choices, BeforeValidator(_of_a_kind)]]
"""For each parameter its numbers, or its choices."""


SPACES: Mapping[str, Space] = {
    # More trees are hardly ever worse, and take longer: their number is not searched.
    "random-forest": {
        "max_depth": Range(low=4, high=30),
        "min_samples_split": Range(low=2, high=50, log=True),
        "min_samples_leaf": Range(low=1, high=30, log=True),
        "max_features": ["sqrt", "log2", 0.3, 0.5],
        "criterion": ["gini", "entropy"],
    },
    "hist-gradient-boosting": {
        "learning_rate": Range(low=0.01, high=0.3, log=True),
        "max_iter": Range(low=50, high=300, log=True),
        "max_leaf_nodes": Range(low=7, high=63, log=True),
        "min_samples_leaf": Range(low=5, high=100, log=True),
        "l2_regularization": Range(low=0.0, high=10.0),
        "max_features": Range(low=0.3, high=1.0),
    },
    "logistic-regression": {"C": Range(low=0.001, high=100.0, log=True)},
    "decision-tree": {
        "max_depth": Range(low=2, high=20),
        "min_samples_split": Range(low=2, high=100, log=True),
        "min_samples_leaf": Range(low=1, high=50, log=True),
        "criterion": ["gini", "entropy"],
    },
}
"""The space of each family, unless another is given."""


def same(one: Any, other: Any) -> bool:
    """Whether two parameters are the same: 1, 1.0 and true are three."""
    return type(one) is type(other) and one == other
