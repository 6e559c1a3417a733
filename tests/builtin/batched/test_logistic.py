"""Many logistic regressions at once: laws, and scikit-learn one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import fpbench.builtin.batched.logistic as module
from fpbench import FpbenchError, InputError
from fpbench.builtin.batched.logistic import fit_logistic, fit_logistic_apart, logistic_proba

pytestmark = pytest.mark.numeric


@st.composite
def problems(draw, *, shared=None):
    """Design, targets (not always in [0, 1]), penalty, weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, n, d = draw(st.integers(1, 6)), draw(st.integers(1, 30)), draw(st.integers(1, 7))
    shared = draw(st.booleans()) if shared is None else shared
    spread = 10.0 ** draw(st.integers(-2, 2))
    design = spread * rng.standard_normal((n, d) if shared else (count, n, d))
    if draw(st.booleans()):
        targets = (rng.random((count, n)) < draw(st.sampled_from([0.0, 0.3, 1.0]))).astype(float)
    else:
        targets = 0.5 + 3 * rng.standard_normal((count, n))
    penalty = 10.0 ** draw(st.integers(-4, 2))
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 3, (count, n)).astype(float)
    return design, targets, penalty, weights


def gradient(theta, design, targets, penalty, weights):
    """Of one problem, as the definition has it."""
    weights = np.ones(len(targets)) if weights is None else weights
    chances = 1 / (1 + np.exp(-np.clip(design @ theta, -700, 700)))
    total = weights.sum()
    data = design.T @ (weights * (chances - targets)) / total if total else 0.0
    return data + 2 * penalty * theta


@given(problems())
def test_the_gradient_is_zero_at_the_solution(problem):
    design, targets, penalty, weights = problem
    theta = fit_logistic(*problem)
    for i in range(len(targets)):
        own = design if design.ndim == 2 else design[i]
        found = gradient(
            theta[i], own, targets[i], penalty, None if weights is None else weights[i]
        )
        scale = 1 + np.abs(own).max() * np.abs(targets[i]).max()
        assert np.abs(found).max() <= 1e-8 * scale


@given(problems())
def test_together_is_as_one_by_one(problem):
    design, targets, penalty, weights = problem
    theta = fit_logistic(*problem)
    for i in range(len(targets)):
        own = design if design.ndim == 2 else design[i : i + 1]
        alone = fit_logistic(
            own, targets[i : i + 1], penalty, None if weights is None else weights[i : i + 1]
        )
        np.testing.assert_allclose(
            alone[0], theta[i], rtol=0, atol=1e-7 * (1 + np.abs(theta).max())
        )


@given(problems(shared=True), st.integers(1, 2**31))
def test_where_it_starts_does_not_matter(problem, seed):
    design = problem[0]
    start = 3 * np.random.default_rng(seed).standard_normal(design.shape[1])
    one, other = fit_logistic(*problem), fit_logistic(*problem, start=start)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7 * (1 + np.abs(one).max()))


@given(problems(shared=True))
def test_weights_count_people(problem):
    design, targets, penalty, _ = problem
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, targets.shape[1])
    weights[0] += 1
    often = np.repeat(np.arange(len(design)), weights)
    whole = np.broadcast_to(weights.astype(float), targets.shape)
    weighted = fit_logistic(design, targets, penalty, whole)
    repeated = fit_logistic(design[often], targets[:, often], penalty)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-7 * (1 + np.abs(repeated).max()))


@pytest.mark.parametrize("columns", [6, 80])
def test_memory_does_not_change_the_answer(monkeypatch, columns):
    rng = np.random.default_rng(0)
    design, targets = rng.standard_normal((50, columns)), rng.integers(0, 2, (9, 50)).astype(float)
    together = fit_logistic(design, targets, 0.1)
    own = np.tile(design, (9, 1, 1))
    for chunk, outer in ((1, 1 << 23), (1 << 30, 0), (1 << 17, 0)):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        monkeypatch.setattr(module, "_OUTER", outer)
        np.testing.assert_allclose(fit_logistic(design, targets, 0.1), together, atol=1e-12)
        np.testing.assert_allclose(fit_logistic(own, targets, 0.1), together, atol=1e-12)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 2.0])
def test_parameters_are_those_of_scikit_learn(penalty):
    rng = np.random.default_rng(1)
    design = np.column_stack([rng.standard_normal((900, 11)) * 3, np.ones(900)])
    labels = (design[:, 0] + rng.normal(size=900) * 4 > 0).astype(float)
    groups = np.split(rng.permutation(900), [30, 90, 300, 420, 800])
    theta = fit_logistic_apart(design, labels, groups, penalty)
    for rows, found in zip(groups, theta, strict=True):
        reference = LogisticRegression(
            C=1 / (2 * penalty * len(rows)), fit_intercept=False, solver="newton-cholesky",
            tol=1e-10, max_iter=1000,
        ).fit(design[rows], labels[rows])  # fmt: skip
        np.testing.assert_allclose(found, reference.coef_[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(
            logistic_proba(found[None], design)[0], reference.predict_proba(design)[:, 1], atol=1e-7
        )


def test_parameters_without_people_are_zero():
    design, labels = np.ones((4, 2)), np.ones(4)
    theta = fit_logistic_apart(design, labels, [np.arange(4), np.arange(0)], 0.1)
    assert (theta[1] == 0).all()
    assert (theta[0] > 0).all()
    assert (fit_logistic(design, labels[None], 0.1, np.zeros((1, 4)), start=np.ones(2)) == 0).all()
    assert fit_logistic(design, np.zeros((0, 4)), 0.1).shape == (0, 2)


def test_one_label_only_still_has_an_answer():
    design = np.column_stack([np.linspace(-1, 1, 9), np.ones(9)])
    proba = logistic_proba(fit_logistic(design, np.zeros((1, 9)), 0.01), design)
    assert (proba < 0.5).all()


def test_probabilities_of_the_extremes():
    proba = logistic_proba(np.array([[1.0]]), np.array([[-1e4], [0.0], [1e4]]))
    assert proba.tolist() == [[0.0, 0.5, 1.0]]


@pytest.mark.parametrize(("change", "says"), [
    ({"penalty": 0.0}, "penalty must be above 0 and finite, not 0.0: without one"),
    ({"penalty": float("nan")}, "penalty must be above 0"),
    ({"targets": np.zeros((2, 5))}, r"shapes do not agree: design \(4, 2\), targets \(2, 5\)"),
    ({"targets": np.zeros(4)}, "shapes do not agree"),
    ({"weights": np.ones((1, 4))}, r"weights \(1, 4\)"),
    ({"weights": -np.ones((2, 4))}, "weights must not be negative"),
    ({"targets": np.full((2, 4), np.nan)}, "targets must be finite"),
    ({"design": np.full((4, 2), np.inf)}, "design must be finite"),
])  # fmt: skip
def test_wrong_problems_are_refused(change, says):
    arguments = {"design": np.ones((4, 2)), "targets": np.zeros((2, 4)), "penalty": 0.1} | change
    with pytest.raises(InputError, match=says):
        fit_logistic(**arguments)


def test_fits_that_do_not_converge_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "_STEPS", 1)
    with pytest.raises(FpbenchError, match=r"2 of 2 logistic regressions did not converge in 1"):
        fit_logistic(np.eye(3), np.eye(3)[:2], 0.001)
