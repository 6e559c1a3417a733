"""Fairness reports: rates by group and slice as facts, and what follows from them about people.

Plugins may import what `__init__.pyi` lists.

Imports `base`, `components`, `privacy`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
