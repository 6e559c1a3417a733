"""Tables of verdicts: one by one, by statement, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from fpbench.base.text import format_number
from fpbench.cli.screen import console

if TYPE_CHECKING:
    from fpbench.results.verdicts.standings import Judged
    from fpbench.results.verdicts.verdicts import Verdict

_VERDICTS = {"matched": "green", "deviates": "red", "undecided": "yellow", "not run": "dim"}
_STANDINGS = {
    "holds": "green",
    "holds under conditions": "yellow",
    "does not hold": "red",
    "undecided": "yellow",
    "not run": "dim",
}
_MOST_EXCEPTIONS = 4
"""Of more, the table above tells."""


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """What was stated beside ours, and whether they agree."""
    from rich.markup import escape
    from rich.table import Table

    out = console.terminal()
    for said, mine in groupby(verdicts, key=lambda verdict: verdict.expectation):
        out.print()
        out.print(f"[bold]{escape(said.says)}[/] [dim]({escape(said.source)})[/]")
        tolerance = f", tolerance {said.tolerance:g}" if said.tolerance else ""
        stated = said.stated if isinstance(said.stated, str) else format_number(said.stated)
        out.print(escape(f"{said.quantity}; stated: {stated}{tolerance}"), style="dim")
        table = Table.grid(padding=(0, 2, 0, 0))
        for verdict in mine:
            colour = _VERDICTS[verdict.outcome]
            place = ", ".join(str(value) for value in verdict.per.values())
            table.add_row(
                f"  [{colour}]{verdict.outcome}[/]", escape(place), *_ours(verdict),
                f"[dim]{escape(verdict.note)}[/]",
            )  # fmt: skip
        out.print(table)
    out.print()


def show_standings(verdicts: Sequence[Verdict]) -> None:
    """Each statement in a line: whether it holds, how often, and the range of our numbers."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from fpbench.results.verdicts.standings import judged

    out = console.terminal()
    out.print("Statement by statement", style="bold")
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for name in ("statement", "", "matched", "ours"):
        right = name in ("matched", "ours")
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    for one in judged(verdicts):
        said, run = one.expectation, sum(one.counts.values())
        standing = f"[{_STANDINGS[one.standing]}]{one.standing}[/]"
        matched = f"{_matched(one)} of {run}" if run else "-"
        exceptions = f" [dim]{escape(_exceptions(one))}[/]"
        table.add_row(escape(said.says) + exceptions, standing, matched, _range(one))
    out.print(table)
    out.print()


def show_counts(counted: Iterable[tuple[str, Sequence[Verdict]]]) -> None:
    """How many verdicts of each outcome there are, by whom they are about."""
    for name, verdicts in counted:
        counts = Counter(str(verdict.outcome) for verdict in verdicts)
        said = ", ".join(f"{counts[word]} {word}" for word in _VERDICTS if counts[word])
        console.listing([(name, said)], indent=0)


def _matched(one: Judged) -> int:
    return sum(count for outcome, count in one.counts.items() if outcome == "matched")


def _exceptions(one: Judged) -> str:
    """Where a statement does not hold that holds elsewhere, if that is soon said."""
    places = [place for outcome, names in one.where.items() if outcome != "matched"
              for place in names]  # fmt: skip
    return f"(not {'; '.join(places)})" if 0 < len(places) <= _MOST_EXCEPTIONS else ""


def _range(one: Judged) -> str:
    if one.least is None or one.least == one.greatest:
        return format_number(one.least)
    return f"{format_number(one.least)} to {format_number(one.greatest)}"


def _ours(verdict: Verdict) -> tuple[str, str, str]:
    """Our number, its interval and its seeds."""
    ours = verdict.ours
    if ours is None:
        return "", "", ""
    spread = "" if ours.low is None else f"{format_number(ours.low)} to {format_number(ours.high)}"
    return format_number(ours.mean), spread, f"{ours.count} seed" + "s" * (ours.count != 1)
