"""The server that forks one-use processes, and the work of these processes.

The server starts clean, imports what steps need, and never sees data: it passes each connection to
a child, which receives the step and its inputs, answers, and ends. So a child's memory holds
nothing of other steps. A child is killed as soon as its client is gone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import resource
import selectors
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fpbench.components.catalog import discover
from fpbench.execution.isolation.confining import confine
from fpbench.execution.isolation.families import (
    MARK,
    adopt_orphans,
    end_children,
    end_marked,
    exceeds,
    list_descendants,
    measure_own_memory,
)
from fpbench.execution.isolation.processes import (
    MEMORY,
    NUMBER,
    SIZE,
    WELL,
    die_with_parent,
    receive,
    send,
)
from fpbench.execution.wire.answers import write_result
from fpbench.execution.wire.sealing import seal, unseal
from fpbench.execution.work.actions import HANDED
from fpbench.execution.work.execute import (
    StoppedError,
    act,
    attempt,
    build_for,
    make_failure,
)
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Result, Step

_PATIENCE = 10.0
"""Seconds in which a connected client must send its request."""
_PIPE = 60_000
"""Bytes that a pipe holds on every system before it is read."""
_MEMORY_INTERVAL = 0.05
"""Seconds between checks of the memory of steps."""
_SAFE_TO_FORK = ("fairlearn", "fpbench", "joblib", "numpy", "optuna", "pandas", "scipy", "sklearn")
"""Packages whose import starts no threads: imported once here instead of in every child."""
_NOT_PRELOADED = frozenset({"__main__", "conftest", "tests", "testing", "pytest_plugin", "setup"})
"""Parts of names of modules whose import has effects."""


class _Child(NamedTuple):
    """A one-use process."""

    client: socket.socket
    """The channel for its exit status; the client closes it to cancel the step."""
    imports: int
    """A pipe with the names of the modules that it had to import."""
    memory_limit: int | None
    """Greatest memory in bytes, descendants included; None without a limit."""


class _Server:
    """Accepts requests, forks and reaps. One thread, so that a fork copies no held lock."""

    def __init__(self, listener: socket.socket, control: socket.socket) -> None:
        self._listener, self._control = listener, control
        self._children: dict[int, _Child] = {}
        self._too_large: set[int] = set()
        self._memory_checked = 0.0
        self._selector = selectors.DefaultSelector()
        self._woken, waker = os.pipe()
        self._waker = waker
        for end in (self._woken, waker):
            os.set_blocking(end, False)
        adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for source in (listener, control, self._woken):
            self._selector.register(source, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until the process that started this one is gone."""
        while True:
            limited = any(child.memory_limit is not None for child in self._children.values())
            for key, _ in self._selector.select(_MEMORY_INTERVAL if limited else None):
                if key.fileobj is self._control:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj == self._woken:
                    self._reap()
                elif key.data in self._children:  # its client is gone
                    self._selector.unregister(key.fileobj)
                    _kill(key.data)
            if limited and time.monotonic() - self._memory_checked >= _MEMORY_INTERVAL:
                self._watch_memory()

    def end(self) -> None:
        """Kill all children."""
        for pid in self._children:
            _kill(pid)
        for pid in self._children:
            os.waitpid(pid, 0)
        self._children.clear()
        end_children()

    def _watch_memory(self) -> None:
        """Kill the steps whose processes together exceed their memory limit.

        The operating system limits single processes only, and does not count memory that processes
        share.
        """
        for pid, child in self._children.items():
            if child.memory_limit is not None and exceeds(
                [pid, *list_descendants(pid)], child.memory_limit
            ):
                self._too_large.add(pid)
                _kill(pid)
        self._memory_checked = time.monotonic()

    def _accept(self) -> None:
        channel, _ = self._listener.accept()
        try:
            channel.settimeout(_PATIENCE)
            limit, ends, _, _ = socket.recv_fds(channel, SIZE.size, 1)
            if not ends:
                channel.sendall(WELL)
        except OSError:  # the client died meanwhile
            ends = []
        if not ends:
            channel.close()
            return
        client = socket.socket(fileno=ends[0])
        imports, report = os.pipe()
        size = SIZE.unpack(limit)[0]
        child = _Child(client, imports, size + measure_own_memory() if size else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # on threads, which only wait
            pid = os.fork()
        if pid == 0:
            self._become_child(channel, [child, *self._children.values()], report)
        channel.close()
        os.close(report)
        self._children[pid] = child
        self._selector.register(client, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            client.sendall(NUMBER.pack(pid))

    def _become_child(self, channel: socket.socket, others: list[_Child], report: int) -> NoReturn:
        server = os.getppid()
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(server)
            adopt_orphans()  # so that the server finds all processes that the child leaves behind
            self._selector.close()
            # Close descriptors inherited from the server and its other children.
            for inherited in (self._listener, self._control, *(c.client for c in others)):
                inherited.close()
            for end in (self._woken, self._waker, *(child.imports for child in others)):
                os.close(end)
            channel.settimeout(None)
            before = set(sys.modules)
            _answer(channel, server)
            os.write(report, _list_new_modules(before))
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        for pid, (client, imports, _) in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._children[pid]
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # processes that the child left behind
            end_children(self._children)  # and processes that changed their group
            with contextlib.suppress(KeyError):
                self._selector.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(NUMBER.pack(MEMORY if pid in self._too_large else status))
            self._too_large.discard(pid)
            client.close()
            os.set_blocking(imports, False)
            with contextlib.suppress(BlockingIOError):
                _preload(os.read(imports, _PIPE).decode(errors="replace").split())
            os.close(imports)


def _kill(pid: int) -> None:
    """Kill a child that has not been reaped, and all processes that it started."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _list_new_modules(before: set[str]) -> bytes:
    """Names of newly imported modules, as many as fit; the first ones import the rest."""
    new = [name for name in sys.modules if name not in before]
    safe = [name for name in new if name.partition(".")[0] in _SAFE_TO_FORK]
    return "\n".join(safe).encode()[:_PIPE].rpartition(b"\n")[0]


def _preload(names: list[str]) -> None:
    """Import the modules that a child had to import, for later children.

    A hostile child may name anything: only harmless modules of known packages are imported, no
    commands and no tests.
    """
    for name in names:
        if name not in sys.modules and _may_be_preloaded(name):
            # The child that needs the module reports the error. Some modules exit.
            with contextlib.suppress(Exception, SystemExit):
                importlib.import_module(name)
    gc.freeze()


def _may_be_preloaded(name: str) -> bool:
    parts = name.split(".")
    return (
        parts[0] in _SAFE_TO_FORK
        and all(part.isidentifier() for part in parts)
        and not _NOT_PRELOADED & {*parts}
    )


def _answer(channel: socket.socket, server: int) -> None:
    """Do one step in this process, and send its result."""
    step, limits, secrets = pickle.loads(receive(channel))
    lift = _limit_memory(limits)

    def work() -> Any:
        if step.action in HANDED:  # before it receives its inputs
            confine(server)
        os.environ.update(secrets)
        return _do_step(step, channel, limits, lift)

    try:
        content = write_result(step.action, attempt(step, work))
    except BaseException as error:  # KeyboardInterrupt, for instance
        lift()
        if isinstance(error, MemoryError) and limits.memory_limit is not None:
            error = StoppedError(limits.on_memory)
        content = write_result(step.action, Result(make_failure(step, error), 0.0))
    send(channel, content)


def _do_step(step: Step, channel: socket.socket, limits: Limits, lift: Callable[[], None]) -> Any:
    try:
        inputs = tuple(map(unseal, pickle.loads(receive(channel))))
        return seal(step.action, act(step, build_for(step), inputs))
    except MemoryError as error:
        lift()
        if limits.memory_limit is None:
            raise
        raise StoppedError(limits.on_memory) from error


def _limit_memory(limits: Limits) -> Callable[[], None]:
    """Limit the additional memory of this process; returns a function that lifts the limit.

    The limit counts writable memory, not reserved memory: libraries reserve much that they never
    use.
    """
    if limits.memory_limit is None:
        return lambda: None
    with open("/proc/self/statm") as file:
        has = int(file.read().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    finite = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    greatest = min([has + limits.memory_limit, *finite])
    resource.setrlimit(resource.RLIMIT_DATA, (greatest, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def main(listener: int, control: int, address: str, modules: list[str]) -> None:
    """Serve on a listening socket until the other end of `control` is closed."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the coordinator's
    import cloudpickle  # noqa: F401  (for the children)
    import pandas as pd  # noqa: F401

    discover()
    _preload(modules)
    gc.collect()
    server = _Server(socket.socket(fileno=listener), socket.socket(fileno=control))
    try:
        server.serve()
    finally:
        server.end()
        if os.getppid() != parent:  # the parent was killed, and cannot end its workers' descendants
            end_marked(os.environ[MARK])
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
