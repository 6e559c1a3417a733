"""Speed of private audits: many at once, beside a loop of pandas masks; and of many people.

    python benchmarks/perf/audits.py [--people N] [--repeats R] [--loops L]

One thread. First, 2,000 audits for each of several epsilons, of 15,060 people, their counting
included, errors included, intervals not. The naive loop selects people by a mask for every rule
and group, as one would write it down; that both answer alike is tested (Kolmogorov-Smirnov). Then
one audit of N people, with its interval, beside `numpy.bincount` of codes that are there already,
and the tree's own `apply`. Alternatives take turns, and medians are compared. Exits with 1 if a
limit is not kept.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import ks_2samp
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench.models import Rules
from fpbench.plugin import Codes
from fpbench.privacy import Curator

A_SECOND = 1_000_000
"""Least number of audits in mode partition a second."""
OFTEN = 1_000
"""Least number of audits in the time of one by masks."""
PASSES = 3
"""Greatest number of bincounts that the audit of many people may take, the tree's apply apart."""
REPETITIONS = 2_000
EPSILONS = tuple(np.linspace(0.05, 0.5, 10).round(2).tolist())
ALIKE = 1e-4
"""Least p-value at which two samples of answers count as alike."""


@dataclass(frozen=True)
class People:
    """Whom a tree is audited on."""

    tree: DecisionTreeClassifier
    rules: Rules
    features: NDArray[np.float32]
    groups: NDArray[np.int8]
    k: int

    @property
    def predictions(self) -> Codes:
        """What the tree says of them."""
        return self.rules.labels.take(self.rules.apply(self.features))

    def curator(self) -> Curator:
        """Who knows their groups."""
        return Curator(self.groups, [f"group {g}" for g in range(self.k)], rng=0)


def people(n: int, k: int) -> People:
    """People of k groups that differ in size and features, and a shallow tree."""
    rng = np.random.default_rng([15_060, k])
    groups = rng.choice(k, n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2)).astype(np.int8)
    features = rng.standard_normal((n, 6), dtype=np.float32)
    features[:, 0] -= 0.4 * groups / k
    features[:, 1] -= 0.8 * groups / k
    few = features[:15_060]
    noise = rng.normal(size=len(few))
    labels = (few[:, 0] + few[:, 1] * few[:, 2] + noise > 0.7).astype(np.int8)
    tree = DecisionTreeClassifier(max_depth=4, max_leaf_nodes=11, random_state=0)
    tree.fit(few, labels)
    return People(tree, fpbench.models.tree_rules(tree), features, groups, k)


def masks(rules: Rules, frame: pd.DataFrame) -> list[Callable[[], pd.Series]]:
    """A condition of pandas for every rule, from its text."""
    return [lambda text=text: condition(text, frame) for text in rules.texts]


def condition(text: str, frame: pd.DataFrame) -> pd.Series:
    """Whom the text of a rule is true of: clauses x <= v, x > v and v < x <= w."""
    holds = None
    for clause in text.split(" and "):
        words = clause.split()
        low = words[0] if len(words) == 5 else words[2] if words[1] == ">" else None
        high = words[-1] if "<=" in words else None
        column = frame[words[2] if len(words) == 5 else words[0]]
        for one in (None if low is None else column > float(low),
                    None if high is None else column <= float(high)):  # fmt: skip
            if one is not None:
                holds = one if holds is None else holds & one
    return holds


def naive(crowd: People, mode: str, epsilon: float, repetitions: int) -> NDArray[np.float64]:
    """The audit as one would write it down: masks for every rule and group, one after another."""
    frame = pd.DataFrame(crowd.features, columns=[f"x{i}" for i in range(6)])
    frame["group"] = crowd.groups
    rng, n, k = np.random.default_rng(1), len(frame), crowd.k
    conditions, labels = masks(crowd.rules, frame), crowd.rules.labels
    values = []
    for _ in range(repetitions):
        counts = np.zeros((len(labels), k))
        for rule, condition in enumerate(conditions):
            if mode == "partition" or labels[rule] == 1:
                met = frame[condition()]
                for group in range(k):
                    counts[rule, group] = len(met[met["group"] == group])
        if mode == "partition":
            noisy = [counts[labels == label].sum(axis=0) for label in (0, 1)]
            rejected, accepted = (
                projected(c + rng.laplace(0, 2 / epsilon, k), int(c.sum())) for c in noisy
            )
            members = accepted + rejected
        else:
            accepted = np.zeros(k)
            for rule in np.flatnonzero(labels == 1):
                accepted += uniform(
                    counts[rule] + rng.laplace(0, 4 / epsilon, k), int(counts[rule].sum()), n
                )
            true = [len(frame[frame["group"] == group]) for group in range(k)]
            members = uniform(true + rng.laplace(0, 4 / epsilon, k), n, n)
        rates = [a / m if m > 0 else 0.0 for a, m in zip(accepted, members, strict=True)]
        values.append(min(rates) / max(rates) if max(rates) > 0 else 1.0)
    return np.array(values)


def uniform(noisy: NDArray[np.float64], total: int, most: int) -> NDArray[np.float64]:
    """The policy uniform/uniform of the paper."""
    return np.array([total / len(noisy) if c < 0 or c > most else c for c in noisy])


def projected(noisy: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """The nearest counts that are not negative and sum to the total, by bisection."""
    low, high = noisy.min() - total, noisy.max()
    for _ in range(60):
        middle = (low + high) / 2
        if np.maximum(noisy - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(noisy - high, 0)


def many(crowd: People, curator: Curator, mode: str) -> list[tuple[float, float]]:
    """Mean absolute error and its standard error for every epsilon, of 2,000 audits each."""
    predictions, estimates = crowd.predictions, []
    model: Any = predictions if mode == "partition" else crowd.tree
    rates = [predictions[crowd.groups == group].mean() for group in range(crowd.k)]
    for epsilon in EPSILONS:
        values = fpbench.audit(
            model, crowd.features, curator, epsilon=epsilon, mode=mode,  # type: ignore[arg-type]
            repetitions=REPETITIONS, resamples=0,
        ).values  # fmt: skip
        errors = np.abs(values - min(rates) / max(rates))
        estimates.append((float(errors.mean()), float(errors.std() / len(errors) ** 0.5)))
    return estimates


def in_turns(repeats: int, *alternatives: Callable[[], object]) -> list[float]:
    """Median seconds of each alternative; they take turns, and the first turn is not counted."""
    seconds: list[list[float]] = [[] for _ in alternatives]
    for _ in range(repeats + 1):
        for taken, alternative in zip(seconds, alternatives, strict=True):
            started = time.perf_counter()
            alternative()
            taken.append(time.perf_counter() - started)
    return [statistics.median(taken[1:]) for taken in seconds]


def compared(loops: int, repeats: int) -> Iterator[tuple[list[str], bool]]:
    """Rows of the first table, and whether each keeps its limits."""
    for mode in ("partition", "reference"):
        for k in (2, 4):
            crowd = people(15_060, k)
            curator = crowd.curator()
            fast, slow = in_turns(
                repeats,
                lambda crowd=crowd, curator=curator, mode=mode: many(crowd, curator, mode),
                lambda crowd=crowd, mode=mode: naive(crowd, mode, 0.2, loops),
            )
            each, by_masks = fast / (REPETITIONS * len(EPSILONS)), slow / loops
            values = fpbench.audit(
                crowd.tree, crowd.features, curator, epsilon=0.2,
                mode=mode, repetitions=REPETITIONS, resamples=0,  # type: ignore[arg-type]
            ).values  # fmt: skip
            p = ks_2samp(naive(crowd, mode, 0.2, 300), values).pvalue
            fine = by_masks / each >= OFTEN and p >= ALIKE
            if mode == "partition":
                fine &= 1 / each >= A_SECOND
            yield [
                mode, str(k), str(crowd.rules.n_favourable), f"{1 / by_masks:,.0f}",
                f"{1 / each:,.0f}", f"{by_masks / each:,.0f}", f"{p:.3f}",
            ], fine  # fmt: skip


class Timed(DecisionTreeClassifier):
    """A tree that knows how long its `apply` took; two runs of it differ by more than an audit."""

    seconds = 0.0

    def apply(self, X: Any, check_input: bool = True) -> NDArray[np.intp]:
        """The leaf of each person."""
        started = time.perf_counter()
        leaves: NDArray[np.intp] = super().apply(X, check_input)
        self.seconds = time.perf_counter() - started
        return leaves


def of_many_people(n: int, repeats: int) -> Iterator[tuple[list[str], bool]]:
    """Rows of the second table."""
    for k in (2, 4):
        crowd = people(n, k)
        predictions, curator, tree = crowd.predictions, crowd.curator(), Timed()
        tree.__dict__.update(crowd.tree.__dict__)
        joint = predictions.astype(np.intp) * k + crowd.groups
        models: list[tuple[str, Any, Any]] = [
            ("predictions", predictions, None), ("tree", tree, crowd.features),
        ]  # fmt: skip
        for what, model, X in models:
            rest, applied, passes = [], [], []
            for _ in range(repeats + 1):
                started = time.perf_counter()
                np.bincount(joint, minlength=2 * k)
                passes.append(time.perf_counter() - started)
                started, tree.seconds = time.perf_counter(), 0.0
                fpbench.audit(model, X, curator, epsilon=0.2, rng=0)
                rest.append(time.perf_counter() - started - tree.seconds)
                applied.append(tree.seconds)
            one, apply, audit = (statistics.median(t[1:]) for t in (passes, applied, rest))
            yield [
                what, str(k), f"{one * 1e3:.1f}", f"{apply * 1e3:.1f}", f"{audit * 1e3:.1f}",
                f"{audit / one:.2f}",
            ], audit / one <= PASSES  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--loops", type=int, default=30, help="audits by masks a turn")
    options = parser.parse_args()

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}, "
        f"{platform.machine()}, one thread; medians of {options.repeats}",
        highlight=False,
    )
    failed = 0
    tables: list[tuple[str, list[str], Iterator[tuple[list[str], bool]]]] = [
        (
            f"Audits a second: 15,060 people, {REPETITIONS:,} of each of {len(EPSILONS)} epsilons",
            ["mode", "groups", "rules", "masks", "fpbench", f"ratio\n(least {OFTEN:,})", "p alike"],
            compared(options.loops, options.repeats),
        ),
        (
            f"One audit of {options.people:,} people, with its interval; times in ms",
            ["model", "groups", "bincount", "tree.apply", "audit\nbesides",
             f"audit / bincount\n(limit {PASSES})"],
            of_many_people(options.people, options.repeats),
        ),
    ]  # fmt: skip
    for title, columns, rows in tables:
        table = Table(title=title)
        for column in columns:
            table.add_column(column, justify="right")
        for row, fine in rows:
            failed += not fine
            table.add_row(*row[:-1], row[-1] + ("" if fine else " !"))
        console.print(table)
    console.print(f"{failed} rows beyond their limits" if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
