"""Passes the rules, and is proven: crosstabs after a rule of output checkers, read by `assess`.

    FPBENCH_DATA=DIR python benchmarks/passes_rules.py [--dataset NAME] [--rows N] [--order N]
        [--acro] [--defences]

Crosstabs of people by each column, their sex (or other group) and outcome. Every number of fewer
than 10 people is suppressed, zeros too, which is what ACRO does to counts by default (threshold
10); with --acro, ACRO itself makes the tables. Then what they prove to a reader who knows
everybody's columns and outcome, but not the group. With --defences, the same tables by each defence
of `FairnessReport.protect` that statistical offices use, as the table in docs/exact-tables.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time

import numpy as np
import pandas as pd

import fpbench
from fpbench.reports import measure_utility

THRESHOLD = 10
DEFENCES = {
    "nothing": {},
    "cells of 10 or more": {"min_cell": 10},
    "suppress at most 7, then round to 5": {
        "min_group": 8, "round_to": 5, "rounding": "nearest",
    },
    "to the nearest 5": {"round_to": 5, "rounding": "nearest"},
    "midpoint 6": {"round_to": 6, "rounding": "midpoint"},
    "random, to 5": {"round_to": 5},
    "controlled, to 5": {"round_to": 5, "rounding": "controlled"},
    "cell keys, D 5, V 3": {"cell_keys": {"bound": 5, "variance": 3.0}},
    "groups of 10 or more": {"min_group": 10},
    "and complements": {"min_group": 10, "complementary": True},
    "and intervals of 10 %": {
        "min_group": 10, "complementary": True, "protect_hidden": "10%",
    },
}  # fmt: skip


def draw_people(name: str, rows: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns of at most 20 values, numbers in five bins; outcomes; groups."""
    sample = fpbench.dataset(name).sample()
    kept = np.random.default_rng(0).permutation(len(sample.features))[:rows]
    X = sample.features.iloc[kept].reset_index(drop=True).copy()
    for column in X.select_dtypes("number"):
        edges = np.unique(np.quantile(X[column], [0.2, 0.4, 0.6, 0.8]))
        X[column] = np.digitize(X[column], edges)
    X = X.astype(str)
    X = X[[column for column in X if X[column].nunique() <= 20]]
    groups = np.array(sample.groups)[np.asarray(sample.sensitive)][kept]
    return X, np.asarray(sample.labels)[kept], groups


def tabulate(
    X: pd.DataFrame, outcomes: np.ndarray, groups: np.ndarray, order: int, *, acro: bool
) -> fpbench.FairnessReport:
    """The crosstabs after the rule, as a report; those that ACRO fails to make are left out."""
    session = None
    if acro:
        import acro as package

        os.chdir(tempfile.mkdtemp())  # where it writes
        session = package.ACRO(suppress=True)
    people = X.assign(group=groups, outcome=outcomes)
    sets = (t for r in range(1, order + 1) for t in itertools.combinations(X.columns, r))
    rows = []
    for columns in map(list, sets):
        index, across = [people[c] for c in columns], [people["group"], people["outcome"]]
        if session is None:
            table = pd.crosstab(index, across)
            table = table.where(table >= THRESHOLD)
        else:
            try:
                table = session.crosstab(index, across)
            except Exception as error:  # of values that it cannot take
                print(f"ACRO failed on {columns}: {error!r:.80}")
                continue
        for key, line in table.iterrows():
            cut = dict(zip(columns, key if isinstance(key, tuple) else (key,), strict=True))
            rows += [
                {**dict.fromkeys(X, ""), **cut, "group": group, "value": value,
                 "metric": "selected" if outcome else "rejected"}
                for (group, outcome), value in line.items()
            ]  # fmt: skip
    return fpbench.FairnessReport.from_frame(pd.DataFrame(rows))


def main(arguments: list[str] | None = None) -> None:
    """Print what the tables prove."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="adult")
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--order", type=int, default=1)
    parser.add_argument("--acro", action="store_true")
    parser.add_argument("--defences", action="store_true")
    options = parser.parse_args(arguments)
    X, outcomes, groups = draw_people(options.dataset, options.rows)
    report = tabulate(X, outcomes, groups, options.order, acro=options.acro)
    told = fpbench.assess(report, X, outcomes, groups=groups)
    proven, by = int(told.proven.sum()), "ACRO" if options.acro else f"the rule of {THRESHOLD}"
    print(
        f"{options.dataset}, {len(X):,} people, {len(report):,} numbers, "
        f"{report.suppressed.mean():.0%} suppressed by {by}: {proven:,} of "
        f"{len(X):,} people proven ({proven / len(X):.1%})"
    )
    if not options.defences:
        return
    exact = fpbench.FairnessReport.from_predictions(
        X, outcomes, groups, by=list(X), order=options.order, metrics=["selected", "rejected"],
        min_cell=0,
    )  # fmt: skip
    print("| defence | proven | sure | leak | numbers shown | error | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, defence in DEFENCES.items():
        began = time.perf_counter()
        try:
            protected = exact.protect(**defence, rng=0)
        except fpbench.InputError as error:
            print(f"| {name} | {error} | | | | | |")
            continue
        seconds = time.perf_counter() - began
        told = fpbench.assess(protected, X, outcomes, groups=groups)
        utility = measure_utility(protected, exact)
        shown = (~protected.suppressed).sum() / len(exact)
        print(
            f"| {name} | {told.proven.mean():.1%} | {told.sure.mean():.1%} | "
            f"{100 * told.leak:+.2f} | {shown:.0%} | {100 * utility.rate_error:.1f} | "
            f"{seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
