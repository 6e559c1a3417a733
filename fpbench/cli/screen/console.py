"""All printing. Colours and progress bars are rich's; listings are plain columns.

Listings must appear at once, and rich takes longer to import than the listings to make.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from shutil import get_terminal_size
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from fpbench.base.text import escape_unprintable
from fpbench.components.names import Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from fpbench.base.sheet import Row, Sheet
    from fpbench.execution.runner import Finished
    from fpbench.matrix.plan import Plan
    from fpbench.reports.assessments.assessment import Assessment

_PIPED_WIDTH = 140
"""Width without a terminal: enough that no column is folded away."""

_LONG = 2000
"""Longest error message, in characters, that is shown whole."""


@dataclass
class Mode:
    """Options of what is shown; set once, by the command line."""

    plain: bool = False
    """No colours, frames, bars or drawings: for screen readers and logs."""
    quiet: bool = False
    """Print only the answer and errors."""


MODE = Mode()

COLOURS = {Status.DONE: "green", Status.FAILED: "red", Status.SKIPPED: "yellow"}


def show_error(message: str) -> None:
    """One error, on standard error."""
    if len(message) > _LONG:
        message = f"{message[: _LONG // 2]} [...] {message[-_LONG // 2 :]}"
    if sys.stderr.isatty() and not MODE.plain:
        _show_panel(escape_unprintable(message))
        return
    _show_word("error: ", "red")
    typer.echo(escape_unprintable(message), err=True)


def _show_panel(message: str) -> None:
    """An error in a frame, with each remedy on its own line."""
    from rich.panel import Panel
    from rich.text import Text

    problem, *fixes = message.split("; ")
    text = Text(problem)
    for fix in fixes:
        text.append(f"\n→ {fix}", style="bold")
    frame = Panel(text, title="error", title_align="left", border_style="red", expand=False)
    choose_terminal(stderr=True).print(frame)


def _show_word(word: str, colour: str) -> None:
    """The word that a message on standard error starts with."""
    if MODE.plain:
        typer.echo(word, err=True, nl=False)
        return
    fg = None if os.environ.get("NO_COLOR") else colour
    typer.secho(word, fg=fg, bold=colour == "red", err=True, nl=False)


def show_stopping() -> None:
    """Confirm the first Ctrl-C. Unbuffered, as a signal handler must not use buffers."""
    os.write(2, b"finishing what runs; Ctrl-C once more to stop now\n")


def warn(messages: Iterable[str]) -> None:
    """Warnings, on standard error."""
    for message in messages:
        _show_word("warning: ", "yellow")
        typer.echo(escape_unprintable(message), err=True)


def show_text(text: str) -> None:
    """Text for other programs; on a terminal, control characters are shown as text."""
    typer.echo(escape_unprintable(text, but="\n") if sys.stdout.isatty() else text)


def show_heading(text: str) -> None:
    """A heading of a listing."""
    if MODE.plain:
        typer.echo(escape_unprintable(text))
    else:
        typer.secho(escape_unprintable(text), bold=True)


def show_listing(rows: Iterable[Sequence[str]], indent: int = 2, *, cut: bool = False) -> None:
    """Rows in aligned columns; the last has any length, or is cut at the terminal's width."""
    rows = [[escape_unprintable(str(value)) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    width = get_terminal_size((_PIPED_WIDTH, 24)).columns
    for row in rows:
        start = "".join(
            value.ljust(width + 2) for value, width in zip(row[:-1], widths, strict=True)
        )
        line = " " * indent + (start + row[-1]).rstrip()
        typer.echo(
            line if not cut or len(line) <= width else f"{line[: width - 3].rpartition(' ')[0]}..."
        )


def choose_terminal(*, stderr: bool = False) -> Console:
    """A console for tables: as wide as the terminal, or else as the tables need."""
    from rich.console import Console

    unstyled: dict[str, Any] = {"color_system": None} if MODE.plain else {}
    console = _shield(Console)(stderr=stderr, highlight=False, **unstyled)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console


@cache
def _shield(console: type[Console]) -> type[Console]:
    """A console that escapes control characters in text; only rich's own take effect."""
    from rich.segment import Segment

    class Shielded(console):  # type: ignore[misc,valid-type]
        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **options):
                text = escape_unprintable(segment.text, but="\n")
                yield segment if segment.control else segment._replace(text=text)

    return Shielded


def show_sheet(sheet: Sheet, colours: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print a table with its title and remarks; text is folded where the width is too small.

    `colours`: styles of cells by their text.
    """
    from rich.text import Text

    out, plain = choose_terminal(), MODE.plain
    sheet, rows = sheet.lay_out(out.width)
    about = sheet.about.replace(" · ", "; ") if plain else sheet.about
    for words, style in ((sheet.title, "bold"), *((o, "") for o in sheet.opening), (about, "dim")):
        if words:
            out.print(Text(words, style))
    if sheet.columns:
        lines = [_add_colours(row, colours) for row in rows if not (plain and row.kind == "rule")]
        out.print(Text("\n").join(lines), soft_wrap=True)
    show_remarks(sheet)


def show_remarks(sheet: Sheet) -> None:
    """Print the notes, warnings and failures below a table."""
    if sheet.legend:
        from rich.text import Text

        choose_terminal().print(Text(sheet.legend, "dim"))
    for note in sheet.all_notes:
        show_line(note, "dim")
    for text in sheet.warnings:
        show_line(f"warning: {text}", "yellow")
    for text in sheet.failures:
        show_line(f"failed: {text}", COLOURS[Status.FAILED])


def show_line(text: str, colour: str | None = None) -> None:
    """Print a line: folded between words on a terminal, elsewhere unbroken."""
    out = choose_terminal()
    out.print(text, style=colour, markup=False, soft_wrap=not out.is_terminal)


def _add_colours(row: Row, colours: Mapping[str, str]) -> Text:
    """A line of a table; counts of failures are highlighted."""
    from rich.text import Text

    if row.kind != "row":
        return Text(" ".join(row.parts), "" if row.kind == "rule" else "bold")
    cells = [
        Text(part, colours.get(cell, "")) for part, cell in zip(row.parts, row.cells, strict=True)
    ]
    for cell in cells:
        cell.highlight_regex(r"\(.* failed\)$", "red")
    return Text(" ").join(cells)


_TOLD = ("learner", "disclosure", "adversary", "auditor")
"""Kinds whose labels say which cell was run last, if they differ."""
_LAST = 40
"""Letters of the name of the cell that was run last."""


class RunProgress(AbstractContextManager["RunProgress"]):
    """What was run last, a bar with counts, and the remaining time; failures are counted."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        console = choose_terminal(stderr=True)
        self._progress: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            Remaining(),
            TextColumn("{task.fields[failures]}"),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("planning", total=None, rate="", failures="")
        self._visible = console.is_terminal and not (MODE.quiet or MODE.plain)
        self._failed = 0
        self._varying: list[str] = []
        self.skipped: dict[str, int] = {}

    def planned(self, plan: Plan, done: set[str]) -> None:
        """Show the plan."""
        self.skipped = plan.count_skipped()
        warn(plan.warnings)
        if self._visible:  # others read it after the run
            warn(f"{count} cells are skipped: {why}" for why, count in self.skipped.items())
        runnable = {cell.key for cell in plan.runnable}
        used = {kind: {cell.labels.get(kind, "") for cell in plan.runnable} for kind in _TOLD}
        self._varying = [kind for kind, labels in used.items() if len(labels) > 1]
        left = len(runnable - done)
        self._progress.reset(self._task, total=left, description=f"{left:,} cells")

    def finished(self, cell: Finished) -> None:
        """Count a committed cell, and say which."""
        from rich.markup import escape

        if cell.status is Status.FAILED:
            self._failed += 1
        task = self._progress.tasks[0]
        rate = f"{task.speed:.1f}/s" if task.speed else ""
        failures = f"[red]{self._failed} failed[/]" if self._failed else ""
        labels = (cell.cell.labels.get(kind, "") for kind in self._varying)
        last = escape_unprintable(", ".join(filter(None, labels)))
        self._progress.update(
            self._task, advance=1, rate=rate, failures=failures,
            description=escape(last[:_LAST]) or "cells",
        )  # fmt: skip

    def __enter__(self) -> RunProgress:
        if self._visible:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._visible:
            self._progress.stop()


_WIDEST = 120
"""Longer lines are hard to read."""


def show_assessment(assessment: Assessment) -> None:
    """Show the verdict, and the findings that it rests on."""
    from rich.text import Text

    out = choose_terminal()
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
        terminal = choose_terminal(stderr=True)
        visible = terminal.is_terminal and not (MODE.quiet or MODE.plain)
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
