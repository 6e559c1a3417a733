"""Facts about groups: how many people of a set belong to each group, as far as it is known.

The M sets may overlap. The number of people of each of K groups in a set is known exactly, known to
lie in a range, or known from a noisy measurement; a range of 0 to everybody is no knowledge. Each
set is stored once for all groups, and lies in a table of disjoint sets, as published ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_pairs, check_whole_number, to_array, to_floats
from fpbench.base.errors import InputError
from fpbench.claims.clauses import NO_CLAUSES, Clauses
from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import LinearConstraint
from fpbench.claims.count_laws import (
    CELL_KEY,
    EXACT,
    EXPONENTIAL,
    GAUSSIAN,
    LAPLACE,
    LAWS,
    ROUNDING,
    CountLaws,
    find_stand_ins,
    is_bounded,
    weigh_number,
)
from fpbench.claims.set_tables import Integers, SetTable, list_members, pack_sets

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


_SURE = 30.0
"""Log-likelihood ratio of two counts at which the less likely one is left out."""
_LEAST_VARIANCE = 0.01
"""Of the normal noise that stands for less noise of cell keys: programs need some."""
_NAMED = 6
"""Most sets that a message names."""


@dataclass(frozen=True, eq=False)
class Facts(Constraint):
    """Counts of the groups in M sets of n people; make them by `from_counts` or `from_tables`.

    Attributes
    ----------
    tables
        Membership: tables of disjoint sets.
    people
        Number of people, n.
    low, high
        (M, K) least and greatest number of people of each group; equal where it is exact. In a
        noisy set both are the measurement, or -inf and inf where there is none.
    laws
        How likely what is published is, given the true numbers.
    derived
        (M,) whether a fact follows from others by subtraction: worth something to `propagate`
        only.
    describe
        Gives the name of a set by its original number.
    origin
        (M,) original number of each set.
    repeats
        By number of a set whose range was narrowed by others of the same people: their numbers.
    clauses
        What is known of the counts beyond their ranges.
    loose
        Whether more is known than ranges and clauses say: groups that they allow may be impossible.
    group_names
        Names of the K groups in their order, if they have any.
    """

    tables: tuple[SetTable, ...]
    people: int
    low: Floats
    high: Floats
    laws: CountLaws
    derived: Mask
    describe: Callable[[int], str]
    origin: NDArray[np.intp]
    repeats: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    clauses: Clauses = NO_CLAUSES
    loose: bool = False
    group_names: tuple[str, ...] = ()

    @classmethod
    @check_arguments
    def from_counts(
        cls,
        members: ArrayLike | csr_array,
        low: ArrayLike,
        high: ArrayLike | None = None,
        *,
        sigma: ArrayLike = 0.0,
        scale: ArrayLike = 0.0,
        laws: CountLaws | None = None,
        derived: ArrayLike = False,
        names: Sequence[str] | Callable[[int], str] | None = None,
    ) -> Facts:
        """Facts of counts; ranges are narrowed to what a set's size and other groups allow.

        Empty sets are dropped; equal sets are merged, with all that is known of them.

        Parameters
        ----------
        members
            (n, M) membership of people in sets: booleans, or a sparse matrix.
        low, high
            (M, K) least and greatest number of people of each group; `high` is `low` by default.
        sigma, scale
            (M,) or a number: standard deviation of Gaussian noise, scale of Laplace noise. A set
            with either is noisy: `low` and `high` are the measurement, -inf and inf where there
            is none, and no proof rests on it.
        laws
            Laws of all sets, instead of `sigma` and `scale`. Of numbers rounded at random, `low`
            and `high` are the ends of the range that they leave.
        derived
            (M,) whether a fact follows from others by subtraction.
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

        matrix: Any = members if issparse(members) else to_array("members", members)
        if matrix.ndim != 2:
            raise InputError("members must be (n, M), who is in which set")
        if not issparse(matrix):
            if matrix.dtype != np.bool_ and not np.isin(matrix, (0, 1)).all():
                raise InputError("members must be 0 or 1, or true or false")
            matrix = csr_array(np.asarray(matrix, np.int8))
        n, m = matrix.shape
        ends = _check_ends(low, high, m)
        return cls._of(pack_sets(csr_array(matrix)), n, *ends, sigma, scale, laws, derived, names)

    @classmethod
    @check_arguments
    def from_tables(
        cls,
        tables: Sequence[tuple[Integers, int]],
        low: ArrayLike,
        high: ArrayLike | None = None,
        *,
        sigma: ArrayLike = 0.0,
        scale: ArrayLike = 0.0,
        laws: CountLaws | None = None,
        derived: ArrayLike = False,
        names: Sequence[str] | Callable[[int], str] | None = None,
        clauses: Clauses = NO_CLAUSES,
    ) -> Facts:
        """Facts of counts in tables of disjoint sets, as in crossings of columns.

        Takes little memory: a byte a person and table, if it has fewer than 128 sets.

        Parameters
        ----------
        tables
            For each table (n,) codes, the set of each person from 0 or -1 for none, and its number
            of sets; the M sets of all are numbered in this order.
        low, high, sigma, scale, laws, derived, names
            As in `from_counts`.
        clauses
            What is known of the counts beyond their ranges.

        Raises
        ------
        ContradictionError
            If a count is less than 0 or more than a set has people.
        InputError
            If shapes differ, a code is out of range, or noise is negative.
        """
        check_pairs("tables", tables, "pairs of codes and a number of sets")
        n = np.size(tables[0][0]) if len(tables) else 0
        stored, first = [], 0
        for place, (codes, size) in enumerate(tables):
            check_whole_number(f"table {place}: the number of sets", size, 0)
            member = np.asarray(codes)
            if member.shape != (n,) or not np.issubdtype(member.dtype, np.signedinteger):
                raise InputError(f"table {place}: codes must be {n} whole numbers, one a person")
            if n and not (member.min() >= -1 and member.max() < size):
                raise InputError(
                    f"table {place}: codes must be -1 to {size - 1}, not {member.min()} to "
                    f"{member.max()}"
                )
            stored.append(SetTable.of(member, np.arange(first, first + size)))
            first += size
        ends = _check_ends(low, high, first)
        return cls._of(tuple(stored), n, *ends, sigma, scale, laws, derived, names, clauses)

    @classmethod
    def _of(
        cls,
        tables: tuple[SetTable, ...],
        people: int,
        low: Floats,
        high: Floats,
        sigma: ArrayLike,
        scale: ArrayLike,
        laws: CountLaws | None,
        derived: ArrayLike,
        names: Sequence[str] | Callable[[int], str] | None,
        clauses: Clauses = NO_CLAUSES,
    ) -> Facts:
        m = len(low)
        gaussian, laplace = (
            to_floats(name, _repeat(name, noise, m))
            for name, noise in (("sigma", sigma), ("scale", scale))
        )
        if not all(((x >= 0) & np.isfinite(x)).all() for x in (gaussian, laplace)):
            raise InputError("sigma and scale of noise must be at least 0 and finite")
        if laws is None:
            if ((gaussian > 0) & (laplace > 0)).any():
                raise InputError("a set has noise of one law: sigma or scale must be 0")
            kind = np.where(gaussian > 0, GAUSSIAN, np.where(laplace > 0, LAPLACE, EXACT))
            laws = CountLaws.of(kind, gaussian + laplace, low.shape[1])
        laws.check(*low.shape)
        if names is None:
            names = "set {}".format
        describe = names if callable(names) else names.__getitem__
        follows = to_array("derived", _repeat("derived", derived, m), "b")
        return cls(
            tables, people, low, high, laws, follows, describe, np.arange(m), clauses=clauses
        )._merge()

    @classmethod
    @check_arguments
    def join(cls, parts: Sequence[Facts]) -> Facts:
        """All facts of several, about the same people and groups; sets that repeat are merged.

        Parameters
        ----------
        parts
            One or more.

        Raises
        ------
        ContradictionError
            If two of them differ about the same set.
        """
        if not len(parts):
            raise InputError("there are no facts to join")
        if len(parts) == 1:
            return parts[0]
        for part in parts:
            part.check(parts[0].people, parts[0].groups)
        first = np.cumsum([0, *map(len, parts)])
        low, high, derived = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("low", "high", "derived")
        )
        tables = tuple(
            replace(table, numbers=table.numbers + shift)
            for part, shift in zip(parts, first, strict=False)
            for table in part.tables
        )
        return cls(
            tables, parts[0].people, low, high, CountLaws.join([p.laws for p in parts]), derived,
            partial(_name_set, tuple(parts), first), np.arange(first[-1]),
            clauses=Clauses.join([
                part.clauses.renumber(np.arange(at, at + len(part)))
                for part, at in zip(parts, first, strict=False)
            ]),
            loose=any(part.loose for part in parts),
            group_names=parts[0].group_names,
        )._merge()  # fmt: skip

    @check_arguments
    def rename(self, describe: Callable[[str], str]) -> Facts:
        """The same facts, with other names of sets.

        Parameters
        ----------
        describe
            The new name, by the old.
        """
        return replace(self, describe=partial(_rename, self.describe, describe))

    @check_arguments
    def over(self, rows: ArrayLike, people: int) -> Facts:
        """The same facts about more people, of whom those in other rows are in no set.

        Parameters
        ----------
        rows
            (n,) row of each person among all, each once.
        people
            Number of all.

        Raises
        ------
        InputError
            If rows are not (n,) different ones of these.
        """
        place = np.asarray(rows)
        if (
            place.shape != (self.people,)
            or not np.issubdtype(place.dtype, np.integer)
            or len(np.unique(place)) < len(place)
            or (len(place) and not (place.min() >= 0 and place.max() < people))
        ):
            raise InputError(
                f"rows must be {self.people} different ones of 0 to {people - 1}, one a person"
            )
        tables = tuple(table.put_among(place.astype(np.intp), people) for table in self.tables)
        return replace(self, tables=tables, people=people)

    word = "counts"
    labels = ()

    @check_arguments
    def check(self, people: int, groups: int) -> None:
        """Raise InputError if they are about other people or groups."""
        if (people, groups) != (self.people, self.groups):
            raise InputError(
                f"facts: about {self.people} people of {self.groups} groups, not {people} of "
                f"{groups}"
            )

    def __len__(self) -> int:
        return len(self.low)

    @property
    def groups(self) -> int:
        """Number of groups, K."""
        return int(self.low.shape[1])

    @property
    def ranges_alone(self) -> bool:
        """Whether nothing is known beyond ranges, noisy counts aside."""
        return not (len(self.clauses) or self.loose)

    @cached_property
    def noisy(self) -> Mask:
        """(M,) whether a set was measured with noise."""
        return np.asarray((self.laws.kind != EXACT) & ~is_bounded(self.laws.kind))

    @property
    def sigma(self) -> Floats:
        """(M,) standard deviation of Gaussian noise; 0 of sets without."""
        return np.where(self.laws.kind == GAUSSIAN, self.laws.width, 0.0)

    @property
    def scale(self) -> Floats:
        """(M,) scale of Laplace noise; 0 of sets without."""
        return np.where(self.laws.kind == LAPLACE, self.laws.width, 0.0)

    @check_arguments
    def weigh(self, number: int, counts: NDArray[np.integer]) -> Floats:
        """Log-likelihoods (T,) of what is published of a set, up to a constant.

        `counts`: (T, K) possible numbers of its people of each group.
        """
        low, high, size = self.low[number], self.high[number], int(self.sizes[number])
        kind, width = int(self.laws.kind[number]), float(self.laws.width[number])
        logs = np.zeros(len(counts))
        noisy = bool(self.noisy[number])
        published = low if noisy else self.laws.rounded[number]
        if not noisy:
            logs[~((counts >= low) & (counts <= high)).all(axis=1)] = -np.inf
        if kind != EXACT:
            for k in np.flatnonzero(np.isfinite(published)):
                logs += weigh_number(kind, width, float(published[k]), counts[:, k], size)
        return logs

    def weigh_sets(
        self,
        numbers: Sequence[int],
        count: Callable[[int], NDArray[np.integer]],
        identify: Callable[[int], NDArray[np.integer]],
    ) -> Floats:
        """Log-likelihoods (T,) of what is published of several sets, up to a constant.

        As `weigh` of each, but that the same people of a group have the same noise by cell keys, in
        whatever sets they are counted.

        Parameters
        ----------
        numbers
            The sets.
        count, identify
            By set, (T, K) possible numbers of its people of each group; and whole numbers that are
            equal where these are the same people.
        """
        logs: Floats = np.zeros(1)
        earlier: list[tuple[Floats, NDArray[np.integer]]] = []
        for number in numbers:
            counts, kind = count(number), int(self.laws.kind[number])
            if kind < CELL_KEY:
                logs = logs + self.weigh(number, counts)
                continue
            published, people = self.laws.rounded[number], identify(number)
            inside = (counts >= self.low[number]) & (counts <= self.high[number])
            logs = logs + np.where(inside.all(axis=1), 0.0, -np.inf)
            width, size = float(self.laws.width[number]), int(self.sizes[number])
            for k in np.flatnonzero(np.isfinite(published)):
                own = weigh_number(kind, width, float(published[k]), counts[:, k], size)
                for others, who in earlier:
                    if np.isfinite(others[k]):
                        told = 0.0 if others[k] == published[k] else -np.inf
                        own = np.where(who[:, k] == people[:, k], told, own)
                logs = logs + own
            earlier.append((published, people))
        return logs

    def list_sums(self) -> list[LinearConstraint]:
        """The facts as sums over the people of a group, for correctors that know individuals.

        Noisy numbers forbid nothing, and have none; nor have clauses of several rows or groups.
        """
        sums = []
        used = ~self.noisy & ~self.derived
        bound = (self.low > 0) | (self.high < self.sizes[:, None])
        for number, group in np.argwhere(used[:, None] & bound).tolist():
            if group or self.groups > 2:  # with two groups, one count tells the other
                inside = np.zeros(self.people)
                inside[self.sets[[number]].indices] = 1.0
                ends = float(self.low[number, group]), float(self.high[number, group])
                sums.append(LinearConstraint(group, inside, *ends))
        own = self.clauses.keep_single()
        for row in range(len(own)):
            terms = slice(*np.searchsorted(own.row, [row, row + 1]))
            sets, groups = own.sets[terms], own.group[terms].tolist()
            if len(set(groups)) == 1:
                weights = own.factors[terms].astype(float) @ self.sets[sets].astype(float)
                sums.append(LinearConstraint(groups[0], weights, high=float(own.most[row])))
        return sums

    def settle_noise(self) -> Facts:
        """The same with exact counts where noise is so small that it left them, almost surely.

        The next whole number is then e^30 times less likely. No proof may rest on them.
        """
        kind, width, _ = self.laws
        told = self.low
        if self.groups == 2:  # one number tells the other
            told = np.where(np.isfinite(told), told, self.sizes[:, None] - told[:, ::-1])
        with np.errstate(invalid="ignore", divide="ignore"):  # without a measurement
            counts = np.rint(told)
            near = 1 - 2 * np.abs(told - counts).max(axis=1)
            lead = near / np.where(kind == GAUSSIAN, 2 * width**2, width)
        sure = self.noisy & (lead > _SURE) & (counts >= 0).all(axis=1)
        sure &= counts.sum(axis=1) == self.sizes
        low, high = (np.where(sure[:, None], counts, end) for end in (self.low, self.high))
        laws = self.laws._replace(kind=np.where(sure, EXACT, kind).astype(np.int8))
        return replace(self, low=low, high=high, laws=laws) if sure.any() else self

    def soften(self) -> Facts:
        """The same with Gaussian or Laplace noise of the same spread in place of other laws.

        A number rounded at random to multiples of m leaves true ones that are distributed about it
        with the variance (m^2 - 1) / 6, if all were equally likely before.
        """
        kind, width, rounded = self.laws
        low, high = self.low.copy(), self.high.copy()
        rows = np.flatnonzero(is_bounded(kind) & (low < high).any(axis=1))
        rows = rows[np.isfinite(rounded[rows]).any(axis=1)]
        middle = rounded[rows]
        times = np.ones(len(rows))
        if self.groups == 2:  # both groups' numbers measure one count
            both = np.stack([middle[:, 1], self.sizes[rows] - middle[:, 0]])
            times = np.isfinite(both).sum(axis=0)
            middle = np.stack([np.full(len(rows), np.nan), np.nansum(both, axis=0) / times], axis=1)
        middle = np.clip(middle, low[rows], high[rows])
        low[rows] = np.where(np.isnan(middle), -np.inf, middle)
        high[rows] = np.where(np.isnan(middle), np.inf, middle)
        variance = np.where(kind == ROUNDING, (width**2 - 1) / 6, width)[rows]
        kind, width = kind.copy(), width.copy()
        kind[rows], width[rows] = GAUSSIAN, np.sqrt(np.maximum(variance / times, _LEAST_VARIANCE))
        for law in np.unique(kind[(kind >= EXPONENTIAL) & (kind < CELL_KEY)]).tolist():
            own = np.flatnonzero(kind == law)
            squared = LAWS[law] == "exponential-squared"
            scale = find_stand_ins(law, width[own], self.sizes[own])
            width[own] = np.sqrt(width[own] / 2) if squared else scale
            kind[own] = GAUSSIAN if squared else LAPLACE
        return replace(self, low=low, high=high, laws=CountLaws(kind, width, rounded))

    @cached_property
    def sets(self) -> csr_array:
        """Sparse (M, n): the members of each set."""
        return list_members(self.tables, self.people, len(self))

    @cached_property
    def membership(self) -> csr_array:
        """Sparse (n, M): the sets of each person."""
        return self.sets.T.tocsr()

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """(M,) people of each set."""
        return self.count(None)

    @check_arguments
    def name(self, number: int) -> str:
        """Name of a set; of one whose range others narrowed, their names, too."""
        if not 0 <= number < len(self):
            raise InputError(f"there is no set {number}: their numbers are 0 to {len(self) - 1}")
        origin = int(self.origin[number])
        return " and ".join(map(self.describe, (origin, *self.repeats.get(origin, ()))))

    @check_arguments
    def contradiction(self, sets: Iterable[int]) -> ContradictionError:
        """The error that these sets contradict each other."""
        numbers = to_array("sets", list(sets), "biu").ravel().tolist()
        return ContradictionError(dict.fromkeys(map(self.name, numbers)))

    @check_arguments
    def count(self, of: NDArray[Any] | None) -> NDArray[Any]:
        """Sums of (n,) or (n, K) numbers over the members of each set, (M,) or (M, K); else sizes.

        Whole numbers, modulo 2^64, if they are whole.
        """
        if of is not None and of.shape[:1] != (self.people,):
            raise InputError(f"numbers must be {self.people}, one a person, not {of.shape}")
        columns = [None] if of is None else [of] if of.ndim == 1 else list(of.T)
        whole = of is None or not np.issubdtype(of.dtype, np.floating)
        total = np.zeros((len(self), len(columns)), np.int64 if whole else np.float64)
        for column, weights in enumerate(columns):
            for shift, part in [(0, weights)] if not whole else self._split_digits(weights):
                for table in self.tables:
                    sums = table.add_up(part)
                    total[table.numbers, column] += (
                        sums.astype(np.int64) << shift if whole else sums
                    )
        return total[:, 0] if of is None else total.reshape(len(self), *of.shape[1:])

    def _split_digits(self, whole: NDArray[Any] | None) -> list[tuple[int, NDArray[Any] | None]]:
        """Parts of whole numbers that floats add up exactly, and by how many digits to shift."""
        if whole is None or whole.dtype == np.bool_:
            return [(0, whole)] if whole is None or whole.any() else []
        digits = 53 - self.people.bit_length()
        if not whole.any() or np.abs(whole).max() >> digits == 0:
            return [(0, whole)] if whole.any() else []
        mask = (1 << digits) - 1
        shifts = range(0, 64, digits)
        return [(at, (whole >> at) & mask if at + digits < 64 else whole >> at) for at in shifts]

    @check_arguments
    def take(self, which: ArrayLike) -> Facts:
        """The facts of some sets, by a mask or their numbers, ascending."""
        chosen = to_array("which", which, "biu")
        numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        if chosen.ndim != 1 or (
            numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self)
        ):
            raise InputError(f"which must be numbers of sets, 0 to {len(self) - 1}, or a mask")
        new = np.full(len(self), -1)
        new[numbers] = np.arange(len(numbers))
        picked = [table.renumber(new) for table in self.tables]
        return Facts(
            tuple(table for table in picked if table is not None), self.people,
            self.low[numbers], self.high[numbers], self.laws.take(numbers),
            self.derived[numbers], self.describe, self.origin[numbers], self.repeats,
            self.clauses.renumber(new), self.loose,
        )  # fmt: skip

    def drop_derived(self) -> Facts:
        """The facts without those that follow from others; sets that clauses are about stay."""
        used = ~self.derived
        used[self.clauses.sets] = True
        return self.take(used)

    @check_arguments
    def remove_people(self, possible: Mask) -> tuple[Facts, NDArray[np.intp]]:
        """Facts about the undecided people, and their rows; decided people are subtracted.

        Parameters
        ----------
        possible
            (n, K) the groups that each person may have; those with one are decided.
        """
        to_array("possible", possible, "b", (self.people, self.groups))
        decided = possible.sum(axis=1) == 1
        rest = np.flatnonzero(~decided)
        if len(rest) == self.people:
            return self, rest
        gone = self.count(possible & decided[:, None])
        clauses = replace(self.clauses, most=self.clauses.most - self.clauses.add_up(gone))
        left = replace(
            self,
            tables=tuple(table.take_people(rest, self.people) for table in self.tables),
            people=len(rest),
            low=self.low - gone,
            high=self.high - gone,
            laws=self.laws._replace(rounded=self.laws.rounded - gone),
            clauses=clauses,
        )
        return left._merge(), rest

    @check_arguments
    def allows(self, groups: NDArray[np.integer[Any]]) -> bool:
        """Whether groups (n,) satisfy everything that is known; noisy counts allow all."""
        return not len(self.find_broken(self.count(groups[:, None] == np.arange(self.groups))))

    @check_arguments
    def find_broken(self, counts: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Numbers of the sets whose ranges or clauses counts (M, K) break; never noisy ones."""
        wrong = ((counts < self.low) | (counts > self.high)).any(axis=1) & ~self.noisy
        return np.union1d(np.flatnonzero(wrong), self.clauses.find_broken(counts))

    def draw_numbers(self) -> NDArray[np.int64]:
        """(n, 2) random whole numbers, as large as can be added up at once; always the same."""
        digits = 53 - self.people.bit_length()
        return np.random.default_rng(20260101).integers(1 << digits, size=(self.people, 2))

    def _merge(self) -> Facts:
        """The same with one set for each set of people, none empty, and narrow ranges."""
        self._tighten(self.noisy)
        # Sums of random numbers of its members tell a set from any other: of a million people, two
        # of 33 digits each.
        sums = self.count(self.draw_numbers())
        # Two measurements of a set are both kept, but for those by cell keys, which are one if they
        # are equal; a derived fact may repeat another.
        law = np.where(self.laws.kind != EXACT, np.arange(1, len(self) + 1), 0)
        keyed = np.flatnonzero(self.laws.kind >= CELL_KEY)
        values = [self.laws.kind[keyed], self.laws.width[keyed], *self.laws.rounded[keyed].T]
        _, which = np.unique(np.column_stack(values), axis=0, return_inverse=True)
        law[keyed] = -1 - which.ravel()
        sums = np.column_stack([sums, law])
        order = np.lexsort((self.derived, *sums.T))
        differs = (np.diff(sums[order], axis=0) != 0).any(axis=1)
        starts = np.flatnonzero(np.concatenate([[len(self) > 0], differs]))
        repeats = dict(self.repeats)
        if len(starts):
            low = np.maximum.reduceat(self.low[order], starts, axis=0)
            high = np.minimum.reduceat(self.high[order], starts, axis=0)
            if (low > high).any():
                first = starts[np.flatnonzero((low > high).any(axis=1))[0]]
                ends = np.append(starts, len(self))
                raise self.contradiction(order[first : ends[ends > first][0]])
            firsts = order[starts]
            narrowed = ((self.low[firsts] < low) | (self.high[firsts] > high)).any(axis=1)
            ends = np.append(starts[1:], len(self))
            for start, end in zip(starts[narrowed], ends[narrowed], strict=True):
                own, *others = self.origin[order[start:end]].tolist()
                named = {name for other in (own, *others) for name in self.repeats.get(other, ())}
                repeats[own] = tuple(sorted({*others, *named}))
            self.low[firsts], self.high[firsts] = low, high
        kept = np.sort(order[starts])
        kept = kept[self.sizes[kept] > 0]
        if len(kept) == len(self):
            return self
        same = np.empty(len(self), np.intp)
        same[order] = np.repeat(order[starts], np.diff(np.append(starts, len(self))))
        sets = same[self.clauses.sets]
        nobody = self.sizes[sets] == 0  # a set that goes; its counts are 0
        sets[nobody] = kept[:1].sum()
        factors = np.where(nobody, 0, self.clauses.factors)
        own = replace(self.clauses, sets=sets, factors=factors)
        merged = replace(replace(self, clauses=own).take(kept), repeats=repeats)
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
            others_low = low.sum(axis=1, keepdims=True) - low
            others_high = high.sum(axis=1, keepdims=True) - high
        # Once is enough: each end that is left is reached by some counts of the other groups.
        np.minimum(high, size - others_low, out=high, where=exact)
        np.maximum(low, size - others_high, out=low, where=exact)
        bad = exact[:, 0] & (low > high).any(axis=1)
        if bad.any():
            raise self.contradiction(np.flatnonzero(bad)[:1])


def _name_set(parts: Sequence[Facts], first: NDArray[np.intp], number: int) -> str:
    """Name of a set of facts that were joined; `first` is the number of each part's first set."""
    part = int(np.searchsorted(first, number, side="right")) - 1
    return parts[part].name(number - int(first[part]))


def _rename(old: Callable[[int], str], new: Callable[[str], str], number: int) -> str:
    return new(old(number))


def _repeat(name: str, value: ArrayLike, m: int) -> NDArray[Any]:
    """(m,) the values, or one value repeated."""
    array = np.asarray(value)
    if array.shape not in {(), (m,)}:
        raise InputError(f"{name} must be one, or one a set ({m}), not of shape {array.shape}")
    return np.broadcast_to(array, m)


def _check_ends(low: ArrayLike, high: ArrayLike | None, m: int) -> tuple[Floats, Floats]:
    """(M, K) ends of counts, copied."""
    least = to_floats("low", low).copy()
    most = least.copy() if high is None else to_floats("high", high).copy()
    if least.ndim != 2 or least.shape != most.shape or len(least) != m or least.shape[1] < 2:
        raise InputError(
            f"low and high must be ({m}, K), a count of each group in each set, not "
            f"{least.shape} and {most.shape}"
        )
    return least, most
