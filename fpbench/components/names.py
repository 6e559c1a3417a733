"""The kinds of component: hooks, matrix, listings and tests are made from this table.

The table holds words only, so that a listing imports nothing heavy; the base class of each kind is
in `fpbench.components.auditor`.
"""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """The outcome of a cell; it determines exit code and colour."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Kind(NamedTuple):
    """A kind of component."""

    name: str
    """Key of its tables in a matrix, and the word on the command line."""
    plural: str
    base: str
    """Name of its base class, which is public."""
    method: str
    """Name of the abstract method of this kind."""
    summary: str

    @property
    def hook(self) -> str:
        """Name of the hook through which plugins register components of this kind."""
        return f"fpbench_{self.plural}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("dataset", "datasets", "Dataset", "load", "people: features, a label, groups"),
        Kind("learner", "learners", "Learner", "fit", "trains the model under attack or audit"),
        Kind("disclosure", "disclosures", "Disclosure", "claim", "a claim about its fairness"),
        Kind("adversary", "adversaries", "Adversary", "guess", "guesses each person's group"),
        Kind("corrector", "correctors", "Corrector", "correct", "makes a guess meet the claim"),
        Kind("mechanism", "mechanisms", "Mechanism", "release", "adds noise for privacy"),
        Kind("policy", "policies", "Policy", "repair", "repairs invalid noisy answers"),
        Kind("auditor", "auditors", "Auditor", "audit", "measures a model"),
    )
}

ATTACK = ("dataset", "learner", "disclosure", "adversary", "corrector")
"""The kinds that an attack cell combines, in order."""
AUDIT = ("dataset", "learner", "auditor", "mechanism", "policy")
"""The kinds that an audit cell combines; an auditor may take no mechanism and no policy."""

FIXED = frozenset({"cell", *KINDS, "seed", "status", "reason", "seconds"})
"""Columns of every row, besides its measures."""
PORTABLE = "portable"
"""A measure of fpbench: false in rows whose numbers may differ on another processor."""

MATRIX_VALUES = ("seeds", "title")
"""Keys at the top of a matrix that are no tables."""
