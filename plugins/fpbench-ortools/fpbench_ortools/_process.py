"""One process with OR-Tools for each process of fpbench: started when first needed, then kept."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from fpbench import FpbenchError

_GRACE = 30.0
"""Seconds after its time limit that a solver may take to say so."""
_START = 120.0
"""Seconds to load OR-Tools."""


class Process:
    """A running worker.

    Raises
    ------
    FpbenchError
        If OR-Tools cannot be loaded, or not in time.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        self._worker = subprocess.Popen(
            # -P: nothing beside the script is to be taken for a module.
            [sys.executable, "-P", str(Path(__file__).with_name("_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        if self._answer(_START)["status"] != "LOADED":
            raise FpbenchError(f"OR-Tools was not loaded within {_START:g} s: is the machine busy?")

    @property
    def alive(self) -> bool:
        """Whether it can be asked, by this process."""
        return self.owner == os.getpid() and self._worker.poll() is None

    def solve(self, program: dict[str, Any]) -> dict[str, Any]:
        """Its answer to a program; status TIMEOUT if it had to be stopped.

        Raises
        ------
        FpbenchError
            If it crashed.
        """
        assert self._worker.stdin is not None
        try:
            self._worker.stdin.write(json.dumps(program) + "\n")
            self._worker.stdin.flush()
        except OSError:  # it is gone: what it left is read below
            pass
        return self._answer(float(program["seconds"]) + _GRACE)

    def close(self) -> None:
        """End it."""
        if self.owner != os.getpid():  # after a fork it is somebody else's
            return
        self._worker.kill()
        self._worker.wait()
        for pipe in (self._worker.stdin, self._worker.stdout, self._errors):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # of what could not be written to it any more
                pass

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._worker.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._worker.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        line = self._worker.stdout.readline()
        timer.cancel()
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        status = self._worker.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        if late.is_set():
            return {"status": "TIMEOUT"}
        why = said[-1] if said else "it said nothing"
        raise FpbenchError(f"OR-Tools ended with status {status}: {why}")


_lock = threading.Lock()
_running: Process | None = None


def ask(program: dict[str, Any]) -> dict[str, Any]:
    """Have a program solved, by a worker that is started if there is none.

    Raises
    ------
    FpbenchError
        If OR-Tools cannot be loaded, or crashes.
    """
    with _lock:
        return _worker().solve(program)


def start() -> None:
    """Start a worker, if there is none.

    Raises
    ------
    FpbenchError
        If OR-Tools cannot be loaded, or not in time.
    """
    with _lock:
        _worker()


def _worker() -> Process:
    global _running  # noqa: PLW0603 (one for a process is the point)
    if _running is None or not _running.alive:
        _running = Process()
        atexit.register(_running.close)
    return _running


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603 (another thread may have held it when the process was forked)
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
