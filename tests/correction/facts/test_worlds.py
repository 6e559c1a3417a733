"""Proofs and worlds against all groups of people that small reports allow."""

import time

import numpy as np
import pytest
from report_worlds import MODES, check_examples, draw_tables, list_vectors, publish_world

from fpbench import InputError
from fpbench.claims import ContradictionError, Facts
from fpbench.claims.clauses import Clauses
from fpbench.correction import propagate
from fpbench.correction.facts import world_swaps, world_walks
from fpbench.correction.facts.worlds import WorldProgram, find_worlds
from fpbench.reports.assessments.report_series import ReportSeries

_EACH = 4
"""Reports of each mode that are tried at once."""


def check_reports(seeds, mode):
    """Everybody is proven or has two groups in worlds, as enumeration says; how many were tried."""
    tried = 0
    for seed in seeds:
        try:
            reports, X, shown, labels, groups, possible = publish_world(seed, mode)
            series = ReportSeries.of(reports, shown[:, 0] if len(reports) == 1 else shown, len(X))
        except InputError:  # parameters that exclude each other, or a person who is in no report
            continue
        facts = series.read(X, labels).facts
        known = groups if seed % 2 else None
        found = find_worlds(facts, propagate(facts), known, time.perf_counter() + 600)
        proven = found.possible.sum(axis=1) == 1
        assert proven.tolist() == (possible.sum(axis=1) == 1).tolist(), (seed, mode)
        assert (found.possible | ~possible).all(), (seed, mode)
        assert (possible | ~found.seen).all(), (seed, mode)
        assert not found.undecided.any(), (seed, mode)
        check_examples(facts, found, known)
        tried += 1
    return tried


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_everybody_in_a_small_report_is_decided_as_enumeration_says(mode, block):
    assert check_reports(range(block * _EACH, (block + 1) * _EACH), mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_everybody_in_many_small_reports_is_decided_as_enumeration_says(mode):
    assert check_reports(range(1000, 1240), mode) >= 200


def draw_facts(seed):
    """Facts with clauses that are true of some groups of few people, and these groups."""
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(3, 7)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    groups, members = rng.integers(0, k, n), rng.random((n, m)) < 0.5
    counts = members.T.astype(int) @ np.eye(k, dtype=int)[groups]
    wide = rng.integers(0, 3, (2, m, k))
    rows = int(rng.integers(1, 6))
    shape = rows, int(rng.integers(1, 5))
    sets, group, factors = (rng.integers(*ends, shape) for ends in ((0, m), (0, k), (-3, 4)))
    clause = np.sort(rng.integers(0, rows, rows))
    clause = np.unique(clause, return_inverse=True)[1]
    sums = (factors * counts[sets, group]).sum(axis=1)
    # One row of each clause holds; others may not.
    first = np.diff(clause, prepend=-1) > 0
    most = sums + np.where(first, rng.integers(0, 2, rows), rng.integers(-3, 2, rows))
    clauses = Clauses.of(sets, group, factors, most, clause)
    tables = [(np.where(column, 0, -1), 1) for column in members.T]
    ends = counts - wide[0], counts + wide[1]
    return members, ends, clauses, Facts.from_tables(tables, *ends, clauses=clauses), groups, k


def allow_vectors(members, ends, clauses, vectors, k):
    """(V,) which vectors of groups satisfy ranges and clauses."""
    allowed = []
    for vector in vectors:
        counts = members.T.astype(int) @ np.eye(k, dtype=int)[vector]
        held = clauses.add_up(counts) <= clauses.most
        each = [held[clauses.clause == c].any() for c in range(len(clauses))]
        allowed.append(bool((counts >= ends[0]).all() and (counts <= ends[1]).all() and all(each)))
    return np.array(allowed)


@pytest.mark.parametrize("block", range(4))
def test_ranges_and_clauses_of_any_kind_are_decided_as_enumeration_says(block):
    for seed in range(8 * block, 8 * block + 8):
        members, ends, clauses, facts, groups, k = draw_facts(seed)
        vectors = list_vectors(k, len(groups))
        left = vectors[allow_vectors(members, ends, clauses, vectors, k)]
        possible = np.stack([(left == group).any(axis=0) for group in range(k)], axis=1)
        everything = np.ones(possible.shape, np.bool_)
        found = find_worlds(facts, everything, groups, time.perf_counter() + 600)
        assert (found.possible.sum(axis=1) == 1).tolist() == (possible.sum(axis=1) == 1).tolist()
        assert (possible | ~found.seen).all() and (found.possible | ~possible).all()
        assert not found.undecided.any()


@pytest.mark.parametrize("seed", range(12))
def test_facts_allow_the_same_groups_however_they_are_put_together(seed):
    members, ends, clauses, facts, groups, k = draw_facts(seed)
    n = len(groups)
    vectors = list_vectors(k, n)
    own = [facts.allows(vector) for vector in vectors]
    assert own == allow_vectors(members, ends, clauses, vectors, k).tolist()
    half = np.arange(len(facts)) % 2 == 0
    joined = Facts.join([facts.take(half), facts, facts.take(~half)])
    assert [joined.allows(vector) for vector in vectors] == own
    wide = facts.over(np.arange(n) + 1, n + 2)
    assert [wide.allows(np.concatenate([[0], v, [1]])) for v in vectors] == own
    known = np.ones((n, k), np.bool_)
    known[0] = np.arange(k) == groups[0]
    rest, people = facts.remove_people(known)
    kept = vectors[vectors[:, 0] == groups[0]]
    assert [rest.allows(v[people]) for v in kept] == [facts.allows(v) for v in kept]


def test_no_world_for_unknown_groups_is_a_contradiction():
    """Of two people, some group has fewer than none."""
    nobody = Clauses.of(0, [[0], [1]], [[1]], [-1, -1], [0, 0])
    facts = Facts.from_tables([(np.zeros(2, np.int64), 1)], [[0, 0]], [[2, 2]], clauses=nobody)
    with pytest.raises(ContradictionError, match="set 0"):
        find_worlds(facts, np.ones((2, 2), np.bool_), None, time.perf_counter() + 60)


@pytest.mark.parametrize(
    ("order", "k", "wide"), [(1, 2, 0), (2, 2, 0), (1, 3, 0), (2, 3, 0), (2, 2, 1), (2, 3, 2)]
)
def test_a_first_world_is_near_a_fractional_one(monkeypatch, order, k, wide):
    """Of crossed columns, without an integer program."""
    monkeypatch.setattr(world_swaps, "_LIST", 1 << 12)
    monkeypatch.setattr(world_walks, "_WALKS", 16)
    facts, _ = draw_tables(5, 300, np.array([4, 5, 6]), order, k, wide)
    program = WorldProgram.of(facts, np.ones((300, k), np.bool_))[0]
    world = program._round(time.perf_counter() + 600)
    assert program.allows(world)


def test_without_time_nobody_is_decided():
    *_, facts, groups, k = draw_facts(0)
    everything = np.ones((len(groups), k), np.bool_)
    found = find_worlds(facts, everything, groups, time.perf_counter())
    assert found.undecided.all() and found.possible.all()
