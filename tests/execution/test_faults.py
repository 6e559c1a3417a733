"""Steps that go wrong fail alone, with their reason; on every engine alike."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import eventually, gone
from toy_runs import ATTACK, timeless

import fpbench
from fpbench.store.store import Store

MATRIX = ATTACK | {"seeds": 1}
LIMITS = {"timeout": 4, "memory_limit": "256 MiB"}
ENGINES = [("inline", 1), ("loky", 2)]


@pytest.fixture(autouse=True)
def _troubles(toys, install):
    install("fpbench-troubles", "troubles")


def trouble(*what, **parameters):
    return {"use": "trouble", "what": {"sweep": ["nothing", *what]}, **parameters}


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "jobs"), ENGINES)
def test_every_fault_fails_alone_with_its_reason(tmp_path, engine, jobs):
    """And the same on every engine."""
    what = ["raises", "eats", "segfaults", "killed", "exits", "leaves"]
    mark = tmp_path / "mark"
    patient = LIMITS | {"timeout": 600}  # on a busy machine, too, only one step exceeds its time
    said = {}
    for limits, corrector in (
        (patient, trouble(*what, mark=str(mark))), (LIMITS, {"use": "trouble", "what": "hangs"}),
    ):  # fmt: skip
        matrix = MATRIX | {"limits": limits, "corrector": [corrector]}
        out = tmp_path / f"run {limits['timeout']}"
        run = fpbench.run(matrix, out=out, engine=engine, jobs=jobs)
        said |= {row["corrector"].partition(" ")[2] or "hangs": row["reason"] for row in run.rows()}
    assert said == {
        "nothing": None,
        "raises": "correct trouble: RuntimeError: no",
        "hangs": "correct trouble: timed out after 4 s (timeout of [limits])",
        "eats": "correct trouble: needs more memory than 256 MiB (memory_limit of [limits])",
        "segfaults": "correct trouble: its process was killed by SIGSEGV (signal 11); libraries "
        "may end like this when there is no memory: needs more memory than 256 MiB (memory_limit of "
        "[limits])",
        "killed": "correct trouble: its process was killed by SIGKILL (signal 9)",
        "exits": "correct trouble: its process ended with exit code 7 and without a result",
        "leaves": "correct trouble: its process ended with exit code 3 and without a result",
    }
    assert eventually(lambda: gone(int(mark.read_text())))


@pytest.mark.slow
def test_limits_change_no_result_and_no_cell(tmp_path):
    free = fpbench.run(MATRIX, out=tmp_path / "free")
    bound = fpbench.run(MATRIX | {"limits": LIMITS}, out=tmp_path / "bound")
    assert free.rows()[0]["status"] == "done", free.rows()
    assert timeless(free) == timeless(bound)
    # The same run: it goes on with other limits, and has nothing left to do.
    again = fpbench.run(MATRIX | {"limits": {"timeout": 9}}, out=tmp_path / "free")
    assert again.finished == ()


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "jobs"), ENGINES)
def test_measures_that_cannot_be_stored_fail_alone(tmp_path, engine, jobs):
    """A row that would say another thing of itself, or more than a store can hold."""
    what = ["status", "unshown", "essay", "crowd", "screams"]
    matrix = MATRIX | {"corrector": [trouble(*what)]}
    run = fpbench.run(matrix, out=tmp_path / "run", engine=engine, jobs=jobs)
    said = {row["corrector"].split()[1]: row["reason"] for row in run.rows()}
    screamed = said.pop("screams")
    assert screamed.startswith("correct trouble: RuntimeError: nono")
    assert "(99,980,0" in screamed
    assert len(screamed) < 21_000
    few = "measures must be at most 10,000, and their texts 1,048,576 letters, not"
    sender = "score" if engine == "inline" else "correct trouble"  # whose process refuses it
    assert said.pop("essay").startswith(f"{sender}: {few} ")
    assert said.pop("crowd").startswith(f"{sender}: {few} 10,0")
    unshown = said.pop("unshown")
    assert unshown.startswith(sender)
    assert r"'\udc80'" in unshown
    assert said == {
        "nothing": None,
        "status": "score: corrector 'trouble': 'status' is what every row has, and no component may "
        "give it; choose another name, such as 'trouble_status'",
    }


@pytest.mark.slow
def test_an_interruption_that_is_no_users_fails_alone(tmp_path):
    matrix = MATRIX | {"corrector": [trouble("interrupts")]}
    rows = fpbench.run(matrix, out=tmp_path / "run", engine="loky", jobs=2).rows()
    assert [(row["status"], row["reason"]) for row in rows] == [
        ("done", None),
        ("failed", "correct trouble: KeyboardInterrupt"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_other_ends_than_exceptions_fail_alone(tmp_path, jobs):
    matrix = MATRIX | {"corrector": [trouble("ends")]}
    rows = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    assert [row["reason"] for row in rows] == [None, "correct trouble: GeneratorExit"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_step_that_failed_is_tried_again(tmp_path, jobs):
    def attempt(name, retries):
        matrix = MATRIX | {"corrector": [trouble("once", "raises", mark=str(tmp_path / name))]}
        run = fpbench.run(matrix, out=tmp_path / f"run {name}", jobs=jobs, retries=retries)
        return {r["corrector"].split()[1]: r["status"] for r in run.rows()}

    assert attempt("a", 0) == {"nothing": "done", "once": "failed", "raises": "failed"}
    assert attempt("b", 1) == {"nothing": "done", "once": "done", "raises": "failed"}


def test_bad_input_is_not_tried_again(tmp_path, toy_trace):
    matrix = MATRIX | {"learner": [{"use": "parrot", "fails": "input"}]}
    fpbench.run(matrix, out=tmp_path / "run", retries=3)
    assert toy_trace().count("train 0") == 1
    matrix = MATRIX | {"learner": [{"use": "parrot", "fails": "raises"}]}
    fpbench.run(matrix, out=tmp_path / "other", retries=3)
    assert toy_trace().count("train 0") == 4


@pytest.mark.slow
def test_a_component_that_kills_its_worker_fails_alone_without_limits(tmp_path):
    """Without limits it runs in the worker itself, beside others."""
    matrix = MATRIX | {"learner": [{"use": "deadly"}, {"use": "parrot"}], "seeds": 2}
    frame = fpbench.run(matrix, out=tmp_path / "run", jobs=2).frame()
    deadly = frame["learner"] == "deadly"
    assert set(frame[deadly]["reason"]) == {
        "train deadly: its process was killed by SIGKILL (signal 9)"
    }
    assert set(frame[~deadly]["status"]) == {"done"}


@pytest.mark.parametrize(("limits", "words"), [
    ({"timeout": 0}, ["[limits]", "timeout", "0"]),
    ({"timeout": float("inf")}, ["timeout", "inf"]),
    ({"timeout": "30 s"}, ["timeout", "'30 s'"]),
    ({"memory_limit": "2 bananas"}, ["memory_limit", "'2 bananas'", "512 MiB"]),
    ({"memory_limit": -1}, ["memory_limit", "above 0"]),
    ({"memory_limit": "9" * 18 + " TB"}, ["memory_limit"]),
    ({"time": 3}, ["limits.time", "timeout"]),
    ({"memory_limit": True}, ["memory_limit", "True"]),
])  # fmt: skip
def test_limits_that_make_no_sense_are_refused(tmp_path, limits, words):
    with pytest.raises(fpbench.InputError) as error:
        fpbench.run(MATRIX | {"limits": limits}, out=tmp_path / "run")
    for word in words:
        assert word.strip("[]") in str(error.value), str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"engine": "lokki"}, "did you mean 'loky'"),
        ({"jobs": 0}, "1 or more"),
        ({"retries": -1}, "0 or more"),
        ({"connect_timeout": 0.0}, "above 0"),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused(tmp_path, options, word):
    with pytest.raises(fpbench.InputError, match=re.escape(word)):
        fpbench.run(MATRIX, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


# What a person does at the terminal

SLOW = """
seeds = 40
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[corrector]]
use = "flip"
sleep = 0.25
"""


class Command:
    """A run in a process group of its own, as a terminal starts it."""

    def __init__(self, where, text, *options):
        self.out = where / "run"
        (where / "matrix.toml").write_text(text)
        command = [Path(sys.executable).parent / "fpbench", "run", "matrix.toml", "--out", "run"]
        # A shell that runs the tests in the background has children ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [*command, *options], cwd=where, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def committed(self):
        try:
            with Store(self.out) as store:
                return len(store.done())
        except fpbench.errors.StoreError:  # it is just being made
            return 0

    def interrupt(self, kind=signal.SIGINT):
        """To the whole group, as Ctrl-C is."""
        os.killpg(self.process.pid, kind)

    def ended(self):
        _, said = self.process.communicate(timeout=120)
        assert "Traceback" not in said, said
        return self.process.returncode, said

    def family(self):
        """Everything that descends from it, by process id."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
        found = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.process.pid}


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--jobs", "1"], ["--jobs", "2"]])
def test_an_interrupted_command_finishes_what_runs(tmp_path, options):
    command = Command(tmp_path, SLOW, *options)
    assert eventually(lambda: command.committed() >= 2)
    family = command.family()
    command.interrupt()
    code, said = command.ended()
    assert code == 130, said
    assert "finishing what runs; Ctrl-C once more to stop now" in said
    assert re.search(r"continue with: fpbench run matrix\.toml --out run", said)
    held = command.committed()
    assert 2 <= held < 40
    with Store(command.out) as store:
        assert "failed" not in {row["status"] for row in store.rows()}
    assert eventually(lambda: all(map(gone, family)))


HANGS = SLOW.replace('use = "flip"\nsleep = 0.25', 'use = "trouble"\nwhat = "hangs"\nmark = "mark"')


TWICE, TERMINATED = [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (["--jobs", "1"], TWICE), (["--jobs", "2"], TWICE),
        (["--jobs", "1"], TERMINATED),
    ],
)  # fmt: skip
def test_the_second_interruption_stops_at_once(tmp_path, options, kinds):
    """Even what hangs; and nothing is left of it."""
    command = Command(tmp_path, HANGS, *options)
    assert eventually((tmp_path / "mark").exists)
    family = command.family() | {int((tmp_path / "mark").read_text() or 0)}
    for kind in kinds[:-1]:
        command.interrupt(kind)
        assert any("finishing what runs" in line for line in command.process.stderr)
        assert command.process.poll() is None
    last = kinds[-1]
    command.interrupt(last) if last == signal.SIGINT else command.process.send_signal(last)
    code, said = command.ended()
    assert code == 130, said
    assert "continue with: fpbench run matrix.toml" in said
    assert eventually(lambda: all(map(gone, family - {0, command.process.pid})))


BOUND = "[limits]\ntimeout = 500\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "limits"),
    [
        (["--jobs", "1"], BOUND), (["--jobs", "2"], ""), (["--jobs", "2"], BOUND),
    ],
)  # fmt: skip
def test_nothing_outlives_a_coordinator_that_is_killed(tmp_path, options, limits):
    command = Command(tmp_path, HANGS + limits, *options)
    assert eventually((tmp_path / "mark").exists)
    family = command.family() | {int((tmp_path / "mark").read_text() or 0)}
    command.process.kill()
    command.process.communicate(timeout=60)
    assert eventually(lambda: all(map(gone, family - {0})))


@pytest.mark.slow
def test_a_run_that_is_asked_to_stop_goes_on_where_it_stopped(tmp_path):
    """As from a notebook: what runs is committed, and nothing is done twice."""
    matrix = MATRIX | {"seeds": 8}
    seen = []
    with pytest.raises(KeyboardInterrupt):
        fpbench.run(matrix, out=tmp_path / "run", on_cell=seen.append, stop=lambda: len(seen) > 2)
    with Store(tmp_path / "run") as store:
        assert store.done() == {cell.cell.key for cell in seen}
    assert len(seen) == 3
    rest = fpbench.run(matrix, out=tmp_path / "run", stop=lambda: False)
    assert len(rest.finished) == 5
    assert timeless(rest) == timeless(fpbench.run(matrix, out=tmp_path / "whole"))


def test_a_run_with_nothing_left_does_not_stop(tmp_path):
    fpbench.run(MATRIX, out=tmp_path / "run")
    assert fpbench.run(MATRIX, out=tmp_path / "run", stop=lambda: True).finished == ()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_when_the_process_that_forks_is_killed_another_takes_its_place(tmp_path, monkeypatch, jobs):
    killed = []

    def kill(_):
        if len(killed) < 2:
            for command in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    if (
                        b"fpbench.execution.isolation.one_use_server" in command.read_bytes()
                        and ours(command.parent)
                    ):
                        os.kill(int(command.parent.name), signal.SIGKILL)
                        killed.append(command)
                except (FileNotFoundError, ProcessLookupError):
                    continue

    def ours(process):
        return f"TOY_TRACE={tmp_path}".encode() in (process / "environ").read_bytes()

    monkeypatch.setenv("TOY_TRACE", str(tmp_path / "trace"))
    matrix = MATRIX | {"limits": {"timeout": 60}, "seeds": 4}
    run = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs, on_cell=kill)
    assert len(killed) >= 2
    assert [row["reason"] for row in run.rows()] == [None] * 4
