"""The unfair twin of each learner."""

import fpbench
from fpbench import Learner
from fpbench.builtin.learners.decision_tree import DecisionTree
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.private_tree.learners import PrivateFairTree


def test_twins_are_the_same_learner_without_fairness():
    assert Plain().twin() is None
    assert DecisionTree().twin() is None
    tree = PrivateFairTree(epsilon=2.0, max_depth=3).twin()
    assert (tree.name, tree.epsilon, tree.max_depth) == ("private-tree", 2.0, 3)
    for entry in fpbench.plugin.discover():
        if entry.kind == "learner" and entry.source.distribution == "fpbench-toolkit":
            cls = fpbench.plugin.discover().component("learner", entry.name)
            if not any(field.is_required() for field in cls.model_fields.values()):
                twin = cls().twin()
                assert twin is None or (isinstance(twin, Learner) and twin.asked() is None)
