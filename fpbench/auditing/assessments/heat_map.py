"""The cells of reports, coloured by what is known of their people: HTML for notebooks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape

import numpy as np

from fpbench.auditing.assessments.riskiest_cells import RiskyCell
from fpbench.base.text import escape_unprintable
from fpbench.claims.set_counts import Facts, Floats, Mask

_SLICES = 40
"""Most slices that are shown."""
_NAMED = 10 * _SLICES
"""Most cells that are named, which takes time."""
_COLOURS = {"proven": "179,38,30", "sure": "215,120,0", "adds": "30,100,200"}
_NAME = re.compile(r"(.*?)(?:, predicted ([01]))? \(row (\d+)\)", re.DOTALL)


def write_heat_map(
    facts: Facts, proven: Mask, sure: Mask, gain: Floats, riskiest: Sequence[RiskyCell]
) -> str:
    """A table with a row for each slice, and a column for each prediction; all text is escaped.

    Shown are the slices of the riskiest cells, and of those cells of whose people more is known
    than of others. `proven`, `sure`: (n,) people. `gain`: (n,) rise of the chance that a person is
    guessed right.
    """
    told = np.stack([facts.count(one.astype(float)) for one in (proven, sure, gain)], axis=1)
    above = told.sum(axis=1) - facts.sizes * (proven + sure + gain).mean()
    for cell in riskiest:
        same = (np.stack([facts.low, facts.high], axis=2) == np.array(cell.counts)).all(axis=(1, 2))
        above[same & (facts.sizes == cell.people)] = np.inf
    above[facts.derived | (facts.sizes == 0)] = -np.inf
    ranks = {cell.name: rank for rank, cell in enumerate(riskiest, 1)}
    slices: dict[str, dict[str, str]] = {}
    order: dict[str, tuple[bool, int]] = {}
    for number in np.argsort(-above, kind="stable")[:_NAMED]:
        found = _NAME.fullmatch(facts.name(int(number)))
        if found is None or above[number] == -np.inf:
            continue
        name, prediction, row = found.groups()
        rank = ranks.get(found[0].removesuffix(f" (row {row})"))
        cells = slices.setdefault(name, {})
        cells[prediction or ""] = _write_cell(told[number], int(facts.sizes[number]), rank)
        first, _ = order.get(name, (True, 0))
        order[name] = first and rank is None, int(row)
    shown = sorted(slices, key=lambda name: order[name][0])[:_SLICES]
    shown.sort(key=lambda name: order[name][1])
    if not shown:
        return ""
    columns = sorted({prediction for name in shown for prediction in slices[name]})
    heads = "".join(f"<th>{f'predicted {one}' if one else 'all'}</th>" for one in columns)
    legend = ", ".join(f'<span style="background:rgba({colour},.4)">{name}</span>'
                       for name, colour in _COLOURS.items())  # fmt: skip
    lines = [
        f"<p><b>Cells, and what is known of their people by everything published</b>: {legend} "
        "(how many more are expected to be guessed right). The darker, the larger their share; #: "
        f"place among the riskiest cells. At most {_SLICES} slices: those of the riskiest cells, "
        "and those of whose people more is known than of others.</p>",
        '<div style="overflow-x:auto">', f"<table><tr><th>slice</th>{heads}</tr>",
        *(f'<tr><td style="text-align:left">{escape(name)}</td>'
          f"{''.join(slices[name].get(one, '<td></td>') for one in columns)}</tr>"
          for name in shown),
        "</table></div>",
    ]  # fmt: skip
    return escape_unprintable("\n".join(lines), but="\n")


def _write_cell(told: Floats, people: int, rank: int | None) -> str:
    """People of a cell; its colour is that of the first of what is known of any of them."""
    known = [(name, number) for name, number in zip(_COLOURS, told, strict=True) if number >= 0.05]
    words = [f"adds {number:,.1f}" if name == "adds" else f"{number:,.0f} {name}"
             for name, number in known]  # fmt: skip
    text = f"{people:,} people{f' (#{rank})' if rank else ''}"
    if not known:
        return f"<td>{text}</td>"
    colour, strength = _COLOURS[known[0][0]], 0.5 * math.sqrt(min(told.sum() / people, 1))
    return f'<td style="background:rgba({colour},{strength:.2f})">{text}: {", ".join(words)}</td>'
