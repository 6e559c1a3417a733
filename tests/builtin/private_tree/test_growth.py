"""Growth of private trees: against slow loops, and laws that hold for every tree."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError, component
from fpbench.builtin.private_tree import fitted as private_trees
from fpbench.builtin.private_tree.growth import grow_trees
from fpbench.builtin.private_tree.recipe import TreeRecipe
from fpbench.builtin.private_tree.split_candidates import (
    CategoryFeature,
    NumberFeature,
    SplitCandidates,
)
from fpbench.builtin.private_tree.split_scores import CRITERIA, impurity
from fpbench.data import Domain
from fpbench.models import encode, tree_rules

INF = math.inf


def candidates(numbers=2, sizes=(3,), **recipe):
    """Of numbers between 0 and 10 and categoricals, and the recipe."""
    recipe = TreeRecipe(**{"thresholds": 4, "max_depth": 3, **recipe})
    given = SplitCandidates.of_bounds(np.zeros(numbers), np.full(numbers, 10.0), recipe)
    features, column = list(given.features), numbers
    for size in sizes:
        features.append(CategoryFeature(column, size))
        column += size
    return SplitCandidates(tuple(features), recipe, column)


def matrix_of(rng, n, numbers=2, sizes=(3,), missing=True):
    """People with whole numbers, so that many are on thresholds, and some without a category."""
    columns = [rng.integers(-1, 12, (n, numbers)) + rng.choice([0, 0.25], (n, numbers))]
    for size in sizes:
        columns.append(np.eye(size + 1)[rng.integers(0, size + missing, n)][:, :size])
    return np.concatenate(columns, axis=1).astype(np.float32)


def people(seed, n=60, **shape):
    rng = np.random.default_rng(seed)
    return matrix_of(rng, n, **shape), rng.integers(0, 2, n), rng


def share_right(given, matrix):
    """Share (n, c) of each person's mass that each candidate sends right, from its definition."""
    tau = given.recipe.tau if given.recipe.similarity == "ball" else 0.0
    shares = []
    for feature in given.features:
        if isinstance(feature, NumberFeature):
            z = np.clip(matrix[:, feature.column].astype(float), 0, 10) / 10
            for t in feature.thresholds / 10:
                if tau == 0:
                    shares.append(matrix[:, feature.column] > t * 10)
                else:
                    shares.append(np.clip((z + tau - t) / (2 * tau), 0, 1))
        else:
            shares += list(matrix[:, feature.column : feature.column + feature.size].T)
    return np.array(shares, dtype=float).T


def node_people(trees, number, matrix):
    """Who (nodes, n) is in each node."""
    split, table = trees.split[number], trees.candidates.table
    inside = np.zeros((len(split), len(matrix)), dtype=bool)
    inside[0] = True
    for node in np.flatnonzero(split >= 0):
        right = matrix[:, table.column[split[node]]] > table.threshold[split[node]]
        inside[2 * node + 1] = inside[node] & ~right
        inside[2 * node + 2] = inside[node] & right
    return inside


@pytest.mark.slow
@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_without_noise_every_split_is_the_best_that_is_left(criterion, ball):
    similar = {"similarity": "ball", "tau": 0.13} if ball else {}
    given = candidates(criterion=criterion, epsilon=INF, max_depth=4, **similar)
    for seed in range(8):
        matrix, labels, rng = people(seed, 80)
        trees = grow_trees(given, matrix, labels, 2, rng)
        assert (trees.split[0] == trees.split[1]).all()
        right, inside = share_right(given, matrix), node_people(trees, 0, matrix)
        possible = {0: given.possible_at_first()}
        for node in np.flatnonzero(trees.split[0] >= 0):
            mass = [right[inside[node] & (labels == label)] for label in (0, 1)]
            scores = sum(
                impurity(criterion, *(m.sum(axis=0) for m in side))
                for side in (mass, [1 - m for m in mass])
            )
            chosen = trees.split[0][node]
            assert possible[node][chosen]
            assert scores[chosen] <= scores[possible[node]].min() + 1e-9
            if not ball:  # of equals the first
                assert chosen == np.flatnonzero(possible[node] & (scores == scores[chosen]))[0]
            below = given.possible_below(possible[node][None], np.array([chosen]))
            possible[2 * node + 1], possible[2 * node + 2] = (side[0] for side in below)


@given(seed=st.integers(0, 10**6), thresholds=st.integers(1, 3), size=st.integers(1, 4))
def test_splits_ask_only_what_the_path_leaves_open(seed, thresholds, size):
    """Every leaf can be met, and a leaf above the last level leaves nothing to ask."""
    given = candidates(1, (size, 2), thresholds=thresholds, max_depth=6, epsilon=1e-3)
    rng = np.random.default_rng(seed)
    matrix, labels = matrix_of(rng, 10, 1, (size, 2)), rng.integers(0, 2, 10)
    trees = grow_trees(given, matrix, labels, 3, rng)
    values = np.append(given.features[0].thresholds, 10.0)
    lattice = np.array(
        [[x, *np.eye(size)[a], *np.eye(2)[b]] for x, a, b in product(values, range(size), range(2))]
    )
    for number in range(3):
        inside = node_people(trees, number, lattice).sum(axis=1)
        split = trees.split[number]
        there = np.flatnonzero(inside)
        for node in there:
            if split[node] >= 0:
                assert inside[2 * node + 1] > 0
                assert inside[2 * node + 2] > 0
            elif node < 2**6 - 1:
                assert inside[node] == 1
        assert (split[np.setdiff1d(np.arange(len(split)), there)] == -1).all()


def test_one_column_of_which_nothing_is_left_to_ask():
    """Leaves above the last level have no column, and a matrix of one has no other."""
    given = candidates(1, (), thresholds=1, epsilon=INF)
    matrix = np.array([[1.0], [9.0]], dtype=np.float32)
    trees = grow_trees(given, matrix, np.array([0, 1]), 1, np.random.default_rng(0))
    tree = trees.tree(0)
    assert tree.apply(matrix).tolist() == [1, 2]
    assert (tree.proba(matrix)[:, 1] == trees.proba(matrix)[0]).all()


def test_no_candidates_at_all_is_one_leaf():
    given = candidates(0, (1,), epsilon=INF)
    matrix, labels, rng = people(0, 10, numbers=0, sizes=(1,))
    trees = grow_trees(given, matrix, labels, 2, rng)
    assert (trees.split == -1).all()
    np.testing.assert_allclose(trees.proba(matrix), (labels.sum() + 1) / 12)
    assert trees.tree(1).tree_.node_count == 1
    assert (trees.tree(1).apply(matrix) == 0).all()


@given(seed=st.integers(0, 10**6), epsilon=st.sampled_from([0.05, 1.0, 20.0, INF]))
def test_counts_and_probabilities(seed, epsilon):
    """Leaves' counts, their sums above, and what leaves without a positive count inherit."""
    given = candidates(epsilon=epsilon)
    matrix, labels, rng = people(seed, int(seed % 30))
    trees = grow_trees(given, matrix, labels, 2, rng)
    leaves = trees.leaves(matrix)
    for number in range(2):
        split, counts = trees.split[number], trees.counts[number]
        for node in np.flatnonzero(split >= 0):
            np.testing.assert_allclose(
                counts[node], counts[2 * node + 1] + counts[2 * node + 2], atol=1e-9
            )
        inside = node_people(trees, number, matrix)
        assert inside[leaves[number], np.arange(len(matrix))].all()
        assert (split[leaves[number]] == -1).all()
        if epsilon == INF:
            true = [[(labels[row] == label).sum() for label in (0, 1)] for row in inside]
            assert (counts == true).all()
        for leaf in {0, *leaves[number].tolist()}:
            node = leaf
            while node and not (counts[node] > 0).any():
                node = (node - 1) // 2
            zeros, ones = np.maximum(counts[node], 0)
            assert trees.positive[number, leaf] == pytest.approx((ones + 1) / (zeros + ones + 2))


def test_an_empty_leaf_is_as_the_node_above():
    given = candidates(1, (), thresholds=3, max_depth=2, epsilon=INF)
    matrix = np.array([[1], [1], [1], [9]], dtype=np.float32)
    trees = grow_trees(given, matrix, np.array([1, 1, 1, 0]), 1, np.random.default_rng(0))
    # The first of equal thresholds is 2.5; below it nothing is left to ask, above it 5 and 7.5 are.
    assert trees.split[0].tolist() == [0, -1, 1, -1, -1, -1, -1]
    assert trees.counts[0].tolist() == [[1, 3], [0, 3], [1, 0], [0, 0], [0, 0], [0, 0], [1, 0]]
    assert trees.positive[0, [1, 2, 5, 6]].tolist() == [4 / 5, 1 / 3, 1 / 3, 1 / 3]


@pytest.mark.parametrize("labels", [np.zeros(20, int), np.ones(20, int)])
def test_one_class_is_no_error(labels):
    given = candidates(epsilon=INF)
    matrix, _, rng = people(0, 20)
    trees = grow_trees(given, matrix, labels, 1, rng)
    assert ((trees.proba(matrix) > 0.5) == labels).all()


def test_trees_of_nobody_are_grown():
    given = candidates(epsilon=2.0)
    trees = grow_trees(
        given, np.zeros((0, 5), np.float32), np.zeros(0, int), 4, np.random.default_rng(0)
    )
    assert trees.proba(np.zeros((3, 5), np.float32)).shape == (4, 3)


def test_more_people_than_declared_are_refused():
    given = candidates(most_people=9)
    matrix, labels, rng = people(0, 10)
    with pytest.raises(InputError, match="there are 10 people, and most_people = 9"):
        grow_trees(given, matrix, labels, 1, rng)


@given(
    seed=st.integers(0, 10**6),
    tau=st.one_of(st.floats(1e-3, 0.999), st.sampled_from([0.05, 0.1, 0.25, 1 / 3, 0.5, 0.9])),
    thresholds=st.integers(1, 40),
    low=st.sampled_from([0.0, -7.3, 17.0, 1e6]),
    width=st.sampled_from([1.0, 73.0, 0.1, 99_999.0]),
)
def test_people_of_one_cell_get_one_label(seed, tau, thresholds, low, width):
    """For every tree, data and epsilon: whoever shares a cell shares a leaf."""
    recipe = TreeRecipe(
        similarity="grid",
        tau=tau,
        thresholds=thresholds,
        max_depth=5,
        epsilon=[0.1, 5.0, INF][seed % 3],
    )
    numbers = SplitCandidates.of_bounds(np.full(2, low), np.full(2, low + width), recipe)
    given = SplitCandidates((*numbers.features, CategoryFeature(2, 3)), recipe, 5)
    rng = np.random.default_rng(seed)
    z = rng.uniform(-0.1, 1.1, (150, 2))
    borders = rng.integers(0, math.ceil(1 / tau) + 1, (150, 2)) * tau
    z = np.where(rng.random((150, 2)) < 0.5, z, borders)
    matrix = np.concatenate([low + z * width, np.eye(4)[rng.integers(0, 4, 150)][:, :3]], axis=1)
    matrix = matrix.astype(np.float32)
    nudged = np.nextafter(
        matrix, np.where(rng.random(matrix.shape) < 0.5, -np.inf, np.inf), dtype=np.float32
    )
    matrix = np.concatenate([matrix, np.concatenate([nudged[:, :2], matrix[:, 2:]], axis=1)])
    trees = grow_trees(given, matrix, rng.integers(0, 2, 300), 4, rng)
    _, cell = np.unique(given.cells(matrix), axis=0, return_inverse=True)
    leaves = trees.leaves(matrix)
    first = np.full(cell.max() + 1, -1)
    for row in range(300):
        seen = first[cell.ravel()[row]]
        if seen < 0:
            first[cell.ravel()[row]] = row
        else:
            assert (leaves[:, row] == leaves[:, seen]).all()


@given(tau=st.floats(0.002, 0.999), seed=st.integers(0, 1000))
def test_cells_are_as_wide_as_tau(tau, seed):
    given = candidates(1, (), similarity="grid", tau=tau)
    x = np.random.default_rng(seed).uniform(0, 10, (500, 1))
    cells = given.cells(x)[:, 0]
    np.testing.assert_allclose(cells, np.ceil(x[:, 0] / 10 / tau) - 1, atol=1)
    assert (x[:, 0] / 10 <= (cells + 1) * tau + 1e-9).all()
    assert (x[:, 0] / 10 >= cells * tau - 1e-9).all()
    thresholds = given.features[0].thresholds
    assert 1 <= len(thresholds) <= 4
    np.testing.assert_allclose(thresholds / 10 / tau, np.round(thresholds / 10 / tau), atol=1e-6)


@pytest.mark.parametrize("recipe", [{}, {"similarity": "grid"}, {"similarity": "ball", "tau": 0.1}])
def test_there_are_cells_only_in_a_grid(recipe):
    with pytest.raises(InputError, match="cells exist only with similarity"):
        candidates(**recipe).cells(np.zeros((1, 5), np.float32))


@given(tau=st.floats(1e-6, 0.999), thresholds=st.integers(1, 30), seed=st.integers(0, 1000))
def test_a_ball_is_one_person(tau, thresholds, seed):
    given = candidates(2, (3,), similarity="ball", tau=tau, thresholds=thresholds)
    matrix = matrix_of(np.random.default_rng(seed), 20)
    right = share_right(given, matrix)
    start = 0
    spreads = given.spreads(matrix, given.bins(matrix))
    for feature, spread, size in zip(given.features, spreads, given.sizes, strict=True):
        mass = np.ones((20, 1)) if spread.mass is None else spread.mass
        assert (mass >= 0).all()
        np.testing.assert_allclose(mass.sum(axis=1), 1, rtol=1e-12)
        dense = np.zeros((20, size))
        np.add.at(dense, (np.arange(20)[:, None], spread.bins), mass)
        if isinstance(feature, CategoryFeature):
            np.testing.assert_allclose(dense[:, :-1], right[:, start:])
        else:
            left = np.cumsum(dense, axis=1)[:, :-1]
            np.testing.assert_allclose(1 - left, right[:, start : start + size - 1], atol=1e-6)
        start += size - 1


def test_a_tiny_ball_splits_as_no_ball():
    matrix, labels, rng = people(3, 200, sizes=())
    matrix += np.float32(0.1)  # nobody is on a threshold
    plain = candidates(sizes=(), epsilon=INF)
    for small in (1e-6, 1e-9):
        ball = candidates(sizes=(), epsilon=INF, similarity="ball", tau=small)
        one, other = (grow_trees(c, matrix, labels, 1, rng) for c in (plain, ball))
        assert (one.split == other.split).all()


@pytest.mark.parametrize("similarity", ["none", "grid", "ball"])
def test_a_single_tree_says_what_it_said_among_many(similarity):
    tau = {} if similarity == "none" else {"tau": 0.2}
    given = candidates(2, (3, 1), similarity=similarity, max_depth=5, thresholds=2, **tau)
    matrix, labels, rng = people(5, 300, sizes=(3, 1))
    trees = grow_trees(given, matrix, labels, 20, rng)
    proba = trees.proba(matrix)
    assert len(trees) == 20
    for number in range(20):
        tree = trees.tree(number)
        nodes = tree.tree_
        assert (tree.proba(matrix)[:, 1] == proba[number]).all()
        rules = tree_rules(tree)
        assert (rules.predict(matrix) == (proba[number] > 0.5)).all()
        inner = nodes.children_left >= 0
        assert nodes.node_count == 2 * nodes.n_leaves - 1 == len(nodes.value)
        assert (nodes.children_left[inner] > np.flatnonzero(inner)).all()
        assert (nodes.children_right[~inner] == -1).all()
        np.testing.assert_allclose(nodes.value.sum(axis=2), 1)


def test_memory_is_cut_into_blocks(monkeypatch):
    """In few blocks or many: the noise is other noise, but each tree is one of these people."""
    given = candidates(epsilon=1e6)
    matrix, labels, _ = people(1, 100)
    whole = grow_trees(given, matrix, labels, 50, np.random.default_rng(0))
    monkeypatch.setattr(private_trees, "_AT_ONCE", 700)
    parts = grow_trees(given, matrix, labels, 50, np.random.default_rng(0))
    np.testing.assert_allclose(parts.counts, whole.counts, atol=1e-3)
    assert (parts.split == whole.split).all()
    np.testing.assert_allclose(parts.proba(matrix), whole.proba(matrix), atol=1e-3)


def test_trees_differ_and_the_seed_decides():
    given = candidates(epsilon=0.5)
    matrix, labels, _ = people(1, 100)
    one, again, other = (
        grow_trees(given, matrix, labels, 5, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert (one.counts == again.counts).all() and (one.split == again.split).all()
    assert (one.counts != other.counts).any()
    assert len(np.unique(one.split, axis=0)) == 5


@pytest.mark.parametrize(
    ("name", "whole", "delta"),
    [("laplace", False, 0), ("discrete-laplace", True, 0), ("exponential", True, 0),
     ("gaussian", False, 1e-6)],
)  # fmt: skip
def test_leaves_have_the_noise_of_their_mechanism(name, whole, delta):
    mechanism = component("mechanism", name, **({"delta": delta} if delta else {}))
    given = candidates(epsilon=0.9, mechanism=mechanism, most_people=500)
    matrix, labels, rng = people(1, 100)
    trees = grow_trees(given, matrix, labels, 400, rng)
    assert (trees.counts == np.round(trees.counts)).all() == whole
    guarantee = given.recipe.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (0.9, delta)
    # All noise of all leaves adds up in the roots; of the exponential mechanism it is not 0.
    if name != "exponential":
        error = trees.counts[:, 0] - np.bincount(labels)
        assert abs(error.mean()) < 5 * error.std() / math.sqrt(error.size)
        assert error.std() > 1


def test_the_noise_of_leaves_has_its_scale():
    given = candidates(epsilon=1.0, leaf_share=0.25, max_depth=1)
    matrix, labels, rng = people(1, 100)
    trees = grow_trees(given, matrix, labels, 20_000, rng)
    error = trees.counts[:, 0] - np.bincount(labels)  # the noise of two leaves
    assert error.var() == pytest.approx(2 * 2 * 4.0**2, rel=0.05)


def test_a_mechanism_that_would_be_in_vain_or_cannot_is_refused():
    with pytest.raises(InputError, match='noise = "secure" protects nothing'):
        TreeRecipe(mechanism=component("mechanism", "discrete-laplace", noise="secure"))
    classic = component("mechanism", "gaussian", calibration="classic", delta=1e-6)
    TreeRecipe(mechanism=classic, epsilon=1.5)
    with pytest.raises(InputError, match="epsilon"):
        TreeRecipe(mechanism=classic, epsilon=4.0)


def test_candidates_of_a_domain(make_frame):
    frame = make_frame(30)
    domain = Domain.of({"x": [0, 4], "job": ["b", "c"], "y": [-1, 1], "other": [0, 9]})
    given = SplitCandidates.of_domain(frame, domain, TreeRecipe(thresholds=3))
    assert given.n_columns == encode(domain.fit(frame)).shape[1] == 4
    assert given.features[0].thresholds.tolist() == [1.0, 2.0, 3.0]
    assert given.features[1].thresholds.tolist() == [-0.5, 0.0, 0.5]
    assert given.features[2] == CategoryFeature(2, 2)
    assert len(given) == 8
    # A word that is not declared is no category; numbers beyond the bounds are on the bounds.
    bins = given.bins(encode(domain.fit(frame)))
    assert (bins[2] == np.array([2, 0, 1])[frame["job"].cat.codes]).all()


@pytest.fixture
def make_frame():
    import pandas as pd

    def make(n, seed=0):
        rng = np.random.default_rng(seed)
        job = pd.Categorical.from_codes(rng.integers(0, 3, n), ["a", "b", "c"])
        return pd.DataFrame({"x": rng.uniform(-1, 5, n), "job": job, "y": rng.normal(size=n)})

    return make


def test_bounds_that_are_next_to_each_other():
    """In single precision, which is what trees see: a threshold parts somebody, or is none."""
    one = np.float32(1)
    for high, thresholds in ((np.nextafter(one, np.float32(2)), 9), (np.nextafter(1.0, 2.0), 0)):
        recipe = TreeRecipe(thresholds=9)
        given = SplitCandidates.of_bounds(np.ones(1), np.full(1, high, dtype=float), recipe)
        assert len(given) == thresholds


@given(
    low=st.sampled_from([2.0**24, -(2.0**24) - 3, 0.1, 16_777_217.0]),
    width=st.sampled_from([1.0, 3.0, 7.0, 1e-8]),
)
def test_values_beyond_bounds_count_as_the_bounds(low, width):
    """Without being clipped: rules are about values as they are."""
    given = SplitCandidates.of_bounds(
        np.array([low]), np.array([low + width]), TreeRecipe(thresholds=9)
    )
    ends = np.array([[low], [low + width]], dtype=np.float32)
    beyond = np.array([[low - 100], [low + width + 100]], dtype=np.float32)
    assert (given.bins(ends) == given.bins(beyond)).all()


@pytest.mark.parametrize("similarity", ["none", "grid", "ball"])
@pytest.mark.parametrize("ends", [(0, 1e39), (-1e308, 1e308)])
def test_bounds_beyond_single_precision(similarity, ends):
    tau = 0.0 if similarity == "none" else 0.1
    recipe = TreeRecipe(similarity=similarity, tau=tau)
    with pytest.raises(InputError, match="beyond the numbers of single precision"):
        SplitCandidates.of_bounds(*np.array([ends], dtype=float).T, recipe)
