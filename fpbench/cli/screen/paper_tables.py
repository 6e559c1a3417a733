"""A paper's table of attacks from our rows, and what tables of measures share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fpbench.base.text import format_number
from fpbench.cli.screen import console
from fpbench.results.leaderboard import LABEL_WIDTH

if TYPE_CHECKING:
    from rich.table import Table

    from fpbench.matrix.asked_tables import Summary
    from fpbench.results.statistics.intervals import Interval
    from fpbench.results.verdicts.paper_tables import SummaryLine, SummaryRow

_SUMMARY = {
    "train_accuracy": "acc",
    "test_accuracy": "test acc",
    "train_unfairness": "unf",
    "test_unfairness": "test unf",
    "claim_tolerance": "claimed",
    "metric_right": "named",
    "initial_accuracy": "guess",
    "corrected_accuracy": "corrected",
    "gain_over_best": "over best",
    "gain": "gain",
}
"""Measures of a paper's table, and their headings."""
_LESS_TELLING = (
    "test_unfairness", "claim_tolerance", "test_accuracy", "metric_right", "gain_over_best",
    "train_unfairness", "train_accuracy",
)  # fmt: skip
"""Those that a narrow terminal does without, in this order."""


class Measured(Protocol):
    """A line of a table."""

    @property
    def measures(self) -> Mapping[str, Interval]:
        """Values by name."""


def show_summary(lines: Sequence[SummaryLine], title: str) -> None:
    """A paper's table from our rows; what all its lines share is said once, above."""
    from rich.markup import escape

    out = console.terminal()
    out.print(escape(title), style="bold")
    if not lines:
        out.print("nothing has been run", style="dim")
        return
    kinds = ["dataset", "disclosure", "adversary", "corrector"]
    asked = ["metric", *(["tolerance"] if any(line.tolerance for line in lines) else [])]
    if len({_seen(line, kinds) for line in lines}) < len(lines):
        # What learners were trained for does not tell them apart.
        kinds, asked = ["dataset", "learner", *kinds[1:]], []
    varying = [kind for kind in kinds if len({line.labels[kind] for line in lines}) > 1]
    shared = [f"{kind} {lines[0].labels[kind]}" for kind in kinds if kind not in varying]
    shared.append(over_seeds(max(line.seeds for line in lines)))
    out.print(escape(" · ".join(shared)), style="dim")
    names = [name for name in _SUMMARY if _says_something(lines, name)]
    table, taken = empty_table(), len(" .0000")
    if asked:
        table.add_column(asked[0], no_wrap=True)
        taken += max(len(asked[0]), *(len(line.metric or "none") for line in lines))
    for word in (*asked[1:], *varying):
        widest = max([len(word), *(len(line.labels.get(word, "")) for line in lines)])
        table.add_column(word, overflow="fold", min_width=min(widest, LABEL_WIDTH))
        taken += 1 + min(widest, LABEL_WIDTH)
    widths = column_widths(names, _SUMMARY, lines)
    names = fitting(names, _LESS_TELLING, out.width - taken, widths)
    for heading in (*(_SUMMARY[name] for name in names), "sd"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        target = [line.metric or "none", "" if line.tolerance is None else f"{line.tolerance:g}"]
        found = [line.measures.get(name) for name in names]
        values = [format_number(value.mean) if value else "-" for value in found]
        deviation = line.measures["gain"].deviation if "gain" in line.measures else None
        labels = [escape(line.labels[kind]) for kind in varying]
        table.add_row(*target[: len(asked)], *labels, *values, format_number(deviation))
    out.print(table)
    for said in _named(lines):
        out.print(escape(said), style="dim", soft_wrap=True)


def show_asked(asked: Summary, rows: Sequence[SummaryRow]) -> None:
    """A `[[summary]]`: a narrow terminal does without its last columns, and says so."""
    from rich.markup import escape

    out = console.terminal()
    out.print(escape(asked.title), style="bold")
    if not rows:
        out.print("nothing of it has been run", style="dim")
        return
    varying = [k for k in asked.rows if len({row.labels[k] for row in rows}) > 1] or asked.rows[-1:]
    shared = [f"{kind} {rows[0].labels[kind]}" for kind in asked.rows if kind not in varying]
    seeds = [value.count for row in rows for value in row.values if value is not None]
    shared.append(over_seeds(max(seeds, default=1)))
    out.print(escape(" · ".join(shared)), style="dim")
    table, left = empty_table(), out.width
    for kind in varying:
        widest = max(len(kind), *(len(row.labels[kind]) for row in rows))
        table.add_column(kind, overflow="fold", min_width=min(widest, LABEL_WIDTH))
        left -= 1 + min(widest, LABEL_WIDTH)
    cells = [list(map(_asked_value, row.values, row.several)) for row in rows]
    shown = 0
    for place, column in enumerate(asked.columns):
        heading = column.heading.replace("_", " ")
        left -= 1 + max(len(word) for word in (*heading.split(), *(c[place] for c in cells)))
        if left < 0:
            break
        table.add_column(heading, justify="right", overflow="fold")
        shown += 1
    for row, values in zip(rows, cells, strict=True):
        table.add_row(*(escape(row.labels[kind]) for kind in varying), *values[:shown])
    out.print(table)
    hidden = [column.heading for column in asked.columns[shown:]]
    if hidden:
        out.print(escape(f"a wider terminal also shows {', '.join(hidden)}"), style="dim")
    if any(any(row.several) for row in rows):
        out.print("several: rows of one seed say different things; `where` narrows them down",
                  style="dim")  # fmt: skip
    out.print()


def _asked_value(value: Interval | None, several: bool) -> str:
    if several:
        return "several"
    return "-" if value is None else format_number(value.mean)


def empty_table() -> Table:
    """A table without lines, in the style of all."""
    from rich import box
    from rich.table import Table

    if console.MODE.plain:
        return Table(header_style="", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    return Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)


def over_seeds(count: int) -> str:
    """What the numbers of a table are."""
    return "one seed" if count == 1 else f"means over {count} seeds"


def fitting(
    names: Sequence[str], spare: Iterable[str], width: int, widths: Mapping[str, int]
) -> list[str]:
    """The names without as many of the spare ones, the first first, as must go to fit."""
    left = list(names)
    for name in spare:
        if sum(widths[name] for name in left) <= width:
            break
        if name in left:
            left.remove(name)
    return left


def column_widths(
    names: Sequence[str], headings: Mapping[str, str], lines: Sequence[Measured], least: int = 0
) -> dict[str, int]:
    """How wide the columns of means are, each with the space before it."""
    widths = {}
    for name in names:
        shown = [format_number(line.measures[name].mean) for line in lines if name in line.measures]
        widths[name] = max(least, 1 + max(map(len, (headings.get(name, name), *shown))))
    return widths


def _seen(line: SummaryLine, kinds: list[str]) -> tuple[object, ...]:
    return line.metric, line.tolerance, *(line.labels[kind] for kind in kinds)


def _named(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """What claims name, where it is not always what the learner was trained for."""
    found: dict[str, Counter[str]] = {}
    for line in lines:
        counts = found.setdefault(line.metric or "nothing", Counter())
        for metric, share in line.claimed.items():
            counts[metric] += round(share * line.seeds)
    for trained, counts in found.items():
        if set(counts) - {trained}:
            shares = (f"{name} {n / counts.total():.0%}" for name, n in counts.most_common())
            yield f"trained for {trained}: claims name {', '.join(shares)}"


def _says_something(lines: Sequence[SummaryLine], name: str) -> bool:
    """Whether a measure is there; claims that all name the right metric are no news."""
    found = [line.measures[name].mean for line in lines if name in line.measures]
    return any(value < 1 for value in found) if name == "metric_right" else bool(found)
