"""The content of a run, read once, and its views: what is ranked of it.

A view ranks the components of some kinds by their means over all settings of the others; defences
are ranked by the strongest attack on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from fpbench.base.argument_types import check_methods
from fpbench.base.errors import InputError, StoreError, suggest_name
from fpbench.base.sheet import InWords, Shown
from fpbench.base.text import show_lines
from fpbench.components.names import KINDS, Status
from fpbench.results.defences import rank_defences
from fpbench.results.leaderboard import Leaderboard
from fpbench.results.published_reports import REPORT_RANKING, rank_reports
from fpbench.results.ranking import (
    check_measured,
    choose_measure,
    list_left_out,
    make_board,
    name_measure,
    part_lines,
    rank,
)
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.rows.labels import Components, name_parameters, read_components
from fpbench.results.rows.lines import Tallies, describe_aspects, pool
from fpbench.results.rows.selection import (
    match_kind,
    read_filter,
    select_rows,
    split_by_dataset,
    take_common_lines,
)
from fpbench.store.results import Results
from fpbench.store.store import Store


class SavedRun(Protocol):
    """A run on disk, such as `fpbench.Run`."""

    @property
    def path(self) -> Path:
        """The run directory."""


@check_methods
class Ranked(ABC):
    """Base class of what can be ranked: a run on disk, and the content of one."""

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """The content to rank."""

    def leaderboard(
        self,
        by: str | None = None,
        *,
        view: str = "combinations",
        where: str | Iterable[str] = (),
        together: bool = False,
    ) -> Leaderboard:
        """The first leaderboard: of the attacks, or of the audits if there are none.

        Parameters
        ----------
        by, view, where, together
            As for `leaderboards`.

        Raises
        ------
        StoreError
            If no cell was run, or the view has nothing to rank.
        """
        snapshot = self._snapshot()
        boards = snapshot.leaderboards(by, view=view, where=where, together=together)
        if boards:
            return boards[0]
        done, failed = snapshot.results.finished()
        if not (done | failed).any():
            raise StoreError(f"{snapshot.path}: no cell has been run yet")
        takes = TAKES.get(view, "attacks or audits")
        raise StoreError(f"{snapshot.path}: has no results for the view {view!r}: it takes {takes}")

    def leaderboards(
        self,
        by: str | None = None,
        *,
        view: str = "combinations",
        where: str | Iterable[str] = (),
        together: bool = False,
    ) -> Shown[Leaderboard]:
        """The leaderboards of a view, possibly none.

        Parameters
        ----------
        by
            The measure to rank by; by default that of the matrix, `advantage` for `defences` and
            `rate_error` for `reports`.
        view
            `combinations` (of attacks and of audits), `attacks`, `defences`, `reports` or `audits`.
        where
            One or several filters for rows, such as `learner=pate*` or `epsilon<=1`.
        together
            Whether to rank incomparable lines together; each leaderboard then has a note.

        Raises
        ------
        InputError
            If the view, the measure or a filter is unknown; with the nearest name.
        """
        snapshot, view = self._snapshot(), check_view(view)
        results = snapshot.select(where)
        measure = by or RANK_BY.get(view, snapshot.rank_by)
        boards = make_view_boards(results, view, measure, snapshot.title, together=together)
        more = filter(None, (_count_missing(results), snapshot.describe_unshown()))
        if boards:
            boards[0] = replace(boards[0], notes=(*boards[0].notes, *more))
        settings = name_parameters(snapshot.components)
        return Shown(replace(board, settings=settings) for board in boards)

    def labels(self, kind: str, where: str | Iterable[str] = ()) -> list[str]:
        """The labels of a kind in rows that pass filters, in the order of the plan."""
        return list(dict.fromkeys(self._snapshot().select(where).values(kind)))


@check_methods
@dataclass(frozen=True)
class Snapshot(Ranked, InWords):
    """The content of a run when its directory was opened; read once."""

    path: Path
    title: str
    """Title of the matrix."""
    rank_by: str
    """The measure that the matrix ranks by."""
    results: Results
    """All rows, with measures that compare each with the strongest adversary of the run."""
    matrix: str | None = None
    """The matrix as `Store.matrix` gives it."""
    unshown_seeds: tuple[int, ...] = ()
    """As `Store.unshown_seeds`."""

    def __str__(self) -> str:
        """The run and its number of results."""
        return show_lines([f"{self.title or self.path.name} ({self.path}): {self.results}"])

    __repr__ = __str__

    def _snapshot(self) -> Snapshot:
        return self

    @cached_property
    def components(self) -> Components:
        """The components of the run by kind and label, with the parameters of the matrix."""
        return read_components(self.matrix)

    def select(self, where: str | Iterable[str]) -> Results:
        """The rows that pass filters, or one filter."""
        filters = [where] if isinstance(where, str) else where
        return select_rows(self.results, [read_filter(text) for text in filters])

    def describe_unshown(self) -> str:
        """A note on seeds that the run does not show, and how to show them; empty without any."""
        if not self.unshown_seeds:
            return ""
        shown = {*self.results.seeds.tolist()}
        held = sorted(shown | {*self.unshown_seeds})
        all_of_them = f"--seeds {len(held)}"
        if held != [*range(len(held))]:
            all_of_them = f"-s seeds={','.join(map(str, held))}"
        return (
            f"{len(shown)} of the {len(held)} seeds that were run are shown and counted; "
            f"`fpbench run MATRIX {all_of_them}` shows all"
        )


def read_snapshot(store: Store, *, keys: bool = True) -> Snapshot:
    """The content of an open store."""
    results = add_comparisons(store.results(keys=keys))
    return Snapshot(
        store.directory, store.title, store.rank_by, results, store.matrix, store.unshown_seeds
    )


def _count_missing(results: Results) -> str:
    """A note on the number of cells without a result; empty if all have one."""
    done, failed = results.finished()
    if (done | failed).all():
        return ""
    counts = Counter(results.statuses.tolist())
    skipped, waiting = counts[Status.SKIPPED], counts[""]
    parts = [f"{skipped:,} of {len(results):,} cells skipped"] if skipped else []
    parts += [f"{waiting:,} of {len(results):,} cells not run yet"] if waiting else []
    return ", ".join(parts)


_POOLED = {
    "attacks": ("disclosure", "adversary", "corrector"),
    "audits": ("mechanism", "policy"),
}
"""The kinds whose labels lines of pooled views differ in."""
_NAMED = 3
"""Greatest number of lines that are named; more are counted."""
VIEWS = {
    "combinations": "every combination of components",
    "attacks": "disclosures, adversaries and correctors, averaged over learners",
    "defences": "learners by advantage: accuracy of the best attack minus that of always guessing "
    "the largest group",
    "reports": "fairness reports, by the error of their rates, beside what they give away",
    "audits": "mechanisms and policies, by the error of audits that use them",
}
"""Views by name, with what they rank."""


TAKES = {
    "attacks": "attacks",
    "defences": "attacks",
    "reports": "the disclosure `report`",
    "audits": "audits with a mechanism",
}
"""Needs of views that some runs do not meet."""
RANK_BY = {"defences": "advantage", "reports": REPORT_RANKING}
"""The default measures of views that do not rank by the matrix's measure."""


def check_view(name: str) -> str:
    """The view of a name, in British or American spelling.

    Raises InputError if there is none; names the nearest.
    """
    name = "defences" if name == "defenses" else name
    if name not in VIEWS:
        raise InputError(f"unknown view {name!r}; {suggest_name(name, VIEWS)}")
    return name


def make_view_boards(
    results: Results, name: str, rank_by: str, title: str = "", *, together: bool = False
) -> list[Leaderboard]:
    """The leaderboards of a view; none if the run has nothing of the kind.

    `name`: one of `VIEWS`. `rank_by`: the measure to rank by, as in `rank`; see `RANK_BY`.
    `together`: whether to rank together lines that are not comparable.

    Raises InputError if the view or the measure is unknown.
    """
    name = check_view(name)
    if name == "combinations":
        return rank(results, rank_by, title, together=together)
    if name == "reports":
        return rank_reports(results, rank_by, title)
    if name == "defences":
        return rank_defences(results, rank_by, title)
    return _make_pooled_view(results, name, rank_by, title, together=together)


def _make_pooled_view(
    results: Results, name: str, rank_by: str, title: str, *, together: bool
) -> list[Leaderboard]:
    keep = _POOLED[name]
    results = results.take(match_kind(results, "mechanism" if name == "audits" else "adversary"))
    tally = Tallies(results)
    lines = list(range(len(tally)))
    if not lines:
        return []
    names = tally.names(lines)
    rank_by = name_measure(results.glossary, rank_by, names)
    by = choose_measure(results.glossary, rank_by, names)
    boards = []

    def add(scope: str, rows: Results, apart: tuple[str, ...], notes: Sequence[str]) -> None:
        mean = pool(rows, keep)
        tally = Tallies(mean.results)
        numbers = range(len(tally))
        remarks = [_tell_settings(mean.settings, mean.kinds)] if mean.settings > 1 else []
        remarks += [*list_left_out(mean), *Tallies(rows).describe_seeds()]
        if not mean.settings:
            remarks = [
                "nothing is ranked: lines share no setting, so their means are not comparable"
            ]
        boards.append(make_board(
            tally, numbers, tally.list_used(keep, numbers), by, title, scope=scope, apart=apart,
            notes=(*notes, *remarks), view=name, unranked=not mean.settings,
        ))  # fmt: skip

    for apart, notes, mine in part_lines(
        tally, describe_aspects(tally), lines, by, together=together
    ):
        part = results.take(np.isin(tally.line, mine))
        overall, *own = split_by_dataset(part)
        if own:  # a mean over all data sets compares only lines that all of them have
            rows, lacking = take_common_lines(overall[1], keep)
            add(overall[0], rows, apart, (*notes, *_list_lacking(lacking)))
        for scope, rows in own or [overall]:
            add(scope, rows, apart, notes)
    check_measured(results.glossary, rank_by, names, boards)
    return [ready for ready in boards if ready.lines]


def _list_lacking(lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    named = ", ".join(lines) if len(lines) <= _NAMED else f"{len(lines)} lines"
    return [f"left out, as not run on every data set: {named}"]


def _tell_settings(settings: int, kinds: Sequence[str]) -> str:
    """The number of settings of other kinds that a line averages, in words."""
    if len(kinds) == 1 and kinds[0] in KINDS:
        return f"averaged over {settings} {KINDS[kinds[0]].plural}"
    return f"averaged over {settings} settings ({' x '.join(kinds)})"
