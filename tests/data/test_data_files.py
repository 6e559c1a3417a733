import gc
import hashlib
import io
import logging
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fpbench.data.data_files import compute_sha256
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome

GOOD = b"one, two\n" * 1000


def _zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", "of no interest")
        archive.writestr("inner.data", GOOD)
    return content.getvalue()


ZIP = _zip()
_asked: list[str] = []
"""Paths that the server was asked for."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        earlier = _asked.count(self.path)
        _asked.append(self.path)
        if self.path == "/gone":
            self.send_error(404)
            return
        if self.path == "/dropped":  # the connection ends before anything was said
            self.close_connection = True
            return
        bad = {
            "/truncated": GOOD[:100],
            "/cut-once": GOOD[:100] if earlier == 0 else GOOD,
            "/wrong-twice": b"sorry" if earlier < 2 else GOOD,
            "/zip": ZIP,
        }
        content = bad.get(self.path, GOOD)
        self.send_response(200)
        length = len(GOOD) if "cut" in self.path or "trunc" in self.path else len(content)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("fpbench.data.data_files._PAUSE", 0)
    _asked.clear()


@pytest.fixture
def _abandoned_sockets() -> Iterator[None]:
    """Collect what pooch leaves open when a download fails, before another test is blamed."""
    yield
    gc.collect()


def _file(url: str, content: bytes = GOOD) -> DataFile:
    return DataFile("some.data", url, hashlib.sha256(content).hexdigest())


def _home(tmp_path: Path) -> DataHome:
    return DataHome((tmp_path / "given", tmp_path / "user"))


def _put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_first_directory_that_has_a_file_wins(tmp_path: Path) -> None:
    home = _home(tmp_path)
    file = _file("http://nowhere.invalid/")
    assert home.missing([file]) == [file]
    user = _put(tmp_path / "user/some.data", b"u")
    assert home.find("some.data") == user
    given = _put(tmp_path / "given/some.data", b"g")
    assert home.find("some.data") == given
    assert home.missing([file]) == []


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'some.data' not found in .*given.*user"):
        _home(tmp_path).find("some.data")


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "given" / "some.data").mkdir(parents=True)
    with pytest.raises(DataError):
        _home(tmp_path).find("some.data")


def test_the_environment_comes_before_the_user_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FPBENCH_DATA", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")]))
    home = DataHome.default()
    assert home.directories[:2] == (tmp_path / "a", tmp_path / "b")
    assert home.directories[-1].name == "fpbench"
    monkeypatch.delenv("FPBENCH_DATA")
    assert DataHome.default().directories == home.directories[-1:]


def test_sha256_is_that_of_the_standard_library(tmp_path: Path) -> None:
    assert compute_sha256(_put(tmp_path / "x", GOOD)) == hashlib.sha256(GOOD).hexdigest()


def test_fetch_keeps_what_it_verified_and_is_silent(
    tmp_path: Path, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    home = _home(tmp_path)
    logging.getLogger("pooch").setLevel("DEBUG")
    got = home.fetch(_file(f"{server}/good"))
    assert got == tmp_path / "user" / "some.data"
    assert got.read_bytes() == GOOD
    assert home.find("some.data") == got
    assert capfd.readouterr() == ("", "")


def test_fetch_into_a_directory(tmp_path: Path, server: str) -> None:
    got = _home(tmp_path).fetch(_file(f"{server}/good"), tmp_path / "other")
    assert got == tmp_path / "other" / "some.data"


def test_fetch_downloads_nothing_that_is_here(tmp_path: Path) -> None:
    here = _put(tmp_path / "given/some.data", GOOD)
    assert _home(tmp_path).fetch(_file("http://127.0.0.1:1/")) == here


def test_fetch_replaces_a_bad_file_of_its_own(tmp_path: Path, server: str) -> None:
    bad = _put(tmp_path / "user/some.data", GOOD[:50])
    assert _home(tmp_path).fetch(_file(f"{server}/good")) == bad
    assert bad.read_bytes() == GOOD


def test_fetch_leaves_a_file_that_the_user_gave(tmp_path: Path, server: str) -> None:
    mine = _put(tmp_path / "given/some.data", b"edited")
    with pytest.raises(DataError, match=r"would hide a download.*move it away"):
        _home(tmp_path).fetch(_file(f"{server}/good"))
    assert mine.read_bytes() == b"edited"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_abandoned_sockets")
@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("/good", b"another", "the downloaded file is not the known original: its sha256 is"),
        ("/truncated", GOOD, "IncompleteRead|100 bytes read"),
        ("/gone", GOOD, "404"),
        ("/dropped", GOOD, "without response"),
    ],
)
def test_a_failed_download_changes_nothing(
    tmp_path: Path, server: str, path: str, content: bytes, reason: str
) -> None:
    old = _put(tmp_path / "user/some.data", b"old")
    with pytest.raises(DataError, match=reason) as error:
        _home(tmp_path).fetch(_file(server + path, content))
    assert "'some.data' could not be fetched from http://127.0.0.1" in str(error.value)
    assert "\n" not in str(error.value)
    assert old.read_bytes() == b"old"
    assert [file.name for file in old.parent.iterdir()] == ["some.data"]


def test_a_refused_connection_is_one_error(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can answer here
        port = closed.getsockname()[1]
        with pytest.raises(DataError, match=r"could not be fetched.*FPBENCH_DATA"):
            _home(tmp_path).fetch(_file(f"http://127.0.0.1:{port}/good"))
    assert not (tmp_path / "user/some.data").exists()


def test_a_directory_that_cannot_be_made_is_one_error(tmp_path: Path, server: str) -> None:
    blocked = _put(tmp_path / "file", b"")
    with pytest.raises(DataError, match="could not be fetched"):
        _home(tmp_path).fetch(_file(f"{server}/good"), blocked / "below")


def test_a_file_that_nobody_offers_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match="no download address is known.*download it by hand into a folder of FPBENCH_DATA",
    ):
        _home(tmp_path).fetch(DataFile("some.data"))


def test_an_url_that_is_none_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be fetched"):
        _home(tmp_path).fetch(_file("gopher:/nowhere"))


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_abandoned_sockets")
@pytest.mark.parametrize(
    ("path", "attempts"), [("/cut-once", 2), ("/wrong-twice", 3), ("/good", 1)]
)
def test_a_download_that_goes_wrong_is_tried_again(
    tmp_path: Path, server: str, path: str, attempts: int
) -> None:
    got = _home(tmp_path).fetch(_file(server + path))
    assert got.read_bytes() == GOOD
    assert _asked == [path] * attempts


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_abandoned_sockets")
@pytest.mark.parametrize(("path", "attempts"), [("/truncated", 3), ("/gone", 1)])
def test_it_is_tried_three_times_and_only_if_that_may_help(
    tmp_path: Path, server: str, path: str, attempts: int
) -> None:
    with pytest.raises(DataError):
        _home(tmp_path).fetch(_file(server + path))
    assert _asked == [path] * attempts


def test_a_file_is_taken_out_of_an_archive(tmp_path: Path, server: str) -> None:
    file = replace(_file(f"{server}/zip"), member="inner.data")
    got = _home(tmp_path).fetch(file)
    assert got == tmp_path / "user" / "some.data"
    assert got.read_bytes() == GOOD
    assert [path.name for path in got.parent.iterdir()] == ["some.data"]


@pytest.mark.parametrize(("path", "member"), [("/zip", "outer.data"), ("/good", "inner.data")])
def test_an_archive_that_is_none_or_lacks_the_file_is_one_error(
    tmp_path: Path, server: str, path: str, member: str
) -> None:
    with pytest.raises(DataError, match=f"not a zip archive with '{member}'"):
        _home(tmp_path).fetch(replace(_file(server + path), member=member))


def test_what_is_accepted_is_kept_in_place_of_what_came(tmp_path: Path, server: str) -> None:
    def shouted(content: bytes) -> bytes:
        return content.upper()

    got = _home(tmp_path).fetch(_file(f"{server}/good", b"unknown"), accept=shouted)
    assert got.read_bytes() == GOOD.upper()
    again = _home(tmp_path).fetch(_file(f"{server}/good", b"unknown"), accept=shouted)
    assert again == got
    assert _asked == ["/good"]


def test_what_is_not_accepted_is_tried_again_and_never_kept(tmp_path: Path, server: str) -> None:
    def refused(content: bytes) -> bytes:
        raise DataError("not\nthis")

    with pytest.raises(DataError, match="not this"):
        _home(tmp_path).fetch(_file(f"{server}/good"), accept=refused)
    assert len(_asked) == 3
    assert not (tmp_path / "user/some.data").exists()


def test_a_file_of_which_no_checksum_is_known_is_good_if_it_is_here(
    tmp_path: Path, server: str
) -> None:
    file = DataFile("below/some.data", f"{server}/good")
    got = _home(tmp_path).fetch(file)
    assert got == tmp_path / "user/below/some.data"
    assert _home(tmp_path).fetch(file) == got
    assert _asked == ["/good"]


def test_other_names_are_looked_for_after_the_first_one_everywhere(tmp_path: Path) -> None:
    home = _home(tmp_path)
    file = DataFile("2018/some.data", other_names=("some.data",))
    with pytest.raises(DataError, match=r"'2018/some.data' or 'some.data' not found"):
        home.find(file)
    plain = _put(tmp_path / "given/some.data", b"plain")
    assert home.find(file) == plain
    assert home.missing([file]) == []
    first = _put(tmp_path / "user/2018/some.data", b"first")
    assert home.find(file) == first


def test_a_file_from_the_root_is_found_by_its_path(tmp_path: Path) -> None:
    path = _put(tmp_path / "elsewhere/own.csv", b"x")
    assert _home(tmp_path).find(str(path)) == path


def test_what_is_made_is_kept_only_if_it_is_right(tmp_path: Path) -> None:
    home, file = _home(tmp_path), _file("")
    with pytest.raises(DataError, match="it is not the known original"):
        home.keep(file, lambda path: path.write_bytes(b"wrong"))
    assert list((tmp_path / "user").iterdir()) == []
    made = home.keep(file, lambda path: path.write_bytes(GOOD))
    assert made.read_bytes() == GOOD
    assert home.keep(file, lambda path: pytest.fail("is here already")) == made


def test_a_home_can_be_hashed_whatever_it_holds(tmp_path: Path) -> None:
    assert hash(_home(tmp_path)) == hash(DataHome(_home(tmp_path).directories))
