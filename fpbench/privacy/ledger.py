"""A privacy budget that cannot be overspent: by several threads, processes, or after a crash."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from os import PathLike
from typing import NamedTuple, get_args

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import (
    check_whole_number,
    show_value,
    to_path,
    to_python_number,
)
from fpbench.base.errors import BudgetError, InputError, suggest_name
from fpbench.base.text import to_fraction
from fpbench.components.guarantee import Guarantee, Neighbours, check_epsilon
from fpbench.privacy.accounting import epsilon_to_rho, rho_to_epsilon
from fpbench.privacy.ledger_books import (
    Accounting,
    Amount,
    Book,
    FileBook,
    MemoryBook,
    Spending,
    price_release,
)

ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)

_MOST_TIMES = 2**63 - 1
"""The greatest integer of SQLite."""


class Balance(NamedTuple):
    """A part of a budget: what is spent, or what remains.

    Attributes
    ----------
    epsilon, delta
        The guarantee.
    rho
        The same as zero-concentrated privacy, with `zcdp` accounting.
    """

    epsilon: float
    delta: float
    rho: float | None = None


class Ledger:
    """A budget of (epsilon, delta), with everything spent from it; it cannot be overspent.

    Amounts are exact decimals as they are written: ten times 0.1 is 1. Threads may share a ledger;
    with a file, processes may, too. `spend` returns when the cost is on disk, so that an answer
    given afterwards is paid for, even after a crash.

    Parameters
    ----------
    epsilon
        The budget; `math.inf` for no limit, as in simulations: without a file, nothing is then
        recorded.
    delta
        Delta of the budget.
    neighbours
        The relation of the budget; guarantees of another are refused.
    accounting
        `basic`: epsilons and deltas add up. `zcdp`: rhos add up, and their sum must not exceed the
        rho that has the budget's epsilon at its delta; many small releases then cost less.
    path
        An SQLite file for the ledger, on a local disk; created if it is missing. Opening the file
        checks every entry.

    Raises
    ------
    InputError
        If a parameter is out of range, or the file is not a ledger, has another budget, or is
        damaged.
    """

    @check_arguments
    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours = "attribute",
        accounting: Accounting = "basic",
        path: str | PathLike[str] | None = None,
    ) -> None:
        epsilon = to_python_number(epsilon, "epsilon")
        check_epsilon(epsilon, infinite=True)
        Guarantee(1.0, delta, neighbours)  # checks the rest
        if accounting not in ACCOUNTINGS:
            raise InputError(
                f"unknown accounting {accounting!r}; {suggest_name(accounting, ACCOUNTINGS)}"
            )
        if accounting == "zcdp" and not (delta > 0 and epsilon < math.inf):
            raise InputError("accounting by zcdp needs a finite budget with a delta above 0")
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.neighbours: Neighbours = neighbours
        self.accounting: Accounting = accounting
        self._limit = self._read_limits()
        self._book: Book = MemoryBook()
        if path is not None:
            terms = {
                "epsilon": repr(self.epsilon),
                "delta": repr(self.delta),
                "neighbours": neighbours,
                "accounting": accounting,
            }
            self._book = FileBook(to_path("path", path), terms)
        self._free = epsilon == math.inf and path is None

    @check_arguments
    def spend(
        self, guarantee: Guarantee | Iterable[Guarantee], note: str = "", *, times: int = 1
    ) -> None:
        """Pay for releases about the same people: for all of them, or for none.

        All cells of one histogram, which are disjoint, are one release.

        Parameters
        ----------
        guarantee
            Of a release, or of several.
        note
            The purpose; it is stored, so it must not contain data.
        times
            Number of equal releases with each guarantee.

        Raises
        ------
        BudgetError
            If it costs more than remains. Nothing is spent then.
        InputError
            If a guarantee is of another relation, or has no rho with `zcdp` accounting.
        """
        parts = [guarantee] if isinstance(guarantee, Guarantee) else list(guarantee)
        if not (1 <= times <= _MOST_TIMES and int(times) == times):
            raise InputError(f"times must be a whole number, 1 or more, not {show_value(times)}")
        for part in parts:
            self._accept(part)
        if self._free or not parts:
            return
        costs = [price_release(part, self.accounting) for part in parts]
        first, second = (
            int(times) * sum(amounts, Fraction(0)) for amounts in zip(*costs, strict=True)
        )
        cost = (first, second)

        def check(total: Amount) -> None:
            if any(t + c > most for t, c, most in zip(total, cost, self._limit, strict=True)):
                raise BudgetError(self._explain_refusal(cost, total))

        self._book.add(cost, [Spending(part, int(times), note) for part in parts], check)

    @check_arguments
    def find_share(self, releases: int, guarantee: Callable[[float], Guarantee]) -> float:
        """The greatest epsilon, to nine decimals, that the rest pays for, so many times.

        Parameters
        ----------
        releases
            Number of equal releases.
        guarantee
            That of one, by epsilon, which its cost grows with.

        Raises
        ------
        BudgetError
            If the rest does not pay for them with any epsilon.
        InputError
            If there is no limit to share, or as of `spend`.
        """
        check_whole_number("releases", releases, 1)
        if self.epsilon == math.inf:
            raise InputError("a ledger without a limit has nothing to share: give epsilon")
        total = self._book.total()

        def price(billionths: int) -> Amount:
            one = guarantee(billionths / 10**9)
            self._accept(one)
            first, second = price_release(one, self.accounting)
            return int(releases) * first, int(releases) * second

        def pays(billionths: int) -> bool:
            cost = price(billionths)
            return all(t + c <= most for t, c, most in zip(total, cost, self._limit, strict=True))

        if not pays(1):
            raise BudgetError(self._explain_refusal(price(1), total))
        low, high = 1, 2
        while pays(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if pays(middle) else (low, middle)
        return low / 10**9

    @property
    def spent(self) -> Balance:
        """The spent part of the budget; epsilon by the ledger's accounting, at its delta."""
        first, second = self._book.total()
        if self.accounting == "basic":
            return Balance(float(first), float(second))
        rho = float(first)
        return Balance(rho_to_epsilon(rho, self.delta) if rho else 0.0, self.delta, rho)

    @property
    def remaining(self) -> Balance:
        """The rest of the budget; with `zcdp` accounting, the epsilon of one pure release."""
        first, second = self._subtract(self._book.total())
        if self.accounting == "basic":
            return Balance(first, second)
        return Balance(math.sqrt(2 * first), 0.0, first)

    @property
    def entries(self) -> list[Spending]:
        """All entries, in order; empty if there is no limit and no file."""
        return self._book.entries()

    def _read_limits(self) -> tuple[Fraction | float, Fraction | float]:
        if self.epsilon == math.inf:
            return (math.inf, math.inf)
        if self.accounting == "zcdp":
            return (Fraction(epsilon_to_rho(self.epsilon, self.delta)), Fraction(0))
        return (to_fraction(self.epsilon), to_fraction(self.delta))

    def _accept(self, guarantee: Guarantee) -> None:
        if not isinstance(guarantee, Guarantee):
            raise InputError(f"the cost must be a Guarantee, not {type(guarantee).__name__}")
        if guarantee.neighbours != self.neighbours:
            raise InputError(
                f"the budget is for neighbours = {self.neighbours!r}, and this release is private "
                f"for neighbours = {guarantee.neighbours!r}"
            )

    def _subtract(self, total: Amount) -> tuple[float, float]:
        first, second = (
            max(float(most - spent), 0.0) for most, spent in zip(self._limit, total, strict=True)
        )
        return first, second

    def _explain_refusal(self, cost: Amount, total: Amount) -> str:
        names = ("epsilon", "delta") if self.accounting == "basic" else ("rho", "")
        requested, rest, budget = (
            " and ".join(
                f"{name} {float(value):.12g}"
                for name, value, most in zip(names, values, self._limit, strict=True)
                if name and (most or any(cost[1:]))
            )
            for values in (cost, self._subtract(total), self._limit)
        )
        of = f", of epsilon {self.epsilon:g} at delta {self.delta:g}" if names[1] == "" else ""
        return (
            f"the privacy budget does not allow this: asked for {requested}, left {rest} of "
            f"{budget}{of} (neighbours = {self.neighbours!r}); nothing was spent"
        )
