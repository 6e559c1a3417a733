"""Which neighbours are told apart: against scipy, against all signs, and under the null."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from fpbench.results.signed_ranks import (
    ALPHA,
    adjust_by_holm,
    adjust_p_values,
    compare_neighbours,
    compare_signed_ranks,
    count_needed_seeds,
    share_ranks,
)


def all_signs(differences):
    """The p-value by its definition: all assignments of signs to the ranks of what differs."""
    from scipy.stats import rankdata

    kept = differences[differences != 0]
    if not len(kept):
        return 1.0
    ranks = rankdata(np.abs(kept))
    signs = np.array(list(product([0, 1], repeat=len(kept))))
    sums = signs @ ranks
    seen = ranks[kept > 0].sum()
    return min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))


@pytest.mark.parametrize("n", [1, 2, 5, 6, 12, 30, 60])
def test_p_values_are_scipys_where_nothing_is_tied(n):
    rng = np.random.default_rng(n)
    one, other = rng.normal(0.4, size=(50, n)), rng.normal(size=(50, n))
    expected = [wilcoxon(a - b, method="exact").pvalue for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(compare_signed_ranks(one, other)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("n", [90, 200])
def test_many_differences_have_scipys_normal_approximation(n):
    rng = np.random.default_rng(n)
    one = rng.integers(0, 9, size=(20, n)) / 7
    other = rng.integers(0, 9, size=(20, n)) / 7
    expected = [
        wilcoxon(np.round(a - b, 9), method="asymptotic", correction=False).pvalue
        for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(compare_signed_ranks(one, other)[0], expected, rtol=1e-9)


small = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=9)


@given(small)
def test_p_values_with_ties_and_zeros_are_those_of_all_signs(pairs):
    one, other = np.array(pairs, float).T
    (p,) = compare_signed_ranks(one, other)[0]
    assert p == pytest.approx(all_signs(one - other), abs=1e-12)


@given(small, st.floats(0.001, 1000), st.randoms())
def test_neither_order_scale_nor_side_matter(pairs, scale, random):
    one, other = np.array(pairs, float).T
    (p,) = compare_signed_ranks(one, other)[0]
    shuffled = list(pairs)
    random.shuffle(shuffled)
    again, against = np.array(shuffled, float).T
    assert compare_signed_ranks(again, against)[0][0] == p
    assert compare_signed_ranks(other, one)[0][0] == p
    assert compare_signed_ranks(one * scale, other * scale)[0][0] == pytest.approx(p)


def test_rounding_errors_are_no_differences():
    one = np.array([0.1 + 0.2, 0.7, 0.3])
    assert compare_signed_ranks(one, np.array([0.3, 0.7, 0.1 * 3]))[0][0] == 1
    shares = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    tied = compare_signed_ranks(
        shares + 0.1, shares
    )  # differences of .1 that differ in the last digit
    assert tied[0][0] == pytest.approx(2 / 2**6)


def test_seeds_that_one_side_lacks_do_not_count():
    one = np.array([[1.0, 2, 3, np.nan, 5, 6, 7], [np.nan] * 7])
    other = np.array([[0.0, 0, 0, 0, np.nan, 0, 0], [1.0] * 7])
    p = compare_signed_ranks(one, other)[0]
    assert p[0] == pytest.approx(2 / 2**5)
    assert np.isnan(p[1])


def test_pairs_are_independent_of_each_other():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 5, size=(2, 300, 8)).astype(float)
    alone = [compare_signed_ranks(a, b)[0][0] for a, b in zip(one, other, strict=True)]
    np.testing.assert_array_equal(compare_signed_ranks(one, other)[0], alone)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_step_by_step(p_values):
    given_p = np.array(p_values)
    found = adjust_by_holm(given_p)
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for step, i in enumerate(np.argsort(given_p, kind="stable")):
            if given_p[i] * (len(given_p) - step) > level:
                break
            rejected.add(i)
        assert {i for i in range(len(found)) if found[i] <= level} == rejected


def test_holm_leaves_out_what_was_not_compared():
    found = adjust_by_holm([0.01, np.nan, 0.04])
    assert found[[0, 2]].tolist() == [0.02, 0.04]
    assert np.isnan(found[1])
    assert adjust_by_holm([]).tolist() == []


def test_ranks_are_shared_until_neighbours_differ():
    assert share_ranks(np.array([0.2, 0.01, np.nan, 0.04, 1.0])).tolist() == [1, 1, 3, 3, 5, 5]
    assert share_ranks(np.array([])).tolist() == [1]


@pytest.mark.parametrize("comparisons", [1, 2, 7, 29, 100])
def test_so_many_seeds_are_enough_and_one_less_is_not(comparisons):
    seeds = count_needed_seeds(comparisons)
    for n, able in ((seeds, True), (seeds - 1, False)):
        steps = np.arange(comparisons + 1, 0, -1.0)[:, None] * np.ones(n)
        p_values, notes = compare_neighbours(steps)
        assert bool((p_values < ALPHA).all()) is able
        assert bool(notes) is not able


def test_pairs_without_differences_are_not_counted():
    """A corrector that changes nothing makes many lines alike; they cost the others nothing."""
    rng = np.random.default_rng(0)
    best = rng.normal(1, 0.1, size=8)
    zeros = np.zeros((40, 8))
    p_values, notes = compare_neighbours(np.vstack([best, zeros]))
    assert p_values[0] == pytest.approx(2 / 2**8)
    assert set(p_values[1:]) == {1.0}
    assert notes == []


def skewed(rng, seeds):
    """Two lines with the same mean: one is mostly lower and now and then much higher."""
    lines = np.vstack([rng.exponential(size=seeds) ** 3 / 6, rng.normal(1, 0.01, size=seeds)])
    return lines[np.argsort(-lines.mean(axis=1))]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [12, 20, 50])
def test_no_line_is_first_against_the_ranks(seeds):
    rng = np.random.default_rng(seeds)
    told = contrary = 0
    for _ in range(300):
        first, second = skewed(rng, seeds)
        gap = first - second
        ranks = np.argsort(np.argsort(np.abs(gap))) + 1
        against = ranks[gap > 0].sum() < ranks[gap < 0].sum()
        p_values, notes = compare_neighbours(np.vstack([first, second]))
        told += p_values[0] < ALPHA
        contrary += against and compare_signed_ranks(first, second)[0][0] < ALPHA
        assert not (against and p_values[0] < ALPHA)
        assert bool(notes) is bool(against and compare_signed_ranks(first, second)[0][0] < ALPHA)
    assert told > 0
    assert contrary > 0


def test_the_means_that_are_shown_must_point_there_too():
    """Lines are in the order of their means over all seeds; the test is over those that both have."""
    shared = np.arange(8.0)
    above = np.r_[shared, np.full(8, -99.0)]
    below = np.r_[shared - 1, np.full(8, np.nan)]
    assert adjust_p_values(above[None], below[None])[0] == pytest.approx(2 / 2**8)
    p_values, notes = compare_neighbours(np.vstack([below, above]))
    assert p_values.tolist() == [1]
    assert "means and signed ranks point in opposite directions" in notes[0]


def test_means_that_differ_by_a_rounding_error_point_nowhere():
    rises = np.arange(1, 20) / 10
    gaps = np.r_[rises, -rises.sum() * (1 - 1e-15)]
    assert gaps.mean() > 0
    assert compare_signed_ranks(gaps, np.zeros(20))[0][0] < ALPHA
    assert adjust_p_values(gaps[None], np.zeros((1, 20)))[0] == 1


def test_notes_say_why_nothing_is_told_apart():
    one = np.arange(3.0)[::-1, None]
    assert compare_neighbours(one)[1] == [
        "ranks are shared: one seed is too few for any significant difference, use at least 7 "
        "(signed ranks, Holm, 5 %)"
    ]
    lonely = np.array([[1.0, np.nan], [np.nan, 0.5]])
    assert compare_neighbours(lonely)[1] == [
        "1 pair of neighbouring lines has no seed in common, so it shares a rank"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "seeds"), [(2, 10), (5, 12), (20, 15)])
def test_under_the_null_there_are_no_more_false_winners_than_allowed(lines, seeds):
    """Lines that differ in nothing, sorted by their means, as a leaderboard sorts them."""
    rng = np.random.default_rng(lines)
    runs, winners, ties_broken = 600, 0, 0
    for _ in range(runs):
        shared = rng.normal(size=seeds)  # what a seed does to all lines alike
        values = shared + rng.standard_t(3, size=(lines, seeds))
        values = values[np.argsort(-values.mean(axis=1))]
        ranks = share_ranks(compare_neighbours(values)[0])
        winners += (ranks == 1).sum() == 1
        ties_broken += ranks.max() > 1
    spread = 3 * np.sqrt(ALPHA * (1 - ALPHA) / runs)
    assert winners / runs <= ALPHA + spread
    assert ties_broken / runs <= ALPHA + spread


@pytest.mark.slow
def test_all_comparisons_together_err_as_often_as_one_may():
    """Unsorted pairs without a difference: the chance of any rejection, and that it is used."""
    rng = np.random.default_rng(3)
    errors = [
        (adjust_p_values(rng.normal(size=(m, 12)), rng.normal(size=(m, 12))) < ALPHA).any()
        for m in [6] * 800
    ]
    assert np.mean(errors) <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / 800)
    assert np.mean(errors) >= 0.01


def test_true_winners_are_found():
    rng = np.random.default_rng(4)
    won = 0
    for _ in range(100):
        values = rng.normal(size=12) + rng.normal(scale=0.3, size=(5, 12))
        values[0] += 1.0
        order = np.argsort(-values.mean(axis=1))
        won += order[0] == 0 and (share_ranks(compare_neighbours(values[order])[0]) == 1).sum() == 1
    assert won >= 90
