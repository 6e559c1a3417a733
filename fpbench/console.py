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

    from fpbench.leaderboard import Leaderboard, Line
    from fpbench.plan import Plan
    from fpbench.runner import Finished

_PIPED_WIDTH = 140
"""Columns where there is no terminal to ask: wide enough that nothing is folded away."""

_LABEL_WIDTH = 14
"""Columns a label gets at least, so that a table still fits a terminal of 80."""

_AUDIT_COLUMNS = 7

_COLOURS = {Status.DONE: "green", Status.FAILED: "red", Status.SKIPPED: "yellow"}


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


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console


def show_plan(plan: Plan, seconds: float | None, done: int) -> None:
    """What would run: cells, unique steps beside what each cell alone would cost, skips."""
    from rich.table import Table

    warn(plan.warnings)
    console = _console()
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
    for action, count in unique.items():
        table.add_row(action, f"{count:,}", f"{alone[action]:,}")
    table.add_row("all", f"{sum(unique.values()):,}", f"{sum(alone.values()):,}", style="bold")
    console.print(table)
    show_skipped(skipped)
    if seconds is not None:
        console.print(f"about {duration(seconds)} of work left, from the times of earlier steps")
    elif runnable > done:
        console.print("rough time: not known before some of it has run")


def show_skipped(skipped: dict[str, int]) -> None:
    """Reasons why cells are skipped, and how many are."""
    for reason, count in skipped.items():
        text = f"skipped {count}: {reason}"
        _console().print(text, style=_COLOURS[Status.SKIPPED], markup=False, soft_wrap=True)


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

        console = _console(stderr=True)
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


_SHOWN = {"initial_accuracy": "guess", "corrected_accuracy": "corrected", "gain": "gain"}
"""Measures with a column of their own on an attack leaderboard, and its heading."""
_TELLING = {
    "claim_holds": "claim true",
    "metric_right": "metric right",
    "proven": "proven",
    "relaxed_tolerance": "relaxed to",
    "claim_bits": "bits",
    "reconsidered_accuracy": "recalibrated",
    "correct_seconds": "solve s",
}
"""Measures that have one where they tell something: where not every line has the same."""


def show_leaderboard(board: Leaderboard) -> None:
    """A leaderboard as a table; what all its lines share is said once, above."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    console = _console()
    varying = _varying(board)
    shared = [f"{k} {board.lines[0].labels[k]}" for k in board.kinds if k not in varying]
    counts = [_counts(line) for line in board.lines]
    alike = len(set(counts)) == 1 and not board.lines[0].failed
    if alike:
        shared.append(f"{counts[0]} seed" + "s" * (counts[0] != "1"))
    if board.title:
        console.print(escape(board.title), style="bold")
    console.print(escape(" · ".join(shared)), style="dim")
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("#", justify="right")
    for kind in varying:
        words = [w for line in board.lines for w in line.labels[kind].split()]
        widest = max(map(len, [kind, *words]))
        table.add_column(kind, overflow="fold", min_width=min(widest, _LABEL_WIDTH))
    names = _columns(board)
    numeric = [{**_SHOWN, **_TELLING}.get(name, name) for name in names]
    columns = [*numeric, *(("sd", "95 %") if names else ()), *(("seeds",) if not alike else ())]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for line, count in zip(board.lines, counts, strict=True):
        labels = [escape(line.labels[kind]) for kind in varying]
        row = [str(line.rank or "-"), *labels, *_values(line, names), count]
        table.add_row(*row[: len(table.columns)])
    console.print(table)
    if any(line.done == 1 for line in board.lines):
        console.print("One seed gives no interval: run more seeds.", style="dim")
    for reason in dict.fromkeys(reason for line in board.lines for reason in line.reasons):
        text = f"failed: {reason}"
        console.print(text, style=_COLOURS[Status.FAILED], markup=False, soft_wrap=True)


def _columns(board: Leaderboard) -> list[str]:
    """Measures to show, the one that is ranked by last: it is the one with an interval."""
    measured = dict.fromkeys(name for line in board.lines for name in line.measures)
    if "auditor" in board.kinds:
        wanted = list(measured)[:_AUDIT_COLUMNS]
    else:
        wanted = [*(name for name in _TELLING if _tells(board, name)), *_SHOWN]
    last = board.rank_by if board.rank_by in measured else next(reversed(measured), "")
    return [name for name in wanted if name in measured and name != last] + [last] * bool(last)


def _tells(board: Leaderboard, name: str) -> bool:
    """Whether a measure tells lines apart; a proof or a true claim is no news."""
    found = [line.measures[name].mean for line in board.lines if name in line.measures]
    if name == "correct_seconds":  # of several solvers
        lines = [line for line in board.lines if "proven" in line.measures]
        return len({line.labels.get("corrector") for line in lines}) > 1
    if name in ("proven", "claim_holds"):
        return any(share < 1 for share in found)
    return len(set(found)) + (0 < len(found) < len(board.lines)) > 1


def _varying(board: Leaderboard) -> list[str]:
    """The kinds whose labels differ."""
    return [k for k in board.kinds if len({line.labels[k] for line in board.lines}) > 1]


def _values(line: Line, names: list[str]) -> list[str]:
    """Means of the measures, then standard deviation and interval of the last."""
    found = [line.measures.get(name) for name in names]
    values = [_short(value.mean) if value else "-" for value in found]
    if not found:
        return values
    last = found[-1]
    if last is None or last.low is None or last.high is None:
        return [*values, "-", "-"]
    return [*values, _short(last.deviation), f"{_short(last.low)} to {_short(last.high)}"]


def _short(number: float | None) -> str:
    """Four decimals; no zero before the point, as is usual for shares."""
    if number is None:
        return "-"
    text = f"{number:.4f}" if abs(number) < 100 else f"{number:,.0f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _counts(line: Line) -> str:
    return f"{line.done}" + (f" [red]({line.failed} failed)[/]" if line.failed else "")
