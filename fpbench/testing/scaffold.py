"""Packages that `fpbench new` writes: a component, its tests, and a matrix that uses it."""

from __future__ import annotations

import re
from importlib import metadata, resources
from pathlib import Path

from fpbench.base.errors import InputError, NameUnknownError
from fpbench.base.files import write_file
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
"""The example's components of the other kinds."""


def write_package(kind: str, name: str, directory: Path) -> Path:
    """Write a package with one component, into its own folder.

    `kind`: one of `KINDS`. `name`: of the component; the package is called `fpbench-NAME`.

    Raises InputError if the kind is unknown, the name is invalid or taken, the package is already
    installed, or the folder exists.
    """
    _check(kind, name)
    folder = directory / f"fpbench-{name}"
    if folder.exists():
        raise InputError(f"{folder}: already exists; choose another name or --directory")
    for path, text in make_files(kind, name).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
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


def make_files(kind: str, name: str) -> dict[str, str]:
    """The files of a package by path."""
    package, module = f"fpbench-{name}", f"fpbench_{name.replace('-', '_')}"
    words = {"kind": kind, "name": name, "package": package, "module": module}
    return {
        "pyproject.toml": _fill_in("pyproject", words),
        f"{module}.py": make_component(kind, name),
        f"tests/test_{module}.py": _fill_in("test", words),
        f"{name}.toml": make_example(kind, name),
        "README.md": _fill_in("README", words),
        "tox.ini": _fill_in("tox", words),
    }


def _fill_in(name: str, words: dict[str, str]) -> str:
    """A common file of packages, with `{kind}` and other words replaced."""
    text = _read_template(f"package/{name}.txt")
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text


def _read_template(name: str) -> str:
    template = resources.files("fpbench.testing") / "templates" / name
    return template.read_text(encoding="utf-8")


def make_component(kind: str, name: str) -> str:
    """The module of a component of a kind, with this name."""
    # The class's name contains the kind, so it differs from all imported names.
    camel = "".join(map(str.capitalize, name.split("-"))) + KINDS[kind].base
    text = _read_template(f"{kind}.py").replace("example-name", name)
    return re.sub(r"\bExample\b", camel, text)


def make_example(kind: str, name: str) -> str:
    """A matrix that uses a component."""
    kinds: tuple[str, ...] = ATTACK if kind in ATTACK else AUDIT
    used = {**_USED, kind: f'use = "{name}"'}
    if kind == "auditor":
        kinds = ("dataset", "learner", "auditor")
    tables = [f"[[{one}]]\n{used[one]}" for one in kinds]
    if kind == "auditor":
        tables.append('[leaderboard]\nrank_by = "accuracy_gap"')
    return "\n\n".join([f'title = "The {kind} {name}"\nseeds = 2', *tables]) + "\n"
