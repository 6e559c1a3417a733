"""Requests from an auditor to a curator on another machine, written and read for both sides."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fpbench import InputError, Mechanism
from fpbench.privacy import LEAST_EPSILON

ABOUT, HISTOGRAM_QUERY = "/v1/about", "/v1/histogram"
"""Paths of the two routes, GET and POST."""

MOST_ANSWERS = 100_000
"""Greatest number of noisy counts of a query: epsilons x repetitions x cells x groups."""

_WIDTHS: dict[int, str] = {1: "<i1", 2: "<i2", 4: "<i4"}
_MOST_EPSILONS = 1_000
_SPARE = 1 << 18
"""Greatest number of bytes of a query besides its cells."""

_Epsilon = Annotated[float, Field(ge=LEAST_EPSILON, le=1e9, allow_inf_nan=False)]
"""A greater epsilon hides nothing, and sums of it overflow."""


class QueryMessage(BaseModel):
    """A histogram query as it is sent: JSON, the cells packed into bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cells: str
    """Base64 of one little-endian signed integer for each person."""
    width: Literal[1, 2, 4]
    """Bytes of each integer."""
    n_cells: int = Field(ge=1, le=MOST_ANSWERS)
    epsilon: list[_Epsilon] = Field(min_length=1, max_length=_MOST_EPSILONS)
    repetitions: int = Field(1, ge=1, le=MOST_ANSWERS)
    mechanism: dict[str, Any]
    """The name as `use`, and the parameters."""

    @classmethod
    def of(
        cls,
        cells: ArrayLike,
        n_cells: int,
        epsilon: NDArray[np.float64],
        mechanism: Mechanism,
        repetitions: int,
        people: int,
    ) -> QueryMessage:
        """The query of an auditor; InputError if cells or numbers are out of range."""
        codes = np.asarray(cells)
        if codes.shape != (people,):
            raise InputError(f"cells are of shape {codes.shape}, and there are {people:,} people")
        if codes.dtype.kind not in "biu":
            raise InputError(f"cells must be whole numbers, not {codes.dtype}")
        if not isinstance(n_cells, int | np.integer) or not 1 <= n_cells <= MOST_ANSWERS:
            raise InputError(
                f"n_cells must be a whole number of 1 to {MOST_ANSWERS:,}, not {n_cells!r}"
            )
        _check_range(codes, int(n_cells))
        width = next(w for w in _WIDTHS if n_cells <= 1 << (8 * w - 1))
        packed = base64.b64encode(np.asarray(codes, _WIDTHS[width]).tobytes())
        return cls._validate(
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
    def read(cls, body: bytes) -> QueryMessage:
        """The query in a request; InputError names a mistake, but repeats no content."""
        return cls._validate(body)

    @classmethod
    def _validate(cls, content: dict[str, Any] | bytes) -> QueryMessage:
        try:
            if isinstance(content, bytes):
                return cls.model_validate_json(content)
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {first['msg']}" if where else first["msg"])

    def codes(self, people: int) -> NDArray[np.signedinteger[Any]]:
        """The cells (n,); InputError if they are not base64, of n people, or in range."""
        try:
            packed = base64.b64decode(self.cells.encode(), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise InputError("cells: not base64") from None
        if len(packed) != people * self.width:
            raise InputError(
                f"cells: {len(packed):,} bytes, and {people:,} people at {self.width} bytes each "
                f"make {people * self.width:,}"
            )
        codes = np.frombuffer(packed, _WIDTHS[self.width])
        _check_range(codes, self.n_cells)
        return codes

    def check_size(self, groups: int) -> None:
        """Raise InputError if the query asks for too many noisy counts of `groups` groups."""
        counts = len(self.epsilon) * self.repetitions * self.n_cells * groups
        if counts > MOST_ANSWERS:
            raise InputError(f"asks for {counts:,} counts; {MOST_ANSWERS:,} is the most at once")


def _check_range(cells: NDArray[Any], n_cells: int) -> None:
    if cells.max() >= n_cells or cells.min() < -1:
        raise InputError(f"cells must be in 0..{n_cells - 1}, or -1 for none")


def compute_longest_query(people: int) -> int:
    """Length in bytes of the longest valid query."""
    return _SPARE + 4 * -(-people * max(_WIDTHS) // 3)
