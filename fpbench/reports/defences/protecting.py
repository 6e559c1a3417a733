"""Defences of a report that exists: fewer tables, larger cells, suppression, rounding, noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fpbench.base.arguments import read_share, show_value, to_generator
from fpbench.base.errors import InputError, check_choice
from fpbench.claims.set_counts import Floats
from fpbench.components.guarantee import check_epsilon
from fpbench.components.mechanism import Mechanism
from fpbench.components.spec import resolve_component
from fpbench.reports.defences.complementary import find_complements
from fpbench.reports.defences.counts_with_noise import NoisyCounts
from fpbench.reports.defences.fitted_counts import add_fitted_noise
from fpbench.reports.defences.optimal_suppression import find_optimal_complements
from fpbench.reports.defences.rounded_counts import round_rows
from fpbench.reports.exact_blocks import ExactBlocks, stack_blocks, tabulate
from fpbench.reports.reading.metric_names import parse_report_metric
from fpbench.reports.rounding import ROUNDINGS, Rounding
from fpbench.reports.rows import ReportedPeople, ReportRows
from fpbench.reports.slices import Codes, SliceColumn, format_edge, number_slices

_BY_GROUPS = ("min_group", "complementary")
"""Defences that suppress cells by their true counts."""


class Defences(NamedTuple):
    """The parameters of `FairnessReport.protect`."""

    by: Iterable[str] | None
    order: int | None
    tables: Iterable[Iterable[str]] | None
    metrics: Sequence[str] | None
    bins: Mapping[str, int | Sequence[float]] | None
    min_cell: int
    min_group: int
    complementary: bool
    protect_hidden: float | str | None
    sizes: bool
    decimals: int | None
    round_to: int | None
    rounding: str
    cell_keys: Mapping[str, float] | None
    noise: Mechanism | str | Mapping[str, Any] | None
    epsilon: float | None
    delta: float | None
    consistent: bool
    earlier: Sequence[ReportRows]
    rng: np.random.Generator | int | None


def protect_rows(report: ReportRows, defences: Defences) -> ReportRows:
    """The report with all defences; see `FairnessReport.protect`."""
    report = replace(report, statistics=())
    _check_numbers(report, defences)
    spread = defences.complementary, defences.round_to, defences.cell_keys, defences.noise
    if any(spread) and any(column.is_threshold for column in report.columns):
        raise InputError(
            "a report with thresholds of scores, whose people overlap, is protected by larger "
            "cells or groups, or fewer columns only"
        )
    rows = _keep_tables(report, defences)
    generator = to_generator("rng", defences.rng)
    for name in defences.bins or ():
        check_choice("column of bins", str(name), [column.name for column in report.columns])
    left = {column.name for column in rows.columns}
    if bins := {str(name): b for name, b in (defences.bins or {}).items() if str(name) in left}:
        rows = merge_bins(ExactBlocks.of(rows, "merging bins"), bins).to_rows()
    if defences.complementary:
        rows = _suppress_with_complements(rows, report.people, defences)
    elif defences.min_cell:
        rows = _drop_small_cells(rows, defences.min_cell)
    if defences.min_group and not defences.complementary:
        rows = _suppress_small_groups(rows, defences.min_group)
    if (rounding := _find_rounding(defences)) is not None:
        rows = round_rows(rows, rounding, report.people, generator)
    if defences.noise is not None:
        rows = _add_noise(rows, report.people, defences, generator)
    if defences.decimals is not None:
        rows = round_rates(rows, defences.decimals)
    if not defences.sizes:
        rows = replace(rows, n=np.where(rows.n > 0, -1, rows.n))
    record = _record(rows.defences, defences)
    if not defences.sizes and (report.suppressed | (report.n >= 0)).all():
        record["sizes"] = False
    done = replace(_drop_idle_columns(rows), defences=record, people=report.people)
    return done.state(report.stated if defences.noise is None else rows.guarantee)


def _find_rounding(defences: Defences) -> Rounding | None:
    """How numbers are rounded or perturbed, if they are; InputError if that is out of range."""
    base, way = defences.round_to, defences.rounding
    check_choice("rounding", way, ROUNDINGS)
    if base is None and way != ROUNDINGS[0]:
        raise InputError(f"rounding {way!r} needs its multiple: round_to")
    if base is not None and defences.cell_keys is not None:
        raise InputError("round_to must not be together with cell_keys")
    if defences.cell_keys is None:
        return None if base is None else Rounding(way, int(base))
    known = {"bound": 5, "variance": 3.0}
    for name in defences.cell_keys:
        check_choice("parameter of cell_keys", str(name), list(known))
    own: Any = known | dict(defences.cell_keys)
    return Rounding.by_keys(own["bound"], own["variance"])


def round_rates(rows: ReportRows, decimals: int) -> ReportRows:
    """The rows, with rates rounded to `decimals`, which adds to their distance from the truth."""
    half = np.where(rows.is_rate, 0.5 * 10.0**-decimals, 0.0)
    value = np.where(rows.is_rate, np.round(rows.value, decimals), rows.value)
    return replace(rows, value=value, within=rows.within + half)


def _check_numbers(report: ReportRows, defences: Defences) -> None:
    """Raise InputError for parameters that are out of range, or exclude each other."""
    done = report.defences
    for what in ("order", "min_cell", "min_group"):
        number = getattr(defences, what)
        if number is not None and (not isinstance(number, int | np.integer) or number < 0):
            raise InputError(
                f"{what} must be a whole number of at least 0, not {show_value(number)}"
            )
    for what in ("min_cell", "min_group"):
        if 0 < getattr(defences, what) < done.get(what, 0):
            raise InputError(
                f"{what}: the report was made with {done[what]}, and lacks what was left out: "
                "protect the exact report"
            )
    if defences.decimals is not None:
        _check_decimals(report, defences.decimals)
    base = defences.round_to
    if base is not None and (not isinstance(base, int | np.integer) or base < 2):
        raise InputError(f"round_to must be a whole number of at least 2, not {show_value(base)}")
    if defences.protect_hidden is not None and not defences.complementary:
        raise InputError("protect_hidden needs complementary suppression: complementary = True")
    _find_rounding(defences)
    _check_noise(report, defences)
    others = report.view > 0
    for what in ("complementary", "round_to", "cell_keys", "noise"):
        if others.any() and getattr(defences, what):
            raise InputError(
                f"{what}: is for numbers by prediction, not for "
                f"{' and '.join(dict.fromkeys(report.metric[others].tolist()))}; leave those out "
                "by `metrics`"
            )
    noisy = defences.noise is not None or report.noisy.any()
    if noisy and not defences.sizes and report.is_rate.any():
        raise InputError(
            "sizes: what noisy rates without sizes give away cannot be measured; publish the "
            "sizes, which have noise, too"
        )


def _check_decimals(report: ReportRows, decimals: int) -> None:
    if not isinstance(decimals, int | np.integer) or not 0 <= decimals <= 15:
        raise InputError(
            f"decimals must be a whole number from 0 to 15, not {show_value(decimals)}"
        )
    if not report.is_rate.any():
        raise InputError("decimals round rates, and the report has none: leave decimals out")
    if decimals > report.defences.get("decimals", 15):
        raise InputError(
            f"decimals: the report's rates were rounded to {report.defences['decimals']} already"
        )


def _add_noise(
    rows: ReportRows,
    people: ReportedPeople | None,
    defences: Defences,
    rng: np.random.Generator,
) -> ReportRows:
    """Rows of numbers with noise; fitted to each other and what is public, unless not asked."""
    check_epsilon(defences.epsilon)
    assert defences.noise is not None and defences.epsilon is not None
    own = {} if defences.delta is None else {"delta": defences.delta}
    mechanism = resolve_component("mechanism", defences.noise, **own)
    assert isinstance(mechanism, Mechanism)
    if not defences.consistent:
        return NoisyCounts.of(rows, mechanism, defences.epsilon, rng).to_rows()
    if people is None:
        raise InputError(
            "noise needs to know who is in which slice, to fit numbers to each other: give the "
            "people by report.with_people(X, predictions, labels), or leave the numbers "
            "contradictory by consistent = False"
        )
    return add_fitted_noise(rows, people, mechanism, defences.epsilon, rng, defences.earlier)


def _check_noise(report: ReportRows, defences: Defences) -> None:
    if len(defences.earlier) and (defences.noise is None or not defences.consistent):
        raise InputError("earlier reports are for numbers that are fitted: give noise, consistent")
    if defences.noise is None:
        if defences.epsilon is not None or defences.delta is not None:
            raise InputError('epsilon and delta need noise: noise = "discrete-laplace", ...')
    elif _find_rounding(defences) is not None:
        raise InputError("round_to and cell_keys must not be together with noise")
    elif (
        any(by.get(what) for by in (defences._asdict(), report.defences) for what in _BY_GROUPS)
        or report.suppressed.any()
    ):
        raise InputError(
            "min_group and complementary suppress cells by their true counts, which noise hides"
        )


def _keep_tables(report: ReportRows, defences: Defences) -> ReportRows:
    """The rows of tables and metrics that are asked for; columns that cut no slice are dropped."""
    names = [column.name for column in report.columns]
    used, kept = report.cells >= 0, np.ones(len(report), np.bool_)
    if defences.by is not None:
        wanted = _find_columns(defences.by, names, "by")
        kept &= ~np.delete(used, wanted, axis=1).any(axis=1)
    if defences.order is not None:
        most = int(used.sum(axis=1).max(initial=0))
        if defences.order > most and len(report):
            raise InputError(
                f"order: slices of the report cross at most {most} columns, not {defences.order}"
            )
        kept &= used.sum(axis=1) <= defences.order
    if defences.tables is not None:
        crossed = np.zeros(len(report), np.bool_)
        for table in defences.tables:
            wanted = _find_columns(table, names, "tables")
            here = (used == np.isin(np.arange(len(names)), wanted)).all(axis=1)
            if not here.any():
                raise InputError(
                    f"tables: the report has no slices by {' and '.join(map(str, table)) or 'none'}"
                )
            crossed |= here
        kept &= crossed
    if defences.metrics is not None:
        names = parse_metrics(defences.metrics)
        there = np.unique(report.metric).tolist()
        for name in names:
            check_choice("metric of the report", name, there)
        kept &= np.isin(report.metric, names)
    return report if kept.all() else _drop_idle_columns(report.take(kept))


def _drop_idle_columns(rows: ReportRows) -> ReportRows:
    """The same without columns that cut no slice."""
    left = np.flatnonzero((rows.cells >= 0).any(axis=0))
    return replace(rows, columns=tuple(rows.columns[c] for c in left), cells=rows.cells[:, left])


def parse_metrics(metrics: Sequence[str]) -> list[str]:
    """The metrics of these names; InputError if they are no list of names."""
    if isinstance(metrics, str) or not len(metrics):
        raise InputError(f"metrics must be a list of names, not {show_value(metrics)}")
    return list(dict.fromkeys(map(parse_report_metric, metrics)))


def _find_columns(columns: Iterable[str], names: Sequence[str], what: str) -> list[int]:
    wanted = [columns] if isinstance(columns, str) else list(map(str, columns))
    for name in wanted:
        check_choice(f"column of {what}", name, names)
    return [names.index(name) for name in wanted]


def _drop_small_cells(rows: ReportRows, least: int) -> ReportRows:
    """The rows of blocks that are taken over at least this many people."""
    vague = rows.noisy | (rows.rounding is not None)
    unknown = (rows.n < 0) & ~rows.suppressed | rows.is_rate & vague
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise InputError(
            f"row {row}, {rows.metric[row]} for {rows.describe_slice(row)}: min_cell needs the "
            "exact n; protect the exact report"
        )
    block, places = rows.blocks
    first = places.max(axis=1)
    total = np.bincount(block, weights=rows.n, minlength=len(places))
    total = np.where(rows.is_rate[first], total, rows.n[first])
    # What is suppressed was in cells of the size that had been asked for before.
    known = np.bincount(block, weights=rows.suppressed, minlength=len(places)) == 0
    return rows.take(((total >= least) & known)[block])


def _suppress_small_groups(rows: ReportRows, least: int) -> ReportRows:
    """The rows, without the values of blocks that have a group of fewer people."""
    blocks = ExactBlocks.of(rows, "min_group")
    small = ~blocks.hidden & (blocks.base.min(axis=1) < least)
    return replace(blocks, below=np.where(small, least, blocks.below)).to_rows()


def _suppress_with_complements(
    rows: ReportRows, people: ReportedPeople | None, defences: Defences
) -> ReportRows:
    """The rows, without the values of small cells, cells of small groups, and complements.

    The report does not say which of these a suppressed cell is.
    """
    min_cell, min_group = defences.min_cell, defences.min_group
    blocks = ExactBlocks.of(rows, "complementary")
    small = ~blocks.hidden & (blocks.base.sum(axis=1) < min_cell)
    few = ~blocks.hidden & (blocks.base.min(axis=1) < min_group)
    before = max(rows.defences.get(what, 0) for what in ("min_cell", "min_group"))
    if not (min_cell or min_group or before or blocks.hidden.any()):
        raise InputError("complementary needs cells to suppress: give min_cell or min_group")
    if people is None:
        raise InputError(
            "complementary needs to know who is in which slice: give the people by "
            "report.with_people(X, predictions, labels)"
        )
    codes = people.code(rows.columns)
    every, place = _find_all_blocks(blocks, codes)
    suppressed = np.ones(len(every), np.bool_)  # what earlier defences left out, too
    suppressed[place[(place >= 0) & ~blocks.hidden & ~small & ~few]] = False
    least = max(min_cell, rows.defences.get("min_cell", 0))
    more = find_complements(every, suppressed, least, codes)
    record = dict(rows.defences)
    if defences.protect_hidden is not None:
        if people.groups is None:
            raise InputError(
                "protect_hidden needs to know everybody's group: give the parameter to "
                "from_predictions, or the people by "
                "report.with_people(X, predictions, labels, groups)"
            )
        share = read_share("protect_hidden", defences.protect_hidden, 0.1)
        more, optimal = find_optimal_complements(
            every, suppressed, more, least, codes, people.groups, share
        )
        record["optimal"] = optimal
    hidden = blocks.hidden | few | np.append(more, False)[place]
    done = replace(blocks, below=np.where(hidden, 0, -1)).take(~small).to_rows()
    return replace(done, defences=record)


def _find_all_blocks(blocks: ExactBlocks, people: Codes) -> tuple[ExactBlocks, Codes]:
    """All blocks of the same tables and metrics that have people, and the place of each block.

    All people count as one group. The place of a block without people is -1.

    Parameters
    ----------
    blocks
        Some blocks of a report.
    people
        (n, columns + 2) codes of the columns, label and prediction of each.
    """
    import pandas as pd

    group: Any = pd.Categorical(["all"] * len(people))
    names, metric = np.unique(blocks.metric, return_inverse=True)
    crossed, table = np.unique(blocks.cells >= 0, axis=0, return_inverse=True)
    parts = [
        tabulate(
            blocks.columns, list(people[:, :-2].T), group, people[:, -1], people[:, -2],
            tables=[np.flatnonzero(columns).tolist()],
            metrics=names[np.unique(metric.ravel()[table.ravel() == t])].tolist(),
        )
        for t, columns in enumerate(crossed)
    ]  # fmt: skip
    every = stack_blocks(parts[0] if parts else blocks, parts)
    keys = [np.column_stack([b.cells, np.searchsorted(names, b.metric)]) for b in (every, blocks)]
    _, number = number_slices(np.concatenate(keys))
    place = np.full(int(number.max(initial=-1)) + 1, -1)
    place[number[: len(every)]] = np.arange(len(every))
    place = place[number[len(every) :]]
    for counts, all_ in ((blocks.counted, every.counted), (blocks.base, every.base)):
        there = np.append(all_.sum(axis=1), 0)[place]
        if ((counts.sum(axis=1) != there) & ~blocks.hidden).any():
            raise InputError(
                "complementary: the report is not about its people; they must stay as they were "
                "when it was made of them"
            )
    return every, place


def _record(done: Mapping[str, Any], defences: Defences) -> dict[str, Any]:
    """The defences applied, by parameter; a later one replaces an earlier one."""
    record = dict(done)
    for what in ("min_cell", "min_group", "decimals", "round_to"):
        if getattr(defences, what):
            record[what] = int(getattr(defences, what))
    if defences.round_to is not None and defences.rounding != ROUNDINGS[0]:
        record["rounding"] = defences.rounding
    if defences.cell_keys is not None and (by_keys := _find_rounding(defences)) is not None:
        record["cell_keys"] = {"bound": by_keys.base, "variance": by_keys.variance}
    if defences.decimals == 0:
        record["decimals"] = 0
    if defences.noise is not None:
        record["consistent"] = defences.consistent
    if defences.complementary:
        record["complementary"] = True
    if defences.protect_hidden is not None:
        record["protect_hidden"] = read_share("protect_hidden", defences.protect_hidden, 0.1)
    return record


def merge_bins(blocks: ExactBlocks, bins: Mapping[str, int | Sequence[float]]) -> ExactBlocks:
    """The same slices by fewer bins; those with a part that is not published are left out."""
    names = [column.name for column in blocks.columns]
    for name, fewer in bins.items():
        c = names.index(name)
        edges = _choose_edges(blocks, c, fewer)
        if edges != blocks.columns[c].edges:
            blocks = _merge(blocks, c, SliceColumn.with_edges(name, edges))
    return blocks


def _choose_edges(blocks: ExactBlocks, c: int, fewer: int | Sequence[float]) -> tuple[float, ...]:
    """The edges of a column that stay."""
    column = blocks.columns[c]
    if not column.edges:
        raise InputError(f"bins: column {column.name!r} of the report has no bins of numbers")
    if not isinstance(fewer, int | np.integer):
        wanted = tuple(float(edge) for edge in fewer)
        if not wanted or any(edge not in column.edges for edge in wanted):
            texts = ", ".join(map(format_edge, column.edges))
            raise InputError(f"bins of {column.name!r} can only keep edges of {texts}")
        return tuple(sorted(set(wanted)))
    if not 2 <= fewer <= len(column.values):
        raise InputError(
            f"bins of {column.name!r}: the report has {len(column.values)}, of which 2 or more "
            f"can be made, not {show_value(fewer)}; to drop a column leave it out of `by`"
        )
    # About equally many people in each bin, as far as the slices by this column alone tell.
    alone = (blocks.cells >= 0).sum(axis=1) == (blocks.cells[:, c] >= 0)
    own = np.flatnonzero(alone & (blocks.cells[:, c] >= 0) & ~blocks.hidden)
    weights: Floats = np.zeros(len(column.values))
    np.maximum.at(weights, blocks.cells[own, c], blocks.base[own].sum(axis=1))
    if not weights.any():
        weights[:] = 1
    before = np.cumsum(weights)[:-1] / weights.sum()
    chosen: list[int] = []
    for place in range(1, int(fewer)):  # among the edges that leave enough for the others
        low = chosen[-1] + 1 if chosen else 0
        high = len(before) - (int(fewer) - 1 - place)
        chosen.append(low + int(np.abs(before[low:high] - place / int(fewer)).argmin()))
    return tuple(column.edges[edge] for edge in chosen)


def _merge(blocks: ExactBlocks, c: int, column: SliceColumn) -> ExactBlocks:
    old, new = blocks.columns[c], np.asarray(column.edges)
    ends = np.concatenate([[-np.inf], np.asarray(old.edges)])
    into = np.searchsorted(new, ends, side="right")
    parts = np.bincount(into, minlength=len(column.values))
    columns = (*blocks.columns[:c], column, *blocks.columns[c + 1 :])
    cut = blocks.cells[:, c] >= 0
    rest = replace(blocks.take(~cut), columns=columns)
    fine = blocks.take(cut & ~blocks.hidden)
    _, metric = np.unique(blocks.metric, return_inverse=True)
    cells = blocks.cells.copy()
    cells[:, c] = -1
    slices, parent = number_slices(np.column_stack([cells, metric.ravel()]))
    # If the published parts have all people of the slice, missing parts are empty.
    people, here = blocks.base.sum(axis=1), np.flatnonzero(cut & ~blocks.hidden)
    shared = np.bincount(parent[here], weights=people[here], minlength=len(slices))
    whole = np.zeros(len(slices), np.bool_)
    outer = ~cut & ~blocks.hidden
    whole[parent[outer]] = shared[parent[outer]] == people[outer]
    coarse = fine.cells.copy()
    coarse[:, c] = into[coarse[:, c]]
    first, which = number_slices(np.column_stack([coarse, metric.ravel()[here]]))
    sums = []
    for numbers in (fine.counted, fine.base):
        total = np.zeros((len(first), numbers.shape[1]), np.int64)
        np.add.at(total, which, numbers)
        sums.append(total)
    there = np.bincount(which, minlength=len(first))
    complete = (there == parts[coarse[first, c]]) | whole[parent[here]][first]
    merged = replace(
        fine.take(first), columns=columns, cells=coarse[first], counted=sums[0], base=sums[1]
    ).take(complete)
    return stack_blocks(rest, [rest, merged])
