"""What only authors of plugins need, beside the base classes of `fpbench` itself.

What auditors, disclosures and data sets are given, status words, parts of declared measures, and
the catalog of components. The names are those of `components`, `data` and `api`, as `__init__.pyi`
lists them.
"""

from fpbench.base.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__)
