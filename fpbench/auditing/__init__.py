"""Audits of models: bounds on epsilon from below, halves of people for shadow models.

Plugins may import what `__init__.pyi` lists: also what private models have so that their risk can
be measured, and suffixes for measures of groups.

Imports `base`, `data`, `components`.
"""

from fpbench.base.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__)
