"""Runs one step here: any exception of a component becomes a `Failure`."""

from __future__ import annotations

import os
import re
import time
import traceback
from collections.abc import Callable
from typing import Any

from fpbench.base.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.components.attack_kinds import Component
from fpbench.components.catalog import discover
from fpbench.components.hooks import Lazy
from fpbench.components.spec import build_component
from fpbench.execution.wire.answers import ROW, write_result
from fpbench.execution.wire.sealing import unseal
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.execution.work.process_watch import Watch
from fpbench.execution.work.read_only import make_read_only
from fpbench.matrix.step import Failure, Result, Step, shorten


class StoppedError(FpbenchError):
    """A step that exceeded a limit, or whose process died."""


class LostError(Exception):
    """The process that did a step is gone, perhaps not by the step's fault."""


class SpoiledError(LostError):
    """A process that is no longer used, because a step has changed it.

    `component` is empty if an earlier step did; `where` is the address of the process, if any.
    """

    def __init__(self, component: str, changes: str, where: str = "") -> None:
        super().__init__(component, changes, where)
        self.component, self.changes, self.where = component, changes, where

    def __str__(self) -> str:
        return f"changed {self.changes} of its process, in which others run as well"


_WATCHES: list[Watch] = []
"""The watch of this worker, once it has done a step."""
_SPOILED: list[str] = []
"""Changes by a step in this worker; one entry or none."""


def execute(step: Step, parents: tuple[Any, ...]) -> Result:
    """The result of a step; a component that raises gives a `Failure`, never an exception."""

    def work() -> Any:
        component = build_for(step)
        # Sealed results are opened where their component runs; an adversary runs elsewhere.
        opened = parents if step.action in HANDED else tuple(map(unseal, parents))
        inputs = make_inputs(step, component, opened)
        return measure(step, act(step, component, inputs), inputs)

    return attempt(step, work)


def execute_in_worker(step: Step, parents: tuple[Any, ...]) -> Result:
    """As `execute`, in a process that does other steps, too.

    An interruption is a failure here: the user interrupts the coordinator only.

    Raises SpoiledError if the step or an earlier one has changed what other steps depend on; there
    is no result then.
    """
    check_unspoiled()
    if not _WATCHES:
        _WATCHES.append(make_watch())
    try:
        result = execute(step, parents)
    except KeyboardInterrupt as error:
        result = Result(make_failure(step, error), 0.0)
    finally:  # replacements by the step may make `execute` itself raise
        if step.spec is not None and (changes := _WATCHES[0].look().words):
            _SPOILED.append(changes)
            raise SpoiledError(step.spec.use, changes)
    return result


def check_unspoiled() -> None:
    """Raise SpoiledError if a step has changed what others depend on in this worker."""
    if _SPOILED:
        raise SpoiledError("", _SPOILED[0])


def make_watch() -> Watch:
    """A watch of what steps change in this process, from now on."""
    modules = {
        entry.registered.target
        if isinstance(entry.registered, Lazy)
        else entry.registered.__module__
        for entry in discover()
    }
    return Watch(frozenset(re.split("[.:]", module)[0] for module in modules) - {"fpbench"})


def build_for(step: Step) -> Component | None:
    """The component that a step uses."""
    return None if step.spec is None else build_component(step.spec, discover())


def make_inputs(
    step: Step, component: Component | None, parents: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The inputs of a step's component: an adversary's view, or the parents' results.

    An auditor that may train the learner gets the learner last.
    """
    if step.learner is not None:
        return (*parents, build_component(step.learner, discover()))
    make = HANDED.get(step.action)
    return make(component, parents, step) if make else parents


def act(step: Step, component: Component | None, inputs: tuple[Any, ...]) -> Any:
    """The answer of a step's component; its inputs are read-only, because other steps read them.

    A step that loads may get the user's own tables, which no other step gets.
    """
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
