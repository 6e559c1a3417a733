"""From a guess and a claim to a correction or a posterior.

Plugins may import what `__init__.pyi` lists: the base class of correctors that look for the
cheapest correction, a problem as counts, the exact solver, calibration, and the posterior.

Imports `base`, `data`, `claims`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
