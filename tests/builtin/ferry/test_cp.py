from __future__ import annotations

import json
import sys
import sysconfig
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import FpbenchError, InputError, Problem
from fpbench.builtin.ferry import cp_engine as engines
from fpbench.builtin.ferry.correctors import CP
from fpbench.builtin.ferry.cp_model import floor_fraction
from fpbench.claims import (
    METRICS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.conditions import Constraint
from fpbench.claims.rates import FORMS
from fpbench.correction import solve_exact
from fpbench.plugin import SolverStatus

needs_engine = pytest.mark.skipif(CP.unavailable() is not None, reason=str(CP.unavailable()))


def check(problem: Problem, least: float | None, time_limit: float = 60) -> None:
    """The answer is the optimum, and all it says of itself is true."""
    found = CP(time_limit=time_limit).correct(problem)
    if least is None:
        assert (found.status, found.values, found.objective) == ("infeasible", None, None)
        return
    assert found.status is SolverStatus.OPTIMAL
    assert found.objective == pytest.approx(least, rel=1e-9, abs=0)
    assert found.bound == found.objective
    changed = found.values != problem.guess
    weights = np.ones(len(changed)) if problem.weights is None else problem.weights
    assert weights[changed].sum() == pytest.approx(least, rel=1e-9, abs=0)
    assert found.moves.sum() == changed.sum()


TOLERANCES = (0.0, 0.0, 0.02, 0.1, 0.2, 0.25, 1 / 3, 0.5, 1.0, 0.12345678901234567)


@st.composite
def constraints(draw, people: int, groups: int):
    names = draw(st.sampled_from(METRICS)), draw(st.sampled_from(FORMS))
    group = draw(st.integers(0, groups - 1))
    low, high = sorted(draw(st.sampled_from(TOLERANCES)) for _ in range(2))
    row, more = (draw(st.integers(0, people - 1)) for _ in range(2))
    return draw(
        st.sampled_from(
            [
                RateConstraint(names[0], high, names[1]),
                RateConstraint(names[0], low, names[1], every_slice=True),
                KnownUnfairness(names[0], low, high, names[1]),
                ShareBounds(group, low, high),
                RateBounds(group, low, high, names[0]),
                KnownPeople([row, more], [group, 0]),
            ]
        )
    )


@st.composite
def small_problems(draw) -> Problem:
    groups = draw(st.integers(2, 3))
    n = draw(st.integers(1, 8 if groups == 2 else 7))

    def column(values) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    bits = st.integers(0, 1)
    weight = draw(st.sampled_from([None, st.sampled_from([0.5, 1.0]), st.floats(1e-3, 1e3)]))
    known = tuple(draw(constraints(n, groups)) for _ in range(draw(st.integers(1, 3))))
    guess = column(st.integers(0, groups - 1))
    weights = None if weight is None else column(weight)
    return Problem(guess, groups, column(bits), column(bits), known, weights)


@pytest.mark.slow
@needs_engine
@given(small_problems())
def test_small_problems_equal_all_vectors(problem):
    check(problem, oracles.brute_force(problem))


def make(rng, n: int, groups: int, *known: Constraint, power: float = 6) -> Problem:
    """People whose guessed groups have different rates of positive predictions."""
    guess = rng.choice(groups, n, p=rng.dirichlet(np.full(groups, 3.0)))
    predictions = (rng.random(n) < rng.uniform(0.1, 0.7, groups)[guess]).astype(np.int8)
    labels = (rng.random(n) < 0.4).astype(np.int8)
    weights = rng.uniform(1, 2, n) ** power if power else None
    return Problem(guess, groups, predictions, labels, known, weights)


@pytest.mark.quick_cases(1)
@needs_engine
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_medium_problems_equal_the_exact_solver(metric, form):
    rng = np.random.default_rng([METRICS.index(metric), FORMS.index(form)])
    for n, groups, tolerance, power in (
        (60, 2, 0.0, 6), (400, 2, 0.03, 0), (3000, 2, 0.002, 6), (200, 2, 0.0123456789012, 20),
        (40, 3, 0.1, 6), (30, 3, 0.25, 0),
    ):  # fmt: skip
        problem = make(rng, n, groups, RateConstraint(metric, tolerance, form), power=power)
        check(problem, solve_exact(problem).objective)


@pytest.mark.slow
@needs_engine
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-5, 1e15, 1e30, 1e300])
def test_neither_tiny_nor_huge_weights_blur_the_optimum(scale):
    rng = np.random.default_rng(4)
    for groups in (2, 3):
        for power in (1, 99):
            problem = make(rng, 7, groups, RateConstraint("statistical-parity", 0.2), power=power)
            weights = problem.weights / problem.weights.max() * scale
            problem = Problem(**{**vars(problem), "weights": weights})
            check(problem, oracles.brute_force(problem))


@pytest.mark.slow
@needs_engine
@pytest.mark.parametrize("groups", [4, 5])
def test_many_groups_equal_the_exact_solver(groups):
    rng = np.random.default_rng(groups)
    problem = make(rng, 150, groups, RateConstraint("statistical-parity", 0.05))
    check(problem, solve_exact(problem).objective)


@given(st.fractions(0, 5, max_denominator=10**12), st.integers(1, 40))
def test_the_greatest_fraction_below(value, most):
    below = max(Fraction(int(value * d), d) for d in range(1, most + 1))
    assert floor_fraction(value, most) == below


@needs_engine
def test_a_long_tolerance_is_met_exactly():
    """One sixth lies between these: rates 1/3 and 2/3 of three people each, 1/2 overall."""
    guess, predictions = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 0, 0, 1, 1, 0])
    for form, at in (("to-overall", 1 / 6), ("between-groups", 1 / 3), ("ratio", 1 / 2)):
        for tolerance in (np.nextafter(at, 0), np.nextafter(at, 1)):
            claim = RateConstraint("statistical-parity", tolerance, form)
            holds = Fraction(str(float(tolerance))) >= Fraction(at).limit_denominator(10)
            problem = Problem(guess, 2, predictions, None, (claim,))
            assert CP().correct(problem).objective == (0 if holds else 1)


def test_numbers_beyond_the_range_of_the_engine_are_refused(fake):
    fake("raise SystemExit('must not be started')")
    claim = RateConstraint("statistical-parity", 0.01234567890123, "ratio")
    with pytest.raises(InputError, match=r"2\^53.*fewer digits.*'exact'"):
        CP().correct(make(np.random.default_rng(0), 30_000, 2, claim))


@needs_engine
def test_known_people_who_contradict_each_other_make_it_infeasible():
    known = KnownPeople([0, 0], [0, 1])
    check(make(np.random.default_rng(0), 10, 2, RateConstraint(), known), None)


@needs_engine
def test_a_time_limit_beyond_what_threads_can_wait():
    problem = make(np.random.default_rng(0), 7, 2, RateConstraint(tolerance=0.1))
    check(problem, oracles.brute_force(problem), time_limit=1e300)


@needs_engine
def test_an_impossible_claim_is_a_result():
    check(
        Problem(np.zeros(1, dtype=int), 2, np.ones(1, dtype=int), None, (RateConstraint(),)), None
    )


def test_what_it_cannot_express_is_refused():
    problem = make(np.random.default_rng(0), 5, 2, LinearConstraint(0, np.ones(5)))
    with pytest.raises(InputError, match="cannot express the constraint 'linear'"):
        CP().correct(problem)


# Time.


def test_time_that_is_over_before_solving(fake):
    fake("raise SystemExit('must not be started')")
    found = CP(time_limit=1e-9).correct(make(np.random.default_rng(0), 50, 2, RateConstraint()))
    assert (found.status, found.values, found.bound) == ("timeout", None, None)


@needs_engine
def test_time_that_is_over_before_a_proof():
    """Five groups: CP Optimizer finds the optimum at once and does not prove it in a minute."""
    problem = make(np.random.default_rng(0), 5000, 5, RateConstraint(tolerance=0.002))
    for seconds in (1.5, 6.0, 24.0):  # a busy machine may find nothing at once
        found = CP(time_limit=seconds).correct(problem)
        if found.status is not SolverStatus.TIMEOUT:
            break
    assert found.status is SolverStatus.FEASIBLE
    assert 0 < found.bound < found.objective
    assert 0 < found.gap < 1
    assert found.seconds > 1
    assert RateConstraint(tolerance=0.002).holds(found.values, problem.predictions, None, 5)


# Engines that fail: each error names the engine and what mends it, and nothing is left behind.

GREETING = (
    "import sys, json, time, os, struct\n"
    "def say(event, data):\n"
    "    text = event.encode() + b'\\0' + data.encode()\n"
    "    sys.stdout.buffer.write(b'\\xca\\xfe' + struct.pack('>I', len(text)) + text)\n"
    "    sys.stdout.flush()\n"
    "def answer(*messages):\n"
    "    sys.stdin.buffer.read(1)\n"
    "    for event, data in zip(messages[::2], messages[1::2]): say(event, data)\n"
    "    sys.stdin.buffer.read()\n"
    "say('VersionInfo', json.dumps({'ProxyVersion': 17, 'AngelVersion': 17,\n"
    "    'SolverVersion': '9.9', 'AvailableCommands': []}))\n"
)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Make a program and name it as CP Optimizer."""

    def make(source: str) -> str:
        path = tmp_path / "cpoptimizer"
        path.write_text(f"#!{sys.executable}\n{source}")
        path.chmod(0o755)
        monkeypatch.setenv(engines.VARIABLE, str(path))
        return str(path)

    return make


def children() -> set[str]:
    """Processes that this one started and that are not gone, zombies included."""
    return {
        child for file in Path("/proc/self/task").glob("*/children")
        for child in file.read_text().split()
    }  # fmt: skip


def failure(time_limit: float = 600) -> str:
    """What is said of an engine that fails; nothing of it may be left a moment later."""
    before = children(), set(threading.enumerate())
    problem = make(np.random.default_rng(0), 20, 2, RateConstraint(tolerance=0.1))
    with pytest.raises(FpbenchError) as caught:
        CP(time_limit=time_limit).correct(problem)
    said = str(caught.value)
    del caught
    give_up = time.monotonic() + 60  # long before, but on a busy machine
    while (
        now := (children(), set(threading.enumerate()))
    ) != before and time.monotonic() < give_up:
        time.sleep(0.01)
    assert now[0] <= before[0]
    assert now[1] <= before[1]
    return said


BREAK = {
    "dies at once": "raise SystemExit(1)",
    "prints a text": "print('Segmentation fault')",
    "prints bytes": "import sys; sys.stdout.buffer.write(bytes(range(128, 256)))",
    "dies over a model": GREETING + "sys.stdin.buffer.read(1); os._exit(3)",
    "is killed": GREETING + "sys.stdin.buffer.read(1); os.kill(os.getpid(), 9)",
    "answers nonsense": GREETING + "answer('Success', '{}', 'SolveResult', 'nonsense')",
    "answers nothing": GREETING + "answer('Success', '{}', 'SolveResult', '{}')",
    "says it failed": GREETING + "answer('Error', 'out of memory')",
}


@pytest.mark.parametrize("source", BREAK.values(), ids=BREAK)
def test_an_engine_that_breaks(source, fake, capfd):
    path = fake(source)
    said = failure()
    assert said.startswith(f"CP Optimizer ({path}) failed: ")
    assert "fpbench doctor" in said
    assert "--force-reinstall cplex" in said
    assert engines.VARIABLE in said
    assert "\n" not in said
    assert capfd.readouterr() == ("", "")


def answering(solved: str, stopped: str) -> str:
    """An engine that says how it ended, and that nobody should move."""
    status = {"solveStatus": solved, "SearchStopCause": stopped}
    moves = {f"move_{j}_{k}_{1 - k}": 0 for j in (0, 1) for k in (0, 1)}
    said = {"solutionStatus": status, "bounds": [0], "objectives": [0], "intVars": moves}
    return GREETING + f"answer('Success', '{{}}', 'SolveResult', {json.dumps(said)!r})"


def test_what_the_engine_may_end_with(fake):
    problem = make(np.random.default_rng(0), 20, 2, RateConstraint(tolerance=0.01))
    fake(answering("Unknown", "SearchStoppedByLimit"))
    assert CP().correct(problem).status is SolverStatus.TIMEOUT
    fake(answering("Infeasible", "SearchHasNotBeenStopped"))
    assert CP().correct(problem).status is SolverStatus.INFEASIBLE
    fake(answering("Unknown", "SearchStoppedByAbort"))
    assert "ended with ('Unknown', 'SearchStoppedByAbort')" in failure()
    fake(answering("Optimal", "SearchHasNotBeenStopped"))
    with pytest.raises(FpbenchError, match="gave counts that violate a constraint"):
        CP().correct(problem)


def test_what_the_engine_says_is_passed_on(fake):
    fake("print('libcplex.so: cannot open shared object file')")
    assert "libcplex.so: cannot open shared object file" in failure()
    fake(GREETING + "sys.stdin.buffer.read(1); os._exit(3)")
    assert "rc=3" in failure()


def test_an_engine_that_never_answers(fake, monkeypatch):
    monkeypatch.setattr(engines, "_START", 0.3)
    fake("import time; time.sleep(3600)")
    assert "too long to start" in failure()


def test_an_engine_that_does_not_keep_its_time_limit(fake, monkeypatch):
    monkeypatch.setattr(engines, "_GRACE", 0.3)
    fake(GREETING + "time.sleep(3600)")
    assert "ran past its time limit and was killed after 0." in failure(time_limit=0.5)


def test_a_licence_that_is_not_valid(fake):
    path = fake("print('CPLEX error: No valid license found')")
    said = failure()
    assert said.startswith(f"CP Optimizer ({path}) has no valid licence: ")
    assert "pip install 'fpbench-toolkit[cp]'" in said


LIMIT = "CP Optimizer Community Edition solves problems with search spaces up to 2^1000."


def test_the_limit_of_the_community_edition(fake):
    path = fake(GREETING + f"answer('Error', {LIMIT!r})")
    said = failure()
    assert said.startswith("the problem is too large for the Community Edition")
    assert path in said
    assert f"install the full edition (free for academia) and set {engines.VARIABLE}" in said
    assert "'exact'" in said


@needs_engine
def test_the_real_limit_of_the_community_edition():
    problem = make(np.random.default_rng(0), 45_000, 9, RateConstraint(tolerance=0.03))
    try:
        said = str(CP(time_limit=10).correct(problem).status)
    except FpbenchError as error:
        said = str(error)
    if said in list(SolverStatus):
        pytest.skip("this is a full edition")
    assert said.startswith("the problem is too large for the Community Edition")


# Where the engine is looked for.


def program(folder: Path) -> str:
    folder.mkdir(parents=True)
    path = folder / "cpoptimizer"
    path.touch(mode=0o755)
    return str(path)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without any CP Optimizer."""
    monkeypatch.delenv(engines.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "venv"))


@pytest.mark.usefixtures("nowhere")
def test_no_engine_anywhere():
    for said in (CP.unavailable(), CP.runs_on()):
        assert said == "CP Optimizer is not installed here: pip install 'fpbench-toolkit[cp]'"
    with pytest.raises(FpbenchError, match=r"pip install 'fpbench-toolkit\[cp\]'"):
        CP().correct(make(np.random.default_rng(0), 20, 2, RateConstraint()))


@pytest.mark.usefixtures("nowhere")
def test_the_engine_nearest_to_this_python_is_used(tmp_path, monkeypatch):
    # From the last resort to the first choice: each is preferred to those made before it.
    for folder in (tmp_path / "path", tmp_path / "venv"):
        path = program(folder)
        assert engines.CpEngine.find() == (path,)
    named = program(tmp_path / "named")
    monkeypatch.setenv(engines.VARIABLE, named)
    assert engines.CpEngine.find() == (named,)


@pytest.mark.usefixtures("nowhere")
def test_a_file_that_is_no_program_is_passed_over(tmp_path):
    Path(program(tmp_path / "venv")).chmod(0o644)
    path = program(tmp_path / "path")
    assert engines.CpEngine.find() == (path,)


@pytest.mark.parametrize("wrong", ["no/such/file", "."])
def test_a_name_that_leads_nowhere(wrong, monkeypatch):
    monkeypatch.setenv(engines.VARIABLE, wrong)
    assert CP.unavailable() == CP.runs_on()
    assert f"names {wrong!r}, which is not a program" in CP.unavailable()


def test_the_doctor_says_version_and_place(fake, command):
    path = fake(GREETING)
    done = command("doctor")
    assert f"CP Optimizer 9.9, {path}" in " ".join(done.stdout.split())
    fake("print('no such library')")
    assert "failed: ended with code 0 and wrote 'no such library\\n'" in CP.runs_on()
