"""The learner `dp-sgd`: what it promises, and an attack on the promise."""

import math

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import fpbench
from fpbench import Guarantee, InputError, Sample
from fpbench.auditing import bound_epsilon, excessive_risk
from fpbench.builtin.learners.dp_sgd import DPSGD
from fpbench.data import Domain
from fpbench.privacy.accounting import sampled_gaussian_epsilon

COLUMNS = [f"x{i}" for i in range(50)]
DOMAIN = Domain.of({name: [0, 1] for name in COLUMNS})


@pytest.fixture(scope="module")
def people():
    return fpbench.dataset("census-synthetic", rows=1500).sample()


def test_the_guarantee_is_that_of_its_noise(people):
    learner = DPSGD(epsilon=0.7, delta=1e-6, steps=30, share=0.2)
    model = learner.fit(people.only(learner.needs), np.random.default_rng(0))
    assert model.guarantee == Guarantee(0.7, 1e-6, "add-remove")
    sigma = model.notes["sgd_sigma"]
    assert sampled_gaussian_epsilon(0.2, sigma, 30, 1e-6) == pytest.approx(0.7)
    assert learner.protects == learner.needs
    free = DPSGD(epsilon=math.inf)
    assert free.fit(people.only(free.needs), np.random.default_rng(0)).guarantee is None
    assert not free.protects


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_privacy_costs_accuracy_and_the_baseline_pays_none(kind, people):
    learner = DPSGD(epsilon=0.05, model=kind)
    model = learner.fit(people.only(learner.needs), np.random.default_rng(0))
    free = DPSGD(epsilon=math.inf, clip=1e9, model=kind)
    same = free.fit(people.only(free.needs), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    clean = model.baseline.predict_proba(people.features, rng)
    np.testing.assert_allclose(same.predict_proba(people.features, rng), clean, atol=1e-9)
    report = excessive_risk(model, people, people, repetitions=20, rng=2)
    overall = report.overall.set_index("on").loc["test"]
    assert overall["accuracy"] < overall["baseline_accuracy"] > 0.7
    assert overall["risk"] > 5 * overall["risk_error"] > 0


def attack(learner, runs, seed=0):
    """Epsilon that models of 20 equal people, and of one more of the other label, prove."""
    features = pd.DataFrame(0.0, index=range(21), columns=COLUMNS)
    features.iloc[20] = 1.0
    labels = np.array([0] * 20 + [1], np.int8)
    sample = Sample((), features=features, labels=labels, domain=DOMAIN)
    without = np.arange(21) < 20
    outputs, rngs = [], np.random.default_rng(seed).spawn(2)
    for members, rng in zip((np.ones(21, bool), without), rngs, strict=True):
        models = learner.fit_many(sample, np.tile(members, (runs, 1)), rng.spawn(runs))
        # Only the one has values other than 0 here, so that only that gradient is in the weights.
        outputs.append(np.array([model.parameters[0, :-1].mean() for model in models])[:, None])
    return bound_epsilon(*outputs, delta=learner.delta, confidence=0.999)


class HardlyNoise(DPSGD):
    """Claims an epsilon for a fiftieth of the noise that it needs."""

    name = "hardly-noise"

    def noise(self):
        return super().noise() / 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [{"steps": 1, "share": 1.0}, {"steps": 20, "share": 1.0}, {"steps": 20, "share": 0.3}],
    ids=["one step", "everybody in each step", "samples"],
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_canary_proves_no_more_than_epsilon_unless_noise_is_missing(epsilon, parameters):
    assert attack(DPSGD(epsilon=epsilon, **parameters), 800) <= epsilon
    assert attack(HardlyNoise(epsilon=epsilon, **parameters), 800) > epsilon


def test_wrong_parameters_and_people_are_refused(people):
    for wrong in ({"epsilon": 0.001}, {"share": 0.0}, {"delta": 0.0}, {"hidden": (3, 3)}):
        with pytest.raises(ValidationError):
            DPSGD(**wrong)
    undeclared = Sample((), features=people.features, labels=people.labels)
    with pytest.raises(InputError, match="learner 'dp-sgd'"):
        DPSGD().fit(undeclared, np.random.default_rng(0))
