"""Blocks of groups of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fpbench.builtin.batched.row_blocks import pad_groups


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9), st.integers(1, 200))
def test_blocks_hold_every_row_of_every_group_once(sizes, most):
    rows = np.random.default_rng(0).permutation(sum(sizes))
    groups = np.split(rows, np.cumsum(sizes)[:-1])
    seen = {}
    for chosen, numbers, present in pad_groups(groups, 3, most):
        assert numbers.shape == present.shape == (len(chosen), numbers.shape[1])
        assert len(chosen) == 1 or numbers.size * 3 <= most
        for group, row, there in zip(chosen, numbers, present, strict=True):
            assert group not in seen
            seen[group] = row[there == 1]
    assert set(seen) == {i for i, size in enumerate(sizes) if size}
    for group, found in seen.items():
        assert found.tolist() == groups[group].tolist()
