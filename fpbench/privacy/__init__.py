"""Differential privacy: accounting, the ledger, consistent counts, released tables, noisy votes.

Plugins may import what `__init__.pyi` lists: conversions between epsilon, delta, rho and sigma,
the ledger of spent budgets, curators of people's groups, repaired counts, noisy votes.

Imports `base`, `data`, `components`.
"""

from typing import Any

from fpbench.base.public_names import attach_names

_load, __dir__, __all__ = attach_names(__name__)


def __getattr__(name: str) -> Any:
    """Import a public name; ImportError names the package of one that has left."""
    if name == "RemoteCurator":
        raise ImportError(
            "RemoteCurator is in the package fpbench-curator (in a checkout of fpbench: pip "
            "install ./plugins/fpbench-curator): from fpbench_curator import RemoteCurator"
        )
    return _load(name)
