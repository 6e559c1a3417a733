"""Noise in reports: private over all tables, and consistent where asked."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from test_fairness_report import NUMBERS, RATES, count_true, make_people
from test_protecting import make_exact

from fpbench import FairnessReport, InputError
from fpbench.reports import REPORT_METRICS

PREDICTED = [name for name, counted in REPORT_METRICS.items() if counted.view == "prediction"]
METRICS = st.lists(st.sampled_from(PREDICTED), min_size=1, max_size=5, unique=True)


def list_numbers(report):
    """The numbers of people behind rows, once each: by slice, label, prediction and group."""
    numbers = {}
    for row in range(len(report)):
        key = (*report.cells[row], report.label[row], report.group[row])
        value, n = report.value[row], report.n[row]
        if report.is_rate[row]:
            counted = value * n if n else 0.0
            numbers[(*key, 1)], numbers[(*key, 0)] = counted, n - counted
        else:
            numbers[(*key, report.prediction[row])] = value
    return numbers


@settings(max_examples=25)
@given(seed=st.integers(0, 99), k=st.integers(2, 4), metrics=METRICS, order=st.integers(0, 2))
def test_another_group_of_one_person_costs_no_more_than_epsilon(seed, k, metrics, order):
    """By the definition of Laplace noise: what all numbers change by, over its scale."""
    report, (X, predictions, labels), groups = make_exact(
        seed=seed, k=k, metrics=metrics, order=order
    )
    names = sorted(set(groups))
    person = seed % len(groups)
    changed = groups.copy()
    changed[person] = names[(names.index(groups[person]) + 1) % len(names)]
    if set(changed) < set(groups):
        return
    other = FairnessReport.from_predictions(
        X, predictions, changed, by=list(X), order=order, labels=labels, metrics=metrics, min_cell=0
    )
    one, two = list_numbers(report), list_numbers(other)
    assert one.keys() == two.keys()  # which slices are published tells nothing of groups
    change = sum(abs(one[key] - two[key]) for key in one)
    noisy = report.protect(noise="discrete-laplace", epsilon=2.0, consistent=False, rng=0)
    assert change / noisy.scale.max() <= 2.0 + 1e-9
    if "selection-rate" in metrics:  # the person is in a slice of every table
        views = 2 if any(REPORT_METRICS[name].label is not None for name in metrics) else 1
        assert change >= noisy.scale.max() * 2.0 / views - 1e-9
    assert noisy.scale.min() == noisy.scale.max()


@pytest.mark.slow
def test_epsilon_survives_an_attack_on_the_whole_report():
    """A test of one person's group by all numbers it is in; the bound holds with 99.9 %."""
    options = {"metrics": ["selection-rate", "selected"], "order": 1, "n": 60}
    report, (X, predictions, labels), groups = make_exact(**options)
    changed = groups.copy()
    changed[0] = "ann" if groups[0] == "bob" else "bob"
    other = FairnessReport.from_predictions(
        X, predictions, changed, by=list(X), labels=labels, metrics=options["metrics"], min_cell=0
    )
    draws, epsilon = 400, 2.0
    moved = {
        key: (value, list_numbers(other)[key])
        for key, value in list_numbers(report).items()
        if value != list_numbers(other)[key]
    }
    hits = []
    for side, source in enumerate((report, other)):
        scores = np.empty(draws)
        for draw in range(draws):
            noisy = source.protect(
                noise="discrete-laplace", epsilon=epsilon, consistent=False, rng=2 * draw + side
            )
            numbers = list_numbers(noisy)
            scores[draw] = sum(
                abs(numbers[key] - two) - abs(numbers[key] - one)
                for key, (one, two) in moved.items()
            )
        hits.append(int((scores >= 2).sum()))
    # Clopper-Pearson: the least share of one, over the greatest of the other.
    low = beta.ppf(0.0005, hits[0], draws - hits[0] + 1)
    high = beta.ppf(0.9995, hits[1] + 1, draws - hits[1])
    assert np.log(low / high) <= epsilon
    assert hits[0] > 1.3 * hits[1]  # and the test sees something


@pytest.mark.slow
@settings(max_examples=12)
@given(
    seed=st.integers(0, 99),
    k=st.integers(2, 4),
    metrics=st.sampled_from([["selected", "rejected"], RATES[:1], RATES, NUMBERS, ["selected"]]),
    min_cell=st.sampled_from([0, 20]),
    epsilon=st.sampled_from([0.5, 5.0, 50.0]),
)
def test_consistent_numbers_are_whole_and_sums_of_each_other(seed, k, metrics, min_cell, epsilon):
    report, people, _ = make_exact(seed=seed, k=k, metrics=metrics, min_cell=min_cell)
    noisy = report.protect(noise="laplace", epsilon=epsilon, rng=seed)
    assert noisy.defences["consistent"]
    assert assert_consistent(noisy, report) or min_cell
    facts = noisy.facts(*people)
    assert facts.noisy.all()


def assert_consistent(noisy, report):
    """Whether some numbers of columns' slices are sums of published ones."""
    numbers = list_numbers(noisy)
    cuts = [*(column.name for column in report.columns), "label"]
    frame = pd.DataFrame(list(numbers), columns=[*cuts, "group", "p"])
    frame["number"] = np.round(list(numbers.values()), 6)
    exact = list_numbers(report)
    frame["true"] = [exact[key] for key in numbers]
    assert (frame["number"] >= 0).all()
    assert (frame["number"] == np.rint(frame["number"])).all()
    # All groups of a slice together are those that are known to be there.
    slices = frame.groupby([*cuts, "p"])[["number", "true"]].sum()
    assert np.allclose(slices["number"], slices["true"])
    full = {}
    for column in cuts:
        others = [name for name in (*cuts, "group", "p") if name != column]
        parts = frame[frame[column] >= 0].groupby(others)[["number", "true"]].sum()
        wholes = frame[frame[column] < 0].set_index(others)[["number", "true"]]
        both = wholes.join(parts.add_suffix("_parts"), how="inner")
        # Where the slices that are published hold everybody, whoever that is.
        size = both.groupby([name for name in others if name != "group"])[["true", "true_parts"]]
        full[column] = (size.transform("sum").diff(axis=1).iloc[:, 1] == 0).to_numpy()
        assert (both["number"] == both["number_parts"])[full[column]].all()
    return all(full[column].any() for column in cuts[:-1])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("min_cell", [0, 10])
def test_slices_by_three_columns_are_consistent_where_a_column_tells_another(min_cell):
    """Whole numbers of larger slices, each by itself, leave none for smaller ones here."""
    X, predictions, _, groups = make_people(600)
    X = X.assign(
        kind=X["job"].map({"clerk": "in", "smith": "in", "farmer": "out"}),
        town=np.random.default_rng(0).choice(list("abcd"), len(X)),
    )
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["age", "job", "kind", "town", "hours"], order=3, bins=3,
        min_cell=min_cell,
    )  # fmt: skip
    noisy = report.protect(noise="discrete-laplace", epsilon=5.0, rng=0)
    assert assert_consistent(noisy, report) or min_cell


def test_consistent_numbers_are_nearer_to_the_truth():
    report, people, groups = make_exact(600, metrics=["selected", "rejected"])
    errors = []
    for consistent in (False, True):
        noisy = [
            report.protect(noise="laplace", epsilon=1.0, consistent=consistent, rng=seed).value
            for seed in range(5)
        ]
        errors.append(np.abs(np.array(noisy) - report.value).mean())
    assert errors[1] < 0.25 * errors[0]
    facts = report.protect(noise="laplace", epsilon=1.0, rng=0).facts(*people)
    assert np.abs(facts.low - count_true(facts, report, groups)).max() > 0


def test_a_report_without_people_cannot_be_fitted(tmp_path):
    report, people, _ = make_exact(200)
    report.to_json(tmp_path / "report.json")
    read = FairnessReport.from_file(tmp_path / "report.json")
    noise = {"noise": "discrete-laplace", "epsilon": 1.0, "rng": 0}
    with pytest.raises(InputError, match=r"give the people by report\.with_people"):
        read.protect(**noise)
    fitted = read.with_people(*people).protect(**noise)
    np.testing.assert_array_equal(fitted.value, report.protect(**noise).value)


@settings(max_examples=15)
@given(seed=st.integers(0, 99), k=st.integers(2, 4), metrics=METRICS)
def test_without_noise_the_table_is_the_true_one(seed, k, metrics):
    """Where all columns are crossed; else there are others of nearly the same numbers."""
    exact, _, _ = make_exact(40, seed=seed, k=k, metrics=metrics, order=3)
    for order in (3, 1):
        report = exact.protect(order=order)
        fitted = report.protect(noise="discrete-laplace", epsilon=1e6, rng=seed)
        one, two = list_numbers(report), list_numbers(fitted)
        off = np.array([abs(one[key] - two[key]) for key in one])
        assert off.max() < 1e-6 if order == 3 else off.max() <= 2


@pytest.mark.parametrize("noise", ["laplace", "discrete-laplace", "gaussian", "exponential"])
def test_readers_of_fitted_numbers_know_the_noisy_ones(noise):
    """With the law of the noise; and no law limits what fitted ones tell: the guarantee does."""
    report, people, groups = make_exact(200, metrics=["selected", "rejected", "selection-rate"])
    own = {"noise": noise, "epsilon": 4.0} | ({"delta": 1e-3} if noise == "gaussian" else {})
    fitted = report.protect(**own, rng=0)
    assert fitted.stated.fitted and fitted.noisy.all()
    facts = fitted.facts(*people)
    for read in (FairnessReport.from_frame(fitted.to_frame()), fitted.take(fitted.is_rate)):
        again = read.facts(*people)
        np.testing.assert_array_equal(again.low, facts.low)
        np.testing.assert_array_equal(again.laws.width, facts.laws.width)
    assert np.isinf(facts.low[:, 0]).all()  # nobody measured the first of two groups
    of_last = facts.sets @ (np.asarray(groups) == fitted.groups[1])
    width = facts.laws.width * (1 if noise == "gaussian" else 2**0.5)
    off = (facts.low[:, 1] - of_last) / width
    least = 0.1 if noise == "exponential" else 0.5  # its answers are within the sizes of slices
    assert least < off.std() < 2


def test_noise_of_tables_does_not_depend_on_groups():
    """Weights follow from what is public; single columns have another than pairs."""
    X, predictions, _, groups = make_people(seed=1)
    others = np.where(X["job"] == X["job"][0], "ann", "bob")
    widths = []
    for own in (groups, others):
        exact = FairnessReport.from_predictions(
            X, predictions, own, by=list(X), order=2, min_cell=0, metrics=["selected", "rejected"]
        )
        widths.append(exact.protect(noise="discrete-laplace", epsilon=1.0, rng=0).width)
    np.testing.assert_array_equal(*widths)
    assert len(np.unique(widths[0])) == 2


@pytest.mark.parametrize("text", ["1 2 3", "a b", "-", "- -", "inf 2"])
def test_measured_numbers_that_are_none_are_refused(text):
    frame = make_exact(60)[0].protect(noise="laplace", epsilon=1.0, rng=0).to_frame()
    frame.loc[3, "measured"] = text
    with pytest.raises(InputError, match="row 3, column 'measured': .* must be the noisy numbers"):
        FairnessReport.from_frame(frame)
