"""Proofs against all assignments of groups: nothing is ruled out that may be."""

import math
import sys
import time
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench.correction
from fpbench import InputError
from fpbench.claims import ContradictionError, Facts
from fpbench.correction import explain_proof, propagate
from fpbench.correction.facts import interior_point, linear_programs
from fpbench.correction.facts.propagation import NEVER, rule_out, trace_ruled_out

# On a busy machine the process that solves programs may take longer to start than the usual limit.
prove = partial(fpbench.correction.prove, seconds=600)


def enumerate_possible(members, low, high, k):
    """(n, K) groups that people have in some assignment within the ends; None if there is none."""
    n = len(members)
    assignments = np.array(list(product(range(k), repeat=n)))
    ones = assignments[:, :, None] == np.arange(k)
    counts = np.einsum("ang,nm->amg", ones.astype(int), members.astype(int))
    fits = ((counts >= low) & (counts <= high)).all(axis=(1, 2))
    return ones[fits].any(axis=0) if fits.any() else None


@st.composite
def problems(draw, true=True):
    """Members (n, M), ends (M, K) of counts that are true of somebody, or of nobody perhaps."""
    k = draw(st.integers(2, 3))
    n = draw(st.integers(2, 8 if k == 2 else 6))
    m = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    members = rng.random((n, m)) < draw(st.sampled_from([0.3, 0.5, 0.8]))
    counts = np.stack([members[rng.integers(0, k, n) == g].sum(axis=0) for g in range(k)], axis=1)
    if true:
        truth = rng.integers(0, k, n)
        counts = np.stack([members[truth == g].sum(axis=0) for g in range(k)], axis=1)
    slack = rng.integers(0, 3, (2, m, k)) * (rng.random((m, 1)) < draw(st.sampled_from([0, 0.5])))
    if not true:
        counts += rng.integers(-1, 2, (m, k))
    return members, counts - slack[0], counts + slack[1], k


@pytest.fixture
def in_process(monkeypatch):
    """Programs are solved here: a process for each takes half a second to start."""

    def maximise(self, cost, matrix, low, high, most, deadline, *, corner=False):
        return interior_point._solve(
            {"cost": cost, "low": low, "high": high, "most": most, "corner": corner,
             "indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
        )  # fmt: skip

    monkeypatch.setattr(interior_point.LinearSolver, "maximise", maximise)


@given(problems())
def test_propagation_rules_out_nothing_that_may_be(problem):
    members, low, high, k = problem
    possible = propagate(Facts.from_counts(members, low, high))
    assert (possible >= enumerate_possible(members, low, high, k)).all()


@given(data=st.data())
def test_programs_rule_out_nothing_that_may_be_and_all_that_propagation_does(data):
    members, low, high, k = data.draw(problems())
    facts = Facts.from_counts(members, low, high)
    with pytest.MonkeyPatch.context() as patch:
        in_process.__wrapped__(patch)
        proven = prove(facts)
    assert (proven >= enumerate_possible(members, low, high, k)).all()
    assert (proven <= propagate(facts)).all()


@given(problems(true=False))
def test_facts_are_called_contradictory_only_if_nothing_satisfies_them(problem):
    members, low, high, k = problem
    try:
        propagate(Facts.from_counts(members, low, high, names="{}".format))
    except ContradictionError as error:
        named = [int(name) for name in error.names]
        assert enumerate_possible(members[:, named], low[named], high[named], k) is None


@given(data=st.data())
def test_programs_call_facts_contradictory_only_if_nothing_satisfies_them(data):
    members, low, high, k = data.draw(problems(true=False))
    with pytest.MonkeyPatch.context() as patch:
        in_process.__wrapped__(patch)
        try:
            prove(Facts.from_counts(members, low, high))
        except ContradictionError:
            assert enumerate_possible(members, low, high, k) is None


def test_cells_that_contradict_each_other_are_named_and_no_others():
    members = np.zeros((9, 6), bool)
    members[:6, 0], members[:3, 1], members[3:6, 2] = True, True, True
    members[6:, 3], members[5:8, 4], members[:, 5] = True, True, True
    ones = np.array([5, 1, 1, 2, 1, 6])  # 1 + 1 of 3 + 3 people are not 5
    ones[1], ones[2] = 0, 3
    counts = np.stack([members.sum(axis=0) - ones, ones], axis=1)
    with pytest.raises(ContradictionError) as raised:
        propagate(Facts.from_counts(members, counts, names=list("abcdef")))
    assert raised.value.names == ("a", "b")
    assert str(raised.value) == "these published cells contradict each other: a; b"


def test_counts_beyond_the_size_of_a_set_are_named():
    members = np.ones((3, 1), bool)
    with pytest.raises(ContradictionError, match=r"^this published cell .*: everybody$"):
        Facts.from_counts(members, [[1, 4]], names=["everybody"])
    with pytest.raises(ContradictionError, match="north"):
        Facts.from_counts(members, [[1, 1]], names=["north"])


def test_counts_of_some_groups_leave_the_others_the_rest():
    facts = Facts.from_counts(np.ones((9, 1), bool), [[2, 3, 0]], [[2, 4, 9]])
    assert (facts.low[0].tolist(), facts.high[0].tolist()) == ([2, 3, 3], [2, 4, 4])
    least = Facts.from_counts(np.ones((9, 1), bool), [[0, 0, 0]], [[2, 4, 5]])
    assert least.low[0].tolist() == [0, 2, 3]


def test_a_set_that_occurs_twice_is_one_set_with_what_both_say():
    members = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 0]], bool)
    facts = Facts.from_counts(
        members, [[0, 0], [1, 1], [0, 0]], [[2, 3], [3, 2], [1, 1]], names=list("xyz")
    )
    assert len(facts) == 2
    assert (facts.name(0), facts.name(1)) == ("x and y", "z")
    assert (facts.low[0].tolist(), facts.high[0].tolist()) == ([1, 1], [2, 2])
    with pytest.raises(ContradictionError) as raised:
        Facts.from_counts(
            members, [[1, 2], [2, 1], [0, 0]], [[1, 2], [2, 1], [1, 1]], names=list("xyz")
        )
    assert set(raised.value.names) == {"x", "y"}


def test_programs_prove_more_than_propagation_for_three_groups(in_process):
    """The ring below, with a third group that e may not belong to."""
    two = make_ring()
    ends = np.column_stack([two.low, np.zeros(len(two))])
    facts = Facts.from_counts(two.membership, ends)
    assert propagate(facts)[6].sum() == 2
    assert prove(facts)[6].tolist() == [True, False, False]


def test_programs_about_small_sets_only_prove_less(in_process):
    assert prove(make_ring(), largest=2).all()
    assert prove(make_ring(), largest=3).all()
    assert (prove(make_ring(), largest=4) == prove(make_ring())).all()


def test_noisy_counts_prove_nothing_and_contradict_nothing():
    members = np.ones((4, 2), bool)
    facts = Facts.from_counts(members, [[0, 9], [-2, 3]], scale=[1.0, 0.0], sigma=[0.0, 2.0])
    assert propagate(facts).all()
    assert prove(facts).all()


def make_ring():
    """Pairs a, b, c with a + b = b + c = a + c = 2: each has 1, so that e has 0 of a + e = 1."""
    members = np.zeros((7, 4), bool)
    a, b, c, e = [0, 1], [2, 3], [4, 5], [6]
    for number, people in enumerate((a + b, b + c, a + c, a + e)):
        members[people, number] = True
    ones = np.array([2, 2, 2, 1])
    counts = np.stack([members.sum(axis=0) - ones, ones], axis=1)
    return Facts.from_counts(members, counts)


def test_programs_prove_what_propagation_cannot():
    facts = make_ring()
    assert propagate(facts).all()
    possible = prove(facts)
    assert possible[6].tolist() == [True, False]
    assert possible[:6].all()


def test_programs_find_and_name_contradictions_that_propagation_does_not(in_process):
    # Of three pairs with 1 each, 3 people are of group 1 and not 4; the fifth set has no part in it.
    pairs = np.repeat(np.eye(4, dtype=bool), 2, axis=0)
    members = pairs @ np.array(
        [[1, 0, 1, 1, 0], [1, 1, 0, 1, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]], bool
    )
    ones = np.array([2, 2, 2, 4, 2])
    counts = np.stack([members.sum(axis=0) - ones, ones], axis=1)
    facts = Facts.from_counts(members, counts, names=list("abcde"))
    assert propagate(facts).all()
    with pytest.raises(ContradictionError) as raised:
        prove(facts)
    assert raised.value.names == ("a", "b", "c", "d")


def test_programs_end_in_time(tmp_path, monkeypatch):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o755)
    monkeypatch.setattr(interior_point.sys, "executable", str(slow))
    started = time.perf_counter()
    assert prove(make_ring(), seconds=0.3).all()
    assert time.perf_counter() - started < 10


def test_a_process_that_cannot_work_is_told(tmp_path, monkeypatch):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho No module named highspy >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(interior_point.sys, "executable", str(broken))
    with pytest.raises(RuntimeError, match="not solved: No module named highspy"):
        prove(make_ring())


TALKATIVE = """
import os, sys
os.write(1, b"Running HiGHS\\n" * 10_000)
sys.path.remove(os.path.dirname(__file__))
del sys.modules["highspy"]
import highspy
"""


@pytest.mark.slow
def test_what_a_solver_prints_is_no_answer(tmp_path, monkeypatch):
    # HiGHS 1.16 prints a banner that no option turns off: more of it than a pipe holds.
    (tmp_path / "highspy.py").write_text(TALKATIVE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert (prove(make_ring()).sum(axis=1) == 1).any()


@pytest.mark.slow
def test_a_slow_start_takes_no_time_from_the_first_groups(tmp_path, monkeypatch):
    """Of five groups, each has a fifth of the time that is left."""
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 6\nexec "{sys.executable}" "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(interior_point.sys, "executable", str(slow))
    ring = make_ring()
    wider = [np.pad(ends, ((0, 0), (0, 3))) for ends in (ring.low, ring.high)]
    facts = Facts.from_counts(ring.membership, *wider)
    started = time.perf_counter()
    proven = fpbench.correction.prove(facts, seconds=25)  # a fifth is less than the start
    assert (proven.sum(axis=1) == 1).any()
    assert time.perf_counter() - started < 26


@given(data=st.data())
def test_a_solver_that_lies_proves_nothing_wrong(data):
    members, low, high, k = data.draw(problems())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))

    def lie(self, cost, matrix, low, high, most, deadline):
        x = most * rng.integers(0, 2, len(most))
        duals = np.round(rng.normal(size=len(low))) * rng.integers(0, 2)
        return interior_point.Solution(x, duals)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interior_point.LinearSolver, "maximise", lie)
        proven = prove(Facts.from_counts(members, low, high))
    assert (proven >= enumerate_possible(members, low, high, k)).all()


def test_one_member_who_may_be_anybody_is_not_nobody(monkeypatch):
    """The solver says that nobody is a candidate but may be; the bound of 1 says that one may."""

    def say(self, cost, matrix, low, high, most, deadline):
        return interior_point.Solution(np.zeros(len(most)), np.ones(len(low)))

    monkeypatch.setattr(interior_point.LinearSolver, "maximise", say)
    assert prove(Facts.from_counts(np.ones((3, 1), bool), [[2, 1]])).all()


@given(st.data())
def test_a_bound_holds_whatever_the_multipliers_are(data):
    members, low, high, k = data.draw(problems())
    facts = Facts.from_counts(members, low, high)
    program, people = linear_programs.GroupProgram.of(facts, propagate(facts), 1)
    if not len(program.most):
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    cost = rng.integers(-1, 2, len(program.most)).astype(float)
    scale = data.draw(st.sampled_from([0.1, 1.0, 1e3, 1e7]))
    bound = program.bound(cost, scale * rng.normal(size=len(program.low)))
    n = len(members)
    for assignment in product(range(k), repeat=n):
        ones = np.array(assignment)[:, None] == np.arange(k)
        counts = members.T.astype(int) @ ones
        if ((counts >= low) & (counts <= high)).all():
            assert bound >= cost[program.pattern] @ ones[people, 1]


@given(data=st.data())
def test_a_proof_follows_from_the_sets_that_explain_it(data):
    members, low, high, k = data.draw(problems())
    facts = Facts.from_counts(members, low, high)
    person = data.draw(st.integers(0, facts.people - 1))
    with pytest.MonkeyPatch.context() as patch:
        in_process.__wrapped__(patch)
        possible = prove(facts)
        named = np.array(explain_proof(facts, person), int)
        assert (len(named) > 0) == (possible[person].sum() == 1)
        for number in range(len(named)):
            fewer = np.delete(named, number)
            assert not len(fewer) or propagate(facts.take(fewer))[person].sum() > 1
    if len(named):
        own = facts.origin[named]
        alone = enumerate_possible(members[:, own], facts.low[named], facts.high[named], k)
        assert (alone[person] == possible[person]).all()


def test_sets_that_become_the_same_explain_a_proof_together(in_process):
    """Of persons 1 and 4 all is known. Without person 1 sets 3 and 5 are the same people, and the
    range is that of set 5: two of 0, 2 and 5 are of group 0.
    """
    members = np.array(
        [
            [1, 0, 0, 1, 0, 1, 1], [0, 1, 1, 1, 1, 0, 1], [1, 0, 0, 1, 1, 1, 0],
            [1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 0, 1], [1, 0, 1, 1, 1, 1, 1],
        ],
        bool,
    )  # fmt: skip
    low = [[3, 1], [0, 0], [1, 3], [1, 1], [2, 2], [2, 0], [2, 3]]
    high = [[3, 1], [0, 2], [1, 3], [4, 3], [2, 2], [2, 2], [2, 3]]
    assert explain_proof(Facts.from_counts(members, low, high), 3) == (0, 5)


@given(problems())
def test_what_a_conclusion_is_traced_to_allows_it_again(problem):
    """And nobody of whom nothing was needed is looked at: a person's other sets are not named."""
    members, low, high, _ = problem
    facts = Facts.from_counts(members, low, high)
    rounds = np.empty((facts.people, facts.groups), np.int32)
    possible, reasons = rule_out(facts, None, rounds)
    assert ((rounds < NEVER) == ~possible).all()
    for person, group in np.argwhere(~possible):
        asked = np.zeros(possible.shape, bool)
        asked[person, group] = True
        sets = trace_ruled_out(facts, reasons, rounds, asked)
        assert not propagate(facts.take(sets))[person, group]
        first = rounds == 0
        assert not first[person, group] or sets.sum() == 1


def test_a_proof_by_programs_is_explained(in_process):
    """A ring, and a person with a set of their own who has no part in it."""
    ring = make_ring().membership.toarray()
    members = np.zeros((8, 5), bool)
    members[:7, :4], members[7, 4] = ring, True
    facts = Facts.from_counts(members, np.vstack([make_ring().low, [[1, 0]]]))
    assert explain_proof(facts, 6) == (0, 1, 2, 3)
    assert explain_proof(facts, 7) == (4,)
    assert explain_proof(facts, 0) == ()


def test_derived_facts_explain_nothing(in_process):
    """Of 4 people 2 are known by one table, so that the rest of the first set follows."""
    members = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1]], bool)
    counts = [[1, 3], [1, 1], [0, 2]]
    facts = Facts.from_counts(members, counts, derived=[False, False, True])
    assert propagate(facts)[2].tolist() == [False, True]
    assert explain_proof(facts, 2) == (0, 1)


def test_the_search_for_an_explanation_ends():
    assert explain_proof(make_ring(), 6, seconds=0.0) == ()


@pytest.mark.slow
def test_a_limit_of_time_may_be_none_but_not_nonsense():
    ring = make_ring()
    assert (prove(ring, seconds=math.inf) == prove(ring)).all()
    assert explain_proof(ring, 6, seconds=math.inf) == explain_proof(ring, 6)
    for seconds in (math.nan, None, "1"):
        with pytest.raises(InputError, match="seconds must be a number, not"):
            prove(ring, seconds=seconds)
        with pytest.raises(InputError, match="seconds must be a number, not"):
            explain_proof(ring, 6, seconds=seconds)


def test_what_was_known_before_counts():
    members = np.ones((3, 1), bool)
    facts = Facts.from_counts(members, [[2, 1]])
    start = np.ones((3, 2), bool)
    start[0, 0] = False
    assert propagate(facts, start).tolist() == [[False, True], [True, False], [True, False]]
    with pytest.raises(InputError, match="person 1 is left no possible group"):
        propagate(facts, np.array([[1, 1], [0, 0], [1, 1]], bool))


def test_bad_facts_are_refused():
    with pytest.raises(InputError, match=r"low and high must be \(2, K\)"):
        Facts.from_counts(np.ones((3, 2), bool), [[1, 2]])
    with pytest.raises(InputError, match="noise must be at least 0"):
        Facts.from_counts(np.ones((3, 1), bool), [[1, 2]], sigma=-1.0)
    facts = Facts.from_counts(np.ones((3, 1), bool), [[1, 2]])
    with pytest.raises(InputError, match="rows are 0 to 2"):
        explain_proof(facts, 3)
