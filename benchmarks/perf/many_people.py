"""Time and memory of the main jobs by the number of people, up to ten million.

    python benchmarks/perf/many_people.py [--people N ...] [--limit GIB]

For each number of people, a process of its own draws them (two groups, four features), makes a
table of them, audits a rule without and with differential privacy, conditions an adversary's
beliefs about everybody on the published claim, makes a fairness report by slices of two columns,
and assesses it. One thread. After each job: seconds of the processor, which others on the machine
do not disturb, and the greatest memory of the process so far. Exits with 1 if that is above the
limit (16 GiB), or if ten times the people take more than 30 times as long in a job of a second.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from rich.console import Console
from rich.table import Table

import fpbench
from fpbench import FairnessReport, Problem
from fpbench.claims import RateConstraint
from fpbench.correction import compute_posterior

PEOPLE = [100_000, 1_000_000, 10_000_000]
LIMIT = 16.0
"""GiB of memory that the greatest number of people may take."""
GROWTH, LEAST = 3.0, 1.0
"""How much faster than the number of people a job's time may grow, if it takes so many seconds."""
REGIONS = ["north", "east", "south", "west"]


class Cost(NamedTuple):
    """What a job took."""

    job: str
    seconds: float
    memory: float
    """GiB, the greatest of the process so far."""


class Rule:
    """A model: who earns much gets the loan."""

    def predict(self, people: pd.DataFrame) -> np.ndarray:
        """Labels (n,)."""
        return (people["income"] > 40).to_numpy().astype(np.int8)


def draw_people(n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features of n people, their groups, and an adversary's calibrated beliefs (n, 2)."""
    rng = np.random.default_rng(0)
    chances = rng.beta(1.0, 1.5, n)
    group = (rng.random(n) < chances).astype(np.int8)
    features = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n, dtype=np.int16),
            "income": (30 + 6 * group + 12 * rng.standard_normal(n)).astype(np.float32),
            "hours": rng.integers(5, 60, n, dtype=np.int16),
            "region": pd.Categorical.from_codes(rng.integers(0, 4, n, dtype=np.int8), REGIONS),
        }
    )
    return features, group, np.column_stack([1 - chances, chances])


def run_jobs(n: int) -> list[Cost]:
    """Do all jobs with n people, and say what each took."""

    def measure(job: str, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        begun = time.process_time()
        result = work(*given, **named)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        cost = Cost(job, time.process_time() - begun, memory)
        print(f"{n:,} people, {job}: {cost.seconds:.2f} s", file=sys.stderr)
        costs.append(cost)
        return result

    costs: list[Cost] = []
    features, group, beliefs = measure("draw", draw_people, n)
    model = Rule()
    predictions = model.predict(features)
    names = pd.Categorical.from_codes(group, ["a", "b"])
    frame = features.assign(group=names, label=predictions ^ (np.arange(n) % 10 == 0))
    measure("table", fpbench.table, frame, label="label", sensitive="group")
    del frame
    measure("audit", fpbench.audit, model, features, names)
    measure("private audit", fpbench.audit, model, features, names, epsilon=1.0, rng=0)
    claim = RateConstraint("statistical-parity", find_gap(predictions, group))
    guess = beliefs.argmax(axis=1).astype(np.int8)
    problem = Problem(guess, 2, predictions, None, (claim,), beliefs=beliefs)
    measure("posterior of the claim", compute_posterior, beliefs, problem)
    del problem, guess
    columns, make = list(features), FairnessReport.from_predictions
    report = measure("report", make, features, predictions, names, by=columns, order=2)
    known = {"groups": np.asarray(names), "beliefs": beliefs, "seconds": 3600}
    measure("assessment", fpbench.assess, report, features, predictions, **known)
    return costs


def find_gap(predictions: ArrayLike, group: ArrayLike) -> float:
    """Greatest distance of a group's rate to that of everybody, rounded up."""
    predictions, group = np.asarray(predictions), np.asarray(group)
    overall = predictions.mean()
    most = max(abs(predictions[group == k].mean() - overall) for k in (0, 1))
    return math.ceil(1000 * most) / 1000


def measure_all(people: list[int]) -> dict[int, list[Cost]]:
    """What each job took, by the number of people; each number in a process of its own."""
    found = {}
    for n in people:
        command = [sys.executable, __file__, "--jobs-of", str(n)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[n] = [Cost(*one) for one in json.loads(done.stdout)]
    return found


def find_faults(found: dict[int, list[Cost]], limit: float) -> list[str]:
    """What takes more memory, or grows faster, than it may."""
    faults = [
        f"{cost.job} of {n:,} people: {cost.memory:.1f} GiB"
        for n, costs in found.items()
        for cost in costs
        if cost.memory > limit
    ]
    for few, many in pairwise(sorted(found)):
        for less, more in zip(found[few], found[many], strict=True):
            most = GROWTH * many / few
            if more.seconds > max(LEAST, most * less.seconds):
                faults.append(
                    f"{more.job}: {many / few:g} times the people take "
                    f"{more.seconds / less.seconds:.0f} times as long"
                )
    return faults


def show(found: dict[int, list[Cost]]) -> None:
    """Print a table, a line for each job."""
    table = Table("job", *(f"{n:,}: s" for n in found), *(f"{n:,}: GiB" for n in found))
    for costs in zip(*found.values(), strict=True):
        seconds = (f"{cost.seconds:.2f}" for cost in costs)
        table.add_row(costs[0].job, *seconds, *(f"{cost.memory:.2f}" for cost in costs))
    Console(width=120).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="GIB")
    parser.add_argument("--jobs-of", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.jobs_of is not None:
        print(json.dumps(run_jobs(chosen.jobs_of)))
        return 0
    found = measure_all(chosen.people)
    show(found)
    faults = find_faults(found, chosen.limit)
    print(
        "\n".join(faults)
        or f"within {chosen.limit:g} GiB, and nowhere near quadratic in the number of people"
    )
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
