"""A user's own table: as a file of text, as parquet, passed from Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import fpbench
from fpbench import InputError
from fpbench.builtin.datasets.own_tables import CSV, GivenTable, Parquet
from fpbench.errors import DataError
from fpbench.plugin import DataHome

NOWHERE = DataHome((Path("/nowhere"),))


def _people(n: int = 40) -> pd.DataFrame:
    rows = np.arange(n)
    return pd.DataFrame(
        {
            "sex": np.where(rows % 2, "male", "female"),
            "age": 20 + rows % 30,
            "height": 150 + rows / 8,
            "city": np.array(["Ulm", "Bonn", "Kiel, south"])[rows % 3],
            "code": [f"{row % 12:02d}" for row in rows],
            "paid": np.array(["no", "yes"])[(rows // 2) % 2],
        }
    )


def _csv(path: Path, **parameters: Any) -> CSV:
    said = {"path": str(path), "label_column": "paid", "positive": "yes", "sensitive": "sex"}
    return CSV(**{**said, **parameters})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    _people().to_csv(path, index=False)
    return path


def test_a_file_is_the_same_table_as_its_frame(file: Path) -> None:
    table = _csv(file).load(NOWHERE)
    frame = fpbench.table(
        _people(), label="paid", positive="yes", sensitive="sex", name="people.csv"
    )
    assert table.digest() == frame.digest()
    assert table.groups == ("female", "male")
    assert table.features["age"].dtype == np.int64
    assert table.features["height"].dtype == np.float64
    assert list(table.features["code"].cat.categories)[:2] == ["00", "01"]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["f", "m"]),
            st.integers(-(10**12), 10**12),
            st.floats(-1e9, 1e9, allow_nan=False),
            st.text("abc ,;\"'é\n|", min_size=1).map(lambda text: "x" + text.strip() + "x"),
            st.booleans(),
        ),
        min_size=8,
        max_size=20,
    ),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_whatever_pandas_writes_is_read_back(
    tmp_path: Path, rows: list[tuple[Any, ...]], separator: str
) -> None:
    frame = pd.DataFrame(rows, columns=["sex", "age", "height", "notes", "paid"])
    frame["sex"] = ["f", "m"] * 4 + ["f"] * (len(frame) - 8)
    frame["paid"] = [False, True] * 4 + [True] * (len(frame) - 8)
    frame.loc[0, "height"] = frame["height"][1] + 0.5
    frame["notes"] = [f"{note}{row % 2}" for row, note in enumerate(frame["notes"])]
    frame["age"] = [age + row for row, age in enumerate(frame["age"])]
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False, sep=separator)
    said = {"label": "paid", "sensitive": "sex"}
    # Numbers that merely count, and words that all differ, are refused, written or not.
    drop = [name for name in ("age", "notes") if frame[name].nunique() == len(frame)]
    expected = fpbench.table(frame, name="people.csv", drop=drop, **said)
    own = CSV(path=str(path), separator=separator, label_column="paid", sensitive="sex", drop=drop)
    assert own.load(NOWHERE).digest() == expected.digest()


def test_where_a_file_is_looked_for(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = DataHome((tmp_path,))
    assert len(_csv(Path("people.csv")).load(home)) == 40
    assert _csv(Path("people.csv")).absent(NOWHERE) == (
        "csv: no file 'people.csv' in the working directory or in /nowhere"
    )
    with pytest.raises(DataError, match=r"no file 'people.csv' in the working directory"):
        _csv(Path("people.csv")).load(NOWHERE)
    monkeypatch.chdir(tmp_path)
    here = _csv(Path("people.csv"))
    assert len(here.load(NOWHERE)) == 40
    assert here.files[0].name == str(file)
    assert not here.files[0].sha256
    assert here.fetch(NOWHERE) == [file]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "people.csv: is empty"),
        ("sex,age,paid\n", "people.csv: holds no row"),
        ("sex,,paid\nf,1,no\n", "line 1: column 2 has no name"),
        ("sex,age,age,paid\n", "line 1: 2 columns have the name 'age'"),
        (
            "sex;age;paid\nf;1;no\n",
            "found one column, 'sex;age;paid'; is the separator not ','? Add, for example, separator = \";\"",
        ),
        ("sex,age,paid\nf,1\n", "line 2: 2 columns, but the first line has 3"),
        ("sex,age,paid\nf,1,no\n\nf,1,no,2\n", "line 4: 4 columns, but the first line has 3"),
        ('sex,age,paid\n"f,1,no\n', "cannot be read: unexpected end of data"),
        ("sex,age,paid\nf,?,no\nm,3,\n", "missing in 2 of its columns: 'age' (1), 'paid' (1)"),
        ("six,age,paid\nf,1,no\n", "no column 'sex'; valid: age, paid, six"),
        ("sex,age,paid\nf,1,perhaps\nm,2,not\n", "no label in 'paid' is 'yes'"),
    ],
)
def test_a_bad_file_is_one_error(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        _csv(path).load(NOWHERE)
    assert says in str(error.value)
    assert "people.csv" in str(error.value)


def test_bytes_that_are_no_text_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    for content in ("sex,age,paid\ncafé,1,no\n", "sex,âge,paid\nf,1,no\n"):
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(DataError, match=r"people.csv: is not UTF-8 text \(.*0xe.*; save it as"):
            _csv(path).load(NOWHERE)


def test_a_directory_is_said_to_be_one(tmp_path: Path) -> None:
    assert _csv(tmp_path).absent(NOWHERE) == f"csv: {str(tmp_path)!r} is a directory, not a file"
    with pytest.raises(DataError, match="is a directory"):
        _csv(tmp_path).load(NOWHERE)


@pytest.mark.parametrize("empty", ["", "?", "NA", "N/A", "NaN", "null", "  "])
def test_what_is_missing_is_an_error_or_dropped(tmp_path: Path, empty: str) -> None:
    path = tmp_path / "people.csv"
    frame = _people().astype({"age": str})
    frame.loc[[3, 7], "sex"] = empty
    frame.loc[[7, 9], "age"] = empty
    frame.to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'sex' \(2\), 'age' \(2\)"):
        _csv(path).load(NOWHERE)
    table = _csv(path, missing="drop").load(NOWHERE)
    assert len(table) == 37
    assert table.features["age"].dtype == np.float64
    assert len(_csv(path, missing="drop", drop="age").load(NOWHERE)) == 38


def test_labels_must_be_binary_unless_it_is_said_what_counts(file: Path) -> None:
    with pytest.raises(DataError, match="label 'paid' must be 0 or 1 and holds 'no', 'yes'; say"):
        _csv(file, positive=None).load(NOWHERE)


def test_a_column_that_names_people_is_refused_with_what_leaves_it_out(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    _people().assign(id=range(1, 41), note="none").to_csv(path, index=False)
    with pytest.raises(DataError, match=r'drop = \["note", "id"\]'):
        _csv(path).load(NOWHERE)
    assert "id" not in _csv(path, drop=["note", "id"]).load(NOWHERE).features


@pytest.mark.parametrize(
    "parameters",
    [
        *({"separator": wrong} for wrong in ("::", "", '"', "\n", "\r")),
        {"missing": "keep"}, {"label_column": None}, {"drop": "sex"},
    ],
)  # fmt: skip
def test_other_parameters_are_refused(file: Path, parameters: dict[str, Any]) -> None:
    if "drop" in parameters:
        with pytest.raises(InputError, match="is sensitive"):
            _csv(file, **parameters).load(NOWHERE)
        return
    with pytest.raises(ValidationError):
        _csv(file, **parameters)


# Parquet


def test_a_parquet_file_is_the_same_table_as_its_frame(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "people.parquet"
    frame = _people().assign(member=[True, False] * 20, city=_people()["city"].astype("category"))
    frame.to_parquet(path)
    said = {"positive": "yes", "sensitive": "sex"}
    assert Parquet.unavailable() is None
    table = Parquet(path=str(path), label_column="paid", **said).load(NOWHERE)
    expected = fpbench.table(frame, name="people.parquet", label="paid", **said)
    assert table.digest() == expected.digest()


def test_an_index_with_a_name_is_a_column_of_a_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "people.parquet"
    said = {"path": str(path), "label_column": "paid", "positive": "yes"}
    _people().to_parquet(path)
    table = Parquet(**said, sensitive="sex").load(NOWHERE)
    _people().set_index("sex").to_parquet(path)
    assert Parquet(**said, sensitive="sex").load(NOWHERE).digest() == table.digest()
    _people().set_index(np.arange(40)[::-1]).to_parquet(path)
    assert Parquet(**said, sensitive="sex").load(NOWHERE).digest() == table.digest()


def test_a_file_that_is_no_parquet_is_one_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "people.parquet"
    path.write_text("sex,paid\n")
    with pytest.raises(DataError, match="people.parquet: cannot be read as parquet") as error:
        Parquet(path=str(path), label_column="paid", sensitive="sex").load(NOWHERE)
    assert "\n" not in str(error.value)


def test_without_pyarrow_the_command_that_installs_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.parquet").touch()
    monkeypatch.setattr("fpbench.builtin.datasets.own_tables.find_spec", lambda name: None)
    assert "pip install 'fpbench-toolkit[parquet]'" in str(Parquet.unavailable())
    with pytest.raises(DataError, match=r"pip install 'fpbench-toolkit\[parquet\]'"):
        Parquet(path=str(tmp_path / "people.parquet"), label_column="a", sensitive="b").load(
            NOWHERE
        )


# Handed over


def test_a_table_is_handed_over() -> None:
    table = fpbench.table(_people(), label="paid", positive="yes", sensitive="sex")
    home = DataHome((Path("/nowhere"),), {"people": table})
    given = GivenTable(table="people")
    assert given.absent(home) is None
    assert given.load(home) is table
    assert {name: compute() for name, compute in given.checksums(home).items()} == {
        "table people": table.digest()
    }


def test_a_frame_that_was_handed_over_is_one_error() -> None:
    people: Any = _people()
    home = DataHome((Path("/nowhere"),), {"people": people})
    with pytest.raises(DataError, match=r"'people' is a DataFrame: .* fpbench\.table\(frame"):
        GivenTable(table="people").load(home)


def test_a_table_that_was_not_handed_over_is_one_error() -> None:
    table = fpbench.table(_people(), label="paid", positive="yes", sensitive="sex")
    for home, hint in (
        (NOWHERE, ""),
        (DataHome((Path("/nowhere"),), {"people": table}), "mean 'people'"),
    ):
        said = GivenTable(table="peple").absent(home)
        assert 'fpbench.run(..., tables={"peple": ...})' in str(said)
        assert hint in str(said)
        with pytest.raises(DataError, match="no table 'peple' was passed"):
            GivenTable(table="peple").load(home)
