"""The command `fpbench` as a user runs it, and what every command that a user runs keeps to."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

SERVER = Path(__file__).with_name("command_server.py")
FPBENCH = Path(sys.executable).with_name("fpbench")
PATIENCE = 300.0
"""Seconds that a command may take."""


class Commands:
    """Runs commands in forks of a process that has imported all; it is started when first used."""

    def __init__(self, folder: Path) -> None:
        self._output, self._errors = folder / "stdout", folder / "stderr"
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, arguments: list[str], folder: Path, env: dict[str, str]):
        """What the command did: exit code, output and errors."""
        if os.environ.get("FPBENCH_TEST_COMMANDS") == "fresh" or needs_fresh_process(env):
            return subprocess.run(
                [FPBENCH, *arguments], cwd=folder, env=env, capture_output=True, text=True,
                check=False, timeout=PATIENCE,
            )  # fmt: skip
        if self._process is None:
            self._start()
        for file in (self._output, self._errors):
            file.write_bytes(b"")
        request = {"arguments": arguments, "folder": str(folder), "env": env,
                   "output": str(self._output), "errors": str(self._errors)}  # fmt: skip
        self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()
        code = int(self._lines.readline())
        return subprocess.CompletedProcess(
            ["fpbench", *arguments], code, self._output.read_text(), self._errors.read_text()
        )

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(PATIENCE)
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, SERVER, str(theirs.fileno())], env=env,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self._lines = self._channel.makefile("rw")

    def close(self) -> None:
        """End the process from which commands are forked, and a command that hangs."""
        if self._process is not None:
            self._lines.close()
            self._channel.close()
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def needs_fresh_process(env: dict[str, str]) -> bool:
    """Whether the environment differs in what only a new interpreter reads."""
    read_at_start = ("PYTHON", "OMP_", "OPENBLAS_", "NPY_", "LC_", "LANG")
    names = {name for name in {*env, *STARTED_WITH} if name.startswith(read_at_start)}
    return any(env.get(name) != STARTED_WITH.get(name) for name in names - {"PYTHONPATH"})


STARTED_WITH = dict(os.environ)


def fine(done, code=0):
    """The command, which ended with this exit code and with no traceback."""
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done


def bad(done, *words, code=2):
    """The command, which said one clear error on standard error and ended with the exit code."""
    fine(done, code)
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(said) == 1
    assert said[0].startswith("error: ")
    for word in words:
        assert word in done.stderr
    return done
