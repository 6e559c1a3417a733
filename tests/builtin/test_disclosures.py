from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fpbench import FORMS, METRICS, InputError, RateConstraint, Sample
from fpbench.builtin.disclosures.hidden import Hidden
from fpbench.builtin.disclosures.published import Published
from fpbench.builtin.learners.exponentiated_gradient import ExponentiatedGradient
from fpbench.builtin.learners.plain import Plain

RNG = np.random.default_rng(0)


@dataclass
class Context:
    asked: RateConstraint | None
    train: Sample
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
    asked, train = given_context.asked, given_context.train
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
    people = (train.sensitive, train.predictions, train.labels, len(train.groups))
    assert constraint.holds(*people)
    claimed = constraint.exact_tolerance
    assert (claimed * 1000).denominator == 1
    least = constraint.unfairness(*people)
    if asked is not None and (asked.metric, asked.form) == (constraint.metric, form):
        least = max(least, asked.exact_tolerance)
    assert least <= claimed < least + Fraction(1, 1000)


def test_the_asked_tolerance_is_published_where_it_is_kept():
    fair = context(RateConstraint("statistical-parity", 0.05), [0, 0, 1, 1], [0] * 4, [0, 1, 0, 1])
    assert Published().claim(fair, RNG).constraint == RateConstraint("statistical-parity", 0.05)


def test_the_unfairness_is_published_where_it_is_not():
    # Rates 1/3 and 1/2, overall 2/5: the farther is 1/10 away.
    missed = context(RateConstraint(tolerance=0.05), [0, 0, 0, 1, 1], [0] * 5, [1, 0, 0, 1, 0])
    assert Published().claim(missed, RNG).constraint.tolerance == 0.1


def test_the_asked_tolerance_says_nothing_of_another_metric_or_form():
    fair = context(RateConstraint("statistical-parity", 0.05), [0, 0, 1, 1], [0, 0, 0, 0], [0] * 4)
    other = Published(metric="predictive-equality").claim(fair, RNG).constraint
    assert other == RateConstraint("predictive-equality", 0.0)
    other = Published(form="ratio").claim(fair, RNG).constraint
    assert other == RateConstraint("statistical-parity", 0.0, "ratio")


def test_a_learner_without_a_metric_is_refused_when_planning():
    reason = Published().incompatible(Plain())
    assert reason == (
        "learner 'plain' is trained for no fairness metric, so disclosure 'published' must say "
        'which one it publishes: add `metric = "statistical-parity"` (or another) to it'
    )
    assert Published(metric="equalized-odds").incompatible(Plain()) is None
    assert Published().incompatible(ExponentiatedGradient()) is None
    assert Published().incompatible(Hidden()) is None


def test_nothing_is_disclosed():
    assert not Hidden.makes_claim
    fair = context(RateConstraint(), [0, 1], [0, 0], [0, 0])
    assert Hidden().claim(fair, RNG) is None
    assert Hidden().incompatible(Plain()) is None


@pytest.mark.parametrize("wrong", [{"metric": "parity"}, {"form": "overall"}, {"tolerance": 0.1}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError):
        Published(**wrong)
