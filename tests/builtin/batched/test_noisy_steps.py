"""Models trained by noisy sums of shortened gradients over samples."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fpbench import InputError
from fpbench.builtin.batched import mlp, noisy_steps
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.batched.mlp import Networks
from fpbench.builtin.batched.noisy_steps import NoisyTraining

PLAIN = NoisyTraining(steps=4, share=1.0, clip=math.inf, sigma=0.0, rate=0.1)
NETWORK = replace(PLAIN, hidden=(5, 4))


def data(n=60):
    rng = np.random.default_rng(0)
    design = np.column_stack([rng.random((n, 4)), np.ones(n)])
    return design, (design[:, 0] + 0.3 * rng.normal(size=n) > 0.5).astype(float)


def measure_gradient(training, flat, x, y):
    """One person's gradient of the cross entropy, by differences."""

    def loss(parameters):
        chance = training.proba(parameters, x[None])[:, 0]
        return -np.log(chance if y else 1 - chance)

    steps = 1e-6 * np.eye(flat.shape[1])
    return (loss(flat + steps) - loss(flat - steps)) / 2e-6


@pytest.mark.parametrize(
    ("training", "clip"),
    [(PLAIN, 0.7), (PLAIN, math.inf), (NETWORK, 1.75), (NETWORK, math.inf)],
)
def test_sums_are_of_people_s_gradients_each_shortened(training, clip):
    design, labels = data(12)
    rng = np.random.default_rng(1)
    width = 5 if training.hidden is None else Networks.random(5, (5, 4), [rng]).flat.shape[1]
    flat, found = rng.normal(size=(2, width)), np.empty((2, width))
    there = np.array([[1.0] * 12, [1.0, 0.0] * 6])
    two = (np.stack([design] * 2), np.stack([labels] * 2), there)
    replace(training, clip=clip).sum_shortened(*two, flat, found)
    for model in range(2):
        gradients = np.array(
            [
                measure_gradient(training, flat[[model]], *one)
                for one in zip(design, labels, strict=True)
            ]
        )
        lengths = np.linalg.norm(gradients, axis=1)
        assert lengths.min() < clip and (clip == math.inf or lengths.max() > clip)
        shortened = gradients * np.minimum(1, clip / lengths)[:, None]
        np.testing.assert_allclose(found[model], there[model] @ shortened, atol=1e-6)


def test_gradient_norms_of_networks_are_those_of_differences():
    design, labels = data(12)
    rng = np.random.default_rng(1)
    networks = Networks.random(5, (5, 4), [rng, rng])
    flat = rng.normal(size=networks.flat.shape)
    norms = replace(networks, flat=flat).gradient_norms(design, labels)
    for model in range(2):
        want = [
            np.linalg.norm(measure_gradient(NETWORK, flat[[model]], *one))
            for one in zip(design, labels, strict=True)
        ]
        np.testing.assert_allclose(norms[model], want, atol=1e-6)


def test_without_clip_and_noise_it_converges_to_the_best_logistic_regression():
    design, labels = data()
    training = replace(PLAIN, steps=4000, rate=0.02)
    (found,) = training.fit(design, labels, [np.arange(60)], [np.random.default_rng(0)])
    (best,) = fit_logistic(design, labels[None], 1e-9)
    np.testing.assert_allclose(found, best, rtol=0.02)


def test_each_person_is_in_a_sample_with_the_same_chance_and_apart_from_others():
    rng, rows = np.random.default_rng(0), np.arange(10, 16)
    counts = np.zeros(7)
    pairs = np.zeros((6, 6))
    for _ in range(20_000):
        sample = noisy_steps._draw_sample(rows, 0.3, rng)
        assert len(set(sample)) == len(sample)
        counts[len(sample)] += 1
        there = np.isin(rows, sample)
        pairs += there[:, None] & there
    np.testing.assert_allclose(np.diag(pairs) / 20_000, 0.3, atol=0.015)
    np.testing.assert_allclose(pairs[~np.eye(6, dtype=bool)] / 20_000, 0.09, atol=0.01)
    expected = [math.comb(6, k) * 0.3**k * 0.7 ** (6 - k) for k in range(7)]
    np.testing.assert_allclose(counts / 20_000, expected, atol=0.012)


def test_noise_is_sigma_times_clip_in_every_parameter_and_step(monkeypatch):
    design, labels = data(8)
    sums = []

    class Witness(mlp.Adam):
        def move(self, flat, gradients):
            sums.append(gradients.copy())  # and the parameters stay

    monkeypatch.setattr(noisy_steps, "Adam", Witness)
    rngs = [np.random.default_rng(7) for _ in range(2)]
    for sigma, rng in zip((0.0, 2.0), rngs, strict=True):
        training = replace(PLAIN, steps=2000, share=0.5, clip=0.3, sigma=sigma)
        training.fit(design, labels, [np.arange(8)], [rng])
    clean, noisy = np.array(sums[:2000])[:, 0], np.array(sums[2000:])[:, 0]
    noise = noisy - clean  # of the same samples
    assert np.linalg.norm(clean, axis=1).max() <= 8 * 0.3
    np.testing.assert_allclose(noise.std(axis=0), 0.6, rtol=0.08)
    np.testing.assert_allclose(np.corrcoef(noise.T), np.eye(5), atol=0.1)


@pytest.mark.parametrize("training", [PLAIN, NETWORK], ids=["logistic", "mlp"])
def test_models_of_different_people_are_those_fitted_alone(training, monkeypatch):
    design, labels = data()
    training = replace(training, share=0.3, clip=0.5, sigma=1.0, steps=30)
    groups = [np.arange(60), np.arange(20), np.arange(0), np.array([3, 50])]

    def rngs():
        return np.random.default_rng(5).spawn(4)

    together = training.fit(design, labels, groups, rngs())
    monkeypatch.setattr(noisy_steps, "_AT_ONCE", 1)
    np.testing.assert_allclose(together, training.fit(design, labels, groups, rngs()), atol=1e-9)
    for number, group in enumerate(groups):
        own = labels.copy()
        own[np.setdiff1d(np.arange(60), group)] = 1 - own[np.setdiff1d(np.arange(60), group)]
        (alone,) = training.fit(design, own, [group], [rngs()[number]])
        np.testing.assert_allclose(together[number], alone, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"share": 0.0}, {"share": 1.1}, {"clip": 0.0}, {"rate": 0.0},
              {"sigma": -1.0}, {"sigma": 1.0}],
)  # fmt: skip
def test_wrong_trainings_are_refused(wrong):
    with pytest.raises(InputError, match="needs steps of at least 1"):
        replace(PLAIN, **wrong)
