"""Leaderboards, fronts and comparisons as plain data; comparisons also as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fpbench.base.sheet import Column, Sheet
from fpbench.results.leaderboard import format_p_value
from fpbench.results.waterfall import make_waterfall_data

if TYPE_CHECKING:
    from fpbench.results.contrast import Contrast
    from fpbench.results.leaderboard import Leaderboard, Line
    from fpbench.results.statistics.intervals import Interval


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
        "measures": {
            name: {"mean": value.mean, "sd": value.deviation, "low": value.low,
                   "high": value.high, "n": value.count}
            for name, value in line.measures.items()
        },
    }  # fmt: skip


def contrast_sheet(contrast: Contrast, most: int | None = None) -> Sheet:
    """A comparison as a table."""
    moves, write = contrast.moves[:most], contrast.measure.write
    varying = [kind for kind in contrast.kinds if len({move.labels[kind] for move in moves}) > 1]
    rows = []
    for move in moves:
        gap = move.difference
        spread = "-" if gap is None or gap.low is None else f"{write(gap.low)} to {write(gap.high)}"
        means = [write(each.mean) if each else "-" for each in (move.old, move.new, gap)]
        sure = format_p_value(move.p) or "-"
        rows.append((*(move.labels[kind] for kind in varying), *means, spread, sure, move.word))
    shared = [f"{kind} {contrast.moves[0].labels[kind]}" for kind in contrast.kinds
              if kind not in varying and kind not in contrast.swaps]  # fmt: skip
    swapped = [f"{kind} {old} and then {new}" for kind, (old, new) in contrast.swaps.items()]
    notes = list(contrast.notes)
    for count, which in ((contrast.only_old, "first"), (contrast.only_new, "second")):
        if count:
            notes.append(f"{count} combination{'s' * (count != 1)} only in the {which} run")
    if any(move.p is not None for move in moves):
        notes.append(_TESTED)
    words = [Column(kind, number=False) for kind in varying]
    numbers = [Column(name) for name in ("old", "new", "difference", "95 %", "p")]
    return Sheet(
        title=f"{contrast.measure.heading}: the second run against the first",
        about=" · ".join([*swapped, *shared]),
        columns=(*words, *numbers, Column("moved", number=False)),
        rows=tuple(rows),
        notes=tuple(notes),
        unshown=len(contrast.moves) - len(moves),
        spare=("95 %", "p", "old"),
    )


_TESTED = 'p tests signed ranks, not means; "more" and "less" need both to agree'


def contrast_data(contrast: Contrast) -> dict[str, Any]:
    """A comparison as plain data, for JSON."""
    return {
        "measure": contrast.measure.name,
        "kinds": list(contrast.kinds),
        "swaps": {kind: list(labels) for kind, labels in contrast.swaps.items()},
        "only_old": contrast.only_old,
        "only_new": contrast.only_new,
        "notes": list(contrast.notes),
        "moves": [
            {
                "labels": dict(move.labels),
                "old": _to_plain(move.old),
                "new": _to_plain(move.new),
                "difference": _to_plain(move.difference),
                "p": move.p,
                "moved": move.word,
            }
            for move in contrast.moves
        ],
    }


def _to_plain(value: Interval | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"mean": value.mean, "sd": value.deviation, "low": value.low, "high": value.high,
            "n": value.count}  # fmt: skip
