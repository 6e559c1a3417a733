"""Measures as bytes: what goes in comes out, to the last bit."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import PluginError
from fpbench.store.packing import (
    CellPage,
    is_identical,
    numbers,
    pack,
    read_page,
    split,
    unpack_values,
)

WORDS = ["", "optimal", "é中😀"]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.sampled_from([2**63, -(2**63) - 1, 2**63 - 1, -(2**63), 10**400, -0.0, 5e-324])
)


def packed(rows):
    """Rows of as many values, as one layout: kinds, bits and words."""
    words = []

    def number(text):
        if text not in words:
            words.append(text)
        return words.index(text)

    blobs = [pack({f"m{i}": value for i, value in enumerate(row)}, number) for row in rows]
    kinds, bits = split(blobs, len(rows[0]))
    return kinds, bits, words


ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1)
)


@given(ROWS)
def test_what_is_packed_comes_out_as_it_was(rows):
    kinds, bits, words = packed(rows)
    columns = [unpack_values(kinds[i], bits[i], words.__getitem__) for i in range(len(kinds))]
    for row, found in zip(rows, zip(*columns, strict=True), strict=True):
        assert all(map(is_identical, row, found))


@given(ROWS)
def test_numbers_are_the_numbers_as_floats(rows):
    kinds, bits, words = packed(rows)
    for i, column in enumerate(zip(*rows, strict=True)):
        for value, found in zip(column, numbers(kinds[i], bits[i], words.__getitem__), strict=True):
            if value is None or isinstance(value, str):
                assert math.isnan(found)
            elif isinstance(value, int) and abs(value) > 10**308:
                assert math.isinf(found)
            else:
                assert is_identical(float(value), float(found)) or float(value) == found


@given(ROWS, st.data())
def test_a_page_is_read_as_it_was_written(rows, data):
    kinds, bits, _ = packed(rows)
    whole = st.integers(-(2**63), 2**63 - 1)
    ids = np.array(data.draw(st.lists(whole, min_size=len(rows), max_size=len(rows))))
    page = CellPage(ids, ids[::-1].copy(), ids.astype(float), kinds, bits)
    found = read_page(page.to_bytes(), len(rows), len(kinds))
    assert all(np.array_equal(a, b) for a, b in zip(page, found, strict=True))
    for size in (len(page.to_bytes()) - 1, len(page.to_bytes()) + 1, 0):
        with pytest.raises(ValueError, match="not one of"):
            read_page(page.to_bytes().ljust(size, b"\0")[:size], len(rows), len(kinds))


def test_numpy_numbers_are_numbers():
    found = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("x")}
    kinds, bits = split([pack(found, lambda text: 7)], 4)
    assert [unpack_values(kinds[i], bits[i], {7: "x"}.__getitem__) for i in range(4)] == [
        [0.5], [3], [True], ["x"]
    ]  # fmt: skip


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", 1j, object(), 10**4000, float])
def test_what_is_no_measure_is_named(value):
    with pytest.raises(PluginError, match="measure 'wrong' must be"):
        pack({"right": 1, "wrong": value}, lambda text: 0)


def test_damaged_blobs_are_refused():
    good = pack({"a": 1.0}, lambda text: 0)
    for bad in (good[:-1], good + b"\0", b""):
        with pytest.raises(ValueError, match="of another length"):
            split([good, bad], 1)
    with pytest.raises(ValueError, match="unknown kind 200"):
        split([bytes([200]) + good[1:]], 1)


@given(st.floats(), st.floats())
def test_the_same_to_the_last_bit(one, other):
    assert is_identical(one, other) == (struct.pack("<d", one) == struct.pack("<d", other))
    assert not is_identical(1, 1.0)
    assert not is_identical(True, 1)
