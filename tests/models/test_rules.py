"""Rules partition people, say what they mean, and predict what the classifier predicts."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from fpbench import InputError
from fpbench.models import Clause, RuleList, Rules, encode, encoded_names, tree_rules
from fpbench.models.rules import RuleBased


def grown(seed, n=200, d=4, most=None, depth=None):
    """Whole-numbered features, and a tree."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 6, (n, d)).astype(np.float32)
    labels = (features[:, 0] + rng.integers(0, 6, n) > 5).astype(np.int8)
    tree = DecisionTreeClassifier(max_depth=depth, max_leaf_nodes=most, random_state=seed)
    return tree.fit(features, labels), features


def holds(text, frame):
    """Of whom the text of a rule is true: it can be read by a machine too."""
    found = np.ones(len(frame), dtype=bool)
    for clause in [] if text == "everyone" else text.split(" and "):
        words = clause.split()
        if words[1] == "<":  # 1.5 < x <= 3.5
            found &= Clause(words[2], ">", float(words[0])).holds(frame)
            words = words[2:]
        if "in" in words[1:3]:
            test, rest = clause.partition(" ")[2].split(" {")
            found &= Clause(words[0], test, rest.rstrip("}").split(", ")).holds(frame)
        elif words[1] in ("=", "!="):
            found &= Clause(words[0], words[1], words[2]).holds(frame)
        else:
            found &= Clause(words[0], words[1], float(words[2])).holds(frame)
    return found


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(2, 30))
def test_rules_of_a_tree(seed, depth, most):
    tree, features = grown(seed, most=most, depth=depth)
    rules, frame = tree_rules(tree), pd.DataFrame(features, columns=["x0", "x1", "x2", "x3"])
    codes = rules.apply(features)
    predicted = tree.predict(features)
    assert (rules.labels.take(codes) == predicted).all()
    assert (rules.predict(features) == predicted).all()
    # Everyone meets exactly one rule, the one that says so.
    said = np.array([holds(text, frame) for text in rules.texts])
    assert (said == (codes == np.arange(len(rules))[:, None])).all()
    # Pruning loses no prediction and leaves no more rules than theorem 1 allows.
    assert rules.n_favourable <= rules.unpruned
    assert rules.height <= tree.get_depth()
    if 0 < rules.n_favourable < len(rules):
        assert 2 <= rules.n_favourable + 1 <= rules.most_queries == 2 ** (rules.height - 1) + 1
    # It is as pruned as can be: below no split one label only is predicted.
    assert len(rules) == 1 or {0, 1} <= set(rules.labels.tolist())


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(["one-hot", "ordinal"]))
def test_rules_name_categories(seed, encoding):
    rng = np.random.default_rng(seed)
    n = 150
    frame = pd.DataFrame(
        {
            "job": pd.Categorical.from_codes(rng.integers(0, 5, n), list("abcde")),
            "age": rng.integers(18, 30, n),
            "sex": pd.Categorical.from_codes(rng.integers(0, 2, n), ["f", "m"]),
        }
    )
    labels = (frame["age"].to_numpy() + 3 * frame["job"].cat.codes + rng.integers(0, 6, n)) > 32
    matrix, columns = encode(frame, encoding), encoded_names(frame, encoding)
    assert len(columns) == matrix.shape[1]
    tree = DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(matrix, labels)
    rules = tree_rules(tree, columns, encoding)
    codes = rules.apply(frame)
    assert (rules.predict(frame) == tree.predict(matrix)).all()
    said = np.array([holds(text, frame) for text in rules.texts])
    assert (said == (codes == np.arange(len(rules))[:, None])).all()


def test_the_names_of_encoded_columns():
    frame = pd.DataFrame({"c": pd.Categorical(["u", "v"]), "x": [1.0, 2.0]})
    assert [(c.feature, c.category) for c in encoded_names(frame)] == [
        ("x", None),
        ("c", "u"),
        ("c", "v"),
    ]
    assert encoded_names(frame, "ordinal")[1].categories == ("u", "v")
    tree = DecisionTreeClassifier().fit(encode(frame), [0, 1])
    assert set(tree_rules(tree, encoded_names(frame), "one-hot").texts) <= {
        "x <= 1.5", "x > 1.5", "c = u", "c != u", "c = v", "c != v",
    }  # fmt: skip


def test_a_constant_tree_is_one_rule():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [1, 1])
    rules = tree_rules(tree)
    assert (rules.texts, rules.labels.tolist(), rules.height) == (("everyone",), [1], 0)
    assert rules.n_favourable == 1


def test_a_full_tree_reaches_the_bound():
    features = np.arange(16.0)[:, None]
    tree = DecisionTreeClassifier(random_state=0).fit(features, np.arange(16) % 2)
    rules = tree_rules(tree)
    assert rules.n_favourable == 8
    assert rules.n_favourable + 1 <= rules.most_queries


def test_extra_trees_and_boolean_labels():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(100, 3))
    tree = ExtraTreeClassifier(random_state=0, max_depth=4).fit(features, features[:, 0] > 0)
    assert (tree_rules(tree).predict(features) == tree.predict(features)).all()


def test_trees_of_other_labels_are_refused():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    with pytest.raises(
        InputError, match="labels of the tree: must be 0 or 1.*say which counts as 1"
    ):
        tree_rules(tree)
    both = DecisionTreeClassifier().fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    with pytest.raises(InputError, match="must predict one label"):
        tree_rules(both)


def test_rules_travel():
    tree, features = grown(3, most=8)
    rules = tree_rules(tree)
    again = pickle.loads(pickle.dumps(rules))
    assert (again.apply(features) == rules.apply(features)).all()
    assert again.texts == rules.texts


@pytest.mark.parametrize(
    ("labels", "texts", "height", "message"),
    [
        ([0, 2], "ab", None, "0 and 1"),
        ([], "", None, "0 and 1"),
        ([0, 1], "abc", None, "3 texts for 2 rules"),
        ([1, 1, 1, 0], "abcd", 2, "at most 2"),
    ],
)
def test_rules_that_are_none(labels, texts, height, message):
    with pytest.raises(InputError, match=message):
        Rules(np.array(labels), tuple(texts), lambda x: x, height)


def test_codes_must_be_of_rules():
    rules = Rules(np.array([0, 1]), ("a", "b"), lambda x: np.full(len(x), 2))
    with pytest.raises(InputError, match=r"0\.\.1"):
        rules.apply([1, 2])
    assert rules.most_queries is None


PEOPLE = pd.DataFrame(
    {"age": [20, 20, 40, 40], "priors": [0, 5, 0, 5], "job": pd.Categorical(list("abca"))}
)


def test_a_rule_list_asks_in_order():
    model = RuleList(
        [([("age", "<", 25), ("priors", ">", 2)], 1), ([Clause("job", "in", ["c"])], 0),
         ([("priors", ">=", 5)], 1)],
        default=0,
    )  # fmt: skip
    assert isinstance(model, RuleBased)
    assert model.rules.texts == (
        "age < 25 and priors > 2",
        "otherwise job in {c}",
        "otherwise priors >= 5",
        "otherwise",
    )
    assert model.rules.apply(PEOPLE).tolist() == [3, 0, 1, 2]
    assert model.predict(PEOPLE).tolist() == [0, 1, 0, 1]
    assert pickle.loads(pickle.dumps(model)).predict(PEOPLE).tolist() == [0, 1, 0, 1]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), max_size=6), st.integers(0, 1))
def test_rule_lists_are_pruned_and_bounded(parts, default):
    model = RuleList([([("x", "<=", value)], label) for value, label in parts], default)
    frame = pd.DataFrame({"x": np.arange(10)})
    slow = [next((label for v, label in parts if x <= v), default) for x in range(10)]
    rules = model.rules
    assert model.predict(frame).tolist() == slow
    assert len(rules) == 1 or rules.labels[-2] != rules.labels[-1]
    assert rules.unpruned == sum(label for _, label in parts) + default
    if len(rules) > 1:
        assert 2 <= rules.n_favourable + 1 <= rules.most_queries


def test_rule_lists_of_nothing():
    model = RuleList([], default=1)
    assert model.rules.texts == ("everyone",)
    assert model.predict(PEOPLE).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (("age", "=<", 3), "unknown test '=<'; did you mean '='"),
        (("age", "in", "abc"), "takes a list"),
        (("age", "in", 3), "takes a list"),
    ],
)
def test_clauses_that_are_none(clause, message):
    with pytest.raises(InputError, match=message):
        RuleList([([clause], 1)], default=0)


def test_features_that_are_not_there():
    with pytest.raises(InputError, match="no feature 'agee'; did you mean 'age'"):
        RuleList([([("agee", "<", 3)], 1)], default=0).predict(PEOPLE)
    with pytest.raises(InputError, match="job < 3"):
        RuleList([([("job", "<", 3)], 1)], default=0).predict(PEOPLE)
    with pytest.raises(InputError, match="0 and 1"):
        RuleList([([("age", "<", 3)], 2)], default=0)
