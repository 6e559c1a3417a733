"""The measures of fpbench itself: all that it puts into rows, or computes from rows.

`OWN` is the one table of what they are called, what they mean and which way is better: headings,
rankings, reports and the glossary in the docs are made from it. Whatever writes a measure of
fpbench is typed by one of the classes here, so that no name is missing. No note of a component may
have such a name, in whichever cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated, Required, TypeAlias, TypedDict, TypeVar, get_type_hints

from fpbench.base.errors import PluginError
from fpbench.components.measures import (
    GREATER,
    LESS,
    NEITHER,
    Glossary,
    Measure,
    fold_name,
)
from fpbench.components.names import FIXED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

# fmt: off
OWN = (
    # Of every cell.
    Measure("seconds", "seconds", LESS, "s", "what the cell would have taken on its own"),
    Measure("portable", "portable", NEITHER, "",
            "false in rows whose numbers another processor would give otherwise"),
    # Of the target model.
    Measure("train_accuracy", "train accuracy", GREATER, "share",
            "training people whose label the model predicts"),
    Measure("test_accuracy", "accuracy", GREATER, "share",
            "test people whose label the model predicts"),
    Measure("train_unfairness", "train unfairness", LESS, "",
            "unfairness of the predictions for the training people, by the metric of the claim, or "
            "else by the one that the learner was trained for"),
    Measure("test_unfairness", "unfairness", LESS, "", "the same for the test people"),
    Measure("model_epsilon", "model eps", LESS, "",
            "epsilon of the differential privacy that the model guarantees its training people"),
    Measure("model_delta", "model delta", LESS, "", "delta of that guarantee"),
    Measure("model_neighbours", "model neighbours", NEITHER, "",
            "which data sets that guarantee compares"),
    Measure("model_rho", "model rho", LESS, "", "the same guarantee as zero-concentrated privacy"),
    Measure("asked_metric", "trained for", NEITHER, "",
            "the fairness metric that the learner was trained for"),
    Measure("asked_tolerance", "trained to", NEITHER, "",
            "the unfairness that it was to keep below"),
    # Of the claim that is attacked.
    Measure("claim_metric", "claim metric", NEITHER, "", "the fairness metric of the claim"),
    Measure("claim_form", "claim form", NEITHER, "",
            "what the claim compares the groups' rates with"),
    Measure("claim_tolerance", "claim tolerance", NEITHER, "",
            "the unfairness that the claim allows"),
    Measure("claim_holds", "claim true", GREATER, "yes or no",
            "whether the claim is true of the training people; a noisy one may not be"),
    Measure("claim_epsilon", "claim eps", LESS, "", "epsilon of a claim that was made privately"),
    Measure("claim_delta", "claim delta", LESS, "", "delta of such a claim"),
    Measure("claim_neighbours", "claim neighbours", NEITHER, "",
            "which data sets the guarantee of such a claim compares"),
    Measure("claim_noise", "claim noise", NEITHER, "",
            "where its noise came from: simulation or secure"),
    # Of an attack.
    Measure("people", "people", NEITHER, "people", "people that the target was trained on"),
    Measure("majority_accuracy", "majority", NEITHER, "share",
            "people whose group is right if everyone is called a member of the largest group"),
    Measure("prior_accuracy", "prior", NEITHER, "share",
            "the same, expected, if everyone's group is drawn from the shares of the attack set"),
    Measure("initial_accuracy", "guess", GREATER, "share",
            "people whose group the adversary guesses right"),
    Measure("corrected_accuracy", "corrected", GREATER, "share",
            "people whose group is right after the correction"),
    Measure("gain", "gain", GREATER, "share",
            "what the correction adds to the accuracy of the guess"),
    Measure("best_initial_accuracy", "best guess", GREATER, "share",
            "accuracy of the best guess of any adversary of the run at the same model and seed"),
    Measure("gain_over_best", "over best", GREATER, "share",
            "accuracy after the correction less that of the best guess of any adversary"),
    Measure("changes", "changes", LESS, "people", "guesses that the correction changes"),
    Measure("change_precision", "changes right", GREATER, "share",
            "changed guesses that are right now"),
    Measure("objective", "objective", NEITHER, "", "total weight of the changed guesses"),
    Measure("solver_status", "solver", NEITHER, "", "what the solver says of its answer"),
    Measure("solver_gap", "solver gap", LESS, "share",
            "how far the objective may be from the least one, as a share of it"),
    Measure("proven", "proven", GREATER, "yes or no",
            "whether the solver proved its answer, be it that nothing satisfies the claim"),
    Measure("correct_seconds", "solve s", LESS, "s", "how long the correction took"),
    Measure("reconsidered_accuracy", "recalibrated", GREATER, "share",
            "people whose group is right in the guess that a corrector made of the adversary's "
            "before it corrected it"),
    # Of a private audit.
    Measure("audit_metric", "metric", NEITHER, "", "the fairness metric that is audited"),
    Measure("epsilon", "epsilon", LESS, "",
            "epsilon of one audit; of a learner as a defence, of the model's guarantee"),
    Measure("delta", "delta", LESS, "", "delta of one audit"),
    Measure("neighbours", "neighbours", NEITHER, "", "which data sets its guarantee compares"),
    Measure("noise", "noise", NEITHER, "", "where its noise came from: simulation or secure"),
    Measure("repetitions", "repetitions", NEITHER, "", "audits alike, each with noise of its own"),
    Measure("true_ratio", "truth", NEITHER, "ratio",
            "the least group rate over the greatest, of the predictions for the people audited"),
    Measure("estimated_ratio", "estimate", NEITHER, "ratio",
            "what the audits say it is, on average"),
    Measure("error", "error", LESS, "ratio", "mean absolute error of the estimates"),
    Measure("error_deviation", "error sd", LESS, "ratio",
            "standard deviation of the absolute errors over the repetitions"),
    Measure("bias", "bias", NEITHER, "ratio", "mean error of the estimates"),
    Measure("coverage", "coverage", GREATER, "share", "intervals that hold the truth"),
    Measure("interval_width", "interval", LESS, "ratio", "mean width of the intervals"),
    Measure("random_guess_error", "guessing", NEITHER, "ratio",
            "expected error of an estimate that is drawn uniformly from 0 to 1"),
    Measure("four_fifths_right", "4/5 right", GREATER, "share",
            "estimates on the same side of 0.8 as the truth"),
    Measure("true_tenth", "true tenth", NEITHER, "ratio", "the truth, rounded down to tenths"),
    Measure("tenth_recall", "tenth recall", GREATER, "share",
            "estimates that round down to the same tenth"),
    Measure("uar", "UAR", GREATER, "share",
            "unweighted average recall of the tenths, over all seeds of the same audit"),
    Measure("uar_minus_error", "UAR - error", GREATER, "",
            "that less the mean error over the same seeds"),
    # Of a learner as a defence, over all attacks on it.
    Measure("mean_accuracy", "mean reached", LESS, "share",
            "accuracy that attacks reach, on average over them"),
    Measure("strongest_accuracy", "reached", LESS, "share",
            "accuracy that the strongest attack reaches"),
    Measure("mean_leak", "mean leak", LESS, "share",
            "mean accuracy of attacks less that of always guessing the largest group"),
    Measure("leak", "leak", LESS, "share",
            "accuracy of the strongest attack less that of always guessing the largest group"),
)
# fmt: on
"""The table: name, heading, which way is better, unit, meaning."""
GLOSSARY = Glossary(OWN)

RESERVED = {fold_name(name): name for name in sorted(MEASURED | DERIVED | FIXED | {GUARANTEE})}
"""Names that no component may give, by how they read."""
_MEANS = {fold_name(text): one.name for one in OWN for text in (one.heading, one.name)} | RESERVED
"""Names and headings that no component may declare, by how they read, and what they mean."""


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


def why_not_declarable(measures: object) -> str | None:
    """What is wrong with the measures that a component declares; None if nothing is."""
    if not isinstance(measures, tuple) or not all(isinstance(one, Measure) for one in measures):
        return "must be a tuple of fpbench.Measure"
    names: set[str] = set()
    for measure in measures:
        try:
            measure.check()
        except PluginError as error:
            return str(error)
        for text in () if "*" in measure.name else (measure.name, measure.heading):
            if (own := _MEANS.get(fold_name(text))) is not None:
                return f"{measure.name!r}: {text!r} is a measure of fpbench itself, {own!r}"
        if measure.name in names:
            return f"{measure.name!r} is declared twice"
        names.add(measure.name)
    return None


def misplaced(names: Iterable[str], audit: bool) -> list[str]:
    """Names that rows of an attack, or of an audit, cannot have: fpbench gives them elsewhere.

    So do those that look like one of fpbench's.
    """
    here = IN_AUDITS if audit else IN_ATTACKS
    return [name for name in names if name not in here and reserved_like(fold_name(name))]
