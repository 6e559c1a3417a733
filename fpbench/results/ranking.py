"""The ranking: a pure function of stored rows.

Neighbours in a ranking share a rank unless a paired test over their seeds finds a significant
difference, and lines that are not comparable are ranked apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.components.measures import LESS, NEITHER, Glossary
from fpbench.components.names import ATTACK, AUDIT, KINDS
from fpbench.components.own_measures import MEASURES
from fpbench.results.leaderboard import LEAK_RANKING, Leaderboard, Line
from fpbench.results.rows.lines import (
    OF_CLAIMS,
    Pooled,
    Tallies,
    describe_aspects,
    pool,
    split_classes,
)
from fpbench.results.sentences import make_findings, make_waterfall, summarise_leak
from fpbench.results.signed_ranks import compare_neighbours, share_ranks
from fpbench.store.results import Results

REFERENCE = "largest group"
"""The adversary's label in the line where everybody is called a member of the largest group."""


def rank(
    results: Results, rank_by: str, title: str = "", *, together: bool = False
) -> list[Leaderboard]:
    """Leaderboards of the attacks and of the audits among rows, if there are any.

    For several data sets, the first is of all, with means over the data sets that every line has,
    and then there is one for each.

    `rank_by`: the measure to rank by, or its heading; the best come first, or the greatest if
    neither direction is better. If it is a measure of attacks, audits are ranked by `error`, or
    else by the first measure that their auditor declares; audits without one are not ranked and
    stay in the order of the matrix. `together`: whether to rank together lines that are not
    comparable, with a note.

    Raises InputError if no row has a number under that name.

    Neighbours share a rank unless they differ significantly in Wilcoxon's signed-rank test over the
    seeds that both have, at a level of 5 % for all neighbours of a leaderboard (Holm). By
    `with_accuracy`, attacks are ranked among those on the same model, given the same disclosure:
    others had another task.
    """
    tally = Tallies(results)
    aspects_of_lines = describe_aspects(tally)
    boards, measured = [], set()
    rank_by = name_measure(results.glossary, rank_by, results.names)
    for kinds, audits in ((ATTACK, False), (AUDIT, True)):
        if mine := tally.find_lines(audits=audits):
            used, names = tally.list_used(kinds, mine), tally.names(mine)
            chosen_by = choose_measure(results.glossary, rank_by, names)
            apart_by = dict(aspects_of_lines)
            if chosen_by == LEAK_RANKING:  # no attack is ranked against attacks given another claim
                for aspect in [name for name in apart_by if name.startswith(OF_CLAIMS)]:
                    del apart_by[aspect]
            for apart, notes, lines in part_lines(
                tally, apart_by, mine, chosen_by, together=together
            ):
                make = partial(make_board, rank_by=chosen_by, title=title, apart=apart)
                boards += _rank_class(results, tally, lines, used, notes, make)
            measured |= names
    check_measured(results.glossary, rank_by, measured, boards)
    return boards


def name_measure(glossary: Glossary, text: str, names: Collection[str]) -> str:
    """The measure with a name or a heading; the text itself if it is neither."""
    return glossary.name_of(text, {*names, *(measure.name for measure in glossary.own)})


def choose_measure(glossary: Glossary, wanted: str, measured: Collection[str]) -> str:
    """The measure that lines are ranked by: audits have none of those that only attacks have."""
    if wanted in measured or wanted not in MEASURES:
        return wanted
    if wanted == LEAK_RANKING:  # missing if nothing was disclosed
        for other in ("gain", "without_accuracy", "initial_accuracy"):
            if other in measured:
                return other
    of_auditors = [one.name for one in glossary.declared
                   if one.source.startswith("auditor ") and one.better != NEITHER]  # fmt: skip
    return next((name for name in ("error", *of_auditors) if name in measured), wanted)


def check_measured(
    glossary: Glossary, rank_by: str, measured: set[str], boards: Sequence[Leaderboard]
) -> None:
    """Refuse a measure that no line has.

    Raises InputError if there is none; names the nearest.
    """
    if measured and all(board.rank_by not in measured for board in boards):
        glossary.find(rank_by, measured, "measure to rank by")


def part_lines(
    tally: Tallies,
    said: Mapping[str, list[str]],
    lines: Sequence[int],
    rank_by: str,
    *,
    together: bool,
) -> list[tuple[tuple[str, ...], tuple[str, ...], list[int]]]:
    """Classes of comparable lines: what they have in common, a note, and the lines.

    Lines without a value to rank by are never ranked; they go with the first class.
    """
    means = tally.means(rank_by)
    valued = set(lines if means is None else np.flatnonzero(~np.isnan(means)).tolist())
    ranked = [line for line in lines if line in valued]
    others = [line for line in lines if line not in valued]
    by_class = split_classes(said, ranked)
    if together and len(by_class) > 1:
        kinds = "; ".join(", ".join(apart) for apart in by_class)
        note = f"warning: ranked together, but not comparable: {kinds}"
        return [((), (note,), list(lines))]
    parts: list[tuple[tuple[str, ...], tuple[str, ...], list[int]]] = [
        (apart, (), mine) for apart, mine in by_class.items()
    ]
    if not parts:
        return [((), (), others)]
    apart, notes, first = parts[0]
    return [(apart, notes, sorted([*first, *others])), *parts[1:]]


def _rank_class(
    results: Results,
    tally: Tallies,
    lines: list[int],
    kinds: tuple[str, ...],
    notes: tuple[str, ...],
    make: Callable[..., Leaderboard],
) -> list[Leaderboard]:
    """The leaderboard of each data set, after one of all data sets if there are several.

    `make`: `make_board`, with what the boards have in common.
    """
    labels = tally.labels.loc[lines]
    datasets = labels["dataset"].unique()
    if len(datasets) == 1:
        return [make(tally, lines, kinds, notes=notes)]
    boards: list[Leaderboard] = []
    # Lines whose combination is done on every data set.
    others = [kind for kind in KINDS if kind != "dataset"]
    times = labels[tally.done[lines] > 0].groupby(others)["dataset"].transform("size")
    if everywhere := times.index[times == len(datasets)].to_list():
        means_of = tuple(kind for kind in kinds if kind != "dataset")
        mean = Tallies(pool(results.take(np.isin(tally.line, everywhere)), means_of).results)
        left = len(lines) - len(everywhere)
        of = f"{left} combination{'s' * (left != 1)}"
        exclusions = [f"left out: {of} that not every data set has"] if left else []
        exclusions += tally.describe_seeds(everywhere)
        scope = f"overall: means over {len(datasets)} data sets"
        boards.append(
            make(mean, range(len(mean)), means_of, scope=scope, notes=(*notes, *exclusions))
        )
    for dataset, mine in labels.groupby("dataset", sort=False).groups.items():
        boards.append(make(tally, mine.to_list(), kinds, scope=f"data set {dataset}", notes=notes))
    return boards


def list_left_out(mean: Pooled) -> list[str]:
    """Notes on what a mean over settings left out."""
    of = f"{mean.left_out} setting{'s' * (mean.left_out != 1)}"
    return [f"left out of the means: {of} that not every line has"] if mean.left_out else []


def make_board(
    tally: Tallies,
    numbers: Sequence[int],
    kinds: tuple[str, ...],
    rank_by: str,
    title: str = "",
    *,
    scope: str = "",
    apart: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    view: str = "combinations",
    unranked: bool = False,
) -> Leaderboard:
    """Some lines of a tally, ranked.

    `kinds`, `rank_by`, `title`, `scope`, `apart`, `notes`, `view`: fields of the leaderboard; notes
    are added if seeds are too few for significance, or lines have different ones. `unranked`:
    whether nothing may be compared, so that no line has a rank.
    """
    notes = tuple(dict.fromkeys((*notes, *tally.describe_seeds(numbers))))
    grouped = rank_by == LEAK_RANKING and view == "combinations"
    within = tuple(kind for kind in _WITHIN if grouped and kind in kinds)
    places = np.array(numbers, np.intp)
    means = tally.means(rank_by)
    found = np.full(len(places), np.nan) if means is None else means[places]
    measure = tally.glossary[rank_by]
    # In the order of the plan.
    group = np.zeros(len(places), np.int64)
    if within:
        by_group = tally.labels.iloc[places].groupby(list(within), sort=False)
        group = np.asarray(by_group.ngroup(), np.int64)
    order = np.lexsort((found if measure.better == LESS else -found, group))  # NaN comes last
    places, group = places[order], group[order]
    ranked = np.zeros(0, np.intp) if unranked else np.flatnonzero(~np.isnan(found[order]))
    ranks: dict[int, int] = {}
    p_values: dict[int, float] = {}
    if len(ranked):
        values = tally.by_seed(rank_by)[places[ranked]]
        starts = np.concatenate([[True], group[ranked][1:] != group[ranked][:-1]])
        adjusted, remarks = compare_neighbours(values, starts)
        shared = share_ranks(adjusted, starts)
        ranks = dict(zip(ranked.tolist(), shared.tolist(), strict=True))
        p_values = {
            line: p
            for line, p in zip(ranked[1:].tolist(), adjusted.tolist(), strict=True)
            if not math.isnan(p)
        }
        if (
            not remarks
            and np.unique((group[ranked], shared), axis=1, return_counts=True)[1].max() > 2
        ):
            remarks = [_OF_A_RANK]
        if measure.better == NEITHER:
            remarks = [
                *remarks,
                f"{measure.heading} is neither good nor bad: the greatest come first",
            ]
        notes = (*notes, *remarks)
    labels = tally.list_labels(places, kinds)
    lines = [
        Line(
            rank=ranks.get(i),
            labels=labels[i],
            measures=tally.measures(place),
            done=int(tally.done[place]),
            failed=int(tally.failed[place]),
            reasons=tuple(tally.reasons[place]),
            warnings=tuple(tally.warnings[place]),
            p_above=p_values.get(i),
        )
        for i, place in enumerate(places.tolist())
    ]
    leaderboard = Leaderboard(title, rank_by, kinds, tuple(lines), scope, apart, notes, view,
                       tally.glossary, within=within)  # fmt: skip
    if rank_by != LEAK_RANKING:
        return leaderboard
    leaderboard = replace(leaderboard, reference=_make_reference(tally, places, kinds))
    datasets = tally.labels["dataset"].iloc[places].unique()
    if ranks and len(datasets) == 1 and datasets[0]:  # a mean over several has no label

        def text(name: str, i: int) -> str:
            several = tally.texts(name)[places[i]]
            return several[0] if len(several) == 1 else ""

        leaks = tally.by_seed("leak")[places]
        withouts = tally.by_seed("without_accuracy")[places]
        return replace(
            leaderboard, sentences=summarise_leak(leaderboard, leaks, text),
            waterfall=make_waterfall(leaderboard, text),
            findings=make_findings(leaderboard, leaks, withouts, text),
        )  # fmt: skip
    return leaderboard


_WITHIN = ("learner", "disclosure")
"""The kinds whose labels are the same for all attacks that are ranked against each other."""


def _make_reference(
    tally: Tallies, places: NDArray[np.intp], kinds: tuple[str, ...]
) -> Line | None:
    """A line for naming the largest group (not an attack), from the line with most seeds."""
    if not len(places) or "adversary" not in kinds:
        return None
    longest = int(places[tally.done[places].argmax()])
    if (known := tally.measures(longest).get("majority_accuracy")) is None:
        return None
    labels = dict.fromkeys(kinds, "") | {"adversary": REFERENCE}
    if "dataset" in kinds:
        labels["dataset"] = str(tally.labels.at[longest, "dataset"])
    measures = {"majority_accuracy": known, "without_accuracy": known}
    return Line(None, labels, measures, known.count, 0, ())


_OF_A_RANK = "lines with the same rank: neighbours are tied, but first and last may differ"


PARETO = "pareto"
"""The column that marks lines on the front."""
ON_FRONT = "front"


def mark_front(
    board: Leaderboard,
    costs: ArrayLike,
    groups: Sequence[Hashable],
    comparable: NDArray[np.bool_] | None = None,
) -> Leaderboard:
    """A board with a column that marks the lines that no other line of their group beats.

    `costs`, `comparable`: as in `find_front`. `groups`: the group of each line.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    group = np.array([number[each] for each in groups], np.intp)
    alike = group[:, None] == group
    front = find_front(costs, alike if comparable is None else alike & comparable)
    lines = tuple(
        replace(line, labels={**line.labels, PARETO: ON_FRONT if ahead else ""})
        for line, ahead in zip(board.lines, front.tolist(), strict=True)
    )
    return replace(board, kinds=(*board.kinds, PARETO), lines=lines)


def find_front(costs: ArrayLike, comparable: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """(n,) whether no other point costs at most as much in everything, and less in something.

    `costs`: (n, k); a point with NaN is not on the front. `comparable`: (n, n) whether the first of
    two points may beat the second; all may if None.
    """
    points = np.asarray(costs, np.float64)
    one, other = points[:, None], points[None]
    beats = (one <= other).all(axis=-1) & (one < other).any(axis=-1)
    if comparable is not None:
        beats &= comparable
    return np.asarray(~beats.any(axis=0) & ~np.isnan(points).any(axis=-1))
