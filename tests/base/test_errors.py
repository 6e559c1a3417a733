"""The nearest valid name, and values as messages show them."""

import numpy as np
import pytest

from fpbench.base.arguments import show_value
from fpbench.base.errors import suggest_name


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
