"""A session: a matrix, planned with installed components and data, and run into a directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fpbench.base.errors import InputError, StoreError
from fpbench.components.catalog import Catalog, discover
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table
from fpbench.execution.engines.engine import EngineRequest, open_engine
from fpbench.execution.engines.requirements import list_requirements
from fpbench.execution.runner import Finished, Runner
from fpbench.matrix.matrix import Matrix
from fpbench.matrix.plan import Cell, Plan, make_plan
from fpbench.store.environment import describe_environment
from fpbench.store.locks import move_aside
from fpbench.store.store import UNSHOWN_SEEDS, Store


@dataclass(frozen=True)
class Session:
    """A matrix with its plan; `fpbench.plan`, `fpbench.run` and `Run.verify` begin with one."""

    matrix: Matrix
    plan: Plan
    """The plan of the cells that the matrix chooses to run now."""
    whole: Plan
    """The plan of all its cells."""
    catalog: Catalog
    home: DataHome

    @classmethod
    def prepare(cls, matrix: Matrix, tables: Mapping[str, Table]) -> Session:
        """Plan a matrix with the installed components and the available data; nothing is run.

        Raises InputError if the tables are not a mapping of names, a component or a parameter is
        not valid, or no cell is chosen.
        """
        catalog, home = discover(), replace(DataHome.default(), tables=dict(tables))
        whole = plan = make_plan(matrix, catalog, home)
        if matrix.chosen:
            plan = whole.restrict(cell for cell in whole.cells if matrix.chooses(cell.labels))
            if not plan.cells:
                raise InputError(f"{matrix.origin}: no cell of the matrix has all that is chosen")
        return cls(matrix, plan, whole, catalog, home)

    def restrict(self, cells: Iterable[Cell]) -> Session:
        """The session of a plan with these cells only."""
        part = self.plan.restrict(cells)
        return replace(self, plan=part, whole=part)

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Versions, machine and data, see `describe_environment`."""
        return describe_environment(self.plan.data, self.catalog)

    def run(
        self,
        directory: Path,
        request: EngineRequest,
        *,
        allow_mismatch: bool = False,
        retries: int = 0,
        fresh: bool = False,
        on_plan: Callable[[Plan, set[str]], None] | None = None,
        on_cell: Callable[[Finished], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Finished, ...]:
        """The newly run cells, in the order of their commits; done cells are not run again.

        Parameters and errors are those of `fpbench.run`; `request` names the engine.
        """
        steps = self.plan.steps.values()
        # A worker without a step would only cost memory.
        request = replace(request, jobs=min(request.jobs, max(len(steps), 1)))
        strict = request.engine.elsewhere and not allow_mismatch
        requirements = list_requirements(steps, self.catalog) if strict else None
        finished: list[Finished] = []

        def report(cell: Finished) -> None:
            finished.append(cell)
            if on_cell is not None:
                on_cell(cell)

        with open_engine(request, self.home, self.matrix.limits, requirements, steps) as engine:
            if fresh:
                move_aside(directory)
            with Store(directory, create=True) as store:
                number = self._begin(store)
                if on_plan is not None:
                    on_plan(self.plan, store.done())
                runner = Runner(
                    self.plan, store, number, engine, report, retries=retries, stop=stop
                )
                complete = runner.run()
                with store.writing():
                    store.tidy()
                if not complete:
                    raise KeyboardInterrupt
        return tuple(finished)

    def _begin(self, store: Store) -> int:
        """The number of a new session in a store, which gets the matrix and the environment.

        This matrix may continue the run of another if it has all done cells, or no cell is done.
        """
        matrix = self.matrix
        other = store.matrix not in (None, matrix.canonical())
        if other and not store.done() <= {cell.key for cell in self.whole.cells}:
            title = f" ({store.title!r})" if store.title else ""
            raise StoreError(
                f"{store.directory}: was made by another matrix{title} than {matrix.origin}; "
                "choose another directory with --out, or move this one aside with --fresh"
            )
        about = {
            "matrix": matrix.canonical(), "title": matrix.title, "rank_by": matrix.rank_by,
            "measures": json.dumps([one.as_data() for one in self.whole.measures.values()]),
        }  # fmt: skip
        unshown = set[int]()
        if store.done() - {cell.key for cell in self.whole.cells}:  # mostly, other seeds
            unshown = store.find_done_seeds() - {cell.seed for cell in self.whole.cells}
        about[UNSHOWN_SEEDS] = ",".join(map(str, sorted(unshown)))
        number = store.begin(about, self.environment, self.whole.cells)
        store.write_matrix(matrix.file_name, matrix.text)
        store.write("environment.json", json.dumps(self.environment, indent=2) + "\n")
        return number
