"""Draws what a run of claims.toml shows: docs/assets/leaderboard.svg and waterfall.svg.

`fpbench run benchmarks/claims.toml && python .ci/picture.py runs/claims` draws them anew.
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

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
WIDTH = 80
WHERE = ("--where", "corrector=posterior")
BOARD = (*WHERE, "--all")
DARK, LIGHT = (30, 33, 43), (214, 220, 230)
COLOURS = [
    DARK, (240, 113, 120), (150, 210, 130), (240, 200, 110),
    (120, 170, 255), (199, 146, 234), (110, 200, 220), LIGHT,
]  # fmt: skip


def main(run: str) -> None:
    """Write the message and the board of a run up to its notes, and its waterfall as a figure.

    No font is loaded.
    """
    terminal = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    shown = subprocess.run(
        [sys.executable, "-m", "fpbench", "leaderboard", run, *BOARD],
        env=terminal, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ fpbench leaderboard runs/claims {' '.join(BOARD)}", style="dim"))
    bars = False  # which the figure shows
    for line in map(Text.from_ansi, shown.splitlines()):
        bars = (bars or line.plain.startswith("known ")) and bool(line.plain.strip())
        if bars:
            continue
        if line.plain.startswith(("lines with the same rank", "ranks are shared", "1 more")):
            break
        line.rstrip()
        console.print(line, no_wrap=True, crop=False)
    theme = TerminalTheme(DARK, LIGHT, COLOURS)
    drawn = console.export_svg(title="fpbench", theme=theme, unique_id="leaderboard")
    drawn = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", drawn, flags=re.S)
    fonts = '"DejaVu Sans Mono", Menlo, Consolas, monospace'
    (ASSETS / "leaderboard.svg").write_text(
        drawn.replace("Fira Code, monospace", fonts), encoding="utf-8"
    )
    figure = [sys.executable, "-m", "fpbench", "figure", run, "waterfall", *WHERE]
    subprocess.run([*figure, "-o", ASSETS / "waterfall.svg"], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
