"""A leaderboard: its lines, and a table of as many of its columns as fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fpbench.base.sheet import Column, InWords, Sheet, write_html, write_plain
from fpbench.base.text import (
    format_number,
    format_percent,
    format_points,
    format_points_above,
    show_lines,
)
from fpbench.components.measures import LESS, SHARE, Glossary
from fpbench.components.own_measures import GLOSSARY
from fpbench.results.intervals import LEAST_SEEDS
from fpbench.results.waterfall import make_waterfall_data

if TYPE_CHECKING:
    from pandas import DataFrame

    from fpbench.results.findings import Findings
    from fpbench.results.intervals import Interval
    from fpbench.results.rows.labels import LabelsByKind
    from fpbench.results.waterfall import Waterfall

LEAK_RANKING = "with_accuracy"
"""The measure by which attacks are ranked by default."""
LEAK_COLUMNS = (
    "majority_accuracy", "without_model_accuracy", "without_accuracy", "with_accuracy", "leak",
    "limit",
)  # fmt: skip
"""Measures that a leaderboard by it shows, in percent and percentage points."""
ATTACK_COLUMNS = ("initial_accuracy", "corrected_accuracy", "gain")
"""Measures of fpbench that a leaderboard of attacks shows, beside those that components declare."""
TELLING_COLUMNS = (
    "claim_holds", "proven", "gain_over_best", "repair", "reconsidered_accuracy", "correct_seconds"
)  # fmt: skip
"""Measures that it shows only if they differ between lines."""
AUDIT_COLUMNS = (
    "epsilon", "true_ratio", "estimated_ratio", "error", "coverage", "model_epsilon"
)  # fmt: skip
"""Measures of a leaderboard of audits."""
DEFENCE_COLUMNS = (
    "test_accuracy", "test_unfairness", "epsilon", "gain_over_best", "strongest_accuracy",
    "mean_advantage", "advantage",
)  # fmt: skip
"""Measures of a leaderboard of defences."""
REPORT_COLUMNS = (
    "without_accuracy", "with_accuracy", "leak", "limit", "people_proven", "proven_unsure",
    "rate_error", "cells_published", "disparities_visible",
)  # fmt: skip
"""Measures of a leaderboard of fairness reports."""
_KEPT_OF_REPORTS = ("leak", "people_proven", "rate_error")
"""Measures that such a leaderboard shows even on a narrow terminal."""
_SPARE = (
    "correct_seconds", "reconsidered_accuracy", "claim_holds", "proven", "repair",
    "initial_accuracy",
    "corrected_accuracy", "epsilon", "coverage", "true_ratio", "model_epsilon",
    "strongest_accuracy", "test_unfairness", "test_accuracy", "mean_advantage",
)  # fmt: skip
"""Measures that a leaderboard leaves out on a narrow terminal, in this order, after all that
components declare, the last declared first."""
_UNDECLARED = 7
"""Number of measures that an audit shows if none of them is known or declared."""
_ROUNDING = 1e-9
"""Greatest difference of means of equal values."""
_INTERVAL = "95 %"
"""Heading of the interval of the measure that ranks."""
_INTERVAL_OF_LEAK = "95 % of leak"
"""Heading of the interval of the leak."""
_TOLD = ("majority_accuracy", "without_accuracy", "with_accuracy", "leak", "limit")
"""Measures that a line prints, if it has any of them."""
_P_VALUE = "p"
"""Heading of p-values for the difference of a line from the line above."""


@dataclass(frozen=True)
class Line(InWords):
    """One combination of components, over all seeds."""

    rank: int | None
    """1 is best; neighbours without a significant difference share a rank; None without a value to
    rank by."""
    labels: Mapping[str, str]
    measures: Mapping[str, Interval]
    done: int
    failed: int
    reasons: tuple[str, ...]
    """Why cells failed."""
    warnings: tuple[str, ...] = ()
    """The texts of measures that are named ..._warning."""
    p_above: float | None = None
    """p-value of the paired comparison with the line above, for all such comparisons of the
    leaderboard; None where there is none."""

    def __str__(self) -> str:
        """The line's place, components and main measures."""
        labels = ", ".join(f"{kind} {label}" for kind, label in self.labels.items() if label)
        told = [name for name in _TOLD if name in self.measures] or [*self.measures][:5]
        means = ", ".join(f"{name} {format_number(self.measures[name].mean)}" for name in told)
        place = "" if self.rank is None else f"{self.rank}. "
        return show_lines([f"{place}{labels} ({self.done} seed{'s' * (self.done != 1)}): {means}"])

    __repr__ = __str__


@dataclass(frozen=True)
class Leaderboard:
    """Combinations ranked by a measure, best first; skipped cells are left out."""

    title: str
    rank_by: str
    kinds: tuple[str, ...]
    """The kinds whose components differ or matter: the columns of labels."""
    lines: tuple[Line, ...]
    scope: str = ""
    """The data set, or all, if there are several."""
    apart: tuple[str, ...] = ()
    """What its lines have in common, unlike lines of other leaderboards of the run."""
    notes: tuple[str, ...] = ()
    """Notes on its ranks."""
    view: str = "combinations"
    glossary: Glossary = field(default=GLOSSARY, repr=False)
    """Headings and meanings of measures."""
    settings: LabelsByKind = field(default_factory=dict, repr=False)
    """The swept parameters that labels name."""
    within: tuple[str, ...] = ()
    """The kinds whose labels make a group of lines: ranks begin at 1 in each."""
    reference: Line | None = None
    """Naming the largest group, which is not an attack, but a line to compare with."""
    sentences: tuple[str, ...] = ()
    """Its findings in plain English: at most three sentences."""
    waterfall: Waterfall | None = field(default=None, repr=False)
    """What gives the groups away, step by step."""
    findings: Findings | None = field(default=None, repr=False)
    """What each thing that is published gives away."""

    @property
    def in_points(self) -> bool:
        """Whether its measures are shown in percent and percentage points."""
        return self.rank_by == LEAK_RANKING or self.view == "reports"

    @property
    def least_first(self) -> bool:
        """Whether less is better."""
        return self.glossary[self.rank_by].better == LESS

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Names of the measures that some line has."""
        return tuple(dict.fromkeys(name for line in self.lines for name in line.measures))

    def values(self, name: str) -> list[Interval | None]:
        """A measure of each line; None where it has none."""
        return [line.measures.get(name) for line in self.lines]

    def groups(self) -> list[tuple[str, ...]]:
        """The labels that each line shares with its group."""
        return [tuple(line.labels[kind] for kind in self.within) for line in self.lines]

    def frame(self) -> DataFrame:
        """One row per line: rank, labels, and mean, sd, low and high of every measure."""
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

    def __str__(self) -> str:
        """The table and its sentences."""
        return write_plain([make_sheet(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return write_html([make_sheet(self)])


def choose_best(board: Leaderboard, most: int) -> list[int]:
    """The first lines of each group, as many of each as fit; about `most` in all.

    They are the best attacks of each task; where nothing is grouped, the first lines.
    """
    groups = board.groups()
    if len(groups) <= most:
        return list(range(len(groups)))
    each = max(most // max(len(set(groups)), 1), 1)
    place: Counter[tuple[str, ...]] = Counter()
    chosen = []
    for number, group in enumerate(groups):
        place[group] += 1
        chosen += [number] * (place[group] <= each)
    return chosen[:most]


def make_sheet(
    board: Leaderboard, measures: Sequence[str] = (), numbers: Sequence[int] | None = None
) -> Sheet:
    """A leaderboard as a table.

    `measures`: the measures to show, beside the one it is ranked by; none for the most informative.
    `numbers`: the lines to show, ascending; None for all.
    """
    shown = range(len(board.lines)) if numbers is None else numbers
    kinds, lines = list_varying_kinds(board), tuple(board.lines[i] for i in shown)
    ranks = _format_ranks(board)
    ranks = [ranks[i] for i in shown]
    if board.reference is not None:
        lines = (*lines, board.reference)
        kinds += ["adversary"] * ("adversary" not in kinds)
        ranks.append("-")
    part = replace(board, lines=lines)
    counts = [_format_counts(line) for line in board.lines]
    alike = len(set(counts)) == 1 and not any(line.failed for line in board.lines)
    requested = [*(name for name in measures if name != board.rank_by), board.rank_by]
    names = [name for name in (requested if measures else list_columns(board))
             if name in board.measured]  # fmt: skip
    points = board.in_points and not measures
    body = (_make_point_columns if points else _make_columns)(part, names)
    everything = numbers is None or len(shown) == len(board.lines)
    told = [] if alike else [_format_counts(line) for line in lines]
    body |= _make_certainty_columns(part if everything else None, told)
    labels = [[line.labels[kind] for line in lines] for kind in kinds]
    glossary = board.glossary
    return Sheet(
        title=board.title,
        about=_describe_shared(board, kinds, counts[0] if alike else "", names, points),
        columns=(
            Column("#"),
            *(Column(kind, number=False) for kind in kinds),
            *(Column(glossary.heading(name)) for name in body),
        ),
        rows=tuple(zip(ranks, *labels, *body.values(), strict=True)),
        notes=(*board.notes, *_list_notes(board)),
        unshown=len(board.lines) - len(shown),
        warnings=tuple(_list_warnings(board)),
        failures=tuple(dict.fromkeys(why for line in board.lines for why in line.reasons)),
        spare=_list_spare(board, names, body, points),
        telling=frozenset(
            {_INTERVAL_OF_LEAK} if points else {_INTERVAL, glossary.heading("gain_over_best")}
        ),
        sections=tuple(kind for kind in board.within if kind in kinds and _stands_in_groups(board)),
        opening=board.sentences,
        explained=(
            *((glossary.heading(name), _LEGEND[name]) for name in body if name in _LEGEND),
            (_P_VALUE, "whether a line differs from the line above"),
        ),
    )


def _list_spare(
    board: Leaderboard, names: Sequence[str], body: Iterable[str], points: bool
) -> tuple[str, ...]:
    """Headings of columns that a narrow terminal leaves out, the least informative first.

    The measure that ranks stays, with its interval as long as there is room. For accuracies before
    and after the disclosure, the interval of their difference says more than that of the last.
    """
    declared = reversed([measure.name for measure in board.glossary.columns(names)])
    last = (*LEAK_COLUMNS, _INTERVAL_OF_LEAK) if points else tuple(names[-1:])
    if board.view == "reports":
        last = (*_KEPT_OF_REPORTS, board.rank_by)
    spare = dict.fromkeys([_P_VALUE, *declared, *_SPARE, "sd", *body])
    others = [board.glossary.heading(name) for name in spare
              if name not in (*last, _INTERVAL, "seeds")]  # fmt: skip
    return (_INTERVAL, *others, _INTERVAL_OF_LEAK) if points else (*others, _INTERVAL)


def _stands_in_groups(board: Leaderboard) -> bool:
    """Whether lines of a group are adjacent, as they are unless they were sorted."""
    groups = board.groups()
    begins = sum(one != other for one, other in pairwise(groups))
    return begins + 1 == len(set(groups))


def _make_point_columns(board: Leaderboard, names: Sequence[str]) -> dict[str, list[str]]:
    """The columns right of the labels, shares in percent; declared measures are unchanged."""
    write = {name: _POINTS.get(name, board.glossary[name].write) for name in names}
    means = {name: _format_means(board, name, write[name]) for name in names}
    ends = {
        heading: [format_ends(value, write[name]) for value in board.values(name)]
        for heading, name in ((_INTERVAL_OF_LEAK, "leak"), (_INTERVAL, board.rank_by))
        if name in names and (heading, name) != (_INTERVAL, "leak")
    }
    shares = {name: means.pop(name) for name in names if name in LEAK_COLUMNS}
    return shares | ends | means


def _make_columns(board: Leaderboard, names: Sequence[str]) -> dict[str, list[str]]:
    """The columns right of the labels, by measure; all of them, whatever the width."""
    body = {name: _format_means(board, name, board.glossary[name].write) for name in names}
    if names:
        last, write = board.values(names[-1]), board.glossary[names[-1]].write
        body["sd"] = [write(value.deviation) if value else "-" for value in last]
        body[_INTERVAL] = [format_ends(value, write) for value in last]
    return body


def _format_means(board: Leaderboard, name: str, write: Callable[[float], str]) -> list[str]:
    return [write(value.mean) if value else "-" for value in board.values(name)]


_POINTS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(REPORT_COLUMNS, format_percent),
    **dict.fromkeys(LEAK_COLUMNS[:-2], format_percent),
    "leak": format_points, "limit": format_points_above, "claim_holds": format_percent,
    "proven": format_percent,
}  # fmt: skip
"""Functions that write shares on a board in percent."""


_LEGEND = {
    "majority_accuracy": "naming the largest group",
    "without_model_accuracy": "guessed right without the model",
    "without_accuracy": "guessed right before the disclosure",
    "with_accuracy": "guessed right after it",
    "leak": "the difference, in points",
    "limit": "the most that it can add to any attack, on average",
    "people_proven": "people whose group follows from it alone",
    "proven_unsure": "those whom the attack was unsure of",
    "rate_error": "how far published rates are off, on average",
    "initial_accuracy": "guessed right",
    "corrected_accuracy": "the same after the correction",
    "gain": "what the correction adds",
    "gain_over_best": "gain over the best guess of any attack",
    "advantage": "guessed right by the best attack, beyond naming the largest group",
    "strongest_accuracy": "guessed right by the best attack",
}
"""What columns mean, in a few words."""


def _make_certainty_columns(
    board: Leaderboard | None, counts: Sequence[str]
) -> dict[str, list[str]]:
    """The columns of p-values, of a whole board, and seeds, if they are informative."""
    body = {}
    values = [] if board is None else [line.p_above for line in board.lines]
    if any(value is not None and value < 1 for value in values):
        body[_P_VALUE] = [format_p_value(value) for value in values]
    if counts:
        body["seeds"] = list(counts)
    return body


def _format_ranks(board: Leaderboard) -> list[str]:
    """Ranks; those that several lines share with a sign of equality."""
    groups, ranks = board.groups(), [line.rank for line in board.lines]
    shared = Counter(zip(groups, ranks, strict=True))
    return [
        "-" if rank is None else f"={rank}" if shared[group, rank] > 1 else str(rank)
        for group, rank in zip(groups, ranks, strict=True)
    ]


def format_p_value(value: float | None) -> str:
    """A p-value in three digits; an empty text without one."""
    if value is None:
        return ""
    return "<.001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def format_ends(value: Interval | None, write: Callable[[float], str]) -> str:
    """The ends of an interval in words."""
    if value is None or value.low is None or value.high is None:
        return "-"
    return f"{write(value.low)} to {write(value.high)}"


def _describe_shared(
    board: Leaderboard, kinds: Sequence[str], seeds: str, shown: Sequence[str], points: bool
) -> str:
    """What all lines share; `shown`: names of the measures that are shown."""
    parts = [board.scope] if board.scope and "dataset" not in board.kinds else []
    parts += board.apart
    shared = [kind for kind in board.kinds if kind not in kinds and board.lines]
    shared_labels = ((kind, board.lines[0].labels[kind]) for kind in shared)
    parts += [f"{kind} {label}" for kind, label in shared_labels if label]
    if seeds:
        parts.append(f"{seeds} seed" + "s" * (seeds != "1"))
    if board.within:
        parts.append(f"ranked for each {' and '.join(board.within)}")
    if not points and any(board.glossary[name].unit == SHARE for name in shown):
        parts.append("shares in %")
    if points:
        parts.append("in %" if board.view == "reports" else "% of people")
    return " · ".join(parts)


def _list_notes(board: Leaderboard) -> Iterable[str]:
    above = [line for line in board.lines if _exceeds_limit(line)]
    if above and "gain" in list_columns(board):
        lines = "1 line" if len(above) == 1 else f"{len(above)} lines"
        yield (
            f"gain exceeds its limit in {lines}: at least the difference is repair of the first "
            "guess; column repair"
        )
    if board.in_points and any(map(_leaks_more, board.lines)):
        yield (
            "leak may exceed limit: limit is what the best attack can gain from the claim alone; "
            "weaker attacks catch up, and learn the predictions with the claim if they lack them"
        )
    if any(0 < line.done < LEAST_SEEDS for line in board.lines):
        yield f"Fewer than {LEAST_SEEDS} seeds give no interval: run more seeds."
    ranked = board.values(board.rank_by)
    if any(value and value.count >= LEAST_SEEDS and value.low is None for value in ranked):
        yield "- for 95 %: all seeds gave the same value"
    for measure in board.glossary.declared:
        values = board.values(measure.name) if measure.if_no else []
        if any(value and value.mean == 0 for value in values):
            yield measure.if_no


def _exceeds_limit(line: Line) -> bool:
    """Whether a gain is significantly greater than the limit."""
    gain, limit = line.measures.get("gain"), line.measures.get("limit")
    if gain is None or limit is None:
        return False
    return (gain.mean if gain.low is None else gain.low) > limit.mean


def _leaks_more(line: Line) -> bool:
    """Whether the mean leak that is shown is greater than the limit that is shown beside it."""
    leak, limit = line.measures.get("leak"), line.measures.get("limit")
    return leak is not None and limit is not None and leak.mean > limit.mean


def _list_warnings(board: Leaderboard) -> Iterable[str]:
    warned = Counter(text for line in board.lines for text in line.warnings)
    for text, times in warned.items():
        where = f" ({times} of {len(board.lines)} lines)" if len(board.lines) > 1 else ""
        yield f"{text}{where}"


def list_columns(board: Leaderboard) -> list[str]:
    """Measures to show, the one that is ranked by last: it is the one with an interval."""
    measured = board.measured
    declared = [measure.name for measure in board.glossary.columns(measured)
                if measure.column == "always" or _varies(board, measure.name)]  # fmt: skip
    candidates: Sequence[str]
    if board.view == "defences":
        candidates = DEFENCE_COLUMNS
    elif is_of_audits(board):
        known = [name for name in AUDIT_COLUMNS if name in measured]
        candidates = [*known, *declared]
        if not {*candidates} - {"model_epsilon"}:  # which the auditor does not measure
            candidates = measured[:_UNDECLARED]
    elif board.view == "reports":
        return [name for name in dict.fromkeys((*REPORT_COLUMNS, board.rank_by))
                if name in measured]  # fmt: skip
    elif board.in_points:
        telling = [name for name in ("claim_holds", "proven") if _distinguishes_lines(board, name)]
        return [name for name in (*LEAK_COLUMNS, *telling, *declared) if name in measured]
    else:
        telling = [name for name in TELLING_COLUMNS if _distinguishes_lines(board, name)]
        candidates = [*declared, *telling, *ATTACK_COLUMNS]
    last = board.rank_by if board.rank_by in measured else next(reversed(measured), "")
    return [name for name in candidates if name in measured and name != last] + [last] * bool(last)


def is_of_audits(board: Leaderboard) -> bool:
    """Whether its lines are audits, or means of audits."""
    return "auditor" in board.kinds or board.view == "audits"


def _distinguishes_lines(board: Leaderboard, name: str) -> bool:
    """Whether a measure distinguishes lines; a proof or a true claim is the normal case."""
    if name == "correct_seconds":  # of several solvers
        lines = [line for line in board.lines if "proven" in line.measures]
        return len({line.labels.get("corrector") for line in lines}) > 1
    if name == "gain_over_best":  # which only another adversary makes differ from the gain
        pairs = zip(board.values(name), board.values("gain"), strict=True)
        return any(abs(over.mean - gain.mean) > _ROUNDING for over, gain in pairs if over and gain)
    if name == "repair":
        return any(map(_exceeds_limit, board.lines))
    if name in ("proven", "claim_holds"):
        return any(value and value.mean < 1 for value in board.values(name))
    return _varies(board, name)


def _varies(board: Leaderboard, name: str) -> bool:
    """Whether not every line has the same value of a measure."""
    return len({value and value.mean for value in board.values(name)}) > 1


def list_varying_kinds(board: Leaderboard) -> list[str]:
    """The kinds whose labels differ."""
    return [k for k in board.kinds if len({line.labels[k] for line in board.lines}) > 1]


def _format_counts(line: Line) -> str:
    return f"{line.done}" + (f" ({line.failed} failed)" if line.failed else "")


def to_data(board: Leaderboard) -> dict[str, Any]:
    """A leaderboard as plain data, for JSON."""
    return {
        "title": board.title,
        "view": board.view,
        "scope": board.scope,
        "apart": list(board.apart),
        "rank_by": board.rank_by,
        "least_first": board.least_first,
        "kinds": list(board.kinds),
        "within": list(board.within),
        "sentences": list(board.sentences),
        "waterfall": make_waterfall_data(board.waterfall) if board.waterfall else None,
        "published": [thing.to_data() for thing in board.findings.things] if board.findings else [],
        "notes": list(board.notes),
        "lines": [_make_line_data(line) for line in board.lines],
        "reference": _make_line_data(board.reference) if board.reference else None,
    }


def _make_line_data(line: Line) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "p_above": line.p_above,
        "labels": dict(line.labels),
        "done": line.done,
        "failed": line.failed,
        "reasons": list(line.reasons),
        "warnings": list(line.warnings),
        "measures": {name: make_interval_data(value) for name, value in line.measures.items()},
    }


def make_interval_data(value: Interval) -> dict[str, Any]:
    """A mean over seeds as plain data."""
    return {"mean": value.mean, "sd": value.deviation, "low": value.low, "high": value.high,
            "n": value.count}  # fmt: skip
