"""Logistic regressions of parts of the same people, against those fitted one by one."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fpbench.builtin.batched.logistic_parts as module
from fpbench import InputError
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.batched.logistic_parts import fit_logistic_parts
from fpbench.builtin.batched.standardized_logistic import (
    StandardizedLogistic,
    fit_standardized_logistic,
)

pytestmark = pytest.mark.numeric


def draw(n, d, parts, seed=0):
    """People with rare categories, a skewed column and labels that follow; halves of them."""
    rng = np.random.default_rng(seed)
    numbers = np.column_stack([rng.standard_normal((n, d)), np.exp(2 * rng.standard_normal(n))])
    categories = np.eye(9)[np.minimum(rng.geometric(0.4, n) - 1, 8)]
    matrix = np.hstack([numbers, categories])
    odds = numbers[:, 0] - numbers[:, 1] + 0.3 * numbers[:, d] - 1
    labels = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    members = rng.random((parts, n)) < 0.5
    return matrix, labels, np.vstack([members[: parts // 2], ~members[: parts // 2]])


def fit_alone(matrix, labels, strength):
    """What scikit-learn says, its iteration driven to the end."""
    exact = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000, C=strength)
    return make_pipeline(StandardScaler(), exact).fit(matrix, labels)


def largest_difference(matrix, labels, members, strength=1.0):
    """Between probabilities of everybody, of all at once and of one by one."""
    models = fit_standardized_logistic(matrix, labels, members, strength)
    return max(
        np.abs(
            model.predict_proba(matrix)
            - fit_alone(matrix[chosen], labels[chosen], strength).predict_proba(matrix)
        ).max()
        for model, chosen in zip(models, members, strict=True)
    )


def separable(matrix, labels):
    return np.column_stack([matrix, 2 * labels + np.linspace(-0.4, 0.4, len(labels))])


def constant(matrix, labels):
    return np.column_stack([matrix, np.full(len(labels), 7.3), np.zeros(len(labels))])


def collinear(matrix, labels):
    noise = np.random.default_rng(3).standard_normal(len(labels))
    return np.column_stack([matrix, matrix, matrix.sum(axis=1), matrix[:, 0] + 1e-6 * noise])


def alone_in_a_category(matrix, labels):
    return np.column_stack([matrix, np.eye(len(labels))[:, :3], 1e6 * np.eye(len(labels))[:, 5]])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [None, separable, constant, collinear, alone_in_a_category])
@pytest.mark.parametrize("n", [40, 300, 2500])
def test_all_at_once_is_as_one_by_one(n, shape):
    matrix, labels, members = draw(n, 4, 8, seed=n)
    matrix = shape(matrix, labels) if shape else matrix
    assert largest_difference(matrix, labels, members) <= 1e-7


def rounded(matrix, labels):
    """Columns that scikit-learn takes for constants, though their last bits follow the labels."""
    sums = np.where(labels == 1, 0.3, 0.1 + 0.2)
    return np.column_stack([matrix, sums, 1e12 + 1e-4 * labels])


def test_rounding_errors_are_no_feature():
    matrix, labels, members = draw(300, 4, 8)
    assert largest_difference(rounded(matrix, labels), labels, members) <= 1e-7


@pytest.mark.slow
def test_one_enormous_number_of_a_stranger_hides_no_column():
    matrix, labels, members = draw(300, 4, 8)
    column = labels + np.random.default_rng(2).standard_normal(300)
    column[0], members[:, 0] = 1e8, False
    matrix = np.column_stack([matrix, column])
    models = fit_standardized_logistic(matrix, labels, members)
    for model, chosen in zip(models, members, strict=True):
        alone = fit_alone(matrix[chosen], labels[chosen], 1.0).predict_proba(matrix[1:])
        assert np.abs(model.predict_proba(matrix[1:]) - alone).max() <= 1e-5


@pytest.mark.parametrize("strength", [1e-3, 1e3, 1e6])
def test_at_any_strength(strength):
    matrix, labels, members = draw(400, 3, 6)
    assert largest_difference(matrix, labels, members, strength) <= 1e-7


def test_parts_of_two_people():
    matrix = np.array([[0.0, 1.0], [3.0, 1.0], [1.0, 0.0], [2.0, 5.0]])
    labels = np.array([0, 1, 0, 1])
    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]], bool)
    assert largest_difference(matrix, labels, members) <= 1e-7


def test_hessians_of_some_people_lead_to_the_same_models(monkeypatch):
    matrix, labels, members = draw(3000, 4, 8)
    whole = fit_standardized_logistic(matrix, labels, members)
    monkeypatch.setattr(module, "fit_logistic", None)  # nothing is left to it
    monkeypatch.setattr(module, "_PRODUCTS", 1000 * 15 * 16 // 2)
    some = fit_standardized_logistic(matrix, labels, members)
    for one, other in zip(whole, some, strict=True):
        difference = one.predict_proba(matrix) - other.predict_proba(matrix)
        assert 0 <= np.abs(difference).max() <= 1e-7


def test_fits_that_do_not_converge_are_solved_by_newton(monkeypatch):
    matrix, labels, members = draw(300, 4, 8)
    solved = []

    def watch(design, targets, *rest):
        solved.append(len(targets))
        return fit_logistic(design, targets, *rest)

    monkeypatch.setattr(module, "fit_logistic", watch)
    assert largest_difference(matrix, labels, members) <= 1e-7
    assert solved == []
    monkeypatch.setattr(module, "_STEPS", 1)
    assert largest_difference(matrix, labels, members) <= 1e-7
    assert solved == [len(members)]


def test_the_gradient_is_zero_at_the_solution():
    matrix, labels, members = draw(1000, 4, 8)
    design = np.column_stack([(matrix - matrix.mean(axis=0)) / matrix.std(axis=0), np.ones(1000)])
    ridge = np.random.default_rng(1).uniform(0.1, 3, (len(members), design.shape[1]))
    theta = fit_logistic_parts(design, labels.astype(float), members, ridge)
    chances = 1 / (1 + np.exp(-theta @ design.T))
    gradient = (members * (chances - labels)) @ design + ridge * theta
    assert np.abs(gradient).max() <= 1e-6


def test_models_are_asked_all_at_once_as_one_by_one():
    matrix, labels, members = draw(500, 4, 6)
    models = fit_standardized_logistic(matrix, labels, members)
    models += fit_standardized_logistic(3 * matrix[:400] + 1, labels[:400], members[:, :400])
    scores = StandardizedLogistic.score_many(models, matrix)
    alone = np.stack([model.predict_proba(matrix)[:, 1] for model in models])
    np.testing.assert_allclose(scores, alone, rtol=0, atol=2e-7)
    assert np.abs(scores[:6] - scores[6:]).max() > 0.1


def test_numbers_that_are_not_finite_are_refused():
    matrix, labels, members = draw(60, 2, 4)
    design = np.column_stack([matrix, np.ones(60)])
    design[7, 1] = np.nan
    with pytest.raises(InputError, match="must be finite"):
        fit_logistic_parts(design, labels.astype(float), members, np.ones((4, design.shape[1])))


def test_what_cannot_be_fitted_is_one_clear_error():
    matrix, labels, members = draw(100, 2, 2)
    one_label = members & (labels == 1)
    for change, words in (
        ({"members": one_label}, "model 0 has members of one label only: it needs some of label 0"),
        ({"members": members & False}, "model 0 has no members"),
        ({"members": members[:0]}, r"members must be \(B, 100\), .* not \(0, 100\)"),
        ({"members": members[:, 1:]}, r"members must be \(B, 100\)"),
        ({"labels": np.zeros(100)}, "model 0 has members of one label only"),
        ({"labels": labels + 1}, "labels: must be 0 or 1, not 2"),
        ({"labels": labels[1:]}, r"matrix must be \(99, d\), a row for each label"),
        ({"matrix": matrix[:, 0]}, r"matrix must be \(100, d\)"),
        ({"strength": 0.0}, "strength must be above 0"),
    ):
        right = {"matrix": matrix, "labels": labels, "members": members}
        with pytest.raises(InputError, match=words):
            fit_standardized_logistic(**{**right, **change})
    models = fit_standardized_logistic(matrix, labels, members)
    with pytest.raises(InputError, match="models: is empty"):
        StandardizedLogistic.score_many([], matrix)
    with pytest.raises(InputError, match=r"X must be \(n, \d+\)"):
        StandardizedLogistic.score_many(models, matrix[:, 1:])
