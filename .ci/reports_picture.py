"""Draws docs/assets/reports.svg, writes benchmarks/reports.csv: runs of benchmarks/reports.toml.

Lines of the file that the runs do not have stay.
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
    "1 decimal": "1 decimal", "no sizes": "2 decimals, no sizes",
    "complements": "groups >= 10, complements",
    "nearest 5": "nearest, to 5", "suppressed, nearest 5": "groups >= 8, nearest, to 5",
    "midpoint 6": "midpoint, of 6", "rounded to 5": "random, to 5",
    "controlled to 5": "controlled, to 5", "cell keys": "cell keys",
    "laplace": "Laplace", "gaussian": "Gaussian, eps 5",
}  # fmt: skip
"""What defences are called, in the order of the table."""
WAYS = {1: "one column", 2: "two columns", 3: "three columns"}


def read_rows(paths: list[str]) -> pd.DataFrame:
    """The done rows of reports, with defence, order and epsilon beside."""
    rows = pd.concat([fpbench.load(path).frame() for path in paths], ignore_index=True)
    rows = rows[rows.status == "done"].drop_duplicates(["dataset", "disclosure", "seed"])
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


def write_study(means: pd.DataFrame) -> pd.DataFrame:
    """A line for each data set, defence and order, in percent and points; others are kept."""
    lines = pd.DataFrame({
        "data": means.dataset.map(DATA),
        "people": means.people.round().astype(int),
        "seeds": means.seeds.astype(str),
        "without": means.without_accuracy * 100,
        "defence": means["name"],
        "columns": means.order,
        "leak": means.leak * 100,
        "proven": means.people_proven * 100,
        "error": means.rate_error * 100,
    })  # fmt: skip
    study = pd.concat([pd.read_csv(STUDY, dtype={"seeds": str}), lines])
    study = study.drop_duplicates(["data", "defence", "columns"], keep="last")
    names = list(SHOWN.values())
    first = study.defence.str.replace(r", eps .*", "", regex=True).map(
        {name.partition(", eps")[0]: place for place, name in enumerate(names)}
    )
    eps = study.defence.str.extract(r"eps ([\d.]+)")[0].astype(float).fillna(0)
    study = study.assign(own=study.data.map(list(DATA.values()).index), first=first, eps=eps)
    study = study.sort_values(["own", "first", "eps", "columns"]).drop(
        columns=["own", "first", "eps"]
    )
    study.to_csv(STUDY, index=False, float_format="%.1f", lineterminator="\n")
    return study


KINDS = {
    "larger cells, hidden groups, coarser bins": (
        "cells >= 50",
        "cells >= 200",
        "groups",
        "2 bins",
    ),
    "as it is, or rounded rates": ("cells >= 10", "2 decimals", "1 decimal"),
    "numbers rounded, or perturbed by cell keys": (
        "random",
        "nearest",
        "midpoint",
        "controlled",
        "cell keys",
    ),
    "fitted noise": ("Laplace", "Gaussian"),
}
"""Kinds of defences, by how their names begin."""


def draw(study: pd.DataFrame) -> None:
    """Leak against error, a panel for slices by one column and by two: a point a table."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "reports", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), sharey=True)
    for axis, order in zip(axes, (1, 2), strict=True):
        for number, (kind, starts) in enumerate(KINDS.items()):
            own = study[(study["columns"] == order) & study.defence.str.startswith(starts)]
            axis.scatter(own.error, own.leak, s=16, color=f"C{number}", marker="os^D"[number],
                         alpha=0.8, label=kind, clip_on=False, zorder=3)  # fmt: skip
        axis.set_title(f"slices by {WAYS[order]}", loc="left")
        axis.set(xlabel="error of the rates shown, points", xlim=(0, None))
        axis.set_yscale("symlog", linthresh=1)
        axis.set_yticks([0, 1, 3, 10, 30], ["0", "1", "3", "10", "30"])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("leak, points")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=2, frameon=False,
                  fontsize=8)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 0.88))
    figure.savefig(ASSETS / "reports.svg", metadata={"Date": None}, bbox_inches="tight")


def main() -> None:
    """Read the runs, write, draw."""
    draw(write_study(summarise(read_rows(sys.argv[1:]))))


if __name__ == "__main__":
    main()
