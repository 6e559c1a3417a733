"""Pickled objects of components, which are unpickled only in processes where components run.

With limits, results of steps are read in the process that holds the truth. Models, tuned
adversaries, and parts of a claim other than rates and `Facts` may be objects of any class, which
need pickle. They travel as bytes that are not unpickled on the way.
"""

from __future__ import annotations

import pickle
from typing import Any

from fpbench.claims.set_counts import Facts
from fpbench.components.records import Claim
from fpbench.matrix.step import Sealed, SealedClaim

SEALED = frozenset({"train", "tune"})
"""Actions whose results are objects of a component: fpbench itself does not read them."""


def seal(action: str, value: Any) -> Any:
    """A step's result with its objects pickled; called in the process that made it."""
    if action in SEALED:
        return Sealed(_pickle(value))
    if isinstance(value, Claim):
        facts = tuple(one for one in value.also if type(one) is Facts)
        others = tuple(one for one in value.also if type(one) is not Facts)
        if others:
            return SealedClaim(**{**vars(value), "also": facts}, content=_pickle(others))
    return value


def unseal(value: Any) -> Any:
    """A result with its objects unpickled; called only where its component may run."""
    if isinstance(value, Sealed):
        return pickle.loads(value.content)
    if isinstance(value, SealedClaim):
        fields = {name: part for name, part in vars(value).items() if name != "content"}
        return Claim(**{**fields, "also": (*value.also, *pickle.loads(value.content))})
    return value


def _pickle(value: Any) -> bytes:
    import cloudpickle

    content: bytes = cloudpickle.dumps(value)
    return content
