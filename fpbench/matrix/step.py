"""A unit of cached work, as data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fpbench.components.records import Claim, Correction, MeasureValues
from fpbench.components.spec import Spec
from fpbench.data.sample import Codes

ORDER = (
    "load", "split", "train", "predict", "shadow", "disclose", "reveal", "ask", "tune", "guess",
    "correct", "score", "audit",
)  # fmt: skip
"""Names of the actions of steps, in the order of the flow."""

EACH_GROUP = "each group"
"""Option of `ask`: the model is asked about people as if in each group, not in their own."""


@dataclass(frozen=True)
class Step:
    """A unit of cached work, as data."""

    key: str
    """Hash of all that its result depends on, code included."""
    stream: str
    """Hash of what it is, code excluded: its randomness is derived from this."""
    action: str
    spec: Spec | None
    parents: tuple[str, ...]
    """Keys of the steps whose results are its inputs, in order."""
    options: tuple[float | str, ...] = ()
    uses: tuple[tuple[str, str], ...] = ()
    """Kind and name of the components whose results a last step combines, for errors."""
    learner: Spec | None = None
    """The learner that an audit may train, as the last of its inputs; else None."""
    third_party: bool = False
    """Whether it runs code of another distribution: a component's, or that of an object that a
    component has made."""

    @property
    def name(self) -> tuple[str, str]:
        """Its action and its component, as plans and timings name it."""
        return self.action, self.spec.use if self.spec else ""

    def rng(self) -> np.random.Generator:
        """Its own stream of randomness."""
        digest = hashlib.sha256(self.stream.encode()).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))

    def __str__(self) -> str:
        return f"{self.action} {self.spec.use}" if self.spec else self.action


_MOST_LETTERS = 20_000
"""Greatest number of letters of a stored reason or traceback."""


def shorten(text: str) -> str:
    """A text without its middle, if it is too long to be read."""
    left = len(text) - _MOST_LETTERS
    if left <= 0:
        return text
    half = (_MOST_LETTERS - 60) // 2  # so that what is short is not shortened again
    return f"{text[:half]} ... ({len(text) - 2 * half:,} letters) ... {text[-half:]}"


class Failure(NamedTuple):
    """Why a step has no result."""

    reason: str
    trace: str
    bad_input: bool
    """Whether the user's input is wrong, and not a component."""


class Result(NamedTuple):
    """The value of a step, or an engine's handle of the value, and the seconds that it took."""

    value: Any
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether the value is a `Failure`."""
        return isinstance(self.value, Failure)


@dataclass(frozen=True)
class Sealed:
    """A result that is unpickled in one-use processes only: it may hold a stranger's objects."""

    content: bytes


@dataclass(frozen=True)
class SealedClaim(Claim):
    """A claim whose conditions on rates and `Facts` are readable, and other conditions sealed."""

    content: bytes = b""
    """The other conditions, pickled."""


@dataclass(frozen=True)
class Corrected:
    """The answer of a corrector, before anything is measured."""

    correction: Correction
    seconds: float
    """Time of the correction, without weighing."""
    weighed: MeasureValues
    """Measures of its weights."""
    reconsidered: Codes | None
    """(n,) groups that it corrected instead of the guess; None: the guess itself."""
