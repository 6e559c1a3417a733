"""The runs of a site: each is read once, checked, and described, or has a reason why not."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fpbench import __version__
from fpbench.base.errors import FpbenchError, StoreError
from fpbench.base.files import read_file, read_matrix
from fpbench.components.catalog import discover
from fpbench.results.across_runs import BoardEntry, Place, list_entries
from fpbench.results.snapshot import Snapshot, read_snapshot
from fpbench.store.environment import describe_environment
from fpbench.store.reading import SessionRecord
from fpbench.store.store import Store
from fpbench.testing.submissions.checking import CheckOptions, CheckOutcome, Checkup, Finding, check
from fpbench.testing.submissions.folder import Submission, find_submission
from fpbench.testing.submissions.manifest import (
    MANIFEST,
    SIGNATURE,
    TEXT_BYTES,
    compute_manifest,
    read_text_file,
    write_manifest,
)

_LONGEST_NAME = 60
_LONGEST_TITLE = 200
_MOST_COMBINATIONS = 5_000
"""Ranking takes time quadratic in the data sets and learners of a run: seconds for a thousand."""


@dataclass(frozen=True)
class Entrant:
    """A run of a site."""

    name: str
    """Stem of its page."""
    title: str
    checkup: Checkup
    checksum: str
    """sha256 of its files; empty if they cannot be listed."""
    seal: str = ""
    """sha256 of its files with manifest and signature; empty if these cannot be read."""
    snapshot: Snapshot | None = None
    """Its content; None if it cannot be read or ranked."""
    entries: tuple[tuple[Place, BoardEntry], ...] = ()
    """Its entries on the boards."""
    sessions: tuple[SessionRecord, ...] = ()
    matrix: str = ""
    """The text of its matrix."""
    problem: str = ""
    """Why it cannot be ranked."""

    @property
    def verified(self) -> bool:
        """Whether a sample of its cells was recomputed, and no check failed."""
        return self.checkup.verified and not self.problem

    @property
    def reason(self) -> str:
        """Why it is not verified; empty if it is."""
        return self.problem if self.checkup.verified else self.checkup.reason

    @property
    def started(self) -> str:
        """The day of its latest session."""
        return write_time(self.sessions[-1].started)[:10] if self.sessions else ""


def write_time(seconds: float) -> str:
    """A time, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):  # somebody changed the run
        return ""


def read_entrants(
    paths: Sequence[Path], options: CheckOptions, earlier: Mapping[str, Any]
) -> list[Entrant]:
    """The runs of some folders, in their order.

    `earlier`: results of `record_check` from the last build, by seal. A run that has not changed,
    and would be checked in the same way, is not checked again.

    Raises StoreError if one of the paths is neither a run directory nor a submission.
    """
    submissions = [find_submission(path) for path in paths]
    names = make_names([submission.folder.resolve().name for submission in submissions])
    here = describe_checks(options)
    return [
        _read_entrant(submission, name, options, earlier, here)
        for submission, name in zip(submissions, names, strict=True)
    ]


def make_names(texts: Sequence[str]) -> list[str]:
    """Stems of files: small letters, digits and hyphens, no two alike."""
    names: list[str] = []
    for text in texts:
        stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST_NAME] or "unnamed"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}-{number}"
        names.append(name)
    return names


def describe_checks(options: CheckOptions) -> str:
    """A checksum of all that decides the result of checks, besides the run: versions, options."""
    catalog = discover()
    versions = describe_environment({}, catalog)
    signers = ""
    if options.signers is not None:
        signers = read_file(options.signers, most=TEXT_BYTES, named=True).hex()
    parts = [__version__, versions, options.sample, options.limits.model_dump(), signers]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def record_check(entrant: Entrant, here: str) -> dict[str, Any]:
    """A check as plain data, for the next build of the site."""
    return {
        "checks": here,
        "same": entrant.checkup.same,
        "findings": [list(finding) for finding in entrant.checkup.findings],
    }


def _recall_check(submission: Submission, recorded: Any, here: str) -> Checkup | None:
    """A recorded check; None if there is none, or the checks have changed."""
    try:
        if recorded["checks"] != here:
            return None
        findings = tuple(
            Finding(str(n), CheckOutcome(o), str(w)) for n, o, w in recorded["findings"]
        )
        return Checkup(submission, findings, int(recorded["same"])) if findings else None
    except (KeyError, TypeError, ValueError):
        return None


def _read_entrant(
    submission: Submission,
    name: str,
    options: CheckOptions,
    earlier: Mapping[str, Any],
    here: str,
) -> Entrant:
    try:
        manifest = write_manifest(compute_manifest(submission.folder))
        checksum = hashlib.sha256(manifest.encode()).hexdigest()
    except FpbenchError as error:
        checksum = ""
        if submission.is_submission:  # files that do not belong there are not read
            problem = submission.hide_place(str(error))
            return Entrant(name, name, check(submission, options), "", problem=problem)
    seal = _compute_seal(submission, checksum)
    checkup = _recall_check(submission, earlier.get(seal), here) or check(submission, options)
    try:
        with Store(submission.run) as store:
            snapshot, sessions = read_snapshot(store, keys=False), tuple(store.sessions())
        if (count := len(snapshot.results.combinations)) > _MOST_COMBINATIONS:
            raise StoreError(
                f"{submission.run}: combines components in {count:,} ways, and a site shows runs "
                f"of at most {_MOST_COMBINATIONS:,}"
            )
        entries = list_entries(snapshot.results, snapshot.matrix)
        matrix = read_matrix(submission.run)
    except FpbenchError as error:
        problem = submission.hide_place(str(error))
        return Entrant(name, name, checkup, checksum, seal, problem=problem)
    text = matrix[1].decode(errors="replace") if matrix else ""
    title = snapshot.title[:_LONGEST_TITLE].strip() or name
    return Entrant(
        name, title, checkup, checksum, seal, snapshot, tuple(entries), sessions, text
    )  # fmt: skip


def _compute_seal(submission: Submission, checksum: str) -> str:
    """A checksum of files, manifest and signature: a check of the same seal has the same result."""
    if not checksum:
        return ""
    digest = hashlib.sha256(checksum.encode())
    for name in (MANIFEST, SIGNATURE) if submission.is_submission else ():
        file = submission.folder / name
        try:
            content = read_text_file(file) if os.path.lexists(file) else b""
        except StoreError:
            return ""
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()
