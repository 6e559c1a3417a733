"""Runs of one matrix from many machines, as one run. Conflicts are never settled silently."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value, to_new_directory, to_path
from fpbench.base.errors import StoreError
from fpbench.base.files import read_matrix
from fpbench.components.names import Status
from fpbench.components.records import MeasureValues
from fpbench.matrix.plan import Cell
from fpbench.store.differences import find_different, is_time, name_cell
from fpbench.store.store import UNSHOWN_SEEDS, Store
from fpbench.store.tables import PAGE, CellRecord, SessionRecord

_MOST_NAMED = 10
"""Greatest number of conflicts that are named; all are counted."""

_Place = tuple[tuple[tuple[str, str], ...], int]
"""Labels and seed of a cell."""


@dataclass(frozen=True)
class Merged:
    """The result of a merge."""

    path: Path
    counts: Mapping[str, int]
    """Number of cells by status; of cells not run yet, under the empty text."""
    sessions: int


@check_arguments
def merge(runs: Sequence[str | Path], out: str | Path) -> Merged:
    """Merge runs of one matrix, with different seeds or cells, from many machines.

    If one run did a cell and another skipped it or failed, the done result counts. The runs
    themselves stay unchanged.

    Parameters
    ----------
    runs
        Two or more run directories.
    out
        The new run directory, missing or empty.

    Raises
    ------
    StoreError
        If they are not runs of one matrix, or conflict: the same cell was made by other code or
        data, or measured differently. Every conflict is counted, the first ten are named, and
        nothing is written.
    """
    if isinstance(runs, str | bytes) or not isinstance(runs, Iterable):
        raise StoreError(f"runs must be a list of run directories, not {show_value(runs)}")
    paths, target = [to_path("each of runs", run) for run in runs], to_new_directory("out", out)
    if len(paths) < 2:
        raise StoreError("merge needs two runs or more")
    twice = [path for path, n in Counter(p.resolve() for p in paths).items() if n > 1]
    if twice:
        raise StoreError(f"{twice[0]}: is named twice")
    return _write_whole(paths, target)


def copy(run: Path, target: Path) -> Merged:
    """Copy what a run has committed to a new run directory, and no other file.

    Raises StoreError if there is no run, the target is neither missing nor empty, or it cannot be
    written.
    """
    return _write_whole([run], target)


def _write_whole(runs: Sequence[Path], target: Path) -> Merged:
    """Write the runs as one to the target, whole or not at all."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target}: already exists; name a new directory with --out")
    with ExitStack() as stack:
        stores = [stack.enter_context(Store(path)) for path in runs]
        _check_same(stores)
        merger = _Merger(stores)
        place = _follow_links(target)
        part = _make_directory(place)
        try:
            merged = merger.write(part, target)
            if place.exists():
                place.rmdir()
            part.rename(place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return merged


def _follow_links(target: Path) -> Path:
    """The target of a link, which need not exist yet: a link cannot be renamed over."""
    try:
        led = target.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself, before Python 3.13
        led = target
    if led.is_symlink():
        raise StoreError(f"{target}: is a link that leads nowhere")
    return led


def _make_directory(target: Path) -> Path:
    """A directory beside the target, so that a failed merge leaves no half run there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        part.chmod(0o755)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror or error}") from error
    return part


def _check_same(stores: Sequence[Store]) -> None:
    first = stores[0]
    for store in stores:
        if store.matrix != first.matrix or store.matrix is None:
            one, other = (f" ({s.title!r})" if s.title else "" for s in (store, first))
            raise StoreError(
                f"{store.directory}: is of another matrix{one} than {first.directory}{other}"
            )


class _Merger:
    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = stores
        self._conflicts: list[str] = []
        self._count = 0
        self._cells: dict[_Place, tuple[Cell, int]] = {}
        self._done: dict[str, tuple[int, MeasureValues]] = {}
        """The first run of cells that several runs have done, and its measures."""

    def write(self, directory: Path, target: Path) -> Merged:
        """Write the merged run to a directory, which the caller moves to the target."""
        first = self._stores[0]
        matrix = read_matrix(first.directory)
        for number, store in enumerate(self._stores):
            for cell in store.cells():
                self._add_planned(cell, number)
        with Store(directory, create=True) as store:
            with store.writing():
                about = first.about()
                if len(self._stores) > 1:  # another run may have what one left out
                    about[UNSHOWN_SEEDS] = ""
                store.plan(about, self._iterate_in_order())
                sessions = self._add_sessions(store)
                self._add_results(store, sessions)
                self._check()
            for source in self._stores:
                store.add_timings(source.spent())
            latest = store.environment()
            store.write("environment.json", json.dumps(latest, indent=2) + "\n")
            counts = Counter(store.results(keys=False).statuses.tolist())
            if matrix is not None:
                store.write(matrix[0].name, matrix[1])
        return Merged(target, dict(counts), len(sessions))

    def _add_planned(self, cell: Cell, number: int) -> None:
        place = tuple(sorted(cell.labels.items())), cell.seed
        known, other = self._cells.setdefault(place, (cell, number))
        if cell.reason is None and known.reason is not None:
            self._cells[place] = cell, number  # what can be run here is not skipped
        elif cell.reason is None and known.key != cell.key:
            where = " and ".join(str(self._stores[i].directory) for i in (other, number))
            self._note(cell, f"made by other code, data or versions in {where}")

    def _iterate_in_order(self) -> Iterator[Cell]:
        """The cells in the order of a plan: combinations as in the first run, seeds ascending."""
        order: dict[Any, list[Cell]] = {}
        for (labels, _), (cell, _) in self._cells.items():
            order.setdefault(labels, []).append(cell)
        for cells in order.values():
            yield from sorted(cells, key=lambda cell: cell.seed)

    def _add_sessions(self, store: Store) -> dict[tuple[int, int], int]:
        """New numbers of the sessions of all runs, by run and number; the latest is last."""
        sessions: list[tuple[float, int, SessionRecord]] = [
            (session.started, number, session)
            for number, source in enumerate(self._stores)
            for session in source.sessions()
        ]
        return {
            (number, session.number): store.add_session(session.started, session.environment)
            for _, number, session in sorted(sessions, key=lambda each: each[:2])
        }

    def _add_results(self, store: Store, sessions: dict[tuple[int, int], int]) -> None:
        """Add the results of all runs: the done result of each cell, or else its first failure."""
        often = Counter(key for source in self._stores for key in source.done())
        failed: dict[str, CellRecord] = {}
        written = 0
        for number, source in enumerate(self._stores):
            for record in source.records():
                session = sessions.get((number, record.session))
                if session is None:
                    raise StoreError(
                        f"{source.directory}: cell {record.key} is of session no. "
                        f"{record.session}, which is not there"
                    )
                if record.status is not Status.DONE:
                    if not often[record.key]:
                        failed.setdefault(record.key, record._replace(session=session))
                elif often[record.key] == 1 or self._is_first(record, number):
                    store.put(record._replace(session=session))
                    written += 1
                    if written % PAGE == 0:
                        store.tidy()
        store.tidy()
        for record in failed.values():
            store.put(record)

    def _is_first(self, record: CellRecord, number: int) -> bool:
        """Whether no earlier run did a cell that several have done."""
        measures = {k: v for k, v in record.measures.items() if not is_time(k)}
        other, known = self._done.setdefault(record.key, (number, measures))
        if different := find_different(known, measures):
            cell = next((c for c, _ in self._cells.values() if c.key == record.key), record.key)
            one, two = (repr(each.get(different[0])) for each in (known, measures))
            here, there = (self._stores[i].directory for i in (other, number))
            self._note(cell, f"{different[0]} is {one} in {here} and {two} in {there}")
        return other == number

    def _note(self, cell: Cell | str, conflict: str) -> None:
        self._count += 1
        if len(self._conflicts) < _MOST_NAMED:
            name = cell if isinstance(cell, str) else name_cell(cell.labels, cell.seed)
            self._conflicts.append(f"{name}: {conflict}")

    def _check(self) -> None:
        if self._count:
            more = self._count - len(self._conflicts)
            lines = [*self._conflicts, *([f"and {more} more"] if more else [])]
            cells = "1 cell is" if self._count == 1 else f"{self._count} cells are"
            raise StoreError(
                f"cannot be merged: {cells} not the same in all runs (`fpbench compare "
                "--cells` shows more):" + "".join(f"\n  {line}" for line in lines)
            )
