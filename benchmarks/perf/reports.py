"""Time and strength of what follows from fairness reports about Adult, against scipy.

    FPBENCH_DATA=DIR python benchmarks/perf/reports.py [--order N ...] [--no-whole] [--no-defences]
        [--no-verdict] [--no-reading] [--people N ...]

One thread; seconds are of processor time, ours and our processes', so that other work on the
machine matters little. A third of Adult is reported on, by sex, in slices of up to two and three
columns: counts of at least 10 people by prediction; beliefs are those of calibrated boosted trees
that learnt from another third. Beliefs to an error bound of .01 are timed beside scipy's L-BFGS-B
on the whole dual, scaled by the counts' variances, in one run; scipy is stopped when it has taken
eight times as long. Then all of Adult, in slices of up to three columns, with programs about sets
of at most 64 undecided people. Then defences of slices of up to three columns, and explanations of
proofs. Then the verdict on all of Adult, in slices of up to two columns: `fpbench.assess` beside
that of commit 4de9a72, taken from git, which neither cross-fitted beliefs nor looked for second
worlds. Both have the default time limit, within which worlds are looked for by the clock: the ratio
holds of a machine that has nothing else to do, and who is undecided then is said beside it.
Then a table of all of Adult by two columns, as a CSV of counts: reading beside judging it.
Last, people made up, of 10 columns, in the 55 tables of one and two of them: 20 sweeps.
Exits with 1 if a number misses its limit.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import io
import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

import fpbench
from fpbench import FairnessReport
from fpbench.claims import Facts
from fpbench.correction import condition_beliefs, explain_proof, propagate, prove
from fpbench.correction.calibration import calibrate_beliefs
from fpbench.models import encode

ERROR = 0.01
SIGMA = 0.05
"""Softness of exact counts, for both."""
_PATIENCE = 8.0

LEAST = {
    2: {"proven": 8300.0, "accuracy": 0.9},
    3: {"proven": 13300.0, "accuracy": 0.963, "times scipy": 5.0},
}
MOST = {2: {"programs": 30.0}, 3: {}}
MOST_WHOLE = {"all": 8.0}
MOST_SWEPT = {"20 sweeps of 1,000,000 people": 8.0, "GB": 1.0, "cost of ten times the people": 12.0}
MOST_DEFENDED = {
    "facts, small groups suppressed": 4.0, "consistent noise": 30.0,
    "complementary suppression, 7 columns": 15.0, "longest search for an explanation": 12.0,
}  # fmt: skip
MOST_READ = {"reading, of judging": 0.1}
MOST_JUDGED = {"times before": 2.0}
"""Limits, in seconds where not a number of people, a share or a ratio."""
BEFORE = "4de9a72"
"""The last commit whose verdict was without cross-fitting and worlds."""
EXPLAINED, EXPLAINING = 6, 10.0
"""People whose proof is explained, and seconds for each: of the clock, as the limit is."""
WHOLE_ERROR, WHOLE_SETS = 0.03, 64
"""Of all of Adult: error bound (as of `fpbench.assess`), undecided people of a set in programs."""


class Target(NamedTuple):
    """People, and what an adversary believes of them."""

    features: object
    predictions: NDArray[np.int64]
    codes: NDArray[np.int64]
    groups: NDArray[np.str_]
    beliefs: NDArray[np.float64]


def tell_time() -> float:
    """Seconds of processor time, of this process and those that it has ended."""
    own, others = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def make_target(whole: bool = False) -> Target:
    """A third of Adult; a model trained on them; beliefs learnt from another third.

    Or all of Adult, and beliefs that learnt from a third of it, too good for a third of people.
    """
    table = fpbench.dataset("adult", sensitive="sex")
    target, adversary = np.split(np.random.default_rng(0).permutation(len(table)), 3)[::2]
    target = np.arange(len(table)) if whole else target
    numbers = encode(table.features, "ordinal")
    model = HistGradientBoostingClassifier(random_state=0)
    predictions = model.fit(numbers[target], table.labels[target]).predict(numbers)
    seen = np.column_stack([numbers, predictions])
    learnt, held_out = np.split(adversary, [4 * len(adversary) // 5])
    trees = HistGradientBoostingClassifier(random_state=0, max_iter=150, learning_rate=0.06)
    trees.fit(seen[learnt], table.codes[learnt])
    beliefs, _ = calibrate_beliefs(
        trees.predict_proba(seen[target]),
        trees.predict_proba(seen[held_out]),
        table.codes[held_out],
    )
    features = table.features.iloc[target].reset_index(drop=True)
    codes = table.codes[target].astype(np.int64)
    return Target(
        features,
        predictions[target].astype(np.int64),
        codes,
        np.array(table.groups)[codes],
        beliefs,
    )


class _Enough(Exception):  # noqa: N818
    pass


def time_scipy(facts: Facts, beliefs: NDArray[np.float64], seconds: float) -> tuple[float, float]:
    """Seconds and bound of scipy on the dual of all published counts of group 1."""
    published = facts.take(~facts.derived)
    sets, counts = published.sets.astype(np.float64), published.low[:, 1]
    membership, variance = sets.T.tocsr(), SIGMA**2
    prior = np.log(beliefs[:, 1]) - np.log(beliefs[:, 0])
    flat = np.logaddexp(0, prior).sum()
    scale = 1 / np.sqrt(sets @ (beliefs[:, 1] * beliefs[:, 0]) + variance)
    started, bound = tell_time(), np.inf

    def evaluate(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal bound
        multipliers = scaled * scale
        logits = prior + membership @ multipliers
        residual = counts - sets @ expit(logits) - variance * multipliers
        gap = residual @ residual / (2 * variance)
        bound = min(bound, float(np.sqrt(gap / (2 * len(prior)))))
        if bound <= ERROR or tell_time() - started > seconds:
            raise _Enough
        value = np.logaddexp(0, logits).sum() - flat - multipliers @ counts
        return value + variance / 2 * multipliers @ multipliers, -residual * scale

    options = {"maxiter": 10**6, "maxfun": 10**6, "maxcor": 10, "ftol": 0, "gtol": 0}
    with suppress(_Enough):
        minimize(evaluate, np.zeros(len(counts)), jac=True, method="L-BFGS-B", options=options)
    return tell_time() - started, bound


def measure(target: Target, order: int) -> dict[str, float]:
    """Seconds of each step, and what comes of it."""
    features, predictions, codes, groups, beliefs = target
    report = FairnessReport.from_predictions(
        features, predictions, groups, by=list(features.columns), order=order,
        metrics=("selected", "rejected"), min_cell=10,
    )  # fmt: skip
    clock = [tell_time()]
    facts = report.facts(features, predictions)
    clock.append(tell_time())
    quick = propagate(facts)
    clock.append(tell_time())
    after = condition_beliefs(facts, beliefs, quick, error=ERROR)
    clock.append(tell_time())
    possible = prove(facts, quick, seconds=300)
    clock.append(tell_time())
    final = condition_beliefs(facts, beliefs, possible, error=ERROR)
    clock.append(tell_time())
    built, propagated, conditioned, programs, last = np.diff(clock)
    assert possible[np.arange(len(codes)), codes].all(), "a proof is wrong"
    ours = propagated + conditioned
    scipy, bound = time_scipy(facts, beliefs, _PATIENCE * ours)
    return {
        "published counts": float((~facts.derived).sum()),
        "facts": built,
        "propagation": propagated,
        "beliefs": conditioned,
        "bound": after.error_bound,
        "programs": programs,
        "beliefs, programs before": last,
        "all": built + propagated + programs + last,
        "scipy": scipy,
        "bound of scipy": bound,
        "times scipy": scipy / ours,
        "proven by propagation": float((quick.sum(axis=1) == 1).sum()),
        "proven": float((possible.sum(axis=1) == 1).sum()),
        "accuracy before": float((beliefs.argmax(axis=1) == codes).mean()),
        "accuracy": float((final.beliefs.argmax(axis=1) == codes).mean()),
    }


def measure_whole(target: Target) -> dict[str, float]:
    """Seconds of each step for all of Adult."""
    features, predictions, codes, groups, beliefs = target
    report = FairnessReport.from_predictions(
        features, predictions, groups, by=list(features.columns), order=3,
        metrics=("selected", "rejected"), min_cell=10,
    )  # fmt: skip
    clock = [tell_time()]
    facts = report.facts(features, predictions)
    clock.append(tell_time())
    possible = prove(facts, largest=WHOLE_SETS, seconds=300)
    clock.append(tell_time())
    after = condition_beliefs(facts, beliefs, possible, error=WHOLE_ERROR)
    clock.append(tell_time())
    assert possible[np.arange(len(codes)), codes].all(), "a proof is wrong"
    built, programs, conditioned = np.diff(clock)
    return {
        "facts": built,
        "propagation and programs": programs,
        "beliefs": conditioned,
        "bound": after.error_bound,
        "all": clock[-1] - clock[0],
        "proven": float((possible.sum(axis=1) == 1).sum()),
        "accuracy": float((after.beliefs.argmax(axis=1) == codes).mean()),
    }


def measure_defences(target: Target) -> dict[str, float]:
    """Seconds of defences of slices by up to three columns, and of explanations of proofs."""
    features, predictions, codes, groups, _ = target
    exact = FairnessReport.from_predictions(
        features, predictions, groups, by=list(features.columns), order=3,
        metrics=("selected", "rejected"), min_cell=0,
    )  # fmt: skip
    report = exact.protect(min_cell=10)
    few = exact.protect(by=[column.name for column in exact.columns[:7]])
    clock = [tell_time()]
    suppressed = report.protect(min_group=10)
    clock.append(tell_time())
    facts = suppressed.facts(features, predictions)
    clock.append(tell_time())
    report.protect(noise="discrete-laplace", epsilon=5.0, consistent=True, rng=0)
    clock.append(tell_time())
    hidden = few.protect(min_cell=10, complementary=True)
    clock.append(tell_time())
    assert propagate(facts)[np.arange(len(codes)), codes].all(), "a proof is wrong"
    facts = report.facts(features, predictions)
    proven = np.flatnonzero(propagate(facts).sum(axis=1) == 1)
    taken, lengths = [], []
    for person in np.random.default_rng(0).choice(proven, EXPLAINED, replace=False):
        started = time.perf_counter()
        lengths.append(len(explain_proof(facts, int(person), seconds=EXPLAINING)))
        taken.append(time.perf_counter() - started)
    steps = np.diff(clock)
    return {
        "facts, small groups suppressed": steps[1],
        "consistent noise": steps[2],
        "complementary suppression, 7 columns": steps[3],
        "share of its values suppressed": float(hidden.suppressed.mean()),
        "median cells of an explanation": float(np.median(lengths)),
        "longest search for an explanation": max(taken),
    }


def judge_whole() -> dict[str, float]:
    """Seconds of the verdict on all of Adult, by the fpbench that is imported."""
    features, predictions, _, groups, _ = make_target(whole=True)
    report = FairnessReport.from_predictions(
        features, predictions, groups, by=list(features.columns), order=2, min_cell=10
    )
    started, began = tell_time(), time.perf_counter()
    result = fpbench.assess(report, features, predictions, groups=groups)
    return {
        "seconds": tell_time() - started,
        "by the clock": time.perf_counter() - began,
        "proven": float(result.proven.sum()),
        "leak, points": 100 * result.leak,
    } | ({"undecided": float(result.undecided.sum())} if hasattr(result, "undecided") else {})


def measure_reading() -> dict[str, float]:
    """Seconds of reading a table, and of judging it for a reader who learnt nothing before."""
    people = fpbench.dataset("adult", sensitive="sex")
    features, groups = people.features, np.array(people.groups)[people.codes]
    cells = features[["workclass", "education"]].assign(sex=groups, hired=people.labels)
    table = cells.groupby(["workclass", "education", "sex"], observed=True).hired
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        table.agg(Applicants="size", Hired="sum").to_csv(file.name)
        clock = [tell_time()]
        report = FairnessReport.read(file.name, X=features, group="sex")
        clock.append(tell_time())
    fpbench.assess(
        report, features, people.labels, groups=groups, beliefs="shares", search=False
    )  # fmt: skip
    clock.append(tell_time())
    reading, judging = np.diff(clock)
    return {"reading": reading, "judging": judging, "reading, of judging": reading / judging}


def measure_verdict() -> dict[str, float]:
    """What `judge_whole` measures, of this fpbench and of the one before."""
    root = Path(__file__).parents[2]
    archive = subprocess.run(
        ["git", "archive", BEFORE, "fpbench"], cwd=root, capture_output=True, check=True
    ).stdout
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        for when, place in ((", before", folder), ("", str(root))):
            told = subprocess.run(
                [sys.executable, __file__, "--judge"], capture_output=True, check=True,
                env={**os.environ, "PYTHONPATH": place},
            )  # fmt: skip
            measured |= {name + when: value for name, value in json.loads(told.stdout).items()}
    for name, of in (("times before", "seconds"), ("times before, by the clock", "by the clock")):
        measured[name] = measured[of] / measured[f"{of}, before"]
    return measured


def find_peak() -> int:
    """Kilobytes of memory that the process had at most."""
    try:  # ru_maxrss begins with what the process that started this one had
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sweep_people(n: int) -> dict[str, float]:
    """Seconds of 20 sweeps, and the greatest memory of the process, with n people made up."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 40, n)
    levels = rng.integers(5, 9, 10)
    columns = []
    for level in levels:
        edges = rng.dirichlet(np.full(level, 0.6), 40).cumsum(axis=1)[:, :-1].astype(np.float32)
        drawn = rng.random(n, dtype=np.float32)
        columns.append(sum((edge[kind] < drawn).astype(np.int8) for edge in edges.T))
    chances = rng.beta(1, 2, 40).clip(0.05, 0.95)[kind]
    truth = rng.random(n) < chances
    tables, counts = [], []
    for own in (own for r in (1, 2) for own in combinations(range(10), r)):
        codes, size = np.zeros(n, np.int8), 1
        for column in own:
            codes, size = (
                (codes * levels[column] + columns[column]).astype(np.int8),
                size * int(levels[column]),
            )
        tables.append((codes, size))
        cells = [np.bincount(codes[truth == bit], minlength=size) for bit in (False, True)]
        counts.append(np.stack(cells, axis=1))
    facts = Facts.from_tables(tables, np.concatenate(counts))
    beliefs = np.stack([0.8 - 0.6 * chances, 0.2 + 0.6 * chances], axis=1)
    started = tell_time()
    after = condition_beliefs(facts, beliefs, error=1e-9, iterations=20)
    return {
        "seconds": tell_time() - started,
        "bound": after.error_bound,
        "GB": find_peak() / 1e6,
    }


def measure_sweeps(people: list[int]) -> dict[str, float]:
    """What `sweep_people` measures, each in a process of its own."""
    command = [sys.executable, __file__, "--sweep"]
    result: dict[str, float] = {}
    taken = {}
    for n in people:
        told = json.loads(
            subprocess.run([*command, str(n)], capture_output=True, check=True).stdout
        )
        taken[n] = told["seconds"]
        result[f"20 sweeps of {n:,} people"] = told["seconds"]
        result["bound" if n == 10**6 else f"bound, {n:,}"] = told["bound"]
        result["GB" if n == 10**6 else f"GB, {n:,}"] = told["GB"]
        if n // 10 in taken:
            result["cost of ten times the people"] = taken[n] / taken[n // 10]
    return result


def print_table(
    title: str, measured: dict[str, float], least: dict[str, float], most: dict[str, float]
) -> bool:
    """Whether a limit was missed."""
    table, failed = Table("", "measured", "limit", title=title), False
    for name, value in measured.items():
        limit = f">= {least[name]:g}" if name in least else ""
        limit = f"<= {most[name]:g}" if name in most else limit
        missed = value < least.get(name, -np.inf) or value > most.get(name, np.inf)
        table.add_row(name, f"{value:,.4g}", limit + (" MISSED" if missed else ""))
        failed |= missed
    Console().print(table)
    return failed


def main() -> int:
    """Measure each part, print tables, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--whole", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--defences", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--verdict", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--reading", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--people", type=int, nargs="*", default=[10**5, 10**6])
    parser.add_argument("--sweep", type=int, help=argparse.SUPPRESS)
    options, failed = parser.parse_args(), False
    if options.sweep is not None:
        print(json.dumps(sweep_people(options.sweep)))
        return 0
    if options.judge:
        print(json.dumps(judge_whole()))
        return 0
    target = make_target() if options.order or options.defences else None
    for order in options.order:
        assert target is not None
        title = f"{len(target.codes):,} people of Adult, slices of up to {order} columns"
        measured = measure(target, order)
        failed |= print_table(title, measured, LEAST.get(order, {}), MOST.get(order, {}))
    if options.defences:
        assert target is not None
        title = f"Defences of {len(target.codes):,} people of Adult, slices of up to 3 columns"
        failed |= print_table(title, measure_defences(target), {}, MOST_DEFENDED)
    if options.whole:
        target = make_target(whole=True)
        title = f"All {len(target.codes):,} people of Adult, slices of up to 3 columns"
        failed |= print_table(title, measure_whole(target), {}, MOST_WHOLE)
    if options.verdict:
        title = "The verdict on all of Adult, slices of up to 2 columns"
        failed |= print_table(title, measure_verdict(), {}, MOST_JUDGED)
    if options.reading:
        title = "A table of all of Adult by two columns"
        failed |= print_table(title, measure_reading(), {}, MOST_READ)
    if options.people:
        measured = measure_sweeps(options.people)
        failed |= print_table("People made up, 55 tables", measured, {}, MOST_SWEPT)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
