"""The manifest of a submission: every file with its checksum, in the format of `sha256sum`.

The manifest is signed. Files changed, added or removed since then are reported.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fpbench.base.errors import StoreError
from fpbench.base.files import check_file, open_file, read_file

MANIFEST = "manifest.txt"
SIGNATURE = "manifest.txt.sig"
TEXT_BYTES = 2**20
"""Greatest size of a manifest, a signature or a lock in bytes."""

_MOST_BYTES = 2**30
"""Greatest size of all files; a run of a million cells takes less than half of it."""
_MOST_FILES = 1000
_DEEPEST = 8
_LINE = re.compile(r"([0-9a-f]{64})  (\S(?:.*\S)?)")
_CHUNK = 2**20


@dataclass(frozen=True)
class FolderChanges:
    """How the files of a folder differ from a manifest."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __str__(self) -> str:
        parts = (("changed", self.changed), ("added", self.added), ("removed", self.removed))
        return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)


def compute_manifest(folder: Path) -> dict[str, str]:
    """The checksum of every file of a folder by path, except manifest and signature.

    Raises StoreError if it has anything but its own regular files and folders, more than 1,000
    files, more than 1 GiB, or a name that a manifest cannot contain.
    """
    return {name: _compute_checksum(folder / name) for name in sorted(_list_files(folder))}


def write_manifest(checksums: Mapping[str, str]) -> str:
    """A manifest as text, which `sha256sum --check` reads."""
    return "".join(f"{checksums[name]}  {name}\n" for name in sorted(checksums))


def read_manifest(folder: Path) -> tuple[bytes, dict[str, str]]:
    """The manifest of a folder: its bytes, and the checksums by path.

    Raises StoreError if there is none, or it cannot be read.
    """
    file = folder / MANIFEST
    content = read_text_file(file)
    checksums: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in checksums or len(checksums) == _MOST_FILES:
            raise StoreError(f"{file}: line {number} is not a checksum and path of another file")
        checksums[match[2]] = match[1]
    return content, checksums


def find_changes(folder: Path, checksums: Mapping[str, str]) -> FolderChanges:
    """How the files of a folder differ from the checksums of a manifest."""
    now = compute_manifest(folder)
    return FolderChanges(
        changed=tuple(name for name in now if checksums.get(name, now[name]) != now[name]),
        added=tuple(name for name in now if name not in checksums),
        removed=tuple(sorted(name for name in checksums if name not in now)),
    )


def read_text_file(file: Path, *, named: bool = False) -> bytes:
    """The content of a small file of a submission, or of one that the user `named`.

    StoreError if it is missing or refused.
    """
    try:
        return read_file(file, most=TEXT_BYTES, named=named)
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error


def _list_files(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, with `/` between names; links are not followed."""
    pending, count, size = [("", 0)], 0, 0
    while pending:
        prefix, depth = pending.pop()
        for entry in _scan(folder / prefix):
            name = f"{prefix}{entry.name}"
            if not _is_writable(entry.name):
                raise StoreError(f"{folder}: the name {name!r} cannot be in a manifest")
            if entry.is_dir(follow_symlinks=False):
                if depth == _DEEPEST:
                    raise StoreError(f"{folder / name}: is more than {_DEEPEST} folders deep")
                pending.append((f"{name}/", depth + 1))
            elif name not in (MANIFEST, SIGNATURE):
                size += _measure(Path(entry.path))
                if size > _MOST_BYTES:
                    raise StoreError(f"{folder}: holds more than {_MOST_BYTES // 2**30} GiB")
                yield name
            count += 1
            if count > _MOST_FILES:
                raise StoreError(f"{folder}: holds more than {_MOST_FILES:,} files")


def _is_writable(name: str) -> bool:
    """Whether a line of a manifest can contain the name."""
    return name.isprintable() and "\\" not in name and name == name.strip()


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, _MOST_FILES + 1))  # the caller refuses more
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _measure(file: Path) -> int:
    """The size of a regular file in bytes; for a sparse one, the size when read."""
    try:
        return check_file(file, most=_MOST_BYTES).st_size
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error


def _compute_checksum(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with os.fdopen(open_file(file, most=_MOST_BYTES), "rb") as stream:
            while piece := stream.read(_CHUNK):
                digest.update(piece)
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()
