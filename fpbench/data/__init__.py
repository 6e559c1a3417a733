"""People as data: samples, tables, groups, sensitive attributes, domains, data files.

Plugins may import the names in `__init__.pyi`: they describe a data set's sensitive attributes,
columns, public domain and source.

Imports `base`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
