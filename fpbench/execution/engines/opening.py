"""A request for an engine, and the opening of that engine for the length of a `with`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from fpbench.base.arguments import check_whole_number, show_value
from fpbench.base.errors import InputError, PluginError
from fpbench.base.threads import use_one_thread
from fpbench.components.catalog import discover
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.engine import Engine, EngineSetup
from fpbench.execution.engines.requirements import Requirements
from fpbench.execution.isolation.one_use import POSSIBLE
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Step


@dataclass(frozen=True)
class EngineRequest:
    """The name and the options of an engine.

    Raises InputError if there is no such engine, or it does not have an option; PluginError if it
    cannot be loaded.
    """

    name: str | None = None
    """Name of an installed engine; by default `dask` with a scheduler, `loky` for several jobs."""
    jobs: int = 1
    """Worker processes."""
    scheduler: str | None = None
    """Address of workers that run already."""
    connect_timeout: float = 30.0
    """Seconds in which they must answer."""

    def __post_init__(self) -> None:
        check_whole_number("jobs", self.jobs, 1)
        if not self.connect_timeout > 0:
            raise InputError(
                f"connect_timeout must be a number above 0, not {show_value(self.connect_timeout)}"
            )
        if self.name is None:
            name = "dask" if self.scheduler else "inline" if self.jobs == 1 else "loky"
            object.__setattr__(self, "name", name)
        if self.name == "inline" and self.jobs > 1:
            raise InputError(f"engine 'inline' runs one job at a time, not {self.jobs}; use 'loky'")
        if self.scheduler and not self.engine.elsewhere:
            raise InputError(f"engine {self.name!r} has no scheduler; leave it out, or use 'dask'")
        if self.scheduler and self.jobs > 1:
            raise InputError(
                "the cluster that has the scheduler says how many workers there are; leave out "
                "the jobs"
            )

    @property
    def engine(self) -> type[Engine]:
        """The class of the engine."""
        engine = discover().load("engine", str(self.name))
        if not (isinstance(engine, type) and issubclass(engine, Engine)):
            raise PluginError(f"engine {self.name!r} is not a subclass of Engine")
        return engine


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
    engine cannot start, or its workers differ from the requirements.
    """
    _check_limits(limits)
    setup = EngineSetup(
        home, limits, tuple(steps), request.jobs, request.scheduler, request.connect_timeout,
        requirements,
    )  # fmt: skip
    with ExitStack() as stack:
        if request.name == "inline":
            stack.enter_context(use_one_thread())
        engine = request.engine(setup)
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
