"""Errors for who tells them apart; `fpbench` itself has those that most programs catch.

The names are those of `base`, as `__init__.pyi` lists them.
"""

from fpbench.base.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__)
