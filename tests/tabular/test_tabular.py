"""A tabular data set as a third party writes it."""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from fpbench.data import Attribute, Sensitive
from fpbench.errors import DataError
from fpbench.plugin import DataHome
from fpbench.tabular import LabelledColumns, TabularDataset, sensitive_field
from fpbench.tabular.tabular_dataset import tabulate

HOME = DataHome(())


class Village(TabularDataset):
    """Twelve people."""

    name = "village"
    summary = "twelve people"
    columns = ("age", "job", "sex")
    n_values: ClassVar[dict[str, int]] = {"job": 3, "sex": 2}
    sensitive: Sensitive = sensitive_field(Attribute(column="age", cuts=(30,)))

    def read(self, home: DataHome) -> LabelledColumns:
        rows = np.arange(12)
        columns = pd.DataFrame(
            {
                "age": 24 + rows,
                "job": pd.Categorical.from_codes(rows % 3, ["baker", "cook", "miller"]),
                "sex": pd.Categorical.from_codes(rows // 2 % 2, ["f", "m"]),
            }
        )
        return LabelledColumns(columns, rows % 2, "rich")


class Anywhere(Village):
    """The same, without a word on its columns."""

    name = "anywhere"
    columns = ()
    n_values: ClassVar[dict[str, int]] = {}
    sensitive: Sensitive = sensitive_field()


def test_the_default_rule_makes_the_groups() -> None:
    table = Village().load(HOME)
    assert (table.name, table.positive) == ("village", "rich")
    assert table.groups == ("age < 30", "age >= 30")
    assert table.codes.tolist() == [0] * 6 + [1] * 6
    assert list(table.features) == ["job", "sex"]
    assert Village().n_groups == 2


@pytest.mark.parametrize(
    ("sensitive", "drop", "groups", "known"),
    [
        ("sex", [], 2, 2),
        (["job", "sex"], [], 6, 6),
        (["job", {"column": "age", "quantile": 0.5}], [], 6, 6),
        ("age", "job", 12, None),
        ({"column": "job", "one_of": ["cook"]}, ["age"], 2, 2),
    ],
)
def test_sensitive_and_dropped_columns_are_no_features(
    sensitive: Any, drop: Any, groups: int, known: int | None
) -> None:
    dataset = Village(sensitive=sensitive, drop=drop)
    table = dataset.load(HOME)
    assert len(table.groups) == groups
    assert dataset.n_groups == known
    left = {"age", "job", "sex"} - set(table.sensitive) - {*([drop] if drop == "job" else drop)}
    assert set(table.features) == left
    assert Village(**dataset.model_dump(mode="json")) == dataset


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"sensitive": "sx"}, "no column 'sx'; did you mean 'sex'?"),
        ({"sensitive": "sex", "drop": "jobb"}, "no column 'jobb'; did you mean 'job'?"),
        ({"sensitive": "sex", "drop": ["sex"]}, "'sex' is sensitive, so it is never a feature"),
        ({"sensitive": "sex", "drop": ["age", "job"]}, "no column is left as a feature"),
    ],
)
def test_what_is_not_there_is_one_error_before_or_while_loading(
    parameters: dict[str, Any], says: str
) -> None:
    if "is left as" not in says:
        with pytest.raises(ValueError, match=says):
            Village(**parameters)
    with pytest.raises(ValueError, match=says):
        Anywhere(**parameters).load(HOME)


def test_without_a_default_it_must_be_said() -> None:
    with pytest.raises(ValueError, match="sensitive"):
        Anywhere()


def test_a_group_that_nobody_is_in_is_one_error() -> None:
    people = Village().read(HOME)
    with pytest.raises(DataError, match="data set 'us': nobody is in group 'age >= 99'"):
        tabulate(people, [Attribute(column="age", cuts=[99])], name="us")
