"""A run on disk, as scripts and notebooks use it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_path
from fpbench.base.errors import FpbenchError, StoreError
from fpbench.components.catalog import discover
from fpbench.components.measures import Measure
from fpbench.components.names import Status
from fpbench.execution.runner import Finished
from fpbench.results import views
from fpbench.results.leaderboard import Leaderboard, sheet
from fpbench.results.pareto import Front, pareto
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.rows.labels import Components, name_parameters, read_components
from fpbench.results.rows.selection import read_filter, select_rows
from fpbench.results.sheet import html
from fpbench.store.results import Results
from fpbench.store.store import Store

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Snapshot:
    """The content of a run when its directory was opened; read once."""

    path: Path
    title: str
    """Title of the matrix."""
    rank_by: str
    """The measure that the matrix ranks by."""
    results: Results
    """All rows, each beside the strongest adversary of the run."""
    matrix: str | None = None
    """The matrix as `Store.matrix` gives it."""

    @cached_property
    def components(self) -> Components:
        """The components of the run by kind and label, with the parameters of the matrix."""
        return read_components(self.matrix)

    def select(self, where: Iterable[str]) -> Results:
        """The rows that pass filters."""
        return select_rows(self.results, [read_filter(text) for text in where])

    def leaderboard(self, rank_by: str | None = None, **options: Any) -> Leaderboard:
        """The first of `leaderboards`; see `Run.leaderboard`."""
        boards = self.leaderboards(rank_by, **options)
        if boards:
            return boards[0]
        done, failed = self.results.finished()
        if not (done | failed).any():
            raise StoreError(f"{self.path}: no cell has been run yet")
        view = options.get("view", "combinations")
        raise StoreError(f"{self.path}: has no results for the view {view!r}")

    def leaderboards(
        self,
        rank_by: str | None = None,
        *,
        view: str = "combinations",
        where: Iterable[str] = (),
        together: bool = False,
    ) -> list[Leaderboard]:
        """The rankings of a view; see `Run.leaderboards`."""
        results = self.select(where)
        view = views.check_view(view)
        by = rank_by or views.RANK_BY.get(view, self.rank_by)
        boards = views.view(results, view, by, self.title, together=together)
        if boards and (missing := _missing(results)):
            boards[0] = replace(boards[0], notes=(*boards[0].notes, missing))
        settings = name_parameters(self.components)
        return [replace(board, settings=settings) for board in boards]

    def labels(self, kind: str, where: Iterable[str] = ()) -> list[str]:
        """The labels of a kind in rows that pass filters, in the order of the plan."""
        return list(dict.fromkeys(self.select(where).values(kind)))

    def pareto(self, where: Iterable[str] = ()) -> list[Front]:
        """The Pareto fronts; see `Run.pareto`."""
        return pareto(self.select(where), self.title)


def read_snapshot(store: Store, *, keys: bool = True) -> Snapshot:
    """What an open store holds."""
    results = store.results(keys=keys)
    unrecorded = store.glossary is None
    if unrecorded or store.lacks_figures:
        add = results.glossary.declaring if unrecorded else results.glossary.complete
        results = replace(results, glossary=add(_installed_measures(store.matrix or "")))
    return Snapshot(
        store.directory, store.title, store.rank_by, add_comparisons(results), store.matrix
    )


def _installed_measures(matrix: str) -> Iterator[Measure]:
    """What the components of a run declare, as far as they are installed.

    Parameters
    ----------
    matrix
        Canonical JSON of the matrix, of a run of an earlier fpbench, which did not record it.
    """
    catalog = discover()
    for kind, name in catalog.entries:
        if json.dumps(name) in matrix:
            with suppress(FpbenchError):
                for measure in catalog.component(kind, name).measures:
                    yield replace(measure, source=f"{kind} {name}")


@dataclass(frozen=True)
class Run:
    """A run on disk.

    Attributes
    ----------
    path
        The run directory.
    finished
        The cells that this session ran; empty for a run that was only loaded.
    """

    path: Path
    finished: tuple[Finished, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))  # a text is welcome, too

    def rows(self) -> list[dict[str, Any]]:
        """The rows, one dictionary a cell, each beside the strongest adversary of the run."""
        return self.results().rows()

    def read(self, *, keys: bool = True) -> Snapshot:
        """What the run holds now: all questions to a snapshot are answered from one reading.

        Parameters
        ----------
        keys
            Whether to read the keys of cells; without them, keys are empty and reading is faster.
        """
        with Store(self.path) as store:
            return read_snapshot(store, keys=keys)

    def results(self, where: Iterable[str] | None = None, *, keys: bool = True) -> Results:
        """The rows as columns, which is how a million of them are read.

        Parameters
        ----------
        where
            Filters that rows must pass, such as `learner=pate*`; all rows if None.
        keys
            As of `read`.
        """
        return self.read(keys=keys).select(where or ())

    @property
    def rank_by(self) -> str:
        """The measure that the matrix ranks by."""
        with Store(self.path) as store:
            return store.rank_by

    def frame(self) -> DataFrame:
        """The rows: labels, seed, status, reason, seconds, and one column a measure."""
        return self.results().frame()

    def leaderboard(self, rank_by: str | None = None, **options: Any) -> Leaderboard:
        """The first of `leaderboards`: of the attacks, or of the audits if there are none.

        Raises
        ------
        StoreError
            If no cell has been run.
        """
        return self.read(keys=False).leaderboard(rank_by, **options)

    def leaderboards(
        self,
        rank_by: str | None = None,
        *,
        view: str = "combinations",
        where: Iterable[str] = (),
        together: bool = False,
    ) -> list[Leaderboard]:
        """The rankings of a view, as far as there are any.

        Parameters
        ----------
        rank_by
            The measure to rank by; by default what the matrix says, `advantage` for defences,
            `gain` for `paper` and `rate_error` for `reports`.
        view
            `combinations` (of attacks and of audits), `paper` (the same by the paper's measures),
            `attacks`, `correctors`, `defences`, `mechanisms` or `reports`.
        where
            Filters that rows must pass, such as `learner=pate*` or `epsilon<=1`.
        together
            Whether to rank together what is not comparable; each leaderboard notes it then.

        Raises
        ------
        InputError
            If the view, the measure or a filter makes no sense; names the nearest.
        """
        return self.read(keys=False).leaderboards(
            rank_by, view=view, where=where, together=together
        )

    def labels(self, kind: str, where: Iterable[str] = ()) -> list[str]:
        """The labels of a kind in rows that pass filters, in the order of the plan."""
        return self.read(keys=False).labels(kind, where)

    def pareto(self, where: Iterable[str] = ()) -> list[Front]:
        """Of each data set the learners that no other beats at once in accuracy, unfairness, leak
        and epsilon, and those that are beaten.
        """  # noqa: D205
        return self.read(keys=False).pareto(where)

    def __str__(self) -> str:
        """What the run says, a paragraph for each data set; or how much of it is done."""
        try:
            snapshot = self.read(keys=False)
            boards = [board for board in snapshot.leaderboards() if board.sentences]
        except FpbenchError as error:  # nobody expects one of print()
            return str(error)
        lines = [f"{snapshot.title or self.path.name} ({self.path})"]
        for board in boards:
            lines.append(
                " ".join(filter(None, [board.scope and f"{board.scope}:", *board.sentences]))
            )
        if not boards:
            done, _ = snapshot.results.finished()
            lines.append(f"{int(done.sum()):,} of {len(done):,} cells done")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the leaderboards, and what failed."""
        boards = self.leaderboards()
        if not boards:
            return f"<p>{escape(str(self.path))}: no cell has been run yet</p>"
        return html([sheet(board) for board in boards])


def _missing(results: Results) -> str:
    """How many cells have no result, so that nobody takes the others for all."""
    done, failed = results.finished()
    if (done | failed).all():
        return ""
    counts = Counter(results.statuses)
    skipped, waiting = counts[Status.SKIPPED], counts[""]
    parts = [f"{skipped:,} of {len(results):,} cells skipped"] if skipped else []
    parts += [f"{waiting:,} of {len(results):,} cells not run yet"] if waiting else []
    return ", ".join(parts)


@check_arguments
def load(run_dir: str | Path) -> Run:
    """A run that was made before.

    Parameters
    ----------
    run_dir
        Made by `fpbench run` or `fpbench.run`.

    Raises
    ------
    StoreError
        If the directory holds no run; `InputError` if it is no path.
    """
    path = to_path("run_dir", run_dir)
    Store(path).close()
    return Run(path)
