"""Entries of a ledger, their price, and the book that keeps them in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

from fpbench.base.errors import InputError
from fpbench.base.text import to_fraction
from fpbench.components.guarantee import Guarantee

Accounting: TypeAlias = Literal["basic", "zcdp"]
"""The unit of costs: epsilon and delta, or rho of zero-concentrated differential privacy."""

Amount: TypeAlias = tuple[Fraction, Fraction]
"""An exact sum: epsilon and delta, or rho and 0."""

Check: TypeAlias = Callable[[Amount], None]
"""Raises if nothing may be added to this total."""


@dataclass(frozen=True)
class Spending:
    """One entry of a ledger."""

    guarantee: Guarantee
    times: int
    """Number of equal releases."""
    note: str


def price_release(guarantee: Guarantee, accounting: str) -> Amount:
    """The cost of one release; InputError if `zcdp` accounting lacks a rho."""
    if accounting == "basic":
        return to_fraction(guarantee.epsilon), to_fraction(guarantee.delta)
    if guarantee.rho is None:
        raise InputError(
            "the budget is accounted for by zcdp, and the guarantee of this release has no rho"
        )
    return to_fraction(guarantee.rho), Fraction(0)


class Book(Protocol):
    """Storage of a ledger's entries."""

    def total(self) -> Amount:
        """The sum of all costs."""

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Add entries, unless `check` raises."""

    def entries(self) -> list[Spending]:
        """All entries, in order."""


class MemoryBook:
    """A book that ends with its process; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: Amount = (Fraction(0), Fraction(0))
        self._entries: list[Spending] = []

    def total(self) -> Amount:
        """The sum of all costs."""
        return self._total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Add entries, unless `check` raises."""
        with self._lock:
            check(self._total)
            self._total = (self._total[0] + cost[0], self._total[1] + cost[1])
            self._entries.extend(entries)

    def entries(self) -> list[Spending]:
        """All entries, in order."""
        with self._lock:
            return list(self._entries)
