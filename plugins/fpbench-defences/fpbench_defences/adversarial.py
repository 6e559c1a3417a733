"""Fairness while training: a network against another one that guesses groups (Zhang et al.)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, FpbenchError, Learner, Sample
from fpbench.claims import Metric
from fpbench.models import Encoding, encode, random_state
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats: TypeAlias = NDArray[np.float64]
_Layers: TypeAlias = tuple[tuple[_Floats, _Floats], ...]
"""Weights (inputs, units) and biases (units,) of each layer."""
_Units: TypeAlias = Annotated[int, Field(ge=1, le=4096)]

_CONSTRAINTS: dict[Metric, str] = {
    "statistical-parity": "demographic_parity",
    "equalized-odds": "equalized_odds",
}
_SURE = 40.0
"""Log-odds of a label if everybody has it."""


class Adversarial(Learner):
    """fairlearn's `AdversarialFairnessClassifier`: a network trained against an adversary.

    The adversary, a second network, guesses the group from the first one's output (and from the
    label, for equalized odds). The first learns the label without helping the adversary: its
    gradient is reduced by its projection on the adversary's gradient, and by `alpha` times the
    latter. It promises no tolerance, so this learner states no constraint: a disclosure must name
    the metric that it publishes. The model has the weights of the first network only; it predicts
    without groups, and without PyTorch.

    Notes
    -----
    fairlearn trains both networks at one rate; here the adversary learns faster, because a slow one
    lets the first network overshoot, and favour the other group. The adversary's hidden units are
    hyperbolic tangents.

    fairlearn also supports TensorFlow. In its version 0.15 with Keras 3, such networks were less
    fair than without an adversary, so this learner uses PyTorch only. There, the projection on the
    adversary's gradient for a layer of several units is computed from sums over all pairs of units.
    """

    name = "adversarial"
    summary = "a network trained against one that guesses groups (fairlearn, PyTorch)"
    reference = (
        "Zhang, Lemoine, Mitchell. Mitigating Unwanted Biases with Adversarial Learning. AIES 2018"
    )
    gives_scores = True

    metric: Literal["statistical-parity", "equalized-odds"] = Field(
        "statistical-parity", description="fairness metric to train for"
    )
    alpha: float = Field(1.0, ge=0, le=1000, description="weight of the adversary's gradient")
    hidden: list[_Units] = Field([32], description="units of each hidden layer; empty: logistic")
    adversary_hidden: list[_Units] = Field([], description="the same for the adversary")
    epochs: int = Field(40, ge=1, le=10_000, description="passes over the training people")
    batch: int = Field(128, ge=1, description="people per step")
    rate: float = Field(0.001, gt=0, le=1, description="learning rate, by Adam")
    adversary_rate: float = Field(
        0.05, gt=0, le=1, description="learning rate of the adversary, which must keep up"
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")

    @classmethod
    def unavailable(cls) -> str | None:
        """Why it cannot run here: without PyTorch."""
        return None if find_spec("torch") else "needs PyTorch: pip install torch"

    @property
    def portable(self) -> bool:
        """Never: results of training depend on the processor."""
        return False

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train both networks on features, labels and groups.

        Raises FpbenchError if the networks diverge.
        """
        matrix = encode(sample.features, self.encoding).astype(np.float64)
        middle, spread = matrix.mean(axis=0), matrix.std(axis=0)
        spread[spread == 0] = 1.0
        if len(np.unique(sample.labels)) < 2:
            sure = _SURE if sample.labels.any() else -_SURE
            layers: _Layers = ((np.zeros((matrix.shape[1], 1)), np.array([sure])),)
        else:
            layers = self._train((matrix - middle) / spread, sample, random_state(rng))
        return Network(self.encoding, middle, spread, layers)

    def _train(self, matrix: _Floats, sample: Sample, seed: int) -> _Layers:
        """Weights and biases of the layers."""
        from fairlearn import adversarial

        with _use_torch() as torch:
            classifier = adversarial.AdversarialFairnessClassifier(
                backend="torch",
                predictor_model=_list_layers(self.hidden, "relu"),
                # All rectifiers may be off; fairlearn then divides the gradient by its length, 0.
                adversary_model=_list_layers(self.adversary_hidden, "tanh"),
                constraints=_CONSTRAINTS[self.metric],
                predictor_optimizer=lambda net: torch.optim.Adam(net.parameters(), self.rate),
                adversary_optimizer=lambda net: torch.optim.Adam(
                    net.parameters(), self.adversary_rate
                ),
                alpha=self.alpha,
                epochs=self.epochs,
                batch_size=self.batch,
                shuffle=True,
                random_state=_WholeSeeds(seed),
            )
            try:
                classifier.fit(matrix, sample.labels, sensitive_features=sample.sensitive)
            except RuntimeError as error:
                if "between 0 and 1" not in str(error):  # PyTorch's message for NaN scores
                    raise
            layers = _read_layers(classifier.backendEngine_.predictor_model)
        if not all(np.isfinite(part).all() for layer in layers for part in layer):
            raise FpbenchError(
                f"learner {self.name!r}: training diverged: choose a lower rate "
                f"(now {self.rate:g}), adversary_rate ({self.adversary_rate:g}) or alpha "
                f"({self.alpha:g})"
            )
        return layers


@dataclass(frozen=True)
class Network:
    """A network of layers with rectifiers between them, whose output is the log-odds of label 1."""

    encoding: Encoding
    middle: _Floats
    spread: _Floats
    layers: _Layers

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; log-odds of 0 are label 0."""
        return (self._find_log_odds(features) > 0).astype(np.int8)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> _Floats:
        """Probabilities (n, 2) of label 0 and label 1."""
        from scipy.special import expit

        positive = expit(self._find_log_odds(features))
        return np.column_stack([1.0 - positive, positive])

    def _find_log_odds(self, features: DataFrame) -> _Floats:
        values = (encode(features, self.encoding).astype(np.float64) - self.middle) / self.spread
        for at, (weights, biases) in enumerate(self.layers):
            values = (np.maximum(values, 0.0) if at else values) @ weights + biases
        return np.asarray(values[:, 0])


def _list_layers(units: list[int], activation: str) -> list[int | str]:
    """Hidden layers as fairlearn takes them."""
    return [part for size in units for part in (size, activation)]


def _read_layers(model: Any) -> _Layers:
    """Weights and biases of a network of PyTorch."""
    linear = [layer for layer in model.layers_ if hasattr(layer, "weight")]
    return tuple(
        (one.weight.detach().numpy().T.astype(float), one.bias.detach().numpy().astype(float))
        for one in linear
    )


class _WholeSeeds(np.random.RandomState):
    """A generator of integer seeds.

    fairlearn (at least 0.15) seeds PyTorch with `random()` rounded to 0: networks would start from
    the same weights for any seed.
    """

    def random(self, size: Any = None) -> Any:
        """A random integer."""
        return int(self.randint(2**31))


@contextmanager
def _use_torch() -> Iterator[Any]:
    """PyTorch on one thread; its random state, threads and patches are restored."""
    getfile = inspect.getfile  # PyTorch replaces it on import
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield torch
    finally:
        torch.set_num_threads(threads)
        inspect.getfile = getfile
