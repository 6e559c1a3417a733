"""The base class of each kind of component, by the kind's name."""

from fpbench.components.attack_kinds import (
    Adversary,
    Component,
    Corrector,
    Dataset,
    Disclosure,
    Learner,
)
from fpbench.components.auditor import Auditor
from fpbench.components.mechanism import Mechanism, Policy

_BASES = (Dataset, Learner, Disclosure, Adversary, Corrector, Mechanism, Policy, Auditor)

BASES: dict[str, type[Component]] = {base.kind: base for base in _BASES}
"""Base class of each kind."""
