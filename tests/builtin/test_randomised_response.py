"""Randomised response: its channel by enumeration, its estimates, and the limit that it reaches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import fpbench
from fpbench import InputError
from fpbench.builtin.mechanisms.randomised_response import RandomisedResponse
from fpbench.privacy import COUNT_SENSITIVITY, Sensitivity, limit_private_leak

ATTRIBUTE = COUNT_SENSITIVITY["attribute"]
RESPONSE = RandomisedResponse()


def find_channel(k, epsilon, sensitivity=ATTRIBUTE, draws=200_000):
    """(k, k) shares of the reports of people of each group: one person a histogram."""
    rng = np.random.default_rng(0)
    keep = (np.exp(epsilon * 2 / sensitivity.l1) - 1) / (
        np.exp(epsilon * 2 / sensitivity.l1) + k - 1
    )
    rows = []
    for group in range(k):
        people = np.broadcast_to(np.eye(k, dtype=np.int64)[group], (draws, k))
        answers = RESPONSE.release(people, sensitivity, epsilon, rng)
        reports = answers * keep + (1 - keep) / k
        np.testing.assert_allclose(np.sort(reports, axis=1)[:, :-1], 0, atol=1e-9)
        rows.append(reports.mean(axis=0))
    return np.array(rows)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (2, 3.0), (3, 1.0), (5, 2.0)])
def test_one_persons_report_is_as_likely_as_epsilon_allows(k, epsilon):
    channel = find_channel(k, epsilon)
    told = np.exp(epsilon) * np.eye(k) + 1 - np.eye(k)
    np.testing.assert_allclose(channel, told / told.sum(axis=1), atol=0.006)
    assert channel.max() / channel.min() == pytest.approx(np.exp(epsilon), rel=0.08)


def test_a_person_in_two_histograms_reports_with_half_of_epsilon_in_each():
    halved = find_channel(3, 2.0, Sensitivity(4.0, 2.0))
    np.testing.assert_allclose(halved, find_channel(3, 1.0), atol=0.006)


@given(st.integers(2, 6), st.floats(0.05, 6))
def test_it_reaches_the_limit_of_what_a_private_release_can_tell(k, epsilon):
    truth = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    guarantee = RESPONSE.guarantee(epsilon, "attribute")
    assert limit_private_leak(np.full((1, k), 1 / k), guarantee) == pytest.approx(truth - 1 / k)


@pytest.mark.parametrize("counts", [[30, 0], [7, 13, 40], [0, 0, 5, 1]])
def test_estimates_are_unbiased_and_sum_to_the_people(counts, rng):
    answers = RESPONSE.release(np.tile(counts, (40_000, 1)), ATTRIBUTE, 0.8, rng)
    np.testing.assert_allclose(answers.sum(axis=1), sum(counts))
    error = answers.std(axis=0) / 200
    assert (abs(answers.mean(axis=0) - counts) <= 4.5 * error).all()
    # Independent people: each group's reports are binomials of its own people and of the others'.
    k, e = len(counts), np.exp(0.8)
    p, q = e / (e + k - 1), 1 / (e + k - 1)
    own = np.array(counts)
    variance = (own * p * (1 - p) + (sum(counts) - own) * q * (1 - q)) / (p - q) ** 2
    np.testing.assert_allclose(answers.var(axis=0), variance, rtol=0.05)


def test_it_is_only_simulated():
    with pytest.raises(ValidationError, match="draws real numbers"):
        RandomisedResponse(noise="secure")


def test_each_row_has_its_own_epsilon(rng):
    answers = RESPONSE.release(np.array([500, 500]), ATTRIBUTE, np.array([[60.0], [0.1]]), rng)
    np.testing.assert_allclose(answers[0], 500, atol=1e-6)
    assert abs(answers[1, 0] - 500) > 1


@pytest.mark.parametrize(("change", "says"), [
    ({"counts": np.array([3])}, "of all K groups, two or more"),
    ({"epsilon": np.array([1.0, 2.0])}, "one epsilon for all of them"),
    ({"counts": np.array([3, -1])}, "a count is negative"),
    ({"counts": np.array([3.0, 1.0])}, "counts must be whole numbers"),
    ({"sensitivity": COUNT_SENSITIVITY["add-remove"]}, 'use neighbours = "attribute"'),
])  # fmt: skip
def test_what_is_refused(change, says, rng):
    given = {"counts": np.array([3, 4]), "sensitivity": ATTRIBUTE, "epsilon": 1.0, "rng": rng}
    with pytest.raises(InputError, match=says):
        RESPONSE.release(**{**given, **change})
    with pytest.raises(InputError, match="hides people's groups, not who takes part"):
        RESPONSE.guarantee(1.0, "add-remove")
    with pytest.raises(InputError, match="no facts of known noise"):
        RESPONSE.find_noise_law(ATTRIBUTE, 1.0, np.array([5]))


def test_an_audit_of_randomised_groups_is_nearly_right(rng):
    n = 40_000
    groups = rng.integers(0, 2, n)
    predictions = (rng.random(n) < np.where(groups == 1, 0.4, 0.3)).astype(int)
    audit = fpbench.audit(
        predictions,
        None,
        groups,
        epsilon=1.0,
        mechanism="randomised-response",
        repetitions=200,
        rng=0,
    )
    truth = min(rates := [predictions[groups == g].mean() for g in (0, 1)]) / max(rates)
    assert audit.values.mean() == pytest.approx(truth, abs=0.01)
    inside = (audit.low <= truth) & (truth <= audit.high)
    assert inside.mean() > 0.9
