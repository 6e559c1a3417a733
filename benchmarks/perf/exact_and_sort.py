"""Time and memory of the exact correction, against sorting the weights in the same run.

    python benchmarks/perf/exact_and_sort.py [--people N ...] [--repeats R]
        [--metric METRIC] [--decimals D]

One thread. The alternatives take turns, and medians are compared. Exits with 1 if a ratio is above
its limit.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import itertools
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import fpbench
from fpbench import Problem
from fpbench.claims import RateConstraint
from fpbench.claims.rates import METRICS, Metric
from fpbench.correction.weights import find_best_exponent, scale_confidence
from fpbench.plugin import Codes

SORTS = 5
"""Greatest number of sorts that one correction may take."""
INPUTS = 3
"""Greatest memory of a correction, its inputs included, over that of its inputs."""
CORRECTIONS = 10
"""Greatest number of corrections that a search of 100 exponents may take."""


@dataclass(frozen=True)
class Instance:
    """A guess whose groups differ in their rates of positive predictions."""

    guess: Codes
    truth: Codes
    predictions: Codes
    confidence: NDArray[np.float64]
    gap: float
    constraint: RateConstraint
    labels: Codes

    @property
    def weights(self) -> NDArray[np.float64]:
        """Sharpened confidences."""
        return scale_confidence(self.confidence) ** 6

    @property
    def problem(self) -> Problem:
        """What a search of exponents is given: weights not yet raised to a power."""
        return Problem(
            self.guess, 2, self.predictions, self.labels, (self.constraint,),
            scale_confidence(self.confidence),
        )  # fmt: skip


def instances(n: int, metric: Metric, decimals: int) -> Iterator[Instance]:
    rng = np.random.default_rng(n)
    for kind, gap in itertools.product((np.int8, np.int64), (0.1, 0.3)):
        # A guess is right as often as its confidence says.
        confidence = np.round(0.5 + rng.beta(4, 2, n) / 2, decimals)
        guess = (rng.random(n) < 0.67).astype(kind)
        truth = np.where(rng.random(n) < confidence, guess, 1 - guess)
        rate = np.where(guess == 1, 0.25 + gap / 3, 0.25 - 2 * gap / 3)
        predictions = (rng.random(n) < rate).astype(kind)
        # Equal rates need a common divisor of people and positives: let a whole percent be
        # positive. With one more, no guess satisfies tolerance 0: every candidate is looked at.
        positive = rng.permutation(np.flatnonzero(predictions))
        predictions[positive[len(positive) // (n // 100) * (n // 100) :]] = 0
        one_more = predictions.copy()
        one_more[np.argmin(one_more)] = 1
        labels = (rng.random(n) < 0.25).astype(kind)
        for tolerance, claimed in (
            (0.0, predictions), (0.002, predictions), (0.03, predictions), (0.0, one_more),
        ):  # fmt: skip
            claim = RateConstraint(metric, tolerance)
            yield Instance(guess, truth, claimed, confidence, gap, claim, labels)


def in_turns(repeats: int, *alternatives: Callable[[], object]) -> list[float]:
    """Median seconds of each alternative; they take turns, and the first turn is not counted."""
    seconds: list[list[float]] = [[] for _ in alternatives]
    for _ in range(repeats + 1):
        for taken, alternative in zip(seconds, alternatives, strict=True):
            started = time.perf_counter()
            alternative()
            taken.append(time.perf_counter() - started)
    return [statistics.median(taken[1:]) for taken in seconds]


def peak_memory(call: Callable[[], object]) -> int:
    """Bytes that a call allocates at most at once."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure(instance: Instance, repeats: int) -> tuple[list[str], tuple[float, float, float]]:
    """A row of the table, and the three ratios that have limits."""
    weights, problem = instance.weights, instance.problem
    labels = None if instance.constraint.metric == "statistical-parity" else instance.labels

    def correct() -> fpbench.Correction:
        return fpbench.correct(
            instance.guess, instance.predictions, labels=labels, weights=weights,
            metric=instance.constraint.metric, tolerance=instance.constraint.tolerance,
        )  # fmt: skip

    values = correct().values
    changed = "infeasible" if values is None else f"{np.mean(values != instance.guess):.2%}"
    sort, correction = in_turns(repeats, lambda: np.sort(weights), correct)
    # A search takes several corrections: a few turns tell as much.
    again, search = in_turns(
        max(repeats // 4, 1), correct, lambda: find_best_exponent(problem, instance.truth)
    )
    arrays = (instance.guess, instance.predictions, labels, weights)
    inputs = sum(array.nbytes for array in arrays if array is not None)
    ratios = (correction / sort, 1 + peak_memory(correct) / inputs, search / again)
    row = [
        f"{len(weights):,}", instance.guess.dtype.name, f"{instance.gap}",
        f"{instance.constraint.tolerance}", changed, f"{sort * 1e3:.2f}", f"{correction * 1e3:.2f}",
        f"{search * 1e3:.1f}",
    ]  # fmt: skip
    return row, ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, nargs="*", default=[136_000, 10_000_000])
    parser.add_argument("--repeats", type=int, help="turns; by default 60, and 8 from 1 million")
    parser.add_argument("--metric", choices=METRICS, default="statistical-parity")
    parser.add_argument("--decimals", type=int, default=16, help="round confidences: many equal")
    options = parser.parse_args()

    console = Console(width=None if sys.stdout.isatty() else 140)
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    used = " ".join([*simd["baseline"], *simd.get("found", [])])
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}, one "
        f"thread. numpy found: {used}.\nWhere numpy sorts with AVX2 or AVX512, sorting is several "
        "times faster than elsewhere, and the limit harder.",
        highlight=False,
    )  # fmt: skip
    table = Table(title=f"fpbench.correct, {options.metric}; times in ms, medians")
    for column in ("people", "codes", "gap", "tolerance", "changed"):
        table.add_column(column, justify="right")
    for column in ("numpy.sort", "correct", "search"):
        table.add_column(column, justify="right")
    limits = (SORTS, INPUTS, CORRECTIONS)
    for name, limit in zip(
        ("correct/sort", "memory/inputs", "search/correct"), limits, strict=True
    ):
        table.add_column(f"{name}\n(limit {limit})", justify="right")
    passed = 0
    for n in options.people:
        repeats = options.repeats or (60 if n < 1_000_000 else 8)
        for instance in instances(n, options.metric, options.decimals):
            row, ratios = measure(instance, repeats)
            over = [ratio > limit for ratio, limit in zip(ratios, limits, strict=True)]
            passed += sum(over)
            marks = zip(ratios, over, strict=True)
            table.add_row(*row, *(f"{ratio:.2f}{' !' if bad else ''}" for ratio, bad in marks))
    console.print(table)
    console.print(f"{passed} ratios above their limits" if passed else "all within the limits")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
