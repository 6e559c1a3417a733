"""Learners as defences: what the strongest attack on them reaches, and all attacks on average."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fpbench.components.names import Status
from fpbench.components.own_measures import (
    GUARANTEE,
    NO_GUARANTEE,
    NOT_RECORDED,
    UNPROMISED,
    DefenceMeasures,
)
from fpbench.results.leaderboard import Leaderboard
from fpbench.results.ranking import board
from fpbench.results.rows.comparability import UNPROVEN
from fpbench.results.rows.lines import Tallies
from fpbench.results.rows.pooling import pooled, shared
from fpbench.results.rows.selection import match_kind, split_by_dataset, take_rows
from fpbench.store.results import Results

STRONGEST = "strongest attack"
"""The column that says which attack it is."""

_SAME = ("test_accuracy", "train_accuracy", "test_unfairness", "train_unfairness")
"""Measures of the learner, which are the same in all attacks on it."""
_Floats = NDArray[np.float64]
_Learner = tuple[str, str]
"""Data set and learner."""


@dataclass(frozen=True)
class _Strongest:
    """The strongest attack on a learner."""

    words: str
    line: int
    corrects: bool
    """Whether its correction counts, or its guess does."""
    unproven: bool
    """Whether a solver left its correction unproven at some seed."""


def defences(results: Results, rank_by: str = "leak", title: str = "") -> list[Leaderboard]:
    """Learners ranked by what they give away, those that give away least first.

    Parameters
    ----------
    results
        Rows of a run.
    rank_by
        `leak`, `mean_leak` or another measure of a defence.
    title
        Title of the matrix.

    Returns
    -------
    list of Leaderboard
        One of all data sets if there are several, and one for each; none without attacks.

    Raises
    ------
    InputError
        If a defence has no such measure.

    Notes
    -----
    The strongest attack on a learner is that with the greatest mean accuracy over all seeds, be it
    that of its guess or of its correction: the best of each seed would owe its place to noise. As
    it is chosen among several, its mean is still a little above what a new seed would give.
    `leak` is its accuracy less that of calling everyone a member of the largest group. Only attacks
    that were made on all learners of a data set count, so that none is worse off for having been
    attacked more. A leak means the same whatever was promised, so that learners with different
    guarantees are ranked together; the guarantee stands beside.
    """
    rows, found, left = defended(results)
    if not rows:
        return []
    parts = Results.of(rows, results.glossary)
    boards = []
    for scope, part in split_by_dataset(parts):
        keep = ("learner",) if scope.startswith("overall") else ("dataset", "learner")
        mean = pooled(part, keep)
        tally = Tallies(mean.results)
        notes = [
            f"{name}: {text}" if keep == ("learner",) else text
            for name, texts in left.items() for text in texts
            if scope in ("", f"data set {name}") or keep == ("learner",)
        ]  # fmt: skip
        if names := tally.names(range(len(tally))):
            rank_by = results.glossary.find(rank_by, names, "measure to rank defences by")
        ranked = board(
            tally, range(len(tally)), keep, rank_by, title, scope=scope, notes=tuple(notes),
            view="defences",
        )  # fmt: skip
        boards.append(_labelled(ranked, found))
    return boards


def defended(
    results: Results,
) -> tuple[list[dict[str, Any]], dict[_Learner, dict[str, str]], dict[str, list[str]]]:
    """A row for each learner and seed, what is said of each learner, and notes by data set."""
    attacks = take_rows(results, match_kind(results, "adversary"))
    guarantees = _guarantees(results)
    rows: list[dict[str, Any]] = []
    said: dict[_Learner, dict[str, str]] = {}
    notes: dict[str, list[str]] = {}
    for _, part in list(split_by_dataset(attacks))[-_datasets(attacks) :]:
        inside, count, left_out = shared(part, ("dataset", "learner"))
        dataset = part.labels(0)["dataset"] if len(part) else ""
        if left_out:
            attacked = "attack that was" if left_out == 1 else "attacks that were"
            notes[dataset] = [f"left out: {left_out} {attacked} not made on every learner"]
        if not count:
            notes[dataset] = ["nothing is ranked: no attack was made on every learner"]
        tally = Tallies(take_rows(part, inside))
        unproven = 0
        for learner, lines in _by_learner(tally).items():
            strongest = _strongest(tally, lines)
            promise, epsilons = guarantees[learner]
            if strongest is not None:
                said[learner] = {STRONGEST: strongest.words, GUARANTEE: promise}
                rows += _rows(tally, learner, lines, strongest, epsilons)
                unproven += strongest.unproven
        if unproven:
            of = f"the strongest attack on {unproven} learner{'s' * (unproven != 1)}"
            notes.setdefault(dataset, []).append(f"{UNPROVEN} at every seed: {of}")
        rows += _failed(part, rows)
    return rows, said, notes


def _datasets(results: Results) -> int:
    """How many data sets there are; `split_by_dataset` gives all of them first."""
    return max(len(list(split_by_dataset(results))) - 1, 1)


def _by_learner(tally: Tallies) -> dict[_Learner, list[int]]:
    lines_of: dict[_Learner, list[int]] = {}
    for line in range(len(tally)):
        labels = tally.labels(line)
        lines_of.setdefault((labels["dataset"], labels["learner"]), []).append(line)
    return lines_of


def _strongest(tally: Tallies, lines: Sequence[int]) -> _Strongest | None:
    guessed, corrected = tally.means("initial_accuracy"), tally.means("corrected_accuracy")
    proven, best, strongest = tally.means("proven"), -np.inf, None
    several = len({tally.labels(line)["disclosure"] for line in range(len(tally))}) > 1
    for line in lines:
        for means, corrects in ((guessed, False), (corrected, True)):
            if means is not None and means[line] > best:  # false of NaN
                labels = tally.labels(line)
                who = labels["adversary"] + (f" + {labels['corrector']}" if corrects else " alone")
                words = f"{who}, {labels['disclosure']}" if several else who
                unproven = corrects and proven is not None and bool(proven[line] < 1)
                best, strongest = float(means[line]), _Strongest(words, line, corrects, unproven)
    return strongest


def _rows(
    tally: Tallies,
    learner: _Learner,
    lines: Sequence[int],
    strongest: _Strongest,
    epsilons: Mapping[int, float],
) -> Iterator[dict[str, Any]]:
    columns = {name: tally.by_seed(name) for name in ("initial_accuracy", "corrected_accuracy",
               "majority_accuracy", "gain", "best_initial_accuracy", *_SAME)}  # fmt: skip
    guess, corrected = columns["initial_accuracy"], columns["corrected_accuracy"]
    reached = np.where(np.isnan(corrected), guess, corrected)
    worst = (corrected if strongest.corrects else guess)[strongest.line]
    mean, majority = reached[lines].mean(axis=0), columns["majority_accuracy"][strongest.line]
    best = columns["best_initial_accuracy"][strongest.line]
    for i, seed in enumerate(tally.seeds.tolist()):
        if np.isnan(worst[i]):
            continue
        alike = {name: columns[name][strongest.line, i] for name in _SAME}
        measures: DefenceMeasures = {
            "gain": columns["gain"][strongest.line, i] if strongest.corrects else 0.0,
            "gain_over_best": worst[i] - best[i],
            "epsilon": epsilons.get(seed, np.nan),
            "mean_accuracy": mean[i],
            "strongest_accuracy": worst[i],
            "mean_leak": mean[i] - majority[i],
            "leak": worst[i] - majority[i],
        }
        values = {
            name: float(cast("float", value)) for name, value in (alike | {**measures}).items()
        }
        yield {"dataset": learner[0], "learner": learner[1], "seed": seed,
               "status": Status.DONE.value, **values}  # fmt: skip


def _failed(part: Results, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Seeds at which a learner has nothing to show because its cells failed."""
    handled = {(row["dataset"], row["learner"], row["seed"]) for row in rows}
    _, failed = part.finished()
    for i in np.flatnonzero(failed).tolist():
        labels = part.labels(i)
        key = (labels["dataset"], labels["learner"], int(part.seeds[i]))
        if key not in handled:
            handled.add(key)
            yield {"dataset": key[0], "learner": key[1], "seed": key[2],
                   "status": Status.FAILED.value, "reason": part.reasons.get(i)}  # fmt: skip


def _guarantees(results: Results) -> dict[_Learner, tuple[str, dict[int, float]]]:
    """What rows say that each learner guarantees, and its epsilon by seed.

    The least that any of its rows says: without a guarantee at one seed, it has none.
    """
    done, _ = results.finished()
    recorded, epsilon = results.has("model_epsilon"), results.numbers("model_epsilon")
    promised = (epsilon > 0) & (epsilon < np.inf)  # false of NaN
    numbers: dict[_Learner, int] = {}
    learners = zip(*map(results.labels_of, ("dataset", "learner")), strict=True)
    mine = [numbers.setdefault(learner, len(numbers)) for learner in learners]
    learner = np.array(mine, np.intp)[results.combination]
    words = _words(results)
    texts_of: list[dict[str, None]] = [{} for _ in numbers]
    epsilons: list[dict[int, float]] = [{} for _ in numbers]
    silent = done & ~promised
    for rows, text in ((silent & recorded, NO_GUARANTEE), (silent & ~recorded, NOT_RECORDED)):
        for i in np.unique(learner[rows]).tolist():
            texts_of[i][text] = None
    for row in np.flatnonzero(done & promised).tolist():
        i, seed = int(learner[row]), int(results.seeds[row])
        texts_of[i][words.get(row, NOT_RECORDED)] = None
        epsilons[i][seed] = max(float(epsilon[row]), epsilons[i].get(seed, 0.0))
    guarantees = {}
    for key, i in numbers.items():
        least = next((text for text in UNPROMISED if text in texts_of[i]), None)
        guarantees[key] = (_one(list(texts_of[i])), epsilons[i]) if least is None else (least, {})
    return guarantees


def _words(results: Results) -> dict[int, str]:
    """What the epsilon of each row is of: neighbours and delta."""
    rows, words = results.texts("model_neighbours")
    delta = results.numbers("model_delta")
    return {
        row: results.word(word) + (f", delta {delta[row]:g}" if delta[row] > 0 else "")
        for row, word in zip(rows.tolist(), words.tolist(), strict=True)
    }


def _labelled(ranked: Leaderboard, said: Mapping[_Learner, Mapping[str, str]]) -> Leaderboard:
    """A leaderboard whose lines say what the strongest attack is, and the guarantee."""
    silent = {STRONGEST: "", GUARANTEE: NO_GUARANTEE}
    columns = [
        name for name, nothing in silent.items()
        if any(each[name] != nothing for each in said.values())
    ]  # fmt: skip
    lines = []
    for line in ranked.lines:
        mine = [
            each for learner, each in said.items()
            if learner[1] == line.labels["learner"]
            and line.labels.get("dataset", learner[0]) == learner[0]
        ]  # fmt: skip
        words = {name: dict.fromkeys(each[name] for each in mine) for name in columns}
        more = {name: _one(list(each)) for name, each in words.items()}
        lines.append(replace(line, labels={**line.labels, **more}))
    return replace(ranked, kinds=(*ranked.kinds, *columns), lines=tuple(lines))


def _one(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else "several" if words else ""
