"""Students of equation (12): a minimum of what is printed, and which objectives are not convex."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

import fpbench
from fpbench import InputError
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.pate import equation_12
from fpbench.builtin.pate.equation_12 import find_not_convex, fit_weighted_labels

pytestmark = pytest.mark.numeric
PENALTY = 0.1


def draw(seed, spread, students=6, people=30, columns=4):
    """A design, and weights of both labels around shares of 1, with noise of this deviation."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.normal(size=(people, columns - 1)), np.ones(people)])
    share = rng.uniform(size=people)
    zeros, ones = (
        w + rng.normal(0, spread, (students, people)) if spread else np.tile(w, (students, 1))
        for w in (1 - share, share)
    )
    return design, zeros, ones


def price(theta, design, zeros, ones):
    """Equation (12) as printed, its mean, and the penalty."""
    odds = design @ theta
    losses = ones * np.logaddexp(0, -odds) + zeros * np.logaddexp(0, odds)
    return losses.mean() + PENALTY * theta @ theta


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 1.0, 5.0]))
def test_a_student_is_a_minimum_below_the_start(seed, spread):
    design, zeros, ones = draw(seed, spread)
    theta = fit_weighted_labels(design, ones, zeros + ones, PENALTY)
    for t, a0, a1 in zip(theta, zeros, ones, strict=True):
        best = price(t, design, a0, a1)
        assert best <= price(np.zeros(4), design, a0, a1) + 1e-12
        again = minimize(price, t, (design, a0, a1), tol=1e-12)
        assert best == pytest.approx(again.fun, abs=1e-9)


@given(st.integers(0, 10**6))
def test_convex_objectives_have_the_same_minimum_from_anywhere(seed):
    design, zeros, ones = draw(seed, 0.2)
    zeros, ones = np.abs(zeros), np.abs(ones)
    theta = fit_weighted_labels(design, ones, zeros + ones, PENALTY)
    start = np.random.default_rng(seed).normal(0, 3, 4)
    for t, a0, a1 in zip(theta, zeros, ones, strict=True):
        away = minimize(price, start, (design, a0, a1), tol=1e-12).x
        np.testing.assert_allclose(t, away, atol=1e-4)
    assert not find_not_convex(design, zeros + ones, PENALTY).any()


def test_shares_that_sum_to_1_are_soft_labels():
    design, zeros, ones = draw(3, 2.0)
    ones = ones - (zeros + ones - 1) / 2
    theta = fit_weighted_labels(design, ones, np.ones_like(ones), PENALTY)
    np.testing.assert_allclose(theta, fit_logistic(design, ones, PENALTY), atol=1e-8)


def test_an_objective_that_is_said_not_to_be_convex_lies_above_a_chord():
    design, zeros, ones = draw(5, 3.0, students=40)
    shown = find_not_convex(design, zeros + ones, PENALTY)
    assert shown.sum() > 5
    for a0, a1 in zip(zeros[shown], ones[shown], strict=True):
        hessian = design.T @ (design * ((a0 + a1) / 4 / len(design))[:, None])
        direction = 1e-2 * np.linalg.eigh(hessian)[1][:, 0]
        ends = [price(sign * direction, design, a0, a1) for sign in (-1, 1)]
        assert price(np.zeros(4), design, a0, a1) > np.mean(ends)


def test_no_convergence_is_an_error(monkeypatch):
    monkeypatch.setattr(equation_12, "_STEPS", 1)
    design, zeros, ones = draw(5, 3.0)
    with pytest.raises(InputError, match='6 of 6 students have not converged .* labels = "soft"'):
        fit_weighted_labels(design, ones, zeros + ones, PENALTY)


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1200).astype(np.int8)
    features = {"a": rng.normal(size=1200), "b": rng.normal(size=1200) + group}
    labels = (features["a"] - features["b"] + rng.normal(size=1200) > 0).astype(np.int8)
    people = fpbench.Sample(
        ("woman", "man"), features=pd.DataFrame(features), labels=labels, sensitive=group
    )
    return people.take(np.arange(800)), people.take(np.arange(800, 1200))


def fit(halves, **parameters):
    learner = fpbench.component("learner", "pate", public=80, labels="equation-12", **parameters)
    return learner.fit(halves[0], np.random.default_rng(1))


def test_students_of_the_learner_minimise_what_is_printed(halves):
    model = fit(halves, teachers=30, sigma=20.0, penalty=PENALTY)
    noise = model.draw_noise(4, np.random.default_rng(2))
    students = model.fit_students(*model.targets(noise))
    shares = (model.votes + noise) / 30
    for student, share in zip(students, shares, strict=True):
        f = expit(model.public_design @ student)
        residuals = share.sum(axis=1) * f - share[:, 1]
        gradient = residuals @ model.public_design / 80 + 2 * PENALTY * student
        assert np.abs(gradient).max() < 1e-8
    # The noisy counts alone decide: the clean student is not where the search begins.
    alone = model.family.students(model.public_design, *model.targets(noise))
    assert (students == alone).all()


def test_without_noise_it_is_soft(halves):
    printed = fit(halves, teachers=30, sigma=0.0)
    soft = fpbench.component("learner", "pate", public=80, labels="soft", teachers=30, sigma=0.0)
    other = soft.fit(halves[0], np.random.default_rng(1))
    np.testing.assert_allclose(printed.parameters, other.parameters, atol=1e-8)
    np.testing.assert_allclose(printed.theta_star, other.theta_star, atol=1e-12)


def test_an_audit_says_how_many_objectives_are_not_convex(halves):
    shares = []
    for teachers, sigma in ((100, 10.0), (5, 100.0)):
        model = fit(halves, teachers=teachers, sigma=sigma, penalty=PENALTY)
        report = fpbench.auditing.excessive_risk(model, *halves, repetitions=20, rng=0)
        shares.append(report.model["students_not_convex"])
        assert not len(report.bounds)
        assert report.overall["risk_bound_holds"].eq(1).all()
    assert shares[0] == 0
    assert shares[1] > 0.5
    with pytest.raises(InputError, match="learns from all its labels, with one weight"):
        fpbench.auditing.excessive_risk(model, *halves, method="closed-form", rng=0)
