"""Transition probabilities of cell keys: their laws, and published ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fpbench.claims.cell_keys import find_transitions

pytestmark = pytest.mark.numeric


@given(st.integers(1, 10), st.floats(1e-9, 120))
def test_noise_has_mean_0_its_bound_and_at_most_its_variance(bound, variance):
    table = find_transitions(bound, variance)
    noise = np.arange(-bound, bound + 1)
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(table @ noise, 0, atol=1e-9)
    assert (table @ noise**2 <= variance * (1 + 1e-6)).all()
    assert table[0, bound] == 1
    negative = np.arange(bound + 1)[:, None] + noise < 0
    assert (table[negative] == 0).all()
    assert (table[1:][~negative[1:]] > 0).all() or variance < 1e-3  # or too improbable for floats


@pytest.mark.parametrize(("bound", "variance"), [(2, 1.0), (3, 0.7), (3, 2.0)])
def test_no_other_law_has_more_entropy(bound, variance):
    table = find_transitions(bound, variance)
    for number in range(1, bound + 1):
        noise = np.arange(-min(number, bound), bound + 1.0)
        law = table[number][-len(noise) :]
        found = minimize(
            lambda p: (p * np.log(np.maximum(p, 1e-300))).sum(), np.full(len(noise), 1 / len(noise)),
            bounds=[(0, 1)] * len(noise), method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "eq", "fun": lambda p, noise=noise: p @ noise},
                {"type": "ineq", "fun": lambda p, noise=noise: variance - p @ noise**2},
            ],
        )  # fmt: skip
        assert (law * np.log(law)).sum() <= found.fun + 1e-9
        np.testing.assert_allclose(law, found.x, atol=1e-4)


def test_the_table_of_the_r_package():
    """ptable: create_cnt_ptable(D = 2, V = 1), for numbers of 2 or more."""
    wanted = [0.0638, 0.2447, 0.3830, 0.2447, 0.0638]
    np.testing.assert_allclose(find_transitions(2, 1.0)[2], wanted, atol=6e-5)
