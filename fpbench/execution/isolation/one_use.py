"""Steps in one-use processes: started clean, watched, told apart by how they end.

Such a process is forked from a server that has never seen data, and is handed what its step
needs. What an adversary is handed is made before, by whoever asks: no truth gets there.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from typing import Any

from fpbench.execution.isolation.confining import isolated_user, public_environment, secrets
from fpbench.execution.isolation.families import MARK, end_marked
from fpbench.execution.isolation.processes import (
    MEMORY,
    NUMBER,
    ONE_THREAD,
    SIZE,
    WELL,
    receive,
    send,
)
from fpbench.execution.wire.answers import most, opened
from fpbench.execution.work.actions import HANDED
from fpbench.execution.work.execute import (
    LostError,
    StoppedError,
    attempt,
    component_of,
    failed,
    handed,
    measured,
)
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Corrected, Failure, Result, Step

POSSIBLE = hasattr(os, "fork") and hasattr(socket, "send_fds")
"""Whether this operating system can fork a process and hand it a connection."""
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from fpbench.execution.isolation.one_use_server import main
main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
"""
_LONGEST_ADDRESS = 100
"""Bytes: what fits into the address of a socket everywhere."""
_NO_RESERVES = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own pool begins with a gibibyte, which would count as used."""
_PATIENCE = 30.0
"""Seconds in which a server says that it is well: it may be importing something."""
_LAST_WORDS = 5.0
"""Seconds in which a process that was killed is reported dead."""


class ForkServer:
    """A clean process that forks one-use processes; ends with the process that made it.

    Parameters
    ----------
    modules
        What it imports at the start: what steps will need.
    """

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self._modules = modules
        self.mark = uuid.uuid4().hex
        """What workers are started with, whose descendants are to end when this closes."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._address = ""

    def address(self, *, sure: bool = False) -> str:
        """Where it listens; it is started if it does not run.

        Parameters
        ----------
        sure
            Whether it is asked if it is well: a step was lost, and the server may be the reason.
        """
        ended = self._process is None or self._process.poll() is not None
        if ended or (sure and not self._answers()):
            self._stop()
            self._start()
        return self._address

    def _answers(self) -> bool:
        """Whether it says so when asked, in time."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(_PATIENCE)
            try:
                channel.connect(self._address)
                channel.shutdown(socket.SHUT_WR)
                return channel.recv(1) == WELL
            except OSError:
                return False

    def close(self) -> None:
        """End it, all that it forked, and what workers that have its mark have left behind."""
        self._stop()
        end_marked(self.mark)

    def _stop(self) -> None:
        """End it, and all that it forked."""
        if self._process is None or self._control is None:
            return
        self._control.close()
        try:
            self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        shutil.rmtree(os.path.dirname(self._address), ignore_errors=True)  # if it was killed

    def _start(self) -> None:
        isolated_user()  # or each guess would fail for it
        folder = tempfile.mkdtemp(prefix="fpbench-")
        if len(os.fsencode(folder)) > _LONGEST_ADDRESS - 2:
            os.rmdir(folder)
            folder = tempfile.mkdtemp(prefix="fpbench-", dir="/tmp")
        self._address = os.path.join(folder, "s")
        self._control, theirs = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener, theirs:
            listener.bind(self._address)
            listener.listen(128)
            ends = listener.fileno(), theirs.fileno()
            arguments = [json.dumps(sys.path), *map(str, ends), self._address, *self._modules]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, *arguments],
                stdin=subprocess.DEVNULL,
                env={**public_environment(), **ONE_THREAD, **_NO_RESERVES, MARK: self.mark},
                pass_fds=ends,
                start_new_session=True,
            )


def runs_alone(step: Step, limits: Limits, *, isolated: bool) -> bool:
    """Whether a step needs a process of its own.

    What our own code does, without a component, neither hangs nor crashes; and what adversaries
    do is kept apart from the truth where the engine can.
    """
    return (isolated and POSSIBLE and step.action in HANDED) or (
        bool(limits) and step.spec is not None
    )


def apart(steps: Iterable[Step], limits: Limits) -> tuple[list[Step], list[Step]]:
    """Steps that engines with workers run in processes of their own, and the others."""
    alone: list[Step] = []
    others: list[Step] = []
    for step in steps:
        (alone if runs_alone(step, limits, isolated=True) else others).append(step)
    return alone, others


def execute_alone(step: Step, parents: tuple[Any, ...], limits: Limits, address: str) -> Result:
    """Run one step in a one-use process.

    Parameters
    ----------
    step
        What to do.
    parents
        Results of its parents, in order.
    limits
        What it may take.
    address
        Where the server listens.

    Returns
    -------
    Result
        What it gave; a `Failure` if it raised, took more than it may, or died.

    Raises
    ------
    LostError
        If the server died.
    """
    try:
        given = handed(step, component_of(step), parents)
        started = time.monotonic()
        # It is read where the truth is: no object of a component may run here.
        result = opened(step.action, _ask(step, given, limits, address), given)
        seconds = min(result.seconds, time.monotonic() - started)
    except LostError:
        raise
    except Exception as error:
        return Result(failed(step, error), 0.0)
    value = result.value
    if isinstance(value, Failure):
        return result._replace(seconds=seconds)
    if isinstance(value, Corrected):  # a part of the step cannot have taken longer than the step
        value = value._replace(seconds=min(value.seconds, seconds))
    return attempt(step, lambda: measured(step, value, given))._replace(seconds=seconds)


def _ask(step: Step, given: tuple[Any, ...], limits: Limits, address: str) -> bytearray:
    """Have a process do it: the bytes of the result."""
    import cloudpickle

    private = {} if step.action in HANDED else secrets()
    contents = [cloudpickle.dumps((step, limits, private)), cloudpickle.dumps(given)]
    longest = most(step.action, given, limits)
    status, theirs = socket.socketpair()
    with status, socket.socket(socket.AF_UNIX) as channel:
        with theirs:
            try:
                channel.connect(address)
                size = SIZE.pack(limits.memory_limit or 0)
                socket.send_fds(channel, [size], [theirs.fileno()])
            except OSError as error:
                raise LostError(f"no process could be had: {error}") from error
        _number(status)  # the process is there; before, modules may have had to be imported
        deadline = None if limits.timeout is None else time.monotonic() + limits.timeout
        try:
            for content in contents:
                channel.settimeout(None if deadline is None else _left(deadline))
                send(channel, content)
            return receive(_Ear(channel, status, deadline), longest)
        except TimeoutError:
            status.shutdown(socket.SHUT_WR)  # the server kills it, and says so
            _number(status)
            raise StoppedError(limits.on_time) from None
        except (OSError, EOFError):
            raise StoppedError(_how_it_ended(_number(status), limits)) from None


class _Ear:
    """Hears a process until it is done, its time is up, or it is dead.

    That it is dead need not close its connection: what it has started may hold it.
    """

    def __init__(
        self, channel: socket.socket, status: socket.socket, deadline: float | None
    ) -> None:
        self._channel, self._deadline = channel, deadline
        self._ears = selectors.DefaultSelector()
        for ear in (channel, status):
            self._ears.register(ear, selectors.EVENT_READ)

    def recv(self, size: int) -> bytes:
        left = None if self._deadline is None else _left(self._deadline)
        heard = [key.fileobj for key, _ in self._ears.select(left)]
        if self._channel in heard:
            return self._channel.recv(size)
        if heard:
            raise EOFError
        raise TimeoutError


def _left(deadline: float) -> float:
    """Seconds that are left: never none at all, which would mean something else."""
    return max(deadline - time.monotonic(), 1e-3)


def _number(status: socket.socket) -> int:
    """What the server says: a process id, then how the process ended."""
    content = b""
    while len(content) < NUMBER.size:
        piece = status.recv(NUMBER.size - len(content))
        if not piece:
            raise LostError("the server that forks processes died")
        content += piece
    number: int = NUMBER.unpack(content)[0]
    return number


def _how_it_ended(status: int, limits: Limits) -> str:
    """What an exit status says."""
    if status == MEMORY:
        return limits.on_memory
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process ended with exit code {code} and without a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a signal without a name
        name = "a signal"
    said = f"its process was killed by {name} (signal {-code})"
    if limits.memory_limit is not None and name in ("SIGABRT", "SIGSEGV", "SIGBUS"):
        said += "; libraries may end so when there is no memory: " + limits.on_memory
    return said
