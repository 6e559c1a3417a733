"""The nearest valid name."""

import pytest

from fpbench.base.errors import suggest_name


@pytest.mark.parametrize(
    ("name", "valid", "said"),
    [
        ("exect", ["exact", "ip"], "did you mean 'exact'?"),
        ("sex", ["SEX", "AGE", "PAY_0"], "did you mean 'SEX'?"),
        ("EXACT", ["exact", "ip"], "did you mean 'exact'?"),
        ("Age", ["AGE", "age"], "did you mean 'age'?"),
        ("zzz", ["b", "a"], "valid: a, b"),
        (b"exact", ["ip", "exact"], "valid: exact, ip"),
        (None, ["ip"], "valid: ip"),
        ("x", [], "there is nothing to choose from"),
    ],
)
def test_a_name_is_suggested_whatever_its_case(name, valid, said):
    assert suggest_name(name, valid) == said
