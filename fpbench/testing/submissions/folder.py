"""A submission as a folder: a run directory, the lock of its versions, and a manifest."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fpbench.base.errors import StoreError
from fpbench.base.files import write_file
from fpbench.store.locks import LOCK_FILE, STORE
from fpbench.store.merging import copy
from fpbench.store.store import Store
from fpbench.testing.submissions.lock import LOCK, list_versions, write_lock
from fpbench.testing.submissions.manifest import MANIFEST, compute_manifest, write_manifest

RUN = "run"
"""Name of the run directory in a submission."""


@dataclass(frozen=True)
class Submission:
    """A run, alone or in the folder of a submission."""

    folder: Path
    """The folder; the run directory itself if it is not a submission."""
    run: Path
    """The run directory."""

    @property
    def is_submission(self) -> bool:
        """Whether it is the folder of a submission, not only a run directory."""
        return self.folder != self.run

    def hide_place(self, text: str) -> str:
        """A message without the path to the folder, which is private."""
        return text.replace(str(self.folder), self.folder.name or ".")


def find_submission(path: Path) -> Submission:
    """The submission in a folder, or the run of a run directory.

    Raises StoreError if the path is neither.
    """
    if (path / STORE).exists():
        return Submission(path, path)
    if not (path / RUN / STORE).exists():
        raise StoreError(
            f"{path}: neither a run directory ({STORE} is missing) nor a submission "
            f"({RUN}/{STORE} is missing)"
        )
    if (path / RUN).is_symlink():
        raise StoreError(f"{path / RUN}: is a link; a submission must have its own files")
    return Submission(path, path / RUN)


def require_submission(path: Path) -> Submission:
    """The submission in a folder; StoreError, with the command that makes one, if it is not one."""
    submission = find_submission(path)
    if not submission.is_submission:
        raise StoreError(
            f"{path}: is a run directory, not a submission; fpbench submit new {path} makes one"
        )
    return submission


def make_submission(run: Path, target: Path) -> Path:
    """Copy a run into a new submission, with the lock of its versions and a manifest.

    `target`: the new folder, missing or empty.

    Raises StoreError if there is no run, it has no finished cell or no matrix file, or the target
    cannot be written.
    """
    with Store(run) as store:
        if not store.done():
            raise StoreError(f"{run}: no cell is done: there is nothing to submit")
        versions = list_versions(store.environment())
    if target.resolve().is_relative_to(run.resolve()):
        raise StoreError(f"{target}: is in the run directory {run}; name another with --out")
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise StoreError(f"{target}: already exists; name a new directory with --out")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror or error}") from error
    try:
        copy(run, part / RUN)
        (part / RUN / LOCK_FILE).unlink()  # it names this machine
        write_file(part / LOCK, write_lock(versions))
        write_file(part / MANIFEST, write_manifest(compute_manifest(part)))
        part.chmod(0o755)
        part.replace(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return target
