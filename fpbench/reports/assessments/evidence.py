"""The evidence in a record of an assessment: its worlds and proofs, written and recounted."""

from __future__ import annotations

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.base.text import count_noun
from fpbench.claims.set_counts import Facts
from fpbench.correction.facts.worlds import Worlds
from fpbench.reports.assessments.input_files import ColumnNames, TableOptions, read_files
from fpbench.reports.assessments.recount import Published
from fpbench.tabular.table_files import load_content

_VERSION = 1
_ARRAYS = {"worlds": "<i2", "multipliers": "<i8", "ruled_out": "<i4", "proofs": "<i4"}
"""Arrays of a record, and their types."""
_DAMAGED = "the evidence of the record is damaged"

_Arrays = dict[str, NDArray[np.signedinteger[Any]]]


def pack_evidence(worlds: Worlds, facts: Facts) -> dict[str, Any]:
    """Worlds (W, n), and proofs by linear programs, as plain data.

    `unlisted`: number of people who have two groups in worlds, but not in these. `proofs`: (P, 3)
    group, number of multipliers, and of groups ruled out. `multipliers`: (T, 2) of
    all, the set and the multiplier times 2^30. `ruled_out`: (O, 2) of all, the person and the
    group. Sets are numbered without noisy ones. Arrays are little-endian, and compressed by zlib.
    """
    proofs, number = worlds.proofs, np.cumsum(~facts.noisy) - 1
    nothing = np.zeros((0, 2), np.int64)
    kind, shown = (
        list_published(facts).list_kinds(facts.people),
        np.zeros(worlds.seen.shape, np.bool_),
    )
    kept = []
    for place, world in enumerate(worlds.examples):
        if not shown[kind, world].all():  # it shows somebody's group that others did not
            kept.append(place)
            shown[kind, world] = True
    arrays = {
        "worlds": worlds.examples[kept],
        "proofs": np.array([(p.group, len(p.sets), len(p.people)) for p in proofs]).reshape(-1, 3),
        "multipliers": np.concatenate(
            [nothing, *(np.column_stack([number[p.sets], p.multipliers]) for p in proofs)]
        ),
        "ruled_out": np.concatenate(
            [nothing, *(np.column_stack([p.people, p.ruled_out]) for p in proofs)]
        ),
    }
    packed = {
        name: {
            "shape": list(arrays[name].shape),
            "data": b64encode(zlib.compress(arrays[name].astype(kind).tobytes())).decode(),
        }
        for name, kind in _ARRAYS.items()
    }
    listed = (shown[kind].sum(axis=1) > 1) | (worlds.seen.sum(axis=1) < 2)
    return {"version": _VERSION, "unlisted": int((~listed).sum()), **packed}


def _unpack(evidence: Mapping[str, Any], facts: Facts) -> _Arrays:
    """Arrays of a record about such facts, with numbers that occur there; InputError otherwise."""
    if evidence.get("version") != _VERSION:
        raise InputError(
            f"the evidence of the record has version {evidence.get('version')!r}, and this "
            f"fpbench reads version {_VERSION}"
        )
    arrays: _Arrays = {}
    for name, kind in _ARRAYS.items():
        try:
            content = zlib.decompress(b64decode(evidence[name]["data"]))
            arrays[name] = np.frombuffer(content, kind).reshape(evidence[name]["shape"])
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise InputError(f"{_DAMAGED}: {name}: {error}") from None
    n, k, many = facts.people, facts.groups, 2**31
    bounds: dict[str, list[float]] = {
        "worlds": [k] * n, "proofs": [k, many, many], "ruled_out": [n, k],
        "multipliers": [int((~facts.noisy).sum()), math.inf],
    }  # fmt: skip
    least = np.array([0, -math.inf])
    for name, most in bounds.items():
        array = arrays[name]
        start = least if name == "multipliers" else 0
        if array.ndim != 2 or array.shape[1] != len(most):
            raise InputError(f"{_DAMAGED}: {name}: of shape {array.shape}, not (..., {len(most)})")
        if not ((array >= start) & (array < np.array(most))).all():
            raise InputError(f"{_DAMAGED}: {name}: a number that does not occur in this assessment")
    counts = arrays["proofs"].sum(axis=0)
    if counts[1] != len(arrays["multipliers"]) or counts[2] != len(arrays["ruled_out"]):
        raise InputError(f"{_DAMAGED}: proofs: not as many multipliers and groups as they count")
    return arrays


@dataclass(frozen=True)
class Recount:
    """What a recount of the evidence in a record found.

    Attributes
    ----------
    numbers
        Number of ranges and clauses that each world was compared with.
    worlds
        Number of worlds.
    proven
        People whose group the proofs prove, as recounted.
    by_solver
        People who are proven by the record only: by integer programs, which leave nothing to
        recount.
    not_provable
        People who have two groups in worlds, counting those in which people of the same sets
        exchange their groups.
    unlisted
        People who have two groups by the record, but not in the worlds that it holds.
    undecided
        All others.
    proofs
        Number of proofs by linear programs.
    differences
        What is not as the record says, in words; empty if everything is.
    """

    numbers: int
    worlds: int
    proven: int
    by_solver: int
    not_provable: int
    unlisted: int
    undecided: int
    proofs: int
    differences: tuple[str, ...]

    @property
    def passes(self) -> bool:
        """Whether everything is as the record says."""
        return not self.differences

    def __str__(self) -> str:
        if not self.passes:
            return "\n  ".join(["The record is not right:", *self.differences])
        solved = unlisted = ""
        if self.by_solver:
            solved = (
                f"; {self.by_solver:,} more rest on the solver of integer programs, not recounted"
            )
        if self.unlisted:
            unlisted = f"; {self.unlisted:,} more in worlds that it has no room for, not recounted"
        return "\n  ".join(
            [
                "The record is right, by a recount of its worlds and proofs:",
                f"worlds: {self.worlds:,}, each with all {self.numbers:,} numbers, ranges and "
                "clauses that are published",
                f"proven: {self.proven:,} ({count_noun(self.proofs, 'proof')} by linear programs, "
                f"the rest by used-up ranges){solved}",
                f"not provable: {self.not_provable:,}, who have two groups in such worlds"
                f"{unlisted}",
                f"undecided: {self.undecided:,}",
            ]
        )


def check_evidence(record: Mapping[str, Any], facts: Facts) -> Recount:
    """Recount the worlds and proofs of a record (`Assessment.to_json`) against facts.

    Raises InputError if the record holds none, or they are damaged.
    """
    try:
        measures, evidence = record["measures"], record["evidence"]
        claimed, solved, open_ = (
            int(measures[name]) for name in ("proven", "proven_by_solver", "undecided")
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "the record holds no worlds and proofs to recount: write it with --witnesses "
            "(to_json(witnesses=True))"
        ) from None
    arrays, published = _unpack(evidence, facts), list_published(facts)
    unlisted = evidence.get("unlisted", 0)
    if not isinstance(unlisted, int) or not 0 <= unlisted <= facts.people:
        raise InputError(f"{_DAMAGED}: unlisted: {unlisted!r} is no number of its people")
    wrong = []
    for number, world in enumerate(arrays["worlds"], 1):
        if not published.allows(world):
            wrong.append(f"world {number} does not satisfy what is published")
    possible = published.propagate(np.ones((facts.people, facts.groups), np.bool_))
    terms, pairs = arrays["multipliers"], arrays["ruled_out"]
    at, out = 0, 0
    for number, (group, many, people) in enumerate(arrays["proofs"].tolist(), 1):
        proof = (group, *terms[at : at + many].T, *pairs[out : out + people].T)
        at, out = at + many, out + people
        if not published.proves(possible, *proof):
            possible = published.propagate(possible)
            if not published.proves(possible, *proof):
                wrong.append(f"proof {number} does not prove what it says")
                continue
        possible[proof[3], proof[4]] = False
    possible = published.propagate(possible)
    kind = published.list_kinds(facts.people)
    shown = np.zeros(possible.shape, np.bool_)
    for world in arrays["worlds"]:
        shown[kind, world] = True
    shown = shown[kind]
    if (shown & ~possible).any():
        wrong.append("worlds have groups that proofs rule out")
    n = facts.people
    proven, several = (
        int(count.sum()) for count in (possible.sum(axis=1) == 1, shown.sum(axis=1) > 1)
    )
    if not claimed - solved <= proven <= claimed:
        wrong.append(
            f"proven without a solver of integer programs: {claimed - solved:,} by the record, "
            f"{proven:,} by its proofs"
        )
    if several != n - claimed - open_ - unlisted:
        wrong.append(
            f"not provable: {n - claimed - open_ - unlisted:,} by the record, {several:,} by its "
            "worlds"
        )
    return Recount(
        facts.low[~facts.noisy & ~facts.derived].size + len(facts.clauses), len(arrays["worlds"]),
        proven, claimed - proven, several, unlisted, open_, len(arrays["proofs"]), tuple(wrong),
    )  # fmt: skip


def check_record(record: Path, reports: Sequence[Path] = (), people: Path | None = None) -> Recount:
    """Recount the worlds and proofs of a record against the files that it is about.

    `reports`, `people`: these files; by default those that the record names, in the working
    directory or beside the record.

    Raises InputError if the record holds no evidence, or a file is bad; DataError if it is missing.
    """
    written = load_content(record)
    try:
        content = json.loads(written)
        inputs, options = content["inputs"], content["options"]
        named = {name: str(one["file"]) for name, one in inputs.items() if name != "known"}
        names = ColumnNames(
            None if "known" in inputs else options.get("group"),
            tuple(options["prediction"]),
            options["label"],
            options["positive"],
            crossed=tuple(options.get("crossed") or ()),
            threshold=options.get("threshold"),
        )
        decimals = options["decimals"]
        tables = TableOptions(options.get("map") or {}, options.get("unit"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{record}: is no record of `fpbench assess --json`") from None
    found = {
        name: next((f for f in (Path(file), record.parent / file) if f.exists()), Path(file))
        for name, file in named.items()
    }
    people = found.pop("people") if people is None else people
    files = read_files(reports or list(found.values()), people, None, names, decimals, tables)
    changed = [
        f"{file} is not the file that the record is about: the SHA-256 differs"
        for name, file in files.paths.items()
        if inputs.get(name, {}).get("sha256") != files.checksums[name]
    ]
    if changed:
        return Recount(0, 0, 0, 0, 0, 0, 0, 0, tuple(changed))
    return check_evidence(content, files.read_reports().facts)


def list_published(facts: Facts) -> Published:
    """What is published without noise, as plain arrays."""
    hard = facts.take(~facts.noisy)
    whole = (hard.sets.indptr, hard.sets.indices, hard.low, hard.high)
    own = hard.clauses
    rows = (own.row, own.sets, own.group, own.factors, own.most, own.clause)
    return Published(*(np.asarray(array, np.int64) for array in (*whole, *rows)))
