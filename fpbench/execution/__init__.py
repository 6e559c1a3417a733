"""Steps become results: what a step does, isolation, engines, the runner.

Plugins may import what `__init__.pyi` lists: the contract of an engine, and what engines hand to
their workers.

Imports all rooms of data, components and methods, `matrix` and `store`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
