"""The process that `warm_start` forks processes from: it has imported what fpbench imports.

A request says what a new interpreter would be told: arguments, folder, environment, descriptors.
The process that answers is a child of the one that asks, ends as an interpreter does, and shows its
own arguments and environment in /proc. It has one thread when it is forked, and no plugin, no data
and no catalog of components.
"""

import atexit
import builtins
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import struct
import sys
import threading
import types
from pathlib import Path

import warm_start

# Packages whose import starts no threads, so that a fork copies no lock that somebody holds.
PRELOADED = (
    "cloudpickle", "fairlearn.postprocessing", "fairlearn.reductions", "highspy", "joblib",
    "loky.backend.spawn",
    "loky.process_executor", "numpy.random", "pandas", "rich.console", "rich.live", "rich.progress",
    "rich.table", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model",
    "sklearn.metrics", "sklearn.neural_network", "sklearn.tree", "threadpoolctl", "xmlrpc.client",
)  # fmt: skip
NOT_PRELOADED = ("fpbench.__main__", "fpbench.cli.pytest_plugin", "fpbench.testing")
ABOVE = 400
"""Descriptors of a new process are held above this number until each gets its own."""


def preload():
    for module in pkgutil.walk_packages(fpbench_path(), "fpbench."):
        if not module.name.startswith(NOT_PRELOADED):
            import_if_there(module.name)
    for name in PRELOADED:
        import_if_there(name)
    hash_code()
    gc.freeze()


def hash_code():
    """Hash the code of fpbench once: every run takes its share of it, and no run changes it."""
    spec = importlib.import_module("fpbench.components.spec")
    for name, module in [*sys.modules.items()]:
        if name.startswith("fpbench."):
            spec._hash_module(name, module)


def fpbench_path():
    return importlib.import_module("fpbench").__path__


def import_if_there(name):
    try:
        importlib.import_module(name)
    except ImportError:  # it needs an extra
        return


def serve(channel):
    """Fork whoever is asked for; in the fork, return the request and its descriptors.

    The fork is a grandchild: when its parent ends, it is given to the nearest ancestor that adopts
    orphans, which is the process that asked. It waits until that has happened.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It may have been started while a library had signals blocked, as a resource tracker is.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    channel.sendall(b"!")  # from here on, requests are answered at once
    while True:
        head, ends, _, _ = socket.recv_fds(channel, 8, 250)
        if not head:
            os._exit(0)
        request = json.loads(receive(channel, *struct.unpack("!Q", head)))
        adopted, tell = os.pipe()
        numbers, write = os.pipe()
        parent = os.fork()
        if parent == 0:
            child = os.fork()
            if child:
                os.write(write, struct.pack("!i", child))
                os._exit(0)
            channel.close()
            os.close(tell)
            os.read(adopted, 1)
            return request, ends
        os.waitpid(parent, 0)
        child = os.read(numbers, 4)
        for end in (adopted, tell, numbers, write, *ends):
            os.close(end)
        channel.sendall(child)


def receive(channel, size):
    content = b""
    while len(content) < size:
        content += channel.recv(size - len(content))
    return content


def become(request, ends):
    """Make this process look as if it had been started so."""
    above = [fcntl.fcntl(end, fcntl.F_DUPFD, ABOVE) for end in ends]
    os.closerange(0, ABOVE)
    for end, number in zip(above, request["descriptors"], strict=True):
        os.dup2(end, number)
    for end in above:
        os.close(end)
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    show_in_proc(request["arguments"], request["env"])
    for number, (name, mode) in enumerate([("stdin", "r"), ("stdout", "w"), ("stderr", "w")]):
        old = getattr(sys, name)
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = open(number, mode, buffering, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(write_through=old.write_through)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    sys.modules["numpy"].random.seed()


def show_in_proc(arguments, env):
    """Write over the memory that /proc/PID/cmdline and /proc/PID/environ show."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    starts_and_ends = [int(field) for field in fields[45:49]]
    lines = [f"{name}={value}" for name, value in env.items()]
    for words, start, end in zip(
        (arguments, lines), starts_and_ends[::2], starts_and_ends[1::2], strict=True
    ):
        content = "".join(word + "\0" for word in words).encode(errors="surrogateescape")
        assert len(content) < end - start
        ctypes.memmove(start, content.ljust(end - start, b"\0"), end - start)


def offer_a_template():
    """Fork a process from which this one starts others; in the fork, return what it is asked for."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        held = fcntl.fcntl(theirs.detach(), fcntl.F_DUPFD, ABOVE)
        ours.detach()
        for number in range(3):
            os.dup2(nowhere, number)
        os.closerange(3, ABOVE)
        show_in_proc(["template"], {})
        return serve(socket.socket(fileno=held))
    theirs.close()
    held = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, ABOVE)
    ours.close()
    warm_start.install(socket.socket(fileno=held))
    return None


def run(arguments):
    """Run what an interpreter with these arguments runs."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    kind, argument, rest = warm_start.parse(arguments)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    first = {"-c": "", "-m": os.getcwd()}.get(kind, os.path.dirname(argument))
    sys.path[:1] = [first, *paths]
    sys.argv = [argument if kind == "script" else kind, *rest]
    importlib.invalidate_caches()
    if kind == "-m":
        sys.modules.pop(argument, None)
        runpy._run_module_as_main(argument)
    elif kind == "-c":
        exec(compile(argument, "<string>", "exec"), vars(main))
    else:
        main.__file__ = argument
        exec(compile(Path(argument).read_text(), argument, "exec"), vars(main))


def live():
    preload()
    task = serve(socket.socket(fileno=int(sys.argv[1])))
    while task:
        become(*task)
        arguments = task[0]["arguments"]
        task = offer_a_template() if warm_start.starts_others(arguments) else None
    return arguments


def end(code):
    """End as an interpreter does, but do not take apart one module after another."""
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):  # of a pipe that nobody reads, an interpreter says more
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    this = sys.modules["__main__"]  # it is replaced
    try:
        run(live())
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            end((ended.code or 0) & 0xFF)
        raise
    end(0)
