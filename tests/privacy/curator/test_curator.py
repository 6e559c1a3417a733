"""The curator: counts people right, pays before it answers, and keeps their groups to itself."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpbench
from fpbench import InputError, Mechanism, PluginError
from fpbench.components.auditor import HistogramSource
from fpbench.errors import BudgetError
from fpbench.privacy import Curator, Ledger
from fpbench.privacy.curator import _CHUNK, _PAIRED

LAPLACE = fpbench.component("mechanism", "laplace")
DISCRETE = fpbench.component("mechanism", "discrete-laplace", noise="secure")


class Silent(Mechanism):
    """Adds no noise, so that a test sees what was counted."""

    name = "silent"
    summary = "adds nothing"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        Silent.seen = (counts.copy(), sensitivity, np.asarray(epsilon), np.asarray(upper))
        return np.broadcast_to(
            counts.astype(float), np.broadcast_shapes(counts.shape, epsilon.shape)
        )


class Broken(Silent):
    """Fails after it was paid."""

    name = "broken"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        raise RuntimeError("no entropy left")


class Short(Silent):
    """Answers less than it was asked."""

    name = "short"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return counts.astype(float)


def test_it_is_a_histogram_source():
    source: HistogramSource = Curator([0, 1], ["a", "b"])
    assert (source.people, source.groups, source.neighbours) == (2, ("a", "b"), "attribute")


@given(st.integers(2, 6), st.integers(1, 9), st.integers(1, 300), st.integers(0, 2**32 - 1),
       st.sampled_from(["int8", "int16", "int64", "uint8", "uint64", "float"]))  # fmt: skip
def test_it_counts_people_by_cell_and_group(k, n_cells, n, seed, kind):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, k, n)
    low = 0 if kind.startswith("u") else -1
    cells = rng.integers(low, n_cells, n)
    curator = Curator(groups, [f"g{i}" for i in range(k)])
    given = cells.tolist() if kind == "float" else cells.astype(kind)
    found = curator.histogram(given, n_cells, epsilon=1.0, mechanism=Silent())
    assert found.shape == (1, n_cells, k)
    expected = [
        [np.count_nonzero((cells == c) & (groups == g)) for g in range(k)] for c in range(n_cells)
    ]
    assert found[0].tolist() == expected
    _, sensitivity, _, upper = Silent.seen
    assert sensitivity == fpbench.privacy.COUNT_SENSITIVITY["attribute"]
    assert upper.ravel().tolist() == [sum(row) for row in expected]  # cells are public


@pytest.mark.parametrize("n", [3 * _CHUNK + 17, _PAIRED, 2 * _PAIRED + _CHUNK + 1])
@pytest.mark.parametrize(("k", "n_cells"), [(3, 6), (2, 1), (5, 50), (2, 127), (2, 128), (127, 1)])
@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_people_are_counted_in_chunks_without_seams(n, k, n_cells, kind):
    rng = np.random.default_rng(n)
    groups, cells = rng.integers(0, k, n), rng.integers(-1, n_cells, n).astype(kind)
    curator = Curator(groups, [f"g{i}" for i in range(k)])
    found = curator.histogram(cells, n_cells, epsilon=1, mechanism=Silent())
    joint = np.bincount((cells.astype(int) * k + groups)[cells >= 0], minlength=k * n_cells)
    assert (found[0] == joint.reshape(n_cells, k)).all()
    for wrong in (-2, n_cells):
        if wrong <= np.iinfo(kind).max:
            cells[n // 2] = wrong
            with pytest.raises(InputError, match="cells must be in"):
                curator.histogram(cells, n_cells, epsilon=1, mechanism=Silent())


def test_answers_have_the_shape_of_what_was_asked():
    curator = Curator(np.arange(60) % 3, list("abc"), rng=0)
    cells = np.arange(60) % 2
    epsilon = np.array([[0.1, 0.5, 2.0], [1.0, 1.0, 1.0]])
    found = curator.histogram(cells, 2, epsilon=epsilon, mechanism=LAPLACE, repetitions=400)
    assert found.shape == (2, 3, 400, 2, 3)
    # Independent noise of scale 2 / epsilon everywhere: Laplace's mean absolute value is its scale.
    size = np.abs(found - 10).mean(axis=(2, 3, 4))
    assert size == pytest.approx(2 / epsilon, rel=0.1)
    assert np.unique(found).size == found.size
    assert curator.histogram(cells, 2, epsilon=1, mechanism=LAPLACE).shape == (1, 2, 3)


def test_simulated_noise_comes_from_the_generator_and_secure_noise_does_not():
    def ask(mechanism):
        curator = Curator([0, 1] * 50, ["a", "b"], rng=5)
        return curator.histogram([0] * 100, 1, epsilon=0.1, mechanism=mechanism, repetitions=20)

    assert (ask(LAPLACE) == ask(LAPLACE)).all()
    assert (ask(DISCRETE) != ask(DISCRETE)).any()


def test_every_answer_is_paid_for():
    ledger = Ledger(1.0)
    curator = Curator([0, 1], ["a", "b"], ledger=ledger)
    curator.histogram([0, 0], 1, epsilon=[0.1, 0.05], mechanism=DISCRETE, repetitions=4)
    assert ledger.spent.epsilon == 0.6
    with pytest.raises(BudgetError, match=r"left epsilon 0\.4 of epsilon 1"):
        curator.histogram([0, 0], 1, epsilon=[0.1, 0.31], mechanism=Silent())
    assert curator.remaining.epsilon == 0.4
    curator.histogram([0, 1], 2, epsilon=0.4, mechanism=DISCRETE)
    assert curator.remaining.epsilon == 0
    assert ledger.entries[-1].note == "histogram of 2 cells, discrete-laplace, noise secure"


def test_what_fails_after_payment_stays_paid():
    curator = Curator([0, 1], ["a", "b"], ledger=Ledger(1.0))
    with pytest.raises(RuntimeError):
        curator.histogram([0, 0], 1, epsilon=0.25, mechanism=Broken())
    with pytest.raises(PluginError, match="'short' gave answers of shape"):
        curator.histogram([0, 0], 1, epsilon=[0.25, 0.25], mechanism=Short())
    assert curator.remaining.epsilon == 0.25


@pytest.mark.parametrize(("cells", "n_cells", "more", "said"), [
    ([0], 1, {}, r"cells are of shape \(1,\), and there are 2 people"),
    ([[0, 0]], 1, {}, "cells are of shape"),
    ([0.0, 1.0], 2, {}, "must be whole numbers, not float64"),
    (["a", "b"], 2, {}, "must be whole numbers"),
    ([0, 2], 2, {}, r"cells must be in 0\.\.1, or -1"),
    ([-2, 0], 2, {}, "cells must be in"),
    ([np.iinfo(np.int64).min, 0], 2, {}, "cells must be in"),
    ([0, np.iinfo(np.int64).max], 2, {}, "cells must be in"),
    ([0, 1], 0, {}, "n_cells must be a whole number, 1 or more, not 0"),
    ([0, 1], 2.0, {}, r"n_cells must be a whole number, not 2\.0"),
    ([0, 1], 2, {"repetitions": 0}, "repetitions must be a whole number"),
    ([0, 1], 2, {"repetitions": True}, "repetitions must be a whole number"),
    ([0, 1], 2, {"epsilon": 0}, "epsilon must be above 0"),
    ([0, 1], 2, {"epsilon": [1, -1]}, "epsilon must be above 0"),
    ([0, 1], 2, {"epsilon": np.nan}, "epsilon must be above 0"),
    ([0, 1], 2, {"epsilon": np.inf}, "above 0 and finite"),
    ([0, 1], 2, {"epsilon": []}, "epsilon: is empty"),
])  # fmt: skip
def test_bad_questions_cost_nothing(cells, n_cells, more, said):
    curator = Curator([0, 1], ["a", "b"], ledger=Ledger(1.0))
    with pytest.raises(InputError, match=said):
        curator.histogram(cells, n_cells, **{"epsilon": 0.1, "mechanism": DISCRETE, **more})
    assert curator.remaining.epsilon == 1


def test_nobodys_group_shows():
    secret = np.array([0, 1, 1, 0, 1])
    curator = Curator(secret, ["a", "b"], ledger=Ledger(1.0))
    assert repr(curator) == "Curator(5 people, groups a, b)"
    public = {name: getattr(curator, name) for name in dir(curator) if not name.startswith("_")}
    assert set(public) == {"groups", "histogram", "neighbours", "people", "remaining"}
    assert not any(isinstance(value, np.ndarray) for value in public.values())
    assert not hasattr(curator, "__dict__")
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError, match="cannot be copied"):
            leak(curator)
    secret[:] = 0  # what it owns is its own
    assert curator.histogram([0] * 5, 1, epsilon=1, mechanism=Silent()).tolist() == [[[2, 3]]]


@pytest.mark.parametrize(("sensitive", "groups", "codes"), [
    (list("bab"), ("a", "b"), [1, 0, 1]),
    (np.array(list("bab")), ("a", "b"), [1, 0, 1]),
    (pd.Series(list("bab"), index=[7, 8, 9]), ("a", "b"), [1, 0, 1]),
    (pd.Series(list("bab"), dtype="category"), ("a", "b"), [1, 0, 1]),
    (pd.Categorical(list("bab"), categories=["c", "b", "a"]), ("b", "a"), [0, 1, 0]),
    (np.array([1, 0, 1]), ("0", "1"), [1, 0, 1]),
    (np.array([3, 2, 4]), ("2", "3", "4"), [1, 0, 2]),
    (np.array([1, 5, 1]), ("1", "5"), [0, 1, 0]),
    (np.array([-7, 500, -7]), ("-7", "500"), [0, 1, 0]),
    (np.array([True, False, True]), ("False", "True"), [1, 0, 1]),
    ([True, False, True], ("False", "True"), [1, 0, 1]),
    (np.array([1.0, 0.5, 1.0]), ("0.5", "1"), [1, 0, 1]),
    (np.array([1, 0, 1], np.uint64), ("0", "1"), [1, 0, 1]),
    (pd.Series([1, 0, 1], dtype="Int64"), ("0", "1"), [1, 0, 1]),
    (pd.DataFrame({"s": list("bab")}), ("a", "b"), [1, 0, 1]),
    (pd.DataFrame({"s": list("bab"), "age": [1, 2, 2]}, index=[5, 5, 6]),
     ("a x 2", "b x 1", "b x 2"), [1, 0, 2]),
])  # fmt: skip
def test_groups_come_in_any_form(sensitive, groups, codes):
    curator = Curator(sensitive)
    assert curator.groups == groups
    counted = curator.histogram([0, 1, 2], 3, epsilon=1, mechanism=Silent())[0]
    assert counted.argmax(axis=1).tolist() == codes
    assert counted.sum() == 3


def test_groups_without_members_may_be_named():
    """They are public, so that an answer does not tell whether anybody is in a group."""
    curator = Curator([1, 1], ["a", "b", "c"])
    assert curator.histogram([0, 0], 1, epsilon=1, mechanism=Silent()).tolist() == [[[0, 2, 0]]]


@pytest.mark.parametrize(("sensitive", "groups", "said"), [
    ([0, 2], ["a", "b"], r"must be in 0\.\.1, as 2 groups"),
    ([0, -1], ["a", "b"], r"must be in 0\.\.1"),
    ([0.0, 1.0], ["a", "b"], "one whole number or text per person"),
    ([[0, 1]], ["a", "b"], "one whole number or text per person"),
    ([0, 0], ["a"], "2 to 127 groups, not 1"),
    ([0, 1], ["a", "a"], "a group twice"),
    ([0, 1], "ab", "groups must be a list"),
    ([0, 1], [1, 2], "groups must be a list"),
    ([], ["a", "b"], "nobody|whole number"),
    (np.zeros(0, int), ["a", "b"], "at least one person"),
    (["a", "a"], None, "one group"),
    ([], None, "is empty: there must be people"),
    (np.zeros(5, int), None, "one group"),
    (["a", None], None, "1 values are missing"),
    ([1.0, np.nan], None, "1 values are missing"),
    (np.arange(30), None, "30 different numbers; make groups"),
    (np.linspace(0, 1, 30), None, "30 different numbers"),
    ([f"p{i}" for i in range(200)], None, "more than 127 groups"),
    (np.zeros((2, 2), int), None, "one value per person, or a data frame"),
    (3, None, "one value per person"),
    ([1, "1"], None, "two groups of the same name|makes no groups"),
    (pd.Series([[1], [2]]), None, "makes no groups"),
    (pd.DataFrame([["a", "b"], ["b", "a"]], columns=["s", "s"]), None, "distinct names"),
    (pd.DataFrame(index=[0, 1]), None, "must have columns"),
])  # fmt: skip
def test_groups_that_make_no_sense_are_refused(sensitive, groups, said):
    with pytest.raises(InputError, match=said):
        Curator(sensitive, groups)


def test_the_relation_is_that_of_the_ledger():
    ledger = Ledger(1.0, neighbours="add-remove")
    curator = Curator([0, 1], ["a", "b"], ledger=ledger)
    assert curator.neighbours == "add-remove"
    curator.histogram([0, 0], 1, epsilon=0.5, mechanism=Silent())
    assert Silent.seen[1] == fpbench.privacy.COUNT_SENSITIVITY["add-remove"]
    assert ledger.entries[0].guarantee.neighbours == "add-remove"
    assert Curator([0, 1], ["a", "b"], neighbours="add-remove").neighbours == "add-remove"
    with pytest.raises(InputError, match="the ledger is for neighbours = 'add-remove'"):
        Curator([0, 1], ["a", "b"], ledger=ledger, neighbours="attribute")
    with pytest.raises(InputError, match="did you mean 'add-remove'"):
        Curator([0, 1], ["a", "b"], neighbours="add_remove")


@settings(max_examples=5)
@given(st.integers(1, 60))
def test_threads_cannot_overspend_by_one_query(budget):
    curator = Curator([0, 1] * 20, ["a", "b"], ledger=Ledger(budget / 100))

    def ask(_):
        try:
            curator.histogram([0] * 40, 1, epsilon=0.01, mechanism=DISCRETE)
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(budget + 20))) == budget
    assert curator.remaining.epsilon == 0
