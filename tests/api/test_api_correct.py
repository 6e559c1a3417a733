from __future__ import annotations

import doctest

import numpy as np
import pytest

import fpbench
from fpbench import InputError
from fpbench.claims.rates import FORMS, METRICS
from fpbench.components.records import SolverStatus

GUESS = [0, 0, 0, 0, 1, 1, 1, 1]
PREDICTIONS = [1, 1, 1, 0, 1, 0, 0, 0]
LABELS = [0, 1, 0, 1, 0, 1, 0, 1]
WEIGHTS = [4.0, 3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 4.0]


def test_the_documented_example_runs():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for example in finder.find(fpbench.correct, "correct", globs={}):
        runner.run(example)
    assert runner.summarize().attempted == 4
    assert runner.failures == 0


def test_a_correction_by_hand():
    found = fpbench.correct(GUESS, PREDICTIONS, weights=WEIGHTS, tolerance=0.0)
    # Three of four against one of four: the cheapest way to equal rates.
    assert found.status == "optimal"
    assert found.values.tolist() == [0, 0, 1, 0, 1, 0, 1, 1]
    assert found.objective == found.bound == 4.0
    assert found.gap == 0
    assert found.moves.tolist() == [[[0, 0], [1, 0]], [[0, 1], [0, 0]]]
    assert found.seconds > 0


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_values_have_the_type_of_the_guess(dtype):
    assert fpbench.correct(np.array(GUESS, dtype), PREDICTIONS).values.dtype == dtype


@pytest.mark.parametrize("corrector", ["exact", "none", "posterior"])
def test_arguments_are_never_modified(corrector):
    given = [np.array(column) for column in (GUESS, PREDICTIONS, LABELS, WEIGHTS)]
    for metric in METRICS:
        for form in FORMS:
            copies = [column.copy() for column in given]
            for column in copies:
                column.flags.writeable = False
            guess, predictions, labels, weights = copies
            found = fpbench.correct(
                guess, predictions, labels=labels, weights=weights, metric=metric, form=form,
                tolerance=0.3, corrector=corrector,
            )  # fmt: skip
            for column, before in zip(copies, given, strict=True):
                np.testing.assert_array_equal(column, before)
            assert found.values is None or not np.shares_memory(found.values, guess)


def test_a_claim_that_cannot_hold_gives_no_values():
    found = fpbench.correct([0, 1, 1], [1, 0, 0])
    assert found.status is SolverStatus.INFEASIBLE
    assert (found.values, found.objective, found.bound, found.moves, found.gap) == (None,) * 5


def test_what_else_is_known_comes_after_the_claim():
    claim = {"weights": [4.0, 2.5, 2.25, *WEIGHTS[3:]], "tolerance": 0.0}
    known = fpbench.claims.KnownPeople([2], [0])
    found = fpbench.correct(GUESS, PREDICTIONS, constraints=[known], **claim)
    # Who was cheapest to change (row 2, at 2.25) is known: the next cheapest is (row 1, at 2.5).
    assert found.values.tolist() == [0, 1, 0, 0, 1, 0, 1, 1]
    assert found.objective == 4.5
    # Knowing somebody whose guess is wrong costs the change.
    known = fpbench.claims.KnownPeople([0], [1])
    found = fpbench.correct(GUESS, PREDICTIONS, constraints=[known], **claim)
    assert found.values.tolist() == [1, 0, 0, 0, 1, 0, 1, 1]
    assert found.objective == 6.0


def test_without_a_metric_only_what_else_is_known_counts():
    half = fpbench.claims.ShareBounds(1, 0.75)
    found = fpbench.correct(GUESS, PREDICTIONS, weights=WEIGHTS, metric=None, constraints=[half])
    assert found.values.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert found.objective == 3.0
    claimed = fpbench.correct(GUESS, PREDICTIONS, weights=WEIGHTS, constraints=[half])
    assert claimed.objective > 3


def test_three_groups():
    guess, predictions = [0, 0, 1, 1, 2, 2], [1, 1, 1, 0, 0, 0]
    found = fpbench.correct(guess, predictions)
    assert found.status == "optimal"
    assert found.objective == 2.0
    rates = [np.mean(np.array(predictions)[found.values == k]) for k in range(3)]
    assert rates == [0.5, 0.5, 0.5]
    assert found.moves.shape == (2, 3, 3)
    assert fpbench.correct([0, 1, 1], [1, 0, 0], groups=4).status == "infeasible"


def test_contradictions_are_infeasible():
    for known in (
        [fpbench.claims.KnownPeople([0, 0], [0, 1])],
        [fpbench.claims.ShareBounds(0, 0.6), fpbench.claims.ShareBounds(1, 0.6)],
        [fpbench.claims.RateBounds(0, 0.9), fpbench.claims.RateBounds(0, 0, 0.8)],
        [fpbench.claims.KnownUnfairness("statistical-parity", 0.5, 1)],
    ):
        for corrector in ("exact", "posterior"):
            found = fpbench.correct(
                GUESS, PREDICTIONS, tolerance=0.4, constraints=known, corrector=corrector
            )
            assert found.status is SolverStatus.INFEASIBLE
            assert (found.values, found.objective, found.bound, found.moves) == (None,) * 4


def test_no_correction_returns_the_guess():
    found = fpbench.correct(GUESS, PREDICTIONS, corrector="none")
    assert found.values.tolist() == GUESS
    assert found.status is None


def test_labels_are_not_needed_for_statistical_parity():
    with_labels = fpbench.correct(GUESS, PREDICTIONS, labels=LABELS)
    np.testing.assert_array_equal(with_labels.values, fpbench.correct(GUESS, PREDICTIONS).values)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"metric": None}, "corrector 'exact' needs a claim, and nothing was claimed"),
    ({"constraints": [fpbench.claims.LinearConstraint(0, WEIGHTS)]}, "corrector 'exact' cannot"),
    ({"tolerance": 1.5}, "tolerance must be between 0 and 1, not 1.5"),
    ({"tolerance": "5%"}, "tolerance must be a number or a fraction, not '5%'"),
    ({"metric": "equalized-ods"}, "unknown metric 'equalized-ods'; did you mean 'equalized-odds'?"),
    ({"form": "ratios"}, "unknown form 'ratios'; did you mean 'ratio'?"),
])  # fmt: skip
def test_bad_input_is_one_clear_error(arguments, message):
    """What is wrong with the columns themselves is in `test_problem.py`."""
    usual = {"guess": GUESS, "predictions": PREDICTIONS, "labels": LABELS, "weights": WEIGHTS}
    arguments = usual | arguments
    with pytest.raises(InputError) as error:
        fpbench.correct(arguments.pop("guess"), arguments.pop("predictions"), **arguments)
    assert str(error.value).startswith(message)


def test_an_unknown_corrector_or_parameter_suggests_the_nearest():
    with pytest.raises(fpbench.InputError, match=r"'exakt'.*did you mean 'exact'"):
        fpbench.correct(GUESS, PREDICTIONS, corrector="exakt")
    with pytest.raises(fpbench.InputError, match=r"'weighs'.*did you mean 'weights'"):
        fpbench.component("corrector", "exact", weighs="identity")
    with pytest.raises(fpbench.InputError, match=r"'exponent'.*did you mean 'exponents'"):
        fpbench.correct(GUESS, PREDICTIONS, exponent=3)
    with pytest.raises(fpbench.InputError, match=r"exponents.*100"):
        fpbench.correct(GUESS, PREDICTIONS, exponents=100)


@pytest.mark.parametrize(
    "corrector", [{"use": "exact"}, fpbench.component("corrector", "exact")], ids=["table", "made"]
)
def test_a_corrector_may_be_a_table_or_made(corrector):
    found = fpbench.correct(GUESS, PREDICTIONS, weights=WEIGHTS, tolerance=0.0, corrector=corrector)
    by_name = fpbench.correct(GUESS, PREDICTIONS, weights=WEIGHTS, tolerance=0.0)
    assert found.values.tolist() == by_name.values.tolist()
    assert (found.status, found.objective) == (by_name.status, by_name.objective)


def test_parameters_of_a_table_reach_the_corrector():
    table = {"use": "exact", "time_limit": 0.0}
    with pytest.raises(InputError, match="time_limit"):
        fpbench.correct(GUESS, PREDICTIONS, corrector=table)


@pytest.mark.parametrize(("corrector", "more", "reason"), [
    (fpbench.component("policy", "clip"), {}, "must be a name or a corrector, not Clip"),
    (3, {}, "corrector: must be a name or a corrector, not 3"),
    (None, {}, "corrector: must be a name or a corrector, not None"),
    (type(fpbench.component("corrector", "exact")), {}, "must be a name or a corrector, not"),
    ({"time_limit": 1}, {}, 'corrector: a table needs use = "NAME"'),
    (fpbench.component("corrector", "exact"), {"time_limit": 1.0},
     "corrector: time_limit can be given only with a name"),
    ("exakt", {}, "did you mean 'exact'"),
])  # fmt: skip
def test_a_wrong_corrector_is_one_error(corrector, more, reason):
    with pytest.raises(InputError, match=reason):
        fpbench.correct(GUESS, PREDICTIONS, corrector=corrector, **more)
