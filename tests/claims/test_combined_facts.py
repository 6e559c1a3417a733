"""Reports about overlapping people: what they tell together, against all assignments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.claims import ContradictionError, Facts, combine_facts
from fpbench.claims.combined_facts import CombinedFacts
from fpbench.correction import propagate, prove


def count_cells(codes, truth, people, least=0, cells=3, slack=0):
    """Facts about cells of at least so many of some people, by codes (T, n); ranges, by slack."""
    members = np.concatenate([row[people] == np.arange(cells)[:, None] for row in codes]).T
    members = members[:, members.sum(axis=0) >= least]
    ones = members.T.astype(int) @ truth[people]
    counts = np.stack([members.sum(axis=0) - ones, ones], axis=1)
    return Facts.from_counts(members, counts - slack, counts + slack)


@st.composite
def series(draw):
    """Codes, truth, and the people of two or three reports."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(3, 9))
    codes, truth = rng.integers(0, 3, (2, n)), rng.integers(0, 2, n)
    reports = [
        np.flatnonzero(rng.random(n) < draw(st.sampled_from([0.6, 0.9])))
        for _ in range(draw(st.integers(2, 3)))
    ]
    return codes, truth, [rng.permutation(people) for people in reports if len(people)]


@pytest.mark.slow
@given(series(), st.integers(0, 3), st.integers(0, 1))
def test_combined_facts_are_true_and_rule_out_nothing_that_may_be(drawn, least, slack):
    codes, truth, people = drawn
    if not people:
        return
    facts, ids = combine_facts(
        [(count_cells(codes, truth, own, least, slack=slack), own) for own in people]
    )
    assert set(ids.tolist()) == set(np.concatenate(people).tolist())
    counts = facts.count(np.eye(2, dtype=int)[truth[ids]])
    assert ((counts >= facts.low) & (counts <= facts.high)).all()
    possible = np.zeros((len(ids), 2), bool)
    for assignment in product(range(2), repeat=len(ids)):
        ones = np.eye(2, dtype=int)[list(assignment)]
        told = facts.count(ones)[~facts.derived]
        if ((told >= facts.low[~facts.derived]) & (told <= facts.high[~facts.derived])).all():
            assert (facts.count(ones) == np.clip(facts.count(ones), facts.low, facts.high)).all()
            possible |= ones.astype(bool)
    assert (propagate(facts) >= possible).all()


def test_whoever_leaves_is_named_by_two_reports():
    rng = np.random.default_rng(0)
    codes, truth = rng.integers(0, 3, (2, 300)), rng.integers(0, 2, 300)
    everybody, staying = np.arange(300), np.delete(np.arange(300), 17)
    first, second = (count_cells(codes, truth, own, 10) for own in (everybody, staying))
    assert propagate(first).all()
    combined = combine_facts([(first, everybody), (second, staying)], names=["May", "June"])
    assert isinstance(combined, CombinedFacts)
    possible = propagate(combined.facts)
    assert possible[17].tolist() == [truth[17] == 0, truth[17] == 1]
    assert possible[staying].all()
    told = {combined.facts.name(m) for m in range(len(combined.facts)) if combined.facts.derived[m]}
    assert f"[May: set {codes[0, 17]}] less [June: set {codes[0, 17]}]" in told


def test_people_who_join_and_people_who_leave_are_told_apart():
    codes, truth = np.array([[0, 0, 0, 0, 1, 1, 1, 1]]), np.array([0, 1, 1, 0, 1, 0, 0, 1])
    # The first person leaves, the last one joins: different cells.
    people = [np.arange(7), np.arange(1, 8)]
    facts, ids = combine_facts([(count_cells(codes, truth, own), own) for own in people])
    possible = propagate(facts)
    for person in (0, 7):
        assert possible[ids == person].tolist() == [[truth[person] == 0, truth[person] == 1]]
    assert (prove(facts, seconds=600) == possible).all()


def test_a_report_that_has_a_set_with_and_without_who_left_names_them_itself():
    members = np.array([[1, 1], [1, 1], [0, 0], [0, 0], [0, 1]], bool)
    first = Facts.from_counts(members, [[1, 1], [1, 2]], names=["stay", "all"])
    second = Facts.from_counts(np.array([[0], [0], [1], [1]], bool), [[1, 1]])
    facts, ids = combine_facts([(first, range(5)), (second, range(4))], names=["May", "June"])
    assert propagate(facts)[ids == 4].tolist() == [[False, True]]
    (derived,) = np.flatnonzero(facts.derived)
    assert facts.name(derived) == "[May: all] less [May: stay]"


def test_reports_that_contradict_each_other_are_named():
    members = np.ones((4, 1), bool)
    one, other = (Facts.from_counts(members, [[4 - c, c]], names=["all"]) for c in (1, 2))
    with pytest.raises(ContradictionError) as raised:
        combine_facts([(one, list("abcd")), (other, list("dcba"))])
    assert set(raised.value.names) == {"report 0: all", "report 1: all"}


def test_bad_reports_are_refused():
    facts = Facts.from_counts(np.ones((2, 1), bool), [[1, 1]])
    three = Facts.from_counts(np.ones((2, 1), bool), [[1, 1, 0]])
    for reports, words in (
        ([], "no report"),
        ([(facts, [1])], "report 0: ids must be 2, one a person"),
        ([(facts, [1, 1])], "report 0: the id 1 occurs twice"),
        ([(facts, [1, 2]), (three, [1, 2])], "report 1 is about 3 groups, and report 0 about 2"),
        ([(facts, [1, 2]), (facts, ["1", "2"])], "ids are of different types: int, str"),
    ):
        with pytest.raises(InputError, match=words):
            combine_facts(reports)
    with pytest.raises(InputError, match="names must be 2, one a report, not 1"):
        combine_facts([(facts, [1, 2])] * 2, names=["May"])
    for rows in ([0, 0], [0, 3], [0], [0.5, 1]):
        with pytest.raises(InputError, match="rows must be 2 different ones of 0 to 2"):
            facts.over(rows, 3)
