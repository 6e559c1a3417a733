"""A curator that answers parity gaps of chosen predictions, and attacks that recover groups.

An adversary who chooses the predictions needs no model: if one person alone is predicted positive,
the sign of the gap is that person's group. Hamman, Chen and Dutta, "Can querying for bias leak
protected attributes? Achieving privacy with smooth sensitivity", FAccT 2023, arXiv 2211.02139.
Their compressed sensing needs one group to be small; here about 2 n / log2 n answers recover groups
of any sizes: Lindström, "On a combinatory detection problem", 1964.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_generator
from fpbench.base.errors import BudgetError, InputError, check_choice
from fpbench.components.guarantee import Guarantee, check_epsilon
from fpbench.data.groups import group_codes
from fpbench.privacy.ledger import Ledger

_Bits = NDArray[np.int64]
_MOST = 13
"""Greatest base of the queries: 8,191 for 53,248 people."""


class ParityCurator:
    """Holds the groups of people, and answers the statistical parity gap of any chosen predictions.

    Parameters
    ----------
    groups
        (n,) codes or names of two groups.
    noise
        None: exact answers. `laplace`: noise scaled to the global sensitivity of the gap to one
        person's group, 1 + 1/n. `attribute-conceal`: Laplace noise scaled to a smooth bound of the
        local sensitivity, which is much lower; it has a delta.
    epsilon, delta
        Of each answer, for a change of one person's group; needed with noise. `laplace` has no
        delta.
    queries
        Most answers; unlimited by default.
    ledger
        A budget of epsilon, which noisy answers spend.
    rng
        A generator or seed of the noise; not cryptographically secure.

    Raises
    ------
    InputError
        If groups are not (n,) of two, or parameters exclude each other.

    Examples
    --------
    >>> from fpbench.auditing import ParityCurator
    >>> curator = ParityCurator([0, 0, 1, 1], queries=1)
    >>> curator.ask([1, 0, 1, 1])
    0.5
    """

    @check_arguments
    def __init__(
        self,
        groups: ArrayLike,
        *,
        noise: Literal["laplace", "attribute-conceal"] | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        queries: int | None = None,
        ledger: Ledger | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        try:
            codes, names = group_codes(groups)
        except InputError as error:
            raise InputError(f"groups must be (n,), of two groups: {error}") from None
        if len(names) != 2:
            raise InputError(f"groups must be two, not {len(names)}: {', '.join(names)}")
        if noise is not None:
            check_choice("noise", noise, ("laplace", "attribute-conceal"))
            if epsilon is None:
                raise InputError("noise needs an epsilon")
        elif epsilon is not None or ledger is not None:
            raise InputError("exact answers have no epsilon: choose noise")
        if queries is not None and queries < 0:
            raise InputError(f"queries must be at least 0, not {queries}")
        self._codes = codes.astype(np.bool_)
        self._left = math.inf if queries is None else queries
        self._ledger, self._rng = ledger, to_generator("rng", rng)
        self._noisy, self._scale = noise is not None, 0.0
        self.guarantee: Guarantee | None = None
        """The guarantee of each answer; None if answers are exact."""
        if epsilon is not None:
            check_epsilon(epsilon)
            conceal = noise == "attribute-conceal"
            if conceal and not 0 < delta < 1:
                raise InputError(
                    f"attribute-conceal needs a delta above 0 and below 1, not {delta}"
                )
            self.guarantee = Guarantee(epsilon, delta if conceal else 0.0, "attribute")
            ones = int(self._codes.sum())
            if conceal:
                # Nissim, Raskhodnikova and Smith, "Smooth sensitivity", 2007: Laplace noise of
                # 2 / epsilon times a bound that is smooth with epsilon / (2 ln(2 / delta)).
                smooth = bound_gap_change(ones, self.people, epsilon / (2 * math.log(2 / delta)))
                self._scale = 2 * smooth / epsilon
            else:
                self._scale = (1 + 1 / self.people) / epsilon
        self.answers = 0
        """Number of answers given so far."""

    @property
    def people(self) -> int:
        """Number of people n."""
        return len(self._codes)

    @property
    def exact(self) -> bool:
        """Whether answers have no noise."""
        return not self._noisy

    @check_arguments
    def ask(self, predictions: ArrayLike) -> float:
        """The rate of positive predictions in group 1 minus that in group 0, with noise if any.

        Parameters
        ----------
        predictions
            (n,) in {0, 1}: anything, not only what a model predicts.

        Raises
        ------
        BudgetError
            If no answer is left, or the ledger refuses.
        InputError
            If predictions are not (n,) of 0 and 1.
        """
        chosen = np.asarray(predictions)
        if chosen.shape != (self.people,) or not np.isin(chosen, (0, 1)).all():
            raise InputError(f"predictions must be {self.people} numbers, 0 or 1, one a person")
        if self._left < 1:
            raise BudgetError(f"all {self.answers} answers are used up")
        if self._ledger is not None and self.guarantee is not None:
            self._ledger.spend(self.guarantee, "parity gap")
        self._left -= 1
        self.answers += 1
        gap = float(chosen[self._codes].mean() - chosen[~self._codes].mean())
        return gap + float(self._rng.laplace(0, self._scale)) if self._noisy else gap


class RecoveredGroups(NamedTuple):
    """Groups recovered from answers.

    Attributes
    ----------
    groups
        (n,) in {0, 1}.
    queries
        Number of answers used.
    """

    groups: _Bits
    queries: int


@check_arguments
def bound_gap_change(ones: int, people: int, beta: float) -> float:
    """A smooth upper bound of the local sensitivity of a parity gap to one person's group.

    A person who leaves a group of m moves its rate by at most 1/m, one who enters it by at most
    1/(m + 1). The bound is the greatest, over all numbers t of people whose groups change, of
    exp(-beta t) times the greatest move after that: between people who differ in one group it
    changes by a factor of at most exp(beta).

    Parameters
    ----------
    ones, people
        Number of people of group 1, and of all.
    beta
        How smooth, above 0.
    """
    if not (0 <= ones <= people and people >= 1 and beta > 0):
        raise InputError("ones must be 0 to people, people at least 1, and beta above 0")
    sizes = np.arange(people + 1)
    # A move from a group of m to one of n - m; nobody can leave an empty group.
    moves = np.zeros(people + 1)
    moves[1:] = 1 / sizes[1:] + 1 / (people - sizes[1:] + 1)
    moves = np.maximum(moves, moves[::-1])
    return float((np.exp(-beta * np.abs(sizes - ones)) * moves).max())


@check_arguments
def recover_person(curator: ParityCurator, person: int) -> int:
    """The group of a person by one answer: certain if it is exact.

    Parameters
    ----------
    curator
        Who answers.
    person
        Row of the person.

    Raises
    ------
    InputError
        If there is no such person.
    BudgetError
        If no answer is left.
    """
    if not 0 <= person < curator.people:
        raise InputError(f"there is no person {person}: the rows are 0 to {curator.people - 1}")
    return int(curator.ask(np.arange(curator.people) == person) > 0)


@check_arguments
def count_queries(people: int) -> int:
    """Number of exact answers that `recover_groups` needs for n people: about 2 n / log2 n.

    Parameters
    ----------
    people
        Number of people, at least 2.
    """
    return (1 << _find_base(people)) * math.ceil(people / _count_columns(_find_base(people)))


@check_arguments
def recover_groups(
    curator: ParityCurator,
    *,
    queries: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> RecoveredGroups:
    """Everybody's group, from answers about chosen people.

    `count_queries` exact answers are enough, and the groups are then certain. Noisy answers
    about random halves are decoded by ridge regression,
    whose penalty generalised cross-validation chooses.

    Parameters
    ----------
    curator
        Who answers.
    queries
        Noisy answers to ask for; as many as there are people by default.
    rng
        A generator or seed of the random halves.

    Raises
    ------
    BudgetError
        If answers run out.
    """
    before, n = curator.answers, curator.people
    if not curator.exact:
        chosen = to_generator("rng", rng).integers(0, 2, (n if queries is None else queries, n))
        answers = np.array([curator.ask(row) for row in chosen])
        # A gap is a sum over the chosen: above 0 for each person of group 1, below 0 for others.
        weights = _solve_ridge(chosen.astype(np.float64) - 0.5, answers)
        return RecoveredGroups((weights > 0).astype(np.int64), curator.answers - before)
    # One answer tells the sizes of both groups: 1 / size, with the sign of the group.
    first = curator.ask(np.arange(n) == 0)
    size = round(1 / abs(first))
    ones = size if first > 0 else n - size
    base = _find_base(n)
    step = _count_columns(base)
    groups = np.zeros(n, np.int64)
    for start in range(0, n, step):
        people = np.arange(start, min(start + step, n))
        table = _make_queries(base, len(people))
        counts = np.zeros(len(table), np.int64)
        for number in np.flatnonzero(table.any(axis=1)):
            own = np.zeros(n, np.int64)
            own[people] = table[number]
            zeros = own.sum() / (n - ones)
            counts[number] = round((curator.ask(own) + zeros) / (1 / ones + 1 / (n - ones)))
        groups[people] = _decode(base, table, counts)
    return RecoveredGroups(groups, curator.answers - before)


def _solve_ridge(table: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) ridge weights of people, with the penalty chosen by generalised cross-validation."""
    values, vectors = np.linalg.eigh(table @ table.T)
    values, turned = np.maximum(values, 0), vectors.T @ answers
    ridges = values.max() * np.geomspace(1e-6, 1e2, 33)
    shares = ridges[:, None] / (values + ridges[:, None])
    errors = ((shares * turned) ** 2).mean(axis=1) / shares.mean(axis=1) ** 2
    best = ridges[errors.argmin()]
    return np.asarray(table.T @ (vectors @ (turned / (values + best))))


def _count_columns(base: int) -> int:
    return base << (base - 1)


def _find_base(people: int) -> int:
    return next((k for k in range(1, _MOST) if _count_columns(k) >= people), _MOST)


def _list_parts(base: int, people: int) -> Iterator[tuple[int, int, int]]:
    """Subsets of the base as bits, with the columns of each: as many as it has elements."""
    at = 0
    for part in sorted(range(1, 1 << base), key=lambda part: -part.bit_count()):
        if at >= people:
            return
        yield part, at, min(at + part.bit_count(), people)
        at += part.bit_count()


def _make_queries(base: int, people: int) -> NDArray[np.int8]:
    """(2^base, people) 1 where a person is in a query; queries are subsets of the base, too.

    The j-th column of a subset is about 2^j of its own subsets of odd size: whether a person is in
    a query depends on what the query has in common with the subset.
    """
    queries = np.arange(1 << base)
    table = np.zeros((1 << base, people), np.int8)
    for part, start, end in _list_parts(base, people):
        inside = [own for own in queries if own & ~part == 0 and int(own).bit_count() % 2]
        for digit in range(end - start):
            table[:, start + digit] = np.isin(queries & part, inside[: 1 << digit])
    return table


def _decode(base: int, table: NDArray[np.int8], counts: _Bits) -> _Bits:
    """(people,) groups, 0 or 1, of which `counts` are the sums over the queries.

    In the alternating sum over intersections of queries with a subset, columns of other subsets
    cancel, except those of its supersets, which come first and are subtracted. The rest is a binary
    number.
    """
    odd = np.array([number.bit_count() % 2 for number in range(1 << base)])
    queries, left = np.arange(1 << base), counts.copy()
    groups = np.zeros(table.shape[1], np.int64)
    for part, start, end in _list_parts(base, table.shape[1]):
        signs = 1 - 2 * odd[queries & part]
        number = -int(signs @ left) >> (base - part.bit_count())
        groups[start:end] = number >> np.arange(end - start) & 1
        left -= table[:, start:end].astype(np.int64) @ groups[start:end]
    return groups
