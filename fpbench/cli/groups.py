"""Shared parts of command groups: options, completions, and typer classes that start fast.

Each Tab starts Python, so nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Context
from typer.core import TyperGroup

from fpbench.base.files import check_output
from fpbench.base.trust import forbid_third_party
from fpbench.components.names import KINDS


def _forbid(forbidden: bool) -> bool:
    if forbidden:
        forbid_third_party()
    return forbidden


STANDARD = Path("-")
"""The value of an output option that means standard output."""


def _check_output_file(output: Path | None) -> Path | None:
    return None if output is None or output == STANDARD else check_output(output)


RunDirectory = Annotated[Path, typer.Argument(help="Run directory.", metavar="RUN")]
"""The argument of every command that reads a run."""

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        callback=_check_output_file,
        help="File; standard output if not given, or if -.",
    ),
]
"""The option of every command that writes text to standard output by default."""

NoThirdParty = Annotated[
    bool,
    typer.Option(
        "--no-third-party",
        callback=_forbid,
        help="Load built-in components only: no code of other distributions.",
    ),
]
"""The option of every command that loads plugins; it takes effect before the command runs."""


PANELS = {
    "Run and look": ("run", "plan", "leaderboard", "page", "figure", "export", "compare"),
    "Your model, your table": ("attack", "assess", "release", "app"),
    "Published papers": ("reproduce",),
    "Plugins": ("plugins", "describe", "new", "check"),
    "Upkeep": ("data", "doctor", "merge", "verify"),
}
"""The commands by purpose, in the order of work."""
_OTHERS = "Of other packages"


class _Group(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by purpose, where they have one; otherwise under one heading."""
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        panels = {panel: [name for name in names if name in shown]
                  for panel, names in PANELS.items()}  # fmt: skip
        if self.name != "fpbench":
            panels = {"Commands": []}
        known = {name for names in panels.values() for name in names}
        rest = [name for name in shown if name not in known]
        last = _OTHERS if known else "Commands"
        room = formatter.width - 6 - max(map(len, shown), default=0)
        for panel, names in {**panels, last: rest}.items():
            if names:
                with formatter.section(panel):
                    formatter.write_dl([(n, shown[n].get_short_help_str(room)) for n in names])


def group(name: str, text: str, epilog: str | None = None) -> typer.Typer:
    """A group of commands that starts fast: plain help."""
    return typer.Typer(
        name=name,
        help=text,
        epilog=epilog,
        cls=_Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


VIEWS = ("combinations", "attacks", "defences", "reports", "audits")
"""The names in `fpbench.results.snapshot`, which imports numpy."""


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
