"""How many people worlds decide about: data sets, slices of one and two columns.

    FPBENCH_DATA=DIR python benchmarks/perf/worlds.py [--data NAME ...] [--order N ...]
        [--seconds S] [--people N]

One thread. Columns with numbers are cut into fifths; those with at most 20 values are crossed.
Counts of at least 10 people by prediction are exact. Decided is who is proven, or has two groups in
two worlds.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier

import fpbench
from fpbench.correction import prove
from fpbench.correction.facts.worlds import find_worlds
from fpbench.models import encode

DATA = ("compas", "german", "adult", "bank", "credit-card", "parkinsons", "census-synthetic")


def main() -> None:
    """Print a row for each report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--order", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--people", type=int, default=None)
    options = parser.parse_args()
    table = Table("data", "columns", "people", "proven", "undecided", "worlds", "seconds")
    for name in options.data:
        people = fpbench.dataset(name).sample()
        some = np.random.default_rng(0).permutation(len(people.features))[: options.people]
        X = people.features.iloc[some].reset_index(drop=True)
        for column in X.select_dtypes("number"):
            X[column] = pd.qcut(X[column], 5, duplicates="drop")
        X = X.astype(str)
        X = X[[column for column in X if X[column].nunique() <= 20]].astype("category")
        numbers, codes = encode(X, "ordinal"), np.asarray(people.sensitive)[some].astype(int)
        model = HistGradientBoostingClassifier(max_iter=50, random_state=0)
        predictions = model.fit(numbers, people.labels[some]).predict(numbers)
        groups = pd.Categorical.from_codes(codes, categories=list(people.groups))
        for order in options.order:
            report = fpbench.FairnessReport.from_predictions(
                X, predictions, groups, by=list(X), order=order, min_cell=10
            )
            facts = report.facts(X, predictions)
            own = np.array([report.groups.index(group) for group in groups])
            possible, now = prove(facts, seconds=options.seconds / 2), time.perf_counter()
            told = find_worlds(facts, possible, own, now + options.seconds)
            proven, left = int((told.possible.sum(axis=1) == 1).sum()), int(told.undecided.sum())
            seconds = time.perf_counter() - now
            table.add_row(
                name, str(order), f"{len(X):,}", f"{proven:,}", f"{left:,}",
                f"{len(told.examples):,}", f"{seconds:.0f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
