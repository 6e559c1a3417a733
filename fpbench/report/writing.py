"""Reports and figures as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fpbench.api.saved_run import Run
from fpbench.base.errors import InputError
from fpbench.base.files import write_file
from fpbench.components.catalog import discover
from fpbench.report.content import content
from fpbench.report.drawing import check, draw, render
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
    text = render_report(run, rank_by)
    file = output or run.path / "report.html"
    try:
        if output:
            output.write_text(text, encoding="utf-8", newline="\n")
        else:  # which a stranger may have made a link
            write_file(file, text)
    except OSError as error:
        hint = "" if output else "; name another file with --output"
        raise InputError(f"{file}: cannot be written: {error.strerror or error}{hint}") from error
    return file


def render_report(run: Run, rank_by: str | None = None) -> str:
    """A run as one self-contained HTML page; see `write_report`."""
    return page(content(gather(run, rank_by), discover()))


def write_figure(
    run: Run,
    name: str,
    output: Path | None = None,
    width: float | None = None,
    rank_by: str | None = None,
    where: Iterable[str] = (),
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
    draw(figure(gather(run, rank_by, where), name), file, width=width)
    return file


def render_figure(
    run: Run,
    name: str,
    width: float | None = None,
    rank_by: str | None = None,
    where: Iterable[str] = (),
) -> bytes:
    """A figure of a run as PDF; see `write_figure`."""
    check(Path(f"{name}.pdf"))
    return render(figure(gather(run, rank_by, where), name), "pdf", width=width)


def list_figures(
    run: Run, rank_by: str | None = None, where: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """The figures that a run has enough for: their names and titles."""
    available = figures(gather(run, rank_by, where))
    return [(one.name, one.title) for one in available] or [("none", "its results are too few")]
