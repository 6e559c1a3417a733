"""What fpbench measures, by name: all that it puts into rows itself, or computes from them.

Whatever writes a measure of fpbench is typed by one of these tables, so that no name is missing
here. No note of a component may have such a name, in whichever cell.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from string import ascii_lowercase
from typing import Annotated, Required, TypeAlias, TypedDict, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fpbench.components.names import FIXED

_T = TypeVar("_T")
_SAID = "as a component says it"
Said: TypeAlias = Annotated[_T, _SAID]
"""A measure that fpbench takes over from a component's answer, and does not compute."""


class PlanMeasures(TypedDict, total=False):
    """Of a cell as it was planned, in rows whose numbers other processors give otherwise."""

    portable: bool


class ModelMeasures(TypedDict, total=False):
    """Of the target model, in every row; what it guarantees but epsilon only if it does."""

    train_accuracy: Required[float]
    test_accuracy: Required[float]
    train_unfairness: Required[float]
    test_unfairness: Required[float]
    model_epsilon: Required[Said[float | None]]
    model_delta: Said[float]
    model_neighbours: Said[str]
    model_rho: Said[float | None]


class ClaimMeasures(TypedDict, total=False):
    """Of the claim of an attack; what it guarantees only if it was made privately."""

    claim_metric: Required[Said[str | None]]
    claim_form: Required[Said[str | None]]
    claim_tolerance: Required[Said[float | None]]
    claim_holds: Required[int | None]
    claim_epsilon: Said[float]
    claim_delta: Said[float]
    claim_neighbours: Said[str]
    claim_noise: Said[str | None]


class AttackMeasures(TypedDict):
    """Of the guess and the correction of an attack."""

    people: int
    majority_accuracy: float
    prior_accuracy: float
    initial_accuracy: float
    corrected_accuracy: float | None
    gain: float | None
    asked_metric: Said[str | None]
    asked_tolerance: Said[float | None]
    changes: int | None
    change_precision: float | None
    objective: Said[float | None]
    solver_status: Said[str | None]
    solver_gap: Said[float | None]
    proven: Said[int | None]


class CorrectionMeasures(TypedDict, total=False):
    """What is measured while a guess is corrected."""

    correct_seconds: Required[float]
    reconsidered_accuracy: float


class ReleaseMeasures(TypedDict):
    """Of a private audit."""

    audit_metric: Said[str]
    epsilon: Said[float]
    delta: Said[float]
    neighbours: Said[str]
    noise: Said[str]
    repetitions: int
    true_ratio: float
    estimated_ratio: float
    error: float
    error_deviation: float | None
    bias: float
    coverage: float | None
    interval_width: float | None
    random_guess_error: float
    four_fifths_right: float
    true_tenth: float
    tenth_recall: float


class BesideAttacks(TypedDict):
    """What attacks are beside the others of their run, all at once."""

    best_initial_accuracy: NDArray[np.float64]
    gain_over_best: NDArray[np.float64]


class BesideAudits(TypedDict):
    """What private audits are beside those of other seeds, all at once."""

    uar: NDArray[np.float64]
    uar_minus_error: NDArray[np.float64]


class DefenceMeasures(TypedDict):
    """Of a learner as a defence, beside what its attacks measured."""

    gain: float
    gain_over_best: float
    epsilon: float
    mean_accuracy: float
    strongest_accuracy: float
    mean_leak: float
    leak: float


GUARANTEE = "guarantee"
"""The column of leaderboards that says what the learner's epsilon is of."""
NO_GUARANTEE = "none"
"""Said there of a learner that promises nothing."""
NOT_RECORDED = "not recorded"
"""Said there if rows do not say it: those of an earlier fpbench."""
UNPROMISED = (NO_GUARANTEE, NOT_RECORDED)
"""What is said there of learners of which no guarantee is known."""

_OF_ATTACKS = (PlanMeasures, AttackMeasures, ModelMeasures, ClaimMeasures, CorrectionMeasures)
_OF_AUDITS = (PlanMeasures, ModelMeasures, ReleaseMeasures)
_OF_RUNS = (BesideAttacks, BesideAudits, DefenceMeasures)
_Tables: TypeAlias = Iterable[type]


def _names(tables: _Tables) -> frozenset[str]:
    return frozenset(name for table in tables for name in table.__annotations__)


IN_ATTACKS, IN_AUDITS = _names(_OF_ATTACKS), _names(_OF_AUDITS)
"""Names that fpbench gives in rows of attacks, and in those of audits."""
MEASURED = IN_ATTACKS | IN_AUDITS
"""All of them."""
MEASURES = IN_ATTACKS | _names((BesideAttacks,))
"""Names of what fpbench measures of attacks."""
DERIVED = _names(_OF_RUNS) - MEASURED
"""Names of what is computed from rows, and that no row has."""


def _said() -> frozenset[str]:
    hints = [
        (name, hint)
        for table in (*_OF_ATTACKS, *_OF_AUDITS)
        for name, hint in get_type_hints(table, include_extras=True).items()
    ]
    return frozenset(name for name, hint in hints if _SAID in str(hint))


COMPUTED = MEASURED - _said()
"""Names of what fpbench computes from guesses, corrections, predictions and releases; the others
it takes over from the answers of components."""

_LOOKS = {
    "a": "\u0391\u03b1\u0410\u0430",
    "b": "\u0392\u0412",
    "c": "\u0421\u0441",
    "d": "\u0501",
    "e": "\u0395\u0415\u0435",
    "g": "\u0261\u0581",
    "h": "\u0397\u041d\u04bb",
    "i": "\u0131\u0399\u03b9\u0406\u0456",
    "j": "\u0408\u0458",
    "k": "\u039a\u041a",
    "l": "\u0196\u04cf",
    "m": "\u039c\u041c",
    "n": "\u039d\u0578",
    "o": "\u039f\u03bf\u041e\u043e",
    "p": "\u03a1\u03c1\u0420\u0440",
    "q": "\u051a\u051b",
    "s": "\u0405\u0455",
    "t": "\u03a4\u0422",
    "u": "\u03c5",
    "v": "\u03bd\u0475",
    "w": "\u051c\u051d",
    "x": "\u03a7\u0425\u0445",
    "y": "\u03a5\u0423\u0443\u04af",
    "z": "\u0396",
}
"""Letters of other scripts (Greek, Cyrillic, Armenian) that look like a Latin one."""
_LATIN = str.maketrans({odd: plain for plain, odds in _LOOKS.items() for odd in odds})
_LATIN[0x03B5] = "epsilon"


@lru_cache(maxsize=1 << 14)
def fold_name(name: str) -> str:
    """A name as the eye reads it: the same for names that differ in case, signs or look alike."""
    # Capitals of other scripts look like Latin ones that their small letters do not look like.
    plain = unicodedata.normalize("NFKD", name).translate(_LATIN).casefold().translate(_LATIN)
    return "".join(letter for letter in plain if letter.isalnum())


RESERVED = {fold_name(name): name for name in sorted(MEASURED | DERIVED | FIXED | {GUARANTEE})}
"""Names that no component may give, by how they read."""


def reserved_like(read: str) -> str | None:
    """The name of fpbench's that a folded name is, or is mistaken for; None if it is neither.

    Of letters that no table knows, and of digits, nobody says what they look like: they may stand
    for any letter, if most letters of the name are known.
    """
    if read in RESERVED or (read.isascii() and read.isalpha()):
        return RESERVED.get(read)
    known = [(i, letter) for i, letter in enumerate(read) if letter in ascii_lowercase]
    if 2 * len(known) < len(read):
        return None
    return next(
        (
            own
            for other, own in RESERVED.items()
            if len(other) == len(read) and all(other[i] == letter for i, letter in known)
        ),
        None,
    )


def misplaced(names: Iterable[str], audit: bool) -> list[str]:
    """Names that rows of an attack, or of an audit, cannot have: fpbench gives them elsewhere.

    So do those that look like one of fpbench's.
    """
    here = IN_AUDITS if audit else IN_ATTACKS
    return [name for name in names if name not in here and reserved_like(fold_name(name))]
