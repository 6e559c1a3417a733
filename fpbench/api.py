"""What the command line does, as functions for scripts and notebooks."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fpbench.comparisons import compared
from fpbench.components import Component, Dataset
from fpbench.engines import open_engine
from fpbench.environment import describe_environment
from fpbench.errors import DataError, InputError, StoreError
from fpbench.home import DataHome
from fpbench.leaderboard import Leaderboard, rank
from fpbench.matrix import Matrix, read
from fpbench.plan import Plan
from fpbench.planner import make_plan
from fpbench.plugins import discover
from fpbench.runner import Finished, Runner
from fpbench.specs import specify
from fpbench.store import Store
from fpbench.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame


def component(kind: str, name: str, **parameters: Any) -> Component:
    """Any installed component by name.

    Parameters
    ----------
    kind
        `dataset`, `learner`, `disclosure`, `adversary`, `corrector`, `mechanism`, `policy` or
        `auditor`.
    name
        Its name, as `fpbench plugins` lists it.
    **parameters
        Its parameters, as `fpbench describe` lists them.

    Raises
    ------
    InputError
        If the kind, the name or a parameter is unknown, or a value is out of range.
    PluginError
        If the component cannot be loaded.
    """
    return specify(discover(), kind, name, parameters, f"{kind} {name!r}")[0]


def dataset(name: str, **parameters: Any) -> Table:
    """Load a dataset by name.

    Raises
    ------
    InputError
        If the name or a parameter is unknown; `DataError` if a file is missing or malformed.

    Warns
    -----
    UserWarning
        If a file is not the known original; names both checksums.
    """
    chosen, home = component("dataset", name, **parameters), DataHome.default()
    assert isinstance(chosen, Dataset)
    table = chosen.load(home)
    sums = {name: compute() for name, compute in chosen.checksums(home).items()}
    for warning in chosen.unlike(home, sums):
        warnings.warn(warning, stacklevel=2)
    return table


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path
    finished: tuple[Finished, ...] = ()
    """The cells that this session ran; empty for a run that was only loaded."""

    def rows(self) -> list[dict[str, Any]]:
        """The rows, one dictionary a cell, each beside the strongest adversary of the run."""
        with Store(self.path) as store:
            return compared(store.rows())

    def frame(self) -> DataFrame:
        """The rows: labels, seed, status, reason, seconds, and one column a measure."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def leaderboard(self, rank_by: str | None = None) -> Leaderboard:
        """The ranking of the attacks; of the audits if there are no attacks.

        Raises
        ------
        StoreError
            If no cell has been run.
        """
        boards = self.leaderboards(rank_by)
        if not boards:
            raise StoreError(f"{self.path}: no cell has been run yet")
        return boards[0]

    def leaderboards(self, rank_by: str | None = None) -> list[Leaderboard]:
        """The rankings of attacks and of audits, as far as there are any."""
        with Store(self.path) as store:
            return rank(compared(store.rows()), rank_by or store.rank_by, store.title)


def load(run_dir: str | Path) -> Run:
    """A run that was made before.

    Raises
    ------
    StoreError
        If the directory holds no run.
    """
    Store(Path(run_dir)).close()
    return Run(Path(run_dir))


def run(
    matrix: str | Path | Mapping[str, Any] | Matrix,
    *,
    profile: str | None = None,
    seeds: int | None = None,
    tables: Mapping[str, Table] = MappingProxyType({}),
    out: str | Path | None = None,
    jobs: int = 1,
    engine: str | None = None,
    fresh: bool = False,
    skip_all: bool = False,
    on_plan: Callable[[Plan, set[str]], None] | None = None,
    on_cell: Callable[[Finished], None] | None = None,
) -> Run:
    """Run what a run directory does not yet hold of a matrix.

    Parameters
    ----------
    matrix
        A TOML file, or the same as a mapping.
    profile
        Name of a `[profile.NAME]` of the matrix, whose keys replace the matrix's own.
    seeds
        How many seeds, instead of what the matrix says; a run may be continued with more.
    tables
        Tables in memory, for `use = "table"` with `name`.
    out
        The run directory; by default `runs/` and the name of the file.
    jobs
        Worker processes.
    engine
        `inline` or `loky`; by default the first for one job and the second for more.
    fresh
        Start anew; a run that is there is moved aside, never deleted.
    skip_all
        Whether it is fine that no dataset of the matrix is here: all cells are skipped then.
    on_plan, on_cell
        Called with the plan and the keys of the cells that are already done, before anything is
        run; and with every cell after it has been committed.

    Raises
    ------
    InputError
        If the matrix cannot be run as it stands, or the directory holds another matrix's run;
        `DataError` if none of its data is here.

    Warns
    -----
    UserWarning
        Unless `on_plan` is given: what is odd in the plan, such as data that is not the original.
    """
    if not isinstance(matrix, Matrix):
        matrix = read(matrix, profile, seeds)
    if not isinstance(tables, Mapping):
        raise InputError("tables must be a dictionary: tables={'NAME': fpbench.table(...)}")
    catalog, home = discover(), replace(DataHome.default(), tables=dict(tables))
    plan = make_plan(matrix, catalog, home)
    if on_plan is None:  # or whoever asked for the plan shows them
        for warning in plan.warnings:
            warnings.warn(warning, stacklevel=2)
    if plan.lacking and not skip_all:
        raise DataError(plan.lacking)
    directory = Path(out) if out is not None else default_directory(matrix)
    if fresh:
        _move_aside(directory)
    finished: list[Finished] = []

    def report(cell: Finished) -> None:
        finished.append(cell)
        if on_cell is not None:
            on_cell(cell)

    jobs = min(jobs, max(len(plan.steps), 1))  # a worker without a step would only cost memory
    with open_engine(engine, jobs) as executor, Store(directory, create=True) as store:
        _check_same(store, matrix)
        environment = describe_environment(plan.data, catalog)
        about = {
            "matrix": matrix.canonical(), "title": matrix.title, "rank_by": matrix.rank_by,
        }  # fmt: skip
        session = store.begin(about, environment, plan.cells)
        (directory / matrix.file_name).write_text(matrix.text, encoding="utf-8")
        text = json.dumps(environment, indent=2)
        (directory / "environment.json").write_text(text + "\n", encoding="utf-8")
        if on_plan is not None:
            on_plan(plan, store.done())
        # Twice as many steps as workers, so that none waits for the next to be sent.
        at_once = 1 if jobs == 1 else 2 * jobs
        Runner(plan, store, session, executor, at_once, home, report).run()
    return Run(directory, tuple(finished))


def default_directory(matrix: Matrix) -> Path:
    """Where a matrix is run if nobody says where: `runs/NAME`, or `runs/NAME-PROFILE`."""
    name = Path(matrix.origin).stem
    return Path("runs") / (f"{name}-{matrix.profile}" if matrix.profile else name)


def _check_same(store: Store, matrix: Matrix) -> None:
    if store.matrix not in (None, matrix.canonical()):
        title = f" ({store.title!r})" if store.title else ""
        raise StoreError(
            f"{store.directory}: was made by another matrix{title} than {matrix.origin}; choose "
            "another directory with --out, or move this one aside with --fresh"
        )


def _move_aside(directory: Path) -> None:
    if not directory.exists():
        return
    number = 1
    while (aside := directory.with_name(f"{directory.name}.{number}")).exists():
        number += 1
    shutil.move(directory, aside)


__all__ = ["Run", "component", "dataset", "load", "run"]
