"""How a component is run: on the stage of its kind, watched."""

from __future__ import annotations

from fpbench.components.attack_kinds import Component
from fpbench.data.data_files import DataHome
from fpbench.testing.audit_stages import STAGES
from fpbench.testing.watching import Watched, watch


def act(component: Component, home: DataHome, k: int = 2, seed: int = 0) -> Watched:
    """What happens when it is run with people of k groups."""
    stage = STAGES[component.kind]
    given = stage.given(component, k, home)
    return watch(lambda mine: stage.run(component, mine, seed), given)
