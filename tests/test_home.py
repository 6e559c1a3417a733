import gc
import hashlib
import logging
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fpbench import DataError, DataHome, RemoteFile
from fpbench.home import sha256

GOOD = b"one, two\n" * 1000


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/gone":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(GOOD)))
        self.end_headers()
        self.wfile.write(GOOD[:100] if self.path == "/truncated" else GOOD)

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
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def _abandoned_sockets() -> Iterator[None]:
    """Collect what pooch leaves open when a download fails, before another test is blamed."""
    yield
    gc.collect()


def _file(url: str, content: bytes = GOOD) -> RemoteFile:
    return RemoteFile("some.data", url, hashlib.sha256(content).hexdigest())


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
    assert sha256(_put(tmp_path / "x", GOOD)) == hashlib.sha256(GOOD).hexdigest()


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


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("_abandoned_sockets")
@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("/good", b"another", "does not match the known hash"),
        ("/truncated", GOOD, "IncompleteRead|100 bytes read"),
        ("/gone", GOOD, "404"),
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


def test_an_url_that_is_none_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be fetched"):
        _home(tmp_path).fetch(_file("gopher:/nowhere"))
