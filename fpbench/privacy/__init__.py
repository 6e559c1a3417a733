"""Differential privacy: accounting, the ledger, consistent counts, noisy votes, the curator.

Plugins may import what `__init__.pyi` lists: conversions between epsilon, delta, rho and sigma,
the ledger of spent budgets, curators of people's groups, repaired counts, noisy votes.

Imports `base`, `data`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
