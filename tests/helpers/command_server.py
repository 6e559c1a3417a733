"""The command `fpbench` in forks of a process that has imported it: no test waits for imports.

A request is a line of JSON (arguments, folder, environment, files of the output); the answer is the
exit code. The command ends as the interpreter does, with a code, a traceback or a signal.
"""

import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import sysconfig

import fpbench
from fpbench.__main__ import main

# Packages whose import starts no threads, so that a fork copies no lock that somebody holds.
PRELOADED = (
    "cloudpickle", "fairlearn.postprocessing", "fairlearn.reductions", "pandas", "rich.console",
    "rich.live", "rich.progress", "rich.table", "scipy.optimize", "scipy.stats", "sklearn.ensemble",
    "sklearn.linear_model", "sklearn.metrics", "sklearn.neural_network", "sklearn.tree",
)  # fmt: skip
NOT_PRELOADED = ("fpbench.__main__", "fpbench.cli.pytest_plugin", "fpbench.testing")


def preload():
    for module in pkgutil.walk_packages(fpbench.__path__, "fpbench."):
        if not module.name.startswith(NOT_PRELOADED):
            try:
                importlib.import_module(module.name)
            except ImportError:  # it needs an extra
                continue
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()


def become(arguments, folder, env, output, errors):
    """Make this process look as if it had been started so."""
    for number, (file, flags) in enumerate(
        ((os.devnull, os.O_RDONLY), (output, os.O_WRONLY), (errors, os.O_WRONLY))
    ):
        os.dup2(os.open(file, flags), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["fpbench", *arguments]
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [sysconfig.get_path("scripts"), *paths]


def serve(channel):
    """Answer until nobody asks any more; in a fork, return what to run."""
    with channel, channel.makefile("rw") as lines:
        for line in lines:
            child = os.fork()
            if child == 0:
                return become(**json.loads(line)) or True
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            lines.write(f"{code}\n")
            lines.flush()
    return False


if __name__ == "__main__":
    preload()
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        main()
