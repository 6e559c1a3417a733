"""Data sets that are one table: a user's frame, CSV, Parquet; readers of table files.

Plugins may import the names in `__init__.pyi`: the base class of data sets with a choice of
sensitive columns, its fields, and readers of files. `fpbench.table` makes a table from a frame.

Imports `base`, `data`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
