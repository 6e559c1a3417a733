"""Crosses a matrix with what is installed. Nothing is run."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from types import MappingProxyType

from fpbench.base.errors import FpbenchError, MatrixError
from fpbench.components.attack_kinds import Adversary, Component, Dataset, Learner
from fpbench.components.auditor import Auditor
from fpbench.components.catalog import Catalog
from fpbench.components.names import ATTACK, AUDIT
from fpbench.components.own_measures import MEASURES
from fpbench.components.spec import Spec, fingerprint, slot_kinds, specify
from fpbench.data.data_files import DataHome
from fpbench.matrix.axes import Choice, Rules
from fpbench.matrix.matrix import Matrix
from fpbench.matrix.plan import Cell, Plan
from fpbench.matrix.step import Step

_OF_THE_MODEL = {"predictions", "scores"}
"""What an adversary sees that only the model can tell it."""
_TUNED_ON = 0
"""The seed whose attack set adversaries are tuned on that are tuned once for a data set."""


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
    named: tuple[str, str]
    """Its kind, and the name of its component."""
    portable: bool
    """Whether it is, and all components that it holds."""


def make_plan(matrix: Matrix, catalog: Catalog, home: DataHome) -> Plan:
    """Cross the matrix with the catalog and the data that is here. Nothing is run.

    Raises
    ------
    MatrixError
        If a component, a parameter or a pairing is not to be had; names where it is written.
    """
    with _no_collection():
        return _Planner(matrix, catalog, home).plan()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Planning makes many objects, keeps them all and makes no garbage.

    To look for some takes time for every object that is already there, so that planning would take
    more than twice as long for twice as many cells.
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
        self._plan, self._rules = Plan(), Rules(matrix.exclude)
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
            portable = all(part.portable for part in combination)
            for seed in self._matrix.seeds:
                if reason is not None:
                    key = _digest("skipped", *labels.items(), seed)
                else:
                    key = self._final_step(combination, seed).key
                self._plan.cells.append(Cell(key, labels, seed, reason, portable))
        if not self._plan.cells:
            raise MatrixError(f"{self._matrix.origin}: [[exclude]] leaves no cell to run")
        lacking = [part.missing for part in self._parts["dataset"]]
        if all(lacking):
            self._plan.lacking = f"{self._matrix.origin}: nothing to run: {lacking[0]}"
        self._check_ranking()
        self._remark_on_access()
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
        code = fingerprint(spec, self._catalog)
        missing = type(component).unavailable()
        if isinstance(component, Dataset):
            missing = component.absent(self._home) or missing
            code += "" if missing else self._data(component)
        named = choice.kind, spec.use
        portable = component.portable_throughout()
        return _Part(choice, component, spec, spec.identity(), code, missing, named, portable)

    def _data(self, dataset: Dataset) -> str:
        """Checksums of the data: other data makes other cells."""
        known = self._plan.data
        sums = dataset.checksums(self._home).items()
        found = {name: known.get(name) or compute() for name, compute in sums}
        said = dataset.unlike(self._home, found)
        self._plan.warnings += [new for new in said if new not in self._plan.warnings]
        known |= found
        return "".join(f"+{sum}" for sum in found.values())

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
        """Whether a rule leaves it out: each part says at once which rules it is no reason against.

        Rules are bits: going through them one by one would cost more than all else of a cell.
        """
        if not self._rules:
            return False
        left = self._rules.all_of(part.choice.kind for part in combination)
        for part in combination:
            left &= self._rules.met_by(part.choice)
        return bool(left)

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

    def _check_ranking(self) -> None:
        """Refuse a slip of the pen now: which measures plugins add is known only after a run."""
        rank_by = self._matrix.rank_by
        if rank_by not in MEASURES and (meant := get_close_matches(rank_by, MEASURES, 1, 0.7)):
            raise MatrixError(
                f"{self._matrix.origin}: [leaderboard]: rank_by: unknown measure {rank_by!r}; did "
                f"you mean {meant[0]!r}?"
            )

    def _remark_on_access(self) -> None:
        """Say where predictions can only be given, because nobody could ask for them."""
        closed = [part for part in self._parts["learner"] if _is_closed(part.component)]
        given = {
            part.choice.use
            for part in self._parts["adversary"]
            if isinstance(part.component, Adversary) and part.component.sees & _OF_THE_MODEL
            and not all(part.component.incompatible(learner.component) for learner in closed)
        }  # fmt: skip
        for name in dict.fromkeys(part.choice.use for part in closed) if given else ():
            self._plan.remarks.append(
                f"learner {name!r} must be told people's groups to predict, so black-box access to "
                f"it is impossible without knowing them; predictions are given to adversaries "
                f"({', '.join(sorted(given))})"
            )

    # The steps

    def _final_step(self, combination: tuple[_Part, ...], seed: int) -> Step:
        by_kind = {part.choice.kind: part for part in combination}
        load = self._step("load", by_kind["dataset"])
        split = self._split(load, seed)
        learner = by_kind["learner"]
        train = self._step("train", learner, (split,), seed)
        predict = self._step("predict", learner, (train, split), seed)
        if "auditor" in by_kind:
            auditor = by_kind["auditor"]
            assert isinstance(auditor.component, Auditor)
            model = (train,) if "model" in auditor.component.sees else ()
            return self._step("audit", auditor, (split, predict, *model), seed, uses=combination)
        disclose = self._step("disclose", by_kind["disclosure"], (split, predict), seed)
        adversary = by_kind["adversary"].component
        assert isinstance(adversary, Adversary)
        seen = [split]
        if "predictions" in adversary.sees:
            seen.append(predict)
        if "scores" in adversary.sees:
            seen.append(self._step("reveal", learner, (train, split), seed))
        if adversary.tunes_once:
            parts = self._split(load, _TUNED_ON)
            seen.append(self._step("tune", by_kind["adversary"], (parts,), _TUNED_ON))
        guess = self._step("guess", by_kind["adversary"], tuple(seen), seed)
        known = (split, predict, guess, disclose)
        correct = self._step("correct", by_kind["corrector"], known, seed)
        return self._step("score", None, (*known, correct), seed, uses=combination)

    def _split(self, load: Step, seed: int) -> Step:
        shares = self._matrix.shares
        return self._step("split", None, (load,), seed, (shares.train, shares.test, shares.attack))

    def _step(
        self,
        action: str,
        part: _Part | None,
        parents: tuple[Step, ...] = (),
        seed: int | None = None,
        options: tuple[float | str, ...] = (),
        uses: tuple[_Part, ...] = (),
    ) -> Step:
        identity, code = (part.identity, part.code) if part else ("", "")
        memo = (action, identity, seed, options, *(parent.key for parent in parents))
        if memo not in self._made:
            streams = [parent.stream for parent in parents]
            stream = _digest(action, identity, seed, options, *streams)
            key = _digest(stream, code, *(parent.key for parent in parents))
            spec = part.spec if part else None
            keys = tuple(parent.key for parent in parents)
            names = tuple(used.named for used in uses)
            step = Step(key, stream, action, spec, keys, options, names)
            self._made[memo] = self._plan.steps[key] = step
        return self._made[memo]


def _is_closed(component: Component) -> bool:
    return isinstance(component, Learner) and component.predicts_with_sensitive


def _digest(*parts: object) -> str:
    text = "\x1f".join(map(repr, parts))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
