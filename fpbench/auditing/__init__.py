"""Measurements of trained models: excessive risk, individual fairness, what reports give away.

Plugins may import what `__init__.pyi` lists: the reports of `fpbench.excessive_risk` and
`fpbench.individual_fairness`, what private models have so that their risk can be measured, bounds
on epsilon from below, and fairness reports with what follows from them about people.

Imports `base`, `data`, `components`, `privacy`, `models`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
