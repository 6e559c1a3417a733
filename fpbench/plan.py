"""The matrix crossed with what is installed: cells, the unique steps they share, and skips."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from types import MappingProxyType

from fpbench.components import Adversary, Auditor, Component
from fpbench.errors import DataError, FpbenchError, MatrixError
from fpbench.home import DataHome, sha256
from fpbench.kinds import ATTACK, AUDIT
from fpbench.matrix import Choice, Matrix
from fpbench.plugins import Catalog
from fpbench.scores import MEASURES
from fpbench.specs import Spec, fingerprint, slot_kinds, specify
from fpbench.steps import ACTIONS, Step


@dataclass(frozen=True)
class Cell:
    """One row of results to be."""

    key: str
    """Key of the step that measures it; of its labels, if it is skipped."""
    labels: Mapping[str, str]
    """Label of the component of each kind that it combines."""
    seed: int
    reason: str | None = None
    """Why it is skipped; None if it is to be run."""


@dataclass
class Plan:
    """What a matrix means here."""

    cells: list[Cell] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    """Every unique step by its key, parents before children."""
    data: dict[str, str] = field(default_factory=dict)
    """SHA-256 checksums of the files that datasets read, by name; they are part of the keys."""
    warnings: list[str] = field(default_factory=list)
    """What is odd, but no reason not to run."""

    @property
    def runnable(self) -> list[Cell]:
        """The cells that are not skipped."""
        return [cell for cell in self.cells if cell.reason is None]

    def count_steps(self) -> dict[str, int]:
        """Number of unique steps of each action."""
        counted = Counter(step.action for step in self.steps.values())
        return {action: counted[action] for action in ACTIONS if counted[action]}

    def count_alone(self) -> dict[str, int]:
        """The same if every cell were evaluated on its own."""
        total = Counter(
            self.steps[key].action for cell in self.runnable for key in self.ancestry(cell.key)
        )
        return {action: total[action] for action in ACTIONS if total[action]}

    def count_skipped(self) -> dict[str, int]:
        """Number of skipped cells by reason."""
        return dict(Counter(cell.reason for cell in self.cells if cell.reason is not None))

    def ancestry(self, key: str) -> set[str]:
        """Keys of a step and of all that it rests on."""
        found: set[str] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self.steps[current].parents
        return found


@dataclass(frozen=True, eq=False)
class _Part:
    """A choice with its component made."""

    choice: Choice
    component: Component
    spec: Spec
    identity: str
    code: str
    missing: str | None
    """Why it cannot run here."""


def make_plan(matrix: Matrix, catalog: Catalog) -> Plan:
    """Cross the matrix with the catalog. Nothing is run.

    Raises
    ------
    MatrixError
        If a component, a parameter or a pairing is not to be had; names where it is written.
    """
    return _Planner(matrix, catalog).plan()


class _Planner:
    def __init__(self, matrix: Matrix, catalog: Catalog) -> None:
        self._matrix, self._catalog = matrix, catalog
        self._plan = Plan()
        self._pairs: dict[tuple[_Part, _Part], str | None] = {}
        self._made: dict[tuple[object, ...], Step] = {}
        self._parts = {
            kind: [self._part(choice) for choice in choices]
            for kind, choices in matrix.axes.items()
            if kind != "auditor"
        }
        self._audits = [audit for choice in matrix.axes["auditor"] for audit in self._fill(choice)]
        for parts in (*self._parts.values(), [audit[0] for audit in self._audits]):
            self._check_distinct(parts)

    def plan(self) -> Plan:
        for combination in self._combinations():
            if self._excluded(combination):
                continue
            reason = self._reason(combination)
            labels = {part.choice.kind: part.choice.label for part in combination}
            for seed in self._matrix.seeds:
                if reason is not None:
                    key = _digest("skipped", *labels.items(), seed)
                else:
                    key = self._final_step(combination, seed).key
                self._plan.cells.append(Cell(key, labels, seed, reason))
        if not self._plan.cells:
            raise MatrixError(f"{self._matrix.origin}: [[exclude]] leaves no cell to run")
        self._refuse_missing_data()
        self._check_ranking()
        return self._plan

    # What is combined

    def _part(self, choice: Choice, slots: Mapping[str, _Part] = MappingProxyType({})) -> _Part:
        held = {name: (part.component, part.spec) for name, part in slots.items()}
        try:
            component, spec = specify(
                self._catalog, choice.kind, choice.use, choice.parameters, choice.where, held
            )
        except MatrixError:
            raise
        except FpbenchError as error:
            raise MatrixError(f"{choice.where}: {error}") from error
        code = fingerprint(spec, self._catalog) + self._data(component)
        return _Part(choice, component, spec, spec.identity(), code, _missing(component))

    def _data(self, component: Component) -> str:
        """Checksums of the files a component reads: other data makes other cells."""
        home, known = DataHome.default(), self._plan.data
        files = getattr(component, "files", ())
        for file in files:
            if file.name in known or home.missing([file]):
                continue
            path = home.find(file.name)
            known[file.name] = sha256(path)
            if known[file.name] != file.sha256:
                self._plan.warnings.append(
                    f"{path} is not the known original: its sha256 is {known[file.name]}, that of "
                    f"the original {file.sha256}; `fpbench data fetch {component.name}` gets it"
                )
        return "".join(f"+{known.get(file.name, '')}" for file in files)

    def _fill(self, choice: Choice) -> Iterator[tuple[_Part, ...]]:
        """An auditor with each combination of the components that it takes from the matrix."""
        try:
            slots = slot_kinds(self._catalog.component("auditor", choice.use))
        except FpbenchError as error:
            raise MatrixError(f"{choice.where}: {error}") from error
        # What is given inline is not crossed; what may be left out is, if the matrix names any.
        empty = {name: kind for name, kind in slots.items() if name not in choice.parameters}
        kinds = [kind for kind in AUDIT[3:] if kind in empty.values() and self._parts[kind]]
        for parts in product(*(self._parts[kind] for kind in kinds)):
            chosen = dict(zip(kinds, parts, strict=True))
            slotted = {name: chosen[kind] for name, kind in empty.items() if kind in chosen}
            yield (self._part(choice, slotted), *parts)

    def _check_distinct(self, parts: list[_Part]) -> None:
        seen: dict[str, _Part] = {}
        for part in parts:
            twin = seen.setdefault(part.identity, part)
            if twin is not part:
                raise MatrixError(
                    f"{part.choice.where}: {part.choice.label!r} is the same {part.choice.kind} "
                    f"with the same parameters as {twin.choice.label!r}"
                )

    def _combinations(self) -> Iterator[tuple[_Part, ...]]:
        if self._parts["corrector"]:
            yield from product(*(self._parts[kind] for kind in ATTACK))
        people = product(self._parts["dataset"], self._parts["learner"])
        yield from ((*pair, *audit) for pair in people for audit in self._audits)

    def _excluded(self, combination: tuple[_Part, ...]) -> bool:
        named = {part.choice.kind: part.choice for part in combination}
        return any(
            all(
                kind in named and name in (named[kind].use, named[kind].label)
                for kind, name in rule.items()
            )
            for rule in self._matrix.exclude
        )

    def _reason(self, combination: tuple[_Part, ...]) -> str | None:
        """Why the combination cannot run or makes no sense; None if it does."""
        missing = next((part.missing for part in combination if part.missing), None)
        if missing:
            return missing
        for one in combination:
            for other in combination:
                if one is not other:
                    pair = one, other
                    if pair not in self._pairs:
                        self._pairs[pair] = one.component.incompatible(other.component)
                    if self._pairs[pair]:
                        return self._pairs[pair]
        return None

    def _refuse_missing_data(self) -> None:
        """Skip a dataset that is not here, but not all of them: that is a mistake to mend."""
        lacking = [part.missing for part in self._parts["dataset"]]
        if all(lacking):
            raise DataError(f"{self._matrix.origin}: nothing to run: {lacking[0]}")

    def _check_ranking(self) -> None:
        """Refuse a slip of the pen now: which measures plugins add is known only after a run."""
        rank_by = self._matrix.rank_by
        if rank_by not in MEASURES and (meant := get_close_matches(rank_by, MEASURES, 1, 0.7)):
            raise MatrixError(
                f"{self._matrix.origin}: [leaderboard]: rank_by: unknown measure {rank_by!r}; did "
                f"you mean {meant[0]!r}?"
            )

    # The steps

    def _final_step(self, combination: tuple[_Part, ...], seed: int) -> Step:
        by_kind = {part.choice.kind: part for part in combination}
        shares = self._matrix.shares
        load = self._step("load", by_kind["dataset"])
        split = self._step("split", None, (load,), seed, (shares.train, shares.test, shares.attack))
        learner = by_kind["learner"]
        train = self._step("train", learner, (split,), seed)
        predict = self._step("predict", learner, (train, split), seed)
        if "auditor" in by_kind:
            auditor = by_kind["auditor"]
            assert isinstance(auditor.component, Auditor)
            model = (train,) if "model" in auditor.component.sees else ()
            return self._step("audit", auditor, (split, predict, *model), seed)
        disclose = self._step("disclose", by_kind["disclosure"], (split, predict), seed)
        adversary = by_kind["adversary"].component
        assert isinstance(adversary, Adversary)
        seen = (split, predict) if "predictions" in adversary.sees else (split,)
        guess = self._step("guess", by_kind["adversary"], seen, seed)
        known = (split, predict, guess, disclose)
        correct = self._step("correct", by_kind["corrector"], known, seed)
        return self._step("score", None, (*known, correct), seed)

    def _step(
        self,
        action: str,
        part: _Part | None,
        parents: tuple[Step, ...] = (),
        seed: int | None = None,
        options: tuple[float, ...] = (),
    ) -> Step:
        identity, code = (part.identity, part.code) if part else ("", "")
        memo = (action, identity, seed, options, *(parent.key for parent in parents))
        if memo not in self._made:
            streams = [parent.stream for parent in parents]
            stream = _digest(action, identity, seed, options, *streams)
            key = _digest(stream, code, *(parent.key for parent in parents))
            spec = part.spec if part else None
            keys = tuple(parent.key for parent in parents)
            step = Step(key, stream, action, spec, keys, options)
            self._made[memo] = self._plan.steps[key] = step
        return self._made[memo]


def _missing(component: Component) -> str | None:
    """Why a component cannot run here: an extra, or data, that is not installed."""
    files = DataHome.default().missing(getattr(component, "files", ()))
    if files:
        names = " and ".join(file.name for file in files)
        return (
            f"data of {component.name!r} not found ({names}): fpbench data fetch {component.name}"
        )
    return type(component).unavailable()


def _digest(*parts: object) -> str:
    text = "\x1f".join(map(repr, parts))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def needed(plan: Plan, finals: Iterable[str]) -> list[str]:
    """Keys of all steps that these rest on, each after its parents, a cell's steps together."""
    order: dict[str, None] = {}
    for final in finals:
        waiting = [final]
        while waiting:
            key = waiting[-1]
            missing = [p for p in plan.steps[key].parents if p not in order]
            if key in order or not missing:
                order.setdefault(waiting.pop())
            else:
                waiting += reversed(missing)
    return list(order)
