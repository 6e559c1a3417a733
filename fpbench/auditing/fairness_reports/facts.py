"""Facts about groups: how many of a set of people belong to each group, as far as it is known.

The M sets overlap in any way. Of a set, the number of people of each of K groups is known exactly,
known to lie in a range, or known from a noisy measurement; a range of 0 to everybody is no
knowledge. Sets are stored once, whatever is known of how many of their groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


class ContradictionError(InputError):
    """Facts that no assignment of groups satisfies; the message names them.

    Attributes
    ----------
    names
        Names of the sets of people whose counts contradict each other.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = names = tuple(names)
        listed = "; ".join(names[:_NAMED])
        if len(names) > _NAMED:
            listed += f"; and {len(names) - _NAMED} more"
        super().__init__(
            f"these published cells contradict each other: {listed}"
            if len(names) > 1
            else f"this published cell contradicts itself or the people: {listed}"
        )


_NAMED = 6
"""Sets that a message names."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts of the groups in M sets of n people; make them by `from_counts`.

    Attributes
    ----------
    membership
        Sparse (n, M): who is in which set.
    low, high
        (M, K) least and greatest number of people of each group; equal where it is exact. Of a
        noisy set both are what was measured, and -inf and inf where nothing was.
    sigma
        (M,) standard deviation of Gaussian noise; 0 of sets without.
    scale
        (M,) scale of Laplace noise; 0 of sets without.
    derived
        (M,) whether a fact follows from others by subtraction: worth something to `propagate`
        only.
    describe
        Name of a set, by its number at the beginning.
    origin
        (M,) that number.
    """

    membership: csr_array
    low: Floats
    high: Floats
    sigma: Floats
    scale: Floats
    derived: Mask
    describe: Callable[[int], str]
    origin: NDArray[np.intp]

    @classmethod
    def from_counts(
        cls,
        members: ArrayLike | csr_array,
        low: ArrayLike,
        high: ArrayLike | None = None,
        *,
        sigma: ArrayLike = 0.0,
        scale: ArrayLike = 0.0,
        derived: ArrayLike = False,
        names: Sequence[str] | Callable[[int], str] | None = None,
    ) -> Facts:
        """Facts of counts; ranges are narrowed by what a set's size and other groups leave.

        Sets of nobody and sets that occur twice are dropped; what is known of the latter is put
        together.

        Parameters
        ----------
        members
            (n, M) who is in which set: booleans, or a sparse matrix.
        low, high
            (M, K) least and greatest number of people of each group; `high` is `low` by default.
        sigma, scale
            (M,) or a number: standard deviation of Gaussian noise, scale of Laplace noise. A set
            with either is noisy: `low` and `high` are the measurement, -inf and inf where there
            is none, and no proof rests on it.
        derived
            (M,) which follow from others by subtraction.
        names
            Names of the sets for messages.

        Raises
        ------
        ContradictionError
            If a count is less than 0 or more than a set has people.
        InputError
            If shapes differ, or noise is negative.
        """
        from scipy.sparse import csr_array, issparse

        matrix = members if issparse(members) else csr_array(np.asarray(members, dtype=np.int8))
        least = np.array(low, dtype=np.float64)
        most = least.copy() if high is None else np.array(high, dtype=np.float64)
        m = matrix.shape[1]  # type: ignore[union-attr]
        if least.ndim != 2 or least.shape != most.shape or len(least) != m or least.shape[1] < 2:
            raise InputError(
                f"low and high must be ({m}, K), a count of each group in each set, not "
                f"{least.shape} and {most.shape}"
            )
        gaussian, laplace = (
            np.broadcast_to(np.asarray(x, dtype=np.float64), m) for x in (sigma, scale)
        )
        if not all(((x >= 0) & np.isfinite(x)).all() for x in (gaussian, laplace)):
            raise InputError("sigma and scale of noise must be at least 0 and finite")
        if names is None:
            names = "set {}".format
        describe = names if callable(names) else names.__getitem__
        follows = np.broadcast_to(np.asarray(derived, dtype=np.bool_), m)
        facts = cls(matrix, least, most, gaussian, laplace, follows, describe, np.arange(m))
        return facts._merge()

    def __len__(self) -> int:
        return len(self.low)

    @property
    def people(self) -> int:
        """Number of people, n."""
        return int(self.membership.shape[0])

    @property
    def groups(self) -> int:
        """Number of groups, K."""
        return int(self.low.shape[1])

    @property
    def noisy(self) -> Mask:
        """(M,) which sets were measured with noise."""
        return (self.sigma > 0) | (self.scale > 0)

    @cached_property
    def sets(self) -> csr_array:
        """Sparse (M, n): the members of each set."""
        return self.membership.T.tocsr()

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """(M,) people of each set."""
        return np.asarray(np.diff(self.sets.indptr))

    def name(self, number: int) -> str:
        """Name of a set."""
        return self.describe(int(self.origin[number]))

    def contradiction(self, sets: Iterable[int]) -> ContradictionError:
        """The error that these sets contradict each other."""
        return ContradictionError(self.name(int(number)) for number in sets)

    def count(self, of: NDArray[Any]) -> NDArray[Any]:
        """(M, K) sums over the members of each set of (n, K) numbers."""
        return np.asarray(self.sets @ of)

    def take(self, which: ArrayLike) -> Facts:
        """These sets only: a mask or numbers of them."""
        return self._pick(np.asarray(which))

    def remove_people(self, possible: Mask) -> tuple[Facts, NDArray[np.intp]]:
        """Facts about the undecided, and their rows: the others are subtracted.

        Parameters
        ----------
        possible
            (n, K) the groups that each person may have; those with one are decided.
        """
        decided = possible.sum(axis=1) == 1
        rest = np.flatnonzero(~decided)
        gone = self.count((possible & decided[:, None]).astype(np.int32))
        left = replace(
            self, membership=self.membership[rest], low=self.low - gone, high=self.high - gone
        )
        return left._merge(), rest

    def _pick(self, which: NDArray[Any]) -> Facts:
        sets = self.sets[which]
        picked = Facts(
            sets.T.tocsr(), self.low[which], self.high[which], self.sigma[which],
            self.scale[which], self.derived[which], self.describe, self.origin[which],
        )  # fmt: skip
        picked.__dict__["sets"] = sets
        return picked

    def _merge(self) -> Facts:
        """The same with one set for each set of people, none empty, and narrow ranges."""
        self._tighten(noisy := self.noisy)
        # A sum of random numbers of its members tells a set from any other: the chance that two
        # of a million sets are confused is 2^-88.
        draws = np.random.default_rng(20260101).integers(2**63, size=(self.people, 2))
        sums = self.count(draws)
        # What was measured twice with noise was measured twice; a derived fact may repeat another.
        sums[:, 0] += np.where(noisy, np.arange(1, len(self) + 1), 0)
        order = np.lexsort((self.derived, sums[:, 1], sums[:, 0]))
        differs = (np.diff(sums[order], axis=0) != 0).any(axis=1)
        starts = np.flatnonzero(np.concatenate([[len(self) > 0], differs]))
        if len(starts):
            low = np.maximum.reduceat(self.low[order], starts, axis=0)
            high = np.minimum.reduceat(self.high[order], starts, axis=0)
            if (low > high).any():
                first = starts[np.flatnonzero((low > high).any(axis=1))[0]]
                ends = np.append(starts, len(self))
                raise self.contradiction(order[first : ends[ends > first][0]])
            self.low[order[starts]], self.high[order[starts]] = low, high
        kept = np.sort(order[starts])
        kept = kept[self.sizes[kept] > 0]
        if len(kept) == len(self):
            return self
        merged = self._pick(kept)
        merged._tighten(merged.noisy)
        return merged

    def _tighten(self, noisy: Mask) -> None:
        """Narrow the ranges, in place, to whole numbers that the sizes and other groups allow."""
        low, high, size = self.low, self.high, self.sizes[:, None].astype(np.float64)
        exact = ~noisy[:, None]
        np.ceil(low, out=low, where=exact)
        np.floor(high, out=high, where=exact)
        np.maximum(low, 0, out=low, where=exact)
        np.minimum(high, size, out=high, where=exact)
        with np.errstate(invalid="ignore"):  # of noisy sets, ends may be infinite
            for _ in range(2):
                others_low = low.sum(axis=1, keepdims=True) - low
                others_high = high.sum(axis=1, keepdims=True) - high
                np.minimum(high, size - others_low, out=high, where=exact)
                np.maximum(low, size - others_high, out=low, where=exact)
        bad = exact[:, 0] & (low > high).any(axis=1)
        if bad.any():
            raise self.contradiction(np.flatnonzero(bad)[:1])
