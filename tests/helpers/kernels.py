"""Another kernel than the one that the tests run on, and how to compute with it."""

import json
import os
import platform
import subprocess
import sys

import pytest

from fpbench.components.catalog import discover
from fpbench.store.environment import describe_environment

ASK = (
    "import json; from fpbench.store.environment import describe_environment as d;"
    "from fpbench.components.catalog import discover; print(json.dumps(d({}, discover())))"
)


def other_kernel():
    """The environment of processes that compute with another kernel: an old one, or the usual one.

    Skips the test, and says why, where there is no other.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"no other kernel is known for {platform.machine()}")
    here = describe_environment({}, discover())
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES}
    if not any(name in os.environ for name in CHOICES):
        environment |= {
            "OPENBLAS_CORETYPE": "Prescott",
            "NPY_DISABLE_CPU_FEATURES": " ".join(here["simd"]),
        }
    told = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
    ).stdout
    there = json.loads(told)
    if there["blas"] == here["blas"]:
        pytest.skip(f"OPENBLAS_CORETYPE has no effect on {', '.join(here['blas'])}")
    return environment


CHOICES = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")
