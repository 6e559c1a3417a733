"""Runs of a component in another process: another hash seed, no shared state, read-only inputs."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from fpbench.components.attack_kinds import Component
from fpbench.data.data_files import DataHome
from fpbench.testing.stages import run_watched
from fpbench.testing.watching import list_parts

_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from fpbench.testing.other_process import main
main(int(sys.argv[2]))
"""


class NotTransferable(NamedTuple):
    """Why a component cannot be sent to another process."""

    reason: str


class RemoteResult(NamedTuple):
    """The parts of a component's result in another process, or its error."""

    parts: dict[str, Any]
    error: str
    """The raised error; empty if none."""


def run_remotely(component: Component, home: DataHome) -> RemoteResult | NotTransferable:
    """Run a component with seed 0 and two groups in another process."""
    import cloudpickle

    if os.name != "posix":
        return NotTransferable(f"no process can receive a connection on {sys.platform}")
    try:
        request = cloudpickle.dumps((component, home))
    except Exception as error:  # a third party's `__reduce__` may raise anything
        return NotTransferable(_describe(error))
    return _get_other_process().ask(request)


class _OtherProcess:
    """A process that serves requests one after another, while this process lives."""

    def __init__(self) -> None:
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        self._channel, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": seed},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C must not reach it
            )
        atexit.register(self.close)

    def ask(self, request: bytes) -> RemoteResult | NotTransferable:
        """The answer to a request."""
        try:
            # The tested module may have been added to the path after the process started.
            self._channel.send_bytes(json.dumps(sys.path).encode())
            self._channel.send_bytes(request)
            answer: RemoteResult | NotTransferable = self._channel.recv()
        except (OSError, EOFError):
            self.close()
            _get_other_process.cache_clear()
            return RemoteResult({}, "its process died")
        return answer

    def close(self) -> None:
        """End the process."""
        atexit.unregister(self.close)
        self._channel.close()
        self._process.kill()
        self._process.wait()


@cache
def _get_other_process() -> _OtherProcess:
    return _OtherProcess()


def main(number: int) -> None:
    """Serve requests until the channel is closed."""
    with Connection(number) as channel, suppress(EOFError):
        while True:
            sys.path[:] = json.loads(channel.recv_bytes())
            channel.send(_run_request(channel.recv_bytes()))


def _run_request(request: bytes) -> RemoteResult | NotTransferable:
    try:
        component, home = pickle.loads(request)
    except Exception as error:  # its module may do anything on import
        return NotTransferable(_describe(error))
    watched = run_watched(component, home, read_only=True)
    if watched.error is not None:
        return RemoteResult({}, _describe(watched.error))
    return RemoteResult(dict(list_parts(watched.result)), "")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
