"""What holds objects of a component, and is opened only where components run: models, above all.

With limits, what a step gives is read where the truth is. Models, tuned adversaries, and what a
disclosure knows besides rates may be objects of any class, which only a pickle can carry. They
travel as bytes that nobody opens on the way.
"""

from __future__ import annotations

import pickle
from typing import Any

from fpbench.components.records import Claim
from fpbench.matrix.step import Sealed, SealedClaim

SEALED = frozenset({"train", "tune"})
"""What gives objects of a component, and nothing that fpbench reads itself."""


def seal(action: str, value: Any) -> Any:
    """What a step gave, its objects as bytes; in the process that has made it."""
    if action in SEALED:
        return Sealed(_pickled(value))
    if isinstance(value, Claim) and value.also:
        return SealedClaim(
            value.constraint, value.source, (), value.notes, value.guarantee, value.noise,
            _pickled(value.also),
        )  # fmt: skip
    return value


def unseal(value: Any) -> Any:
    """A result as it was before it was sealed; in a process where its component may run."""
    if isinstance(value, Sealed):
        return pickle.loads(value.content)
    if isinstance(value, SealedClaim):
        also = tuple(pickle.loads(value.content))
        return Claim(
            value.constraint, value.source, also, value.notes, value.guarantee, value.noise
        )
    return value


def _pickled(value: Any) -> bytes:
    import cloudpickle

    content: bytes = cloudpickle.dumps(value)
    return content
