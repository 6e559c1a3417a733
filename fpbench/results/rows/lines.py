"""Rows become lines, one per combination: counted, averaged over seeds and settings, compared.

An error at epsilon 1 says nothing about another at epsilon 1 with other neighbours, and a
correction that a solver did not finish says nothing about what the claim gives away. Lines that
differ in such aspects are ranked apart, and each ranking states what its lines have in common.

A mean over settings compares like with like: only settings that every line has count, and only
seeds at which a line has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.components.measures import Glossary
from fpbench.components.names import KINDS, Status
from fpbench.results.intervals import LEAST_SEEDS, Interval, estimate_bounds
from fpbench.store.packing import Column
from fpbench.store.results import Block, Results

_Floats = NDArray[np.float64]


class Tallies:
    """The cells that are done or failed, by combination, in the order of the plan."""

    def __init__(self, results: Results) -> None:
        done, failed = results.finished()
        used = pd.unique(results.combination[done | failed])
        self.results = results
        self.labels = results.components.iloc[used].reset_index(drop=True)
        """(lines, kinds) a frame of labels; empty texts where a kind is not used."""
        line = np.full(len(results.combinations), -1)
        line[used] = np.arange(len(used))
        self.line = line[results.combination]
        """(n,) the line of each row; -1 for none."""
        rows = np.flatnonzero(done)
        # Stable: the rows of a line stay in the order of the plan.
        self._rows = rows[np.argsort(self.line[rows], kind="stable")]
        self._of_rows = self.line[self._rows]
        self.done = np.bincount(self._of_rows, minlength=len(self))
        self.failed = np.bincount(self.line[failed], minlength=len(self))
        self._seed, self.seeds = pd.factorize(results.seeds[self._rows], sort=True)
        """The seeds at which some line is done, in ascending order."""
        self._columns: dict[str, _Column] = {}
        self._by_seed: dict[str, _Floats] = {}
        self._texts: dict[tuple[str, bool], list[list[str]]] = {}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def glossary(self) -> Glossary:
        """Headings and meanings of measures."""
        return self.results.glossary

    def find_lines(self, *, audits: bool) -> list[int]:
        """The lines that are audits, or those that are not."""
        return np.flatnonzero((self.labels["auditor"] != "").to_numpy() == audits).tolist()

    def list_used(self, kinds: Iterable[str], numbers: Sequence[int]) -> tuple[str, ...]:
        """The kinds that some of these lines combine."""
        mine = self.labels.iloc[list(numbers)]
        return tuple(kind for kind in kinds if mine[kind].any())

    def list_labels(self, numbers: NDArray[np.intp], kinds: Sequence[str]) -> list[dict[str, str]]:
        """The labels of some lines, by kind."""
        columns = (self.labels[kind].to_numpy()[numbers].tolist() for kind in kinds)
        return [dict(zip(kinds, labels, strict=True)) for labels in zip(*columns, strict=True)]

    def measures(self, number: int) -> Mapping[str, Interval]:
        """Means over seeds of the measures of a line."""
        return _Measures(self, number)

    def names(self, numbers: Iterable[int]) -> set[str]:
        """Measures that some of these lines have a number of."""
        done, _ = self.results.finished()
        among = done & np.isin(self.line, np.fromiter(numbers, np.intp))
        return {name for name in self.known if self.results.measured(name, among)}

    def means(self, name: str) -> _Floats | None:
        """(lines,) means of a measure, NaN where a line has none; None if no line has."""
        column = self.column(name)
        return column.means if column.counts.any() else None

    def describe_seeds(self, numbers: Sequence[int] | slice = slice(None)) -> tuple[str, ...]:
        """A note if lines were not done at the same seeds, so that their means may be chosen."""
        done = np.zeros((len(self), len(self.seeds)), np.bool_)
        done[self._of_rows, self._seed] = True
        counts, every = done[numbers].sum(axis=1), int(done[numbers].any(axis=0).sum())
        if (counts == every).all():
            return ()
        few = " to ".join(map(str, sorted({counts.min(), counts.max()})))
        told = f"warning: lines have different seeds ({few} of {every})"
        return (f"{told}: the missing may be worst",)

    def by_seed(self, name: str) -> _Floats:
        """(lines, seeds) a measure; NaN where it was not measured."""
        if name not in self._by_seed:
            values = self.results.numbers(name)[self._rows]
            by_seed = np.full((len(self), len(self.seeds)), np.nan)
            by_seed[self._of_rows, self._seed] = np.where(np.isfinite(values), values, np.nan)
            self._by_seed[name] = by_seed
        return self._by_seed[name]

    def texts(self, name: str, *, numbers: bool = False) -> list[list[str]]:
        """The distinct texts that done rows of each line have under a name, in their order.

        `numbers`: whether numbers follow, in digits: those that are written alike are one text.
        """
        if (name, numbers) not in self._texts:
            which, words = self.results.texts(name)
            texts = self._list_distinct(self._of_rows, which[self._rows], words)
            if numbers:
                which, values = pd.factorize(self.results.numbers(name)[self._rows], sort=True)
                words = [f"{value:g}" for value in values.tolist()]
                digits = self._list_distinct(self._of_rows, which, words)
                both = zip(texts, digits, strict=True)
                texts = [list(dict.fromkeys([*ours, *theirs])) for ours, theirs in both]
            self._texts[name, numbers] = texts
        return self._texts[name, numbers]

    @cached_property
    def reasons(self) -> list[list[str]]:
        """Why cells of each line failed, each reason once."""
        _, failed = self.results.finished()
        reasons = np.array(list(map(str, self.results.reasons[failed])), object)
        which, words = pd.factorize(reasons)
        return self._list_distinct(self.line[failed], which, words.tolist())

    @cached_property
    def warnings(self) -> list[list[str]]:
        """The texts of each line's measures that are named ..._warning, each once."""
        named = [self.texts(name) for name in self.results.names if name.endswith("_warning")]
        return [
            list(dict.fromkeys(text for texts in named for text in texts[line] if text))
            for line in range(len(self))
        ]

    def _list_distinct(
        self, lines: NDArray[np.int64], which: NDArray[np.intp], words: Sequence[str]
    ) -> list[list[str]]:
        """The distinct words of each line; each row has a line and a word, -1 for none."""
        texts: list[list[str]] = [[] for _ in range(len(self))]
        for pair in pd.unique(lines[which >= 0] * len(words) + which[which >= 0]).tolist():
            texts[pair // len(words)].append(words[pair % len(words)])
        return texts

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The measures that some row has."""
        return "seconds", *self.results.names

    def column(self, name: str) -> _Column:
        """A measure of all lines, read and averaged when it is first asked for."""
        if name not in self._columns:
            values = self.results.numbers(name)[self._rows]
            finite = np.isfinite(values)
            counts = np.bincount(self._of_rows[finite], minlength=len(self))
            self._columns[name] = _Column(name, values[finite], counts)
        return self._columns[name]


class _Column:
    """One measure of all lines.

    `values`: finite values, adjacent for each line. `counts`: (lines,) number of values of each
    line.
    """

    def __init__(self, name: str, values: _Floats, counts: NDArray[np.intp]) -> None:
        self.name, self.values, self.counts = name, values, counts
        self.means, self.deviations = np.full((2, len(counts)), np.nan)
        for lines, block in self._iterate_blocks():
            with np.errstate(over="ignore", invalid="ignore"):  # a stranger's numbers may be huge
                self.means[lines] = block.mean(axis=1)
                if block.shape[1] > 1:
                    self.deviations[lines] = block.std(axis=1, ddof=1)

    def _iterate_blocks(self) -> Iterator[tuple[NDArray[np.intp], _Floats]]:
        """Lines with the same number of values, and (lines, count) their values."""
        starts = np.cumsum(self.counts) - self.counts
        for count in np.unique(self.counts[self.counts > 0]):
            lines = np.flatnonzero(self.counts == count)
            yield lines, self.values[starts[lines][:, None] + np.arange(count)]

    @cached_property
    def bounds(self) -> _Floats:
        """(2, lines) ends of the intervals: computed for all lines at the first request."""
        ends = np.full((2, len(self.counts)), np.nan)
        for lines, block in self._iterate_blocks():
            if block.shape[1] >= LEAST_SEEDS:
                with np.errstate(over="ignore", invalid="ignore"):
                    ends[:, lines] = estimate_bounds(block, self.name)
        return ends


class _Lazy(Interval):
    """A mean whose interval is computed at the first access: most are never read."""

    def __init__(self, column: _Column, line: int) -> None:
        deviation = float(column.deviations[line]) if column.counts[line] > 1 else None
        self.__dict__.update(
            mean=float(column.means[line]), deviation=deviation, count=int(column.counts[line]),
            _ends=lambda: column.bounds[:, line],
        )  # fmt: skip

    @property
    def low(self) -> float | None:
        return self._find_end(0)

    @property
    def high(self) -> float | None:
        return self._find_end(1)

    def _find_end(self, which: int) -> float | None:
        end = float(self.__dict__["_ends"]()[which])
        return None if np.isnan(end) else end


class _Measures(Mapping[str, Interval]):
    """The measures of one line."""

    def __init__(self, tally: Tallies, line: int) -> None:
        self._tally, self._line = tally, line

    def __getitem__(self, name: str) -> Interval:
        column = self._tally.column(name)
        if not column.counts[self._line]:
            raise KeyError(name)
        return _Lazy(column, self._line)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tally.known if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


UNPROVEN = "optimum not proven"
"""The statement on lines with a seed whose correction the solver did not prove."""

_ASPECTS = {
    "audit_metric": "metric", "neighbours": "neighbours", "delta": "delta", "noise": "noise",
    "claim_neighbours": "claim: neighbours", "claim_delta": "claim: delta",
    "claim_noise": "claim: noise", "model_neighbours": "learner: neighbours",
    "model_delta": "learner: delta",
}  # fmt: skip
"""Measures that qualify a guarantee, and their aspects."""
OF_CLAIMS = "claim: "
"""The beginning of the aspects of private claims."""


def describe_aspects(tally: Tallies) -> dict[str, list[str]]:
    """The statements of each line on its guarantees and proofs.

    Returns: for each aspect, such as `neighbours` of an audit, `claim: delta` of a private claim or
    `learner: neighbours` of a private learner: a text for each line, empty if it states nothing.
    """
    statements: dict[str, list[str]] = {}
    for name in tally.results.names:
        if name in _ASPECTS:
            stated = [
                texts[0] if len(texts) == 1 else "several" * bool(texts)
                for texts in tally.texts(name, numbers=True)
            ]
            if any(stated):
                statements[_ASPECTS[name]] = stated
    proven = tally.means("proven")
    if proven is not None and (proven < 1).any():
        statements["proof"] = [UNPROVEN if share < 1 else "" for share in proven.tolist()]
    return statements


def split_classes(
    said: Mapping[str, Sequence[str]], lines: Sequence[int]
) -> dict[tuple[str, ...], list[int]]:
    """Lines that may be ranked together, by what sets them apart from the others.

    An aspect that only some lines state, all in the same way, separates no lines. An aspect that
    lines state differently does, and then separates lines that do not state it, too.

    `said`: as `describe_aspects` returns it.

    Returns: lines by their statement: empty if nothing separates them.
    """
    parting = [aspect for aspect, texts in said.items() if _splits_lines(aspect, texts, lines)]
    classes: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        statement = tuple(_describe_aspect(aspect, said[aspect][line]) for aspect in parting)
        classes.setdefault(statement, []).append(line)
    # Proven lines come first; the rest stays in the order of the plan.
    return dict(sorted(classes.items(), key=lambda item: UNPROVEN in item[0]))


def _splits_lines(aspect: str, texts: Sequence[str], lines: Sequence[int]) -> bool:
    stated = {texts[line] for line in lines}
    return len(stated) > 1 if aspect == "proof" else len(stated - {""}) > 1


def _describe_aspect(aspect: str, text: str) -> str:
    if aspect == "proof":
        return text or "optimum proven"
    owner, _, word = aspect.rpartition(": ")
    statement = f"{word} {text}" if text else f"{word} not stated"
    return f"{owner}: {statement}" if owner else statement


@dataclass(frozen=True)
class Pooled:
    """Rows averaged over settings."""

    results: Results
    """One row for each line and seed. A seed at which a line lacks a setting is `failed`."""
    kinds: tuple[str, ...]
    """The kinds that were averaged over, of those that rows use."""
    settings: int
    """The settings that every line has, which are averaged over."""
    left_out: int
    """The settings that only some lines have, which are left out."""


def find_shared(results: Results, keep: Sequence[str]) -> tuple[NDArray[np.bool_], int, int]:
    """The rows of the settings that every line has.

    Returns: (n,) a mask of rows; the number of settings that every line has; and the number that
    only some have.
    """
    done, failed = results.finished()
    finished = pd.unique(results.combination[done])
    _, line = results.merge_combinations(keep)
    settings, setting = results.merge_combinations({*KINDS} - {*keep})
    # A line in a setting is one combination, so that rows need not be looked at.
    having = np.bincount(setting[finished], minlength=len(settings))
    common = (having == len(pd.unique(line[finished]))) & (having > 0)
    met = len(pd.unique(setting[pd.unique(results.combination[done | failed])]))
    return common[setting][results.combination], int(common.sum()), met - int(common.sum())


def pool(results: Results, keep: Sequence[str]) -> Pooled:
    """Average over all kinds but those that are kept.

    If lines have no setting in common, each is averaged over its own: `settings` is 0 then, and
    the lines should not be compared.

    `keep`: the kinds whose labels lines differ in.
    """
    inside, count, left_out = find_shared(results, keep)
    done, failed = results.finished()
    rows = np.flatnonzero(done | failed)
    labels, line_of = results.merge_combinations(keep)
    line = line_of[results.combination[rows]]
    seed, seeds = pd.factorize(results.seeds[rows], sort=True)
    by_both = line * max(len(seeds), 1) + seed
    group, places = pd.factorize(by_both, sort=True)
    lines, seeds = places // max(len(seeds), 1), seeds[places % max(len(seeds), 1)]
    counted = (done & inside)[rows] if count else done[rows]
    needed = np.full(len(places), count)
    if not count:
        finished = line_of[pd.unique(results.combination[done])]
        needed = np.bincount(finished, minlength=len(labels))[lines]
    whole = (np.bincount(group[counted], minlength=len(places)) == needed) & (needed > 0)

    def average(name: str) -> NDArray[np.float64]:
        """(groups,) means of finite values; NaN unless a group has as many as it needs."""
        values = results.numbers(name)[rows[counted]]
        fine = np.isfinite(values)
        sums, counts = (
            np.bincount(group[counted], each, minlength=len(places))
            for each in (np.where(fine, values, 0.0), fine)
        )
        return np.where(whole & (counts == needed), sums / np.maximum(counts, 1), np.nan)

    reasons = np.full(len(places), None, object)
    reasons[~whole] = "not every setting has been run at this seed"
    told = pd.Series(results.reasons[rows], group, dtype=object)[~whole[group]].dropna()
    told = told[~told.index.duplicated()]
    reasons[told.index] = told
    pooled = Results(
        combinations=labels,
        combination=lines,
        seeds=seeds,
        statuses=np.where(whole, Status.DONE.value, Status.FAILED.value),
        seconds=np.bincount(
            group, np.nan_to_num(results.seconds[rows]), minlength=len(places)
        ).astype(np.float64),
        cells=np.full(len(places), "", object),
        reasons=reasons,
        glossary=results.glossary,
        blocks=[Block(np.arange(len(places)), _Averages(results.names, average))],
    )
    several = results.components.iloc[pd.unique(results.combination[rows])].nunique() > 1
    over = tuple(kind for kind in KINDS if several[kind] and kind not in keep)
    return Pooled(pooled, over, count, left_out)


class _Averages(Mapping[str, Column]):
    """Means of measures, each computed at the first request: most are never read."""

    def __init__(self, names: Sequence[str], average: Callable[[str], NDArray[np.float64]]) -> None:
        self._columns: dict[str, Column | None] = dict.fromkeys(names)
        self._average = average

    def __getitem__(self, name: str) -> Column:
        column = self._columns[name]
        if column is None:
            values = self._average(name)
            column = self._columns[name] = Column.of_numbers(values, np.isnan(values))
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
