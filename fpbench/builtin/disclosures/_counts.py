"""The base of disclosures of counts: no claims about rates, and slow proofs."""

from __future__ import annotations

from fpbench import Disclosure
from fpbench.claims import Facts


class CountDisclosure(Disclosure):
    """Publishes counts of groups in sets of people, without a claim that compares rates."""

    @property
    def portable(self) -> bool:
        """Never: proofs and beliefs depend on time limits."""
        return False

    def forms(self) -> tuple[str, ...]:
        """None: it makes no claim that compares rates."""
        return ()

    def words(self) -> list[str]:
        """Words of counts in sets of people, and of further facts."""
        return [Facts.word, *super().words()]
