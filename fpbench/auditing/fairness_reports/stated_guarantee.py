"""The guarantee of a report's noise, as the report states it."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.components.guarantee import Guarantee


class StatedGuarantee(BaseModel):
    """Differential privacy of a whole report, for a change of one person's group.

    With the sizes of the slices, which every reader knows, it tells the exact law of each number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: Guarantee
    mechanism: dict[str, JsonValue]
    """Its name (`use`) and parameters."""
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """What the mechanism was told to give all numbers together (`Mechanism.release`)."""
    changes: int = Field(ge=1)
    """Numbers that change by one if somebody's group changes: the L1 sensitivity."""
    fitted: bool = False
    """Whether the law of the noise was fitted to draws, which is no law to limit information by."""
    rows: str = ""
    """Checksum of the rows that it is about (`ReportRows.hash_values`)."""

    @classmethod
    def parse(cls, text: str, row: int) -> Self:
        """A guarantee in JSON; InputError names the row of another text."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise InputError(
                f"row {row}, column 'guarantee': {show_value(text)} is no guarantee as `protect` "
                "states it: leave the column out"
            ) from None

    def __str__(self) -> str:
        own = self.guarantee
        parts = f"epsilon {own.epsilon:g}" + (f", delta {own.delta:g}" if own.delta else "")
        return f"{parts}, by {self.mechanism.get('use')}, for a change of one person's group"
