"""The command `fpbench` as a user runs it, and what every command that a user runs keeps to."""

import subprocess

from warm_start import FPBENCH

PATIENCE = 300.0
"""Seconds that a command may take."""


def run_command(arguments, folder, env):
    """What the command did: exit code, output and errors."""
    return subprocess.run(
        [str(FPBENCH), *arguments], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


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
