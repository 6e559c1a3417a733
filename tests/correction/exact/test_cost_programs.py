from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import oracles
import pytest
from instances import WEIGHTS, draw

import fpbench.correction.exact.lattice
from fpbench import Problem
from fpbench.claims import RateConstraint, ShareBounds
from fpbench.correction import CountedProblem
from fpbench.correction.exact.cost_programs import (
    CountProgram,
    LinkedPrograms,
    insert_ends,
    make_tangent_pieces,
    spread_evenly,
)

FOREVER = np.inf


def soon(seconds=60.0):
    return time.perf_counter() + seconds


@pytest.mark.parametrize("kind", [kind for kind in WEIGHTS if kind != "none"])
def test_tangents_lie_below_the_cost_and_meet_it_at_the_ends(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(40):
        count = int(rng.integers(1, 40))
        weights = np.sort(WEIGHTS[kind](rng, count))
        costs = np.concatenate([[0.0], np.cumsum(weights)])
        inside = rng.integers(0, count + 1, rng.integers(0, 5))
        ends = np.unique(np.concatenate([[0, count], inside]))
        lengths, slopes = make_tangent_pieces(ends, costs, weights)
        assert (lengths > 0).all()
        assert lengths.sum() == pytest.approx(count)
        assert (np.diff(slopes) >= 0).all()
        corners = np.concatenate([[0.0], np.cumsum(lengths)])
        below = np.concatenate([[0.0], np.cumsum(lengths * slopes)])
        slack = 1e-9 * costs[-1]
        for m in range(count + 1):
            assert np.interp(m, corners, below) <= costs[m] + slack
        np.testing.assert_allclose(np.interp(ends, corners, below), costs[ends], atol=slack)


def test_ends_next_to_each_other_are_the_cost_itself():
    weights = np.array([1.0, 2.0, 2.0, 7.0])
    lengths, slopes = make_tangent_pieces(np.arange(5), np.array([0.0, 1, 3, 5, 12]), weights)
    np.testing.assert_allclose(lengths, 1.0)
    np.testing.assert_allclose(slopes, weights)


def test_even_and_merged_ends():
    assert spread_evenly(0, 100, 4).tolist() == [0, 25, 50, 75, 100]
    assert spread_evenly(3, 5, 32).tolist() == [3, 4, 5]
    assert spread_evenly(0, 0, 4).tolist() == [0]
    assert insert_ends(np.array([2, 9]), np.array([-1, 5, 3, 9, 12])).tolist() == [2, 3, 5, 9]


def of_rows(rng, n, k, count=1) -> Problem:
    """A problem whose claims are linear rows: those are all that programs know of."""
    kinds = rng.choice(["rate", "share", "bounds", "known"], count)
    problem = draw(rng, n, k, kinds, forms=["to-overall"])
    return problem if CountedProblem(problem).known is not None else of_rows(rng, n, k, count)


def test_programs_find_the_least_cost_of_rows():
    rng = np.random.default_rng(1)
    found_some = set()
    for _ in range(80):
        k = int(rng.integers(2, 5))
        problem = of_rows(rng, int(rng.integers(1, {2: 8, 3: 7, 4: 6}[k])), k, 2)
        tally = CountedProblem(problem)
        found = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        least = oracles.brute_force(problem)
        assert found.proven
        if found.counts is None:
            assert least is None
            assert found.bound == np.inf
            continue
        found_some.add(tally.holds(found.counts))
        if tally.holds(found.counts):
            assert tally.cost(found.counts) == pytest.approx(least, rel=2e-9, abs=0)
        bound = tally.base + found.bound
        assert least is None or bound <= least * (1 + 2e-9)
    assert True in found_some


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_lattice_and_integer_program_agree(tolerance, monkeypatch):
    rng = np.random.default_rng([2, int(100 * tolerance)])
    for n, k in ((60, 2), (200, 3), (200, 4), (1000, 3)):
        problem = draw(rng, n, k, ["rate"], forms=["to-overall"], weights="random")
        claim = RateConstraint(problem.constraints[0].metric, tolerance)
        tally = CountedProblem(replace(problem, constraints=(claim,)))
        by_lattice = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        with monkeypatch.context() as patch:
            patch.setattr(CountProgram, "_solve_lattice", lambda *_: None)
            by_integers = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        assert (by_lattice.counts is None) == (by_integers.counts is None)
        if by_lattice.counts is not None:
            assert by_lattice.proven and by_integers.proven
            assert by_lattice.bound == pytest.approx(by_integers.bound, rel=2e-9)
            cost = tally.cost(by_integers.counts)
            assert cost == pytest.approx(tally.cost(by_lattice.counts), rel=2e-9)


def test_a_lattice_search_that_is_given_up_is_followed_by_an_integer_program(monkeypatch):
    rng = np.random.default_rng(3)
    asked = []
    integers = CountProgram._solve_integers

    def counted(self, *arguments):
        asked.append(self)
        return integers(self, *arguments)

    monkeypatch.setattr(CountProgram, "_solve_integers", counted)
    given_up = 0
    for _ in range(8):
        problem = draw(rng, 40, 3, ["rate"], forms=["to-overall"], weights="random")
        tally = CountedProblem(problem)
        wanted = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        assert not asked
        with monkeypatch.context() as patch:
            patch.setattr(fpbench.correction.exact.lattice, "MOST", 0)
            found = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        assert found.proven
        assert (found.counts is None) == (wanted.counts is None)
        assert found.bound == pytest.approx(wanted.bound, rel=2e-9)
        given_up += bool(asked)
        asked.clear()
    assert given_up >= 4


LINKED = {
    "share and equalized odds": ("equalized-odds", ShareBounds(0, 0.4, 0.6)),
    "share and equal opportunity": ("equal-opportunity", ShareBounds(1, 0.25, 0.45)),
    "share and predictive equality": ("predictive-equality", ShareBounds(0, 0.0, 0.25)),
}


@pytest.mark.parametrize(("metric", "share"), LINKED.values(), ids=LINKED)
@pytest.mark.parametrize("k", [2, 3])
def test_rows_that_link_parts_are_solved_together(metric, share, k):
    rng = np.random.default_rng([k, len(metric)])
    solved = 0
    for _ in range(8):
        problem = draw(rng, 7 if k == 3 else 9, k, [], weights="random")
        problem = replace(problem, constraints=(RateConstraint(metric, 0.2), share))
        tally = CountedProblem(problem)
        found = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        least = oracles.brute_force(problem)
        if found.counts is None:
            assert least is None
        elif tally.holds(found.counts):
            solved += 1
            assert tally.cost(found.counts) == pytest.approx(least, rel=2e-9, abs=0)
        else:  # a group without anybody, where no row says so
            assert least is None or found.bound <= least
    assert solved


def test_parts_that_nothing_links_are_solved_apart(monkeypatch):
    rng = np.random.default_rng(5)
    problem = replace(draw(rng, 60, 3, [], weights="random"), constraints=(
        RateConstraint("predictive-equality", 0.1), RateConstraint("equal-opportunity", 0.1),
    ))  # fmt: skip
    solved = []
    original = CountProgram.solve

    def watched(self, conditions):
        solved.append(len(self._sizes))
        return original(self, conditions)

    monkeypatch.setattr(CountProgram, "solve", watched)
    tally = CountedProblem(problem)
    programs = LinkedPrograms(tally, FOREVER)
    both = programs.solve(tally.conditions)
    assert solved == [2, 2]
    programs.solve(tally.conditions)
    assert solved == [2, 2], "what was solved before is remembered"
    one = [
        LinkedPrograms(tally, FOREVER).solve(c.conditions(tally.classes))
        for c in problem.constraints
    ]
    assert both.bound == pytest.approx(sum(part.bound for part in one))


def test_without_time_nothing_is_proven_and_the_bound_is_true(monkeypatch):
    monkeypatch.setattr(CountProgram, "_solve_lattice", lambda *_: None)
    rng = np.random.default_rng(6)
    for seconds in (-1.0, 1e-6, 0.01):
        problem = draw(rng, 400, 4, ["rate"], forms=["to-overall"], weights="random")
        problem = replace(problem, constraints=(RateConstraint(tolerance=0.01),))
        tally = CountedProblem(problem)
        best = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        found = LinkedPrograms(tally, soon(seconds)).solve(tally.conditions)
        assert found.bound <= best.bound * (1 + 2e-9)
        if seconds < 0:
            assert not found.proven
            assert found.counts is None
        relaxed, bound = LinkedPrograms(tally, soon(seconds)).relax(tally.conditions)
        assert bound <= best.bound * (1 + 2e-9)
        np.testing.assert_allclose(relaxed.sum(axis=1), tally.classes.sizes)


@pytest.mark.slow
def test_the_linear_program_is_a_bound():
    rng = np.random.default_rng(7)
    impossible = 0
    for _ in range(60):
        k = int(rng.integers(2, 4))
        problem = of_rows(rng, int(rng.integers(2, 8)), k)
        tally = CountedProblem(problem)
        _, bound = LinkedPrograms(tally, FOREVER).relax(tally.conditions)
        least = oracles.brute_force(problem)
        assert least is None or tally.base + bound <= least * (1 + 2e-9)
        impossible += bound == np.inf
    assert impossible


def test_everyone_predicted_alike_is_no_trouble():
    """Rows over such a part lack some of its classes."""
    for predictions in (np.zeros(6, int), np.ones(6, int), np.array([0, 0, 0, 1, 1, 1])):
        labels = np.array([0, 0, 0, 1, 1, 1])
        problem = Problem(np.array([0, 0, 0, 0, 1, 1]), 2, predictions, labels, (
            RateConstraint("equalized-odds"), ShareBounds(0, 0.5, 0.5)
        ))  # fmt: skip
        tally = CountedProblem(problem)
        found = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        assert tally.cost(found.counts) == oracles.brute_force(problem) == 1.0


def stop_early(monkeypatch):
    """Integer programs are stopped by their time limit: with counts, and half of the bound."""
    model = CountProgram._optimise

    def stopped(self, conditions, whole, time_limit):
        answer = model(self, conditions, whole, time_limit)
        if not whole or answer is None:
            return answer
        return answer._replace(bound=answer.bound / 2, proven=False)

    monkeypatch.setattr(CountProgram, "_optimise", stopped)
    monkeypatch.setattr(CountProgram, "_solve_lattice", lambda *_: None)


def test_an_integer_program_that_is_stopped_is_not_proven(monkeypatch):
    """HiGHS has counts then, which may be the best or not: it has not said so."""
    rng = np.random.default_rng(8)
    wanted = []
    for _ in range(12):
        tally = CountedProblem(draw(rng, 40, 3, ["rate"], forms=["to-overall"], weights="random"))
        best = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        if best.counts is not None and best.bound > 0:
            wanted.append((tally, best))
    assert len(wanted) >= 5
    stop_early(monkeypatch)
    for tally, best in wanted:
        found = LinkedPrograms(tally, FOREVER).solve(tally.conditions)
        assert found.counts is not None
        assert not found.proven
        assert found.bound <= best.bound * (1 + 2e-9)


def test_what_was_not_proven_is_solved_again(monkeypatch):
    rng = np.random.default_rng(8)
    proven = []
    for _ in range(6):
        tally = CountedProblem(draw(rng, 40, 3, ["rate"], forms=["to-overall"], weights="random"))
        programs = LinkedPrograms(tally, FOREVER)
        with monkeypatch.context() as patch:
            stop_early(patch)
            if programs.solve(tally.conditions).proven:
                continue
        proven.append(programs.solve(tally.conditions).proven)
    assert len(proven) >= 2
    assert all(proven)
