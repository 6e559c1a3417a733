"""How far one person moves the score of a split, and private choices."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.builtin.private_tree.recipe import TreeRecipe
from fpbench.builtin.private_tree.split_scores import (
    CRITERIA,
    SELECTIONS,
    choose_splits,
    compute_impurity_sensitivity,
    impurity,
)

each_criterion = pytest.mark.parametrize("criterion", CRITERIA)
mass = st.one_of(st.integers(0, 40).map(float), st.floats(0, 40, allow_subnormal=False))


def of(criterion, *children):
    """Impurity of a split with children (zeros, ones)."""
    return float(
        sum(impurity(criterion, *np.array(child, float)[:, None])[0] for child in children)
    )


@each_criterion
def test_values(criterion):
    want = {"gini": 3 * 5 / 8, "max": 3.0, "entropy": -3 * math.log2(3 / 8) - 5 * math.log2(5 / 8)}
    assert of(criterion, (3, 5)) == pytest.approx(want[criterion])
    assert of(criterion, (0, 7)) == of(criterion, (7, 0)) == of(criterion, (0, 0)) == 0


@each_criterion
@given(a=mass, b=mass, c=mass, d=mass, factor=st.floats(0, 5))
def test_concave_and_homogeneous(criterion, a, b, c, d, factor):
    """What the proof of sensitivity rests on: together people are at least as mixed as apart."""
    both = of(criterion, (a + c, b + d))
    assert of(criterion, (a, b)) + of(criterion, (c, d)) <= both + 1e-9
    assert of(criterion, (factor * a, factor * b)) == pytest.approx(
        factor * of(criterion, (a, b)), abs=1e-9
    )


@each_criterion
@given(
    left=st.tuples(mass, mass), right=st.tuples(mass, mass), w=st.floats(0, 1), one=st.booleans()
)
def test_nobody_moves_a_split_by_more_than_its_sensitivity(criterion, left, right, w, one):
    """A person of either label, shared by both children in any way; and never downwards."""
    before = of(criterion, left, right)
    add = np.array([0.0, 1.0] if one else [1.0, 0.0])
    after = of(criterion, left + w * add, right + (1 - w) * add)
    people = math.ceil(sum(left) + sum(right)) + 1
    assert -1e-9 <= after - before <= compute_impurity_sensitivity(criterion, people) + 1e-9


@each_criterion
def test_sensitivity_by_brute_force(criterion):
    """Of all splits of at most 9 people and one more, the greatest change is the sensitivity."""
    n, greatest, least = 10, 0.0, 0.0
    for a in range(n):
        for b in range(n - a):
            for c in range(n - a - b):
                for d in range(n - a - b - c):
                    change = of(criterion, (a, b + 1), (c, d)) - of(criterion, (a, b), (c, d))
                    greatest, least = max(greatest, change), min(least, change)
    assert least > -1e-12
    assert greatest == pytest.approx(compute_impurity_sensitivity(criterion, n), abs=1e-12)


def test_sensitivities_of_many():
    assert compute_impurity_sensitivity("gini", 1_000_000) == 1 - 1e-6
    assert compute_impurity_sensitivity("max", 2) == 1
    n = 30_162
    # Below the bound of Friedman & Schuster, log2(n + 1) + 1 / ln 2.
    assert compute_impurity_sensitivity("entropy", n) == pytest.approx(
        math.log2(n) + 1 / math.log(2), abs=1e-4
    )
    assert compute_impurity_sensitivity("entropy", n) < math.log2(n + 1) + 1 / math.log(2)
    assert [compute_impurity_sensitivity(c, 1) for c in CRITERIA] == [0, 0, 0]


def test_the_exponential_mechanism_chooses_as_it_should():
    rng, scores = np.random.default_rng(0), np.array([0.0, 1.0, 3.0, 0.5])
    possible = np.array([True, True, True, False])
    chosen = choose_splits(
        np.tile(scores, (200_000, 1)), np.tile(possible, (200_000, 1)), "exponential", 2.0, [rng]
    )
    weights = np.exp(-scores / 2.0) * possible
    np.testing.assert_allclose(
        np.bincount(chosen, minlength=4) / len(chosen), weights / weights.sum(), atol=0.005
    )


def test_noisy_max_chooses_as_it_should():
    """Of two: Laplace noises differ by more than d with probability (1/2 + d/4) exp(-d)."""
    rng, d = np.random.default_rng(0), 1.5
    scores = np.tile([0.0, 2.0 * d], (200_000, 1))
    chosen = choose_splits(scores, np.ones_like(scores, dtype=bool), "noisy-max", 2.0, [rng])
    assert chosen.mean() == pytest.approx((0.5 + d / 4) * math.exp(-d), abs=0.004)


def test_reference_pays_for_the_impurities_of_both_children_of_every_candidate():
    """Of three, of which two are possible: sums of two Laplace noises of twice the scale."""
    rng, n, d = np.random.default_rng(0), 200_000, 3.0
    scores, possible = np.tile([0.0, d, -9.0], (n, 1)), np.tile([True, True, False], (n, 1))
    chosen = choose_splits(scores, possible, "reference", 0.5, [rng])
    noise = np.random.default_rng(1).laplace(scale=1.0, size=(n, 4)) @ [1, 1, -1, -1]
    assert chosen.max() == 1
    assert chosen.mean() == pytest.approx((noise > d).mean(), abs=0.004)
    alone = choose_splits(scores[:, :1], possible[:, :1], "reference", 0.5, [rng])
    assert not alone.any()


@each_criterion
@given(left=st.tuples(mass, mass), right=st.tuples(mass, mass), w=st.floats(0, 1))
def test_nobody_moves_the_children_of_a_split_by_more_together(criterion, left, right, w):
    """What `reference` pays for: both impurities, in L1, a person shared in any way."""
    add = np.array([0.0, 1.0])
    moved = [
        of(criterion, child + share * add) - of(criterion, child)
        for child, share in ((left, w), (right, 1 - w))
    ]
    people = math.ceil(sum(left) + sum(right)) + 1
    assert np.abs(moved).sum() <= compute_impurity_sensitivity(criterion, people) + 1e-9


@pytest.mark.parametrize("selection", SELECTIONS)
def test_without_noise_the_first_of_the_best(selection):
    scores = np.array([[2.0, 1.0, 1.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
    possible = np.array([[True, True, True], [False, True, True], [False, False, False]])
    rng = np.random.default_rng(0)
    assert choose_splits(scores, possible, selection, 0.0, [rng]).tolist() == [1, 2, -1]
    assert choose_splits(scores, possible, selection, 1.0, [rng])[2] == -1


@pytest.mark.parametrize(("given", "says"), [
    ({"epsilon": 0}, "epsilon must be above 0, not 0"),
    ({"epsilon": 1e-320}, "epsilon must be at least 1e-09, not 1e-320"),
    ({"leaf_share": 1e-300}, "leaf_share must be 1e-09 from 0 and 1, not 1e-300"),
    ({"leaf_share": 0}, "leaf_share must be above 0 and below 1, not 0"),
    ({"leaf_share": 1.0}, "leaf_share"),
    ({"max_depth": 0}, "max_depth must be a whole number from 1 to 16, not 0"),
    ({"max_depth": 17}, "max_depth"),
    ({"max_depth": 2.0}, "max_depth"),
    ({"thresholds": 0}, "thresholds must be a whole number"),
    ({"most_people": 1}, "most_people must be a whole number from 2"),
    ({"criterion": "ginni"}, "unknown criterion 'ginni'; did you mean 'gini'"),
    ({"selection": "noisy"}, "unknown selection 'noisy'; did you mean 'noisy-max'"),
    ({"similarity": "gird", "tau": 0.1}, "unknown similarity 'gird'; did you mean 'grid'"),
    ({"similarity": "grid", "tau": 1.0}, "tau must be at least 0 and below 1, not 1.0"),
    ({"similarity": "ball", "tau": -0.1}, "tau must be at least 0"),
    ({"similarity": "grid", "tau": 1e-12}, "tau must be 0 or at least 1e-09"),
    ({"tau": 0.1}, "tau has an effect only with similarity"),
])  # fmt: skip
def test_a_recipe_refuses(given, says):
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        TreeRecipe(**given)


@given(
    epsilon=st.floats(1e-4, 1e6),  # of which no part is below what is accepted
    share=st.floats(0.001, 0.999),
    depth=st.integers(1, 16),
)
def test_the_parts_of_the_budget_never_exceed_it(epsilon, share, depth):
    from fractions import Fraction

    recipe = TreeRecipe(epsilon=epsilon, leaf_share=share, max_depth=depth)
    parts = [recipe.leaf_epsilon] + [recipe.level_epsilon] * depth
    spent = sum(Fraction(repr(part)) for part in parts)
    assert Fraction(repr(epsilon)) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(repr(epsilon))
    assert recipe.guarantee.epsilon == epsilon
    assert (recipe.guarantee.delta, recipe.guarantee.neighbours) == (0.0, "add-remove")


def test_infinite_epsilon_guarantees_nothing():
    recipe = TreeRecipe(epsilon=math.inf)
    assert recipe.guarantee is None
    assert recipe.noise_scale == 0
    assert TreeRecipe(epsilon=2.0).without_privacy() == recipe
