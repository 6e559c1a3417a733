"""The card of a component on a site: its description, the paper, the version of its code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from fpbench.base.errors import FpbenchError
from fpbench.components.catalog import Catalog
from fpbench.components.names import KINDS
from fpbench.components.spec import hash_code


@dataclass(frozen=True)
class Card:
    """A component."""

    kind: str
    use: str
    """Its name in matrices."""
    name: str
    """Stem of its page."""
    summary: str
    description: str = ""
    reference: str = ""
    """The paper."""
    source: str = ""
    """Distribution and version."""
    code: str = ""
    """Hash of its code, without prose."""

    @property
    def title(self) -> str:
        """Its kind and name."""
        return f"{self.kind} {self.use}"


def make_card(catalog: Catalog, kind: str, use: str, name: str) -> Card:
    """The card of a component; if it is not installed here, with its name and the reason."""
    try:
        cls = catalog.component(kind, use)
        source = catalog.entry(kind, use).source
    except FpbenchError as error:
        why = f"It cannot be described here: {error}"
        return Card(kind, use, name, KINDS[kind].summary, why)
    return Card(
        kind, use, name, cls.summary, inspect.getdoc(cls) or "", cls.reference, str(source),
        hash_code(cls),
    )  # fmt: skip
