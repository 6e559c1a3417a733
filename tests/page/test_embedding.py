"""What travels inside a page comes out as it went in."""

import math

import numpy as np
import pytest
from coded import decode_column, unpack
from hypothesis import given
from hypothesis import strategies as st

from fpbench.page.content import encode_column, round_numbers, to_plain
from fpbench.page.writing import compress, write_json
from fpbench.store.packing import is_identical

VALUES = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.text(), st.sampled_from([1, 1.0, True])
)


def pack(data):
    return compress(write_json(data))


def alike(one, other):
    """The same to the last bit, but that one NaN is as good as another."""
    return is_identical(one, other) or (one != one and other != other)


@given(st.lists(VALUES))
def test_a_column_keeps_its_values_to_the_last_bit(values):
    coded = unpack(pack(encode_column(values)))
    back = decode_column(coded)
    assert len(back) == len(values)
    assert all(map(alike, back, values))


def test_values_that_recur_are_written_once():
    assert encode_column(["a", "b", "a", "a"]) == {"of": ["a", "b"], "at": [0, 1, 0, 0]}
    assert encode_column(["a", "b", "c"]) == {"all": ["a", "b", "c"]}


def test_numbers_beyond_javascript_are_texts():
    coded = encode_column([math.nan, -math.inf, 2**53 + 1])
    assert coded["all"] == [{"is": "nan"}, {"is": "-inf"}, {"is": "9007199254740993"}]
    assert to_plain(np.float64(0.5)) == 0.5
    assert type(to_plain(np.int64(3))) is int


@given(st.text())
def test_packed_text_holds_no_letter_of_html(text):
    packed = pack(text)
    assert packed.replace("+", "").replace("/", "").replace("=", "").isalnum()
    assert packed == pack(text)
    assert unpack(packed) == text


@pytest.mark.parametrize("value", [0.123456789012, 1234567.891, -1e-12, 0.0])
def test_means_are_rounded_to_what_anybody_reads(value):
    (found,) = round_numbers([value])
    assert math.isclose(found, value, rel_tol=1e-7)
    assert round_numbers([None, math.inf]) == [None, {"is": "inf"}]
