"""Measurements of trained models: excessive risk, individual fairness, bounds on epsilon.

Plugins may import what `__init__.pyi` lists: the reports of `fpbench.excessive_risk` and
`fpbench.individual_fairness`, what private models have so that their risk can be measured, and
bounds on epsilon from below.

Imports `base`, `data`, `components`, `privacy`, `models`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
