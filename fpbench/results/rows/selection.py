"""Some rows of a run: those that a filter means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError, nearest
from fpbench.components.names import KINDS
from fpbench.store.results import Block, Results

Mask = NDArray[np.bool_]

_FIXED = ("seed", "status", "seconds")
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "=": np.equal,
}
_FILTER = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|!=|==|<|>|=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Filter:
    """One condition on rows, such as `learner=pate*` or `epsilon<=1`."""

    column: str
    comparison: str
    value: str


def read_filter(text: str) -> Filter:
    """A condition as it is written on the command line.

    Raises
    ------
    InputError
        If it is none.
    """
    found = _FILTER.fullmatch(text)
    if found is None:
        raise InputError(
            f"{text!r} is no filter: write COLUMN=VALUE, with *, ? in values of labels, or "
            "COLUMN<NUMBER (also <=, >, >=, !=)"
        )
    column, comparison, value = found.groups()
    return Filter(column, comparison.replace("==", "="), value.strip())


def meant(results: Results, filters: Iterable[Filter]) -> Mask:
    """(n,) the rows that all filters mean.

    Raises
    ------
    InputError
        If a column is unknown, a value no number where one is needed, or nothing is left.
    """
    kept = np.ones(len(results), np.bool_)
    for asked in filters:
        here = _column(results, asked)
        if not (kept & here).any() and len(results):
            said = f"{asked.column}{asked.comparison}{asked.value}"
            raise InputError(f"no row has {said}{_has(results, asked)}")
        kept &= here
    return kept


def _column(results: Results, asked: Filter) -> Mask:
    column, value = asked.column, asked.value
    known = [*KINDS, *_FIXED, *results.names]
    if column not in known:
        raise InputError(f"unknown column {column!r} to filter by; {nearest(column, known)}")
    if column in KINDS or column == "status":
        if asked.comparison not in ("=", "!="):
            raise InputError(f"{column}{asked.comparison}{value}: {column} is a word, compare it "
                             "with = or !=")  # fmt: skip
        matches = _labels(results, column, value)
        return matches if asked.comparison == "=" else ~matches
    try:
        wanted = float(value)
    except ValueError:
        matches = _texts(results, column, value, asked.comparison)
        return matches if asked.comparison == "=" else ~matches
    numbers = results.seeds if column == "seed" else results.numbers(column)
    return np.asarray(_COMPARED[asked.comparison](numbers, wanted) & ~np.isnan(numbers))


def _labels(results: Results, column: str, pattern: str) -> Mask:
    if column == "status":
        return np.array([fnmatchcase(status, pattern) for status in results.statuses], np.bool_)
    place = list(KINDS).index(column)
    fits = [_fits(labels[place], pattern) for labels in results.combinations]
    return np.asarray(np.array(fits, np.bool_)[results.combination])


def _fits(label: str, pattern: str) -> bool:
    """Labels may hold brackets, so that a label as it stands is always meant."""
    return label == pattern or fnmatchcase(label, pattern)


def _texts(results: Results, column: str, value: str, comparison: str) -> Mask:
    rows, words = results.texts(column)
    if comparison not in ("=", "!=") or not len(rows):
        raise InputError(f"{column}{comparison}{value}: {value!r} is no number")
    said = np.unique(words)
    fits = said[[_fits(results.word(int(word)), value) for word in said]]
    found = np.zeros(len(results), np.bool_)
    found[rows[np.isin(words, fits)]] = True
    return found


def _has(results: Results, asked: Filter) -> str:
    """What could have been meant."""
    if asked.column not in KINDS:
        return ""
    place = list(KINDS).index(asked.column)
    labels = sorted({labels[place] for labels in results.combinations} - {""})
    return f"; {nearest(asked.value, labels)}" if labels else ": the run uses none"


def chosen(results: Results, kept: Mask) -> Results:
    """The rows that are kept, in their order."""
    if kept.all():
        return results
    rows = np.flatnonzero(kept)
    place = np.cumsum(kept) - 1
    done, failed = results.finished()
    made = replace(
        results,
        combination=results.combination[rows],
        seeds=results.seeds[rows],
        statuses=_at(results.statuses, rows),
        seconds=results.seconds[rows],
        cells=_at(results.cells, rows),
        reasons={int(place[i]): why for i, why in results.reasons.items() if kept[i]},
        blocks=[block for each in results.blocks if len((block := _part(each, kept, place)).rows)],
    )
    made.__dict__["_finished"] = (done[rows], failed[rows])  # so that nobody counts again
    return made


def _at(values: Sequence[str], rows: NDArray[np.intp]) -> list[str]:
    return [values[i] for i in rows.tolist()]


def _part(block: Block, kept: Mask, place: NDArray[np.intp]) -> Block:
    here = kept[block.rows]
    return Block(block.names, place[block.rows[here]], block.kinds[:, here], block.bits[:, here])


def using(results: Results, kind: str) -> Mask:
    """(n,) rows that use a kind."""
    place = list(KINDS).index(kind)
    used = np.array([bool(labels[place]) for labels in results.combinations], np.bool_)
    return np.asarray(used[results.combination])


def scopes(results: Results) -> Iterable[tuple[str, Results]]:
    """All rows, and those of each data set where there are several, each with its words."""
    done, failed = results.finished()
    place = list(KINDS).index("dataset")
    names = [labels[place] for labels in results.combinations]
    found = dict.fromkeys(names[i] for i in results.combination[done | failed].tolist())
    if len(found) < 2:
        yield "", results
        return
    yield f"overall: {len(found)} data sets", results
    for dataset in found:
        mine = np.array([name == dataset for name in names], np.bool_)
        yield f"data set {dataset}", chosen(results, mine[results.combination])


def everywhere(results: Results, keep: Sequence[str]) -> tuple[Results, list[str]]:
    """Rows of the lines that some row of every data set has, and the labels of the others.

    Parameters
    ----------
    results
        Rows.
    keep
        The kinds whose labels lines differ in.
    """
    done, failed = results.finished()
    places = [list(KINDS).index(kind) for kind in keep]
    place = list(KINDS).index("dataset")
    found: dict[tuple[str, ...], set[str]] = {}
    lines = [tuple(labels[i] for i in places) for labels in results.combinations]
    for i in np.unique(results.combination[done | failed]).tolist():
        found.setdefault(lines[i], set()).add(results.combinations[i][place])
    most = max(map(len, found.values()), default=0)
    whole = {line for line, names in found.items() if len(names) == most}
    lacking = [" + ".join(filter(None, line)) for line in found if line not in whole]
    mine = np.array([line in whole for line in lines], np.bool_)
    return chosen(results, mine[results.combination]), lacking
