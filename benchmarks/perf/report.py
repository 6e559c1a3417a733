"""A report of 20,000 cells: its size, and how long Chromium takes to open it.

Limits: 15 MB, and 3 s from the request to a page with its leaderboards, and to its first figure
drawn. The cells are drawn at random, with the measures of a real attack and all their digits: real
ones repeat more, and are smaller. Needs Debian's chromium and chromium-driver.
"""

import json
import statistics
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np

from fpbench import load
from fpbench.matrix.plan import Cell
from fpbench.page.writing import write_report
from fpbench.plugin import Status
from fpbench.store.store import Store

SEEDS, RUNS = 10, 5
LIMIT_MB, LIMIT_SECONDS = 15, 3.0
SHARES = ("majority_accuracy", "prior_accuracy", "initial_accuracy", "corrected_accuracy", "gain",
          "change_precision", "objective", "solver_gap", "correct_seconds", "claim_tolerance",
          "train_accuracy", "test_accuracy", "train_unfairness", "test_unfairness", "bits",
          "reconsidered_accuracy")  # fmt: skip
LABELS = {
    "dataset": ["adult", "compas", "german", "bank"],
    "learner": [f"exponentiated-gradient tolerance={i / 100}" for i in range(25)],
    "disclosure": ["published", "estimated"],
    "adversary": ["a1", "a2", "boosting", "prior", "majority"],
    "corrector": ["exact", "none"],
}
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage")  # fmt: skip


def fill(directory: Path) -> int:
    """A run directory with random results; how many cells it has."""
    rng = np.random.default_rng(0)
    named = [dict(zip(LABELS, labels, strict=True)) for labels in product(*LABELS.values())]
    cells = [Cell(rng.bytes(16).hex(), labels, seed) for labels in named for seed in range(SEEDS)]
    axes = {
        kind: [[label.partition(" ")[0], label, tolerance(label)] for label in labels]
        for kind, labels in LABELS.items()
    }

    about = {"matrix": json.dumps([{}, axes, []]), "title": "20,000 cells", "rank_by": "gain"}
    environment = {"python": sys.version.split()[0], "packages": {"fpbench": "0.0"}}
    with Store(directory, create=True) as store:
        session = store.begin(about, environment, cells)
        for cell in cells:
            shares = dict(zip(SHARES, rng.random(len(SHARES)).tolist(), strict=True))
            told = tolerance(cell.labels["learner"]).get("tolerance")
            measures = {
                "people": 15_074, "asked_metric": "statistical-parity", "asked_tolerance": told,
                "changes": int(rng.integers(5000)), "solver_status": "optimal", "proven": 1,
                "claim_metric": "statistical-parity", "claim_form": "to-overall", "claim_holds": 1,
                **shares,
            }  # fmt: skip
            store.add(session, cell.key, Status.DONE, float(rng.random()), measures)
    return len(cells)


def tolerance(label: str) -> dict[str, float]:
    """The parameters that a label says."""
    _, _, value = label.partition("tolerance=")
    return {"tolerance": float(value)} if value else {}


def open_times(file: Path, profile: Path) -> list[tuple[float, float]]:
    """Seconds to the leaderboards, and to the first figure, each time with a new page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    times = []
    try:
        for turn in range(RUNS + 1):
            driver.get("about:blank")
            start = time.perf_counter()
            driver.get(file.as_uri())
            await_mark(driver, "ready")
            shown = time.perf_counter() - start
            driver.execute_script("document.querySelector('figure')?.scrollIntoView()")
            await_mark(driver, "drawn")
            if turn:  # the first fills the caches
                times.append((shown, time.perf_counter() - start))
    finally:
        driver.quit()
    return times


def await_mark(driver: object, mark: str) -> None:
    """Wait for a mark that the page sets."""
    script = f"return document.documentElement.dataset.{mark} !== undefined"
    until = time.perf_counter() + 60
    while not driver.execute_script(script):  # type: ignore[attr-defined]
        if time.perf_counter() > until:
            raise TimeoutError(f"the page is not {mark}")
        time.sleep(0.01)


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as place:
        cells = fill(Path(place) / "run")
        start = time.perf_counter()
        file = write_report(load(Path(place) / "run"), Path(place) / "report.html")
        written = time.perf_counter() - start
        size = file.stat().st_size / 1e6
        times = open_times(file, Path(place) / "profile")
    shown, drawn = (statistics.median(each) for each in zip(*times, strict=True))
    print(f"cells {cells:,}: written in {written:.1f} s, {size:.1f} MB (limit {LIMIT_MB})")
    print(f"opened: leaderboards after {shown:.2f} s, first figure after {drawn:.2f} s "
          f"(limit {LIMIT_SECONDS:g}; median of {RUNS})")  # fmt: skip
    met = size < LIMIT_MB and drawn < LIMIT_SECONDS
    print(f"limits: {'met' if met else 'EXCEEDED'}")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
