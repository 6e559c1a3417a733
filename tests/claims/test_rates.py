from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracles
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.claims import KnownUnfairness, RateBounds, RateConstraint
from fpbench.claims.rates import FORMS, METRICS, compare_rates, group_counts
from fpbench.plugin import discover

TOLERANCES = (
    0.0, 1e-17, 0.01, 0.1, 0.2, 0.25, 1 / 3, 0.1 + 0.2, 0.5, 0.12345678901234567, 0.95, 1.0,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
def test_unfairness_equals_fairlearn(k):
    rng = np.random.default_rng(k)
    rates = {
        "statistical-parity": [selection_rate],
        "predictive-equality": [false_positive_rate],
        "equal-opportunity": [true_positive_rate],
        "equalized-odds": [false_positive_rate, true_positive_rate],
    }
    for _ in range(5):
        groups, labels = rng.integers(0, k, 300), rng.integers(0, 2, 300)
        predictions = (rng.random(300) < 0.3 + 0.1 * groups).astype(int)
        for metric in METRICS:
            frames = [
                MetricFrame(
                    metrics=rate, y_true=labels, y_pred=predictions, sensitive_features=groups
                )
                for rate in rates[metric]
            ]
            wanted = {
                "to-overall": max(f.difference(method="to_overall") for f in frames),
                "between-groups": max(f.difference(method="between_groups") for f in frames),
                "ratio": max(1 - f.ratio(method="between_groups") for f in frames),
            }
            for form in FORMS:
                constraint = RateConstraint(metric, form=form)
                found = constraint.unfairness(groups, predictions, labels, k)
                assert isinstance(found, Fraction)
                assert float(found) == pytest.approx(wanted[form], abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4),
    st.sampled_from(FORMS),
    st.sampled_from(TOLERANCES) | st.floats(0, 1),
)
def test_unfairness_is_the_least_tolerance_that_holds(counts, form, tolerance):
    members = np.array([max(pair) for pair in counts])
    positives = np.array([min(pair) for pair in counts])
    least = compare_rates(members, positives, form)
    assert 0 <= least <= 1
    assert least == oracles.unfairness(members, positives, form)
    holds = oracles.rates_agree(members, positives, form, tolerance)
    assert holds == (least <= RateConstraint(tolerance=tolerance).exact_tolerance)


def test_holds_looks_at_the_slices_of_its_metric():
    groups, predictions = np.array([0, 0, 1, 1]), np.array([1, 0, 1, 1])
    labels = np.array([1, 0, 1, 0])
    fair = {m: RateConstraint(m).holds(groups, predictions, labels, 2) for m in METRICS}
    assert fair == {
        "statistical-parity": False,
        "predictive-equality": False,
        "equal-opportunity": True,
        "equalized-odds": False,
    }
    assert RateConstraint("equalized-odds", 0.5).holds(groups, predictions, labels, 2)
    assert not RateConstraint("equalized-odds", 0.5, "ratio").holds(groups, predictions, labels, 2)


def test_every_slice_may_have_to_have_members_of_all_groups():
    groups, predictions, labels = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 1, 1]])
    one, both = (RateConstraint("equalized-odds", 1.0, every_slice=e) for e in (False, True))
    assert one.holds(groups, predictions, labels, 2)
    assert not both.holds(groups, predictions, labels, 2)
    assert both.holds(np.array([0, 1, 1, 0]), predictions, labels, 2)
    assert both.holds(groups, predictions, np.zeros(4, int), 2)  # a slice of nobody has no groups


@pytest.mark.parametrize("form", FORMS)
def test_groups_without_members_have_no_rate(form):
    nobody = np.zeros(2, dtype=int)
    assert compare_rates(nobody, nobody, form) == 0
    assert compare_rates(np.array([5, 0]), np.array([2, 0]), form) == 0
    assert compare_rates(np.array([5, 3]), nobody, form) == 0


def test_group_counts():
    members, positives = group_counts(np.array([0, 2, 2, 0]), np.array([1, 1, 0, 1]), 4)
    assert members.tolist() == [2, 0, 2, 0]
    assert positives.tolist() == [2, 0, 1, 0]
    part = np.array([True, True, False, False])
    members, positives = group_counts(np.array([0, 2, 2, 0]), np.array([1, 1, 0, 1]), 4, part)
    assert members.tolist() == positives.tolist() == [1, 0, 1, 0]


def test_a_tolerance_is_the_decimal_that_was_written():
    assert RateConstraint(tolerance=0.1).exact_tolerance == Fraction(1, 10)
    assert RateConstraint(tolerance=1e-17).exact_tolerance == Fraction(1, 10**17)
    assert RateConstraint(tolerance=1).exact_tolerance == 1
    of_numpy = RateConstraint(tolerance=Fraction(np.int64(1), np.int64(4))).exact_tolerance
    assert type(of_numpy.numerator) is type(of_numpy.denominator) is int
    assert RateConstraint(tolerance=np.float64(0.25)).exact_tolerance == Fraction(1, 4)
    assert RateConstraint(tolerance=0.1 + 0.2).exact_tolerance > Fraction(3, 10)


def test_a_fraction_is_taken_as_it_is():
    third = RateConstraint(tolerance=Fraction(1, 3))
    assert third.exact_tolerance == Fraction(1, 3)
    assert RateConstraint(tolerance=1 / 3).exact_tolerance < third.exact_tolerance
    # Rates 1/3 and 1 are exactly 2/3 apart.
    people = np.array([0, 0, 0, 1]), np.array([1, 0, 0, 1]), None, 2
    exact = RateConstraint(tolerance=Fraction(2, 3), form="between-groups")
    assert exact.holds(*people)
    assert not RateConstraint(tolerance=0.6666666666666666, form="between-groups").holds(*people)


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0000001, float("inf"), -1])
def test_a_tolerance_out_of_range(tolerance):
    with pytest.raises(InputError) as error:
        RateConstraint(tolerance=tolerance)
    assert str(error.value) == f"tolerance must be between 0 and 1, not {tolerance!r}"


@pytest.mark.parametrize("tolerance", ["0.1", None, [0.1], float("nan")])
def test_a_tolerance_that_is_no_number(tolerance):
    with pytest.raises(InputError, match="tolerance must be a number or a fraction, not "):
        RateConstraint(tolerance=tolerance)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError) as error:
        RateConstraint("statistical-party")
    assert str(error.value) == (
        "unknown metric 'statistical-party'; did you mean 'statistical-parity'?"
    )
    with pytest.raises(InputError) as error:
        RateConstraint(form="between")
    assert str(error.value) == "unknown form 'between'; did you mean 'between-groups'?"


@pytest.mark.parametrize(("alias", "metric"), [
    ("demographic-parity", "statistical-parity"),
    ("demographic_parity", "statistical-parity"),
    ("Demographic parity", "statistical-parity"),
    ("independence", "statistical-parity"),
    ("separation", "equalized-odds"),
    ("equalised-odds", "equalized-odds"),
    ("equalized_odds", "equalized-odds"),
    ("true-positive-rate-parity", "equal-opportunity"),
    ("false-positive-rate-parity", "predictive-equality"),
])  # fmt: skip
def test_metrics_have_the_other_names_of_the_field(alias, metric):
    assert RateConstraint(alias, 0.1) == RateConstraint(metric, 0.1)
    assert KnownUnfairness(alias, 0, 0.1) == KnownUnfairness(metric, 0, 0.1)
    assert RateBounds(0, metric=alias) == RateBounds(0, metric=metric)
    published = discover().component("disclosure", "published")
    assert published(metric=alias) == published(metric=metric)


def test_labels_are_needed_by_slices():
    for metric in METRICS[1:]:
        with pytest.raises(InputError, match=f"metric '{metric}' needs the labels"):
            RateConstraint(metric).slices(None)
    assert RateConstraint().slices(None) == [None]
