"""A living leaderboard: runs that others send are checked, and shown as a static site."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_commands() -> list[Lazy]:
    """One command, with two of its own."""
    return [Lazy("board", "fpbench_board.commands:app")]
