"""What a shell completes after the names of options and arguments; typer's scripts ask for it.

Each Tab starts a Python, so that nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path

from typer import Context
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from fpbench.base.errors import FpbenchError, InputError, suggest_name
from fpbench.components.names import KINDS

COMPLETE = "_FPBENCH_COMPLETE"
"""Set in the environment by a script of typer that asks what is to be completed."""
SHELLS = ("bash", "zsh", "fish", "powershell")
"""Shells for which typer has a script."""
VIEWS = (
    "combinations",
    "paper",
    "attacks",
    "correctors",
    "defences",
    "mechanisms",
    "reports",
    "pareto",
)
"""The names in `fpbench.results.views`, which imports numpy."""


def write_script(shell: str) -> str:
    """The script with which a shell completes `fpbench`.

    Raises
    ------
    InputError
        If typer has no script for the shell.
    """
    if shell not in SHELLS:
        raise InputError(f"unknown shell {shell!r}; {suggest_name(shell, SHELLS)}")
    return get_completion_script(prog_name="fpbench", complete_var=COMPLETE, shell=shell).strip()


def complete_shell(incomplete: str) -> list[str]:
    """Shells that begin so."""
    return [shell for shell in SHELLS if shell.startswith(incomplete)]


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of components that begin so."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def complete_measure(context: Context, incomplete: str) -> list[str]:
    """Measures that begin so: fpbench's, and those that components of the typed runs declare.

    Of several names with commas between, the last one is completed.
    """
    from fpbench.components.own_measures import OWN

    names = dict.fromkeys(measure.name for measure in OWN)
    # After an option without its value, positional arguments cannot be distinguished yet.
    runs = [*context.args, *(context.params.get(name) for name in ("run", "old", "new"))]
    for directory in filter(None, runs):
        names |= dict.fromkeys(_read_declared(Path(directory)))
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def _read_declared(directory: Path) -> list[str]:
    """Names of the measures that a run recorded of its components; none of what is no run."""
    import json
    import sqlite3
    from contextlib import closing

    from fpbench.store.connections import connect_reader
    from fpbench.store.locks import STORE

    try:
        with closing(connect_reader(directory / STORE)) as store:
            rows = store.execute("SELECT value FROM about WHERE name = 'measures'").fetchall()
        names = [measure["name"] for row in rows for measure in json.loads(row[0])]
    except (FpbenchError, OSError, sqlite3.Error, ValueError, TypeError, LookupError):
        return []  # a Tab has no place for an error
    return [name for name in names if isinstance(name, str) and name.isidentifier()]


def complete_view(incomplete: str) -> list[str]:
    """Views of a leaderboard that begin so."""
    return [view for view in VIEWS if view.startswith(incomplete)]


def complete_column(context: Context, incomplete: str) -> list[str]:
    """Columns of the CSV file of people that was typed before, which begin so."""
    from fpbench.base.files import read_file

    try:
        content = read_file(Path(str(context.params.get("people"))), most=2**28, named=True)
        header = content.partition(b"\n")[0].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []  # a Tab has no place for an error
    names = [name.strip().strip('"') for name in header.split(",")]
    return [name for name in names if name.isprintable() and name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Engines that begin so."""
    return [engine for engine in ("inline", "loky", "dask") if engine.startswith(incomplete)]


def complete_component(context: Context, incomplete: str) -> list[str]:
    """Names of built-in and installed components of the kind that was typed before."""
    return _complete_name(str(context.params.get("kind")), incomplete)


def complete_dataset(incomplete: str) -> list[str]:
    """Names of data sets that begin so."""
    return _complete_name("dataset", incomplete)


def _complete_name(kind: str, incomplete: str) -> list[str]:
    from fpbench.components.catalog import discover

    names = (entry.name for entry in discover().of_kind(kind))
    return [name for name in names if name.startswith(incomplete)]
