"""Figures for papers: vector files, drawn by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError, suggest_name, tell_extra
from fpbench.base.files import check_output, write_output
from fpbench.base.text import format_percent, format_points
from fpbench.page.figures import Axis, Figure, FigurePoint, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("pdf", "svg", "png")
"""Formats of drawings, by the ending of the file."""

# Okabe and Ito (2008), colours for the colour-blind, without yellow, which is lost on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "D", "^", "P", "X", "*")
_COLUMNS = 3
_PANEL = (2.7, 2.1)
"""Inches of one of several panels: three of them fill a page."""
_ALONE = (3.4, 2.5)
"""Inches of a panel alone: a column."""
_WORD, _LETTER = 0.25, 0.068
"""Inches of a word that is written aslant, and of a letter."""
_UPRIGHT = 6
"""More words than this are written aslant."""
_STYLE = {
    "pdf.fonttype": 42,  # TrueType, whole and embedded: journals refuse type 3
    "ps.fonttype": 42,
    "svg.fonttype": "path",  # letters as shapes: they look the same everywhere
    "svg.hashsalt": "fpbench",  # the same figure is the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # which comes with matplotlib
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "text.usetex": False,
}


def draw(figure: Figure, output: Path, *, width: float | None = None) -> None:
    """Write a figure as PDF or SVG, vectors both, or as PNG at 300 dots an inch.

    The same figure is the same file, byte for byte, with the same version of matplotlib. In PDF
    fonts are embedded (TrueType); in SVG letters are shapes.

    `output`: the file; its ending is the format. `width`: inches; by default as wide as its panels
    need.

    Raises InputError if the ending is not one of `FORMATS`, the width is out of range, matplotlib
    is not installed, or the file cannot be written.
    """
    write_output(output, render(figure, check(output), width=width))


def render(figure: Figure, form: str, *, width: float | None = None) -> bytes:
    """A figure in one of `FORMATS`; see `draw`."""
    if width is not None and not 1 <= width <= 50:
        raise InputError(f"width: {width:g} is out of range (1 to 50 inches)")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_STYLE):
        columns = 2 if len(figure.panels) == 4 else min(_COLUMNS, len(figure.panels))
        rows = math.ceil(len(figure.panels) / columns)
        names, places = _names(figure), _find_places(figure)
        each = _ALONE if columns == 1 else _PANEL
        wide = width or columns * max(each[0], _measure_room(figure, places))
        # The legend has as many columns as its longest name leaves room for.
        across = max(1, int(wide / (0.6 + _LETTER * max(map(len, names)))))
        below = 0.2 + 0.17 * math.ceil(len(names) / across)
        canvas = Canvas(figsize=(wide, each[1] * rows + below), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for one in axes[len(figure.panels) :]:
            one.set_visible(False)
        for number, (one, panel) in enumerate(zip(axes, figure.panels, strict=False)):
            _draw_panel(one, figure, panel, names, places, max(int(wide / columns / _LETTER), 20))
            if number % columns == 0:
                one.set_ylabel(figure.y.title)
            if number + columns >= len(figure.panels):
                one.set_xlabel(figure.x.title)
                one.tick_params(labelbottom=True)
        handles = _handles(axes)
        if len(names) > 1 or names[0] != figure.y.title:
            canvas.legend(handles.values(), handles, loc="outside lower center", ncols=across)
        return _save_canvas(canvas, form)


def check(output: Path) -> str:
    """The format of a file, by its ending.

    Raises InputError if it is not one of `FORMATS`, or matplotlib is not installed.
    """
    form = check_output(output).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        hint = suggest_name(form, FORMATS) if form else f"must end in {', '.join(FORMATS)}"
        raise InputError(f"{output}: unknown format {output.suffix!r}; {hint}")
    if find_spec("matplotlib") is None:
        raise InputError(f"fpbench figure needs matplotlib: {tell_extra('figures')}")
    return form


def _save_canvas(canvas: Any, form: str) -> bytes:
    # No date, so that the same figure is the same file.
    about = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[form]
    content = BytesIO()
    canvas.savefig(content, format=form, dpi=300, metadata=about)
    return content.getvalue()


def _names(figure: Figure) -> list[str]:
    names = (series.name for panel in figure.panels for series in panel.series)
    return list(dict.fromkeys(names))


def _find_places(figure: Figure) -> dict[Any, int]:
    """The positions of words on the x axis."""
    points = (p for panel in figure.panels for series in panel.series for p in series.points)
    return {place: i for i, place in enumerate(dict.fromkeys(point.x for point in points))}


def _measure_room(figure: Figure, places: Mapping[Any, int]) -> float:
    """Inches that the words on an axis need."""
    if not figure.x.words:
        return 0.0
    if len(places) > _UPRIGHT:
        return _WORD * len(places)
    longest = max(len(line) for place in places for line in _fold_word(place).splitlines())
    return len(places) * (0.1 + _LETTER * longest)


def _fold_word(place: Any) -> str:
    """A word, broken into lines for upright writing."""
    return fill(str(place), 12, break_long_words=False)


def _draw_panel(
    axes: Axes,
    figure: Figure,
    panel: Panel,
    names: Sequence[str],
    places: Mapping[Any, int],
    letters: int,
) -> None:
    """Draw one panel; `letters` is the length of a line of its title."""
    axes.set_title(_write_label(fill(panel.title, letters)))
    if figure.x.words:
        if len(places) <= _UPRIGHT:
            words = [_write_label(_fold_word(place)) for place in places]
            axes.set_xticks(range(len(places)), words)
        else:
            words = [_write_label(str(place)) for place in places]
            axes.set_xticks(range(len(places)), words, rotation=40, ha="right")
        axes.set_xlim(-0.6, len(places) - 0.4)
    _scale(axes, figure.x, figure.y)
    count = len(panel.series)
    for number, series in enumerate(panel.series):
        shift = (number / (count - 1) - 0.5) * min(0.6, 0.1 * count) if count > 1 else 0.0
        x = [places[p.x] + shift if figure.x.words else p.x for p in series.points]
        _draw_series(axes, series, x, names.index(series.name))


def _scale(axes: Axes, x: Axis, y: Axis) -> None:
    if x.log:
        axes.set_xscale("log")
    if y.log:
        axes.set_yscale("log")


def _draw_series(axes: Axes, series: Series, x: Sequence[Any], number: int) -> None:
    colour = _COLOURS[number % len(_COLOURS)]
    marker = _MARKERS[(number + number // len(_COLOURS)) % len(_MARKERS)]
    y = [point.y for point in series.points]
    if series.bars:
        _draw_bars(axes, series, x, colour)
        return
    if series.joined:
        again = ":" if number >= len(_COLOURS) else "-"
        axes.plot(
            x,
            y,
            marker + ("--" if series.dashed else again),
            color=colour,
            label=_write_label(series.name),
        )
        known = [
            (at, p.low, p.high) for at, p in zip(x, series.points, strict=True) if p.low is not None
        ]
        if known:
            places, low, high = zip(*known, strict=True)
            axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        return
    ends = [
        [_measure_offset(p, p.low) for p in series.points],
        [_measure_offset(p, p.high) for p in series.points],
    ]
    axes.errorbar(
        x,
        y,
        yerr=ends,
        fmt=marker,
        color=colour,
        capsize=1.5,
        linewidth=0.8,
        label=_write_label(series.name),
    )


def _draw_bars(axes: Axes, series: Series, x: Sequence[Any], colour: str) -> None:
    """Draw bars that begin where the bar before ends, with the added value above each."""
    before = series.floor
    for number, (at, point) in enumerate(zip(x, series.points, strict=True)):
        ends = [[_measure_offset(point, point.low)], [_measure_offset(point, point.high)]]
        name = _write_label(series.name) if number == 0 else None
        alpha = 0.45 if number == 0 else 1.0
        axes.bar([at], [point.y - before], 0.7, before, color=colour, edgecolor=colour,
                 linewidth=0.8, alpha=alpha, label=name)  # fmt: skip
        axes.errorbar([at], [point.y], yerr=ends, color="black", capsize=1.5, linewidth=0.8)
        top = max(point.y, before, point.high or 0)
        added = f"\n({format_points((point.y - before) / 100)})" if number else ""
        text = f"{format_percent(point.y / 100)}{added}"
        axes.annotate(text, (at, top), (0, 2), textcoords="offset points", ha="center",
                      va="bottom", fontsize=7)  # fmt: skip
        before = point.y
    axes.margins(y=0.18)
    axes.set_ylim(bottom=series.floor)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="x")


def _measure_offset(point: FigurePoint, end: float | None) -> float:
    return 0.0 if end is None else abs(end - point.y)


def _handles(axes: Iterable[Axes]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def _write_label(text: str) -> str:
    """A label, escaped for matplotlib.

    matplotlib would read formulas between dollars, and omit names that begin with an underscore
    from its legend.
    """
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
