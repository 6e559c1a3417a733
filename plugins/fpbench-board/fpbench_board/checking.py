"""Checks of a run that somebody else sent: its content, what it requires, its results.

No code of a run is imported: its matrix names components that are installed here. A sample of its
cells is run again, each step in its own process with limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import fpbench
from fpbench import FpbenchError
from fpbench.base import hide_paths
from fpbench.plugin import Status
from fpbench.testing import Outcome, checks

CheckOutcome: TypeAlias = Literal["passed", "note", "failed", "skipped"]
"""`note`: passed, with a remark. `skipped`: not possible, or not requested."""
_FEW = 5
"""Greatest number of names in a list; the rest is counted."""
_IMPORT_PATH = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)*:[A-Za-z_]\w*")


class Finding(NamedTuple):
    """A check of a run, and its outcome."""

    name: str
    outcome: CheckOutcome
    words: str


@dataclass(frozen=True)
class CheckOptions:
    """Options for checking a run."""

    sample: int = 10
    """Number of cells to run again; 0 for none."""
    seed: int | None = None
    """Seed of the sample; None for a new sample each time."""
    jobs: int = 1
    third_party: bool = True
    """Whether a run may use components of third parties."""
    kit: bool = True
    """Whether to test components of third parties against the laws of their kinds."""
    timeout: float | None = 600.0
    """Seconds that a step may take, even if the matrix allows more; None for no limit."""
    memory: float | None = 4.0
    """GiB that a step may take, even if the matrix allows more; None for no limit."""


class Checkup(NamedTuple):
    """The findings of the checks of a run."""

    findings: tuple[Finding, ...]
    same: int = 0
    """Number of cells that were run again with the same results."""
    versions: tuple[tuple[str, str, str], ...] = ()
    """Versions that differ: name, that of the run, that here."""

    @property
    def verified(self) -> bool:
        """Whether no check failed, and cells were run again with the same results."""
        return self.same > 0 and all(each.outcome != "failed" for each in self.findings)

    @property
    def reason(self) -> str:
        """The first failed check, or else the one that runs cells again."""
        again = [each for each in self.findings if each.name == "recomputation"]
        failed = [each for each in self.findings if each.outcome == "failed"]
        told = (failed + again)[0]
        return f"{told.name}: {told.words}"


def check(run: Path, options: CheckOptions) -> Checkup:
    """Check a run directory, which is only read.

    If a check fails, no cell is run again.
    """
    inspector = _Inspector(run, options)
    steps: tuple[tuple[str, Callable[[], tuple[CheckOutcome, str]]], ...] = (
        ("run", inspector.check_run),
        ("data", inspector.check_data),
        ("components", inspector.check_components),
        *((("kit", inspector.check_kit),) if options.kit else ()),
        ("recomputation", inspector.recompute),
        ("seeds", inspector.check_seeds),
    )
    findings: list[Finding] = []
    for name, make in steps:
        failed = [each.name for each in findings if each.outcome == "failed"]
        if "run" in failed or (failed and name in ("kit", "recomputation")):
            findings.append(Finding(name, "skipped", f"because of {failed[0]}"))
            continue
        try:
            findings.append(Finding(name, *make()))
        except FpbenchError as error:
            findings.append(Finding(name, "failed", inspector.hide_place(str(error))))
    return Checkup(tuple(findings), inspector.same, inspector.versions)


class _Inspector:
    """The checks; each gives an outcome with words, or raises an error."""

    def __init__(self, run: Path, options: CheckOptions) -> None:
        self._run, self._options = run, options
        self._named_seeds: tuple[int, ...] = ()
        self.same = 0
        """Number of cells that were run again with the same results."""
        self.versions: tuple[tuple[str, str, str], ...] = ()

    def hide_place(self, text: str) -> str:
        """A message without the places of this machine."""
        return hide_paths(text.replace(str(self._run), self._run.name or "."))

    @cached_property
    def _snapshot(self) -> Any:
        return fpbench.load(self._run).read(keys=False)

    def check_run(self) -> tuple[CheckOutcome, str]:
        statuses = list(self._snapshot.results.statuses)
        done, failed = statuses.count(Status.DONE), statuses.count(Status.FAILED)
        words = f"{done:,} of {len(statuses):,} cells are done"
        if not done:
            return "failed", words
        return ("passed" if done == len(statuses) else "note"), (
            f"{words}, {failed:,} failed" if failed else words
        )

    def check_data(self) -> tuple[CheckOutcome, str]:
        """Its matrix could name any file of this user, and publish measures of it."""
        choices = self._snapshot.components["dataset"]
        own = []
        for label, choice in choices.items():
            dataset: Any = fpbench.component("dataset", choice.use, **choice.parameters)
            if any(not (file.url or file.sha256) for file in dataset.files):
                own.append(f"dataset {label!r} reads a file named by the matrix")
        if own:
            return "failed", f"{_name_few(own)}: nobody else can recompute it"
        return "passed", f"{_count(len(choices), 'data set')}, published or generated"

    def check_components(self) -> tuple[CheckOutcome, str]:
        used = [*self._find_entries()]
        foreign = [
            f"{entry.kind} {entry.name!r} is from {entry.source}"
            for entry in used if _is_foreign(entry)
        ]  # fmt: skip
        foreign += [f"{path!r} is imported" for path in self._list_import_paths()]
        if not foreign:
            return "passed", f"{_count(len(used), 'component')}, all built in"
        if not self._options.third_party:
            return "failed", f"third parties' code is refused here: {_name_few(foreign)}"
        return "note", f"third parties' code, which --no-third-party refuses: {_name_few(foreign)}"

    def check_kit(self) -> tuple[CheckOutcome, str]:
        foreign = [entry for entry in self._find_entries() if _is_foreign(entry)]
        if not foreign:
            return "passed", "built-in components keep the laws of their kinds"
        broken, kept = [], 0
        for entry in foreign:
            for each in checks(fpbench.plugin.discover().component(entry.kind, entry.name)):
                verdict = each()
                kept += verdict.outcome is Outcome.KEPT
                if verdict.outcome is Outcome.BROKEN:
                    broken.append(f"{each} ({verdict.reason})" if verdict.reason else str(each))
        if broken:
            return "failed", f"broken laws: {_name_few(broken)}"
        return "passed", f"third parties' components keep {kept} laws of their kinds"

    def recompute(self) -> tuple[CheckOutcome, str]:
        options = self._options
        if not options.sample:
            return "skipped", "no cell was run again"
        memory = None if options.memory is None else int(options.memory * 2**30)
        again = fpbench.load(self._run).verify(
            options.sample, seed=options.seed, jobs=options.jobs,
            limits={"timeout": options.timeout, "memory_limit": memory},
        )  # fmt: skip
        self._named_seeds, self.versions = again.named_seeds, again.environment
        if again.misplaced:
            names = _name_few([ascii(name) for name in again.misplaced])
            return "failed", f"rows have measures that fpbench never gives to them: {names}"
        if again.contradictions:
            few = _name_few([*again.contradictions], "; ")
            return "failed", f"the run is not as its matrix: {few}"
        count = len(again.checked)
        if wrong := [_describe_wrong(each) for each in again.checked if each.wrong]:
            return "failed", f"{len(wrong)} of {count} cells: {_name_few(wrong)}"
        self.same = sum(each.same for each in again.checked)
        if not self.same:
            return "note", f"none of {count} cells can be compared here: they are not portable"
        how = "to the last bit" if again.exact else "within 1e-06"
        return "passed", (
            f"{self.same} of {count} cells run again are the same {how} ({again.done:,} are done)"
        )

    def check_seeds(self) -> tuple[CheckOutcome, str]:
        """Seeds other than the first ones may have been chosen by their results."""
        seeds = sorted(set(self._snapshot.results.seeds.tolist()))
        first, unshown = [*range(len(seeds))], {*self._snapshot.unshown_seeds} - {*seeds}
        unrun = {*self._named_seeds} - {*seeds} - unshown
        doubts = []
        if seeds != first:
            doubts.append(f"not the first {len(seeds)}, 0 to {first[-1]}: chosen by somebody")
        if unrun:
            doubts.append(f"its matrix names {_count(len(unrun), 'other')}, not run")
        if unshown:
            doubts.append(f"left out: {_count(len(unshown), 'other seed')} of the run")
        told = f"{seeds[0]} to {seeds[-1]}" if seeds == first else _name_few([*map(str, seeds)])
        words = "; ".join([f"{_count(len(seeds), 'seed')}, {told}", *doubts])
        return ("note" if doubts else "passed"), words

    def _find_entries(self) -> Iterator[Any]:
        """The components that the matrix names; raises if one is not installed."""
        catalog = fpbench.plugin.discover()
        found: dict[tuple[str, str], Any] = {}
        for kind, choices in self._snapshot.components.items():
            for choice in choices.values():
                found[kind, choice.use] = catalog.entry(kind, choice.use)
                for value in _walk(choice.parameters):
                    if isinstance(value, dict) and isinstance(value.get("use"), str):
                        inner = (entry for entry in catalog if entry.name == value["use"])
                        found |= {(entry.kind, entry.name): entry for entry in inner}
        yield from found.values()

    def _list_import_paths(self) -> list[str]:
        """Classes by import path, except scikit-learn's."""
        matches = (
            _IMPORT_PATH.fullmatch(value)
            for choices in self._snapshot.components.values()
            for choice in choices.values()
            for value in _walk(choice.parameters) if isinstance(value, str)
        )  # fmt: skip
        return list(dict.fromkeys(m[0] for m in matches if m and m[1] != "sklearn"))


def _is_foreign(entry: Any) -> bool:
    return bool(entry.source.distribution != "fpbench-toolkit")


def _walk(value: Any) -> Iterator[Any]:
    """A value and all nested values."""
    yield value
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(inner, str) and hasattr(inner, "__iter__"):
        for each in inner:
            yield from _walk(each)


def _describe_wrong(cell: Any) -> str:
    """The fault of a cell, without values measured here, which a page would publish."""
    if cell.problem is not None:
        return f"{cell.cell} could not be run again ({cell.problem})"
    return f"{cell.cell} differs in {_name_few([change.name for change in cell.changes])}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _name_few(texts: list[str], between: str = ", ") -> str:
    more = len(texts) - _FEW
    return between.join(texts[:_FEW]) + (f" and {more:,} more" if more > 0 else "")
