"""Tables in grids: their titles, headings and rows, and what was read of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from fpbench.base.arguments import show_value
from fpbench.base.text import hyphenate
from fpbench.reports.reading.cells import Cell, read_cell
from fpbench.reports.reading.grids import Grid
from fpbench.reports.reading.known_names import HEADS, VALUE, KnownNames, fold, is_sensitive
from fpbench.reports.reading.metric_names import (
    AMBIGUOUS,
    UNREAD,
    Reading,
    is_comparing,
    read_heading,
)

_FOOTNOTE = re.compile(
    r"(?:note|source|\(?[\d,]+ rows?\b|\*|\u2020|quelle|[(\[]?[a-z\d][)\]]|[\u00b9\u00b2\u00b3])",
    re.IGNORECASE,
)
_SIZED = re.compile(
    r"(.*[^\s(\[,])[\s(\[,]+n\s*[=:]\s*(\d{1,3}(?:[, \u00a0]\d{3})+|\d+)\s*[)\]]?", re.IGNORECASE
)
"""A name and the number of its people, as `Female (n = 230)`."""
_SUMMARY = re.compile(
    r"^(?:(?:summary|descriptive)(?: statistics)? (?:of|for)(?: variables?:)? )|"
    r"(?: by \w+)$", re.IGNORECASE,
)  # fmt: skip
"""What a title says around the name of numbers."""
_MOST_HEADS = 5


class Fact(NamedTuple):
    """A cell with all that its place says."""

    keys: dict[str, str]
    reading: Reading
    cell: Cell
    size: Cell | None
    """The number of people beside it, of a long table: those whom the rate is taken over."""
    percent: bool
    column: tuple[str, int, str]
    """Where numbers are written alike: a table, column and metric."""
    where: str


@dataclass
class Layout:
    """What was read of grids."""

    facts: list[Fact] = field(default_factory=list)
    columns: int = 0
    unread: dict[str, str] = field(default_factory=dict)
    """Headings that were not read, and why."""
    follows: dict[str, str] = field(default_factory=dict)
    """The same of those that say nothing more."""
    mapping: dict[str, str] = field(default_factory=dict)
    """What headings were taken for."""
    compared: dict[str, str] = field(default_factory=dict)
    """Headings of comparisons, by what was read."""


def is_blank(cell: Any) -> bool:
    """Whether a cell is an empty text."""
    return isinstance(cell, str) and not cell.strip()


def list_filled(row: Sequence[Any]) -> list[int]:
    """Places of a row that are not blank."""
    return [place for place, cell in enumerate(row) if not is_blank(cell)]


def is_text(cell: Any) -> bool:
    """Whether a cell can only be text."""
    return isinstance(cell, str) and _is_word(cell)


@lru_cache(maxsize=2**16)
def _is_word(cell: str) -> bool:
    return (
        isinstance(cell, str)
        and not is_blank(cell)
        and all(read_cell(cell, mark) is None for mark in ".,")
    )


def split_blocks(grid: Grid, names: KnownNames) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """The tables in a grid, with the titles above; apart by blank rows, or new headings."""
    width = max(map(len, grid.rows), default=0)
    padded = [[*row, *[""] * (width - len(row))] for row in grid.rows]
    if grid.levels is not None:
        yield [], padded
        return
    segments: list[list[list[Any]]] = [[]]
    for row in padded:
        if list_filled(row):
            segments[-1].append(row)
        elif segments[-1]:
            segments.append([])
    titles: list[str] = []
    segments = [segment for segment in segments if segment]
    for segment, after in zip(segments, [*segments[1:], None], strict=True):
        if len(segment) == 1 and after is not None:
            (row,) = segment
            if len(list_filled(row)) == max(len(list_filled(one)) for one in after) > 1:
                after.insert(0, row)  # headings apart from their rows
            else:  # a title, perhaps with commas
                titles.append(", ".join(str(row[j]) for j in list_filled(row)))
            continue
        wide = [len(list_filled(row)) > 1 for row in segment]
        first = wide.index(True) if any(wide) else len(segment)
        titles += [str(row[list_filled(row)[0]]) for row in segment[:first]]
        if first == len(segment):
            continue
        rows = segment[first:]
        while (
            len(rows) > 1
            and len(own := list_filled(rows[-1])) == 1
            and (len(note := str(rows[-1][own[0]])) > 30 or _FOOTNOTE.match(note))
        ):
            rows.pop()
        start = 0
        for place in range(2, len(rows)):
            if _is_heading_again(rows, place, start, names):
                end = place - 1 if len(list_filled(rows[place - 1])) == 1 else place
                yield titles, _drop_blank_columns(rows[start:end])
                titles = [str(rows[end][list_filled(rows[end])[0]])] if end < place else []
                start = place
        yield titles, _drop_blank_columns(rows[start:])
        titles = []


def _is_heading(row: Sequence[Any], names: KnownNames) -> bool:
    """Whether a row of texts may be of headings: one is known, or the people are not."""
    texts = [str(row[j]) for j in list_filled(row)]
    if not all(
        (_is_word(text) and re.search(r"[^\W\d_]|[#%]", text))
        or (re.search(r"[^\d.,]", text) and names.find_group(text))  # as 18-24
        for text in texts
    ):
        return False
    groups = Counter(secret for text in set(texts) for secret, _ in names.find_value(text))
    return not names.secrets or any(count > 1 for count in groups.values()) or any(
        read_heading(names.map(text))[0] or is_comparing(text) or names.find_column(text)
        or is_sensitive(text) or hyphenate(text) in {*UNREAD, *AMBIGUOUS, *HEADS[VALUE]}
        for text in texts
    )  # fmt: skip


def _is_heading_again(
    rows: Sequence[Sequence[Any]], place: int, start: int, names: KnownNames
) -> bool:
    """Whether a row is the heading of another table: text where there are numbers around."""
    row, filled = rows[place], list_filled(rows[place])
    if place - start < 2 or place + 1 >= len(rows) or len(filled) < 2:
        return False
    if not _is_heading(row, names):
        return False
    numeric = [
        j
        for j in filled
        if not is_text(rows[place + 1][j])
        and not is_blank(rows[place + 1][j])
        and any(not is_text(one[j]) and not is_blank(one[j]) for one in rows[start + 1 : place])
    ]
    return bool(numeric)


def _drop_blank_columns(rows: list[list[Any]]) -> list[list[Any]]:
    used = [j for j in range(len(rows[0])) if any(not is_blank(row[j]) for row in rows)]
    return [[row[j] for j in used] for row in rows]


class Block:
    """One table: headings, and rows of keys and numbers."""

    def __init__(
        self, grid: Grid, titles: list[str], rows: list[list[Any]], names: KnownNames,
        layout: Layout,
    ) -> None:  # fmt: skip
        self.grid, self.titles, self.names, self.layout = grid, titles, names, layout
        self.title = title = titles[-1] if titles else ""
        depth, self.levels = self._find_heads(rows)
        self.heads, self.rows = self._fill_heads(rows[:depth]), rows[depth:]
        self.sizes = self._split_sizes()
        self.mark = "."
        self.titled = self._read_titles()
        numbers = {n for one in titles if (n := names.find_number(_SUMMARY.sub("", one)))}
        self.number = min(numbers) if len(numbers) == 1 else ""
        """The people's numbers that titles say statistics are of."""
        self.name = f"{grid.name}{f', below {show_value(title)}' if title else ''}"

    def _find_heads(self, rows: list[list[Any]]) -> tuple[int, tuple[str, ...]]:
        """The number of rows of headings, and names of their levels."""
        if self.grid.levels is not None:
            return len(self.grid.levels), self.grid.levels
        for place in range(1, min(_MOST_HEADS, len(rows) - 2) + 1):  # pandas' row of index names
            own = list_filled(rows[place])
            if (
                own == list(range(len(own)))
                and len(set(map(str, rows[0]))) < len(rows[0]) + (place == 1)
                and (place > 1 or all(self.names.find_column(str(rows[1][j])) for j in own))
                and 0 < len(own) < len(rows[place])
                and all(
                    len(list_filled(row)) > len(own) and set(list_filled(row)) - set(own)
                    for row in rows[:place]
                )
            ):
                return place + 1, (
                    *(str(next((cell for cell in row[: len(own)] if not is_blank(cell)), ""))
                      for row in rows[:place]), "",
                )  # fmt: skip
        depth = 1
        while depth < min(_MOST_HEADS, len(rows) - 1):
            row = rows[depth]
            own = list_filled(row)
            # One heading above is of several columns: blanks follow it, or it is repeated.
            wide = any(map(is_blank, rows[depth - 1])) or len(set(map(str, rows[depth - 1]))) < len(
                rows[depth - 1]
            )
            texts = (
                len(own) > 1
                and _is_heading(row, self.names)
                and (wide or all(self.names.find_group(str(row[j])) for j in own[1:]))
            )
            bits = (
                wide
                and is_blank(row[0])
                and (
                    all(not is_blank(later[0]) for later in rows[depth + 1 :])
                    or all(self.names.read_bit(str(row[j])) for j in own)
                )
            )
            if not (texts or (bits and len(own) > 1)):
                break
            depth += 1
        return depth, ("",) * depth

    def _fill_heads(self, heads: list[list[Any]]) -> list[list[str]]:
        """Texts of headings; one of several columns is repeated, in all rows but the last."""
        texts = [[re.sub(r"^Unnamed: .*", "", str(cell)).strip() for cell in row] for row in heads]
        named = [level for level in self.levels if level]
        keys = len(list_filled(heads[-1])) if named and not self.grid.levels else 0
        if named and not self.grid.levels:
            for row in texts[:-1]:
                row[:keys] = [""] * keys
        for row in texts[:-1]:
            for place in range(keys + 1, len(row)):
                row[place] = row[place] or (row[place - 1] if not self.grid.levels else "")
        return texts

    def _split_sizes(self) -> dict[int, int]:
        """Take sizes out of names: those of rows become a column `n`; those of headings, by it."""

        def split(cell: Any) -> tuple[str, int] | None:
            match = _SIZED.fullmatch(cell) if isinstance(cell, str) else None
            names = self.names
            if match is None or not (
                not names.secrets or names.find_value(match[1]) or names.find_crossing(match[1])
            ):
                return None
            return match[1], int(re.sub(r"\D", "", match[2]))

        sizes: dict[int, int] = {}
        for row in self.heads:
            for j, cell in enumerate(row):
                if found := split(cell):
                    row[j], sizes[j] = found
                elif _SIZED.fullmatch(cell) and self.names.map(cell) == cell:
                    self.layout.unread[f"n of {cell}"] = "may be of the group, or of those counted"
        column: list[Any] = [""] * len(self.rows)
        for place, row in enumerate(self.rows):
            for j, cell in enumerate(row):
                if found := split(cell):
                    row[j], column[place] = found
        if any(column):
            self.rows = [[*row, size] for row, size in zip(self.rows, column, strict=True)]
            self.heads = [[*row, ""] for row in self.heads]
            self.heads[-1][-1] = "n"
        return sizes

    def _read_titles(self) -> dict[str, str]:
        """What titles like `Sales`, or `dept: Sales`, say of the whole table."""
        told: dict[str, str] = {}
        for title in self.titles:
            name, _, value = re.sub(r"\s*[:=]\s*", "=", title.strip(", "), count=1).partition("=")
            column = self.names.find_column(name) if value else None
            if column is not None:
                told[column] = self.names.find_values(column).get(fold(value), value)
                continue
            found = self.names.find_value(title)
            told |= dict(found) if len(found) == 1 else self.names.find_crossing(title) or {}
        return told

    def parts(self, j: int) -> list[tuple[str, str]]:
        """Level names and texts of a heading, from above."""
        parts = zip(self.levels, (row[j] for row in self.heads), strict=True)
        return [(level, text) for level, text in parts if text]
