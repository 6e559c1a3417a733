"""Similarity of people: features on a common scale, and distances to the nearest people."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError
from fpbench.base import suggest_name
from fpbench.data import Domain
from fpbench.errors import DataError
from fpbench.models import encode
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats: TypeAlias = NDArray[np.float64]

Scale: TypeAlias = Literal["declared", "range"]
"""Source of a number's scale: publicly declared bounds, or the range of people's values."""

_APART = 4.0
"""Distance between people of different categories, who are never similar: more than any tau."""


@dataclass(frozen=True, eq=False)
class ScaledPeople:
    """n people with their numbers on a scale from 0 to 1, and their categories.

    The distance of two people of equal categories is the greatest difference of their numbers.
    With different categories it is 1 or more, one-hot, which is above every tau.
    """

    names: tuple[str, ...]
    """Names of all features."""
    numbers: tuple[str, ...]
    """Names of the numeric features."""
    at: _Floats
    """(n, numbers) scaled values, column after column in memory; anything for a free number."""
    low: _Floats
    width: _Floats
    """(numbers,) scaled value = (value - low) / width."""
    scales: tuple[Scale | None, ...]
    """(numbers,) source of each scale; None for a free number, which has none."""
    words: dict[str, tuple[str, ...]]
    """The categories of each other feature."""
    codes: dict[str, Codes]
    """(n,) each person's category by number; -1 for a missing one."""
    free: frozenset[str]
    """Features that may have any value, and do not count for similarity."""

    def __len__(self) -> int:
        return len(self.at)

    def scaled(self, number: NDArray[np.intp], values: NDArray[np.float32]) -> _Floats:
        """Values (m,) of numbers (m,) on the same scale, by the same operations as people's.

        The same rounding keeps the order of values.
        """
        return np.asarray((values.astype(np.float64) - self.low[number]) / self.width[number])

    def profiles(self) -> NDArray[np.intp]:
        """Codes (n,) in 0..P-1 of each person's categories without the free features."""
        codes = np.zeros(len(self), dtype=np.int64)
        most = 1
        for name, words in self.words.items():
            if name in self.free:
                continue
            base = len(words) + 1
            if most > np.iinfo(np.int64).max // base:  # more combinations than there are numbers
                codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
                most = len(self)
            codes = codes * base + (self.codes[name] + 1)
            most *= base
        return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def scale_people(
    features: DataFrame | ArrayLike,
    *,
    domain: Domain | None = None,
    reference: DataFrame | ArrayLike | None = None,
    free: Collection[str] = (),
    names: Collection[str] = (),
) -> ScaledPeople:
    """People on a common scale.

    `features`, `reference`: n rows: a data frame of numbers, texts and categoricals, or a matrix of
    numbers. The range of the reference, by default these people, scales numbers without declared
    bounds. `domain`, `free`, `names`: declared bounds, features that may have any value, and names
    of the columns of a matrix.

    Raises InputError if there is nobody or no such free feature, or a number without bounds is
    constant; DataError if a feature is neither a number nor a categorical, or a number is missing
    or infinite.
    """
    features = to_frame_or_matrix(features)
    numbers, values, words, codes = _read_features(features, names)
    known_names = _get_names(features) if hasattr(features, "columns") else numbers
    for name in known_names:
        if known_names.count(name) > 1:
            raise InputError(f"X: two features are called {name!r}")
    if not len(values):
        raise InputError("X: is empty")
    for name in free:
        if name not in known_names:
            raise InputError(
                f"free: no feature {name!r}; {suggest_name(str(name), known_names)} A sensitive "
                "attribute that is no feature is free already"
            )
    domain = domain or Domain()
    for name, categories in words.items():  # categories that nobody has count, too
        words[name] = (
            *categories,
            *(w for w in domain.categories.get(name, ()) if w not in categories),
        )
    scale_values = values
    if reference is not None:
        reference_numbers, scale_values, *_ = _read_features(to_frame_or_matrix(reference), names)
        if reference_numbers != numbers:
            raise InputError("reference: has other numeric features than X")
    low, width, scales = _find_scales(numbers, scale_values, domain, frozenset(free))
    at = np.empty(values.shape, dtype=np.float64, order="F")
    np.subtract(values, low, out=at, dtype=np.float64)
    at /= width
    return ScaledPeople(known_names, numbers, at, low, width, scales, words, codes, frozenset(free))


def to_frame_or_matrix(X: Any) -> Any:
    """A data frame unchanged, or other input as a matrix; DataError if it is neither."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return X
    if hasattr(X, "predict"):
        raise InputError(f"X: must be people, not a {type(X).__name__}: the model comes first")
    if hasattr(X, "toarray"):
        raise InputError("X: must be a data frame, or a matrix of numbers: give X.toarray()")
    try:
        matrix = np.asarray(X)
    except ValueError:  # rows of different lengths
        raise DataError("X: must be a data frame, or a matrix of numbers") from None
    if matrix.ndim != 2:
        raise DataError(
            f"X: must be a data frame, or a matrix of numbers; it has {matrix.ndim} dimensions"
        )
    return matrix


def measure_nearest_people(
    placed: ScaledPeople, labels: Codes, most: float
) -> tuple[_Floats, _Floats]:
    """Distances (n,) to the nearest person of the other label, and to the nearest other person.

    Distances above `most` are infinite. Exact, without comparing every pair: people with equal
    features are merged, and a k-d tree of the rest, in which combinations of categories lie far
    apart, finds neighbours. Its distances are greatest differences, without rounding.
    """
    points, point_of, people, has_label = _merge_people(placed, labels)
    beyond = float(np.nextafter(most, np.inf))  # the tree takes what is less than this
    mixed = has_label[0] & has_label[1]
    other = np.where(mixed, 0.0, np.inf)
    profile = points[:, -1]
    for label in (0, 1):
        searching = has_label[label] & ~mixed
        searching &= np.isin(profile, profile[has_label[1 - label]])
        other[searching] = _query_nearest(
            points[has_label[1 - label]], points[searching], 1, beyond
        )
    anybody = np.where(people > 1, 0.0, np.inf)
    single = people == 1
    anybody[single] = _query_nearest(points, points[single], 2, beyond)
    return other[point_of], anybody[point_of]


def _query_nearest(among: _Floats, of: _Floats, which: int, beyond: float) -> _Floats:
    """Distances to the nearest (1) or second nearest (2) of some points, if less than `beyond`."""
    from scipy.spatial import cKDTree

    if not len(of) or not len(among):
        return np.full(len(of), np.inf)
    tree = cKDTree(among)
    return np.asarray(tree.query(of, k=[which], p=np.inf, distance_upper_bound=beyond)[0][:, 0])


def _merge_people(
    placed: ScaledPeople, labels: Codes
) -> tuple[_Floats, NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Distinct points (m, d), each person's point (n,), and people and labels at each point."""
    fixed_numbers = [i for i, name in enumerate(placed.numbers) if name not in placed.free]
    columns = [placed.at[:, i] for i in fixed_numbers]
    profile = placed.profiles()
    order = np.lexsort([*columns, profile])
    coordinates = np.column_stack([*columns, _APART * profile])[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (coordinates[1:] != coordinates[:-1]).any(axis=1)
    point_of = np.empty(len(order), dtype=np.intp)
    point_of[order] = np.cumsum(first) - 1
    counts = np.bincount(2 * point_of + labels, minlength=2 * int(first.sum())).reshape(-1, 2)
    return coordinates[first], point_of, counts.sum(axis=1), counts.T > 0


def _get_names(features: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in features.columns)


def _read_features(
    features: Any, names: Collection[str]
) -> tuple[tuple[str, ...], NDArray[np.float32], dict[str, tuple[str, ...]], dict[str, Codes]]:
    """Names and values of numbers, categories of the other features, and everybody's codes."""
    words: dict[str, tuple[str, ...]] = {}
    codes: dict[str, Codes] = {}
    if hasattr(features, "columns"):
        features = _sort_words(features)
        for name, column in features.select_dtypes("category").items():
            words[str(name)] = tuple(str(category) for category in column.cat.categories)
            codes[str(name)] = column.cat.codes.to_numpy().astype(np.intp)
        plain = features.select_dtypes(exclude="category")
        numbers, values = _get_names(plain), _to_single(plain)
    else:
        values = _to_single(features)
        numbers = tuple(names) or tuple(f"x{i}" for i in range(values.shape[1]))
        if len(numbers) != values.shape[1]:
            raise InputError(f"X: has {values.shape[1]} columns, not {len(numbers)}")
    for i in np.flatnonzero(~np.isfinite(values).all(axis=0)):
        raise DataError(
            f"the feature {numbers[i]!r} has missing or infinite values; fill them, or leave the "
            "feature or these people out"
        )
    return numbers, values, words, codes


def _sort_words(features: DataFrame) -> DataFrame:
    """The people, with texts turned into categoricals; DataError if a text is missing."""
    import pandas as pd

    texts = features.select_dtypes(include=["object", "string"])
    for name, column in texts.items():
        if (gaps := column.isna().to_numpy()).any():
            row = int(np.flatnonzero(gaps)[0])
            raise DataError(
                f"the feature {str(name)!r} has missing values, first in row {row}; fill them, or "
                "leave the feature or these people out"
            )
        if not all(isinstance(value, str) for value in column):
            return features  # whatever else it holds is told by the encoding
    return features.assign(**{str(name): pd.Categorical(texts[name]) for name in texts.columns})


def _to_single(features: Any) -> NDArray[np.float32]:
    """Numbers (n, numbers) of single precision, as models see them."""
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        if hasattr(features, "columns"):
            return encode(features)
        try:
            return np.asarray(features, dtype=np.float32)
        except (TypeError, ValueError):
            raise DataError("X: must be a data frame, or a matrix of numbers") from None


def _find_scales(
    numbers: tuple[str, ...], ends: NDArray[np.float32], domain: Domain, free: frozenset[str]
) -> tuple[_Floats, _Floats, tuple[Scale | None, ...]]:
    """Lower ends, widths and sources of the scales of numbers."""
    low, width = np.zeros(len(numbers)), np.ones(len(numbers))
    scales: list[Scale | None] = []
    for i, name in enumerate(numbers):
        if name in free:
            scales.append(None)
            continue
        if name in domain.bounds:
            low[i], high = domain.bounds[name]
            scales.append("declared")
        else:
            low[i], high = float(ends[:, i].min()), float(ends[:, i].max())
            scales.append("range")
        width[i] = high - low[i]
        if not width[i] > 0:
            raise InputError(
                f"the feature {name!r} is {low[i]:g} for everybody, and so has no scale that says "
                f"how similar two values are; declare its bounds, domain = {{ {name!r} = "
                "[low, high] }, or drop it, or let it be free"
            )
    return low, width, tuple(scales)
