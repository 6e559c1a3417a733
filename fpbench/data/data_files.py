"""Data files: finding, verifying and, only on demand, downloading them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench.base.errors import DataError, HiddenError

if TYPE_CHECKING:
    from fpbench.data.table import Table

_ATTEMPTS = 3
"""Greatest number of downloads of a file that arrives truncated or wrong."""
_PAUSE = 0.5
"""Seconds between two attempts."""
_NO_DATA = "FPBENCH_NO_DATA"
"""Environment variable of processes that must not load data sets; child processes inherit it."""
_LEAVE = {"load": _NO_DATA not in os.environ}
"""Whether this process may load data sets."""


def refuse_data() -> None:
    """Forbid this process to load data sets, as an adversary runs in it."""
    os.environ[_NO_DATA] = "1"
    _LEAVE["load"] = False


def check_leave() -> None:
    """Raise HiddenError if this process is an adversary's."""
    if not _LEAVE["load"]:
        raise HiddenError("an adversary's process cannot load a data set: it has only its view")


@dataclass(frozen=True)
class DataFile:
    """A file that a dataset reads, and its known original.

    Attributes
    ----------
    name
        Its path relative to a data directory, or absolute.
    url
        Download address; empty if there is none.
    sha256
        Hexadecimal checksum of the known original; empty if none is known.
    member
        Its name in the downloaded zip archive; empty if the download is the file itself.
    other_names
        Paths to try if there is no file at `name`.
    """

    name: str
    url: str = ""
    sha256: str = ""
    member: str = ""
    other_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataHome:
    """The directories that are searched for data files; the first match wins.

    `DataHome.default()` has the directories of `FPBENCH_DATA` (joined as in PATH), then the user's
    data directory.

    Attributes
    ----------
    directories
        Folders that are searched for data files, in order; files are fetched into the first.
    tables
        In-memory data sets by name.
    """

    directories: tuple[Path, ...]
    tables: Mapping[str, Table] = field(default_factory=dict, hash=False)

    @classmethod
    def default(cls) -> DataHome:
        """The directories of this user and environment."""
        from platformdirs import user_data_path

        variable = os.environ.get("FPBENCH_DATA", "")
        places = [Path(place).expanduser() for place in variable.split(os.pathsep) if place]
        return cls((*places, user_data_path("fpbench")))

    def explain_gap(self) -> str:
        """The missing folders of FPBENCH_DATA, in brackets; empty if none is missing."""
        gone = [repr(str(place)) for place in self.directories[:-1] if not place.is_dir()]
        return f" (FPBENCH_DATA: no folder {' or '.join(gone)})" if gone else ""

    def missing(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Files that are in none of the directories."""
        return [file for file in files if self._look(file) is None]

    def find(self, file: DataFile | str) -> Path:
        """Path of a file.

        Raises
        ------
        DataError
            If it is in none of the directories.
        """
        file = DataFile(file) if isinstance(file, str) else file
        path = self._look(file)
        if path is None:
            names = " or ".join(map(repr, (file.name, *file.other_names)))
            raise DataError(f"data file {names} not found in {self}")
        return path

    def fetch(
        self,
        file: DataFile,
        into: Path | None = None,
        accept: Callable[[bytes], bytes] | None = None,
    ) -> Path:
        """Download a file into `into` (the user's data directory by default) and verify it.

        Nothing is downloaded if the known original is already here. A truncated or wrong download
        is tried again twice; only a verified download is written to disk, so a good file is never
        replaced by a bad one.

        Parameters
        ----------
        file
            The file to fetch.
        into
            A directory; a file in any other directory does not count as present.
        accept
            Returns the part of the download to store; raises `DataError` if the download is wrong.
            By default everything is stored, and its checksum must be that of the known original.

        Raises
        ------
        DataError
            If the download fails or is wrong, or if a file of the same name in a directory that is
            searched earlier would hide it.
        """
        check = accept or (lambda content: _check_original(content, file))

        def write(path: Path) -> None:
            path.write_bytes(_download(file, check))

        return self.keep(file, write, into, lambda path: check(path.read_bytes()))

    def keep(
        self,
        file: DataFile,
        write: Callable[[Path], object],
        into: Path | None = None,
        check: Callable[[Path], object] | None = None,
    ) -> Path:
        """The path of a file, which is created if missing or wrong.

        Parameters
        ----------
        file
            The file to make.
        write
            Writes the file to a temporary path, which is then renamed.
        into
            A directory, by default the user's data directory.
        check
            Raises `DataError` if a file is wrong; by default, its checksum must be that of the
            known original, if there is one.

        Raises
        ------
        DataError
            If the file cannot be created, or is wrong, or if a file of the same name in a
            directory that is searched earlier would hide it.
        """
        from tempfile import TemporaryDirectory

        check = check or (lambda path: _verify(path, file))
        present = None if into else self._look(file)
        target = (into or self.directories[-1]) / file.name
        if present is not None and _passes(present, file, check):
            return present
        hidden = self._look(DataFile(file.name))
        if not into and hidden is not None and hidden != target:
            raise DataError(
                f"data file {str(hidden)!r} is not the known original and would hide a download "
                f"into {str(target.parent)!r}: move it away first"
            )
        if into and target.is_file() and _passes(target, file, check):
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".fetch-", dir=target.parent) as beside:
                draft = Path(beside) / target.name
                write(draft)
                check(draft)
                draft.replace(target)
        except (OSError, DataError) as error:
            whence = f" from {file.url}" if file.url else ""
            why = _explain_failure(error)
            raise DataError(
                f"data file {file.name!r} could not be fetched{whence} into "
                f"{str(target.parent)!r}: {why}; or download it by hand into a "
                "folder of FPBENCH_DATA"
            ) from error
        return target

    def _look(self, file: DataFile) -> Path | None:
        check_leave()
        names = (file.name, *file.other_names)
        paths = (directory / name for name in names for directory in self.directories)
        return next((path for path in paths if path.is_file()), None)

    def __str__(self) -> str:
        return os.pathsep.join(str(directory) for directory in self.directories)


def _passes(path: Path, file: DataFile, check: Callable[[Path], object]) -> bool:
    """Whether a file is the known original, or passes a check."""
    if file.sha256 and compute_sha256(path) == file.sha256:
        return True
    try:
        check(path)
    except DataError:
        return False
    return True


def _verify(path: Path, file: DataFile) -> None:
    if file.sha256 and (actual := compute_sha256(path)) != file.sha256:
        raise DataError(f"it is not the known original: its sha256 is {actual}, not {file.sha256}")


def _check_original(content: bytes, file: DataFile) -> bytes:
    actual = hashlib.sha256(content).hexdigest()
    if file.sha256 and actual != file.sha256:
        raise DataError(
            f"the downloaded file is not the known original: its sha256 is {actual}, not "
            f"{file.sha256}"
        )
    return content


def _download(file: DataFile, check: Callable[[bytes], bytes]) -> bytes:
    """The checked content of a download, after several attempts if necessary."""
    if not file.url:
        raise DataError("no download address is known")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return check(_find_member(_get(file.url), file))
        except (OSError, DataError) as error:  # from requests, or from the check
            if attempt == _ATTEMPTS or not _may_pass(error):
                raise
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")


def _explain_failure(error: Exception) -> str:
    """Why a download failed, shortened if there is no network."""
    text = " ".join(str(error).split())
    for why in ("NameResolutionError", "NewConnectionError", "ConnectTimeoutError", "ProxyError"):
        if why in text:
            return f"the server cannot be reached ({why}): is there a network?"
    return text


def _may_pass(error: Exception) -> bool:
    """Whether another attempt may succeed: not after a client error such as 404."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status is None or not 400 <= status < 500


def _get(url: str) -> bytes:
    import pooch

    # pooch announces every download on the terminal, where only fpbench may write.
    pooch.get_logger().setLevel("WARNING")
    content = BytesIO()
    try:
        pooch.downloaders.choose_downloader(url, progressbar=False)(url, content, None)
    except ValueError as error:  # an invalid address
        raise OSError(str(error)) from error
    return content.getvalue()


def _find_member(content: bytes, file: DataFile) -> bytes:
    """The file in a downloaded archive, or the download itself."""
    import zipfile
    import zlib

    if not file.member:
        return content
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return archive.read(file.member)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
        raise DataError(
            f"the downloaded file is not a zip archive with {file.member!r}: {error}"
        ) from error


def compute_sha256(path: Path) -> str:
    """Hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
