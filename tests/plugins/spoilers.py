"""Learners that change the process in which they are trained, or leave something behind."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from fpbench import Learner, hookimpl

MIB = 2**20


class _Yes:
    def predict(self, features, rng, sensitive=None):
        return np.ones(len(features), np.int8)


class Spoiler(Learner):
    """Trains nothing, and spoils what others need."""

    name = "spoiler"
    summary = "spoils its process"
    needs = frozenset({"features", "labels"})
    what: Literal[
        "nothing",
        "numpy",
        "limits",
        "environment",
        "clock",
        "returns-twice",
        "detaches",
        "shared",
        "many",
    ] = Field("nothing", description="how")
    mark: str = Field("", description="a file for numbers of processes")

    def fit(self, sample, rng):
        getattr(self, f"_{self.what.replace('-', '_')}")()
        return _Yes()

    def _nothing(self):
        pass

    def _numpy(self):
        np.mean = lambda *_, **__: 0.123

    def _limits(self):
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))

    def _environment(self):
        os.environ = dict(os.environ)  # noqa: B003  (of another type than Python's)

    def _clock(self):
        time.perf_counter = lambda: 1 / 0  # which fpbench calls when the step is done

    def _returns_twice(self):
        os.fork()

    def _detaches(self):
        """A process whose parent is dead, in a session of its own."""
        ready, tell = os.pipe()
        if os.fork() == 0:
            os.setsid()
            pid = os.fork()
            if pid == 0:
                time.sleep(600)
            with Path(self.mark).open("a") as file:
                file.write(f"{pid}\n")
            os.write(tell, b".")
            os._exit(0)
        os.read(ready, 1)
        os.wait()

    def _shared(self):
        """Memory that no limit of a process counts."""
        held = mmap.mmap(-1, 512 * MIB)
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        signal.pause()

    def _many(self):
        """Each has little; all have much."""
        script = "import signal; held = bytearray(100 * 2**20); signal.pause()"
        held = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(5)]
        signal.pause()
        del held


@hookimpl
def fpbench_learners():
    return [Spoiler]
