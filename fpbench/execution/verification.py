"""Some cells of a run, run again and compared with it.

To the last bit if the kernels here are those that computed the run, else within a tolerance, as
`differences` says.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fpbench.base.errors import InputError, MatrixError, StoreError
from fpbench.base.files import MATRIX_NAMES, read_matrix
from fpbench.base.toml_files import parse_toml
from fpbench.components.catalog import discover
from fpbench.components.names import FIXED, KINDS, Status
from fpbench.components.own_measures import COMPUTED, MEASURED, ModelMeasures, misplaced
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table
from fpbench.execution.engines.opening import Asked, open_engine
from fpbench.execution.runner import Runner, remaining
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Cell, Plan, make_plan
from fpbench.store.differences import Change, cell_name, environment_changes, is_time, near
from fpbench.store.environment import describe_environment, same_kernels
from fpbench.store.packing import same
from fpbench.store.results import Results
from fpbench.store.store import Store

_AUDITOR = list(KINDS).index("auditor")
_PROMISES = frozenset(name for name in ModelMeasures.__annotations__ if name.startswith("model_"))

_Place = tuple[tuple[str, ...], int]
"""Labels and seed of a cell."""


@dataclass(frozen=True)
class Checked:
    """A cell that was to be run again."""

    cell: str
    """Its labels and seed."""
    changes: tuple[Change, ...] = ()
    """Measures that differ: what the run says, and what they are here."""
    problem: str | None = None
    """Why it could not be run again."""
    same_code: bool = True
    """Whether the code and the data here are those that made it."""
    compared: tuple[str, ...] = ()
    """Measures that were compared."""
    promise_recorded: bool = True
    """Whether the run says what the model guarantees; an earlier fpbench did not record it."""
    comparable: bool = True
    """Whether the kernels here give its numbers at all."""

    @property
    def same(self) -> bool:
        """Whether it is what the run says."""
        return not self.changes and self.problem is None and self.comparable

    @property
    def wrong(self) -> bool:
        """Whether the run is not to be believed: not if other kernels may be why it differs."""
        return self.problem is not None or (self.comparable and bool(self.changes))


@dataclass(frozen=True)
class Verification:
    """What running some cells of a run again has shown."""

    path: Path
    checked: tuple[Checked, ...]
    done: int
    """Cells of the run that are done, which the sample was drawn from."""
    seed: int
    """Draws the same sample again."""
    environment: tuple[tuple[str, str, str], ...]
    """What differs of the environment: its name, then, and now."""
    exact: bool
    """Whether the same kernels computed both, so that all is compared to the last bit."""
    misplaced: tuple[str, ...] = ()
    """Measures that some rows of the run, in the sample or not, cannot have by these names."""

    @property
    def same(self) -> bool:
        """Whether all that can be compared is what the run says, and each row has its own names."""
        return not self.misplaced and not any(each.wrong for each in self.checked)

    @property
    def computed(self) -> tuple[str, ...]:
        """Compared measures that fpbench itself computed again from the components' answers."""
        return tuple(name for name in self._compared if name in COMPUTED)

    @property
    def said(self) -> tuple[str, ...]:
        """Compared measures that are the components' own words; their notes come first."""
        names = [name for name in self._compared if name not in COMPUTED]
        return tuple(sorted(names, key=MEASURED.__contains__))

    @property
    def _compared(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in self.checked for name in each.compared))


def verify(
    run: str | Path,
    sample: int = 10,
    *,
    seed: int | None = None,
    jobs: int = 1,
    tables: Mapping[str, Table] = MappingProxyType({}),
) -> Verification:
    """Run a sample of the cells of a run again, elsewhere, and compare them with it.

    Nothing of the run is changed, and none of its numbers is believed: components guess, correct,
    predict and audit again, and fpbench computes its measures from that. What components say of
    themselves, their notes included, they say again. Of times only that they are there is compared.
    Numbers are compared to the last bit if the kernels here are those that computed the run, else
    within `differences.TOLERANCE`; cells that rest on a component that is not portable are then not
    compared.

    Parameters
    ----------
    run
        The run directory.
    sample
        How many of its cells that are done; all if there are no more.
    seed
        Draws the sample; a new one each time if None.
    jobs
        Worker processes.
    tables
        Tables in memory that the run was made with.

    Raises
    ------
    StoreError
        If the directory holds no run, nothing is done, or its matrix is not there.
    """
    if sample < 1:
        raise InputError(f"sample must be 1 or more, not {sample}")
    path = Path(run)
    with Store(path) as store:
        results, then = store.results(), store.environment()
        environments = [session.environment for session in store.sessions()]
        # Who ran a matrix of more cells than is usual had allowed it.
        matrix = matrix_of(store, max(MAX_CELLS, len(results)))
    done, _ = results.finished()
    rows = np.flatnonzero(done)
    if not len(rows):
        raise StoreError(f"{path}: no cell is done: there is nothing to verify")
    if seed is None:
        seed = int(np.random.default_rng().integers(2**32))
    drawn = np.random.default_rng(seed).choice(rows, min(sample, len(rows)), replace=False)
    wanted: dict[_Place, int] = {
        (results.combinations[results.combination[row]], int(results.seeds[row])): row
        for row in np.sort(drawn).tolist()
    }
    seeds = tuple(sorted({place[1] for place in wanted}))
    again = _Again(replace(matrix, seeds=seeds), wanted.keys(), jobs, tables)
    exact = same_kernels([*environments, again.environment])
    stored = {row["cell"]: row for row in results.rows()}
    checked = tuple(
        again.check(place, results.cells[row], stored[results.cells[row]], exact)
        for place, row in wanted.items()
    )
    return Verification(
        path, checked, len(rows), seed, environment_changes(then, again.environment), exact,
        _misplaced(results),
    )  # fmt: skip


def _misplaced(results: Results) -> tuple[str, ...]:
    """Names in any of its rows that are fpbench's, or look so, and are not of such rows."""
    found: dict[str, None] = {}
    audits = np.array([bool(labels[_AUDITOR]) for labels in results.combinations], np.bool_)
    for block in results.blocks:
        for audit in np.unique(audits[results.combination[block.rows]]).tolist():
            found |= dict.fromkeys(misplaced(block.names, audit))
    return tuple(found)


def matrix_of(store: Store, max_cells: int = MAX_CELLS) -> Matrix:
    """The matrix that a run was made from, as its directory holds it.

    Raises
    ------
    StoreError
        If it is not there, or is not that of the run, in any of its profiles.
    """
    found = read_matrix(store.directory)
    if found is None:
        raise StoreError(f"{store.directory}: holds no matrix ({' or '.join(MATRIX_NAMES)})")
    file, content = found
    said = _mapping(file, content) if file.suffix == ".json" else parse_toml(content, str(file))[1]
    plain = read(said, max_cells=max_cells, origin=str(file))
    for profile in (None, *plain.profiles):
        matrix = _read(said, profile, max_cells)
        if matrix is not None and matrix.canonical() == store.matrix:
            return matrix
    raise StoreError(f"{file}: is not the matrix that the run was made from")


def _mapping(file: Path, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise StoreError(f"{file}: is not a matrix")
    return found


def _read(source: Mapping[str, Any], profile: str | None, max_cells: int) -> Matrix | None:
    try:
        return read(source, profile, max_cells=max_cells)
    except MatrixError:  # of a profile that was not meant
        return None


class _Again:
    """Cells that are run again, in a directory that is gone afterwards."""

    def __init__(self, matrix: Matrix, wanted: Any, jobs: int, tables: Mapping[str, Table]) -> None:
        catalog, home = discover(), replace(DataHome.default(), tables=dict(tables))
        whole = make_plan(matrix, catalog, home)
        self.environment = describe_environment(whole.data, catalog)
        self._planned = {place: cell for cell in whole.cells if (place := _place(cell)) in wanted}
        plan = replace(whole, cells=list(self._planned.values()))
        self._rows = self._run(plan, matrix, Asked(jobs=jobs), home)

    def _run(
        self, plan: Plan, matrix: Matrix, asked: Asked, home: DataHome
    ) -> dict[str, dict[str, Any]]:
        with (
            tempfile.TemporaryDirectory(prefix="fpbench-verify-") as place,
            open_engine(asked, home, matrix.limits, steps=remaining(plan, ())) as engine,
            Store(Path(place), create=True) as store,
        ):
            session = store.begin({}, {}, plan.cells)
            Runner(plan, store, session, engine, lambda _: None).run()
            return {row["cell"]: row for row in store.rows()}

    def check(self, place: _Place, key: str, stored: Mapping[str, Any], exact: bool) -> Checked:
        """What a cell is here, beside what the run says of it."""
        alike = same if exact else near
        labels, seed = place
        name = cell_name(dict(zip(KINDS, labels, strict=True)), seed)
        cell = self._planned.get(place)
        if cell is None:
            return Checked(name, problem="the matrix does not have it")
        row = self._rows[cell.key]
        if row["status"] != Status.DONE:
            return Checked(name, problem=f"{row['status']}: {row['reason']}")
        recorded = "model_epsilon" in stored
        left = FIXED if recorded else FIXED | _PROMISES
        names = [measure for measure in dict.fromkeys([*stored, *row]) if measure not in left]
        changes = tuple(
            Change(name, measure, stored.get(measure), row.get(measure))
            for measure in names
            if not _agree(measure, stored, row, alike)
        )
        compared = tuple(measure for measure in names if not is_time(measure))
        # Of what is portable, this plan is believed, and not the run.
        comparable = exact or cell.portable
        return Checked(name, changes, None, cell.key == key, compared, recorded, comparable)


def _agree(
    measure: str,
    stored: Mapping[str, Any],
    row: Mapping[str, Any],
    alike: Callable[[Any, Any], bool],
) -> bool:
    """Whether two rows say the same; a time is never the same twice, and both must have it."""
    if is_time(measure):
        return measure in stored and measure in row
    return alike(stored.get(measure), row.get(measure))


def _place(cell: Cell) -> _Place:
    return tuple(cell.labels.get(kind, "") for kind in KINDS), cell.seed
