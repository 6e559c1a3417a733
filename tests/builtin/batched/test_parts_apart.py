"""What is trained on one group of rows depends on no other group, to the last bit.

The guarantee of `pate` rests on it: one person more or less may change one teacher only, and a vote
that is a tie in exact arithmetic is decided by the last bit.
"""

import numpy as np
import pytest

from fpbench.builtin.batched.logistic import fit_logistic_apart
from fpbench.builtin.batched.mlp import MLPTraining, fit_networks_apart
from fpbench.builtin.batched.row_blocks import pad_groups

ROWS = 6_000
NETWORKS = MLPTraining((5, 3), penalty=0.01, epochs=1, batch=9, rate=0.05)


def logistic(design, labels, parts):
    return fit_logistic_apart(design, labels, parts, 1e-3)


def networks(design, labels, parts):
    return fit_networks_apart(design, labels, parts, NETWORKS, np.random.default_rng(3)).flat


def people(d, seed=0):
    """People with wide columns, so that sums are rounded, and the last column of ones."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.standard_normal((ROWS, d - 1)) * 3, np.ones(ROWS)])
    return design, (rng.random(ROWS) < 0.5).astype(float)


def changes(rng, count):
    """Sizes of parts, in turns with the part that changes and its next size.

    The part that changes is often the longest, or becomes it, or becomes empty, and its size often
    passes a multiple of 4, or of 8, where a length ends.
    """
    for number in range(count):
        sizes = rng.integers(0, (6, 20, 40)[number % 3], 6)
        part = int(rng.integers(6))
        match number % 5:
            case 0:
                before, after = (0, 1) if rng.random() < 0.5 else (1, 0)
            case 1:
                before = int(sizes.max()) // 4 * 4 + 3
                after = before + 1
            case 2:
                before = max(1, int(sizes.max()) // 8 * 8)
                after = before + (1 if rng.random() < 0.5 else -1)
            case 3:
                before = int(sizes.max())
                after = before + 1
            case _:
                before = int(sizes[part]) + 1
                after = before - 1
        sizes[part] = before
        yield sizes, part, after


@pytest.mark.slow
@pytest.mark.parametrize(("train", "d"), [(logistic, 17), (networks, 6)])
def test_one_person_more_or_less_changes_one_part_only(train, d):
    design, labels = people(d)
    rng = np.random.default_rng(1)
    changed = 0
    for sizes, part, after in changes(rng, 500):
        first = rng.integers(0, ROWS - 100, len(sizes))
        groups = [at + np.arange(size) for at, size in zip(first, sizes, strict=True)]
        others = [i for i in range(len(sizes)) if i != part]
        one = train(design, labels, groups)
        groups[part] = first[part] + np.arange(after)
        other = train(design, labels, groups)
        np.testing.assert_array_equal(one[others], other[others])
        changed += not np.array_equal(one[part], other[part])
    assert changed > 450  # or nothing has been compared


@pytest.mark.parametrize("train", [logistic, networks])
def test_a_part_is_as_it_would_be_alone(train):
    design, labels = people(7)
    sizes = [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 79, 80, 81, 150, 700]
    groups = [np.arange(size) + 13 * i for i, size in enumerate(sizes)]
    together = train(design, labels, groups)
    for i, rows in enumerate(groups):
        alone = train(design, labels, [rows if j == i else rows[:0] for j in range(len(groups))])
        np.testing.assert_array_equal(alone[i], together[i])


def test_how_far_a_group_is_filled_up_is_told_by_its_own_size():
    for size in range(1, 200):
        lengths = set()
        for other in range(1, 200, 7):
            groups = [np.arange(size), np.arange(other)]
            for chosen, rows, _ in pad_groups(groups, 3, 1 << 20):
                assert rows.shape[1] % 2 == 0
                if 0 in chosen:
                    lengths.add(rows.shape[1])
        assert len(lengths) == 1
        assert size <= lengths.pop() < max(size + 8, 1.125 * size)
