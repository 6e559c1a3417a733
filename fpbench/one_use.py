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
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fpbench.actions import ACTIONS, HANDED
from fpbench.answers import packed
from fpbench.confining import confine
from fpbench.execution import StoppedError, attempt, component_of, failed
from fpbench.limits import Limits
from fpbench.plugins import discover
from fpbench.processes import NUMBER, WELL, die_with_parent, receive, send
from fpbench.sealing import seal, unseal
from fpbench.steps import Result, Step

_PATIENCE = 10.0
"""Seconds in which a client that has connected must say what it wants."""
_PIPE = 60_000
"""Bytes that a pipe holds everywhere without anybody reading."""
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


class _Server:
    """Accepts, forks, reaps. One thread, so that a fork copies no lock that somebody holds."""

    def __init__(self, listener: socket.socket, control: socket.socket) -> None:
        self._listener, self._control = listener, control
        self._children: dict[int, _Child] = {}
        self._ears = selectors.DefaultSelector()
        self._woken, waker = os.pipe()
        self._waker = waker
        for end in (self._woken, waker):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for ear in (listener, control, self._woken):
            self._ears.register(ear, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until whoever started this is gone."""
        while True:
            for key, _ in self._ears.select():
                if key.fileobj is self._control:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj == self._woken:
                    self._reap()
                elif key.data in self._children:  # nobody waits for this child any more
                    self._ears.unregister(key.fileobj)
                    _kill(key.data)

    def end(self) -> None:
        """Kill what still runs."""
        for pid in self._children:
            _kill(pid)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _accept(self) -> None:
        channel, _ = self._listener.accept()
        try:
            channel.settimeout(_PATIENCE)
            _, ends, _, _ = socket.recv_fds(channel, 1, 1)
            if not ends:
                channel.sendall(WELL)
        except OSError:  # it died between two words
            ends = []
        if not ends:
            channel.close()
            return
        asker = socket.socket(fileno=ends[0])
        told, tell = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that only wait
            pid = os.fork()
        if pid == 0:
            self._become_child(channel, [_Child(asker, told), *self._children.values()], tell)
        channel.close()
        os.close(tell)
        self._children[pid] = _Child(asker, told)
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
            self._ears.close()
            # What connects others to their steps is not for this one.
            for held in (self._listener, self._control, *(child.asker for child in others)):
                held.close()
            for end in (self._woken, self._waker, *(child.told for child in others)):
                os.close(end)
            channel.settimeout(None)
            before = set(sys.modules)
            _answer(channel, server)
            os.write(tell, _new_modules(before))
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        for pid, (asker, told) in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._children[pid]
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # what it started and left behind
            with contextlib.suppress(KeyError):
                self._ears.unregister(asker)
            with contextlib.suppress(OSError):
                asker.sendall(NUMBER.pack(status))
            asker.close()
            os.set_blocking(told, False)
            with contextlib.suppress(BlockingIOError):
                _preload(os.read(told, _PIPE).decode(errors="replace").split())
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


def _answer(channel: socket.socket, server: int) -> None:
    """Do one step in this process, which is for nothing else."""
    step, limits, secrets = pickle.loads(receive(channel))
    lift = _limit(limits)

    def work() -> Any:
        if step.action in HANDED:  # before it is handed anything
            confine(server)
        os.environ.update(secrets)
        return _work(step, channel, limits, lift)

    try:
        content = packed(step.action, attempt(step, work))
    except BaseException as error:  # such as the wish to be interrupted
        lift()
        if isinstance(error, MemoryError) and limits.memory_limit is not None:
            error = StoppedError(limits.on_memory)
        content = packed(step.action, Result(failed(step, error), 0.0))
    send(channel, content)


def _work(step: Step, channel: socket.socket, limits: Limits, lift: Callable[[], None]) -> Any:
    try:
        given = tuple(map(unseal, pickle.loads(receive(channel))))
        return seal(step.action, ACTIONS[step.action](component_of(step), given, step))
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
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
