"""Runs one step here: any exception of a component becomes a `Failure`."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd

from fpbench.base.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.components.attack_kinds import Component
from fpbench.components.catalog import discover
from fpbench.components.spec import build_component
from fpbench.data.sample import Sample
from fpbench.execution.answers import ROW, write_result
from fpbench.execution.sealing import unseal
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.matrix.step import Failure, Result, Step, shorten


class StoppedError(FpbenchError):
    """A step that exceeded a limit, or whose process died."""


class LostError(Exception):
    """The process that did a step is gone, perhaps not by the step's fault."""


def execute(step: Step, parents: tuple[Any, ...]) -> Result:
    """The result of a step; a component that raises gives a `Failure`, never an exception."""

    def work() -> Any:
        component = build_for(step)
        # Sealed results are opened where their component runs only.
        opened = parents if step.spec is None else tuple(map(unseal, parents))
        inputs = make_inputs(step, component, opened)
        return measure(step, act(step, component, inputs), inputs)

    return attempt(step, work)


def execute_in_worker(step: Step, parents: tuple[Any, ...]) -> Result:
    """As `execute`; an interruption is a failure: the user interrupts the coordinator only."""
    try:
        return execute(step, parents)
    except KeyboardInterrupt as error:
        return Result(make_failure(step, error), 0.0)


def build_for(step: Step) -> Component | None:
    """The component that a step uses."""
    return None if step.spec is None else build_component(step.spec, discover())


def make_inputs(
    step: Step, component: Component | None, parents: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The inputs of a step's component: an adversary's view, or the parents' results."""
    make = HANDED.get(step.action)
    return make(component, parents, step) if make else parents


def act(step: Step, component: Component | None, inputs: tuple[Any, ...]) -> Any:
    """The answer of a step's component; its inputs are read-only, because other steps read them.

    A step that loads may get the user's own tables, which no other step gets. An auditor that may
    train the learner gets the learner last.
    """
    if step.learner is not None:
        inputs = (*inputs, build_component(step.learner, discover()))
    if step.action not in ("load", "split"):
        make_read_only(inputs)
    return ACTIONS[step.action](component, inputs, step)


def measure(step: Step, answer: Any, inputs: tuple[Any, ...]) -> Any:
    """The result of a step, from its component's answer."""
    make = MEASURING.get(step.action)
    return make(answer, inputs, step) if make else answer


def write_row(step: Step, result: Result) -> bytes:
    """A final result as bytes for the coordinator; a failure if a row cannot hold the result."""
    try:
        return write_result(ROW, result)
    except PluginError as error:
        return write_result(ROW, result._replace(value=make_failure(step, error)))


def attempt(step: Step, work: Callable[[], Any]) -> Result:
    """The result of the work of a step, with its duration.

    A forked child of a component that returns here, too, ends: only the parent may go on.
    """
    process = os.getpid()
    started = time.perf_counter()
    value: Any
    try:
        value = work()
    except KeyboardInterrupt:  # from the user; a worker turns it into a failure
        raise
    # Any other exception of a component, even SystemExit, fails its own cells only.
    except BaseException as error:
        value = make_failure(step, error)
    finally:
        if os.getpid() != process:
            os._exit(0)
    return Result(value, time.perf_counter() - started)


def make_failure(step: Step, error: BaseException) -> Failure:
    """The failure of a step by an error; called while the error is handled."""
    message = " ".join(str(error).split())
    known = isinstance(error, (InputError, HiddenError, PluginError, StoppedError))
    words = [message] if known else [type(error).__name__, message]
    if isinstance(error, ValueError) and "read-only" in message:
        words.append("components share their inputs; copy an input before you change it")
    reason = ": ".join([str(step), *filter(None, words)])
    trace = shorten(traceback.format_exc())
    return Failure(shorten(reason), trace, isinstance(error, InputError))


_LOCKED: WeakValueDictionary[int, pd.DataFrame] = WeakValueDictionary()
"""Frames whose columns are read-only already, by identity: every step reads the same features."""


def make_read_only(value: Any) -> None:
    """Make all arrays of a result read-only: in samples, records, containers.

    Objects of other libraries stay as they are: their models may store computed values. A `Sample`
    returns copies of its features, which share memory until written to.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, Sample):
        make_read_only(value.stored())
    elif isinstance(value, pd.DataFrame):
        if _LOCKED.get(id(value)) is not value:
            for _, column in value.items():
                _lock_column(column)
            _LOCKED[id(value)] = value
    elif isinstance(value, tuple | list):
        for one in value:
            make_read_only(one)
    elif isinstance(value, dict):
        make_read_only(list(value.values()))
    elif is_dataclass(value) and type(value).__module__.startswith("fpbench."):
        for field in fields(value):
            make_read_only(getattr(value, field.name, None))


def _lock_column(column: pd.Series) -> None:
    """Make the memory of a column read-only, which `column.array` would show writable.

    A copy of the frame still copies the column at the first write.
    """
    memory = getattr(column.array, "_ndarray", None)
    while isinstance(memory, np.ndarray):
        memory.flags.writeable = False
        memory = memory.base
