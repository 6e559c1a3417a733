"""The nearest valid name, and values as messages show them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.arguments import show_value
from fpbench.base.errors import find_near_name, suggest_name


@pytest.mark.parametrize(("name", "valid", "said"), [
    ("exect", ["exact", "ip"], "did you mean 'exact'?"),
    ("sex", ["SEX", "AGE", "PAY_0"], "did you mean 'SEX'?"),
    ("EXACT", ["exact", "ip"], "did you mean 'exact'?"),
    ("Age", ["AGE", "age"], "did you mean 'age'?"),
    ("zzz", ["b", "a"], "valid: a, b"),
    (b'exact', ["ip", "exact"], "valid: exact, ip"),
    (None, ["ip"], "valid: ip"),
    ("x", [], "there is nothing to choose from"),
])  # fmt: skip
def test_a_name_is_suggested_whatever_its_case(name, valid, said):
    assert suggest_name(name, valid) == said


@pytest.mark.parametrize(("value", "shown"), [
    (np.int64(474), "474"),
    ([np.float64(0.5), np.str_("a"), np.True_], "[0.5, 'a', True]"),
    ({"a": np.int8(1)}, "{'a': 1}"),
    ("a\nb", r"'a\nb'"),
    (np.arange(3), "array([0, 1, 2])"),
], ids=str)  # fmt: skip
def test_a_value_is_shown_as_one_writes_it(value, shown):
    assert show_value(value) == shown
    assert show_value(10**5000) == "an int of thousands of digits"


METRICS = ["hit-rate", "miss-rate", "selection-rate", "tpr", "fpr", "recall", "true-positive-rate"]


@pytest.mark.parametrize(("name", "valid", "near"), [
    # Letters alike, and another meaning.
    ("hire-rate", METRICS, None), ("hiring-rate", METRICS, None), ("impact-ratio", METRICS, None),
    ("pass-rate", METRICS, None), ("success-rate", METRICS, None), ("ppr", METRICS, None),
    ("prediction", ["education", "age"], None), ("seeds", ["use", "label"], None),
    ("fpbench-nope", ["fpbench-my-forest"], None), ("", ["a"], None), ("list", ["plugins"], None),
    # Slips of the pen.
    ("selecton-rate", METRICS, "selection-rate"), ("Selection_Rate", METRICS, "selection-rate"),
    ("trp", METRICS, "tpr"), ("TPR", METRICS, "tpr"), ("recal", METRICS, "recall"),
    ("truepositiverate", METRICS, "true-positive-rate"), ("row", ["rows", "seed"], "rows"),
    ("swep", ["sweep"], "sweep"), ("plian", ["plain", "pate"], "plain"),
    ("defense", ["defences", "attacks"], "defences"), ("lerner", ["learner"], "learner"),
    # Other words, and part of a name.
    ("gender", ["sex", "age"], "sex"), ("attack", ["adversary", "auditor"], "adversary"),
    ("gradient", ["exponentiated-gradient", "plain"], "exponentiated-gradient"),
    ("rate", METRICS, None), ("DecisionTree", ["DecisionTreeClassifier", "DecisionTreeRegressor"], None),
    ("Age", ["AGE", "age"], "age"), ("equal-odds", ["equalized-odds", "equal-opportunity"], "equalized-odds"),
    ("plane", ["pate", "plain"], "plain"),
])  # fmt: skip
def test_a_name_is_suggested_where_the_meaning_agrees(name, valid, near):
    assert find_near_name(name, valid) == near


@given(st.text("abcdefgh-", min_size=4, max_size=12), st.integers(0, 11), st.data())
def test_one_slip_in_a_word_of_four_letters_is_found(name, place, data):
    words = name.split("-")
    letter = data.draw(st.sampled_from("xyz"))
    place %= len(name)
    slipped = name[:place] + letter + name[place + 1 :]
    if name[place] != "-" and all(len(word) > 3 for word in words):
        assert find_near_name(slipped, [name, "unlike-any-other"]) == name
