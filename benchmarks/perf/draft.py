"""What leaves tell of one attribute: ours beside the attacks of DRAFT and DRAFT-DP, on COMPAS.

    python benchmarks/perf/draft.py --code DIR [--seconds S] [--seeds N] [--venv DIR]

DIR holds copies of github.com/vidalt/DRAFT and github.com/vidalt/DRAFT-DP in folders of these
names. The same forests, people and knowledge (labels, and all features but one attribute), one
thread each, at most S seconds an attack. DRAFT: exact counts of 10 trees with bootstrap samples, 50
and 100 people, sex unknown. DRAFT-DP: the forest of its experiment on partial knowledge, 100
people, 10 trees of depth 5, epsilon 5; each of seven attributes in turn is unknown. The authors'
code runs in an environment of its own with the versions it names, made where --venv says. Both
attacks on noisy counts maximise the same likelihood, so theirs are compared by it, too. Exits with
1 if theirs found groups likelier than ours, or ours proved somebody wrongly.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import time
import venv
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_dir
from rich.console import Console

from fpbench.claims import Facts
from fpbench.correction import condition_beliefs, find_likeliest_groups, prove
from fpbench.correction.facts.likeliest_groups import weigh_groups
from fpbench.models import PublishedTree, find_tree_facts

PACKAGES = (
    "diffprivlib==0.6.4",
    "scikit-learn==1.3.2",
    "ortools==9.9.3963",
    "numpy<2",
    "pandas==2.2.2",
    "scipy",
    "setuptools",
)
TREES = {"exact": 100, "noisy": 10}
EPSILON, DEPTH = 5.0, 5
ATTRIBUTES = {
    "sex": [0],
    "age": [1, 2, 3, 4, 5],
    "felonies": [6],
    "misdemeanors": [7],
    "crimes": [8],
    "priors": [9, 10, 11, 12],
    "charge": [13],
}


def prepare_python(folder: Path) -> Path:
    """An interpreter that has the versions of the authors, in an environment made if need be."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    probe = [str(python), "-c", "import diffprivlib, ortools"]
    if not python.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def find_leaves(tree: dict[str, Any], people: NDArray[np.float32]) -> NDArray[np.intp]:
    """The leaf (n,) of each person."""
    feature, threshold, left, right = (
        np.array(tree[key]) for key in ("feature", "threshold", "left", "right")
    )
    at = np.zeros(len(people), np.intp)
    while (inner := left[at] >= 0).any():
        smaller = people[np.arange(len(at)), feature[at]] <= threshold[at]
        at = np.where(inner, np.where(smaller, left[at], right[at]), at)
    return at


def read_facts(theirs: dict[str, Any], secret: list[int]) -> tuple[Facts, NDArray[np.intp]]:
    """The facts of a forest, and the true groups: values of the unknown attribute."""
    people = np.array(theirs["features"], np.float32)
    noisy = isinstance(theirs["trees"][0]["counts"][0], list)

    def take_group(code: int) -> NDArray[np.float32]:
        own = people.copy()
        own[:, secret] = np.eye(len(secret))[code] if len(secret) > 1 else code
        return own

    trees = [
        PublishedTree(
            partial(find_leaves, tree),
            np.array(tree["counts"], np.float64).reshape(len(tree["counts"]), -1),
            scale=TREES["noisy"] / EPSILON if noisy else 0.0,
            bootstrap=not noisy,
        )
        for tree in theirs["trees"]
    ]
    labels = np.array(theirs["labels"])
    facts = find_tree_facts(trees, take_group, max(len(secret), 2), labels)
    return facts, read_groups(people, secret)


def read_groups(rows: NDArray[Any], secret: list[int]) -> NDArray[np.intp]:
    """(n,) codes of the unknown attribute in rows."""
    own = np.asarray(rows)[:, secret]
    return own.argmax(axis=1) if len(secret) > 1 else own[:, 0].astype(np.intp)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--code", type=Path, required=True, help="copies of both repositories")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each attack")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--counts", nargs="+", choices=TREES, default=list(TREES))
    cache = Path(user_cache_dir("fpbench")) / "draft"
    parser.add_argument("--venv", type=Path, default=cache, help="where their packages live")
    options = parser.parse_args()
    python, failed = prepare_python(options.venv), 0
    console = Console(width=None if sys.stdout.isatty() else 130)

    def attack(kind: str, people: int, secret: list[int], seed: int) -> dict[str, Any]:
        folder = options.code / {"exact": "DRAFT", "noisy": "DRAFT-DP"}[kind]
        columns = ",".join(map(str, secret))
        command = [
            python,
            Path(__file__).with_name("draft_worker.py"),
            folder,
            kind,
            people,
            columns,
            TREES[kind],
            seed,
            int(options.seconds),
            EPSILON,
            DEPTH,
        ]
        done = subprocess.run(map(str, command), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{folder.name} failed:\n{done.stderr}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    console.print(
        f"Shares of people whose attribute is right; one thread, {options.seconds:g} s at most. "
        "Largest group; ours: proven, by beliefs (s), by the likeliest groups (s); theirs (s, "
        "status, likelihood less ours)",
        highlight=False,
    )
    cases = [("exact", people, "sex") for people in (50, 100)]
    cases += [("noisy", 100, name) for name in ATTRIBUTES]
    cases = [case for case in cases if case[0] in options.counts]
    for (kind, people, name), seed in ((c, s) for c in cases for s in range(options.seeds)):
        secret = ATTRIBUTES[name]
        theirs = attack(kind, people, secret, seed)
        began = time.perf_counter()
        facts, truth = read_facts(theirs, secret)
        possible = prove(facts, seconds=options.seconds)
        alike = np.full(possible.shape, 1 / possible.shape[1])
        beliefs = condition_beliefs(facts, alike, possible, seconds=options.seconds).beliefs
        middle = time.perf_counter()
        best = find_likeliest_groups(facts, None, possible, seconds=options.seconds)
        ended = time.perf_counter()
        failed += not possible[np.arange(people), truth].all()
        likeliest, right, less = "none", "none", ""
        if best.groups is not None:
            likeliest = f"{(best.groups == truth).mean():.0%}{'' if best.proven else ' unproven'}"
        if theirs["rows"] is not None:
            groups = read_groups(np.array(theirs["rows"]), secret)
            right = f"{(groups == truth).mean():.0%}"
            if kind == "noisy" and best.groups is not None:
                ahead = weigh_groups(facts, groups) - weigh_groups(facts, best.groups)
                less, failed = f", {ahead:.2f}", failed + (ahead > 1e-6)
        console.print(
            f"{'DRAFT' if kind == 'exact' else 'DRAFT-DP'}, {people} people, {name}: "
            f"{np.bincount(truth).max() / people:.0%}; {(possible.sum(axis=1) == 1).mean():.0%}, "
            f"{(beliefs.argmax(axis=1) == truth).mean():.0%} ({middle - began:.1f} s), "
            f"{likeliest} ({ended - middle:.1f} s); {right} ({theirs['seconds']:.1f} s, "
            f"{theirs['status'].lower()}{less})",
            highlight=False,
        )
    recorded = options.code / "DRAFT-DP/experiments_results/Results_partial_reconstruction"
    if (file := recorded / "partial_reconstr_exps_compas_results.json").exists():
        runs = [run for run in json.loads(file.read_text()) if run["known_attributes"] == 6]
        error = np.mean([run["reconstruction_error"] for run in runs])
        console.print(
            f"Recorded by the authors of DRAFT-DP, one attribute at random and labels unknown: "
            f"mean error {error:.3f} of {len(runs)} runs of {runs[0]['time_out']} s on 16 threads"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
