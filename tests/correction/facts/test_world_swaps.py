"""Worlds of exact and ranged counts against all assignments of groups; swaps against counts."""

import time
from itertools import product

import numpy as np
import pytest
from report_worlds import check_examples, draw_tables
from scipy.sparse import csr_array

import fpbench
from fpbench import FairnessReport
from fpbench.claims import Facts
from fpbench.correction import propagate
from fpbench.correction.facts import world_swaps, worlds
from fpbench.correction.facts.world_swaps import WorldSwaps, _Joined, _Merger, _Way
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
    check_examples(facts, told, truth if seed % 3 else None)


@pytest.mark.parametrize("part", range(5))
def test_everybody_is_decided_as_by_enumeration(part):
    for seed in range(40 * part, 40 * part + 40):
        check_against_enumeration(seed, most=10)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_ten_thousand_reports_are_decided_as_by_enumeration(part):
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        check_against_enumeration(seed)


@pytest.fixture
def swap_in_small_problems(monkeypatch):
    monkeypatch.setattr(worlds, "_NEAR", 1)
    monkeypatch.setattr(world_swaps, "_LIST", 1 << 8)
    monkeypatch.setattr(world_swaps, "_IDLE", 3)


@pytest.mark.parametrize("part", range(5))
def test_swaps_find_no_world_that_enumeration_does_not(swap_in_small_problems, part):
    for seed in range(500 + 20 * part, 520 + 20 * part):
        check_against_enumeration(seed, most=10)


@pytest.mark.parametrize(
    ("order", "k", "wide"), [(1, 2, 0), (2, 2, 0), (1, 3, 0), (2, 3, 0), (2, 2, 1), (2, 3, 2)]
)
def test_swaps_decide_most_people_of_crossed_columns(monkeypatch, order, k, wide):
    monkeypatch.setattr(world_swaps, "_SIZES", (1 << 12,))
    facts, truth = draw_tables(5, 300, np.array([4, 5, 6]), order, k, wide)
    undecided = []

    class ShownError(Exception):
        """Ends the search after the swaps."""

    class Noted(WorldSwaps):
        def show(self, shown, turn, deadline):
            world = shown.copy()
            super().show(shown, np.inf, np.inf)
            undecided.extend(groups.sum(axis=1) == 1 for groups in (world, shown))
            listed = list(self.list_worlds(1000))
            assert all(map(self.allows, listed))  # no swap ends at numbers that the facts exclude
            assert (np.any([world, *(new > 0 for new in listed)], axis=0) == shown).all()
            raise ShownError

    monkeypatch.setattr(worlds, "WorldSwaps", Noted)
    with pytest.raises(ShownError):
        find_worlds(facts, propagate(facts), truth, time.perf_counter() + LONG)
    before, after = undecided
    assert after.sum() < 0.5 * before.sum()


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_merged_swaps_keep_all_counts(seed, slow):
    facts, truth = draw_tables(seed, 200, np.full(6, 3), 1)
    sets = csr_array(facts.sets.astype(np.int64))
    world = np.eye(2, dtype=np.int64)[truth]
    ends = facts.low, facts.high, np.ones_like(world)
    known = WorldSwaps(sets, *ends, world, facts.allows, False)
    todo = np.arange(200) % 2 == 0
    found = list(known._find(world, (0, 1), todo, np.inf, _Way(1 << 12, slow=slow)))
    assert sum(map(len, found)) > 1000
    for swaps in found:
        moved = np.zeros((len(swaps), 200), np.int64)
        np.put_along_axis(moved, abs(swaps) - 1, np.sign(swaps), axis=1)
        assert (np.abs(moved).sum(axis=1) == swaps.shape[1]).all()  # all of different people
        assert (moved[:, truth == 0] >= 0).all() and (moved[:, truth == 1] <= 0).all()
        assert moved[:, todo].any(axis=1).all()
        assert not (sets @ moved.T).any()
        named = np.column_stack([swaps[:, 0], moved])  # none is found twice for somebody
        assert len(np.unique(named, axis=0)) == len(swaps)


def test_known_swaps_are_parts_of_others(monkeypatch):
    """Of 250 people in a cell one is of the second group, and takes part whoever else changes."""
    monkeypatch.setattr(world_swaps, "_SIZES", (1 << 12,))
    rng = np.random.default_rng(0)
    columns, truth = rng.integers(0, 8, (2000, 6)), (rng.random(2000) < 0.3).astype(int)
    cell = np.flatnonzero(columns[:, 0] == 0)
    truth[cell] = np.arange(len(cell)) == 0
    members = np.hstack([columns[:, [column]] == np.arange(8) for column in range(6)])
    sets, world = csr_array(members.T.astype(np.int64)), np.eye(2, dtype=np.int64)[truth]
    counts = (sets @ world).astype(float)
    known = WorldSwaps(
        sets, counts, counts, np.ones_like(world), world,
        lambda new: bool((sets @ new == counts).all() and (new >= 0).all()), False,
    )  # fmt: skip
    shown, searches = world > 0, iter(range(4))
    find = known._find
    monkeypatch.setattr(
        known, "_find", lambda *given: find(*given) if next(searches, 9) < 4 else ()
    )
    known.show(shown, np.inf, np.inf)
    assert all(map(known.allows, known.list_worlds(20)))
    todo = shown.sum(axis=1) == 1
    parts = set()
    for swaps in find(world, (0, 1), todo, np.inf, _Way(1 << 12, composed=True)):
        moved = np.zeros((len(swaps), len(world)), np.int64)
        np.put_along_axis(moved, abs(swaps) - 1, np.sign(swaps), axis=1)
        assert (np.abs(moved).sum(axis=1) == swaps.shape[1]).all()  # all of different people
        assert not (sets @ moved.T).any()
        assert (moved[:, truth == 0] >= 0).all() and (moved[:, truth == 1] <= 0).all()
        if len(swaps):
            parts.add(swaps.shape[1])
    assert any(width & (width - 1) for width in parts)  # lists of merged people are powers of two


@pytest.mark.slow
@pytest.mark.parametrize("round_to", [None, 5])
def test_german_credit_by_one_column(round_to):
    """Of exact counts, swaps of sixteen people and more show most; of rounded ones, all."""
    try:
        people = fpbench.dataset("german").sample()
    except fpbench.errors.DataError as missing:
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
    assert told.undecided.mean() < (0.8 if round_to is None else 0.01)
    check_examples(facts, told, codes)


def draw_lists(wanted: int, others: int, sets: int) -> tuple[_Merger, _Joined, _Joined]:
    rng = np.random.default_rng(0)
    members = rng.integers(0, 2, (wanted + others, sets))
    sums = np.cumsum(members * rng.integers(2**40, size=sets), axis=1)
    signed = np.concatenate([-sums[::-1], np.zeros_like(sums[:1]), sums]).T.copy()
    merger = _Merger(signed, rng, 100)
    tokens = np.concatenate([np.arange(1, wanted + 1), -np.arange(wanted + 1, len(sums) + 1)])
    left, right = (
        merger.make_list(part[:, None].astype(np.int32)) for part in np.split(tokens, [wanted])
    )
    return merger, left, right


@pytest.mark.parametrize("wanted", [3, 30, 300])
def test_merges_wait_for_swaps_of_those_who_are_wanted(wanted):
    merger, left, right = draw_lists(wanted, 500, 20)
    block = merger.find_block(left, right, 0)
    own, other = merger.sums[:, left.at[0]], merger.sums[:, right.at[0]]
    pairs = (own[:, :, None] + other[:, None, :] == 0).sum(axis=(1, 2))
    enough = merger.size * world_swaps._SPARE / world_swaps._FEW
    assert block == max(np.flatnonzero(pairs[:-1] >= enough), default=0)


def test_each_one_wanted_has_its_share_of_a_list():
    merger, people, right = draw_lists(2, 300, 1)
    merger.sums[:] = 0
    many = np.repeat([0, 1], [1000, 10]).astype(np.int32)
    left = _Joined(
        (people, right), (many, np.arange(len(many), dtype=np.int32) % 300),
        np.arange(len(many)) << 40, np.zeros((len(many), 5), np.uint64),
    )  # fmt: skip
    right = right._replace(marks=np.zeros((300, 5), np.uint64))
    first = merger.join(left, right, 0).find_first()
    shares = np.unique(first, return_counts=True)[1] / len(first)
    assert shares == pytest.approx([0.5, 0.5], abs=0.2)
