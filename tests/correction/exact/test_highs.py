from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import fpbench
from fpbench import FpbenchError
from fpbench.claims import KnownUnfairness
from fpbench.correction.exact.highs import HighsModel


def knapsack(values, sizes, room):
    """The most valuable things that fit, as a program."""
    model = HighsModel()
    chosen = model.columns(np.zeros(len(values)), 1.0, -np.asarray(values, float), whole=True)
    model.row(chosen, sizes, -np.inf, room)
    return model


def test_a_linear_program_is_solved_and_priced():
    model = HighsModel()
    x, y = model.columns([0.0, 0.0], [4.0, np.inf], [1.0, 3.0])
    model.row([x, y], [1.0, 1.0], 10.0, np.inf)
    found = model.solve()
    np.testing.assert_allclose(found.values, [4.0, 6.0])
    assert found.bound == pytest.approx(22.0)
    assert found.proven
    # One more on the right side is one more of the dearer.
    np.testing.assert_allclose(found.prices, [3.0])


def test_prices_say_how_the_cost_rises():
    def solved(right):
        model = HighsModel()
        index = model.columns(np.zeros(4), [2.0, 3.0, 1.0, 9.0], [1.0, 2.0, 5.0, 9.0])
        model.row(index, np.ones(4), right, right)
        model.row(index[:2], [1.0, -1.0], -np.inf, 1.0)
        return model.solve()

    for right in (0.5, 2.5, 4.5, 5.5, 8.0):
        rise = (solved(right + 0.1).bound - solved(right).bound) / 0.1
        assert solved(right).prices[0] == pytest.approx(rise)


def test_whole_numbers_against_every_choice():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, sizes = rng.uniform(0, 10, 7), rng.uniform(0, 10, 7)
        room = float(sizes.sum() * rng.random())
        best = max(np.dot(values, c) for c in product((0, 1), repeat=7) if np.dot(sizes, c) <= room)
        found = knapsack(values, sizes, room).solve()
        assert found.proven
        assert found.prices is None
        assert found.bound == pytest.approx(-best)
        assert np.dot(values, found.values) == pytest.approx(best)
        np.testing.assert_allclose(found.values, np.rint(found.values), atol=1e-6)


def test_columns_have_numbers_in_the_shape_of_their_bounds():
    model = HighsModel()
    first = model.columns(np.zeros((2, 3)), np.ones((2, 1)))
    second = model.columns(np.zeros(2), 5.0, [1.0, 2.0])
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert second.tolist() == [6, 7]
    model.row(first[1], np.ones(3), 3.0, 3.0)
    found = model.solve()
    np.testing.assert_allclose(found.values[first[1]], 1.0)
    np.testing.assert_allclose(found.values[second], 0.0)


@pytest.mark.parametrize("whole", [False, True])
def test_no_solution_is_no_answer(whole):
    model = HighsModel()
    index = model.columns(np.zeros(2), [1.0, 1.0], whole=whole)
    model.row(index, [1.0, 1.0], 3.0, np.inf)
    assert model.solve() is None


def test_a_solution_only_between_whole_numbers_is_no_whole_solution():
    for whole, nothing in ((False, False), (True, True)):
        model = HighsModel()
        index = model.columns(np.zeros(2), [9.0, 9.0], whole=whole)
        model.row(index, [2.0, -2.0], 1.0, 1.0)
        assert (model.solve() is None) == nothing


@pytest.mark.parametrize("limit", [0.0, -1.0])
def test_without_time_nothing_is_proven_and_the_bound_is_true(limit):
    rng = np.random.default_rng(1)
    values, sizes = rng.uniform(5, 6, 60), rng.uniform(5, 6, 60)
    best = knapsack(values, sizes, 100.0).solve().bound
    found = knapsack(values, sizes, 100.0).solve(limit)
    assert not found.proven
    assert found.bound <= best + 1e-9
    assert found.values is None or -np.dot(values, found.values) >= best - 1e-9


def test_what_highs_cannot_solve_is_an_error_of_ours():
    model = HighsModel()
    index = model.columns([-np.inf], [np.inf], [1.0])
    model.row(index, [1.0], -np.inf, 1.0)
    with pytest.raises(FpbenchError, match="HiGHS gave up: Unbounded"):
        model.solve()


def test_costs_far_apart_do_not_upset_it():
    """On this program the dual simplex method gives up (HiGHS 1.15)."""
    model = HighsModel()
    count = model.columns(np.zeros((2, 4)), np.ones((2, 1)))
    for j in range(2):
        model.row(count[j], np.ones(4), 1.0, 1.0)
    for cell, cost in (((0, 1), 1e7), ((1, 0), 1.0)):
        (leave,) = model.columns(np.zeros(1), [1.0], [cost])
        (enter,) = model.columns(np.zeros(1), [1.0])
        model.row([leave, enter, count[cell]], [1.0, -1.0, 1.0], 1.0, 1.0)
    for k in range(4):
        model.row(count[:, k], [1 / 19, -1.0], -np.inf, 0.0)
    model.row(count[:, 0], [-1.0, -1.0], -np.inf, -1.0)
    assert model.solve().proven


def test_a_program_on_which_presolve_fails_is_solved_without():
    """HiGHS 1.16 gives up one of the programs by which this problem has no solution."""
    known = (("statistical-parity", 0.3, 0.3), ("equalized-odds", 0.0, 0.3))
    result = fpbench.correct(
        [0, 0, 1, 2, 2, 0, 0, 0, 3, 1, 3, 2, 3],
        [1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1],
        labels=[1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1],
        weights=[0.96390772, 1.0943527, 0.37512271, 0.76105867, 0.78176118, 0.10694029, 0.96607939,
                 0.85321796, 0.80156659, 0.62102202, 0.33231587, 0.80526839, 0.63024835],
        tolerance=0.5, groups=4, constraints=[KnownUnfairness(*one) for one in known],
    )  # fmt: skip
    assert result.status == "infeasible"


def test_nothing_is_printed():
    """HiGHS 1.16 prints a banner when it is made, before it can be told to be silent."""
    script = (
        "from fpbench.correction.exact.highs import HighsModel\n"
        "print('before')\nmodel = HighsModel()\nmodel.columns(0, 1, -1.0)\n"
        "model.row([0], [1.0], 0.0, 1.0)\n"
        "print(model.solve().values)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"before\n[1.]\n"
    assert done.stderr == b""
