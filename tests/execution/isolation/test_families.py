"""Whoever descends from a step is found, however it detaches itself; and so is what it holds."""

import mmap
import os
import signal
import subprocess
import sys

import pytest
from processes import eventually, gone
from toy_runs import ATTACK

import fpbench
from fpbench.execution.isolation.families import (
    adopt_orphans,
    end_children,
    list_children,
    list_descendants,
    measure_memory,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
MIB = 2**20
MATRIX = ATTACK | {"seeds": 1}


@pytest.fixture
def started():
    """Starts a script, which says a word when it is ready."""
    processes = []

    def start(script, **env):
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, **env}
        )
        processes.append(process)
        process.word = process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        process.stdout.close()
        process.wait()


HELD = {
    "own": "held = bytearray(b'x' * (64 << 20))",
    "shared": "import mmap; held = mmap.mmap(-1, 64 << 20); held.write(b'x' * (64 << 20))",
}


@pytest.mark.parametrize("what", HELD)
def test_memory_counts_whatever_kind_it_is_of(started, what):
    process = started(f"{HELD[what]}\nprint('ready', flush=True)\nimport signal; signal.pause()")
    assert 60 * MIB < measure_memory(process.pid) < 300 * MIB


def test_what_several_share_counts_once(started):
    script = (
        "import mmap, os, signal\nheld = mmap.mmap(-1, 64 << 20)\nheld.write(b'x' * (64 << 20))\n"
        "for _ in range(4):\n    if not os.fork():\n        held[::4096]\n        signal.pause()\n"
        "print('ready', flush=True)\nsignal.pause()"
    )
    process = started(script)
    family = list_descendants(process.pid)
    assert len(family) == 4
    assert eventually(lambda: 60 * MIB < measure_memory(process.pid) < 250 * MIB)
    for pid in family:
        os.kill(pid, signal.SIGKILL)


def test_children_end_and_orphans_that_were_adopted_too():
    """In a process of its own, whose children are only these."""
    pid = os.fork()
    if pid == 0:
        try:
            adopt_orphans()
            ready, tell = os.pipe()
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.write(tell, b".")
                    signal.pause()
                os._exit(0)
            os.read(ready, 1)
            os.wait()
            (orphan,) = list_children(os.getpid())
            spared = os.fork()
            if spared == 0:
                signal.pause()
            end_children([spared])
            good = list_children(os.getpid()) == [spared] and gone(orphan)
            end_children()
            os._exit(0 if good and not list_children(os.getpid()) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


def spoiler(*what, **parameters):
    return MATRIX | {"learner": [{"use": "spoiler", "what": {"sweep": list(what)}, **parameters}]}


def reasons(run):
    """Why each failed, by what it was told to do."""
    return {row["learner"].split()[1]: row["reason"] for row in run.rows()}


@pytest.fixture
def mark(tmp_path, toys, install):
    install("fpbench-spoilers", "spoilers")
    return tmp_path / "mark"


@pytest.mark.slow
def test_limits_hold_for_all_memory_of_all_processes_of_a_step(tmp_path, mark):
    matrix = spoiler("nothing", "shared", "many", "detaches", mark=str(mark))
    matrix |= {"limits": {"memory_limit": "256 MiB"}}
    at_end = []
    run = fpbench.run(
        matrix, out=tmp_path / "run",
        on_cell=lambda cell: at_end.append(mark.exists() and gone(mark.read_text().split()[0])),
    )  # fmt: skip
    large = "train spoiler: needs more memory than 256 MiB (memory_limit of [limits])"
    assert reasons(run) == {
        "nothing": None, "shared": large, "many": large, "detaches": None,
    }  # fmt: skip
    assert at_end[-1]  # as soon as its step had ended


def test_a_step_that_comes_back_twice_and_what_it_detaches_end(tmp_path, mark):
    matrix = spoiler("returns-twice", "detaches", mark=str(mark))
    run = fpbench.run(matrix, out=tmp_path / "run", jobs=2)
    assert set(reasons(run).values()) == {None}
    (pid,) = mark.read_text().split()
    assert eventually(lambda: gone(pid))


def test_memory_that_is_asked_for_by_page_is_what_is_counted(started):
    """Reserved is not used."""
    process = started(
        f"import mmap; held = mmap.mmap(-1, {512 * MIB}); print(1, flush=True); import signal; signal.pause()"
    )
    assert mmap.PAGESIZE
    assert measure_memory(process.pid) < 256 * MIB
