"""The cells that give away most."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import FairnessReport, assess
from fpbench.auditing.assessments.riskiest_cells import _bound_gains, _Step, find_riskiest
from fpbench.claims import Facts
from fpbench.correction import condition_beliefs, propagate


def draw_facts(seed, groups, noisy=False):
    """Facts about sets that overlap in any way, true ones unless noisy, and beliefs."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(6, 40)), int(rng.integers(1, 12))
    members = rng.random((n, m)) < rng.uniform(0.1, 0.9, m)
    truth = rng.integers(0, groups, n)
    counts = (members.T @ np.eye(groups)[truth]).astype(float)
    beliefs = rng.dirichlet(np.ones(groups), n)
    if noisy:
        return Facts.from_counts(members, counts + rng.normal(0, 2, counts.shape), sigma=2), beliefs
    width = rng.integers(0, 3, counts.shape) * (rng.random() < 0.5)
    return Facts.from_counts(members, counts - width, counts + width), beliefs


@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_no_cell_adds_more_than_its_bound(seed, groups):
    """Else a cell that adds most would never be looked at."""
    facts, beliefs = draw_facts(seed, groups)
    possible = np.ones(beliefs.shape, bool)
    bounds = _bound_gains(facts, beliefs, possible)
    for number, bound in enumerate(bounds):
        assert _Step.of(facts, number, beliefs, possible).added <= bound + 2e-3


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_the_first_cell_adds_most_by_the_attack_itself(seed, groups):
    """What it adds is what an attack with that cell alone finds."""
    facts, beliefs = draw_facts(seed, groups)
    cells, numbers, _ = find_riskiest(facts, beliefs, np.arange(len(facts)))

    def add_alone(number):
        only = facts.take([number])
        possible = propagate(only)
        after = condition_beliefs(only, beliefs, possible, error=1e-5).beliefs
        proven = possible.sum(axis=1) == 1
        return proven.sum() + (after.max(axis=1) - beliefs.max(axis=1))[~proven].sum()

    added = [add_alone(number) for number in range(len(facts))]
    if not cells:
        assert max(added, default=0) < 0.05
        return
    # A softness of .05 people of exact counts, and the last of many steps, make a difference.
    first = cells[0].settled + cells[0].gain
    assert first == pytest.approx(added[numbers[0]], abs=0.1)
    assert groups > 2 or first >= max(added) - 0.1


@given(st.integers(0, 10**6))
def test_settled_people_are_those_that_the_cells_prove(seed):
    facts, beliefs = draw_facts(seed, 2)
    cells, numbers, _ = find_riskiest(facts, beliefs, np.arange(len(facts)), most=len(facts))
    settled = sum(cell.settled for cell in cells)
    proven = (propagate(facts.take(numbers)).sum(axis=1) == 1).sum()
    assert settled <= proven  # each cell is looked at once, propagation goes on
    assert len(set(numbers.tolist())) == len(numbers)
    assert all(cell.settled + cell.gain > 0 for cell in cells)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_noise_proves_nothing_here_either(seed, groups):
    facts, beliefs = draw_facts(seed, groups, noisy=True)
    cells, *_ = find_riskiest(facts, beliefs, np.arange(len(facts)))
    assert not any(cell.settled for cell in cells)


def test_no_cell_is_no_risk():
    facts = Facts.from_counts(np.zeros((5, 0), np.bool_), np.zeros((0, 2)))
    cells, numbers, _ = find_riskiest(facts, np.full((5, 2), 0.5), np.zeros(0, np.intp))
    assert cells == ()
    assert len(facts.take(numbers)) == 0


def make_telling_report(seed):
    """One column of nine tells the group of a third of the people, in ten of its cells."""
    rng = np.random.default_rng(seed)
    n = 1500
    group = rng.integers(0, 2, n)
    X = pd.DataFrame({name: rng.integers(0, 5, n).astype(str) for name in "abcdefgh"})
    place = rng.integers(0, 15, n)
    X["tells"] = np.where(place < 5, 2 * place + group, 10 + place).astype(str)
    predictions = np.ones(n, int)
    groups = np.array(["f", "m"])[group]
    report = FairnessReport.from_predictions(X, predictions, groups, by=list(X), min_cell=5)
    return report, X, predictions, groups


@pytest.mark.slow
@settings(max_examples=2)
@given(st.integers(0, 10**6))
def test_without_the_riskiest_cells_less_is_given_away_than_without_others(seed):
    report, X, predictions, groups = make_telling_report(seed)
    result = assess(report, X, predictions, groups=groups)
    names = [cell.name for cell in result.riskiest]
    assert sum(name.startswith("tells ") for name in names) >= 9  # and perhaps everybody
    frame = report.to_frame()
    slices = frame.drop(columns=["group", "metric", "value", "n"]).apply("|".join, axis=1)

    def assess_without(rows):
        left = frame[~slices.isin(slices.iloc[rows])].reset_index(drop=True)
        assessment = assess(FairnessReport.from_frame(left), X, predictions, groups=groups)
        return assessment.leak, int(assessment.proven.sum())

    leak, proven = assess_without([cell.row for cell in result.riskiest])
    rng = np.random.default_rng(seed)
    for _ in range(2):
        others = rng.choice(np.flatnonzero(frame["group"] == "f"), 10, replace=False)
        other_leak, other_proven = assess_without(others)
        assert leak < other_leak
        assert proven < other_proven
