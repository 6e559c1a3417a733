"""The learner `adversarial`: on PyTorch where it is installed (`tox run -e adversarial`)."""

import inspect
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from fpbench_defences import adversarial
from fpbench_defences.adversarial import Adversarial
from pydantic import ValidationError

import fpbench
from fpbench import FpbenchError

needs_torch = pytest.mark.skipif(not find_spec("torch"), reason=str(Adversarial.unavailable()))


def fit(people, seed=1, **options):
    learner = Adversarial(**{"epochs": 15, "hidden": [8], "rate": 0.005, **options})
    return learner.fit(people, np.random.default_rng(seed))


def find_gap(model, people):
    predictions = model.predict(people.features, np.random.default_rng(0))
    rates = [predictions[people.sensitive == g].mean() for g in range(len(people.groups))]
    return max(rates) - min(rates), (predictions == people.labels).mean()


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(adversarial, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_torch")
def test_without_pytorch_it_says_what_installs_it():
    assert Adversarial.unavailable().endswith("pip install torch")
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [{"use": "adversarial"}],
        "auditor": [{"use": "group-fairness", "resamples": 0}],
    }
    (cell,) = fpbench.plan(matrix).cells
    assert "pip install torch" in cell.reason


def test_bad_input_is_refused():
    for options in ({"alpha": -1.0}, {"hidden": [0]}, {"metric": "equal-opportunity"}):
        with pytest.raises((ValidationError, FpbenchError), match=next(iter(options))):
            fpbench.component("learner", "adversarial", **options)


def test_a_network_is_its_formula(make_people):
    people = make_people(40)
    rng = np.random.default_rng(0)
    layers = ((rng.normal(size=(4, 3)), rng.normal(size=3)), (rng.normal(size=(3, 1)), np.ones(1)))
    model = adversarial.Network("one-hot", np.full(4, 0.5), np.full(4, 2.0), layers)
    x = (fpbench.models.encode(people.features).astype(float) - 0.5) / 2
    logit = np.maximum(x @ layers[0][0] + layers[0][1], 0) @ layers[1][0][:, 0] + 1
    proba = model.predict_proba(people.features, rng)
    assert proba[:, 1] == pytest.approx(1 / (1 + np.exp(-logit)))
    assert (model.predict(people.features, rng) == (logit > 0)).all()


@needs_torch
def test_one_label_needs_no_training(make_people, rng):
    people = make_people(40)
    for label in (0, 1):
        model = fit(people.having(labels=np.full(40, label, np.int8)))
        assert (model.predict(people.features, rng) == label).all()


@needs_torch
@pytest.mark.parametrize("metric", ["statistical-parity", "equalized-odds"])
def test_it_is_fairer_than_without_its_adversary(metric, make_people):
    people, others = make_people(1500), make_people(4000, seed=1)
    plain = fpbench.component("learner", "plain", base="logistic-regression").fit(
        people, np.random.default_rng(0)
    )
    unfair, _ = find_gap(plain, others)
    gap, accuracy = find_gap(fit(people, metric=metric, epochs=10), others)
    assert unfair > 0.2
    assert gap < (0.6 if metric == "statistical-parity" else 0.9) * unfair
    assert accuracy > 0.6


@needs_torch
def test_training_that_diverges_is_an_error(make_people):
    with pytest.raises(FpbenchError, match="choose a lower rate"):
        fit(make_people(100), rate=1.0, alpha=1000.0, adversary_rate=1.0, hidden=[64, 64])


@needs_torch
def test_three_groups_and_no_hidden_layer(make_people):
    model = fit(make_people(300, 3), hidden=[], adversary_hidden=[4], epochs=2)
    assert [weights.shape for weights, _ in model.layers] == [(5, 1)]


@needs_torch
def test_the_generator_alone_decides(make_people):
    people = make_people(200)
    before = inspect.getfile
    models = [fit(people, seed, epochs=2) for seed in (1, 1, 2)]
    assert inspect.getfile is before
    first, again, other = (model.layers[0][0] for model in models)
    assert (first == again).all()
    assert not np.allclose(first, other)


@needs_torch
def test_the_model_needs_pytorch_no_more(make_people, tmp_path):
    people = make_people(200)
    model = fit(people, epochs=2)
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps((model, people.features)))
    code = (
        "import pickle, sys, numpy as np\n"
        f"model, features = pickle.loads(open({str(path)!r}, 'rb').read())\n"
        "print(model.predict_proba(features, np.random.default_rng(0))[:, 1].sum())\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    ours = model.predict_proba(people.features, np.random.default_rng(0))[:, 1].sum()
    assert float(done.stdout) == pytest.approx(ours)
