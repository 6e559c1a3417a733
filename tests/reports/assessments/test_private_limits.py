"""Limits by differential privacy: from the guarantee that a report states, whatever its noise."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import make_people, make_report
from scipy.stats import laplace, norm

from fpbench import FairnessReport, Guarantee, InputError, Mechanism, assess, component
from fpbench.privacy import Sensitivity, limit_private_leak

LOSSES = {
    "absolute": lambda d: d,
    "squared": np.square,
    "root": np.sqrt,
    "indicator": lambda d: (d > 0).astype(float),
}


class Mumble(Mechanism):
    """Of somebody else: the true count, or any, which fits no law of ours.

    The likelihoods of a count differ by at most the factor 1 + a / b, b = (1 - a) / (upper + 1).
    """

    name = "mumble"
    summary = "the count, or any"

    def find_chance(self, epsilon, sensitivity, upper):
        """Chance a of the true count: (1 + a / b) = exp(epsilon / sensitivity)."""
        odds = np.expm1(epsilon / sensitivity.l1)
        return odds / (odds + upper + 1)

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        """Noisy counts."""
        upper = np.broadcast_to(upper, np.shape(counts))
        true = rng.random(np.shape(counts)) < self.find_chance(epsilon, sensitivity, upper)
        return np.where(true, counts, np.floor(rng.random(np.shape(counts)) * (upper + 1)))


def list_law(stated, count, upper):
    """Probabilities of what is published for a count, from the stated mechanism alone."""
    name, epsilon = stated.mechanism["use"], stated.epsilon
    reach = Sensitivity(stated.changes, stated.changes**0.5)
    within = np.arange(upper + 1)
    if name == "mumble":
        chance = Mumble().find_chance(epsilon, reach, upper)
        return chance * (within == count) + (1 - chance) / (upper + 1)
    if name == "exponential":
        utility = stated.mechanism["utility"]
        change = 2 * upper - 1 if utility == "squared" else 1
        rate = epsilon / (2 * stated.changes * change)
        weights = np.exp(-rate * LOSSES[utility](np.abs(within - count).astype(float)))
        return weights / weights.sum()
    sigma, scale = component(
        "mechanism", name, **{k: v for k, v in stated.mechanism.items() if k != "use"}
    ).find_noise_law(reach, epsilon, np.array([upper]))
    width = math.ceil(max(9 * sigma[0], 24 * scale[0])) + 2
    noise = np.arange(-width, upper + width + 1) - count
    if name.startswith("discrete"):
        power = noise**2 / (2 * sigma[0] ** 2) if sigma[0] else np.abs(noise) / scale[0]
        weights = np.exp(-power)
        return weights / weights.sum()
    law = norm(scale=sigma[0]) if sigma[0] else laplace(scale=scale[0])
    return law.cdf(noise + 0.5) - law.cdf(noise - 0.5)


def gain_exactly(stated, counts, moved, upper, belief):
    """What the numbers add to guesses about the one person whose group is unknown."""
    one, two = (
        reduce(np.multiply.outer, (list_law(stated, count, upper) for count in numbers))
        for numbers in (counts, moved)
    )
    return np.maximum(belief * one, (1 - belief) * two).sum() - max(belief, 1 - belief)


MECHANISMS = [
    *({"use": "exponential", "utility": utility} for utility in LOSSES),
    "discrete-laplace",
    "discrete-gaussian",
    "laplace",
    "gaussian",
    Mumble(),
]


def publish(noise, epsilon, people, order, belief):
    """A report about people of whom one's group is unknown, read back, and its assessment."""
    X = pd.DataFrame({"place": ["x"] * people})
    if order:  # a second table of the same people, who are all in one of its slices
        X["place"] = pd.Categorical(["x"] * people, categories=["x", "y"])
        X.loc[people] = "y"
    groups = np.array(["f"] * len(X))
    groups[0] = "m"
    report = FairnessReport.from_predictions(
        X, np.ones(len(X), int), groups, by=["place"], order=order, min_cell=0, metrics=["selected"],
        noise=noise, epsilon=epsilon, consistent=False, rng=0,
    )  # fmt: skip
    again = FairnessReport.from_frame(report.to_frame(), groups=report.groups)
    beliefs = np.tile([1 - 1e-9, 1e-9], (len(X), 1))
    beliefs[0] = 1 - belief, belief
    return again, assess(again, X, np.ones(len(X), int), beliefs=beliefs, seconds=5), len(X)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("people", [10, 50])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("noise", MECHANISMS, ids=str)
def test_no_exact_gain_exceeds_the_limit(noise, epsilon, people):
    for belief in (0.5, 0.75):
        report, result, n = publish(noise, epsilon, people, 0, belief)
        counts = [n - 1, 1], [n, 0]
        gain = gain_exactly(report.guarantee, *counts, n, belief)
        assert gain <= result.private_limit * n + 1e-7
        if report.guarantee.fitted:  # the bits are no better known than the guarantee
            assert gain <= result.limit * n + 1e-7
        # And it is a limit by this guarantee, no larger one.
        pure = math.exp(epsilon) / (1 + math.exp(epsilon))
        delta = report.guarantee.guarantee.delta
        assert result.private_limit * n <= max(delta + (1 - delta) * pure - belief, 0) + 1e-6


@pytest.mark.parametrize("noise", [*MECHANISMS[:5], MECHANISMS[-1]], ids=str)
def test_two_tables_share_the_guarantee(noise):
    report, result, n = publish(noise, 8.0, 5, 1, 0.5)
    assert report.guarantee.changes == 4
    one, two = [n - 1, 1, n - 2, 1], [n, 0, n - 1, 0]
    gain = gain_exactly(report.guarantee, one, two, n, 0.5)
    assert 0 < gain <= result.private_limit * n


def test_bits_of_noise_without_a_law_are_those_of_the_guarantee():
    """A Laplace law that is fitted to it tells less than a number that is true with .4."""
    report, result, n = publish(Mumble(), 12.0, 300, 0, 0.5)
    gain = gain_exactly(report.guarantee, [n - 1, 1], [n, 0], n, 0.5)
    assert 0.3 < gain <= result.limit * n
    assert result.bits == pytest.approx(n)


def make_noisy(seed=0, **options):
    X, predictions, groups = make_people(60, seed=seed)
    options = {"noise": "discrete-laplace", "epsilon": 1.0, "rng": 0, "order": 1} | options
    return make_report(X, predictions, groups, by=["a", "b"], **options), X, predictions


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@settings(max_examples=5)
@given(
    st.sampled_from(MECHANISMS[:-1]), st.floats(0.01, 20.0),
    st.sampled_from([{}, {"consistent": True}, {"decimals": 3}, {"min_cell": 15}]),
)  # fmt: skip
def test_a_file_keeps_the_guarantee_of_its_rows(tmp_path_factory, kind, noise, epsilon, options):
    report, *_ = make_noisy(noise=noise, epsilon=epsilon, **options)
    place = tmp_path_factory.mktemp("files") / f"report.{kind}"
    getattr(report, f"to_{kind}")(place)
    again = FairnessReport.from_file(place)
    assert again.stated == report.stated is not None
    for fewer in (again.protect(order=0), again.take([0, 2])):
        assert replace(fewer, guarantee=again.guarantee).stated is None
        assert fewer.stated.guarantee == report.stated.guarantee
        assert FairnessReport.from_frame(fewer.to_frame(), groups=report.groups).stated
    frame = again.to_frame()
    shuffled = frame.sample(frac=1, random_state=0)[frame.columns[::-1]]
    assert FairnessReport.from_frame(shuffled).stated
    assert "for a change of one person&#x27;s group" in report.to_html()


def test_exact_reports_state_none():
    report, *_ = make_noisy(noise=None, epsilon=None)
    assert report.guarantee is report.stated is None
    assert "guarantee" not in report.to_frame()
    assert "Differential privacy" not in report.to_html()


def change_value(frame):
    frame.loc[(frame["n"] > 0).idxmax(), "value"] = 0.51


def drop_guarantee(frame):
    del frame["guarantee"]


def drop_row(frame):
    return frame.drop(index=1)


def change_law(frame):
    frame.loc[2, "noise"] = "laplace 3"


def change_size(frame):
    frame.loc[2, "n"] += 1


def publish_twice(frame):
    """A second release of a table that the first one lacks: epsilon is that of both."""
    other = make_noisy(tables=[["a", "b"]], order=2)[0].to_frame()
    return pd.concat([frame, other], ignore_index=True)


def add_rows_of_another(frame):
    return pd.concat([frame, publish_twice(frame).iloc[len(frame) :].assign(guarantee="")])


@pytest.mark.parametrize(
    "edit",
    [change_value, drop_guarantee, drop_row, change_law, change_size, publish_twice,
     add_rows_of_another],
)  # fmt: skip
def test_other_rows_have_no_guarantee_and_it_is_said(edit):
    report, X, predictions = make_noisy()
    frame = report.to_frame()
    edited = edit(frame)
    again = FairnessReport.from_frame(frame if edited is None else edited)
    assert again.stated is None
    assert "guarantee" not in again.to_frame()
    assert again.protect(order=0).stated is again.take([0, 1]).stated is None
    result = assess(again, X, predictions)
    assert result.private_limit is None
    told = "no limit by differential privacy: none, for the report states no guarantee of exactly"
    assert told in " ".join(str(result).split())
    assert result.to_json()["measures"]["private_limit"] is None


def test_rows_that_are_edited_in_python_have_no_guarantee_either():
    report, X, predictions = make_noisy(order=0)
    edited = replace(report, n=report.n + 1)
    assert edited.stated is None
    assert "guarantee" not in edited.to_frame()
    assert report.stated
    report.value[0] = 0.25
    assert report.stated is None
    assert assess(report, X, predictions).private_limit is None


def test_numbers_without_noise_have_no_limit():
    report, X, predictions = make_noisy(order=0)
    frame = report.to_frame()
    frame.loc[frame.index[-1], ["noise", "measured"]] = ""
    result = assess(FairnessReport.from_frame(frame), X, predictions)
    assert "numbers of the report have no noise" in " ".join(str(result).split())
    exact = assess(make_noisy(noise=None, epsilon=None, order=0)[0], X, predictions)
    assert exact.privacy == ""
    told = " ".join(str(exact).split())
    assert "differential privacy" not in told
    assert "is the most that the report can add, on average over reports, for an" in told


@pytest.mark.parametrize("text", ["epsilon 1", "{}", '{"guarantee": {"epsilon": -1}}', "[" * 999])
def test_what_is_no_guarantee_is_refused(text):
    report, *_ = make_noisy()
    frame = report.to_frame()
    frame.loc[4, "guarantee"] = text
    with pytest.raises(InputError, match="row 4, column 'guarantee': .* is no guarantee as"):
        FairnessReport.from_frame(frame)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian"])
def test_guarantees_of_reports_add_up(noise):
    report, X, predictions = make_noisy(noise=noise)
    first = report.guarantee.guarantee
    result = assess([report] * 3, X, predictions)
    together = Guarantee(3 * first.epsilon, 3 * first.delta, rho=3 * first.rho)
    assert result.private_limit == pytest.approx(limit_private_leak(result.prior, together))
    assert "epsilon 3" in result.privacy
    assert "as the reports state together" in result.privacy
    assert result.private_limit < limit_private_leak(result.prior, replace(together, rho=None))
    unknown = FairnessReport.from_frame(report.to_frame().drop(columns="guarantee"))
    mixed = assess({"May": report, "June": unknown}, X, predictions)
    assert mixed.private_limit is None
    assert mixed.privacy == "none, for June states no guarantee of exactly these rows"


def test_deltas_that_add_up_to_one_guarantee_nothing():
    report, X, predictions = make_noisy(noise={"use": "discrete-gaussian", "delta": 0.5})
    result = assess([report, report], X, predictions)
    assert result.private_limit is None
    assert "do not add up: delta must be" in result.privacy


def test_the_guarantee_is_that_of_the_mechanism():
    for noise in MECHANISMS:
        report, *_ = make_noisy(noise=noise, epsilon=0.5)
        stated = report.guarantee
        if isinstance(noise, Mumble):
            assert stated.guarantee == Guarantee(0.5, rho=0.125)
        else:
            chosen = {k: v for k, v in stated.mechanism.items() if k != "use"}
            own = component("mechanism", stated.mechanism["use"], **chosen)
            assert stated.guarantee == own.guarantee(0.5, "attribute")


@pytest.mark.parametrize("how", [{"min_group": 3}, {"min_cell": 8, "complementary": True}])
def test_what_was_suppressed_by_groups_gets_no_guarantee_afterwards(how):
    """Which numbers are left depends on groups, even where no suppressed one is left."""
    X, predictions, groups = make_people(60)
    suppressed = make_report(X, predictions, groups, by=["a", "b"], order=2).protect(**how)
    assert suppressed.suppressed.any()
    left = suppressed.protect(order=0)
    assert not left.suppressed.any()
    with pytest.raises(InputError, match="suppress cells by their true counts"):
        left.protect(noise="discrete-laplace", epsilon=1.0)
