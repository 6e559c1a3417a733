"""What headings of numbers say: metrics, groups and values, statistics."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from fpbench.base.errors import InputError
from fpbench.base.text import hyphenate
from fpbench.reports.reading.blocks import Block
from fpbench.reports.reading.known_names import (
    HEADS,
    LABEL,
    PREDICTION,
    VALUE,
    fold,
    is_sensitive,
    is_total,
)
from fpbench.reports.reading.metric_names import (
    AMBIGUOUS,
    OF_ALL,
    READINGS,
    UNREAD,
    Reading,
    explain_unknown,
    find_near_metric,
    is_comparing,
    list_meanings,
    read_comparison,
    read_heading,
)

AGGREGATES = {
    key: {"mean": rate, "average": rate, "avg": rate, "sum": number, "count": "people",
          "size": "people"}
    for key, rate, number in ((PREDICTION, "selection-rate", "selected"),
                              (LABEL, "prevalence", "labelled"))
}  # fmt: skip
COMPARES = "compares groups"
"""Why a comparison is not read, which follows from the groups' own numbers."""
_EXCEL = {"row-labels", "column-labels", "zeilenbeschriftungen", "spaltenbeschriftungen"}
_NUMBER_OF = {"n", "num", "number", "number-of", "count", "count-of", "no"}
_NUMBERS = {"n", "count", "percent", "pct"}
"""What may stand before, and behind, the group that a heading of numbers names."""
_BARE = re.compile(
    r"mean|average|median|sum|count|min(?:imum)?|max(?:imum)?|p\d\d?|q[1-3]|\d\d?(?:\.\d+)?%|freq\.?|n",
    re.IGNORECASE,
)
"""Statistics of numbers that a title names."""
_CALL = re.compile(r"^(avg|sum|count|min|max|mean|median)\((\w+)\)$", re.IGNORECASE)
"""A heading of SQL."""


@dataclass
class Column:
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


def name_levels(block: Block, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A heading `hired` above `0` as the value of a level, without names of Excel's levels."""
    parts = [part for part in parts if fold(part[1]) not in _EXCEL]
    for place, ((_, name), (level, text)) in enumerate(itertools.pairwise(parts)):
        if not level and block.names.find_counted(name) and block.names.read_bit(text):
            return [*parts[:place], (name, text), *parts[place + 2 :]]
    return parts


def find_aggregates(block: Block, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A heading like `mean` and `hired`, or `Sum of hired`, as that of a metric."""
    of_each = re.compile(
        r"(?<=^sum) of |(?<=^count) of |(?<=^mean) of |(?<=^average) of |(?<=^avg) of |"
        r"_(?=(?:mean|sum)$)",
        re.IGNORECASE,
    )
    parts = [(level, _CALL.sub(r"\1 of \2", text)) for level, text in parts]
    both = [(level, one) for level, text in parts for one in of_each.split(text)]
    counted = block.names.find_counted
    of = next((AGGREGATES[own] for _, text in both if (own := counted(text))), {})
    if not any(hyphenate(text) in of for _, text in both):
        return parts
    return [(level, of.get(hyphenate(text), text)) for level, text in both
            if not counted(text)]  # fmt: skip


def name_statistics(
    block: Block, parts: list[tuple[str, str]], column: Column
) -> list[tuple[str, str]]:
    """A heading like `pay` and `mean`, or `Count of pay`, as that of one statistic."""
    if block.number and len(parts) == 1 and _BARE.fullmatch(parts[0][1]):
        parts = [("", block.number), *parts]  # as `mean` below `Summary of age`
    for place, ((_, one), (_, other)) in enumerate(itertools.pairwise(parts)):
        if block.names.find_statistic(both := f"{one} {other}"):
            return [*parts[:place], ("", both), *parts[place + 2 :]]
    reading, why = count_known(block, " ".join(text for _, text in parts))
    column.unread = why
    return parts if reading is None else [("", reading.metric)]


def count_known(block: Block, text: str) -> tuple[Reading | None, str]:
    """What a heading like `Count of pay` tells; or why it is not read."""
    match = re.fullmatch(r"count (?:of )?(.+)|(.+)[_ ](?:count|freq\.?|n)", text, re.IGNORECASE)
    name = block.names.find_column(match[1] or match[2]) if match else None
    if name is None or block.names.find_counted(name):
        return None, ""
    if block.names.is_complete(name):
        return Reading("people"), ""
    return None, f"counts those whose {name!r} is known"


def read_part(  # noqa: PLR0911
    block: Block, column: Column, level: str, text: str, unknown: list[str]
) -> None:
    """What one text of a heading says."""
    names = block.names
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
    reading, percent = read_name(block, text)
    column.percent |= percent
    if hyphenate(text) in HEADS[VALUE]:
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
                f"{block.grid.name}: the heading {text!r} may be of {groups[0][0]!r}, or of "
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
    if _split_text(block, column, text):
        return
    if not names.secrets and level and is_sensitive(level):
        column.keys[level] = text
        return
    unknown.append(text)


def read_name(block: Block, text: str) -> tuple[Reading | None, bool]:
    """What a name of numbers tells, and if in percent; of medians, `median of age`."""
    statistic = block.names.find_statistic(text)
    reading, percent = read_heading(text)
    if statistic:
        return Reading(statistic), percent
    if block.names.is_column(text):
        return None, percent
    compared = read_comparison(text) if reading is None else ""
    return (Reading(compared) if compared else reading), percent


def _split_text(block: Block, column: Column, text: str) -> bool:
    """Read a heading of a group or value and a metric, as `Female selection rate`."""
    found = []
    for secret in (*block.names.secrets, *block.names.texts):
        for name, value in block.names.spell(secret):
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
    if around and not block.names.find_value(text[:start].strip(" _-/,:()")):
        column.unread = explain_unread(block, text)
        return True
    rest = re.sub(r"^[\s_:|/,()\[\]-]+|[\s_:|/,(\[-]+$|^\)\s*", "", text[:start] + " " + text[end:])
    if rest.count(")") != rest.count("("):
        rest = rest.strip("()")
    reading, percent = read_name(block, rest) if rest else (None, False)
    bit = block.names.read_bit(rest) if rest else None
    if rest and reading is None and bit is None:
        inner = Column("")
        if rest == text or not _split_text(block, inner, rest):
            of_all = OF_ALL.search(hyphenate(text))
            column.unread = column.unread or explain_unread(block, text if of_all else rest)
            column.follows |= is_comparing(rest)
            column.keys[secret] = value
            return True
        if secret in inner.keys:  # as `Women and men hired`
            column.unread = explain_unread(block, text)
            return True
        column.keys.update(inner.keys)
        reading, percent = inner.reading, inner.percent
    column.keys[secret] = value
    if bit is not None and reading is None:
        column.keys[PREDICTION] = bit
    column.reading, column.percent = reading or column.reading, percent or column.percent
    return True


def refuse_misspelling(block: Block, text: str) -> None:
    """Refuse a name that seems to be one of a metric, mistyped."""
    near = find_near_metric(text)
    if near is not None and not is_comparing(text):
        raise InputError(
            f"{block.grid.name}: unknown metric {text!r}; did you mean {near!r}? (--map "
            f"{text!r}={near}, or --map {text!r}=- leaves it out)"
        )


def explain_unread(block: Block, text: str) -> str:
    """Why a heading tells nothing that is read."""
    own = hyphenate(re.sub(r"%", "percent ", text))
    meanings = AMBIGUOUS.get(own, ())
    if block.names.is_column(text) and (told := read_heading(text)[0]) is not None:
        meanings = f"{told.metric} by prediction", "of the people's column of this name"
    elif OF_ALL.search(own):
        of = READINGS.get(OF_ALL.sub("", own))
        if of is None or of.metric not in ("selected", "rejected", "labelled"):
            return "is a share of all people"
        meanings = AMBIGUOUS["ppr"]
    if meanings:
        return f"may be {list_meanings(meanings)}"
    if is_comparing(text):
        return COMPARES
    if own in UNREAD or own.startswith(("mean-", "average-", "median-")):
        return "is no number of people, nor a share of them"
    return explain_unknown(text).partition("; valid")[0]


def is_metric(block: Block, text: str) -> bool:
    """Whether a text names a metric, even one that is not read."""
    own = block.names.map(text)
    known = hyphenate(own) in UNREAD or hyphenate(own) in AMBIGUOUS
    return read_name(block, own)[0] is not None or is_comparing(own) or known
