"""Tables of rates by group, as facts about people: read, defended, attacked, judged.

Plugins may import what `__init__.pyi` lists: metrics and slices of `fpbench.FairnessReport`, and
how useful one is.

Imports `base`, `data`, `claims`, `components`, `privacy`, `models`, `correction`, `tabular`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
