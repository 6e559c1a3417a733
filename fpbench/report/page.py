"""The report: one HTML file with its data, its script and plotly, which makes no requests."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fpbench.base.distribution import tell_extra
from fpbench.base.errors import InputError
from fpbench.base.text import escape_unprintable, hide_paths
from fpbench.report import embedding

_SCRIPTS = ("data.js", "words.js", "tables.js", "boards.js", "cells.js", "details.js",
            "statements.js", "charts.js", "frontier.js", "glossary.js", "main.js")  # fmt: skip
"""Parts of the page's script, in order: later ones use earlier ones."""


def write_page(content: dict[str, Any]) -> str:
    """The HTML file.

    `content`: as `fpbench.report.content.make_content` returns it.

    Raises InputError if plotly is not installed.
    """
    library, content = _read_plotly(), _escape_texts(content)
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
        "data": embedding.compress(hide_paths(embedding.write_json(content))),
        "library": embedding.compress(library),
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


def _read_plotly() -> str:
    # Importing the package takes a second, and only one of its files is needed.
    spec = find_spec("plotly")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(place) / "package_data" / "plotly.min.js"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise InputError(f"fpbench report needs plotly: {tell_extra('report')}")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _read_asset(name: str) -> str:
    return (files("fpbench.report") / "assets" / name).read_text(encoding="utf-8")
