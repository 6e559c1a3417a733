"""Output of the assessment of a report, and its progress."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fpbench.cli.screen import console

if TYPE_CHECKING:
    from fpbench.reports.assessments.assessment import Assessment

_WIDEST = 120
"""Longer lines are hard to read."""


def show_assessment(assessment: Assessment) -> None:
    """Show the verdict, and the findings that it rests on."""
    from rich.text import Text

    out = console.choose_terminal()
    text = Text(assessment.to_text(min(out.width, _WIDEST)))
    # The first sentence may take several lines.
    text.stylize("bold green" if assessment.passes else "bold red", 0, _end_of_verdict(text.plain))
    out.print(text, soft_wrap=True)


def _end_of_verdict(text: str) -> int:
    """Where the first indented line begins."""
    return max(text.find("\n  "), 0)


class AttackProgress(AbstractContextManager["AttackProgress"]):
    """A line on a terminal that says which change is being tried."""

    def __init__(self) -> None:
        terminal = console.choose_terminal(stderr=True)
        visible = terminal.is_terminal and not (console.MODE.quiet or console.MODE.plain)
        self._status = terminal.status("reading, and attacking the report") if visible else None

    def tell(self, words: str, attacks: int) -> None:
        """Show the change that is tried next."""
        if self._status is not None:
            from rich.markup import escape

            from fpbench.base.text import escape_unprintable

            self._status.update(f"change {attacks + 1}: {escape(escape_unprintable(words))}")

    def __enter__(self) -> AttackProgress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
