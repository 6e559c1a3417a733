"""Checks of an untrusted submission: its content, its requirements, its results.

No code of a submission is imported or run. Its matrix names components that are installed here; a
sample of its cells is run again, each step in its own process with limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fpbench.base.distribution import DISTRIBUTION
from fpbench.base.errors import FpbenchError, StoreError
from fpbench.base.text import count_noun
from fpbench.components.attack_kinds import Dataset
from fpbench.components.catalog import Catalog, Entry, discover
from fpbench.components.names import Status
from fpbench.components.spec import specify
from fpbench.execution.verification import read_stored_matrix, recompute
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.limits import Limits
from fpbench.matrix.matrix import Matrix
from fpbench.store.differences import TOLERANCE
from fpbench.store.results import Results
from fpbench.store.store import Store
from fpbench.testing.laws import Outcome as LawOutcome
from fpbench.testing.submissions.folder import Submission
from fpbench.testing.submissions.lock import list_differences, list_versions, read_lock
from fpbench.testing.submissions.manifest import MANIFEST, SIGNATURE, find_changes, read_manifest
from fpbench.testing.submissions.signing import find_signer
from fpbench.testing.targets import list_entry_checks

_FEW = 5
"""Greatest number of names in a list; the rest is counted."""
_IMPORT_PATH = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)*:[A-Za-z_]\w*")
_OWN_LIMITS = Limits(timeout=600.0, memory_limit=4 * 2**30)


class CheckOutcome(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    NOTED = "note"
    """Passed, with a remark."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not possible, or not requested."""


class Finding(NamedTuple):
    """A check of a submission, and its outcome."""

    name: str
    outcome: CheckOutcome
    words: str


@dataclass(frozen=True)
class CheckOptions:
    """Options for checking a submission."""

    signers: Path | None = None
    """An allowed-signers file of OpenSSH with trusted signers; None to skip the check."""
    sample: int = 10
    """Number of cells to run again; 0 for none."""
    seed: int | None = None
    """Seed of the sample; None for a new sample each time."""
    jobs: int = 1
    kit: bool = True
    """Whether to test third-party components against the laws of their kinds."""
    limits: Limits = _OWN_LIMITS
    """Limits of a step, even if the matrix allows more."""
    max_cells: int = MAX_CELLS


@dataclass(frozen=True)
class Checkup:
    """The findings of the checks of a submission."""

    submission: Submission
    findings: tuple[Finding, ...]
    same: int = 0
    """Number of cells that were run again with the same results."""

    @property
    def passes(self) -> bool:
        """Whether no check failed."""
        return all(each.outcome is not CheckOutcome.FAILED for each in self.findings)

    @property
    def verified(self) -> bool:
        """Whether no check failed, and cells were run again with the same results."""
        return self.passes and self.same > 0

    @property
    def reason(self) -> str:
        """The first failed check, or else the last one, which runs cells again."""
        failed = (each for each in self.findings if each.outcome is CheckOutcome.FAILED)
        told = next(failed, self.findings[-1])
        return f"{told.name}: {told.words}"


def check(submission: Submission, options: CheckOptions) -> Checkup:
    """Check a submission, or a run directory, which has no manifest, signature and lock.

    `submission`: it is only read.

    Raises InputError if the file of trusted signers, or a program that reads signatures, is
    missing.
    """
    inspector = _Inspector(submission, options)
    sent: tuple[tuple[str, Callable[[], tuple[CheckOutcome, str]]], ...] = (
        ("manifest", inspector.check_manifest),
        ("signature", inspector.check_signature),
    )
    always = (
        ("run", inspector.check_run),
        ("seeds", inspector.check_seeds),
        ("lock", inspector.check_lock),
        ("limits", inspector.check_limits),
        ("data", inspector.check_data),
        ("components", inspector.check_components),
        ("kit", inspector.check_kit),
        ("recomputation", inspector.recompute),
    )
    findings: list[Finding] = []
    if not submission.is_submission:
        sent = (("signature", inspector.refuse_unsigned),) if options.signers else ()
    for name, make in (*sent, *always):
        if name == "lock" and not submission.is_submission:
            continue
        if name == "kit" and not options.kit:
            continue
        # An inconsistent run is not run again, and an unreadable one cannot be checked.
        failed = next((each.name for each in findings if each.outcome is CheckOutcome.FAILED), None)
        if failed and (name == "recomputation" or inspector.unreadable):
            findings.append(Finding(name, CheckOutcome.SKIPPED, f"because of {failed}"))
            continue
        try:
            findings.append(Finding(name, *make()))
        except FpbenchError as error:
            # Then the file of signers, or this machine, is at fault.
            if name == "signature" and not isinstance(error, StoreError):
                raise
            findings.append(Finding(name, CheckOutcome.FAILED, submission.hide_place(str(error))))
    return Checkup(submission, tuple(findings), inspector.same)


class _Inspector:
    """The checks; each gives an outcome with words, or raises an error."""

    def __init__(self, submission: Submission, options: CheckOptions) -> None:
        self._submission, self._options = submission, options
        self.unreadable = False
        """Whether the run is unreadable, or beside files that should not exist."""
        self.same = 0
        """Number of cells that were run again with the same results."""

    @cached_property
    def _results(self) -> Results:
        with Store(self._submission.run) as store:
            return store.results(keys=False)

    @cached_property
    def _environment(self) -> dict[str, Any]:
        with Store(self._submission.run) as store:
            return store.environment()

    @cached_property
    def _matrix(self) -> Matrix:
        with Store(self._submission.run) as store:
            return read_stored_matrix(store, self._options.max_cells)

    @cached_property
    def _catalog(self) -> Catalog:
        return discover()

    @cached_property
    def _manifest(self) -> tuple[bytes, dict[str, str]]:
        """The manifest, read once: signature and files are checked against the same bytes."""
        return read_manifest(self._submission.folder)

    def check_manifest(self) -> tuple[CheckOutcome, str]:
        _, checksums = self._manifest
        self.unreadable = True
        changes = find_changes(self._submission.folder, checksums)
        self.unreadable = False
        if changes:
            return CheckOutcome.FAILED, f"files differ from {MANIFEST}: {changes}"
        return CheckOutcome.PASSED, f"{len(checksums)} files match {MANIFEST}"

    def check_signature(self) -> tuple[CheckOutcome, str]:
        if self._options.signers is not None:
            content, _ = self._manifest
            signer = find_signer(self._submission.folder, content, self._options.signers)
            return CheckOutcome.PASSED, f"by {signer}"
        if (self._submission.folder / SIGNATURE).exists():
            return CheckOutcome.NOTED, "present; --signed FILE checks whose it is"
        return CheckOutcome.NOTED, "missing"

    def refuse_unsigned(self) -> tuple[CheckOutcome, str]:
        """The finding for a run directory if a signature is required."""
        return (
            CheckOutcome.FAILED,
            "a run directory has none; fpbench submit new makes a submission",
        )

    def check_run(self) -> tuple[CheckOutcome, str]:
        self.unreadable = True
        statuses = list(self._results.statuses)
        _ = self._matrix  # raises unless it is the matrix of the run
        self.unreadable = False
        done, failed = statuses.count(Status.DONE), statuses.count(Status.FAILED)
        words = f"{done:,} of {len(statuses):,} cells are done"
        if not done:
            return CheckOutcome.FAILED, words
        if failed:
            return CheckOutcome.NOTED, f"{words}, {failed:,} failed"
        return (CheckOutcome.PASSED if done == len(statuses) else CheckOutcome.NOTED), words

    def check_seeds(self) -> tuple[CheckOutcome, str]:
        """Seeds other than the first ones may have been chosen by their results."""
        seeds = np.unique(self._results.seeds).tolist()
        if not seeds:
            return CheckOutcome.SKIPPED, "no seed"
        first = [*range(len(seeds))]
        with Store(self._submission.run) as store:
            unshown = {*store.unshown_seeds} - {*seeds}
        named = {*self._matrix.seeds} - {*seeds} - unshown
        doubts = []
        if seeds != first:
            doubts.append(f"not the first {len(seeds)}, 0 to {first[-1]}: chosen by somebody")
        if named:
            doubts.append(f"its matrix names {count_noun(len(named), 'other')}, not run")
        if unshown:
            doubts.append(f"left out: {count_noun(len(unshown), 'other seed')} of the run")
        told = f"{seeds[0]} to {seeds[-1]}" if seeds == first else _name_few([*map(str, seeds)])
        words = "; ".join([f"{count_noun(len(seeds), 'seed')}, {told}", *doubts])
        return (CheckOutcome.NOTED if doubts else CheckOutcome.PASSED), words

    def check_lock(self) -> tuple[CheckOutcome, str]:
        locked, recorded = read_lock(self._submission.folder), list_versions(self._environment)
        if differences := list_differences(locked, recorded):
            return (
                CheckOutcome.FAILED,
                f"contradicts the run's record: {_name_few(differences)}",
            )
        return CheckOutcome.PASSED, f"{len(locked)} versions, as recorded by the run"

    def check_limits(self) -> tuple[CheckOutcome, str]:
        limits = self._matrix.limits.tighten(self._options.limits)
        words = f"{count_noun(len(self._results), 'cell')} of at most {self._options.max_cells:,}"
        if limits:
            words += f"; each step has its own process, limited to {limits}"
        if self._third_party:
            words += "; code of third parties has your rights: check in a container"
            return CheckOutcome.NOTED, words
        return CheckOutcome.PASSED, words

    def check_data(self) -> tuple[CheckOutcome, str]:
        """Its matrix could name any file of this user, and publish measures of it."""
        own = []
        for choice in self._matrix.axes["dataset"]:
            where = f"dataset {choice.label!r}"
            component, _ = specify(
                self._catalog, "dataset", choice.use, dict(choice.parameters), where
            )
            assert isinstance(component, Dataset)
            if any(not (file.url or file.sha256) for file in component.files):
                own.append(f"{where} reads a file named by the matrix")
        if own:
            return CheckOutcome.FAILED, f"{_name_few(own)}: nobody else can recompute it"
        count = len(self._matrix.axes["dataset"])
        return CheckOutcome.PASSED, f"{count_noun(count, 'data set')}, published or generated"

    def check_components(self) -> tuple[CheckOutcome, str]:
        used = [*self._find_entries()]
        foreign = [
            f"{entry.kind} {entry.name!r} is from {entry.source}" for entry in self._third_party
        ]
        foreign += [f"{path!r} is imported" for path in _list_import_paths(self._matrix)]
        if foreign:
            words = f"third parties' code, which --no-third-party refuses: {_name_few(foreign)}"
            return CheckOutcome.NOTED, words
        return CheckOutcome.PASSED, f"{count_noun(len(used), 'component')}, all built in"

    def check_kit(self) -> tuple[CheckOutcome, str]:
        if not self._third_party:
            return CheckOutcome.PASSED, "built-in components keep the laws of their kinds"
        broken, kept = [], 0
        for entry in self._third_party:
            for each in list_entry_checks(self._catalog, entry):
                verdict = each()
                kept += verdict.outcome is LawOutcome.KEPT
                if verdict.outcome is LawOutcome.BROKEN:
                    broken.append(f"{each} ({verdict.reason})" if verdict.reason else str(each))
        if broken:
            return CheckOutcome.FAILED, f"broken laws: {_name_few(broken)}"
        return CheckOutcome.PASSED, f"third parties' components keep {kept} laws of their kinds"

    def recompute(self) -> tuple[CheckOutcome, str]:
        options = self._options
        if not options.sample:
            return CheckOutcome.SKIPPED, "no cell was run again"
        again = recompute(
            self._submission.run, options.sample, seed=options.seed, jobs=options.jobs,
            limits=options.limits,
        )  # fmt: skip
        if again.misplaced:
            names = _name_few([ascii(name) for name in again.misplaced])
            return (
                CheckOutcome.FAILED,
                f"rows have measures that fpbench never gives to them: {names}",
            )
        if again.contradictions:
            few = _name_few([*again.contradictions], "; ")
            return CheckOutcome.FAILED, f"the run is not as its matrix: {few}"
        wrong = [_describe_wrong(each.cell, each.problem, [c.name for c in each.changes])
                 for each in again.checked if each.wrong]  # fmt: skip
        count = len(again.checked)
        if wrong:
            return CheckOutcome.FAILED, f"{len(wrong)} of {count} cells: {_name_few(wrong)}"
        self.same = sum(each.same for each in again.checked)
        if not self.same:
            return CheckOutcome.NOTED, (
                f"none of {count} cells can be compared here: they are not portable"
            )
        how = "to the last bit" if again.exact else f"within {TOLERANCE:g}"
        return CheckOutcome.PASSED, (
            f"{self.same} of {count} cells run again are the same {how} ({again.done:,} are done)"
        )

    def _find_entries(self) -> Iterator[Entry]:
        """The components that the matrix names; raises if one is not installed."""
        found: dict[tuple[str, str], Entry] = {}
        for kind, choices in self._matrix.axes.items():
            for choice in choices:
                found[kind, choice.use] = self._catalog.entry(kind, choice.use)
                for value in _walk(choice.parameters):
                    if isinstance(value, dict) and isinstance(value.get("use"), str):
                        for entry in self._catalog:
                            if entry.name == value["use"]:
                                found[entry.kind, entry.name] = entry
        yield from found.values()

    @property
    def _third_party(self) -> list[Entry]:
        with suppress(FpbenchError):  # the check of components reports it
            return [e for e in self._find_entries() if e.source.distribution != DISTRIBUTION]
        return []


def _walk(value: Any) -> Iterator[Any]:
    """A value and all nested values."""
    yield value
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(inner, str) or not hasattr(inner, "__iter__"):
        return
    for each in inner:
        yield from _walk(each)


def _list_import_paths(matrix: Matrix) -> list[str]:
    """Classes by import path, except scikit-learn's."""
    texts = (
        value
        for choices in matrix.axes.values()
        for choice in choices
        for value in _walk(choice.parameters)
        if isinstance(value, str)
    )
    matches = (_IMPORT_PATH.fullmatch(text) for text in texts)
    return list(dict.fromkeys(m[0] for m in matches if m and m[1] != "sklearn"))


def _describe_wrong(cell: str, problem: str | None, measures: list[str]) -> str:
    """The fault of a cell, without values measured here, which a page would publish."""
    if problem is not None:
        return f"{cell} could not be run again ({problem})"
    return f"{cell} differs in {_name_few(measures)}"


def _name_few(texts: list[str], between: str = ", ") -> str:
    more = len(texts) - _FEW
    return between.join(texts[:_FEW]) + (f" and {more:,} more" if more > 0 else "")
