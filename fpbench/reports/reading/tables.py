"""Reports from tables as people have them: a grid, its layout, facts, and the long form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from fpbench.base.errors import InputError, check_choice
from fpbench.base.text import count_noun, escape_unprintable
from fpbench.reports.exact_blocks import WHOLE
from fpbench.reports.linear_statistics import (
    is_comparison,
    is_count,
    is_of_counts,
    is_of_numbers,
    is_weighted,
)
from fpbench.reports.reading.blocks import Fact, Layout
from fpbench.reports.reading.cells import FULL, NO_MORE, Cell
from fpbench.reports.reading.files import MOST_BYTES, parse_report
from fpbench.reports.reading.grids import Grid, from_frame, read_grids
from fpbench.reports.reading.known_names import KnownNames, is_sensitive
from fpbench.reports.reading.layouts import read_layouts
from fpbench.reports.reading.long_form import read_frame
from fpbench.reports.reading.metric_names import TAKEN_OVER, read_heading
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import FIXED_COLUMNS, SliceColumn, name_values
from fpbench.tabular.table_files import PARQUET, load_content

if TYPE_CHECKING:
    from pandas import DataFrame

UNITS = ("percent", "share")
_OVERALL = ("selection-rate", "accuracy", "prevalence")
"""Rates taken over all people of a group in a slice."""
_MOST_SHARE = 2
"""The greatest comparison of rates that is not in percent."""
_LISTED = 4
_MOST_ROWS = 20_000
"""Of a table in another form than the long one."""
_ROUNDED = 8
"""Numbers that are all multiples of one, by which one sees that they were rounded."""


@dataclass(frozen=True)
class TableReading:
    """How a table was read."""

    report: ReportRows
    told: str
    """In a line: metrics, groups, slices, units."""
    unread: Mapping[str, str]
    """Headings that were not read and may reveal more, and why."""
    columns: int
    """Columns of the table."""
    mapping: Mapping[str, str]
    """What each heading was taken for."""

    @property
    def warning(self) -> str:
        """What was not read; "" if nothing was left."""
        if not self.unread:
            return ""
        listed = "; ".join(f"{name}: {why}" for name, why in list(self.unread.items())[:_LISTED])
        more = len(self.unread) - _LISTED
        columns = max(self.columns, len(self.unread))  # or rows of metrics
        return escape_unprintable(
            f"not read: {len(self.unread)} of {count_noun(columns, 'column')} "
            f"({listed}{f'; and {more} more' if more > 0 else ''}); they may reveal more"
        )


class NothingToldError(InputError):
    """A table that tells nothing of an attribute."""


class _Rate(NamedTuple):
    value: float
    within: float


def read_tables(
    grids: Sequence[Grid],
    names: KnownNames,
    secret: Sequence[str] = (),
    *,
    unit: str | None = None,
    decimals: int | None = None,
    groups: Sequence[str] | None = None,
    strict: bool = False,
) -> TableReading:
    """The report of some grids, about the groups of an attribute, or of several that are crossed.

    Raises
    ------
    InputError
        If nothing can be read, or can be read in two ways: names both, and what decides.
    """
    if (rows := sum(len(grid.rows) for grid in grids)) > _MOST_ROWS:
        raise InputError(f"{grids[0].name}: {rows:,} rows are too many; write the long form")
    layout = read_layouts(grids, names)
    if strict and layout.unread:
        name, why = next(iter(layout.unread.items()))
        raise InputError(f"{grids[0].name}: {name!r} {why}, and was not read (strict)")
    chosen = tuple(secret) or _find_secret(layout, names, grids[0].name)
    mine = [fact for fact in layout.facts if all(one in fact.keys for one in chosen)]
    if mine:  # comparisons of all groups
        mine += [fact for fact in layout.facts if is_comparison(fact.reading.metric)
                 and not names.secrets.keys() & fact.keys.keys()]  # fmt: skip
    if not mine:
        there = sorted({key for fact in layout.facts for key in fact.keys})
        left = "; ".join(f"{name!r} {why}" for name, why in list(layout.unread.items())[:_LISTED])
        raise NothingToldError(
            f"{grids[0].name}: no number that was read is of {' and '.join(chosen)}, but by "
            f"{', '.join(there) or 'nothing'}{f'; not read: {left}' if left else ''} (--map "
            "GROUP=NAME says what a text of it stands for)"
        )
    builder = _Builder(mine, chosen, unit, decimals, names.frame)
    mapped = any(read_heading(meaning)[0] for meaning in names.mapping.values())
    if not mapped and decimals != FULL:  # which programs tell, and not people
        builder.refuse_shares()
    frame = builder.to_frame()
    if groups is None:
        groups = cross_names(names, chosen)
    if groups is not None:  # a table may list a group that nobody is in
        frame = frame[frame["group"].isin(["", *groups]) | (frame["n"] != 0)]
    report = read_frame(frame, groups, None)
    return TableReading(
        report, builder.describe(report, len(layout.facts) - len(mine)), layout.unread,
        layout.columns, layout.mapping,
    )  # fmt: skip


def read_table(
    source: Any,
    names: KnownNames,
    secret: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    unit: str | None = None,
    decimals: int | None = None,
    strict: bool = False,
) -> ReportRows:
    """The report of a file, frame, or of one `MetricFrame` or more; see `FairnessReport.read`."""
    if unit is not None:
        check_choice("unit", unit, UNITS)
    long: ReportRows | InputError | None = None
    frames = source if isinstance(source, list | tuple) else (source,)
    if frames and all(map(_is_metric_frame, frames)):
        grids = [_take_metric_frame(frame, names) for frame in frames]
        body = (cell for grid in grids for row in grid.rows[1:] for cell in row[grid.keys :])
        if decimals is None and not any(isinstance(cell, str) and cell for cell in body):
            decimals = FULL  # nobody rounded it
        if not secret and not names.secrets:
            names, secret = _find_levels(frames, names)
    else:
        long, certain = _read_long_form(source, names, secret, groups, decimals)
        if certain and isinstance(long, ReportRows):
            return long
        grids = read_grids(source)
    if groups is None:
        groups = names.groups or (cross_names(names, secret) if secret else None)
    try:
        read = read_tables(
            grids, names, secret, unit=unit, decimals=decimals, groups=groups, strict=strict
        )
    except InputError as error:
        if isinstance(long, ReportRows):
            return long
        if long is not None:
            raise long from None
        file = grids[0].name
        text = str(error)
        raise type(error)(text if text.startswith(file) else f"{file}: {text}") from None
    mapped = tuple(f"{heading}={meaning}" for heading, meaning in read.mapping.items())
    return replace(read.report, read_as=read.told, unread=read.warning, mapped=mapped)


def _read_long_form(
    source: Any, names: KnownNames, secret: Sequence[str], groups: Sequence[str] | None,
    decimals: int | None,
) -> tuple[ReportRows | InputError | None, bool]:  # fmt: skip
    """The report of a table that fpbench wrote, or that is written alike, and if that is certain.

    An error, if it cannot be read in this form; None of another form.
    """
    import pandas as pd

    rows, columns, described = 0, set[str](), False
    read: Any = None
    if isinstance(source, pd.DataFrame):
        rows, columns, read = len(source), set(map(str, source.columns)), read_frame
        given: tuple[Any, ...] = (source,)
    elif isinstance(source, str | Path) and str(source) != "-" and Path(source).is_file():
        file = Path(source)
        content, described = (
            load_content(file, MOST_BYTES),
            file.suffix.lower() in (".json", *PARQUET),
        )
        read, given = parse_report, (content, file)
        rows = content.count(b"\n")
        head = content[:10_000].partition(b"\n")[0].decode("utf-8", "replace")
        columns = {name.strip(' "\r\ufeff') for name in head.split(",")}
        if described:
            own = b"fpbench-report" in content
            columns = set(FIXED_COLUMNS if own else FIXED_COLUMNS[:4])
    if read is None or not set(FIXED_COLUMNS[:3]) <= columns:
        return None, False
    # What only fpbench writes is not read in another way, where it is wrong.
    own = bool(columns & set(FIXED_COLUMNS[4:])) or rows > _MOST_ROWS
    if not own and (names.mapping or len(secret) > 1):
        return None, False
    try:
        report: ReportRows = read(*given, groups, decimals)
    except InputError as error:
        text = str(error)
        if given[1:] and not text.startswith(str(source)):
            error = InputError(f"{source}: {text}")
        if own:
            raise error from None
        return None if described else error, False
    known = {value for one in secret for value in names.secrets.get(one, ())}
    columns = {column.name for column in report.columns}
    strange = (known and set(report.groups) - known) or (
        names.frame is not None and columns - set(names.features)
    )
    exact = report.is_rate & (report.within == 0) & ~report.noisy & ~report.suppressed
    sized = exact & (report.n > 0)
    people = np.nan_to_num(report.value[sized] * report.n[sized])
    whole = not (exact & (report.n < 0)).any() and (np.abs(people - np.rint(people)) <= WHOLE).all()
    return report, own or bool((whole or report.rounding is not None) and not strange)


def _is_metric_frame(source: Any) -> bool:
    return hasattr(source, "by_group") and hasattr(source, "sensitive_levels")


def _take_metric_frame(frame: Any, names: KnownNames) -> Grid:
    """The grid of fairlearn's frame; of nobody, it has no count."""
    import pandas as pd

    table = frame.by_group
    table = table.to_frame() if isinstance(table, pd.Series) else table.copy()
    table.columns = list(map(str, table.columns))
    if not len(table):
        raise InputError("the MetricFrame has no rows: it is of nobody")
    for name in map(str, table):
        if table[name].map(np.ndim).any() and names.map(name) != "-":
            raise InputError(
                f"the metric {name!r} of the MetricFrame is an array, and no number: make a metric "
                f"of each number in it, or leave it out, --map {name!r}=-"
            )
    nobody = table.isna().all(axis=1)
    if "count" in table:
        table["count"] = table["count"].fillna(0)
    elif nobody.any():
        table["count"] = np.where(nobody, 0.0, np.nan)
    own = list(map(str, frame.sensitive_levels))
    called = own
    if len(own) == len(names.secrets) and not set(own) <= set(names.secrets):
        called = list(names.secrets)
    levels = dict(zip(own, called, strict=True))
    index = [levels.get(str(name), str(name)) for name in table.index.names]
    table.index = table.index.set_names(index)
    return from_frame(table, "the MetricFrame")


def _find_levels(frames: Sequence[Any], names: KnownNames) -> tuple[KnownNames, tuple[str, ...]]:
    """The sensitive features of frames, with their groups."""
    texts: dict[str, set[str]] = {}
    whose = {tuple(map(str, frame.sensitive_levels)): None for frame in frames}
    if len(whose) > 1:
        listed = "; ".join(map(", ".join, whose))
        raise InputError(f"the frames are by different sensitive features: {listed}")
    for frame in frames:
        for own in frame.sensitive_levels:
            values = frame.by_group.index.get_level_values(own)
            texts.setdefault(str(own), set()).update(map(str, values))
    secrets = {name: name_values(sorted(own)) for name, own in texts.items()}
    return replace(names, secrets=secrets), tuple(secrets)


def cross_names(names: KnownNames, secret: Sequence[str]) -> list[str] | None:
    """The groups of an attribute, or of crossed ones, as data sets name them; None if unknown."""
    crossed = [""]
    for one in secret:
        values = names.secrets.get(one)
        if values is None:
            return None
        crossed = [f"{before} x {value}".removeprefix(" x ") for before in crossed
                   for value in values]  # fmt: skip
    return crossed


def _find_secret(layout: Layout, names: KnownNames, file: str) -> tuple[str, ...]:
    """The attribute whose groups a table is about, if there is one."""
    there = list(dict.fromkeys(key for fact in layout.facts for key in fact.keys))
    known = [key for key in there if key in names.secrets]
    if not names.secrets:
        known = [key for key in there if is_sensitive(key)]
        known = ["group"] if "group" in known else known
        known = known or (there if len(there) == 1 else [])
    if len(known) != 1:
        raise InputError(
            f"{file}: whose groups are meant? It is by {', '.join(map(repr, there))}: name one, "
            f"group={there[0]!r} (--group {there[0]})"
            if there
            else f"{file}: has no groups"
        )
    return (known[0],)


class _Builder:
    """Puts the facts about one attribute into the long form."""

    def __init__(
        self, facts: Sequence[Fact], secret: tuple[str, ...], unit: str | None,
        decimals: int | None, people: DataFrame | None = None,
    ) -> None:  # fmt: skip
        self.people = people
        self.secret, self.unit, self.decimals = secret, unit, decimals
        self.slices = list(dict.fromkeys(k for f in facts for k in f.keys if k not in secret))
        for name in self.slices:
            if name in FIXED_COLUMNS:
                raise InputError(
                    f"a column that slices are cut by, or a control feature, is called {name!r}, "
                    "as a column of reports: rename it, in the people's table, too"
                )
        self.cells: dict[tuple[tuple[str, ...], str], dict[str, list[Fact]]] = {}
        self.bare = {
            f.column for f in facts
            if f.cell.exact and f.cell.unit is None and f.cell.low > 1
        }  # fmt: skip
        """Columns with percentages that are not marked."""
        for fact in facts:
            self._add(fact)
        self.words: dict[str, str] = {}
        """Words for suppressed cells, and what they were read as."""
        self.units: set[str] = set()
        self.base = self._find_base()
        self.rates = {column: self._read_rates(own) for column, own in self._group_rates().items()}

    def _add(self, fact: Fact) -> None:
        if (
            fact.cell.open
            and fact.cell.unit is None
            and not is_count(fact.reading.metric)
            and max(end for end in fact.cell[1:3] if end < NO_MORE) > 1
        ):
            # Among rates `<5` says that fewer than five people are behind one.
            open_to = not is_of_numbers(fact.reading.metric)
            if open_to and (fact.percent or fact.column in self.bare):
                raise InputError(
                    f"{fact.where}: {fact.cell.text!r} may be a rate below "
                    f"{fact.cell.high:g} percent, or hide one of fewer than {fact.cell.high:g} "
                    f"people: say which, --map '{fact.cell.text}={fact.cell.text}%' or "
                    f"'{fact.cell.text}=suppressed'"
                )
            fact = fact._replace(cell=Cell(fact.cell.text))
        key = (
            tuple(fact.keys.get(name, "") for name in self.slices),
            " x ".join(fact.keys.get(name, "") for name in self.secret).strip(" x"),
        )
        parts = fact.cell.parts
        if not parts:
            self.cells.setdefault(key, {}).setdefault(fact.reading.metric, []).append(fact)
            return
        metric = fact.reading.metric
        if metric == "people":  # and their share of all
            parts = tuple((what, cell) for what, cell in parts if what != "rate")
        if (
            metric not in ("selection-rate", "selected", "people")
            or fact.reading.from_one
            or (metric == "people" and len(parts) != 1)
        ):
            raise InputError(
                f"{fact.where}: {fact.cell.text!r} has several numbers, which are read of selected "
                "people only: write them into columns of their own"
            )
        for what, cell in parts:
            own = {"count": "selected", "of": "people", "rate": "selection-rate"}[what]
            own = "people" if metric == "people" else own
            taken = fact._replace(
                reading=fact.reading._replace(metric=own), cell=cell,
                column=(*fact.column[:2], own),
            )  # fmt: skip
            self.cells.setdefault(key, {}).setdefault(own, []).append(taken)

    def _facts(self) -> Any:
        for key, by_metric in self.cells.items():
            for own in by_metric.values():
                for fact in own:
                    yield key, fact

    def _group_rates(self) -> dict[tuple[str, int, str], list[tuple[Any, Fact]]]:
        """Rates that are written alike, by column."""
        columns: dict[tuple[str, int, str], list[tuple[Any, Fact]]] = {}
        for key, fact in self._facts():
            if not is_count(fact.reading.metric):
                columns.setdefault(fact.column, []).append((key, fact))
        return columns

    # --- numbers of people

    def _find_base(self) -> int:
        """The multiples that all numbers of people were rounded to; 0 if they were not."""
        numbers = [
            fact.cell.low
            for _, fact in self._facts()
            if is_count(fact.reading.metric)
            and fact.cell.exact
            and fact.cell.low
            and not (fact.cell.unit or fact.percent)
        ]
        if len(numbers) < _ROUNDED:
            return 0
        if all(number % 6 == 3 for number in numbers):
            return 6
        return next((b for b in (100, 10, 5) if all(one % b == 0 for one in numbers)), 0)

    def find_count(self, key: Any, metric: str) -> Cell | None:
        """What all cells say of a number of people; None if none does."""
        facts = self.cells[key].get(metric, [])
        if metric == "people" and facts and self._is_share(facts[0]):
            return self._count_share(key, facts[0])
        if share := next((fact for fact in facts if fact.cell.unit), None):
            raise InputError(
                f"{share.where}: {share.cell.text!r} is a share, and no number of people: say of "
                "what, as --map HEADING=selection-rate"
            )
        counts = [fact.cell.as_count() for fact in facts if not fact.cell.hidden]
        if self.base:
            half = self.base // 2
            counts = [
                c._replace(low=max(c.low - half, 0.0), high=c.high + half) if c.exact else c
                for c in counts
            ]
        if not counts:
            return None
        low, high = max(c.low for c in counts), min(c.high for c in counts)
        if low > high:
            raise InputError(
                f"{facts[0].where} and {facts[-1].where} tell different numbers of the same "
                f"people: {facts[0].cell.text!r} and {facts[-1].cell.text!r}; name in a column, or "
                "title, what tells them apart"
            )
        for fact, count in zip(facts, counts, strict=False):
            if count.exact and (count.low != round(count.low) or count.low < 0):
                raise InputError(
                    f"{fact.where}: {fact.cell.text!r} is no whole number of people (if it is a "
                    "rate, --map HEADING=selection-rate says so)"
                )
        return Cell(counts[0].text, low, high)

    @staticmethod
    def _is_share(fact: Fact) -> bool:
        """Whether numbers of people are written in percent: a group's share of its slice."""
        return bool(fact.cell.unit or fact.percent) and fact.cell.exact

    def _count_share(self, key: Any, own: Fact) -> Cell:
        """The numbers of people that are a share of a slice, whose groups add up to 100 %."""
        shares = [
            fact.cell
            for other, by_metric in self.cells.items() if other[0] == key[0]
            for fact in by_metric.get("people", []) if self._is_share(fact)
        ]  # fmt: skip
        half = 0.5 * 10.0 ** -max(cell.decimals for cell in shares)
        whole = abs(sum(cell.low for cell in shares) - 100) <= len(shares) * half + WHOLE
        if self.people is None or len(shares) < 2 or not whole:
            raise InputError(
                f"{own.where}: {own.cell.text!r} is a share, and no number of people, unless "
                "shares of groups add up to 100 % of each slice: say of what, as --map "
                "HEADING=selection-rate"
            )
        n = self._count_slice(key[0])
        low, high = ((own.cell.low + off) / 100 * n for off in (-half, half))
        low, high = max(np.ceil(low - WHOLE), 0.0), min(np.floor(high + WHOLE), float(n))
        if low > high or (n == 0 and own.cell.low):
            raise InputError(
                f"{own.where}: {own.cell.text!r} of {n:,} people, who are there, is no whole "
                "number of percent: the table is about other people, columns or bins"
            )
        return Cell(own.cell.text, low, high)

    def _count_slice(self, values: tuple[str, ...]) -> int:
        """The number of people whom a slice names."""
        assert self.people is not None
        inside = np.ones(len(self.people), np.bool_)
        for place, value in enumerate(values):
            if value:
                texts = sorted({key[0][place] for key in self.cells} - {""})
                column = SliceColumn.parse(self.slices[place], texts)
                inside &= column.code(self.people) == column.values.index(value)
        return int(inside.sum())

    def find_size(self, key: Any, metric: str) -> int:
        """The number of people that a rate is taken over, if it is told exactly; else -1."""
        own = [fact.size for fact in self.cells[key].get(metric, []) if fact.size is not None]
        told = next((size for size in own if size.exact), None)
        if told is None and metric in _OVERALL:
            told = self.find_count(key, "people")
        elif told is None and metric in TAKEN_OVER:
            told = self.find_count(key, TAKEN_OVER[metric])
        if told is None or not told.exact or self.base:
            return -1
        if told.low != round(told.low) or told.low < 0:
            raise InputError(f"{told.text!r} beside the {metric} is no whole number of people")
        return int(told.low)

    # --- rates

    def _read_rates(self, own: list[tuple[Any, Fact]]) -> tuple[float, float]:
        """The unit of a column of rates, and how far its numbers are from the truth."""
        facts = [fact for _, fact in own if not fact.cell.hidden]
        if not facts:
            return 1.0, 0.0
        if is_of_numbers(facts[0].reading.metric):
            return self._read_numbers(facts)
        units = [
            unit for unit in ((0.01, 1.0) if self.unit is None else
                              (0.01,) if self.unit == "percent" else (1.0,))
            if all(0 <= f.cell.low * unit <= 1 + WHOLE or f.cell.unit for f in facts)
        ]  # fmt: skip
        told = {f.cell.unit for f in facts if f.cell.low != 0 or f.cell.unit}
        first = facts[0]
        if told - {None}:
            if None in told and len(told) > 1:
                bare = next(f for f in facts if f.cell.unit is None and f.cell.low != 0)
                other = next(f for f in facts if f.cell.unit)
                raise InputError(
                    f"{bare.where}: {bare.cell.text!r} has no sign of percent, and "
                    f"{other.cell.text!r} has: write all alike"
                )
            units = [next(iter(told - {None})) or 1.0]
        if not units:
            wrong = max(facts, key=lambda f: f.cell.low)
            raise InputError(f"{wrong.where}: {wrong.cell.text!r} is no rate")
        fits = {unit: self._find_rounding(own, unit) for unit in units}
        possible = {unit: half for unit, half in fits.items() if half is not None}
        if not possible:
            self._refuse_sizes(own, units[-1])
        if len(possible) > 1:
            percent = any(f.percent for f in facts)
            values = {f.cell.low for f in facts}
            if percent and values - {0.0}:
                self._ask_unit(first)
            possible = {1.0: possible[1.0]}
        ((unit, half),) = possible.items()
        assert half is not None
        self.units.add("percent" if unit == 0.01 else "shares" if unit == 1 else "per thousand")
        return unit, half

    @staticmethod
    def _ask_unit(first: Fact) -> NoReturn:
        raise InputError(
            f"{first.where}: {first.cell.text!r} below {first.reading.metric} in percent may be "
            f"{first.cell.low:g} percent, or a share of {first.cell.low:g}: say which, "
            "unit='percent' or unit='share' (--unit)"
        )

    def _read_numbers(self, facts: list[Fact]) -> tuple[float, float]:
        """The unit of a column of means or sums, and how far its numbers are from the truth."""
        exact = [fact for fact in facts if fact.cell.exact]
        decimals = [fact.cell.decimals for fact in exact]
        significant = {len(re.sub(r"\D", "", f.cell.text).lstrip("0")) for f in exact}
        digits = (min if len(significant) == 1 else max)(decimals, default=0)
        other = next((f for f in facts if f.cell.unit != facts[0].cell.unit), None)
        if other is not None:
            raise InputError(
                f"{other.where}: {other.cell.text!r} and {facts[0].cell.text!r} are in different "
                "units: write all alike"
            )
        metric = facts[0].reading.metric
        shares = is_comparison(metric) or is_weighted(metric)
        points = shares and any(f.cell.high > _MOST_SHARE for f in facts)
        if shares and not points and not facts[0].cell.unit and any(f.percent for f in facts):
            if self.unit is None and any(f.cell.low for f in facts):
                self._ask_unit(facts[0])
            points = self.unit == "percent"
        step, unit = 10.0**-digits, facts[0].cell.unit or (0.01 if points else 1.0)
        if digits >= FULL or (self.decimals is not None and self.decimals >= FULL):
            return unit, 0.0
        while any(f.cell.low for f in exact) and all(f.cell.low % (10 * step) == 0 for f in exact):
            step *= 10  # perhaps rounded to thousands
        return unit, 0.5 * step * unit

    def _find_rounding(self, own: list[tuple[Any, Fact]], unit: float) -> float | None:
        """How far rates in a unit are from the truth; None if no whole numbers of people fit."""
        digits = max(fact.cell.decimals for _, fact in own if not fact.cell.hidden)
        half = 0.5 * unit * 10.0**-digits
        if self.decimals is not None:
            half = 0.0 if self.decimals >= FULL else 0.5 * 10.0**-self.decimals
        exact, fits, sized, spread = True, True, 0, False
        for key, fact in own:
            n = self.find_size(key, fact.reading.metric)
            if fact.cell.hidden or not fact.cell.exact or n <= 0:
                continue
            sized += 1
            people = fact.cell.low * unit * n
            off = abs(people - round(people))
            exact &= off <= WHOLE
            fits &= off <= half * n + WHOLE
            spread |= half * n > 0.5 + WHOLE
        if self.decimals is not None:
            return half if fits else None
        if digits >= FULL or (sized and exact and not spread):
            return 0.0 if exact else None
        return half if fits else None

    def _refuse_sizes(self, own: list[tuple[Any, Fact]], unit: float) -> None:
        """Refuse rates that are no whole numbers of people."""
        for key, fact in own:
            n = self.find_size(key, fact.reading.metric)
            people = fact.cell.low * unit * n
            if n > 0 and fact.cell.exact and abs(people - round(people)) > WHOLE:
                raise InputError(
                    f"{fact.where}: {fact.cell.text} of {n:,} is no whole number of people, even "
                    "if it is rounded to the digits that are written. Are there weights of people? "
                    f"Then --map HEADING='{fact.reading.metric} weighted by COLUMN' of the people. "
                    "Or say by `decimals` (--decimals) to how "
                    "many decimals rates were rounded"
                )
        raise InputError(f"{own[0][1].where}: rates do not agree with the numbers of people")

    def find_rate(self, key: Any, metric: str) -> _Rate | None:
        """What all cells say of a rate; None if it is suppressed."""
        least, most = (-np.inf, np.inf) if is_of_numbers(metric) else (0.0, 1.0)
        low, high = least, most
        told = False
        facts = self.cells[key].get(metric, [])
        for fact in facts:
            if fact.cell.hidden:
                continue
            told = True
            unit, half = self.rates[fact.column]
            ends = fact.cell.low * unit, min(fact.cell.high * unit, most)
            if not fact.cell.exact:
                half = 0.0
            if fact.reading.from_one:
                ends = 1 - ends[1], 1 - ends[0]
            low, high = max(low, ends[0] - half), min(high, ends[1] + half)
            if fact.cell.exact and half == 0 and len(facts) == 1:
                return _Rate(ends[0], 0.0)
        if (low, high) == (1.0, 0.0):  # of nobody, toolkits print 0 for a rate and for 1 less it
            return None
        if low > high + WHOLE:
            texts = " and ".join(fact.cell.text for fact in facts)
            raise InputError(f"{facts[0].where}: tells the same rate differently: {texts}")
        return _Rate((low + high) / 2, max(high - low, 0) / 2) if told else None

    def refuse_shares(self) -> None:
        """Refuse rates that add up to 1 in each slice: they may be groups' shares of all."""
        slices: dict[Any, list[tuple[_Rate, Fact]]] = {}
        for key, by_metric in self.cells.items():
            if facts := by_metric.get("selection-rate"):
                if "people" in by_metric or self.find_size(key, "selection-rate") >= 0:
                    return
                if (rate := self.find_rate(key, "selection-rate")) is not None:
                    slices.setdefault(key[0], []).append((rate, facts[0]))
        if slices and all(
            len(own) > 1
            and abs(sum(rate.value for rate, _ in own) - 1)
            <= (len(own) - 1) * max(rate.within for rate, _ in own) + WHOLE
            for own in slices.values()
        ):
            fact = next(iter(slices.values()))[0][1]
            raise InputError(
                f"{fact.where}: these rates add up to 1, and may be selection rates, or each "
                "group's share of all selected people: say which, --map HEADING=selection-rate or "
                "--map HEADING=-"
            )

    # --- rows

    def to_frame(self) -> DataFrame:
        """The long form."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for key, by_metric in self.cells.items():
            slices = dict(zip(self.slices, key[0], strict=True))
            for row in self._make_rows(key, by_metric):
                rows.append({**slices, "group": key[1], **row})
            for own in by_metric.values():
                for cell in (fact.cell for fact in own):
                    if cell.text and (cell.hidden or not cell.exact) and not cell.parts:
                        self.words.setdefault(cell.text, "suppressed" if cell.hidden else "a range")
        columns = [*self.slices, "group", "metric", "value", "n", "within"]
        return pd.DataFrame(rows, columns=columns, dtype=object)

    def _make_rows(self, key: Any, by_metric: Mapping[str, list[Fact]]) -> Any:
        """Rows of one group in one slice."""
        people, selected = self.find_count(key, "people"), self.find_count(key, "selected")
        used = False
        metrics = list(by_metric)
        if self.base and selected is not None and people is not None:
            metrics = [m for m in metrics if m != "selection-rate"]  # of the rounded numbers
        if people is not None and people.exact and selected is not None and selected.exact:
            n = int(people.low)
            rate = self.find_rate(key, "selection-rate") if "selection-rate" in by_metric else None
            share = selected.low / n if n else np.nan
            if selected.low > n or (rate and abs(share - rate.value) > rate.within + WHOLE):
                fact = by_metric["selected"][0]
                told = f", and the rate {by_metric['selection-rate'][0].cell.text}" if rate else ""
                raise InputError(
                    f"{fact.where}: {selected.low:g} of {n:,} people{told} contradict each other"
                )
            yield {"metric": "selection-rate", "value": share, "n": n, "within": 0.0}
            used, metrics = True, [m for m in metrics if m not in ("selected", "selection-rate")]
        for metric in metrics:
            if self.base and is_of_counts(metric):
                self.words[metric] = "not used, as of rounded numbers"
            if metric == "people" or metric in self.words:
                continue
            if not is_count(metric):
                nobody = people is not None and people.high == 0
                n = 0 if nobody else self.find_size(key, metric)
                rate = self.find_rate(key, metric)
                if n == 0:
                    rate = None
                used |= metric in _OVERALL and n >= 0
                yield {
                    "metric": metric, "value": np.nan if rate is None else rate.value,
                    "n": n if n >= 0 else None, "within": 0.0 if rate is None else rate.within,
                }  # fmt: skip
                sizes = [fact.size for fact in by_metric[metric] if fact.size is not None]
                if n < 0 and metric in _OVERALL and sizes and "people" not in by_metric:
                    size = sizes[0].as_count()
                    if not size.hidden:
                        yield _make_count("people", size)
            else:
                yield _make_count(metric, self.find_count(key, metric))
        if "people" in by_metric and not used:
            yield _make_count("people", people)

    def describe(self, report: ReportRows, others: int) -> str:
        """What was read, in a line."""
        names = report.metric.tolist()
        for one in report.statistics:
            within = np.format_float_positional(one.within, 1, fractional=False, trim="-")
            names.append(f"{one.metric} \u00b1{within}" if one.within else one.metric)
        metrics = dict.fromkeys(name.replace("-", " ") for name in names)
        there = len({*report.group} | {report.groups.index(one.group) for one in report.statistics
                                       if one.group})  # fmt: skip
        cuts = [column.name for column in report.columns]
        slices = len({key[0] for key in self.cells if any(key[0])})
        parts = [
            f"{', '.join(metrics)} of {there} groups of {' x '.join(self.secret)}"
            + (f" in {count_noun(slices, 'slice')} by {', '.join(cuts)}" if slices else "")
        ]
        parts += sorted(self.units)
        if (near := report.within[report.is_rate & ~report.suppressed]).any():
            parts.append(f"rounded, by at most {near.max():.1g}")
        if self.base:
            what = "midpoints of 6" if self.base == 6 else f"multiples of {self.base}"
            parts.append(f"numbers of people rounded to {what}")
        for word, meaning in list(self.words.items())[:_LISTED]:
            parts.append(f"`{word}` = {meaning}")
        if others:
            parts.append(
                f"{count_noun(others, 'number')} of everybody or other groups tell nothing"
            )
        return escape_unprintable("; ".join(parts))


def _make_count(metric: str, cell: Cell | None) -> dict[str, Any]:
    """The row of a number of people: exact, a range, or suppressed."""
    if cell is None or cell.hidden:
        return {"metric": metric, "value": np.nan, "n": None, "within": 0.0}
    high = min(cell.high, NO_MORE)
    low = np.ceil(cell.low)
    return {"metric": metric, "value": (low + high) / 2, "n": None, "within": (high - low) / 2}
