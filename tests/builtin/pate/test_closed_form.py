"""Students as a normal distribution: their moments, and what they lose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench.base.errors import InputError
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.pate.excessive_risk.closed_form import (
    LabelMoments,
    NormalStudents,
    compute_label_moments,
    fit_normal_students,
)
from fpbench.builtin.pate.noisy_votes import vote_labels

pytestmark = pytest.mark.numeric


def some_students(seed, d, scale):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * scale
    return rng, NormalStudents(rng.normal(size=d), root @ root.T)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.01, 1.5))
@settings(max_examples=20)
def test_expectations_are_those_of_draws(seed, d, scale):
    rng, students = some_students(seed, d, scale)
    draws = rng.multivariate_normal(students.mean, students.covariance, size=20_000)
    design, labels = rng.normal(size=(7, d)), rng.integers(0, 2, 7).astype(float)
    z = draws @ design.T
    point = rng.normal(size=d)
    away = np.linalg.norm(draws - point, axis=1)
    first, second = students.distance(point)
    for closed, values in (
        (students.losses(design, labels), np.logaddexp(0, (1 - 2 * labels) * z)),
        (students.accuracy(design, labels), ((z > 0) == labels) * 1.0),
        (np.array([first, second]), np.column_stack([away, away**2])),
    ):
        error = values.std(axis=0) / np.sqrt(len(draws))
        assert (abs(closed - values.mean(axis=0)) <= 5.5 * error + 5e-4).all()


def test_students_that_do_not_vary_are_one():
    point = np.array([3.0, -4.0])
    still = NormalStudents(np.zeros(2), np.zeros((2, 2)))
    assert still.distance(point) == pytest.approx((5.0, 25.0), rel=1e-9)
    assert still.distance(np.zeros(2)) == (0.0, 0.0)
    assert still.losses(np.ones((1, 2)), np.ones(1)) == pytest.approx(np.log(2))
    assert still.accuracy(np.ones((2, 2)), np.array([0.0, 1.0])).tolist() == [1.0, 0.0]


def test_the_mean_distance_is_that_of_a_normal_variable():
    # In one dimension E|z| = sqrt(2 / pi); in d dimensions the mean of a chi variable.
    for d, mean in ((1, np.sqrt(2 / np.pi)), (2, np.sqrt(np.pi / 2)), (3, 2 * np.sqrt(2 / np.pi))):
        first, second = NormalStudents(np.zeros(d), np.eye(d)).distance(np.zeros(d))
        assert (first, second) == pytest.approx((mean, d), rel=1e-9)


def people(m=200, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.normal(size=(m, 5)), np.ones(m)])
    ones = np.clip(np.rint(75 + 40 * design[:, 0] + 20 * rng.normal(size=m)), 0, 150).astype(int)
    return design, np.column_stack([150 - ones, ones]), rng


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["hard", "soft", "soft-clipped"])
def test_the_distribution_is_that_of_many_students(labels):
    design, votes, rng = people()
    moments = compute_label_moments(votes, 50.0, labels)
    students = fit_normal_students(design, moments, 0.1)
    noise = rng.normal(0, 50.0, (2_000, 200, 2))
    drawn = fit_logistic(design, vote_labels(votes + noise, labels, 150), 0.1)
    spread = np.sqrt(np.diag(students.covariance))
    assert (abs(drawn.mean(axis=0) - students.mean) <= 4 * spread / np.sqrt(2_000) + 2e-3).all()
    np.testing.assert_allclose(spread, drawn.std(axis=0), rtol=0.06)


def test_the_first_step_is_the_delta_method():
    design, votes, _ = people()
    moments = compute_label_moments(votes, 50.0, "hard")
    linear = fit_normal_students(design, moments, 0.1).linear
    mean = fit_logistic(design, (moments.clean + moments.mean)[None], 0.1)[0]
    f = 1 / (1 + np.exp(-design @ mean))
    # As a sum over people, with the penalty 2 lambda_sum I = 2 m lambda I.
    hessian = (design.T * (f * (1 - f))) @ design + 2 * 200 * 0.1 * np.eye(6)
    inverse = np.linalg.inv(hessian)
    np.testing.assert_allclose(linear.mean, mean)
    np.testing.assert_allclose(
        linear.covariance, inverse @ ((design.T * moments.variance) @ design) @ inverse, atol=1e-12
    )


def test_without_noise_it_is_the_baseline():
    design, votes, _ = people()
    moments = compute_label_moments(votes, 0.0, "hard")
    students = fit_normal_students(design, moments, 0.1)
    star = fit_logistic(design, moments.clean[None], 0.1)[0]
    np.testing.assert_allclose(students.mean, star, atol=1e-7)
    assert not students.covariance.any()


def test_too_weak_a_penalty_is_refused():
    rng = np.random.default_rng(0)
    design = np.column_stack([rng.normal(size=(30, 20)), np.ones(30)])
    half = np.full(30, 0.5)
    noisy = LabelMoments(half, half * 0, np.full(30, 0.25), half)
    with pytest.raises(InputError, match='use method = "monte-carlo"'):
        fit_normal_students(design, noisy, 1e-4)
