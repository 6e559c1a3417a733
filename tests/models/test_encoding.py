import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.errors import DataError
from fpbench.models import encode


@st.composite
def frames(draw):
    """Tables of numbers and categories, some of which nobody has, in any order."""
    n = draw(st.integers(0, 12))
    columns = {}
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["int", "float", "bool", "category"]))
        if kind == "category":
            k = draw(st.integers(1, 4))
            codes = draw(st.lists(st.integers(-1, k - 1), min_size=n, max_size=n))
            names = [f"c{code}" for code in range(k)]
            column = pd.Categorical.from_codes(codes, draw(st.permutations(names)))
        else:
            values = {"int": st.integers(-9, 9), "float": st.floats(-9, 9), "bool": st.booleans()}
            drawn = draw(st.lists(values[kind], min_size=n, max_size=n))
            column = np.array(drawn, dtype={"int": int, "float": float, "bool": bool}[kind])
        columns[f"x{number}"] = column
    return pd.DataFrame(columns, index=pd.RangeIndex(n))


def categoricals(frame):
    return [c for c in frame if isinstance(frame[c].dtype, pd.CategoricalDtype)]


@given(frames())
def test_one_hot_is_what_pandas_makes(frame):
    found = encode(frame)
    expected = pd.get_dummies(frame, columns=categoricals(frame), dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.to_numpy(np.float32))


@given(frames())
def test_ordinal_is_the_codes(frame):
    found, names = encode(frame, "ordinal"), categoricals(frame)
    assert found.dtype == np.float32
    assert found.shape == frame.shape
    numbers = frame.drop(columns=names).to_numpy(np.float32)
    np.testing.assert_array_equal(found[:, : numbers.shape[1]], numbers)
    for position, name in enumerate(names, numbers.shape[1]):
        np.testing.assert_array_equal(found[:, position], frame[name].cat.codes)


@given(frames(), st.sampled_from(["one-hot", "ordinal"]), st.data())
def test_a_part_is_encoded_as_it_is_in_the_whole(frame, encoding, data):
    rows = data.draw(st.lists(st.integers(0, max(len(frame) - 1, 0)), max_size=len(frame)))
    part = frame.iloc[rows].reset_index(drop=True)
    np.testing.assert_array_equal(encode(part, encoding), encode(frame, encoding)[rows])


@pytest.mark.parametrize("values", [["a", "b"], pd.to_datetime(["2020-01-01", "2021-01-01"])])
def test_what_is_neither_number_nor_category(values):
    frame = pd.DataFrame({"fine": [1, 2], "text": values})
    with pytest.raises(DataError, match="feature 'text' is .*, neither numeric nor categorical"):
        encode(frame)
