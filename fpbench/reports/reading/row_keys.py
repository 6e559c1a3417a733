"""Whose numbers a row of a table has: values of its keys, and of those above it."""

from __future__ import annotations

import itertools
from typing import Any

from fpbench.base.errors import InputError
from fpbench.reports.reading.blocks import Block, list_filled
from fpbench.reports.reading.headings import Column
from fpbench.reports.reading.known_names import (
    ATTRIBUTE,
    LABEL,
    LEVEL,
    METRIC,
    NUMBER,
    PREDICTION,
    STATUS,
    fold,
    is_sensitive,
    is_total,
)
from fpbench.reports.reading.metric_names import list_meanings


def read_rows(
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
            check_same(read, own, where)
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


def check_same(one: dict[str, str], other: dict[str, str], where: str) -> None:
    """Refuse a number that is of two groups."""
    for key, value in other.items():
        if one.get(key, value) != value:
            raise InputError(
                f"{where}: is of {one[key]!r} and {value!r} by {key.lstrip('@')!r}: leave the "
                "column of one out, --map HEADING=-"
            )
