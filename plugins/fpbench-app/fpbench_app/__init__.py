"""A local page for those who do not use a terminal: may this table be published, and which may?"""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_commands() -> list[Lazy]:
    """One command."""
    return [Lazy("app", "fpbench_app.commands:serve")]
