import numpy as np
import pytest
from scipy import stats

from fpbench.builtin.mechanisms.laplace import Laplace

COUNTS = np.array([[3, 0, 12], [7, 1, 5]])


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1.0, 1.0), (2.0, 0.1), (0.5, 3.0)])
def test_the_noise_is_laplace_of_scale_sensitivity_over_epsilon(sensitivity, epsilon, rng):
    counts = np.resize(COUNTS, 20_000)
    noise = Laplace().release(counts, sensitivity, epsilon, rng) - counts
    assert stats.kstest(noise, stats.laplace(scale=sensitivity / epsilon).cdf).pvalue > 0.01
    # Of each count its own.
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.05


def test_answers_keep_their_shape_and_are_not_modified(rng):
    before = COUNTS.copy()
    noisy = Laplace().release(COUNTS, 1.0, 1e12, rng)
    assert noisy.shape == COUNTS.shape
    assert noisy.dtype == np.float64
    np.testing.assert_allclose(noisy, COUNTS, atol=1e-9)
    np.testing.assert_array_equal(COUNTS, before)
    assert Laplace().release(np.array(5), 1.0, 1.0, rng).shape == ()


def test_randomness_is_that_of_the_generator_it_is_handed():
    first, second, third = (
        Laplace().release(COUNTS, 2.0, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != third).all()


def test_neighbours_are_as_likely_as_they_should_be(rng):
    """Densities of an output under answers that differ by the sensitivity, seen as frequencies."""
    epsilon = 0.7
    one, other = (
        Laplace().release(np.full(200_000, count), 1.0, epsilon, rng) for count in (10, 11)
    )
    edges = np.arange(5, 17)
    ratio = np.histogram(one, edges)[0] / np.histogram(other, edges)[0]
    assert (ratio <= np.exp(epsilon) * 1.05).all()
    assert (ratio >= np.exp(-epsilon) / 1.05).all()
    assert ratio.max() > np.exp(epsilon) / 1.05  # and no less private noise than that
