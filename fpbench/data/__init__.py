"""People as data: samples, tables, groups, sensitive attributes, domains, data files.

Plugins may import what `__init__.pyi` lists: what a data set says of its sensitive attributes, its
columns, their public domain, and where it comes from.

Imports `base`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
