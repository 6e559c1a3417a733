"""The pages of a site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fpbench.base.errors import InputError
from fpbench.base.sheet import Sheet
from fpbench.base.text import count_noun, format_percent
from fpbench.components.names import KINDS
from fpbench.components.own_measures import GLOSSARY, GUARANTEE
from fpbench.report.site.cards import Card
from fpbench.report.site.entrants import Entrant, write_time
from fpbench.report.site.html import Child, Html, join, make_element, make_page, make_table
from fpbench.results.across_runs import (
    TASKS,
    BoardEntry,
    Section,
    Task,
    write_interval,
    write_value,
)
from fpbench.results.leaderboard import make_sheet
from fpbench.testing.submissions.checking import CheckOutcome, Finding

_FEW_BOARDS = 8
"""Greatest number of boards of a task on the start page."""
_MOST_BOARDS = 200
"""Greatest number of boards on any page: a stranger's run may have a million data sets."""
_MOST_ROWS = 200
"""Greatest number of rows of a board on a page."""
_MOST_SESSIONS = 20
"""Greatest number of sessions of a run on its page: the latest ones."""
_NUMBERS = frozenset(
    {"rank", "seeds", "95 %", *(GLOSSARY.heading(m) for task in TASKS for m in task.columns)}
)
_APART = ("attacks", "note")
"""Shared properties of a board's entries that are too long for its name."""
_CLASSES = {
    CheckOutcome.PASSED: "passed", CheckOutcome.NOTED: "note", CheckOutcome.FAILED: "failed",
    CheckOutcome.SKIPPED: "skipped",
}  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """The content of a site."""

    title: str
    entrants: Sequence[Entrant]
    sections: Sequence[Section]
    cards: Mapping[tuple[str, str], Card]
    """By kind and name."""

    def write_pages(self) -> dict[str, str]:
        """Every page by its path."""
        pages = {"index.html": self._write_start()}
        for task in TASKS:
            pages[f"{task.name}.html"] = self._write_task(task)
        for number, entrant in enumerate(self.entrants):
            pages[f"submissions/{entrant.name}.html"] = self._write_submission(number, entrant)
        for card in self.cards.values():
            pages[f"components/{card.name}.html"] = self._write_card(card)
        return pages

    def _write_start(self) -> str:
        verified = sum(entrant.verified for entrant in self.entrants)
        count = len(self.entrants)
        lead = (
            f"{count} submission{'s' * (count != 1)}, {verified} verified: a sample of the cells "
            f"was run again here, with the results of the submission. Submissions that are not "
            "verified have no rank."
        )
        parts: list[Child] = [make_element("p", lead, class_="lead")]
        for task in TASKS:
            mine = self._list_largest(task)
            parts += [make_element("h2", task.title, id=task.name), make_element("p", task.rule)]
            if not mine:
                parts.append(make_element("p", "No submission has any.", class_="hint"))
                continue
            parts.append(self._write_winners(task, mine))
            words = f"All {len(mine)} boards" if len(mine) > _FEW_BOARDS else "All entries"
            parts.append(make_element("p", make_element("a", words, href=f"{task.name}.html")))
        parts += [make_element("h2", "Submissions", id="submissions"), self._write_submissions()]
        parts += [make_element("h2", "Components", id="components"), self._write_components()]
        return make_page(self.title, self.title, "", *parts)

    def _write_winners(self, task: Task, sections: Sequence[Section]) -> Html:
        """The best entry of each of the largest boards."""
        heading = GLOSSARY.heading(task.measure)
        rows: list[tuple[list[Child], str | None]] = []
        for number, section in enumerate(sections[:_FEW_BOARDS]):
            board = make_element(
                "a", _name_section(section), href=f"{task.name}.html#board-{number}"
            )
            best = section.best
            if not best:
                rows.append(([board, "no verified submission", "-", "-", "-"], "doubtful"))
                continue
            entry = best[0]
            others = len(best) - 1
            shared = f" and {others} not significantly different from it" if others else ""
            value = entry.measures[task.measure]
            rows.append((
                [board, f"{_name_entry(entry)}{shared}", write_value(task.measure, value.mean),
                 write_interval(task.measure, value), self._link_submission(entry.run, "")],
                None,
            ))  # fmt: skip
        headings = ["board", "best", heading, "95 %", "submission"]
        return make_table(f"{task.title}: the best of each board", headings, rows, _NUMBERS)

    def _write_submissions(self) -> Html:
        rows = []
        for number, entrant in enumerate(self.entrants):
            status = _write_status(entrant)
            results = entrant.snapshot.results if entrant.snapshot else None
            done = f"{int(results.finished()[0].sum()):,}" if results else "-"
            words = entrant.reason
            cells = [self._link_submission(number, "", status=False), entrant.title, done,
                     entrant.started, join([status, " " if words else None, words])]  # fmt: skip
            rows.append((cells, None if entrant.verified else "doubtful"))
        headings = ["submission", "title", "cells", "run on", "checked"]
        return make_table("Submissions", headings, rows, ["cells"])

    def _write_components(self) -> Html:
        parts: list[Child] = []
        for kind in KINDS:
            mine = [card for card in self.cards.values() if card.kind == kind]
            if mine:
                links = [make_element("a", card.use, href=f"components/{card.name}.html")
                         for card in sorted(mine, key=lambda card: card.use)]  # fmt: skip
                parts += [make_element("dt", kind), make_element("dd", join(links, ", "))]
        return make_element("dl", *parts)

    def _list_largest(self, task: Task) -> list[Section]:
        """The boards of a task, by number of verified entries: anybody can send unverified ones."""
        mine = [section for section in self.sections if section.task is task]
        return sorted(mine, key=lambda section: -sum(entry.verified for entry in section.entries))

    def _write_task(self, task: Task) -> str:
        mine = self._list_largest(task)
        how = (
            "A rank is one more than the number of entries that are certainly better: whose 95 % "
            "interval over seeds lies beyond. Entries that do not differ significantly may share a "
            "rank. Submissions that are not verified, and entries of one seed, have none."
        )
        parts: list[Child] = [make_element("p", task.rule), make_element("p", how, class_="hint")]
        if not mine:
            parts.append(make_element("p", "No submission has any.", class_="hint"))
        for number, section in enumerate(mine[:_MOST_BOARDS]):
            parts.append(make_element("h2", _name_section(section), id=f"board-{number}"))
            parts.append(_write_facts(p for p in section.shared if p[0] in _APART))
            parts.append(make_element("p", _summarise(section)))
            seeds = {entry.seeds for entry in section.entries}
            if len(seeds) > 1:
                words = f"Entries have different numbers of seeds, {min(seeds)} to {max(seeds)}."
                parts.append(make_element("p", words, class_="hint"))
            parts.append(self._write_entries(section.task, section.entries, ""))
        parts.append(_write_more(len(mine), _MOST_BOARDS, "board"))
        return make_page(task.title, self.title, "", *parts)

    def _write_entries(self, task: Task, entries: Sequence[BoardEntry], root: str) -> Html:
        names = [name for name in task.columns if any(name in entry.measures for entry in entries)]
        front = bool(task.beside) and any(entry.on_front for entry in entries)
        guarantee = any(entry.guarantee for entry in entries)
        headings = ["rank", *task.kinds, *([GUARANTEE] * guarantee),
                    *map(GLOSSARY.heading, names), "95 %", *(["front"] * front), "seeds",
                    "submission"]  # fmt: skip
        rows: list[tuple[list[Child], str | None]] = []
        for entry in entries[:_MOST_ROWS]:
            values = [
                write_value(name, entry.measures[name].mean) if name in entry.measures else "-"
                for name in names
            ]
            cells: list[Child] = [
                "-" if entry.rank is None else str(entry.rank),
                *(self._link_component(kind, entry, root) for kind in task.kinds),
                *([entry.guarantee] * guarantee),
                *values,
                write_interval(task.measure, entry.measures[task.measure]),
                *(["front" if entry.on_front else "-"] * front),
                str(entry.seeds),
                self._link_submission(entry.run, root),
            ]
            rows.append((cells, None if entry.verified else "doubtful"))
        more = _write_more(len(entries), _MOST_ROWS, "row")
        return join([make_table(task.title, headings, rows, _NUMBERS), more])

    def _link_component(self, kind: str, entry: BoardEntry, root: str) -> Child:
        text = entry.components.get(kind)
        if text is None:
            return "-"
        card = self.cards.get((kind, dict(entry.uses).get(kind, "")))
        return text if card is None else make_element(
            "a", text, href=f"{root}components/{card.name}.html"
        )  # fmt: skip

    def _link_submission(self, number: int, root: str, *, status: bool = True) -> Html:
        entrant = self.entrants[number]
        link = make_element("a", entrant.name, href=f"{root}submissions/{entrant.name}.html")
        return join([link, " ", _write_status(entrant)]) if status else link

    def _write_submission(self, number: int, entrant: Entrant) -> str:
        again = f": {entrant.reason}" if entrant.reason else ""
        parts: list[Child] = [
            make_element("p", _write_status(entrant), again, class_="lead"),
            make_element("h2", "Checks"),
            _write_findings(entrant.checkup.findings),
            make_element("h2", "Where it comes from"),
            _write_provenance(entrant),
        ]
        parts += self._write_places("On the boards", lambda entry: entry.run == number)
        if entrant.snapshot is not None:
            parts.append(make_element("h2", "All that it measured"))
            try:
                boards = entrant.snapshot.leaderboards()
            except InputError as error:  # its matrix may rank by a measure that no row has
                parts.append(make_element("p", str(error), class_="hint"))
            else:
                parts += [_write_sheet(make_sheet(board, most=_MOST_ROWS))
                          for board in boards[:_MOST_BOARDS]]  # fmt: skip
                parts.append(_write_more(len(boards), _MOST_BOARDS, "leaderboard"))
        if entrant.matrix:
            parts += [make_element("h2", "Its matrix"), make_element("pre", entrant.matrix)]
        return make_page(entrant.title, self.title, "../", *parts)

    def _write_card(self, card: Card) -> str:
        facts = [("kind", f"{card.kind}: {KINDS[card.kind].summary}"), ("paper", card.reference),
                 ("distribution", card.source), ("code", card.code)]  # fmt: skip
        parts: list[Child] = [
            make_element("p", card.summary, class_="lead"),
            _write_facts(facts),
            make_element(
                "p",
                "Parameters: ",
                make_element("code", f"fpbench describe {card.kind} {card.use}"),
            ),
        ]
        if card.description and card.description != card.summary:
            parts += [make_element("h2", "What it is"), make_element("pre", card.description)]
        key = (card.kind, card.use)
        parts += self._write_places("Its numbers", lambda entry: key in entry.uses)
        return make_page(card.title, self.title, "../", *parts)

    def _write_places(self, heading: str, is_meant: Callable[[BoardEntry], bool]) -> list[Child]:
        """Some entries of all boards, board by board; empty if there are none."""
        mine = [
            (section, here) for task in TASKS for section in self._list_largest(task)
            if (here := [entry for entry in section.entries if is_meant(entry)])
        ]  # fmt: skip
        parts: list[Child] = [make_element("h2", heading)] if mine else []
        for section, here in mine[:_MOST_BOARDS]:
            parts += [
                make_element("h3", f"{section.task.title}: {_name_section(section)}"),
                self._write_entries(section.task, here, "../"),
            ]
        return [*parts, _write_more(len(mine), _MOST_BOARDS, "board")]


def _write_more(count: int, most: int, noun: str) -> Child:
    """The number of items that are not shown; None if all are."""
    if count <= most:
        return None
    return make_element("p", count_noun(count - most, f"more {noun}"), class_="hint")


def _name_section(section: Section) -> str:
    shared = dict(section.shared)
    words = [value for word, value in section.shared if word not in _APART]
    if attacks := shared.get("attacks"):
        count = len(attacks.split("; "))
        words.append(f"{count} attack{'s' * (count != 1)}")
    return ", ".join(words)


def _name_entry(entry: BoardEntry) -> str:
    return ", ".join(entry.components.values())


def _write_facts(facts: Iterable[tuple[str, str]]) -> Html:
    parts = [part for word, value in facts if value
             for part in (make_element("dt", word), make_element("dd", value))]  # fmt: skip
    return make_element("dl", *parts)


def _summarise(section: Section) -> str:
    """A sentence or two on the result of a board."""
    task, best = section.task, section.best
    ranked = [entry for entry in section.entries if entry.rank is not None]
    if not best:
        return "No verified submission has two seeds or more here: nothing is ranked."
    entry = best[0]
    value = entry.measures[task.measure]
    said = task.verdict.format(
        name=_name_entry(entry), value=write_value(task.measure, value.mean).lstrip("+")
    )
    among = f"Of {len(ranked)} that are ranked, " if len(ranked) > 1 else ""
    text = f"{among}{said} (95 %: {write_interval(task.measure, value)})."
    if task.name == "attacks" and "majority_accuracy" in entry.measures:
        baseline = format_percent(entry.measures["majority_accuracy"].mean)
        text += f" Naming the largest group is right for {baseline} %."
    if others := len(best) - 1:
        do = "others do" if others > 1 else "other does"
        text += f" {others} {do} not differ significantly from it."
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _write_status(entrant: Entrant) -> Html:
    if entrant.verified:
        return make_element("span", "verified", class_="verified")
    return make_element("span", "not verified", class_="doubted")


def _write_findings(findings: Iterable[Finding]) -> Html:
    rows = [
        ([each.name, make_element("span", str(each.outcome), class_=_CLASSES[each.outcome]),
          each.words], None)
        for each in findings
    ]  # fmt: skip
    return make_table("Checks", ["check", "outcome", "details"], rows)


def _write_provenance(entrant: Entrant) -> Html:
    parts: list[Child] = [
        _write_facts([("title", entrant.title), ("sha256 of its files", entrant.checksum)])
    ]
    parts.append(_write_more(len(entrant.sessions), _MOST_SESSIONS, "earlier session"))
    for session in entrant.sessions[-_MOST_SESSIONS:]:
        environment = session.environment
        facts = [("session", write_time(session.started))]
        facts += [(word, str(environment.get(word, ""))) for word in ("python", "platform")]
        for word in ("packages", "solvers", "data"):
            listed = environment.get(word)
            if isinstance(listed, Mapping):
                facts.append((word, ", ".join(f"{k} {v}" for k, v in listed.items())))
        for word in ("blas", "simd"):
            listed = environment.get(word)
            if isinstance(listed, list):
                facts.append((word, ", ".join(map(str, listed))))
        parts.append(_write_facts(facts))
    return join(parts)


def _write_sheet(shown: Sheet) -> Html:
    numbers = [column.heading for column in shown.columns if column.number]
    headings = [column.heading for column in shown.columns]
    lines: list[Child] = [make_element("p", " ".join(shown.opening)) if shown.opening else None]
    lines.append(make_element("p", shown.about, class_="hint") if shown.about else None)
    lines.append(make_table(shown.title, headings, [(row, None) for row in shown.rows], numbers))
    if shown.remarks:
        lines.append(make_element("ul", *(make_element("li", text) for text in shown.remarks)))
    return join(lines)
