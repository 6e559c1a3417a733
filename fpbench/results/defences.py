"""Learners as defences: accuracies of the strongest attack on each, and of all on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.components.measures import GREATER
from fpbench.components.own_measures import GUARANTEE, NO_GUARANTEE
from fpbench.results.leaderboard import Leaderboard
from fpbench.results.ranking import make_board, mark_front
from fpbench.results.rows.lines import UNPROVEN, Tallies, find_shared, pool
from fpbench.results.rows.selection import match_kind, split_by_dataset
from fpbench.store.results import Results

STRONGEST = "strongest attack"
"""The column that names the strongest attack."""

OF_MODELS = ("test_accuracy", "train_accuracy", "test_unfairness", "train_unfairness")
"""Measures of the learner's model, which are the same in all attacks on it."""
OBJECTIVES = ("test_accuracy", "test_unfairness", "advantage", "epsilon")
"""Measures that the Pareto front of learners is of."""
_MEASURES = (
    *OF_MODELS, "gain", "gain_over_best", "epsilon", "mean_accuracy", "strongest_accuracy",
    "mean_advantage", "advantage",
)  # fmt: skip
_OF_ATTACKS = ("majority_accuracy", "gain", "best_initial_accuracy", *OF_MODELS)
_Learner = tuple[str, str]
"""Data set and learner."""


@dataclass(frozen=True)
class _Strongest:
    """The strongest attack on a learner."""

    words: str
    line: int
    corrects: bool
    """Whether its correction counts, instead of its guess."""
    unproven: bool
    """Whether a solver left its correction unproven at some seed."""


@dataclass(frozen=True)
class Defended:
    """Learners as defences against the attacks that were made on all of them."""

    results: Results
    """A row for each learner and seed, with its measures."""
    labels: Mapping[_Learner, Mapping[str, str]]
    """The strongest attack on each learner, and its guarantee."""
    notes: Mapping[str, list[str]]
    """Notes by data set."""


def rank_defences(
    results: Results, rank_by: str = "advantage", title: str = ""
) -> list[Leaderboard]:
    """Learners ranked by what they give away, the least first.

    `rank_by`: `advantage`, `mean_advantage` or another measure of a defence.

    If there are several data sets, one leaderboard is of all; without attacks there is none.

    Raises InputError if a defence has no such measure.

    The strongest attack on a learner has the greatest mean accuracy over all seeds, of its guess or
    its correction: the best at each seed would owe its place to noise. As it is chosen among
    several, its mean is still a little above what a new seed would give. `advantage` is its
    accuracy minus that of calling everyone a member of the largest group. Only attacks that were
    made on all learners of a data set count, so more attacks on a learner do not count against it.
    An advantage means the same for every guarantee, so learners with different guarantees are
    ranked together, with the guarantee shown beside.

    A learner is on the Pareto front if no other is at least as good in accuracy, unfairness,
    advantage and epsilon, on average over seeds, and better in one of them. Without a guarantee,
    epsilon is infinite; epsilons of guarantees with other neighbours or deltas are not comparable.
    """
    learners = tally_defences(results)
    if not len(learners.results):
        return []
    boards = []
    for scope, part in split_by_dataset(learners.results):
        keep = ("learner",) if scope.startswith("overall") else ("dataset", "learner")
        mean = pool(part, keep)
        tally = Tallies(mean.results)
        notes = [
            f"{name}: {text}" if keep == ("learner",) else text
            for name, texts in learners.notes.items() for text in texts
            if scope in ("", f"data set {name}") or keep == ("learner",)
        ]  # fmt: skip
        if names := tally.names(range(len(tally))):
            rank_by = results.glossary.find(rank_by, names, "measure to rank defences by")
        ranked = make_board(
            tally, range(len(tally)), keep, rank_by, title, scope=scope, notes=tuple(notes),
            view="defences",
        )  # fmt: skip
        boards.append(_mark_front(_add_labels(ranked, learners.labels)))
    return boards


def tally_defences(results: Results) -> Defended:
    """Learners with the accuracy of the strongest attack on each at each seed."""
    attacks = results.take(match_kind(results, "adversary"))
    guarantees = _read_guarantees(results)
    done, failed = attacks.finished()
    names = attacks.labels_of("dataset")
    labels: dict[_Learner, dict[str, str]] = {}
    notes: dict[str, list[str]] = {}
    measured = [pd.DataFrame(columns=list(_MEASURES), dtype=np.float64)]
    for dataset in pd.unique(names[done | failed]):
        here = names == dataset
        part = attacks.take(here)
        inside, count, left_out = find_shared(part, ("dataset", "learner"))
        if left_out:
            attacked = "attack that was" if left_out == 1 else "attacks that were"
            notes[dataset] = [f"left out: {left_out} {attacked} not made on every learner"]
        if not count:
            notes[dataset] = ["nothing is ranked: no attack was made on every learner"]
        tally, rows = Tallies(part.take(inside)), np.flatnonzero(here)[inside]
        notes.setdefault(dataset, []).extend(tally.describe_seeds())
        unproven = 0
        learners = tally.labels["learner"].to_numpy()
        for learner in pd.unique(learners).tolist():
            lines = np.flatnonzero(learners == learner)
            strongest = _find_strongest(tally, lines)
            if strongest is None:
                continue
            promise, epsilons = guarantees.get((dataset, learner), (NO_GUARANTEE, {}))
            labels[dataset, learner] = {STRONGEST: strongest.words, GUARANTEE: promise}
            mine = rows[tally.line == strongest.line]
            mine = mine[done[mine]]
            measures = _compute_measures(tally, lines, strongest, epsilons)
            measures = measures.loc[attacks.seeds[mine]].set_index(mine)
            measured.append(measures.dropna(subset="strongest_accuracy"))
            unproven += strongest.unproven
        if unproven:
            of = f"the strongest attack on {unproven} learner{'s' * (unproven != 1)}"
            notes.setdefault(dataset, []).append(f"{UNPROVEN} at every seed: {of}")
    return Defended(_collect_seeds(attacks, pd.concat(measured)), labels, notes)


def _collect_seeds(attacks: Results, measures: pd.DataFrame) -> Results:
    """A row for each learner and seed: those measured, and the first failed one of all others.

    `measures`: by row of `attacks`.
    """
    learners, learner = attacks.merge_combinations(("dataset", "learner"))
    learner = learner[attacks.combination]
    targets = pd.DataFrame({"learner": learner, "seed": attacks.seeds})
    target = targets.groupby(["learner", "seed"], sort=False).ngroup()
    _, failed = attacks.finished()
    chosen = measures.index.to_numpy(np.intp)
    failures = target[failed & ~target.isin(target[chosen])].drop_duplicates().index
    rows = np.zeros(len(attacks), np.bool_)
    rows[chosen] = rows[failures] = True
    bare = replace(attacks, combinations=learners, combination=learner, blocks=(),
                   seconds=np.full(len(attacks), np.nan))  # fmt: skip
    return bare.beside(chosen, {name: measures[name] for name in _MEASURES}).take(rows)


def _find_strongest(tally: Tallies, lines: NDArray[np.intp]) -> _Strongest | None:
    guessed, corrected = tally.means("initial_accuracy"), tally.means("corrected_accuracy")
    proven, best, strongest = tally.means("proven"), -np.inf, None
    several = tally.labels["disclosure"].nunique() > 1
    for line in lines.tolist():
        for means, corrects in ((guessed, False), (corrected, True)):
            if means is not None and means[line] > best:  # false for NaN
                labels = tally.labels.loc[line]
                who = labels["adversary"] + (f" + {labels['corrector']}" if corrects else " alone")
                words = f"{who}, {labels['disclosure']}" if several else who
                unproven = corrects and proven is not None and bool(proven[line] < 1)
                best, strongest = float(means[line]), _Strongest(words, line, corrects, unproven)
    return strongest


def _compute_measures(
    tally: Tallies,
    lines: NDArray[np.intp],
    strongest: _Strongest,
    epsilons: Mapping[int, float],
) -> pd.DataFrame:
    """(seeds, measures) of a learner; NaN where its strongest attack has no value."""
    guess, corrected = tally.by_seed("initial_accuracy"), tally.by_seed("corrected_accuracy")
    mean = np.where(np.isnan(corrected), guess, corrected)[lines].mean(axis=0)
    worst = (corrected if strongest.corrects else guess)[strongest.line]
    own = {name: tally.by_seed(name)[strongest.line] for name in _OF_ATTACKS}
    measures = {
        "gain": own["gain"] if strongest.corrects else np.zeros(len(worst)),
        "gain_over_best": worst - own["best_initial_accuracy"],
        "epsilon": np.array([epsilons.get(seed, np.nan) for seed in tally.seeds.tolist()]),
        "mean_accuracy": mean,
        "strongest_accuracy": worst,
        "mean_advantage": mean - own["majority_accuracy"],
        "advantage": worst - own["majority_accuracy"],
    }
    return pd.DataFrame(own | measures, index=tally.seeds)[list(_MEASURES)]


def _read_guarantees(results: Results) -> dict[_Learner, tuple[str, dict[int, float]]]:
    """The guarantees of learners according to their done rows, and their epsilon by seed.

    The weakest guarantee of its rows counts: a learner without one at some seed has none.
    """
    done, _ = results.finished()
    epsilon, delta = results.numbers("model_epsilon"), results.numbers("model_delta")
    neighbours, names = results.texts("model_neighbours")
    promised = (epsilon > 0) & (epsilon < np.inf) & (neighbours >= 0)  # false for NaN
    words = np.full(len(results), NO_GUARANTEE, object)
    words[promised] = [
        names[i] + (f", delta {d:g}" if d > 0 else "")
        for i, d in zip(neighbours[promised].tolist(), delta[promised].tolist(), strict=True)
    ]
    target = ["dataset", "learner"]
    frame = pd.DataFrame({
        **{kind: results.labels_of(kind) for kind in target}, "seed": results.seeds,
        "epsilon": epsilon, "words": words, "without": words == NO_GUARANTEE,
    })[done]  # fmt: skip
    without = frame.groupby(target)["without"].transform("any")
    guarantees = {}
    for (dataset, learner), mine in frame[~without].groupby(target):
        epsilons = mine.groupby("seed")["epsilon"].max()
        guarantees[str(dataset), str(learner)] = (
            _join_distinct(mine["words"].unique().tolist()),
            dict(zip(epsilons.index.tolist(), epsilons.tolist(), strict=True)),
        )
    return guarantees


def _add_labels(ranked: Leaderboard, labels: Mapping[_Learner, Mapping[str, str]]) -> Leaderboard:
    """A leaderboard whose lines name the strongest attack and the guarantee."""
    silent = {STRONGEST: "", GUARANTEE: NO_GUARANTEE}
    columns = [
        name for name, nothing in silent.items()
        if any(each[name] != nothing for each in labels.values())
    ]  # fmt: skip
    lines = []
    for line in ranked.lines:
        mine = [
            each for learner, each in labels.items()
            if learner[1] == line.labels["learner"]
            and line.labels.get("dataset", learner[0]) == learner[0]
        ]  # fmt: skip
        words = {name: dict.fromkeys(each[name] for each in mine) for name in columns}
        more = {name: _join_distinct(list(each)) for name, each in words.items()}
        lines.append(replace(line, labels={**line.labels, **more}))
    return replace(ranked, kinds=(*ranked.kinds, *columns), lines=tuple(lines))


def _mark_front(board: Leaderboard) -> Leaderboard:
    promises = np.array([line.labels.get(GUARANTEE, NO_GUARANTEE) for line in board.lines])
    objectives = [name for name in OBJECTIVES if name in board.measured]
    costs = np.full((len(board.lines), len(objectives)), np.nan)
    for j, name in enumerate(objectives):
        sign = -1 if board.glossary[name].better == GREATER else 1
        costs[:, j] = [sign * value.mean if value else np.nan for value in board.values(name)]
        if name == "epsilon":
            costs[np.isnan(costs[:, j]) & (promises == NO_GUARANTEE), j] = np.inf
    comparable = (promises[:, None] == promises) | (promises == NO_GUARANTEE)
    groups = [line.labels.get("dataset") for line in board.lines]
    return mark_front(board, costs, groups, comparable)


def _join_distinct(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else "several" if words else ""
