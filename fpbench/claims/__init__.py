"""Knowledge about people's groups: rates, shares, people; as conditions on counts.

Plugins may import what `__init__.pyi` lists: the metrics of group fairness, the constraints that a
disclosure claims, and the conditions on counts that correctors read them as.

Imports `base`, `data`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
