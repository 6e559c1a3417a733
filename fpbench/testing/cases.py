"""A component with one set of parameters, and what it does when it is run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import Catalog, Entry
from fpbench.components.spec import Spec, build, slot_kinds, specify
from fpbench.data.data_files import DataHome
from fpbench.testing.acting import act
from fpbench.testing.audit_stages import STAGES
from fpbench.testing.elsewhere import Told, Unopened, told
from fpbench.testing.stages import Stage
from fpbench.testing.watching import Watched
from fpbench.testing.world import world

_HELD = {
    "dataset": "census-synthetic",
    "learner": "plain",
    "disclosure": "published",
    "adversary": "prior",
    "corrector": "exact",
    "mechanism": "laplace",
    "policy": "clip",
    "auditor": "group-fairness",
}
"""What fills the fields of another kind that an example leaves out."""


class Inapplicable(Exception):  # noqa: N818 (nothing is wrong: it says why a law is not tested)
    """A law that cannot be tested here, with the reason."""


class Case:
    """A component with one set of parameters; built, and run, when first asked for.

    Parameters
    ----------
    catalog
        In which it, and what it holds, is registered.
    entry
        The component.
    parameters
        As a matrix has them; components that it must hold and that are left out are chosen.
    label
        Tells cases of one component apart.
    directory
        Where its data are looked for first.
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
        self.given_parameters, self.directory = dict(parameters), directory
        self._watched: dict[tuple[int, int], Watched] = {}

    def __str__(self) -> str:
        return f"{self.entry.kind} {self.entry.name}{self.label}"

    @property
    def stage(self) -> Stage:
        """How components of its kind are run."""
        return STAGES[self.entry.kind]

    @cached_property
    def cls(self) -> type[Component]:
        """Its class, imported now."""
        return self.catalog.component(self.entry.kind, self.entry.name)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """All that is said of it, with the components that it must hold."""
        lacking = {
            name: {"use": _HELD[kind]}
            for name, kind in slot_kinds(self.cls).items()
            if self.cls.model_fields[name].is_required() and name not in self.given_parameters
        }
        return {**self.given_parameters, **lacking}

    @cached_property
    def built(self) -> tuple[Component, Spec]:
        """The component, as a matrix makes it, and what it is as data."""
        return self.made(self.parameters)

    def made(self, parameters: Mapping[str, Any]) -> tuple[Component, Spec]:
        """It with other parameters.

        Raises
        ------
        MatrixError
            If a parameter is unknown, missing or out of range.
        """
        return specify(self.catalog, self.entry.kind, self.entry.name, dict(parameters), str(self))

    @property
    def component(self) -> Component:
        """The component."""
        return self.built[0]

    def rebuilt(self, spec: Spec) -> Component:
        """The component that a spec describes."""
        return build(spec, self.catalog)

    @cached_property
    def home(self) -> DataHome:
        """Where its data are, a table called `people` among them."""
        default = DataHome.default().directories
        return DataHome((self.directory, *default), {"people": world(2).table})

    def must_run(self, k: int) -> None:
        """Say if it cannot be run here with people of k groups.

        Raises
        ------
        Inapplicable
            With the reason.
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
        """What happens when it is run, once for each number of groups and seed.

        Raises
        ------
        Inapplicable
            If it cannot be run here.
        """
        if (k, seed) not in self._watched:
            self._watched[k, seed] = self._watch(k, seed)
        return self._watched[k, seed]

    def ran(self, k: int = 2, seed: int = 0) -> Watched:
        """What happens when it is run; whatever it raises is raised here.

        Raises
        ------
        Inapplicable
            If it cannot be run here.
        """
        watched = self.watched(k, seed)
        if watched.error is not None:
            raise watched.error
        return watched

    def again(self) -> Watched:
        """What happens when it is run once more, as the first time."""
        return self._watch(2, 0)

    def elsewhere(self) -> Told | Unopened:
        """What happens when it is run in another process, as the first time."""
        return told(self.component, self.home)

    def _watch(self, k: int, seed: int) -> Watched:
        self.must_run(k)
        return act(self.component, self.home, k, seed)
