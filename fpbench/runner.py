"""Walks the step graph over an engine, and commits each cell as soon as it is measured."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from graphlib import TopologicalSorter
from typing import NamedTuple

from fpbench.actions import execute
from fpbench.home import DataHome
from fpbench.kinds import Status
from fpbench.plan import Cell, Plan, needed
from fpbench.steps import Failure, Result, Step
from fpbench.store import Store


class Finished(NamedTuple):
    """A cell that has just been committed."""

    cell: Cell
    status: Status
    reason: str | None
    bad_input: bool


class Runner:
    """Runs what a store does not yet hold of a plan.

    Parameters
    ----------
    plan
        What is to be run.
    store
        Where results go; cells that it holds as done are not run again.
    session
        The session of the store that results are recorded under.
    executor
        Executes the steps.
    at_once
        How many steps are submitted at a time.
    home
        Where data sets are loaded from.
    on_cell
        Called with every cell after its result has been committed.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        session: int,
        executor: Executor,
        at_once: int,
        home: DataHome,
        on_cell: Callable[[Finished], None],
    ) -> None:
        self._plan, self._store, self._session = plan, store, session
        self._home = home
        self._executor, self._at_once, self._on_cell = executor, at_once, on_cell
        done = store.done()
        # Seed by seed: what the cells of a seed share can be let go when the next one begins.
        cells = sorted(plan.runnable, key=lambda cell: cell.seed)
        self._todo = {cell.key: cell for cell in cells if cell.key not in done}
        self._rank = {key: i for i, key in enumerate(needed(plan, self._todo))}
        self._results: dict[str, Result] = {}
        self._suspects: set[str] = set()
        self._uses = Counter(p for key in self._rank for p in set(plan.steps[key].parents))
        self._seconds: dict[str, float] = {}
        self._timings: dict[tuple[str, str], tuple[int, float]] = {}

    def run(self) -> None:
        """Run until every cell is committed."""
        sorter = TopologicalSorter({key: self._plan.steps[key].parents for key in self._rank})
        sorter.prepare()
        ready: list[tuple[int, str]] = []
        running: dict[Future[Result], Step] = {}
        try:
            while sorter.is_active():
                # Steps of the first cells first: cells finish early, and results can be let go.
                for key in sorter.get_ready():
                    heapq.heappush(ready, (self._rank[key], key))
                while ready and len(running) < (1 if self._suspects else self._at_once):
                    step = self._plan.steps[heapq.heappop(ready)[1]]
                    running[self._start(step)] = step
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    step = running.pop(future)
                    if self._is_suspect(step, future):
                        heapq.heappush(ready, (self._rank[step.key], step.key))
                        continue
                    self._finish(step, _outcome(step, future))
                    sorter.done(step.key)
        finally:
            self._store.add_timings(self._timings)

    def _is_suspect(self, step: Step, future: Future[Result]) -> bool:
        """Whether a step may have killed its worker, and is to be tried once more, alone.

        A worker that dies takes down all that run beside it; the next time the culprit is alone.
        """
        died = isinstance(future.exception(), BrokenProcessPool)
        if died and self._at_once > 1 and step.key not in self._suspects:
            self._suspects.add(step.key)
            return True
        self._suspects.discard(step.key)
        return False

    def _start(self, step: Step) -> Future[Result]:
        parents = [self._results[key] for key in step.parents]
        failed = next((p for p in parents if isinstance(p.value, Failure)), None)
        if failed is not None:
            future: Future[Result] = Future()
            future.set_result(Result(failed.value, 0.0))
            return future
        values = tuple(p.value for p in parents)
        # Data is all that comes from outside the graph, and is handed over like a parent.
        given = (self._home,) if step.action == "load" else values
        return self._executor.submit(execute, step, given)

    def _finish(self, step: Step, result: Result) -> None:
        count, seconds = self._timings.get(step.name, (0, 0.0))
        self._timings[step.name] = (count + 1, seconds + result.seconds)
        if self._uses[step.key]:
            self._results[step.key] = result
            self._seconds[step.key] = result.seconds
        if step.key in self._todo:
            before = self._plan.ancestry(step.key) - {step.key}
            alone = result.seconds + sum(self._seconds[key] for key in before)
            self._commit(self._todo[step.key], result, alone)
        for key in set(step.parents):
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._results[key]

    def _commit(self, cell: Cell, result: Result, seconds: float) -> None:
        failure = result.value if isinstance(result.value, Failure) else None
        status = Status.FAILED if failure else Status.DONE
        reason = failure.reason if failure else None
        self._store.add(
            self._session,
            cell.key,
            status,
            seconds,
            {} if failure else result.value,
            reason,
            failure.trace if failure else None,
        )
        self._on_cell(Finished(cell, status, reason, bool(failure and failure.bad_input)))


def _outcome(step: Step, future: Future[Result]) -> Result:
    """The result of a step; a failure if its worker died or could not send it."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        return Result(Failure(f"{step}: the worker process died", str(error), False), 0.0)
    except Exception as error:  # a result that does not pickle, for instance
        reason = f"{step}: {type(error).__name__}: {error}"
        return Result(Failure(reason, str(error), False), 0.0)


def remaining(plan: Plan, done: Iterable[str]) -> list[Step]:
    """The steps that a run would execute, given the cells that are done."""
    held = set(done)
    todo = [cell.key for cell in plan.runnable if cell.key not in held]
    return [plan.steps[key] for key in needed(plan, todo)]


__all__ = ["Finished", "Runner", "remaining"]
