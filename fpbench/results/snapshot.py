"""The content of a run, read once, for rankings, reports and notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from fpbench.base.argument_types import check_methods
from fpbench.base.errors import StoreError
from fpbench.base.sheet import InWords, Shown
from fpbench.base.text import show_lines
from fpbench.components.names import Status
from fpbench.results import views
from fpbench.results.leaderboard import Leaderboard
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.rows.labels import Components, name_parameters, read_components
from fpbench.results.rows.selection import read_filter, select_rows
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
        takes = views.TAKES.get(view, "attacks or audits")
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
        snapshot, view = self._snapshot(), views.check_view(view)
        results = snapshot.select(where)
        measure = by or views.RANK_BY.get(view, snapshot.rank_by)
        boards = views.make_view_boards(results, view, measure, snapshot.title, together=together)
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
