"""Limits as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fpbench.matrix.limits import NO_LIMITS, Limits

UNITS = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30, "TiB": 2**40}  # fmt: skip


@given(st.integers(1, 9999), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " ", "  "]))
def test_a_size_is_its_number_of_units(number, unit, space):
    assert Limits(memory_limit=f"{number}{space}{unit}").memory_limit == number * UNITS[unit]
    assert Limits(memory_limit=f" {number}{space}{unit.lower()} ").memory_limit is not None


@given(st.integers(1, 2**60))
def test_what_a_message_says_is_the_limit(size):
    """Read again, it is the same to four digits."""
    limits = Limits(memory_limit=size)
    said = limits.on_memory.removeprefix("needs more memory than ").partition(" (")[0]
    again = (
        int(said.split()[0]) if said.endswith("bytes") else Limits(memory_limit=said).memory_limit
    )
    assert again == pytest.approx(size, rel=1e-3)


@given(st.text(max_size=12))
def test_whatever_else_is_said_is_refused_or_a_size(text):
    try:
        limits = Limits(memory_limit=text)
    except ValidationError:
        return
    assert limits.memory_limit > 0


def test_no_limits_are_none():
    assert not NO_LIMITS
    assert Limits(timeout=1)
    assert Limits(memory_limit=1)
