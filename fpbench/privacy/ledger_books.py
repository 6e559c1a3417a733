"""What a ledger writes down of what was spent, and the book that is kept in memory."""

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
"""How costs add up: epsilons and deltas, or rhos of zero-concentrated differential privacy."""

Amount: TypeAlias = tuple[Fraction, Fraction]
"""What is added up exactly: epsilon and delta, or rho and nothing."""

Check: TypeAlias = Callable[[Amount], None]
"""Is told the total so far, and raises if no more may be added."""


@dataclass(frozen=True)
class Spending:
    """One entry of a ledger."""

    guarantee: Guarantee
    times: int
    """How many releases alike."""
    note: str


def price(guarantee: Guarantee, accounting: str) -> Amount:
    """What one release costs.

    Raises
    ------
    InputError
        If costs add up by `zcdp`, and the guarantee has no rho.
    """
    if accounting == "basic":
        return to_fraction(guarantee.epsilon), to_fraction(guarantee.delta)
    if guarantee.rho is None:
        raise InputError(
            "the budget is accounted for by zcdp, and the guarantee of this release has no rho"
        )
    return to_fraction(guarantee.rho), Fraction(0)


class Book(Protocol):
    """Where a ledger writes."""

    def total(self) -> Amount:
        """All that was spent."""

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""

    def entries(self) -> list[Spending]:
        """What was written down, in order."""


class MemoryBook:
    """A book that is forgotten with its process; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: Amount = (Fraction(0), Fraction(0))
        self._entries: list[Spending] = []

    def total(self) -> Amount:
        """All that was spent."""
        return self._total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""
        with self._lock:
            check(self._total)
            self._total = (self._total[0] + cost[0], self._total[1] + cost[1])
            self._entries.extend(entries)

    def entries(self) -> list[Spending]:
        """What was written down, in order."""
        with self._lock:
            return list(self._entries)
