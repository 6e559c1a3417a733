"""The contract of engines, to which the runner submits one step after another.

A result stays where the engine keeps it; the runner holds a handle, and passes it on with the steps
that need it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Any, ClassVar, NamedTuple

from fpbench.base.errors import InputError
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.requirements import Requirements
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
