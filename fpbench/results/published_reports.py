"""Fairness reports: what each gives away to the strongest attack, against its utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fpbench.base.text import format_percent, format_points
from fpbench.components.names import ATTACK
from fpbench.results.leaderboard import Leaderboard, Line
from fpbench.results.ranking import check_measured, make_board, mark_front, name_measure
from fpbench.results.rows.lines import Tallies
from fpbench.results.rows.selection import split_by_dataset
from fpbench.store.results import Results

REPORT_RANKING = "rate_error"
"""The measure that ranks reports by default."""
_FACTS = "facts"
"""The measure that rows of reports have, but rows of claims do not."""
_NEAR = 0.05
"""Greatest mean error of rates of a useful report."""


def rank_reports(results: Results, rank_by: str, title: str = "") -> list[Leaderboard]:
    """Reports of each data set and model, the truest first; none if the run has no report.

    `rank_by`: `rate_error` or another measure.

    Each report is shown with the attack of the greatest mean accuracy. A report is on the Pareto
    front if no other of the same data set and model has a lower leak and error of its rates, on
    average over seeds; a leak below 0 counts as 0.
    """
    boards = []
    parts = list(split_by_dataset(results))
    rank_by = name_measure(results.glossary, rank_by, results.names)
    measured: set[str] = set()
    for scope, part in parts if len(parts) == 1 else parts[1:]:
        tally = Tallies(part)
        lines = _choose_strongest(tally)
        if not lines:
            continue
        names = tally.names(lines)
        measured |= names
        # Reports of other authors may lack measures of utility.
        by = "leak" if rank_by == REPORT_RANKING and rank_by not in names else rank_by
        kinds, note = tally.list_used(ATTACK, lines), tally.describe_seeds()
        ranked = make_board(tally, lines, kinds, by, title, scope=scope, notes=note, view="reports")
        boards.append(_mark_front(ranked))
    check_measured(results.glossary, rank_by, measured, boards)
    return boards


def _choose_strongest(tally: Tallies) -> list[int]:
    """The line of the strongest attack given each report, in the order of the plan."""
    facts, reached = tally.means(_FACTS), tally.means("with_accuracy")
    if facts is None or reached is None:
        return []
    known = tally.labels[np.isfinite(facts) & np.isfinite(reached)]
    by_report = known.assign(reached=reached[known.index]).groupby(
        ["dataset", "learner", "disclosure"], sort=False
    )
    return by_report["reached"].idxmax().to_list()


def _mark_front(ranked: Leaderboard) -> Leaderboard:
    """The board, with a column that marks reports on the front, and sentences."""
    models = [tuple(line.labels.get(kind) for kind in ("dataset", "learner"))
              for line in ranked.lines]  # fmt: skip
    board = mark_front(ranked, [_find_costs(line) for line in ranked.lines], models)
    return replace(board, sentences=_summarise(board.lines) if len(set(models)) == 1 else ())


def _find_costs(line: Line) -> tuple[float, float]:
    """Leak and error of the rates; NaN where one is not known."""
    leak, error = (line.measures.get(name) for name in ("leak", "rate_error"))
    if leak is None or error is None:
        return np.nan, np.nan
    return max(leak.mean, 0.0), error.mean


def _summarise(lines: Sequence[Line]) -> tuple[str, ...]:
    """Sentences on the reports of a data set and model: the most open one, and the safest near one.

    The two reports are chosen among all, so their leaks are stated without a test; the board has
    their intervals.
    """
    known = [line for line in lines if not np.isnan(_find_costs(line)).any()]
    if not known:
        return ()
    worst = max(known, key=lambda line: line.measures["leak"].mean)
    sentences = [
        f"The report {_name(worst)} gives away most: it adds "
        f"{_describe_leak(worst)}, and {_describe_proven(worst)}."
    ]
    near = [line for line in known if line.measures["rate_error"].mean <= _NEAR]
    if not near:
        return (*sentences, "No report shows rates that are off by at most "
                            f"{format_percent(_NEAR)} points on average.")  # fmt: skip
    least = min(near, key=lambda line: line.measures["leak"].mean)
    if least is not worst:
        sentences.append(
            f"Of the {len(near)} whose rates are off by at most {format_percent(_NEAR)} points on "
            f"average, {_name(least)} gives away least: {_describe_leak(least)}, and "
            f"{_describe_proven(least)}."
        )
    nobody = [line for line in known if _find_proven(line) == 0]
    sentences.append(f"{len(nobody)} of {len(known)} reports prove nobody's group.")
    return tuple(sentences)


def _name(line: Line) -> str:
    return f'"{line.labels.get("disclosure", "")}"'


def _describe_leak(line: Line) -> str:
    leak = line.measures["leak"]
    text = f"{format_points(leak.mean).lstrip('+')} points"
    if leak.low is None or leak.high is None:
        return f"{text} at one seed" if leak.count == 1 else text
    return f"{text} (95 %: {format_points(leak.low)} to {format_points(leak.high)})"


def _find_proven(line: Line) -> float:
    share = line.measures.get("people_proven")
    return np.nan if share is None else share.mean


def _describe_proven(line: Line) -> str:
    share = _find_proven(line)
    if not share > 0:
        return "proves nobody's group"
    unsure = line.measures.get("proven_unsure")
    text = f"proves the group of {format_percent(share)} % of people"
    if unsure is None:
        return text
    return f"{text}; of {format_percent(unsure.mean)} % the adversary was unsure before"
