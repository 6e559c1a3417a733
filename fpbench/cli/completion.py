"""What a shell completes after the names of options and arguments; typer's scripts ask for it.

Each Tab starts a Python, so that nothing heavy is imported here.
"""

from __future__ import annotations

from typer import Context
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from fpbench.base.errors import InputError, suggest_name
from fpbench.components.names import KINDS

COMPLETE = "_FPBENCH_COMPLETE"
"""Set in the environment by a script of typer that asks what is to be completed."""
SHELLS = ("bash", "zsh", "fish", "powershell")
"""Shells for which typer has a script."""
VIEWS = ("combinations", "attacks", "correctors", "defences", "mechanisms", "pareto")
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


def complete_measure(incomplete: str) -> list[str]:
    """Names of fpbench's measures that begin so."""
    from fpbench.components.own_measures import OWN

    return [measure.name for measure in OWN if measure.name.startswith(incomplete)]


def complete_view(incomplete: str) -> list[str]:
    """Views of a leaderboard that begin so."""
    return [view for view in VIEWS if view.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Engines that begin so."""
    return [engine for engine in ("inline", "loky", "dask") if engine.startswith(incomplete)]


def complete_component(context: Context, incomplete: str) -> list[str]:
    """Names of built-in and installed components of the kind that was typed before."""
    from fpbench.components.catalog import discover

    kind = context.params.get("kind")
    names = [entry.name for entry in discover().of_kind(str(kind))]
    return [name for name in names if name.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Names of data sets that begin so."""
    from fpbench.components.catalog import discover

    names = [entry.name for entry in discover().of_kind("dataset")]
    return [name for name in names if name.startswith(incomplete)]
