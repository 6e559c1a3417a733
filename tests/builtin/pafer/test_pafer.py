"""PAFER: exact without noise, the paper's numbers with it, and intervals that cover."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import ks_2samp
from sklearn.tree import DecisionTreeClassifier

from fpbench import InputError, Mechanism, Sample, component
from fpbench.builtin.learners.decision_tree import DecisionTree
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.pafer.auditor import Pafer
from fpbench.builtin.pafer.intervals import Draws, estimate_interval
from fpbench.claims import METRICS, RateConstraint
from fpbench.errors import BudgetError
from fpbench.models import RuleList, tree_rules
from fpbench.plugin import DataHome, Subject
from fpbench.privacy import Curator, Ledger

MODES = [{"mode": "partition"}, {"per_rule": True}, {"mode": "reference"}]
POLICIES = ["clip", "project", "0/uniform", "1/total-valid", "total-valid/total-valid"]


class Silent(Mechanism):
    """Says the truth."""

    name = "silent"
    summary = "no noise"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        shape = np.broadcast_shapes(np.shape(counts), np.shape(epsilon))
        return np.broadcast_to(counts, shape).astype(np.float64)


class Model:
    """A rule list over one column, with the rules that an auditor may ask for."""

    def __init__(self, seed, n_rules=5):
        rng = np.random.default_rng(seed)
        ends = np.sort(rng.choice(np.arange(1, 100), n_rules, replace=False)).tolist()
        labels = rng.permutation([1, 0, 1, 0, 1, 1, 0][:n_rules]).tolist()
        self.list = RuleList(
            [([("x", "<", end)], label) for end, label in zip(ends, labels, strict=True)], 0
        )
        self.rules = self.list.rules


def people(seed, n=400, k=3):
    """Groups that differ in x, labels that depend on it, and what the model says."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, k, n)
    groups[:k] = np.arange(k)
    x = np.clip(rng.integers(0, 100, n) + 5 * groups, 0, 100)
    labels = (x + rng.integers(-40, 40, n) > 50).astype(np.int8)
    model = Model(seed)
    frame = pd.DataFrame({"x": x})
    names = tuple(f"g{i}" for i in range(k))
    predictions = model.list.predict(frame)
    return model, Sample(
        names, features=frame, labels=labels, sensitive=groups, predictions=predictions
    )


def audit(model, sample, curator=None, seed=0, **chosen):
    rng = np.random.default_rng(seed)
    chosen = {"epsilon": 1.0, "mechanism": component("mechanism", "laplace"), **chosen}
    if isinstance(chosen.get("policy"), str):
        chosen["policy"] = component("policy", chosen["policy"])
    if curator is None:
        curator = Curator(sample.sensitive, sample.groups, rng=rng)
    auditor = Pafer(**chosen)
    shown = sample.only(auditor.sees)
    return auditor.audit(Subject(Sample(sample.groups), shown, model, curator), rng)


def truth(sample, metric="statistical-parity"):
    unfair = RateConstraint(metric, form="ratio").unfairness(
        sample.sensitive, sample.predictions, sample.labels, len(sample.groups)
    )
    return float(1 - unfair)


@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from(METRICS), st.sampled_from(MODES),
       st.sampled_from([None, *POLICIES]))  # fmt: skip
def test_without_noise_it_is_the_truth(seed, k, metric, mode, policy):
    model, sample = people(seed, k=k)
    release = audit(
        model, sample, mechanism=Silent(), metric=metric, policy=policy, repetitions=2,
        resamples=0, **mode,
    )  # fmt: skip
    assert release.values == pytest.approx([truth(sample, metric)] * 2, abs=1e-9)
    assert release.measures["invalid_ratio"] == 0


class Asked:
    """A source of histograms that keeps what it was asked, or answers what it is told to."""

    groups, neighbours, people = ("a", "b"), "add-remove", 0

    def __init__(self, people, answers=None):
        self.people, self.answers, self.calls = people, answers, []

    def histogram(self, cells, n_cells, *, epsilon, mechanism, repetitions=1):
        self.calls.append((np.asarray(cells).tolist(), n_cells, epsilon, repetitions))
        if self.answers is None:
            return np.zeros((repetitions, n_cells, 2))
        return np.array(self.answers.pop(0), dtype=float).reshape(repetitions, n_cells, 2)


def rejecting(values, labels=None):
    """People of a model that accepts 1 and 3: two rules that predict 1."""
    model = RuleList([([("x", "=", 1)], 1), ([("x", "=", 2)], 0), ([("x", "=", 3)], 1)], 0)
    frame = pd.DataFrame({"x": values})
    columns = {} if labels is None else {"labels": np.array(labels, dtype=np.int8)}
    return model, Sample(("a", "b"), features=frame, predictions=model.predict(frame), **columns)


def test_what_the_curator_is_asked():
    model, sample = rejecting([1, 2, 3, 0, 1], [0, 0, 1, 1, 1])
    for chosen, calls in (
        ({}, [([1, 0, 1, 0, 1], 2, 0.5, 1)]),
        ({"per_rule": True}, [([1, 0, 2, 0, 1], 3, 0.5, 1)]),
        ({"mode": "reference"}, [([0] * 5, 1, 0.25, 1), ([0, -1, 1, -1, 0], 2, 0.25, 1)]),
        ({"metric": "equal-opportunity"}, [([-1, -1, 1, 0, 1], 2, 0.5, 1)]),
        ({"metric": "predictive-equality"}, [([1, 0, -1, -1, -1], 2, 0.5, 1)]),
        ({"metric": "equalized-odds"}, [([1, 0, 3, 2, 3], 4, 0.5, 1)]),
        (
            {"metric": "equalized-odds", "mode": "reference"},
            [([0, 0, 1, 1, 1], 2, 0.25, 1), ([0, -1, 3, -1, 2], 4, 0.25, 1)],
        ),
    ):
        source = Asked(5)
        release = audit(model, sample, source, epsilon=0.5, resamples=0, **chosen)
        assert source.calls == calls
        assert release.guarantee.epsilon == 0.5
        assert release.guarantee.neighbours == "add-remove"


def test_the_reference_mode_by_hand():
    """Ten people; two rules of four and two; uniform/uniform, as in the paper."""
    model, sample = rejecting([1] * 4 + [3] * 2 + [0] * 4)
    # The overall histogram: 12 > n = 10 becomes 5. The first rule: -1 becomes 4 / 2, while 7 is
    # more than the rule has but not more than n, and stays (footnote 8). Rates 4.5 / 5 and 8 / 8.
    source = Asked(10, [[[12.0, 8.0]], [[-1.0, 7.0], [2.5, 1.0]]])
    release = audit(model, sample, source, mode="reference", resamples=0)
    assert release.values[0] == pytest.approx(0.9)
    assert release.measures["invalid_ratio"] == pytest.approx(2 / 6)
    assert release.measures["n_queries"] == 3
    table = release.rules
    assert table["people"].tolist() == [4, 2]
    assert table["a"].tolist() == [2.0, 2.5]
    assert table["rate of b"].tolist() == [7 / 8, 1 / 8]
    source = Asked(10, [[[12.0, 8.0]], [[-1.0, 7.0], [2.5, 1.0]]])
    named = audit(model, sample, source, mode="reference", policy="uniform/uniform", resamples=0)
    assert named.values.tolist() == release.values.tolist()
    assert named.rules.equals(release.rules)
    # With 0/uniform: rates 2.5 / 5 and 1.
    source = Asked(10, [[[12.0, 8.0]], [[-1.0, 7.0], [2.5, 1.0]]])
    release = audit(model, sample, source, mode="reference", policy="0/uniform", resamples=0)
    assert release.values[0] == pytest.approx(0.5)


def test_the_partition_by_hand():
    """Accepted 6, rejected 4, noisy counts moved to these sums."""
    model, sample = rejecting([1] * 4 + [3] * 2 + [0] * 4)
    source = Asked(10, [[[4.0, -1.0], [5.0, 3.0]]])
    release = audit(model, sample, source, resamples=0)
    # Rejected (4, -1) -> (4, 0); accepted (5, 3) -> (4, 2). Rates 4 / 8 and 2 / 2.
    assert release.values[0] == pytest.approx(0.5)
    assert release.measures["invalid_ratio"] == 0.25
    assert release.rules is None
    source = Asked(10, [[[4.0, -1.0], [5.0, -3.0], [0.5, 1.5]]])
    release = audit(model, sample, source, per_rule=True, resamples=0)
    # The first rule (5, -3) -> (4, 0): rates (4 + 0.5) / 8.5 and 1.5 / 1.5.
    assert release.values[0] == pytest.approx(4.5 / 8.5)
    assert release.rules["ratio"].tolist() == pytest.approx([0, (0.5 / 8.5) / (1.5 / 1.5)])
    assert release.measures["n_queries_most"] == 5


@pytest.mark.parametrize("mode", MODES)
def test_all_rates_zero_is_fair_and_zero_members_is_rate_zero(mode):
    model, sample = rejecting([0] * 6)
    release = audit(model, sample, Asked(6), resamples=20, **mode)
    assert release.values.tolist() == [1]
    model, sample = rejecting([1] * 3 + [0] * 3)
    answers = {"partition": [[[9, 0], [9, 0]]], "reference": [[[9, 0]], [[9, 0], [0, 0]]]}
    if "per_rule" not in mode:
        source = Asked(6, answers[mode["mode"]])
        assert audit(model, sample, source, resamples=0, **mode).values.tolist() == [0]


def naive_reference(model, sample, epsilon, repetitions, seed):
    """The paper's algorithm, one number at a time."""
    rng, codes = np.random.default_rng(seed), model.rules.apply(sample.features)
    n, k = len(sample), len(sample.groups)

    def asked(mask):
        total, found = int(mask.sum()), []
        for group in range(k):
            count = int((mask & (sample.sensitive == group)).sum())
            noisy = count + rng.laplace(0, 2 / (epsilon / 2))
            found.append(total / k if noisy < 0 or noisy > n else noisy)
        return found

    values = []
    for _ in range(repetitions):
        members, accepted = asked(np.ones(n, bool)), [0.0] * k
        for rule in model.rules.favourable:
            accepted = [a + b for a, b in zip(accepted, asked(codes == rule), strict=True)]
        rates = [a / m if m else 0 for a, m in zip(accepted, members, strict=True)]
        values.append(min(rates) / max(rates) if max(rates) else 1.0)
    return values


def test_the_reference_mode_is_the_papers_algorithm():
    model, sample = people(4, n=900)
    slow = naive_reference(model, sample, 0.4, 1500, 1)
    fast = audit(model, sample, epsilon=0.4, mode="reference", repetitions=4000, resamples=0)
    assert ks_2samp(slow, fast.values).pvalue > 1e-3
    other = audit(model, sample, epsilon=0.45, mode="reference", repetitions=4000, resamples=0)
    assert ks_2samp(slow, other.values).pvalue < 1e-3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mechanism", ["laplace", "discrete-laplace", "gaussian", "exponential"])
def test_repetitions_are_reproducible_and_differ(mode, mechanism):
    model, sample = people(1, n=300)
    mechanism = component("mechanism", mechanism)
    given = {**mode, "metric": "equalized-odds", "mechanism": mechanism}
    release = audit(model, sample, repetitions=5, resamples=40, **given)
    again = audit(model, sample, repetitions=5, resamples=40, **given)
    np.testing.assert_array_equal(release.values, again.values)
    np.testing.assert_array_equal(release.low, again.low)
    np.testing.assert_array_equal(release.high, again.high)
    assert len(set(release.values)) > 1
    assert ((release.low >= 0) & (release.low <= release.values)).all()
    assert ((release.values <= release.high) & (release.high <= 1)).all()
    without = audit(model, sample, repetitions=5, resamples=0, **given)
    np.testing.assert_array_equal(without.values, release.values)
    assert np.isnan(without.low).all()


def test_guarantees_and_what_they_cost():
    model, sample = people(2)
    curator = Curator(sample.sensitive, sample.groups, ledger=Ledger(2.0), rng=0)
    for chosen in ({}, {"mode": "reference"}, {"per_rule": True, "metric": "equalized-odds"}):
        release = audit(model, sample, curator, epsilon=0.2, repetitions=3, resamples=0, **chosen)
        assert release.guarantee.epsilon == 0.2
        assert release.guarantee.neighbours == "attribute"
    assert curator.remaining.epsilon == pytest.approx(0.2)
    with pytest.raises(BudgetError):
        audit(model, sample, curator, epsilon=0.2, repetitions=2, resamples=0)
    gaussian = component("mechanism", "gaussian", delta=1e-6)
    once = audit(model, sample, mechanism=gaussian, resamples=0).guarantee
    twice = audit(model, sample, mechanism=gaussian, mode="reference", resamples=0).guarantee
    assert (once.epsilon, once.delta) == (1.0, 1e-6)
    assert (twice.epsilon, twice.delta) == (1.0, 2e-6)


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_an_audit_beyond_the_budget_spends_nothing(accounting):
    """The reference mode asks twice; half an audit is none."""
    model, sample = people(2)
    ledger = Ledger(0.5, 1e-6, accounting=accounting)
    while ledger.remaining.epsilon >= 0.09:
        ledger.spend(component("mechanism", "laplace").guarantee(0.03, "attribute"))
    curator, left = Curator(sample.sensitive, sample.groups, ledger=ledger, rng=0), ledger.remaining
    for share, repetitions in ((1.5, 1), (0.6, 8)):
        too_much = {"epsilon": share * left.epsilon, "repetitions": repetitions}
        with pytest.raises(BudgetError, match="this audit: asked for .*; nothing was spent"):
            audit(model, sample, curator, mode="reference", resamples=0, **too_much)
        assert ledger.remaining == left
    audit(model, sample, curator, mode="reference", resamples=0, epsilon=left.epsilon)
    assert ledger.remaining.epsilon < left.epsilon


def test_an_audit_that_runs_out_of_budget_says_what_it_spent():
    model, sample = people(2)
    ledger = Ledger(1.0)

    class Shared(Curator):
        """Somebody else asks it after every answer."""

        def histogram(self, *given, **more):
            found = super().histogram(*given, **more)
            ledger.spend(component("mechanism", "laplace").guarantee(0.4, "attribute"))
            return found

    curator = Shared(sample.sensitive, sample.groups, ledger=ledger, rng=0)
    with pytest.raises(BudgetError, match=r"on this, after epsilon 0\.4 was spent on the gr"):
        audit(model, sample, curator, mode="reference", resamples=0, epsilon=0.8)
    assert ledger.spent.epsilon == 0.8


def test_secure_noise_is_named_and_only_simulated_for_intervals(monkeypatch):
    model, sample = people(3)
    secure = component("mechanism", "discrete-laplace", noise="secure")
    used, release = [], type(secure).release

    def spied(self, counts, *given, **more):
        used.append((self.noise, np.size(counts)))
        return release(self, counts, *given, **more)

    monkeypatch.setattr(type(secure), "release", spied)
    made = audit(model, sample, mechanism=secure, resamples=50)
    assert made.noise == "secure"
    assert used == [("secure", 6), ("simulation", 300)]
    assert made.low[0] < made.high[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_group_is_not_a_crash(mode, metric):
    model, sample = people(5, n=500, k=2)
    names = ("g0", "nobody", "g1")
    groups = sample.sensitive * 2
    curator = Curator(groups, names, rng=1)
    release = audit(model, sample, curator, metric=metric, repetitions=50, resamples=60, **mode)
    for values in (release.values, release.low, release.high):
        assert ((values >= 0) & (values <= 1)).all()
    # An auditor cannot tell it from a group whose rate is anything.
    assert np.mean(release.high - release.low) > 0.5


def test_a_crossed_attribute_of_many_groups():
    rng = np.random.default_rng(6)
    sample = population(rng, 6000, np.linspace(0.2, 0.4, 12), [1] * 12)
    release = audit(object(), sample, epsilon=2.0, repetitions=20, resamples=60)
    assert len(set(release.values)) == 20
    assert abs(release.values.mean() - truth(sample)) < 0.05
    assert ((release.low <= truth(sample)) & (truth(sample) <= release.high)).mean() >= 0.9


def population(rng, n, rates, shares):
    """People drawn from a population whose groups have these rates."""
    groups = rng.choice(len(rates), n, p=np.array(shares) / sum(shares)).astype(np.int8)
    accepted = rng.random(n) < np.array(rates)[groups]
    x = np.where(accepted, rng.choice([1, 3], n), rng.choice([0, 2], n))
    labels = np.ones(n, dtype=np.int8)
    names = tuple(f"g{i}" for i in range(len(rates)))
    return Sample(
        names, features=pd.DataFrame({"x": x}), predictions=accepted.astype(np.int8),
        labels=labels, sensitive=groups,
    )  # fmt: skip


COVERED = {
    "two groups, much noise": ([0.3, 0.1], [2, 1], 4000, 0.1, {}),
    "two groups, little noise": ([0.3, 0.1], [2, 1], 4000, 5.0, {}),
    "two equal groups": ([0.3, 0.3], [2, 1], 4000, 0.2, {}),
    "a small group": ([0.3, 0.2], [9, 1], 2000, 0.2, {}),
    "four groups": ([0.3, 0.25, 0.2, 0.35], [4, 9, 1, 1.2], 8000, 0.5, {}),
    "four equal groups": ([0.3] * 4, [4, 9, 1, 1.2], 8000, 0.5, {}),
    "eight equal groups": ([0.3] * 8, [1] * 8, 8000, 0.5, {}),
    "a tiny group": ([0.2, 0.3, 0.05], [10, 5, 0.1], 3000, 0.5, {}),
    "per rule": ([0.3, 0.1], [2, 1], 3000, 0.3, {"per_rule": True}),
    "reference": ([0.3, 0.2], [2, 1], 3000, 0.5, {"mode": "reference"}),
    "reference, three groups": ([0.4, 0.2, 0.3], [2, 1, 1], 3000, 1.0, {"mode": "reference"}),
    "equal opportunity": ([0.3, 0.2], [2, 1], 3000, 0.3, {"metric": "equal-opportunity"}),
    "discrete": ([0.3, 0.2], [2, 1], 3000, 0.3, {"mechanism": "discrete-laplace"}),
    "gaussian": ([0.3, 0.2], [2, 1], 3000, 0.3, {"mechanism": "gaussian"}),
    "exponential": ([0.3, 0.2], [2, 1], 3000, 0.3, {"mechanism": "exponential"}),
    # Where the noise is larger than the counts, that of the exponential mechanism is bounded.
    "exponential, drowned": ([0.3, 0.2], [1, 1], 3000, 0.01, {"mechanism": "exponential"}),
    "exponential, reference": (
        [0.3, 0.2], [1, 1], 3000, 0.02, {"mechanism": "exponential", "mode": "reference"}
    ),
    "Laplace, drowned": ([0.3, 0.2], [1, 1], 3000, 0.01, {}),
    "a rate of 0": ([0.0, 0.3], [1, 1], 2000, 0.5, {}),
    "a rate of 0, few people": ([0.0, 0.3], [1, 1], 200, 1.0, {}),
    "a rate of 0, drowned": ([0.0, 0.3], [1, 1], 2000, 0.05, {}),
    "a rate of 0 in a small group": ([0.3, 0.0], [98, 2], 2000, 1.0, {}),
    "a rate of 0, reference": ([0.3, 0.0], [1, 1], 2000, 1.0, {"mode": "reference"}),
    "a rate of 0, discrete": ([0.3, 0.0], [1, 1], 2000, 0.5, {"mechanism": "discrete-laplace"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("setting", COVERED)
def test_intervals_cover_the_population(setting):
    rates, shares, n, epsilon, given = COVERED[setting]
    rng, value, inside, runs = np.random.default_rng(11), min(rates) / max(rates), 0, 200
    model, _ = rejecting([0])
    mechanism = component("mechanism", given.get("mechanism", "laplace"))
    for run in range(runs):
        sample = population(rng, n, rates, shares)
        release = audit(
            model,
            sample,
            epsilon=epsilon,
            seed=run,
            resamples=200,
            **{**given, "mechanism": mechanism},
        )
        inside += int(release.low[0] <= value <= release.high[0])
    assert inside / runs >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"mode": "reference"}], ids=["partition", "reference"])
@pytest.mark.parametrize("rates", [([0.6, 0.4], [0.3, 0.25]), ([0.5, 0.5], [0.2, 0.2])])
def test_intervals_of_equalized_odds_cover_the_smaller_of_two_ratios(rates, given):
    """Rates (label, group); of people of label 1 first."""
    rng, inside, runs = np.random.default_rng(13), 0, 200
    value = min(min(of) / max(of) for of in rates)
    model, _ = rejecting([0])
    for run in range(runs):
        ones, zeros = (population(rng, 2000, of, [2, 1]) for of in rates)
        both = {
            name: np.concatenate([getattr(ones, name), getattr(zeros, name)])
            for name in ("predictions", "sensitive")
        }
        features = pd.concat([ones.features, zeros.features], ignore_index=True)
        labels = np.repeat(np.array([1, 0], dtype=np.int8), 2000)
        sample = Sample(ones.groups, features=features, labels=labels, **both)
        release = audit(
            model, sample, epsilon=0.5, seed=run, resamples=200, metric="equalized-odds", **given
        )
        inside += int(release.low[0] <= value <= release.high[0])
    assert inside / runs >= 0.91


def test_intervals_narrow_with_epsilon_and_widen_with_confidence():
    model, sample = people(7, n=5000)
    widths = [
        np.mean(release.high - release.low)
        for release in (
            audit(model, sample, epsilon=e, confidence=c, repetitions=30)
            for e, c in ((0.1, 0.95), (0.5, 0.95), (5.0, 0.95), (5.0, 0.8), (5.0, 0.999))
        )
    ]
    assert widths[0] > widths[1] > widths[2] > widths[3]
    assert widths[4] > widths[2]


def draws_of(*logs):
    """Draws (2000, 1, 1, K) of one release's rates, whose logarithms are normal around these."""
    rates = np.exp(np.array(logs) + np.random.default_rng(3).normal(0, 0.05, (2000, len(logs))))
    return Draws(rates[:, None, None], np.zeros((2000, 1, 1, len(logs)), bool))


def test_the_upper_end_is_corrected_for_the_pairs_that_may_be_the_least():
    far = draws_of(-3.0, -1.5, -0.5)
    ends = Draws(far.rates[..., [0, 2]], far.nobody[..., [0, 2]])
    assert np.allclose(estimate_interval(far, 0.95), estimate_interval(ends, 0.95))
    equal = draws_of(-3.0, -3.0, -0.5, -0.5)  # four pairs of a small and a large rate
    logs = np.log(equal.rates[:, 0, 0])
    pairs = [logs[:, a] - logs[:, b] for a in (0, 1) for b in (2, 3)]
    low, high = np.log(estimate_interval(equal, 0.95)).ravel()
    lower, upper = np.quantile(pairs, [0.025, 1 - 0.025 / 4], axis=1, method="weibull").min(axis=1)
    assert (low, high) == pytest.approx((lower, upper))


def test_intervals_of_many_repetitions_are_those_of_few():
    """Chunks change nothing but the draws."""
    model, sample = people(8, n=3000, k=4)
    many = audit(model, sample, repetitions=1500, resamples=100)
    few = audit(model, sample, repetitions=100, resamples=100)
    assert np.mean(many.low) == pytest.approx(np.mean(few.low), abs=0.02)
    assert np.mean(many.high) == pytest.approx(np.mean(few.high), abs=0.02)


def test_models_that_cannot_be_asked():
    model, sample = people(1)
    other, _ = people(2)
    for chosen in ({"mode": "reference"}, {"per_rule": True}):
        with pytest.raises(InputError, match=r"needs rules, but the model has none.*partition"):
            audit(object(), sample, **chosen)
        with pytest.raises(InputError, match="predict different labels"):
            audit(other, sample, **chosen)
    assert audit(object(), sample).values.shape == (1,)
    with pytest.raises(InputError, match="answers about 7 people, but 400 are audited"):
        audit(model, sample, Asked(7))
    auditor = Pafer(epsilon=1.0, mechanism=component("mechanism", "laplace"))
    with pytest.raises(InputError, match="needs a curator, but none was given"):
        auditor.audit(Subject(sample, sample), np.random.default_rng(0))


def test_which_learners_it_can_audit():
    laplace = component("mechanism", "laplace")
    reference = Pafer(epsilon=1.0, mechanism=laplace, mode="reference")
    assert reference.incompatible(DecisionTree()) is None
    assert reference.incompatible(Plain()) is None
    assert "gives none" in reference.incompatible(Plain(base="logistic-regression"))
    partition = Pafer(epsilon=1.0, mechanism=laplace)
    assert partition.incompatible(Plain(base="logistic-regression")) is None
    assert "sensitive" not in Pafer.sees


def test_what_a_mechanism_cannot_guarantee_is_known_before_it_runs():
    """In mode reference it is asked for half."""
    classic = component("mechanism", "gaussian", calibration="classic")
    partition = Pafer(epsilon=1.0, mechanism=classic)
    assert "proven for epsilon below 1 only" in partition.incompatible(Plain())
    assert Pafer(epsilon=1.0, mechanism=classic, mode="reference").incompatible(Plain()) is None
    assert partition.incompatible(classic) is None


def test_few_resamples_are_refused():
    with pytest.raises(ValidationError):
        Pafer(epsilon=1.0, mechanism=component("mechanism", "laplace"), resamples=5)


def test_it_audits_any_tree_it_is_given():
    _, sample = people(9)
    features = sample.features.to_numpy()
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(features, sample.labels)
    with_rules = type("WithRules", (), {"rules": tree_rules(tree)})()
    people_ = sample.having(features=features, predictions=tree.predict(features).astype(np.int8))
    for mode in MODES:
        release = audit(with_rules, people_, mechanism=Silent(), resamples=0, **mode)
        assert release.values[0] == pytest.approx(truth(people_))


# Real data: the numbers of the paper, and how much better the partition is.

ERRORS = {  # AASPE of mode reference by the notes, relation add-remove: ethnicity, sex, both
    0.1: 0.092,
    0.5: 0.028,
}


@cache
def adult(home):
    """The tree of the paper's Table 4, and the people of the test file."""
    white = {"column": "race", "one_of": ["White"]}
    dataset = component("dataset", "adult", sensitive=[white, "sex"], drop="fnlwgt")
    sample = dataset.load(home).sample()
    return fitted(sample.take(np.arange(30_162)), sample.take(np.arange(30_162, 45_222)))


@cache
def compas(home):
    """COMPAS as the paper prepares it: its Table 4 says .78, .84 and .72."""
    from sklearn.model_selection import train_test_split

    frame = pd.read_csv(home.find("compas-scores-two-years.csv"))
    frame = frame[
        frame["days_b_screening_arrest"].between(-30, 30) & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")
    ].reset_index(drop=True)  # fmt: skip
    words = ["c_charge_degree", "age_cat", "score_text"]
    numbers = ["age", "priors_count", "days_b_screening_arrest", "decile_score"]
    features = pd.concat([frame[numbers], frame[words].astype("category")], axis=1)
    for name in ("c_jail_in", "c_jail_out"):
        features[name] = pd.to_datetime(frame[name]).dt.year
    white, man = frame["race"] == "Caucasian", frame["sex"] == "Male"
    groups = (2 * ~white + man).to_numpy().astype(np.int8)
    labels = (frame["two_year_recid"] == 0).to_numpy().astype(np.int8)
    names = ("White woman", "White man", "other woman", "other man")
    sample = Sample(names, features=features, labels=labels, sensitive=groups)
    train, test = train_test_split(np.arange(len(frame)), test_size=2057, random_state=42)
    return fitted(sample.take(train), sample.take(test))


def fitted(train, test):
    model = DecisionTree(random_state=0).fit(train, np.random.default_rng(0))
    return model, test.having(predictions=model.predict(test.features, None))


def errors(model, sample, neighbours, **given):
    """Mean absolute errors for ethnicity, sex, and both."""
    found = []
    for groups, names in (
        (sample.sensitive // 2, "wo"), (sample.sensitive % 2, "fm"), (sample.sensitive, "abcd"),
    ):  # fmt: skip
        some = Sample(
            tuple(names), features=sample.features, labels=sample.labels, sensitive=groups,
            predictions=sample.predictions,
        )  # fmt: skip
        curator = Curator(groups, tuple(names), neighbours=neighbours, rng=5)
        release = audit(model, some, curator, repetitions=2000, resamples=0, **given)
        found.append(np.abs(release.values - truth(some)).mean())
    return np.array(found)


@pytest.fixture
def compas_home():
    home = DataHome.default()
    try:
        home.find("compas-scores-two-years.csv")
    except ValueError as missing:
        pytest.skip(f"{missing}; fpbench data fetch compas, or set FPBENCH_DATA")
    return home


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ERRORS)
def test_the_reference_mode_makes_the_errors_of_the_notes(adult_home, epsilon):
    model, sample = adult(adult_home)
    found = errors(model, sample, "add-remove", mode="reference", epsilon=epsilon)
    assert found.mean() == pytest.approx(ERRORS[epsilon], rel=0.06)
    zero = errors(
        model, sample, "add-remove", mode="reference", epsilon=epsilon, policy="0/uniform"
    )
    assert zero.mean() < 0.8 * found.mean()


def test_the_tree_of_compas_is_the_papers(compas_home):
    model, sample = compas(compas_home)
    assert model.notes["rules"] == 3
    found = []
    for groups in (sample.sensitive // 2, sample.sensitive % 2, sample.sensitive):
        some = sample.having(sensitive=groups)
        found.append(round(truth(some), 2))
    assert found == pytest.approx([0.78, 0.84, 0.72], abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("data", ["adult", "compas"])
@pytest.mark.parametrize("neighbours", ["add-remove", "attribute"])
def test_the_partition_is_several_times_better(adult_home, compas_home, data, epsilon, neighbours):
    model, sample = adult(adult_home) if data == "adult" else compas(compas_home)
    paper = errors(model, sample, neighbours, mode="reference", epsilon=epsilon).mean()
    ours = errors(model, sample, neighbours, epsilon=epsilon).mean()
    rules = errors(model, sample, neighbours, epsilon=epsilon, per_rule=True).mean()
    # With so much noise that the paper's mode says 1 / K of everything, it can hardly get worse.
    saturated = (data, epsilon, neighbours) == ("adult", 0.1, "attribute")
    assert paper / ours >= (2.8 if saturated else 3.5)
    assert ours < rules < paper
