"""Verification: a sample of the cells of a run is run again and compared with the run."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_whole_number, to_path
from fpbench.base.errors import MatrixError, StoreError
from fpbench.base.files import MATRIX_NAMES, read_matrix
from fpbench.base.sheet import Paged, Separator, Sheet, make_table
from fpbench.base.text import count_noun
from fpbench.base.toml_files import parse_toml
from fpbench.base.validation import validate
from fpbench.components.names import KINDS, Status
from fpbench.components.own_measures import COMPUTED, MEASURED, list_misplaced
from fpbench.data.table import Table
from fpbench.execution.engines.engine import EngineRequest
from fpbench.execution.session import Session
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.limits import Limits
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Cell, Plan
from fpbench.store.differences import (
    FEW,
    NOT_COMPARABLE,
    CellChange,
    RunPair,
    change_rows,
    count_rest,
    is_time,
    list_environment_changes,
    name_comparison,
)
from fpbench.store.environment import have_same_kernels
from fpbench.store.results import Results
from fpbench.store.store import Store


@dataclass(frozen=True)
class CheckedCell:
    """A cell of the sample."""

    cell: str
    """Its labels and seed."""
    changes: tuple[CellChange, ...] = ()
    """Measures that differ, with their values in the run and here."""
    problem: str | None = None
    """Why the cell could not be run again."""
    same_code: bool = True
    """Whether the code and the data here equal those of the cell in the run."""
    comparable: bool = True
    """Whether the kernels here can give the same numbers, see `Component.portable`."""

    @property
    def same(self) -> bool:
        """Whether the cell has the results that the run records."""
        return not self.changes and self.problem is None and self.comparable

    @property
    def wrong(self) -> bool:
        """Whether the cell contradicts the run, and other kernels cannot be the reason."""
        return self.problem is not None or (self.comparable and bool(self.changes))


@dataclass(frozen=True, repr=False)
class Verification(Paged):
    """The cells of a sample, run again and compared; prints itself as `fpbench verify` does."""

    path: Path
    checked: tuple[CheckedCell, ...]
    done: int
    """Number of cells that are done, from which the sample was drawn."""
    seed: int
    """Seed of the sample, which draws the same sample again."""
    environment: tuple[tuple[str, str, str], ...]
    """Entries of the environment that differ: name, value in the run, value here."""
    exact: bool
    """Whether the same kernels computed both: then values are compared to the last bit."""
    misplaced: tuple[str, ...] = ()
    """Names of measures, of any row of the run, that only fpbench may give to such rows."""
    contradictions: tuple[str, ...] = ()
    """How the cells of the run, of the sample or not, differ from those of its matrix."""
    compared: tuple[str, ...] = ()
    """Measures that were compared."""
    named_seeds: tuple[int, ...] = ()
    """The seeds that the matrix names, run or not."""

    @property
    def same(self) -> bool:
        """Whether no cell contradicts the run or its matrix, and no measure is misplaced."""
        wrong = self.misplaced or self.contradictions
        return not wrong and not any(each.wrong for each in self.checked)

    @property
    def computed(self) -> tuple[str, ...]:
        """Compared measures that fpbench itself computed again from the components' answers."""
        return tuple(name for name in self.compared if name in COMPUTED)

    @property
    def reported(self) -> tuple[str, ...]:
        """Compared measures that components report of themselves; their notes come first."""
        names = [name for name in self.compared if name not in COMPUTED]
        return tuple(sorted(names, key=MEASURED.__contains__))

    def page(self) -> list[Sheet | Separator]:
        """What `fpbench verify` shows."""
        page: list[Sheet | Separator] = []
        page += make_table("environment", ("", "of the run", "here"), (), self.environment)
        page += [
            Separator(f"could not be run again: {cell.cell}: {cell.problem}", "yellow")
            for cell in self.checked if cell.problem is not None
        ]  # fmt: skip
        for title, comparable in (("differs", True), ("differs, not comparable", False)):
            rows = [
                row
                for cell in self.checked if cell.comparable is comparable
                for row in change_rows(cell.changes)
            ]  # fmt: skip
            page += make_table(title, ("cell", "measure"), ("in the run", "again"), rows)
        if self.misplaced:
            names = ", ".join(map(ascii, self.misplaced[:FEW]))
            page.append(
                Separator(f"rows have measures that fpbench never gives to them: {names}", "red")
            )
            page += count_rest(len(self.misplaced) - FEW)
        page += [
            Separator(f"not as its matrix: {text}", "red") for text in self.contradictions[:FEW]
        ]
        page += count_rest(len(self.contradictions) - FEW)
        return [*page, *(Separator(text, colour) for text, colour in self._describe())]

    def _describe(self) -> Iterator[tuple[str, str | None]]:
        """Sentences on what was compared and how much is the same."""
        checked, reported = self.checked, self.reported
        if self.computed or reported:
            yield (
                (
                    f"compared: {count_noun(len(self.computed), 'measure')} that fpbench computed "
                    "again from guesses, corrections, predictions and releases, and "
                    f"{len(reported)} that components report themselves{_list_names(reported)}; "
                    "times only had to be present"
                ),
                None,
            )
        if other := sum(not cell.same_code for cell in checked):
            cells = count_noun(other, "cell")
            yield f"made by other code or data than here: {cells} of the sample", None
        incomparable = sum(not cell.comparable and cell.problem is None for cell in checked)
        if incomparable:
            yield f"{count_noun(incomparable, 'cell')} {NOT_COMPARABLE}", "yellow"
        same = sum(cell.same for cell in checked)
        yield (
            (
                f"{same} of {count_noun(len(checked) - incomparable, 'cell')} run again "
                f"{'are' if same != 1 else 'is'} the same {name_comparison(self.exact)} "
                f"({self.done:,} are done; --seed {self.seed} draws the same sample)"
            ),
            None if self.same else "red",
        )


def _list_names(names: Sequence[str]) -> str:
    """The first few names, in brackets; escaped, because a stranger may have chosen them."""
    more = [f"and {len(names) - FEW} more"] if len(names) > FEW else []
    printable = [name if name.isprintable() else ascii(name) for name in names[:FEW]]
    return f" ({', '.join([*printable, *more])})" if names else ""


@check_arguments
def verify(
    run: str | Path,
    sample: int = 10,
    *,
    seed: int | None = None,
    jobs: int = 1,
    tables: Mapping[str, Table] = MappingProxyType({}),
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> Verification:
    """Run a sample of the cells of a run again, in another directory, and compare the results.

    All cells of the run are compared with the plan of its matrix: each seed has all of them, and no
    combination is finished at some seeds only. A failed cell must fail again.

    The run is only read, and none of its numbers is trusted: components guess, correct, predict and
    audit again, and fpbench computes its measures from their answers. Components also report their
    notes again. Times only have to be present. Numbers are compared to the last bit if the kernels
    here computed the run, else within `differences.TOLERANCE`; then cells of components that are
    not portable are not compared.

    Parameters
    ----------
    run
        The run directory.
    sample
        Number of cells to draw from those that are done, and from those that failed; all if there
        are fewer.
    seed
        Seed of the sample; a new one each time if None.
    jobs
        Worker processes.
    tables
        Tables in memory that the run used.
    limits
        Limits on each step, as in `[limits]` of a matrix: `{"timeout": 600.0, "memory_limit":
        "4 GiB"}`, for a run of somebody else; the smaller of these and of the matrix's own count.

    Raises
    ------
    StoreError
        If the directory holds no run, nothing is done, or its matrix is not there.
    InputError
        If a limit is none.
    """
    check_whole_number("sample", sample, 1)
    check_whole_number("jobs", jobs, 1)
    if seed is not None:
        check_whole_number("seed", seed, 0)
    path, given_limits = to_path("run", run), validate(Limits, dict(limits), "limits")
    with Store(path) as store:
        results, then = store.results(), store.environment()
        environments = [session.environment for session in store.sessions()]
        # The user who ran a matrix of more cells than usual had allowed it.
        matrix = read_stored_matrix(store, max(MAX_CELLS, len(results)))
    done, failed = map(np.flatnonzero, results.finished())
    if not len(done):
        raise StoreError(f"{path}: no cell is done: there is nothing to verify")
    if seed is None:
        seed = int(np.random.default_rng().integers(2**32))
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(results), np.bool_)
    for each in (done, failed):
        drawn[rng.choice(each, min(sample, len(each)), replace=False)] = True
    stored = results.take(drawn)
    tightened = matrix.limits.tighten(given_limits)
    seeds = tuple(np.unique(stored.seeds).tolist())
    session = Session.prepare(replace(matrix, seeds=seeds, limits=tightened), tables)
    exact = have_same_kernels([*environments, session.environment])
    cells = {(_get_labels(cell), cell.seed): cell for cell in session.plan.cells}
    places = zip(stored.combination.tolist(), stored.seeds.tolist(), strict=True)
    planned = {
        row: cells[place] for row, (number, cell_seed) in enumerate(places)
        if (place := (stored.combinations[number], cell_seed)) in cells
    }  # fmt: skip
    again = _run_again(session, planned.values(), jobs)
    pair = RunPair(stored, again, exact=exact)
    names = dict.fromkeys([*stored.names, *again.names])
    changes: dict[int, list[CellChange]] = {row: [] for row in planned}
    for name in names:
        for number, *values in pair.find_changes(name):
            at = int(pair.done[0][number])
            changes[at].append(CellChange(pair.name_row(0, at), name, *values))
    checked = []
    for row, other in zip(pair.rows[0].tolist(), pair.rows[1].tolist(), strict=True):
        cell, name, status = planned[row], pair.name_row(0, row), str(again.statuses[other])
        problem = None if status == Status.DONE else f"{status}: {again.reasons[other]}"
        # Whether a cell is portable is read from this plan, not from the run, which may be forged.
        comparable = exact or cell.portable or problem is not None
        if stored.statuses[row] == Status.FAILED:
            if problem:  # as it should
                continue
            changes[row].append(CellChange(name, "status", Status.FAILED.value, status))
            comparable = True
        same_code = cell.key == stored.cells[row]
        checked.append(CheckedCell(name, tuple(changes[row]), problem, same_code, comparable))
    return Verification(
        path, tuple(checked), len(done), seed, list_environment_changes(then, session.environment),
        exact, _find_misplaced(results), tuple(_list_contradictions(results, session.plan)),
        tuple(name for name in names if not is_time(name)),
        tuple(matrix.seeds),
    )  # fmt: skip


def _get_labels(cell: Cell) -> tuple[str, ...]:
    return tuple(cell.labels.get(kind, "") for kind in KINDS)


def _list_contradictions(results: Results, plan: Plan) -> Iterator[str]:
    """How the cells of a run differ from those of its matrix.

    Whoever leaves out seeds of one combination chooses its mean. So all combinations of the matrix
    have all seeds that are shown, and each is finished at all of them, or at none: then it was not
    chosen yet.

    `plan`: of the matrix, for any seeds.
    """
    planned = {_get_labels(cell): cell for cell in plan.cells}
    seeds = sorted({*results.seeds.tolist()})
    rows_of: dict[tuple[str, ...], list[int]] = {labels: [] for labels in planned}
    for row, number in enumerate(results.combination.tolist()):
        rows_of.setdefault(results.combinations[number], []).append(row)
    for labels, rows in rows_of.items():
        name, cell = ", ".join(filter(None, labels)), planned.get(labels)
        counts = Counter(results.statuses[rows].tolist())
        finished = counts[Status.DONE] + counts[Status.FAILED]
        reasons = {results.reasons[row] for row in rows}
        if cell is None:
            yield f"{name}: is not in the matrix"
        elif sorted(results.seeds[rows].tolist()) != seeds:
            yield f"{name}: has {count_noun(len(rows), 'cell')}, and the run {len(seeds)} seeds"
        elif cell.reason is None and counts[Status.SKIPPED]:
            yield f"{name}: {counts[Status.SKIPPED]} of {len(rows)} cells are skipped, and run here"
        elif cell.reason is not None and finished:
            yield f"{name}: cannot be run here: {cell.reason}"
        elif cell.reason is not None and cell.portable and reasons != {cell.reason}:
            yield f"{name}: is skipped for another reason than here: {cell.reason}"
        elif finished and counts[""]:
            yield f"{name}: {counts['']} of {len(rows)} cells have not been run: finish the run"
    for measure in results.glossary.declared:
        if (own := plan.measures.get(measure.name)) and own.better != measure.better:
            yield f"measure {measure.name!r}: {own.better!r} is better, not {measure.better!r}"


def _find_misplaced(results: Results) -> tuple[str, ...]:
    """Names that fpbench gives only to other rows, and names that look like these."""
    names: dict[str, None] = {}
    audits = results.labels_of("auditor") != ""
    for block in results.blocks:
        for audit in np.unique(audits[block.rows]).tolist():
            names |= dict.fromkeys(list_misplaced(tuple(block.columns), audit))
    return tuple(names)


def read_stored_matrix(
    store: Store, max_cells: int = MAX_CELLS, seeds: Collection[int] = ()
) -> Matrix:
    """The matrix of a run, read from its directory.

    `max_cells`: greatest number of cells of the matrix. `seeds`: the seeds of the run, which choose
    between profiles that differ in nothing else.

    Raises StoreError if there is no matrix, or it is not that of the run in any of its profiles.
    """
    matrix_file = read_matrix(store.directory)
    if matrix_file is None:
        raise StoreError(f"{store.directory}: holds no matrix ({' or '.join(MATRIX_NAMES)})")
    file, content = matrix_file
    is_json = file.suffix == ".json"
    data = _read_json(file, content) if is_json else parse_toml(content, str(file))[1]
    plain = read(data, max_cells=max_cells, origin=str(file))
    alike = []
    for profile in (None, *plain.profiles):
        with suppress(MatrixError):  # of another profile than that of the run
            matrix = read(data, profile, max_cells=max_cells, origin=str(file))
            if matrix.canonical() == store.matrix:
                alike.append(matrix)
    if not alike:
        raise StoreError(f"{file}: is not the matrix that the run was made from")
    ranked_by = [matrix.rank_by for matrix in alike]
    alike = [matrix for matrix in alike if matrix.rank_by == store.rank_by]
    if not alike:
        raise StoreError(f"{file}: ranks by {ranked_by[0]!r}, and the run by {store.rank_by!r}")
    return next((matrix for matrix in alike if {*matrix.seeds} == {*seeds}), alike[0])


def _read_json(file: Path, content: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise StoreError(f"{file}: is not a matrix")
    return data


def _run_again(session: Session, cells: Iterable[Cell], jobs: int) -> Results:
    """Results of cells that are run again in a separate directory."""
    part = session.restrict(cells)
    with tempfile.TemporaryDirectory(prefix="fpbench-verify-") as directory:
        part.run(Path(directory), EngineRequest(jobs=jobs))
        with Store(Path(directory)) as store:
            return store.results()
