"""A matrix becomes a plan: its cells, the unique steps that they share, and what is skipped."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import product
from types import MappingProxyType

from fpbench.base.errors import FpbenchError, MatrixError
from fpbench.components.attack_kinds import Adversary, Component, Dataset, Disclosure, Learner
from fpbench.components.auditor import Auditor
from fpbench.components.catalog import Catalog
from fpbench.components.measures import Measure
from fpbench.components.names import ATTACK, AUDIT
from fpbench.components.own_measures import GLOSSARY, MEASURES
from fpbench.components.sights import keep_model_sights
from fpbench.components.spec import (
    Spec,
    describe_component,
    find_slot_kinds,
    fingerprint,
    is_third_party,
    specify,
)
from fpbench.data.data_files import DataHome
from fpbench.matrix.axes import ComponentChoice
from fpbench.matrix.matrix import Matrix
from fpbench.matrix.step import EACH_GROUP, ORDER, Step


@dataclass(frozen=True)
class Cell:
    """One row of results, planned."""

    key: str
    """Key of the step that measures it; made from its labels if it is skipped."""
    labels: Mapping[str, str]
    """Label of the component of each kind that it combines."""
    seed: int
    reason: str | None = None
    """Why it is skipped; None if it is to be run."""
    portable: bool = True
    """Whether all its components are portable, see `Component.portable`, and none is missing here:
    the reason for that depends on the machine, too."""


@dataclass
class Plan:
    """What to run of a matrix, with the installed components and the available data."""

    cells: list[Cell] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    """Every unique step by its key, parents before children."""
    data: dict[str, str] = field(default_factory=dict)
    """SHA-256 checksums of the files that datasets read, by name; they are part of the keys."""
    measures: dict[str, Measure] = field(default_factory=dict)
    """Declarations of the measures that its components add, by name."""
    lacking: str | None = None
    """Why nothing can be run, if none of the data is available."""
    warnings: list[str] = field(default_factory=list)
    """Oddities, such as data that is not the known original."""
    remarks: list[str] = field(default_factory=list)
    """Notes for the reader of the results."""

    @property
    def runnable(self) -> list[Cell]:
        """The cells that are not skipped."""
        return [cell for cell in self.cells if cell.reason is None]

    def count_steps(self) -> dict[tuple[str, str], int]:
        """Number of unique steps by action and component, in the order of the flow."""
        return _count_by_name(self.steps.values())

    def count_alone(self) -> dict[tuple[str, str], int]:
        """Number of steps by action and component if every cell were evaluated on its own."""
        keys = (key for cell in self.runnable for key in self.ancestry(cell.key))
        return _count_by_name(self.steps[key] for key in keys)

    def count_skipped(self) -> dict[str, int]:
        """Number of skipped cells by reason."""
        return dict(Counter(cell.reason for cell in self.cells if cell.reason is not None))

    def ancestry(self, key: str) -> set[str]:
        """Keys of a step and of all steps that it depends on."""
        keys: set[str] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            if current not in keys:
                keys.add(current)
                waiting += self.steps[current].parents
        return keys

    def restrict(self, cells: Iterable[Cell]) -> Plan:
        """The plan of some of its cells, and of the steps that they depend on."""
        part = replace(self, cells=list(cells))
        keys = self.order_steps(cell.key for cell in part.runnable)
        return replace(part, steps={key: self.steps[key] for key in keys})

    def order_steps(self, finals: Iterable[str]) -> list[str]:
        """Keys of these steps and all they depend on, parents first, a cell's steps together."""
        order: dict[str, None] = {}
        for final in finals:
            waiting = [final]
            while waiting:
                key = waiting[-1]
                missing = [p for p in self.steps[key].parents if p not in order]
                if key in order or not missing:
                    order.setdefault(waiting.pop())
                else:
                    waiting += reversed(missing)
        return list(order)


def _count_by_name(steps: Iterable[Step]) -> dict[tuple[str, str], int]:
    counted = Counter(step.name for step in steps)
    return dict(sorted(counted.items(), key=lambda item: ORDER.index(item[0][0])))


_GIVEN = frozenset({"predictions", "scores"})
"""What adversaries see of the model's answers about people with their own groups."""
_OBJECTS = frozenset({"train", "tune", "disclose"})
"""Actions whose results may hold objects of their component's own classes."""
_TUNED_ON = 0
"""Adversaries that are tuned once for a data set are tuned on the attack set of this seed."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A choice with its component built."""

    choice: ComponentChoice
    component: Component
    spec: Spec
    identity: str
    code: str
    missing: str | None
    """Why it cannot run here; None if it can."""
    named: tuple[str, str]
    """Its kind, and the name of its component."""
    portable: bool
    """Whether the component and all components that it holds are portable."""
    measures: tuple[Measure, ...]
    """Its declarations of the measures that it adds."""


def make_plan(matrix: Matrix, catalog: Catalog, home: DataHome) -> Plan:
    """The plan of a matrix with the installed components and the available data.

    Raises MatrixError if a component or a parameter is not valid; names its place in the file.
    """
    with _pause_collection():
        return _Planner(matrix, catalog, home).plan()


Rules = Mapping[tuple[str, str], Sequence[frozenset[tuple[str, str]]]]
"""The conditions of `[[exclude]]` rules, by one condition of each."""


def sort_rules(exclude: Iterable[Mapping[str, str]]) -> Rules:
    """`[[exclude]]` rules, so that only those that may match a combination are looked at."""
    rules: dict[tuple[str, str], list[frozenset[tuple[str, str]]]] = {}
    for rule in exclude:
        rules.setdefault(next(iter(rule.items())), []).append(frozenset(rule.items()))
    return rules


def is_excluded(rules: Rules, choices: Iterable[ComponentChoice]) -> bool:
    """Whether a rule matches all of a combination."""
    named = {(c.kind, name) for c in choices for name in (c.use, c.label)} if rules else set()
    return any(rule <= named for item in named for rule in rules.get(item, ()))


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Pause garbage collection: planning keeps every object that it makes.

    Each collection visits all of them, so that time would grow faster than the number of cells.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Planner:
    def __init__(self, matrix: Matrix, catalog: Catalog, home: DataHome) -> None:
        self._matrix, self._catalog, self._home = matrix, catalog, home
        self._plan, self._rules = Plan(), sort_rules(matrix.exclude)
        self._pairs: dict[tuple[_Part, _Part], str | None] = {}
        self._steps: dict[tuple[object, ...], Step] = {}
        self._parts = {
            kind: [self._build(choice) for choice in choices]
            for kind, choices in matrix.axes.items()
            if kind != "auditor"
        }
        self._audits = [
            audit for choice in matrix.axes["auditor"] for audit in self._fill_slots(choice)
        ]
        for parts in (*self._parts.values(), [audit[0] for audit in self._audits]):
            self._check_distinct(parts)

    def plan(self) -> Plan:
        for combination in self._combine():
            if is_excluded(self._rules, (part.choice for part in combination)):
                continue
            reason = self._why_skipped(combination)
            labels = {part.choice.kind: part.choice.label for part in combination}
            portable = all(part.portable and not part.missing for part in combination)
            for seed in self._matrix.seeds:
                if reason is not None:
                    key = _hash_parts("skipped", *labels.items(), seed)
                else:
                    key = self._add_steps(combination, seed).key
                self._plan.cells.append(Cell(key, labels, seed, reason, portable))
        if not self._plan.cells:
            raise MatrixError(f"{self._matrix.origin}: [[exclude]] leaves no cell to run")
        missing = [part.missing for part in self._parts["dataset"]]
        if all(missing):
            self._plan.lacking = f"{self._matrix.origin}: nothing to run: {missing[0]}"
        self._declare_measures()
        self._check_ranking()
        self._note_closed_learners()
        return self._plan

    def _build(
        self, choice: ComponentChoice, slots: Mapping[str, _Part] = MappingProxyType({})
    ) -> _Part:
        slot_parts = {name: (part.component, part.spec) for name, part in slots.items()}
        try:
            component, spec = specify(
                self._catalog, choice.kind, choice.use, choice.parameters, choice.where, slot_parts
            )
        except MatrixError:
            raise
        except FpbenchError as error:
            raise MatrixError(f"{choice.where}: {error}") from error
        identity, code = spec.identity(), fingerprint(spec, self._catalog)
        missing = type(component).unavailable()
        if isinstance(component, Dataset):
            missing = component.absent(self._home) or missing
            if not missing:
                try:
                    component.check(self._home)
                except FpbenchError as error:
                    raise MatrixError(f"{choice.where}: {error}") from error
                # Other data makes other cells.
                known = self._plan.data
                pending = component.checksums(self._home).items()
                checksums = {name: known.get(name) or compute() for name, compute in pending}
                warnings = component.unlike(self._home, checksums)
                self._plan.warnings += [w for w in warnings if w not in self._plan.warnings]
                known |= checksums
                code += "".join(f"+{checksum}" for checksum in checksums.values())
        return _Part(
            choice, component, spec, identity, code, missing, (choice.kind, spec.use),
            component.portable_throughout(), tuple(component.declared_measures()),
        )  # fmt: skip

    def _fill_slots(self, choice: ComponentChoice) -> Iterator[tuple[_Part, ...]]:
        """An auditor with each combination of the components that it takes from the matrix."""
        try:
            slots = find_slot_kinds(self._catalog.component("auditor", choice.use))
        except FpbenchError as error:
            raise MatrixError(f"{choice.where}: {error}") from error
        # Inline components are not crossed; optional ones are, if the matrix names any.
        empty = {name: kind for name, kind in slots.items() if name not in choice.parameters}
        kinds = [kind for kind in AUDIT[3:] if kind in empty.values() and self._parts[kind]]
        for parts in product(*(self._parts[kind] for kind in kinds)):
            chosen = dict(zip(kinds, parts, strict=True))
            slotted = {name: chosen[kind] for name, kind in empty.items() if kind in chosen}
            yield (self._build(choice, slotted), *parts)

    def _check_distinct(self, parts: list[_Part]) -> None:
        seen: dict[str, _Part] = {}
        for part in parts:
            twin = seen.setdefault(part.identity, part)
            if twin is not part:
                raise MatrixError(
                    f"{part.choice.where}: {part.choice.label!r} is the same {part.choice.kind} "
                    f"with the same parameters as {twin.choice.label!r}"
                )

    def _combine(self) -> Iterator[tuple[_Part, ...]]:
        if self._parts["corrector"]:
            yield from product(*(self._parts[kind] for kind in ATTACK))
        people = product(self._parts["dataset"], self._parts["learner"])
        yield from ((*pair, *audit) for pair in people for audit in self._audits)

    def _why_skipped(self, combination: tuple[_Part, ...]) -> str | None:
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

    def _declare_measures(self) -> None:
        """Gather what components declare; refuse a measure with two directions or units.

        Two components may describe a measure in different words; the first description is shown.
        """
        declared = self._plan.measures
        parts = [part for parts in self._parts.values() for part in parts]
        for part in [*parts, *(audit[0] for audit in self._audits)]:
            for measure in part.measures:
                other = declared.setdefault(measure.name, measure)
                if (other.better, other.unit) != (measure.better, measure.unit):
                    raise MatrixError(
                        f"{self._matrix.origin}: {other.source} and {measure.source} declare the "
                        f"measure {measure.name!r} differently: better {other.better!r} and "
                        f"{measure.better!r}, unit {other.unit!r} and {measure.unit!r}"
                    )

    def _check_ranking(self) -> None:
        """Refuse a misspelt measure now: components may add measures that they do not declare."""
        rank_by, known = self._matrix.rank_by, MEASURES | self._plan.measures.keys()
        name = GLOSSARY.declaring(self._plan.measures.values()).name_of(rank_by, known)
        if name not in known and (near := get_close_matches(rank_by, known, 1, 0.7)):
            raise MatrixError(
                f"{self._matrix.origin}: [leaderboard]: rank_by: unknown measure {rank_by!r}; did "
                f"you mean {near[0]!r}?"
            )

    def _note_closed_learners(self) -> None:
        """Note learners whose models predict with people's groups, which attackers do not know."""
        closed = [part for part in self._parts["learner"] if _is_closed(part.component)]
        attackers = {
            part.choice.use
            for part in self._parts["adversary"]
            if isinstance(part.component, Adversary) and part.component.sees & _GIVEN
            and not all(part.component.incompatible(learner.component) for learner in closed)
        }  # fmt: skip
        for name in dict.fromkeys(part.choice.use for part in closed) if attackers else ():
            self._plan.remarks.append(
                f"{name} needs each person's group to predict, so a real attacker could only ask "
                f"it about every group; its predictions are given to "
                f"{', '.join(sorted(attackers))} anyway"
            )

    def _add_steps(self, combination: tuple[_Part, ...], seed: int) -> Step:
        """The step that measures a cell, after the steps that it depends on."""
        by_kind = {part.choice.kind: part for part in combination}
        load = self._add_step("load", by_kind["dataset"])
        split = self._add_split(load, seed)
        learner = by_kind["learner"]
        train = self._add_step("train", learner, (split,), seed)
        predict = self._add_step("predict", learner, (train, split), seed)
        if "auditor" in by_kind:
            return self._add_audit(by_kind["auditor"], learner, (split, train, predict), seed,
                                   combination)  # fmt: skip
        disclosure = by_kind["disclosure"].component
        assert isinstance(disclosure, Disclosure)
        read = (split, predict, *((train,) if disclosure.needs_model else ()))
        disclose = self._add_step("disclose", by_kind["disclosure"], read, seed)
        adversary = by_kind["adversary"].component
        assert isinstance(adversary, Adversary)
        seen = [split]
        for sight in keep_model_sights(adversary.sees):
            seen.append(self._add_sight(sight, learner, (split, train, predict), seed))
        if adversary.tunes_once:
            parts = self._add_split(load, _TUNED_ON)
            seen.append(self._add_step("tune", by_kind["adversary"], (parts,), _TUNED_ON))
        guess = self._add_step("guess", by_kind["adversary"], tuple(seen), seed)
        known = (split, predict, guess, disclose)
        correct = self._add_step("correct", by_kind["corrector"], known, seed)
        return self._add_step("score", None, (*known, correct), seed, uses=combination)

    def _add_sight(
        self, sight: str, learner: _Part, steps: tuple[Step, Step, Step], seed: int
    ) -> Step:
        """The step whose result is what an adversary sees of the model."""
        split, train, predict = steps
        match sight:
            case "predictions":
                return predict
            case "scores":
                return self._add_step("reveal", learner, (train, split), seed)
            case "query":
                return self._add_step("ask", learner, (train, split), seed, (EACH_GROUP,))
            case "twin":
                twin = self._build_twin(learner)
                trained = self._add_step("train", twin, (split,), seed)
                return self._add_step("ask", twin, (trained, split), seed)
        raise AssertionError(sight)

    def _add_audit(
        self,
        part: _Part,
        learner: _Part,
        steps: tuple[Step, Step, Step],
        seed: int,
        combination: tuple[_Part, ...],
    ) -> Step:
        """The audit of a model, after the shadow models of it and its twin, if it needs them."""
        (split, train, predict), auditor = steps, part.component
        assert isinstance(auditor, Auditor)
        parents = [split, predict]
        if "model" in auditor.sees:
            parents.append(train)
        if (number := auditor.shadow_models) is not None:
            parents.append(self._add_shadows(learner, train, split, number, seed))
            if auditor.needs_twin:
                twin = self._build_twin(learner)
                trained = self._add_step("train", twin, (split,), seed)
                parents.append(self._add_shadows(twin, trained, split, number, seed))
        lent = learner.spec if "fit" in auditor.sees else None
        return self._add_step("audit", part, tuple(parents), seed, uses=combination, learner=lent)

    def _add_shadows(
        self, learner: _Part, train: Step, split: Step, number: int, seed: int
    ) -> Step:
        # Every learner has the same halves of a split, so that twins can be compared.
        halves = _hash_parts("halves", split.stream, number)
        return self._add_step("shadow", learner, (train, split), seed, (number, halves))

    def _build_twin(self, learner: _Part) -> _Part:
        """The learner without its fairness; one that the matrix names too has the same steps."""
        assert isinstance(learner.component, Learner)
        twin = learner.component.twin()
        assert twin is not None  # otherwise the component that needs it had refused the learner
        spec = describe_component(twin)
        return replace(
            learner, component=twin, spec=spec, identity=spec.identity(),
            code=fingerprint(spec, self._catalog), missing=type(twin).unavailable(),
            named=("learner", spec.use), portable=twin.portable_throughout(),
        )  # fmt: skip

    def _add_split(self, load: Step, seed: int) -> Step:
        shares = self._matrix.shares
        # The target of attacks does not change the training set.
        target = () if shares.target == "training" else (shares.target,)
        return self._add_step(
            "split", None, (load,), seed, (shares.train, shares.test, shares.attack),
            unseeded=target,
        )  # fmt: skip

    def _add_step(
        self,
        action: str,
        part: _Part | None,
        parents: tuple[Step, ...] = (),
        seed: int | None = None,
        options: tuple[float | str, ...] = (),
        uses: tuple[_Part, ...] = (),
        unseeded: tuple[str, ...] = (),
        learner: Spec | None = None,
    ) -> Step:
        identity, code = (part.identity, part.code) if part else ("", "")
        memo = (action, identity, seed, options, unseeded, *(parent.key for parent in parents))
        if memo not in self._steps:
            streams = [parent.stream for parent in parents]
            stream = _hash_parts(action, identity, seed, options, *streams)
            key = _hash_parts(stream, code, *unseeded, *(parent.key for parent in parents))
            spec = part.spec if part else None
            keys = tuple(parent.key for parent in parents)
            names = tuple(used.named for used in uses)
            strange = any(is_third_party(one, self._catalog) for one in (spec, learner) if one) or (
                spec is not None and any(p.third_party and p.action in _OBJECTS for p in parents)
            )
            step = Step(
                key, stream, action, spec, keys, (*options, *unseeded), names, learner, strange
            )
            self._steps[memo] = self._plan.steps[key] = step
        return self._steps[memo]


def _is_closed(component: Component) -> bool:
    return isinstance(component, Learner) and component.predicts_with_sensitive


def _hash_parts(*parts: object) -> str:
    text = "\x1f".join(map(repr, parts))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
