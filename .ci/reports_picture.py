"""Draws docs/assets/reports.svg, writes benchmarks/reports.csv: runs of benchmarks/reports.toml.

`.ci/reference.py` puts the numbers into README and docs/reports.md.

`python .ci/reports_picture.py RUN [RUN ...]`; matplotlib comes with the extra `report`.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import fpbench

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
STUDY = ROOT / "benchmarks" / "reports.csv"
DATA = {
    "adult": "Adult by sex", "adult by race": "Adult by race (five groups)",
    "compas": "COMPAS by race", "german": "German credit by sex",
    "synthetic, 3,000": "Synthetic people by group (`census-synthetic`)",
    "bank": "Bank by age (60 or older)", "credit-card": "Credit card by sex",
    "parkinsons": "Parkinsons by sex",
}  # fmt: skip
"""What data sets are called, in the order of the tables."""
SHOWN = {
    "cells of 10": "cells >= 10", "cells of 50": "cells >= 50", "cells of 200": "cells >= 200",
    "groups of 10": "groups >= 10", "2 bins": "2 bins", "2 decimals": "2 decimals",
    "1 decimal": "1 decimal", "no sizes": "2 decimals, no sizes", "rounded to 5": "random, to 5",
    "laplace": "Laplace", "gaussian": "Gaussian, eps 5",
}  # fmt: skip
"""What defences are called, in the order of the table."""
WAYS = {1: "one column", 2: "two columns", 3: "three columns"}


def read_rows(paths: list[str]) -> pd.DataFrame:
    """The done rows of reports, with defence, order and epsilon beside."""
    rows = pd.concat([fpbench.load(path).frame() for path in paths], ignore_index=True)
    rows = rows[rows.status == "done"].copy()
    parts = rows.disclosure.str.extract(
        r"^(?P<defence>.*?) order=(?P<order>\d)(?: epsilon=(?P<eps>[\d.]+))?$"
    )
    rows["order"] = parts.order.astype(int)
    eps = (", eps " + parts.eps.str.removesuffix(".0")).fillna("")
    rows["name"] = parts.defence.map(SHOWN) + eps
    rows["place"] = parts.defence.map(list(SHOWN).index) + parts.eps.astype(float).fillna(0) / 100
    return rows


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, a line for each data set, order and defence."""
    numbers = [
        "leak",
        "limit",
        "people_proven",
        "proven_unsure",
        "rate_error",
        "disparities_visible",
    ]
    groups = rows.groupby(["dataset", "order", "place", "name"], sort=True)
    means = groups[[*numbers, "without_accuracy", "people"]].mean()
    means["seeds"], means["sd"] = groups.size(), groups.leak.std()
    return means.reset_index()


def write_study(means: pd.DataFrame) -> None:
    """A line for each data set, defence and order, in percent and points."""
    means = means.sort_values(["dataset", "place", "order"], key=lambda column: (
        column.map(list(DATA).index) if column.name == "dataset" else column
    ))  # fmt: skip
    seeds = means.groupby("dataset").seeds
    lines = pd.DataFrame({
        "data": means.dataset.map(DATA),
        "people": means.people.round().astype(int),
        "seeds": [" to ".join(map(str, sorted({low, high}))) for low, high in
                  zip(seeds.transform("min"), seeds.transform("max"), strict=True)],
        "without": means.groupby("dataset").without_accuracy.transform("mean") * 100,
        "defence": means["name"],
        "columns": means.order,
        "leak": means.leak * 100,
        "proven": means.people_proven * 100,
        "error": means.rate_error * 100,
    })  # fmt: skip
    lines.to_csv(STUDY, index=False, float_format="%.1f", lineterminator="\n")


def draw(means: pd.DataFrame) -> None:
    """A panel for each data set: a line for each defence, its leak by how many columns cross."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "reports", "svg.fonttype": "none", "font.size": 9})
    datasets = list(dict.fromkeys(means.dataset))
    figure, axes = plt.subplots(len(datasets), 1, figsize=(5.2, 3.5 * len(datasets)), squeeze=False)
    for axis, dataset in zip(axes[:, 0], datasets, strict=True):
        mine = means[means.dataset == dataset]
        names = list(mine.sort_values("place").drop_duplicates("name")["name"])[::-1]
        for order, marker in ((1, "o"), (2, "s"), (3, "^")):
            own = mine[mine.order == order]
            axis.plot(100 * own.leak, own["name"].map(names.index), marker, color=f"C{order - 1}",
                      label=WAYS[order], clip_on=False)  # fmt: skip
        for _, row in mine[mine.order == 2].iterrows():
            axis.annotate(f"{100 * row.rate_error:.1f}", (1.03, names.index(row["name"])),
                          xycoords=("axes fraction", "data"), va="center", fontsize=8)  # fmt: skip
        axis.annotate("error of rates,\ntwo columns", (1.03, len(names) - 0.3), fontsize=8,
                      xycoords=("axes fraction", "data"), va="bottom", ha="center")  # fmt: skip
        axis.set_title(dataset, loc="left")
        axis.set(yticks=range(len(names)), yticklabels=names, xlabel="leak, points",
                 ylim=(-0.6, len(names) - 0.4))  # fmt: skip
        axis.set_xlim(left=min(0, 100 * mine.leak.min()))
        axis.grid(alpha=0.3)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", ncols=3, frameon=False, fontsize=8,
                  title="slices cross up to")  # fmt: skip
    figure.tight_layout(rect=(0, 0, 0.97, 1 - 0.15 / len(datasets)))
    figure.savefig(ASSETS / "reports.svg", metadata={"Date": None}, bbox_inches="tight")


def main() -> None:
    """Read the runs, write, draw."""
    means = summarise(read_rows(sys.argv[1:]))
    write_study(means)
    draw(means)


if __name__ == "__main__":
    main()
