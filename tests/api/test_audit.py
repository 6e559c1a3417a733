"""fpbench.audit: what it takes, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench import InputError, component
from fpbench.errors import BudgetError
from fpbench.models import RuleList, Rules
from fpbench.privacy import Curator, Ledger

N = 1200
RNG = np.random.default_rng(3)
SEX = RNG.choice(["woman", "man"], N)
ORIGIN = RNG.choice(["here", "there"], N)
X = RNG.normal(size=(N, 3)) + 0.4 * (SEX == "man")[:, None]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(np.int8)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)


def ratio(predictions, groups=SEX):
    rates = pd.Series(predictions).groupby(np.asarray(groups)).mean()
    return float(rates.min() / rates.max())


def near(release, value):
    """With an epsilon this large there is next to no noise."""
    assert release.values[0] == pytest.approx(value, abs=1e-3)
    assert release.low[0] < value < release.high[0]


@pytest.mark.parametrize("mode", [{}, {"mode": "reference"}, {"per_rule": True}])
def test_a_tree(mode):
    near(fpbench.audit(TREE, X, SEX, epsilon=1e5, rng=0, **mode), ratio(TREE.predict(X)))


def test_a_tree_of_named_columns_names_them():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(FRAME, Y)
    release = fpbench.audit(tree, FRAME, SEX, epsilon=1e5, per_rule=True, rng=0)
    near(release, ratio(tree.predict(FRAME)))
    assert release.rules["rule"].str.contains(r"\ba [<>]").all()
    assert release.rules["people"].sum() == tree.predict(FRAME).sum()
    assert release.measures["n_rules"] == len(release.rules)


class Own(DecisionTreeClassifier):
    """A tree that has rules of its own: who is where, whatever the tree says of it."""

    @property
    def rules(self):
        return Rules(np.array([1, 0]), ("a is positive", "others"), lambda X: X[:, 0] <= 0)

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("mode", [{}, {"mode": "reference"}, {"per_rule": True}])
def test_a_tree_with_rules_of_its_own_is_what_these_say(mode):
    tree = Own(max_depth=3, random_state=0).fit(X, Y)
    release = fpbench.audit(tree, X, SEX, epsilon=1e5, rng=0, **mode)
    near(release, ratio(tree.predict(X)))
    if mode.get("per_rule"):
        assert release.rules["rule"].tolist() == ["a is positive"]


def test_what_is_called_rules_and_is_none():
    tree = Own(max_depth=3, random_state=0).fit(X, Y)
    tree.__class__ = type("Words", (Own,), {"rules": ["be good"]})
    near(fpbench.audit(tree, X, SEX, epsilon=1e5, rng=0), ratio(tree.predict(X)))
    with pytest.raises(InputError, match="needs rules, but the model has none"):
        fpbench.audit(tree, X, SEX, epsilon=1.0, mode="reference")


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
        LogisticRegression().fit(X, Y == 1),
        LogisticRegression().fit(X, Y.astype(float)),
    ],
)
def test_any_classifier(model):
    near(fpbench.audit(model, X, SEX, epsilon=1e5, rng=0), ratio(model.predict(X)))
    with pytest.raises(InputError, match="needs rules, but the model has none"):
        fpbench.audit(model, X, SEX, epsilon=1.0, mode="reference")


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
@pytest.mark.parametrize("dtype", [bool, int, float, np.uint8])
def test_predictions_themselves(kind, dtype):
    given = kind(Y.astype(dtype).tolist())
    near(fpbench.audit(given, None, SEX, epsilon=1e5, rng=0), ratio(Y))


def test_a_rule_list():
    model = RuleList([([("a", ">", 0.5)], 1), ([("b", ">", 1.0)], 1)], default=0)
    for mode in ({}, {"mode": "reference"}, {"per_rule": True}):
        near(
            fpbench.audit(model, FRAME, SEX, epsilon=1e5, rng=0, **mode),
            ratio(model.predict(FRAME)),
        )


@pytest.mark.slow
def test_models_of_our_learners():
    table = fpbench.table(FRAME.assign(y=Y, sex=SEX), label="y", sensitive="sex")
    sample, rng = table.sample(), np.random.default_rng(0)
    for name in ("plain", "decision-tree", "exponentiated-gradient"):
        model = component("learner", name).fit(sample, rng)
        release = fpbench.audit(model, sample.features, SEX, epsilon=5.0, rng=0)
        assert 0.3 < release.values[0] <= 1
        if name != "exponentiated-gradient":
            predicted = model.predict(sample.features, rng)
            release = fpbench.audit(
                model, sample.features, SEX, epsilon=1e6, mode="reference", rng=0,
                policy="0/uniform",  # the paper's policy says n / K of a group without members
            )  # fmt: skip
            near(release, ratio(predicted))


def test_sensitive_attributes_of_every_kind():
    both = pd.DataFrame({"sex": SEX, "origin": ORIGIN})
    crossed = ratio(Y, both["sex"] + both["origin"])
    near(fpbench.audit(Y, None, both, epsilon=1e5, rng=0), crossed)
    release = fpbench.audit(TREE, X, both, epsilon=1e5, per_rule=True, rng=0)
    assert {"man x here", "rate of woman x there"} <= set(release.rules)
    for given in (pd.Series(SEX), list(SEX), pd.Categorical(SEX), SEX == "man"):
        near(fpbench.audit(Y, None, given, epsilon=1e5, rng=0), ratio(Y))


def test_labels():
    for metric, label in (("equal-opportunity", 1), ("predictive-equality", 0)):
        predicted = TREE.predict(X)
        found = fpbench.audit(TREE, X, SEX, labels=Y, metric=metric, epsilon=1e5, rng=0)
        near(found, ratio(predicted[label == Y], SEX[label == Y]))
        with pytest.raises(
            InputError, match=f"labels: are missing, but metric '{metric}' needs labels"
        ):
            fpbench.audit(TREE, X, SEX, metric=metric, epsilon=1.0)


def test_mechanisms_and_policies_in_every_spelling():
    for mechanism in (
        "gaussian",
        {"use": "gaussian", "delta": 1e-6},
        component("mechanism", "gaussian"),
    ):
        release = fpbench.audit(Y, None, SEX, epsilon=1.0, mechanism=mechanism)
        assert release.guarantee.delta > 0
    for policy in ("clip", {"use": "clip"}, component("policy", "clip")):
        one = fpbench.audit(Y, None, SEX, epsilon=0.01, policy=policy, rng=4, repetitions=5)
        two = fpbench.audit(Y, None, SEX, epsilon=0.01, policy="clip", rng=4, repetitions=5)
        assert (one.values == two.values).all()
        assert (one.values != fpbench.audit(Y, None, SEX, epsilon=0.01, rng=4).values[0]).any()


def test_a_curator_is_asked_and_paid():
    curator = Curator(SEX, ledger=Ledger(1.0, neighbours="add-remove"), rng=0)
    release = fpbench.audit(TREE, X, curator, epsilon=0.4)
    assert release.guarantee.neighbours == "add-remove"
    assert curator.remaining.epsilon == pytest.approx(0.6)
    with pytest.raises(BudgetError):
        fpbench.audit(TREE, X, curator, epsilon=0.4, repetitions=2)
    with pytest.raises(InputError, match="the curator's are 'add-remove', not 'attribute'"):
        fpbench.audit(TREE, X, curator, epsilon=0.1, neighbours="attribute")
    release = fpbench.audit(TREE, X, SEX, epsilon=0.1, neighbours="add-remove")
    assert release.guarantee.neighbours == "add-remove"


def test_the_same_seed_says_the_same():
    first, again, other = (
        fpbench.audit(TREE, X, SEX, epsilon=0.1, repetitions=3, rng=seed) for seed in (1, 1, 2)
    )
    assert (first.values == again.values).all()
    assert (first.high == again.high).all()
    assert (first.values != other.values).any()


@pytest.mark.parametrize(("change", "message"), [
    ({"epsilon": 0}, "audit: epsilon: input should be greater than or equal to 0.000000001"),
    ({"epsilon": -1.0}, "audit: epsilon: .* 0.000000001, not -1"),
    ({"epsilon": np.float64("nan")}, "audit: epsilon"),
    ({"epsilon": "much"}, "audit: epsilon: input should be a valid number, not 'much'"),
    ({"mode": "refernce"}, "audit: mode: .* not 'refernce'; did you mean 'reference'"),
    ({"metric": "parity"}, "unknown metric 'parity'; did you mean 'statistical-parity'"),
    ({"repetitions": 0}, "audit: repetitions"),
    ({"confidence": 95}, "audit: confidence"),
    ({"mechanism": "laplac"}, "did you mean 'laplace'"),
    ({"mechanism": {"use": "gaussian", "delta": 2.0}}, "mechanism 'gaussian': delta"),
    ({"mechanism": {"delta": 0.1}}, 'mechanism: a table needs use = "NAME"'),
    ({"mechanism": component("policy", "clip")}, "mechanism: must be a name or a mechanism"),
    ({"policy": "uniform"}, "unknown policy 'uniform'; valid: "),
    ({"policy": 3}, "policy: must be a name or a policy, not 3"),
    ({"groups": SEX[:-1]}, "groups: has 1199 people, but the model predicts for 1200"),
    ({"groups": ["man"] * N}, "one group"),
    ({"neighbours": "friends"}, "neighbours"),
    ({"X": None}, "X: is missing"),
    ({"model": Y[:-1]}, "X: has 1200 rows, and there are 1199 predictions"),
    ({"model": Y + 1}, "model .*: must be 0 or 1, not 2"),
    ({"model": Y + 0.5}, "must be 0 or 1, not"),
    ({"model": ["a"] * N}, "must be 0 or 1, not .*'a'"),
    ({"model": np.stack([Y, Y])}, "must have one dimension, one value a person, not"),
    ({"model": [], "X": None}, "is empty"),
    ({"model": "logistic"}, "model: 'logistic' has no predict; give a fitted model"),
    ({"labels": Y[:5], "metric": "equalized-odds"}, "labels: has 5 values, but X has 1200"),
    ({"labels": Y - 1, "metric": "equalized-odds"}, "labels: must be 0 or 1, not -1"),
    ({"model": LogisticRegression().fit(X, SEX)}, "predictions of the model: must be 0 or 1"),
    ({"model": DecisionTreeClassifier().fit(X, SEX)}, "labels of the tree: must be 0 or 1, not"),
])  # fmt: skip
def test_what_is_refused(change, message):
    given = {"model": TREE, "X": X, "groups": SEX, "epsilon": 1.0, **change}
    with pytest.raises(InputError, match=message):
        fpbench.audit(**given)
