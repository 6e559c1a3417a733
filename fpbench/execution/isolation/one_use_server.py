"""The process from which one-use processes are forked, and what these do.

It is started clean, imports what steps need, and never sees data: it passes each connection on
to a child, which receives the step and what it is handed, answers, and ends. So nothing in a
child's memory is of any other step. A child is killed as soon as whoever asked for it is gone.
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

from fpbench.base.errors import PluginError
from fpbench.components.catalog import discover
from fpbench.execution.isolation.confining import confine
from fpbench.execution.isolation.families import (
    MARK,
    adopt_orphans,
    descendants,
    end_children,
    end_marked,
    exceeds,
    own_memory,
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
from fpbench.execution.wire.answers import packed
from fpbench.execution.wire.sealing import seal, unseal
from fpbench.execution.work.actions import ACTIONS, HANDED
from fpbench.execution.work.execute import StoppedError, attempt, component_of, failed, watch
from fpbench.execution.work.process_watch import Changes, Watch
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Result, Step

_PATIENCE = 10.0
"""Seconds in which a client that has connected must say what it wants."""
_PIPE = 60_000
"""Bytes that a pipe holds everywhere without anybody reading."""
_LOOK_AGAIN = 0.05
"""Seconds after which the memory of steps is looked at again."""
_SAFE_TO_FORK = ("fairlearn", "fpbench", "joblib", "numpy", "optuna", "pandas", "scipy", "sklearn")
"""Packages whose import starts no threads: imported once here instead of in every child."""
_NOT_PRELOADED = frozenset({"__main__", "conftest", "tests", "testing", "pytest_plugin", "setup"})
"""Parts of names of modules that do something when they are imported."""


class _Child(NamedTuple):
    """A one-use process."""

    asker: socket.socket
    """Who waits for it; it is closed when nobody does any more."""
    told: int
    """A pipe in which it names the modules that it had to import."""
    most: int | None
    """Bytes that it may hold, with all that descend from it; None if there is no limit."""


class _Server:
    """Accepts, forks, reaps. One thread, so that a fork copies no lock that somebody holds."""

    def __init__(self, listener: socket.socket, control: socket.socket) -> None:
        self._watch = watch()
        self._listener, self._control = listener, control
        self._children: dict[int, _Child] = {}
        self._too_large: set[int] = set()
        self._looked = 0.0
        self._ears = selectors.DefaultSelector()
        self._woken, waker = os.pipe()
        self._waker = waker
        for end in (self._woken, waker):
            os.set_blocking(end, False)
        adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for ear in (listener, control, self._woken):
            self._ears.register(ear, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until whoever started this is gone."""
        while True:
            limited = any(child.most is not None for child in self._children.values())
            for key, _ in self._ears.select(_LOOK_AGAIN if limited else None):
                if key.fileobj is self._control:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj == self._woken:
                    self._reap()
                elif key.data in self._children:  # nobody waits for this child any more
                    self._ears.unregister(key.fileobj)
                    _kill(key.data)
            if limited and time.monotonic() - self._looked >= _LOOK_AGAIN:
                self._watch_memory()

    def end(self) -> None:
        """Kill what still runs."""
        for pid in self._children:
            _kill(pid)
        for pid in self._children:
            os.waitpid(pid, 0)
        self._children.clear()
        end_children()

    def _watch_memory(self) -> None:
        """Kill the steps that hold more than they may, all their processes together.

        The limit that the operating system keeps is one of each process, and counts no memory
        that processes can share.
        """
        for pid, child in self._children.items():
            if child.most is not None and exceeds([pid, *descendants(pid)], child.most):
                self._too_large.add(pid)
                _kill(pid)
        self._looked = time.monotonic()

    def _accept(self) -> None:
        channel, _ = self._listener.accept()
        try:
            channel.settimeout(_PATIENCE)
            limit, ends, _, _ = socket.recv_fds(channel, SIZE.size, 1)
            if not ends:
                channel.sendall(WELL)
        except OSError:  # it died between two words
            ends = []
        if not ends:
            channel.close()
            return
        asker = socket.socket(fileno=ends[0])
        told, tell = os.pipe()
        size = SIZE.unpack(limit)[0]
        child = _Child(asker, told, size + own_memory() if size else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that only wait
            pid = os.fork()
        if pid == 0:
            self._become_child(channel, [child, *self._children.values()], tell)
        channel.close()
        os.close(tell)
        self._children[pid] = child
        self._ears.register(asker, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            asker.sendall(NUMBER.pack(pid))

    def _become_child(self, channel: socket.socket, others: list[_Child], tell: int) -> NoReturn:
        server = os.getppid()
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(server)
            adopt_orphans()  # so that what it leaves behind is known to be its own
            self._ears.close()
            # What connects others to their steps is not for this one.
            for held in (self._listener, self._control, *(child.asker for child in others)):
                held.close()
            for end in (self._woken, self._waker, *(child.told for child in others)):
                os.close(end)
            channel.settimeout(None)
            before = set(sys.modules)
            _answer(channel, server, self._watch)
            os.write(tell, _new_modules(before))
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        for pid, (asker, told, _) in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._children[pid]
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # what it started and left behind
            end_children(self._children)  # and what of that has detached itself
            with contextlib.suppress(KeyError):
                self._ears.unregister(asker)
            with contextlib.suppress(OSError):
                asker.sendall(NUMBER.pack(MEMORY if pid in self._too_large else status))
            self._too_large.discard(pid)
            asker.close()
            os.set_blocking(told, False)
            with contextlib.suppress(BlockingIOError):
                _preload(os.read(told, _PIPE).decode(errors="replace").split())
                self._watch.replaced()
            os.close(told)


def _kill(pid: int) -> None:
    """Kill a child that has not been reaped, and all that it started."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _new_modules(before: set[str]) -> bytes:
    """Names of the modules that were imported since, as many as fit: the first import the rest."""
    new = [name for name in sys.modules if name not in before]
    safe = [name for name in new if name.partition(".")[0] in _SAFE_TO_FORK]
    return "\n".join(safe).encode()[:_PIPE].rpartition(b"\n")[0]


def _preload(names: list[str]) -> None:
    """Import what a child had to import, for those to come.

    A hostile child may name anything: only modules of known packages are imported that may be
    imported anywhere, not the commands and tests among them.
    """
    for name in names:
        if name not in sys.modules and _may_be_preloaded(name):
            # Whoever needs it will say what is wrong. Some modules end the process.
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


def _answer(channel: socket.socket, server: int, watched: Watch) -> None:
    """Do one step in this process, which is for nothing else."""
    step, limits, secrets = pickle.loads(receive(channel))
    lift = _limit(limits)

    def work() -> Any:
        if step.action in HANDED:  # before it is handed anything
            confine(server)
        os.environ.update(secrets)
        return _work(step, channel, limits, lift, watched)

    try:
        content = packed(step.action, attempt(step, work))
    except BaseException as error:  # such as the wish to be interrupted
        lift()
        if isinstance(error, MemoryError) and limits.memory_limit is not None:
            error = StoppedError(limits.on_memory)
        content = packed(step.action, Result(failed(step, error), 0.0))
    send(channel, content)


def _work(
    step: Step, channel: socket.socket, limits: Limits, lift: Callable[[], None], watched: Watch
) -> Any:
    try:
        given = tuple(map(unseal, pickle.loads(receive(channel))))
        value = ACTIONS[step.action](component_of(step), given, step)
        # What else it changes ends with this process.
        if replaced := watched.replaced():
            raise PluginError(f"changed {Changes(replaced).words} in its process")
        return seal(step.action, value)
    except MemoryError as error:
        lift()
        if limits.memory_limit is None:
            raise
        raise StoppedError(limits.on_memory) from error


def _limit(limits: Limits) -> Callable[[], None]:
    """Limit the memory of this process beyond what it has; returns what lifts the limit.

    What counts is memory that can be written, and not what is only reserved: libraries reserve
    much of what they never use.
    """
    if limits.memory_limit is None:
        return lambda: None
    with open("/proc/self/statm") as file:
        has = int(file.read().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    most = min([has + limits.memory_limit, *known])
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
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
        if os.getppid() != parent:  # it was killed, and cannot end what its workers have left
            end_marked(os.environ[MARK])
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
