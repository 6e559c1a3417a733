"""Views of a run: rankings of combinations, attacks, defences, reports and audits.

A view ranks the components of some kinds by their means over all settings of the others; defences
are ranked by the strongest attack on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpbench.base.errors import InputError, suggest_name
from fpbench.components.names import KINDS
from fpbench.results.defences import rank_defences
from fpbench.results.leaderboard import Leaderboard
from fpbench.results.published_reports import REPORT_RANKING, rank_reports
from fpbench.results.ranking import (
    check_measured,
    choose_measure,
    list_left_out,
    make_board,
    name_measure,
    part_lines,
    rank,
)
from fpbench.results.rows.comparability import describe_aspects
from fpbench.results.rows.lines import Tallies
from fpbench.results.rows.pooling import pool
from fpbench.results.rows.selection import (
    match_kind,
    split_by_dataset,
    take_common_lines,
)
from fpbench.store.results import Results

_POOLED = {
    "attacks": ("disclosure", "adversary", "corrector"),
    "audits": ("mechanism", "policy"),
}
"""The kinds whose labels lines of pooled views differ in."""
_NAMED = 3
"""Greatest number of lines that are named; more are counted."""
VIEWS = {
    "combinations": "every combination of components",
    "attacks": "disclosures, adversaries and correctors, averaged over learners",
    "defences": "learners by advantage: accuracy of the best attack minus that of always guessing "
    "the largest group",
    "reports": "fairness reports, by the error of their rates, beside what they give away",
    "audits": "mechanisms and policies, by the error of audits that use them",
}
"""Views by name, with what they rank."""


TAKES = {
    "attacks": "attacks",
    "defences": "attacks",
    "reports": "the disclosure `report`",
    "audits": "audits with a mechanism",
}
"""Needs of views that some runs do not meet."""
RANK_BY = {"defences": "advantage", "reports": REPORT_RANKING}
"""The default measures of views that do not rank by the matrix's measure."""


def check_view(name: str) -> str:
    """The view of a name, in British or American spelling.

    Raises InputError if there is none; names the nearest.
    """
    name = "defences" if name == "defenses" else name
    if name not in VIEWS:
        raise InputError(f"unknown view {name!r}; {suggest_name(name, VIEWS)}")
    return name


def make_view_boards(
    results: Results, name: str, rank_by: str, title: str = "", *, together: bool = False
) -> list[Leaderboard]:
    """The leaderboards of a view; none if the run has nothing of the kind.

    `name`: one of `VIEWS`. `rank_by`: the measure to rank by, as in `rank`; see `RANK_BY`.
    `together`: whether to rank together lines that are not comparable.

    Raises InputError if the view or the measure is unknown.
    """
    name = check_view(name)
    if name == "combinations":
        return rank(results, rank_by, title, together=together)
    if name == "reports":
        return rank_reports(results, rank_by, title)
    if name == "defences":
        return rank_defences(results, rank_by, title)
    return _make_pooled_view(results, name, rank_by, title, together=together)


def _make_pooled_view(
    results: Results, name: str, rank_by: str, title: str, *, together: bool
) -> list[Leaderboard]:
    keep = _POOLED[name]
    results = results.take(match_kind(results, "mechanism" if name == "audits" else "adversary"))
    tally = Tallies(results)
    lines = list(range(len(tally)))
    if not lines:
        return []
    names = tally.names(lines)
    rank_by = name_measure(results.glossary, rank_by, names)
    by = choose_measure(results.glossary, rank_by, names)
    boards = []
    for apart, notes, mine in part_lines(
        tally, describe_aspects(tally), lines, by, together=together
    ):
        part = results.take(np.isin(tally.line, mine))
        overall, *own = split_by_dataset(part)
        if own:  # a mean over all data sets compares only lines that all of them have
            rows, lacking = take_common_lines(overall[1], keep)
            more = (*notes, *_list_lacking(lacking))
            boards.append(_make_board(rows, name, keep, by, title, overall[0], apart, more))
        for scope, rows in own or [overall]:
            boards.append(_make_board(rows, name, keep, by, title, scope, apart, notes))
    check_measured(results.glossary, rank_by, names, boards)
    return [ready for ready in boards if ready.lines]


def _list_lacking(lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    named = ", ".join(lines) if len(lines) <= _NAMED else f"{len(lines)} lines"
    return [f"left out, as not run on every data set: {named}"]


def _make_board(
    rows: Results,
    name: str,
    keep: Sequence[str],
    by: str,
    title: str,
    scope: str,
    apart: tuple[str, ...],
    notes: tuple[str, ...],
) -> Leaderboard:
    mean = pool(rows, keep)
    tally = Tallies(mean.results)
    numbers = range(len(tally))
    kinds = tally.list_used(keep, numbers)
    remarks = [_tell_settings(mean.settings, mean.kinds)] if mean.settings > 1 else []
    remarks += [*list_left_out(mean), *Tallies(rows).describe_seeds()]
    if not mean.settings:
        remarks = ["nothing is ranked: lines share no setting, so their means are not comparable"]
    return make_board(
        tally, numbers, kinds, by, title,
        scope=scope, apart=apart, notes=(*notes, *remarks), view=name, unranked=not mean.settings,
    )  # fmt: skip


def _tell_settings(settings: int, kinds: Sequence[str]) -> str:
    """The number of settings of other kinds that a line averages, in words."""
    if len(kinds) == 1 and kinds[0] in KINDS:
        return f"averaged over {settings} {KINDS[kinds[0]].plural}"
    return f"averaged over {settings} settings ({' x '.join(kinds)})"
