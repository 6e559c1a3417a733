"""Files that a stranger may have made are opened by one function, and by nothing else."""

import errno
import os
import sys
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
from strangers import set_trap

import fpbench
from fpbench import InputError
from fpbench.base.files import (
    MATRIX_BYTES,
    MATRIX_NAMES,
    check_output,
    open_file,
    read_file,
    read_matrix,
    write_file,
    write_output,
)
from fpbench.cli.main import main
from fpbench.store.locks import LOCK_FILE, STORE

OUTPUTS = {
    "run.report": lambda run, file: run.report(file),
    "run.export": lambda run, file: run.export(file, format="csv"),
    "report.to_csv": lambda run, file: REPORT.to_csv(file),
    "report.to_json": lambda run, file: REPORT.to_json(file),
    "report.to_parquet": lambda run, file: REPORT.to_parquet(file),
    "report.to_html": lambda run, file: REPORT.to_html(file),
    **{" ".join(words): words for words in (
        ("page", "RUN", "-o"), ("export", "RUN", "-o"), ("leaderboard", "RUN", "-o"),
        ("leaderboard", "RUN", "--format", "markdown", "-o"), ("compare", "RUN", "RUN", "-o"),
        ("run", "MATRIX", "--json"), ("reproduce", "MATRIX", "--json"), ("assess", "MATRIX", "--people", "MATRIX", "--json"),
        ("assess", "MATRIX", "--people", "MATRIX", "--protected"),
    )},
}  # fmt: skip
REPORT = fpbench.FairnessReport.from_predictions(
    pd.DataFrame({"age": [20, 30] * 20}), [0, 1] * 20, ["f", "m"] * 20, by=["age"]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run, and other names of it."""
    folder = tmp_path_factory.mktemp("place")
    matrix = {"seeds": 1, "dataset": [{"use": "census-synthetic", "rows": 300}],
              "learner": [{"use": "plain"}], "auditor": [{"use": "group-fairness"}]}  # fmt: skip
    run = fpbench.run(matrix, out=folder / "run").path
    (folder / "alias").symlink_to(run)
    (folder / "page.html").symlink_to(run / "store.sqlite")
    return folder


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("way", OUTPUTS)
def test_no_output_is_written_over_a_run(place, way, command):
    """Neither over its files, nor by another name, nor beside them where one would be read."""
    run = fpbench.load(place / "run")
    names = ["run/store.sqlite", "alias/matrix.json", "run/matrix.toml", "run/../run/STORE.lock",
             "page.html", "run/environment.json"]  # fmt: skip
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    for name in names if callable(OUTPUTS[way]) else names[:1]:
        file, call = place / name, OUTPUTS[way]
        if callable(call):
            with pytest.raises(InputError, match="is a file of the run in .*name another file"):
                call(run, file)
        else:
            stand = {"RUN": run.path, "MATRIX": run.path / "matrix.json"}
            done = command(*(str(stand.get(word, word)) for word in call), str(file))
            assert done.returncode == 2
            assert "is a file of the run in" in done.stderr
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_outputs_beside_a_run_are_written(place):
    assert check_output(place / "run" / "page.html")
    assert check_output(place / "store.sqlite")
    for name in (STORE, LOCK_FILE, *MATRIX_NAMES):
        with pytest.raises(InputError):
            check_output(place / "run" / name)


def test_another_name_of_a_store_is_no_output(tmp_path):
    (tmp_path / STORE).touch()
    (tmp_path / "rows.csv").hardlink_to(tmp_path / STORE)
    with pytest.raises(InputError, match="another name"):
        check_output(tmp_path / "rows.csv")


def test_a_name_with_a_zero_byte_is_no_output():
    with pytest.raises(InputError, match="is not a name of a file: it holds a zero byte"):
        check_output(Path("a\0b"))


class FullDisk:
    """A file on a disk that has room for 10 bytes."""

    def __init__(self, stream):
        self._stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stream.close()

    def write(self, content):
        self._stream.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def fill_disk(monkeypatch):
    original = Path.open

    def open_(path, mode="r", *more, **options):
        stream = original(path, mode, *more, **options)
        return stream if mode in ("r", "rb") else FullDisk(stream)

    return lambda: monkeypatch.setattr(Path, "open", open_)


@pytest.mark.parametrize("older", ["an older file", None])
@pytest.mark.parametrize(
    "way",
    [
        *(way for way in OUTPUTS if callable(OUTPUTS[way])),
        ("page", "RUN", "-o"), ("export", "RUN", "--format", "parquet", "-o"), ("export", "RUN", "--long", "--format", "csv", "-o"),
        ("export", "RUN", "--format", "jsonl", "-o"), ("leaderboard", "RUN", "--format", "json", "-o"),
        ("leaderboard", "RUN", "--format", "latex", "-o"),
    ],
    ids=str,
)  # fmt: skip
def test_a_full_disk_leaves_the_older_file(
    way, older, place, tmp_path, monkeypatch, capsys, fill_disk
):
    file = tmp_path / "out.html"
    if older:
        file.write_text(older)
    fill_disk()
    if callable(call := OUTPUTS.get(way)):
        with pytest.raises(
            InputError, match=r"out.html: cannot be written: No space left"
        ) as error:
            call(fpbench.load(place / "run"), file)
        message = str(error.value)
    else:
        words = [str(place / "run") if word == "RUN" else word for word in way]
        monkeypatch.setattr(sys, "argv", ["fpbench", *words, str(file)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        message = " ".join(capsys.readouterr().err.split())
        assert "No space left" in message
    assert ".fpbench-" not in message
    assert [path.read_text() for path in tmp_path.iterdir()] == [older] * bool(older)


def test_a_written_file_keeps_its_permissions_and_its_links(tmp_path):
    """A private file stays private; a device is not replaced."""
    private = tmp_path / "private.csv"
    private.write_text("old")
    private.chmod(0o600)
    (tmp_path / "link.csv").symlink_to(private)
    write_output(tmp_path / "link.csv", "new")
    assert private.read_text() == "new"
    assert private.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "link.csv").is_symlink()
    before = os.umask(0o077)
    try:
        write_output(tmp_path / "new.csv", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o600


def test_a_circle_of_links_or_a_name_that_is_too_long_is_one_error(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    write_output(tmp_path / "a", "new")
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        write_output(tmp_path / ("n" * 300), "new")


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output(tmp_path / "pipe", "new")
    assert os.read(read, 10) == b"new"
    assert (tmp_path / "pipe").is_fifo()
    os.close(read)


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write_file(tmp_path / ("n" * 255), "new")
    assert [path.name for path in tmp_path.iterdir()] == ["n" * 255]


@pytest.mark.parametrize("name", ["environment.json", "missing/file", "file/file"])
def test_who_cannot_write_a_file_is_told_its_name(tmp_path, name):
    (tmp_path / "environment.json").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=".") as error:
        write_file(tmp_path / name, "new")
    assert error.value.filename == str(tmp_path / name)
    assert error.value.filename2 is None
    assert (
        ".fpbench-"
        not in f"{error.value!r}{error.value.__context__ if not error.value.__suppress_context__ else ''}"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"environment.json", "file"}


def test_a_text_that_no_file_can_hold_is_one_error(tmp_path):
    with pytest.raises(InputError, match="cannot be written: .* surrogates not allowed"):
        write_output(tmp_path / "file", "\ud800")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory", "socket", "hardlink"])
def test_what_is_no_file_of_its_own_is_refused(tmp_path, kind):
    file = tmp_path / "file"
    assert set_trap(file, kind, tmp_path / "outside")
    with pytest.raises(OSError, match="^.Errno 22. it (is (a|not)|has another)"):
        open_file(file, most=100)
    if kind in ("link", "hardlink"):  # of a file that the user names, it does not matter
        assert read_file(file, most=100, named=True) == b"mine"


def test_a_file_that_is_replaced_in_between_is_refused(tmp_path, monkeypatch):
    """Looked at once more when it is open; a pipe does not make whoever opens it wait."""
    file = tmp_path / "file"
    file.write_text("fine")
    original = os.open

    def replaced(path, flags, *more):
        file.unlink()
        os.mkfifo(file)
        return original(path, flags, *more)

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(OSError, match="it is not a regular file"):
        open_file(file, most=100)

    def linked(path, flags, *more):
        file.unlink()
        (tmp_path / "other").write_text("precious")
        file.symlink_to(tmp_path / "other")
        return original(path, flags, *more)

    file.unlink()
    file.write_text("fine")
    monkeypatch.setattr(os, "open", linked)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_file(file, most=100)


def test_no_more_is_read_than_there_may_be(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert read_file(file, most=100) == b"x" * 100
    with pytest.raises(OSError, match="it is larger than"):
        read_file(file, most=99)
    status = Path("/proc/self/status")
    if status.exists():  # which says that it has no bytes
        with pytest.raises(OSError, match="it has grown, or does not tell"):
            read_file(status, most=10)


def test_reading_takes_no_more_memory_than_the_file(tmp_path):
    """Of a limit of many GiB, Python reserves them all when it is asked for as many bytes."""
    file = tmp_path / "small"
    file.write_bytes(b"x" * 100)
    tracemalloc.start()
    try:
        assert read_file(file, most=2**33) == b"x" * 100
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_the_matrix_of_a_directory(tmp_path):
    assert read_matrix(tmp_path) is None
    (tmp_path / "matrix.json").write_text("{}")
    assert read_matrix(tmp_path) == (tmp_path / "matrix.json", b"{}")
    (tmp_path / "matrix.toml").write_text("x = 1")
    assert read_matrix(tmp_path) == (tmp_path / "matrix.toml", b"x = 1")
    os.truncate(tmp_path / "matrix.toml", MATRIX_BYTES + 1)
    with pytest.raises(
        fpbench.errors.StoreError, match="matrix.toml: cannot be read: it is larger than"
    ):
        read_matrix(tmp_path)


def test_what_is_written_is_whole_and_follows_nothing(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    write_file(tmp_path / "file", "new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new"
    assert not (tmp_path / "file").is_symlink()
    write_file(tmp_path / "file", b"\xff")
    assert (tmp_path / "file").read_bytes() == b"\xff"
