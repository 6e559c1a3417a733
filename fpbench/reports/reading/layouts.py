"""Layouts of published tables: every cell gets its keys (groups, slices) and its metric.

A column is a key of its rows, or has numbers; headings of numbers may hold keys, too. So long
tables, one column a group, crosstabs and blocks below each other are read alike.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError, suggest_name
from fpbench.base.text import hyphenate
from fpbench.reports.linear_statistics import is_comparison, is_count, is_rate, is_statistic
from fpbench.reports.reading.cells import (
    Cell,
    find_decimal_mark,
    has_interval,
    has_shares,
    read_cell,
)
from fpbench.reports.reading.grids import Grid
from fpbench.reports.reading.known_names import (
    LABEL,
    PREDICTION,
    KnownNames,
    fold,
    is_sensitive,
    is_total,
)
from fpbench.reports.reading.metric_names import (
    AMBIGUOUS,
    OF_ALL,
    READINGS,
    TAKEN_OVER,
    UNREAD,
    Reading,
    explain_unknown,
    find_compared,
    find_near_metric,
    is_comparing,
    list_meanings,
    read_comparison,
    read_heading,
    read_title,
)
from fpbench.reports.slices import REPORT_METRICS

_PERCENT = re.compile(r"(?:(?<=\w),? +(?:n|no\.?|number))? *[(\[] *% *[)\]]", re.IGNORECASE)
"""What headings of numbers say of the percentages behind these: `Hired (%)`, `Hired, n (%)`."""
VALUE = "value"
"""The heading of numbers whose metric stands elsewhere."""
_METRIC = "@metric"
_ATTRIBUTE = "@attribute"
_LEVEL = "@level"
"""A column of groups of several attributes, and one that names these."""
_STATUS = "@status"
_NUMBER = "@number"
"""The people's numbers that a row's statistic is of."""
_CUT = "@threshold"
_HEADS = {
    _METRIC: {"metric", "measure", "statistic", "indicator", "metrics", "kpi", "metric-name"},
    _ATTRIBUTE: {"attribute-name", "attribute", "characteristic", "variable", "sensitive-feature",
                 "category-type", "dimension", "protected-attribute"},
    _LEVEL: {"attribute-value", "level", "category", "group", "subgroup", "categories", "groups",
             "group-name", "demographic", "demographic-group", "sensitive-group"},
    _STATUS: {"sdcstatus", "sdc-status", "status", "cell-status", "suppressed", "suppression",
              "outcome", "flag"},
    _CUT: {"threshold", "thresholds", "cutoff", "cut-off", "cut-point", "score-threshold",
           "decision-threshold", "schwelle"},
    VALUE: {"value", "values", "estimate", "result", "figure", "wert", "valeur"},
}  # fmt: skip
_COUNTING = {"1": {"": "selected", "1": "true-positives", "0": "false-positives"},
             "0": {"": "rejected", "1": "false-negatives", "0": "true-negatives"}}  # fmt: skip
_AGGREGATES = {
    key: {"mean": rate, "average": rate, "avg": rate, "sum": number, "count": "people",
          "size": "people"}
    for key, rate, number in ((PREDICTION, "selection-rate", "selected"),
                              (LABEL, "prevalence", "labelled"))
}  # fmt: skip
_CALLED = {
    PREDICTION: {"predicted", "prediction", "y-pred", "predicted-label"},
    LABEL: {"actual", "label", "y-true", "true-label", "ground-truth"},
}
_GENERIC = {"n", "count", "counts", "number", "size", "frequency", "freq", "anzahl", "effectif"}
"""Names of numbers of those whom a title names."""
_COMPARES = "compares groups"
"""Why a comparison is not read, which follows from the groups' own numbers."""
_EXCEL = {"row-labels", "column-labels", "zeilenbeschriftungen", "spaltenbeschriftungen"}
_PUBLISHED = {"s", "z", "safe", "published", "ok", "pass", "", "false", "0", "no"}
_FOOTNOTE = re.compile(
    r"(?:note|source|\(?[\d,]+ rows?\b|\*|\u2020|quelle|[(\[]?[a-z\d][)\]]|[\u00b9\u00b2\u00b3])",
    re.IGNORECASE,
)
_SIZED = re.compile(
    r"(.*[^\s(\[,])[\s(\[,]+n\s*[=:]\s*(\d{1,3}(?:[, \u00a0]\d{3})+|\d+)\s*[)\]]?", re.IGNORECASE
)
"""A name and the number of its people, as `Female (n = 230)`."""
_NUMBER_OF = {"n", "num", "number", "number-of", "count", "count-of", "no"}
_NUMBERS = {"n", "count", "percent", "pct"}
"""What may stand before, and behind, the group that a heading of numbers names."""
_SUMMARY = re.compile(
    r"^(?:(?:summary|descriptive)(?: statistics)? (?:of|for)(?: variables?:)? )|"
    r"(?: by \w+)$", re.IGNORECASE,
)  # fmt: skip
"""What a title says around the name of numbers."""
_BARE = re.compile(
    r"mean|average|median|sum|count|min(?:imum)?|max(?:imum)?|p\d\d?|q[1-3]|\d\d?(?:\.\d+)?%|freq\.?|n",
    re.IGNORECASE,
)
"""Statistics of numbers that a title names."""
_CALL = re.compile(r"^(avg|sum|count|min|max|mean|median)\((\w+)\)$", re.IGNORECASE)
"""A heading of SQL."""
_MOST_HEADS = 5
MOST_SHARE = 2
"""The greatest comparison of rates that is not in percent."""


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


def read_layouts(grids: Sequence[Grid], names: KnownNames) -> Layout:
    """The facts of all tables in grids; InputError if there is none, or one has two meanings."""
    layout = Layout()
    for grid in grids:
        for titles, rows in _split_blocks(grid, names):
            _Block(grid, titles, rows, names, layout).read()
    told = {fact.reading.metric for fact in layout.facts}
    if "selected" in told and told & {"people", "rejected"}:
        told.add("selection-rate")
    _settle_comparisons(layout, told, names)
    for name, why in list(layout.follows.items()):
        if why == _COMPARES and find_compared(name) not in told:
            layout.unread[name] = layout.follows.pop(name)
    if not layout.facts:
        whys: dict[str, list[str]] = {}
        for name, why in {**layout.unread, **layout.follows}.items():
            whys.setdefault(why, []).append(repr(name))
        unread = "; ".join(f"{', '.join(own[:4])} {why}" for why, own in whys.items())
        raise InputError(
            f"{grids[0].name}: no number of it could be read{f': {unread}' if unread else ''} (a "
            "metric of each group is needed, in any form; --map HEADING=METRIC says what a column "
            f"is: {', '.join(REPORT_METRICS)})"
        )
    return layout


def _settle_comparisons(layout: Layout, told: set[str], names: KnownNames) -> None:
    """Leave comparisons out that follow from others, or might be of other rates than these.

    They are read of each group of one attribute, the greatest rate's being 1, or of all groups of
    the only attribute; where the sizes of these groups stand beside.
    """
    for metric, name in layout.compared.items():
        own = [fact for fact in layout.facts if fact.reading.metric == metric]
        kind, _, of = metric.partition(" of ")
        over = TAKEN_OVER.get(of, "people")
        sized = {frozenset(f.keys.items()) for f in layout.facts if f.reading.metric == over}
        best: dict[frozenset[tuple[str, str]], float] = {}
        for fact in own:
            rest = frozenset(one for one in fact.keys.items() if one[0] not in names.secrets)
            share = fact.cell.low * (fact.cell.unit or (0.01 if fact.percent else 1.0))
            best[rest] = max(best.get(rest, 0.0), share if fact.cell.exact else np.inf)
        whose = [[key for key in fact.keys if key in names.secrets] for fact in own]
        if not any(whose) and len(names.secrets) == 1:
            cut = [frozenset(k for k in keys if k[0] not in names.secrets) for keys in sized]
            cut = [rest for rest, keys in zip(cut, sized, strict=True) if len(rest) < len(keys)]
            safe = all(cut.count(rest) > 1 and share <= 1 for rest, share in best.items())
        else:
            safe = (
                kind == "ratio"
                and all(len(one) == 1 and one == whose[0] for one in whose)
                and all(fact.size or frozenset(fact.keys.items()) in sized for fact in own)
                and all(share == 1 for share in best.values())
            )
        if not safe or of in told or of == "false-positive-rate":
            layout.facts = [fact for fact in layout.facts if fact.reading.metric != metric]
            layout.mapping.pop(name, None)
            layout.follows[name] = _COMPARES


def _is_blank(cell: Any) -> bool:
    return isinstance(cell, str) and not cell.strip()


def _list_filled(row: Sequence[Any]) -> list[int]:
    return [place for place, cell in enumerate(row) if not _is_blank(cell)]


def _is_text(cell: Any) -> bool:
    """Whether a cell can only be text."""
    return isinstance(cell, str) and _is_word(cell)


@lru_cache(maxsize=2**16)
def _is_word(cell: str) -> bool:
    return (
        isinstance(cell, str)
        and not _is_blank(cell)
        and all(read_cell(cell, mark) is None for mark in ".,")
    )


def _split_blocks(grid: Grid, names: KnownNames) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """The tables in a grid, with the titles above; apart by blank rows, or new headings."""
    width = max(map(len, grid.rows), default=0)
    padded = [[*row, *[""] * (width - len(row))] for row in grid.rows]
    if grid.levels is not None:
        yield [], padded
        return
    segments: list[list[list[Any]]] = [[]]
    for row in padded:
        if _list_filled(row):
            segments[-1].append(row)
        elif segments[-1]:
            segments.append([])
    titles: list[str] = []
    segments = [segment for segment in segments if segment]
    for segment, after in zip(segments, [*segments[1:], None], strict=True):
        if len(segment) == 1 and after is not None:
            (row,) = segment
            if len(_list_filled(row)) == max(len(_list_filled(one)) for one in after) > 1:
                after.insert(0, row)  # headings apart from their rows
            else:  # a title, perhaps with commas
                titles.append(", ".join(str(row[j]) for j in _list_filled(row)))
            continue
        wide = [len(_list_filled(row)) > 1 for row in segment]
        first = wide.index(True) if any(wide) else len(segment)
        titles += [str(row[_list_filled(row)[0]]) for row in segment[:first]]
        if first == len(segment):
            continue
        rows = segment[first:]
        while (
            len(rows) > 1
            and len(own := _list_filled(rows[-1])) == 1
            and (len(note := str(rows[-1][own[0]])) > 30 or _FOOTNOTE.match(note))
        ):
            rows.pop()
        start = 0
        for place in range(2, len(rows)):
            if _is_heading_again(rows, place, start, names):
                end = place - 1 if len(_list_filled(rows[place - 1])) == 1 else place
                yield titles, _drop_blank_columns(rows[start:end])
                titles = [str(rows[end][_list_filled(rows[end])[0]])] if end < place else []
                start = place
        yield titles, _drop_blank_columns(rows[start:])
        titles = []


def _is_heading(row: Sequence[Any], names: KnownNames) -> bool:
    """Whether a row of texts may be of headings: one is known, or the people are not."""
    texts = [str(row[j]) for j in _list_filled(row)]
    if not all(
        (_is_word(text) and re.search(r"[^\W\d_]|[#%]", text))
        or (re.search(r"[^\d.,]", text) and names.find_group(text))  # as 18-24
        for text in texts
    ):
        return False
    groups = Counter(secret for text in set(texts) for secret, _ in names.find_value(text))
    return not names.secrets or any(count > 1 for count in groups.values()) or any(
        read_heading(names.map(text))[0] or is_comparing(text) or names.find_column(text)
        or is_sensitive(text) or hyphenate(text) in {*UNREAD, *AMBIGUOUS, *_HEADS[VALUE]}
        for text in texts
    )  # fmt: skip


def _is_heading_again(
    rows: Sequence[Sequence[Any]], place: int, start: int, names: KnownNames
) -> bool:
    """Whether a row is the heading of another table: text where there are numbers around."""
    row, filled = rows[place], _list_filled(rows[place])
    if place - start < 2 or place + 1 >= len(rows) or len(filled) < 2:
        return False
    if not _is_heading(row, names):
        return False
    numeric = [
        j
        for j in filled
        if not _is_text(rows[place + 1][j])
        and not _is_blank(rows[place + 1][j])
        and any(not _is_text(one[j]) and not _is_blank(one[j]) for one in rows[start + 1 : place])
    ]
    return bool(numeric)


def _drop_blank_columns(rows: list[list[Any]]) -> list[list[Any]]:
    used = [j for j in range(len(rows[0])) if any(not _is_blank(row[j]) for row in rows)]
    return [[row[j] for j in used] for row in rows]


@dataclass
class _Column:
    """What a column is."""

    name: str
    key: str = ""
    """The attribute, column, or special key that it has values of; "" of numbers."""
    reading: Reading | None = None
    """Of numbers: the metric; None of `VALUE`."""
    percent: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    """What its heading says of all of its numbers."""
    total: bool = False
    """Whether its heading says that these are totals."""
    unread: str = ""
    """Why it is not read."""
    follows: bool = False
    """Whether nothing is lost thereby."""


def _find_counted(told: Reading | None, keys: dict[str, str]) -> Reading | None:
    """What a number tells of the people with a prediction or label; None if it tells nothing."""
    if not {PREDICTION, LABEL} & {*keys}:
        return told
    of = _COUNTING.get(keys.get(PREDICTION, ""), {"1": "labelled"})
    among = of.get(keys.get(LABEL, ""))
    if told is None or told.metric == "people":
        return (
            None if among is None or (told is None and PREDICTION not in keys) else Reading(among)
        )
    metric = f"{told.metric} among {among}"
    return Reading(metric) if is_statistic(metric) else None


def _is_beside(metric: str, row: str) -> bool:
    """Whether a column of a metric may stand in a row of one, as numbers of people beside rates."""
    return metric in (row, "people") or (metric, row) == ("selected", "selection-rate")


def _check_same(one: dict[str, str], other: dict[str, str], where: str) -> None:
    """Refuse a number that is of two groups."""
    for key, value in other.items():
        if one.get(key, value) != value:
            raise InputError(
                f"{where}: is of {one[key]!r} and {value!r} by {key.lstrip('@')!r}: leave the "
                "column of one out, --map HEADING=-"
            )


class _Block:
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
            own = _list_filled(rows[place])
            if (
                own == list(range(len(own)))
                and len(set(map(str, rows[0]))) < len(rows[0]) + (place == 1)
                and (place > 1 or all(self.names.find_column(str(rows[1][j])) for j in own))
                and 0 < len(own) < len(rows[place])
                and all(
                    len(_list_filled(row)) > len(own) and set(_list_filled(row)) - set(own)
                    for row in rows[:place]
                )
            ):
                return place + 1, (
                    *(str(next((cell for cell in row[: len(own)] if not _is_blank(cell)), ""))
                      for row in rows[:place]), "",
                )  # fmt: skip
        depth = 1
        while depth < min(_MOST_HEADS, len(rows) - 1):
            row = rows[depth]
            own = _list_filled(row)
            # One heading above is of several columns: blanks follow it, or it is repeated.
            wide = any(map(_is_blank, rows[depth - 1])) or len(
                set(map(str, rows[depth - 1]))
            ) < len(rows[depth - 1])
            texts = (
                len(own) > 1
                and _is_heading(row, self.names)
                and (wide or all(self.names.find_group(str(row[j])) for j in own[1:]))
            )
            bits = (
                wide
                and _is_blank(row[0])
                and (
                    all(not _is_blank(later[0]) for later in rows[depth + 1 :])
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
        keys = len(_list_filled(heads[-1])) if named and not self.grid.levels else 0
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

    def _check_titles(self, columns: list[_Column]) -> None:
        """Refuse a title that may say whose numbers these are, as `Hires in Sales`."""
        names = self.names
        read = {key for column in columns for key in (column.key, *column.keys)} | {*self.titled}
        for title in self.titles:
            words = re.findall(r"[^\s,;:.()]+", title)[:40]
            values: dict[str, set[str]] = {}
            for many in range(1, 5):
                for place in range(len(words) - many + 1):
                    text = " ".join(words[place : place + many])
                    if len(text) > 2 and text.casefold() != text.upper():
                        for column, value in names.find_value(text):
                            values.setdefault(column, set()).add(value)
            for column, own in values.items():
                if len(own) == 1 and not {column, _LEVEL} & read and names.map(title) == title:
                    raise InputError(
                        f"{self.grid.name}: the title {title!r} may say that all people of the "
                        f"table are {min(own)!r} by {column!r}, or not: --map {title!r}="
                        f"{min(own)!r} says so, --map {title!r}=- the other"
                    )
        counted = read_title(" - ".join(self.titles))
        numbers = {column.reading for column in columns if column.reading}
        if counted is None or counted in numbers or numbers != {Reading("people")}:
            return
        for j in range(len(columns)):
            for _, text in self._parts(j):
                if hyphenate(names.map(text)) in _GENERIC:
                    raise InputError(
                        f"{self.grid.name}: {text!r} below {self.title!r} may be people, or "
                        f"{counted.metric}: say which, --map {text}=people or --map "
                        f"{text}={counted.metric}"
                    )

    def read(self) -> None:
        """Add the facts of the table to the layout."""
        if not self.rows:
            return
        columns = [self._read_column(j) for j in range(len(self.heads[0]))]
        if not any(
            column.key and column.key not in (_ATTRIBUTE, _METRIC, _STATUS) for column in columns
        ):
            for j, column in enumerate(columns):
                if column.key == _ATTRIBUTE:  # values below names of attributes
                    own = [cell for row in self.rows if not _is_blank(cell := row[j])]
                    column.key = self._find_key(column.name, own)
        self._find_bits(columns)
        self._find_measure(columns)
        self._find_level_keys(columns)
        self._find_totals(columns)
        self._check_columns(columns)
        self._check_titles(columns)
        numbers = [j for j, column in enumerate(columns) if not column.key and not column.unread]
        self.mark = self._find_mark(columns, numbers)
        keys = [j for j, column in enumerate(columns) if column.key]
        rows = list(self._read_rows(columns, keys, numbers))
        self._check_rows(columns, rows)
        self.layout.facts += self._find_sizes(columns)
        self.layout.facts += self._make_facts(columns, numbers, rows)

    def _check_rows(
        self, columns: list[_Column], rows: list[tuple[int, dict[str, str], list[Any]]]
    ) -> None:
        """Refuse rows of the same people that a column which is not read tells apart."""
        unread = [j for j, column in enumerate(columns) if column.unread and not column.follows]
        secrets = self.names.secrets.keys()
        wide = any(column.keys.keys() & secrets for column in columns)
        first: dict[frozenset[tuple[str, str]], tuple[int, list[Any]]] = {}
        for place, keys, row in rows:
            other, before = first.setdefault(frozenset(keys.items()), (place, row))
            apart = next((j for j in unread if str(row[j]) != str(before[j])), None)
            if apart is not None and (wide or keys.keys() & secrets):
                name = columns[apart].name
                raise InputError(
                    f"{self.grid.name}: rows {other} and {place} are of the same people, as far as "
                    f"they are read, but not by {name!r}: say what it is, --map {name!r}=COLUMN, "
                    f"or leave it out, --map {name!r}=-"
                )

    def _settle_meaning(self, column: _Column, columns: list[_Column], j: int) -> None:
        """Refuse a heading of two meanings, unless the numbers beside say the same."""
        read = {other.reading.metric for other in columns if other.reading}
        if {"selected", "people"} <= read or {"selected", "rejected"} <= read:
            column.follows = True
            return
        texts = [text for _, text in self._parts(j)]
        text = next((text for text in texts if hyphenate(text) in AMBIGUOUS), texts[0])
        raise InputError(
            f"{self.grid.name}: the column {column.name!r} {column.unread}; --map {text!r}=METRIC "
            f"says which, or --map {text!r}=- leaves it out"
        )

    # --- columns

    def _parts(self, j: int) -> list[tuple[str, str]]:
        """Level names and texts of a heading, from above."""
        parts = zip(self.levels, (row[j] for row in self.heads), strict=True)
        return [(level, text) for level, text in parts if text]

    def _read_column(self, j: int) -> _Column:
        """What a column is, by its heading and cells."""
        parts, names = self._parts(j), self.names
        cells = [row[j] for row in self.rows]
        column = _Column(" ".join(dict.fromkeys(text for _, text in parts)))
        self.layout.columns += 1
        whole = names.map(column.name)
        filled = [cell for cell in cells if not _is_blank(cell)]
        textual = sum(map(_is_text, filled)) * 2 > len(filled) or (
            not any(self._has_digits(cell) for cell in filled) and bool(filled)
        )
        if whole == "-" or (textual and is_comparing(column.name)):
            why = "is left out as asked" if whole == "-" else _COMPARES
            return replace(column, unread=why, follows=True)
        number = names.find_number(whole)
        if number and filled and all(re.search(r"\u00b1|\+/-", str(cell)) for cell in filled):
            whole = f"mean of {number}"
        if whole != column.name:
            parts = [("", whole)]
        special = self._find_special(parts, filled, textual)
        if special:
            return replace(column, key=special)
        own_groups = [cell for cell in filled if not is_total(str(cell))]
        if (
            own_groups
            and all(
                names.find_value(str(cell)) if j == 0 else names.find_group(str(cell))
                for cell in own_groups
            )
            and not any(
                read_heading(names.map(text))[0] or names.find_value(text) for _, text in parts
            )
        ):
            return replace(column, key=self._find_key(column.name, filled))
        if j < self.grid.keys and column.name:
            unknown_people = column.name if names.frame is None else ""
            key = names.find_column(column.name) or unknown_people
            return replace(column, key=key or self._find_key(column.name, filled))
        unknown: list[str] = []
        parts = self._name_statistics(self._find_aggregates(self._name_levels(parts)), column)
        if any((cell := read_cell(one)) and cell.parts for one in filled if isinstance(one, str)):
            parts = [(level, _PERCENT.sub("", text)) for level, text in parts]
        for level, text in parts:
            self._read_part(column, level, names.map(text), unknown)
        if (textual and (column.reading is None or not filled)) or (
            textual
            and not any(self._has_digits(cell) for cell in filled)
            and column.reading is not None
            and not self._is_hidden_all(filled)
        ):
            return replace(column, key=self._find_key(column.name, filled), reading=None, keys={})
        counted = names.find_counted(column.name)
        if counted is not None and has_shares(filled):  # as pandas' mean() calls it
            column.reading = Reading(_AGGREGATES[counted]["mean"])
        return self._settle(column, unknown, filled)

    def _name_levels(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """A heading `hired` above `0` as the value of a level, without names of Excel's levels."""
        parts = [part for part in parts if fold(part[1]) not in _EXCEL]
        for place, ((_, name), (level, text)) in enumerate(itertools.pairwise(parts)):
            if not level and self.names.find_counted(name) and self.names.read_bit(text):
                return [*parts[:place], (name, text), *parts[place + 2 :]]
        return parts

    def _find_aggregates(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """A heading like `mean` and `hired`, or `Sum of hired`, as that of a metric."""
        of_each = re.compile(
            r"(?<=^sum) of |(?<=^count) of |(?<=^mean) of |(?<=^average) of |(?<=^avg) of |"
            r"_(?=(?:mean|sum)$)",
            re.IGNORECASE,
        )
        parts = [(level, _CALL.sub(r"\1 of \2", text)) for level, text in parts]
        both = [(level, one) for level, text in parts for one in of_each.split(text)]
        counted = self.names.find_counted
        of = next((_AGGREGATES[own] for _, text in both if (own := counted(text))), {})
        if not any(hyphenate(text) in of for _, text in both):
            return parts
        return [(level, of.get(hyphenate(text), text)) for level, text in both
                if not counted(text)]  # fmt: skip

    def _name_statistics(
        self, parts: list[tuple[str, str]], column: _Column
    ) -> list[tuple[str, str]]:
        """A heading like `pay` and `mean`, or `Count of pay`, as that of one statistic."""
        if self.number and len(parts) == 1 and _BARE.fullmatch(parts[0][1]):
            parts = [("", self.number), *parts]  # as `mean` below `Summary of age`
        for place, ((_, one), (_, other)) in enumerate(itertools.pairwise(parts)):
            if self.names.find_statistic(both := f"{one} {other}"):
                return [*parts[:place], ("", both), *parts[place + 2 :]]
        reading, why = self._count_known(" ".join(text for _, text in parts))
        column.unread = why
        return parts if reading is None else [("", reading.metric)]

    def _count_known(self, text: str) -> tuple[Reading | None, str]:
        """What a heading like `Count of pay` tells; or why it is not read."""
        match = re.fullmatch(r"count (?:of )?(.+)|(.+)[_ ](?:count|freq\.?|n)", text, re.IGNORECASE)
        name = self.names.find_column(match[1] or match[2]) if match else None
        if name is None or self.names.find_counted(name):
            return None, ""
        if self.names.is_complete(name):
            return Reading("people"), ""
        return None, f"counts those whose {name!r} is known"

    @staticmethod
    def _has_digits(cell: Any) -> bool:
        return not isinstance(cell, str) or any(letter.isdigit() for letter in cell)

    @staticmethod
    def _is_hidden_all(cells: Sequence[Any]) -> bool:
        return all(not _is_text(cell) for cell in cells)

    def _find_special(  # noqa: PLR0911
        self, parts: list[tuple[str, str]], cells: list[Any], textual: bool
    ) -> str:
        """The key that a column has by its heading: an attribute, a column, or a special one."""
        if len(parts) > 1 or not parts:
            if not parts and textual:
                return self._find_key("", cells)
            return ""
        text = self.names.map(parts[0][1])
        own = hyphenate(text)
        if own in _HEADS[_METRIC] and textual:
            return _METRIC
        if own in _HEADS[_STATUS] and textual and len(set(map(str, cells))) <= 6:
            return _STATUS
        counted = self.names.find_counted(text)
        if counted is None and self.names.predictions and not self.names.find_column(text):
            counted = next((key for key, called in _CALLED.items() if own in called), None)
        if counted is not None:
            bits = [self.names.read_bit(str(cell)) for cell in cells if not is_total(str(cell))]
            # It is a number of people where each combination of keys has one row.
            keys = [k for k, head in enumerate(self.heads[-1]) if self.names.find_column(head)]
            rows = Counter(
                tuple(
                    cell for k, cell in enumerate(row)
                    if k in keys or _is_text(cell) or self.names.find_group(str(cell))
                )
                for row in self.rows
            )  # fmt: skip
            if bits and None not in bits and max(rows.values()) > 1:
                return counted
        column = self.names.find_column(text)
        scores = self._find_scores(text, cells, textual) if column is None else ""
        metric = read_heading(text)[0]
        if scores or (column and (textual or metric is None or column in self.names.secrets)):
            return scores or str(column)
        if own in _HEADS[_ATTRIBUTE] and textual:
            return _METRIC if all(self._is_metric(str(cell)) for cell in cells) else _ATTRIBUTE
        if own in _HEADS[_LEVEL] and textual:
            return _LEVEL if self.names.secrets else text
        if textual and not self.names.secrets and is_sensitive(text):
            return text
        return ""

    def _find_scores(self, text: str, cells: list[Any], textual: bool) -> str:
        """The key of thresholds of scores; "" of another column, InputError if it is open which."""
        names = self.names
        if names.frame is None or names.find_scores(text):
            return text if names.find_scores(text) else ""
        if hyphenate(text) not in _HEADS[_CUT] or textual or len(set(cells)) < 2:
            return ""
        scores = names.list_scores()
        read = [cell.low for one in cells if (cell := read_cell(one)) is not None]
        there = len(scores) == 1 and names.frame[scores[0]].isin(read).any()
        if len(scores) == 1 and not there:
            return f"{scores[0]} at least"  # nobody has the threshold itself
        one = scores[0] if there else "COLUMN"
        why = f"and somebody's {one} is one of these" if there else "of which column?"
        raise InputError(
            f"{self.grid.name}: the column {text!r} has thresholds of scores ({why}): say who is "
            f"predicted 1, --map {text!r}='{one} at least', or --map {text!r}='{one} above'"
        )

    def _find_key(self, name: str, cells: list[Any]) -> str:  # noqa: PLR0911
        """The key of a column of texts, by its values."""
        texts = list(dict.fromkeys(str(cell) for cell in cells if not is_total(str(cell))))
        known = self.names
        if any(map(self._is_metric, texts)) and not any(
            known.find_value(text) or (known.find_column(text) and not self._is_metric(text))
            for text in texts
        ):
            return _METRIC
        if known.frame is None and not any(map(known.find_group, texts)):
            return name or self.title or "group"
        if texts and all(map(known.find_column, texts)):
            return _ATTRIBUTE
        whose = [dict(known.find_value(text)) for text in texts]
        shared = [c for c in dict.fromkeys(c for one in whose for c in one)
                  if all(c in one for one in whose)]  # fmt: skip
        if len(shared) == 1:
            return shared[0]
        if len(shared) > 1:
            raise InputError(
                f"{self.grid.name}: the column {name!r} may be of "
                f"{list_meanings(map(repr, shared))}: say which by "
                f"--map {name or 'HEADING'!r}={shared[0]}"
            )
        if texts and all(
            own or known.find_crossing(text) or known.find_column(text)
            for own, text in zip(whose, texts, strict=True)
        ):
            return _LEVEL
        if (by_title := known.find_column(self.title)) and not name:
            return by_title
        if len(texts) == 1 and len(self.rows) > 1:
            return ""
        if any(whose):
            return _LEVEL
        return f"?{name}"

    def _read_part(  # noqa: PLR0911
        self, column: _Column, level: str, text: str, unknown: list[str]
    ) -> None:
        """What one text of a heading says."""
        names = self.names
        dimension = names.find_column(level) if level else None
        if level and (counted := names.find_counted(level)) and (bit := names.read_bit(text)):
            column.keys[counted] = bit
            return
        if is_total(text):
            column.total = True
            return
        if dimension is not None:
            column.keys[dimension] = names.find_values(dimension).get(fold(text), text)
            return
        reading, percent = self._read_name(text)
        column.percent |= percent
        if hyphenate(text) in _HEADS[VALUE]:
            column.keys["@value"] = "1"
            return
        if reading is not None and not names.find_group(text):
            column.reading = reading
            return
        if hyphenate(text) in AMBIGUOUS or is_comparing(text) or hyphenate(text) in UNREAD:
            unknown.append(text)
            return
        if groups := names.find_value(text):
            if len(groups) > 1:
                raise InputError(
                    f"{self.grid.name}: the heading {text!r} may be of {groups[0][0]!r}, or of "
                    f"{groups[1][0]!r}"
                )
            column.keys.update(groups)
            column.total |= is_total(text.rsplit(maxsplit=1)[-1])
            return
        if crossing := names.find_crossing(text):
            column.keys.update(crossing)
            return
        bare = re.sub(r"\s*[(\[]?\s*%\s*[)\]]?\s*", "", text)
        if bare != text and len(groups := names.find_group(bare)) == 1:
            column.keys.update(groups)
            column.percent = True
            return
        if self._split_text(column, text):
            return
        if not names.secrets and level and is_sensitive(level):
            column.keys[level] = text
            return
        unknown.append(text)

    def _read_name(self, text: str) -> tuple[Reading | None, bool]:
        """What a name of numbers tells, and if in percent; of medians, `median of age`."""
        statistic = self.names.find_statistic(text)
        reading, percent = read_heading(text)
        if statistic:
            return Reading(statistic), percent
        if self.names.is_column(text):
            return None, percent
        compared = read_comparison(text) if reading is None else ""
        return (Reading(compared) if compared else reading), percent

    def _split_text(self, column: _Column, text: str) -> bool:
        """Read a heading of a group or value and a metric, as `Female selection rate`."""
        found = []
        for secret in (*self.names.secrets, *self.names.texts):
            for name, value in self.names.spell(secret):
                if match := re.search(
                    rf"(?<!\w){re.escape(name)}(?!\w)|(?<![^\W_]){re.escape(name)}"
                    r"(?![^\W_])",
                    text,
                    re.IGNORECASE,
                ):
                    found.append((len(name), secret, value, match.span()))
        if not found:
            return False
        length, secret, value, (start, end) = max(found)
        whose = {one for size, one, *_ in found if size == length}
        if len(whose) > 1 and len({span for size, *_, span in found if size == length}) == 1:
            column.unread = f"names a value of {list_meanings(map(repr, sorted(whose)))}"
            return True
        parts = text[:start].casefold(), text[end:].casefold()
        before, after = (re.sub(r"[\W_]+", "-", part).strip("-") for part in parts)
        around = before and after and before not in _NUMBER_OF and after not in _NUMBERS
        if around and not self.names.find_value(text[:start].strip(" _-/,:()")):
            column.unread = self._explain(text)
            return True
        rest = re.sub(
            r"^[\s_:|/,()\[\]-]+|[\s_:|/,(\[-]+$|^\)\s*", "", text[:start] + " " + text[end:]
        )
        if rest.count(")") != rest.count("("):
            rest = rest.strip("()")
        reading, percent = self._read_name(rest) if rest else (None, False)
        bit = self.names.read_bit(rest) if rest else None
        if rest and reading is None and bit is None:
            inner = _Column("")
            if rest == text or not self._split_text(inner, rest):
                of_all = OF_ALL.search(hyphenate(text))
                column.unread = column.unread or self._explain(text if of_all else rest)
                column.follows |= is_comparing(rest)
                column.keys[secret] = value
                return True
            if secret in inner.keys:  # as `Women and men hired`
                column.unread = self._explain(text)
                return True
            column.keys.update(inner.keys)
            reading, percent = inner.reading, inner.percent
        column.keys[secret] = value
        if bit is not None and reading is None:
            column.keys[PREDICTION] = bit
        column.reading, column.percent = reading or column.reading, percent or column.percent
        return True

    def _settle(  # noqa: PLR0911
        self, column: _Column, unknown: list[str], cells: list[Any]
    ) -> _Column:
        """The column of numbers, after all of its heading was read."""
        if column.unread:
            return column
        if (
            column.reading
            and is_comparison(column.reading.metric)
            and not all(
                (cell := read_cell(one)) is not None and (cell.hidden or cell.exact)
                for one in cells
            )
        ):  # as `pass`
            return replace(column, reading=None, unread=_COMPARES, follows=True)
        if column.total and column.reading is None:
            return column
        if "@value" in column.keys:
            column.keys.pop("@value")
            return column
        if unknown and column.reading is None and PREDICTION not in column.keys:
            text = next((one for one in unknown if hyphenate(one) in UNREAD), unknown[0])
            self._refuse_misspelling(text)
            why = self._explain(text)
            if not cells or (
                len(set(map(str, cells))) == 1
                and len(self.rows) > 1
                and not self._has_digits(cells[0])
                and not is_comparing(text)
                and hyphenate(text) not in {*AMBIGUOUS, *UNREAD}
            ):
                return replace(column, unread="is the same everywhere", follows=True)
            return replace(column, unread=why, follows=is_comparing(text))
        if not column.name:
            counts = [str(cell) for cell in cells]
            if counts in (
                [str(i) for i in range(len(counts))],
                [str(i + 1) for i in range(len(counts))],
            ):
                return replace(column, unread="numbers the rows", follows=True)
            return replace(column, unread="has no heading")
        return column

    def _refuse_misspelling(self, text: str) -> None:
        """Refuse a name that seems to be one of a metric, mistyped."""
        near = find_near_metric(text)
        if near is not None and not is_comparing(text):
            raise InputError(
                f"{self.grid.name}: unknown metric {text!r}; did you mean {near!r}? (--map "
                f"{text!r}={near}, or --map {text!r}=- leaves it out)"
            )

    def _explain(self, text: str) -> str:
        own = hyphenate(re.sub(r"%", "percent ", text))
        meanings = AMBIGUOUS.get(own, ())
        if self.names.is_column(text) and (told := read_heading(text)[0]) is not None:
            meanings = f"{told.metric} by prediction", "of the people's column of this name"
        elif OF_ALL.search(own):
            of = READINGS.get(OF_ALL.sub("", own))
            if of is None or of.metric not in ("selected", "rejected", "labelled"):
                return "is a share of all people"
            meanings = AMBIGUOUS["ppr"]
        if meanings:
            return f"may be {list_meanings(meanings)}"
        if is_comparing(text):
            return _COMPARES
        if own in UNREAD or own.startswith(("mean-", "average-", "median-")):
            return "is no number of people, nor a share of them"
        return explain_unknown(text).partition("; valid")[0]

    def _find_level_keys(self, columns: list[_Column]) -> None:
        """Settle names of two meanings, and the metric of columns that name a group only."""
        read = {column.reading.metric for column in columns if column.reading}
        values = [column for column in columns if not column.key and column.reading is None]
        for column in columns:
            if any(other.key == _METRIC for other in columns) and values == [column]:
                column.unread = ""
            own = hyphenate(re.sub(r"[%#()]", "", column.name)).strip("-")
            beside = {"selected", "people"} <= read or (own == "rate" and "people" in read)
            if (
                column.unread.startswith("may be")
                and own in ("rate", "ratio", "percent", "share")
                and beside
            ):
                column.unread, column.reading = "", Reading("selection-rate")
                column.percent |= own == "percent"

    def _find_totals(self, columns: list[_Column]) -> None:
        """Say what totals are of: a group's people, all slices that headings name, or everybody."""
        numbers = [column for column in columns if not column.key and not column.total]
        for column in columns:
            own = column.keys
            if not column.total or column.key or column.reading:
                continue
            parts = [other for other in numbers if other.keys.items() > own.items()]
            cuts = {key for other in parts for key in other.keys} - own.keys()
            beside = {
                other.reading.metric for other in numbers if other.reading and other.keys == own
            }
            if any(key in self.names.secrets or is_sensitive(key) for key in cuts):
                column.unread, column.follows = "is of everybody", True
            elif cuts <= {PREDICTION, LABEL} if cuts else beside and "people" not in beside:
                column.reading = Reading("people")
            elif not cuts:
                column.unread = "is of everybody"
                column.follows = fold(column.name) != "sum"  # which may be of predictions
            elif (read := {other.reading for other in parts}) == {None}:
                continue
            else:  # of a few slices, perhaps
                metrics = sorted({one.metric for one in read if one})
                column.unread = f"may be {list_meanings(['people', *metrics])}"

    def _find_bits(self, columns: list[_Column]) -> None:
        """Take two headings for the values of predictions, if nothing else has such values."""
        open_ = {
            bit: column
            for column in columns
            if column.unread and not column.keys and (bit := self.names.read_bit(column.name))
        }
        if len(open_) < 2 or not self.names.predictions:
            return
        of = self.names.find_counted(self.title)
        named = self.names.label is None or LABEL in {column.key for column in columns}
        if of is None and not named:
            one, zero = open_["1"].name, open_["0"].name
            raise InputError(
                f"{self.grid.name}: the headings {zero!r} and {one!r} may be predictions, or "
                f"labels: --map {one!r}=selected and --map {zero!r}=rejected say the first, --map "
                f"{one!r}=labelled and --map {zero!r}=- the second"
            )
        for bit, column in open_.items():
            column.unread, column.keys[of or PREDICTION] = "", bit

    def _find_measure(self, columns: list[_Column]) -> None:
        """Leave out a column that names one measure, whose numbers have headings of their own."""
        for j, column in enumerate(columns):
            texts = {str(row[j]) for row in self.rows if not _is_blank(row[j])}
            own = {text for text in texts if self.names.map(text) != "-"}
            if column.key != _METRIC or any(map(self._is_metric, own)):
                continue
            if not any(other.reading for other in columns):
                continue
            if len(own) > 1:
                raise InputError(
                    f"{self.grid.name}: the column {column.name!r} has several measures, "
                    f"{list_meanings(map(repr, sorted(own)[:3]))}: leave those of others out, "
                    f"--map {max(own)!r}=-"
                )
            self.rows = [row for row in self.rows if self.names.map(str(row[j])) != "-"]
            column.key, column.unread, column.follows = "", "is the same everywhere", True

    def _is_metric(self, text: str) -> bool:
        own = self.names.map(text)
        known = hyphenate(own) in UNREAD or hyphenate(own) in AMBIGUOUS
        return self._read_name(own)[0] is not None or is_comparing(own) or known

    def _check_columns(self, columns: list[_Column]) -> None:
        """Note what is read and what not; refuse columns whose meaning is open."""
        layout = self.layout
        for j, column in enumerate(columns):
            if column.key.startswith("?"):
                self._refuse_unknown(column, {str(row[j]) for row in self.rows})
            if not (column.key or column.unread or column.name or column.keys):
                column.unread, column.follows = "has no heading", True
            if not column.key and column.reading is None and not column.unread:
                self._name_metric(column, columns)
            if column.unread.startswith("may be"):
                self._settle_meaning(column, columns, j)
            if column.unread:
                where = layout.follows if column.follows else layout.unread
                where[column.name or f"column {j + 1}"] = column.unread
            elif column.reading or column.key:
                metric = column.reading
                if metric is not None and is_comparison(metric.metric):
                    layout.compared[metric.metric] = column.name
                layout.mapping[column.name] = (
                    column.key.lstrip("@")
                    if metric is None
                    else (f"1 - {metric.metric}" if metric.from_one else metric.metric)
                )
        whose = Counter(column.key for column in columns
                        if column.key and not column.key.startswith("@"))  # fmt: skip
        for key, count in whose.items():
            if count > 1:
                both = [column.name for column in columns if column.key == key]
                raise InputError(
                    f"{self.grid.name}: the columns {list_meanings(map(repr, both))} may both be "
                    f"{key!r}: leave one out, --map {both[1]!r}=-"
                )

    def _refuse_unknown(self, column: _Column, distinct: set[str]) -> None:
        """Refuse a column of texts that is none of the people's, unless all are the same."""
        own, column.key = column.key[1:], ""
        column.unread, column.follows = "is the same everywhere", True
        if len(distinct := distinct - {""}) > 1:
            if not own:
                raise InputError(
                    f"{self.grid.name}: the column of {show_value(min(distinct))} has no heading, "
                    "and is none of the people's: name it as theirs"
                )
            raise InputError(
                f"{self.grid.name}: the column {own!r}, of {show_value(min(distinct))}, is none of "
                f"the people's: say which it is, --map {own!r}=COLUMN, or leave it out, --map "
                f"{own!r}=-; {suggest_name(own, self.names.features)}"
            )

    def _name_metric(self, column: _Column, columns: list[_Column]) -> None:
        """Find the metric of numbers whose heading does not name it."""
        if any(c.key in (_METRIC, PREDICTION) for c in columns) or PREDICTION in column.keys:
            return
        corners = [self._find_aggregates(self._parts(j)) for j, c in enumerate(columns) if c.key]
        column.reading = (
            read_heading(self.names.map(VALUE))[0]
            or read_title(" - ".join(self.titles))
            or next((own for parts in corners for _, text in parts[:-1]
                     if (own := read_heading(text)[0])), None)
        )  # fmt: skip
        if column.reading is None:
            told = "the title names no metric" if self.title else "no title names it"
            column.unread = (
                f"is of a metric that is not named ({told}): --map value=METRIC says which, as "
                "--map value=selection-rate, or value=people"
            )

    def _find_mark(self, columns: list[_Column], numbers: list[int]) -> str:
        """The decimal mark, by all numbers; or by what they can only be."""
        texts = {j: [row[j] for row in self.rows if isinstance(row[j], str)] for j in numbers}
        mark = find_decimal_mark(text for own in texts.values() for text in own)
        if mark is not None:
            return mark
        for j, own in texts.items():
            reading = columns[j].reading
            counts = reading is not None and is_count(reading.metric)
            rates = reading is not None and is_rate(reading.metric)
            for text in own:
                if counts and re.search(r"\d\.\d{3}(?!\d)", text):
                    return ","
                if rates and re.search(r"\d,\d{3}(?!\d)", text):
                    return ","
        return "."

    # --- rows

    def _read_rows(
        self, columns: list[_Column], keys: list[int], numbers: list[int]
    ) -> list[tuple[int, dict[str, str], list[Any]]]:
        """Numbers, keys and cells of the rows that have numbers."""
        section, rows = "", []
        parents = self._find_parents(columns, keys)
        for place, row in enumerate(self.rows):
            own = _list_filled(row)
            heading = len(own) == 1 and own[0] == (keys[0] if keys else 0)
            text = str(row[own[0]]) if own else ""
            if (
                heading
                and len(self.rows) > 1
                and (
                    self.names.find_column(text)
                    or (is_sensitive(text) and not self.names.find_value(text))
                )
            ):
                section = text
                continue
            if own:
                rows.append((place, section, row))
        plain = [(p, s, [str(r[j]).strip() for j in keys]) for p, s, r in rows]
        left = [any(self.names.map(text) == "-" for text in texts) for _, _, texts in plain]
        down: list[list[str]] = []
        for _, _, texts in plain:
            filled = list(texts)
            for k in range(len(texts) - 1):
                if not filled[k] and down and all(not one for one in texts[:k]):
                    filled[k] = down[-1][k]
            down.append(filled)
        chosen = [texts for _, _, texts in plain]
        if down != chosen:
            # Where rows are alike under a reading, it is not meant.
            alike = [len({tuple(one) for one in some}) < len(some) for some in (chosen, down)]
            if alike == [False, False] and not self.grid.sparse and self.names.secrets:
                alike = [False, True]  # a blank is everybody, as in the long form
            if alike[0] or (self.grid.sparse and not alike[1]):
                chosen = down
        result = []
        for (place, own_section, row), texts, is_left in zip(rows, chosen, left, strict=True):
            if is_left:
                continue
            where = f"{self.grid.name}, row {place}"
            read = self._read_keys(columns, keys, texts, own_section or self.title, where)
            result.append((place, {**parents.get(place, {}), **read}, row))
        return result

    def _find_parents(self, columns: list[_Column], keys: list[int]) -> dict[int, dict[str, str]]:
        """Keys of the rows above, where one column has values of two below each other."""
        own = [j for j in keys if columns[j].key not in (_METRIC, _STATUS)]
        if len(own) != 1:
            return {}
        texts = [str(row[own[0]]) for row in self.rows]
        found = [dict(self.names.find_value(text)) for text in texts]
        first = next((one for one in found if one), {})
        above = [str(one) for one in found if one.keys() == first.keys()]
        kinds = [one.keys() == first.keys() for one in found if one]
        again = any(not one and other for one, other in itertools.pairwise(kinds))
        if len(first) != 1 or len(set(above)) < len(above) or not again:
            return {}
        columns[own[0]].key = _LEVEL
        parents: dict[int, dict[str, str]] = {}
        parent: dict[str, str] = {}
        for place, (one, text) in enumerate(zip(found, texts, strict=True)):
            if one.keys() == first.keys() or is_total(text):
                parent = one
            parents[place] = parent
        return parents

    def _read_keys(
        self, columns: list[_Column], keys: list[int], texts: list[str], section: str, where: str
    ) -> dict[str, str]:
        """What the keys of a row say."""
        read: dict[str, str] = {}
        names = self.names
        attribute = names.find_column(section)
        for j, text in zip(keys, texts, strict=True):
            if columns[j].key == _ATTRIBUTE and text:
                attribute = names.find_column(text) or text
                if number := names.find_number(text):
                    read[_NUMBER] = number
        for j, text in zip(keys, texts, strict=True):
            key = columns[j].key
            if key in (_METRIC, _STATUS):
                read[key] = text
            elif text and key in (PREDICTION, LABEL):
                if (bit := names.read_bit(text)) is not None:
                    read[key] = bit
            elif text and key != _ATTRIBUTE:
                own: dict[str, str] = {}
                self._read_key(own, key, text, attribute, where)
                _check_same(read, own, where)
                read |= own
        return read

    def _read_key(
        self, read: dict[str, str], key: str, text: str, attribute: str | None, where: str
    ) -> None:
        """The value of an attribute or column that a text names; a total names none."""
        names = self.names
        key = attribute or key if key == _LEVEL else key
        own = names.find_values(key) if key != _LEVEL else {}
        if is_total(text) and fold(text) not in own:
            return
        if fold(text) in ("null", "(null)") and key != _LEVEL and names.is_complete(key):
            return  # as of a rollup in SQL
        if key == _LEVEL:
            self._read_level(read, text, where)
        elif key not in names.secrets:
            read[key] = own.get(fold(names.map(text)), names.map(text))
        elif fold(names.map(text)) not in own and (crossing := names.find_crossing(text)):
            read.update(crossing)
        else:
            read[key] = names.check_value(key, text, where)

    def _read_level(self, read: dict[str, str], text: str, where: str) -> None:
        """The group that a text names, of whichever attribute has it."""
        names = self.names
        found = names.find_value(text)
        if not found and (crossing := names.find_crossing(text)):
            read.update(crossing)
            return
        if len(found) > 1:
            raise InputError(
                f"{where}: {text!r} may be of {list_meanings(repr(one) for one, _ in found)}: name "
                "the attribute in a column of its own, `attribute`"
            )
        if not found:
            secret = next(iter(names.secrets))
            read[secret] = names.check_value(secret, text, where)
            return
        read.update(found)

    def _make_facts(
        self, columns: list[_Column], numbers: list[int],
        rows: list[tuple[int, dict[str, str], list[Any]]],
    ) -> Iterator[Fact]:  # fmt: skip
        """A fact for each number."""
        long = any(_METRIC in keys for _, keys, _ in rows)
        sizes = [j for j in numbers if columns[j].reading == Reading("people")]
        several = [j for j in sizes if not columns[j].keys]
        # `n` is what a rate is taken over; another name is of the group, whatever the rate.
        over = [j for j in several
                if hyphenate(self.names.map(columns[j].name)) in ("n", "denominator")]  # fmt: skip
        for place, keys, row in rows:
            status = self.names.map(keys.get(_STATUS, ""))
            hidden = fold(status) not in _PUBLISHED
            reading, percent = None, False
            if text := keys.get(_METRIC, ""):
                text = f"{keys[_NUMBER]} {text}" if _NUMBER in keys else text
                reading, percent = self._read_name(self.names.map(text))
                reading = self._count_known(text)[0] or reading
                if is_total(text):
                    reading = Reading("people")
                if reading is None:
                    self._refuse_misspelling(text)
                    where = self.layout.follows if is_comparing(text) else self.layout.unread
                    where[text] = self._count_known(text)[1] or self._explain(text)
                    continue
                if is_comparison(reading.metric):
                    self.layout.compared[reading.metric] = text
            own = {
                key: value for key, value in keys.items() if key not in (_METRIC, _STATUS, _NUMBER)
            }
            beside = (
                self._read(row[over[0]], place, over[0], columns)
                if long and len(over) == 1
                else None
            )
            for j in numbers:
                column = columns[j]
                if long and j in over:
                    continue
                _check_same(own, column.keys, f"{self.grid.name}, row {place}")
                both = {**self.titled, **own, **column.keys}
                told = column.reading or reading
                if reading and told and not _is_beside(told.metric, reading.metric):
                    self.layout.unread[f"{text} {column.name}"] = "names two metrics"
                    continue
                told = _find_counted(told, both)
                if told is None:
                    continue
                both = {key: value for key, value in both.items() if not key.startswith("@")}
                cell = self._read(row[j], place, j, columns)
                if is_statistic(told.metric) and [what for what, _ in cell.parts] == [
                    "count", "rate"
                ]:  # fmt: skip
                    self.layout.unread[column.name] = "its numbers in brackets"
                    cell = cell.parts[0][1]
                if hidden and not cell.hidden and fold(status) != "suppressed":
                    raise InputError(
                        f"{self.grid.name}, row {place}, column {column.name!r}: is marked "
                        f"{status!r}, and holds {cell.text!r}. If readers see the number, --map "
                        f"{status}=published; if not, --map {status}=suppressed"
                    )
                if hidden:
                    cell = Cell(status)
                yield Fact(
                    both, told, cell, beside, column.percent or percent,
                    (self.grid.name, j, told.metric),
                    f"{self.name}, row {place}, column {column.name!r}",
                )  # fmt: skip

    def _find_sizes(self, columns: list[_Column]) -> Iterator[Fact]:
        """The numbers of people that headings say beside names."""
        for j, size in self.sizes.items():
            cell = Cell(str(size), size, size)
            where = f"{self.name}, heading {columns[j].name!r}"
            yield Fact(
                {**self.titled, **columns[j].keys}, Reading("people"), cell, None, False,
                (self.grid.name, j, "people"), where,
            )  # fmt: skip

    def _read(self, value: Any, place: int, j: int, columns: list[_Column]) -> Cell:
        if isinstance(value, str):
            value = self.names.map(value)
            if has_interval(value):
                self.layout.unread[columns[j].name] = "its confidence intervals"
        cell = read_cell(value, self.mark)
        if cell is None:
            raise InputError(
                f"{self.grid.name}, row {place}, column {columns[j].name!r}: {show_value(value)} "
                f"is not a number (decimal mark: {self.mark}); leave blank what is not published "
                f"(--map {str(value)[:20]!r}=suppressed)"
            )
        return cell
