"""Speed of shadow models: all at once (`fit_many`), one by one (`fit`), and scikit-learn, in turns.

    python benchmarks/perf/shadows.py [--people N ...] [--shadows S] [--repeats R]

One thread; S models of random halves of N people of census-synthetic, and of Adult where
`FPBENCH_DATA` has it. Logistic regression is compared with a loop over scikit-learn's own pipeline
(`StandardScaler`, `LogisticRegression` at its defaults), which is given halves of one encoded
matrix, and stops earlier: its probabilities are right to three digits or so, ours to 1e-8. Private
trees, and all one by one, up to 5,000 people. They take turns, and the least processor time of each
counts. Exits with 1 if a ratio is below what `LEAST` says.
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
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fpbench
from fpbench import Learner, Sample
from fpbench.auditing import draw_halves
from fpbench.models import encode

LEAST = {500: 10.0, 1_000: 8.0, 5_000: 5.0, 20_000: 4.0}
"""How many times as fast as scikit-learn's loop logistic regressions must be, by people."""
LEAST_ALONE = 5.0
"""How many times as fast all at once must be as one by one."""
FEW = 5_000
"""People up to whom models are trained one by one, too."""


def main() -> int:
    """Print the table; 1 if it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="*", default=[*LEAST])
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    table = Table(
        "people", "learner", "at once, s", "one by one, s", "ratio", "scikit-learn, s", "ratio"
    )
    samples = [fpbench.dataset("census-synthetic", rows=rows).sample() for rows in options.people]
    if os.environ.get("FPBENCH_DATA"):
        samples.append(fpbench.dataset("adult").sample())
    slow = False
    for people in samples:
        slow |= _compare(people, options.shadows, options.repeats, table)
    Console().print(f"{options.shadows} models")
    Console().print(table)
    return int(slow)


def _compare(people: Sample, shadows: int, repeats: int, table: Table) -> bool:
    """Add rows of these people to the table; whether one is too slow."""
    members = draw_halves(people.labels, shadows, np.random.default_rng(0))
    matrix, labels = encode(people.features).astype(np.float64), people.labels
    logistic = fpbench.component("learner", "plain", base="logistic-regression")
    tree = fpbench.component("learner", "private-tree", max_depth=3)

    def sklearn_loop(rngs: list[np.random.Generator]) -> list[Any]:
        return [
            make_pipeline(StandardScaler(), LogisticRegression()).fit(
                matrix[chosen], labels[chosen]
            )
            for chosen in members
        ]

    few, slow = len(people) <= FEW, False
    for name, learner in {"logistic regression": logistic, "private tree": tree}.items():
        assert isinstance(learner, Learner)
        seen, rivals = people.only(learner.needs), {}
        if few or learner is logistic:
            rivals["at once"] = partial(learner.fit_many, seen, members)
        if few:
            rivals["one by one"] = partial(Learner.fit_many, learner, seen, members)
        if learner is logistic:
            rivals["scikit-learn"] = sklearn_loop
        seconds = _take_turns(rivals, shadows, repeats)
        if not seconds:
            continue
        row = [f"{len(people):,}", name, f"{seconds['at once']:.3f}"]
        least = {"one by one": LEAST_ALONE, "scikit-learn": LEAST.get(len(people), 0.0)}
        for rival, bound in least.items():
            ratio = seconds.get(rival, np.nan) / seconds["at once"]
            row += [f"{seconds[rival]:.3f}", f"{ratio:.1f}"] if rival in seconds else ["", ""]
            slow |= ratio < bound
        table.add_row(*row)
    return slow


def _take_turns(
    calls: dict[str, Callable[[list[np.random.Generator]], Any]], shadows: int, repeats: int
) -> dict[str, float]:
    """Least seconds of processor time of each call; the first, with its imports, does not count."""
    seconds = dict.fromkeys(calls, np.inf)
    for number in range(repeats + 1):
        for name, call in calls.items():
            rngs = np.random.default_rng(1).spawn(shadows)
            started = time.process_time()
            call(rngs)
            if number:
                seconds[name] = min(seconds[name], time.process_time() - started)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
