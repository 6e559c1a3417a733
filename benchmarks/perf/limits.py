"""Time of the limits of leaks, against sorting the beliefs and against the posterior of a claim.

    python benchmarks/perf/limits.py [--people N ...] [--repeats R]

One thread. Everything takes turns in one run, and the least times are compared. Exits with 1 if a
limit takes more than a sixth of the posterior of a claim by the same people, which is what both may
take of a million people: .5 s and 3 s.
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

import numpy as np
from rich.console import Console
from rich.table import Table

from fpbench import Guarantee, Problem
from fpbench.claims import RateConstraint
from fpbench.correction import (
    compute_count_leak,
    compute_posterior,
    limit_leak,
    limit_leak_by_error,
    limit_realised_gain,
)
from fpbench.privacy import limit_private_leak

NATS = 8.5
"""Of a claim of about 12 bits."""
SHARE = 1 / 6
"""Greatest time of the limits by information, over that of the posterior."""
CHEAP = ("limit_leak", "limit_leak_by_error")


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


def main() -> int:
    """Time everything, print a table for each number of people, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=[15_074, 136_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    options, failed = parser.parse_args(), False
    for people in options.people:
        seconds = measure(list_tasks(people), options.repeats)
        sort, posterior = list(seconds.values())[:2]
        table = Table("task", "seconds", "sorts", "posteriors", title=f"{people:,} people")
        for name, least in seconds.items():
            table.add_row(name, f"{least:.3f}", f"{least / sort:.1f}", f"{least / posterior:.3f}")
        Console().print(table)
        failed |= any(seconds[name] > SHARE * posterior for name in CHEAP)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
