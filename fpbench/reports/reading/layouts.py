"""Layouts of published tables: every cell gets its keys (groups, slices) and its metric.

A column is a key of its rows, or has numbers; headings of numbers may hold keys, too. So long
tables, one column a group, crosstabs and blocks below each other are read alike.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.base.text import hyphenate
from fpbench.reports.linear_statistics import is_comparison, is_count, is_rate, is_statistic
from fpbench.reports.reading.blocks import Block, Fact, Layout, list_filled, split_blocks
from fpbench.reports.reading.cells import Cell, find_decimal_mark, has_interval, read_cell
from fpbench.reports.reading.columns import read_columns
from fpbench.reports.reading.grids import Grid
from fpbench.reports.reading.headings import (
    COMPARES,
    Column,
    count_known,
    explain_unread,
    read_name,
    refuse_misspelling,
)
from fpbench.reports.reading.known_names import (
    ATTRIBUTE,
    LABEL,
    LEVEL,
    METRIC,
    NUMBER,
    PREDICTION,
    STATUS,
    KnownNames,
    fold,
    is_sensitive,
    is_total,
)
from fpbench.reports.reading.metric_names import (
    TAKEN_OVER,
    Reading,
    find_compared,
    is_comparing,
    list_meanings,
)
from fpbench.reports.slices import REPORT_METRICS

_COUNTING = {"1": {"": "selected", "1": "true-positives", "0": "false-positives"},
             "0": {"": "rejected", "1": "false-negatives", "0": "true-negatives"}}  # fmt: skip
_PUBLISHED = {"s", "z", "safe", "published", "ok", "pass", "", "false", "0", "no"}


def read_layouts(grids: Sequence[Grid], names: KnownNames) -> Layout:
    """The facts of all tables in grids; InputError if there is none, or one has two meanings."""
    layout = Layout()
    for grid in grids:
        for titles, rows in split_blocks(grid, names):
            layout.facts += _read_facts(Block(grid, titles, rows, names, layout))
    told = {fact.reading.metric for fact in layout.facts}
    if "selected" in told and told & {"people", "rejected"}:
        told.add("selection-rate")
    _settle_comparisons(layout, told, names)
    for name, why in list(layout.follows.items()):
        if why == COMPARES and find_compared(name) not in told:
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


def _read_facts(block: Block) -> Iterator[Fact]:
    """The facts of a table."""
    if not block.rows:
        return
    columns = read_columns(block)
    numbers = [j for j, column in enumerate(columns) if not column.key and not column.unread]
    block.mark = _find_mark(block, columns, numbers)
    keys = [j for j, column in enumerate(columns) if column.key]
    rows = _read_rows(block, columns, keys)
    _check_rows(block, columns, rows)
    yield from _find_sizes(block, columns)
    yield from _make_facts(block, columns, numbers, rows)


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
            layout.follows[name] = COMPARES


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


def _read_rows(
    block: Block, columns: list[Column], keys: list[int]
) -> list[tuple[int, dict[str, str], list[Any]]]:
    """Numbers, keys and cells of the rows that have numbers."""
    section, rows = "", []
    parents = _find_parents(block, columns, keys)
    for place, row in enumerate(block.rows):
        own = list_filled(row)
        heading = len(own) == 1 and own[0] == (keys[0] if keys else 0)
        text = str(row[own[0]]) if own else ""
        if (
            heading
            and len(block.rows) > 1
            and (
                block.names.find_column(text)
                or (is_sensitive(text) and not block.names.find_value(text))
            )
        ):
            section = text
            continue
        if own:
            rows.append((place, section, row))
    plain = [(p, s, [str(r[j]).strip() for j in keys]) for p, s, r in rows]
    left = [any(block.names.map(text) == "-" for text in texts) for _, _, texts in plain]
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
        if alike == [False, False] and not block.grid.sparse and block.names.secrets:
            alike = [False, True]  # a blank is everybody, as in the long form
        if alike[0] or (block.grid.sparse and not alike[1]):
            chosen = down
    result = []
    for (place, own_section, row), texts, is_left in zip(rows, chosen, left, strict=True):
        if is_left:
            continue
        where = f"{block.grid.name}, row {place}"
        read = _read_keys(block, columns, keys, texts, own_section or block.title, where)
        result.append((place, {**parents.get(place, {}), **read}, row))
    return result


def _find_parents(
    block: Block, columns: list[Column], keys: list[int]
) -> dict[int, dict[str, str]]:
    """Keys of the rows above, where one column has values of two below each other."""
    own = [j for j in keys if columns[j].key not in (METRIC, STATUS)]
    if len(own) != 1:
        return {}
    texts = [str(row[own[0]]) for row in block.rows]
    found = [dict(block.names.find_value(text)) for text in texts]
    first = next((one for one in found if one), {})
    above = [str(one) for one in found if one.keys() == first.keys()]
    kinds = [one.keys() == first.keys() for one in found if one]
    again = any(not one and other for one, other in itertools.pairwise(kinds))
    if len(first) != 1 or len(set(above)) < len(above) or not again:
        return {}
    columns[own[0]].key = LEVEL
    parents: dict[int, dict[str, str]] = {}
    parent: dict[str, str] = {}
    for place, (one, text) in enumerate(zip(found, texts, strict=True)):
        if one.keys() == first.keys() or is_total(text):
            parent = one
        parents[place] = parent
    return parents


def _read_keys(
    block: Block, columns: list[Column], keys: list[int], texts: list[str], section: str, where: str
) -> dict[str, str]:
    """What the keys of a row say."""
    read: dict[str, str] = {}
    names = block.names
    attribute = names.find_column(section)
    for j, text in zip(keys, texts, strict=True):
        if columns[j].key == ATTRIBUTE and text:
            attribute = names.find_column(text) or text
            if number := names.find_number(text):
                read[NUMBER] = number
    for j, text in zip(keys, texts, strict=True):
        key = columns[j].key
        if key in (METRIC, STATUS):
            read[key] = text
        elif text and key in (PREDICTION, LABEL):
            if (bit := names.read_bit(text)) is not None:
                read[key] = bit
        elif text and key != ATTRIBUTE:
            own: dict[str, str] = {}
            _read_key(block, own, key, text, attribute, where)
            _check_same(read, own, where)
            read |= own
    return read


def _read_key(
    block: Block, read: dict[str, str], key: str, text: str, attribute: str | None, where: str
) -> None:
    """The value of an attribute or column that a text names; a total names none."""
    names = block.names
    key = attribute or key if key == LEVEL else key
    own = names.find_values(key) if key != LEVEL else {}
    if is_total(text) and fold(text) not in own:
        return
    if fold(text) in ("null", "(null)") and key != LEVEL and names.is_complete(key):
        return  # as of a rollup in SQL
    if key == LEVEL:
        _read_level(block, read, text, where)
    elif key not in names.secrets:
        read[key] = own.get(fold(names.map(text)), names.map(text))
    elif fold(names.map(text)) not in own and (crossing := names.find_crossing(text)):
        read.update(crossing)
    else:
        read[key] = names.check_value(key, text, where)


def _read_level(block: Block, read: dict[str, str], text: str, where: str) -> None:
    """The group that a text names, of whichever attribute has it."""
    names = block.names
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


def _check_same(one: dict[str, str], other: dict[str, str], where: str) -> None:
    """Refuse a number that is of two groups."""
    for key, value in other.items():
        if one.get(key, value) != value:
            raise InputError(
                f"{where}: is of {one[key]!r} and {value!r} by {key.lstrip('@')!r}: leave the "
                "column of one out, --map HEADING=-"
            )


def _check_rows(
    block: Block, columns: list[Column], rows: list[tuple[int, dict[str, str], list[Any]]]
) -> None:
    """Refuse rows of the same people that a column which is not read tells apart."""
    unread = [j for j, column in enumerate(columns) if column.unread and not column.follows]
    secrets = block.names.secrets.keys()
    wide = any(column.keys.keys() & secrets for column in columns)
    first: dict[frozenset[tuple[str, str]], tuple[int, list[Any]]] = {}
    for place, keys, row in rows:
        other, before = first.setdefault(frozenset(keys.items()), (place, row))
        apart = next((j for j in unread if str(row[j]) != str(before[j])), None)
        if apart is not None and (wide or keys.keys() & secrets):
            name = columns[apart].name
            raise InputError(
                f"{block.grid.name}: rows {other} and {place} are of the same people, as far as "
                f"they are read, but not by {name!r}: say what it is, --map {name!r}=COLUMN, "
                f"or leave it out, --map {name!r}=-"
            )


def _make_facts(
    block: Block, columns: list[Column], numbers: list[int],
    rows: list[tuple[int, dict[str, str], list[Any]]],
) -> Iterator[Fact]:  # fmt: skip
    """A fact for each number."""
    long = any(METRIC in keys for _, keys, _ in rows)
    sizes = [j for j in numbers if columns[j].reading == Reading("people")]
    several = [j for j in sizes if not columns[j].keys]
    # `n` is what a rate is taken over; another name is of the group, whatever the rate.
    over = [j for j in several
            if hyphenate(block.names.map(columns[j].name)) in ("n", "denominator")]  # fmt: skip
    for place, keys, row in rows:
        status = block.names.map(keys.get(STATUS, ""))
        hidden = fold(status) not in _PUBLISHED
        reading, percent = None, False
        if text := keys.get(METRIC, ""):
            text = f"{keys[NUMBER]} {text}" if NUMBER in keys else text
            reading, percent = read_name(block, block.names.map(text))
            reading = count_known(block, text)[0] or reading
            if is_total(text):
                reading = Reading("people")
            if reading is None:
                refuse_misspelling(block, text)
                where = block.layout.follows if is_comparing(text) else block.layout.unread
                where[text] = count_known(block, text)[1] or explain_unread(block, text)
                continue
            if is_comparison(reading.metric):
                block.layout.compared[reading.metric] = text
        own = {key: value for key, value in keys.items() if key not in (METRIC, STATUS, NUMBER)}
        beside = (
            _read_cell(block, row[over[0]], place, over[0], columns)
            if long and len(over) == 1
            else None
        )
        for j in numbers:
            column = columns[j]
            if long and j in over:
                continue
            _check_same(own, column.keys, f"{block.grid.name}, row {place}")
            both = {**block.titled, **own, **column.keys}
            told = column.reading or reading
            if reading and told and not _is_beside(told.metric, reading.metric):
                block.layout.unread[f"{text} {column.name}"] = "names two metrics"
                continue
            told = _find_counted(told, both)
            if told is None:
                continue
            both = {key: value for key, value in both.items() if not key.startswith("@")}
            cell = _read_cell(block, row[j], place, j, columns)
            if is_statistic(told.metric) and [what for what, _ in cell.parts] == [
                "count", "rate"
            ]:  # fmt: skip
                block.layout.unread[column.name] = "its numbers in brackets"
                cell = cell.parts[0][1]
            if hidden and not cell.hidden and fold(status) != "suppressed":
                raise InputError(
                    f"{block.grid.name}, row {place}, column {column.name!r}: is marked "
                    f"{status!r}, and holds {cell.text!r}. If readers see the number, --map "
                    f"{status}=published; if not, --map {status}=suppressed"
                )
            if hidden:
                cell = Cell(status)
            yield Fact(
                both, told, cell, beside, column.percent or percent,
                (block.grid.name, j, told.metric),
                f"{block.name}, row {place}, column {column.name!r}",
            )  # fmt: skip


def _find_sizes(block: Block, columns: list[Column]) -> Iterator[Fact]:
    """The numbers of people that headings say beside names."""
    for j, size in block.sizes.items():
        cell = Cell(str(size), size, size)
        where = f"{block.name}, heading {columns[j].name!r}"
        yield Fact(
            {**block.titled, **columns[j].keys}, Reading("people"), cell, None, False,
            (block.grid.name, j, "people"), where,
        )  # fmt: skip


def _read_cell(block: Block, value: Any, place: int, j: int, columns: list[Column]) -> Cell:
    if isinstance(value, str):
        value = block.names.map(value)
        if has_interval(value):
            block.layout.unread[columns[j].name] = "its confidence intervals"
    cell = read_cell(value, block.mark)
    if cell is None:
        raise InputError(
            f"{block.grid.name}, row {place}, column {columns[j].name!r}: {show_value(value)} "
            f"is not a number (decimal mark: {block.mark}); leave blank what is not published "
            f"(--map {str(value)[:20]!r}=suppressed)"
        )
    return cell


def _find_mark(block: Block, columns: list[Column], numbers: list[int]) -> str:
    """The decimal mark, by all numbers; or by what they can only be."""
    texts = {j: [row[j] for row in block.rows if isinstance(row[j], str)] for j in numbers}
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
