"""A report as one HTML page, to be read: a table for each crossing of columns."""

from __future__ import annotations

from html import escape

import numpy as np

from fpbench.base.sheet import Column, Sheet, write_html
from fpbench.base.text import escape_unprintable
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import REPORT_METRICS, Codes

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; }
summary { cursor: pointer; font-weight: 600; padding: .5rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .7rem; text-align: left; }
th { vertical-align: bottom; }
"""

_METRICS = list(REPORT_METRICS)


def to_page(report: ReportRows, title: str) -> str:
    """A standalone page; every name is escaped."""
    _, first, table = np.unique(report.cells >= 0, axis=0, return_index=True, return_inverse=True)
    blocks = report.blocks[1]
    of_block = table.ravel()[blocks.max(axis=1)] if len(report) else np.zeros(0, np.int64)
    crossed = (report.cells >= 0).sum(axis=1)
    order = sorted(range(len(first)), key=lambda t: (crossed[first[t]], first[t]))
    parts = [
        _write_table(report, blocks[of_block == t], opened=crossed[first[t]] < 2) for t in order
    ]
    columns = Column("statistic", number=False), Column("group", number=False), Column("value")
    rows = tuple((one.describe(), one.group, f"{one.value:.6g}") for one in report.statistics)
    others = write_html([Sheet("", "", columns, rows)])
    parts += [f'<div class="wide">{others}</div>'] * bool(rows)
    slices = len(np.unique(report.cells, axis=0))
    groups = ", ".join(map(escape, report.groups))
    done = "; ".join(f"{name} {_say(value)}" for name, value in report.defences.items()) or "none"
    done += f". Differential privacy: {stated}" if (stated := report.stated) else ""
    lines = [
        '<!doctype html>', '<html lang="en">', '<head>', '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>By group ({groups}), for {slices:,} slice{'s' * (slices != 1)} of people. "
        f"Defences: {escape(done)}.</p>",
        *parts, "</body>", "</html>", "",
    ]  # fmt: skip
    return escape_unprintable("\n".join(lines), but="\n")


def _write_table(report: ReportRows, blocks: Codes, *, opened: bool) -> str:
    cuts = [c for c in range(len(report.columns)) if report.cells[blocks.max(axis=1)[0], c] >= 0]
    names = [report.columns[c].name for c in cuts]
    columns = [Column(name, number=False) for name in ("metric", *names)]
    columns += map(Column, report.groups)
    lines = []
    for rows in sorted(blocks, key=lambda rows: _METRICS.index(report.metric[rows.max()])):
        own = int(rows.max())
        cells = [report.columns[c].values[report.cells[own, c]] for c in cuts]
        values = [_write_value(report, int(row)) for row in rows]
        lines.append((str(report.metric[own]), *cells, *values))
    what = f"By {' and '.join(names)}" if names else "Everybody"
    table = write_html([Sheet("", "", tuple(columns), tuple(lines))])
    return (
        f"<details{' open' if opened else ''}><summary>{escape(what)}</summary>"
        f'<div class="wide">{table}</div></details>'
    )


def _write_value(report: ReportRows, row: int) -> str:
    if row < 0:
        return ""
    if report.suppressed[row]:
        below = report.below[row]
        return f"a group has fewer than {below}" if below else "hidden"
    if np.isnan(report.value[row]):
        return "nobody"
    value, n = f"{report.value[row]:.6g}", report.n[row]
    return value if n < 0 else f"{value} of {n:,}"


def _say(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
