"""Tables of sets hold the same people as a matrix of members does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.claims import Facts, set_tables


@st.composite
def tables(draw):
    """Codes (T, n) of tables with four sets each, many of which nobody is in."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, many = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    codes = rng.integers(0, 4, (many, n))
    codes[rng.random((many, n)) < rng.choice([0, 0.5, 0.9], (many, 1))] = -1
    return codes


@given(tables())
def test_tables_hold_the_members_that_a_matrix_holds(codes):
    members = np.concatenate([row == np.arange(4)[:, None] for row in codes]).T
    names = [str(number) for number in range(members.shape[1])]
    low, high = np.zeros((members.shape[1], 2)), np.full((members.shape[1], 2), np.inf)
    one = Facts.from_tables([(row, 4) for row in codes], low, high, names=names)
    other = Facts.from_counts(members, low, high, names=names)
    assert [one.name(m) for m in range(len(one))] == [other.name(m) for m in range(len(other))]
    assert (one.sets.toarray() == other.sets.toarray()).all()
    assert (one.sets.toarray() == members.T[one.origin]).all()
    assert (one.membership.toarray() == one.sets.toarray().T).all()
    assert (one.sizes == members.sum(axis=0)[one.origin]).all()


@given(tables(), st.integers(0, 2**32))
def test_sums_parts_and_fewer_people_are_those_of_the_matrix(codes, seed):
    facts = Facts.from_tables([(row, 4) for row in codes], np.zeros((4 * len(codes), 2)), np.full((4 * len(codes), 2), np.inf))  # fmt: skip
    rng, matrix = np.random.default_rng(seed), facts.sets.toarray().astype(int)
    whole, real = rng.integers(-9, 9, (facts.people, 3)), rng.normal(size=facts.people)
    assert (facts.count(whole) == matrix @ whole).all()
    assert facts.count(whole).dtype == np.int64
    large = rng.integers(-(2**62), 2**62, facts.people)
    exact = matrix.astype(object) @ large.astype(object)  # in Python's numbers, of any size
    assert [int(total) % 2**64 for total in facts.count(large)] == [t % 2**64 for t in exact]
    assert np.allclose(facts.count(real), matrix @ real)
    which = rng.random(len(facts)) < 0.5
    assert (facts.take(which).sets.toarray() == matrix[which]).all()
    place = rng.permutation(facts.people + 7)[: facts.people]
    among = facts.over(place, facts.people + 7).sets.toarray()
    assert (among[:, place] == matrix).all()
    assert among.sum() == matrix.sum()
    people = np.flatnonzero(rng.random(facts.people) < 0.5)
    for table in facts.tables:
        left = table.take_people(people, facts.people)
        weights = rng.normal(size=len(people))
        assert np.allclose(left.add_up(weights), matrix[table.numbers][:, people] @ weights)


@pytest.mark.parametrize("derived", [[True, False], [False, True]])
def test_a_published_set_stays_where_it_follows_from_others_too(derived):
    members = np.ones((3, 2), bool)
    facts = Facts.from_counts(members, [[1, 2], [1, 2]], derived=derived, names=["one", "two"])
    assert facts.derived.tolist() == [False]
    assert facts.name(0) == ("two" if derived[0] else "one")


def test_a_table_of_few_people_stores_only_them():
    member = np.full(1000, -1)
    member[:10] = 0
    table = set_tables.SetTable.of(member, np.array([0]))
    assert len(table.member) == 10
    assert table.member.dtype == np.int8
    assert set_tables.SetTable.of(np.arange(1000), np.arange(1000)).member.dtype == np.int16


def test_bad_tables_are_refused():
    with pytest.raises(InputError, match="members must be 0 or 1, or true or false"):
        Facts.from_counts([[0.5], [1]], [[1, 1]])
    assert Facts.from_counts(np.ones((2, 1)), [[1, 1]]).sizes.tolist() == [2]
    with pytest.raises(InputError, match="table 1: codes must be 3 whole numbers"):
        Facts.from_tables([(np.zeros(3, int), 1), (np.zeros(2, int), 1)], np.zeros((2, 2)))
    with pytest.raises(InputError, match="table 0: codes must be -1 to 1, not 0 to 2"):
        Facts.from_tables([(np.arange(3), 2)], np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"low and high must be \(3, K\)"):
        Facts.from_tables([(np.arange(3), 3)], np.zeros((2, 2)))
