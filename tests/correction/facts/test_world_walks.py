"""Walks of ranged counts lead to worlds; moves against a matrix."""

import numpy as np
import pytest
from report_worlds import draw_tables
from scipy.sparse import csr_array

from fpbench.correction.facts import integer_moves, world_walks
from fpbench.correction.facts.integer_moves import find_moves, solve_whole
from fpbench.correction.facts.world_walks import WorldWalks


@pytest.mark.parametrize(("order", "k", "wide"), [(1, 2, 0), (2, 2, 0), (2, 2, 1), (2, 3, 2)])
def test_walks_decide_most_people_of_crossed_columns(monkeypatch, order, k, wide):
    monkeypatch.setattr(world_walks, "_WALKS", 64)
    facts, truth = draw_tables(5, 300, np.array([4, 5, 6]), order, k, wide)
    sets = csr_array(facts.sets.astype(np.int64))
    world = np.eye(k, dtype=np.int64)[truth]

    def allow(counts):
        return facts.allows(counts.argmax(axis=1))

    walks = WorldWalks(sets, facts.low, facts.high, np.ones_like(world), world, allow, np.inf)
    shown = world > 0
    walks.show(shown, np.inf, np.inf)
    assert all(map(allow, walks.worlds))
    assert (np.any(np.stack(walks.worlds) > 0, axis=0) == shown).all()
    assert (shown.sum(axis=1) > 1).mean() > 0.3


@pytest.mark.parametrize("order", [1, 2])
def test_moves_span_the_kernel_and_are_short(order):
    facts, _ = draw_tables(7, 200, np.array([3, 4, 4, 3]), order)
    patterns = np.unique(facts.membership.toarray(), axis=0)
    matrix = csr_array(patterns.T.astype(np.int64))
    moves = find_moves(matrix, np.inf).toarray()
    rank = np.linalg.matrix_rank(matrix.toarray())
    assert not (matrix @ moves.T).any()
    assert np.linalg.matrix_rank(moves) == len(moves) == len(patterns) - rank
    assert (moves != 0).sum(axis=1).min() == 4 * order


def test_rows_without_a_pivot_of_one_are_cleared():
    """Of people in 12 columns, no elimination has pivots of 1 and -1 alone."""
    facts, _ = draw_tables(8, 120, np.full(12, 4), 1)
    matrix = csr_array(np.unique(facts.membership.toarray(), axis=0).T.astype(np.int64))
    _, left_over = integer_moves._find_kernel(matrix.toarray().astype(np.float32), np.inf)
    assert left_over.any()
    moves = find_moves(matrix, np.inf).toarray()
    rank = np.linalg.matrix_rank(matrix.toarray())
    assert not (matrix @ moves.T).any()
    assert np.linalg.matrix_rank(moves) == len(moves) == matrix.shape[1] - rank
    assert np.abs(moves).max() < 10


@pytest.mark.parametrize("order", [1, 2])
def test_whole_numbers_with_given_sums_are_found_and_short(order):
    facts, truth = draw_tables(9, 200, np.array([3, 4, 4, 3]), order)
    matrix = csr_array(facts.sets.astype(np.int64))
    for sums in (matrix @ truth, matrix @ (1 - 2 * truth)):
        found = solve_whole(matrix, sums, np.inf)
        assert (matrix @ found == sums).all()
        assert np.abs(found).sum() < 2 * len(truth)
    odd = csr_array(np.ones((2, 3), np.int64))  # the same people cannot be both one and two
    assert solve_whole(odd, np.array([1, 2]), np.inf) is None
