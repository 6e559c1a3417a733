"""Tests for third-party plugins: the laws of every kind, and attacks on privacy.

`fpbench check PACKAGE_OR_PATH` runs the laws on the command line, `pytest --fpbench` in a test
suite, and `checks` gives them one by one. Plugins may import the names in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
