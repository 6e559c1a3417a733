"""A data set in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.errors import DataError
from fpbench.records import Codes, Sample

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Table:
    """A data set: everyone's features, label and group.

    Raises
    ------
    DataError
        If lengths differ, a label is not 0 or 1, a value is missing, or fewer than two groups
        have members.
    """

    name: str
    features: DataFrame
    """n rows; numeric columns and pandas categoricals; without the sensitive columns."""
    labels: Codes
    """(n,) in {0, 1}."""
    sensitive: DataFrame
    """n rows, one or more categorical columns; a person's group is their combination."""
    positive: str = "1"
    """What label 1 stands for."""

    codes: Codes = field(init=False, repr=False)
    """(n,) group codes in 0..K-1."""
    groups: tuple[str, ...] = field(init=False)
    """The K groups that have members, in the order of the categories."""

    def __post_init__(self) -> None:
        lengths = {len(self.features), len(self.labels), len(self.sensitive)}
        if len(lengths) != 1:
            raise DataError(
                f"data set {self.name!r}: features, labels and sensitive columns have "
                f"{len(self.features)}, {len(self.labels)} and {len(self.sensitive)} rows"
            )
        labels = np.asarray(self.labels)
        if not np.isin(labels, (0, 1)).all():
            raise DataError(f"data set {self.name!r}: labels must be 0 or 1")
        for frame in (self.features, self.sensitive):
            for column in frame.columns[frame.isna().any()]:
                raise DataError(f"data set {self.name!r}: column {column!r} has missing values")
        codes, groups = _cross(self.sensitive)
        if len(groups) < 2:
            raise DataError(
                f"data set {self.name!r}: the sensitive attribute "
                f"{' x '.join(map(str, self.sensitive.columns))} has one group, "
                f"{' and '.join(groups) or 'of nobody'}; an attack or audit needs at least two"
            )
        object.__setattr__(self, "labels", labels.astype(np.int8, copy=False))
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "groups", groups)

    def __len__(self) -> int:
        return len(self.labels)

    def sample(self) -> Sample:
        """Everything known of everyone."""
        return Sample(self.groups, features=self.features, labels=self.labels, sensitive=self.codes)


def _cross(columns: DataFrame) -> tuple[Codes, tuple[str, ...]]:
    """Group codes and names of the combinations of categories that have members."""
    codes: NDArray[np.intp] = np.zeros(len(columns), dtype=np.int16)
    names = [""]
    for _, column in columns.items():
        categories = column.cat.categories
        codes = codes * len(categories) + column.cat.codes.to_numpy()
        names = [f"{name} x {c}" if name else str(c) for name in names for c in categories]
    members = np.bincount(codes, minlength=len(names)) > 0
    renumbered = np.cumsum(members) - 1
    kept = tuple(name for name, any_member in zip(names, members, strict=True) if any_member)
    return renumbered.astype(np.int8)[codes], kept
