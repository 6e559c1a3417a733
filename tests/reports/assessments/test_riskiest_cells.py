"""The cells that give away most."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpbench
from fpbench import FairnessReport, assess
from fpbench.claims import Facts
from fpbench.correction import condition_beliefs, propagate
from fpbench.correction.facts import exact_components
from fpbench.reports.assessments.riskiest_cells import _bound_gains, _Step, find_riskiest


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
    possible, guesses = np.ones(beliefs.shape, bool), beliefs.argmax(axis=1)
    soft = facts.soften()
    for _ in range(3):  # also after other cells
        bounds = _bound_gains(facts, soft, beliefs, possible)
        steps = [_Step.of(facts, soft, n, beliefs, possible, guesses) for n in range(len(facts))]
        for step, bound in zip(steps, bounds, strict=True):
            assert step.gain <= bound + 4e-3
        chosen = max(steps, key=lambda step: step.rank)
        members = facts.sets[[chosen.number]].indices
        beliefs[members], possible[members] = chosen.beliefs, chosen.possible


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_the_first_cell_adds_most_by_the_attack_itself(seed, groups):
    """What it adds is what an attack with that cell alone finds."""
    facts, beliefs = draw_facts(seed, groups)
    cells, numbers, _ = find_riskiest(facts, beliefs, np.arange(len(facts)))

    def add_alone(number):
        only = facts.take([number])
        possible = propagate(only)
        with pytest.MonkeyPatch.context() as patch:  # cells are ranked by maximum entropy
            patch.setattr(exact_components, "_MOST_STEPS", -1)
            after = condition_beliefs(only, beliefs, possible, error=1e-5).beliefs
        return (after.max(axis=1) - after[np.arange(len(after)), beliefs.argmax(axis=1)]).sum()

    added = [add_alone(number) for number in range(len(facts))]
    if not cells:
        assert max(added, default=0) < 0.05
        return
    # A softness of .05 people of exact counts, and the last of many steps, make a difference.
    assert cells[0].gain == pytest.approx(added[numbers[0]], abs=0.2)
    assert groups > 2 or cells[0].gain >= max(added) - 0.2


@given(st.integers(0, 10**6))
def test_settled_people_are_those_that_the_cells_prove(seed):
    facts, beliefs = draw_facts(seed, 2)
    cells, numbers, _ = find_riskiest(facts, beliefs, np.arange(len(facts)), most=len(facts))
    settled = sum(cell.settled for cell in cells)
    proven = (propagate(facts.take(numbers)).sum(axis=1) == 1).sum()
    assert settled <= proven  # each cell is looked at once, propagation goes on
    assert len(set(numbers.tolist())) == len(numbers)
    assert all(cell.settled or cell.gain > 0 for cell in cells)


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


def test_cells_that_change_no_guess_add_nothing():
    """892 of 1,018 husbands are men: everybody was taken for a man before."""
    members = np.repeat([[True, False, False], [False, True, False], [False, False, True]], 100, 0)
    facts = Facts.from_counts(members, np.array([[95.0, 5.0], [40.0, 60.0], [0.0, 100.0]]))
    beliefs = np.tile([0.6, 0.4], (300, 1))
    cells, numbers, _ = find_riskiest(facts, beliefs, np.arange(3))
    assert numbers.tolist() == [2, 1]
    assert [cell.gain for cell in cells] == pytest.approx([100, 20], abs=0.1)
    assert [cell.settled for cell in cells] == [100, 0]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", [1, 2])
def test_ten_cells_alone_explain_what_ten_cells_can(seed, order):
    """At least half of the greatest leak of 200 random choices of ten, measured."""
    people = fpbench.dataset("census-synthetic", rows=400, seed=seed)
    X, groups = people.features, np.array(people.groups)[people.codes]
    report = FairnessReport.from_predictions(
        X, people.labels, groups, by=list(X)[:4], order=order, min_cell=10
    )
    facts = report.facts(X, people.labels)
    prior = np.tile(np.bincount(people.codes) / 400, (400, 1))
    check_explanation(facts, prior, people.codes, seed)


def check_explanation(facts, prior, truth, seed):
    """Whether the riskiest cells leak half of the most that 200 random choices of ten do."""

    def measure_leak(numbers):
        some = facts.take(numbers)
        after = condition_beliefs(some, prior, propagate(some), error=0.03).beliefs
        right = [beliefs.argmax(axis=1) == truth for beliefs in (prior, after)]
        return right[1].mean() - right[0].mean()

    cells, numbers, _ = find_riskiest(facts, prior, np.arange(len(facts)))
    told, rng = np.flatnonzero(~facts.derived), np.random.default_rng(seed)
    best = max(measure_leak(rng.choice(told, 10, replace=False)) for _ in range(200))
    assert 5 < len(cells) <= 10
    assert measure_leak(numbers) >= best / 2 > 0


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
