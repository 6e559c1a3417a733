"""Measure what fair machine-learning models give away about people.

The public names are listed in `__init__.pyi`; each is imported when it is first used, so that
`import fpbench` costs next to nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]

__version__ = "0.1.0"
