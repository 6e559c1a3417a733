"""Whom a reader of a protected report is sure of, in 10,000 small worlds of each defence."""

import numpy as np
import pandas as pd
import pytest

from fpbench import FairnessReport
from fpbench.correction.facts import exact_components
from fpbench.correction.facts.interior_point import LinearSolver
from fpbench.reports.assessments.attack import Reader, attack

WORLDS = 10_000
TOGETHER = 50
"""Worlds of one report: people who share no slice with those of other worlds."""
COUNTS, RATES = ["selected", "rejected"], ["selection-rate"]
DEFENCES = {
    "none": (COUNTS, {}),
    "laplace": (COUNTS, {"noise": "laplace", "epsilon": 6.0}),
    "gaussian": (COUNTS, {"noise": "gaussian", "epsilon": 6.0, "delta": 1e-3}),
    "discrete laplace": (COUNTS, {"noise": "discrete-laplace", "epsilon": 6.0}),
    "discrete gaussian": (COUNTS, {"noise": "discrete-gaussian", "epsilon": 6.0, "delta": 1e-3}),
    "exponential": (COUNTS, {"noise": "exponential", "epsilon": 12.0}),
    "consistent": (COUNTS, {"noise": "discrete-laplace", "epsilon": 6.0, "consistent": True}),
    "noisy rates": (RATES, {"noise": "discrete-laplace", "epsilon": 6.0}),
    "rounding to 3": (COUNTS, {"round_to": 3}),
    "rounding to 5": (RATES, {"round_to": 5}),
    "decimals": (RATES, {"decimals": 1}),
    "no sizes": (RATES, {"sizes": False}),
    "decimals without sizes": (RATES, {"decimals": 1, "sizes": False}),
    "min_cell": (COUNTS, {"min_cell": 5}),
    "min_group": (COUNTS, {"min_group": 2}),
    "min_group of rates": (RATES, {"min_group": 2}),
    "min_group and decimals": (RATES, {"min_group": 2, "decimals": 1}),
    "complementary": (COUNTS, {"min_group": 2, "complementary": True}),
    "complementary of rates": (RATES, {"min_group": 2, "min_cell": 3, "complementary": True}),
    "nearest 3": (COUNTS, {"round_to": 3, "rounding": "nearest"}),
    "suppress at most 1, then nearest 3": (
        COUNTS,
        {"min_group": 2, "round_to": 3, "rounding": "nearest"},
    ),
    "midpoint 3": (COUNTS, {"round_to": 3, "rounding": "midpoint"}),
    "midpoint rates": (RATES, {"round_to": 3, "rounding": "midpoint"}),
    "controlled 3": (COUNTS, {"round_to": 3, "rounding": "controlled"}),
    "cell keys": (COUNTS, {"cell_keys": {"bound": 2, "variance": 0.5}}),
    "cell keys of rates": (RATES, {"cell_keys": {"bound": 2, "variance": 0.5}}),
}


def draw_worlds(rng, k):
    """People of many worlds, with their prior beliefs, which are calibrated, and groups."""
    sizes = rng.integers(4, 13, TOGETHER)
    world = np.repeat(np.arange(TOGETHER), sizes)
    n = len(world)
    X = pd.DataFrame({"world": np.char.add("w", world.astype(str))})
    for name in "de":
        X[name] = rng.integers(0, 2, n).astype(str)
    beliefs = rng.dirichlet(np.ones(k), n)
    truth = (rng.random(n)[:, None] > beliefs.cumsum(axis=1)).sum(axis=1)
    return X, rng.integers(0, 2, n), beliefs, np.minimum(truth, k - 1)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("defence", DEFENCES)
def test_who_is_called_sure_is_right_995_times_in_1000(defence, exact, monkeypatch):
    if not exact:  # beliefs by maximum entropy, as of people in too many slices
        monkeypatch.setattr(exact_components, "_MOST_STEPS", -1)
    metrics, arguments = DEFENCES[defence]
    rng = np.random.default_rng(list(DEFENCES).index(defence))
    sure = right = 0
    expected, got = [], []
    with LinearSolver() as solver:
        for number in range(WORLDS // TOGETHER):
            k = 2 + number % 2
            X, predictions, beliefs, truth = draw_worlds(rng, k)
            groups = pd.Categorical.from_codes(truth, list("abc"[:k]))
            tables = [["world"], ["world", "d"]] + [["world", "e"]] * (number % 4 > 1)
            report = FairnessReport.from_predictions(
                X, predictions, groups, by=list(X), tables=tables, metrics=metrics,
                **{"min_cell": 0, "rng": rng} | arguments,
            )  # fmt: skip
            facts = report.facts(X, predictions)
            found = attack(facts, Reader(beliefs, None, 0.03), 600, solver=solver)
            named, who = found.beliefs.argmax(axis=1), found.find_sure(0.999)
            sure, right = sure + who.sum(), right + (named == truth)[who].sum()
            expected.append(found.beliefs.max(axis=1))
            got.append(named == truth)
    over = np.concatenate(expected) - np.concatenate(got)
    error = over.std() / len(over) ** 0.5
    print(
        f"{defence}, {exact}: sure {sure}, right {right}, {100 * right / max(sure, 1):.3f} %, "
        f"too confident by {over.mean():.4f} +- {error:.4f}"
    )
    assert right >= 0.995 * sure
    if exact:
        assert abs(over.mean()) < (3 * error if defence.startswith("cell keys") else 0.03)
