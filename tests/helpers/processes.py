"""Waiting for what other processes do."""

import time
from pathlib import Path


def gone(pid):
    """Whether a process is no more, or only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def eventually(condition, seconds=300.0, pause=0.02):
    """What the condition gives once it is true; False if it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if met := condition():
            return met
        time.sleep(pause)
    return False
