import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from fpbench import Table
from fpbench.errors import DataError

MAKE = """
import numpy as np, pandas as pd
from fpbench import Table
def make():
    rows = np.arange(12)
    return Table("people",
        pd.DataFrame({"x": rows * 0.5, "job": pd.Categorical.from_codes(rows % 3, ["a", "b", "c"]),
                      "note": ["n" * (row + 1) for row in rows]}),
        rows % 2, pd.DataFrame({"sex": pd.Categorical.from_codes(rows // 6, ["f", "m"])}))
"""
_made: dict[str, Callable[[], Table]] = {}
exec(MAKE, _made)
make = _made["make"]


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process() -> None:
    assert make().digest() == make().digest()
    script = MAKE + "print(make().digest())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.stdout.strip() == make().digest()


@pytest.mark.parametrize("part", ["name", "positive", "label", "value", "type", "column",
                                  "category", "order", "ordered", "group"])  # fmt: skip
def test_the_digest_tells_every_change(part: str) -> None:
    table = make()
    name, positive, labels = table.name, table.positive, table.labels.copy()
    features, sensitive = table.features.copy(), table.sensitive.copy()
    if part == "name":
        name = "others"
    elif part == "positive":
        positive = "paid"
    elif part == "label":
        labels[0] = 1 - labels[0]
    elif part == "value":
        features.loc[3, "x"] = 99.0
    elif part == "type":
        features["x"] = features["x"].astype(np.float32)
    elif part == "column":
        features = features.rename(columns={"x": "y"})
    elif part == "category":
        features["job"] = features["job"].cat.rename_categories({"a": "A"})
    elif part == "order":
        features = features[["job", "x", "note"]]
    elif part == "ordered":
        features["job"] = features["job"].cat.as_ordered()
    else:
        sensitive.loc[0, "sex"] = "m"
    changed = Table(name, features, labels, sensitive, positive)
    assert changed.digest() != table.digest()


def test_two_groups_of_one_name_are_one_error() -> None:
    said = {"a": pd.Categorical(["x", "x x y"]), "b": pd.Categorical(["y x z", "z"])}
    with pytest.raises(DataError, match="'odd': 2 groups would have the name 'x x y x z'; rename"):
        Table("odd", pd.DataFrame({"age": [1, 2]}), np.array([0, 1]), pd.DataFrame(said))


def test_groups_that_nobody_is_in_are_left_out_of_any_number() -> None:
    rows = np.arange(64)
    columns = {
        f"c{bit}": pd.Categorical.from_codes((rows >> bit) % 2, ["no", "yes"]) for bit in range(6)
    }
    few = {f"d{bit}": columns["c0"] for bit in range(60)}  # 2 ** 60 combinations, 2 of them held
    frame, labels = pd.DataFrame({"x": rows}), rows % 2
    table = Table("few", frame, labels, pd.DataFrame(few))
    assert [len(table.groups), *np.bincount(table.codes)] == [2, 32, 32]
    assert len(Table("all", frame, labels, pd.DataFrame(columns)).groups) == 64
    frame, labels = pd.DataFrame({"x": np.arange(128)}), np.arange(128) % 2
    each = pd.DataFrame({"id": pd.Categorical([f"{row:03d}" for row in range(128)])})
    with pytest.raises(DataError, match="attribute id has more than 127 groups"):
        Table("many", frame, labels, each)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0, 1, 2]}, "labels must be 0 or 1"),
        ({"labels": [0, 1]}, "have 3, 2 and 3 rows"),
        ({"features": pd.DataFrame({"x": [1.0, None, 3.0]})}, "column 'x' has missing values"),
        ({"features": pd.DataFrame({"x": [1, 2, 3]}, index=[2, 1, 0])}, "named differently"),
        ({"sensitive": pd.DataFrame({"sex": [0, 1, 1]})}, "'sex' must be categorical"),
        ({"sensitive": pd.DataFrame({"sex": list("ffm")})}, r"pass \.astype"),
    ],
)
def test_a_wrong_table_is_one_error(changes, message) -> None:
    sensitive = pd.DataFrame({"sex": pd.Categorical(list("ffm"))})
    right = {"features": pd.DataFrame({"x": [1, 2, 3]}), "labels": [0, 1, 0]}
    people = {**right, "sensitive": sensitive, **changes}
    with pytest.raises(DataError, match=f"^data set 'mine': .*{message}"):
        Table("mine", people["features"], np.array(people["labels"]), people["sensitive"])
