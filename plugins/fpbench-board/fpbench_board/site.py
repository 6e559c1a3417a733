"""A static site of many runs: each is checked, ranked beside the others, and has a page."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import fpbench
from fpbench import FpbenchError, InputError
from fpbench.base import hide_paths
from fpbench.errors import StoreError
from fpbench_board.checking import CheckOptions, Checkup, Finding, check
from fpbench_board.ranking import (
    TASKS,
    BoardEntry,
    Place,
    Section,
    Task,
    list_entries,
    rank_across,
    write_interval,
    write_value,
)

RECORD = "site.json"
"""The content of the site, for programs and for the next build."""
_PAGE = re.compile(r"(?:components/|submissions/)?[a-z0-9-]+\.html")
_LONGEST_NAME = 60
_LONGEST_TEXT = 20_000
"""Greatest length of a text on a page; a matrix is seldom longer."""
_MOST_COMBINATIONS = 5_000
"""Ranking takes time quadratic in the data sets and learners of a run: seconds for a thousand."""
_FEW_BOARDS = 8
"""Greatest number of boards of a task on the start page."""
_MOST = 200
"""Greatest number of boards on a page, and of rows: a stranger's run may have a million."""


class Card(NamedTuple):
    """What is known of a component."""

    kind: str
    use: str
    """Its name in matrices."""
    name: str
    """Stem of its page."""
    summary: str
    description: str
    reference: str
    """The paper."""
    source: str
    """Distribution and version."""


@dataclass(frozen=True)
class Entrant:
    """A run of a site."""

    run: Path
    name: str
    """Stem of its page."""
    checkup: Checkup
    seal: str
    """sha256 of its files; empty if they cannot be read."""
    snapshot: Any = None
    """Its content; None if it cannot be read or ranked."""
    entries: tuple[tuple[Place, BoardEntry], ...] = ()
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
    def title(self) -> str:
        """The title of its matrix."""
        title = "" if self.snapshot is None else self.snapshot.title[:200].strip()
        return title or self.name

    @property
    def done(self) -> str:
        """Number of its cells that are done."""
        if self.snapshot is None:
            return "-"
        return f"{int(self.snapshot.results.finished()[0].sum()):,}"

    def show_boards(self) -> Markup:
        """All that it measured, as a notebook shows it: tables in which every word is escaped."""
        try:
            boards = self.snapshot.leaderboards()
        except InputError as error:  # its matrix may rank by a measure that no row has
            return Markup("<p>{}</p>").format(str(error))
        shown = [board for board in boards[:_MOST] if len(board.lines) <= _MOST]
        text = "\n".join(board._repr_html_() for board in shown)
        if more := len(boards) - len(shown):
            text += f"<p class='hint'>{more:,} more leaderboards</p>"
        # The policy of the pages allows no styles of elements.
        return Markup(re.sub(r" style='text-align:(\w+)'", r" class='\1'", text))


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
    """Check runs, and write them as a static site.

    `runs`: run directories; they are only read. `directory`: the folder of the site: missing,
    empty, or with a site that was built before. `again`: whether to check runs again that have not
    changed since the last build.

    Raises StoreError if a path is no run directory; InputError if the directory holds anything but
    a site, or is in one of the runs.
    """
    for run in runs:
        if not (run / "store.sqlite").exists():
            raise StoreError(f"{run}: is not a run directory (store.sqlite is missing)")
        if directory.resolve().is_relative_to(run.resolve()):
            raise InputError(
                f"{directory}: is in {run}, which is only read; name another directory with -o"
            )
    earlier = _read_record(directory)
    here = _describe_checks(options)
    recorded = earlier.get("checks", {}) if earlier.get("checked") == here and not again else {}
    names = make_names([run.resolve().name for run in runs])
    entrants = [
        _read_entrant(run, name, options, recorded) for run, name in zip(runs, names, strict=True)
    ]
    sections = rank_across([(each.entries, each.verified) for each in entrants])
    pages = _write_pages(title, entrants, sections, _make_cards(entrants))
    record = {
        "fpbench": fpbench.__version__,
        "title": title,
        "submissions": [
            {"name": e.name, "title": e.title, "verified": e.verified, "reason": e.reason,
             "sha256": e.seal} for e in entrants
        ],
        "boards": [_describe_section(section, entrants) for section in sections],
        "checked": here,
        "checks": {e.seal: e.checkup for e in entrants if e.seal},
        "pages": sorted(pages),
    }  # fmt: skip
    old = earlier.get("pages")
    _write(directory, pages, record, old if isinstance(old, list) else [])
    return Site(directory, tuple(entrants), tuple(sections), len(pages))


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


def _describe_checks(options: CheckOptions) -> str:
    """A checksum of all that decides the result of checks, besides the run: versions, options."""
    versions = sorted(f"{each.name} {each.version}" for each in distributions())
    parts = [versions, {**asdict(options), "jobs": 1}]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _read_entrant(
    run: Path, name: str, options: CheckOptions, recorded: Mapping[str, Any]
) -> Entrant:
    seal = _compute_seal(run)
    checkup = _recall_check(recorded.get(seal)) or check(run, options)
    try:
        snapshot = fpbench.load(run).read(keys=False)
        if (count := len(snapshot.results.combinations)) > _MOST_COMBINATIONS:
            raise StoreError(
                f"{run}: combines components in {count:,} ways, and a site shows runs of at most "
                f"{_MOST_COMBINATIONS:,}"
            )
        entries = tuple(list_entries(snapshot))
    except FpbenchError as error:
        problem = str(error).replace(str(run), run.name or ".")
        return Entrant(run, name, checkup, seal, problem=problem)
    files = [file for end in ("toml", "json") if (file := run / f"matrix.{end}").is_file()]
    # Without a seal there are links, to any file of this machine.
    matrix = files[0].read_bytes().decode(errors="replace") if files and seal else ""
    return Entrant(run, name, checkup, seal, snapshot, entries, matrix)


def _compute_seal(run: Path) -> str:
    """A checksum of the files of a run; empty if it holds anything but files of its own."""
    sums = []
    for file in sorted(run.rglob("*")):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            return ""
        if file.is_file() and file.name != "store.lock":
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            sums.append(f"{digest}  {file.relative_to(run).as_posix()}\n")
    return hashlib.sha256("".join(sums).encode("utf-8", "surrogatepass")).hexdigest()


def _recall_check(recorded: Any) -> Checkup | None:
    """A check of the last build; None if there is none."""
    try:
        findings, same, versions = recorded
        told = tuple(Finding(*map(str, each)) for each in findings)  # type: ignore[arg-type]
        changed = tuple((str(name), str(one), str(other)) for name, one, other in versions)
        return Checkup(told, int(same), changed) if told else None
    except (TypeError, ValueError):
        return None


def _make_cards(entrants: Iterable[Entrant]) -> dict[tuple[str, str], Card]:
    """A card for every component of the runs that is installed here."""
    catalog = fpbench.plugin.discover()
    used = sorted({
        (kind, component.use)
        for entrant in entrants if entrant.snapshot is not None
        for kind, components in entrant.snapshot.components.items()
        for component in components.values()
    } & catalog.entries.keys())  # fmt: skip
    cards = {}
    for key, name in zip(used, make_names([" ".join(key) for key in used]), strict=True):
        try:
            cls, source = catalog.component(*key), catalog.entry(*key).source
        except FpbenchError as error:
            cards[key] = Card(*key, name, f"It cannot be described here: {error}", "", "", "")
            continue
        doc = inspect.getdoc(cls) or ""
        cards[key] = Card(*key, name, cls.summary, doc, cls.reference, str(source))
    return cards


def _describe_section(section: Section, entrants: Sequence[Entrant]) -> dict[str, Any]:
    return {
        "task": section.task.name,
        "ranked_by": section.task.measure,
        "shared": section.shared,
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
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return {}
    try:
        record = json.loads((directory / RECORD).read_bytes())
        if not isinstance(record, dict) or "boards" not in record:
            raise ValueError
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{directory}: is not a site of fpbench ({RECORD} is missing or invalid); name a new "
            "directory with -o"
        ) from error
    return record


def _write_pages(
    title: str,
    entrants: Sequence[Entrant],
    sections: Sequence[Section],
    cards: Mapping[tuple[str, str], Card],
) -> dict[str, str]:
    """Every page by its path."""
    environment = Environment(
        loader=PackageLoader("fpbench_board"), autoescape=True, finalize=_clean,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style = environment.loader.get_source(environment, "site.css")[0]  # type: ignore[union-attr]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # The largest boards first, by verified entries: anybody can send unverified ones.
    by_task = {
        task.name: sorted(
            (section for section in sections if section.task is task),
            key=lambda section: -sum(entry.verified for entry in section.entries),
        )
        for task in TASKS
    }
    kinds = dict.fromkeys(kind for kind, _ in cards)
    environment.globals |= {
        "site": title, "style": Markup(style), "digest": digest, "tasks": TASKS, "cards": cards,
        "entrants": entrants, "by_task": by_task, "kinds": kinds, "most": _MOST,
        "few": _FEW_BOARDS, "write_value": write_value, "write_interval": write_interval,
        "name_section": _name_section, "summarise": _summarise, "find_columns": _find_columns,
    }  # fmt: skip
    pages = {"index.html": environment.get_template("index.html").render(root="")}
    for task in TASKS:
        page = environment.get_template("task.html")
        pages[f"{task.name}.html"] = page.render(root="", task=task)
    for number, entrant in enumerate(entrants):
        page = environment.get_template("submission.html")
        places = _select(by_task, lambda entry, number=number: entry.run == number)
        pages[f"submissions/{entrant.name}.html"] = page.render(
            root="../", entrant=entrant, places=places
        )
    for key, card in cards.items():
        page = environment.get_template("component.html")
        places = _select(by_task, lambda entry, key=key: key in entry.uses)
        pages[f"components/{card.name}.html"] = page.render(root="../", card=card, places=places)
    return pages


def _clean(value: object) -> object:
    """A text of a stranger without control and invisible characters, and not too long."""
    if value is None:
        return ""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    if len(value) > _LONGEST_TEXT:
        value = f"{value[:_LONGEST_TEXT]} ... ({len(value) - _LONGEST_TEXT:,} more letters)"
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in value)


def _select(
    by_task: Mapping[str, Sequence[Section]], is_meant: Any
) -> list[tuple[Section, list[BoardEntry]]]:
    """Some entries of all boards, board by board."""
    return [
        (section, mine) for sections in by_task.values() for section in sections
        if (mine := [entry for entry in section.entries if is_meant(entry)])
    ]  # fmt: skip


def _find_columns(task: Task, entries: Sequence[BoardEntry]) -> dict[str, str]:
    """The measures of a task that some entry has, and their headings."""
    there = {name for entry in entries for name in entry.measures}
    return {name: heading for name, heading in task.columns.items() if name in there}


def _name_section(section: Section) -> str:
    shared = dict(section.shared)
    words = [shared[word] for word in ("data set", "model", "disclosure") if word in shared]
    if attacks := shared.get("attacks"):
        count = len(attacks.split("; "))
        words.append(f"{count} attack{'s' * (count != 1)}")
    return ", ".join(words)


def _summarise(section: Section) -> str:
    """A sentence or two on the result of a board."""
    task: Task = section.task
    ranked = [entry for entry in section.entries if entry.rank is not None]
    if not section.best:
        return "No verified submission has two seeds or more here: nothing is ranked."
    entry, others = section.best[0], len(section.best) - 1
    value = entry.measures[task.measure]
    said = task.verdict.format(
        name=entry.name, value=write_value(task.measure, value.mean).lstrip("+")
    )
    among = f"Of {len(ranked)} that are ranked, " if len(ranked) > 1 else ""
    text = f"{among}{said} (95 %: {write_interval(task.measure, value)})."
    if baseline := entry.measures.get("majority_accuracy"):
        share = write_value("majority_accuracy", baseline.mean)
        text += f" Naming the largest group is right for {share} %."
    if others:
        do = "others do" if others > 1 else "other does"
        text += f" {others} {do} not differ significantly from it."
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _write(
    directory: Path, pages: Mapping[str, str], record: Mapping[str, Any], old: Sequence[object]
) -> None:
    """Write the pages, and remove pages of an earlier site that no longer exist."""
    text = hide_paths(json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False)) + "\n"
    try:
        for folder in (directory, directory / "components", directory / "submissions"):
            folder.mkdir(parents=True, exist_ok=True)
        for name, content in {**pages, RECORD: text}.items():
            (directory / name).write_text(hide_paths(content), encoding="utf-8", newline="\n")
        for name in old:
            if isinstance(name, str) and _PAGE.fullmatch(name) and name not in pages:
                (directory / name).unlink(missing_ok=True)
    except OSError as error:
        where = error.filename or directory
        raise StoreError(f"{where}: cannot be written: {error.strerror or error}") from error
