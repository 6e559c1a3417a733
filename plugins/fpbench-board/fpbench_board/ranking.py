"""Boards of several runs: the strongest attack, the best defence, the safest report.

Runs are of different matrices, and their authors chose the labels freely. So components are named
here by their own names and the parameters that the matrix sets, and only entries with the same task
share a board: weaker attacks do not make a report safer, or a model a better defence.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

_LONGEST = 300
"""Greatest length of a component's name with its parameters."""
_WORD = re.compile(r"(?!(?:true|false|null|NaN|Infinity)$)[A-Za-z_][\w.:/-]*")
"""A text that cannot be mistaken for a number, or for a value and another parameter."""


class Task(NamedTuple):
    """The task that a board across runs ranks."""

    name: str
    title: str
    rule: str
    """The rule of its ranks, in a sentence."""
    verdict: str
    """The sentence on the best entry, with `{name}` and `{value}` to fill in."""
    kinds: tuple[str, ...]
    """The kinds whose components are ranked."""
    measure: str
    least_first: bool
    columns: Mapping[str, str]
    """Measures that it shows, and their headings."""
    within: tuple[str, ...]
    """The kinds that all entries of a board share."""
    view: str
    """The view of a run's leaderboards that has its lines."""
    beside: str = ""
    """The measure that makes a front with the one it ranks by; empty if there is no front."""
    beside_least: bool = False
    """Whether less of that measure is better."""


TASKS = (
    Task(
        "attacks", "Strongest attack",
        "Attacks on the same model, given the same disclosure, are ranked by the share of people "
        "whose group they name right with it (with), the greatest first.",
        "{name} names {value} % of people's groups right",
        ("adversary", "corrector"), "with_accuracy", False,
        {"majority_accuracy": "baseline", "without_accuracy": "without", "with_accuracy": "with",
         "leak": "leak", "limit": "limit"},
        ("dataset", "learner", "disclosure"), "combinations",
    ),
    Task(
        "defences", "Best defence",
        "Models that met the same attacks are ranked by the advantage of the strongest of these: "
        "the share of people whose group it names right, minus that of naming the largest group; "
        "the least first. A model that predicts nothing gives nothing away, so its accuracy is "
        "shown beside: models on the front are beaten by no other in both.",
        "{name} gives away least: {value} points above naming the largest group",
        ("learner",), "advantage", True,
        {"test_accuracy": "accuracy", "test_unfairness": "unfairness",
         "strongest_accuracy": "reached", "advantage": "advantage"},
        ("dataset",), "defences", "test_accuracy",
    ),
    Task(
        "reports", "Safest report",
        "Fairness reports about the same model that met the same attacks are ranked by their leak, "
        "the rise of the share of people whose group is named right; the least first. A report "
        "that says nothing leaks nothing, so the error of its rates is shown beside: reports on "
        "the front are beaten by no other in both.",
        "{name} leaks least: {value} points",
        ("disclosure",), "leak", True,
        {"without_accuracy": "without", "with_accuracy": "with", "leak": "leak",
         "people_proven": "proven people", "rate_error": "rate error"},
        ("dataset", "learner"), "reports", "rate_error", True,
    ),
)  # fmt: skip
_POINTS = frozenset({"leak", "advantage", "limit"})


class Mean(NamedTuple):
    """A mean over seeds."""

    mean: float
    deviation: float | None
    """Standard deviation with n - 1; None for one seed."""
    count: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """The 95 % interval by Student's t; None for one seed."""
        if self.count < 2 or self.deviation is None:
            return None
        from scipy.stats import t

        half = float(t.ppf(0.975, self.count - 1)) * self.deviation / math.sqrt(self.count)
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class BoardEntry:
    """A line of a run on a board across runs."""

    components: Mapping[str, str]
    """By kind: the component's name and the parameters that the matrix sets."""
    uses: tuple[tuple[str, str], ...]
    """Kind and name of every component that it is about."""
    measures: Mapping[str, Mean]
    seeds: int
    guarantee: str = ""
    run: int = 0
    """Position of its run."""
    verified: bool = False
    """Whether its run could be recomputed."""
    rank: int | None = None
    """None if the entry is not verified, or has one seed."""
    on_front: bool = False

    @property
    def name(self) -> str:
        """Its components."""
        return ", ".join(self.components.values())


@dataclass(frozen=True)
class Section:
    """A board: entries that had the same task."""

    task: Task
    shared: tuple[tuple[str, str], ...]
    """Properties that its entries share: words and values, such as `data set` and its name."""
    entries: tuple[BoardEntry, ...]
    """The ranked first; then those of one seed; those that are not verified come last."""

    @property
    def best(self) -> tuple[BoardEntry, ...]:
        """The entries of the first rank."""
        return tuple(entry for entry in self.entries if entry.rank == 1)


Place: TypeAlias = tuple[int, tuple[tuple[str, str], ...]]
"""The board of an entry: the number of its task in `TASKS`, and what the board's entries share."""


def list_entries(snapshot: Any) -> list[tuple[Place, BoardEntry]]:
    """The entries of one run on the boards across runs; `rank_across` adds the run and the ranks.

    `snapshot`: as `fpbench.Run.read` gives it.

    Raises InputError if the rows cannot be ranked.
    """
    names = _Names(snapshot)
    attacks = _Attacks(snapshot, names)
    return [
        ((number, shared), entry)
        for number, task in enumerate(TASKS)
        for shared, entry in _list_entries(task, snapshot, names, attacks)
    ]


def rank_across(runs: Sequence[tuple[Iterable[tuple[Place, BoardEntry]], bool]]) -> list[Section]:
    """The boards of some runs, in the order of `TASKS`.

    `runs`: `list_entries` of each, and whether it could be recomputed.

    An entry's rank is one more than the number of verified entries of its board that are certainly
    better: whose 95 % interval (Student's t over seeds) lies beyond its own. So entries that do not
    differ significantly may share a rank. Entries of different runs have different seeds, so
    nothing is paired, unlike within a run.
    """
    boards: dict[Place, list[BoardEntry]] = {}
    for number, (entries, verified) in enumerate(runs):
        for place, entry in entries:
            mine = replace(entry, run=number, verified=verified)
            boards.setdefault(place, []).append(mine)
    return [
        Section(TASKS[task], shared, _rank_entries(TASKS[task], entries))
        for (task, shared), entries in sorted(boards.items(), key=lambda item: item[0])
    ]


def write_value(measure: str, value: float) -> str:
    """A measure of a board in percent or percentage points; a dash if it is too large."""
    if not math.isfinite(1e4 * value):
        return "-"
    if measure == "limit":  # an upper bound is rounded up, but not for an error in the last bits
        return f"{math.ceil(1e4 * value - 1e-6) / 100:.2f}"
    if measure not in _POINTS:
        return f"{100 * value:.1f}"
    text = f"{100 * value:+.2f}"
    return text if text.strip("+-0.") else "0.00"


def write_interval(measure: str, value: Mean) -> str:
    """The 95 % interval behind the ranks; a dash for one seed."""
    ends = value.ends
    if ends is None:
        return "-"
    if measure not in _POINTS:  # a share
        ends = max(ends[0], 0.0), min(ends[1], 1.0)
    return " to ".join(write_value(measure, end) for end in ends)


class _Names:
    """Components of a run by their own names, not by their author's labels."""

    def __init__(self, snapshot: Any) -> None:
        self._components = snapshot.components
        try:
            shares = json.loads(snapshot.matrix or "")[0]
            self.split = " ".join(f"{key}={_write(share)}" for key, share in sorted(shares.items()))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self.split = ""  # somebody changed the run

    def name(self, kind: str, label: str) -> str:
        """The component's name with parameters; the label if the matrix is not known."""
        component = self._components[kind].get(label)
        text = label if component is None else _describe(component.use, component.parameters)
        if len(text) <= _LONGEST:
            return text
        # Texts that differ only in the omitted part are different, and have separate boards.
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{text[:_LONGEST]}... (sha256 {digest[:16]})"

    def use(self, kind: str, label: str) -> str:
        """The component's name alone."""
        component = self._components[kind].get(label)
        return str(label if component is None else component.use)


def _describe(use: str, parameters: Mapping[str, Any]) -> str:
    words = [f"{key}={_write(value)}" for key, value in sorted(parameters.items())]
    return " ".join([use, *words])


def _write(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("use"), str):
        inner = {key: each for key, each in value.items() if key != "use"}
        return f"({_describe(value['use'], inner)})"
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    return json.dumps(value, default=str, ensure_ascii=False)


_WORDS = {"dataset": "data set", "learner": "model", "disclosure": "disclosure"}
_TOLD = ("disclosure", "adversary", "corrector")
"""The kinds that identify an attack on a model."""


def _list_entries(
    task: Task, snapshot: Any, names: _Names, attacks: _Attacks
) -> Iterator[tuple[tuple[tuple[str, str], ...], BoardEntry]]:
    if task.measure not in snapshot.results.names and task.name != "defences":
        return
    for board in snapshot.leaderboards(task.measure, view=task.view):
        for line in board.lines:
            value = line.measures.get(task.measure)
            labels = {k: line.labels.get(k, "") for k in (*task.within, *task.kinds)}
            if (
                value is None or not math.isfinite(value.mean)
                or not labels["dataset"] or not labels[task.kinds[0]]
            ):  # fmt: skip
                continue
            shared = [(_WORDS[k], names.name(k, labels[k])) for k in task.within if labels[k]]
            shared += [("split", names.split)] * bool(names.split)
            met = attacks.describe_met(task, labels)
            shared += [("attacks", met)] * bool(met)
            # A correction that a solver left unproven says nothing about what is given away.
            proven = line.measures.get("proven")
            unproven = proven is not None and proven.mean < 1
            shared += [("note", "optimum not proven")] * unproven
            yield tuple(shared), BoardEntry(
                components={k: names.name(k, labels[k]) for k in task.kinds if labels[k]},
                uses=tuple((k, names.use(k, label)) for k, label in labels.items() if label),
                measures={
                    name: Mean(each.mean, each.deviation, each.count)
                    for name in task.columns if (each := line.measures.get(name))
                },
                seeds=line.done,
                guarantee=str(line.labels.get("guarantee", "")),
            )  # fmt: skip


class _Attacks:
    """The attacks on each target, in words."""

    def __init__(self, snapshot: Any, names: _Names) -> None:
        on_model: dict[str, dict[str, set[str]]] = {}
        on_report: dict[tuple[str, ...], set[str]] = {}
        frame = snapshot.results.frame()
        kinds = [*_WORDS, "adversary", "corrector"]
        frame = frame.reindex(columns=["status", *kinds])  # without attacks, some are not there
        attacked = frame[(frame["status"] == "done") & (frame["adversary"].fillna("") != "")]
        for labels in attacked[kinds].drop_duplicates().fillna("").to_dict("records"):
            words = {kind: names.name(kind, labels[kind]) for kind in _TOLD if labels[kind]}
            mine = on_model.setdefault(labels["dataset"], {}).setdefault(labels["learner"], set())
            mine.add(", ".join(words.values()))
            report = tuple(labels[kind] for kind in _WORDS)
            words.pop("disclosure", None)
            on_report.setdefault(report, set()).add(", ".join(words.values()))
        self._on_report = {report: "; ".join(sorted(made)) for report, made in on_report.items()}
        # Only attacks that the run made on all learners count.
        self._on_all = {
            name: "; ".join(sorted(set.intersection(*made.values())))
            for name, made in on_model.items()
        }

    def describe_met(self, task: Task, labels: Mapping[str, str]) -> str:
        """The attacks that decide the place of a line; empty if the line itself is an attack."""
        if task.name == "reports":
            return self._on_report.get(tuple(labels[kind] for kind in _WORDS), "")
        return self._on_all.get(labels["dataset"], "") if task.name == "defences" else ""


def _rank_entries(task: Task, entries: Sequence[BoardEntry]) -> tuple[BoardEntry, ...]:
    sign = 1 if task.least_first else -1  # makes less better
    ends: dict[int, list[float]] = {}
    for i, entry in enumerate(entries):
        if entry.verified and (both := entry.measures[task.measure].ends):
            ends[i] = sorted(sign * end for end in both)
    worst = sorted(high for _, high in ends.values())
    front = _find_front(task, entries)
    ranked = [
        replace(
            entry,
            rank=1 + bisect_left(worst, ends[i][0]) if i in ends else None,
            on_front=i in front,
        )
        for i, entry in enumerate(entries)
    ]

    def order(entry: BoardEntry) -> tuple[Any, ...]:
        rank = math.inf if entry.rank is None else entry.rank
        mean = sign * entry.measures[task.measure].mean
        return not entry.verified, rank, mean, sorted(entry.components.items()), entry.run

    return tuple(sorted(ranked, key=order))


def _find_front(task: Task, entries: Sequence[BoardEntry]) -> set[int]:
    """The verified entries that no other beats in both measures of a task."""
    if not task.beside:
        return set()
    costs: dict[int, tuple[float, float]] = {}
    for i, entry in enumerate(entries):
        beside = entry.measures.get(task.beside)
        if entry.verified and beside is not None:
            # A negative value is no better than 0.
            cost = max(entry.measures[task.measure].mean, 0.0)
            costs[i] = cost, beside.mean if task.beside_least else -beside.mean
    front, least = set(), math.inf
    for cost in sorted(set(costs.values())):
        if cost[1] < least:  # equal ones are all on the front
            front |= {i for i, own in costs.items() if own == cost}
            least = cost[1]
    return front
