"""The `page` and `figure` commands."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fpbench.base.errors import InputError
from fpbench.cli.groups import STANDARD, RunDirectory
from fpbench.cli.screen import console

By = Annotated[str | None, typer.Option(help="Measure to rank by.")]


PageFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="The HTML file, - for standard output; RUN/page.html if not given."
    ),
]


def page(run: RunDirectory, output: PageFile = None, by: By = None) -> None:
    """Write a run as one HTML page, with figures and provenance."""
    from fpbench.api.saved_run import Run
    from fpbench.page.writing import render_report, write_report

    if output == STANDARD:
        console.show_text(render_report(Run(run), by))
    else:
        console.show_text(f"page: {write_report(Run(run), output, by)}")


def figure(
    run: RunDirectory,
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the figure; without it, list the figures.", metavar="NAME"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A .pdf, .svg or .png file, - for PDF on standard output; NAME.pdf if not given.",
        ),
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Width in inches; by default as wide as the panels need.")
    ] = None,
    by: By = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only rows that match; may be repeated.", metavar="FILTER"),
    ] = None,
) -> None:
    """Draw a figure of a run for a paper, or list the figures."""
    from fpbench.api.saved_run import Run
    from fpbench.page.ideas import NO_FIGURE
    from fpbench.page.writing import list_figures, render_figure, write_figure

    loaded_run = Run(run)
    if name is None:
        available = list_figures(loaded_run, by, where or ())
        console.show_listing(available.items() or [(NO_FIGURE,)], indent=0)
    elif output == STANDARD:
        if sys.stdout.isatty():
            raise InputError("PDF is binary: name a file with --output")
        typer.echo(render_figure(loaded_run, name, width, by, where or ()), nl=False)
    else:
        file = write_figure(loaded_run, name, output, width, by, where or ())
        console.show_text(f"figure: {file}")
