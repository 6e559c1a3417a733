"""Classifiers, rules, encodings.

Plugins may import what `__init__.pyi` lists: features as numbers, the families of classifiers,
base classes of learners, rules of trees and rule lists.

Imports `base`, `data`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
