"""One process with OR-Tools for each process of fpbench: starts at first use, then stays."""

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
"""Seconds after its time limit in which a solver must answer."""
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
            # -P: no file beside the script is imported as a module.
            [sys.executable, "-P", str(Path(__file__).with_name("_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        if self._read_answer(_START)["status"] != "LOADED":
            raise FpbenchError(f"OR-Tools was not loaded within {_START:g} s: is the machine busy?")

    @property
    def alive(self) -> bool:
        """Whether this process can send a program to it."""
        return self.owner == os.getpid() and self._worker.poll() is None

    def solve(self, program: dict[str, Any]) -> dict[str, Any]:
        """The answer to a program; status TIMEOUT if the worker had to be stopped.

        Raises
        ------
        FpbenchError
            If the worker crashed.
        """
        assert self._worker.stdin is not None
        try:
            self._worker.stdin.write(json.dumps(program) + "\n")
            self._worker.stdin.flush()
        except OSError:  # the worker has ended: _read_answer reads its last output
            pass
        return self._read_answer(float(program["seconds"]) + _GRACE)

    def close(self) -> None:
        """End the worker."""
        if self.owner != os.getpid():  # after a fork the worker belongs to the parent
            return
        self._worker.kill()
        self._worker.wait()
        for pipe in (self._worker.stdin, self._worker.stdout, self._errors):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # the pipe had unwritten data
                pass

    def _read_answer(self, seconds: float) -> dict[str, Any]:
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
            answer: dict[str, Any] = json.loads(line)
            return answer
        status = self._worker.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        if late.is_set():
            return {"status": "TIMEOUT"}
        why = errors[-1] if errors else "no message"
        raise FpbenchError(f"OR-Tools ended with status {status}: {why}")


_lock = threading.Lock()
_running: Process | None = None


def ask(program: dict[str, Any]) -> dict[str, Any]:
    """Solve a program in the worker, which starts if there is none.

    Raises
    ------
    FpbenchError
        If OR-Tools cannot be loaded, or crashes.
    """
    with _lock:
        return _get_worker().solve(program)


def start() -> None:
    """Start a worker, if there is none.

    Raises
    ------
    FpbenchError
        If OR-Tools cannot be loaded, or not in time.
    """
    with _lock:
        _get_worker()


def _get_worker() -> Process:
    global _running  # noqa: PLW0603 (one worker for each process)
    if _running is None or not _running.alive:
        _running = Process()
        atexit.register(_running.close)
    return _running


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603 (another thread may have held it when the process was forked)
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
