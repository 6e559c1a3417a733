"""Attacks on whole private trees: neighbouring people, many trees, one event.

Whoever attacks sees all of a tree. They note, along the path of the person in question, which kind
of split was chosen, and the noisy count of that person's label in the leaf at its end.
"""

import math

import numpy as np
import pandas as pd
import pytest

from fpbench import Sample, component
from fpbench.builtin.private_tree.growth import grow_trees
from fpbench.builtin.private_tree.recipe import TreeRecipe
from fpbench.builtin.private_tree.split_candidates import SplitCandidates
from fpbench.builtin.private_tree.split_scores import CRITERIA
from fpbench.data import Domain
from fpbench.testing import epsilon_lower_bound

EPSILON = 1.0
SIMILAR = {"none": {}, "grid": {"tau": 0.1}, "ball": {"tau": 0.1}}
CHOICES = ("noisy-max", "exponential")
"""Selections that pay for the choice alone."""
N = 4
"""People at most: three of label 0, and perhaps one of label 1, whom some splits set apart."""


def recipe(**given):
    return TreeRecipe(
        **{"epsilon": EPSILON, "max_depth": 1, "thresholds": 1, "most_people": N, **given}
    )


def attack(grown, away=0.9, aside=0.1, parting=1, columns=10, draws=40_000):
    """Epsilon that trees by a recipe have at least.

    Some columns part the one, who has `away` there and `aside` in the others, from the rest, who
    have 0.1 everywhere; the only threshold is 0.5. With the defaults a parting split stays as it is
    when the one comes, and all others get worse by the whole sensitivity.
    """
    candidates = SplitCandidates.of_bounds(np.zeros(columns), np.ones(columns), grown)
    matrix = np.full((N, columns), 0.1, dtype=np.float32)
    matrix[-1] = np.where(np.arange(columns) < parting, away, aside)
    labels = np.array([0] * (N - 1) + [1])

    def release(given, rng):
        there = N - 1 + int(given[0, 0])
        trees = grow_trees(candidates, matrix[:there], labels[:there], len(given), rng)
        rows, kinds = np.arange(len(trees)), np.zeros(len(trees))
        at = np.zeros(len(trees), dtype=np.intp)
        for _ in range(grown.max_depth):
            chosen = trees.split[rows, at]
            kinds = 3 * kinds + np.where(chosen < 0, 2, chosen < parting)
            right = matrix[-1, np.maximum(chosen, 0)] > 0.5
            at = np.where(chosen < 0, at, 2 * at + 1 + right)
        return np.column_stack([kinds, trees.counts[rows, at, 1]])

    return epsilon_lower_bound(
        release, [1], [0], draws=draws, confidence=0.9999, rng=np.random.default_rng(0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("similarity", SIMILAR)
@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_no_attack_breaks_epsilon_and_half_the_noise_is_found(criterion, selection, similarity):
    given = {"criterion": criterion, "selection": selection, "similarity": similarity}
    given |= SIMILAR[similarity]
    found = attack(recipe(**given))
    assert 0.6 * EPSILON < found <= EPSILON
    assert attack(recipe(**given, epsilon=2 * EPSILON)) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("part", ["selection", "leaves"])
@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_half_the_noise_of_one_part_is_found(criterion, selection, part):
    """The other part has the noise that it has at epsilon 1."""
    chosen, leaves = (1.0, 0.5) if part == "selection" else (0.5, 1.0)
    given = {"criterion": criterion, "selection": selection}
    shrunk = recipe(epsilon=chosen + leaves, leaf_share=leaves / (chosen + leaves), **given)
    honest = recipe(**given)
    halves = [honest.leaf_epsilon / shrunk.leaf_epsilon, shrunk.noise_scale / honest.noise_scale]
    assert math.isclose(min(halves), 0.5)
    assert math.isclose(max(halves), 1)
    assert attack(shrunk) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_reference_tree_gives_away_less_than_its_noisy_impurities_cost(criterion):
    """Of ten candidates, noise for ten: the choice alone gives away a tenth of a level's share."""
    given = {"criterion": criterion, "selection": "reference"}
    honest = recipe(**given)
    assert honest.guarantee.epsilon == EPSILON
    assert attack(honest) <= honest.leaf_epsilon + honest.level_epsilon / 10
    shrunk = recipe(epsilon=5.5, leaf_share=0.5 / 5.5, **given)
    assert math.isclose(shrunk.leaf_epsilon, honest.leaf_epsilon)
    assert attack(shrunk) > honest.leaf_epsilon + honest.level_epsilon / 10


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("away", "aside"), [(0.5, 0.1), (0.55, 0.45), (0.9, 0.52)])
def test_no_attack_breaks_a_ball_that_both_children_share(criterion, away, aside):
    shared = recipe(criterion=criterion, similarity="ball", tau=0.1)
    assert attack(shared, away, aside, draws=20_000) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("selection", CHOICES)
def test_the_levels_share_their_budget(selection):
    """Splits alone, of two levels: no more than epsilon, and more than one level is allowed."""
    given = {"selection": selection, "criterion": "max", "max_depth": 2, "leaf_share": 0.01}
    found = attack(recipe(**given), parting=16, columns=20, draws=100_000)
    assert 0.55 < found <= EPSILON


def attack_learner(name, epsilon, **parameters):
    """Epsilon that models of a learner have at least, by the chances that they give two people."""
    columns = [f"x{i}" for i in range(16)]
    bounds = {name: [0, 1] for name in columns} | {"job": ["clerk", "farmer"]}
    learner = component(
        "learner", name, epsilon=epsilon, max_depth=1, thresholds=1, most_people=N, **parameters
    )
    people = pd.DataFrame(0.1, index=range(N), columns=columns)
    people["job"] = pd.Categorical(["clerk"] * (N - 1) + ["farmer"])
    labels = np.array([0] * (N - 1) + [1], dtype=np.int8)

    def release(given, rng):
        there = N - 1 + int(given[0, 0])
        sample = Sample(
            (), features=people[:there], labels=labels[:there], domain=Domain.of(bounds)
        )
        return learner.fit(sample, rng).redraw(len(given), rng).proba(people[-2:])

    return epsilon_lower_bound(
        release, [1], [0], draws=60_000, confidence=0.9999, rng=np.random.default_rng(0)
    )


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("name", "parameters"),
    [("private-tree", {}), ("private-tree", {"selection": "exponential"}),
     ("private-fair-tree", {"tau": 0.1, "similarity": "grid"}),
     ("private-fair-tree", {"tau": 0.1, "similarity": "ball", "criterion": "entropy"})],
)  # fmt: skip
def test_learners_keep_epsilon_and_half_their_noise_is_found(name, parameters):
    """Seen from outside: features, a category that tells the one apart, and predictions."""
    assert 0.3 * EPSILON < attack_learner(name, EPSILON, **parameters) <= EPSILON
    assert attack_learner(name, 2 * EPSILON, **parameters) > EPSILON
