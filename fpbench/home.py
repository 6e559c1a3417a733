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

        A download is kept only if its checksum is that of the known original, so a good file is
        never replaced by a bad one.

        Raises
        ------
        DataError
            If the download fails or is not the known original.
        """
        import pooch

        try:
            got = pooch.retrieve(
                file.url,
                known_hash=f"sha256:{file.sha256}",
                fname=file.name,
                path=into or self.directories[-1],
            )
        except (OSError, ValueError) as error:  # ValueError is pooch's word for a bad checksum
            raise DataError(f"data file {file.name!r} could not be fetched: {error}") from error
        return Path(got)

    def _look(self, name: str) -> Path | None:
        return next((d / name for d in self.directories if (d / name).is_file()), None)

    def __str__(self) -> str:
        return os.pathsep.join(str(directory) for directory in self.directories)


def sha256(path: Path) -> str:
    """Hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
