"""Numbers of people rounded, or perturbed by cell keys; rates are those of these numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from fpbench.base.errors import InputError
from fpbench.claims.cell_keys import find_transitions
from fpbench.claims.set_counts import Floats
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.exact_blocks import ExactBlocks
from fpbench.reports.rounding import Rounding
from fpbench.reports.rows import ReportedPeople, ReportRows
from fpbench.reports.slices import number_slices

_SECONDS = 60.0
"""Time limit of the program of controlled rounding, of each group and prediction."""


def round_rows(
    rows: ReportRows, rounding: Rounding, people: ReportedPeople | None, rng: np.random.Generator
) -> ReportRows:
    """The rows with rounded or perturbed numbers; `people` are needed by cell keys."""
    blocks = ExactBlocks.of(rows, "cell_keys" if rounding.variance else "round_to")
    counts = Counts.of(blocks)
    if rounding.variance:
        changed = _add_key_noise(counts, blocks, rounding, people, rng)
    elif rounding.way == "controlled":
        changed = _round_controlled(counts, rounding.base, rng)
    elif rounding.way == "random":
        below = counts.people // rounding.base
        up = rng.random(below.shape) < counts.people / rounding.base - below
        changed = (below + up) * rounding.base
    else:
        changed = rounding.round(counts.people)
    return replace(replace(counts, people=changed).publish(blocks), rounding=rounding)


def _round_controlled(counts: Counts, base: int, rng: np.random.Generator) -> Floats:
    """(A, K) multiples next to the numbers, such that parts sum up to wholes if all are published.

    Numbers that no sum holds are rounded at random, keeping the mean: rounding up costs a uniform
    number minus what is left over the multiple below. So every rounding that adds up may be chosen.
    Raises InputError if none was found.
    """
    sums = Sums.of(counts)
    many = len(counts.people)
    matrix = csr_array(sums.matrix)
    published = np.diff(csr_array(matrix[:, many:]).indptr) == 0
    matrix = csr_array(matrix[published][:, :many])
    below = counts.people // base
    left = counts.people / base - below
    costs = rng.random(left.shape) - left
    up = np.zeros(left.shape)
    for prediction in (0, 1):
        own = np.flatnonzero(counts.prediction == prediction)
        sides = csr_array(matrix[:, own])
        sides = csr_array(sides[np.diff(sides.indptr) > 0])
        for k in range(left.shape[1]):
            if not len(own):
                continue
            wanted = -(sides @ below[own, k])
            solved = milp(
                costs[own, k], integrality=np.ones(len(own)),
                bounds=Bounds(0, (left[own, k] > 0).astype(np.float64)),
                constraints=[LinearConstraint(sides, wanted, wanted)] if len(wanted) else [],
                options={"time_limit": _SECONDS, "mip_rel_gap": 1e-3},
            )  # fmt: skip
            if solved.x is None:
                raise InputError(
                    f"rounding controlled: no multiples of {base} next to the numbers that add up "
                    f"were found in {_SECONDS:g} s; cross fewer columns, or round at random"
                )
            up[own, k] = np.rint(solved.x)
    return np.asarray((below + up) * base)


def _add_key_noise(
    counts: Counts,
    blocks: ExactBlocks,
    rounding: Rounding,
    people: ReportedPeople | None,
    rng: np.random.Generator,
) -> Floats:
    """(A, K) numbers with the noise that the sums of their people's keys tell, by the p-table."""
    if people is None or people.groups is None:
        raise InputError(
            "cell_keys need to know everybody's group: give the parameter to from_predictions, or "
            "the people by report.with_people(X, predictions, labels, groups)"
        )
    keys = (_add_up_keys(counts, blocks, people, rng) >> np.uint64(11)) / 2.0**53
    table = find_transitions(rounding.base, rounding.variance).cumsum(axis=1)
    table[:, -1] = np.inf  # 1, up to rounding
    law = table[np.minimum(counts.people.astype(np.int64), rounding.base)]
    noise = (keys[..., None] >= law).sum(axis=2) - rounding.base
    return np.asarray(counts.people + noise)


def _add_up_keys(
    counts: Counts, blocks: ExactBlocks, people: ReportedPeople, rng: np.random.Generator
) -> NDArray[np.uint64]:
    """(A, K) hashes of the sums, mod 2^64, of the keys of the people behind each number.

    Somebody's key is a hash of the seed and of the label of the person's row.
    """
    import pandas as pd

    assert people.groups is not None
    labels = np.array(list(map(str, people.X.index)), dtype=object)
    keys = pd.util.hash_array(labels, hash_key=f"{rng.integers(2**63):016x}", categorize=False)
    codes = people.code(blocks.columns)
    own = np.column_stack([counts.cells, counts.label, counts.prediction])
    total = np.zeros(counts.people.shape, np.uint64)
    first, pattern = number_slices((own >= 0).astype(np.int64))
    for view, example in enumerate(first):
        numbers, cut = np.flatnonzero(pattern == view), np.flatnonzero(own[example] >= 0)
        _, cell = number_slices(np.concatenate([own[numbers][:, cut], codes[:, cut]]))
        number = np.full(int(cell.max()) + 1, -1)
        number[cell[: len(numbers)]] = numbers
        counted = number[cell[len(numbers) :]]
        inside = counted >= 0
        np.add.at(total, (counted[inside], people.groups[inside]), keys[inside])
    return np.asarray(pd.util.hash_array(total.ravel()).reshape(total.shape))
