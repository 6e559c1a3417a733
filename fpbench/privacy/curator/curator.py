"""Who owns people's groups and answers about them, under differential privacy and a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import InputError, PluginError
from fpbench.components.guarantee import COUNT_SENSITIVITY, Neighbours, check_epsilon
from fpbench.components.mechanism import Mechanism
from fpbench.data.groups import group_codes
from fpbench.data.sample import Codes
from fpbench.privacy.ledger import Balance, Ledger

if TYPE_CHECKING:
    from pandas import DataFrame

_CHUNK = 1 << 16
"""People counted at a time: what is computed of them stays in the processor's cache."""
_PAIRED = 1 << 18
"""The same for those counted in pairs, whose table of counts is larger."""
_BYTE = 256


class Curator:
    """The owner of a sensitive attribute, who answers histogram queries about it.

    An answer is paid for before it is given: if the ledger refuses, nothing is spent and nothing
    is said. The groups themselves cannot be read from it, only their names.

    Parameters
    ----------
    sensitive
        (n,) the group of each person: codes in 0..K-1, if `groups` names them; else values of any
        kind, or a data frame of several columns, whose combinations are the groups.
    groups
        Names of the K groups. They are public: without them, that somebody belongs to a group is
        read from the data.
    ledger
        The budget; without one there is no limit, as in simulations.
    neighbours
        The relation that epsilon is measured by; that of the ledger, if there is one, else
        `attribute`.
    rng
        For simulated noise: a generator, or a seed. Secure noise does not use it.

    Raises
    ------
    InputError
        If codes or names do not fit, values are missing, or there are fewer than two groups.

    Examples
    --------
    >>> import fpbench
    >>> from fpbench.privacy import Curator, Ledger
    >>> curator = Curator(["f", "m", "m", "f", "m"], ledger=Ledger(1.0), rng=0)
    >>> laplace = fpbench.component("mechanism", "discrete-laplace")
    >>> answer = curator.histogram([0, 0, 1, 1, 1], 2, epsilon=0.4, mechanism=laplace)
    >>> answer.shape, curator.groups, curator.remaining.epsilon
    ((1, 2, 2), ('f', 'm'), 0.6)
    """

    __slots__ = ("_codes", "_groups", "_ledger", "_rng")

    def __init__(
        self,
        sensitive: ArrayLike | DataFrame,
        groups: Sequence[str] | None = None,
        *,
        ledger: Ledger | None = None,
        neighbours: Neighbours | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        if ledger is None:
            ledger = Ledger(math.inf, neighbours=neighbours or "attribute")
        elif neighbours not in (None, ledger.neighbours):
            raise InputError(
                f"the ledger is for neighbours = {ledger.neighbours!r}, not {neighbours!r}"
            )
        codes, self._groups = group_codes(sensitive, groups)
        if not len(codes):
            raise InputError("a curator of nobody has nothing to answer")
        # With K added once for all, the people without a cell (-1) come first.
        self._codes = codes.astype(np.uint8)
        self._codes += np.uint8(len(self._groups))
        self._ledger = ledger
        self._rng = np.random.default_rng(rng)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""
        return self._groups

    @property
    def people(self) -> int:
        """Number of people n."""
        return len(self._codes)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that epsilon is measured by."""
        return self._ledger.neighbours

    @property
    def remaining(self) -> Balance:
        """What is left of the budget."""
        return self._ledger.remaining

    def histogram(
        self,
        cells: Codes | ArrayLike,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy numbers of people of every group in every cell.

        Parameters
        ----------
        cells
            (n,) the cell of each person, in 0..n_cells-1, or -1 for none; public.
        n_cells
            Number of cells C.
        epsilon
            Of one answer; one or several, shape (...). Cells share nobody, so each uses all of it.
        mechanism
            Adds the noise.
        repetitions
            Number R of answers for each epsilon, each of fresh noise and each paid for.

        Returns
        -------
        ndarray
            (..., R, C, K).

        Raises
        ------
        InputError
            If the cells are not n such codes, or epsilon is not one the mechanism can give.
        BudgetError
            If the answers cost more than is left; nothing is spent then.
        """
        check_epsilon(epsilon)  # before it is converted: a text would become a number
        parameters = np.asarray(epsilon, dtype=np.float64)
        if not parameters.size:
            raise InputError("epsilon: there is none")
        repetitions = _whole_number("repetitions", repetitions)
        counts = self._count(checked_cells(cells, n_cells, self.people), n_cells)
        guarantees = [mechanism.guarantee(e, self.neighbours) for e in parameters.ravel().tolist()]
        note = f"histogram of {n_cells} cells, {mechanism.name}, noise {mechanism.noise}"
        self._ledger.spend(guarantees, note, times=repetitions)
        shape = (*parameters.shape, repetitions, *counts.shape)
        released = mechanism.release(
            np.broadcast_to(counts, shape[parameters.ndim :]),
            COUNT_SENSITIVITY[self.neighbours],
            parameters[..., None, None, None],
            self._rng,
            upper=counts.sum(axis=1, keepdims=True),
        )
        if released.shape != shape:
            raise PluginError(
                f"mechanism {mechanism.name!r} gave answers of shape {released.shape}, not {shape}"
            )
        return released

    def _count(self, cells: NDArray[Any], n_cells: int) -> NDArray[np.int64]:
        """True numbers (C, K) of people by cell and group."""
        k = len(self._groups)
        counts = np.zeros((n_cells + 1) * k, np.int64)
        done = self.people - self.people % _PAIRED if len(counts) <= _BYTE else 0
        if done:
            counts += self._count_paired(cells[:done], n_cells)[: len(counts)]
        chunk = max(_CHUNK, len(counts))
        joint = np.empty(min(chunk, self.people), np.int64)
        for start in range(done, self.people, chunk):
            part = _in_range(cells[start : start + chunk], n_cells)
            both = joint[: len(part)]
            both[:] = part
            both *= k
            both += self._codes[start : start + chunk]
            counts += np.bincount(both, minlength=len(counts))
        return counts.reshape(n_cells + 1, k)[1:]

    def _count_paired(self, cells: NDArray[Any], n_cells: int) -> NDArray[np.int64]:
        """The same, flat, for many people, two at a time: cell and group of both fit 16 bits."""
        pairs = np.zeros(_BYTE * _BYTE, np.int64)
        joint = np.empty(_PAIRED, np.uint8)
        for start in range(0, len(cells), _PAIRED):
            # Bytes wrap around, so that cell -1 comes out right too.
            joint[:] = _in_range(cells[start : start + _PAIRED], n_cells)
            joint *= np.uint8(len(self._groups))
            joint += self._codes[start : start + _PAIRED]
            pairs += np.bincount(joint.view(np.uint16), minlength=len(pairs))
        both = pairs.reshape(_BYTE, _BYTE)
        counts: NDArray[np.int64] = both.sum(axis=0) + both.sum(axis=1)
        return counts

    def __repr__(self) -> str:
        return f"Curator({self.people:,} people, groups {', '.join(self._groups)})"

    def __reduce__(self) -> NoReturn:
        raise InputError("a curator cannot be copied or sent elsewhere: people's groups stay there")


def _in_range(cells: NDArray[Any], n_cells: int) -> NDArray[Any]:
    if cells.max() >= n_cells or cells.min() < -1:
        raise InputError(f"cells must be in 0..{n_cells - 1}, or -1 for none")
    return cells


def checked_cells(cells: Codes | ArrayLike, n_cells: int, people: int) -> NDArray[Any]:
    """Cells (n,) of people as an array of whole numbers; who counts them checks their range.

    Raises
    ------
    InputError
        If they are not n whole numbers, or there are no cells.
    """
    found = np.asarray(cells)
    if found.shape != (people,):
        raise InputError(f"cells are of shape {found.shape}, and there are {people:,} people")
    if found.dtype.kind not in "biu":
        raise InputError(f"cells must be whole numbers, not {found.dtype}")
    _whole_number("n_cells", n_cells)
    return found


def _whole_number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number, 1 or more, not {value!r}")
    return int(value)
