"""Tables and samples as headers and arrays: numbers unchanged, categories as texts and codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import PluginError
from fpbench.data.domain import Domain
from fpbench.data.sample import Sample, Split
from fpbench.data.table import Table
from fpbench.execution.wire.message import Message, Unreadable
from fpbench.execution.wire.values import write_scalar

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Arrays = list[NDArray[Any]]
_TEXTS = ("object", "str", "string")
"""Names of the dtype of texts in different versions of pandas."""
_MOST_TEXTS = 2**24
_MOST_CROSSED = 100
_MOST_CATEGORIES = 10_000
_PARTS = ("train", "test", "attack")
_OF_PEOPLE = frozenset(Sample.COLUMNS) - {"query", "twin"}
"""Columns that a part of a split may have: arrays."""


def write_table(table: Table) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a table."""
    arrays: Arrays = []
    header = {
        "name": str(table.name),
        "positive": str(table.positive),
        "features": _write_frame(table.features, arrays),
        "sensitive": _write_frame(table.sensitive, arrays),
        "domain": _write_domain(table.domain, arrays),
        "tested": table.test is not None,
        "cuts": _write_cuts(table.measured_cuts),
        "chances": table.group_chances is not None,
        "households": table.households is not None,
    }
    arrays.append(np.asarray(table.labels))
    if table.test is not None:
        arrays.append(np.asarray(table.test, dtype=np.bool_))
    if table.group_chances is not None:
        arrays.append(np.asarray(table.group_chances, dtype=np.float64))
    if table.households is not None:
        arrays.append(np.asarray(table.households, dtype=np.int64))
    return header, arrays


def read_table(message: Message) -> Table:
    """The table in a message, checked like any other."""
    features = _read_frame(message, "features", None)
    sensitive = _read_frame(message, "sensitive", len(features))
    if len(sensitive.columns) > _MOST_CROSSED:  # crossing multiplies their groups
        raise Unreadable(f"its table has more than {_MOST_CROSSED} sensitive columns")
    for dtype in sensitive.dtypes:
        if len(getattr(dtype, "categories", ())) > _MOST_CATEGORIES:
            raise Unreadable(f"its sensitive columns have more than {_MOST_CATEGORIES} categories")
    domain = _read_domain(message, "domain")
    labels = message.array("the labels", "i", len(features))
    test = None
    if message.field("tested", bool):
        test = message.array("the test set", "b", len(features))
    name, positive = message.field("name", str), message.field("positive", str)
    cuts, chances = _read_cuts(message, "cuts"), None
    if message.field("chances", bool):
        chances = message.array("the chances of the groups", "f", len(features), None)
    homes = None
    if message.field("households", bool):
        homes = message.array("the households", "i", len(features))
    return Table(name, features, labels, sensitive, positive, test, domain, cuts, chances, homes)


def write_split(split: Split) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a split."""
    header: dict[str, Any] = {"held_out_target": split.held_out_target}
    arrays: Arrays = []
    for part in _PARTS:
        _write_sample(getattr(split, part), part, header, arrays)
    return header, arrays


def read_split(message: Message) -> Split:
    """The split in a message."""
    train, test, attack = (_read_sample(message, part) for part in _PARTS)
    return Split(train, test, attack, message.field("held_out_target", bool))


def _write_sample(sample: Sample, part: str, header: dict[str, Any], arrays: Arrays) -> None:
    arrays += _write_texts(sample.groups)
    header[f"{part} domain"] = _write_domain(sample.domain, arrays)
    header[f"{part} cuts"] = _write_cuts(sample.measured_cuts)
    header[f"{part} seen"] = [name for name in Sample.COLUMNS if name in sample.seen]
    header[part] = _write_frame(sample.features, arrays)
    arrays += [getattr(sample, name) for name in header[f"{part} seen"] if name != "features"]


def _read_sample(message: Message, part: str) -> Sample:
    groups = _read_texts(message)
    domain = _read_domain(message, f"{part} domain")
    cuts = _read_cuts(message, f"{part} cuts")
    seen = message.field(f"{part} seen", list)
    if "features" not in seen or not all(name in _OF_PEOPLE for name in seen):
        raise Unreadable("its answer has people of unknown columns")
    features = _read_frame(message, part, None)
    columns: dict[str, Any] = {}
    for name in seen:
        if name == "group_chances":
            columns[name] = message.array("the chances", "f", len(features), len(groups))
        elif name != "features":
            columns[name] = message.array(name, "f" if name == "scores" else "iu", len(features))
    return Sample(tuple(groups), features=features, **columns, domain=domain, measured_cuts=cuts)


def _write_frame(frame: DataFrame, arrays: Arrays) -> dict[str, Any]:
    """The header of a frame; the content of its columns is appended to the arrays."""
    names = list(frame.columns)
    if not all(type(name) is str for name in names):
        raise PluginError("the columns of its tables must be named by strings")
    arrays += _write_texts(names)
    columns = [_write_column(column, arrays) for _, column in frame.items()]
    return {"rows": len(frame), "names": str(frame.columns.dtype), "columns": columns}


def _write_column(column: Series, arrays: Arrays) -> str:
    """The kind of a column: empty for numbers, else the kind of its categories."""
    import pandas as pd

    if isinstance(column.dtype, np.dtype):
        arrays.append(column.to_numpy())
        return ""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        raise PluginError(
            f"its column {column.name!r} must be plain numbers or a categorical, not {column.dtype}"
        )
    arrays.append(column.cat.codes.to_numpy())
    categories, ordered = column.cat.categories, "ordered " * bool(column.cat.ordered)
    if all(type(category) is str for category in categories):
        arrays += _write_texts(categories)
        return f"{ordered}{categories.dtype}"
    arrays.append(categories.to_numpy())
    return f"{ordered}numbers"


def _read_frame(message: Message, name: str, rows: int | None) -> DataFrame:
    import pandas as pd

    layout = message.field(name, dict)
    n, kind, columns = layout.get("rows"), layout.get("names"), layout.get("columns")
    if type(n) is not int or n < 0 or kind not in _TEXTS or not isinstance(columns, list):
        raise Unreadable(f"the field {name!r} of its answer is not a table")
    if rows not in (None, n):
        raise Unreadable(f"the field {name!r} of its answer has another number of rows")
    names = _read_texts(message)
    if len(names) != len(columns):
        raise Unreadable(f"the field {name!r} of its answer has another number of columns")
    content = [_read_column(message, column, n) for column in columns]
    frame = pd.DataFrame(dict(enumerate(content)), index=range(n))
    frame.columns = pd.Index(names, dtype=kind)
    return frame


def _read_column(message: Message, kind: Any, n: int) -> Any:
    import pandas as pd

    if kind == "":
        return message.array("a column", "biuf", n)
    if not isinstance(kind, str):
        raise Unreadable("its answer has a column of no kind")
    codes = message.array("codes of a column", "i", n)
    ordered, kind = kind.startswith("ordered "), kind.removeprefix("ordered ")
    if kind == "numbers":
        categories: Any = pd.Index(message.array("categories", "biuf", None))
    elif kind in _TEXTS:
        categories = pd.Index(_read_texts(message), dtype=kind)
    else:
        raise Unreadable("its answer has a column of no kind")
    return pd.Categorical.from_codes(codes, categories=categories, ordered=ordered)


def _write_domain(domain: Domain, arrays: Arrays) -> list[Any]:
    """The bounds of a domain; its names and categories are appended to the arrays."""
    arrays += _write_texts(domain.bounds)
    arrays += _write_texts(domain.categories)
    for words in domain.categories.values():
        arrays += _write_texts(words)
    return [[write_scalar(end) for end in ends] for ends in domain.bounds.values()]


def _read_domain(message: Message, name: str) -> Domain:
    bounds = message.field(name, list)
    names, worded = _read_texts(message), _read_texts(message)
    if len(names) != len(bounds) or not all(map(_are_bounds, bounds)):
        raise Unreadable(f"the field {name!r} of its answer is not a list of bounds")
    words = [tuple(_read_texts(message)) for _ in worded]
    pairs = {each: (low, high) for each, (low, high) in zip(names, bounds, strict=True)}
    return Domain(pairs, dict(zip(worded, words, strict=True)))


def _write_cuts(cuts: Mapping[str, str]) -> dict[str, str]:
    return {str(column): str(words) for column, words in cuts.items()}


def _read_cuts(message: Message, name: str) -> dict[str, str]:
    cuts: dict[str, str] = message.field(name, dict)
    if not all(type(words) is str for words in cuts.values()):
        raise Unreadable(f"the field {name!r} of its answer is not a mapping of cuts")
    return cuts


def _are_bounds(ends: Any) -> bool:
    return isinstance(ends, list) and len(ends) == 2 and {*map(type, ends)} <= {int, float}


def _write_texts(texts: Iterable[str]) -> Arrays:
    """Texts as two arrays: lengths, and UTF-8 bytes."""
    letters = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.array([len(each) for each in letters], np.int64)
    return [sizes, np.frombuffer(b"".join(letters), np.uint8)]


def _read_texts(message: Message) -> list[str]:
    sizes = message.array("lengths of texts", "i", None)
    letters = message.array("texts", "u", None)
    if letters.itemsize != 1 or len(sizes) > _MOST_TEXTS:
        raise Unreadable("its answer has texts that are none")
    ends = [0]
    for size in sizes.tolist():
        if not 0 <= size <= len(letters) - ends[-1]:
            raise Unreadable("its answer has texts that are longer than all of them")
        ends.append(ends[-1] + size)
    if ends[-1] != len(letters):
        raise Unreadable("its answer has texts that are shorter than all of them")
    content = letters.tobytes()
    try:
        return [
            content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)
        ]
    except UnicodeDecodeError:
        raise Unreadable("its answer has texts that are none") from None
