"""The estimator: scikit-learn's conventions, declared values, and what it refuses."""

import math
import pickle
import re
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import fpbench
from fpbench import Guarantee, InputError, component
from fpbench.builtin import PrivateTreeClassifier
from fpbench.data import Domain
from fpbench.errors import DataError

DOMAIN = {"age": [0, 100], "job": ["clerk", "farmer", "none"], "hours": [0, 80]}


class DomainParameter(PrivateTreeClassifier):
    """Declares the labels of the checks' data sets, which are of many kinds, for each of them."""

    def _encode_labels(self, y, n):
        given, labels = self.classes, np.unique(np.asarray(y).ravel())
        try:
            if len(labels) == 2:
                self.classes = tuple(labels.tolist())
            return super()._encode_labels(y, n)
        finally:
            self.classes = given


CHECKED = [
    DomainParameter(bounds=(-10, 10), epsilon=math.inf, random_state=0),
    DomainParameter(bounds=(-10, 10), random_state=0),
    DomainParameter(bounds=(-10, 10), similarity="grid", tau=0.01, random_state=0),
    DomainParameter(bounds=(-10, 10), similarity="ball", tau=0.01, random_state=0),
]
CHECKS = [case for estimator in CHECKED for case in estimator_checks_generator(estimator)]


@pytest.mark.quick_cases(56)
@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[f"{c.func.__name__}-{e.similarity}-{e.epsilon}" for e, c in CHECKS],
)
def test_scikit_learn_conventions(estimator, check):
    """All of them; none is expected to fail. Bounds and labels are declared, as they must be."""
    try:
        check(estimator)
    except SkipTest as reason:  # what is not installed here is not checked
        pytest.skip(str(reason))


def numbers(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 3))
    return X, (X[:, 0] + 0.2 * rng.normal(size=n) > 0.5).astype(int)


def frame(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    job = pd.Categorical.from_codes(rng.integers(0, 3, n), DOMAIN["job"])
    X = pd.DataFrame({"age": rng.integers(0, 101, n), "job": job, "hours": rng.uniform(0, 80, n)})
    return X, ((X["age"] > 50) & (X["job"] != "none")).to_numpy().astype(int)


def test_it_learns_and_its_guarantee_is_there():
    X, y = numbers()
    tree = PrivateTreeClassifier(bounds=(0, 1), max_depth=3, random_state=0)
    assert tree.fit(X, y) is tree
    assert tree.score(X, y) > 0.8
    assert tree.guarantee_.epsilon == 1.0
    assert (tree.guarantee_.delta, tree.guarantee_.neighbours) == (0.0, "add-remove")
    assert isinstance(tree.guarantee_, Guarantee)
    assert tree.set_params(epsilon=math.inf).fit(X, y).guarantee_ is None
    assert cross_val_score(tree, X, y).mean() > 0.8


def test_a_frame_is_one_hot_within_its_domain():
    X, y = frame()
    for domain in (DOMAIN, Domain.of(DOMAIN)):
        tree = PrivateTreeClassifier(domain=domain, max_depth=3, epsilon=20.0, random_state=0)
        tree.fit(X, y)
        assert tree.score(X, y) > 0.97
    assert tree.feature_names_in_.tolist() == ["age", "job", "hours"]
    assert tree.n_features_in_ == 3
    assert any("job = none" in text for text in tree.rules.texts)
    assert (tree.rules.predict(X) == tree.predict(X)).all()
    # Values beyond the domain are as those at its ends, or missing.
    odd = X.head(2).assign(age=[-50, 1000], job=pd.Categorical(["none", "pilot"]))
    near = X.head(2).assign(age=[0, 100], job=pd.Categorical(["none", None], DOMAIN["job"]))
    assert (tree.predict_proba(odd) == tree.predict_proba(near)).all()
    with pytest.raises(InputError, match="X has features job, age, hours, and the tree was fitted"):
        tree.predict(X[["job", "age", "hours"]])


def test_words_are_categories_if_declared_so():
    X, y = frame()
    tree = PrivateTreeClassifier(domain=DOMAIN, max_depth=3, random_state=0).fit(X, y)
    words = X.assign(job=X["job"].astype(object))
    again = clone(tree).fit(words, y)
    assert (again.predict_proba(words) == tree.predict_proba(X)).all()
    assert (
        again.predict_proba(X.assign(job="pilot")) == again.predict_proba(X.assign(job=None))
    ).all()
    with pytest.raises(InputError, match="the feature 'hours' is object, not numbers; declare all"):
        tree.fit(X.assign(hours=X["hours"].astype(object)), y)


def test_rules_of_a_frame_whose_categories_are_not_all_or_in_another_order():
    X, y = frame()
    tree = PrivateTreeClassifier(domain=DOMAIN, epsilon=20.0, random_state=0).fit(X, y)
    few = X[X["job"] != "farmer"].copy()
    few["job"] = few["job"].cat.set_categories(["none", "clerk"])
    assert (tree.rules.predict(few) == tree.predict(few)).all()
    report = fpbench.auditing.individual_fairness(tree, few, tau=0.03, domain=DOMAIN)
    assert report is not None


def test_audits_read_its_rules():
    (X, y), group = frame(), np.random.default_rng(1).integers(0, 2, 2000)
    matrix = X[["age", "hours"]].to_numpy(np.float32)
    given = {"max_depth": 3, "epsilon": 20.0, "random_state": 0}
    of_frame = PrivateTreeClassifier(domain=DOMAIN, **given).fit(X, y)
    of_array = PrivateTreeClassifier(bounds=(0, [100, 80]), **given).fit(matrix, y)
    for tree, people in ((of_frame, X), (of_array, matrix)):
        for mode in ("partition", "reference"):
            curator = fpbench.privacy.Curator(group, ("a", "b"), rng=0)
            found = fpbench.audit(tree, people, curator, epsilon=1e6, mode=mode, rng=0)
            said = tree.predict(people)
            rates = [said[group == g].mean() for g in (0, 1)]
            assert found.values[0] == pytest.approx(min(rates) / max(rates), abs=1e-3)


def test_rules_of_arrays():
    X, y = numbers()
    tree = PrivateTreeClassifier(bounds=(0, 1), max_depth=3, random_state=0).fit(X, y)
    assert any(re.search(r"x0 <= 0\.\d", text) for text in tree.rules.texts)
    assert (tree.rules.predict(np.float32(X)) == tree.predict(X)).all()
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    tree.fit(named, y)
    assert tree.feature_names_in_.tolist() == ["a", "b", "c"]
    assert "a <= 0." in " ".join(tree.rules.texts)
    assert (tree.rules.predict(named) == tree.predict(named)).all()
    other = PrivateTreeClassifier(bounds=(0, 1), classes=("no", "yes")).fit(
        X, np.where(y, "yes", "no")
    )
    assert set(other.predict(X)) <= {"no", "yes"}
    with pytest.raises(InputError, match="must predict 0 or 1"):
        _ = other.rules


def test_rules_see_numbers_as_the_tree_does():
    """In single precision: a little above a threshold may be on it."""
    X, y = numbers()
    tree = PrivateTreeClassifier(bounds=(0, 1), thresholds=9, epsilon=math.inf).fit(X, y)
    near = np.repeat(np.nextafter(np.arange(1, 10) / 10, 2)[:, None], 3, axis=1)
    assert (tree.rules.predict(near) == tree.predict(near)).all()
    fpbench.auditing.individual_fairness(
        tree, near, tau=0.1, domain={f"x{i}": [0, 1] for i in range(3)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("classes", [(1, 0), (True, False), (1.0, 0.0)])
def test_rules_of_labels_in_another_order(classes):
    X, y = numbers()
    people = pd.DataFrame(X, columns=["a", "b", "c"])
    for given in ({"bounds": (0, 1)}, {"domain": {name: [0, 1] for name in people}}):
        tree = PrivateTreeClassifier(**given, classes=classes, random_state=0).fit(people, y == 1)
        assert (tree.rules.predict(people) == tree.predict(people)).all()
        assert tree.score(people, y == 1) > 0.8
        report = fpbench.auditing.individual_fairness(tree, people, tau=0.01)
        assert (report.certified_consistency <= report.pair_consistency).all()


def test_declared_labels_decide_what_is_what():
    X, y = numbers()
    tree = PrivateTreeClassifier(bounds=(0, 1), random_state=0)
    proba = tree.fit(X, y).predict_proba(X)
    turned = clone(tree).set_params(classes=(1, 0)).fit(X, 1 - y)
    assert turned.classes_.tolist() == [1, 0]
    assert (turned.predict_proba(X) == proba).all()
    # One label only is learnt as it is.
    assert (clone(tree).fit(X, np.ones(2000)).predict(X) == 1).mean() > 0.9


@pytest.mark.parametrize("state", [0, np.int64(0), None])
def test_random_states(state):
    X, y = numbers(300)
    tree = PrivateTreeClassifier(bounds=(0, 1), random_state=state)
    one, other = (clone(tree).fit(X, y).predict_proba(X) for _ in range(2))
    assert (one == other).all() == (state is not None)


def test_generators_and_old_random_states():
    X, y = numbers(300)
    for make in (np.random.default_rng, np.random.RandomState):
        one, other = (
            PrivateTreeClassifier(bounds=(0, 1), random_state=make(3)).fit(X, y) for _ in range(2)
        )
        assert (one.predict_proba(X) == other.predict_proba(X)).all()
        assert (one.fit(X, y).predict_proba(X) != other.predict_proba(X)).any()


def test_a_pickled_tree_says_the_same_and_holds_nobody():
    X, y = frame(1777)
    tree = PrivateTreeClassifier(domain=DOMAIN, random_state=0).fit(X, y)
    travelled = pickle.loads(pickle.dumps(tree))
    assert (travelled.predict_proba(X) == tree.predict_proba(X)).all()
    assert len(pickle.dumps(tree)) < 40_000


def test_cells():
    X, y = frame()
    tree = PrivateTreeClassifier(domain=DOMAIN, similarity="grid", tau=0.1, random_state=0).fit(
        X, y
    )
    cells = tree.cells(X)
    assert cells.shape == (2000, 3)
    assert (cells[:, 0] == np.maximum(np.ceil(X["age"] / 10) - 1, 0)).all()  # numbers come first
    _, cell = np.unique(cells, axis=0, return_inverse=True)
    leaves = pd.Series(tree.apply(X)).groupby(cell.ravel())
    assert (leaves.nunique() == 1).all()
    with pytest.raises(InputError, match="cells exist only"):
        PrivateTreeClassifier(domain=DOMAIN, random_state=0).fit(X, y).cells(X)
    with pytest.raises(NotFittedError):
        PrivateTreeClassifier(domain=DOMAIN, similarity="grid", tau=0.1).cells(X)


def test_a_mechanism_for_the_leaves():
    X, y = numbers(400)
    tree = PrivateTreeClassifier(
        bounds=(0, 1), mechanism=component("mechanism", "gaussian", delta=1e-6), random_state=0
    ).fit(X, y)
    assert tree.guarantee_.delta == 1e-6


@pytest.mark.parametrize(("parameters", "says"), [
    ({}, "does not read the values that features may have off the data"),
    ({"bounds": (1, 0)}, "bounds must be (low, high)"),
    ({"bounds": (0, math.inf)}, "bounds must be (low, high)"),
    ({"bounds": ([0, 0], 1)}, "one for each of the 3 features"),
    ({"bounds": 3}, "bounds must be (low, high)"),
    ({"bounds": (0, 1), "domain": DOMAIN}, "and not both"),
    ({"domain": DOMAIN}, "with a domain, X must be a DataFrame, not ndarray"),
    ({"bounds": (0, 1), "classes": (0, 0)}, "classes must be two different labels"),
    ({"bounds": (0, 1), "classes": ("no", "yes")},
     "Only binary classification is supported: y has"),
    ({"bounds": (0, 1), "most_people": 100}, "there are 2,000 people, and most_people = 100"),
    ({"bounds": (0, 1), "classes": ((0,), (1, 2))}, "classes must be two different labels"),
    ({"bounds": (0, 1), "epsilon": "1"}, "epsilon must be a number, not '1'"),
    ({"bounds": (0, 1), "mechanism": "laplace"},
     "mechanism must be a component, component(\"mechanism\", \"NAME\"), not 'laplace'"),
    ({"bounds": (0, 1), "random_state": "x"}, "random_state must be a seed, a numpy.random."),
    ({"bounds": (0, 1e+300)}, "0 to 1e+300 is beyond the numbers of single precision"),
])  # fmt: skip
def test_it_refuses(parameters, says):
    X, y = numbers()
    with pytest.raises(InputError, match=re.escape(says)):
        PrivateTreeClassifier(**parameters).fit(X, y)


def test_it_refuses_a_frame_of_which_too_little_is_declared():
    X, y = frame(50)
    with pytest.raises(
        InputError, match=re.escape('domain = { job = ["...", "..."], hours = [low, high] }')
    ):
        PrivateTreeClassifier(domain={"age": [0, 100]}).fit(X, y)
    with pytest.raises(DataError, match="'hours' has missing values"):
        PrivateTreeClassifier(domain=DOMAIN).fit(X.assign(hours=np.nan), y)
    with pytest.raises(InputError, match="at least one person"):
        PrivateTreeClassifier(domain=DOMAIN).fit(X.head(0), y[:0])
    with pytest.raises(InputError, match="y has 49 labels, and X 50 people"):
        PrivateTreeClassifier(domain=DOMAIN).fit(X, y[:49])
    with pytest.raises(InputError, match="domain: must be lists by feature"):
        PrivateTreeClassifier(domain=["age"]).fit(X, y)
    with pytest.raises(InputError, match="'age' is int64, but categories are declared"):
        PrivateTreeClassifier(domain=DOMAIN | {"age": ["1", "2"]}).fit(X, y)


def test_names_of_columns_that_are_numbers():
    X, y = numbers()
    domain = {"0": [0, 1], "1": [0, 1], "2": [0, 1], "3": ["a"]}
    frame = pd.DataFrame(X).assign(**{"3": "a"}).set_axis(range(4), axis=1)
    tree = PrivateTreeClassifier(domain=domain, epsilon=math.inf).fit(frame, y)
    plain = PrivateTreeClassifier(bounds=(0, 1), epsilon=math.inf).fit(X, y)
    assert (tree.predict(frame) == plain.predict(X)).all()
    assert frame[3].tolist() == ["a"] * len(frame)


def test_a_tree_of_one_feature():
    X, y = numbers()
    tree = PrivateTreeClassifier(bounds=(0, 1), thresholds=1, epsilon=math.inf).fit(X[:, :1], y)
    assert tree.score(X[:, :1], y) > 0.8
    assert (tree.rules.predict(X[:, :1]) == tree.predict(X[:, :1])).all()
