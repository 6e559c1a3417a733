"""Integer programs as plain data, so that fpbench can send them to another process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fpbench import InputError

_MOST = 2**62
"""No sum may reach this number: CP-SAT computes with 64 bits."""


class Program:
    """Variables and constraints on them; the solver minimises the sum of the costs."""

    def __init__(self) -> None:
        self._variables: list[tuple[int, int]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._products: list[tuple[int, int, int]] = []
        self._clauses: list[tuple[Any, ...]] = []
        self._costs: list[int] = []

    def add_variable(self, low: int, high: int) -> int:
        """A whole number between bounds."""
        self._variables.append((int(low), int(high)))
        return len(self._variables) - 1

    def add_row(
        self,
        terms: Iterable[tuple[int, int]],
        low: int | None,
        high: int | None,
        literals: Sequence[int] = (),
    ) -> None:
        """Low <= sum of coefficient * variable <= high, if all of `literals` are 1.

        Raises
        ------
        InputError
            If the row needs larger whole numbers than CP-SAT has.
        """
        pairs = [(int(v), int(a)) for v, a in terms]
        size = sum(abs(a) * max(map(abs, self._variables[v])) for v, a in pairs)
        ends = [abs(end) for end in (low, high) if end is not None]
        if size + max(ends, default=0) >= _MOST:
            raise InputError(
                "corrector 'cp-sat': a constraint needs whole numbers beyond 2^62, where CP-SAT "
                "ends: write its tolerance with fewer digits, or use the corrector 'exact'"
            )
        least, most = (-size if low is None else low), (size if high is None else high)
        at, by = [v for v, _ in pairs], [a for _, a in pairs]
        self._rows.append((at, by, int(least), int(most), list(literals)))

    def add_total(self, terms: Iterable[tuple[int, int]], most: int) -> int:
        """A variable that is a sum, between 0 and `most`."""
        sums = self.add_variable(0, most)
        self.add_row([*terms, (sums, -1)], 0, 0)
        return sums

    def add_product(self, one: int, other: int) -> int:
        """A variable that is the product of two that are never negative."""
        most = self._variables[one][1] * self._variables[other][1]
        if most >= _MOST:
            raise InputError("corrector 'cp-sat': too many people to compare two groups of them")
        result = self.add_variable(0, most)
        self._products.append((result, one, other))
        return result

    def require_any(self, ways: Sequence[int], literals: Sequence[int] = ()) -> None:
        """At least one of some variables in {0, 1} is 1, if all of `literals` are 1."""
        self._clauses.append((list(ways), list(literals)))

    def add_cost(self, most: int) -> int:
        """A variable whose value is part of the cost."""
        self._costs.append(self.add_variable(0, most))
        return self._costs[-1]

    def to_data(self, seconds: float) -> dict[str, Any]:
        """The program as lists and numbers, with the time limit of the solver."""
        return {
            "variables": self._variables, "rows": self._rows, "products": self._products,
            "clauses": self._clauses, "costs": self._costs, "seconds": seconds,
        }  # fmt: skip
