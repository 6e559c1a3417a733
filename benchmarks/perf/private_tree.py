"""Speed and accuracy of private trees, beside scikit-learn's and diffprivlib's, on Adult.

    python benchmarks/perf/private_tree.py [--seeds S] [--repeats R] [--depth D] [--venv DIR]

One thread, Adult (FPBENCH_DATA): 30,162 people to train, 15,060 to test. First, seconds of
training: ours is given a frame, its encoding included; scikit-learn's tree the one-hot matrix.
They take turns, and medians of processor time are compared. Then the mean accuracy of S seeds at
each epsilon. diffprivlib 0.6.6 needs an older scikit-learn than today's (docs/plugins.md), so it
runs in an environment of its own, which is made where --venv says (by default a folder of the
cache) and kept; it is given the same people one-hot and as ordinal codes, and the better of both
counts. Exits with 1 if training takes more than 10 times as long as scikit-learn's, or if accuracy
without similarity is not 5 points above diffprivlib's.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from platformdirs import user_cache_dir
from rich.console import Console
from rich.table import Table
from sklearn.tree import DecisionTreeClassifier

from fpbench import Sample
from fpbench.builtin import PrivateTreeClassifier
from fpbench.builtin.datasets.adult import Adult
from fpbench.builtin.private_tree.learners import PrivateFairTree
from fpbench.models import encode
from fpbench.plugin import DataHome

SLOWER = 10.0
"""How many times scikit-learn's seconds training may take."""
BETTER = 0.05
"""By how much accuracy must exceed diffprivlib's."""
TRAIN = 30_162
EPSILONS = (1.0, 10.0)
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn<1.6")
KINDS: dict[str, dict[str, Any]] = {
    "none": {},
    "grid, tau .05": {"similarity": "grid", "tau": 0.05},
    "ball, tau .05": {"similarity": "ball", "tau": 0.05},
    "none, entropy": {"criterion": "entropy"},
    "none, max": {"criterion": "max"},
    "none, exponential": {"selection": "exponential"},
}


def adult() -> tuple[Sample, Sample]:
    """The people of the training file, and those of the test file."""
    everyone = Adult().load(DataHome.default()).sample()
    rows = np.arange(len(everyone))
    return everyone.take(rows[:TRAIN]), everyone.take(rows[TRAIN:])


def in_turns(repeats: int, *alternatives: Callable[[], object]) -> list[float]:
    """Median processor seconds of each alternative, in turns; the first turn is not counted."""
    seconds: list[list[float]] = [[] for _ in alternatives]
    for _ in range(repeats + 1):
        for taken, alternative in zip(seconds, alternatives, strict=True):
            started = time.process_time()
            alternative()
            taken.append(time.process_time() - started)
    return [statistics.median(taken[1:]) for taken in seconds]


def python_of(folder: Path) -> Path:
    """An interpreter that has diffprivlib, in an environment that is made if it is not there."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    probe = [str(python), "-c", "import diffprivlib"]
    if not python.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def diffprivlib(
    train: Sample, test: Sample, depth: int, seeds: int, folder: Path
) -> dict[str, tuple[list[float], float]]:
    """Accuracies, and median seconds of training, by encoding and epsilon."""
    arrays: dict[str, NDArray[Any]] = {"train_labels": train.labels, "test_labels": test.labels}
    domain = train.domain
    bounds = [domain.bounds[name] for name in train.features if name in domain.bounds]
    sizes = [len(domain.categories[n]) for n in train.features if n in domain.categories]
    tops = {"one-hot": [1.0] * sum(sizes), "ordinal": [size - 1.0 for size in sizes]}
    for encoding in ("one-hot", "ordinal"):
        lows = {"one-hot": 0.0, "ordinal": -1.0}[encoding]
        for name, part in (("train", train), ("test", test)):
            arrays[f"{encoding}_{name}"] = encode(domain.fit(part.features), encoding)
        arrays[f"{encoding}_low"] = np.array([b[0] for b in bounds] + [lows] * len(tops[encoding]))
        arrays[f"{encoding}_high"] = np.array([b[1] for b in bounds] + tops[encoding])
    worker = Path(__file__).with_name("diffprivlib_tree.py")
    with tempfile.TemporaryDirectory() as place:
        archive = Path(place) / "adult.npz"
        np.savez(archive, **arrays)  # type: ignore[arg-type]
        command = [python_of(folder), worker, archive, depth, seeds, *EPSILONS]
        done = subprocess.run(map(str, command), capture_output=True, text=True, check=True)
    results: dict[str, tuple[list[float], float]] = json.loads(done.stdout)
    return results


def again(train: Sample, depth: int) -> str:
    """How long 100 trees more take, each of fresh noise."""
    taken = []
    for similarity in ("grid", "ball"):
        learner = PrivateFairTree(max_depth=depth, similarity=similarity)  # type: ignore[arg-type]
        model = learner.fit(train, np.random.default_rng(0))
        started = time.process_time()
        model.redraw(100, np.random.default_rng(1))
        taken.append(f"{similarity} {time.process_time() - started:.1f} s")
    return f"100 trees again, of fresh noise: {', '.join(taken)}"


def write_accuracy(right: list[float]) -> str:
    """Mean and standard error."""
    error = statistics.stdev(right) / len(right) ** 0.5 if len(right) > 1 else 0.0
    return f"{statistics.mean(right):.4f} ({error:.4f})"


def main() -> int:
    cache = Path(user_cache_dir("fpbench")) / "diffprivlib-0.6.6"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--venv", type=Path, default=cache, help="where diffprivlib lives")
    options = parser.parse_args()

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, {platform.machine()}, one thread; depth {options.depth}",
        highlight=False,
    )
    train, test = adult()
    matrix, failed = encode(train.features), 0
    common = {"domain": train.domain, "max_depth": options.depth}

    def ours(seed: int = 0, **parameters: Any) -> PrivateTreeClassifier:
        tree = PrivateTreeClassifier(**common, **parameters, random_state=seed)
        return tree.fit(train.features, train.labels)

    plain = DecisionTreeClassifier(max_depth=options.depth, random_state=0)
    seconds = in_turns(
        options.repeats, lambda: plain.fit(matrix, train.labels),
        *(lambda kind=kind: ours(**kind) for kind in KINDS.values()),
    )  # fmt: skip
    table = Table(title=f"Training on {TRAIN:,} people, ms: medians of {options.repeats}")
    for column in ("tree", "ms", f"ratio (limit {SLOWER:g})"):
        table.add_column(column, justify="right")
    table.add_row("scikit-learn", f"{seconds[0] * 1e3:.0f}", "")
    for kind, taken in zip(KINDS, seconds[1:], strict=True):
        fine = taken <= SLOWER * seconds[0]
        failed += not fine
        ratio = f"{taken / seconds[0]:.2f}{'' if fine else ' !'}"
        table.add_row(kind, f"{taken * 1e3:.0f}", ratio)
    console.print(table)
    console.print(again(train, options.depth), highlight=False)

    theirs = diffprivlib(train, test, options.depth, options.seeds, options.venv)
    table = Table(title=f"Test accuracy: means (standard errors) of {options.seeds} seeds")
    for column in ("tree", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "without privacy"):
        table.add_column(column, justify="right")
    table.add_row("majority class", "", "", f"{max(np.bincount(test.labels)) / len(test):.4f}")
    table.add_row("scikit-learn", "", "", f"{plain.score(encode(test.features), test.labels):.4f}")
    best = []
    for encoding in ("one-hot", "ordinal"):
        right = [theirs[f"{encoding} {epsilon}"][0] for epsilon in EPSILONS]
        best.append([statistics.mean(each) for each in right])
        table.add_row(f"diffprivlib, {encoding}", *map(write_accuracy, right), "")
    for kind, parameters in KINDS.items():
        cells = []
        for epsilon, limit in zip(EPSILONS, np.max(best, axis=0) + BETTER, strict=True):
            right = [
                float(ours(seed, epsilon=epsilon, **parameters).score(test.features, test.labels))
                for seed in range(options.seeds)
            ]
            fine = kind != "none" or statistics.mean(right) >= limit
            failed += not fine
            cells.append(write_accuracy(right) + ("" if fine else " !"))
        clean = ours(epsilon=float("inf"), **parameters).score(test.features, test.labels)
        table.add_row(kind, *cells, f"{clean:.4f}")
    console.print(table)
    slow = [result[1] * 1e3 for result in theirs.values()]
    console.print(f"diffprivlib trains in {min(slow):.0f} to {max(slow):.0f} ms")
    console.print(f"{failed} beyond their limits" if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
