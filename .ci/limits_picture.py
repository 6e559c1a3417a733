"""Draws docs/assets/limits.svg: what a disclosure can add at most, by its bits and by people.

`python .ci/limits_picture.py`; matplotlib comes with the extra `report`.
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from fpbench.correction import compute_count_leak, limit_leak, limit_leak_by_error

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
PEOPLE, BITS = 5_000, 12.3
"""Fixed where the other one varies."""


def draw_beliefs(people: int) -> np.ndarray:
    """(n, 2) beliefs about people of whom nearly a fifth are guessed wrong, spread evenly."""
    from scipy.stats import beta

    chances = beta.ppf((np.arange(people) + 0.5) / people, 0.5, 1.2)
    return np.column_stack([1 - chances, chances])


def list_limits(people: int, bits: float) -> tuple[float, float, float]:
    """In percentage points: by error, by exact beliefs, of the exact counts of two cells."""
    beliefs, nats = draw_beliefs(people), bits * math.log(2)
    error = 1 - beliefs.max(axis=1).mean()
    cells = np.arange(people) % 4 == 0
    exact = compute_count_leak(beliefs[:, 1], cells)
    by_error = limit_leak_by_error(error, nats, people)
    return 100 * by_error, 100 * limit_leak(beliefs, nats), 100 * exact


def main() -> None:
    """Draw both panels."""
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "limits", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    bits, people = np.geomspace(1, 10_000, 25), np.geomspace(50, 200_000, 22).astype(int)
    panels = (
        (
            bits,
            [list_limits(PEOPLE, b) for b in bits],
            f"bits of the disclosure ({PEOPLE:,} people)",
        ),
        (people, [list_limits(n, BITS) for n in people], f"people (a claim of {BITS} bits)"),
    )
    names = ("limit: by the error of any guess", "limit, if these beliefs are exact",
             "exact leak of the counts behind every parity claim")  # fmt: skip
    for axis, (at, limits, label) in zip(axes, panels, strict=True):
        for number, (name, style) in enumerate(zip(names, ("-", "--", ":"), strict=True)):
            axis.plot(at, [one[number] for one in limits], style, color=f"C{number}", label=name)
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("points of accuracy, at most")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=3, frameon=False,
                  fontsize=8)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    figure.savefig(ASSETS / "limits.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
