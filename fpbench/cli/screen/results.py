"""Leaderboards, and a paper's tables and statements beside our numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench.base.errors import tell_extra
from fpbench.base.sheet import Column, Sheet
from fpbench.base.text import format_percent
from fpbench.cli.screen import console
from fpbench.cli.screen.console import show_sheet
from fpbench.components.measures import SHARE
from fpbench.components.names import KINDS
from fpbench.results.findings import MOST_LEAK, Verdict
from fpbench.results.judging import Standing, list_verdict_sheets, make_standings_sheet
from fpbench.results.leaderboard import choose_best, make_sheet
from fpbench.results.verdicts import ExpectationOutcome
from fpbench.results.waterfall import draw_bar, make_waterfall_sheet

if TYPE_CHECKING:
    from fpbench.api.reproduce import Reproduction
    from fpbench.results.findings import Findings
    from fpbench.results.intervals import Interval
    from fpbench.results.leaderboard import Leaderboard

MOST = 12
"""Greatest number of lines of a table shown by default."""
_MOST_CURVES = 12
"""Sweeps that are drawn below a leaderboard."""
_JUDGEMENT_COLOURS: dict[str, str] = {
    ExpectationOutcome.MATCHED: "green", ExpectationOutcome.DEVIATES: "red",
    ExpectationOutcome.UNDECIDED: "yellow", ExpectationOutcome.NOT_RUN: "dim",
    Standing.HOLDS: "green", Standing.CONDITIONS: "yellow",
    Standing.RARELY: "red", Standing.FAILS: "red",
}  # fmt: skip


def show_leaderboards(
    boards: Iterable[Leaderboard], measures: Sequence[str] = (), most: int | None = None
) -> None:
    """Leaderboards below each other; a title that they share is printed once.

    `boards`, `measures`: see `show_leaderboard`. `most`: how many lines of each to show; None for
    the best attacks of each task, at most 12 in all, and a word on how to see the others.
    """
    title, cut = None, False
    for board in boards:
        if title is not None:
            console.choose_terminal().print()
        untitled = replace(board, title="") if board.title == title else board
        show_leaderboard(untitled, measures, most)
        title, cut = board.title, cut or len(board.lines) > MOST
    if cut and most is None:
        console.choose_terminal().print(SHOW_ALL, style="dim", soft_wrap=True)


SHOW_CHECKS = "`fpbench reproduce --long` and `fpbench page` show each check"
"""Printed below a summary of checks."""
SHOW_ALL = "`fpbench leaderboard RUN --all` shows all lines"
"""Printed where lines were left out by default."""


def show_leaderboard(
    board: Leaderboard, measures: Sequence[str] = (), most: int | None = None
) -> None:
    """Show a leaderboard: its findings, the waterfall, and the table.

    `measures`: the measures to show, without the waterfall; none for the default ones. `most`:
    number of lines to show; None for the best attacks of each task.
    """
    count = len(board.lines)
    numbers = choose_best(board, MOST) if most is None else range(min(most, count))
    table = make_sheet(board, measures, numbers)
    if board.waterfall is not None and not measures and not console.MODE.plain:
        show_sheet(Sheet(table.title, "", (), (), opening=table.opening))
        show_sheet(make_waterfall_sheet(board.waterfall))
        console.choose_terminal().print()
        table = replace(table, title="", opening=())
    show_sheet(table)
    # With only a few lines shown, curves of the others are left out.
    curves = make_curve_sheet(board) if len(numbers) == count else None
    if curves is not None and not console.MODE.plain:
        show_sheet(curves)


def show_answer(boards: Sequence[Leaderboard], run: Path, *, long: bool = False) -> None:
    """Show what a run found: the findings about its one data set, or a sentence about each.

    `long`: whether to show the leaderboards, too; those without findings are shown anyway.
    """
    pairs = [(board, board.findings) for board in boards if board.findings]
    if pairs and not long:
        boards = [b for b in boards if b.findings is None and not b.scope.startswith("overall")]
    show_leaderboards(boards)
    if len(pairs) == 1:
        show_findings(*pairs[0])
    for board, findings in pairs[:MOST] if len(pairs) > 1 else ():
        console.show_line(": ".join([*board.apart, findings.summary]))
        _show_alarms(board)
    if pairs:
        _show_next(run)


_BAR = 20
"""Letters of a bar from the largest group to everybody."""
_VERDICT_COLOURS = {Verdict.WITHIN: "green", Verdict.BEYOND: "red", Verdict.OPEN: "yellow"}


def show_findings(board: Leaderboard, findings: Findings) -> None:
    """Show in a few lines what each thing that is published gives away, as `board` found it."""
    from rich.text import Text

    out, plain = console.choose_terminal(), console.MODE.plain
    out.print(Text(board.title, "bold"))
    console.show_line(findings.scene)
    out.print()
    base = findings.baseline or 0.0
    width = max(len(thing.name) for thing in findings.things)
    for thing in findings.things:
        after = thing.without + thing.added.mean
        colour = _VERDICT_COLOURS[thing.verdict]
        line = Text(f"{thing.name.ljust(width)}  {format_percent(after):>5} % right ", "bold")
        if not plain and out.width >= width + _BAR + 16:
            before, bar = draw_bar(thing.without, after, base, _BAR)
            line.append(before, "dim").append(bar, colour)
        out.print(line, soft_wrap=True)
        told = Text("  ").append(thing.verdict.value, f"bold {colour}").append(f": {thing.words}")
        out.print(told, soft_wrap=not out.is_terminal)
    _show_alarms(board)
    if findings.unshown:
        console.show_line(f"{findings.unshown} more give away less", "dim")


def _show_alarms(board: Leaderboard) -> None:
    """Show what failed, and warnings."""
    sheet = make_sheet(board)
    alarms = tuple(note for note in sheet.notes if note.startswith("warning:"))
    console.show_remarks(replace(sheet, notes=alarms, explained=()))


def _show_next(run: Path) -> None:
    """Show what the words of findings mean, and what to type next."""
    from rich.text import Text

    out = console.choose_terminal()
    out.print()
    console.show_line(
        "Proven: the group is certain, not guessed; many of the proven were guessed right before. "
        f"Limits: nobody proven, at most {100 * MOST_LEAK:g} point more guessed right.", "dim",
    )  # fmt: skip
    figures = "figures, for a browser"
    if find_spec("plotly") is None:
        figures = f"figures, after {tell_extra('report')}"
    for command, what in (("leaderboard", "every attack"), ("page", figures)):
        line = Text(f"next: fpbench {command} {shlex.quote(str(run))}  ", "bold")
        out.print(line.append(what, "dim"), soft_wrap=True)
    yours = "your own table: fpbench assess TABLE --people PEOPLE, or fpbench release PEOPLE"
    out.print(Text(yours, "bold"), soft_wrap=True)


def make_curve_sheet(board: Leaderboard) -> Sheet | None:
    """A table of the ranking measure along each sweep that changes it; None if there is none."""
    curves, measure = list_curves(board), board.glossary[board.rank_by]
    rows = []
    for curve in curves[:_MOST_CURVES]:
        along = f"{curve.parameter} {curve.values[0]:g} to {curve.values[-1]:g}"
        others = ", ".join(label for label in curve.labels if label)
        ends = measure.write(curve.means[0]), measure.write(curve.means[-1])
        rows.append((curve.line, *ends, f"{along} ({others})" if others else along))
    rest = len(curves) - _MOST_CURVES
    numbers = (measure.heading, "from", "to")
    unit = ", in %" if measure.unit == SHARE else ""
    return Sheet(
        title="",
        about=f'how "{numbers[0]}" changes along a parameter{unit}; each curve has its own scale',
        columns=(*map(Column, numbers), Column("along", number=False)),
        rows=tuple(rows),
        notes=(f"{rest} more sweep{'s' * (rest != 1)}",) if rest > 0 else (),
    ) if rows else None  # fmt: skip


def show_reproduction(reproduction: Reproduction, *, long: bool = False) -> None:
    """Show whether a paper's statements hold, then its tables beside our numbers.

    `reproduction`: the run and the verdicts on it. `long`: whether to show the checks of each
    statement one by one, too.
    """
    out = console.choose_terminal()
    verdicts, on_strongest = reproduction.verdicts, reproduction.verdicts_on_strongest
    standings = make_standings_sheet(verdicts, reproduction.title, reproduction.sentences)
    show_sheet(standings, _JUDGEMENT_COLOURS)
    sheets = [*(list_verdict_sheets(verdicts) if long else ()), *reproduction.tables]
    sheets += reproduction.tables_of_strongest
    sheets += list_verdict_sheets(on_strongest) if long else ()
    title = reproduction.title
    for each in sheets:
        out.print()
        show_sheet(replace(each, title="") if each.title == title else each, _JUDGEMENT_COLOURS)
    if not reproduction.tables:
        out.print()
        boards = reproduction.run.leaderboards()
        show_leaderboards(replace(b, title="") if b.title == title else b for b in boards)
    if not long:
        out.print(SHOW_CHECKS, style="dim", soft_wrap=True)


LEVELS = "▁▂▃▄▅▆▇█"
LEAST_POINTS = 3
"""Least number of values of a parameter for a curve."""


@dataclass(frozen=True)
class Curve:
    """A measure along a parameter, all else being the same."""

    parameter: str
    labels: tuple[str, ...]
    """Labels in which lines of the leaderboard differ, without the parameter."""
    values: tuple[float, ...]
    """Values of the parameter, ascending."""
    means: tuple[float, ...]
    """Means of the measure."""

    @property
    def line(self) -> str:
        """The means as blocks of eight heights."""
        return draw_sparkline(self.means)


def list_curves(board: Leaderboard) -> list[Curve]:
    """The sweeps of a leaderboard along which the measure changes, best lines first.

    It changes if 95 % intervals of two values of the parameter do not meet.
    """
    # Columns beside the components, such as the strongest attack, do not divide a sweep.
    kinds = [kind for kind in board.kinds if kind in KINDS]
    differing = [k for k in kinds if len({line.labels[k] for line in board.lines}) > 1]
    curves: dict[tuple[str, tuple[str, ...]], dict[float, Interval]] = {}
    for line in board.lines:
        value = line.measures.get(board.rank_by)
        if value is None:
            continue
        labels = [line.labels[kind] for kind in differing]
        for place, kind in enumerate(differing):
            parts = board.settings.get(kind, {}).get(labels[place])
            for name, number in parts.swept.items() if parts else ():
                if parts and isinstance(number, int | float) and not isinstance(number, bool):
                    others = (*labels[:place], parts.without(name), *labels[place + 1 :])
                    curves.setdefault((name, others), {})[float(number)] = value
    swept = {key: sorted(points.items()) for key, points in curves.items()}
    return [
        Curve(parameter, labels, tuple(x for x, _ in points), tuple(y.mean for _, y in points))
        for (parameter, labels), points in swept.items()
        if len(points) >= LEAST_POINTS and _differ([y for _, y in points])
    ]


def _differ(values: Sequence[Interval]) -> bool:
    """Whether the intervals of some two values do not meet; a value without one is a point."""
    lows = [value.mean if value.low is None else value.low for value in values]
    highs = [value.mean if value.high is None else value.high for value in values]
    return max(lows) > min(highs)


def draw_sparkline(means: Sequence[float]) -> str:
    """Numbers as blocks of eight heights, the least the lowest; equal ones are in the middle."""
    least, greatest = min(means), max(means)
    if greatest == least:
        return LEVELS[3] * len(means)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round((value - least) / (greatest - least) * top)] for value in means)
