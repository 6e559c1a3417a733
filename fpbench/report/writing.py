"""Reports and figures as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fpbench.base.errors import InputError
from fpbench.base.files import check_output, write_file, write_output
from fpbench.components.catalog import discover
from fpbench.report.content import make_content
from fpbench.report.drawing import check, draw, render
from fpbench.report.figures import Figure
from fpbench.report.gathered import gather
from fpbench.report.ideas import make_figure, make_figures
from fpbench.report.page import write_page
from fpbench.results.snapshot import SavedRun


def write_report(run: SavedRun, output: Path | None = None, by: str | None = None) -> Path:
    """Write a run as one self-contained HTML file.

    `output`: the file; `report.html` in the run directory if None. `by`: the measure that
    leaderboards rank by; the matrix's measure if None.

    Raises InputError if no cell has that measure, plotly is not installed, or the file cannot be
    written; StoreError if no cell has been run.
    """
    if output:
        check_output(output)  # before the work
    text = render_report(run, by)
    if output:
        write_output(output, text)
        return output
    file = run.path / "report.html"
    try:
        write_file(file, text)  # replaces any file there, so no trap needs a refusal
    except OSError as error:
        raise InputError(
            f"{file}: cannot be written: {error.strerror}; name another file with --output"
        ) from error
    return file


def render_report(run: SavedRun, by: str | None = None) -> str:
    """A run as one self-contained HTML page; see `write_report`."""
    return write_page(make_content(gather(run, by, judge=True), discover()))


def write_figure(
    run: SavedRun,
    name: str,
    output: Path | None = None,
    width: float | None = None,
    by: str | None = None,
    where: Iterable[str] = (),
) -> Path:
    """Draw a figure of a run; see `draw`.

    Raises InputError if the run has no such figure, or it cannot be drawn or written; StoreError if
    no cell has been run.
    """
    return write_one(lambda: make_figure(gather(run, by, where), name), name, output, width)


def write_one(
    choose: Callable[[], Figure], name: str, output: Path | None, width: float | None
) -> Path:
    """Draw a figure, chosen only if its file can be drawn; to NAME.pdf if `output` is None."""
    file = output or Path(f"{name}.pdf")
    check(file)
    draw(choose(), file, width=width)
    return file


def render_figure(
    run: SavedRun,
    name: str,
    width: float | None = None,
    by: str | None = None,
    where: Iterable[str] = (),
) -> bytes:
    """A figure of a run as PDF; see `write_figure`."""
    check(Path(f"{name}.pdf"))
    return render(make_figure(gather(run, by, where), name), "pdf", width=width)


def list_figures(run: SavedRun, by: str | None = None, where: Iterable[str] = ()) -> dict[str, str]:
    """The figures for which a run has enough results: titles by name."""
    return {one.name: one.title for one in make_figures(gather(run, by, where))}
