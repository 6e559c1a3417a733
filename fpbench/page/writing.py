"""The page and figures of a run as files.

The page is one HTML file with its data, its script and plotly, which makes no requests.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Callable, Iterable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fpbench.base.errors import InputError, tell_extra
from fpbench.base.files import check_output, write_file, write_output
from fpbench.base.text import escape_unprintable, hide_paths
from fpbench.components.catalog import discover
from fpbench.page.content import make_content
from fpbench.page.drawing import check, draw, render
from fpbench.page.figures import Figure
from fpbench.page.gathered import gather
from fpbench.page.ideas import make_figure, make_figures
from fpbench.results.snapshot import SavedRun


def write_report(run: SavedRun, output: Path | None = None, by: str | None = None) -> Path:
    """Write a run as one self-contained HTML file.

    `output`: the file; `page.html` in the run directory if None. `by`: the measure that
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
    file = run.path / "page.html"
    try:
        write_file(file, text)  # replaces any file there, so no trap needs a refusal
    except OSError as error:
        raise InputError(
            f"{file}: cannot be written: {error.strerror}; name another file with --output"
        ) from error
    return file


def render_report(run: SavedRun, by: str | None = None) -> str:
    """A run as one self-contained HTML page; see `write_report`."""
    find_plotly()  # before the work
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
    try:
        check(file)
    except InputError:
        choose()  # a wrong name is told first: nothing need be installed to mend it
        raise
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


_SCRIPTS = ("data.js", "words.js", "tables.js", "boards.js", "cells.js", "details.js",
            "statements.js", "charts.js", "frontier.js", "glossary.js", "main.js")  # fmt: skip
"""Parts of the page's script, in order: later ones use earlier ones."""


def write_page(content: dict[str, Any]) -> str:
    """The HTML file.

    `content`: as `fpbench.page.content.make_content` returns it.

    Raises InputError if plotly is not installed.
    """
    library, content = find_plotly().read_text(encoding="utf-8"), _escape_texts(content)
    script = "(() => {\n'use strict';\n" + "".join(map(_read_asset, _SCRIPTS)) + "})();\n"
    # Only these two scripts may run, and nothing may be fetched, whatever labels contain.
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {_hash(script)} {_hash(library)}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(hide_paths(content["title"])),
        "style": _read_asset("report.css"),
        "data": compress(hide_paths(write_json(content))),
        "library": compress(library),
        "script": script,
    }
    text = _read_asset("report.html")
    before, *pieces = text.split("{{")  # inserted texts are not searched again
    return before + "".join(
        parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces)
    )


def _escape_texts(part: Any) -> Any:
    """The content, its control characters escaped: labels may come from a stranger's matrix."""
    if isinstance(part, dict):
        return {_escape_texts(name): _escape_texts(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_escape_texts(value) for value in part]
    return escape_unprintable(part, but="\t\r\n") if isinstance(part, str) else part


def find_plotly() -> Path:
    """The file of plotly that the page holds.

    Raises InputError if plotly is not installed.
    """
    # Importing the package takes a second, and only one of its files is needed.
    spec = find_spec("plotly")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(place) / "package_data" / "plotly.min.js"
        if file.is_file():
            return file
    raise InputError(f"fpbench page needs plotly: {tell_extra('report')}")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _read_asset(name: str) -> str:
    return (files("fpbench.page") / "assets" / name).read_text(encoding="utf-8")


def write_json(data: Any) -> str:
    """The shortest JSON of plain data."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def compress(text: str) -> str:
    """Text, compressed, in base 64; always the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
