"""Worlds of exact and ranged counts against all assignments of groups; moves against a matrix."""

import time
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

import fpbench
from fpbench import FairnessReport
from fpbench.claims import Facts
from fpbench.correction import propagate
from fpbench.correction.facts import integer_moves, world_walks, worlds
from fpbench.correction.facts.integer_moves import find_moves
from fpbench.correction.facts.worlds import find_worlds

LONG = 600.0
"""Seconds that no small problem takes."""


def draw_report(seed, most=16):
    """Members (n, M), ends (M, K) of counts that are true of somebody, and true groups (n,)."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 2, 3]))
    n = int(rng.integers(2, (most if k == 2 else most * 5 // 8) + 1))
    if rng.random() < 0.5:  # crossed columns, as reports have
        columns = rng.integers(0, rng.integers(2, 4), (n, 3))
        codes = [columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 0] * 3 + columns[:, 1]]
        members = np.column_stack([code == v for code in codes for v in np.unique(code)])
        members = members[:, rng.random(members.shape[1]) < 0.9]
    else:
        members = rng.random((n, int(rng.integers(1, 8)))) < rng.choice([0.3, 0.5, 0.8])
    truth = rng.integers(0, k, n)
    low = members.T.astype(int) @ (truth[:, None] == np.arange(k))
    high = low.copy()
    if rng.random() < 0.5:  # rounded or ranged
        wide = rng.random(len(low)) < 0.6
        low[wide] -= rng.integers(0, 3, low[wide].shape)
        high[wide] += rng.integers(0, 3, high[wide].shape)
    return members, low, high, truth, k


def enumerate_possible(members, low, high, k):
    """(n, K) the groups that people have in some assignment within the ends."""
    n = len(members)
    possible = np.zeros((n, k), bool)
    assignments = np.array(list(product(range(k), repeat=min(n, 8))), np.int8)
    for rest in product(range(k), repeat=max(n - 8, 0)):
        tail = np.tile(np.array(rest, np.int8), (len(assignments), 1))
        groups = np.hstack([assignments, tail])
        ones = (groups[:, :, None] == np.arange(k)).astype(np.float32)
        counts = np.einsum("ang,nm->amg", ones, members.astype(np.float32), optimize=True)
        fits = ((counts >= low) & (counts <= high)).all(axis=(1, 2))
        possible |= ones[fits].any(axis=0)
    return possible


def check_against_enumeration(seed, most=16):
    members, low, high, truth, k = draw_report(seed, most)
    facts = Facts.from_counts(members, low, high)
    wanted = enumerate_possible(members, low, high, k)
    start = propagate(facts) if seed % 2 else np.ones((len(members), k), bool)
    deadline = time.perf_counter() + LONG
    told = find_worlds(facts, start, truth if seed % 3 else None, deadline)
    assert not told.undecided.any()
    np.testing.assert_array_equal(told.possible.sum(axis=1) == 1, wanted.sum(axis=1) == 1)
    assert (wanted | ~told.seen).all()


@pytest.mark.parametrize("part", range(5))
def test_everybody_is_decided_as_by_enumeration(part):
    for seed in range(40 * part, 40 * part + 40):
        check_against_enumeration(seed, most=10)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_ten_thousand_reports_are_decided_as_by_enumeration(part):
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        check_against_enumeration(seed)


def draw_tables(seed, n, columns, order, k=2, wide=0):
    """Facts of crossed columns of people, and their groups."""
    rng = np.random.default_rng(seed)
    people = rng.integers(0, columns, (n, len(columns)))
    truth = (rng.random(n) < 0.2 + 0.5 * (people[:, 0] == 0)).astype(int)
    if k > 2:
        truth = np.where(rng.random(n) < 0.3, rng.integers(0, k, n), truth)
    tables, low = [], []
    for one in range(len(columns)):
        for other in range(one + 1, len(columns)) if order == 2 else [one]:
            code, size = people[:, one], int(columns[one])
            if other != one:
                code, size = code * columns[other] + people[:, other], size * int(columns[other])
            tables.append((code, size))
            counts = np.zeros((size, k), int)
            np.add.at(counts, (code, truth), 1)
            low.append(counts)
    low = np.concatenate(low)
    return Facts.from_tables(tables, low - wide, low + wide), truth


@pytest.fixture
def walk_in_small_problems(monkeypatch):
    monkeypatch.setattr(worlds, "_NEAR", 1)
    monkeypatch.setattr(world_walks, "_WALKS", 16)


@pytest.mark.parametrize("part", range(5))
def test_walks_find_no_world_that_enumeration_does_not(walk_in_small_problems, part):
    for seed in range(500 + 20 * part, 520 + 20 * part):
        check_against_enumeration(seed, most=10)


@pytest.mark.parametrize(
    ("order", "k", "wide"), [(1, 2, 0), (2, 2, 0), (1, 3, 0), (2, 3, 0), (2, 2, 1), (2, 3, 2)]
)
def test_walks_decide_most_people_of_crossed_columns(monkeypatch, order, k, wide):
    monkeypatch.setattr(world_walks, "_WALKS", 64)
    facts, truth = draw_tables(5, 300, np.array([4, 5, 6]), order, k, wide)
    allowed, undecided = [], []

    class ShownError(Exception):
        """Ends the search after the walks."""

    class Noted(world_walks.WorldWalks):
        def show(self, world, allows, deadline):
            def note(counts):
                allowed.append(allows(counts))
                return allowed[-1]

            shown = super().show(world, note, deadline)
            undecided.extend((groups > 0).sum(axis=1) == 1 for groups in (world, shown))
            raise ShownError

    monkeypatch.setattr(worlds, "WorldWalks", Noted)
    with pytest.raises(ShownError):
        find_worlds(facts, propagate(facts), truth, time.perf_counter() + LONG)
    assert allowed
    assert all(allowed)  # no walk ends at numbers that the facts exclude
    before, after = undecided
    assert after.sum() < 0.3 * before.sum()


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


@pytest.mark.slow
@pytest.mark.parametrize("round_to", [None, 5])
def test_german_credit_by_one_column(round_to):
    """Of exact counts no second world is known; of rounded ones, all have one."""
    try:
        people = fpbench.dataset("german").sample()
    except fpbench.DataError as missing:
        pytest.skip(f"{missing}; set FPBENCH_DATA")
    some = np.random.default_rng(0).permutation(len(people.features))[:333]
    X, predictions = people.features.iloc[some], people.labels[some]
    truth = people.sensitive[some].astype(int)
    report = FairnessReport.from_predictions(
        X, predictions, np.array(people.groups)[truth], by=list(X.columns), round_to=round_to, rng=0
    )
    codes = np.array([report.groups.index(people.groups[code]) for code in truth])
    facts = report.facts(X, predictions)
    told = find_worlds(facts, propagate(facts), codes, time.perf_counter() + 20)
    assert told.possible[np.arange(len(codes)), codes].all()
    assert told.seen[np.arange(len(codes)), codes].all()
    assert told.undecided.any() == (round_to is None)
