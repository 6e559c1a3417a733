"""Time and strength of what follows from fairness reports about Adult, against scipy.

    FPBENCH_DATA=DIR python benchmarks/perf/reports.py [--order N ...]

One thread. A third of Adult is reported on, by sex, in slices of up to two and three columns:
counts of at least 10 people by prediction; beliefs are those of calibrated boosted trees that
learnt from another third. Beliefs to an error bound of .01 are timed beside scipy's L-BFGS-B on the
whole dual, scaled by the counts' variances, in one run; scipy is stopped when it has taken eight
times as long. Exits with 1 if a number misses its limit.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

import fpbench
from fpbench.auditing import Facts, FairnessReport, condition_beliefs, propagate, prove
from fpbench.correction import calibrate_beliefs
from fpbench.models import encode

ERROR = 0.01
SIGMA = 0.05
"""Softness of exact counts, for both."""
_PATIENCE = 8.0

LEAST = {
    2: {"proven": 8300.0, "accuracy": 0.9},
    3: {"proven": 13300.0, "accuracy": 0.963, "times scipy": 5.0},
}
MOST = {2: {"programs": 30.0}, 3: {"whole": 8.0}}
"""Limits, in seconds where not a number of people, a share or a ratio."""


class Target(NamedTuple):
    """People, and what an adversary believes of them."""

    features: object
    predictions: NDArray[np.int64]
    codes: NDArray[np.int64]
    groups: NDArray[np.str_]
    beliefs: NDArray[np.float64]


def make_target() -> Target:
    """A third of Adult; a model trained on them; beliefs learnt from another third."""
    table = fpbench.dataset("adult", sensitive="sex")
    target, adversary = np.split(np.random.default_rng(0).permutation(len(table)), 3)[::2]
    numbers = encode(table.features, "ordinal")
    model = HistGradientBoostingClassifier(random_state=0)
    predictions = model.fit(numbers[target], table.labels[target]).predict(numbers)
    seen = np.column_stack([numbers, predictions])
    learnt, held_out = np.split(adversary, [4 * len(adversary) // 5])
    trees = HistGradientBoostingClassifier(random_state=0, max_iter=150, learning_rate=0.06)
    trees.fit(seen[learnt], table.codes[learnt])
    beliefs, _ = calibrate_beliefs(
        trees.predict_proba(seen[target]),
        trees.predict_proba(seen[held_out]),
        table.codes[held_out],
    )
    features = table.features.iloc[target].reset_index(drop=True)
    codes = table.codes[target].astype(np.int64)
    return Target(
        features,
        predictions[target].astype(np.int64),
        codes,
        np.array(table.groups)[codes],
        beliefs,
    )


class _Enough(Exception):  # noqa: N818
    pass


def time_scipy(facts: Facts, beliefs: NDArray[np.float64], seconds: float) -> tuple[float, float]:
    """Seconds and bound of scipy on the dual of all published counts of group 1."""
    published = facts.take(~facts.derived)
    sets, counts = published.sets.astype(np.float64), published.low[:, 1]
    membership, variance = sets.T.tocsr(), SIGMA**2
    prior = np.log(beliefs[:, 1]) - np.log(beliefs[:, 0])
    flat = np.logaddexp(0, prior).sum()
    scale = 1 / np.sqrt(sets @ (beliefs[:, 1] * beliefs[:, 0]) + variance)
    started, bound = time.perf_counter(), np.inf

    def evaluate(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal bound
        multipliers = scaled * scale
        logits = prior + membership @ multipliers
        residual = counts - sets @ expit(logits) - variance * multipliers
        gap = residual @ residual / (2 * variance)
        bound = min(bound, float(np.sqrt(gap / (2 * len(prior)))))
        if bound <= ERROR or time.perf_counter() - started > seconds:
            raise _Enough
        value = np.logaddexp(0, logits).sum() - flat - multipliers @ counts
        return value + variance / 2 * multipliers @ multipliers, -residual * scale

    options = {"maxiter": 10**6, "maxfun": 10**6, "maxcor": 10, "ftol": 0, "gtol": 0}
    with suppress(_Enough):
        minimize(evaluate, np.zeros(len(counts)), jac=True, method="L-BFGS-B", options=options)
    return time.perf_counter() - started, bound


def measure(target: Target, order: int) -> dict[str, float]:
    """Seconds of each step, and what comes of it."""
    features, predictions, codes, groups, beliefs = target
    report = FairnessReport.from_predictions(
        features, predictions, groups, by=list(features.columns), order=order,
        metrics=("selected", "rejected"), min_cell=10,
    )  # fmt: skip
    clock = [time.perf_counter()]
    facts = report.facts(features, predictions)
    clock.append(time.perf_counter())
    quick = propagate(facts)
    clock.append(time.perf_counter())
    after = condition_beliefs(facts, beliefs, quick, error=ERROR)
    clock.append(time.perf_counter())
    possible = prove(facts, quick)
    clock.append(time.perf_counter())
    final = condition_beliefs(facts, beliefs, possible, error=ERROR)
    clock.append(time.perf_counter())
    built, propagated, conditioned, programs, last = np.diff(clock)
    assert possible[np.arange(len(codes)), codes].all(), "a proof is wrong"
    ours = propagated + conditioned
    scipy, bound = time_scipy(facts, beliefs, _PATIENCE * ours)
    return {
        "published counts": float((~facts.derived).sum()),
        "facts": built,
        "propagation": propagated,
        "beliefs": conditioned,
        "bound": after.error_bound,
        "programs": programs,
        "beliefs, programs before": last,
        "whole": built + propagated + programs + last,
        "scipy": scipy,
        "bound of scipy": bound,
        "times scipy": scipy / ours,
        "proven by propagation": float((quick.sum(axis=1) == 1).sum()),
        "proven": float((possible.sum(axis=1) == 1).sum()),
        "accuracy before": float((beliefs.argmax(axis=1) == codes).mean()),
        "accuracy": float((final.beliefs.argmax(axis=1) == codes).mean()),
    }


def main() -> int:
    """Measure each order, print a table, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, nargs="+", default=[2, 3])
    options, failed = parser.parse_args(), False
    target = make_target()
    for order in options.order:
        title = f"{len(target.codes):,} people of Adult, slices of up to {order} columns"
        table = Table("", "measured", "limit", title=title)
        least, most = LEAST.get(order, {}), MOST.get(order, {})
        for name, value in measure(target, order).items():
            limit = f">= {least[name]:g}" if name in least else ""
            limit = f"<= {most[name]:g}" if name in most else limit
            missed = value < least.get(name, -np.inf) or value > most.get(name, np.inf)
            table.add_row(name, f"{value:,.4g}", limit + (" MISSED" if missed else ""))
            failed |= missed
        Console().print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
