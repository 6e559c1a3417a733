"""Beliefs about people's groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fpbench.components.beliefs import name_likeliest

TABLES = arrays(
    float, array_shapes(min_dims=2, max_dims=2), elements=st.sampled_from([0.0, 0.2, 0.3, 1.0])
)


@given(TABLES)
def test_the_likeliest_group_is_the_first_of_the_greatest_beliefs(beliefs):
    named, sure = name_likeliest(beliefs)
    np.testing.assert_array_equal(named, beliefs.argmax(axis=1))
    np.testing.assert_array_equal(sure, beliefs.max(axis=1))
    assert not np.shares_memory(sure, beliefs)
