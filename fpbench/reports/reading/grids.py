"""Grids of cells from whatever holds a table: text, spreadsheets, Parquet, JSON, HTML, frames."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.reports.reading.cells import read_cell
from fpbench.reports.reading.files import MOST_BYTES, refuse_repeats
from fpbench.reports.reading.long_form import check_width
from fpbench.reports.reading.metric_names import is_comparing, read_heading
from fpbench.reports.slices import LONGEST
from fpbench.tabular.table_files import load_content, parse_parquet, read_sheets

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_CELLS = 2**24
_SEPARATORS = ",;\t|"
_MOST_SPAN = 1000
_LATEX = re.compile(r"\\begin\{(?:tabular|longtable)")
_LATEX_RULES = re.compile(
    r"\\(?:toprule|midrule|bottomrule|hline|c(?:mid)?(?:line|rule)(?:\([lr]+\))?\{[^}]*\})"
    r"|\\(?:begin|end)\{[^}]*\}(?:\[\w\])?(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})?|\\centering"
)
_MARKUP = re.compile(
    r"\\[a-z]+\{([^{}]+)\}|(?<!\*)\*\*([^*]+)\*\*|^\s*\$(.+)\$\s*$|^\s*\{([^{}]+)\}\s*$"
)
_THOUSANDS = re.compile(r"[^,]*\d(?:,\d{3}(?!\d)[^,]*)+")
"""A line whose commas are all within numbers."""
_ALIGNED = re.compile(r"\d {2,}[\d.]")
_NO_ROW = re.compile(r"\s*(?:# (?:A tibble|Groups:).*|(?:<\w+>\s*)+|[-+|=\s]*)")
"""Lines that are drawn, and what R writes above a tibble."""
_RULE = re.compile(
    r":?-{2,}:?|={2,}|\+-*|\+[-=+]+\+|[\u2500-\u257f]+|str|bool|cat|[iuf](?:8|16|32|64)"
)
"""Of polars, kinds of columns, too."""
_BARS = str.maketrans(dict.fromkeys("\u2502\u2503\u2506\u2551", "|"))


class Grid(NamedTuple):
    """Cells of one table, or several below each other: texts, or numbers where they are typed."""

    name: str
    """Of the file, and sheet."""
    rows: list[list[Any]]
    levels: tuple[str, ...] | None = None
    """Names of the levels of the headings, where they are known; there are as many rows of
    headings."""
    sparse: bool = False
    """Whether a blank may repeat what is above or left of it, as merged cells do."""
    keys: int = 0
    """Columns that are an index of the rows."""


def read_grids(source: Any) -> list[Grid]:
    """The grids of a file (`-` is standard input), folder, data frame or series.

    Raises
    ------
    InputError
        If it cannot be read: names the file.
    """
    import pandas as pd

    if isinstance(source, pd.Series):
        source = source.to_frame(source.name if source.name is not None else "value")
    if isinstance(source, pd.DataFrame):
        return [from_frame(source, "the table")]
    if not isinstance(source, str | Path):
        raise InputError(
            "a table is a file, a data frame, a MetricFrame of fairlearn or a FairnessReport, not "
            f"{type(source).__name__}"
        )
    if str(source) == "-":
        return parse_table(_read_input(), "standard input")
    path = Path(source)
    if path.is_dir():
        return _read_session(path)
    return _read_file(path)


@cache
def _read_input() -> bytes:
    """Standard input, which can be read once."""
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _read_file(path: Path) -> list[Grid]:
    return parse_table(load_content(path, MOST_BYTES), str(path))


def parse_table(content: bytes, name: str) -> list[Grid]:
    """The grids of a file's content, of whatever format it is."""
    if len(content) > MOST_BYTES:
        raise InputError(f"{name}: is larger than {MOST_BYTES // 2**20:,} MiB")
    if content[:4] == b"PAR1":
        return [from_frame(parse_parquet(content, name, _MOST_CELLS), name)]
    if content[:4] in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"):
        return _parse_workbook(content, name)
    if content[:2] == b"\x1f\x8b":
        raise InputError(f"{name}: is compressed by gzip: unpack it")
    text = _decode(content, name)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return [_parse_json(text, name)]
    if start == "<" and re.search(r"<table\b", text, re.IGNORECASE):
        return _parse_html(text, name)
    return [_parse_text(text, name)]


def from_frame(frame: DataFrame, name: str) -> Grid:
    """The grid of a data frame; an index with names, or of texts, becomes columns."""
    import pandas as pd

    index, columns = frame.index, frame.columns
    if len(frame) * (columns.size + index.nlevels) > _MOST_CELLS:
        raise InputError(f"{name}: {len(frame):,} rows of {columns.size:,} columns are too many")
    keep = any(level is not None for level in index.names) or not (
        isinstance(index, pd.RangeIndex) or pd.api.types.is_integer_dtype(index.dtype)
    )
    names = ["" if level is None else str(level) for level in index.names] if keep else []
    depth = columns.nlevels
    heads = [[*([""] * len(names)), *map(_write, columns.get_level_values(level))]
             for level in range(depth)]  # fmt: skip
    heads[-1][: len(names)] = names
    keys = [list(map(_write, index.get_level_values(level))) for level in range(len(names))]
    body = [list(map(_write, frame.iloc[:, place].tolist())) for place in range(columns.size)]
    rows = [list(row) for row in zip(*keys, *body, strict=True)]
    levels = tuple("" if level is None else str(level) for level in columns.names)
    return Grid(name, [*heads, *rows], levels, keys=len(names))


def _write(value: Any) -> Any:
    """A value of a frame as a cell: a number, or a text."""
    import numpy as np
    import pandas as pd

    if isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | float | np.number):
        return "" if value != value else value  # noqa: PLR0124
    if value is None or value is pd.NaT or value is pd.NA:
        return ""
    return str(value).strip()


def _decode(content: bytes, name: str) -> str:
    """Text in UTF-8, UTF-16, or else Windows' Latin 1."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    elif content[1:4:2] == b"\0\0":
        encodings = ["utf-16-le"]
    elif content[:3:2] == b"\0\0":
        encodings = ["utf-16-be"]
    else:
        encodings = ["utf-8-sig", "cp1252", "latin-1"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if (place := text.find("\0")) >= 0:
            line = text.count("\n", 0, place) + 1
            raise InputError(f"{name}, line {line}: holds a zero byte; save the file as UTF-8 text")
        return text
    raise InputError(f"{name}: is no text: save it as CSV in UTF-8, or as a spreadsheet")


def _parse_text(text: str, name: str) -> Grid:
    """Fields between commas, semicolons, tabs or bars; or else between several blanks."""
    text = text.translate(_BARS)
    best: list[list[str]] = []
    score = (0, 0)
    for separator in _SEPARATORS:
        try:
            rows = [list(map(str.strip, row)) for row in _split(text, separator)]
        except csv.Error:
            continue
        widths = Counter(len(row) for row in rows if any(row))
        wide = {width: count for width, count in widths.items() if width > 1}
        if wide:
            width = max(wide, key=lambda one: (wide[one], one))
            first = next(row for row in rows if len(row) == width)
            if separator == "," and (
                _THOUSANDS.fullmatch(",".join(first))
                or 4 * sum(wide.values()) < sum(widths.values())
            ):
                continue  # it is in numbers, or titles
            if (wide[width], width) > score:
                best, score = rows, (wide[width], width)
    if _LATEX.search(text):
        best = _split_latex(text)
    bars = any(_ALIGNED.search(cell) for row in best for cell in row) and "|" in text
    sparse = bars or not best
    if sparse:
        best = _split_aligned(text.replace("|", "  ") if bars else text)
    if (
        best
        and any(row and row[0] == "" and row[-1] == "" for row in best)
        and re.match(r"[|+\u2500-\u257f]|shape: ", text.lstrip())
    ):  # a table of Markdown
        best = [row[1:-1] if len(row) > 1 else row for row in best]
    if any(mark in text for mark in ("\\", "**", "$")):
        best = [list(map(_drop_markup, row)) for row in best]
    lengths = {len(row) for row in best[1:] if any(row)}
    if (
        best and lengths == {len(best[0]) + 1} and len(best) > 2
    ):  # R's names of rows have no heading
        best[0] = ["", *best[0]]
    elif "," in text and not sparse:
        _check_widths(best, name)
    rules = [bool(row) and all(_RULE.fullmatch(field) for field in row if field) and any(row)
             for row in best]  # fmt: skip
    _check_size(best, name)
    return Grid(
        name, [row for row, rule in zip(best, rules, strict=True) if not rule], sparse=sparse
    )


def _check_widths(rows: Sequence[Sequence[str]], name: str) -> None:
    """Refuse a row with more numbers than headings: one may be cut at its comma."""
    heads: Sequence[str] = ()
    for place, row in enumerate(rows):
        if len(row) > 1 and all(read_cell(cell) is None for cell in row if cell):
            heads = row
        elif heads and any(row[len(heads) :]):
            raise InputError(
                f"{name}, line {place + 1}: has {len(row)} fields below {len(heads)} headings: put "
                "numbers with commas in quotes"
            )


def _split_latex(text: str) -> list[list[str]]:
    """The cells of a LaTeX table; one over several columns is followed by blanks."""
    rows = []
    body = re.sub(r"\\multirow(?:\[\w\])?\{[^}]*\}\{[^}]*\}", "", text)
    for line in re.split(r"\\\\|\\tabularnewline", body):
        row: list[str] = []
        for cell in re.split(r"(?<!\\)&", re.sub(_LATEX_RULES, "", line)):
            wide = re.search(r"\\multicolumn\{(\d{1,3})\}\{[^}]*\}", cell)
            own = cell if wide is None else cell.replace(wide[0], "")
            row += [_drop_markup(own), *[""] * (int(wide[1]) - 1 if wide else 0)]
        rows.append(row)
    return rows


def _split_aligned(text: str) -> list[list[str]]:
    """The fields of columns that are apart by blanks, or aligned, as pandas prints them."""
    import pandas as pd

    lines = [line for line in text.splitlines() if not _NO_ROW.fullmatch(line)]
    if sum(map(len, lines)) * bool(lines) > _MOST_CELLS or len(lines) < 2:
        return [[line] for line in lines]
    rows = [re.split(r"\s{2,}|\t", line.strip()) for line in lines]
    apart = not any(re.search(r"\d[.%]? [\d.]", cell) and read_cell(cell) is None
                    for row in rows for cell in row[1:])  # fmt: skip
    if apart and len(widths := {len(row) for row in rows if len(row) > 1}) == 1 and widths != {2}:
        return rows
    if rows := _split_words(lines):
        return rows
    frame = pd.read_fwf(
        StringIO("\n".join(lines)), header=None, dtype=str, keep_default_na=False,
        infer_nrows=len(lines),
    )  # fmt: skip
    return [list(map(str.strip, row)) for row in frame.astype(str).itertuples(index=False)]


def _split_words(lines: Sequence[str]) -> list[list[str]]:
    """Rows of a text and numbers, a blank apart, as a PDF is copied; none where it is no such text.

    Headings are cut so that each but the first is known, and that is as short as can be.
    """
    words = [line.split() for line in lines]
    body = [own for own in words if own[0].isdigit()]
    if [own[0] for own in body] == [str(k + 1) for k in range(len(body))]:  # numbers of rows
        for own in body:
            del own[0]
    numbers = [
        next((k for k, one in enumerate(reversed(own)) if read_cell(one) is None), 0)
        for own in words
    ]
    width = max((k for k in numbers if numbers.count(k) > 1), default=0)
    if width < 2 or all(
        own[0].isdigit() for own, k in zip(words, numbers, strict=True) if k == width
    ):
        return []  # or of numbered rows
    rows, headed = [], all(len(own) == 1 for own, k in zip(words, numbers, strict=True) if not k)
    for line, own, k, after in zip(lines, words, numbers, [*numbers[1:], 0], strict=True):
        row = [" ".join(own[:-k]), *own[-k:]] if k == width else [line]
        if k == 0 and after == width and (cut := _cut_headings(own, width)):
            row, headed = cut, True
        rows.append(row)
    return rows if headed else []


def _cut_headings(words: Sequence[str], parts: int) -> list[str] | None:
    """The first words, and then this many headings of metrics."""
    if len(words) == parts + 1:
        return list(words)
    ends: dict[tuple[int, int], list[str]] = {(len(words), 0): []}
    # Headings that the last words are, by where these start, and how many.
    for start in range(len(words) - 1, -1, -1):
        for end in range(start + 1, min(start + 6, len(words)) + 1):
            text = " ".join(words[start:end])
            if read_heading(text)[0] or is_comparing(text):
                for (other, many), rest in list(ends.items()):
                    if other == end and many < parts:
                        ends.setdefault((start, many + 1), [text, *rest])
    first = min((start for start, many in ends if many == parts and start), default=0)
    return [" ".join(words[:first]), *ends[first, parts]] if first else None


def _drop_markup(text: str) -> str:
    """A text without what LaTeX and Markdown write around it."""
    while (plain := _MARKUP.sub(lambda match: match[match.lastindex or 0], text)) != text:
        text = plain
    return re.sub(r"\\([%&#$_ ])", r"\1", text).strip()


def _split(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(
        StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )


def _check_size(rows: Sequence[Sequence[Any]], name: str) -> None:
    if (places := len(rows) * max(map(len, rows), default=0)) > _MOST_CELLS:
        raise InputError(f"{name}: {places:,} cells are too many")
    try:
        check_width(max(map(len, rows), default=0))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    for place, row in enumerate(rows):
        for cell in row:
            if isinstance(cell, str) and len(cell) > LONGEST:
                heading = rows[0][row.index(cell)] if len(rows[0]) > row.index(cell) else ""
                raise InputError(
                    f"{name}, row {place - 1}, column {show_value(heading)}: the text "
                    f"{show_value(cell)} has {len(cell):,} letters, too many"
                )
    if not any(any(cell != "" for cell in row) for row in rows):
        raise InputError(f"{name}: is empty")


def _parse_workbook(content: bytes, name: str) -> list[Grid]:
    """The sheets of a workbook that hold anything."""
    frames = read_sheets(content, name, MOST_BYTES)
    grids = [
        Grid(
            name if len(frames) == 1 else f"{name}, sheet {sheet}",
            [list(map(_write, row)) for row in frame.itertuples(index=False)], sparse=True,
        )
        for sheet, frame in frames.items() if frame.size
    ]  # fmt: skip
    if not grids:
        raise InputError(f"{name}: is empty")
    return grids


def _parse_json(text: str, name: str) -> Grid:
    """A list of objects, or lines, one a row; an object of columns; or pandas' `orient="split"`."""
    import pandas as pd

    try:
        try:
            whole = json.loads(text, object_pairs_hook=refuse_repeats)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
            lines = [line for line in text.splitlines() if line.strip()]
            whole = [json.loads(line, object_pairs_hook=refuse_repeats) for line in lines]
        if isinstance(whole, dict) and isinstance(whole.get("rows"), dict | list):
            whole = whole["rows"]
        if isinstance(whole, dict) and isinstance(whole.get("data"), list):
            frame = pd.DataFrame(
                whole["data"], columns=whole.get("columns"), index=whole.get("index")
            )
        elif isinstance(whole, dict) and all(isinstance(own, dict) for own in whole.values()):
            frame = pd.DataFrame.from_dict(whole, orient="columns")
        else:
            frame = pd.DataFrame(whole)
    except (ValueError, TypeError, RecursionError, AttributeError) as error:
        raise InputError(f"{name}: cannot be read as a table in JSON: {error}") from None
    if frame.map(lambda value: isinstance(value, dict | list)).any().any():
        raise InputError(f"{name}: a value is an object or a list: write texts and numbers")
    return from_frame(frame, name)


def _parse_html(text: str, name: str) -> list[Grid]:
    """All tables of a page."""
    reader = _TableReader()
    reader.feed(text)
    reader.close()
    tables = [rows for rows in reader.tables if any(map(any, rows))]
    for rows in tables:
        _check_size(rows, name)
        for row in rows:  # a title or note over all columns
            if len(row) > 2 and len(set(row)) == 1:
                row[1:] = [""] * (len(row) - 1)
    return [
        Grid(name if len(tables) == 1 else f"{name}, table {place}", rows, sparse=True)
        for place, rows in enumerate(tables, 1)
    ]


class _TableReader(HTMLParser):
    """Collects the cells of all tables; one over several columns or rows repeats its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._open: list[str] | None = None
        """The text of the cell that is open."""
        self._span = (1, 1)
        self._below: dict[tuple[int, int], str] = {}
        """Cells that reach down to a row and column."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
            self._below = {}
        elif tag == "tr" and self.tables:
            self._close()
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self._close()
            by = dict(attrs)
            spans = [by.get(key) or "1" for key in ("rowspan", "colspan")]
            down, wide = (min(int(s), _MOST_SPAN) if s.isdecimal() else 1 for s in spans)
            self._open, self._span = [], (down, wide)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._close()

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.append(data)

    def _close(self) -> None:
        """End the cell that is open, and fill what others reach into."""
        if self._open is None:
            return
        text, self._open = " ".join("".join(self._open).split()), None
        table = self.tables[-1]
        row, line = len(table) - 1, table[-1]
        while (row, len(line)) in self._below:
            line.append(self._below[row, len(line)])
        for _ in range(self._span[1]):
            for down in range(1, self._span[0]):
                self._below[row + down, len(line)] = text
            line.append(text)


def _read_session(folder: Path) -> list[Grid]:
    """The tables of an ACRO session, which `results.json` names; else all of a folder."""
    record = folder / "results.json"
    if not record.is_file():
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _TABLES)
        if not files:
            raise InputError(f"{folder}: a folder without results.json (ACRO) or tables")
        return [grid for file in files for grid in _read_file(file)]
    try:
        whole = json.loads(_decode(load_content(record, MOST_BYTES), str(record)))
        outputs = whole.get("results", whole)
        entries = outputs.values() if isinstance(outputs, dict) else outputs
        names = [
            str(file["name"] if isinstance(file, dict) else file)
            for entry in entries if entry.get("type", "table") == "table"
            for file in entry.get("files", entry.get("output", []))
        ]  # fmt: skip
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{record}: is no record of an ACRO session: {error}") from None
    grids = []
    for name in dict.fromkeys(names):
        file = folder / name
        if file.resolve().parent != folder.resolve():
            raise InputError(f"{record}: names a file outside of its folder: {name!r}")
        if file.suffix.lower() in _TABLES:
            grids += _read_file(file)
    if not grids:
        raise InputError(f"{record}: names no table")
    return grids


_TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".ods", ".parquet", ".html", ".json")
