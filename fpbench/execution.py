"""Runs one step here: whatever a component raises becomes a `Failure`, never an exception."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

from fpbench.actions import ACTIONS, HANDED, MEASURING
from fpbench.answers import ROW, packed
from fpbench.components import Component
from fpbench.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.plugins import Catalog
from fpbench.sealing import unseal
from fpbench.specs import build
from fpbench.steps import Failure, Result, Step, shortened


class StoppedError(FpbenchError):
    """A step that took more than it may, or whose process died."""


class LostError(Exception):
    """The process that did a step is gone, and not known to be through the step's fault."""


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
        given = handed(step, component, there)
        return measured(step, ACTIONS[step.action](component, given, step), given)

    return attempt(step, work)


def execute_in_worker(step: Step, parents: tuple[Any, ...]) -> Result:
    """As `execute`; an interruption is no user's here, who speaks to the coordinator only."""
    try:
        return execute(step, parents)
    except KeyboardInterrupt as error:
        return Result(failed(step, error), 0.0)


def component_of(step: Step, catalog: Catalog | None = None) -> Component | None:
    """The component that a step uses."""
    if step.spec is None:
        return None
    if catalog is None:
        from fpbench.plugins import discover

        catalog = discover()
    return build(step.spec, catalog)


def handed(step: Step, component: Component | None, parents: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a step's component is handed: an adversary its view, others their parents' results."""
    make = HANDED.get(step.action)
    return make(component, parents, step) if make else parents


def measured(step: Step, answer: Any, given: tuple[Any, ...]) -> Any:
    """The result of a step, from what its component answered."""
    measure = MEASURING.get(step.action)
    return measure(answer, given, step) if measure else answer


def told(step: Step, result: Result) -> bytes:
    """A result that the coordinator reads, as bytes; a failure if a row could not hold it."""
    try:
        return packed(ROW, result)
    except PluginError as error:
        return packed(ROW, result._replace(value=failed(step, error)))


def attempt(step: Step, work: Callable[[], Any]) -> Result:
    """Do the work of a step, and measure how long it takes."""
    started = time.perf_counter()
    value: Any
    try:
        value = work()
    except KeyboardInterrupt:  # the user's; a worker, which has no user, makes a failure of it
        raise
    # Whatever else a component raises, and be it the wish to exit, fails its own cells only.
    except BaseException as error:
        value = failed(step, error)
    return Result(value, time.perf_counter() - started)


def failed(step: Step, error: BaseException) -> Failure:
    """The failure that an error makes of a step; called while it is handled."""
    message = " ".join(str(error).split())
    known = isinstance(error, (InputError, HiddenError, PluginError, StoppedError))
    reason = f"{step}: {message}" if known else f"{step}: {type(error).__name__}: {message}"
    trace = shortened(traceback.format_exc())
    return Failure(shortened(reason), trace, isinstance(error, InputError))


__all__ = [
    "LostError",
    "StoppedError",
    "attempt",
    "component_of",
    "execute",
    "execute_in_worker",
    "failed",
    "handed",
    "measured",
    "told",
]
