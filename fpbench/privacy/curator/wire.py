"""What a curator and an auditor on two machines say to each other; both sides read it here."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fpbench.base.errors import InputError
from fpbench.components.guarantee import LEAST_EPSILON
from fpbench.components.mechanism import Mechanism
from fpbench.privacy.curator.curator import checked_cells

ABOUT, HISTOGRAM_QUERY = "/v1/about", "/v1/histogram"
"""Paths of the two routes: GET and POST."""

MOST_ANSWERS = 100_000
"""Noisy counts that one query may ask for: epsilons x repetitions x cells x groups."""

_WIDTHS: dict[int, str] = {1: "<i1", 2: "<i2", 4: "<i4"}
_MOST_EPSILONS = 1_000
_SPARE = 1 << 18
"""Bytes of a query that are not its cells, at most."""

_Epsilon = Annotated[float, Field(ge=LEAST_EPSILON, le=1e9, allow_inf_nan=False)]
"""More hides nothing, and sums of it overflow."""


class Query(BaseModel):
    """A histogram query as it is sent: JSON, the cells packed into bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cells: str
    """Base64 of one little-endian whole number with a sign a person."""
    width: Literal[1, 2, 4]
    """Bytes of each."""
    n_cells: int = Field(ge=1, le=MOST_ANSWERS)
    epsilon: list[_Epsilon] = Field(min_length=1, max_length=_MOST_EPSILONS)
    repetitions: int = Field(1, ge=1, le=MOST_ANSWERS)
    mechanism: dict[str, Any]
    """`use`, and its parameters."""

    @classmethod
    def of(
        cls,
        cells: ArrayLike,
        n_cells: int,
        epsilon: NDArray[np.float64],
        mechanism: Mechanism,
        repetitions: int,
        people: int,
    ) -> Query:
        """The query of an auditor.

        Raises
        ------
        InputError
            If the cells are not n whole numbers in range, or a number is out of range.
        """
        codes = checked_cells(cells, n_cells, people)
        _check_range(codes, n_cells)
        width = next(w for w in _WIDTHS if n_cells <= 1 << (8 * w - 1))
        packed = base64.b64encode(np.asarray(codes, _WIDTHS[width]).tobytes())
        return cls._checked(
            {
                "cells": packed.decode(),
                "width": width,
                "n_cells": int(n_cells),
                "epsilon": epsilon.ravel().tolist(),
                "repetitions": repetitions,
                "mechanism": {"use": mechanism.name, **mechanism.model_dump(mode="json")},
            }
        )

    @classmethod
    def read(cls, body: bytes) -> Query:
        """The query that came.

        Raises
        ------
        InputError
            If it is none; says what is wrong, and nothing of what it held.
        """
        return cls._checked(body)

    @classmethod
    def _checked(cls, given: dict[str, Any] | bytes) -> Query:
        try:
            if isinstance(given, bytes):
                return cls.model_validate_json(given)
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {first['msg']}" if where else first["msg"])

    def codes(self, people: int) -> NDArray[np.signedinteger[Any]]:
        """The cells (n,), of as many people as there are.

        Raises
        ------
        InputError
            If they are no base64, of another number of people, or out of range.
        """
        try:
            packed = base64.b64decode(self.cells.encode(), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise InputError("cells: not base64") from None
        if len(packed) != people * self.width:
            raise InputError(
                f"cells: {len(packed):,} bytes, and {people:,} people at {self.width} bytes each "
                f"make {people * self.width:,}"
            )
        found = np.frombuffer(packed, _WIDTHS[self.width])
        _check_range(found, self.n_cells)
        return found

    def answers(self, groups: int) -> int:
        """How many noisy counts it asks for.

        Raises
        ------
        InputError
            If these are too many.
        """
        found = len(self.epsilon) * self.repetitions * self.n_cells * groups
        if found > MOST_ANSWERS:
            raise InputError(f"asks for {found:,} counts; {MOST_ANSWERS:,} is the most at once")
        return found


def _check_range(cells: NDArray[Any], n_cells: int) -> None:
    if cells.min() < -1 or cells.max() >= n_cells:
        raise InputError(f"cells must be in 0..{n_cells - 1}, or -1 for none")


def most_bytes(people: int) -> int:
    """Length of the longest query that makes sense."""
    return _SPARE + 4 * -(-people * max(_WIDTHS) // 3)
