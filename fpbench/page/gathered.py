"""All results of a run that a report shows, gathered once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from fpbench.base.errors import FpbenchError, StoreError
from fpbench.base.files import read_matrix
from fpbench.components.names import KINDS
from fpbench.execution.verification import read_stored_matrix
from fpbench.matrix.axes import MAX_CELLS
from fpbench.results.defences import OF_MODELS
from fpbench.results.intervals import Interval
from fpbench.results.judging import Judgement, judge_results
from fpbench.results.leaderboard import LEAK_RANKING, Leaderboard
from fpbench.results.ranking import choose_measure, rank
from fpbench.results.rows.labels import Components, LabelsByKind, name_parameters
from fpbench.results.rows.lines import Tallies
from fpbench.results.rows.selection import RowGroup
from fpbench.results.snapshot import (
    RANK_BY,
    VIEWS,
    SavedRun,
    Snapshot,
    make_view_boards,
    read_snapshot,
)
from fpbench.results.waterfall import Waterfall
from fpbench.store.results import Results
from fpbench.store.store import Store
from fpbench.store.tables import SessionRecord

Labels: TypeAlias = tuple[str, ...]
"""A label for every kind, in the order of `KINDS`; empty where the kind is not used."""


@dataclass(frozen=True)
class Combination:
    """Components that were measured together, over all seeds."""

    number: int
    labels: Labels
    rows: tuple[int, ...]
    """Its rows, by position."""
    measures: Mapping[str, Interval]
    """Means over seeds; empty if no seed is done."""
    texts: Mapping[str, str]
    """Measures that are texts, if all seeds have the same."""

    def label(self, kind: str) -> str:
        """The label of one kind; empty where it is not used."""
        return dict(zip(KINDS, self.labels, strict=True))[kind]


@dataclass(frozen=True)
class Gathered:
    """The content of a run for a report."""

    title: str
    path: str
    """The name of its directory."""
    results: Results
    boards: Sequence[Leaderboard]
    """The leaderboards of all views."""
    components: Components
    sessions: Sequence[SessionRecord]
    """The calls of `fpbench run` that made it, with their environments."""
    made_in: Mapping[str, int]
    """The number of the session that each cell was measured in, by key."""
    timings: Mapping[tuple[str, str], float]
    """Mean seconds of a step, by action and component."""
    matrix: str
    """The matrix file, unchanged; empty if it is missing."""
    judgement: Judgement | None = None
    """The run compared with its matrix's statements; None if not requested, or without any."""

    @cached_property
    def combinations(self) -> tuple[Combination, ...]:
        """The combinations in the order of the plan, even skipped and failed ones."""
        tally = Tallies(self.results)
        lines = {each: i for i, each in enumerate(tally.labels.itertuples(index=False, name=None))}
        group = RowGroup(self.results)
        rows: dict[int, list[int]] = {}
        for i, combination in enumerate(self.results.combination.tolist()):
            rows.setdefault(combination, []).append(i)
        named = [(self.results.combinations[i], mine) for i, mine in rows.items()]
        return tuple(
            Combination(
                number,
                labels,
                tuple(mine),
                tally.measures(lines[labels]) if labels in lines else {},
                self._texts(group.take(mine).done()),
            )
            for number, (labels, mine) in enumerate(named)
        )

    def _texts(self, rows: RowGroup) -> dict[str, str]:
        """The measures that are the same text in all rows that have a text there."""
        texts = {name: {value for value in rows.values(name) if isinstance(value, str)}
                 for name in self.results.names if self.results.texts(name)[1]}  # fmt: skip
        return {name: next(iter(values)) for name, values in texts.items() if len(values) == 1}

    @cached_property
    def having(self) -> Mapping[tuple[str, str], frozenset[int]]:
        """The numbers of the combinations that have a label, by kind and label."""
        numbers_of: dict[tuple[str, str], set[int]] = {}
        for one in self.combinations:
            for kind, label in zip(KINDS, one.labels, strict=True):
                numbers_of.setdefault((kind, label), set()).add(one.number)
        return {key: frozenset(numbers) for key, numbers in numbers_of.items()}

    @cached_property
    def waterfalls(self) -> tuple[Waterfall, ...]:
        """The waterfalls of the data sets for which they were measured."""
        done, _ = self.results.finished()
        if not self.results.measured(LEAK_RANKING, done):
            return ()
        boards = [board for board in self.boards if board.view == "combinations"]
        if all(board.rank_by != LEAK_RANKING for board in boards):
            boards = rank(self.results, LEAK_RANKING)
        return tuple(board.waterfall for board in boards if board.waterfall is not None)

    @cached_property
    def settings(self) -> LabelsByKind:
        """The swept parameters that labels name."""
        return name_parameters(self.components)


def gather(
    run: SavedRun, rank_by: str | None = None, where: Iterable[str] = (), *, judge: bool = False
) -> Gathered:
    """Read a run.

    `rank_by`: the measure to rank by; the matrix's measure if None. `where`: filters that rows must
    pass, such as `learner=pate*`. `judge`: whether to compare the rows with the statements of the
    matrix, whatever profile it was run with.

    Raises StoreError if no cell has been run, or the matrix file of the directory cannot be read;
    InputError if no cell has that measure.
    """
    matrix = read_matrix(run.path)
    with Store(run.path) as store:
        snapshot = read_snapshot(store)
        snapshot = replace(snapshot, results=snapshot.select(where))
        if not (snapshot.results.statuses != "").any():
            raise StoreError(f"{run.path}: no cell has been run yet")
        return Gathered(
            title=snapshot.title or run.path.resolve().name,
            path=run.path.resolve().name,
            results=snapshot.results,
            boards=_make_boards(snapshot, rank_by),
            components=snapshot.components,
            sessions=store.sessions(),
            made_in={record.key: record.session for record in store.records()},
            timings=store.timings(),
            matrix=matrix[1].decode(errors="replace") if matrix else "",
            judgement=_judge(store, snapshot.results) if judge else None,
        )


def _judge(store: Store, results: Results) -> Judgement | None:
    """The judgement of results; None if the matrix states nothing, or cannot be read."""
    with suppress(FpbenchError):
        seeds = {*results.seeds.tolist()}
        matrix = read_stored_matrix(store, max(MAX_CELLS, len(results)), seeds)
        return judge_results(matrix, results) if matrix.expect else None
    return None


def _make_boards(snapshot: Snapshot, requested: str | None) -> list[Leaderboard]:
    """The leaderboards of every view that ranks; defences are ranked by what attacks reach."""
    results, by, note = snapshot.results, snapshot.rank_by, ""
    tally = Tallies(results)
    measured = [name for name in results.names if tally.means(name) is not None]
    if (
        requested is None
        and measured
        and choose_measure(results.glossary, by, measured) not in measured
    ):
        # A default of the matrix is not an error of the user: runs of other measures are shown.
        other = next((name for name in measured if name not in OF_MODELS), measured[0])
        note, by = f"nothing here has {by}: ranked by {other}", other
    boards = [
        board
        for name in VIEWS
        for board in make_view_boards(
            results,
            name,
            RANK_BY.get(name, requested or by),
            snapshot.title,
        )
    ]
    return [replace(b, notes=(note, *b.notes)) if note and b.rank_by == by else b for b in boards]
