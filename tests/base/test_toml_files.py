"""TOML of strangers: bounded, or refused with one clear error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import MatrixError
from fpbench.base.files import MATRIX_BYTES
from fpbench.base.toml_files import DEEPEST, check_depth, read_toml
from fpbench.matrix.matrix import read

DEEP = DEEPEST + 10
MANY = 300


def nested(depth, kind):
    value = 1
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join(["a"] * MANY) + " = 1", "a key has more than 200 parts"),
        (" . ".join(['"a b"'] * MANY) + " = 1", "a key has more than 200 parts"),
        ("\t.".join(["'a'", "b"] * MANY) + " = 1", "a key has more than 200 parts"),
        (".".join(['"\\""'] * MANY) + " = 1", "a key has more than 200 parts"),
        (".".join(['"\\\\"', '"#"'] * MANY) + " = 1", "a key has more than 200 parts"),
        ("t = '''x'\\'''\n" + ".".join(["a"] * MANY) + " = 1", "a key has more than 200"),
        ("[" + ".".join(["a"] * MANY) + "]", "a key has more than 200 parts"),
        ("x = { y = 1, " + ".".join(["a"] * MANY) + " = 1 }", "a key has more than 200 parts"),
        ("x = " + "[" * DEEP + "]" * DEEP, "nested more than 24 deep"),
        ("x = " + "{a = " * DEEP + "1" + "}" * DEEP, "nested more than 24 deep"),
        ("x = " + "[" * 100_000, "not valid TOML: nested too deeply"),
        ("x = " + "9" * 5000, "not valid TOML"),
        (".".join(["a"] * DEEP) + " = 1", "nested more than 24 deep"),
        ("x = 1\nx = 2", "not valid TOML"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    file = tmp_path / "m.toml"
    file.write_text(text)
    with pytest.raises(MatrixError, match=message) as error:
        read_toml(file)
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c.d.e.f = 1",
        'title = "' + "One. Two. " * 90 + '"',
        "# " + ". . . . " * 100,
        "# " + ".a" * 150 + "\nx = 1",
        'x = "' + ".a" * 150 + '"',
        "x = '" + ".a" * 150 + "'",
        'x = """' + ".a\n" * 300 + '"""',
        "x = '''" + ".a\n" * 300 + "'''",
        "x = [" + ", ".join(["0.25"] * 1000) + "]",
        "x = " + "[" * 20 + "]" * 20,
        "\ufeffx = 1",
        "x = 1\r\ny = 2\r\n",
    ],
)
def test_what_is_read(tmp_path, text):
    import tomllib

    file = tmp_path / "m.toml"
    file.write_bytes(text.encode())
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    assert read_toml(file) == (plain, tomllib.loads(plain))


def test_a_large_file_is_not_read_to_its_end(tmp_path):
    file = tmp_path / "m.toml"
    with file.open("wb") as out:
        out.truncate(MATRIX_BYTES * 1000)  # 16 GiB, of which nothing is on disk
    with pytest.raises(MatrixError, match="larger than 16 MiB"):
        read_toml(file)
    with pytest.raises(MatrixError, match="it is not a regular file"):
        read_toml(tmp_path.__class__("/dev/zero"))


@given(st.integers(0, 60), st.sampled_from([list, dict]))
def test_depth(depth, kind):
    if depth < DEEPEST:
        check_depth(nested(depth, kind), "m")
    else:
        with pytest.raises(MatrixError, match=r"m: is nested more than 24 deep"):
            check_depth(nested(depth, kind), "m")


def test_a_mapping_may_be_no_deeper_than_a_file():
    with pytest.raises(MatrixError, match="matrix: is nested more than"):
        read({"title": nested(5000, list)})


def test_a_run_directory_is_told_by_its_matrix(tmp_path):
    (tmp_path / "matrix.toml").write_text("seeds = 1")
    with pytest.raises(MatrixError, match=r"is a directory.*name its matrix: .*matrix\.toml$"):
        read_toml(tmp_path)
