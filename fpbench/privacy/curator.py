"""The owner of people's groups, who answers under differential privacy and a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value, to_generator
from fpbench.base.errors import InputError, PluginError
from fpbench.base.text import show_lines
from fpbench.components.guarantee import COUNT_SENSITIVITY, Neighbours, check_epsilon
from fpbench.components.mechanism import Mechanism
from fpbench.data.groups import group_codes
from fpbench.data.sample import Codes
from fpbench.privacy.ledger import Balance, Ledger

if TYPE_CHECKING:
    from pandas import DataFrame

_CHUNK = 1 << 16
"""People counted at a time, so that intermediate results fit the processor's cache."""
_PAIRED = 1 << 18
"""The same for people counted in pairs, whose table of counts is larger."""
_BYTE = 256


class Curator:
    """The owner of a sensitive attribute, who answers histogram queries about it.

    The ledger records the cost before the answer: if the ledger refuses, nothing is spent and there
    is no answer. A curator exposes the names of groups, but not whose group is which.

    Parameters
    ----------
    sensitive
        (n,) the group of each person: codes in 0..K-1, if `groups` names them; else values of any
        kind, or a data frame of several columns, whose combinations are the groups.
    groups
        Names of the K groups, which are public. By default they come from the data, which reveals
        that somebody belongs to each.
    ledger
        The budget; no limit by default, as in simulations.
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

    @check_arguments
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
                f"the ledger is for neighbours = {ledger.neighbours!r}, not "
                f"{show_value(neighbours)}"
            )
        codes, self._groups = group_codes(sensitive, groups)
        if not len(codes):
            raise InputError("a curator needs at least one person")
        # With K added once for all, the people without a cell (-1) come first.
        self._codes = codes.astype(np.uint8)
        self._codes += np.uint8(len(self._groups))
        self._ledger = ledger
        self._rng = to_generator("rng", rng)

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
        """The rest of the budget."""
        return self._ledger.remaining

    @check_arguments
    def histogram(
        self,
        cells: Codes | ArrayLike,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy numbers (..., R, C, K) of people of every group in every cell.

        Parameters are those of `fpbench.privacy.HistogramSource.histogram`.

        Raises
        ------
        InputError
            If the cells are not n codes, or epsilon is not one the mechanism can give.
        BudgetError
            If the answers cost more than the rest of the budget; nothing is spent then.
        """
        check_epsilon(epsilon)  # before it is converted: a text would become a number
        parameters = np.asarray(epsilon, dtype=np.float64)
        if not parameters.size:
            raise InputError("epsilon: is empty; give at least one")
        repetitions = _check_whole("repetitions", repetitions)
        counts = self._count(check_cells(cells, n_cells, self.people), n_cells)
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
            part = cells[start : start + chunk]
            check_range(part, n_cells)
            both = joint[: len(part)]
            both[:] = part
            both *= k
            both += self._codes[start : start + chunk]
            counts += np.bincount(both, minlength=len(counts))
        return counts.reshape(n_cells + 1, k)[1:]

    def _count_paired(self, cells: NDArray[Any], n_cells: int) -> NDArray[np.int64]:
        """The same numbers, flat, counted in pairs: cell and group of two people fit 16 bits."""
        pairs = np.zeros(_BYTE * _BYTE, np.int64)
        joint = np.empty(_PAIRED, np.uint8)
        for start in range(0, len(cells), _PAIRED):
            check_range(cells[start : start + _PAIRED], n_cells)
            joint[:] = cells[start : start + _PAIRED]  # bytes wrap around, so -1 works too
            joint *= np.uint8(len(self._groups))
            joint += self._codes[start : start + _PAIRED]
            pairs += np.bincount(joint.view(np.uint16), minlength=len(pairs))
        both = pairs.reshape(_BYTE, _BYTE)
        counts: NDArray[np.int64] = both.sum(axis=0) + both.sum(axis=1)
        return counts

    def __repr__(self) -> str:
        return show_lines([f"Curator({self.people:,} people, groups {', '.join(self._groups)})"])

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "a curator cannot be copied or pickled, to keep people's groups in this process"
        )


def check_range(cells: NDArray[Any], n_cells: int) -> None:
    """Raise InputError if a cell is neither in 0..n_cells-1 nor -1."""
    if cells.max() >= n_cells or cells.min() < -1:
        raise InputError(f"cells must be in 0..{n_cells - 1}, or -1 for none")


def check_cells(cells: Codes | ArrayLike, n_cells: int, people: int) -> NDArray[Any]:
    """Cells (n,) as an array, their range unchecked; InputError if they are not n whole numbers."""
    codes = np.asarray(cells)
    if codes.shape != (people,):
        raise InputError(f"cells are of shape {codes.shape}, and there are {people:,} people")
    if codes.dtype.kind not in "biu":
        raise InputError(f"cells must be whole numbers, not {codes.dtype}")
    _check_whole("n_cells", n_cells)
    return codes


def _check_whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number, 1 or more, not {show_value(value)}")
    return int(value)
