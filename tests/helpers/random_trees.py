"""Trees that nobody trained: any splits, thresholds and labels, impossible ways among them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from fpbench.models import encode, encoded_names, tree_rules


class AnyTree:
    """A tree as `tree_rules` takes it."""

    def __init__(self, rng, columns, thresholds, depth):
        self.classes_, self.n_features_in_ = np.array([0, 1]), columns
        left, right, feature, threshold, label = [], [], [], [], []

        def grow(level):
            node = len(left)
            for values in (left, right):
                values.append(-1)
            feature.append(-2)
            threshold.append(-2.0)
            label.append(int(rng.integers(2)))
            if level < depth and (level == 0 or rng.random() < 0.8):
                feature[node] = int(rng.integers(columns))
                threshold[node] = float(rng.choice(thresholds(feature[node])))
                left[node] = grow(level + 1)
                right[node] = grow(level + 1)
            return node

        grow(0)
        value = np.eye(2)[label][:, None, :]
        self.tree_ = SimpleNamespace(
            children_left=np.array(left), children_right=np.array(right),
            feature=np.array(feature), threshold=np.array(threshold), value=value,
            node_count=len(left),
        )  # fmt: skip

    def apply(self, X):
        tree, X = self.tree_, np.asarray(X, np.float32)
        node, everyone = np.zeros(len(X), dtype=np.intp), np.arange(len(X))
        while (inner := tree.children_left[node] >= 0).any():
            goes = X[everyone, tree.feature[node]] <= tree.threshold[node]
            below = np.where(goes, tree.children_left[node], tree.children_right[node])
            node = np.where(inner, below, node)
        return node

    def predict(self, X):
        return self.tree_.value[self.apply(X), 0].argmax(axis=1).astype(np.int8)


def crowd(rng, n=12, top=4, step=1.0, missing=True):
    """People with two numbers between 0 and `top`, many of them equal, and two categories."""
    numbers = np.arange(0, top + step, step)
    lowest = -1 if missing else 0
    return pd.DataFrame(
        {
            "a": rng.choice(numbers, n),
            "job": pd.Categorical.from_codes(rng.integers(lowest, 3, n), list("uvw")),
            "b": rng.choice(numbers, n),
            "sex": pd.Categorical.from_codes(rng.integers(0, 2, n), ["f", "m"]),
        }
    )


def any_rules(rng, frame, encoding="one-hot", depth=4):
    """Rules of any tree on these people."""
    columns = encoded_names(frame, encoding)
    codes = np.array([-0.5, 0.5, 0.5, 0.5, 1.5])

    def thresholds(column):
        number = columns[column].category is None and not columns[column].categories
        return np.arange(-0.5, 5, 0.25) if number else codes

    tree = AnyTree(rng, encode(frame, encoding).shape[1], thresholds, depth)
    return tree_rules(tree, columns, encoding)
