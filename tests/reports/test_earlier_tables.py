"""Tables that are fitted to what was measured for tables published before, about the same people."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from reports import make_people

import fpbench
from fpbench import FairnessReport, InputError
from fpbench.components.spec import resolve_component
from fpbench.reports import measure_utility
from fpbench.reports.assessments.releasing import check_release
from fpbench.reports.defences.fitted_counts import FittedCounts
from fpbench.reports.exact_blocks import ExactBlocks

X, PREDICTIONS, GROUPS = make_people(400)
NUMBERS = X.assign(age=np.arange(400) % 71)
LABELS = (np.arange(400) % 3 > 0).astype(int)


def make_exact(order, **options):
    own = {"by": list(X), "order": order, "min_cell": 0} | options
    return FairnessReport.from_predictions(NUMBERS, PREDICTIONS, GROUPS, **own)


def add_noise(exact, seed, epsilon=0.5, earlier=(), noise="discrete-laplace"):
    return exact.protect(noise=noise, epsilon=epsilon, rng=seed, earlier=earlier)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 2), (2, 1), (1, 2)])
def test_a_fit_agrees_with_what_was_known_before(first, second):
    """What is measured and guaranteed of the new table stays."""
    exact = make_exact(second)
    known = add_noise(make_exact(first), 1, 1e6)
    alone, both = add_noise(exact, 0), add_noise(exact, 0, earlier=[known])
    np.testing.assert_array_equal(both.measured, alone.measured)
    np.testing.assert_array_equal(both.width, alone.width)
    assert both.stated.guarantee == alone.stated.guarantee
    of_both = (exact.cells >= 0).sum(axis=1) <= first
    off = [np.nanmean(np.abs(one.value - exact.value)[of_both]) for one in (both, alone)]
    assert off[0] < 0.02 and off[1] > 2 * off[0]


def test_error_falls_with_each_table():
    exact, errors = make_exact(1), np.zeros((4, 6))
    for draw, row in enumerate(errors):
        series = []
        for place in range(len(row)):
            series.append(add_noise(exact, 10 * draw + place, 3.0, series))
            row[place] = measure_utility(series[-1], exact).rate_error
    first, _, _, _, _, last = errors.mean(axis=0)
    assert last < 0.75 * first


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("pure", [False, True])
def test_one_number_of_each_cell_is_as_likely_as_all_that_was_measured(laplace, pure):
    """Of any true numbers, up to a constant; however many metrics tell of a number."""
    names = {True: "discrete-laplace", False: "gaussian"}
    metrics = ["selection-rate", "selected"]
    earlier = [
        add_noise(make_exact(1, metrics=metrics), 0, 0.3, noise=names[laplace]),
        add_noise(make_exact(2), 1, 2.0),
    ]
    exact = make_exact(1)
    blocks = ExactBlocks.of(exact, "noise")
    mechanism = resolve_component("mechanism", names[pure])
    own = FittedCounts.of(blocks, exact.people, mechanism, 1.0, earlier)
    noisy = own.measure(mechanism, 1.0, np.random.default_rng(0))
    every, pooled = own.pool(noisy)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(4):
        numbers = rng.integers(0, every.sizes + 1)  # people of the second group of each kind
        cells = every.cells @ numbers
        unit = {"laplace": 2**0.5, "gaussian": 1.0}
        deviation = pooled.width * unit[pooled.law]
        told = np.isfinite(pooled.answers[:, 0])
        one = (((cells - pooled.answers[:, 0]) / deviation)[told] ** 2).sum()
        many = len(noisy.answers)
        off = (cells[:many] - noisy.answers[:, 0]) / (noisy.width * unit[noisy.law])
        parts = np.nansum(off**2)
        kind = dict(zip(map(tuple, every.kinds.tolist()), numbers.tolist(), strict=True))
        codes = exact.people.code(exact.columns)
        codes[:, -2] = 0
        times = {k: n / (codes == k).all(axis=1).sum() for k, n in kind.items()}
        people = np.array([times[tuple(row)] for row in codes.tolist()])
        for report in earlier:
            rows = report.take((report.metric == "selection-rate") & (report.group == 1))
            sd = np.hypot(rows.sigma, rows.scale * 2**0.5)
            for row, measured in enumerate(rows.measured):
                cut = rows.cells[row] >= 0
                inside = (codes[:, :-2][:, cut] == rows.cells[row][cut]).all(axis=1)
                for prediction in np.flatnonzero(np.isfinite(measured)):
                    there = people[inside & (codes[:, -1] == prediction)].sum()
                    parts += ((there - measured[prediction]) / sd[row]) ** 2
        losses.append(parts - one)
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)


OTHERS = {
    "other columns": {"by": ["a", "age"]},
    "other bins": {"by": ["a", "age"], "bins": 3},
    "labels": {"metrics": ["true-positive-rate", "false-positive-rate"], "labels": LABELS},
    "three columns": {"by": ["a", "b", "c"], "order": 3},
    "larger cells": {"min_cell": 20},
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("order", [["f", "m"], ["m", "f"]])
def test_earlier_tables_may_be_cut_otherwise_and_are_read_from_files(tmp_path, what, order):
    """Groups of files are sorted, and those of people as they like."""
    options = {"order": 2} | OTHERS[what]
    add_noise(make_exact(**options), 1, 1e6).to_csv(tmp_path / "earlier.csv")
    earlier = FairnessReport.from_file(tmp_path / "earlier.csv")
    exact = FairnessReport.from_predictions(
        NUMBERS,
        PREDICTIONS,
        pd.Categorical(GROUPS, order),
        by=["a", "b"],
        min_cell=0,
        labels=LABELS,
    )
    alone, both = add_noise(exact, 0), add_noise(exact, 0, earlier=[earlier])
    for_a = exact.cells[:, 1] < 0
    off = [np.nanmean(np.abs(one.value - exact.value)[for_a]) for one in (both, alone)]
    assert off[0] < 0.01 < off[1]
    law = np.zeros_like(both.law), np.zeros_like(both.width)
    replace(both, law=law[0], width=law[1]).facts(NUMBERS, PREDICTIONS)  # sizes are the true ones


def test_columns_that_cut_alike_are_one():
    """Though a value is left out for having few people; other bins are another column."""
    exact = make_exact(1, by=["a", "age"], bins={"age": [3, 30]})
    for bins, columns in ([3, 30], 2), ([3, 30, 50], 3), ([30], 3):
        earlier = add_noise(make_exact(1, by=["a", "age"], bins={"age": bins}), 1)
        read = FairnessReport.from_frame(earlier.to_frame().query("a != '0'"))
        blocks = ExactBlocks.of(exact, "noise")
        mechanism = resolve_component("mechanism", "laplace")
        own = FittedCounts.of(blocks, exact.people, mechanism, 1.0, [read])
        assert own.marginals.kinds.shape[1] == columns + 2


def test_three_groups_are_fitted_to_earlier_tables():
    rng = np.random.default_rng(0)
    groups = np.array(["x", "y", "z"])[rng.integers(0, 3, 400)]
    exact = FairnessReport.from_predictions(X, PREDICTIONS, groups, by=["a"], min_cell=0)
    known = add_noise(exact, 1, 1e6)
    both = add_noise(exact, 0, earlier=[known])
    assert (
        np.abs(both.value - exact.value).max()
        < 0.03
        < np.abs(add_noise(exact, 0).value - exact.value).max()
    )


def test_tables_of_others_are_refused():
    exact = make_exact(1)
    others = FairnessReport.from_predictions(
        X, 1 - PREDICTIONS, GROUPS, by=list(X), min_cell=0, noise="discrete-laplace", epsilon=1.0
    )
    for report, why in (
        (others, "earlier report 2: row .* of these people"),
        (exact, "earlier report 2: has no noisy numbers"),
        (replace(add_noise(exact, 0), groups=("f", "x")), "is by the groups f, x"),
    ):
        with pytest.raises(InputError, match=why):
            add_noise(exact, 0, earlier=[add_noise(exact, 1), report])
    with pytest.raises(InputError, match="give noise"):
        exact.protect(earlier=[add_noise(exact, 0)])


def test_a_release_is_attacked_by_a_reader_of_all_tables():
    options = {"by": list(X)[:2], "max_leak": 0.2}
    people = X, PREDICTIONS, GROUPS
    first = fpbench.release(*people, epsilon=1.0, seed=1, **options)
    alone = fpbench.release(*people, epsilon=2.0, seed=2, **options)
    second = fpbench.release(*people, epsilon=2.0, seed=2, earlier=[first.report], **options)
    assert second.report.stated.guarantee == alone.report.stated.guarantee
    assert (second.report.value != alone.report.value).any()
    assert second.assessment.private_limit > alone.assessment.private_limit
    assert [one.name for one in second.assessment.reports] == ["earlier table 1", "this table"]
    certificate = second.to_json()
    assert certificate["earlier"] == [first.report.hash_values()]
    assert "Read with 1 earlier table" in str(second)
    told = certificate, second.report, *people
    assert all(check_release(*told, earlier=[first.report]).values())
    for wrong in ([], [second.report]):
        with pytest.raises(InputError, match="readers of 1 earlier table"):
            check_release(*told, earlier=wrong)
    with pytest.raises(InputError, match="public = .nothing"):
        fpbench.release(*people, epsilon=2.0, public="nothing", earlier=[first.report], **options)
    with pytest.raises(InputError, match="my.csv must be a FairnessReport"):
        fpbench.release(*people, epsilon=2.0, earlier={"my.csv": "my.csv"}, **options)


def test_a_reader_of_two_tables_believes_what_their_mean_tells():
    exact = make_exact(1, by=["a", "likely"])
    first = add_noise(exact, 1, 8.0, noise="gaussian")
    second = add_noise(exact, 2, 8.0, [first], noise="gaussian")
    measured = (first.measured + second.measured) / 2
    mean = replace(first, measured=measured, width=first.width / 2**0.5)
    told = (X, PREDICTIONS, None, GROUPS, "shares")
    both, one, alone = (
        fpbench.assess(report, *told, error=0.003).posterior
        for report in ([first, second], mean, first)
    )
    assert np.abs(both - one).max() < 0.003 < np.abs(both - alone).max()
