"""The likeliest groups of all people together, against all vectors of groups."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.claims import Facts
from fpbench.claims.count_laws import LAWS, CountLaws
from fpbench.correction import find_likeliest_groups, prove

KEYS = LAWS.index("cell-key-1")


@st.composite
def small_worlds(draw):
    """Facts with exact and noisy counts of overlapping sets, and beliefs, of few people."""
    k = draw(st.sampled_from([2, 2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = int(rng.integers(1, 9 if k == 2 else 6)), int(rng.integers(1, 6))
    truth, members = rng.integers(0, k, n), rng.random((n, m)) < 0.6
    counts = np.stack([members[truth == g].sum(axis=0) for g in range(k)], axis=1).astype(float)
    kind = rng.choice([*range(4), KEYS], m, p=[0.2, 0.3, 0.3, 0.1, 0.1])  # exact, noises, rounding
    width = rng.uniform(0.2, 3, m)
    width[kind == 0], width[kind == 3], width[kind == KEYS] = 0, 2, 0.4
    noise = rng.normal(size=(m, k)) * np.isin(kind, (1, 2))[:, None] * width[:, None]
    low, rounded = counts + noise, np.full((m, k), np.nan)
    high = low.copy()
    untold = (rng.random((m, k)) < 0.4) & np.isin(kind, (1, 2))[:, None]
    low[untold], high[untold] = -np.inf, np.inf
    up = kind == 3
    rounded[up] = (
        np.where(rng.random((up.sum(), k)) < 0.5, counts[up] // 2, -(-counts[up] // 2)) * 2
    )
    keyed = kind == KEYS
    rounded[keyed] = np.where(counts[keyed] > 0, counts[keyed] + rng.integers(-1, 2, k), 0)
    low[up | keyed], high[up | keyed] = rounded[up | keyed] - 1, rounded[up | keyed] + 1
    laws = CountLaws(kind.astype(np.int8), width, rounded)
    facts = Facts.from_counts(members, low, high, laws=laws)
    beliefs = draw(st.sampled_from([None, rng.dirichlet(np.ones(k), n)]))
    return facts, beliefs


def weigh_all(facts, beliefs):
    """The likelihood of each vector of groups that facts allow, by its definition."""
    k, n = facts.groups, facts.people
    prior = np.full((n, k), 1 / k) if beliefs is None else np.maximum(beliefs, 1e-9)
    found = {}
    for groups in product(range(k), repeat=n):
        own = np.array(groups)
        if facts.allows(own):
            counts = facts.count(own[:, None] == np.arange(k))
            weights = [
                facts.weigh(i, counts[[i]])[0]
                for i in range(len(facts))
                if facts.laws.kind[i] and not facts.derived[i]
            ]
            found[groups] = np.log(prior[np.arange(n), own]).sum() + sum(weights)
    return found


@given(small_worlds())
def test_no_vector_of_groups_is_likelier(world):
    facts, beliefs = world
    found, every = find_likeliest_groups(facts, beliefs), weigh_all(facts.settle_noise(), beliefs)
    best = max(every.values(), default=-np.inf)
    assert found.proven
    if best == -np.inf:
        return
    assert found.log_likelihood == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert every[tuple(found.groups.tolist())] == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_without_noise_they_are_what_exact_counts_prove():
    rng = np.random.default_rng(1)
    truth, members = rng.integers(0, 2, 40), rng.random((40, 60)) < 0.2
    counts = np.stack([members[truth == g].sum(axis=0) for g in (0, 1)], axis=1).astype(float)
    proven = prove(Facts.from_counts(members, counts), seconds=600)
    sure = proven.sum(axis=1) == 1
    assert sure.sum() > 20
    for scale in (0.0, 1e-12, 1e-3):
        noisy = counts + scale * rng.laplace(size=counts.shape)
        found = find_likeliest_groups(Facts.from_counts(members, noisy, scale=scale))
        assert found.proven
        assert (found.groups[sure] == proven[sure].argmax(axis=1)).all()


def test_people_without_facts_have_their_likeliest_group():
    beliefs = np.array([[0.2, 0.8], [0.9, 0.1]])
    nothing = Facts.from_counts(np.zeros((2, 0), bool), np.zeros((0, 2)))
    assert find_likeliest_groups(nothing, beliefs).groups.tolist() == [1, 0]


def test_contradictions_have_no_likeliest_groups():
    members = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    odd = Facts.from_counts(members, np.ones((3, 2)))  # each two of three differ
    found = find_likeliest_groups(odd)
    assert found.groups is None
    assert found.proven


def test_no_time_is_said():
    rng = np.random.default_rng(0)
    members = rng.random((60, 40)) < 0.5
    facts = Facts.from_counts(members, rng.uniform(0, 30, (40, 2)), scale=1.0)
    found = find_likeliest_groups(facts, rng.dirichlet([1, 1], 60), seconds=0.0)
    assert not found.proven


def test_bad_input_is_refused():
    facts = Facts.from_counts(np.ones((2, 1), bool), [[1.0, 1.0]], scale=1.0)
    with pytest.raises(InputError, match=r"beliefs must be \(2, 2\)"):
        find_likeliest_groups(facts, np.full((3, 2), 0.5))
    law = np.array([LAWS.index("exponential-root")], np.int8)
    laws = CountLaws(law, np.array([0.3]), np.full((1, 2), np.nan))
    rooted = Facts.from_counts(np.ones((9, 1), bool), [[4.0, 5.0]], laws=laws)
    with pytest.raises(InputError, match="not concave"):
        find_likeliest_groups(rooted)


def test_nobody_has_no_groups():
    nobody = Facts.from_counts(np.zeros((0, 0), bool), np.zeros((0, 2)))
    assert find_likeliest_groups(nobody).groups.shape == (0,)
