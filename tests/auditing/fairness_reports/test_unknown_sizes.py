"""Sizes of groups of which only rates are published, against all that there are."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import FairnessReport, InputError


def list_allocations(people, selected, low, high):
    """All numbers (size, with prediction 1) of each group that sum up and give such rates."""
    own = [
        [
            (n, x)
            for n in range(people + 1)
            for x in range(min(n, selected) + 1)
            if (n and least - 1e-9 <= x / n <= most + 1e-9) or (not n and least <= 0)
            or (not n and most >= 1)
        ]
        for least, most in zip(low, high, strict=True)
    ]  # fmt: skip
    *free, last = own
    last = set(last)
    for chosen in product(*free):
        rest = people - sum(n for n, _ in chosen), selected - sum(x for _, x in chosen)
        if rest in last:
            yield [*chosen, rest]


@given(
    k=st.integers(2, 3),
    data=st.data(),
    decimals=st.sampled_from([None, 1, 2]),
    missing=st.booleans(),
)
def test_ranges_hold_all_sizes_that_give_the_rates_and_no_others(k, data, decimals, missing):
    """Of two groups, no end is further out than some sizes that give the rates."""
    counts = data.draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=k, max_size=k).filter(
            lambda groups: sum(x + y > 0 for x, y in groups) == k
        )
    )
    groups = np.repeat([f"g{i}" for i in range(k)], [x + y for x, y in counts])
    predictions = np.concatenate([np.repeat([1, 0], pair) for pair in counts])
    X = pd.DataFrame({"all": np.zeros(len(groups))})
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["all"], min_cell=0, sizes=False, decimals=decimals
    )
    if missing:  # of the first group nothing is published
        report = FairnessReport.from_frame(report.to_frame()[1:], groups=report.groups)
    rates = np.full(k, np.nan)
    rates[report.group] = report.value
    half = 0 if decimals is None else 0.5 * 10.0**-decimals
    low = np.where(np.isnan(rates), 0, rates - half)
    high = np.where(np.isnan(rates), 1, rates + half)
    # Of nobody, toolkits print 0 or 1.
    low = np.where((rates > 0) & (rates < 1), np.maximum(low, 1e-12), low)
    high = np.where((rates > 0) & (rates < 1), np.minimum(high, 1 - 1e-12), high)
    all_ = np.array(list(list_allocations(len(groups), predictions.sum(), low, high)))
    facts = report.facts(X, predictions)
    for number in range(len(facts)):
        who = facts.sets[[number]].indices
        values = set(predictions[who])
        numbers = all_[:, :, 1] if values == {1} else all_[:, :, 0] - all_[:, :, 1]
        numbers = all_[:, :, 0] if len(who) == len(groups) else numbers
        ends = numbers.min(axis=0), numbers.max(axis=0)
        assert (facts.low[number] <= ends[0]).all()
        assert (facts.high[number] >= ends[1]).all()
        if k == 2:
            assert (facts.low[number] == ends[0]).all()
            assert (facts.high[number] == ends[1]).all()


def test_rates_of_other_people_are_refused():
    X, groups = pd.DataFrame({"a": [0, 1] * 20}), np.array(["f", "m"] * 20)
    predictions = np.array([0, 1, 0, 0] * 10)
    report = FairnessReport.from_predictions(X, predictions, groups, by=["a"], sizes=False)
    assert report.facts(X, predictions).low.sum() > 0
    with pytest.raises(
        InputError, match=r"row 0, column 'value': selection-rate for everybody: no sizes of groups"
    ):
        report.facts(X, 1 - predictions)
