"""What columns of tables are: keys of their rows, or numbers of a metric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError, suggest_name
from fpbench.base.text import hyphenate
from fpbench.reports.linear_statistics import is_comparison
from fpbench.reports.reading.blocks import Block, is_blank, is_text
from fpbench.reports.reading.cells import has_shares, read_cell
from fpbench.reports.reading.headings import (
    AGGREGATES,
    COMPARES,
    Column,
    explain_unread,
    find_aggregates,
    is_metric,
    name_levels,
    name_statistics,
    read_part,
    refuse_misspelling,
)
from fpbench.reports.reading.known_names import (
    ATTRIBUTE,
    CUT,
    HEADS,
    LABEL,
    LEVEL,
    METRIC,
    PREDICTION,
    STATUS,
    VALUE,
    fold,
    is_sensitive,
    is_total,
)
from fpbench.reports.reading.metric_names import (
    AMBIGUOUS,
    UNREAD,
    Reading,
    is_comparing,
    list_meanings,
    read_heading,
    read_title,
)

_PERCENT = re.compile(r"(?:(?<=\w),? +(?:n|no\.?|number))? *[(\[] *% *[)\]]", re.IGNORECASE)
"""What headings of numbers say of the percentages behind these: `Hired (%)`, `Hired, n (%)`."""
_CALLED = {
    PREDICTION: {"predicted", "prediction", "y-pred", "predicted-label"},
    LABEL: {"actual", "label", "y-true", "true-label", "ground-truth"},
}
_GENERIC = {"n", "count", "counts", "number", "size", "frequency", "freq", "anzahl", "effectif"}
"""Names of numbers of those whom a title names."""


def read_columns(block: Block) -> list[Column]:
    """What the columns of a table are; notes what is read of them, and what not."""
    columns = [_read_column(block, j) for j in range(len(block.heads[0]))]
    if not any(column.key and column.key not in (ATTRIBUTE, METRIC, STATUS) for column in columns):
        for j, column in enumerate(columns):
            if column.key == ATTRIBUTE:  # values below names of attributes
                own = [cell for row in block.rows if not is_blank(cell := row[j])]
                column.key = _find_key(block, column.name, own)
    _find_bits(block, columns)
    _find_measure(block, columns)
    _find_level_keys(columns)
    _find_totals(block, columns)
    _check_columns(block, columns)
    _check_titles(block, columns)
    return columns


def _check_titles(block: Block, columns: list[Column]) -> None:
    """Refuse a title that may say whose numbers these are, as `Hires in Sales`."""
    names = block.names
    read = {key for column in columns for key in (column.key, *column.keys)} | {*block.titled}
    for title in block.titles:
        words = re.findall(r"[^\s,;:.()]+", title)[:40]
        values: dict[str, set[str]] = {}
        for many in range(1, 5):
            for place in range(len(words) - many + 1):
                text = " ".join(words[place : place + many])
                if len(text) > 2 and text.casefold() != text.upper():
                    for column, value in names.find_value(text):
                        values.setdefault(column, set()).add(value)
        for column, own in values.items():
            if len(own) == 1 and not {column, LEVEL} & read and names.map(title) == title:
                raise InputError(
                    f"{block.grid.name}: the title {title!r} may say that all people of the "
                    f"table are {min(own)!r} by {column!r}, or not: --map {title!r}="
                    f"{min(own)!r} says so, --map {title!r}=- the other"
                )
    counted = read_title(" - ".join(block.titles))
    numbers = {column.reading for column in columns if column.reading}
    if counted is None or counted in numbers or numbers != {Reading("people")}:
        return
    for j in range(len(columns)):
        for _, text in block.parts(j):
            if hyphenate(names.map(text)) in _GENERIC:
                raise InputError(
                    f"{block.grid.name}: {text!r} below {block.title!r} may be people, or "
                    f"{counted.metric}: say which, --map {text}=people or --map "
                    f"{text}={counted.metric}"
                )


def _settle_meaning(block: Block, column: Column, columns: list[Column], j: int) -> None:
    """Refuse a heading of two meanings, unless the numbers beside say the same."""
    read = {other.reading.metric for other in columns if other.reading}
    if {"selected", "people"} <= read or {"selected", "rejected"} <= read:
        column.follows = True
        return
    texts = [text for _, text in block.parts(j)]
    text = next((text for text in texts if hyphenate(text) in AMBIGUOUS), texts[0])
    raise InputError(
        f"{block.grid.name}: the column {column.name!r} {column.unread}; --map {text!r}=METRIC "
        f"says which, or --map {text!r}=- leaves it out"
    )


def _read_column(block: Block, j: int) -> Column:
    """What a column is, by its heading and cells."""
    parts, names = block.parts(j), block.names
    cells = [row[j] for row in block.rows]
    column = Column(" ".join(dict.fromkeys(text for _, text in parts)))
    block.layout.columns += 1
    whole = names.map(column.name)
    filled = [cell for cell in cells if not is_blank(cell)]
    textual = sum(map(is_text, filled)) * 2 > len(filled) or (
        not any(_has_digits(cell) for cell in filled) and bool(filled)
    )
    if whole == "-" or (textual and is_comparing(column.name)):
        why = "is left out as asked" if whole == "-" else COMPARES
        return replace(column, unread=why, follows=True)
    number = names.find_number(whole)
    if number and filled and all(re.search(r"\u00b1|\+/-", str(cell)) for cell in filled):
        whole = f"mean of {number}"
    if whole != column.name:
        parts = [("", whole)]
    special = _find_special(block, parts, filled, textual)
    if special:
        return replace(column, key=special)
    own_groups = [cell for cell in filled if not is_total(str(cell))]
    if (
        own_groups
        and all(
            names.find_value(str(cell)) if j == 0 else names.find_group(str(cell))
            for cell in own_groups
        )
        and not any(read_heading(names.map(text))[0] or names.find_value(text) for _, text in parts)
    ):
        return replace(column, key=_find_key(block, column.name, filled))
    if j < block.grid.keys and column.name:
        unknown_people = column.name if names.frame is None else ""
        key = names.find_column(column.name) or unknown_people
        return replace(column, key=key or _find_key(block, column.name, filled))
    unknown: list[str] = []
    parts = name_statistics(block, find_aggregates(block, name_levels(block, parts)), column)
    if any((cell := read_cell(one)) and cell.parts for one in filled if isinstance(one, str)):
        parts = [(level, _PERCENT.sub("", text)) for level, text in parts]
    for level, text in parts:
        read_part(block, column, level, names.map(text), unknown)
    if (textual and (column.reading is None or not filled)) or (
        textual
        and not any(_has_digits(cell) for cell in filled)
        and column.reading is not None
        and not _is_hidden_all(filled)
    ):
        return replace(column, key=_find_key(block, column.name, filled), reading=None, keys={})
    counted = names.find_counted(column.name)
    if counted is not None and has_shares(filled):  # as pandas' mean() calls it
        column.reading = Reading(AGGREGATES[counted]["mean"])
    return _settle(block, column, unknown, filled)


def _has_digits(cell: Any) -> bool:
    return not isinstance(cell, str) or any(letter.isdigit() for letter in cell)


def _is_hidden_all(cells: Sequence[Any]) -> bool:
    return all(not is_text(cell) for cell in cells)


def _find_special(  # noqa: PLR0911
    block: Block, parts: list[tuple[str, str]], cells: list[Any], textual: bool
) -> str:
    """The key that a column has by its heading: an attribute, a column, or a special one."""
    if len(parts) > 1 or not parts:
        if not parts and textual:
            return _find_key(block, "", cells)
        return ""
    text = block.names.map(parts[0][1])
    own = hyphenate(text)
    if own in HEADS[METRIC] and textual:
        return METRIC
    if own in HEADS[STATUS] and textual and len(set(map(str, cells))) <= 6:
        return STATUS
    counted = block.names.find_counted(text)
    if counted is None and block.names.predictions and not block.names.find_column(text):
        counted = next((key for key, called in _CALLED.items() if own in called), None)
    if counted is not None:
        bits = [block.names.read_bit(str(cell)) for cell in cells if not is_total(str(cell))]
        # It is a number of people where each combination of keys has one row.
        keys = [k for k, head in enumerate(block.heads[-1]) if block.names.find_column(head)]
        rows = Counter(
            tuple(
                cell for k, cell in enumerate(row)
                if k in keys or is_text(cell) or block.names.find_group(str(cell))
            )
            for row in block.rows
        )  # fmt: skip
        if bits and None not in bits and max(rows.values()) > 1:
            return counted
    column = block.names.find_column(text)
    scores = _find_scores(block, text, cells, textual) if column is None else ""
    metric = read_heading(text)[0]
    if scores or (column and (textual or metric is None or column in block.names.secrets)):
        return scores or str(column)
    if own in HEADS[ATTRIBUTE] and textual:
        return METRIC if all(is_metric(block, str(cell)) for cell in cells) else ATTRIBUTE
    if own in HEADS[LEVEL] and textual:
        return LEVEL if block.names.secrets else text
    if textual and not block.names.secrets and is_sensitive(text):
        return text
    return ""


def _find_scores(block: Block, text: str, cells: list[Any], textual: bool) -> str:
    """The key of thresholds of scores; "" of another column, InputError if it is open which."""
    names = block.names
    if names.frame is None or names.find_scores(text):
        return text if names.find_scores(text) else ""
    if hyphenate(text) not in HEADS[CUT] or textual or len(set(cells)) < 2:
        return ""
    scores = names.list_scores()
    read = [cell.low for one in cells if (cell := read_cell(one)) is not None]
    there = len(scores) == 1 and names.frame[scores[0]].isin(read).any()
    if len(scores) == 1 and not there:
        return f"{scores[0]} at least"  # nobody has the threshold itself
    one = scores[0] if there else "COLUMN"
    why = f"and somebody's {one} is one of these" if there else "of which column?"
    raise InputError(
        f"{block.grid.name}: the column {text!r} has thresholds of scores ({why}): say who is "
        f"predicted 1, --map {text!r}='{one} at least', or --map {text!r}='{one} above'"
    )


def _find_key(block: Block, name: str, cells: list[Any]) -> str:  # noqa: PLR0911
    """The key of a column of texts, by its values."""
    texts = list(dict.fromkeys(str(cell) for cell in cells if not is_total(str(cell))))
    known = block.names
    if any(map(partial(is_metric, block), texts)) and not any(
        known.find_value(text) or (known.find_column(text) and not is_metric(block, text))
        for text in texts
    ):
        return METRIC
    if known.frame is None and not any(map(known.find_group, texts)):
        return name or block.title or "group"
    if texts and all(map(known.find_column, texts)):
        return ATTRIBUTE
    whose = [dict(known.find_value(text)) for text in texts]
    shared = [c for c in dict.fromkeys(c for one in whose for c in one)
              if all(c in one for one in whose)]  # fmt: skip
    if len(shared) == 1:
        return shared[0]
    if len(shared) > 1:
        raise InputError(
            f"{block.grid.name}: the column {name!r} may be of "
            f"{list_meanings(map(repr, shared))}: say which by "
            f"--map {name or 'HEADING'!r}={shared[0]}"
        )
    if texts and all(
        own or known.find_crossing(text) or known.find_column(text)
        for own, text in zip(whose, texts, strict=True)
    ):
        return LEVEL
    if (by_title := known.find_column(block.title)) and not name:
        return by_title
    if len(texts) == 1 and len(block.rows) > 1:
        return ""
    if any(whose):
        return LEVEL
    return f"?{name}"


def _settle(  # noqa: PLR0911
    block: Block, column: Column, unknown: list[str], cells: list[Any]
) -> Column:
    """The column of numbers, after all of its heading was read."""
    if column.unread:
        return column
    if (
        column.reading
        and is_comparison(column.reading.metric)
        and not all(
            (cell := read_cell(one)) is not None and (cell.hidden or cell.exact) for one in cells
        )
    ):  # as `pass`
        return replace(column, reading=None, unread=COMPARES, follows=True)
    if column.total and column.reading is None:
        return column
    if "@value" in column.keys:
        column.keys.pop("@value")
        return column
    if unknown and column.reading is None and PREDICTION not in column.keys:
        text = next((one for one in unknown if hyphenate(one) in UNREAD), unknown[0])
        refuse_misspelling(block, text)
        why = explain_unread(block, text)
        if not cells or (
            len(set(map(str, cells))) == 1
            and len(block.rows) > 1
            and not _has_digits(cells[0])
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


def _find_level_keys(columns: list[Column]) -> None:
    """Settle names of two meanings, and the metric of columns that name a group only."""
    read = {column.reading.metric for column in columns if column.reading}
    values = [column for column in columns if not column.key and column.reading is None]
    for column in columns:
        if any(other.key == METRIC for other in columns) and values == [column]:
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


def _find_totals(block: Block, columns: list[Column]) -> None:
    """Say what totals are of: a group's people, all slices that headings name, or everybody."""
    numbers = [column for column in columns if not column.key and not column.total]
    for column in columns:
        own = column.keys
        if not column.total or column.key or column.reading:
            continue
        parts = [other for other in numbers if other.keys.items() > own.items()]
        cuts = {key for other in parts for key in other.keys} - own.keys()
        beside = {other.reading.metric for other in numbers if other.reading and other.keys == own}
        if any(key in block.names.secrets or is_sensitive(key) for key in cuts):
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


def _find_bits(block: Block, columns: list[Column]) -> None:
    """Take two headings for the values of predictions, if nothing else has such values."""
    open_ = {
        bit: column
        for column in columns
        if column.unread and not column.keys and (bit := block.names.read_bit(column.name))
    }
    if len(open_) < 2 or not block.names.predictions:
        return
    of = block.names.find_counted(block.title)
    named = block.names.label is None or LABEL in {column.key for column in columns}
    if of is None and not named:
        one, zero = open_["1"].name, open_["0"].name
        raise InputError(
            f"{block.grid.name}: the headings {zero!r} and {one!r} may be predictions, or "
            f"labels: --map {one!r}=selected and --map {zero!r}=rejected say the first, --map "
            f"{one!r}=labelled and --map {zero!r}=- the second"
        )
    for bit, column in open_.items():
        column.unread, column.keys[of or PREDICTION] = "", bit


def _find_measure(block: Block, columns: list[Column]) -> None:
    """Leave out a column that names one measure, whose numbers have headings of their own."""
    for j, column in enumerate(columns):
        texts = {str(row[j]) for row in block.rows if not is_blank(row[j])}
        own = {text for text in texts if block.names.map(text) != "-"}
        if column.key != METRIC or any(map(partial(is_metric, block), own)):
            continue
        if not any(other.reading for other in columns):
            continue
        if len(own) > 1:
            raise InputError(
                f"{block.grid.name}: the column {column.name!r} has several measures, "
                f"{list_meanings(map(repr, sorted(own)[:3]))}: leave those of others out, "
                f"--map {max(own)!r}=-"
            )
        block.rows = [row for row in block.rows if block.names.map(str(row[j])) != "-"]
        column.key, column.unread, column.follows = "", "is the same everywhere", True


def _check_columns(block: Block, columns: list[Column]) -> None:
    """Note what is read and what not; refuse columns whose meaning is open."""
    layout = block.layout
    for j, column in enumerate(columns):
        if column.key.startswith("?"):
            _refuse_unknown(block, column, {str(row[j]) for row in block.rows})
        if not (column.key or column.unread or column.name or column.keys):
            column.unread, column.follows = "has no heading", True
        if not column.key and column.reading is None and not column.unread:
            _name_metric(block, column, columns)
        if column.unread.startswith("may be"):
            _settle_meaning(block, column, columns, j)
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
                f"{block.grid.name}: the columns {list_meanings(map(repr, both))} may both be "
                f"{key!r}: leave one out, --map {both[1]!r}=-"
            )


def _refuse_unknown(block: Block, column: Column, distinct: set[str]) -> None:
    """Refuse a column of texts that is none of the people's, unless all are the same."""
    own, column.key = column.key[1:], ""
    column.unread, column.follows = "is the same everywhere", True
    if len(distinct := distinct - {""}) > 1:
        if not own:
            raise InputError(
                f"{block.grid.name}: the column of {show_value(min(distinct))} has no heading, "
                "and is none of the people's: name it as theirs"
            )
        raise InputError(
            f"{block.grid.name}: the column {own!r}, of {show_value(min(distinct))}, is none of "
            f"the people's: say which it is, --map {own!r}=COLUMN, or leave it out, --map "
            f"{own!r}=-; {suggest_name(own, block.names.features)}"
        )


def _name_metric(block: Block, column: Column, columns: list[Column]) -> None:
    """Find the metric of numbers whose heading does not name it."""
    if any(c.key in (METRIC, PREDICTION) for c in columns) or PREDICTION in column.keys:
        return
    corners = [find_aggregates(block, block.parts(j)) for j, c in enumerate(columns) if c.key]
    column.reading = (
        read_heading(block.names.map(VALUE))[0]
        or read_title(" - ".join(block.titles))
        or next((own for parts in corners for _, text in parts[:-1]
                 if (own := read_heading(text)[0])), None)
    )  # fmt: skip
    if column.reading is None:
        told = "the title names no metric" if block.title else "no title names it"
        column.unread = (
            f"is of a metric that is not named ({told}): --map value=METRIC says which, as "
            "--map value=selection-rate, or value=people"
        )
