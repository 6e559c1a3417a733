"""Whole people from a table alone: rows that must exist, and that likely do, as on docs/reports.md.

    FPBENCH_DATA=DIR python benchmarks/whole_people.py [--dataset NAME] [--people N] [--seeds N]
        [--seconds S]

The table shows the number of people with each outcome by group, for slices by one or two of some
columns. Its reader knows nobody: another third of the data set is the population. Measured is the
share of the 50 first rows (columns, group and outcome) that somebody has: ranked by
`reconstruct_people`, and by how common they are in the population. The same of rows that by the
population are improbable. Both rankings leave out what the table makes impossible.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

import fpbench
from fpbench.reports import reconstruct_people

COLUMNS = {
    "adult": ["age", "workclass", "marital-status", "race", "hours-per-week"],
    "compas": ["age", "sex", "priors_count", "c_charge_degree", "juv_misd_count", "days_in_jail"],
    "german": [
        "checking-account",
        "credit-history",
        "savings",
        "employed-since",
        "housing",
        "job",
    ],
    "census-synthetic": ["age", "education", "occupation"],
}
FIRST = 50


def measure(name: str, people: int, order: int, seed: int, seconds: float) -> list[float]:
    """Distinct rows of people, those proven, and shares of the first rows that exist."""
    sample = fpbench.dataset(name).sample()
    shuffled = np.random.default_rng(seed).permutation(len(sample.labels))
    outcome, groups = (
        np.asarray(sample.labels),
        np.array(sample.groups)[np.asarray(sample.sensitive)],
    )
    X = sample.features[COLUMNS[name]]
    own, others = shuffled[:people], shuffled[people : people + len(X) // 3]
    table = fpbench.FairnessReport.from_predictions(
        X.iloc[own],
        outcome[own],
        groups[own],
        by=list(X),
        order=order,
        min_cell=0,
        metrics=["selected", "rejected"],
    )
    rows = reconstruct_people(
        table, X.iloc[others], outcome[others], groups[others], seconds=seconds, rng=seed
    )
    held = {
        column.name: np.array([*column.values, ""], object)[column.code(X.iloc[own])]
        for column in table.columns
    }
    held = pd.DataFrame({**held, "group": groups[own], "prediction": outcome[own]})
    counts = held.value_counts(sort=False).rename("people").reset_index()
    rows = rows.merge(counts, "left", list(held)).fillna({"people": 0})
    assert (rows["at_least"] <= rows["people"]).all()
    shares = [
        float((of.sort_values(by, ascending=False)["people"][:FIRST] > 0).mean())
        for of in (rows, rows[rows["prior"] < 0.5])
        for by in (["at_least", "frequency", "expected"], ["prior"])
    ]
    return [len(counts), int((rows["at_least"] > 0).sum()), *shares]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each data set and number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", choices=COLUMNS, action="append")
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args(arguments)
    print(
        f"| people | slices by | distinct rows | proven | first {FIRST} | by population | "
        f"improbable, first {FIRST} | by population |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in options.dataset or list(COLUMNS)[:3]:
        for order, text in ((1, "one column"), (2, "two columns")):
            found = [
                measure(name, options.people, order, seed, options.seconds)
                for seed in range(options.seeds)
            ]
            distinct, proven, *shares = np.mean(found, axis=0)
            told = " | ".join(f"{share:.0%}" for share in shares)
            print(f"| {name} | {text} | {distinct:.0f} | {proven:.0f} | {told} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
