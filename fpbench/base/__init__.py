"""Errors, validation, numbers as text, guarded files: nothing about fairness or privacy.

Plugins may import what `__init__.pyi` lists: decimals without rounding, rounding that is the same
on every processor, the nearest valid name for a message, text without paths of this machine, and
how to install an extra. Errors are in `fpbench` itself.

Imports nothing of fpbench.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
