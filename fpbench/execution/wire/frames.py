"""Tables and samples as headers and arrays: numbers unchanged, categories as texts and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.base.errors import PluginError
from fpbench.data.domain import Domain
from fpbench.data.sample import Sample, Split
from fpbench.data.table import Table
from fpbench.execution.wire.message import Message, Unreadable
from fpbench.execution.wire.values import (
    Arrays,
    read_measures,
    read_texts,
    write_measures,
    write_texts,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_TEXTS = ("object", "str", "string")
"""Names of the dtype of texts in different versions of pandas."""
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
        "tested": table.test is not None,
        "chances": table.group_chances is not None,
        "households": table.households is not None,
    }
    arrays += [*_write_domain(table.domain), np.asarray(table.labels)]
    arrays += write_measures(table.measured_cuts)
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
    domain = _read_domain(message)
    labels = message.array("the labels", "i", len(features))
    cuts = _read_cuts(message)
    test = None
    if message.field("tested", bool):
        test = message.array("the test set", "b", len(features))
    name, positive = message.field("name", str), message.field("positive", str)
    chances = None
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
    arrays += write_texts(sample.groups)
    arrays += [*_write_domain(sample.domain), *write_measures(sample.measured_cuts)]
    header[f"{part} seen"] = [name for name in Sample.COLUMNS if name in sample.seen]
    header[part] = _write_frame(sample.features, arrays)
    arrays += [getattr(sample, name) for name in header[f"{part} seen"] if name != "features"]


def _read_sample(message: Message, part: str) -> Sample:
    groups = read_texts(message)
    domain, cuts = _read_domain(message), _read_cuts(message)
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
    content: Arrays = []
    kinds = [_write_column(column, content) for _, column in frame.items()]
    arrays += [*write_texts(names), *write_texts(kinds), *content]
    return {"rows": len(frame), "names": str(frame.columns.dtype)}


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
        arrays += write_texts(categories)
        return f"{ordered}{categories.dtype}"
    arrays.append(categories.to_numpy())
    return f"{ordered}numbers"


def _read_frame(message: Message, name: str, rows: int | None) -> DataFrame:
    import pandas as pd

    layout = message.field(name, dict)
    n, kind = layout.get("rows"), layout.get("names")
    if type(n) is not int or n < 0 or kind not in _TEXTS:
        raise Unreadable(f"the field {name!r} of its answer is not a table")
    if rows not in (None, n):
        raise Unreadable(f"the field {name!r} of its answer has another number of rows")
    names, columns = read_texts(message), read_texts(message)
    if len(names) != len(columns):
        raise Unreadable(f"the field {name!r} of its answer has another number of columns")
    content = [_read_column(message, column, n) for column in columns]
    frame = pd.DataFrame(dict(enumerate(content)), index=range(n))
    frame.columns = pd.Index(names, dtype=kind)
    return frame


def _read_column(message: Message, kind: str, n: int) -> Any:
    import pandas as pd

    if kind == "":
        return message.array("a column", "biuf", n)
    codes = message.array("codes of a column", "i", n)
    ordered, kind = kind.startswith("ordered "), kind.removeprefix("ordered ")
    if kind == "numbers":
        categories: Any = pd.Index(message.array("categories", "biuf", None))
    elif kind in _TEXTS:
        categories = pd.Index(read_texts(message), dtype=kind)
    else:
        raise Unreadable("its answer has a column of no kind")
    return pd.Categorical.from_codes(codes, categories=categories, ordered=ordered)


def _write_domain(domain: Domain) -> Arrays:
    low = {name: ends[0] for name, ends in domain.bounds.items()}
    high = {name: ends[1] for name, ends in domain.bounds.items()}
    arrays = [*write_measures(low), *write_measures(high), *write_texts(domain.categories)]
    for words in domain.categories.values():
        arrays += write_texts(words)
    return arrays


def _read_domain(message: Message) -> Domain:
    low, high, worded = read_measures(message), read_measures(message), read_texts(message)
    bounds: dict[str, Any] = {name: (end, high.get(name)) for name, end in low.items()}
    return Domain(bounds, {name: tuple(read_texts(message)) for name in worded})


def _read_cuts(message: Message) -> dict[str, str]:
    cuts = read_measures(message)
    if not all(type(words) is str for words in cuts.values()):
        raise Unreadable("its answer has cuts that are no texts")
    return cuts  # type: ignore[return-value]  # checked
