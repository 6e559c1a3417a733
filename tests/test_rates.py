from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracles
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st

import fpbench.rates
from fpbench import InputError, RateConstraint
from fpbench.rates import FORMS, METRICS, group_counts, unfairness

TOLERANCES = (
    0.0, 1e-17, 0.01, 0.1, 0.2, 0.25, 1 / 3, 0.1 + 0.2, 0.5, 0.12345678901234567, 0.95, 1.0,
)  # fmt: skip


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("form", FORMS)
def test_sizes_equal_enumeration(form, tolerance):
    constraint = RateConstraint(tolerance=tolerance, form=form)
    for n in (*range(10), 13):
        for p in range(n + 1):
            lows, highs = constraint.two_group_members(np.arange(p + 1), p, n)
            assert lows.dtype == highs.dtype == np.int64
            for x in range(p + 1):
                possible = range(x, n - (p - x) + 1)
                wanted = [
                    m
                    for m in possible
                    if oracles.rates_agree((n - m, m), (p - x, x), form, tolerance)
                ]
                assert [m for m in possible if lows[x] <= m <= highs[x]] == wanted


@settings(deadline=None, max_examples=300)
@given(
    st.integers(1, 10**7), st.floats(0, 1), st.floats(0, 1), st.sampled_from(FORMS),
    st.sampled_from(TOLERANCES) | st.sampled_from([1e-4, 0.002, 0.03]) | st.floats(0, 1),
)  # fmt: skip
def test_sizes_of_large_groups_end_where_the_claim_ends(n, share, part, form, tolerance):
    p = round(n * share)
    x = round(p * part)
    (low,), (high,) = RateConstraint(tolerance=tolerance, form=form).two_group_members(
        np.array([x]), p, n
    )
    first, last = x, n - (p - x)

    def holds(m: int) -> bool:
        return oracles.rates_agree((n - m, m), (p - x, x), form, tolerance)

    low, high = int(low), int(high)
    if max(low, first) > min(high, last):
        # Empty: the sizes on either side of the gap, and those that would fit best, all fail.
        near = {first, last, low, low - 1, high, high + 1, round(x * n / p) if p else first}
        assert not any(holds(m) for m in near if first <= m <= last)
        return
    assert holds(max(low, first))
    assert holds(min(high, last))
    assert low <= first or not holds(low - 1)
    assert high >= last or not holds(high + 1)


def test_python_integers_give_what_machine_integers_give(monkeypatch):
    x = np.arange(401)
    machine = {}
    for form in FORMS:
        for tolerance in (0.0, 0.03, 0.2, 1.0):
            constraint = RateConstraint(tolerance=tolerance, form=form)
            machine[constraint] = constraint.two_group_members(x, 400, 1500)
    monkeypatch.setattr(
        fpbench.rates.RateConstraint, "_safe", lambda _, x, everyone: x.astype(object)
    )
    for constraint, found in machine.items():
        np.testing.assert_array_equal(constraint.two_group_members(x, 400, 1500), found)


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


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4),
    st.sampled_from(FORMS),
    st.sampled_from(TOLERANCES) | st.floats(0, 1),
)
def test_unfairness_is_the_least_tolerance_that_holds(counts, form, tolerance):
    members = np.array([max(pair) for pair in counts])
    positives = np.array([min(pair) for pair in counts])
    least = unfairness(members, positives, form)
    assert 0 <= least <= 1
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


@pytest.mark.parametrize("form", FORMS)
def test_groups_without_members_have_no_rate(form):
    nobody = np.zeros(2, dtype=int)
    assert unfairness(nobody, nobody, form) == 0
    assert unfairness(np.array([5, 0]), np.array([2, 0]), form) == 0
    assert unfairness(np.array([5, 3]), nobody, form) == 0


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
    assert RateConstraint(tolerance=np.float64(0.25)).exact_tolerance == Fraction(1, 4)
    assert RateConstraint(tolerance=0.1 + 0.2).exact_tolerance > Fraction(3, 10)


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0000001, float("nan"), float("inf"), -1])
def test_a_tolerance_out_of_range(tolerance):
    with pytest.raises(InputError) as error:
        RateConstraint(tolerance=tolerance)
    assert str(error.value) == f"tolerance must be between 0 and 1, not {tolerance!r}"


@pytest.mark.parametrize("tolerance", ["0.1", None, [0.1]])
def test_a_tolerance_that_is_no_number(tolerance):
    with pytest.raises(InputError, match="tolerance must be between 0 and 1, not "):
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


def test_labels_are_needed_by_slices():
    for metric in METRICS[1:]:
        with pytest.raises(InputError, match=f"metric '{metric}' needs the labels"):
            RateConstraint(metric).slices(None)
    assert RateConstraint().slices(None) == [None]
