"""The server that forks the processes of steps, their supervisors, and their work.

The server starts clean, imports what steps need, and never sees data. Each request gets a process
that supervises it, and this one gets a child, which does the step and ends. So a child's memory
holds nothing of other steps. A child is killed as soon as it exceeds a limit or its client is gone,
with all processes that it started.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import pickle
import resource
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import IO, Any

from fpbench.components.catalog import discover
from fpbench.data.data_files import refuse_data
from fpbench.execution.answers import write_result
from fpbench.execution.isolation.families import (
    adopt_orphans,
    die_with_parent,
    end_children,
    measure_memory,
    refuse_rights,
)
from fpbench.execution.isolation.one_use import ANSWER, MEMORY, SIZE, TIME
from fpbench.execution.sealing import seal, unseal
from fpbench.execution.work.actions import HANDED
from fpbench.execution.work.execute import StoppedError, act, attempt, build_for, make_failure
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Result, Step

_TICK = 0.05
"""Seconds between checks of the limits of a step."""
_GONE = b"gone"


def main(number: int, modules: list[str]) -> None:
    """Serve on the listening socket of this number until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the coordinator's
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    import cloudpickle  # noqa: F401  (for the children)
    import pandas as pd  # noqa: F401

    discover()
    for name in modules:
        with contextlib.suppress(Exception):  # the step that needs it reports the error
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(fileno=number)
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        channel = listener.accept()[0]
        if os.fork() == 0:
            _run_child(partial(_handle_request, channel, listener))
        channel.close()
    address = listener.getsockname()
    os.unlink(address)
    os.rmdir(os.path.dirname(address))


def _run_child(work: Callable[[], None]) -> None:
    """End this forked process after some work, whatever happens."""
    try:
        work()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(0)


def _handle_request(channel: socket.socket, listener: socket.socket) -> None:
    """Have a child do a step, end it if need be, and tell the client what became of it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()  # to find all processes that the child leaves behind
    listener.close()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    connection = Connection(channel.detach())
    step, limits, longest = connection.recv()
    content = connection.recv_bytes()
    supervisor = os.getpid()
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            connection.close()
            _run_child(partial(_do_step, supervisor, step, limits, content, answer))
        status, reason = _watch(child, limits, answer, longest, connection)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        end_children()
        if status or reason or not os.fstat(answer.fileno()).st_size:
            connection.send_bytes(reason or str(status).encode())
        else:
            answer.seek(0)
            connection.send_bytes(ANSWER)
            connection.send_bytes(answer.read())


def _watch(
    child: int, limits: Limits, answer: IO[bytes], longest: int, connection: Connection[Any, Any]
) -> tuple[int, bytes]:
    """The exit status of a child, and the reason for which it was killed, if any."""
    ended: list[int] = []
    waiter = threading.Thread(target=lambda: ended.append(os.waitpid(child, 0)[1]))
    waiter.start()
    deadline = time.monotonic() + (limits.timeout or math.inf)
    most = math.inf if limits.memory_limit is None else limits.memory_limit + _measure(1, 2)
    reason = b""
    while True:
        waiter.join(_TICK)
        if ended:
            return ended[0], reason
        if connection.poll():  # its client, which sends no more, is gone
            reason = _GONE
        elif time.monotonic() > deadline:
            reason = TIME
        elif os.fstat(answer.fileno()).st_size > longest:
            reason = SIZE
        elif most < math.inf and measure_memory(child) > most:
            reason = MEMORY
        if reason:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _measure(place: int, less: int | None = None) -> int:
    """Bytes of this process's memory, by their place in a file of the system."""
    with open("/proc/self/statm") as file:
        pages = list(map(int, file.read().split()))
    return (pages[place] - (0 if less is None else pages[less])) * resource.getpagesize()


def _do_step(
    supervisor: int, step: Step, limits: Limits, content: bytes, answer: IO[bytes]
) -> None:
    """Do one step in this process, and write its result."""
    os.setsid()
    die_with_parent(supervisor)
    refuse_rights()
    lift = _limit_memory(limits)

    def work() -> Any:
        if step.action in HANDED:
            refuse_data()
        try:
            inputs = tuple(map(unseal, pickle.loads(content)))
            return seal(step.action, act(step, build_for(step), inputs))
        except MemoryError as error:
            lift()
            if limits.memory_limit is None:
                raise
            raise StoppedError(limits.on_memory) from error

    try:
        result = attempt(step, work)
        lift()
        written = write_result(step.action, result)
    except BaseException as error:  # KeyboardInterrupt, for instance
        written = write_result(step.action, Result(make_failure(step, error), 0.0))
    answer.write(written)
    answer.flush()


def _limit_memory(limits: Limits) -> Callable[[], None]:
    """Limit the additional memory of this process; returns a function that lifts the limit.

    The limit counts writable memory, not reserved memory: libraries reserve much that they never
    use.
    """
    if limits.memory_limit is None:
        return lambda: None
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    finite = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    greatest = min([_measure(5) + limits.memory_limit, *finite])
    resource.setrlimit(resource.RLIMIT_DATA, (greatest, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
