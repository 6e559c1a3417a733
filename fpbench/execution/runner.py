"""Walks the step graph over an engine, and commits each cell as soon as it is measured."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from graphlib import TopologicalSorter
from typing import NamedTuple

from fpbench.base.errors import InputError
from fpbench.components.names import PORTABLE, Status
from fpbench.execution.engines.engine import Engine
from fpbench.execution.work.execute import LostError
from fpbench.matrix.plan import Cell, Plan
from fpbench.matrix.step import Failure, Result, Step, shorten
from fpbench.store.packing import why_not_storable
from fpbench.store.store import Store

_MOST_DEATHS = 3
"""Number of workers that die with a step before it fails; the last of them ran nothing else."""


class Finished(NamedTuple):
    """A cell that was run and committed."""

    cell: Cell
    status: Status
    reason: str | None
    bad_input: bool


class Runner:
    """Runs the cells of a plan that a store does not hold yet.

    `store`: gets the results; cells that are done in it are not run again. `on_cell`: called with
    every cell after its result has been committed. `retries`: number of times that a failed step is
    tried again, unless the user's input is wrong. `stop`: called before each step; once it returns
    true, no more steps are started.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        session: int,
        engine: Engine,
        on_cell: Callable[[Finished], None],
        *,
        retries: int = 0,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan, self._store, self._session = plan, store, session
        self._engine, self._on_cell, self._retries, self._stop = engine, on_cell, retries, stop
        done = store.done()
        # Seed by seed: results that the cells of a seed share are freed when the next begins.
        cells = sorted(plan.runnable, key=lambda cell: cell.seed)
        self._todo = {cell.key: cell for cell in cells if cell.key not in done}
        self._rank = {key: i for i, key in enumerate(plan.order_steps(self._todo))}
        self._results: dict[str, Result] = {}
        self._deaths: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._uses = Counter(p for key in self._rank for p in set(plan.steps[key].parents))
        self._seconds: dict[str, float] = {}
        self._timings: dict[tuple[str, str], tuple[int, float]] = {}

    def run(self) -> bool:
        """Run until every cell is committed or, after a stop, until running steps are done.

        Returns: whether every cell is committed.
        """
        sorter = TopologicalSorter({key: self._plan.steps[key].parents for key in self._rank})
        sorter.prepare()
        ready: list[tuple[int, str]] = []
        running: dict[Future[Result], Step] = {}
        try:
            while sorter.is_active():
                # Steps of the first cells first: cells finish early, and results are freed.
                for key in sorter.get_ready():
                    heapq.heappush(ready, (self._rank[key], key))
                while self._may_start(ready, running.values()):
                    step = self._plan.steps[heapq.heappop(ready)[1]]
                    running[self._start(step)] = step
                if not running:
                    return False
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    step = running.pop(future)
                    result = self._outcome(step, future)
                    if result is None:
                        heapq.heappush(ready, (self._rank[step.key], step.key))
                    else:
                        self._finish(step, result)
                        sorter.done(step.key)
        finally:
            self._store.add_timings(self._timings)
        return True

    def _may_start(self, ready: list[tuple[int, str]], running: Collection[Step]) -> bool:
        """Whether the first ready step may start while others run.

        Another step may be the cause of a worker's death, so before a step is given up, it runs
        alone.
        """
        if not ready or len(running) >= self._engine.at_once or self._stop():
            return False
        keys = (ready[0][1], *(step.key for step in running)) if self._deaths else ()
        return not running or all(self._deaths[key] < _MOST_DEATHS - 1 for key in keys)

    def _start(self, step: Step) -> Future[Result]:
        parents = [self._results[key] for key in step.parents]
        failed = _find_first_failure(parents)
        if failed is not None:
            future: Future[Result] = Future()
            future.set_result(Result(failed, 0.0))
            return future
        return self._engine.submit(
            step,
            tuple(p.value for p in parents),
            final=step.key in self._todo,
            # A dying worker takes down every step in it: running alone shows which is the cause.
            alone=self._deaths[step.key] > 0,
        )

    def _outcome(self, step: Step, future: Future[Result]) -> Result | None:
        """The result of a step; None if the step will be tried again."""
        try:
            result = future.result()
        except (BrokenProcessPool, LostError) as error:
            self._deaths[step.key] += 1
            if self._deaths[step.key] < _MOST_DEATHS:
                return None
            died = f"the worker process died {_MOST_DEATHS} times{_describe_signals(error)}"
            return Result(Failure(f"{step}: {died}", str(error), False), 0.0)
        except InputError:  # the engine is lost
            raise
        except Exception as error:  # a result that cannot be pickled, for instance
            reason = shorten(f"{step}: {type(error).__name__}: {error}")
            result = Result(Failure(reason, shorten(str(error)), False), 0.0)
        if self._should_retry(step, result):
            self._failures[step.key] += 1
            return None
        return result

    def _should_retry(self, step: Step, result: Result) -> bool:
        return (
            isinstance(result.value, Failure)
            and not result.value.bad_input
            and self._failures[step.key] < self._retries
            and _find_first_failure(self._results[key] for key in step.parents) is None
        )

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
        if failure is None and (why := why_not_storable(result.value)):
            failure = Failure(f"{self._plan.steps[cell.key]}: {why}", why, False)
        status = Status.FAILED if failure else Status.DONE
        reason = failure.reason if failure else None
        measures = {} if failure else result.value
        if not failure and not cell.portable:
            measures = {**measures, PORTABLE: False}
        trace = failure.trace if failure else None
        self._store.add(self._session, cell.key, status, seconds, measures, reason, trace)
        self._on_cell(Finished(cell, status, reason, bool(failure and failure.bad_input)))


def _find_first_failure(results: Iterable[Result]) -> Failure | None:
    return next((r.value for r in results if isinstance(r.value, Failure)), None)


def _describe_signals(error: Exception) -> str:
    """The signals that killed workers, as far as the engine knows."""
    names = dict.fromkeys(re.findall(r"SIG[A-Z0-9]+(?=\(-\d+\))", str(error)))
    return f" ({', '.join(names)})" if names else ""
