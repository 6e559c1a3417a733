"""A curator of people's groups on another machine: its service, and the auditor's client."""

from typing import TYPE_CHECKING

import lazy_loader

from fpbench import hookimpl
from fpbench.plugin import Lazy

if TYPE_CHECKING:
    from .remote import RemoteCurator as RemoteCurator

# Without its `__dir__`, which would hide the hook.
__getattr__, _, __all__ = lazy_loader.attach(__name__, submod_attrs={"remote": ["RemoteCurator"]})


@hookimpl
def fpbench_commands() -> list[Lazy]:
    """One command, with one of its own."""
    return [Lazy("curator", "fpbench_curator.commands:app")]
