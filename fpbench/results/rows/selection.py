"""Some rows of a run: those that pass filters of a user or a matrix, alone or in groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.base.errors import InputError, suggest_name
from fpbench.components.names import FIXED, KINDS, Status
from fpbench.store.results import Results, Rows

if TYPE_CHECKING:
    from fpbench.matrix.expectations import Scalar


Mask = NDArray[np.bool_]

_WORDS = frozenset({*KINDS, "status"})
"""Columns that every run has and that hold texts."""
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
}
_FILTER = re.compile(r"\s*([^<>=!]*[^<>=!\s])\s*(<=|>=|!=|==|<|>|=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Filter:
    """One condition on rows, such as `learner=pate*` or `epsilon<=1`."""

    column: str
    comparison: str
    values: tuple[Scalar, ...]
    """The values to compare with; for `=` there may be several."""
    patterns: bool = False
    """Whether `*` and `?` in a text stand for other letters."""

    def __str__(self) -> str:
        return f"{self.column}{self.comparison}{self.values[0]}"


def read_filter(text: str) -> Filter:
    """A condition from the command line; InputError if the text is not a condition."""
    match = _FILTER.fullmatch(text)
    if match is None:
        raise InputError(
            f"{text!r} is not a filter: write COLUMN=VALUE, with *, ? in values of labels, or "
            "COLUMN<NUMBER (also <=, >, >=, !=)"
        )
    column, comparison, value = match.groups()
    return Filter(column, comparison.replace("==", "="), (value.strip(),), patterns=True)


def read_where(where: Mapping[str, Scalar | list[Scalar]]) -> list[Filter]:
    """The conditions of a `where` table of a matrix: columns, and the values they must have."""
    return [
        Filter(column, "=", tuple(values) if isinstance(values, list) else (values,))
        for column, values in where.items()
    ]


def select_rows(results: Results, filters: Iterable[Filter]) -> Results:
    """The rows that pass all filters of a user.

    Raises InputError if a column is unknown, a value is not a number where one is needed, or no row
    passes.
    """
    kept = np.ones(len(results), np.bool_)
    for each in filters:
        typed = _check_filter(results, each)
        matches = match_rows(results, [typed])
        if not (kept & matches).any() and len(results):
            raise InputError(f"no row has {each}{_suggest_label(results, each)}")
        kept &= matches
    return results.take(kept)


def _check_filter(results: Results, each: Filter) -> Filter:
    """A filter whose value is a number where its column has numbers."""
    known = [*KINDS, "seed", "status", "seconds", *results.names]
    column, (value,) = results.glossary.name_of(each.column, known), each.values
    if column not in known:
        hint = results.glossary.suggest(column, known)
        raise InputError(f"unknown column {column!r} to filter by; {hint}")
    each = replace(each, column=column)
    if column in _WORDS:
        if each.comparison not in ("=", "!="):
            raise InputError(f"{each}: {column} is text, compare it with = or !=")
        return each
    try:
        return replace(each, values=(float(value),))
    except ValueError:
        if each.comparison not in ("=", "!=") or not results.texts(column)[1]:
            raise InputError(f"{each}: {value!r} is not a number") from None
    return each


def match_rows(results: Results, filters: Iterable[Filter]) -> Mask:
    """(n,) whether a row passes all filters; no row passes one on a missing column."""
    kept = np.ones(len(results), np.bool_)
    for each in filters:
        numbers = [value for value in each.values if not isinstance(value, str)]
        texts = [value for value in each.values if isinstance(value, str)]
        matches = np.zeros(len(results), np.bool_)
        if numbers:
            values = results.numbers(each.column)
            if each.comparison == "=":
                matches |= np.isin(values, numbers)
            else:
                matches |= _COMPARED[each.comparison](values, numbers[0]) & ~np.isnan(values)
        if texts:
            fits = _match_texts(results, each.column, texts, patterns=each.patterns)
            matches |= ~fits if each.comparison == "!=" else fits
        kept &= matches
    return kept


def _match_texts(results: Results, column: str, texts: Sequence[str], *, patterns: bool) -> Mask:
    """(n,) whether a row has one of some texts in a column."""

    def fits(value: object) -> bool:
        # A label may hold brackets: it always matches itself.
        return value in texts or (
            patterns and any(fnmatchcase(str(value), pattern) for pattern in texts)
        )

    if column in KINDS:
        return results.components[column].map(fits).to_numpy(np.bool_)[results.combination]
    if column in FIXED:
        return np.array([fits(value) for value in results.values(column)], np.bool_)
    positions, words = results.texts(column)
    return np.array([*map(fits, words), False], np.bool_)[positions]  # the last is of none


def _suggest_label(results: Results, each: Filter) -> str:
    """A hint on the nearest label."""
    if each.column not in KINDS:
        return ""
    labels = sorted({*results.components[each.column]} - {""})
    return f"; {suggest_name(str(each.values[0]), labels)}" if labels else ": the run uses none"


def match_kind(results: Results, kind: str) -> Mask:
    """(n,) whether a row uses a kind."""
    return np.asarray((results.components[kind] != "").to_numpy()[results.combination])


def split_by_dataset(results: Results) -> Iterable[tuple[str, Results]]:
    """All rows, then those of each data set if there are several; each with its heading."""
    done, failed = results.finished()
    names = results.components["dataset"]
    used = names.iloc[pd.unique(results.combination[done | failed])].unique()
    if len(used) < 2:
        yield "", results
        return
    yield f"overall: {len(used)} data sets", results
    for dataset in used:
        yield (
            f"data set {dataset}",
            results.take((names == dataset).to_numpy()[results.combination]),
        )


def take_common_lines(results: Results, keep: Sequence[str]) -> tuple[Results, list[str]]:
    """Rows of the lines that every data set has, and the labels of the other lines.

    `keep`: the kinds whose labels lines differ in.
    """
    done, failed = results.finished()
    used = results.components.iloc[np.unique(results.combination[done | failed])]
    datasets = used.groupby([*keep], sort=False)["dataset"].nunique()
    whole = datasets == datasets.max()
    lacking = [" + ".join(filter(None, line)) for line in datasets.index[~whole]]
    lines = results.components.set_index([*keep]).index
    return results.take(lines.isin(datasets.index[whole])[results.combination]), lacking


class RowGroup:
    """Some rows of a run, in the order of its plan."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._rows: Rows = np.arange(len(results))
        # Groups of one run share the columns that have been read.
        self._numbers: dict[str, NDArray[np.float64]] = {}
        self._values: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, which: NDArray[np.bool_] | Sequence[int]) -> RowGroup:
        """The rows of a mask, or at positions."""
        part = RowGroup.__new__(RowGroup)
        part._results, part._rows = self._results, self._rows[np.asarray(which)]
        part._numbers, part._values = self._numbers, self._values
        return part

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(rows,) the finite numbers in a column; NaN where there is none."""
        if name not in self._numbers:
            numbers = self._results.numbers(name)
            self._numbers[name] = np.where(np.isfinite(numbers), numbers, np.nan)
        return self._numbers[name][self._rows]

    def values(self, name: str) -> list[Any]:
        """The values of a column; None for rows without one."""
        if name not in self._values:
            self._values[name] = self._results.values(name)
        values = self._values[name]
        return [values[row] for row in self._rows.tolist()]

    def done(self) -> RowGroup:
        """The rows of cells that are done."""
        return self.take(np.array([s == Status.DONE for s in self.values("status")], np.bool_))

    def undone(self) -> RowGroup:
        """The rows of cells that failed, were skipped, or have not been run."""
        return self.take(np.array([s != Status.DONE for s in self.values("status")], np.bool_))

    def where(self, where: Mapping[str, Scalar | list[Scalar]]) -> RowGroup:
        """The rows that have one of the named values in each named column."""
        return self.take(match_rows(self._results, read_where(where))[self._rows])

    def split(self, names: Iterable[str]) -> dict[tuple[Any, ...], RowGroup]:
        """The rows by their values in some columns, in the order of first appearance."""
        columns = [self.values(name) for name in names]
        keys = zip(*columns, strict=True) if columns else [()] * len(self)
        places: dict[tuple[Any, ...], list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        return {key: self.take(mine) for key, mine in places.items()}

    def columns(self) -> set[str]:
        """Names of the columns that some of the rows have."""
        names = (name for name in self._results.names if self._results.has(name)[self._rows].any())
        return {*names, *FIXED}
