"""Engines: the contract, a request for one, and its opening for the length of a `with`.

The runner submits one step after another. A result stays where the engine keeps it; the runner
holds a handle, and passes it on with the steps that need it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from fpbench.base.arguments import check_whole_number, show_value
from fpbench.base.errors import InputError, PluginError
from fpbench.base.threads import use_one_thread
from fpbench.components.catalog import discover
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.requirements import Requirements
from fpbench.execution.isolation.one_use import POSSIBLE
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Result, Step


class EngineError(InputError):
    """An engine that cannot be started as requested, or that was lost."""


class EngineSetup(NamedTuple):
    """What an engine is started for.

    Attributes
    ----------
    home
        Where data lies.
    limits
        Limits of each step.
    steps
        The steps of the plan: processes may import early what they need.
    jobs
        Number of worker processes, where the engine starts them.
    scheduler
        Address of workers that somebody else has started; None if there are none.
    connect_timeout
        Seconds within which they must answer.
    requirements
        What workers on other machines must have; None to compare nothing.
    """

    home: DataHome
    limits: Limits = NO_LIMITS
    steps: tuple[Step, ...] = ()
    jobs: int = 1
    scheduler: str | None = None
    connect_timeout: float = 30.0
    requirements: Requirements | None = None


class Engine(ABC):
    """Executes steps.

    Its constructor takes an `EngineSetup`, and raises `EngineError` if the engine cannot start.

    Attributes
    ----------
    summary
        What it is, in a few words for listings.
    elsewhere
        Whether its workers may be on other machines: then `--scheduler` may name them, and their
        versions are compared with those here.
    """

    summary: ClassVar[str]
    elsewhere: ClassVar[bool] = True

    def __init__(self, setup: EngineSetup) -> None:
        self.setup = setup

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Number of steps that are worth submitting at a time."""

    @abstractmethod
    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Execute a step.

        Parameters
        ----------
        step
            The step; `StepTask` does it in any process. One that loads data (`step.action` is
            `load`) has no parents: `InlineEngine` does it here. `step.name` is a pair of texts, for
            people; `step.third_party` says that code of other distributions runs.
        parents
            Values of its parents' results, as this engine returned them.
        final
            Whether the result has the value itself, and not a handle.
        alone
            Whether the step gets a process of its own, because it may have killed a worker.

        Returns
        -------
        Future
            Of the result: `value`, `seconds`, and `failed`, whether the value says why there is
            none. It raises `LostError` or `BrokenProcessPool` if the step's process is gone, and
            `EngineError` if the engine is.
        """

    @abstractmethod
    def close(self, *, now: bool) -> None:
        """End the engine; with `now`, without waiting for running steps."""


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
