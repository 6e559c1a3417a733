"""What a row says beside the other rows of its run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from fpbench.kinds import AUDIT


def compared(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with what they are beside others.

    Of attacks, `best_initial_accuracy` is the greatest accuracy of a guess at the same dataset,
    learner and seed in the run; `gain_over_best` is how much more accurate the row's correction is.
    A gain that repairs a weak guess is no gain over a strong one.

    Of private audits, `uar` is the unweighted average recall of the ratio in tenths, over all seeds
    of the same combination of components: the mean, over the tenths that the true ratios are in, of
    the share of estimates in the right one (van der Steen et al., 2023, section 5.1.3); and
    `uar_minus_error` is that less the mean error over the same seeds (equation 11).

    Parameters
    ----------
    rows
        All rows of a run, as `Store.rows` gives them.
    """
    rows = list(rows)
    best: dict[tuple[Any, ...], float] = {}
    audits: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if (reached := row.get("initial_accuracy")) is not None:
            best[_target(row)] = max(best.get(_target(row), reached), reached)
        if row.get("tenth_recall") is not None:
            audits.setdefault(_audit(row), []).append(row)
    recalls = {audit: _recall(alike) for audit, alike in audits.items()}
    return [_beside(row, best, recalls) for row in rows]


def _target(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["learner"], row["seed"]


def _audit(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(kind) for kind in AUDIT)


def _recall(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of audits alike but for their seeds."""
    classes: dict[float, list[float]] = {}
    for row in rows:
        classes.setdefault(row["true_tenth"], []).append(row["tenth_recall"])
    uar = fmean(fmean(found) for found in classes.values())
    return {"uar": uar, "uar_minus_error": uar - fmean(row["error"] for row in rows)}


def _beside(
    row: dict[str, Any],
    best: dict[tuple[Any, ...], float],
    recalls: dict[tuple[Any, ...], dict[str, float]],
) -> dict[str, Any]:
    if row.get("tenth_recall") is not None:
        return {**row, **recalls[_audit(row)]}
    if "initial_accuracy" not in row or (reached := best.get(_target(row))) is None:
        return row
    corrected = row["corrected_accuracy"]
    gain = None if corrected is None else corrected - reached
    return {**row, "best_initial_accuracy": reached, "gain_over_best": gain}


__all__ = ["compared"]
