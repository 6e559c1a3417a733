"""Complementary suppression of least cost: against all subsets, and intervals by linear programs."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fpbench import FairnessReport, InputError, assess
from fpbench.reports.defences import optimal_suppression


def make(seed, metrics, k=2, n=40, columns=2, values=3, order=2):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({c: rng.choice(list("pqrs")[:values], n) for c in "abc"[:columns]})
    groups = rng.choice(list("fmn")[:k], n)
    groups[:k] = list("fmn")[:k]
    people = X, rng.integers(0, 2, n), groups
    report = FairnessReport.from_predictions(
        *people, by=list(X), order=order, metrics=metrics, min_cell=0
    )
    return people, report


def list_numbers(report, X, predictions):
    """People (n,) behind each block's numbers, of each prediction that it counts."""
    _, rows = report.blocks
    sets = []
    for first in rows.max(axis=1):
        inside = np.ones(len(X), bool)
        for c, column in enumerate(report.columns):
            if report.cells[first, c] >= 0:
                inside &= (X[column.name] == column.values[report.cells[first, c]]).to_numpy()
        prediction = report.prediction[first]
        sets.append(
            [inside & (predictions == p) for p in ((0, 1) if prediction < 0 else (prediction,))]
        )
    return sets


def is_protected(hidden, sets, groups, share):
    """Whether intervals of all numbers of hidden blocks are wide enough, person by person."""
    names = np.unique(groups)
    own = groups[:, None] == names
    n, k = own.shape
    public = {tuple(s) for h, one in zip(hidden, sets, strict=True) if not h for s in one}
    rows = [np.kron(np.array(s, float), np.eye(k)[g]) for s in public for g in range(k)]
    rows += [np.kron(np.eye(n)[i], np.ones(k)) for i in range(n)]
    A = np.array(rows)
    b = A @ own.ravel()
    for h, one in zip(hidden, sets, strict=True):
        for s in one if h else ():
            for g in range(k):
                true = (s & own[:, g]).sum()
                aim = np.kron(s.astype(float), np.eye(k)[g])
                low, high = (
                    sign * linprog(sign * aim, A_eq=A, b_eq=b, bounds=(0, 1)).fun
                    for sign in (1, -1)
                )
                away = max(np.ceil(share * true - 1e-9), 1)
                if low > max(true - away, 0) + 1e-6 or high < min(true + away, s.sum()) - 1e-6:
                    return False
    return True


def find_cost(report, hidden):
    _, rows = report.blocks
    size = report.value[rows].sum(axis=1)
    if report.is_rate.any():
        size = report.n[rows].sum(axis=1)
    return (1 + size / size.max())[hidden].sum()


@pytest.mark.slow
@settings(max_examples=20)
@given(
    st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.5]), st.booleans(), st.sampled_from([2, 3])
)
def test_nothing_that_protects_all_suppressed_numbers_costs_less(seed, share, rates, k):
    """Of all sets of cells; 2 x 2 tables, with margins."""
    metrics = ["selection-rate"] if rates else ["selected"]
    (X, predictions, groups), exact = make(seed, metrics, k, n=24, values=2)
    small = exact.protect(min_group=3)
    hidden = exact.protect(min_group=3, complementary=True, protect_hidden=share)
    _, rows = exact.blocks
    primary, found = (r.suppressed[rows].any(axis=1) for r in (small, hidden))
    assert found[primary].all()
    if not primary.any():
        assert not found.any()
        return
    assert hidden.defences["optimal"]
    sets = list_numbers(exact, X, predictions)
    assert is_protected(found, sets, groups, share)
    cost = find_cost(exact, found)
    for bits in product([False, True], repeat=int((~primary).sum())):
        other = primary.copy()
        other[~primary] = bits
        if find_cost(exact, other) < cost - 1e-6:
            assert not is_protected(other, sets, groups, share)


def give_up(search, deadline):
    raise optimal_suppression._TimeUpError


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.3]), st.sampled_from([2, 3]))
def test_it_costs_no_more_than_greedy_suppression_made_to_do(seed, share, k):
    (X, predictions, groups), exact = make(seed, ["selected"], k, n=60, columns=2)
    options = {"min_group": 3, "complementary": True, "protect_hidden": share}
    ways = [exact.protect(**options)]
    with pytest.MonkeyPatch.context() as patch:  # the time is up before the first program
        patch.setattr(optimal_suppression._Search, "choose", give_up)
        ways.append(exact.protect(**options))
    _, rows = exact.blocks
    masks = [way.suppressed[rows].any(axis=1) for way in ways]
    assert find_cost(exact, masks[0]) <= find_cost(exact, masks[1]) + 1e-6
    sets = list_numbers(exact, X, predictions)
    assert all(is_protected(mask, sets, groups, share) for mask in masks)
    greedy = exact.protect(min_group=3, complementary=True).suppressed[rows].any(axis=1)
    if is_protected(greedy, sets, groups, share):
        assert find_cost(exact, masks[0]) <= find_cost(exact, greedy) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [["selection-rate"], ["selected", "selection-rate"]])
def test_assess_agrees_that_suppressed_numbers_are_protected(metrics):
    people, exact = make(5, metrics, n=150, values=4)
    options = {"min_group": 3, "complementary": True}
    told = [
        assess(exact.protect(**options, **own), *people[:2], groups=people[2], protect_hidden="20%")
        for own in ({}, {"protect_hidden": "20%"})
    ]
    assert told[0].hidden.unprotected > 0
    assert told[1].hidden.unprotected == 0
    assert told[1].hidden.judged[0].sum() == 0  # none is known exactly


def test_intervals_need_groups_and_complements():
    (X, predictions, groups), exact = make(0, ["selected"])
    with pytest.raises(InputError, match="protect_hidden needs complementary suppression"):
        exact.protect(min_group=3, protect_hidden=0.1)
    read = FairnessReport.from_frame(exact.to_frame()).with_people(X, predictions)
    options = {"min_group": 3, "complementary": True, "protect_hidden": "10%"}
    with pytest.raises(InputError, match="protect_hidden needs to know everybody's group"):
        read.protect(**options)
    with pytest.raises(InputError, match="protect_hidden: '110%' is no share"):
        exact.protect(**options | {"protect_hidden": "110%"})
    named = read.with_people(X, predictions, groups=groups).protect(**options)
    pd.testing.assert_frame_equal(named.to_frame(), exact.protect(**options).to_frame())
    assert named.defences == {
        "min_group": 3, "complementary": True, "protect_hidden": 0.1, "optimal": True
    }  # fmt: skip


def test_too_little_time_is_an_error_that_says_what_to_do(monkeypatch):
    _, exact = make(0, ["selected"])
    monkeypatch.setattr(optimal_suppression, "_SECONDS", 0.0)
    with pytest.raises(InputError, match="no suppression was found in 0 s that leaves every"):
        exact.protect(min_group=3, complementary=True, protect_hidden="10%")
