"""Tables in files."""

import hashlib
import os

import pytest

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
    with pytest.raises(DataError, match=r"pipe\.csv: cannot be read: it is a pipe"):
        read_csv(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"gone\.csv: cannot be read: No such file"):
        read_csv(tmp_path / "gone.csv")
