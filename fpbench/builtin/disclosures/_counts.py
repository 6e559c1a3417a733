"""What disclosures of counts share: they claim no rates, and proofs from them take time."""

from __future__ import annotations

from fpbench import Disclosure
from fpbench.claims import Facts


class CountDisclosure(Disclosure):
    """Publishes counts of groups in sets of people, and no claim that compares rates."""

    @property
    def portable(self) -> bool:
        """Never: proofs and beliefs end at limits of time."""
        return False

    def forms(self) -> tuple[str, ...]:
        """None: it makes no claim that compares rates."""
        return ()

    def words(self) -> list[str]:
        """Counts in sets of people, and what else is known."""
        return [Facts.word, *super().words()]
