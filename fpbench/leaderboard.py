"""The ranking: a pure function of stored rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.errors import InputError, nearest
from fpbench.kinds import ATTACK, AUDIT, KINDS, Status
from fpbench.scores import MEASURES

if TYPE_CHECKING:
    from pandas import DataFrame

RESAMPLES = 2_000
"""Bootstrap resamples behind an interval."""

_OF_AUDITS = ("error", "independence_gap", "risk_gap_train")
"""What audits are ranked by where the measure to rank by is one of attacks."""
_LEAST_FIRST = frozenset({
    "error", "independence_gap", "separation_gap", "sufficiency_gap", "interval_width",
    "invalid_ratio", "risk_gap_train", "risk_gap_test", "risk_train", "risk_test", "loss_train",
    "loss_test", "sensitivity", "sensitivity_squared", "flip_probability",
})  # fmt: skip
"""Measures of which less is better."""


@dataclass(frozen=True)
class Interval:
    """A mean over seeds, and how sure it is."""

    mean: float
    deviation: float | None
    """Standard deviation over seeds (n - 1); None for one seed."""
    low: float | None
    """Lower end of the 95 % percentile bootstrap interval of the mean; None for one seed."""
    high: float | None
    count: int
    """Seeds with a value."""


@dataclass(frozen=True)
class Line:
    """One combination of components, over all seeds."""

    rank: int | None
    """1 is best; None without a value to rank by."""
    labels: Mapping[str, str]
    measures: Mapping[str, Interval]
    done: int
    failed: int
    reasons: tuple[str, ...]
    """Why cells failed."""
    warnings: tuple[str, ...] = ()
    """What rows say in measures that are named ..._warning."""


@dataclass(frozen=True)
class Leaderboard:
    """Combinations ranked by a measure, best first; skipped cells are left out."""

    title: str
    rank_by: str
    kinds: tuple[str, ...]
    """The kinds whose components differ or matter: the columns of labels."""
    lines: tuple[Line, ...]

    def frame(self) -> DataFrame:
        """One row a line: rank, labels, and mean, sd, low and high of every measure."""
        import pandas as pd

        rows = []
        for line in self.lines:
            row: dict[str, Any] = {"rank": line.rank, **line.labels, "done": line.done}
            row["failed"] = line.failed
            for name, value in line.measures.items():
                row[name] = value.mean
                row[f"{name}_sd"], row[f"{name}_n"] = value.deviation, value.count
                row[f"{name}_low"], row[f"{name}_high"] = value.low, value.high
            rows.append(row)
        return pd.DataFrame(rows)


def rank(rows: Iterable[Mapping[str, Any]], rank_by: str, title: str = "") -> list[Leaderboard]:
    """Leaderboards of the attacks and of the audits among rows, where there are any.

    Parameters
    ----------
    rows
        Rows as `Store.rows` gives them.
    rank_by
        The measure to rank by: greatest first, but for errors and gaps. Where it is one of attacks,
        audits are ranked by `error`, `independence_gap` or `risk_gap_train`; those without any of
        them are ranked by nothing and stay in the order of the matrix.
    title
        Title of the matrix.

    Raises
    ------
    InputError
        If no row has a number under that name.
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["status"] in (Status.DONE, Status.FAILED):
            groups.setdefault(tuple(row[kind] for kind in KINDS), []).append(row)
    boards = []
    for kinds, wanted in ((ATTACK, False), (AUDIT, True)):
        chosen = [g for g in groups.values() if bool(g[0]["auditor"]) is wanted]
        if chosen:
            used = tuple(k for k in kinds if any(g[0][k] for g in chosen))
            boards.append(_board(chosen, used, rank_by, title))
    measured = {name for board in boards for line in board.lines for name in line.measures}
    if measured and all(board.rank_by not in measured for board in boards):
        raise InputError(f"unknown measure to rank by: {rank_by!r}; {nearest(rank_by, measured)}")
    return boards


def _board(
    groups: list[list[Mapping[str, Any]]], kinds: tuple[str, ...], rank_by: str, title: str
) -> Leaderboard:
    lines = [_line(group, kinds) for group in groups]
    measured = {name for line in lines for name in line.measures}
    if rank_by in MEASURES and rank_by not in measured:  # which only attacks have
        rank_by = next((name for name in _OF_AUDITS if name in measured), rank_by)
    sign = 1 if rank_by in _LEAST_FIRST else -1
    lines.sort(key=lambda x: sign * x.measures[rank_by].mean if rank_by in x.measures else np.inf)
    ranked, place, previous = [], 0, None
    for number, line in enumerate(lines, 1):
        if rank_by not in line.measures:
            ranked.append(line)
            continue
        mean = line.measures[rank_by].mean
        if mean != previous:  # equal means share a rank
            place, previous = number, mean
        ranked.append(replace(line, rank=place))
    return Leaderboard(title, rank_by, kinds, tuple(ranked))


def _line(group: list[Mapping[str, Any]], kinds: tuple[str, ...]) -> Line:
    fixed = {"cell", "seed", "status", "reason", *KINDS}
    done = [row for row in group if row["status"] == Status.DONE]
    names = dict.fromkeys(name for row in done for name in row if name not in fixed)
    measures = {}
    for name in names:
        values = [row.get(name) for row in done]
        numbers = [float(v) for v in values if isinstance(v, (int, float)) and np.isfinite(v)]
        if numbers:
            measures[name] = interval(np.array(numbers), name)
    failed = [row for row in group if row["status"] == Status.FAILED]
    reasons = tuple(dict.fromkeys(str(row["reason"]) for row in failed))
    labels = {kind: group[0][kind] for kind in kinds}
    said = (row.get(name) for name in names if name.endswith("_warning") for row in done)
    warnings = tuple(dict.fromkeys(str(text) for text in said if text))
    return Line(None, labels, measures, len(done), len(failed), reasons, warnings)


def interval(values: np.ndarray[Any, np.dtype[np.float64]], name: str = "") -> Interval:
    """Mean, standard deviation and 95 % bootstrap interval of values over seeds.

    Parameters
    ----------
    values
        (n,) one value a seed.
    name
        Seeds the resampling, so that the same values always give the same interval.

    Notes
    -----
    Percentile bootstrap of the mean (Efron, 1979). It is too narrow for a handful of seeds; two
    values can only give the interval between them.
    """
    count = len(values)
    if count < 2:
        return Interval(float(values[0]), None, None, None, count)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    means = values[rng.integers(count, size=(RESAMPLES, count))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    deviation = float(values.std(ddof=1))
    return Interval(float(values.mean()), deviation, float(low), float(high), count)
