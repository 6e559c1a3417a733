import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import InputError, Mechanism, Sample
from fpbench.builtin.disclosures.claims import Estimated, Hidden, Noisy
from fpbench.builtin.ferry.published import Published
from fpbench.builtin.learners.exponentiated_gradient import ExponentiatedGradient
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.mechanisms.laplace import Laplace
from fpbench.claims import METRICS, RateConstraint, limit_claim_nats
from fpbench.claims.rates import FORMS
from fpbench.privacy import COUNT_SENSITIVITY

RNG = np.random.default_rng(0)


@dataclass
class Context:
    asked: RateConstraint | None
    target: Sample
    attack: Sample


def context(asked, sensitive, labels, predictions, k=2):
    names = tuple(f"group {code}" for code in range(k))
    sample = Sample(
        names,
        labels=np.array(labels, dtype=np.int8),
        sensitive=np.array(sensitive, dtype=np.int8),
        predictions=np.array(predictions, dtype=np.int8),
    )
    return Context(asked, sample, sample)


@st.composite
def contexts(draw):
    k = draw(st.integers(2, 4))
    person = st.tuples(st.integers(0, k - 1), st.integers(0, 1), st.integers(0, 1))
    columns = zip(*draw(st.lists(person, min_size=1, max_size=60)), strict=True)
    asked = draw(
        st.none()
        | st.builds(
            RateConstraint,
            metric=st.sampled_from(METRICS),
            tolerance=st.floats(0, 1) | st.integers(0, 1000).map(lambda steps: steps / 1000),
        )
    )
    return context(asked, *columns, k=k)


@given(contexts(), st.none() | st.sampled_from(METRICS), st.sampled_from(FORMS))
def test_a_claim_is_true_and_as_tight_as_the_grid_allows(given_context, metric, form):
    asked, people = given_context.asked, given_context.target
    disclosure = Published(metric=metric, form=form)
    if metric is None and asked is None:
        with pytest.raises(InputError, match="`metric` does not say"):
            disclosure.claim(given_context, RNG)
        return
    claim = disclosure.claim(given_context, RNG)
    constraint = claim.constraint
    assert claim.source == "published"
    assert constraint.metric == (metric or asked.metric)
    assert constraint.form == form
    truth = (people.sensitive, people.predictions, people.labels, len(people.groups))
    assert constraint.holds(*truth)
    claimed = constraint.exact_tolerance
    assert (claimed * 1000).denominator == 1
    least = constraint.unfairness(*truth)
    if asked is not None and (asked.metric, asked.form) == (constraint.metric, form):
        least = max(least, asked.exact_tolerance)
    assert least <= claimed < least + Fraction(1, 1000)


def test_a_learner_without_a_metric_is_refused_when_planning():
    reason = Published().incompatible(Plain())
    assert reason == (
        "learner 'plain' is trained for no fairness metric, so disclosure 'published' must say "
        'which one its claim is about: add `metric = "statistical-parity"` (or another) to it'
    )
    assert Published(metric="equalized-odds").incompatible(Plain()) is None
    assert Published().incompatible(ExponentiatedGradient()) is None
    assert Published().incompatible(Hidden()) is None


def test_nothing_is_disclosed():
    assert Hidden().forms() == ()
    assert Hidden().words() == []
    assert Hidden(also=[SHARE]).words() == ["share"]
    fair = context(RateConstraint(), [0, 1], [0, 0], [0, 0])
    assert Hidden().claim(fair, RNG) is None
    assert Hidden().incompatible(Plain()) is None


SHARE = {"use": "share", "group": "group 0"}


@pytest.mark.parametrize("form", FORMS)
def test_the_words_of_a_claim_are_its_form_and_facts(form):
    noise = {"mechanism": Laplace(), "epsilon": 1.0}
    for disclosure in (
        Published(form=form, also=[SHARE]),
        Estimated(form=form, also=[SHARE]),
        Noisy(form=form, also=[SHARE], **noise),
    ):
        assert disclosure.words() == [form, "share"]


def rounded_up(least):
    """The least multiple of 1/1000 that is not below."""
    return Fraction(math.ceil(1000 * least), 1000)


def measured(sample, metric, form):
    """Unfairness of a sample in a metric, from its definition."""
    found = []
    for label in oracles.SLICES[metric]:
        part = np.ones(len(sample), bool) if label is None else sample.labels == label
        k = len(sample.groups)
        members, positives = (
            np.bincount(sample.sensitive[who], minlength=k)
            for who in (part, part & (sample.predictions == 1))
        )
        found.append(oracles.unfairness(members, positives, form))
    return max(found)


@given(contexts(), contexts(), st.sampled_from(FORMS))
def test_the_least_unfair_metric_of_the_attack_set_is_believed(one, other, form):
    given_context = Context(one.asked, one.target, other.target)
    claim = Estimated(form=form).claim(given_context, RNG)
    attack = given_context.attack
    unfairness = {metric: measured(attack, metric, form) for metric in METRICS}
    constraint = claim.constraint
    assert claim.source == "estimated"
    assert constraint.form == form
    assert constraint.metric == min(METRICS, key=unfairness.get)
    # A maximum of two others is never the smallest, and never the first of equals.
    assert constraint.metric != "equalized-odds"
    assert constraint.exact_tolerance == rounded_up(min(unfairness.values()))
    asked = given_context.asked
    right = None if asked is None else int(asked.metric == constraint.metric)
    assert claim.notes == {"metric_right": right}


@given(contexts(), st.sampled_from(METRICS), st.sampled_from(FORMS))
def test_a_metric_that_is_known_is_only_measured(given_context, metric, form):
    attack = given_context.attack
    told = Estimated(metric=metric, form=form).claim(given_context, RNG).constraint
    assert (told.metric, told.form) == (metric, form)
    assert told.exact_tolerance == rounded_up(measured(attack, metric, form))
    asking = Estimated(metric="asked", form=form)
    asked = given_context.asked
    if asked is None:
        with pytest.raises(InputError, match="'estimated': the learner is trained for no metric"):
            asking.claim(given_context, RNG)
        return
    claim = asking.claim(given_context, RNG)
    assert claim.constraint.metric == asked.metric
    assert claim.constraint.exact_tolerance == rounded_up(measured(attack, asked.metric, form))
    assert claim.notes == {"metric_right": 1}


def test_the_learners_metric_is_known_only_if_it_has_one():
    assert Estimated(metric="asked").incompatible(Plain()) == (
        "learner 'plain' is trained for no fairness metric, so disclosure 'estimated' cannot know "
        'it: leave out `metric = "asked"`'
    )
    for disclosure in (Estimated(), Estimated(metric="equalized-odds")):
        assert disclosure.incompatible(Plain()) is None
    assert Estimated(metric="asked").incompatible(ExponentiatedGradient()) is None


class Recorder(Mechanism):
    """Adds the noise it is told to add, and remembers what it was asked."""

    name = "recorder"
    summary = "remembers"
    error: tuple[float, ...] = ()
    asked: ClassVar[list] = []

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        self.asked.append((counts.copy(), sensitivity, epsilon))
        assert (counts <= upper).all()
        return counts + np.resize(self.error or (0.0,), counts.shape)


@given(contexts(), st.none() | st.sampled_from(METRICS), st.sampled_from(FORMS))
def test_without_noise_the_unfairness_itself_is_published(given_context, metric, form):
    asked, people = given_context.asked, given_context.target
    Recorder.asked.clear()
    disclosure = Noisy(mechanism=Recorder(), epsilon=0.5, metric=metric, form=form)
    if metric is None and asked is None:
        with pytest.raises(InputError, match="`metric` does not say which one the claim is about"):
            disclosure.claim(given_context, RNG)
        return
    claim = disclosure.claim(given_context, RNG)
    metric = metric or asked.metric
    assert claim.source == "noisy"
    assert claim.notes == {}
    assert claim.guarantee == disclosure.mechanism.guarantee(0.5, "attribute")
    assert claim.noise == disclosure.mechanism.noise
    assert (claim.constraint.metric, claim.constraint.form) == (metric, form)
    assert claim.constraint.exact_tolerance == rounded_up(measured(people, metric, form))
    # Nothing but counts is asked for; slices share nobody, so each may use all of epsilon. One
    # person's group changes two counts of one of them by one.
    assert len(Recorder.asked) == len(oracles.SLICES[metric])
    for (answer, sensitivity, epsilon), label in zip(
        Recorder.asked, oracles.SLICES[metric], strict=True
    ):
        part = np.ones(len(people), bool) if label is None else people.labels == label
        cells = [
            np.count_nonzero(part & (people.predictions == said) & (people.sensitive == k))
            for said in (0, 1)
            for k in range(len(people.groups))
        ]
        assert answer.tolist() == cells
        assert (sensitivity, epsilon) == (COUNT_SENSITIVITY["attribute"], 0.5)


def test_one_person_changes_the_counts_by_no_more_than_the_sensitivity():
    rng = np.random.default_rng(1)
    for metric in METRICS:
        for _ in range(20):
            sensitive, labels, said = rng.integers(0, 3, 30), *rng.integers(0, 2, (2, 30))
            other = sensitive.copy()
            other[rng.integers(30)] = rng.integers(3)
            released = []
            for codes in (sensitive, other):
                Recorder.asked.clear()
                disclosure = Noisy(mechanism=Recorder(), epsilon=1.0, metric=metric)
                disclosure.claim(context(None, codes, labels, said, k=3), RNG)
                released.append(np.concatenate([answer for answer, _, _ in Recorder.asked]))
                assert {sensitivity.l1 for _, sensitivity, _ in Recorder.asked} == {2.0}
            assert np.abs(released[0] - released[1]).sum() <= 2
            assert np.linalg.norm(released[0] - released[1]) <= COUNT_SENSITIVITY["attribute"].l2


def test_noisy_counts_that_make_no_sense_are_still_a_claim():
    fair = context(None, [0, 0, 1, 1], [0] * 4, [0, 1, 0, 1])
    for error in ((-1e6,), (1e6, -1e6, 0.4), (0.49,), (-0.51,)):
        noisy = Noisy(mechanism=Recorder(error=error), epsilon=1.0, metric="statistical-parity")
        assert 0 <= noisy.claim(fair, RNG).constraint.tolerance <= 1
    # All counts negative, so 0: nobody is left, and nobody is treated unfairly.
    nobody = Noisy(mechanism=Recorder(error=(-1e6,)), epsilon=1.0, metric="equalized-odds")
    assert nobody.claim(fair, RNG).constraint.tolerance == 0


def people(n=4000):
    rng = np.random.default_rng(3)
    sensitive, labels = rng.integers(0, 2, (2, n))
    said = rng.random(n) < 0.3 + 0.1 * sensitive
    return context(RateConstraint("equal-opportunity", 0.2), sensitive, labels, said)


def test_what_is_asked_for_is_the_default_metric_of_noise():
    fair = people()
    noisy = Noisy(mechanism=Laplace(), epsilon=1e9)
    assert noisy.claim(fair, RNG).constraint.metric == "equal-opportunity"
    assert noisy.incompatible(Plain()) == (
        "learner 'plain' is trained for no fairness metric, so disclosure 'noisy' must say which "
        'one its claim is about: add `metric = "statistical-parity"` (or another) to it'
    )
    told = Noisy(mechanism=Laplace(), epsilon=1.0, metric="equalized-odds")
    assert told.incompatible(Plain()) is None
    assert noisy.incompatible(ExponentiatedGradient()) is None


@pytest.mark.slow
def test_runs_say_whether_estimates_and_noise_were_right(toys, tmp_path):
    laplace = {"use": "laplace"}
    matrix = {
        "seeds": 6,
        "dataset": [{"use": "flock", "rows": 300}],
        "learner": [{"use": "parrot"}],
        "disclosure": [
            {"use": "estimated"},
            {"use": "estimated", "metric": "asked", "label": "asked"},
            {"use": "noisy", "mechanism": laplace, "epsilon": 0.5},
            {"use": "noisy", "mechanism": laplace, "epsilon": 1e9, "label": "loud"},
        ],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "exact", "on_infeasible": "relax"}],
    }
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert set(frame["status"]) == {"done"}
    by = dict(list(frame.groupby("disclosure")))
    asked = "statistical-parity"  # of a parrot
    right = by["estimated"]["claim_metric"] == asked
    assert (by["estimated"]["metric_right"] == right).all()
    assert 0 < right.sum() < 6
    assert (by["asked"]["metric_right"] == 1).all()
    for name in ("asked", "noisy", "loud"):
        assert set(by[name]["claim_metric"]) == {asked}
        true = by[name]["train_unfairness"] <= by[name]["claim_tolerance"]
        assert (by[name]["claim_holds"] == true).all()
    assert (by["loud"]["claim_holds"] == 1).all()
    assert set(by["noisy"]["claim_holds"]) == {0, 1}
    assert (by["noisy"]["claim_epsilon"] == 0.5).all()
    assert by["asked"]["claim_epsilon"].isna().all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("people", [4, 40, 4000])
def test_a_disclosure_says_how_much_it_can_tell(metric, people):
    """No more than its digits, than the counts behind it, and than its privacy allow."""
    rng = np.random.default_rng(people)
    columns = [np.r_[0, 1, rng.integers(0, 2, people - 2)] for _ in range(3)]
    given_context = context(RateConstraint(metric, 0.9), *columns)
    counts = limit_claim_nats(metric, given_context.target)
    digits = {0.0: math.log(1001), 0.9: math.log(101)}  # tolerances from the asked one to 1
    asked = Published(metric=metric).claim(given_context, RNG)
    assert asked.nats == pytest.approx(min(digits[0.9], counts))
    other = Published(metric=metric, form="ratio").claim(given_context, RNG)
    assert other.nats == pytest.approx(min(digits[0.0], counts))
    for epsilon in (0.001, 10.0):
        noisy = Noisy(mechanism=Laplace(), epsilon=epsilon, metric=metric)
        private = people * epsilon * math.tanh(epsilon / 2)
        claim = noisy.claim(given_context, RNG)
        assert claim.nats == pytest.approx(min(digits[0.0], counts, private))
    assert Estimated().claim(given_context, RNG).nats == 0  # of people whom the adversary knows
