"""A request for an engine, and the opening of that engine for the length of a `with`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from fpbench.base.arguments import check_type, check_whole_number, show_value
from fpbench.base.distribution import tell_extra
from fpbench.base.errors import InputError, suggest_name
from fpbench.base.threads import use_one_thread
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.local import ENGINES, Engine, InlineEngine, LokyEngine
from fpbench.execution.engines.requirements import Requirements
from fpbench.execution.engines.warming import list_modules
from fpbench.execution.isolation.one_use import POSSIBLE, split_by_process
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Step


@dataclass(frozen=True)
class EngineRequest:
    """The name and the options of an engine.

    Raises InputError if there is no such engine, or it does not have an option.
    """

    name: str | None = None
    """One of `ENGINES`; by default `dask` with a scheduler, `loky` for several jobs."""
    jobs: int = 1
    """Worker processes."""
    scheduler: str | None = None
    """Address of the scheduler of a dask cluster that runs already."""
    connect_timeout: float = 30.0
    """Seconds in which the scheduler must answer."""

    def __post_init__(self) -> None:
        check_whole_number("jobs", self.jobs, 1)
        if not isinstance(self.connect_timeout, int | float) or not self.connect_timeout > 0:
            raise InputError(
                f"connect_timeout must be a number above 0, not {show_value(self.connect_timeout)}"
            )
        for option in ("name", "scheduler"):
            if (value := getattr(self, option)) is not None:
                check_type("engine" if option == "name" else option, value, str, "a text")
        if self.name is None:
            name = "dask" if self.scheduler else "inline" if self.jobs == 1 else "loky"
            object.__setattr__(self, "name", name)
        if self.name not in ENGINES:
            raise InputError(
                f"unknown engine {self.name!r}; {suggest_name(str(self.name), ENGINES)}"
            )
        if self.name == "inline" and self.jobs > 1:
            raise InputError(f"engine 'inline' runs one job at a time, not {self.jobs}; use 'loky'")
        if self.scheduler and self.name != "dask":
            raise InputError(f"engine {self.name!r} has no scheduler; leave it out, or use 'dask'")
        if self.scheduler and self.jobs > 1:
            raise InputError(
                "the cluster that has the scheduler says how many workers there are; leave out "
                "the jobs"
            )


@contextmanager
def open_engine(
    request: EngineRequest,
    home: DataHome,
    limits: Limits = NO_LIMITS,
    requirements: Requirements | None = None,
    steps: Iterable[Step] = (),
) -> Iterator[Engine]:
    """An engine, open for the length of a `with`; none of its processes outlives it.

    `requirements`: what workers on other machines must have; None to compare nothing. `steps`: the
    steps of the plan, for which processes import modules early.

    Raises InputError if limits cannot be kept on this operating system; `EngineError` if the
    scheduler does not answer, or its workers differ from the requirements.
    """
    _check_limits(limits)
    engine: Engine
    with ExitStack() as stack:
        if request.name == "inline":
            stack.enter_context(use_one_thread())
            engine = InlineEngine(home, limits)
        elif request.name == "loky":
            engine = LokyEngine(request.jobs, home, limits, steps)
        else:
            engine = _open_dask(request, home, limits, requirements, steps)
        try:
            yield engine
        except BaseException:
            engine.close(now=True)
            raise
        engine.close(now=False)


def _check_limits(limits: Limits) -> None:
    if limits and not POSSIBLE:
        raise InputError("[limits]: cannot be kept here: this operating system does not fork")
    if limits.memory_limit is not None and sys.platform != "linux":
        raise InputError("[limits]: memory_limit: can be kept on Linux only")


def _open_dask(
    request: EngineRequest,
    home: DataHome,
    limits: Limits,
    requirements: Requirements | None,
    steps: Iterable[Step],
) -> Engine:
    """An engine on the cluster of a scheduler, or on one that is started here."""
    try:
        from fpbench.execution.engines.dask import DaskEngine
        from fpbench.execution.engines.dask_cluster import compare, join, start
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise InputError(f"engine 'dask' is not installed: {tell_extra('dask')}") from None
    alone, others = split_by_process(steps, limits)
    cluster = (
        join(request.scheduler, request.connect_timeout)
        if request.scheduler
        else start(request.jobs, list_modules(alone))
    )
    engine = DaskEngine(cluster, home, limits, requirements, list_modules(others))
    try:
        if requirements is not None:
            compare(cluster.client, requirements, request.connect_timeout)
    except BaseException:
        engine.close(now=True)
        raise
    return engine
