"""Canaries: synthetic people who make membership in a model's training data visible.

Everybody else has label 0 and the same features, in one corner of the domain. Canaries have label 1
and are in other corners: each alone in its cell, and mislabelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpbench import Sample

if TYPE_CHECKING:
    from pandas import DataFrame

Relation = Literal["attribute", "add-remove", "replace-one"]
Place = Literal["near", "far"]
PROBES = 5
"""Number of empty corners at which models are queried."""


@dataclass(frozen=True, eq=False)
class CanaryPool:
    """People, some of them synthetic, from whom training data are chosen."""

    people: Sample
    """n people: features, labels, groups."""
    common: NDArray[np.bool_]
    """(n,) who is always in the training data."""
    present: NDArray[np.intp]
    absent: NDArray[np.intp]
    """(m,) rows in the training data if a canary is in, and if it is out; -1 for nobody."""
    probes: NDArray[np.intp]
    """Rows that are in no training data."""

    def choose(self, included: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(B, n) training data of models, given which canaries (B, m) each has."""
        members = np.tile(self.common, (len(included), 1))
        for canary, (row, other) in enumerate(zip(self.present, self.absent, strict=True)):
            members[:, row] |= included[:, canary]
            if other >= 0:
                members[:, other] |= ~included[:, canary]
        return members


def keep_few(sample: Sample, number: int) -> Sample:
    """The same people with some of their features: the first numbers, then the first categoricals.

    A guarantee holds for any features, so a worst case may choose them.
    """
    import pandas as pd

    own = sample.features
    words = [isinstance(dtype, pd.CategoricalDtype) for dtype in own.dtypes]
    kept = own.iloc[:, np.argsort(words, kind="stable")[:number]]
    return Sample(
        sample.groups, features=kept, labels=sample.labels, sensitive=sample.sensitive,
        domain=sample.domain.only(map(str, kept.columns)), measured_cuts=sample.measured_cuts,
    )  # fmt: skip


def make_canaries(
    sample: Sample,
    people: int,
    canaries: int,
    relation: Relation,
    rng: np.random.Generator,
    *,
    place: Place,
    worst: bool,
) -> CanaryPool:
    """Synthetic people of this domain: many in one corner, and canaries in others.

    Under `add-remove` a canary is present or absent; under `replace-one` it replaces somebody with
    another person's features and label 0; under `attribute` group 1 has the canary only, or nobody.

    Parameters
    ----------
    sample
        People with features, labels and groups; the pool has their domain and groups.
    people
        Number of people without canaries, not above the size of the sample.
    canaries
        Number m of canaries.
    relation
        The neighbouring relation of the guarantee.
    rng
        Chooses people and corners.
    place
        Position of the first canary: it differs from everybody else in the last feature (`near`)
        or in all features (`far`). The others are in any corner.
    worst
        Whether everybody else is in one corner and has label 0; otherwise they are people of the
        sample, as a learner without a guarantee may refuse the former.
    """
    import pandas as pd

    known = sample.only(frozenset({"features", "labels", "sensitive"}))
    chosen = known.take(rng.permutation(len(sample))[: min(people, len(sample))])
    n = len(chosen)
    corner_rows, corner = _make_corners(chosen, canaries + PROBES, place, rng)
    corners, probes = corner_rows.iloc[:canaries], corner_rows.iloc[canaries:]
    common = corner.iloc[np.zeros(n, np.intp)] if worst else chosen.features
    ones, zeros = np.ones(canaries, np.int8), np.zeros(canaries, np.int8)
    labels = np.zeros(n, np.int8) if worst else chosen.labels
    sensitive = chosen.sensitive
    added = [(corners, ones, zeros)]
    if relation == "attribute":
        sensitive = np.zeros(n, np.int8)
        added = [(corners, ones, zeros + 1), (corners, ones, zeros)]
    elif relation == "replace-one":
        double = common.iloc[np.arange(canaries) % n]
        added.append((double, zeros, zeros))
    absent = n + canaries + np.arange(canaries) if len(added) > 1 else np.full(canaries, -1)
    nothing = np.zeros(PROBES, np.int8)
    added.append((probes, nothing, nothing))
    features = pd.concat([common, *(each for each, _, _ in added)], ignore_index=True)
    pool = chosen.having(
        features=features,
        labels=np.concatenate([labels, *(each for _, each, _ in added)]),
        sensitive=np.concatenate([sensitive, *(each for _, _, each in added)]),
    )
    total = np.arange(len(features))
    return CanaryPool(pool, total < n, n + np.arange(canaries), absent, total[-PROBES:])


def _make_corners(
    sample: Sample, count: int, place: Place, rng: np.random.Generator
) -> tuple[DataFrame, DataFrame]:
    """Features of canaries, and of everybody else, (1, columns).

    Everybody else has every number at its lower bound and the most frequent categories. The first
    canary has numbers at their upper bounds and the rarest categories, in all features or, if
    `near`, in the last number and the last category; the others are random.
    """
    import pandas as pd

    features = sample.features
    numeric = [not isinstance(dtype, pd.CategoricalDtype) for dtype in features.dtypes]
    last = {len(numeric) - 1 - numeric[::-1].index(kind) for kind in set(numeric)}
    canaries, others = {}, {}
    for position, (name, column) in enumerate(features.items()):
        differs = place == "far" or position in last
        if isinstance(column.dtype, pd.CategoricalDtype):
            k = len(column.cat.categories)
            counts = np.bincount(column.cat.codes[column.cat.codes >= 0], minlength=k)
            codes: NDArray[np.int64] = rng.integers(0, k, count)
            usual = int(counts.argmax())
            rarest = int(k - 1 - counts[::-1].argmin())
            codes[0] = rarest if differs else usual
            canaries[name] = pd.Series(pd.Categorical.from_codes(codes, dtype=column.dtype))
            others[name] = pd.Series(pd.Categorical.from_codes([usual], dtype=column.dtype))
            continue
        numbers = column.to_numpy(np.float64)
        low, high = sample.domain.bounds.get(str(name), (numbers.min(), numbers.max()))
        values = np.asarray(np.where(rng.random(count) < 0.5, high, low), np.float64)
        values[0] = high if differs else low
        canaries[name] = pd.Series(values).astype(column.dtype)
        others[name] = pd.Series([low]).astype(column.dtype)
    return pd.DataFrame(canaries), pd.DataFrame(others)


def find_public(model: Any, row: int, members: NDArray[np.bool_]) -> bool:
    """Whether a model marks a person of the pool as public, outside its guarantee."""
    public = getattr(model, "public_rows", None)
    if public is None or row < 0 or not members[row]:
        return False
    return bool(np.isin(np.count_nonzero(members[:row]), np.asarray(public)))
