"""A data set in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import check_same_rows
from fpbench.base.errors import DataError, InputError
from fpbench.data.domain import Domain
from fpbench.data.sample import Codes, Sample

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@dataclass(frozen=True)
class DatasetFacts:
    """Facts about the original of a data set, with default parameters.

    Attributes
    ----------
    rows
        Number of people, without dropped ones.
    features
        Number of feature columns.
    label
        Meaning of label 1.
    label_rate
        Share of people with label 1.
    groups
        Names of the groups.
    source
        Its source, as a citation or an address.
    licence
        Terms of use.
    dropped
        Dropped rows and columns of the original, and why.
    """

    rows: int
    features: int
    label: str
    label_rate: float
    groups: tuple[str, ...]
    source: str
    licence: str
    dropped: str


@dataclass(frozen=True, eq=False)
class Table:
    """A data set: everyone's features, label and group.

    Attributes
    ----------
    name
        Name of the data set.
    features
        n rows; numeric columns and pandas categoricals; without the sensitive columns.
    labels
        (n,) in {0, 1}.
    sensitive
        n rows, one or more categorical columns; a person's group is their combination.
    positive
        Meaning of label 1.
    test
        (n,) who is in the test set that the data's authors published; None if there is none.
    domain
        Public domain of the features.
    measured_cuts
        How `labels` or `sensitive` were cut at a statistic of these people, in words ("column 'age'
        is cut at its median"); private learners and audits refuse such a table.
    group_chances
        (n, K) exact probabilities of the groups given features and labels, for synthetic data of
        known distribution; None for real data. No component sees them: they bound the accuracy
        of any guess.
    households
        (n,) number of each person's household, whose members' groups depend on each other's; None:
        everybody lives alone. No component sees them.

    Raises
    ------
    DataError
        If lengths differ, a label is not 0 or 1, a value is missing, fewer than two groups have
        members, or chances are not probabilities of these groups.
    """

    name: str
    features: DataFrame
    labels: Codes
    sensitive: DataFrame
    positive: str = "1"
    test: NDArray[np.bool_] | None = field(default=None, repr=False)
    domain: Domain = field(default_factory=Domain, repr=False)
    measured_cuts: Mapping[str, str] = field(default_factory=dict, repr=False)
    group_chances: NDArray[np.float64] | None = field(default=None, repr=False)
    households: NDArray[np.int64] | None = field(default=None, repr=False)

    codes: Codes = field(init=False, repr=False)
    """(n,) group codes in 0..K-1."""
    groups: tuple[str, ...] = field(init=False)
    """The K groups that have members, in the order of the categories."""

    def __post_init__(self) -> None:
        lengths = {len(self.features), len(self.labels), len(self.sensitive)}
        lengths |= {len(rows) for rows in (self.test, self.households) if rows is not None}
        if len(lengths) != 1:
            raise DataError(
                f"data set {self.name!r}: features, labels and sensitive columns have "
                f"{len(self.features)}, {len(self.labels)} and {len(self.sensitive)} rows"
            )
        try:
            check_same_rows(features=self.features, labels=self.labels, sensitive=self.sensitive)
        except InputError as error:
            raise DataError(f"data set {self.name!r}: {error}") from None
        labels = np.asarray(self.labels)
        if not np.isin(labels, (0, 1)).all():
            raise DataError(f"data set {self.name!r}: labels must be 0 or 1")
        for frame in (self.features, self.sensitive):
            for column in frame.columns[frame.isna().any()]:
                raise DataError(f"data set {self.name!r}: column {column!r} has missing values")
        for attribute, values in self.sensitive.items():
            if not hasattr(values, "cat"):
                raise DataError(
                    f"data set {self.name!r}: sensitive column {attribute!r} must be categorical: "
                    'pass .astype("category")'
                )
        codes, groups = _cross(self.sensitive, self.name)
        if len(groups) < 2:
            raise DataError(
                f"data set {self.name!r}: the sensitive attribute "
                f"{' x '.join(map(str, self.sensitive.columns))} has one group, "
                f"{' and '.join(groups) or 'of nobody'}; an attack or audit needs at least two"
            )
        self._check_chances(len(groups))
        object.__setattr__(self, "labels", labels.astype(np.int8, copy=False))
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "groups", groups)

    def _check_chances(self, k: int) -> None:
        chances = self.group_chances
        if chances is None:
            return
        if chances.shape != (len(self), k):
            raise DataError(
                f"data set {self.name!r}: group_chances must be ({len(self)}, {k}), a probability "
                f"of each group for each person, not {chances.shape}"
            )
        # Not `chances < 0`: comparisons of NaN are false.
        if not ((chances >= 0).all() and (np.abs(chances.sum(axis=1) - 1) <= 1e-9).all()):
            raise DataError(
                f"data set {self.name!r}: the group_chances of each person must be probabilities "
                "that add up to 1"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def digest(self) -> str:
        """SHA-256 checksum of values, names and types."""
        digest = hashlib.sha256(repr((self.name, self.positive)).encode())
        digest.update(self.labels.tobytes())
        if self.test is not None:
            digest.update(np.asarray(self.test, dtype=np.bool_).tobytes())
        if self.domain:
            digest.update(repr(self.domain.to_lists()).encode())
        if self.measured_cuts:
            digest.update(repr(sorted(self.measured_cuts.items())).encode())
        if self.group_chances is not None:
            digest.update(np.ascontiguousarray(self.group_chances, dtype="<f8").tobytes())
        if self.households is not None:
            digest.update(np.ascontiguousarray(self.households, dtype="<i8").tobytes())
        for frame in (self.features, self.sensitive):
            digest.update(repr((frame.shape, list(map(str, frame.columns)))).encode())
            for _, column in frame.items():
                digest.update(_to_bytes(column))
        return digest.hexdigest()

    def sample(self) -> Sample:
        """A sample of all columns of everybody."""
        return Sample(
            self.groups, features=self.features, labels=self.labels, sensitive=self.codes,
            group_chances=self.group_chances, households=self.households, domain=self.domain,
            measured_cuts=self.measured_cuts,
            secret=" and ".join(map(str, self.sensitive.columns)),
        )  # fmt: skip


_MOST_GROUPS = 127
"""Group codes fit into one signed byte."""


def _to_bytes(column: Series) -> bytes:
    """A column's values and type as bytes, the same in every process."""
    values = column.array
    if hasattr(values, "categories"):
        names = [str(category) for category in values.categories]
        codes = np.asarray(values.codes, dtype="<i4")
        return repr(("categories", names, bool(values.ordered))).encode() + codes.tobytes()
    numbers = column.to_numpy()
    if numbers.dtype == object:  # its bytes are addresses
        return repr(("objects", numbers.tolist())).encode()
    order = numbers.dtype.newbyteorder("<")
    return order.str.encode() + numbers.astype(order, copy=False).tobytes()


def _cross(columns: DataFrame, name: str) -> tuple[Codes, tuple[str, ...]]:
    """Group codes and names of the combinations of categories that have members."""
    codes: Codes = np.zeros(len(columns), dtype=np.int32)
    names = [""]
    for _, column in columns.items():
        categories = column.cat.categories
        size = len(categories)
        codes = codes.astype(np.int32) * size + column.cat.codes.to_numpy()
        # Drop empty combinations early: those of many columns may not fit into memory.
        members = np.bincount(codes, minlength=len(names) * size) > 0
        present = np.flatnonzero(members).tolist()
        if len(present) > _MOST_GROUPS:  # another column cannot reduce them
            crossed = " x ".join(map(str, columns.columns))
            raise DataError(
                f"data set {name!r}: the sensitive attribute {crossed} has more than "
                f"{_MOST_GROUPS} groups"
            )
        pairs = [(names[i // size], categories[i % size]) for i in present]
        names = [f"{group} x {c}" if group else str(c) for group, c in pairs]
        codes = (np.cumsum(members) - 1).astype(np.int8)[codes]
    if len(set(names)) < len(names):
        twice = next(group for group in names if names.count(group) > 1)
        raise DataError(
            f"data set {name!r}: {names.count(twice)} groups would have the name {twice!r}; rename "
            "values of the sensitive columns"
        )
    return codes.astype(np.int8), tuple(names)
