"""What adversaries give back is opened to the last bit, or refused; nothing here is changed."""

import pickle

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fpbench.errors import PluginError
from fpbench.packing import same
from fpbench.plain import opened
from fpbench.records import Guess
from fpbench.steps import Failure, Result, Sealed

plain = arrays.arrays(
    st.sampled_from(["i1", "i8", ">i4", "f4", "f8", "?", "U3"]), arrays.array_shapes(max_dims=2)
)
notes = st.dictionaries(
    st.text(max_size=5),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.floats().map(np.float64)
    | st.floats(width=32).map(np.float32) | st.integers(-100, 100).map(np.int64),
)  # fmt: skip


@given(st.lists(plain, min_size=5, max_size=5), notes, st.booleans())
def test_a_guess_is_what_it_was(values, said, fortran):
    if fortran:
        values = [np.asfortranarray(each)[::-1] for each in values]
    guess = opened(cloudpickle.dumps(Result(Guess(*values, said), 0.5))).value
    for name, given_ in zip(("values", "confidence", "held_out"), values, strict=False):
        found = getattr(guess, name)
        assert found.dtype == given_.dtype.newbyteorder("=") or found.dtype == given_.dtype
        assert np.array_equal(found, given_, equal_nan=given_.dtype.kind == "f")
    assert guess.notes.keys() == said.keys()
    assert all(
        same(found := guess.notes[name], value) or (found != found and value != value)
        for name, value in said.items()
    )


@pytest.mark.parametrize("value", [Failure("why", "trace", False), Sealed(b"anything")])
def test_what_else_may_come(value):
    assert opened(cloudpickle.dumps(Result(value, 1.0))) == Result(value, 1.0)


@pytest.mark.parametrize(
    "target",
    ["fpbench.records Guess", "fpbench.steps Result", "fpbench.steps Failure",
     "numpy._core.numeric _frombuffer", "numpy ndarray"],
)  # fmt: skip
def test_no_class_and_no_function_is_changed(target):
    """A pickle may say that a class has a state: its attributes would be others for all."""
    module, name = target.split()
    content = b"\x80\x02" + f"c{module}\n{name}\n(N}}X\x05\x00\x00\x00valueK\x07stb.".encode()
    with pytest.raises(PluginError, match="must be plain arrays and numbers"):
        opened(content)
    assert Result(1, 2.0).value == 1
    assert not hasattr(Guess, "value")
    found = pickle.loads(f"c{module}\n{name}\n.".encode())
    assert getattr(found, "value", None) != 7


@given(st.binary(max_size=80))
def test_whatever_bytes_come(content):
    with pytest.raises(PluginError, match="what it gives must be"):
        opened(b"\x80\x04" + content)
