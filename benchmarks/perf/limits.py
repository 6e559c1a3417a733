"""Time of the limits of leaks, against sorting the beliefs and against the posterior of a claim.

    python benchmarks/perf/limits.py [--people N ...] [--repeats R]

One thread. Everything takes turns in one run, and the least times are compared; of cells, those of
the processor, which others on the machine do not disturb. Exits with 1 if a
limit takes more than a sixth of the posterior of a claim by the same people, which is what both may
take of a million people: .5 s and 3 s. Or if the posterior of five groups, which is approximate,
takes more than 15 of those of two groups. Or if calibration, limits and tails take more than 3 % of
a cell as large as the paper's (45,222 people, `exponentiated-gradient`, `published`, `a2`,
`posterior`), or more than 5 % of a small and cheap one (12,000 people, `plain`): there, what they
call costs more than what they compute.
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
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import fpbench
from fpbench import Guarantee, Problem
from fpbench.claims import RateConstraint
from fpbench.correction import (
    compute_count_leak,
    compute_posterior,
    limit_leak,
    limit_leak_by_error,
    limit_realised_gain,
)
from fpbench.execution.work import actions, scores
from fpbench.execution.work.execute import execute
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan
from fpbench.privacy import limit_private_leak

NATS = 8.5
"""Of a claim of about 12 bits."""
SHARE = 1 / 6
"""Greatest time of the limits by information, over that of the posterior."""
CHEAP = ("limit_leak", "limit_leak_by_error")
MANY = "compute_posterior, 5 groups"
TIMES = 15.0
"""Posteriors of two groups that the posterior of five groups may take."""


def list_tasks(people: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    rng = np.random.default_rng(0)
    chances = rng.beta(2, 4, people)
    beliefs = np.column_stack([1 - chances, chances])
    five = rng.dirichlet(np.full(5, 0.7), people)
    predictions = (rng.random(people) < 0.3).astype(np.int64)
    claim = RateConstraint("statistical-parity", 0.01)
    problem = Problem((chances > 0.5).astype(np.int64), 2, predictions, None, (claim,))
    error = float(np.minimum(chances, 1 - chances).mean())
    return {
        "numpy.sort of the beliefs": lambda: np.sort(chances),
        "compute_posterior of a claim": lambda: compute_posterior(beliefs, problem),
        MANY: lambda: compute_posterior(five, replace(problem, groups=5)),
        "limit_leak": lambda: limit_leak(beliefs, NATS),
        "limit_leak, 5 groups": lambda: limit_leak(five, NATS),
        "limit_leak_by_error": lambda: limit_leak_by_error(error, NATS, people),
        "limit_realised_gain": lambda: limit_realised_gain(beliefs, NATS, delta=0.01),
        "limit_private_leak": lambda: limit_private_leak(beliefs, Guarantee(1.0, 1e-5)),
        "compute_count_leak": lambda: compute_count_leak(chances, predictions),
    }


def measure(tasks: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The least seconds of each task, of several turns."""
    seconds = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    return seconds


CELL: dict[str, Any] = {
    "seeds": [0],
    "dataset": [{"use": "census-synthetic", "rows": 45_222}],
    "learner": [
        {"use": "exponentiated-gradient", "metric": "statistical-parity", "tolerance": 0.0}
    ],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "a2"}],
    "corrector": [{"use": "posterior"}],
}
SMALL = CELL | {"dataset": [{"use": "census-synthetic"}], "learner": [{"use": "plain"}]}
MEASURING = ("calibrate_beliefs", "measure_leak", "measure_beliefs")
CELL_SHARE, SMALL_SHARE = 0.03, 0.05


def measure_share(cell: dict[str, Any]) -> dict[str, float]:
    """Processor seconds of a cell (`cell`), and of what is measured of its beliefs, by name."""
    scores._COUNT_LEAKS.clear()  # of the same cell, measured before
    plan = make_plan(read(cell), fpbench.plugin.discover(), fpbench.plugin.DataHome.default())
    seconds = dict.fromkeys(MEASURING, 0.0)

    def watch(name: str, what: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            started = time.process_time()
            result = what(*arguments)
            seconds[name] += time.process_time() - started
            return result

        return timed

    originals = {name: getattr(actions, name) for name in MEASURING}
    for name, original in originals.items():
        setattr(actions, name, watch(name, original))
    started, results = time.process_time(), {}
    for key, step in plan.steps.items():
        parents = tuple(results[parent] for parent in step.parents)
        results[key] = execute(step, parents or (fpbench.plugin.DataHome.default(),)).value
    seconds["cell"] = time.process_time() - started
    for name, original in originals.items():
        setattr(actions, name, original)
    return seconds


def show_share(title: str, cell: dict[str, Any], repeats: int) -> float:
    """Print the share of a cell that its beliefs' measures take."""
    turns = [measure_share(cell) for _ in range(repeats + 1)]  # the first one imports
    least = {name: min(turn[name] for turn in turns) for name in turns[0]}
    table = Table("part of a cell", "seconds", "share", title=title)
    for name, taken in least.items():
        table.add_row(name, f"{taken:.4f}", f"{taken / least['cell']:.4f}")
    share = sum(least[name] for name in MEASURING) / least["cell"]
    table.add_row("all that is measured", "", f"{share:.4f}")
    Console().print(table)
    return share


def main() -> int:
    """Time everything, print a table for each number of people, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=[15_074, 136_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    failed = show_share("12,000 people, plain", SMALL, options.repeats) > SMALL_SHARE
    title = "45,222 people, exponentiated-gradient"
    failed |= show_share(title, CELL, options.repeats) > CELL_SHARE
    for people in options.people:
        seconds = measure(list_tasks(people), options.repeats)
        sort, posterior = list(seconds.values())[:2]
        table = Table("task", "seconds", "sorts", "posteriors", title=f"{people:,} people")
        for name, least in seconds.items():
            table.add_row(name, f"{least:.3f}", f"{least / sort:.1f}", f"{least / posterior:.3f}")
        Console().print(table)
        failed |= any(seconds[name] > SHARE * posterior for name in CHEAP)
        failed |= seconds[MANY] > TIMES * posterior
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
