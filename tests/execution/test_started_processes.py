"""What tests start is forked from a template, and looks as if an interpreter had been started."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

LOOK = """
import json, os, random, signal, sys, threading
from pathlib import Path
print(json.dumps({
    "number": os.getpid(), "parent": os.getppid(), "session": os.getsid(0), "group": os.getpgrp(),
    "folder": os.getcwd(), "arguments": sys.argv, "environment": dict(os.environ),
    "shown arguments": Path("/proc/self/cmdline").read_text().rstrip("\\0").split("\\0"),
    "shown environment": sorted(Path("/proc/self/environ").read_text().rstrip("\\0").split("\\0")),
    "main": [__name__, __file__, sys.modules["__main__"].__dict__ is globals()],
    "path": sys.path, "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "threads": threading.active_count(), "tasks": len(os.listdir("/proc/self/task")),
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < 300)[3:-1],
    "input": sys.stdin.read(), "written": sys.stderr.write("e\\u00e9\\n"),
    "random": random.random(), "warm": "sklearn" in sys.modules, "plugins": "toys" in sys.modules,
}), flush=True)
os.write(int(sys.argv[1]), b"passed on")
if len(sys.argv) > 2:
    os.kill(os.getpid(), signal.SIGTERM)
raise SystemExit(7)
"""


def start(tmp_path, *more, **env):
    """What the script says of its process, and what became of it."""
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    (tmp_path / "folder").mkdir(exist_ok=True)
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, script, str(writing), *more], cwd=tmp_path / "folder", text=True,
        pass_fds=[writing], env={**os.environ, **env}, start_new_session="LONG" in env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writing)
    output, errors = process.communicate("typed")
    said = json.loads(output)
    assert said.pop("number") == process.pid
    with open(reading, "rb") as file:
        said["passed on"] = file.read().decode()
    numbers = {"session": process.pid, "group": process.pid} if "LONG" in env else {}
    assert {name: said[name] for name in numbers} == numbers
    for name in numbers:
        del said[name]
    said["arguments"][1] = said["shown arguments"][2] = "descriptor"
    said["descriptors"] = len(said["descriptors"])
    del said["environment"]["FPBENCH_TEST_PROCESSES"], said["random"]
    said["shown environment"] = [
        line for line in said["shown environment"] if not line.startswith("FPBENCH_TEST")
    ]
    return said, errors, process.returncode


@pytest.mark.parametrize("more", [(), ("ends",)])
@pytest.mark.parametrize("env", [{}, {"SHORT": "x=y", "LONG": "z" * 9000, "PYTHONPATH": "/p:/q"}])
def test_a_fork_looks_like_an_interpreter(tmp_path, more, env):
    forked, *end = start(tmp_path, *more, **env, FPBENCH_TEST_PROCESSES="forked")
    fresh, *other_end = start(tmp_path, *more, **env, FPBENCH_TEST_PROCESSES="fresh")
    assert (forked.pop("warm"), fresh.pop("warm")) == (True, False)
    # A job in the background ignores Ctrl-C, and so does an interpreter that it starts.
    assert forked.pop("interrupt")
    assert fresh.pop("interrupt") or signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert forked == fresh
    assert forked["parent"] == os.getpid()
    assert end == other_end
    assert end[1] == (-15 if more else 7)


def test_two_forks_draw_other_numbers(tmp_path):
    script = tmp_path / "draw.py"
    script.write_text("import numpy, random; print(random.random(), numpy.random.rand())")
    drawn = {subprocess.check_output([sys.executable, script]) for _ in range(2)}
    assert len(drawn) == 2
