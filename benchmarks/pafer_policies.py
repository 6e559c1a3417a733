"""Error of audits by each policy for invalid answers, and by the fit within public sizes.

    FPBENCH_DATA=DIR python benchmarks/pafer_policies.py [--epsilon E ...] [--repetitions N]

One histogram of UCI Adult's test file, {rejected, accepted} by group, with Laplace noise; a tree of
depth 4 predicts. The error is that of the least group rate divided by the greatest. The fit is that
of released tables; of two groups it measures one, as the other follows from public sizes.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench.builtin.pafer.queries import compute_ratios
from fpbench.models import encode
from fpbench.privacy import COUNT_SENSITIVITY
from fpbench.privacy.marginal_release import Marginals, fit_people, measure_marginals

WHITE = {"column": "race", "one_of": ["White"]}
PEOPLE = {
    "ethnicity": (WHITE, ["fnlwgt", "sex"]), "sex": ("sex", ["fnlwgt", "race"]),
    "both": (["sex", WHITE], ["fnlwgt"]),
}  # fmt: skip
REPLACED = ("0", "1", "uniform", "total-valid")
POLICIES = [
    "clip", "project", *(f"{low}/{high}" for low in REPLACED for high in REPLACED[2:]),
]  # fmt: skip


def count_people(name: str) -> np.ndarray:
    """(2, K) people of each prediction and group."""
    sensitive, drop = PEOPLE[name]
    table = fpbench.dataset("adult", sensitive=sensitive, drop=drop)
    test = np.asarray(table.test)
    numbers = encode(table.features, "ordinal")
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    predictions = tree.fit(numbers[~test], table.labels[~test]).predict(numbers[test])
    counts = np.zeros((2, len(table.groups)))
    np.add.at(counts, (predictions.astype(int), table.codes[test]), 1)
    return counts


def measure_errors(counts: np.ndarray, epsilon: float, repetitions: int) -> dict[str, float]:
    """Mean absolute error of the ratio of rates, by policy and of the fit."""
    mechanism, rng = fpbench.component("mechanism", "laplace"), np.random.default_rng(0)
    totals = counts.sum(axis=1)
    people = np.broadcast_to(counts.astype(np.int64), (repetitions, *counts.shape))
    answers = mechanism.release(
        people, COUNT_SENSITIVITY["attribute"], epsilon, rng, totals[:, None]
    )
    repaired = {
        name: fpbench.component("policy", name).repair(answers, totals) for name in POLICIES
    }
    marginals = Marginals.of(np.array([[0], [1]]), totals.astype(np.int64), [(0,)], [], pure=True)
    noisy = [
        measure_marginals(marginals, counts, mechanism, epsilon, rng) for _ in range(repetitions)
    ]
    repaired["the fit"] = np.array([fit_people(marginals, one, counts.shape[1]) for one in noisy])

    def ratio(cells: np.ndarray) -> np.ndarray:
        return compute_ratios(cells[..., 1:, :], cells.sum(axis=-2, keepdims=True))

    true = ratio(counts)
    return {name: float(np.abs(ratio(cells) - true).mean()) for name, cells in repaired.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.02, 0.1, 1.0])
    parser.add_argument("--repetitions", type=int, default=300)
    options = parser.parse_args()
    shown, errors = Table(title="Mean error of the ratio of rates"), {}
    shown.add_column("policy")
    for name in PEOPLE:
        counts = count_people(name)
        for epsilon in options.epsilon:
            shown.add_column(f"{name} {epsilon:g}", justify="right")
            for policy, error in measure_errors(counts, epsilon, options.repetitions).items():
                errors.setdefault(policy, []).append(f"{error:.4f}")
    for policy, row in errors.items():
        shown.add_row(policy, *row)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
