"""Everything that is printed. Tables and progress are rich's; listings are plain columns.

Listings must appear at once, and rich's tables cost more to import than all that they list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import typer

from fpbench.kinds import Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from fpbench.plan import Plan
    from fpbench.runner import Finished

_PIPED_WIDTH = 140
"""Columns where there is no terminal to ask: wide enough that nothing is folded away."""

COLOURS = {Status.DONE: "green", Status.FAILED: "red", Status.SKIPPED: "yellow"}


def error(message: str) -> None:
    """One error, on standard error."""
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(message, err=True)


def warn(messages: Iterable[str]) -> None:
    """Warnings, on standard error."""
    for message in messages:
        typer.secho("warning: ", fg="yellow", err=True, nl=False)
        typer.echo(message, err=True)


def heading(text: str) -> None:
    """A heading of a listing."""
    typer.secho(text, bold=True)


def listing(rows: Iterable[Sequence[str]], indent: int = 2) -> None:
    """Rows in aligned columns; the last one may be of any length."""
    rows = [[str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    for row in rows:
        start = "".join(
            value.ljust(width + 2) for value, width in zip(row[:-1], widths, strict=True)
        )
        typer.echo(" " * indent + (start + row[-1]).rstrip())


def terminal(*, stderr: bool = False) -> Console:
    """Where tables go: the terminal, or as wide as they need to be."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console


def show_plan(plan: Plan, seconds: float | None, done: int) -> None:
    """What would run: cells, unique steps beside what each cell alone would cost, skips."""
    from rich.table import Table

    warn(plan.warnings)
    console = terminal()
    runnable, skipped = len(plan.runnable), plan.count_skipped()
    console.print(
        f"[bold]{runnable}[/] cells to run, {sum(skipped.values())} skipped"
        + (f", {done} of them done already" if done else "")
    )
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("step", "unique", "if each cell ran alone"):
        table.add_column(name, justify="left" if name == "step" else "right")
    alone = plan.count_alone()
    unique = plan.count_steps()
    for step, count in unique.items():
        table.add_row(" ".join(step), f"{count:,}", f"{alone[step]:,}")
    table.add_row("all", f"{sum(unique.values()):,}", f"{sum(alone.values()):,}", style="bold")
    console.print(table)
    show_skipped(skipped)
    for remark in plan.remarks:
        console.print(f"note: {remark}", markup=False, soft_wrap=True)
    if seconds is not None:
        console.print(f"about {duration(seconds)} of work left, from the times of earlier steps")
    elif runnable > done:
        console.print("rough time: not known before some of it has run")


def show_skipped(skipped: dict[str, int]) -> None:
    """Reasons why cells are skipped, and how many are."""
    for reason, count in skipped.items():
        text = f"skipped {count}: {reason}"
        terminal().print(text, style=COLOURS[Status.SKIPPED], markup=False, soft_wrap=True)


def short(number: float | None) -> str:
    """Four decimals; no zero before the point, as is usual for shares."""
    if number is None:
        return "-"
    text = f"{number:.4f}" if abs(number) < 100 else f"{number:,.0f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def duration(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


class RunProgress(AbstractContextManager["RunProgress"]):
    """A bar with counts, rate and remaining time; failures are counted as they happen."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        console = terminal(stderr=True)
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
        self._task = self._progress.add_task("cells", total=None, rate="", failures="")
        self._failed = 0
        self.skipped: dict[str, int] = {}

    def planned(self, plan: Plan, done: set[str]) -> None:
        """The plan is known."""
        self.skipped = plan.count_skipped()
        warn(plan.warnings)
        runnable = {cell.key for cell in plan.runnable}
        self._progress.reset(self._task, total=len(runnable - done))

    def finished(self, cell: Finished) -> None:
        """A cell has been committed."""
        if cell.status is Status.FAILED:
            self._failed += 1
        task = self._progress.tasks[0]
        rate = f"{task.speed:.1f}/s" if task.speed else ""
        failures = f"[red]{self._failed} failed[/]" if self._failed else ""
        self._progress.update(self._task, advance=1, rate=rate, failures=failures)

    def __enter__(self) -> RunProgress:
        if self._progress.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.console.is_terminal:
            self._progress.stop()
