"""A component with one set of parameters, and the results of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import Catalog, Entry
from fpbench.components.spec import Spec, build_component, find_slot_kinds, specify
from fpbench.data.data_files import DataHome
from fpbench.testing.fixtures import make_cell_inputs
from fpbench.testing.other_process import NotTransferable, RemoteResult, run_remotely
from fpbench.testing.stages import STAGES, Stage, run_watched
from fpbench.testing.watching import Watched

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


class Case:
    """A component with one set of parameters; it is built and run when first needed.

    `catalog`: has it and the components in its slots. `parameters`: as in a matrix; missing
    required slots get defaults. `label`: distinguishes cases of one component. `directory`: the
    first directory searched for its data.
    """

    def __init__(
        self,
        catalog: Catalog,
        entry: Entry,
        parameters: Mapping[str, Any],
        label: str,
        directory: Path,
    ) -> None:
        self.catalog, self.entry, self.label = catalog, entry, label
        self.own_parameters, self.directory = dict(parameters), directory
        self._watched: dict[tuple[int, int], Watched] = {}

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
