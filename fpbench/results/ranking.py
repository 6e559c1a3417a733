"""The ranking: a pure function of stored rows.

Neighbours in a ranking share a rank unless a paired test over their seeds finds a significant
difference, and lines that are not comparable are ranked apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpbench.components.measures import LESS, NEITHER, Glossary
from fpbench.components.names import ATTACK, AUDIT
from fpbench.components.own_measures import MEASURES
from fpbench.results.leaderboard import LEAK_RANKING, Leaderboard, Line
from fpbench.results.levels import make_waterfall
from fpbench.results.rows.comparability import OF_CLAIMS, describe_aspects, split_classes
from fpbench.results.rows.lines import Tallies
from fpbench.results.rows.pooling import Pooled, pool
from fpbench.results.sentences import summarise_leak
from fpbench.results.statistics.signed_ranks import compare_neighbours, share_ranks
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
        mine = [i for i in range(len(tally)) if bool(tally.labels(i)["auditor"]) is audits]
        if mine:
            used = tuple(kind for kind in kinds if any(tally.labels(i)[kind] for i in mine))
            names = tally.names(mine)
            chosen_by = choose_measure(results.glossary, rank_by, names)
            apart_by = dict(aspects_of_lines)
            if chosen_by == LEAK_RANKING:  # no attack is ranked against attacks given another claim
                for aspect in [name for name in apart_by if name.startswith(OF_CLAIMS)]:
                    del apart_by[aspect]
            for apart, notes, lines in part_lines(
                tally, apart_by, mine, chosen_by, together=together
            ):
                maker = _Maker(title, chosen_by, used, apart, notes)
                boards += _rank_class(results, tally, lines, maker)
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


@dataclass(frozen=True)
class _Maker:
    """Makes the leaderboards of a class, which have these fields in common."""

    title: str
    rank_by: str
    kinds: tuple[str, ...]
    apart: tuple[str, ...]
    notes: tuple[str, ...]


def _rank_class(
    results: Results, tally: Tallies, lines: list[int], maker: _Maker
) -> list[Leaderboard]:
    """The leaderboard of each data set, after one of all data sets if there are several."""
    of_dataset: dict[str, list[int]] = {}
    for line in lines:
        of_dataset.setdefault(tally.labels(line)["dataset"], []).append(line)
    if len(of_dataset) == 1:
        return [make_board(tally, lines, maker.kinds, maker.rank_by, maker.title, apart=maker.apart,
                           notes=maker.notes)]  # fmt: skip
    boards = []
    kinds = tuple(kind for kind in maker.kinds if kind != "dataset")
    everywhere = _find_everywhere(tally, lines, len(of_dataset))
    if everywhere:
        mean = Tallies(pool(results.take(np.isin(tally.line, everywhere)), kinds).results)
        left = len(lines) - len(everywhere)
        of = f"{left} combination{'s' * (left != 1)}"
        exclusions = [f"left out: {of} that not every data set has"] if left else []
        exclusions += tally.describe_seeds(everywhere)
        boards.append(
            make_board(mean, range(len(mean)), kinds, maker.rank_by, maker.title,
                       scope=f"overall: means over {len(of_dataset)} data sets", apart=maker.apart,
                       notes=(*maker.notes, *exclusions))
        )  # fmt: skip
    for dataset, mine in of_dataset.items():
        boards.append(
            make_board(tally, mine, maker.kinds, maker.rank_by, maker.title,
                       scope=f"data set {dataset}", apart=maker.apart, notes=maker.notes)
        )  # fmt: skip
    return boards


def _find_everywhere(tally: Tallies, lines: Sequence[int], datasets: int) -> list[int]:
    """The lines whose combination is done on every data set."""
    lines_of: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        others = tuple(v for kind, v in tally.labels(line).items() if kind != "dataset")
        if tally.done[line]:
            lines_of.setdefault(others, []).append(line)
    return sorted(line for alike in lines_of.values() if len(alike) == datasets for line in alike)


def list_left_out(mean: Pooled) -> list[str]:
    """Notes on what a mean over settings left out."""
    of = f"{mean.left_out} setting{'s' * (mean.left_out != 1)}"
    return [f"left out of the means: {of} that not every line has"] if mean.left_out else []


def make_board(
    tally: Tallies,
    numbers: Sequence[int],
    kinds: tuple[str, ...],
    rank_by: str,
    title: str,
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
    group = _number_groups(tally, places, within)
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
    lines = [
        _make_line(tally, place, kinds, ranks.get(i), p_values.get(i))
        for i, place in enumerate(places.tolist())
    ]
    leaderboard = Leaderboard(title, rank_by, kinds, tuple(lines), scope, apart, notes, view,
                       tally.glossary, within=within)  # fmt: skip
    if rank_by != LEAK_RANKING:
        return leaderboard
    leaderboard = replace(leaderboard, reference=_make_reference(tally, places, kinds))
    datasets = {tally.labels(place)["dataset"] for place in places.tolist()}
    if ranks and len(datasets) == 1 and datasets != {""}:  # a mean over several has no label

        def text(name: str, i: int) -> str:
            return tally.text(name, int(places[i]))

        sentences = summarise_leak(leaderboard, tally.by_seed("leak")[places], text)
        waterfall = make_waterfall(leaderboard, text)
        return replace(leaderboard, sentences=sentences, waterfall=waterfall)
    return leaderboard


_WITHIN = ("learner", "disclosure")
"""The kinds whose labels are the same for all attacks that are ranked against each other."""


def _number_groups(
    tally: Tallies, places: NDArray[np.intp], within: Sequence[str]
) -> NDArray[np.intp]:
    """(lines,) the group of each line, in the order of the plan."""
    if not within:
        return np.zeros(len(places), np.intp)
    first: dict[tuple[str, ...], int] = {}
    return np.array([
        first.setdefault(tuple(labels[kind] for kind in within), len(first))
        for labels in map(tally.labels, places.tolist())
    ], np.intp)  # fmt: skip


def _make_reference(
    tally: Tallies, places: NDArray[np.intp], kinds: tuple[str, ...]
) -> Line | None:
    """A line for naming the largest group (not an attack), from the line with most seeds."""
    longest = max(places.tolist(), key=lambda place: int(tally.done[place]), default=None)
    known = None if longest is None else tally.measures(longest).get("majority_accuracy")
    if known is None or longest is None or "adversary" not in kinds:
        return None
    labels = dict.fromkeys(kinds, "")
    labels["adversary"] = REFERENCE
    if "dataset" in kinds:
        labels["dataset"] = tally.labels(longest)["dataset"]
    measures = {"majority_accuracy": known, "without_accuracy": known}
    return Line(None, labels, measures, known.count, 0, ())


_OF_A_RANK = "lines with the same rank: neighbours are tied, but first and last may differ"


def _make_line(
    tally: Tallies, number: int, kinds: tuple[str, ...], place: int | None, p_above: float | None
) -> Line:
    labels = tally.labels(number)
    return Line(
        rank=place,
        labels={kind: labels[kind] for kind in kinds},
        measures=tally.measures(number),
        done=int(tally.done[number]),
        failed=int(tally.failed[number]),
        reasons=tally.reasons[number],
        warnings=tally.warnings[number],
        p_above=p_above,
    )
