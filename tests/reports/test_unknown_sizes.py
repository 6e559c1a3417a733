"""Sizes of groups of which only rates are published, against all that there are."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import FairnessReport, InputError


def list_allocations(people, selected, low, high, empty):
    """All numbers (size, with prediction 1) of each group that sum up and give such rates.

    `empty`: whether nobody may be of a group.
    """
    own = [
        [
            (n, x)
            for n in range(people + 1)
            for x in range(min(n, selected) + 1)
            if (least - 1e-9 <= x / n <= most + 1e-9 if n else nobody)
        ]
        for least, most, nobody in zip(low, high, empty, strict=True)
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
    foreign=st.booleans(),
    missing=st.integers(0, 1),
)
def test_ranges_hold_all_sizes_that_give_the_rates_and_no_others(
    k, data, decimals, foreign, missing
):
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
    if foreign:  # perhaps nothing is published of the first group
        report = FairnessReport.from_frame(report.to_frame()[missing:], groups=report.groups)
    rates = np.full(k, np.nan)
    rates[report.group] = report.value
    half = 0 if decimals is None else 0.5 * 10.0**-decimals
    low = np.where(np.isnan(rates), 0, rates - half)
    high = np.where(np.isnan(rates), 1, rates + half)
    # Of nobody, toolkits print 0 or 1; a report whose sizes were left out does not.
    empty = np.isnan(rates) | (foreign & ((rates == 0) | (rates == 1)))
    all_ = np.array(list(list_allocations(len(groups), predictions.sum(), low, high, empty)))
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
