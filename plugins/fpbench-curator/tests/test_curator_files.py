"""What a curator reads from disk: all rows in their order, or one clear error."""

import pandas as pd
import pytest
from fpbench_curator.files import is_readable_by_others, read_sensitive, read_token

from fpbench import InputError
from fpbench.privacy import Curator


@pytest.fixture
def write(tmp_path):
    def make(text, name="people.csv"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return make


def test_rows_stay_in_their_order(write):
    file = write('\ufeffsex, age ,race\nm,30,"a, b"\nf,20,c\nm,30,c\n')
    found = read_sensitive(file, ["race", "sex"])
    assert found.to_dict("list") == {"race": ["a, b", "c", "c"], "sex": ["m", "f", "m"]}
    assert Curator(found).groups == ("a, b x m", "c x f", "c x m")


def test_one_column_alone_will_do(write):
    assert read_sensitive(write("sex\nm\nf\n"), ["sex"])["sex"].tolist() == ["m", "f"]


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        (["1", "2", "1"], ("1", "2")),
        (["10", "9"], ("9", "10")),  # numbers are in the order of numbers
        (["0.5", "1"], ("0.5", "1")),
        (["01", "2", "10"], ("01", "10", "2")),  # codes are words
        (["0", "1"], ("0", "1")),
        (["1_0", "9"], ("1_0", "9")),
        (["inf", "9"], ("9", "inf")),
        (["b", "1"], ("1", "b")),
        (["True", "False"], ("False", "True")),
    ],
)
def test_groups_are_named_as_they_are_written(write, values, groups):
    assert Curator(read_sensitive(write("\n".join(["g", *values])), ["g"])).groups == groups


def test_parquet_is_read_alike(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"sex": list("mfm"), "age": [1, 2, 3], "hole": ["a", None, "b"]})
    file = tmp_path / "people.parquet"
    frame.to_parquet(file)
    assert read_sensitive(file, ["age", "sex"]).to_dict("list") == {
        "age": [1, 2, 3], "sex": ["m", "f", "m"]
    }  # fmt: skip
    with pytest.raises(InputError, match="did you mean 'sex'"):
        read_sensitive(file, ["sexx"])
    with pytest.raises(InputError, match="no value in sensitive column 'hole'"):
        read_sensitive(file, ["hole"])
    file.write_text("no parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_sensitive(file, ["sex"])


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("sex\nm\n\nf\n", ["sex"], "line 3: 0 fields where line 1 has 1"),
        ("sex,age\nm,1\nf\n", ["sex"], "line 3: 1 fields where line 1 has 2"),
        ("sex,age\nm,1\n?,2\n", ["sex"], "line 3: no value in sensitive column 'sex'"),
        ("sex,age\nm,1\n ,2\n", ["sex"], "rows cannot be left out"),
        ("sex,age\nm,1\n", ["sxe"], "no column 'sxe'; did you mean 'sex'"),
        ("sex,sex\nm,1\n", ["sex"], "2 columns have the name 'sex'"),
        ("sex,age\nm,1\n", ["sex", "sex"], "column 'sex' is named twice"),
        ("", ["sex"], "no column 'sex'"),
        (b"sex\n\xff\n", ["sex"], "cannot be read: 'utf-8' codec"),
        ('sex\n"m\n', ["sex"], "cannot be read"),
    ],
)
def test_files_that_are_wrong_are_refused(write, text, columns, said):
    with pytest.raises(InputError, match=said):
        read_sensitive(write(text), columns)


def test_files_that_are_not_there_are_refused(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match="no such file"):
            read_sensitive(path, ["sex"])


def test_a_token_is_the_only_line_of_its_file(write, tmp_path):
    assert read_token(write(" abcdef \r\n", "token")) == "abcdef"
    for text, said in (("", "is empty"), ("\n \n", "is empty"), ("a\nb", "more than one line"),
                       (b"\xff", "not text")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            read_token(write(text, "token"))
    with pytest.raises(InputError, match="No such file"):
        read_token(tmp_path / "none")
    file = write("abc", "token")
    file.chmod(0o640)
    assert is_readable_by_others(file)
    file.chmod(0o600)
    assert not is_readable_by_others(file)
