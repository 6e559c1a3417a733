"""Running: once each, the same in parallel, nothing repeated after an interruption."""

import collections
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from toy_runs import ATTACK, PARROTS

import fpbench
from fpbench import InputError, PluginError
from fpbench.errors import NameUnknownError
from fpbench.plugin import Status
from fpbench.store.store import Store

MATRIX = ATTACK | {
    "seeds": 3,
    "learner": PARROTS,
    "adversary": [{"use": "coin"}, {"use": "peek"}],
    "corrector": [{"use": "flip"}, {"use": "none"}],
}
TIMES = ["seconds", "correct_seconds"]


@pytest.fixture(autouse=True)
def _toys(toys):
    pass


def results(run):
    """All rows without the measures that say how long things took."""
    return run.frame().drop(columns=TIMES, errors="ignore")


@pytest.mark.slow
def test_each_unique_step_runs_once(tmp_path, toy_trace):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    assert collections.Counter(toy_trace()) == {
        "load": 1,
        "train 0": 3,
        "train 1": 3,
        "disclose": 6,
        "guess coin": 3,
        "guess peek": 6,
        "correct": 12,  # flip; the other corrector is not a toy
    }
    frame = run.frame()
    assert len(frame) == 24
    assert set(frame["status"]) == {"done"}
    flipped = frame[frame["corrector"] == "flip"]
    assert (flipped["initial_accuracy"] + flipped["corrected_accuracy"]).round(9).eq(1).all()
    assert (frame["toy_note"] == 1).all()
    assert (frame["claim_tolerance"] == 0.1).all()


@pytest.mark.slow
def test_a_second_run_repeats_nothing(tmp_path, toy_trace):
    first = fpbench.run(MATRIX, out=tmp_path / "run")
    toy_trace()
    again = fpbench.run(MATRIX, out=tmp_path / "run")
    assert toy_trace() == []
    assert again.finished == ()
    assert again.frame().equals(first.frame())


@pytest.mark.slow
def test_parallel_equals_serial_bit_for_bit(tmp_path):
    serial = fpbench.run(MATRIX, out=tmp_path / "serial")
    parallel = fpbench.run(MATRIX, out=tmp_path / "parallel", jobs=2)
    assert results(parallel).equals(results(serial))


def test_the_engine_of_a_package_gives_the_same(tmp_path):
    """Steps, inputs and answers are pickled on their way, and adversaries are apart."""
    serial = fpbench.run(MATRIX, out=tmp_path / "serial")
    relayed = fpbench.run(MATRIX, out=tmp_path / "relayed", engine="relay", jobs=2)
    assert set(serial.frame()["status"]) == {"done"}
    assert results(relayed).equals(results(serial))


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"engine": "dusk"}, NameUnknownError, "unknown engine 'dusk'; "),
    ({"engine": "relais"}, NameUnknownError, "unknown engine 'relais'; did you mean 'relay'"),
    ({"engine": "loky", "scheduler": "tcp://x:1"}, InputError, "engine 'loky' has no scheduler"),
    ({"scheduler": "tcp://x:1", "jobs": 2}, InputError, "leave out the jobs"),
    ({"engine": "inline", "jobs": 2}, InputError, "engine 'inline' runs one job at a time"),
    ({"engine": "wrong"}, PluginError, "engine 'wrong' is not a subclass of Engine"),
])  # fmt: skip
def test_an_engine_that_cannot_be_had_is_one_clear_error(tmp_path, install, options, error, words):
    install("wrong", "wrong", "from fpbench import hookimpl\nfrom fpbench.plugin import Lazy\n@hookimpl\n"
            "def fpbench_engines():\n    return [Lazy('wrong', 'wrong:hookimpl')]\n")  # fmt: skip
    if options.get("scheduler") and not options.get("engine"):
        options = {**options, "engine": "relay"}
    with pytest.raises(error, match=words):
        fpbench.run(MATRIX, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_package_of_ours_that_is_not_here_is_told_with_its_command(tmp_path):
    if ("engine", "dask") in fpbench.plugin.discover().entries:
        pytest.skip("it is installed")
    for options in ({"engine": "dask"}, {"scheduler": "tcp://x:1"}):
        with pytest.raises(NameUnknownError) as error:
            fpbench.run(MATRIX, out=tmp_path / "run", **options)
        assert str(error.value) == (
            "unknown engine 'dask'; the plugin fpbench-dask has it, which is not installed; in a "
            "checkout of fpbench: pip install ./plugins/fpbench-dask"
        )


@pytest.mark.slow
def test_real_components_give_the_same_in_parallel(tmp_path):
    matrix = {
        "seeds": 2,
        "dataset": [{"use": "census-synthetic", "rows": 900}],
        "learner": [
            {"use": "exponentiated-gradient", "tolerance": 0.02, "max_iter": 5},
            {"use": "correlation-remover"},
            {"use": "threshold-optimizer"},
        ],
        "disclosure": [{"use": "published", "metric": "statistical-parity"}],
        "adversary": [
            {"use": "a1", "parameters": {"max_iter": 5}},
            {"use": "a2-ferry", "parameters": {"n_estimators": 5}},
        ],
        "corrector": [{"use": "exact"}],
    }
    serial = fpbench.run(matrix, out=tmp_path / "serial")
    assert set(serial.frame()["status"]) == {"done"}
    parallel = fpbench.run(matrix, out=tmp_path / "loky", jobs=2)
    assert results(parallel).equals(results(serial))


@pytest.mark.slow
def test_a_result_does_not_depend_on_what_else_is_in_the_matrix(tmp_path):
    whole = results(fpbench.run(MATRIX, out=tmp_path / "whole"))
    part = MATRIX | {"seeds": [2], "adversary": [{"use": "peek"}], "corrector": [{"use": "flip"}]}
    some = results(fpbench.run(part, out=tmp_path / "part")).set_index("cell")
    common = whole.set_index("cell").loc[some.index]
    # A column of whole numbers is one of floats if other cells lack a value.
    pd.testing.assert_frame_equal(common, some, check_dtype=False, check_exact=True)


def test_an_interrupted_run_goes_on_and_repeats_nothing(tmp_path, toy_trace):
    """Interrupted at a random place by the user, as the command line is."""
    done = []

    def stop(cell):
        done.append(cell.cell.key)
        if len(done) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fpbench.run(MATRIX, out=tmp_path / "run", on_cell=stop)
    toy_trace()
    with Store(tmp_path / "run") as store:
        assert store.done() == set(done)
    rest = fpbench.run(MATRIX, out=tmp_path / "run")
    assert len(rest.finished) == 24 - 7
    assert not {cell.cell.key for cell in rest.finished} & set(done)
    # The first learner's cells of the first seed were done, so it is not trained again.
    assert collections.Counter(toy_trace())["load"] == 1
    assert results(rest).equals(results(fpbench.run(MATRIX, out=tmp_path / "whole")))


KILLED = """
import fpbench, sys
from pathlib import Path
slow = {matrix!r} | {{"corrector": [{{"use": "flip", "sleep": 0.05}}]}}
fpbench.run(slow, out=sys.argv[1], jobs=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_loses_no_committed_cell(tmp_path, toy_trace, jobs):
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(matrix=MATRIX))
    out = tmp_path / "run"
    child = subprocess.Popen([sys.executable, script, out, str(jobs)], start_new_session=True)
    before: set[str] = set()
    while len(before) < 3 and child.poll() is None:
        time.sleep(0.02)
        if (out / "store.sqlite").exists():
            try:
                with Store(out) as store:
                    before = store.done()
            except fpbench.errors.StoreError:  # it is just being made
                continue
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    with Store(out) as store:
        held = store.done()
    assert before <= held
    assert 0 < len(held) < 12
    toy_trace()
    slow = MATRIX | {"corrector": [{"use": "flip", "sleep": 0.05}]}
    rest = fpbench.run(slow, out=out)
    assert collections.Counter(toy_trace())["correct"] == 12 - len(held) == len(rest.finished)
    assert set(rest.frame()["status"]) == {"done"}


@pytest.mark.slow
def test_a_component_that_raises_fails_its_own_cells_only(tmp_path):
    learners = [{"use": "parrot"}, {"use": "parrot", "label": "sick", "fails": "raises"}]
    run = fpbench.run(MATRIX | {"learner": learners}, out=tmp_path / "run")
    frame = run.frame()
    sick = frame["learner"] == "sick"
    assert set(frame[sick]["status"]) == {"failed"}
    assert set(frame[~sick]["status"]) == {"done"}
    assert set(frame[sick]["reason"]) == {"train parrot: RuntimeError: the parrot bit"}
    with Store(run.path) as store:
        assert "the parrot\n bit" in store.trace(frame[sick]["cell"].iloc[0])
    failed = [cell for cell in run.finished if cell.status is Status.FAILED]
    assert len(failed) == sick.sum()
    assert not any(cell.bad_input for cell in failed)
    # Cells that failed are tried again; those that are done are not.
    assert len(fpbench.run(MATRIX | {"learner": learners}, out=run.path).finished) == sick.sum()


def test_bad_input_that_only_a_component_can_see_is_told_apart(tmp_path):
    learners = [{"use": "parrot", "fails": "input"}]
    run = fpbench.run(MATRIX | {"learner": learners}, out=tmp_path / "run")
    assert all(cell.bad_input for cell in run.finished)


def test_a_group_that_a_part_lacks_is_named(tmp_path):
    few = MATRIX | {"dataset": [{"use": "flock", "rows": 3, "groups": 2}], "seeds": [0]}
    run = fpbench.run(few, out=tmp_path / "run")
    (reason,) = set(run.frame()["reason"])
    assert reason.startswith("split: data set 'flock': nobody of group 'g")
    assert all(cell.bad_input for cell in run.finished)


CRASH = """
import os, signal
from fpbench import Corrector, hookimpl

class Crash(Corrector):
    name = "crash"
    summary = "takes its process down"

    def correct(self, problem):
        os.kill(os.getpid(), signal.SIGKILL)

@hookimpl
def fpbench_correctors():
    return [Crash]
"""


@pytest.mark.slow
def test_a_component_that_kills_its_worker_fails_alone(tmp_path, install):
    install("crash", "crash", CRASH)
    matrix = MATRIX | {"corrector": [{"use": "flip"}, {"use": "crash"}], "seeds": 2}
    run = fpbench.run(matrix, out=tmp_path / "run", jobs=3)
    frame = run.frame()
    crashed = frame["corrector"] == "crash"
    assert set(frame[crashed]["status"]) == {"failed"}
    assert set(frame[crashed]["reason"]) == {
        "correct crash: its process was killed by SIGKILL (signal 9)"
    }
    assert set(frame[~crashed]["status"]) == {"done"}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_component_that_wants_to_exit_fails_alone(tmp_path, install, jobs):
    install(
        "crash",
        "crash",
        CRASH.replace("os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit(7)"),
    )
    matrix = MATRIX | {"corrector": [{"use": "crash"}, {"use": "flip"}], "seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).frame()
    crashed = frame["corrector"] == "crash"
    assert set(frame[crashed]["reason"]) == {"correct crash: SystemExit: 7"}
    assert set(frame[~crashed]["status"]) == {"done"}


def test_what_an_adversary_returns_is_checked(tmp_path, install):
    bad = (Path(__file__).parents[1] / "plugins" / "toys.py").read_text()
    bad = (
        bad[: bad.index("class Flock")]
        + """
class Wild(Adversary):
    name = "wild"
    summary = "returns nonsense"
    sees = frozenset({"features"})
    what: Literal["nan", "code", "length"] = "nan"

    def guess(self, view, rng):
        n = len(view.target)
        values = np.full(n, 7 if self.what == "code" else 0)
        confidence = np.full(n - (self.what == "length"), np.nan if self.what == "nan" else 1.0)
        none = np.array([], dtype=int)
        return Guess(values, confidence, none, none, none.astype(float))

@hookimpl
def fpbench_adversaries():
    return [Wild]
"""
    )
    install("wild", "wild", bad)
    sweep = {"use": "wild", "what": {"sweep": ["nan", "code", "length"]}}
    frame = fpbench.run(MATRIX | {"adversary": [sweep]}, out=tmp_path / "run").frame()
    reasons = {a.split()[1]: r for a, r in zip(frame["adversary"], frame["reason"], strict=True)}
    assert reasons == {
        "nan": "guess wild: the confidence of the guess must be finite and not negative",
        "code": "guess wild: the guess must be group codes in 0..1",
        "length": "guess wild: the guess must have 20 values and confidences",
    }


@pytest.mark.slow
def test_audits_run_with_mechanism_and_policy(tmp_path):
    matrix = {
        "dataset": [{"use": "flock"}],
        "learner": [{"use": "parrot"}],
        "auditor": [{"use": "counter"}],
        "mechanism": [{"use": "hiss"}],
        "policy": [{"use": "clamp"}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run")
    (row,) = run.frame().to_dict("records")
    assert row["status"] == "done"
    assert 0 <= row["members"] <= 20
    assert row["members"] != round(row["members"])
    (line,) = run.leaderboard("members").lines
    assert line.labels["mechanism"] == "hiss"
