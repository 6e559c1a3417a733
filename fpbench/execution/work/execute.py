"""Runs one step here: whatever a component raises becomes a `Failure`, never an exception."""

from __future__ import annotations

import os
import re
import time
import traceback
from collections.abc import Callable
from typing import Any

from fpbench.base.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.components.attack_kinds import Component
from fpbench.components.catalog import Catalog
from fpbench.components.hooks import Lazy
from fpbench.components.spec import build_component
from fpbench.execution.wire.answers import ROW, write_result
from fpbench.execution.wire.sealing import unseal
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.execution.work.process_watch import Watch
from fpbench.matrix.step import Failure, Result, Step, shortened


class StoppedError(FpbenchError):
    """A step that took more than it may, or whose process died."""


class LostError(Exception):
    """The process that did a step is gone, and not known to be through the step's fault."""


class SpoiledError(LostError):
    """A process is used no more, because a step has changed it.

    Parameters
    ----------
    component
        Whose step did it; empty if it was one before, and not the one that was to be done.
    changes
        What was changed.
    where
        Address of the process, if it has one.
    """

    def __init__(self, component: str, changes: str, where: str = "") -> None:
        super().__init__(component, changes, where)
        self.component, self.changes, self.where = component, changes, where

    def __str__(self) -> str:
        return f"changed {self.changes} of its process, in which others run as well"


_WATCHES: list[Watch] = []
"""The one of this worker, once it has done a step."""
_SPOILED: list[str] = []
"""What has been changed in this worker."""


def execute(step: Step, parents: tuple[Any, ...], catalog: Catalog | None = None) -> Result:
    """Run one step; a component that raises gives a `Failure`, never an exception.

    Parameters
    ----------
    step
        What to do.
    parents
        Results of its parents, in order.
    catalog
        What is installed; found out here, in a worker, if None.
    """

    def work() -> Any:
        component = component_of(step, catalog)
        # What was sealed is opened, as its component runs here; but for adversaries, whose do not.
        there = parents if step.action in HANDED else tuple(map(unseal, parents))
        inputs = handed(step, component, there)
        return measured(step, ACTIONS[step.action](component, inputs, step), inputs)

    return attempt(step, work)


def execute_in_worker(step: Step, parents: tuple[Any, ...]) -> Result:
    """As `execute`, in a process that does other steps, too.

    An interruption is no user's here, who speaks to the coordinator only.

    Raises
    ------
    SpoiledError
        If the step, or one before it, has changed what others rest on. It has no result then.
    """
    check_unspoiled()
    if not _WATCHES:
        _WATCHES.append(watch())
    try:
        result = execute(step, parents)
    except KeyboardInterrupt as error:
        result = Result(failed(step, error), 0.0)
    if step.spec is not None and (changes := _WATCHES[0].look().words):
        _SPOILED.append(changes)
        raise SpoiledError(step.spec.use, changes)
    return result


def check_unspoiled() -> None:
    """See that no step has changed what others rest on in this worker: it does no more then.

    Raises
    ------
    SpoiledError
        If one has.
    """
    if _SPOILED:
        raise SpoiledError("", _SPOILED[0])


def watch() -> Watch:
    """Begin to watch what steps change in this process."""
    from fpbench.components.catalog import discover

    modules = {
        entry.registered.target
        if isinstance(entry.registered, Lazy)
        else entry.registered.__module__
        for entry in discover()
    }
    return Watch(frozenset(re.split("[.:]", module)[0] for module in modules) - {"fpbench"})


def component_of(step: Step, catalog: Catalog | None = None) -> Component | None:
    """The component that a step uses."""
    if step.spec is None:
        return None
    if catalog is None:
        from fpbench.components.catalog import discover

        catalog = discover()
    return build_component(step.spec, catalog)


def handed(step: Step, component: Component | None, parents: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a step's component is handed: an adversary its view, others their parents' results."""
    make = HANDED.get(step.action)
    return make(component, parents, step) if make else parents


def measured(step: Step, answer: Any, inputs: tuple[Any, ...]) -> Any:
    """The result of a step, from what its component answered."""
    measure = MEASURING.get(step.action)
    return measure(answer, inputs, step) if measure else answer


def told(step: Step, result: Result) -> bytes:
    """A result that the coordinator reads, as bytes; a failure if a row could not hold it."""
    try:
        return write_result(ROW, result)
    except PluginError as error:
        return write_result(ROW, result._replace(value=failed(step, error)))


def attempt(step: Step, work: Callable[[], Any]) -> Result:
    """Do the work of a step, and measure how long it takes.

    A process that a component has forked ends here if it comes back, too: only one may go on.
    """
    process = os.getpid()
    started = time.perf_counter()
    value: Any
    try:
        value = work()
    except KeyboardInterrupt:  # the user's; a worker, which has no user, makes a failure of it
        raise
    # Whatever else a component raises, and be it the wish to exit, fails its own cells only.
    except BaseException as error:
        value = failed(step, error)
    finally:
        if os.getpid() != process:
            os._exit(0)
    return Result(value, time.perf_counter() - started)


def failed(step: Step, error: BaseException) -> Failure:
    """The failure that an error makes of a step; called while it is handled."""
    message = " ".join(str(error).split())
    known = isinstance(error, (InputError, HiddenError, PluginError, StoppedError))
    words = [message] if known else [type(error).__name__, message]
    reason = ": ".join([str(step), *filter(None, words)])
    trace = shortened(traceback.format_exc())
    return Failure(shortened(reason), trace, isinstance(error, InputError))
