"""A site, from run directories to files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpbench import __version__
from fpbench.base.errors import InputError, StoreError
from fpbench.base.files import read_file, write_file
from fpbench.base.text import hide_paths
from fpbench.components.catalog import discover
from fpbench.components.names import KINDS
from fpbench.report.site.cards import Card, make_card
from fpbench.report.site.entrants import (
    Entrant,
    describe_checks,
    make_names,
    read_entrants,
    record_check,
)
from fpbench.report.site.pages import Contents
from fpbench.results.across_runs import Section, rank_across
from fpbench.testing.submissions.checking import CheckOptions
from fpbench.testing.submissions.folder import find_submission

RECORD = "site.json"
"""The content of the site, for programs and for the next build."""
_RECORD_BYTES = 2**28
_PAGE = re.compile(r"(?:components/|submissions/)?[a-z0-9-]+\.html")


@dataclass(frozen=True)
class Site:
    """A built site."""

    directory: Path
    entrants: tuple[Entrant, ...]
    sections: tuple[Section, ...]
    pages: int


def build_site(
    runs: Sequence[Path],
    directory: Path,
    options: CheckOptions,
    *,
    title: str = "fpbench leaderboard",
    again: bool = False,
) -> Site:
    """Check runs and submissions, and write them as a static site.

    `runs`: run directories and submissions; they are only read. `directory`: the folder of the
    site: missing, empty, or with a site that was built before. `again`: whether to check runs again
    that have not changed since the last build.

    Raises StoreError if a path is neither a run directory nor a submission; InputError if the
    directory holds anything but a site, is in one of the runs, or cannot be written.
    """
    for run in runs:
        if directory.resolve().is_relative_to(find_submission(run).folder.resolve()):
            raise InputError(
                f"{directory}: is in {run}, which is only read; name another directory with -o"
            )
    earlier = _read_record(directory)
    checks = {} if again else earlier.get("checks")
    entrants = read_entrants(runs, options, checks if isinstance(checks, dict) else {})
    sections = rank_across([(each.entries, each.verified) for each in entrants])
    pages = Contents(title, entrants, sections, _make_cards(entrants)).write_pages()
    here = describe_checks(options)
    record = {
        "fpbench": __version__,
        "title": title,
        "submissions": [_describe_entrant(each) for each in entrants],
        "boards": [_describe_section(section, entrants) for section in sections],
        "checks": {e.seal: record_check(e, here) for e in entrants if e.seal},
        "pages": sorted(pages),
    }
    _write(directory, pages, record, earlier.get("pages"))
    return Site(directory, tuple(entrants), tuple(sections), len(pages))


def _make_cards(entrants: Iterable[Entrant]) -> dict[tuple[str, str], Card]:
    """A card for every component of the runs that is installed here."""
    catalog = discover()
    used = {
        (kind, component.use)
        for entrant in entrants if entrant.snapshot is not None
        for kind in KINDS
        for component in entrant.snapshot.components[kind].values()
    }  # fmt: skip
    keys = sorted(used & catalog.entries.keys())
    names = make_names([f"{kind} {use}" for kind, use in keys])
    return {
        (kind, use): make_card(catalog, kind, use, name)
        for (kind, use), name in zip(keys, names, strict=True)
    }


def _describe_entrant(entrant: Entrant) -> dict[str, Any]:
    return {
        "name": entrant.name,
        "title": entrant.title,
        "verified": entrant.verified,
        "reason": entrant.reason,
        "sha256": entrant.checksum,
    }


def _describe_section(section: Section, entrants: Sequence[Entrant]) -> dict[str, Any]:
    return {
        "task": section.task.name,
        "ranked_by": section.task.measure,
        "shared": [list(pair) for pair in section.shared],
        "entries": [
            {
                "rank": entry.rank,
                "components": dict(entry.components),
                "submission": entrants[entry.run].name,
                "verified": entry.verified,
                "seeds": entry.seeds,
                "front": entry.on_front,
                "means": {
                    name: value.mean if math.isfinite(value.mean) else None
                    for name, value in entry.measures.items()
                },
            }
            for entry in section.entries
        ],
    }


def _read_record(directory: Path) -> dict[str, Any]:
    """What an earlier site recorded; empty if there is none yet."""
    file = directory / RECORD
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return {}
    try:
        record = json.loads(read_file(file, most=_RECORD_BYTES))
        if not isinstance(record, dict) or "boards" not in record:
            raise ValueError
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{directory}: is not a site of fpbench ({RECORD} is missing or invalid); name a new "
            "directory with -o"
        ) from error
    return record


def _write(directory: Path, pages: dict[str, str], record: dict[str, Any], old: object) -> None:
    """Write the pages, and remove pages of an earlier site that no longer exist."""
    text = hide_paths(json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False)) + "\n"
    try:
        for folder in (directory, directory / "components", directory / "submissions"):
            folder.mkdir(parents=True, exist_ok=True)
        for name, content in pages.items():
            write_file(directory / name, hide_paths(content))
        write_file(directory / RECORD, text)
        for name in old if isinstance(old, list) else ():
            if isinstance(name, str) and _PAGE.fullmatch(name) and name not in pages:
                (directory / name).unlink(missing_ok=True)
    except OSError as error:
        where = error.filename or directory
        raise StoreError(f"{where}: cannot be written: {error.strerror or error}") from error
