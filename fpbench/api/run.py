"""Planning and running a matrix, for scripts and notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fpbench.api.saved_run import Run
from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_type, check_whole_number, to_new_directory, to_path
from fpbench.base.errors import DataError, InputError
from fpbench.base.sheet import InWords
from fpbench.base.text import show_lines
from fpbench.data.table import Table
from fpbench.execution.engines.engine import EngineRequest
from fpbench.execution.runner import Finished
from fpbench.execution.session import Session
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Cell, Plan
from fpbench.store.locks import STORE
from fpbench.store.store import Store


@dataclass(frozen=True)
class RunPlan(InWords):
    """What `fpbench.run` would do with a matrix, as `fpbench plan` prints it.

    Attributes
    ----------
    directory
        The run directory; it need not exist.
    cells
        All cells in the order of the matrix. Each has a `key`, `labels` (a dictionary: kind to
        label), a `seed`, and a `reason` why it is skipped, or None.
    done
        Keys of the cells that the run directory already has.
    skipped
        Number of skipped cells, by reason.
    steps
        Number of unique steps, by action and component (empty text: none), in execution order.
    steps_alone
        The same without sharing of steps between cells.
    seconds
        Estimated seconds on one core for the remaining steps, from times of earlier steps in the
        run directory; None if a step has not run there yet.
    warnings
        Warnings, such as data that is not the known original.
    remarks
        Notes for the reader of the results.
    """

    directory: Path
    cells: tuple[Cell, ...]
    done: frozenset[str]
    skipped: Mapping[str, int]
    steps: Mapping[tuple[str, str], int]
    steps_alone: Mapping[tuple[str, str], int]
    seconds: float | None
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def runnable(self) -> int:
        """Number of cells that are not skipped, done or not."""
        return len(self.cells) - sum(self.skipped.values())

    def __str__(self) -> str:
        """Numbers of cells to run and skipped, and why they are skipped."""
        done = f", {len(self.done)} of them done already" if self.done else ""
        skipped = (f"skipped {count}: {reason}" for reason, count in self.skipped.items())
        return show_lines(
            [f"{self.runnable} cells to run, {sum(self.skipped.values())} skipped{done}", *skipped]
        )

    __repr__ = __str__


@check_arguments
def plan(
    matrix: str | Path | Mapping[str, Any] | Matrix,
    *,
    profile: str | None = None,
    seeds: int | None = None,
    tables: Mapping[str, Table] = MappingProxyType({}),
    out: str | Path | None = None,
    max_cells: int = MAX_CELLS,
    settings: str | Sequence[str] = (),
) -> RunPlan:
    """What `fpbench.run` would do: cells, unique steps, skips with reasons, cost. Nothing is run.

    Parameters
    ----------
    matrix, profile, seeds, tables, out, max_cells, settings
        See `fpbench.run`. From `out` only finished cells and times of steps are read.

    Returns
    -------
    RunPlan
        The cells and steps that would run, and the skipped ones.

    Raises
    ------
    InputError
        If the matrix cannot be run; `DataError` if none of its data is here.
    StoreError
        If the run directory cannot be read.

    Examples
    --------
    >>> import fpbench
    >>> matrix = {
    ...     "seeds": 3,
    ...     "dataset": [{"use": "census-synthetic", "rows": 600}],
    ...     "learner": [{"use": "plain"}, {"use": "decision-tree"}],
    ...     "auditor": [{"use": "group-fairness"}],
    ... }
    >>> planned = fpbench.plan(matrix, out="not-there-yet")
    >>> planned.runnable, planned.skipped, planned.seconds
    (6, {}, None)
    >>> planned.steps["split", ""], planned.steps_alone["split", ""]
    (3, 6)
    """
    session, directory = _prepare(matrix, profile, seeds, tables, out, max_cells, settings)
    planned = session.plan
    if planned.lacking:
        raise DataError(planned.lacking)
    done: set[str] = set()
    seconds = None
    if (directory / STORE).exists():
        with Store(directory) as store:
            done = store.done() & {cell.key for cell in planned.runnable}
            means = store.timings()
        left = planned.order_steps(c.key for c in planned.runnable if c.key not in done)
        names = [planned.steps[key].name for key in left]
        if all(name in means for name in names):
            seconds = sum(means[name] for name in names)
    return RunPlan(
        directory=directory,
        cells=tuple(planned.cells),
        done=frozenset(done),
        skipped=planned.count_skipped(),
        steps=planned.count_steps(),
        steps_alone=planned.count_alone(),
        seconds=seconds,
        warnings=tuple(planned.warnings),
        remarks=tuple(planned.remarks),
    )


def _prepare(
    matrix: str | Path | Mapping[str, Any] | Matrix,
    profile: str | None,
    seeds: int | None,
    tables: Mapping[str, Table],
    out: str | Path | None,
    max_cells: int,
    settings: Sequence[str],
) -> tuple[Session, Path]:
    """A session of a matrix, and its run directory."""
    check_whole_number("max_cells", max_cells, 1)
    for name, table in tables.items():
        check_type(f"tables: {name!r}", table, Table, "a table, as `fpbench.table` makes it")
    if seeds is not None:
        check_whole_number("seeds", seeds, 1)
    if not isinstance(matrix, Matrix):
        if not isinstance(matrix, Mapping):
            matrix = to_path("matrix", matrix)
        matrix = read(matrix, profile, seeds, max_cells, settings)
    directory = to_new_directory("out", out) if out is not None else choose_directory(matrix)
    return Session.prepare(matrix, tables), directory


@check_arguments
def run(
    matrix: str | Path | Mapping[str, Any] | Matrix,
    *,
    profile: str | None = None,
    seeds: int | None = None,
    tables: Mapping[str, Table] = MappingProxyType({}),
    out: str | Path | None = None,
    jobs: int = 1,
    engine: str | None = None,
    scheduler: str | None = None,
    connect_timeout: float = 30.0,
    allow_mismatch: bool = False,
    retries: int = 0,
    fresh: bool = False,
    skip_all: bool = False,
    on_plan: Callable[[Plan, set[str]], None] | None = None,
    on_cell: Callable[[Finished], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    max_cells: int = MAX_CELLS,
    settings: str | Sequence[str] = (),
) -> Run:
    """Run the cells of a matrix that are not in its run directory yet.

    Parameters
    ----------
    matrix
        A TOML file, or a mapping of the same form.
    profile
        Name of a `[profile.NAME]` of the matrix, whose keys replace the matrix's own.
    seeds
        Number of seeds, instead of those of the matrix; a run may be continued with more.
    tables
        In-memory tables, for `use = "table"`, by name.
    out
        The run directory; by default `runs/` and the name of the file.
    jobs
        Number of worker processes.
    engine
        `inline`, `loky` or that of a package, such as `dask`; by default `inline` for one job,
        `loky` for more, and `dask` with a scheduler.
    scheduler
        Address of workers that run already: of a dask scheduler, `tcp://host:8786`.
    connect_timeout
        Seconds within which the scheduler must answer and have a worker.
    allow_mismatch
        Whether versions and code of workers may differ from this process.
    retries
        Number of retries of a failed step, unless the input is wrong.
    fresh
        Start a new run; an earlier one in the directory is moved aside, never deleted.
    skip_all
        Skip all cells if no data set of the matrix is here, instead of raising `DataError`.
    on_plan, on_cell
        Called with the plan and the keys of finished cells before anything is run; and with every
        cell after it was committed.
    stop
        Called before each step; once it returns true, running steps are finished and committed, and
        no others are started.
    max_cells
        Greatest number of cells; a larger matrix is refused before expansion.
    settings
        Choices and overrides: `learner=plain` runs the cells of that learner only, by name, label
        or pattern; `seeds=3` and `dataset.rows=500` replace values of the matrix. Commas separate
        several values.

    Raises
    ------
    InputError
        If the matrix cannot be run, or the directory has another matrix's run; `DataError` if none
        of its data is here; `EngineError` if the scheduler does not answer, or a worker lacks
        something.
    RunLostError
        If the run directory was deleted, moved or replaced during the run.
    KeyboardInterrupt
        If `stop` returned true and cells are left.

    Warns
    -----
    UserWarning
        Unless `on_plan` is given: warnings of the plan, such as data that is not the original.
    """
    request = EngineRequest(engine, jobs, scheduler, connect_timeout)
    check_whole_number("retries", retries, 0)
    session, directory = _prepare(matrix, profile, seeds, tables, out, max_cells, settings)
    if on_plan is None:  # otherwise the caller shows warnings of the plan
        for warning in session.plan.warnings:
            warnings.warn(warning, stacklevel=3)
    if session.plan.lacking and not skip_all:
        raise DataError(session.plan.lacking)
    if not (session.plan.runnable or skip_all):
        reason, *others = session.plan.count_skipped()
        more = f" ({len(others)} more reasons: fpbench plan)" if others else ""
        raise InputError(
            f"{session.matrix.origin}: nothing to run, all cells are skipped: {reason}{more}"
        )
    finished = session.run(
        directory, request, allow_mismatch=allow_mismatch, retries=retries, fresh=fresh,
        on_plan=on_plan, on_cell=on_cell, stop=stop,
    )  # fmt: skip
    return Run(directory, finished)


def choose_directory(matrix: Matrix) -> Path:
    """The default run directory: `runs/NAME`, or `runs/NAME-PROFILE`."""
    name = Path(matrix.origin).stem
    return Path("runs") / (f"{name}-{matrix.profile}" if matrix.profile else name)
