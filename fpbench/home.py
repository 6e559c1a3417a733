"""Where data files are: looked for, verified, and (only when asked) downloaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fpbench.errors import DataError


@dataclass(frozen=True)
class RemoteFile:
    """A file that a dataset reads, and its known original."""

    name: str
    url: str
    sha256: str
    """Hexadecimal checksum of the known original."""


@dataclass(frozen=True)
class DataHome:
    """The directories in which data files are looked for, first match wins.

    `DataHome.default()` is `FPBENCH_DATA` (several directories may be joined as in PATH), then
    the user's data directory.
    """

    directories: tuple[Path, ...]

    @classmethod
    def default(cls) -> DataHome:
        """The directories of this user and environment."""
        from platformdirs import user_data_path

        given = os.environ.get("FPBENCH_DATA", "")
        places = [Path(place).expanduser() for place in given.split(os.pathsep) if place]
        return cls((*places, user_data_path("fpbench")))

    def missing(self, files: Sequence[RemoteFile]) -> list[RemoteFile]:
        """Those of the files that are in none of the directories."""
        return [file for file in files if self._look(file.name) is None]

    def find(self, name: str) -> Path:
        """Path of a file.

        Raises
        ------
        DataError
            If it is in none of the directories.
        """
        path = self._look(name)
        if path is None:
            raise DataError(f"data file {name!r} not found in {self}")
        return path

    def fetch(self, file: RemoteFile, into: Path | None = None) -> Path:
        """Download a file into `into` (the user's data directory by default) and verify it.

        Nothing is downloaded if the known original is already found. A download is kept only if
        its checksum is that of the known original, so a good file is never replaced by a bad one.

        Raises
        ------
        DataError
            If the download fails or is not the known original, or if a file of the same name in
            another directory, found first, would hide it.
        """
        found = None if into else self._look(file.name)
        target = into or self.directories[-1]
        if found is not None and sha256(found) == file.sha256:
            return found
        if found is not None and found.parent != target:
            raise DataError(
                f"data file {str(found)!r} is not the known original and would hide a download "
                f"into {str(target)!r}: move it away first"
            )
        return _download(file, target)

    def _look(self, name: str) -> Path | None:
        return next((d / name for d in self.directories if (d / name).is_file()), None)

    def __str__(self) -> str:
        return os.pathsep.join(str(directory) for directory in self.directories)


def _download(file: RemoteFile, target: Path) -> Path:
    import pooch

    # pooch announces every download on the terminal, which is not its to write on.
    pooch.get_logger().setLevel("WARNING")
    try:
        got = pooch.retrieve(
            file.url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=target
        )
    except (OSError, ValueError) as error:  # requests raises the one, a bad checksum the other
        raise DataError(
            f"data file {file.name!r} could not be fetched from {file.url} into "
            f"{str(target)!r}: {error}; or put it by hand where FPBENCH_DATA points"
        ) from error
    return Path(got)


def sha256(path: Path) -> str:
    """Hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
