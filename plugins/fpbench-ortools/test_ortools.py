"""The corrector: against brute force, against `exact`, beside HiGHS, in a matrix."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from fpbench_ortools import _process

import fpbench
from fpbench import FpbenchError, InputError, Problem, testing
from fpbench.claims import (
    METRICS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.plugin import SolverStatus

SMALL, LARGER = 160, 60
FORMS = "to-overall", "between-groups", "ratio"
MOST = {2: 9, 3: 7, 4: 6}
"""Most people of the problems solved by brute force, by number of groups."""


@cache
def corrector(name="cp-sat", **parameters):
    return fpbench.component("corrector", name, time_limit=60.0, **parameters)


def constraint(rng, kind, n, k, forms):
    low, high = sorted(rng.choice([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0], 2))
    group = int(rng.integers(k))
    metric, form = str(rng.choice(METRICS)), str(rng.choice(forms))
    tolerance = rng.choice([0.0, 0.01, 0.05, 0.1, 0.25, 1 / 3, 0.5, 1.0, 0.1 + 0.2, 1e-17])
    people = rng.permutation(n)[: int(rng.integers(0, 3))]
    return {
        "rate": lambda: RateConstraint(metric, float(tolerance), form),
        "share": lambda: ShareBounds(group, low, high),
        "bounds": lambda: RateBounds(group, low, high, metric),
        "unfairness": lambda: KnownUnfairness(metric, low, high, form),
        "known": lambda: KnownPeople(people, rng.integers(0, k, len(people))),
    }[kind]()


def weights(rng, n):
    spread = rng.uniform(1, 2, n)
    return [
        None, np.ones(n), rng.integers(1, 4, n) / 2, spread**6, spread**99, spread * 1e-9,
        10.0 ** rng.uniform(-9, 12, n), np.where(rng.random(n) < 0.5, 1.0, 2.0**99),
    ][rng.integers(8)]  # fmt: skip


def problem(rng, n, k, forms=FORMS):
    kinds = rng.choice(["rate", "rate", "rate", "share", "bounds", "unfairness", "known"],
                       rng.choice([1, 1, 2, 3]))  # fmt: skip
    guess = rng.integers(0, k, n)
    predictions = (rng.random(n) < 0.2 + 0.5 * (guess == 0)).astype(np.int8)
    constraints = tuple(constraint(rng, kind, n, k, forms) for kind in kinds)
    return Problem(
        guess, k, predictions, rng.integers(0, 2, n).astype(np.int8), constraints, weights(rng, n)
    )


def holds(known, values, problem):
    """Whether groups satisfy what is known, from its definition."""
    labels, predictions, k = problem.labels, problem.predictions, problem.groups
    if isinstance(known, KnownPeople):
        return bool((values[np.asarray(known.rows, int)] == known.groups).all())
    if isinstance(known, ShareBounds):
        share = Fraction(int((values == known.group).sum()), len(values))
        return written(known.low) <= share <= written(known.high)
    slices = {"predictive-equality": [0], "equal-opportunity": [1], "equalized-odds": [0, 1]}
    parts = [
        np.ones(len(predictions), bool) if label is None else labels == label
        for label in slices.get(known.metric, [None])
    ]
    if isinstance(known, RateBounds):
        rates = [rate(predictions[part & (values == known.group)]) for part in parts]
        return all(r is None or written(known.low) <= r <= written(known.high) for r in rates)
    looked_at = np.logical_or.reduce(parts)
    if len(set(values[looked_at])) < k:  # a claim about groups requires that none is empty
        return False
    worst = max(apart(values[p], predictions[p], k, known.form) for p in parts)
    if isinstance(known, KnownUnfairness):
        return written(known.low) <= worst <= written(known.high)
    return worst <= written(known.tolerance)


def written(number):
    return number if isinstance(number, Fraction) else Fraction(str(float(number)))


def rate(predictions):
    return Fraction(int(predictions.sum()), len(predictions)) if len(predictions) else None


def apart(values, predictions, k, form):
    rates = [r for g in range(k) if (r := rate(predictions[values == g])) is not None]
    if not rates:
        return Fraction(0)
    if form == "to-overall":
        return max(abs(r - rate(predictions)) for r in rates)
    if form == "between-groups":
        return max(rates) - min(rates)
    return 1 - min(rates) / max(rates) if max(rates) else Fraction(0)


def cheapest(problem):
    """Least cost over all vectors that satisfy everything; None if none does."""
    n = len(problem.guess)
    costs = np.ones(n) if problem.weights is None else problem.weights
    every = np.array(list(product(range(problem.groups), repeat=n)))
    paid = ((every != problem.guess) * costs).sum(axis=1)
    for at in np.argsort(paid, kind="stable"):
        if all(holds(known, every[at], problem) for known in problem.constraints):
            return float(paid[at])
    return None


def check_values(answer, problem):
    assert all(holds(known, answer.values, problem) for known in problem.constraints)
    costs = np.ones(len(problem.guess)) if problem.weights is None else problem.weights
    changed = answer.values != problem.guess
    assert answer.objective == pytest.approx(costs[changed].sum(), rel=1e-9)
    assert answer.bound <= answer.objective
    assert answer.moves.sum() == changed.sum()


@pytest.mark.parametrize("at", range(SMALL))
def test_it_agrees_with_brute_force(at):
    rng = np.random.default_rng([1, at])
    k = 2 + at % 3
    case = problem(rng, int(rng.integers(1, MOST[k] + 1)), k)
    best, answer = cheapest(case), corrector().correct(case)
    if best is None:
        assert answer.status is SolverStatus.INFEASIBLE
        assert answer.values is None
        return
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.objective == pytest.approx(best, rel=2e-9)
    check_values(answer, case)


@pytest.mark.parametrize("at", range(LARGER))
def test_it_agrees_with_exact(at):
    rng = np.random.default_rng([2, at])
    # CP-SAT may need a minute to compare groups with each other if there are three or four.
    forms = FORMS if at % 3 == 0 else ("to-overall",)
    case = problem(rng, int(rng.integers(20, 200)), 2 + at % 3, forms)
    best, answer = corrector("exact").correct(case), corrector().correct(case)
    assert answer.status == best.status
    if answer.values is not None:
        assert answer.objective == pytest.approx(best.objective, rel=2e-9)
        check_values(answer, case)


def adult_sized(groups=2):
    rng = np.random.default_rng(groups)
    guess = rng.integers(0, groups, 30_000)
    predictions = (rng.random(30_000) < 0.2 + 0.1 * guess / groups).astype(np.int8)
    claim = RateConstraint("statistical-parity", 0.01)
    return Problem(guess, groups, predictions, None, (claim,), rng.uniform(1, 2, 30_000) ** 6)


@pytest.mark.parametrize("groups", [2, 3])
def test_people_by_the_ten_thousand(groups):
    case = adult_sized(groups)
    answer, best = corrector().correct(case), corrector("exact").correct(case)
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.objective == pytest.approx(best.objective, rel=2e-9)
    assert apart(answer.values, case.predictions, groups, "to-overall") <= Fraction(1, 100)


def test_the_same_answer_every_time():
    case = adult_sized(3)
    one, other = corrector().correct(case), corrector().correct(case)
    assert (one.values == other.values).all()


def test_contradicting_people_are_infeasible():
    people = KnownPeople([0, 0], [0, 1])
    claim = RateConstraint("statistical-parity", 1.0)
    case = Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (people, claim))
    assert corrector().correct(case).status is SolverStatus.INFEASIBLE


def test_what_it_cannot_express_is_refused():
    sums = LinearConstraint(0, [1.0, 2.0], 0.0, 1.0)
    with pytest.raises(InputError, match="'cp-sat' cannot express the constraint 'linear'"):
        corrector().correct(Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (sums,)))
    with pytest.raises(InputError, match="needs a claim"):
        corrector().correct(Problem(np.array([0, 1]), 2, np.array([0, 1]), None, ()))


def test_numbers_beyond_64_bits_are_refused():
    rng = np.random.default_rng(0)
    guess, predictions = rng.integers(0, 2, 200_000), rng.integers(0, 2, 200_000)
    claim = RateConstraint("statistical-parity", 0.123456789012, "between-groups")
    with pytest.raises(InputError, match=r"beyond 2\^62.*use the corrector 'exact'"):
        corrector().correct(Problem(guess, 2, predictions, None, (claim,)))
    huge = np.full(200_000, 1e308)
    claim = RateConstraint("statistical-parity", 0.1)
    with pytest.raises(InputError, match="add up to more than there are numbers"):
        corrector().correct(Problem(guess, 2, predictions, None, (claim,), huge))


def test_no_time_is_a_timeout():
    hurried = fpbench.component("corrector", "cp-sat", time_limit=1e-6)
    answer = hurried.correct(adult_sized())
    assert answer.status is SolverStatus.TIMEOUT
    assert answer.values is None


def test_a_search_that_does_not_end_in_time_is_stopped(monkeypatch):
    monkeypatch.setattr(_process, "_GRACE", 0.0)
    worker = _process.Process()
    # Far too large to be even read in a tenth of a second.
    program = {"variables": [[0, 5]] * 400_000, "rows": [], "products": [], "clauses": [],
             "costs": list(range(400_000)), "seconds": 0.1}  # fmt: skip
    assert worker.solve(program)["status"] == "TIMEOUT"
    assert not worker.alive


def test_a_worker_that_does_not_start_in_time_is_an_error_and_tried_again(monkeypatch):
    monkeypatch.setattr(_process, "_running", None)
    monkeypatch.setattr(_process, "_START", 0.0)
    with pytest.raises(FpbenchError, match="OR-Tools was not loaded within 0 s"):
        corrector().correct(adult_sized())
    monkeypatch.undo()
    assert corrector().correct(adult_sized()).status is SolverStatus.OPTIMAL


def test_starting_or_tools_does_not_count_as_solving(monkeypatch):
    class Slow(_process.Process):
        def __init__(self):
            time.sleep(5)
            super().__init__()

    monkeypatch.setattr(_process, "_running", None)
    monkeypatch.setattr(_process, "Process", Slow)
    claim = RateConstraint("statistical-parity", 0.5)
    case = Problem(np.array([0, 1]), 2, np.array([0, 0]), None, (claim,))
    answer = corrector().correct(case)
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.seconds < 5


def test_a_worker_that_dies_is_an_error_and_replaced():
    corrector().correct(adult_sized())
    worker = _process._running
    os.kill(worker._worker.pid, signal.SIGKILL)
    with pytest.raises(FpbenchError, match=r"OR-Tools ended with status -9|says"):
        worker.solve({"seconds": 1.0})
    assert corrector().correct(adult_sized()).status is SolverStatus.OPTIMAL
    assert _process._running is not worker


def test_a_program_that_or_tools_refuses_has_a_status():
    worker = _process.Process()
    wrong = {"variables": [[3, 1]], "rows": [], "products": [], "clauses": [], "costs": [0],
             "seconds": 1.0}  # fmt: skip
    try:
        assert worker.solve(wrong)["status"] in ("MODEL_INVALID", "INFEASIBLE")
    finally:
        worker.close()


def test_or_tools_is_never_loaded_here():
    # OR-Tools and highspy each have a build of HiGHS; the second of them cannot be loaded.
    code = """
import sys, fpbench, numpy as np
claim = (fpbench.claims.RateConstraint("statistical-parity", 0.0),)
rng = np.random.default_rng(0)
case = fpbench.Problem(rng.integers(0, 3, 40), 3, rng.integers(0, 2, 40), None, claim)
costs = [fpbench.component("corrector", name).correct(case).objective
         for name in ("cp-sat", "ip", "exact", "cp-sat")]
assert len(set(costs)) == 1, costs
assert "highspy" in sys.modules
assert not any(name.startswith("ortools") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")
def test_no_worker_is_left_behind():
    code = """
import fpbench, numpy as np, os, signal
from fpbench_ortools import _process
_process.start()
print(_process._running._worker.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True, timeout=120
    )
    pid = int(done.stdout)
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "Z":  # ended; nobody waits for it
                return
        time.sleep(0.05)
    raise AssertionError("the worker outlived its parent")


@pytest.mark.parametrize("check", testing.checks("fpbench-ortools"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_it_names_the_version_that_it_runs_on():
    cls = type(corrector())
    assert cls.unavailable() is None
    assert cls.runs_on().startswith("OR-Tools 9.")


def test_an_impossible_claim_can_be_relaxed():
    guess, predictions = np.array([0, 1, 1]), np.array([1, 0, 0])
    people = KnownPeople([0, 1], [0, 1])
    case = Problem(guess, 2, predictions, None, (RateConstraint("statistical-parity", 0.1), people))
    assert corrector().correct(case).status is SolverStatus.INFEASIBLE
    for name in ("cp-sat", "exact"):
        answer = corrector(name, on_infeasible="relax").correct(case)
        assert answer.status is SolverStatus.OPTIMAL
        assert answer.measures["relaxed_tolerance"] == pytest.approx(1 / 3)


def test_it_runs_in_a_matrix(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [{"use": "exponentiated-gradient", "metric": "statistical-parity",
                     "tolerance": 0.01}],
        "disclosure": [{"use": "published"}],
        "adversary": [{"use": "a1"}],
        "corrector": [{"use": "cp-sat"}, {"use": "exact"}],
    }  # fmt: skip
    rows = fpbench.run(matrix, out=tmp_path / "run").frame().to_dict("records")
    assert [row["status"] for row in rows] == ["done", "done"]
    assert len({row["objective"] for row in rows}) == 1


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


def test_the_matrix_of_the_benchmarks_runs(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "plugins-ortools.toml"
    matrix = tomllib.loads(path.read_text(encoding="utf-8")) | {"seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
    for _, solved in frame.groupby("learner"):
        assert solved["objective"].to_numpy() == pytest.approx(solved["objective"].iloc[0])
