"""The base class of each kind of component, by the kind's name."""

from fpbench.auditing import Auditor, Mechanism, Policy
from fpbench.components import Adversary, Component, Corrector, Dataset, Disclosure, Learner

_BASES = (Dataset, Learner, Disclosure, Adversary, Corrector, Mechanism, Policy, Auditor)

BASES: dict[str, type[Component]] = {base.kind: base for base in _BASES}
"""Base class of each kind."""
