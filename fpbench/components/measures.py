"""Measures: their names, headings and meanings, which way is better, and a glossary of them.

The measures of fpbench itself are in `fpbench.components.own_measures`; components declare theirs
in `measures`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, cast, get_args

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError, PluginError, find_near_name, suggest_name
from fpbench.base.text import DECIMALS, format_number

Better: TypeAlias = Literal["greater", "less", "neither"]
Column: TypeAlias = Literal["always", "varying", "asked"]
Against: TypeAlias = Literal["parameters", "privacy"]
GREATER: Better = "greater"
LESS: Better = "less"
NEITHER: Better = "neither"
SHARE = "share"
"""Unit of shares, and of differences of shares; displayed in percent."""

_NAME = re.compile(r"[*_]*[a-z][a-z0-9_*]*")
_LONGEST = 500
"""Letters of a text in a measure."""


@dataclass(frozen=True)
class MeasureFigure:
    """The declaration of a figure that a report draws against parameters of learners.

    Attributes
    ----------
    name
        Stem of its name: a figure named `risk` against a parameter `teachers` is `risk-teachers`.
    title
        Its title, without the parameter.
    caption
        What it shows, in one sentence.
    axis
        Title of its vertical axis.
    series
        The measures that it draws, with the name of each one's series. The first has solid lines,
        the others have dashed ones.
    against
        The parameters that it is drawn against: all numbers that learners are swept over
        (`parameters`), or epsilon and the noise only (`privacy`).

    Examples
    --------
    >>> MeasureFigure("leak", "Leak", "Bits of a group.", "bits", (("leak_bits", "test"),)).against
    'parameters'
    """

    name: str
    title: str
    caption: str
    axis: str
    series: tuple[tuple[str, str], ...]
    against: Against = "parameters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(map(tuple, self.series)))  # JSON gives lists
        if any(len(pair) != 2 for pair in self.series):
            raise PluginError(f"figure {self.name!r}: series must be pairs of measure and name")

    def texts(self) -> list[tuple[str, Any]]:
        """All its texts, each with the name of its field."""
        texts = [(f"figure: {name}", text) for name, text in vars(self).items() if name != "series"]
        return texts + [("figure: series", text) for pair in self.series for text in pair]


@dataclass(frozen=True)
class Measure:
    """The declaration of a column of rows: a number, or a word.

    Attributes
    ----------
    name
        Its name in rows, in snake_case. `*` stands for any letters, such as the name of a group.
    heading
        Heading of its column; by default the name, with spaces.
    better
        Which values are better: `greater`, `less` or `neither`.
    unit
        Unit of its values: `share`, `s`, `people`, `bits`, ...; may be empty. The name of a
        measure in `s` ends in `_seconds`: comparisons of runs skip it.
    meaning
        Its meaning in one sentence.
    column
        When a leaderboard has this column: `always`, only where lines differ in it (`varying`), or
        only on demand (`asked`).
    source
        Kind and name of the component that declares it; set by fpbench.
    if_no
        Note below leaderboards with a line whose value is 0 at every seed; may be empty.
    figure
        A figure of this measure and others in reports; None for none.
    decimals
        Decimals shown of a value below 100, 0 to 9; files have all.

    Examples
    --------
    >>> Measure("leak_bits", better="less", unit="bits").heading
    'leak bits'
    """

    name: str
    heading: str = ""
    better: Better = NEITHER
    unit: str = ""
    meaning: str = ""
    column: Column = "always"
    source: str = ""
    if_no: str = ""
    figure: MeasureFigure | None = None
    decimals: int = DECIMALS

    def __post_init__(self) -> None:
        if not self.heading:
            object.__setattr__(self, "heading", str(self.name).replace("_", " "))

    @classmethod
    def table(cls, column: Column, text: str) -> tuple[Measure, ...]:
        """Measures from a text, one per line: `name, heading | better unit | meaning`.

        Parameters
        ----------
        column
            When a leaderboard has a column of them.
        text
            Headings and units may be left out; `bits:1` has one decimal. A line without `|`
            continues the line above.

        Examples
        --------
        >>> Measure.table("asked", "leak_bits | less bits | what an answer reveals")[0].unit
        'bits'
        """
        measures = []
        for line in re.sub(r"\n(?!.*\|)\s*", " ", text.strip()).splitlines():
            names, kind, meaning = (part.strip() for part in line.split("|"))
            (name, _, heading), (better, _, unit) = names.partition(", "), kind.partition(" ")
            unit, _, decimals = unit.partition(":")
            shown = int(decimals) if decimals else DECIMALS
            measures.append(
                cls(name, heading, cast(Better, better), unit, meaning, column, decimals=shown)
            )
        return tuple(measures)

    def check(self) -> None:
        """Raise PluginError if a field is not as described."""
        words: list[tuple[str, tuple[str, ...]]]
        words = [(self.better, get_args(Better)), (self.column, get_args(Column))]
        others = ("figure", "decimals")
        texts = [(name, value) for name, value in vars(self).items() if name not in others]
        if type(self.decimals) is not int or not 0 <= self.decimals < 10:
            raise PluginError(f"measure {self.name!r}: decimals: must be a whole number, 0 to 9")
        if isinstance(self.figure, MeasureFigure):
            words.append((self.figure.against, get_args(Against)))
            texts += self.figure.texts()
        elif self.figure is not None:
            raise PluginError(
                f"measure {self.name!r}: figure: must be a fpbench.plugin.MeasureFigure"
            )
        for place, text in texts:
            if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST:
                raise PluginError(
                    f"measure {self.name!r}: {place}: must be a text of one line, not "
                    f"{show_value(text)}"
                )
        if not _NAME.fullmatch(self.name):
            raise PluginError(
                f"measure {self.name!r}: its name must be snake_case: small letters, digits and _"
            )
        if self.unit == "s" and not self.name.endswith("seconds"):
            raise PluginError(
                f"measure {self.name!r}: has the unit s, so its name must end in _seconds"
            )
        for value, known in words:
            if value not in known:
                raise PluginError(
                    f"measure {self.name!r}: unknown {value!r}; {suggest_name(value, known)}"
                )

    def write(self, number: float | None) -> str:
        """A value as displayed, a share in percent; "-" for None."""
        if self.unit == SHARE and number is not None:
            return f"{100 * number:z.2f}"
        return format_number(number, self.decimals)

    def as_data(self) -> dict[str, Any]:
        """The measure as plain data, for JSON."""
        return asdict(self)


_MAIN = (
    "with_accuracy", "without_accuracy", "majority_accuracy", "leak", "limit", "gain",
    "initial_accuracy", "corrected_accuracy", "test_accuracy", "test_unfairness", "advantage",
    "error",
)  # fmt: skip
"""Measures that most leaderboards rank by or show."""
_MOST = 12
"""Measures that a message suggests to a user who gave no name."""


class Glossary:
    """Measures by name; a name without a declaration has a measure without heading and meaning.

    `own` are those of fpbench, `declared` those of components in the order of their columns. Of
    several with one name the first counts; names of fpbench take precedence.
    """

    def __init__(self, own: Iterable[Measure], declared: Iterable[Measure] = ()) -> None:
        self._own = {measure.name: measure for measure in own}
        self._declared: dict[str, Measure] = {}
        for measure in declared:
            if measure.name not in self._own:
                self._declared.setdefault(measure.name, measure)
        self._known = {**self._own, **self._declared}

    @property
    def own(self) -> tuple[Measure, ...]:
        """Measures of fpbench."""
        return tuple(self._own.values())

    @property
    def declared(self) -> tuple[Measure, ...]:
        """Measures of components."""
        return tuple(self._declared.values())

    def declaring(self, measures: Iterable[Measure]) -> Glossary:
        """A glossary with more measures of components."""
        return Glossary(self.own, (*self.declared, *measures))

    def __getitem__(self, name: str) -> Measure:
        if name not in self._known:
            patterns = (one for one in self._declared.values() if "*" in one.name)
            pattern = next((one for one in patterns if fnmatchcase(name, one.name)), None)
            self._known[name] = replace(pattern or _make_undeclared(name), name=name, heading="")
        return self._known[name]

    def heading(self, name: str) -> str:
        """The heading of the column of a measure."""
        return self[name].heading

    def columns(self, measured: Collection[str]) -> list[Measure]:
        """Measures of components that a leaderboard shows by default, in the order declared."""
        order = {name: place for place, name in enumerate(self._declared)}
        added = [self[name] for name in measured if name not in self._own]
        columns = [measure for measure in added if measure.source and measure.column != "asked"]
        return sorted(columns, key=lambda measure: order.get(measure.name, len(order)))

    def name_of(self, text: str, among: Collection[str]) -> str:
        """Name of the measure with this name or heading; the text itself if there is none.

        Case, spaces and signs do not matter. InputError if several measures have this name or
        heading.
        """
        if text in among:
            return text
        read = fold_name(text)
        names = [name for name in among if fold_name(name) == read]
        names = names or [name for name in among if fold_name(self.heading(name)) == read]
        if len(names) > 1:
            raise InputError(f"{text!r} may be {' or '.join(sorted(names))}: give the name")
        return names[0] if names else text

    def find(self, text: str, among: Collection[str], role: str) -> str:
        """Name of the existing measure whose name or heading a user typed.

        InputError if there is none or several; the message suggests the nearest, and calls it by
        its `role`: `measure to rank by`.
        """
        name = self.name_of(text, among)
        if name in among:
            return name
        raise InputError(f"unknown {role}: {text!r}; {self.suggest(text, among)}")

    def suggest(self, text: str, among: Collection[str]) -> str:
        """A hint for messages: the name or heading nearest to a text."""
        headings = {self.heading(name) for name in among}
        near = find_near_name(
            text, {*among, *(h for h in headings if h.replace(" ", "_") not in among)}
        )
        if near is not None:
            return f"did you mean {near!r}?"
        main = [self.heading(name) for name in _MAIN if name in among]
        main += [measure.heading for measure in self.columns(among)]
        main = main[:_MOST] or sorted(among)[:_MOST]
        more = f" and {len(among) - len(main)} more (docs/measures.md)"
        return f"valid: {', '.join(main)}{more if len(among) > len(main) else ''}"


def _make_undeclared(name: str) -> Measure:
    """The measure for an undeclared name."""
    if name.endswith("_seconds"):
        return Measure(name, better=LESS, unit="s", column="asked")
    return Measure(name, column="asked")


def _measure_from(figure: Any = None, **texts: Any) -> Measure:
    return Measure(**texts, figure=MeasureFigure(**figure) if isinstance(figure, dict) else figure)


def read_measures(data: Any) -> list[Measure]:
    """Measures from the data of `Measure.as_data`; ValueError for any other data."""
    try:
        measures = [_measure_from(**one) for one in data]
        for measure in measures:
            measure.check()
    except (PluginError, TypeError) as error:
        raise ValueError(f"not a table of measures: {error}") from error
    return measures


def fold_name(name: str) -> str:
    """A name without capitals, spaces and signs."""
    return re.sub(r"[\W_]+", "", name.casefold())
