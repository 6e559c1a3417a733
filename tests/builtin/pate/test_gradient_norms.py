"""Equations (42) and (43) of Tran et al., with three classes, against differences."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, softmax

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "gradient_norms.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gradient_norms", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_are_those_of_the_loss_of_c_classes(script):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 5)), np.eye(3)[[0, 1, 2, 1]]
    weights = [rng.normal(size=(6, 3)), rng.normal(size=(5, 6))]

    def losses():
        chances = softmax(expit(x @ weights[1]) @ weights[0], axis=1)
        return -np.log((chances * y).sum(axis=1))

    squares = np.zeros(4)
    for w in weights:
        for place in np.ndindex(w.shape):
            kept, ends = w[place], []
            for step in (1e-6, -1e-6):
                w[place] = kept + step
                ends.append(losses())
            w[place] = kept
            squares += ((ends[0] - ends[1]) / 2e-6) ** 2
    np.testing.assert_allclose(script.measure_norms(x, y, *weights), np.sqrt(squares), rtol=1e-6)


def test_training_separates_classes(script):
    rng = np.random.default_rng(1)
    classes = rng.integers(3, size=300)
    x = np.eye(3)[classes] * 4 + rng.normal(size=(300, 3))
    off = script.compute_gradients(x, 0 * x, *script.train(x, np.eye(3)[classes], 0))[1]
    assert (off.argmax(axis=1) == classes).mean() > 0.95
