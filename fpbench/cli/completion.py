"""Completions of options' and arguments' values, for typer's shell scripts.

Each Tab starts Python, so nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path

from typer import Context

from fpbench.components.names import KINDS

VIEWS = ("combinations", "attacks", "defences", "reports", "audits")
"""The names in `fpbench.results.views`, which imports numpy."""


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of components that begin with the typed text."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def complete_measure(incomplete: str) -> list[str]:
    """Measures of fpbench that begin with the typed text.

    In a list with commas, the last name is completed.
    """
    from fpbench.components.own_measures import OWN

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{one.name}" for one in OWN if one.name.startswith(last)]


def complete_view(incomplete: str) -> list[str]:
    """Views of a leaderboard that begin with the typed text."""
    return [view for view in VIEWS if view.startswith(incomplete)]


def complete_column(context: Context, incomplete: str) -> list[str]:
    """Columns of the typed CSV file of people that begin with the typed text."""
    from fpbench.base.files import read_file

    try:
        content = read_file(Path(str(context.params.get("people"))), most=2**28, named=True)
        header = content.partition(b"\n")[0].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []  # a Tab has no place for an error
    names = [name.strip().strip('"') for name in header.split(",")]
    return [name for name in names if name.isprintable() and name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Installed engines that begin with the typed text."""
    return _complete_name("engine", incomplete)


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
