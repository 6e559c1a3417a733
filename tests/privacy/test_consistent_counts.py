"""Projection of noisy counts: optimal, of the right shape, and refused where it makes no sense."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fpbench import InputError
from fpbench.privacy import find_invalid_answers, project_counts

counts = st.floats(-1e4, 1e4, allow_nan=False)


@st.composite
def histograms(draw, most=12):
    """Several noisy histograms of K counts, and their totals."""
    rows, k = draw(st.integers(1, 4)), draw(st.integers(1, most))
    answers = draw(arrays(np.float64, (rows, k), elements=counts))
    return answers, draw(arrays(np.float64, (rows,), elements=st.floats(0, 1e4)))


@given(histograms())
def test_the_projection_satisfies_the_conditions_of_optimality(case):
    """Karush-Kuhn-Tucker: one shift for all that stay above 0, and no less is taken of the rest."""
    answers, totals = case
    found = project_counts(answers, totals)
    assert found.shape == answers.shape
    for x, y, total in zip(answers, found, totals, strict=True):
        slack = 1e-9 * (1 + np.abs(x).max() + total)
        assert (y >= 0).all()
        assert (y <= total).all()
        assert y.sum() == pytest.approx(total, abs=len(x) * slack)
        shift = x - y
        active = y > slack
        if active.any():
            assert np.ptp(shift[active]) <= slack
            assert (shift[~active] <= shift[active].min() + 2 * slack).all()


@given(histograms(most=4), st.integers(0, 2**32 - 1))
def test_nothing_that_is_allowed_is_nearer(case, seed):
    answers, totals = case
    found = project_counts(answers, totals)
    others = np.random.default_rng(seed).dirichlet(np.ones(answers.shape[1]), 200)
    for x, y, total in zip(answers, found, totals, strict=True):
        corners = np.vstack([others, np.eye(len(x))]) * total
        nearest = np.linalg.norm(corners - x, axis=1).min()
        assert np.linalg.norm(y - x) <= nearest + 1e-9 * (1 + nearest)


@given(histograms())
def test_projecting_twice_is_projecting_once(case):
    answers, totals = case
    once = project_counts(answers, totals)
    assert project_counts(once, totals) == pytest.approx(once, abs=1e-8 * (1 + totals.max()))


@given(st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_a_projection_brings_noisy_counts_nearer_to_the_truth(k, seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 50, (20, k))
    noisy = truth + rng.laplace(scale=20, size=truth.shape)
    better = project_counts(noisy, truth.sum(axis=1))
    before, after = ((a - truth) ** 2 for a in (noisy, better))
    assert (after.sum(axis=1) <= before.sum(axis=1) + 1e-6).all()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_groups_have_no_order(k, seed):
    rng = np.random.default_rng(seed)
    x, order = rng.normal(0, 10, (3, k)), rng.permutation(k)
    assert project_counts(x[:, order], 15) == pytest.approx(project_counts(x, 15)[:, order])


def test_totals_are_broadcast_over_any_shape():
    answers = np.random.default_rng(0).normal(10, 30, (3, 1, 4, 5))
    totals = np.array([0.0, 20.0, 40.0, 100.0])
    found = project_counts(answers, np.broadcast_to(totals, (6, 4)))
    assert found.shape == (3, 6, 4, 5)
    assert (found == project_counts(answers, totals)).all()
    for i in range(3):
        for j, total in enumerate(totals):
            assert (found[i, 0, j] == project_counts(answers[i, 0, j], total)).all()
    assert (found[..., 0, :] == 0).all()


def test_known_projections():
    assert project_counts(np.array([3.0, 1.0]), 10).tolist() == [6, 4]
    assert project_counts(np.array([12.0, -5.0, -4.0]), 10).tolist() == [10, 0, 0]
    assert project_counts(np.array([4.0, 5.0, -9.0]), 6).tolist() == [2.5, 3.5, 0]
    assert project_counts(np.array([-7.0]), 6).tolist() == [6]
    assert project_counts(np.array([4, 5, 1]), 10).tolist() == [4, 5, 1]


@given(histograms())
def test_invalid_answers_are_those_that_cannot_be_true(case):
    answers, totals = case
    found = find_invalid_answers(answers, totals)
    assert found.tolist() == [
        [not 0 <= x <= total for x in row] for row, total in zip(answers, totals, strict=True)
    ]


@pytest.mark.parametrize("function", [project_counts, find_invalid_answers])
@pytest.mark.parametrize(("answers", "total", "said"), [
    ([1.0, np.nan], 3, "must be numbers"),
    ([1.0, -np.inf], 3, "must be finite"),
    ([1.0, 2.0], -1, "at least 0"),
    ([1.0, 2.0], np.nan, "total must be numbers"),
    ([], 3, "at least one count"),
    (3.0, 3, "at least one count"),
    ([[1.0, 2.0]] * 3, [1, 2], r"totals of shape \(2,\) do not fit histograms of shape \(3, 2"),
])  # fmt: skip
def test_wrong_answers_are_refused(function, answers, total, said):
    with pytest.raises(InputError, match=said):
        function(np.array(answers), total)
