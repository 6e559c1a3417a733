"""Speed of individual fairness: pairs beside scikit-learn's neighbours, boxes beside tree.apply.

    python benchmarks/perf/consistency.py [--tau T] [--repeats R] [--probe P]

One thread. Needs the UCI Adult files (fpbench data fetch adult, or FPBENCH_DATA): 45,222 people.
First, which of them are consistent in pairs, for the predictions of a tree of depth 6. scikit-learn
looks for everybody within tau on the same scaled one-hot matrix, in the same metric (chebyshev),
and the labels of those it finds are compared. The fastest of its algorithms is found with P people
and then run for all, once, which takes minutes. For comparison it is also given our places, in
which combinations of categories are numbered. All must name the same people. Then the distances of
everybody to the nearest input of another label, putting people on the scale included, beside
`tree.apply` on a matrix that is there already. Alternatives take turns, and medians are compared.
Exits with 1 if a limit is not kept.
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

import numpy as np
import sklearn
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench.builtin.private_tree.individual_fairness.similarity import (
    measure_nearest_people,
    scale_people,
)
from fpbench.builtin.private_tree.individual_fairness.tree_boxes import measure_nearest_region
from fpbench.models import Rules
from fpbench.plugin import Codes

FASTER = 20
"""Least number of times that pairs are found faster than scikit-learn finds them."""
APPLIES = 20
"""Greatest number of times of `tree.apply` that boxes may take."""
DEPTH = 6
ALGORITHMS = ("brute", "kd_tree", "ball_tree")
AT_ONCE = 2_000
"""People whom scikit-learn is asked about at once; everybody's neighbours would fill the memory."""


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(repeats: int, *alternatives: Callable[[], object]) -> list[float]:
    """Median seconds of each alternative; they take turns, and the first turn is not counted."""
    taken = [[seconds(work) for work in alternatives] for _ in range(repeats + 1)][1:]
    return [statistics.median(turn) for turn in zip(*taken, strict=True)]


def scaled(table: fpbench.Table) -> NDArray[np.float64]:
    """The one-hot matrix (n, columns), numbers between 0 and 1 by their bounds."""
    matrix = fpbench.models.encode(table.features).astype(np.float64)
    numbers = [n for n in table.features if n in table.domain.bounds]
    for i, name in enumerate(numbers):  # which come first, in this order
        low, high = table.domain.bounds[str(name)]
        matrix[:, i] = (matrix[:, i] - low) / (high - low)
    return matrix


def by_neighbours(
    matrix: NDArray[np.float64], labels: Codes, tau: float, algorithm: str, people: int
) -> NDArray[np.bool_]:
    """Which of the first people (m,) are consistent, by scikit-learn's radius neighbours."""
    search = NearestNeighbors(radius=tau, metric="chebyshev", algorithm=algorithm).fit(matrix)
    consistent = np.ones(people, dtype=np.bool_)
    for start in range(0, people, AT_ONCE):
        some = slice(start, min(start + AT_ONCE, people))
        near = search.radius_neighbors(matrix[some], return_distance=False)
        who = np.repeat(np.arange(some.start, some.stop), [len(own) for own in near])
        consistent[who[labels[np.concatenate(near)] != labels[who]]] = False
    return consistent


def pairs(
    table: fpbench.Table, labels: Codes, tau: float, repeats: int, probe: int
) -> Iterator[tuple[list[str], bool]]:
    """Rows of the first table, and whether each keeps its limit."""
    n = len(labels)
    matrix = scaled(table)

    def ours() -> fpbench.auditing.SimilarityReport:
        return fpbench.auditing.individual_fairness(
            labels, table.features, tau=tau, domain=table.domain
        )

    (mine,) = in_turns(repeats, ours)
    consistent = ours().other > tau
    yield ["fpbench, isolated people too", f"{mine:.3f}", "", "", ""], True
    probes = {}
    for name in ALGORITHMS:  # of many people less of one: what is built once is no part of it
        one, many = (
            seconds(lambda name=name, some=some: by_neighbours(matrix, labels, tau, name, some))
            for some in (1, probe)
        )
        probes[name] = many - one
    fastest = min(probes, key=lambda name: probes[name])
    for name in ALGORITHMS:
        if name != fastest:
            about = f"about {probes[name] * n / probe:.0f}"
            yield [f"scikit-learn, {name}", about, "", "", ""], True
    placed = scale_people(table.features, domain=table.domain)
    spots = np.column_stack([placed.at, 4.0 * placed.profiles()])
    for name, points, algorithm, limit in (
        (f"scikit-learn, {fastest}", matrix, fastest, FASTER),
        ("scikit-learn, kd_tree, on our places", spots, "kd_tree", 0),
    ):
        started = time.perf_counter()
        theirs = by_neighbours(points, labels, tau, algorithm, n)
        taken = time.perf_counter() - started
        same = bool((theirs == consistent).all())
        fine = same and taken / mine >= limit
        yield [
            name, f"{taken:.3f}", f"{taken / mine:,.1f}", str(limit or ""), "yes" if same else "no",
        ], fine  # fmt: skip


def boxes(table: fpbench.Table, repeats: int) -> Iterator[tuple[list[str], bool]]:
    """Rows of the second table, and whether each keeps its limit."""
    matrix = fpbench.models.encode(table.features)
    for depth in (3, DEPTH, 10):
        tree, rules = grown(table, depth)
        labels = rules.predict(table.features)
        assert rules.branches is not None
        for tau in (0.01, 0.1, 0.5):
            apply, walk = in_turns(
                repeats,
                lambda tree=tree: tree.apply(matrix),
                lambda rules=rules, labels=labels, tau=tau: measure_nearest_region(
                    rules.branches, scale_people(table.features, domain=table.domain), labels, tau
                ),
            )
            placed = scale_people(table.features, domain=table.domain)
            region = measure_nearest_region(rules.branches, placed, labels, tau)
            other, _ = measure_nearest_people(placed, labels, tau)
            assert region is not None
            fine = bool((region <= other).all()) and (depth != DEPTH or walk / apply <= APPLIES)
            yield [
                str(depth), f"{tau:g}", f"{(region > tau).mean():.4f}", f"{apply * 1e3:.1f}",
                f"{walk * 1e3:.1f}", f"{walk / apply:.1f}", str(APPLIES if depth == DEPTH else ""),
            ], fine  # fmt: skip


def grown(table: fpbench.Table, depth: int) -> tuple[DecisionTreeClassifier, Rules]:
    """A tree on everybody, and its rules."""
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    tree.fit(fpbench.models.encode(table.features), table.labels)
    return tree, fpbench.models.tree_rules(
        tree, fpbench.models.encoded_names(table.features), "one-hot"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tau", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=7, help="turns")
    parser.add_argument("--probe", type=int, default=2_000, help="people to choose an algorithm by")
    options = parser.parse_args()

    table = fpbench.dataset("adult")
    labels = grown(table, DEPTH)[1].predict(table.features)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, {platform.machine()}, one thread; medians of {options.repeats}; "
        f"{len(labels):,} people",
        highlight=False,
    )
    failed = 0
    tables: list[tuple[str, list[str], Iterator[tuple[list[str], bool]]]] = [
        (
            f"Pair consistency at tau {options.tau:g}",
            ["by", "seconds", "ratio", "least", "same people"],
            pairs(table, labels, options.tau, options.repeats, options.probe),
        ),
        (
            "Certified consistency; times in ms",
            ["depth", "tau", "certified", "tree.apply", "boxes", "ratio", "most"],
            boxes(table, options.repeats),
        ),
    ]
    for title, columns, rows in tables:
        shown = Table(title=title)
        for column in columns:
            shown.add_column(column, justify="left" if column == "by" else "right")
        for row, fine in rows:
            failed += not fine
            shown.add_row(*row[:-1], row[-1] + ("" if fine else " !"))
        console.print(shown)
    console.print(f"{failed} rows beyond their limits" if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
