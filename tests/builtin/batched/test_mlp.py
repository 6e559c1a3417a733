"""Networks in a batch: scikit-learn's, and each as it is alone."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import fpbench.builtin.batched.mlp as module
from fpbench import InputError
from fpbench.builtin.batched.mlp import MLPTraining, Networks, fit_networks, fit_networks_apart

LAWS = settings(max_examples=15)


def data(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.standard_normal((n, d - 1)), np.ones(n)])
    labels = (np.abs(design[:, 0]) + design[:, 1] + rng.normal(size=n) / 2 > 0.7).astype(float)
    return design, labels


class Given(MLPClassifier):
    """scikit-learn's network that begins with given parameters."""

    def _init_coef(self, fan_in, fan_out, dtype):
        return next(self.begin)


def of_scikit_learn(begun, design, labels, training, alpha):
    """The network that scikit-learn trains from where ours begins."""
    network = Given(
        training.hidden, alpha=alpha, batch_size=min(training.batch, len(design)),
        learning_rate_init=training.rate, max_iter=training.epochs, shuffle=False, tol=0.0,
        n_iter_no_change=10**6,
    )  # fmt: skip
    first, second, bias, third, last = (layer[0].copy() for layer in begun.layers)
    network.begin = iter([(first[:-1], first[-1]), (second, bias), (third[:, None], last)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # epochs are what is compared
        return network.fit(design[:, :-1], labels)


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "batch"), [(0.0, 16), (0.02, 1000)])
def test_networks_apart_are_those_of_scikit_learn(penalty, batch):
    design, labels = data()
    groups = np.split(np.random.default_rng(1).permutation(120), [50, 81, 100])
    training = MLPTraining((7, 4), penalty, 30, batch, 0.01, shuffle=False)
    found = fit_networks_apart(design, labels, groups, training, np.random.default_rng(3))
    begun = Networks.random(6, (7, 4), np.random.default_rng(3).spawn(4))
    for i, rows in enumerate(groups):
        alpha = 2 * penalty * len(rows)
        theirs = of_scikit_learn(begun.take(i, i + 1), design[rows], labels[rows], training, alpha)
        ours = found.take(i, i + 1).proba(design)[0]
        np.testing.assert_allclose(ours, theirs.predict_proba(design[:, :-1])[:, 1], atol=1e-10)
        assert np.abs(found.flat[i] - begun.flat[i]).max() > 0.05  # it has learnt something


def test_networks_of_the_same_people_are_those_of_scikit_learn():
    design, labels = data()
    training = MLPTraining((7, 4), 0.0, 20, 32, 0.01, shuffle=False)
    found = fit_networks(design, np.stack([labels, 1 - labels]), training, np.random.default_rng(3))
    begin = np.random.default_rng(3).spawn(2)[0]
    begun = Networks.random(6, (7, 4), [begin])
    for i, own in enumerate((labels, 1 - labels)):
        theirs = of_scikit_learn(begun, design, own, training, 0.0)
        ours = found.take(i, i + 1).proba(design)[0]
        np.testing.assert_allclose(ours, theirs.predict_proba(design[:, :-1])[:, 1], atol=1e-10)


@LAWS
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 50), st.booleans())
def test_apart_is_as_one_by_one(sizes, batch, shuffle):
    design, labels = data(sum(sizes) + 1)
    groups = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    training = MLPTraining((4, 3), 0.01, 5, batch, 0.01, shuffle)
    found = fit_networks_apart(design, labels, groups, training, np.random.default_rng(0))
    for i, rows in enumerate(groups):
        others = [rows if j == i else np.arange(0) for j in range(len(groups))]
        alone = fit_networks_apart(design, labels, others, training, np.random.default_rng(0))
        np.testing.assert_allclose(alone.flat[i], found.flat[i], atol=1e-9)


@LAWS
@given(st.integers(1, 9), st.integers(1, 50), st.booleans(), st.booleans())
def test_students_together_are_as_one_by_one(count, batch, shuffle, weighted):
    design, _ = data(30)
    rng = np.random.default_rng(count)
    targets = rng.random((count, 30))
    weights = rng.integers(0, 2, (count, 30)).astype(float) if weighted else None
    training = MLPTraining((4, 3), 0.01, 4, batch, 0.01, shuffle)
    found = fit_networks(design, targets, training, np.random.default_rng(0), weights)
    for i in range(count):
        own = None if weights is None else weights[i : i + 1]
        alone = fit_networks(design, targets[i : i + 1], training, np.random.default_rng(0), own)
        np.testing.assert_allclose(alone.flat[0], found.flat[i], atol=1e-9)


def test_gradients_are_those_of_the_loss():
    design, _ = data(25)
    begun = Networks.random(6, (5, 4), np.random.default_rng(2).spawn(3))
    rng = np.random.default_rng(0)
    targets, weights = rng.random((3, 25)), rng.random((3, 25))

    def loss(flat):
        p = Networks(flat, 6, (5, 4)).proba(design)
        losses = -targets * np.log(p) - (1 - targets) * np.log1p(-p)
        return (weights * losses).sum(axis=1) / weights.sum(axis=1)

    into = Networks(np.zeros_like(begun.flat), 6, (5, 4))
    module.sum_gradients(design, targets, weights, begun, into, weights.sum(axis=1, keepdims=True))
    for parameter in range(begun.flat.shape[1]):
        step = np.zeros(begun.flat.shape[1])
        step[parameter] = 1e-6
        slope = (loss(begun.flat + step) - loss(begun.flat - step)) / 2e-6
        np.testing.assert_allclose(into.flat[:, parameter], slope, atol=1e-6)


def test_memory_does_not_change_the_answer(monkeypatch):
    design, labels = data()
    groups = np.split(np.arange(120), [50, 81, 100])
    training = MLPTraining((7, 4), epochs=3, rate=0.01)
    found = []
    for cache in (1, 1 << 20):
        monkeypatch.setattr(module, "_CACHE", cache)
        apart = fit_networks_apart(design, labels, groups, training, np.random.default_rng(3))
        same = fit_networks(design, np.tile(labels, (5, 1)), training, np.random.default_rng(3))
        found.append(np.vstack([apart.flat, same.flat]))
    np.testing.assert_allclose(*found, atol=1e-12)


def test_students_differ_by_their_targets_alone():
    design, labels = data()
    training = MLPTraining((7, 4), epochs=3)
    targets = np.stack([labels, labels, 1 - labels])
    flat = fit_networks(design, targets, training, np.random.default_rng(0)).flat
    assert (flat[0] == flat[1]).all()
    assert (flat[0] != flat[2]).any()


@pytest.mark.slow
def test_they_learn():
    design, labels = data(400)
    training = MLPTraining((16, 8), epochs=60, rate=0.01)
    network = fit_networks(design, labels[None], training, np.random.default_rng(0))
    right = (network.proba(design)[0] > 0.5) == labels
    assert right.mean() > 0.85 > max(labels.mean(), 1 - labels.mean())


def test_what_would_diverge_is_refused():
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]: beyond, networks diverge"):
        fit_networks(
            np.ones((2, 2)), np.array([[0.0, 1.2]]), MLPTraining(), np.random.default_rng()
        )


@pytest.mark.parametrize(
    "change", [{"penalty": -1.0}, {"rate": 0.0}, {"epochs": 0}, {"hidden": (3, 0)}, {"batch": 0}]
)
def test_training_must_make_sense(change):
    with pytest.raises(InputError, match="networks need a penalty of at least 0"):
        MLPTraining(**change)
