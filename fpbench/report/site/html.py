"""HTML made from elements, so that no text of a stranger becomes an element."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TypeAlias

from fpbench.base.text import escape_unprintable

_LONGEST = 20_000
"""Greatest length of a text on a page; a matrix is seldom longer."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = str | None
"""Text, which is escaped, or HTML; None for nothing."""


def make_element(tag: str, *children: Child, **attributes: str | None) -> Html:
    """An element; an attribute is left out if None, and `class_` is `class`, `data_x` `data-x`."""
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{_escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{written}>{join(children)}</{tag}>")


def join(children: Iterable[Child], between: str = "") -> Html:
    """Texts and elements, one after the other."""
    parts = [c if isinstance(c, Html) else Html(_escape(c)) for c in children if c is not None]
    return Html(_escape(between).join(parts))


def _escape(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ... ({len(text) - _LONGEST:,} more letters)"
    return escape(escape_unprintable(text, but="\n"))


def make_table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[tuple[Sequence[Child], str | None]],
    numbers: Iterable[str] = (),
) -> Html:
    """A table, which a phone shows as one card per row.

    Parameters
    ----------
    caption
        Its description, for screen readers.
    headings
        Headings of its columns.
    rows
        The cells of each row, and its class.
    numbers
        Headings of columns that hold numbers.
    """
    right = frozenset(numbers)
    kinds = ["number" if heading in right else None for heading in headings]
    head = [
        make_element("th", heading, scope="col", role="columnheader", class_=kind)
        for heading, kind in zip(headings, kinds, strict=True)
    ]
    body = [
        make_element("tr", *(
            make_element(
                "td", make_element("span", cell), role="cell", class_=kind, data_name=heading
            )
            for cell, kind, heading in zip(cells, kinds, headings, strict=True)
        ), role="row", class_=row_class)
        for cells, row_class in rows
    ]  # fmt: skip
    # As cards, rows and cells are blocks: the roles keep them a table for screen readers.
    return make_element(
        "table",
        make_element("caption", caption),
        make_element("thead", make_element("tr", *head, role="row"), role="rowgroup"),
        make_element("tbody", *body, role="rowgroup"),
        role="table",
    )


def make_page(title: str, site: str, root: str, *content: Child) -> str:
    """A whole page, which runs no script and makes no requests.

    `root`: path from the page to the start page's folder: empty, or `../`.
    """
    style = (files("fpbench.report.site") / "assets" / "site.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
    links = [
        ("index.html", "Start"), ("attacks.html", "Attacks"), ("defences.html", "Defences"),
        ("reports.html", "Reports"), ("index.html#submissions", "Submissions"),
        ("index.html#components", "Components"),
    ]  # fmt: skip
    items = [
        make_element("li", make_element("a", words, href=root + link)) for link, words in links
    ]
    header = make_element(
        "header",
        make_element("p", site, class_="brand"),
        make_element("nav", make_element("ul", *items), aria_label="Site"),
        make_element("h1", title),
    )
    head = [
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}form-action \'none\'">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html('<meta name="referrer" content="no-referrer">'),
        Html('<link rel="icon" href="data:,">'),
        make_element("title", title if title == site else f"{title} · {site}"),
        Html(f"<style>{style}</style>"),
    ]
    body = [
        make_element("a", "Skip to the content", class_="skip", href="#content"),
        header,
        make_element("main", *content, id="content"),
    ]
    whole = make_element(
        "html", make_element("head", *head), make_element("body", *body), lang="en"
    )
    return f"<!doctype html>\n{whole}\n"
