"""Audits of models: bounds on epsilon from below, halves of people for shadow models.

Plugins may import what `__init__.pyi` lists: also what private models have so that their risk can
be measured, and suffixes for measures of groups.

Imports `base`, `data`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
