"""Processes of fpbench that tests start, without waiting for imports.

A command, a worker of loky, or the server of one-use processes is forked from a template
that has imported everything (`warm_template`), where otherwise a new interpreter would be started.
It is a child of whoever starts it all the same, with the arguments, environment, descriptors and
session that it would have. `FPBENCH_TEST_PROCESSES=fresh` starts interpreters.
"""

import _posixsubprocess
import atexit
import ctypes
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

PYTHON = sys.executable
"""Before a test says otherwise."""
FPBENCH = Path(PYTHON).with_name("fpbench")
TEMPLATE = Path(__file__).with_name("warm_template.py")
MODULES = {"fpbench", "loky.backend.popen_loky_posix"}
CODE = re.compile(
    r"from multiprocessing\.spawn import spawn_main;"
    r"|from (multiprocessing|loky\.backend)\.resource_tracker import main;"
    r"|.*\nfrom fpbench\.execution\.isolation\.one_use_server import main\n",
    re.DOTALL,
)
SOLVER = "fpbench/correction/facts/interior_point.py"
"""The end of the path of the program that solves linear programs."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
     "VECLIB_MAXIMUM_THREADS"), "1",
)  # fmt: skip
NO_RESERVES = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""As the server of one-use processes has it: limits count what Arrow reserves."""
ROOM = 60_000
"""Bytes of the arguments, and of the environment, of a process that is forked."""
STARTED_WITH = dict(os.environ)
FOR_EACH = {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"}
"""Variables that may differ: a fork heeds the first, and forks hash alike and write no bytecode."""
_PR_SET_CHILD_SUBREAPER = 36


def parse(arguments):
    """What a python is to run: `-c`, `-m` or `script`, of what, and the arguments after it.

    None if it has options that only a new interpreter reads.
    """
    if arguments[0] == str(FPBENCH):
        return "script", str(FPBENCH), arguments[1:]
    if arguments[0] != PYTHON:
        return None
    words = arguments[1:]
    if words[:1] == ["-B"]:
        words = words[1:]
    if len(words) == 2 and words[0] == "-P" and words[1].endswith(SOLVER):
        return "solver", words[1], []
    if len(words) > 1 and words[0] in ("-c", "-m"):
        return words[0], words[1], words[2:]
    if words and words[0].endswith(".py") and words[0] != str(TEMPLATE):
        return "script", words[0], words[1:]
    return None


def starts_others(arguments):
    """Whether such a process starts processes of fpbench itself."""
    kind, what, _ = parse(arguments)
    return kind == "script" or what == "fpbench"


def may_be_forked(arguments, env):
    """Whether a fork of the template does what a new interpreter would."""
    parsed = parse(arguments)
    if parsed is None or needs_new_interpreter(env):
        return False
    if max(sum(map(len, arguments)), sum(len(n) + len(env[n]) + 2 for n in env)) > ROOM // 2:
        return False
    kind, what, _ = parsed
    if kind == "solver":  # which finds packages that a test puts before ours
        return env.get("PYTHONPATH") == STARTED_WITH.get("PYTHONPATH")
    if kind == "script":
        return True
    return (kind == "-m" and what in MODULES) or bool(CODE.match(what))


def needs_new_interpreter(env):
    """Whether the environment differs in what only a new interpreter reads."""
    if "fresh" in (STARTED_WITH.get("FPBENCH_TEST_PROCESSES"), env.get("FPBENCH_TEST_PROCESSES")):
        return True
    read_at_start = ("PYTHON", "OMP_", "OPENBLAS_", "NPY_", "LC_", "LANG")
    names = {name for name in {*env, *STARTED_WITH} if name.startswith(read_at_start)}
    return any(
        env.get(name) != STARTED_WITH.get(name)
        and not (name in ONE_THREAD and env.get(name) in (None, "1"))
        for name in names - FOR_EACH
    )


class _Starter:
    """Stands in for the function that starts processes."""

    def __init__(self, start, channel):
        self._start, self._channel, self._lock = start, channel, threading.Lock()
        self._ready = False

    def __call__(self, args, executables, close_fds, pass_fds, cwd, env, *more):
        p2cread, _, _, c2pwrite, _, errwrite, _, errpipe_write, _, session, *others, prepare = more[
            :16
        ]
        words = [os.fsdecode(word) for word in args]
        settings = dict(os.environ) if env is None else dict(
            os.fsdecode(line).split("=", 1) for line in env
        )  # fmt: skip
        plain = close_fds and prepare is None and all(other in (-1, None) for other in others)
        if not plain or not may_be_forked(words, settings):
            return self._start(args, executables, close_fds, pass_fds, cwd, env, *more)
        standard = [p2cread, c2pwrite, errwrite]
        ends = [number if end == -1 else end for number, end in enumerate(standard)]
        passed = [int(end) for end in pass_fds if int(end) != errpipe_write]
        request = json.dumps({
            "arguments": words, "env": settings, "session": bool(session),
            "folder": os.path.abspath(os.fsdecode(cwd or ".")),
            "descriptors": [0, 1, 2, *passed],
        }).encode()  # fmt: skip
        with self._lock:
            if self._channel is None:
                self._channel = self._start_template()
            timed = parse(words)[0] == "solver"  # it does not wait until the template has begun
            if not self._ready and timed and not select.select([self._channel], [], [], 0)[0]:
                return self._start(args, executables, close_fds, pass_fds, cwd, env, *more)
            if not self._ready:
                self._ready = bool(self._channel.recv(1))
            socket.send_fds(self._channel, [struct.pack("!Q", len(request))], [*ends, *passed])
            self._channel.sendall(request)
            (pid,) = struct.unpack("!i", self._channel.recv(4))
        return pid

    def _start_template(self):
        ours, theirs = socket.socketpair()
        env = {name: value for name, value in STARTED_WITH.items() if name != "PYTHONPATH"}
        with theirs:
            process = subprocess.Popen(
                [PYTHON, TEMPLATE, str(theirs.fileno()), "x" * ROOM],
                env={**env, **ONE_THREAD, **NO_RESERVES, "ROOM": "x" * ROOM}, pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        process.returncode = 0  # it ends when the channel is closed
        atexit.register(ours.close)
        return ours


def install(channel=None):
    """Have this process fork what it starts of fpbench from a template; by default, from a new one."""
    if sys.platform != "linux" or os.environ.get("FPBENCH_TEST_PROCESSES") == "fresh":
        return
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    start = getattr(subprocess._fork_exec, "_start", subprocess._fork_exec)
    _posixsubprocess.fork_exec = subprocess._fork_exec = _Starter(start, channel)
