"""How far noisy labels lie from clean ones: closed forms against many draws, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import InputError
from fpbench.builtin.pate.excessive_risk.closed_form import compute_label_moments
from fpbench.builtin.pate.noisy_votes import vote_labels

KINDS = ("hard", "soft", "soft-clipped")


def votes_of(ones, k=20):
    ones = np.asarray(ones)
    return np.column_stack([k - ones, ones])


@pytest.mark.slow
@pytest.mark.parametrize("labels", KINDS)
@pytest.mark.parametrize("sigma", [0.5, 6.0, 80.0])
def test_moments_are_those_of_many_draws(labels, sigma):
    votes, draws = votes_of([0, 3, 9, 10, 11, 16, 20]), 200_000
    noise = np.random.default_rng(0).normal(0, sigma, (draws, len(votes), 2))
    found = compute_label_moments(votes, sigma, labels)
    deltas = vote_labels(votes + noise, labels, 20) - vote_labels(votes * 1.0, labels, 20)
    np.testing.assert_array_equal(found.clean, vote_labels(votes * 1.0, labels, 20))
    for closed, values in (
        (found.mean, deltas),
        (found.distance, abs(deltas)),
        (found.square, deltas**2),
        (found.variance, (deltas - deltas.mean(axis=0)) ** 2),
    ):
        error = values.std(axis=0) / np.sqrt(draws)
        assert (abs(closed - values.mean(axis=0)) <= 4.5 * error + 1e-9).all()


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
    st.just(0.0) | st.floats(1e-3, 1e4),
    st.sampled_from(KINDS),
)
def test_moments_of_any_votes_are_moments(ones, sigma, labels):
    found = compute_label_moments(votes_of(ones, 30), sigma, labels)
    assert (found.variance >= 0).all()
    assert (found.distance >= abs(found.mean) - 1e-12).all()
    assert (found.square >= found.distance**2 - 1e-9 * (1 + found.distance**2)).all()
    if labels != "soft":
        assert (found.distance <= 1 + 1e-12).all()
    if sigma == 0:
        assert not found.distance.any()


def test_clipping_of_noise_that_never_leaves_the_range_changes_nothing():
    votes = votes_of([8, 10, 12])
    soft, clipped = (compute_label_moments(votes, 0.5, kind) for kind in ("soft", "soft-clipped"))
    for name in ("clean", "mean", "variance", "distance"):
        np.testing.assert_allclose(getattr(soft, name), getattr(clipped, name), atol=1e-12)


def test_hardly_any_noise_is_as_good_as_none():
    votes = votes_of([0, 3, 10, 20])
    for labels in ("hard", "soft", "soft-clipped"):
        found = compute_label_moments(votes[:2], 1e-200, labels)
        assert found.distance.max() < 1e-100


def test_what_is_refused():
    with pytest.raises(InputError, match="did you mean 'soft'"):
        compute_label_moments(votes_of([1]), 1.0, "sofft")
    with pytest.raises(InputError, match="sigma must be at least 0"):
        compute_label_moments(votes_of([1]), -1.0, "hard")
