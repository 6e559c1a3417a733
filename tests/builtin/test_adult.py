from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from fpbench import Table
from fpbench.builtin.datasets.adult import Adult
from fpbench.data import Attribute
from fpbench.errors import DataError
from fpbench.plugin import DataHome

ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
    "2174, 0, 40, United-States, <=50K"
)
WOMAN = ROW.replace("Male", "Female").replace("<=50K", ">50K").replace("State-gov", "Private")


@cache
def _loaded(home: DataHome) -> Table:
    return Adult().load(home)


@pytest.fixture
def table(adult_home: DataHome) -> Table:
    return _loaded(adult_home)


def _home(tmp_path: Path, data: str = ROW, test: str = f"|1x3 Cross\n{WOMAN}.\n") -> DataHome:
    (tmp_path / "adult.data").write_text(data)
    (tmp_path / "adult.test").write_text(test)
    return DataHome((tmp_path,))


def test_the_whole_of_adult(table: Table) -> None:
    assert len(table) == 45_222
    assert int(table.labels.sum()) == 11_208
    assert table.groups == ("Female", "Male")
    assert np.bincount(table.codes).tolist() == [14_695, 30_527]
    assert list(table.sensitive) == ["sex"]
    assert " ".join(table.features) == (
        "age workclass fnlwgt education education-num marital-status occupation relationship race "
        "capital-gain capital-loss hours-per-week native-country"
    )


def test_rows_of_the_training_file_come_first(table: Table) -> None:
    first, later = table.features.iloc[0], table.features.iloc[30_162]
    assert (first["age"], first["workclass"], first["capital-gain"]) == (39, "State-gov", 2174)
    assert (later["age"], later["education"], table.labels[30_162]) == (25, "11th", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sensitive", "smallest"), [("race", 353), (["sex", "race"], 126), (["race", "sex"], 126)]
)
def test_other_sensitive_attributes(adult_home: DataHome, sensitive: Any, smallest: int) -> None:
    dataset = Adult(sensitive=sensitive)
    table = dataset.load(adult_home)
    assert len(table.groups) == dataset.n_groups
    assert np.bincount(table.codes).min() == smallest
    assert list(table.sensitive) == ([sensitive] if isinstance(sensitive, str) else sensitive)
    assert not set(table.sensitive) & set(table.features)
    assert table.features.shape[1] == 14 - table.sensitive.shape[1]


def test_parameters_in_every_spelling() -> None:
    assert Adult().sensitive == ("sex",)
    assert Adult(sensitive="sex") == Adult(sensitive=["sex"]) == Adult(sensitive=("sex",))
    crossed = Adult(sensitive=["sex", "race"])
    assert Adult.model_validate_json(crossed.model_dump_json()) == crossed
    assert hash(crossed) == hash(Adult(sensitive=("sex", "race")))
    assert [Adult(sensitive=s).n_groups for s in ("sex", "race", ["sex", "race"])] == [2, 5, 10]


@pytest.mark.parametrize("sensitive", ["agee", [], ["sex", "sex"], ["sex", "income"], 3, None])
def test_other_parameters_are_refused_once(sensitive: Any) -> None:
    with pytest.raises(ValidationError) as error:
        Adult(sensitive=sensitive)
    assert error.value.error_count() == 1


@pytest.mark.slow
def test_any_column_may_be_sensitive(adult_home: DataHome) -> None:
    table = Adult(sensitive={"column": "age", "cuts": [25, 45]}, drop="relationship").load(
        adult_home
    )
    assert table.groups == ("age < 25", "25 <= age < 45", "age >= 45")
    assert not {"age", "relationship"} & set(table.features)
    assert {"sex", "race"} < set(table.features)
    assert Adult(sensitive="age").n_groups is None
    with pytest.raises(DataError, match=r"'age' holds 74 different numbers.*cuts = \[37\]"):
        Adult(sensitive="age").load(adult_home)


@pytest.mark.slow
def test_what_is_known_of_values_is_true(
    adult_home: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = Adult().read(adult_home)  # once for all
    monkeypatch.setattr(Adult, "read", lambda *_: deepcopy(columns))
    for name, count in Adult.n_values.items():
        dataset = Adult(sensitive=name)
        assert dataset.n_groups == count
        assert len(dataset.load(adult_home).groups) == count
    crossed = Adult(sensitive=["sex", Attribute(column="age", quantile=0.5)])
    assert crossed.n_groups == 4


def test_a_small_pair_of_files(tmp_path: Path) -> None:
    missing = ROW.replace("State-gov", "?")
    table = Adult().load(_home(tmp_path, f"{ROW}\n{missing}\n\n"))
    assert len(table) == 2
    assert table.labels.tolist() == [0, 1]
    assert table.codes.tolist() == [1, 0]
    assert table.features["fnlwgt"].tolist() == [77516, 77516]


@pytest.mark.parametrize(("data", "says"), [
    ("", "adult.data: holds no complete row"),
    (ROW.replace("Bachelors", "?"), "adult.data: holds no complete row"),
    (f"{ROW}\n39, State-gov, 77516", "adult.data, line 2: 3 columns, but UCI Adult has 15"),
    (f"{ROW}, 1", "adult.data, line 1: 16 columns, but UCI Adult has 15"),
    (ROW.replace("13", "many"), "adult.data, line 1: education-num is 'many', not a whole"),
    (ROW.replace("39", "39.5"), "adult.data, line 1: age is '39.5', not a whole number"),
    (ROW.replace("39", ""), "adult.data, line 1: age is '', not a whole number"),
    (ROW.replace("77516", "9" * 12), "adult.data, line 1: fnlwgt is '999999999999', not a"),
    (ROW.replace("<=50K", "rich"), "adult.data, line 1: income is 'rich', not '<=50K' or"),
])  # fmt: skip
def test_bad_content_is_one_error(tmp_path: Path, data: str, says: str) -> None:
    with pytest.raises(DataError) as error:
        Adult().load(_home(tmp_path, data))
    assert says in str(error.value)
    assert "fpbench data verify adult" in str(error.value)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    home = _home(tmp_path)
    (tmp_path / "adult.test").unlink()
    with pytest.raises(DataError, match=r"'adult.test' not found in .*`fpbench data fetch adult`"):
        Adult().load(home)


def test_one_group_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has one group, Male"):
        Adult().load(_home(tmp_path, test=ROW))
