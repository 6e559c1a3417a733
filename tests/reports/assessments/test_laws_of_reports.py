"""What defences of a report leave to a reader who knows their laws, and what they tell at most."""

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import FairnessReport
from fpbench.claims import Facts, limit_fact_nats
from fpbench.correction import condition_beliefs, propagate
from fpbench.correction.facts.worlds import find_worlds
from fpbench.reports.assessments.attack import Reader, attack
from fpbench.reports.assessments.report_series import ReportSeries


def make_world(seed, n=160, cells=10):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"c": np.char.add("v", rng.integers(0, cells, n).astype(str))})
    predictions, chances = rng.integers(0, 2, n), rng.beta(1.5, 1.5, n)
    men = rng.random(n) < chances
    return X, predictions, np.where(men, "m", "f"), np.column_stack([1 - chances, chances])


def publish(X, predictions, groups, **defences):
    return FairnessReport.from_predictions(
        X, predictions, groups, by=["c"], order=1, min_cell=1, metrics=["selected", "rejected"],
        **defences,
    )  # fmt: skip


def add_up(chances):
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize(("cells", "base"), [(20, 3), (20, 5), (20, 10), (5, 5), (2, 10)])
def test_random_rounding_is_read_by_its_law(cells, base):
    """Cells of 4 to 40 people, each by Bayes' rule with 1 - |c - r| / m for both groups' numbers."""
    X, predictions, groups, beliefs = make_world(base + cells, cells=cells)
    report = publish(X, predictions, groups, round_to=base, rng=1)
    report = report.take(report.cells[:, 0] >= 0)
    frame = report.to_frame()
    chances, wanted = beliefs[:, 1], beliefs[:, 1].copy()
    for (value, metric), rows in frame.groupby(["c", "metric"]):
        inside = (X["c"] == value).to_numpy() & (predictions == (metric == "selected"))
        told = rows.set_index("group")["value"]
        counts = np.arange(inside.sum() + 1)
        law = np.maximum(0, 1 - abs(counts - told["m"]) / base)
        law *= np.maximum(0, 1 - abs(inside.sum() - counts - told["f"]) / base)
        for person in np.flatnonzero(inside):
            others = add_up(chances[inside & (np.arange(len(X)) != person)])
            one, zero = (others * law[1:]).sum(), (others * law[:-1]).sum()
            p = chances[person]
            wanted[person] = p * one / (p * one + (1 - p) * zero)
    found = condition_beliefs(report.facts(X, predictions), beliefs)
    np.testing.assert_allclose(found.beliefs[:, 1], wanted, atol=1e-9)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian", "exponential"])
def test_noise_that_changed_nothing_is_believed_like_the_exact_report(noise):
    X, predictions, groups, beliefs = make_world(3)
    X["d"] = np.char.add("w", (np.arange(len(X)) % 7).astype(str))
    exact = FairnessReport.from_predictions(
        X, predictions, groups, by=["c", "d"], order=2, min_cell=1, metrics=["selected", "rejected"]
    )
    noisy = exact.protect(noise=noise, epsilon=20_000.0, rng=0)
    assert (noisy.value == exact.value).all()
    reader = Reader(beliefs, (groups == "m").astype(int), 0.03)
    wanted, found = (attack(r.facts(X, predictions), reader, 600) for r in (exact, noisy))
    assert wanted.proven.any()
    assert not found.proven.any()
    np.testing.assert_allclose(found.beliefs, wanted.beliefs, atol=1e-9)
    assert found.leak == wanted.leak


@pytest.mark.parametrize("defences", [
    {"min_group": 2},
    {"min_group": 50},
    {"min_group": 3, "complementary": True},
    {"sizes": False},
])  # fmt: skip
def test_suppression_by_groups_tells_as_many_bits_as_all_numbers(defences):
    X, predictions, groups, _ = make_world(5)
    exact = publish(X, predictions, groups)
    if "sizes" in defences:
        exact = FairnessReport.from_predictions(
            X, predictions, groups, by=["c"], order=1, min_cell=1, metrics=["selection-rate"]
        )
    hidden = exact.protect(**defences)

    def count_nats(report):
        read = ReportSeries.of(report, predictions, len(X)).read(X, None)
        return limit_fact_nats(Facts.join([read.facts, *read.hidden]))

    assert count_nats(hidden) == pytest.approx(count_nats(exact), abs=0.1)
    again = FairnessReport.from_frame(hidden.to_frame(), groups=exact.groups)
    assert count_nats(again) == pytest.approx(count_nats(hidden), abs=1e-9)
    read = ReportSeries.of(hidden, predictions, len(X)).read(X, None)
    assert limit_fact_nats(read.facts) <= count_nats(hidden) + 1e-9


@pytest.mark.parametrize("utility", ["absolute", "squared", "root", "indicator"])
def test_a_number_that_the_exponential_mechanism_chose_is_read_by_its_law(utility):
    """Of a file, too; with the sum that makes probabilities of each true number 1."""
    X, predictions, groups, beliefs = make_world(7, n=24, cells=1)
    noise = {"use": "exponential", "utility": utility}
    report = publish(X, predictions, groups, noise=noise, epsilon=6.0, consistent=False, rng=0)
    report = FairnessReport.from_frame(report.to_frame(), groups=report.groups)
    report = report.take((report.cells < 0).all(axis=1) & (report.metric == "selected"))
    facts = report.facts(X, predictions)
    size, width = int((predictions == 1).sum()), float(report.width[0])
    away = np.abs(np.arange(size + 1.0) - np.arange(size + 1.0)[:, None])
    loss = {"absolute": away, "squared": away**2, "root": away**0.5, "indicator": 1.0 * (away > 0)}
    law = np.exp(-loss[utility] / width)
    law /= law.sum(axis=1, keepdims=True)  # of each chosen number, by the true one
    women, men = (int(report.value[report.group == k][0]) for k in (0, 1))
    likelihood = law[:, men] * law[::-1, women]
    inside = np.flatnonzero(predictions == 1)
    found = condition_beliefs(facts, beliefs)
    for person in inside:
        p, others = beliefs[person, 1], add_up(beliefs[inside[inside != person], 1])
        one, zero = p * others @ likelihood[1:], (1 - p) * others @ likelihood[:-1]
        assert found.beliefs[person, 1] == pytest.approx(one / (one + zero), abs=1e-9)


def judge(report, X, predictions, beliefs):
    """Groups that people may have, exactly, and beliefs."""
    facts = report.facts(X, predictions)
    worlds = find_worlds(facts, propagate(facts), None, time.perf_counter() + 600)
    assert not worlds.undecided.any()
    return worlds.possible, condition_beliefs(facts, beliefs, worlds.possible).beliefs


@given(st.integers(0, 2**32), st.sampled_from([["selected", "rejected"], ["selection-rate"]]))
def test_as_less_is_suppressed_the_verdict_becomes_that_of_the_exact_table(seed, metrics):
    """More is known the fewer people a group must have, and all of it where nothing is suppressed."""
    X, predictions, groups, beliefs = make_world(seed, n=8, cells=2)
    exact = FairnessReport.from_predictions(
        X, predictions, np.append(groups[:-2], ["m", "f"]), by=["c"], min_cell=0, metrics=metrics
    )
    wanted, believed = judge(exact, X, predictions, beliefs)
    before = np.ones_like(wanted)
    for least in (8, 4, 2, 1, 0):
        hidden = exact.protect(min_group=least)
        possible, found = judge(hidden, X, predictions, beliefs)
        assert (wanted <= possible).all() and (possible <= before).all()
        before = possible
        if not hidden.suppressed.any():
            assert (possible == wanted).all()
            np.testing.assert_allclose(found, believed, atol=1e-9)
    assert not hidden.suppressed.any()


@given(st.integers(0, 2**32), st.booleans())
def test_as_rates_have_more_decimals_the_verdict_becomes_that_of_the_exact_table(seed, sizes):
    """What is known is never more than exact rates tell, and the same from 3 decimals on.

    Different rates of at most 8 people differ by 1/56 or more.
    """
    X, predictions, groups, beliefs = make_world(seed, n=8, cells=2)
    exact = FairnessReport.from_predictions(
        X, predictions, np.append(groups[:-2], ["m", "f"]), by=["c"], min_cell=0, sizes=sizes
    )
    wanted, believed = judge(exact, X, predictions, beliefs)
    for decimals in (0, 1, 2, 3, 6):
        possible, found = judge(exact.protect(decimals=decimals), X, predictions, beliefs)
        assert (wanted <= possible).all()
        if decimals > 2:
            assert (possible == wanted).all()
            np.testing.assert_allclose(found, believed, atol=1e-9)


@given(st.integers(0, 2**32), st.sampled_from([["selected", "rejected"], ["selection-rate"]]))
def test_rounded_at_random_to_less_the_verdict_comes_near_that_of_the_exact_table(seed, metrics):
    """Never more is known than exact numbers tell; ranges are as wide as the multiples allow."""
    X, predictions, groups, beliefs = make_world(seed, n=8, cells=2)
    exact = FairnessReport.from_predictions(
        X, predictions, np.append(groups[:-2], ["m", "f"]), by=["c"], min_cell=0, metrics=metrics
    )
    wanted, _ = judge(exact, X, predictions, beliefs)
    for base in (5, 3, 2):
        rounded = exact.protect(round_to=base, rng=seed)
        facts = rounded.facts(X, predictions)
        assert (facts.high - facts.low <= 4 * (base - 1)).all()
        assert (wanted <= propagate(facts)).all()
