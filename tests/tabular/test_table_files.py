"""Tables in files."""

import hashlib
import os

import pandas as pd
import pytest
from sheets import write_ods, write_xlsx

from fpbench.errors import DataError
from fpbench.tabular import read_csv
from fpbench.tabular.table_files import load_table


def test_a_table_comes_with_its_checksum(tmp_path):
    file = tmp_path / "people.csv"
    file.write_bytes(b"\xef\xbb\xbfage, code ,sex\n 31,01,f\n\n47,02,?\n")
    read = load_table(file)
    assert read.checksum == hashlib.sha256(file.read_bytes()).hexdigest()
    assert read.frame.columns.tolist() == ["age", "code", "sex"]
    assert read.frame["age"].tolist() == [31, 47]
    assert read.frame["code"].tolist() == ["01", "02"]
    assert read.frame["sex"].isna().tolist() == [False, True]


def test_parquet_is_known_by_its_name(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "people.csv").write_text("age,sex\n31,f\n")
    frame = read_csv(tmp_path / "people.csv")
    for name in ("people.parquet", "people.PQ"):
        frame.to_parquet(tmp_path / name)
        assert load_table(tmp_path / name).frame.equals(frame)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("age,sex\n31\n", "people.csv, line 2: 1 columns, but the first line has 2"),
        ("age,sex\n", "people.csv: holds no row"),
        ("age\n31\n", "line 1: found one column, 'age'"),
    ],
)
def test_what_is_no_table_is_named_with_its_line(tmp_path, content, why):
    (tmp_path / "people.csv").write_text(content)
    with pytest.raises(DataError, match=why):
        read_csv(tmp_path / "people.csv")


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"pipe\.csv: cannot be read: it is not a regular file"):
        read_csv(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"gone\.csv: cannot be read: No such file"):
        read_csv(tmp_path / "gone.csv")


ROWS = [["age", "code", "paid", "sex"], [31, "01", 1.5, "f"], [47, "02", None, "m"]]


@pytest.mark.parametrize(("write", "name"), [(write_xlsx, "p.xlsx"), (write_ods, "p.ODS")])
def test_a_spreadsheet_is_read_as_the_file_that_it_saves(write, name, tmp_path):
    pytest.importorskip("python_calamine")
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    expected = load_table(tmp_path / "p.csv").frame
    title = [["People of the report", None, None, None], [None] * 4]
    shifted = [[None, *row] for row in [*title, *ROWS, [None] * 4]]
    for rows in (ROWS, [*title, *ROWS], shifted):
        write(tmp_path / name, {"people": rows, "notes": []})
        pd.testing.assert_frame_equal(load_table(tmp_path / name).frame, expected)


@pytest.mark.parametrize(("sheets", "why"), [
    ({"May": ROWS, "June": ROWS}, "the sheets May, June have cells: save one alone"),
    ({"May": []}, "is empty"),
    ({"May": ROWS[:1]}, "holds no row"),
    ({"May": [["a", None, "b"], [1, 2, 3]]}, "line 1: column 2 has no name"),
    ({"May": [["a", "a"], [1, 2]]}, "2 columns have the name 'a'"),
    (None, "cannot be read as a spreadsheet"),
])  # fmt: skip
def test_a_spreadsheet_that_is_no_table_is_one_error(sheets, why, tmp_path):
    pytest.importorskip("python_calamine")
    file = tmp_path / "p.xlsx"
    if sheets is None:
        file.write_bytes(b"PK\x03\x04 and no more")
    else:
        write_xlsx(file, sheets)
    with pytest.raises(DataError, match=rf"p\.xlsx.*{why}"):
        load_table(file)


def test_without_the_extra_a_spreadsheet_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr("fpbench.tabular.table_files.find_spec", lambda _: None)
    (tmp_path / "p.xlsx").write_bytes(b"PK")
    with pytest.raises(
        DataError, match=r"is a spreadsheet: pip install .*\[excel\].*, or save it as"
    ):
        load_table(tmp_path / "p.xlsx")
