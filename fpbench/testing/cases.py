"""A component with one set of parameters, and its runs, here and in another process.

There it has another hash seed, no shared state and read-only inputs.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import Catalog, Entry
from fpbench.components.spec import Spec, build_component, find_slot_kinds, specify
from fpbench.data.data_files import DataHome
from fpbench.testing.fixtures import make_cell_inputs
from fpbench.testing.stages import STAGES, Stage, run_watched
from fpbench.testing.watching import Watched, list_parts

_SLOT_DEFAULTS = {
    "dataset": "census-synthetic",
    "learner": "plain",
    "disclosure": "published",
    "adversary": "prior",
    "corrector": "exact",
    "mechanism": "laplace",
    "policy": "clip",
    "auditor": "group-fairness",
}
"""Components for required slots that an example leaves out."""


class Inapplicable(Exception):  # noqa: N818 (not a fault: it says why a law is not tested)
    """A law that cannot be tested here, with the reason."""


@dataclass(eq=False)
class Case:
    """A component with one set of parameters; it is built and run when first needed."""

    catalog: Catalog
    """Has it and the components in its slots."""
    entry: Entry
    own_parameters: Mapping[str, Any]
    """As in a matrix; missing required slots get defaults."""
    label: str
    """Distinguishes cases of one component."""
    directory: Path
    """The first directory searched for its data."""
    _watched: dict[tuple[int, int], Watched] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.entry.kind} {self.entry.name}{self.label}"

    @property
    def stage(self) -> Stage:
        """The stage that runs components of its kind."""
        return STAGES[self.entry.kind]

    @cached_property
    def cls(self) -> type[Component]:
        """Its class, imported now."""
        return self.catalog.component(self.entry.kind, self.entry.name)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Its parameters, with defaults in required slots."""
        missing = {
            name: {"use": _SLOT_DEFAULTS[kind]}
            for name, kind in find_slot_kinds(self.cls).items()
            if self.cls.model_fields[name].is_required() and name not in self.own_parameters
        }
        return {**self.own_parameters, **missing}

    @cached_property
    def built(self) -> tuple[Component, Spec]:
        """The component, built as in a matrix, and its spec."""
        return self.build_with(self.parameters)

    def build_with(self, parameters: Mapping[str, Any]) -> tuple[Component, Spec]:
        """The component with other parameters, and its spec.

        Raises MatrixError if a parameter is unknown, missing or out of range.
        """
        return specify(self.catalog, self.entry.kind, self.entry.name, dict(parameters), str(self))

    @property
    def component(self) -> Component:
        """The component."""
        return self.built[0]

    def build_from_spec(self, spec: Spec) -> Component:
        """The component that a spec describes."""
        return build_component(spec, self.catalog)

    @cached_property
    def home(self) -> DataHome:
        """Its data directories, and a table called `people`."""
        default = DataHome.default().directories
        return DataHome((self.directory, *default), {"people": make_cell_inputs(2).table})

    def check_runnable(self, k: int) -> None:
        """Raise if it cannot be run here with people of k groups.

        Raises Inapplicable, with the reason.
        """
        component = self.component
        reason = component.unavailable()
        if reason is None and isinstance(component, Dataset):
            reason = component.absent(self.home)
        for partner in () if reason else self.stage.partners(component, k):
            reason = reason or component.incompatible(partner)
        if reason:
            raise Inapplicable(reason)

    def watched(self, k: int = 2, seed: int = 0) -> Watched:
        """Its cached run with this number of groups and seed.

        Raises Inapplicable if it cannot be run here.
        """
        if (k, seed) not in self._watched:
            self._watched[k, seed] = self._watch(k, seed)
        return self._watched[k, seed]

    def ran(self, seed: int = 0) -> Watched:
        """Its run; raises the error of the run.

        Raises Inapplicable if it cannot be run here.
        """
        watched = self.watched(seed=seed)
        if watched.error is not None:
            raise watched.error
        return watched

    def rerun(self) -> Watched:
        """A second run with the same groups and seed."""
        return self._watch(2, 0)

    def run_in_other_process(self) -> RemoteResult | NotTransferable:
        """The same run in another process."""
        return run_remotely(self.component, self.home)

    def _watch(self, k: int, seed: int) -> Watched:
        self.check_runnable(k)
        return run_watched(self.component, self.home, k, seed)


_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from fpbench.testing.cases import main
main(int(sys.argv[2]))
"""


class NotTransferable(NamedTuple):
    """Why a component cannot be sent to another process."""

    reason: str


class RemoteResult(NamedTuple):
    """The parts of a component's result in another process, or its error."""

    parts: dict[str, Any]
    error: str
    """The raised error; empty if none."""


def run_remotely(component: Component, home: DataHome) -> RemoteResult | NotTransferable:
    """Run a component with seed 0 and two groups in another process."""
    import cloudpickle

    if os.name != "posix":
        return NotTransferable(f"no process can receive a connection on {sys.platform}")
    try:
        request = cloudpickle.dumps((component, home))
    except Exception as error:  # a third party's `__reduce__` may raise anything
        return NotTransferable(_describe(error))
    return _get_other_process().ask(request)


class _OtherProcess:
    """A process that serves requests one after another, while this process lives."""

    def __init__(self) -> None:
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        self._channel, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": seed},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C must not reach it
            )
        atexit.register(self.close)

    def ask(self, request: bytes) -> RemoteResult | NotTransferable:
        """The answer to a request."""
        try:
            # The tested module may have been added to the path after the process started.
            self._channel.send_bytes(json.dumps(sys.path).encode())
            self._channel.send_bytes(request)
            answer: RemoteResult | NotTransferable = self._channel.recv()
        except (OSError, EOFError):
            self.close()
            _get_other_process.cache_clear()
            return RemoteResult({}, "its process died")
        return answer

    def close(self) -> None:
        """End the process."""
        atexit.unregister(self.close)
        self._channel.close()
        self._process.kill()
        self._process.wait()


@cache
def _get_other_process() -> _OtherProcess:
    return _OtherProcess()


def main(number: int) -> None:
    """Serve requests until the channel is closed."""
    with Connection(number) as channel, suppress(EOFError):
        while True:
            sys.path[:] = json.loads(channel.recv_bytes())
            channel.send(_run_request(channel.recv_bytes()))


def _run_request(request: bytes) -> RemoteResult | NotTransferable:
    try:
        component, home = pickle.loads(request)
    except Exception as error:  # its module may do anything on import
        return NotTransferable(_describe(error))
    watched = run_watched(component, home, read_only=True)
    if watched.error is not None:
        return RemoteResult({}, _describe(watched.error))
    return RemoteResult(dict(list_parts(watched.result)), "")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
