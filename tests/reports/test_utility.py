"""How near a report's rates are to the true ones, against loops over slices and groups."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from fpbench import FairnessReport, InputError
from fpbench.reports import ReportUtility, measure_utility
from fpbench.reports.utility import measure_nothing

RATES = {"selection-rate": None, "true-positive-rate": 1, "false-positive-rate": 0}


def make_people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.choice(list("abc")[: 2 + i], n) for i, name in enumerate("uv")})
    groups = rng.choice(["x", "y", "z"], n, p=[0.5, 0.4, 0.1])
    labels = rng.integers(0, 2, n)
    predictions = (rng.random(n) < 0.3 + 0.3 * (groups == "x") * (X["u"] == "a")).astype(int)
    return X, predictions, groups, labels


def loop(report, X, predictions, groups, labels, rates, order=2):
    """Errors, shown or not, and disparities, one slice after the other."""
    frame = report.to_frame()
    errors, shown, visible = [], [], []
    for rate, size in product(rates, range(order + 1)):
        for by in combinations(X.columns, size):
            for values in product(*(sorted(X[name].unique()) for name in by)):
                inside = np.ones(len(X), bool)
                rows = (frame.metric == rate).to_numpy().copy()
                for name in X.columns:
                    value = dict(zip(by, values, strict=True)).get(name, "")
                    rows &= (frame[name] == value).to_numpy()
                    inside &= (X[name] == value).to_numpy() if value else True
                if RATES[rate] is not None:
                    inside &= labels == RATES[rate]
                true, stated = {}, {}
                for group in "xyz":
                    mine = inside & (groups == group)
                    everywhere = (groups == group) & (
                        True if RATES[rate] is None else labels == RATES[rate]
                    )
                    here = frame[rows & (frame.group == group).to_numpy()].value
                    value = here.iloc[0] if len(here) else np.nan
                    if mine.sum() >= 10:
                        true[group], stated[group] = predictions[mine].mean(), value
                        fill = predictions[everywhere].mean() if np.isnan(value) else value
                        errors.append(abs(fill - true[group]))
                        shown.append(not np.isnan(value))
                if len(true) >= 2:
                    high, low = max(true, key=true.get), min(true, key=true.get)
                    if true[high] - true[low] > 0.1:
                        visible.append(stated[high] - stated[low] > 0.1 - 1e-9)
    return np.mean(errors), np.max(errors), np.mean(shown), np.mean(visible)


def publish(people, labels=None, **options):
    X, predictions, groups, own = people
    options = {"by": ["u", "v"], "labels": own if labels else None, **options}
    return FairnessReport.from_predictions(X, predictions, groups, **options, min_cell=0)


@pytest.mark.slow
@pytest.mark.parametrize(("metrics", "defences"), [
    (["selection-rate"], {"min_cell": 10}),
    (["selection-rate"], {"min_group": 15}),
    (["selection-rate"], {"decimals": 1}),
    (["true-positive-rate", "false-positive-rate"], {"min_cell": 40}),
])  # fmt: skip
def test_utility_is_that_of_a_loop(metrics, defences):
    people = make_people()
    exact = publish(people, labels=True, order=2, metrics=metrics)
    report = exact.protect(**defences)
    utility = measure_utility(report, exact)
    wanted = loop(report, *people, metrics)
    np.testing.assert_allclose(
        [utility.rate_error, utility.rate_error_max, utility.cells_published, utility.disparities_visible],
        wanted,
    )  # fmt: skip
    assert 0 < utility.disparities_visible <= 1


def test_whoever_is_told_nothing_takes_the_rate_of_the_slice():
    people = make_people()
    X, predictions, groups, labels = people
    metrics = ["selection-rate", "true-positive-rate"]
    exact = publish(people, labels=True, order=1, metrics=metrics)
    errors = []
    for who in (np.ones(len(X), bool), labels == 1):
        for inside in [who, *(who & (X[name] == v) for name in "uv" for v in X[name].unique())]:
            for group in "xyz":
                if (mine := inside & (groups == group)).sum() >= 10:
                    errors.append(abs(predictions[inside].mean() - predictions[mine].mean()))
    assert measure_nothing(exact) == pytest.approx(np.mean(errors))


def test_numbers_of_people_show_rates():
    people = make_people()
    exact = publish(people, metrics=["selected", "rejected"])
    assert measure_utility(exact, exact) == ReportUtility(0.0, 0.0, 1.0, 1.0)
    rates = publish(people, metrics=["selection-rate"])
    assert measure_utility(exact, rates) == ReportUtility(0.0, 0.0, 1.0, 1.0)
    noisy = exact.protect(noise="discrete-laplace", epsilon=0.5, rng=0)
    some = measure_utility(noisy, exact)
    assert 0 < some.rate_error < some.rate_error_max <= 1
    half = publish(people, metrics=["selected"])
    assert measure_utility(half, exact).cells_published == 0
    assert measure_utility(half, half) == ReportUtility(None, None, None, None)


def test_a_disparity_that_is_shown_the_other_way_round_is_not_seen():
    X = pd.DataFrame({"u": ["a"] * 40})
    groups, predictions = np.repeat(["x", "y"], 20), np.repeat([1, 0], 20)
    exact, reverse = (
        FairnessReport.from_predictions(X, p, groups, by=["u"])
        for p in (predictions, 1 - predictions)
    )
    assert measure_utility(exact, exact).disparities_visible == 1
    assert measure_utility(reverse, exact).disparities_visible == 0


def test_fewer_tables_than_are_wanted_show_less():
    people = make_people()
    exact = publish(people, order=2)
    one_way = measure_utility(exact.protect(order=1), exact)
    by_u = measure_utility(exact.protect(by=["u"]), exact)
    assert 1 > one_way.cells_published > by_u.cells_published > 0
    assert 0 < one_way.rate_error < by_u.rate_error


def test_other_reports_are_refused():
    people = make_people()
    X, predictions, groups, _ = people
    exact = publish(people)
    others = FairnessReport.from_predictions(
        X, predictions, np.where(groups == "z", "x", groups), by=["u", "v"]
    )
    with pytest.raises(InputError, match="about x, y, and the exact one about x, y, z"):
        measure_utility(others, exact)
    with pytest.raises(InputError, match="without defences"):
        measure_utility(exact, exact.protect(decimals=2))
    with pytest.raises(InputError, match="column of the exact report 'v'"):
        measure_utility(exact, publish(people, by=["u"]))
    fewer = X.assign(u="a")
    fewer.loc[0, "u"] = "q"
    other = FairnessReport.from_predictions(fewer, predictions, groups, by=["u", "v"], min_cell=0)
    with pytest.raises(InputError, match="column 'u' has other bins or values"):
        measure_utility(other, exact)
