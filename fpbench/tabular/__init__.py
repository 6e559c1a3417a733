"""Data sets that are one table: a frame of the user, CSV, Parquet; files of tables.

Plugins may import what `__init__.pyi` lists: the base class of data sets with a choice of sensitive
columns, its fields, and readers of files. `fpbench.table` makes a table of a frame.

Imports `base`, `data`, `components`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
