"""The lock of a submission: versions used by its run, in the format of pip's requirements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpbench.base.errors import StoreError
from fpbench.testing.submissions.manifest import read_text_file

LOCK = "lock.txt"
PYTHON = "python"
"""Name of Python itself; its line is a comment for pip."""
_PIN = re.compile(r"(?:# (?=python==))?([A-Za-z0-9][A-Za-z0-9._-]{0,99})==([A-Za-z0-9.!+_-]{1,99})")


def list_versions(environment: Mapping[str, Any]) -> dict[str, str]:
    """The versions of Python and of packages in the recorded environment of a run."""
    versions = {PYTHON: environment.get("python")}
    for group in ("packages", "solvers"):
        recorded = environment.get(group)
        versions |= recorded if isinstance(recorded, Mapping) else {}
    return {str(name): v for name, v in versions.items() if isinstance(v, str)}


def write_lock(versions: Mapping[str, str]) -> str:
    """A lock as text: `pip install -r lock.txt` installs these versions."""
    pins = [f"{name}=={versions[name]}" for name in sorted(versions) if name != PYTHON]
    python = [f"# {PYTHON}=={versions[PYTHON]}"] if PYTHON in versions else []
    return "\n".join(["# The versions that made the run.", *python, *pins, ""])


def read_lock(folder: Path) -> dict[str, str]:
    """The versions of a submission's lock; StoreError if it is missing or cannot be read."""
    file = folder / LOCK
    versions: dict[str, str] = {}
    for number, line in enumerate(read_text_file(file).decode(errors="replace").splitlines(), 1):
        match = _PIN.fullmatch(line)
        if match and match[1] not in versions:
            versions[match[1]] = match[2]
        elif match or (line.strip() and not line.startswith("#")):
            raise StoreError(f"{file}: line {number} is not a NAME==VERSION of another package")
    return versions


def list_differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Differences of two sets of versions, as `numpy 2.0.0, not 2.1.0`."""
    return [
        f"{name} {one.get(name, 'missing')}, not {other.get(name, 'there')}"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
