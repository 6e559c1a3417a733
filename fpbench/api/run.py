"""What the command line does, as functions for scripts and notebooks."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fpbench.api.saved_run import Run
from fpbench.base.errors import DataError, InputError, RunLostError, StoreError
from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import Catalog, discover
from fpbench.components.names import Status
from fpbench.components.spec import specify
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table
from fpbench.execution.engines.fitness import needs_of
from fpbench.execution.engines.opening import Asked, open_engine
from fpbench.execution.runner import Finished, Runner
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Plan, make_plan
from fpbench.store.environment import describe_environment
from fpbench.store.locks import move_aside
from fpbench.store.store import Store

if TYPE_CHECKING:
    pass


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


def given_component(
    kind: str, chosen: str | Mapping[str, Any] | Component, **parameters: Any
) -> Component:
    """A component that is given by name, with parameters; as a table; or itself.

    Raises
    ------
    InputError
        If it is none of them, or of another kind, or has parameters already.
    """
    if isinstance(chosen, str):
        return component(kind, chosen, **parameters)
    if parameters:
        raise InputError(f"{kind}: {', '.join(parameters)} only goes with a name")
    if isinstance(chosen, Mapping):
        if not isinstance(chosen.get("use"), str):
            raise InputError(f'{kind}: a table needs use = "NAME"')
        return component(kind, chosen["use"], **{k: v for k, v in chosen.items() if k != "use"})
    if getattr(chosen, "kind", None) != kind or isinstance(chosen, type):
        raise InputError(f"{kind}: must be a name or a {kind}, not {chosen!r}")
    return chosen


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
        `inline`, `loky` or `dask`; by default the first for one job, the second for more, and the
        third with a scheduler.
    scheduler
        Address of a dask scheduler, such as `tcp://host:8786`, whose workers run the steps.
    connect_timeout
        Seconds in which it must answer, and have a worker.
    allow_mismatch
        Whether workers may have other versions and other code than this process.
    retries
        How often a step that failed is tried again, unless the input is wrong.
    fresh
        Start anew; a run that is there is moved aside, never deleted.
    skip_all
        Whether it is fine that no dataset of the matrix is here: all cells are skipped then.
    on_plan, on_cell
        Called with the plan and the keys of the cells that are already done, before anything is
        run; and with every cell after it has been committed.
    stop
        Asked before each step is started; once it says so, what runs is finished and committed.
    max_cells
        How many cells the matrix may make; more are refused before any is made.

    Raises
    ------
    InputError
        If the matrix cannot be run as it stands, or the directory holds another matrix's run;
        `DataError` if none of its data is here; `EngineError` if the scheduler does not answer,
        or a worker lacks what is needed.
    RunLostError
        If the run directory was deleted, moved or replaced meanwhile.
    KeyboardInterrupt
        If `stop` said so and cells are left.

    Warns
    -----
    UserWarning
        Unless `on_plan` is given: what is odd in the plan, such as data that is not the original.
    """
    asked = Asked(engine, jobs, scheduler, connect_timeout)
    if retries < 0:
        raise InputError(f"retries must be 0 or more, not {retries}")
    if not isinstance(matrix, Matrix):
        matrix = read(matrix, profile, seeds, max_cells)
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
    finished: list[Finished] = []

    def report(cell: Finished) -> None:
        finished.append(cell)
        if on_cell is not None:
            on_cell(cell)

    # A worker without a step would only cost memory.
    asked = replace(asked, jobs=min(jobs, max(len(plan.steps), 1)))
    strict = asked.name == "dask" and not allow_mismatch
    needs = needs_of(plan.steps.values(), catalog) if strict else None
    with open_engine(asked, home, matrix.limits, needs, plan.steps.values()) as running:
        if fresh:
            move_aside(directory)
        with Store(directory, create=True) as store:
            session = _begin(store, matrix, plan, catalog)
            if on_plan is not None:
                on_plan(plan, store.done())
            runner = Runner(plan, store, session, running, report, retries=retries, stop=stop)
            if not runner.run():
                raise KeyboardInterrupt
    _check_kept(directory, finished)
    return Run(directory, tuple(finished))


def _check_kept(directory: Path, finished: Iterable[Finished]) -> None:
    """See that the directory holds what was done: another may have taken its name."""
    done = {each.cell.key for each in finished if each.status is Status.DONE}
    if not done:
        return
    try:
        with Store(directory) as store:
            lacking = len(done - store.done())
    except StoreError as error:
        raise RunLostError(f"{error}: results of this run are not there; run again") from error
    if lacking:
        raise RunLostError(
            f"{directory}: was changed while the run wrote to it: {lacking} of {len(done)} results "
            "are not there; run again"
        )


def _begin(store: Store, matrix: Matrix, plan: Plan, catalog: Catalog) -> int:
    """Start a session of a run, and write down what it is of."""
    _check_same(store, matrix)
    environment = describe_environment(plan.data, catalog)
    about = {"matrix": matrix.canonical(), "title": matrix.title, "rank_by": matrix.rank_by}
    session = store.begin(about, environment, plan.cells)
    store.write(matrix.file_name, matrix.text)
    store.write("environment.json", json.dumps(environment, indent=2) + "\n")
    return session


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
