"""Measures as bytes: what goes in comes out, to the last bit."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import PluginError
from fpbench.store.packing import Column, is_identical, make_storable, to_plain

WORDS = ["", "optimal", "é中😀"]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.sampled_from([2**63, -(2**63) - 1, 2**63 - 1, -(2**63), 10**400, -0.0, 5e-324])
)
COLUMNS = st.lists(VALUES) | st.lists(st.floats() | st.none()) | st.lists(st.integers(-9, 9))


def reread(column):
    return Column.read(len(column.data), *column.write())


@given(COLUMNS)
def test_what_is_written_comes_out_as_it_was(values):
    column = reread(Column.of(values))
    found = column.values()
    assert len(found) == len(values)
    assert all(map(is_identical, found, values))
    kept = np.arange(len(values)) % 2 == 0
    assert all(map(is_identical, column.take(kept).values(), values[::2]))


@given(COLUMNS)
def test_numbers_are_the_numbers_as_floats(values):
    for value, found in zip(values, reread(Column.of(values)).numbers().tolist(), strict=True):
        if value is None or isinstance(value, str):
            assert math.isnan(found)
        elif isinstance(value, int) and abs(value) > 10**308:
            assert math.isinf(found)
        else:
            assert is_identical(float(value), found) or float(value) == found


def test_numbers_take_eight_bytes_and_texts_are_stored_once():
    for values in ([0.5, None, math.nan], [1, 2**63 - 1]):
        _, data, levels = Column.of(values).write()
        assert (len(data), levels) == (8 * len(values), None)
    assert Column.of(["a", "b", "a", 1, True, 1]).levels == ["a", "b", 1, True]


@given(COLUMNS)
def test_columns_of_another_length_are_refused(values):
    kind, data, levels = Column.of(values).write()
    for spoilt in (data[:-1], data + b"\0", data + b"\0" * 8, data.hex()):
        if len(spoilt) != len(data):
            with pytest.raises(ValueError, match="not a column of"):
                Column.read(len(values), kind, spoilt, levels)


def test_numpy_numbers_are_numbers():
    found = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("x")}
    plain = to_plain(found)
    assert plain == {"a": 0.5, "b": 3, "c": True, "d": "x"}
    assert list(map(type, plain.values())) == [float, int, bool, str]


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", 1j, object(), 10**4000, float])
def test_what_is_no_measure_is_named(value):
    with pytest.raises(PluginError, match="measure 'wrong' must be"):
        to_plain({"right": 1, "wrong": value})


def test_texts_that_are_no_unicode_are_spelt_out():
    assert make_storable("caf\udce9") == "caf\\udce9"


@given(st.floats(), st.floats())
def test_the_same_to_the_last_bit(one, other):
    assert is_identical(one, other) == (struct.pack("<d", one) == struct.pack("<d", other))
    assert not is_identical(1, 1.0)
    assert not is_identical(True, 1)
