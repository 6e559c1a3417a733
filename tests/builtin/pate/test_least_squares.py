"""Students of least squares: the other loss of theorem 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from fpbench import InputError
from fpbench.auditing import excessive_risk
from fpbench.builtin.pate.learner import Pate
from fpbench.builtin.pate.least_squares import fit_least_squares
from fpbench.builtin.pate.model import LinearFamily

pytestmark = pytest.mark.numeric


def fit(sample, **parameters):
    given = {"teachers": 9, "public": 60, "sigma": 3.0, "student": "least-squares", "penalty": 0.1}
    learner = Pate(**{**given, **parameters})
    return learner.fit(sample.only(learner.needs), np.random.default_rng(0))


@pytest.mark.parametrize("weighted", [False, True])
def test_students_are_scikit_learns_ridge_one_by_one(weighted):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(40, 3)), np.ones(40)])
    y = rng.normal(size=(5, 40))
    w = rng.integers(0, 3, (5, 40)) * 1.0 if weighted else np.ones((5, 40))
    theta = fit_least_squares(x, y, 0.2, w if weighted else None)
    for one, labels, weights in zip(theta, y, w, strict=True):
        ridge = Ridge(alpha=2 * weights.sum() * 0.2, fit_intercept=False)
        np.testing.assert_allclose(one, ridge.fit(x, labels, weights).coef_, atol=1e-9)
    assert not fit_least_squares(x, y, 0.2, np.zeros_like(y)).any()


@given(st.integers(0, 10**6), st.floats(1e-3, 10), st.integers(2, 40))
def test_theorem_1_with_the_square_and_c_of_2(seed, penalty, m):
    """Of (x'theta - y)^2, and lambda; a half of both has the same minimum, and c = 1."""
    rng = np.random.default_rng(seed)
    x, clean = rng.normal(size=(m, 3)), rng.integers(0, 2, m) * 1.0
    noisy = np.where(rng.random(m) < 0.3, 1 - clean, clean)
    star, moved = fit_least_squares(x, np.stack([clean, noisy]), penalty / 2)
    hessian = 2 * x.T @ x / m + 2 * penalty * np.eye(3)
    np.testing.assert_allclose(hessian @ star, 2 * x.T @ clean / m, atol=1e-9)
    flipped = np.linalg.norm(x, axis=1) @ (noisy != clean)
    assert np.linalg.norm(moved - star) <= 2 * flipped / (2 * m * penalty) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_risks_are_those_of_half_the_squares(labels, make_people):
    people = make_people(400)
    model = fit(people, labels=labels)
    report = excessive_risk(model, people, people, repetitions=40, rng=3)
    noise = model.draw_noise(40, np.random.default_rng(3), antithetic=True)
    targets, _ = model.targets(noise)
    clean = (model.votes[:, 1] > model.votes[:, 0]) * 1.0
    x, m = model.public_design, len(clean)
    hessian = x.T @ x / m + 0.2 * np.eye(x.shape[1])
    thetas = np.linalg.solve(hessian, x.T @ targets.T / m).T
    for on, design, truth in (("train", x, clean),
                              ("test", model.design(people.features), people.labels)):  # fmt: skip
        values = design @ model.theta_star
        risk = ((thetas @ design.T - truth) ** 2 / 2).mean(axis=0) - (values - truth) ** 2 / 2
        found = report.people[report.people["on"] == on]
        np.testing.assert_allclose(found["risk"], risk, atol=1e-9)
        lengths = np.linalg.norm(design, axis=1)
        np.testing.assert_allclose(found["gradient_norm"], abs(values - truth) * lengths)
        right = ((thetas @ design.T > 0.5) == truth).mean()
        assert report.overall.set_index("on")["accuracy"][on] == pytest.approx(right)
    away = np.linalg.norm(thetas - model.theta_star, axis=1)
    assert report.model["sensitivity"] == pytest.approx(away.mean())
    # Theorem 3 with beta = ||x||^2 is nearly an equation where a person is far out.
    assert (report.overall["risk_bound_holds"] == 1).all()
    quarter = report.people["gradient_norm"] * away.mean()
    quarter += report.people["input_norm"] ** 2 / 8 * (away**2).mean()
    np.testing.assert_array_less(quarter, report.people["risk_bound"] + 1e-12)


def test_the_bounds_of_theorem_1_hold_and_the_second_moment_is_exact_up_to_curvature(make_people):
    people = make_people(600)
    model = fit(people, sigma=10.0)
    report = excessive_risk(model, people, people, repetitions=2_000, rng=0)
    bounds = report.bounds.set_index("bound")
    right = bounds.loc[
        ["gradient", "corollary1", "gradient_squared", "corollary2", "second_moment"]
    ]
    assert (right["measured"] <= right["value"]).all()
    assert bounds.loc["corollary1_literal", "holds"] == 0
    x, m, p = model.public_design, 60, model.flips
    inverse = np.linalg.inv(x.T @ x / m + 0.2 * np.eye(x.shape[1])) @ x.T / m
    drift = inverse @ np.where(model.votes[:, 1] > model.votes[:, 0], -p, p)
    second = drift @ drift + (inverse**2).sum(axis=0) @ (p * (1 - p))
    error = report.model["sensitivity_squared_error"]
    assert abs(report.model["sensitivity_squared"] - second) < 4.5 * error


def test_ranges_of_the_norm_are_students_of_their_people_alone(make_people):
    people = make_people(400)
    model = fit(people, labels="soft")
    ranges = excessive_risk(model, people, people, repetitions=40, rng=3).ranges
    rows = np.argsort(np.linalg.norm(model.public_design, axis=1), kind="stable")[-10:]
    noise = model.draw_noise(40, np.random.default_rng(3), antithetic=True)
    targets = [model.targets(n)[0][:, rows] for n in (np.zeros_like(noise[:1]), noise)]
    clean, noisy = (fit_least_squares(model.public_design[rows], t, 0.1) for t in targets)
    moved = np.linalg.norm(noisy - clean, axis=1)
    assert ranges["sensitivity"].iloc[-1] == pytest.approx(moved.mean())


def test_it_votes_and_predicts(make_people):
    people = make_people(400)
    model = fit(people, sigma=0.0, teacher="least-squares", voting="confident")
    rng = np.random.default_rng(0)
    chances = model.predict_proba(people.features, rng)
    assert ((chances >= 0) & (chances <= 1)).all()
    np.testing.assert_array_equal(model.predict(people.features, rng), chances[:, 1] > 0.5)
    assert (model.predict(people.features, rng) == people.labels).mean() > 0.6
    with pytest.raises(InputError, match="closed-form needs a logistic student, not 'least-sq"):
        excessive_risk(model, people, people, method="closed-form")


def test_teachers_are_ridges_of_their_parts_and_0_without_people():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20) * 1.0
    parts = [np.arange(8), np.arange(0), np.arange(8, 20)]
    theta = LinearFamily(0.1, "least-squares").teachers(x, y, parts)
    assert not theta[1].any()
    np.testing.assert_allclose(theta[2], fit_least_squares(x[8:], y[None, 8:], 0.1)[0])
