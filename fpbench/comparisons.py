"""What a row says beside the other rows of its run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def compared(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of attacks with what the strongest adversary reached before any correction.

    `best_initial_accuracy` is the greatest accuracy of a guess at the same dataset, learner and
    seed in the run; `gain_over_best` is how much more accurate the row's correction is. A gain
    that repairs a weak guess is no gain over a strong one.

    Parameters
    ----------
    rows
        All rows of a run, as `Store.rows` gives them.
    """
    rows = list(rows)
    best: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if (reached := row.get("initial_accuracy")) is not None:
            best[_target(row)] = max(best.get(_target(row), reached), reached)
    return [_beside(row, best.get(_target(row))) for row in rows]


def _target(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["learner"], row["seed"]


def _beside(row: dict[str, Any], best: float | None) -> dict[str, Any]:
    if best is None or "initial_accuracy" not in row:
        return row
    corrected = row["corrected_accuracy"]
    gain = None if corrected is None else corrected - best
    return {**row, "best_initial_accuracy": best, "gain_over_best": gain}


__all__ = ["compared"]
