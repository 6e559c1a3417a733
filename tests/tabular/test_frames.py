import doctest
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import InputError, Table
from fpbench.data import Attribute
from fpbench.errors import DataError


def _people(n: int = 40) -> pd.DataFrame:
    rows = np.arange(n)
    return pd.DataFrame(
        {
            "sex": np.where(rows % 2, "male", "female"),
            "age": 20 + rows % 30,
            "height": 150 + rows / 7,
            "city": pd.Categorical.from_codes(rows % 3, ["Ulm", "Bonn", "Kiel"]),
            "member": rows % 5 == 0,
            "paid": (rows // 2) % 2,
        }
    )


def _table(frame: pd.DataFrame, **parameters: Any) -> Table:
    return fpbench.table(frame, **{"label": "paid", "sensitive": "sex", **parameters})


def test_a_frame_becomes_a_table() -> None:
    table = _table(_people(), name="people")
    assert table.name == "people"
    assert table.groups == ("female", "male")
    assert table.positive == "paid = 1"
    assert list(table.features) == ["age", "height", "city", "member"]
    assert table.labels.tolist() == [0, 0, 1, 1] * 10
    assert list(table.features["city"].cat.categories) == ["Ulm", "Bonn", "Kiel"]
    assert list(table.features["member"].cat.categories) == ["False", "True"]
    assert table.features["age"].dtype == np.int64
    assert table.features["height"].dtype == np.float64


def test_rules_and_crossing_are_those_of_every_data_set() -> None:
    old = {"column": "age", "cuts": [35]}
    table = _table(_people(), sensitive=[old, "sex"], drop="height")
    assert table.groups == (
        "age < 35 x female", "age < 35 x male", "age >= 35 x female", "age >= 35 x male",
    )  # fmt: skip
    assert list(table.features) == ["city", "member"]
    again = _table(_people(), sensitive=[Attribute(**old), "sex"], drop=["height"])
    assert again.digest() == table.digest()
    assert _table(_people(), sensitive="member").groups == ("False", "True")
    yes = _table(_people(), sensitive={"column": "member", "one_of": [True]})
    assert yes.groups == ("True", "others")


@pytest.mark.parametrize(("values", "positive", "said"), [
    ([0, 1], None, "paid = 1"),
    ([0.0, 1.0], None, "paid = 1"),
    ([False, True], None, "paid = 1"),
    (["false", "true"], None, "paid = 1"),
    (["FALSE", "1"], None, "paid = 1"),
    (["no", "yes"], "yes", "paid = yes"),
    ([7, 8], 8, "paid = 8"),
    ([False, True], True, "paid = True"),
    ([1, 2], 2.0, "paid = 2"),
])  # fmt: skip
def test_labels_of_every_kind(values: list[Any], positive: Any, said: str) -> None:
    frame = _people()
    ones = frame["paid"].to_numpy()
    frame["paid"] = [values[one] for one in ones]
    table = _table(frame, positive=positive)
    assert (table.labels == ones).all()
    assert table.positive == said


def test_one_label_of_many_may_be_the_positive_one() -> None:
    frame = _people().assign(paid=np.arange(40) % 4)
    assert _table(frame, positive=3).labels.tolist() == [0, 0, 0, 1] * 10


@pytest.mark.parametrize("dtype", ["Int32", "Float64", "boolean", "string", "object", "category"])
def test_every_type_of_pandas_is_taken(dtype: str) -> None:
    frame = _people()
    frame["extra"] = (np.arange(40) // 3) % 2
    if dtype in ("string", "object"):
        frame["extra"] = frame["extra"].map({0: "a", 1: "b"})
    frame["extra"] = frame["extra"].astype(dtype)
    column = _table(frame).features["extra"]
    if dtype in ("Int32", "Float64"):
        assert column.dtype in (np.int64, np.float64)
    else:
        assert isinstance(column.dtype, pd.CategoricalDtype)
        assert all(type(category) is str for category in column.cat.categories)


def test_objects_that_are_numbers_stay_numbers() -> None:
    frame = _people()
    frame["extra"] = pd.Series([1, 2.5] * 20, dtype=object)
    frame["mixed"] = pd.Series([1, "b"] * 20, dtype=object)
    features = _table(frame).features
    assert features["extra"].dtype == np.float64
    assert list(features["mixed"].cat.categories) == ["1", "b"]


holes = st.lists(
    st.tuples(st.integers(0, 39), st.sampled_from(["sex", "age", "height", "city", "paid"])),
    max_size=6,
    unique=True,
)


@pytest.mark.slow
@given(holes)
def test_what_is_missing_is_an_error_or_dropped(holes: list[tuple[int, str]]) -> None:
    frame = _people().astype({"sex": object, "age": float, "paid": float})
    for row, column in holes:
        frame.loc[row, column] = None
    if not holes:
        assert len(_table(frame)) == 40
        return
    with pytest.raises(DataError) as error:
        _table(frame)
    for column in {column for _, column in holes}:
        count = sum(column == other for _, other in holes)
        assert f"'{column}' ({count})" in str(error.value)
    whole = sorted(set(range(40)) - {row for row, _ in holes})
    dropped = _table(frame, missing="drop")
    assert len(dropped) == len(whole)
    assert dropped.features["height"].tolist() == frame["height"][whole].tolist()
    assert dropped.codes.tolist() == [row % 2 for row in whole]


def test_what_is_dropped_may_be_missing() -> None:
    frame = _people().assign(notes=None, when=pd.Timestamp("2020-01-01"))
    assert len(_table(frame, drop=["notes", "when"])) == 40


@pytest.mark.parametrize(("change", "parameters", "says"), [
    ({}, {"label": "pai"}, "label: no column 'pai'; did you mean 'paid'?"),
    ({}, {"sensitive": "sx"}, "sensitive: no column 'sx'; did you mean 'sex'?"),
    ({}, {"sensitive": "paid"}, "sensitive: 'paid' is the label"),
    ({}, {"drop": ["citty"]}, "drop: no column 'citty'; did you mean 'city'?"),
    ({}, {"drop": ["sex"]}, "'sex' is sensitive, so it is never a feature"),
    ({}, {"drop": ["age", "height", "city", "member"]}, "no column is left as a feature"),
    ({}, {"missing": "ignore"}, "missing: must be 'error' or 'drop', not 'ignore'"),
    ({}, {"positive": "yes"}, "positive: no label in 'paid' is 'yes'; valid: 0, 1"),
    ({}, {"sensitive": {"column": "age", "cut": 3}}, "unknown key 'cut'; did you mean 'cuts'"),
    ({}, {"sensitive": []}, "is empty: name a sensitive attribute"),
    ({"paid": "yes"}, {}, "label 'paid' must be 0 or 1 and holds 'yes'; say which value"),
    ({"paid": range(40)}, {}, "holds '0', '1', '2', '3', '4', ...; say which value counts"),
    ({"paid": 1}, {}, "label 'paid' is '1' for everyone"),
    ({"paid": "yes"}, {"positive": "yes"}, "label 'paid' is 'yes' for everyone"),
    ({"paid": [1, "true"] * 20}, {}, "label 'paid' is '1', 'true' for everyone"),
    ({"sex": "male"}, {}, "has one group, male"),
    ({"height": np.inf}, {}, "column 'height' holds infinite values"),
    ({"city": pd.Timestamp("2020-01-01")}, {}, "column 'city' holds datetime64"),
    ({"city": [[1]] * 40}, {}, "column 'city' holds list values"),
    ({"city": "Ulm", "age": 3}, {},
     'the same for everyone: \\\'age\\\', \\\'city\\\'; leave them out: drop = \\["age", "city"\\]'),
    ({"city": [f"town {n}" for n in range(40)]}, {}, 'different for everyone.*"city"'),
    ({"age": range(7, 47)}, {"drop": "city"}, 'different.*drop = \\["city", "age"\\]'),
    ({3: 4}, {}, "columns must be named by strings, not 3"),
    (dict.fromkeys(("sex", "age")), {"missing": "drop"},
     r"among 40: nobody has a value of 'sex', 'age'; drop = \[...\] drops columns"),
    ({"age": [2 ** 70 + n for n in range(40)]}, {},
     "'age' holds whole numbers of more than 64 bits"),
    ({}, {"drop": 3}, "drop must be a text or a list"),
    ({}, {"drop": None}, "drop must be a text or a list"),
    ({}, {"drop": ["age", "age"]}, "drop: names column 'age' twice"),
])  # fmt: skip
def test_what_cannot_be_used_is_one_error(
    change: dict[Any, Any], parameters: dict[str, Any], says: str
) -> None:
    frame = _people()
    for name, value in change.items():
        frame[name] = value
    with pytest.raises(InputError, match=says) as error:
        _table(frame, **parameters)
    assert str(error.value).startswith(("data set 'table': ", "drop must be "))  # of another type


@pytest.mark.parametrize("frame", [None, "people.csv", [1, 2], {"sex": ["f"]}, pd.Series([1])])
def test_what_is_no_frame_is_one_error(frame: Any) -> None:
    with pytest.raises(InputError, match="^frame must be a data frame, not "):
        _table(frame)


def test_a_frame_of_nobody_is_one_error() -> None:
    with pytest.raises(DataError, match="data set 'table': holds no row"):
        _table(_people().iloc[:0])


def test_columns_to_drop_may_be_any_iterable() -> None:
    kept = _table(_people(), drop=["age", "city"]).digest()
    assert _table(_people(), drop=iter(["age", "city"])).digest() == kept
    assert _table(_people(), drop=pd.Index(["age", "city"])).digest() == kept


def test_two_columns_of_a_name_are_one_error() -> None:
    frame = _people()
    with pytest.raises(DataError, match="2 columns have the name 'age'"):
        _table(pd.concat([frame, frame[["age"]]], axis=1))


def test_measurements_may_all_differ() -> None:
    frame = _people().assign(height=np.random.default_rng(0).normal(size=40))
    assert "height" in _table(frame).features
    frame["height"] = np.random.default_rng(0).permutation(400)[:40]
    assert "height" in _table(frame).features


def test_the_frame_is_left_as_it_was() -> None:
    frame = _people()
    before = frame.copy()
    _table(frame, sensitive={"column": "age", "quantile": 0.25})
    pd.testing.assert_frame_equal(frame, before)


def test_the_example_in_its_documentation_is_true() -> None:
    assert doctest.testmod(sys.modules["fpbench.tabular.frames"]) == (0, 3)
