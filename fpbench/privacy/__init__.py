"""Differential privacy: accounting, the ledger, consistent counts, released tables.

Plugins may import what `__init__.pyi` lists: conversions between epsilon, delta, rho and sigma,
the ledger of spent budgets, curators of people's groups, repaired counts.

Imports `base`, `data`, `components`.
"""

from fpbench.base.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__)
