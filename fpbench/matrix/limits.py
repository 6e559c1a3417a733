"""Limits on the time and memory of a step, as `[limits]` of a matrix sets them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]{1,3})\s*")
_MOST_BYTES = 2**60
"""More than any machine has, and less than the operating system can count."""


def _to_bytes(size: object) -> object:
    """A size in words as a number of bytes; anything else as it is."""
    if not isinstance(size, str):
        return size
    match = _SIZE.fullmatch(size)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise ValueError('must be a number of bytes, or a size such as "512 MiB" or "2 GB"')
    return int(float(match[1]) * unit)


def _check_sensible(size: int | None) -> int | None:
    if size is not None and not 0 < size <= _MOST_BYTES:
        raise ValueError(f"must be above 0 and at most {_MOST_BYTES} bytes")
    return size


class Limits(BaseModel):
    """Limits on each step of a component; a step that exceeds them fails alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    timeout: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="seconds that a step may take"
    )
    memory_limit: Annotated[
        int | None, BeforeValidator(_to_bytes), AfterValidator(_check_sensible)
    ] = Field(
        None,
        description="memory that a step may take, beyond what its process has at the start: "
        'bytes, or a text as `"4 GiB"`',
    )

    def __bool__(self) -> bool:
        return self.timeout is not None or self.memory_limit is not None

    def __str__(self) -> str:
        time = [] if self.timeout is None else [f"{self.timeout:g} s"]
        size = [] if self.memory_limit is None else [_format_size(self.memory_limit)]
        return " and ".join([*time, *size]) or "no limits"

    def tighten(self, other: Limits) -> Limits:
        """The smaller of both limits on time, and on memory."""
        times = [each.timeout for each in (self, other) if each.timeout is not None]
        sizes = [each.memory_limit for each in (self, other) if each.memory_limit is not None]
        return Limits(timeout=min(times, default=None), memory_limit=min(sizes, default=None))

    @property
    def on_time(self) -> str:
        """The limit on time, for messages."""
        return f"timed out after {self.timeout:g} s (timeout of [limits])"

    @property
    def on_memory(self) -> str:
        """The limit on memory, for messages."""
        size = _format_size(self.memory_limit or 0)
        return f"needs more memory than {size} (memory_limit of [limits])"


def _format_size(size: int) -> str:
    """A size in the largest unit in which it is short."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        number = size / _UNITS[unit.upper()]
        if number >= 1 and len(f"{number:g}") <= 5:
            return f"{number:g} {unit}"
    return f"{size} bytes"


NO_LIMITS = Limits()
"""No limit on time or memory."""
