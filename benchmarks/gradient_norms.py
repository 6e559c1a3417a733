"""Input norms against gradient norms of networks of C classes (Tran et al. 2021, appendix C.5).

    FPBENCH_DATA=DIR python benchmarks/gradient_norms.py [--seeds N]

The network is the paper's: one hidden layer of sigmoid units, softmax. Labels of fpbench are 0 and
1, so classes are those of scikit-learn's small data sets, or label and group together.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit, softmax
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import fpbench
from fpbench.models import encode

HIDDEN, STEPS, RATE, PENALTY, PEOPLE = 16, 600, 0.02, 1e-3, 1500


def compute_gradients(
    x: np.ndarray, y: np.ndarray, last: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of people (n, d) of one-hot classes (n, C): hidden units, f - y, and the hidden gradient."""
    units = expit(x @ first)
    off = softmax(units @ last, axis=1) - y
    return units, off, off @ last.T * units * (1 - units)  # minus equation (43) without x


def train(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (H, C) and (d, H), by Adam on everybody."""
    rng = np.random.default_rng(seed)
    last = rng.normal(size=(HIDDEN, y.shape[1])) / HIDDEN**0.5
    first = rng.normal(size=(x.shape[1], HIDDEN)) / x.shape[1] ** 0.5
    moments = [(np.zeros_like(w), np.zeros_like(w)) for w in (last, first)]
    for step in range(1, STEPS + 1):
        units, off, hidden = compute_gradients(x, y, last, first)
        gradients = (units.T @ off / len(x), x.T @ hidden / len(x))
        for w, g, (mean, square) in zip((last, first), gradients, moments, strict=True):
            whole = g + 2 * PENALTY * w
            mean[:] += 0.1 * (whole - mean)
            square[:] += 0.001 * (whole**2 - square)
            w[:] -= RATE * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return last, first


def measure_norms(x: np.ndarray, y: np.ndarray, last: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Norms (n,) of the gradients of people's losses: equation (42)."""
    units, off, hidden = compute_gradients(x, y, last, first)
    squares = [(a**2).sum(axis=1) for a in (off, units, x, hidden)]
    return np.sqrt(squares[0] * squares[1] + squares[2] * squares[3])


def list_settings() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, inputs (n, d) and classes (n,)."""
    for load in (load_iris, load_wine, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    for name in ("parkinsons", "credit-card", "bank", "adult"):
        people = fpbench.dataset(name).sample()
        people = people.take(np.random.default_rng(0).permutation(len(people))[:PEOPLE])
        classes = people.labels * len(people.groups) + people.sensitive
        yield f"{name}, label and group", encode(people.features), classes


def main() -> None:
    """Print the rank correlation for each setting, and its spread over seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    table = Table("data", "classes", "rank correlation", "accuracy")
    seeds = range(parser.parse_args().seeds)
    for name, inputs, classes in list_settings():
        x = StandardScaler().fit_transform(inputs.astype(float))
        y = np.eye(classes.max() + 1)[classes]
        found = []
        for seed in seeds:
            weights = train(x, y, seed)
            right = compute_gradients(x, 0 * y, *weights)[1].argmax(axis=1) == classes
            rank = spearmanr(np.linalg.norm(x, axis=1), measure_norms(x, y, *weights)).statistic
            found.append((rank, right.mean()))
        (rank, right), spread = np.mean(found, axis=0), np.std(found, axis=0)[0]
        table.add_row(name, str(y.shape[1]), f"{rank:.2f} ± {spread:.2f}", f"{right:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
