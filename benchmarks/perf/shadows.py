"""Speed of shadow models: all at once (`fit_many`), and one by one (`fit`), side by side.

    python benchmarks/perf/shadows.py [--people N] [--shadows S] [--repeats R]

One thread, N people of census-synthetic; S models of random halves. Logistic regression is also
compared with a loop over scikit-learn's own pipeline (`StandardScaler`, `LogisticRegression`),
which is given halves of one encoded matrix and stops earlier. They take turns, and medians of
processor time are compared. Exits with 1 if logistic regressions at once are not 4 times as fast
as one by one, or trees not 5 times.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fpbench
from fpbench import Learner
from fpbench.auditing import draw_halves
from fpbench.models import encode

LEAST = {"logistic regression": 4.0, "private tree, depth 3": 5.0}
"""How many times as fast all at once must be."""


def main() -> int:
    """Print the table; 1 if it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    people = fpbench.dataset("census-synthetic", rows=options.people).sample()
    members = draw_halves(people.labels, options.shadows, np.random.default_rng(0))
    matrix, labels = encode(people.features).astype(np.float64), people.labels
    learners = {
        "logistic regression": fpbench.component("learner", "plain", base="logistic-regression"),
        "private tree, depth 3": fpbench.component("learner", "private-tree", max_depth=3),
    }

    def sklearn_loop() -> list[Any]:
        return [
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(
                matrix[chosen], labels[chosen]
            )
            for chosen in members
        ]

    table = Table(
        "learner", "at once, s", "one by one, s", "ratio", "scikit-learn loop, s", "ratio"
    )
    slow = False
    for name, learner in learners.items():
        assert isinstance(learner, Learner)
        rivals = [
            lambda learner=learner: learner.fit_many(
                people.only(learner.needs), members, np.random.default_rng(1).spawn(len(members))
            ),
            lambda learner=learner: Learner.fit_many(
                learner, people.only(learner.needs), members,
                np.random.default_rng(1).spawn(len(members)),
            ),
        ]  # fmt: skip
        if name == "logistic regression":
            rivals.append(sklearn_loop)
        at_once, one_by_one, *others = _take_turns(rivals, options.repeats)
        slow |= one_by_one / at_once < LEAST[name]
        rest = [f"{others[0]:.3f}", f"{others[0] / at_once:.1f}"] if others else ["", ""]
        ratio = f"{one_by_one / at_once:.1f}"
        table.add_row(name, f"{at_once:.3f}", f"{one_by_one:.3f}", ratio, *rest)
    Console().print(f"{options.shadows} models, {options.people} people, {matrix.shape[1]} columns")
    Console().print(table)
    return int(slow)


def _take_turns(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Median seconds of processor time of each call."""
    seconds: list[list[float]] = [[] for _ in calls]
    for call in calls:  # imports, and caches
        call()
    for _ in range(repeats):
        for call, taken in zip(calls, seconds, strict=True):
            started = time.process_time()
            call()
            taken.append(time.process_time() - started)
    return [statistics.median(taken) for taken in seconds]


if __name__ == "__main__":
    sys.exit(main())
