"""Output of plans, merges, comparisons and verifications of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench.base.sheet import Paged, Separator, make_table
from fpbench.base.text import count_noun
from fpbench.cli.screen import console
from fpbench.cli.screen.console import show_line, show_sheet
from fpbench.components.names import Status

if TYPE_CHECKING:
    from fpbench.api.run import RunPlan
    from fpbench.store.merging import Merged


def show_plan(plan: RunPlan) -> None:
    """Show what would run: cells, unique steps, steps without sharing, and skips."""
    console.warn(plan.warnings)
    show_line(str(plan).partition("\n")[0])
    rows = [(" ".join(step), count, plan.steps_alone[step]) for step, count in plan.steps.items()]
    rows.append(("all", sum(plan.steps.values()), sum(plan.steps_alone.values())))
    (table,) = make_table(
        "", ("step",), ("unique", "without sharing"),
        [(step, f"{count:,}", f"{alone:,}") for step, count, alone in rows],
    )  # fmt: skip
    show_sheet(table)
    show_skipped(plan.skipped)
    for remark in plan.remarks:
        show_line(f"note: {remark}")
    if plan.seconds is not None:
        show_line(
            f"about {format_duration(plan.seconds)} of work left, from the times of earlier steps"
        )
    elif plan.runnable > len(plan.done):
        show_line("time: unknown on a first run")


def show_skipped(skipped: Mapping[str, int]) -> None:
    """Show the reasons why cells are skipped, each with the number of cells."""
    for reason, count in skipped.items():
        show_line(f"skipped {count}: {reason}", console.COLOURS[Status.SKIPPED])


def format_duration(seconds: float) -> str:
    """A duration in words: 40 s, 3 min, 2.5 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def show_merged(merged: Merged, runs: int) -> None:
    """Show the contents of a merged run."""
    counts = [
        f"{merged.counts[status]:,} {status or 'not run yet'}"
        for status in (*Status, "")
        if merged.counts.get(status)
    ]
    show_line(
        f"merged {runs} runs of {count_noun(merged.sessions, 'session')}: {', '.join(counts)}"
    )
    show_line(f"run directory: {merged.path}")


def read_unshown(runs: Iterable[Path]) -> dict[Path, tuple[int, ...]]:
    """The seeds of each run, as `warn_unshown` takes them."""
    from fpbench.store.store import Store

    unshown = {}
    for run in runs:
        with Store(run) as store:
            unshown[run] = store.unshown_seeds
    return unshown


def warn_unshown(unshown: Mapping[Path, tuple[int, ...]]) -> None:
    """Warn of results that are left out because the latest session of a run had fewer seeds."""
    for run, seeds in unshown.items():
        if seeds:
            few = ", ".join(map(str, seeds[:5])) + (", ..." if len(seeds) > 5 else "")
            console.warn([
                f"{run}: results of {count_noun(len(seeds), 'seed')} ({few}) are left out, which "
                "the latest `fpbench run` did not choose; run it with all seeds, and nothing is "
                "computed again"
            ])  # fmt: skip


def show_page(page: Paged) -> None:
    """Show the differences between two runs, or the results of running cells again."""
    for part in page.page():
        if isinstance(part, Separator):
            show_line(part.text, part.colour)
        else:
            show_sheet(part)
