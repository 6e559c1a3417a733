"""Steps in processes of their own, which start clean and have limits on time and memory.

Such a process is forked from a server that has never seen data, and receives its step's inputs. An
adversary's inputs are prepared by the caller, so the truth never reaches its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from multiprocessing.connection import Client
from typing import IO, Any

from fpbench.base.errors import PluginError
from fpbench.base.text import escape_unprintable
from fpbench.base.threads import ONE_THREAD
from fpbench.execution.answers import compute_size_limit, read_result
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

POSSIBLE = hasattr(os, "fork")
"""Whether this operating system can fork a process."""
ANSWER, TIME, MEMORY, SIZE = b"answer", b"time", b"memory", b"size"
"""What became of a step: it answered, or exceeded a limit; otherwise, the status of its process."""
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
sys.stdout.reconfigure(line_buffering=True)
from fpbench.execution.isolation.one_use_server import main
main(int(sys.argv[2]), sys.argv[3:])
"""
_NO_RESERVES = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own memory pool reserves a gibibyte, which would count as used."""
_LONGEST_LINE = 4096
"""Bytes of output that are printed as one line."""


class ForkServer:
    """A clean process that forks those of steps; ends with the process that made it.

    `modules`: modules that it imports at the start, because steps need them.
    """

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    def address(self, *, sure: bool = False) -> str:
        """The address of the server, which this starts if it does not run.

        `sure`: start another one: this one may be the cause of a lost step.
        """
        if sure or self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        return self._address

    def close(self) -> None:
        """End the server; a step ends with the process that asked for it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.kill()
            self._process.stdin.close()
            self._process.wait()
            self._process = None
            shutil.rmtree(os.path.dirname(self._address), ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        # A socket's address must be short, which that of a temporary folder need not be.
        self._address = os.path.join(tempfile.mkdtemp(prefix="fpbench-", dir="/tmp"), "s")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(128)
            arguments = [json.dumps(sys.path), str(listener.fileno()), *self._modules]
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, **ONE_THREAD, **_NO_RESERVES}, pass_fds=[listener.fileno()],
                start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=_show_output, args=(process.stdout,), daemon=True).start()
        return process


def _show_output(output: IO[bytes]) -> None:
    """Print what components print, escaped: they could read and control a terminal that they had.

    Their lines begin with a mark, so that none looks like a line of fpbench.
    """
    with output:
        while line := output.readline(_LONGEST_LINE):
            text = line.decode(errors="backslashreplace").removesuffix("\n")
            with contextlib.suppress(OSError, ValueError):  # standard error is closed
                print(f"| {escape_unprintable(text, but=chr(9))}", file=sys.stderr)


def needs_process(step: Step, limits: Limits, *, alone: bool = False) -> bool:
    """Whether a worker does a step in a process of its own.

    Third parties may change libraries that other steps use, and a step with limits or, with
    `alone`, one that may have killed its worker, can be ended. Steps without a component run our
    own code, which neither hangs nor crashes.
    """
    return step.spec is not None and (bool(limits) or (POSSIBLE and (alone or step.third_party)))


def split_by_process(steps: Iterable[Step], limits: Limits) -> tuple[list[Step], list[Step]]:
    """Steps that need a process of their own in engines with workers, and the others."""
    parts: tuple[list[Step], list[Step]] = [], []
    for step in steps:
        parts[not needs_process(step, limits)].append(step)
    return parts


def execute_alone(step: Step, parents: tuple[Any, ...], limits: Limits, address: str) -> Result:
    """The result of a step in a process of the server with this address.

    A `Failure` if the step raised, exceeded a limit, or died.

    Raises LostError if the server died.
    """
    started = time.monotonic()
    try:
        # Only the views of adversaries depend on the component, which else is not imported here.
        component = build_for(step) if step.action in HANDED else None
        inputs = make_inputs(step, component, parents)
        result = _request(step, inputs, limits, address)
    except LostError:
        raise
    except Exception as error:
        return Result(make_failure(step, error), 0.0)
    seconds = min(result.seconds, time.monotonic() - started)
    value = result.value
    if isinstance(value, Failure):
        return Result(value, seconds)
    if isinstance(value, Corrected):  # a part of a step cannot take longer than the step
        value = replace(value, seconds=min(value.seconds, seconds))
    return attempt(step, lambda: measure(step, value, inputs))._replace(seconds=seconds)


def _request(step: Step, inputs: tuple[Any, ...], limits: Limits, address: str) -> Result:
    """The result of a step, from a process of its own."""
    import cloudpickle

    longest = compute_size_limit(step.action, inputs, limits)
    content = cloudpickle.dumps(inputs)
    try:
        with Client(address, "AF_UNIX") as connection:
            connection.send((step, limits, longest))
            connection.send_bytes(content)
            outcome = connection.recv_bytes(16)
            answer = connection.recv_bytes(longest) if outcome == ANSWER else b""
    except (OSError, EOFError) as error:
        raise LostError(f"no process could be started, or it was lost: {error}") from error
    if outcome != ANSWER:
        _raise_outcome(outcome, limits, longest)
    # Read as data: no object of a component may run in this process.
    return read_result(step.action, answer, inputs)


def _raise_outcome(outcome: bytes, limits: Limits, longest: int) -> None:
    """Raise the error that says how the process of a step ended."""
    if outcome == SIZE:
        raise PluginError(f"its answer is longer than the {longest:,} bytes that it may have")
    if outcome in (TIME, MEMORY):
        raise StoppedError(limits.on_time if outcome == TIME else limits.on_memory)
    code = os.waitstatus_to_exitcode(int(outcome))
    if code >= 0:
        raise StoppedError(f"its process ended with exit code {code} and without a result")
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a signal without a name
        name = "a signal"
    message = f"its process was killed by {name} (signal {-code})"
    if limits.memory_limit is not None and name in ("SIGABRT", "SIGSEGV", "SIGBUS"):
        message += "; libraries may end like this when there is no memory: " + limits.on_memory
    raise StoppedError(message)
