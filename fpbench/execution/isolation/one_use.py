"""Steps in one-use processes, which start clean and have limits on time and memory.

Such a process is forked from a server that has never seen data, and receives its step's inputs. An
adversary's inputs are prepared by the caller, so the truth never reaches its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Any

from fpbench.base.text import escape_unprintable
from fpbench.base.threads import ONE_THREAD
from fpbench.execution.isolation.confining import (
    check_isolated_user,
    get_public_environment,
    get_secrets,
)
from fpbench.execution.isolation.families import MARK, end_marked
from fpbench.execution.isolation.processes import (
    MEMORY,
    NUMBER,
    SIZE,
    WELL,
    receive,
    send,
)
from fpbench.execution.wire.answers import compute_size_limit, read_result
from fpbench.execution.work.actions import HANDED
from fpbench.execution.work.execute import (
    LostError,
    StoppedError,
    attempt,
    build_for,
    make_failure,
    make_inputs,
    measure,
)
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Corrected, Failure, Result, Step

POSSIBLE = hasattr(os, "fork") and hasattr(socket, "send_fds")
"""Whether this operating system can fork a process and hand it a connection."""
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
sys.stdout.reconfigure(line_buffering=True)
from fpbench.execution.isolation.one_use_server import main
main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
"""
_LONGEST_ADDRESS = 100
"""Bytes that fit into the address of a socket on every system."""
_NO_RESERVES = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own memory pool reserves a gibibyte, which would count as used."""
_PATIENCE = 30.0
"""Seconds in which a server must answer a health check: it may be importing modules."""
_LAST_WORDS = 5.0
"""Seconds in which the server must end after its channel is closed."""
_LONGEST_LINE = 4096
"""Bytes of output that are printed as one line."""


class ForkServer:
    """A clean process that forks one-use processes; ends with the process that made it.

    `modules`: modules that it imports at the start, because steps need them.
    """

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self._modules = modules
        self.mark = uuid.uuid4().hex
        """The value of `MARK` in the environment of workers; descendants with it end, too."""
        self._process: subprocess.Popen[bytes] | None = None
        self._printer: threading.Thread | None = None
        self._control: socket.socket | None = None
        self._address = ""

    def address(self, *, sure: bool = False) -> str:
        """The address of the server, which this starts if it does not run.

        `sure`: whether to check the server's health first: it may be the cause of a lost step.
        """
        ended = self._process is None or self._process.poll() is not None
        if ended or (sure and not self._answers()):
            self._stop()
            self._start()
        return self._address

    def _answers(self) -> bool:
        """Whether the server passes a health check in time."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(_PATIENCE)
            try:
                channel.connect(self._address)
                channel.shutdown(socket.SHUT_WR)
                return channel.recv(1) == WELL
            except OSError:
                return False

    def close(self) -> None:
        """End the server, its forked processes, and all descendants of workers with its mark."""
        self._stop()
        end_marked(self.mark)

    def _stop(self) -> None:
        """End the server, and all processes that it forked."""
        if self._process is None or self._control is None:
            return
        self._control.close()
        try:
            self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._printer is not None:
            self._printer.join(_LAST_WORDS)
        shutil.rmtree(os.path.dirname(self._address), ignore_errors=True)  # left if it was killed

    def _start(self) -> None:
        check_isolated_user()  # raises here, instead of in every guess
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
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**get_public_environment(), **ONE_THREAD, **_NO_RESERVES, MARK: self.mark},
                pass_fds=ends,
                start_new_session=True,
            )
        self._printer = threading.Thread(
            target=_show_output, args=(self._process.stdout,), name="fpbench-output", daemon=True
        )
        self._printer.start()


def _show_output(output: IO[bytes]) -> None:
    """Print what components print, escaped: they could read and control a terminal that they had.

    Their lines begin with a mark, so that none looks like a line of fpbench.
    """
    with output:
        while line := output.readline(_LONGEST_LINE):
            text = line.decode(errors="backslashreplace").removesuffix("\n")
            with contextlib.suppress(OSError, ValueError):  # standard error is closed
                print(f"| {escape_unprintable(text, but=chr(9))}", file=sys.stderr)


def runs_alone(step: Step, limits: Limits, *, isolated: bool) -> bool:
    """Whether a step needs a process of its own.

    Steps without a component run our own code, which neither hangs nor crashes. If the engine can
    isolate steps, adversaries are isolated from the truth, and third parties from the steps of
    others, whose libraries they may change.
    """
    return (isolated and POSSIBLE and (step.third_party or step.action in HANDED)) or (
        bool(limits) and step.spec is not None
    )


def needs_process(step: Step, limits: Limits, *, alone: bool) -> bool:
    """Whether a worker does a step in a one-use process: if it must or, if `alone`, if it can."""
    return (alone and POSSIBLE and step.spec is not None) or runs_alone(step, limits, isolated=True)


def split_by_process(steps: Iterable[Step], limits: Limits) -> tuple[list[Step], list[Step]]:
    """Steps that need a process of their own in engines with workers, and the others."""
    alone: list[Step] = []
    others: list[Step] = []
    for step in steps:
        (alone if runs_alone(step, limits, isolated=True) else others).append(step)
    return alone, others


def execute_alone(step: Step, parents: tuple[Any, ...], limits: Limits, address: str) -> Result:
    """The result of a step in a one-use process of the server with this address.

    A `Failure` if the step raised, exceeded a limit, or died.

    Raises LostError if the server died.
    """
    try:
        # Only the views of adversaries depend on the component, which else is not imported here.
        component = build_for(step) if step.action in HANDED else None
        inputs = make_inputs(step, component, parents)
        started = time.monotonic()
        result = _request(step, inputs, limits, address)
        seconds = min(result.seconds, time.monotonic() - started)
    except LostError:
        raise
    except Exception as error:
        return Result(make_failure(step, error), 0.0)
    value = result.value
    if isinstance(value, Failure):
        return result._replace(seconds=seconds)
    if isinstance(value, Corrected):  # a part of a step cannot take longer than the step
        value = replace(value, seconds=min(value.seconds, seconds))
    return attempt(step, lambda: measure(step, value, inputs))._replace(seconds=seconds)


def _request(step: Step, inputs: tuple[Any, ...], limits: Limits, address: str) -> Result:
    """The result of a step, from a one-use process."""
    import cloudpickle

    private = {} if step.action in HANDED else get_secrets()
    contents = [cloudpickle.dumps((step, limits, private)), cloudpickle.dumps(inputs)]
    longest = compute_size_limit(step.action, inputs, limits)
    status, theirs = socket.socketpair()
    with status, socket.socket(socket.AF_UNIX) as channel:
        with theirs:
            try:
                channel.connect(address)
                size = SIZE.pack(limits.memory_limit or 0)
                socket.send_fds(channel, [size], [theirs.fileno()])
            except OSError as error:
                raise LostError(f"no process could be started: {error}") from error
        _receive_number(
            status
        )  # the process has started; the server may have imported modules first
        deadline = None if limits.timeout is None else time.monotonic() + limits.timeout
        try:
            for content in contents:
                channel.settimeout(None if deadline is None else _count_seconds_left(deadline))
                send(channel, content)
            content = receive(WatchedChannel(channel, status, deadline), longest)
        except TimeoutError:
            status.shutdown(socket.SHUT_WR)  # the server kills the process, and confirms it
            _receive_number(status)
            raise StoppedError(limits.on_time) from None
        except (OSError, EOFError):
            raise StoppedError(_describe_exit(_receive_number(status), limits)) from None
    # Read as data: no object of a component may run in this process.
    result = read_result(step.action, content, inputs)
    if deadline is not None and time.monotonic() > deadline:  # reading is a part of the step
        raise StoppedError(limits.on_time)
    return result


class WatchedChannel:
    """Reads a child's answer; TimeoutError at the deadline, EOFError when the child dies.

    The child's death need not close the channel, which its own children may hold open.
    """

    def __init__(
        self, channel: socket.socket, status: socket.socket, deadline: float | None
    ) -> None:
        self._channel, self._deadline = channel, deadline
        self._selector = selectors.DefaultSelector()
        for end in (channel, status):
            self._selector.register(end, selectors.EVENT_READ)

    def recv(self, size: int) -> bytes:
        """At most `size` bytes of the answer."""
        left = None if self._deadline is None else _count_seconds_left(self._deadline)
        ready = [key.fileobj for key, _ in self._selector.select(left)]
        if self._channel in ready:
            return self._channel.recv(size)
        if ready:
            raise EOFError
        raise TimeoutError


def _count_seconds_left(deadline: float) -> float:
    """Seconds until the deadline, but above 0: a timeout of 0 is another mode of the socket."""
    return max(deadline - time.monotonic(), 1e-3)


def _receive_number(status: socket.socket) -> int:
    """A number from the server: first the process id, then the exit status."""
    content = b""
    while len(content) < NUMBER.size:
        piece = status.recv(NUMBER.size - len(content))
        if not piece:
            raise LostError("the server that forks processes died")
        content += piece
    number: int = NUMBER.unpack(content)[0]
    return number


def _describe_exit(status: int, limits: Limits) -> str:
    """The end of the process, in words."""
    if status == MEMORY:
        return limits.on_memory
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process ended with exit code {code} and without a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a signal without a name
        name = "a signal"
    message = f"its process was killed by {name} (signal {-code})"
    if limits.memory_limit is not None and name in ("SIGABRT", "SIGSEGV", "SIGBUS"):
        message += "; libraries may end like this when there is no memory: " + limits.on_memory
    return message
