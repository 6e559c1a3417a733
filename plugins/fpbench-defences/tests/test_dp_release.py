"""What a differentially private audit released, as an adversary's claim."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from fpbench_defences.dp_release import DPRelease
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import fpbench
from fpbench import (
    Auditor,
    Claim,
    Guarantee,
    InputError,
    Mechanism,
    PluginError,
    Release,
    Sample,
    component,
)
from fpbench.claims import METRICS, KnownUnfairness, RateConstraint
from fpbench.correction import condition_beliefs, propagate, prove
from fpbench.errors import MatrixError
from fpbench.privacy import COUNT_SENSITIVITY, limit_private_nats

RNG = np.random.default_rng(0)


class Speaker(Auditor):
    """Releases what it is told to."""

    name = "speaker"
    summary = "says what it is told"
    sees = frozenset({"curator", "predictions", "sensitive"})
    metric: str = "statistical-parity"
    values: tuple[float, ...] = (0.5,)
    low: float = 0.4
    high: float = 0.7
    heard: ClassVar[list] = []

    def audit(self, subject, rng):
        self.heard.append(subject)
        n = len(self.values)
        return Release(
            self.metric, np.array(self.values), np.full(n, self.low), np.full(n, self.high), 0.95,
            Guarantee(0.25), "simulation",
        )  # fmt: skip


class Counting(Auditor):
    """Asks for a histogram of predictions, and says its ratio, give or take a tenth."""

    name = "counting"
    summary = "asks the curator"
    sees = frozenset({"curator", "predictions"})
    epsilon: float = 1.0
    mechanism: Mechanism

    def audit(self, subject, rng):
        noisy = subject.curator.histogram(
            subject.test.predictions, 2, epsilon=self.epsilon, mechanism=self.mechanism
        ).reshape(2, -1)
        rates = np.clip(noisy[1] / np.maximum(noisy.sum(axis=0), 1), 0, 1)
        ratio = np.array([rates.min() / rates.max()]) if rates.max() else np.ones(1)
        return Release(
            "statistical-parity", ratio, np.maximum(ratio - 0.1, 0), np.minimum(ratio + 0.1, 1),
            0.9, Guarantee(self.epsilon), "simulation",
        )  # fmt: skip


class Slicing(Counting):
    """Asks the same, of everybody and of every value of every column."""

    name = "slicing"
    sees = frozenset({"curator", "predictions", "features"})

    def audit(self, subject, rng):
        people = subject.test
        for name in people.features:
            values = people.features[name].to_numpy(np.int64)
            subject.curator.histogram(
                2 * values + people.predictions, 2 * values.max() + 2, epsilon=self.epsilon,
                mechanism=self.mechanism, repetitions=2,
            )  # fmt: skip
        return super().audit(subject, rng)


class NoNoise(Mechanism):
    """No noise at all."""

    name = "exact-counts"
    summary = "no noise"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return (counts + 0 * np.asarray(epsilon)).astype(float)

    def find_noise_law(self, sensitivity, epsilon, upper):
        return np.zeros(upper.shape), np.zeros(upper.shape)


class Mute(Auditor):
    name = "mute"
    summary = "gives measures only"
    sees = frozenset({"curator"})

    def audit(self, subject, rng):
        return {"nothing": 0.0}


class Reader(Mute):
    name = "reader"

    @property
    def needs_rules(self):
        return True


@dataclass
class Context:
    asked: RateConstraint | None
    target: Sample
    attack: Sample


def context(sensitive, labels, predictions, k=2, features=None):
    sample = Sample(
        tuple(f"group {code}" for code in range(k)),
        features=features,
        labels=np.array(labels, dtype=np.int8),
        sensitive=np.array(sensitive, dtype=np.int8),
        predictions=np.array(predictions, dtype=np.int8),
    )
    return Context(None, sample, sample)


FEW = context([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1])  # rates 1/2 and 1


@pytest.mark.parametrize(
    ("says", "tolerance", "also"),
    [
        ("estimate", 0.5, ()),
        ("lower", 0.6, ()),
        ("interval", 0.6, (KnownUnfairness("statistical-parity", 0.3, 1.0, "ratio"),)),
    ],
)
def test_a_release_becomes_a_claim_about_the_ratio(says, tolerance, also):
    claim = DPRelease(auditor=Speaker(), says=says).claim(FEW, RNG)
    assert claim == Claim(
        RateConstraint("statistical-parity", tolerance, "ratio"),
        "dp-release",
        also,
        {"claim_estimate": 0.5, "claim_low": 0.4, "claim_high": 0.7, "claim_interval_holds": 1},
        Guarantee(0.25, 0.0, "attribute"),
        "simulation",
        pytest.approx(4 * 0.25 * np.tanh(0.125)),  # four people's groups at epsilon 1/4
    )


unit = st.floats(0, 1)


@given(
    unit, unit, unit, st.sampled_from(METRICS), st.sampled_from(["interval", "lower", "estimate"])
)
def test_ends_are_rounded_outwards_by_less_than_a_thousandth(one, other, estimate, metric, says):
    low, high = sorted((one, other))
    speaker = Speaker(metric=metric, values=(estimate,), low=low, high=high)
    claim = DPRelease(auditor=speaker, says=says).claim(FEW, RNG)
    constraint = claim.constraint
    least = Fraction(estimate if says == "estimate" else low)
    assert (constraint.metric, constraint.form) == (metric, "ratio")
    assert 0 <= least - (1 - constraint.exact_tolerance) < Fraction(1, 1000)
    assert len(claim.also) == (says == "interval" and high < 1)
    for above in claim.also:
        assert (above.metric, above.form, above.high) == (metric, "ratio", 1.0)
        assert 0 <= (1 - Fraction(str(above.low))) - Fraction(high) < Fraction(1, 1000)
    assert constraint.word in DPRelease(auditor=speaker, says=says).words()
    assert all(c.word in DPRelease(auditor=speaker, says=says).words() for c in claim.constraints)


def test_a_row_says_whether_the_truth_lies_in_the_interval():
    for low, high, holds in ((0.4, 0.7, 1), (0.5, 0.5, 1), (0.51, 0.9, 0), (0.0, 0.49, 0)):
        speaker = Speaker(low=low, high=high)
        notes = DPRelease(auditor=speaker).claim(FEW, RNG).notes
        assert notes["claim_interval_holds"] == holds


def test_of_repeated_audits_the_first_is_released():
    claim = DPRelease(auditor=Speaker(values=(0.25, 0.5)), says="estimate").claim(FEW, RNG)
    assert claim.constraint.tolerance == 0.75


def test_the_auditor_sees_a_curator_and_never_the_groups():
    Speaker.heard.clear()
    DPRelease(auditor=Speaker()).claim(FEW, RNG)
    (subject,) = Speaker.heard
    assert subject.test.seen == subject.train.seen == {"predictions"}
    assert subject.model is None
    assert (subject.curator.people, subject.curator.groups) == (4, FEW.target.groups)


def test_the_claim_is_what_the_curator_counted():
    rng = np.random.default_rng(3)
    sensitive = rng.integers(0, 2, 5_000)
    people = context(sensitive, sensitive, rng.random(5_000) < 0.3 + 0.2 * sensitive)
    truth = RateConstraint(form="ratio").unfairness(
        people.target.sensitive, people.target.predictions, None, 2
    )

    def released(epsilon, seed):
        auditor = Counting(epsilon=epsilon, mechanism=component("mechanism", "laplace"))
        claim = DPRelease(auditor=auditor, says="estimate").claim(
            people, np.random.default_rng(seed)
        )
        assert claim.guarantee.epsilon == epsilon
        return claim.notes["claim_estimate"]

    assert released(1e9, 0) == pytest.approx(float(1 - truth), abs=1e-6)
    assert released(0.1, 1) == released(0.1, 1)  # of the generator it is handed only
    errors = [
        np.mean([abs(released(epsilon, seed) - float(1 - truth)) for seed in range(40)])
        for epsilon in (1.0, 0.1, 0.01)
    ]
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize(
    ("auditor", "says"),
    [
        (
            component("auditor", "group-fairness"),
            "auditor 'group-fairness' queries no curator, so its result is not",
        ),
        (Reader(), "auditor 'reader' reads the rules of the model, but readers of a ratio"),
        ({"use": "speaker"}, "auditor"),
        (None, "auditor"),
    ],
)
def test_auditors_that_release_nothing_of_predictions_are_refused(auditor, says):
    with pytest.raises(ValidationError, match=says):
        DPRelease(auditor=auditor)


def test_measures_are_no_release():
    with pytest.raises(InputError, match="'dp-release': auditor 'mute' gives no release"):
        DPRelease(auditor=Mute()).claim(FEW, RNG)


def test_without_an_interval_an_estimate_can_be_claimed_and_nothing_else():
    nan = float("nan")
    speaker = Speaker(low=nan, high=nan)
    claim = DPRelease(auditor=speaker, says="estimate").claim(FEW, RNG)
    assert claim.constraint.tolerance == 0.5
    assert claim.notes["claim_low"] is claim.notes["claim_interval_holds"] is None
    for says in ("interval", "lower"):
        with pytest.raises(InputError, match="auditor 'speaker' gives no interval; let it compute"):
            DPRelease(auditor=speaker, says=says).claim(FEW, RNG)


@pytest.mark.parametrize(
    "wrong", [{"values": (1.2,)}, {"values": (float("nan"),)}, {"low": -0.1}, {"low": 0.8}]
)
def test_what_is_no_ratio_is_the_fault_of_the_auditor(wrong):
    with pytest.raises(PluginError, match="auditor 'speaker' released .* which are not ratios"):
        DPRelease(auditor=Speaker(**wrong)).claim(FEW, RNG)


def test_correctors_say_when_planning_whether_they_can_use_it():
    for says in ("interval", "lower", "estimate"):
        disclosure = DPRelease(auditor=Speaker(), says=says)
        assert disclosure.forms() == ("ratio",)
        assert component("corrector", "exact").incompatible(disclosure) is None
        assert disclosure.incompatible(component("learner", "plain")) is None
    classic = {"use": "gaussian", "calibration": "classic"}
    auditor = component("auditor", "pafer", epsilon=2.0, mechanism=classic)
    assert "proven for epsilon below 1 only" in DPRelease(auditor=auditor).incompatible(
        component("learner", "plain")
    )
    assert component("corrector", "posterior").incompatible(DPRelease(auditor=Speaker())) is None


@pytest.mark.parametrize(
    ("says", "low", "high"), [("interval", 0.6, 0.7), ("lower", 0.8, 0.9), ("estimate", 0.8, 0.9)]
)
def test_a_corrected_guess_satisfies_the_claim(says, low, high):
    rng = np.random.default_rng(4)
    guess = rng.integers(0, 2, 60)
    said = rng.random(60) < 0.4 + 0.1 * guess
    speaker = Speaker(values=(0.85,), low=low, high=high)
    claim = DPRelease(auditor=speaker, says=says).claim(context(guess, guess, said), RNG)
    problem = fpbench.Problem(guess, 2, said.astype(int), guess, claim.constraints)
    found = component("corrector", "exact").solve(problem)
    assert found.values is not None
    rates = [
        Fraction(int(said[found.values == g].sum()), int((found.values == g).sum())) for g in (0, 1)
    ]
    unfairness = 1 - min(rates) / max(rates)
    assert unfairness <= claim.constraint.exact_tolerance
    if says == "interval":
        assert unfairness >= Fraction(str(claim.also[0].low))


def test_refused_at_plan_time_with_the_place_in_the_file(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [{"use": "plain"}],
        "disclosure": [{"use": "dp-release", "auditor": {"use": "group-fairness"}}],
        "adversary": [{"use": "prior"}],
        "corrector": [{"use": "exact"}],
    }
    with pytest.raises(MatrixError, match="dp-release.*queries no curator"):
        fpbench.run(matrix, out=tmp_path / "run")


@pytest.mark.slow
def test_a_run_says_what_was_released_and_whether_it_is_true(tmp_path):
    pafer = {"use": "pafer", "mechanism": {"use": "laplace"}, "resamples": 50}
    matrix = {
        "seeds": 3,
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [{"use": "plain"}],
        "disclosure": [
            {"use": "dp-release", "label": f"{says} {epsilon}", "says": says,
             "auditor": {**pafer, "epsilon": epsilon}}
            for says in ("interval", "lower", "estimate") for epsilon in (0.05, 1e6)
        ],
        "adversary": [{"use": "prior"}],
        "corrector": [{"use": "exact", "on_infeasible": "relax"}],
    }  # fmt: skip
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
    assert set(frame["claim_form"]) == {"ratio"}
    assert (frame["claim_low"] <= frame["claim_estimate"]).all()
    assert (frame["claim_estimate"] <= frame["claim_high"]).all()
    assert set(frame["claim_delta"]) == {0.0}
    sure = frame[frame["disclosure"] == "lower 1000000.0"]
    assert (sure["claim_epsilon"] == 1e6).all()
    assert (sure["claim_holds"] == 1).all()
    assert (sure["claim_interval_holds"] == 1).all()
    assert (1 - sure["claim_estimate"] - sure["train_unfairness"]).abs().max() < 1e-3


def crowd(n=300, k=3):
    """People in two columns that tell of groups, few in many cells."""
    rng = np.random.default_rng(5)
    sensitive = rng.integers(0, k, n)
    columns = {"town": (sensitive + rng.integers(0, 2, n)) % k, "age": rng.integers(0, 60, n)}
    said = rng.random(n) < 0.4
    return context(sensitive, said, said, k, pd.DataFrame(columns))


def told(auditor, people, seed=0):
    return DPRelease(auditor=auditor, says="counts").claim(people, np.random.default_rng(seed))


@pytest.mark.slow
def test_counts_without_noise_prove_what_a_report_of_them_proves():
    people = crowd()
    (facts,) = told(Slicing(mechanism=NoNoise()), people).also
    target = people.target
    report = fpbench.FairnessReport.from_predictions(
        target.features.astype(str), target.predictions, target.sensitive.astype(str), min_cell=0,
        by=["town", "age"], metrics=("selected", "rejected"),
    )  # fmt: skip
    published = report.facts(target.features.astype(str), target.predictions)
    proven = propagate(facts)
    assert not facts.noisy.any()
    assert (proven == propagate(published)).all()
    assert 0 < (proven.sum(axis=1) == 1).sum() < len(target)
    assert (prove(facts, proven, seconds=600) == prove(published, seconds=600)).all()


def test_counts_with_noise_prove_nothing_and_have_the_law_of_the_mechanism():
    people, laplace = crowd(), component("mechanism", "discrete-laplace")
    claim = told(Slicing(mechanism=laplace, epsilon=0.5), people)
    (facts,) = claim.also
    assert claim.constraint is None
    assert facts.noisy.all()
    assert (propagate(facts).sum(axis=1) == facts.groups).all()
    # Of questions that were repeated the first answer counts, as of releases.
    cells = sum(2 * (column.max() + 1) for _, column in people.target.features.items())
    assert len(facts) <= 2 + cells
    sizes = facts.sizes
    sigma, scale = laplace.find_noise_law(COUNT_SENSITIVITY["attribute"], 0.5, sizes)
    assert (facts.sigma == sigma).all()
    assert (facts.scale == scale).all()
    off = facts.low - facts.count(np.eye(3)[people.target.sensitive])
    assert np.abs(off).mean() == pytest.approx(scale[0], rel=0.3)
    assert claim.nats <= limit_private_nats(claim.guarantee, len(people.target))
    more = told(Slicing(mechanism=laplace, epsilon=50.0), people).also[0]
    prior = np.full((len(people.target), 3), 1 / 3)
    right = [
        condition_beliefs(known, prior).beliefs[np.arange(len(prior)), people.target.sensitive]
        for known in (facts, more)
    ]
    assert 1 / 3 < right[0].mean() < right[1].mean()


@pytest.mark.parametrize("mode", [{"mode": "reference"}, {"per_rule": True}])
def test_the_counts_of_a_models_rules_are_read_by_the_posterior(mode, tmp_path):
    laplace = {"use": "discrete-laplace"}
    pafer = {"use": "pafer", "epsilon": 1.0, "mechanism": laplace, "resamples": 0, **mode}
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [{"use": "decision-tree"}, {"use": "plain", "base": "logistic-regression"}],
        "disclosure": [{"use": "dp-release", "says": "counts", "auditor": pafer}],
        "adversary": [{"use": "prior"}],
        "corrector": [{"use": "posterior"}],
    }
    rows = fpbench.run(matrix, out=tmp_path / "run").frame().set_index("learner")
    assert rows.loc["plain", "status"] == "skipped"
    assert "reads rules" in rows.loc["plain", "reason"]
    row = rows.loc["decision-tree"]
    assert (row["status"], row["people_proven"], row["claim_epsilon"]) == ("done", 0, 1.0)
    assert row["facts"] > 0


@pytest.mark.parametrize("mode", [{"mode": "reference"}, {"per_rule": True}])
def test_modes_that_read_rules_are_refused_at_plan_time(mode, tmp_path):
    pafer = {"use": "pafer", "epsilon": 1.0, "mechanism": {"use": "laplace"}, **mode}
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [{"use": "decision-tree"}],
        "disclosure": [{"use": "dp-release", "auditor": pafer}],
        "adversary": [{"use": "prior"}],
        "corrector": [{"use": "exact"}],
    }
    with pytest.raises(MatrixError, match="auditor 'pafer' reads the rules of the model") as found:
        fpbench.run(matrix, out=tmp_path / "run")
    assert str(found.value).endswith('mode that needs no rules, or says = "counts"')
