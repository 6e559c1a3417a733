"""Reports and figures as files."""

from __future__ import annotations

from pathlib import Path

from fpbench.api import Run
from fpbench.errors import InputError
from fpbench.plugins import discover
from fpbench.report.content import content
from fpbench.report.drawing import check, draw
from fpbench.report.gathered import gather
from fpbench.report.ideas import figure, figures
from fpbench.report.page import page


def write_report(run: Run, output: Path | None = None, rank_by: str | None = None) -> Path:
    """Write a run as one self-contained HTML file.

    Parameters
    ----------
    run
        The run.
    output
        The file; `report.html` in the run directory if None.
    rank_by
        The measure that leaderboards rank by; what the matrix says, if None.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If no cell has that measure, plotly is not installed, or the file cannot be written.
    StoreError
        If no cell has been run.
    """
    file = output or run.path / "report.html"
    text = page(content(gather(run, rank_by), discover()))
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        hint = "" if output else "; name another file with --output"
        raise InputError(f"{file}: cannot be written: {error.strerror or error}{hint}") from error
    return file


def write_figure(
    run: Run,
    name: str,
    output: Path | None = None,
    width: float | None = None,
    rank_by: str | None = None,
) -> Path:
    """Draw a figure of a run; see `draw`.

    Raises
    ------
    InputError
        If the run has no such figure, or it cannot be drawn or written.
    StoreError
        If no cell has been run.
    """
    file = output or Path(f"{name}.pdf")
    check(file)
    draw(figure(gather(run, rank_by), name), file, width=width)
    return file


def list_figures(run: Run, rank_by: str | None = None) -> list[tuple[str, str]]:
    """The figures that a run has enough for: their names and titles."""
    found = figures(gather(run, rank_by))
    return [(one.name, one.title) for one in found] or [("none", "its results are too few")]


__all__ = ["list_figures", "write_figure", "write_report"]
