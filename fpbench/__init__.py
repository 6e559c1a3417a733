"""Measure what fair machine-learning models give away about people.

Public names come in two tiers, and plugins, ours included, import nothing else. The first is this
package: base classes of components, the records that flow between them, errors, and what scripts
call. The second are its rooms, such as `fpbench.models` and `fpbench.privacy`, with what is useful
to write components of some kinds. Every name is imported when it is first used, so that
`import fpbench` costs next to nothing.
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]

__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> Any:
    """Import a public name; AttributeError names the room of one that is in a room."""
    if name in __all__ or name.startswith("_"):
        return _load(name)
    from fpbench.base.public_names import explain_missing

    raise AttributeError(explain_missing(name), name=name)
