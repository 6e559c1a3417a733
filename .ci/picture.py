"""Draws docs/assets/leaderboard.svg: what the command line shows of a run of the quickstart.

`fpbench run benchmarks/quickstart.toml && python .ci/picture.py runs/quickstart` draws it anew.
"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "leaderboard.svg"
WIDTH = 113
DARK, LIGHT = (30, 33, 43), (214, 220, 230)
COLOURS = [
    DARK, (240, 113, 120), (150, 210, 130), (240, 200, 110),
    (120, 170, 255), (199, 146, 234), (110, 200, 220), LIGHT,
]  # fmt: skip


def main(run: str) -> None:
    """Write the picture of a run, up to its notes; no font is loaded from elsewhere."""
    terminal = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    shown = subprocess.run(
        [sys.executable, "-m", "fpbench", "leaderboard", run],
        env=terminal, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ fpbench run benchmarks/quickstart.toml", style="dim"))
    for line in map(Text.from_ansi, shown.splitlines()):
        if line.plain.startswith("neighbours of one rank"):
            break
        line.rstrip()
        console.print(line, no_wrap=True, crop=False)
    theme = TerminalTheme(DARK, LIGHT, COLOURS)
    drawn = console.export_svg(title="fpbench", theme=theme, unique_id="leaderboard")
    drawn = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", drawn, flags=re.S)
    fonts = '"DejaVu Sans Mono", Menlo, Consolas, monospace'
    PICTURE.write_text(drawn.replace("Fira Code, monospace", fonts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
