import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from fpbench import InputError
from fpbench.data import Attribute, Dropped, Sensitive
from fpbench.data.attributes import describe_attribute, make_groups, parse_sensitive
from fpbench.errors import DataError

numbers = st.lists(st.integers(-50, 50), min_size=2, max_size=60)
words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=60)


def _column(values: list[Any], name: str = "c") -> pd.Series:
    if values and isinstance(values[0], str):
        return pd.Series(pd.Categorical(values, categories=sorted(set(values))), name=name)
    return pd.Series(values, name=name)


def _groups(attribute: Attribute, values: list[Any]) -> list[str] | None:
    """Group of everyone; None if one would have no members."""
    try:
        return list(attribute.group(_column(values), "these data"))
    except DataError as refused:
        return None if "nobody is in group" in str(refused) else pytest.fail(str(refused))


@given(numbers, st.lists(st.integers(-49, 50), min_size=1, max_size=4, unique=True))
def test_cuts_make_intervals(values: list[int], cuts: list[int]) -> None:
    cuts = sorted(cuts)
    attribute = Attribute(column="c", cuts=cuts)
    edges = [-np.inf, *cuts, np.inf]
    expected = [sum(value >= cut for cut in cuts) for value in values]
    found = _groups(attribute, values)
    assert len(attribute.groups) == len(cuts) + 1
    if set(expected) != set(range(len(cuts) + 1)):
        assert found is None
        return
    assert found == [attribute.groups[group] for group in expected]
    for value, group in zip(values, expected, strict=True):
        assert edges[group] <= value < edges[group + 1]


@given(numbers, st.floats(0.01, 0.99))
def test_a_quantile_parts_those_below_it_from_others(values: list[int], q: float) -> None:
    attribute = Attribute(column="c", quantile=q)
    limit = np.quantile(values, q)
    found = _groups(attribute, values)
    if max(values) <= limit:
        assert found is None
    else:
        assert found is not None
        assert [group == attribute.groups[0] for group in found] == [v <= limit for v in values]
        assert found.count(attribute.groups[0]) >= int(q * len(values))


@given(words, st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
def test_one_of_parts_those_who_have_a_value_from_others(
    values: list[str], chosen: list[str]
) -> None:
    attribute = Attribute(column="c", one_of=chosen)
    assert attribute.groups == (" or ".join(chosen), "others")
    if not set(chosen) <= set(values):
        with pytest.raises(DataError, match="holds no"):
            attribute.group(_column(values), "these data")
    elif (found := _groups(attribute, values)) is None:
        assert set(values) == set(chosen)
    else:
        assert [group != "others" for group in found] == [value in chosen for value in values]


@given(st.one_of(words, numbers.map(lambda values: [value % 7 for value in values])))
def test_a_column_without_a_rule_makes_one_group_a_value(values: list[Any]) -> None:
    (found,) = make_groups(["c"], pd.DataFrame({"c": _column(values)}), "").values()
    assert list(found) == [str(value) for value in values]
    assert list(found.categories) == [str(value) for value in sorted(set(values))]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=19))
def test_numbers_that_differ_are_groups_that_differ(values: list[float]) -> None:
    values = [*values, math.nextafter(values[0], 0.0)]
    (found,) = make_groups(["c"], pd.DataFrame({"c": values}), "").values()
    assert [float(name) for name in found] == values


@pytest.mark.parametrize(("rule", "groups"), [
    ({"one_of": ["White"]}, ("White", "others")),
    ({"one_of": "White"}, ("White", "others")),
    ({"one_of": ["A", 2]}, ("A or 2", "others")),
    ({"one_of": ["others"]}, ("others", "all others")),
    ({"one_of": [True]}, ("True", "others")),
    ({"quantile": 0.07}, ("lowest 7 %", "others")),
    ({"cuts": [60]}, ("age < 60", "age >= 60")),
    ({"cuts": 60.5}, ("age < 60.5", "age >= 60.5")),
    ({"cuts": [25, 45]}, ("age < 25", "25 <= age < 45", "age >= 45")),
    ({"cuts": [2500000]}, ("age < 2500000", "age >= 2500000")),
    ({"quantile": 0.25}, ("first quartile", "others")),
    ({"quantile": 0.1}, ("first decile", "others")),
    ({"quantile": 0.3}, ("lowest 30 %", "others")),
])  # fmt: skip
def test_groups_are_named_before_anything_is_loaded(
    rule: dict[str, Any], groups: tuple[str, ...]
) -> None:
    attribute = Attribute(column="age", **rule)
    assert attribute.groups == groups
    assert str(attribute).startswith(f"age: {' | '.join(groups)}")
    assert describe_attribute(attribute) == str(attribute)
    again = Attribute(**json.loads(json.dumps(attribute.model_dump(mode="json"))))
    assert again == attribute
    assert hash(again) == hash(attribute)
    assert set(attribute.model_dump(mode="json")) == {"column", *rule}


def test_numbers_are_named_one_by_one() -> None:
    column = _column([1, 2, 2, 3])
    found = Attribute(column="c", one_of=[2]).group(column, "")
    assert list(found) == ["others", "2", "2", "others"]
    halves = Attribute(column="c", one_of=[1]).group(column.astype(float), "")
    assert list(halves) == ["1", "others", "others", "others"]


@pytest.mark.parametrize(
    ("rule", "values", "says"),
    [
        ({"cuts": [1]}, ["a", "b"], "has no numbers, so cuts cannot make groups of it"),
        ({"quantile": 0.5}, ["a", "b"], "has no numbers, so quantile cannot"),
        ({"one_of": ["bb"]}, ["ab", "bc"], "holds no 'bb'; valid: ab, bc"),
        ({"one_of": [5]}, list(range(60, 99)), "holds no '5'$"),
    ],
)
def test_a_rule_that_does_not_fit_is_one_error(
    rule: dict[str, Any], values: list[Any], says: str
) -> None:
    with pytest.raises(DataError, match=f"^these data: column 'c' {says}"):
        Attribute(column="c", **rule).group(_column(values), "these data")


def test_many_numbers_need_a_rule() -> None:
    frame = pd.DataFrame({"c": np.arange(21)})
    assert len(make_groups(["c"], frame[:20], "")["c"].categories) == 20
    with pytest.raises(DataError, match=r"21 different numbers.*cuts = \[10\].*quantile.*one_of"):
        make_groups(["c"], frame, "")


class _Parameters(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sensitive: Sensitive = ("sex",)
    drop: Dropped = ()


OLD = {"column": "age", "cuts": [60]}


@pytest.mark.parametrize("given", ["sex", ["sex"], ("sex",), OLD, [OLD, "sex"], Attribute(**OLD)])
def test_every_spelling_is_the_same_parameter(given: Any) -> None:
    made = _Parameters(sensitive=given)
    items = given if isinstance(given, list | tuple) else [given]
    assert [str(item) for item in made.sensitive] == [
        str(Attribute(**item)) if isinstance(item, dict) else str(item) for item in items
    ]
    assert _Parameters(**made.model_dump(mode="json")) == made
    assert _Parameters.model_validate_json(made.model_dump_json()) == made
    assert parse_sensitive(given) == made.sensitive
    assert hash(made)


@pytest.mark.parametrize(("given", "says"), [
    ([], "is empty: name a sensitive attribute"),
    (["sex", "sex"], "names column 'sex' twice"),
    (["age", OLD], "names column 'age' twice"),
    (3, "must be a column, a table with a rule, or a list of these"),
    (None, "must be a column"),
    (["sex", 4], "must be a column"),
    ({"column": "age"}, "needs one rule .* has none"),
    ({**OLD, "quantile": 0.5}, "needs one rule .* has 2"),
    ({"cuts": [3]}, "column: Field required"),
    ({"colum": "age", "cuts": [3]}, "unknown key 'colum'; did you mean 'column'?"),
    ({"column": "age", "cut": [3]}, "unknown key 'cut'; did you mean 'cuts'?"),
    ({"column": "age", "cuts": [3, 3]}, "cuts must be increasing numbers"),
    ({"column": "age", "cuts": [float("nan")]}, "cuts must be increasing numbers"),
    ({"column": "age", "cuts": "sixty"}, "cuts: Input should be a valid number"),
    ({"column": "age", "quantile": 1.0}, "quantile: Input should be less than 1"),
    ({"column": "age", "one_of": ["a", "a"]}, "names a value twice"),
    ({"column": "age", "one_of": [[1]]}, "one_of: Input should be"),
])  # fmt: skip
def test_a_wrong_attribute_is_one_error(given: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says) as error:
        _Parameters(sensitive=given)
    assert error.value.error_count() == 1
    with pytest.raises(InputError, match=f"^sensitive: .*{says}"):
        parse_sensitive(given)


@pytest.mark.parametrize("given", [3, None, ["a", 3], ["a", "a"]])
def test_a_wrong_column_is_one_error(given: Any) -> None:
    assert _Parameters(drop="a") == _Parameters(drop=["a"]) == _Parameters(drop=("a",))
    with pytest.raises(ValidationError) as error:
        _Parameters(drop=given)
    assert error.value.error_count() == 1
