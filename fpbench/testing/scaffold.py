"""Packages that `fpbench new` writes: a component, its tests, and a matrix that uses it."""

from __future__ import annotations

import re
from importlib import metadata, resources
from pathlib import Path

from fpbench.base.errors import InputError, NameUnknownError
from fpbench.components.catalog import discover, explain_unknown_kind
from fpbench.components.names import ATTACK, AUDIT, KINDS

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_USED = {
    "dataset": 'use = "census-synthetic"\nrows = 600',
    "learner": 'use = "plain"',
    "disclosure": 'use = "published"\nmetric = "statistical-parity"',
    "adversary": 'use = "prior"',
    "corrector": 'use = "exact"',
    "auditor": 'use = "pafer"\nepsilon = 1.0\nresamples = 40',
    "mechanism": 'use = "laplace"',
    "policy": 'use = "clip"',
}
"""What the example uses of the other kinds."""

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "{package}"
version = "0.1.0"
description = "A plugin of fpbench: the {kind} {name}"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["fpbench-toolkit>=0.1"]

[project.optional-dependencies]
test = ["pytest>=8.3"]

[project.entry-points.fpbench]
{name} = "{module}"

[tool.hatch.build]
dev-mode-dirs = ["."]

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]

[tool.pytest.ini_options]
testpaths = ["tests"]
filterwarnings = ["error"]
"""

_TEST = """\
\"\"\"The {kind} {name} keeps the laws of fpbench, and works in a matrix.\"\"\"

from pathlib import Path

import pytest

import fpbench
from fpbench.testing import Outcome, checks

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize("check", checks("{package}"), ids=str)
def test_law(check):
    verdict = check()
    if verdict.outcome is Outcome.SKIPPED:
        pytest.skip(verdict.reason)
    assert verdict.outcome is Outcome.KEPT, verdict.reason


def test_matrix(tmp_path):
    run = fpbench.run(PROJECT / "example.toml", out=tmp_path / "run")
    rows = run.rows()
    assert [row["status"] for row in rows] == ["done", "done"]
    assert len(run.leaderboard().lines) == 1
    assert {{row["{kind}"] for row in rows}} == {{"{name}"}}
"""

_README = """\
# {package}

A plugin of fpbench: the {kind} `{name}`.

```sh
pip install -e .
fpbench describe {kind} {name}
fpbench run example.toml
```

The code is in `{module}.py`. Change it, and test it:

```sh
fpbench check .    # the laws that every {kind} keeps
pytest             # the same, and the matrix
tox                # the same, installed as others install it
```
"""

_TOX = """\
[tox]
min_version = 4.20
env_list = py311, py312, py313
skip_missing_interpreters = true

[testenv]
package = wheel
extras = test
commands = pytest {posargs}
"""


def write_package(kind: str, name: str, directory: Path) -> Path:
    """Write a package with one component, in a folder of its own.

    `kind`: one of `KINDS`. `name`: of the component; the package is called `fpbench-NAME`.

    Raises InputError if the kind is unknown, the name is none or is taken, the package is installed
    already, or the folder is there.
    """
    _check(kind, name)
    folder = directory / f"fpbench-{name}"
    if folder.exists():
        raise InputError(f"{folder}: already exists; choose another name or --directory")
    for path, text in files(kind, name).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def _check(kind: str, name: str) -> None:
    if kind not in KINDS:
        raise NameUnknownError(explain_unknown_kind(kind))
    if not _NAME.fullmatch(name):
        raise InputError(
            f"name {name!r}: must be lower case, words joined by hyphens, such as my-{kind}"
        )
    entry = discover().entries.get((kind, name))
    if entry is not None:
        raise InputError(
            f"{kind} {name!r} is already in {entry.source}, and two plugins cannot share a name"
        )
    package = f"fpbench-{name}"
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        return
    raise InputError(
        f"name {name!r}: {package} {installed} is installed already, and the new package "
        "would replace it"
    )


def files(kind: str, name: str) -> dict[str, str]:
    """The files of a package by path."""
    package, module = f"fpbench-{name}", f"fpbench_{name.replace('-', '_')}"
    words = {"kind": kind, "name": name, "package": package, "module": module}
    return {
        "pyproject.toml": _PYPROJECT.format(**words),
        f"{module}.py": component(kind, name),
        f"tests/test_{module}.py": _TEST.format(**words),
        "example.toml": example(kind, name),
        "README.md": _README.format(**words),
        "tox.ini": _TOX,
    }


def component(kind: str, name: str) -> str:
    """The module of a component of a kind, with this name."""
    template = resources.files("fpbench.testing") / "templates" / f"{kind}.py"
    # The kind is a part of the class's name, so that it is none of the names that are imported.
    camel = "".join(map(str.capitalize, name.split("-"))) + KINDS[kind].base
    text = template.read_text(encoding="utf-8").replace("example-name", name)
    return re.sub(r"\bExample\b", camel, text)


def example(kind: str, name: str) -> str:
    """A matrix that uses a component."""
    kinds: tuple[str, ...] = ATTACK if kind in ATTACK else AUDIT
    used = {**_USED, kind: f'use = "{name}"'}
    if kind == "auditor":
        kinds = ("dataset", "learner", "auditor")
    tables = [f"[[{one}]]\n{used[one]}" for one in kinds]
    if kind == "auditor":
        tables.append('[leaderboard]\nrank_by = "accuracy_gap"')
    return "\n\n".join([f'title = "The {kind} {name}"\nseeds = 2', *tables]) + "\n"
