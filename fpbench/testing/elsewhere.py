"""What a component does in another process, where texts are hashed otherwise.

The order of a set of texts is another there, and whatever the first process remembers is not.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from fpbench.components.attack_kinds import Component
from fpbench.data.data_files import DataHome
from fpbench.execution.isolation.processes import receive, send
from fpbench.testing.acting import act
from fpbench.testing.watching import parts

_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from fpbench.testing.elsewhere import main
main(int(sys.argv[2]))
"""


class Unopened(NamedTuple):
    """Why a component does not get into another process."""

    reason: str


class Told(NamedTuple):
    """What was seen of a component in another process."""

    parts: dict[str, Any]
    error: str
    """What it raised; empty if nothing."""


def told(component: Component, home: DataHome) -> Told | Unopened:
    """Run a component with seed 0 and two groups in another process."""
    import cloudpickle

    if os.name != "posix":
        return Unopened(f"no process can be handed a connection on {sys.platform}")
    try:
        request = cloudpickle.dumps((component, home))
    except Exception as error:  # whatever a stranger's `__reduce__` raises
        return Unopened(_said(error))
    return _other().ask(request)


class _Other:
    """A process that serves one request after the other, as long as this one lives."""

    def __init__(self) -> None:
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": seed},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is ours
            )
        atexit.register(self.close)

    def ask(self, request: bytes) -> Told | Unopened:
        """Have it done."""
        try:
            # A module that is tested may have been found on the path only now.
            send(self._channel, json.dumps(sys.path).encode())
            send(self._channel, request)
            answer: Told | Unopened = pickle.loads(receive(self._channel))
        except (OSError, EOFError):
            self.close()
            _other.cache_clear()
            return Told({}, "its process died")
        return answer

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self._channel.close()
        self._process.kill()
        self._process.wait()


@cache
def _other() -> _Other:
    return _Other()


def main(number: int) -> None:
    """Serve until nobody asks any more."""
    with socket.socket(fileno=number) as channel, suppress(EOFError):
        while True:
            sys.path[:] = json.loads(receive(channel))
            send(channel, pickle.dumps(_tell(receive(channel))))


def _tell(request: bytes | bytearray) -> Told | Unopened:
    try:
        component, home = pickle.loads(request)
    except Exception as error:  # whatever its module does when it is imported
        return Unopened(_said(error))
    watched = act(component, home)
    if watched.error is not None:
        return Told({}, _said(watched.error))
    return Told(dict(parts(watched.result)), "")


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
