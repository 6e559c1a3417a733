"""Chosen queries about parity gaps: what exact answers give away, and what noise keeps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.auditing import (
    ParityCurator,
    RecoveredGroups,
    bound_gap_change,
    count_queries,
    recover_groups,
    recover_person,
)
from fpbench.base.errors import BudgetError
from fpbench.privacy import Ledger


@st.composite
def groups(draw):
    """Two groups of any sizes of at least 1."""
    bits = draw(st.lists(st.integers(0, 1), min_size=2, max_size=120))
    bits[draw(st.integers(0, len(bits) - 1))] ^= len(set(bits)) == 1
    return np.array(bits)


@given(groups())
def test_exact_answers_recover_everybody_with_the_stated_number_of_queries(truth):
    curator = ParityCurator(truth, queries=count_queries(len(truth)))
    recovered = recover_groups(curator)
    assert isinstance(recovered, RecoveredGroups)
    assert (recovered.groups == truth).all()
    assert recovered.queries == curator.answers <= count_queries(len(truth))


@given(groups(), st.data())
def test_one_exact_answer_recovers_a_person(truth, data):
    person = data.draw(st.integers(0, len(truth) - 1))
    assert recover_person(ParityCurator(truth, queries=1), person) == truth[person]


def test_fewer_answers_are_needed_than_there_are_people():
    truth = np.random.default_rng(0).integers(0, 2, 1024)
    recovered = recover_groups(ParityCurator(truth))
    assert (recovered.groups == truth).all()
    assert recovered.queries <= 256
    assert count_queries(5120) == 1024


def test_more_people_than_the_greatest_base_are_asked_about_in_parts(monkeypatch):
    monkeypatch.setattr("fpbench.auditing.parity_queries._MOST", 3)
    truth = np.random.default_rng(0).integers(0, 2, 40)
    recovered = recover_groups(ParityCurator(truth))
    assert (recovered.groups == truth).all()
    assert recovered.queries <= count_queries(40) == 8 * 4


def test_answers_end_with_the_budget():
    curator = ParityCurator([0, 1, 1], queries=2)
    curator.ask([1, 0, 0])
    curator.ask([0, 1, 0])
    with pytest.raises(BudgetError, match="all 2 answers are used up"):
        curator.ask([0, 0, 1])
    noisy = ParityCurator([0, 1, 1], noise="laplace", epsilon=0.5, ledger=Ledger(1.0), rng=0)
    noisy.ask([1, 0, 0])
    noisy.ask([1, 0, 0])
    with pytest.raises(BudgetError):
        noisy.ask([1, 0, 0])
    assert noisy.answers == 2


def measure_gap(codes, chosen):
    """The gap; a group of nobody has a rate of 0."""
    rates = [chosen[codes == g].mean() if (codes == g).any() else 0.0 for g in (1, 0)]
    return rates[0] - rates[1]


@given(st.integers(2, 9), st.integers(0, 2**32))
def test_no_person_moves_a_gap_farther_than_the_bounds(n, seed):
    rng = np.random.default_rng(seed)
    codes, chosen, person = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(n)
    other = codes.copy()
    other[person] ^= 1
    moved = abs(measure_gap(codes, chosen) - measure_gap(other, chosen))
    assert moved <= 1 + 1 / n + 1e-12
    for beta in (0.01, 0.3, 2.0):
        one, two = (bound_gap_change(int(c.sum()), n, beta) for c in (codes, other))
        assert moved <= min(one, two) + 1e-12
        assert one <= math.exp(beta) * two + 1e-12


@pytest.mark.parametrize("noise", ["laplace", "attribute-conceal"])
def test_noise_keeps_the_groups_within_its_guarantee(noise):
    """Of even groups, epsilon in all lets nobody name more than 1 / (1 + exp(-epsilon)) right."""
    right, people, queries, epsilon = [], 60, 20, 1.0
    for seed in range(30):
        truth = np.random.default_rng(seed).permutation(np.arange(people) % 2)
        curator = ParityCurator(truth, noise=noise, epsilon=epsilon / queries, rng=seed)
        recovered = recover_groups(curator, queries=queries, rng=seed)
        assert recovered.queries == queries
        right.append((recovered.groups == truth).mean())
    assert np.mean(right) < 1 / (1 + math.exp(-epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "attribute-conceal"])
def test_noise_is_as_wide_as_the_greatest_change_asks_for(noise):
    codes, epsilon, delta = np.arange(6) < 2, 0.7, 1e-3
    curator = ParityCurator(
        codes.astype(int), noise=noise, epsilon=epsilon, delta=delta, rng=np.random.default_rng(0)
    )
    chosen = np.arange(6) % 2
    off = [curator.ask(chosen) - measure_gap(codes.astype(int), chosen) for _ in range(4000)]
    width = (1 + 1 / 6) / epsilon
    if noise == "attribute-conceal":
        width = 2 * bound_gap_change(2, 6, epsilon / (2 * math.log(2 / delta))) / epsilon
    assert np.abs(off).mean() == pytest.approx(width, rel=0.06)  # 4 standard errors
    assert curator.guarantee.delta == (0 if noise == "laplace" else delta)


def test_little_noise_keeps_nothing():
    truth = np.random.default_rng(1).integers(0, 2, 60)
    curator = ParityCurator(truth, noise="attribute-conceal", epsilon=1e4, rng=0)
    assert (recover_groups(curator, queries=120, rng=0).groups == truth).mean() > 0.95


def test_attribute_conceal_answers_are_nearer_than_those_of_laplace():
    truth = np.arange(400) % 2
    chosen = (np.arange(400) < 100).astype(int)
    errors = {}
    for noise in ("laplace", "attribute-conceal"):
        curator = ParityCurator(truth, noise=noise, epsilon=1.0, rng=0)
        errors[noise] = np.mean([abs(curator.ask(chosen)) for _ in range(200)])
    assert errors["attribute-conceal"] < errors["laplace"] / 5


def test_bad_input_is_refused():
    for codes in ([0, 0], [0, 1, 2], [[0, 1]]):
        with pytest.raises(InputError, match="groups must be"):
            ParityCurator(codes)
    with pytest.raises(InputError, match="noise needs an epsilon"):
        ParityCurator([0, 1], noise="laplace")
    with pytest.raises(InputError, match="exact answers have no epsilon"):
        ParityCurator([0, 1], epsilon=1.0)
    for delta in (0.0, 1.0, -0.1):
        with pytest.raises(InputError, match="needs a delta above 0 and below 1, not"):
            ParityCurator([0, 1], noise="attribute-conceal", epsilon=1.0, delta=delta)
    with pytest.raises(InputError, match="queries must be at least 0"):
        ParityCurator([0, 1], queries=-1)
    with pytest.raises(InputError, match="predictions must be 2 numbers"):
        ParityCurator([0, 1]).ask([1])
    with pytest.raises(InputError, match="rows are 0 to 1"):
        recover_person(ParityCurator([0, 1]), 2)
    with pytest.raises(InputError, match="ones must be 0 to people"):
        bound_gap_change(3, 2, 0.1)
