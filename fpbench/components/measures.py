"""What a measure is called, what it means and which way is better: records, and a glossary of them.

The measures of fpbench itself are in `fpbench.components.own_measures`; a component declares those
that it adds in its `measures`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast, get_args

from fpbench.base.errors import InputError, PluginError, suggest_name

Better: TypeAlias = Literal["greater", "less", "neither"]
Column: TypeAlias = Literal["always", "varying", "asked"]
GREATER: Better = "greater"
LESS: Better = "less"
NEITHER: Better = "neither"

_NAME = re.compile(r"[*_]*[a-z][a-z0-9_*]*")
_LONGEST = 500
"""Letters of a text in a measure."""


@dataclass(frozen=True)
class Measure:
    """What rows hold under a name: a number, or a word.

    Attributes
    ----------
    name
        In rows: snake_case. `*` stands for any letters, such as the name of a group.
    heading
        What stands above its column; the name with spaces, if empty.
    better
        Which values are better, `greater` or `less`; `neither` if that cannot be said.
    unit
        Of its values: `share`, `s`, `people`, `bits`, ...; empty without one. The name of
        what is in `s` ends in `_seconds`: comparisons of runs leave it out.
    meaning
        What it says, in one sentence.
    column
        When a leaderboard has a column of it: `always`, only where not all lines have the same
        value (`varying`), or only if somebody asks for it (`asked`).
    source
        Kind and name of the component that adds it; fpbench fills this in.

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

    def __post_init__(self) -> None:
        if not self.heading:
            object.__setattr__(self, "heading", str(self.name).replace("_", " "))

    @classmethod
    def table(cls, column: Column, text: str) -> tuple[Measure, ...]:
        """Measures of a text, one a line: `name, heading | better unit | meaning`.

        Parameters
        ----------
        column
            When a leaderboard has a column of them.
        text
            Headings and units may be left out. A line without `|` continues the line above.

        Examples
        --------
        >>> Measure.table("asked", "leak_bits | less bits | what an answer tells")[0].unit
        'bits'
        """
        measures = []
        for line in re.sub(r"\n(?!.*\|)\s*", " ", text.strip()).splitlines():
            names, kind, meaning = (part.strip() for part in line.split("|"))
            (name, _, heading), (better, _, unit) = names.partition(", "), kind.partition(" ")
            measures.append(cls(name, heading, cast(Better, better), unit, meaning, column))
        return tuple(measures)

    def check(self) -> None:
        """See that it is as described.

        Raises
        ------
        PluginError
            If a field is not.
        """
        for field in fields(self):
            text = getattr(self, field.name)
            if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST:
                raise PluginError(
                    f"measure {self.name!r}: {field.name}: must be a text of one line, not {text!r}"
                )
        if not _NAME.fullmatch(self.name):
            raise PluginError(
                f"measure {self.name!r}: its name must be snake_case: small letters, digits and _"
            )
        if self.unit == "s" and not self.name.endswith("seconds"):
            raise PluginError(f"measure {self.name!r}: is in s, so its name must end in _seconds")
        for value, words in ((self.better, get_args(Better)), (self.column, get_args(Column))):
            if value not in words:
                raise PluginError(
                    f"measure {self.name!r}: unknown {value!r}; {suggest_name(value, words)}"
                )

    def as_data(self) -> dict[str, str]:
        """The same as plain data, for JSON."""
        return asdict(self)


class Glossary:
    """Measures by name. A name that nobody declared is known, too: nothing is said of it.

    Parameters
    ----------
    own
        Measures of fpbench.
    declared
        Those that components add, in the order of their columns; of several of one name the first
        counts, and none counts that has the name of one of fpbench's.
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
        """Measures that components add."""
        return tuple(self._declared.values())

    def declaring(self, measures: Iterable[Measure]) -> Glossary:
        """The same with more measures of components."""
        return Glossary(self.own, (*self.declared, *measures))

    def __getitem__(self, name: str) -> Measure:
        if name not in self._known:
            patterns = (one for one in self._declared.values() if "*" in one.name)
            pattern = next((one for one in patterns if fnmatchcase(name, one.name)), None)
            self._known[name] = replace(pattern or _undeclared(name), name=name, heading="")
        return self._known[name]

    def heading(self, name: str) -> str:
        """What stands above the column of a measure."""
        return self[name].heading

    def columns(self, measured: Collection[str]) -> list[Measure]:
        """Measures of components that a leaderboard shows unasked, in the order declared."""
        places = {name: place for place, name in enumerate(self._declared)}
        shown = [self[name] for name in measured if name not in self._own]
        shown = [measure for measure in shown if measure.source and measure.column != "asked"]
        return sorted(shown, key=lambda measure: places.get(measure.name, len(places)))

    def name_of(self, text: str, among: Collection[str]) -> str:
        """The measure that a name or a heading stands for; the text itself if it is neither.

        Case, spaces and signs do not matter.

        Raises
        ------
        InputError
            If several measures read so.
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
        """The measure that a name or a heading stands for.

        Parameters
        ----------
        text
            What somebody typed.
        among
            Names of the measures that there are.
        role
            What it is wanted for, as in `measure to rank by`.

        Raises
        ------
        InputError
            If there is none, or several; names the nearest name or heading.
        """
        name = self.name_of(text, among)
        if name in among:
            return name
        raise InputError(f"unknown {role}: {text!r}; {self.suggest(text, among)}")

    def suggest(self, text: str, among: Collection[str]) -> str:
        """What a text may have meant, of names and headings."""
        headings = {self.heading(name) for name in among}
        return suggest_name(
            text, {*among, *(h for h in headings if h.replace(" ", "_") not in among)}
        )


def _undeclared(name: str) -> Measure:
    """A measure of a component that does not declare it, of an earlier version mostly."""
    if name.endswith("_seconds"):
        return Measure(name, better=LESS, unit="s", column="asked")
    return Measure(name, column="asked")


def measures_from(data: Any) -> list[Measure]:
    """Measures from what `Measure.as_data` made of them, after a way through JSON.

    Raises
    ------
    ValueError
        If it is not that.
    """
    try:
        measures = [Measure(**one) for one in data]
        for measure in measures:
            measure.check()
    except (PluginError, TypeError) as error:
        raise ValueError(f"measures that are none: {error}") from error
    return measures


_LOOKS = {
    "a": "\u0391\u03b1\u0410\u0430",
    "b": "\u0392\u0412",
    "c": "\u0421\u0441",
    "d": "\u0501",
    "e": "\u0395\u0415\u0435",
    "g": "\u0261\u0581",
    "h": "\u0397\u041d\u04bb",
    "i": "\u0131\u0399\u03b9\u0406\u0456",
    "j": "\u0408\u0458",
    "k": "\u039a\u041a",
    "l": "\u0196\u04cf",
    "m": "\u039c\u041c",
    "n": "\u039d\u0578",
    "o": "\u039f\u03bf\u041e\u043e",
    "p": "\u03a1\u03c1\u0420\u0440",
    "q": "\u051a\u051b",
    "s": "\u0405\u0455",
    "t": "\u03a4\u0422",
    "u": "\u03c5",
    "v": "\u03bd\u0475",
    "w": "\u051c\u051d",
    "x": "\u03a7\u0425\u0445",
    "y": "\u03a5\u0423\u0443\u04af",
    "z": "\u0396",
}
"""Letters of other scripts (Greek, Cyrillic, Armenian) that look like a Latin one."""
_LATIN = str.maketrans({odd: plain for plain, odds in _LOOKS.items() for odd in odds})
_LATIN[0x03B5] = "epsilon"


@lru_cache(maxsize=1 << 14)
def fold_name(name: str) -> str:
    """A name as the eye reads it: the same for names that differ in case, signs or look alike."""
    # Capitals of other scripts look like Latin ones that their small letters do not look like.
    plain = unicodedata.normalize("NFKD", name).translate(_LATIN).casefold().translate(_LATIN)
    return "".join(letter for letter in plain if letter.isalnum())
