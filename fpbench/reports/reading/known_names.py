"""What is known of people when a table about them is read: their columns, values and groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError, suggest_name
from fpbench.base.text import hyphenate
from fpbench.reports.linear_statistics import is_rate
from fpbench.reports.reading.cells import drop_marks
from fpbench.reports.reading.metric_names import Reading, read_heading
from fpbench.reports.slices import REPORT_METRICS, name_values, split_threshold, strip_zeros

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTION, LABEL = "@prediction", "@label"
"""Keys of a cell that say whose prediction, or label, is counted; others are names of columns."""
VALUE = "value"
"""The heading of numbers whose metric stands elsewhere."""
METRIC = "@metric"
ATTRIBUTE = "@attribute"
LEVEL = "@level"
"""A column of groups of several attributes, and one that names these."""
STATUS = "@status"
NUMBER = "@number"
"""The people's numbers that a row's statistic is of."""
CUT = "@threshold"
HEADS = {
    METRIC: {"metric", "measure", "statistic", "indicator", "metrics", "kpi", "metric-name"},
    ATTRIBUTE: {"attribute-name", "attribute", "characteristic", "variable", "sensitive-feature",
                 "category-type", "dimension", "protected-attribute"},
    LEVEL: {"attribute-value", "level", "category", "group", "subgroup", "categories", "groups",
             "group-name", "demographic", "demographic-group", "sensitive-group"},
    STATUS: {"sdcstatus", "sdc-status", "status", "cell-status", "suppressed", "suppression",
              "outcome", "flag"},
    CUT: {"threshold", "thresholds", "cutoff", "cut-off", "cut-point", "score-threshold",
           "decision-threshold", "schwelle"},
    VALUE: {"value", "values", "estimate", "result", "figure", "wert", "valeur"},
}  # fmt: skip
_TOTALS = frozenset({
    "total", "totals", "all", "overall", "everybody", "everyone", "all-groups", "grand-total",
    "sum", "any", "gesamt", "insgesamt", "all-people", "all-applicants", "alle", "ensemble",
    "margin", "(all)", "total-total", "subtotal", "both", "both-sexes", "all-sexes",
})  # fmt: skip
_SENSITIVE = frozenset({
    "group", "groups", "subgroup", "sex", "gender", "race", "ethnicity", "race/ethnicity",
    "sensitive-feature-0", "sensitive-feature", "demographic-group", "protected-group",
    "geschlecht",
    "race-ethnicity", "sex-categories", "race/ethnicity-categories", "gender-categories",
    "race-categories", "sex/gender", "demographic", "protected-class",
})  # fmt: skip
"""Headings of groups, where people are not known."""
_SAME = tuple(
    frozenset(names.split())
    for names in (
        "female females f w woman women girls weiblich frau frauen femme femmes mujer "
        "mujeres donne",
        "male males m man men boys m\u00e4nnlich maennlich mann m\u00e4nner maenner homme hommes "
        "hombre hombres uomini",
    )
)
"""Names of the same group."""
_NAMED = re.compile(r"(.+?)\s*[:=]\s*(.+)|(.+\S)\s+(?:sub)?total", re.IGNORECASE)
_STATISTICS = {"mean": "mean", "average": "mean", "avg": "mean", "median": "median", "sum": "sum",
               "total": "sum"}  # fmt: skip
_WORD = (
    r"mean|average|avg[.]?|median|sum|total|min(?:imum)?|max(?:imum)?|p\d\d?|q[1-3]|"
    r"\d\d?(?:st|nd|rd|th)[ _-]percentile|(?:lower|upper|first|third)[ _-]quartile|"
    r"[1-9](?:st|nd|rd|th)[ _-]decile|lowest|highest"
)
_OF_A_COLUMN = re.compile(
    rf"[-/ ]*(?:categories|category|(?:group|band|bin|range|interval|quartile)s?|"
    rf"\((?!(?:{_WORD})\b).*\))$"
)
_STATISTIC = re.compile(
    rf"({_WORD})[ _-](?:of )?(.+)|(.+?)[ _-]*[,( _-] *({_WORD}|\d\d?(?:\.\d+)?%)\)?", re.IGNORECASE
)
_SPREAD = re.compile(
    r"\s*(?:[(\[]\s*(?:sd|std|se|iqr|q1 ?[,-] ?q3|range)\s*[)\]]|(?:\u00b1|\+/-)\s*(?:sd|se))"
    r"(?=\)?$)",
    re.IGNORECASE,
)
"""What a heading says of numbers behind means and medians."""
_WEIGHTED = re.compile(
    r"weighted[ _-]+(.+)|(.+?)[ _,-]*[( _-]weighted\)?|(.+) weighted by (.+)", re.IGNORECASE
)
_WEIGHT = re.compile(r"(?:^|-)(?:p?weights?|p?wgt|wgtp|pwgtp|wts?|fnlwgt)(?:-|$)")
_QUARTILES = {"q1": 25, "q2": 50, "q3": 75, "lower": 25, "first": 25, "upper": 75, "third": 75,
              "minimum": 0, "min": 0, "lowest": 0, "maximum": 100, "max": 100,
              "highest": 100}  # fmt: skip
_ONE, _ZERO = {"1", "1.0", "true", "yes", "positive"}, {"0", "0.0", "false", "no", "negative"}
_MOST_VALUES = 1000
"""Different values of a column that cuts slices."""


def _name_quantile(word: str) -> str:
    """`quantile 0.25` of a word like `p25`, `25th percentile` or `Q1`; `median`, `minimum`."""
    quartile = _QUARTILES.get(re.split("[ _-]", word)[0])
    share = float(re.sub(r"[^\d.]", "", word)) if quartile is None else quartile
    share *= 10 if "decile" in word else 1
    named = {0.0: "minimum", 50.0: "median", 100.0: "maximum"}.get(share)
    return named or f"quantile {share / 100:g}"


@lru_cache(maxsize=2**16)
def fold(text: str) -> str:
    """A text as it is compared: in lower case, whole numbers without zeros."""
    return strip_zeros(hyphenate(text))


@lru_cache(maxsize=2**16)
def is_total(text: str) -> bool:
    """Whether a text stands for everybody."""
    return fold(text) in _TOTALS


def is_sensitive(text: str) -> bool:
    """Whether a heading is of groups, as far as one sees without people."""
    return hyphenate(re.sub(r"\([^)]*\)", "", text)) in _SENSITIVE


@dataclass(frozen=True)
class KnownNames:
    """Names that a table may use.

    Attributes
    ----------
    secrets
        The groups of each sensitive attribute; none if people are not known.
    frame
        The people's other columns; None if they are not known.
    predictions, label
        Names of their columns.
    positive
        The value that counts as 1; None if it is 1 or true.
    mapping
        What texts of the table stand for: a metric, `n`, `value`, a column, a group; `-` for
        nothing.
    groups
        The people's groups, of crossed attributes those that people are in.
    """

    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    frame: DataFrame | None = None
    predictions: tuple[str, ...] = ()
    label: str | None = None
    positive: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None

    @cached_property
    def _mapped(self) -> dict[str, str]:
        return {fold(text): target for text, target in self.mapping.items()}

    def map(self, text: str) -> str:
        """What a text of the table stands for: itself, if nothing is said."""
        return self._mapped.get(fold(text), text) if self.mapping else text

    @cached_property
    def _columns(self) -> dict[str, str]:
        own = [] if self.frame is None else list(map(str, self.frame.columns))
        return {fold(name): name for name in (*own, *self.secrets)}

    def find_column(self, text: str) -> str | None:
        """The attribute, or column of the people, of this name; or what stands for either."""
        name = fold(text)
        if name in self._columns:
            return self._columns[name]
        short = _OF_A_COLUMN.sub("", name).strip("-")
        return self._columns.get(short)

    def is_column(self, text: str) -> bool:
        """Whether a heading like `hired` is a name of the people's column, and of no metric."""
        return (
            self._columns.get(fold(text)) in self.features
            and fold(text) not in REPORT_METRICS
            and self.find_counted(text) is None
        )

    def find_number(self, text: str) -> str:
        """The people's column of numbers of this name; "" if there is none."""
        name = self.find_column(text)
        own = self.frame
        return name if name and own is not None and name in own and _is_numeric(own[name]) else ""

    def find_statistic(self, text: str) -> str:
        """The statistic of the people's numbers that a text names: `median of age`; "" of others.

        Of fewer people: `mean of age among selected`; with weights: `selection-rate weighted by w`.
        """
        if weighted := self._find_weighted(text):
            return weighted
        text = _SPREAD.sub("", text)
        match = _STATISTIC.fullmatch(" ".join(text.split()))
        if match is None or fold(text) in self._columns:
            return ""
        word, of = (match[1] or match[4]).casefold().strip("."), match[2] or match[3]
        what = _STATISTICS.get(word) or _name_quantile(word)
        if re.search(r"[(\[]", of):  # `mean age (hired)` may be of fewer people, or other units
            return ""
        if number := self.find_number(of):
            return f"{what} of {number}"
        name, _, among = re.sub(r"\s+(?:of|among|for)\s+(?:the )?", "\n", of).rpartition("\n")
        reading, counted = read_heading(among)[0], self.find_counted(among)
        if counted is not None:
            reading = Reading("selected" if counted == PREDICTION else "labelled")
        number = self.find_number(name)
        if what == "median" or reading is None or is_rate(reading.metric) or not number:
            return ""
        return f"{what} of {number} among {reading.metric}"

    def _find_weighted(self, text: str) -> str:
        """The statistic that a text names of people with weights; "" of others."""
        match = _WEIGHTED.fullmatch(" ".join(text.split()))
        if match is None:
            return ""
        by = [self.find_number(match[4])] if match[4] else self.list_weights()
        reading = read_heading(match[1] or match[2] or match[3])[0]
        if len(by) != 1 or not by[0] or reading is None or reading.from_one:
            return ""
        metric = reading.metric
        if is_rate(metric):
            return f"{metric} weighted by {by[0]}" if metric in REPORT_METRICS else ""
        return f"sum of {by[0]}" + (f" among {metric}" if metric != "people" else "")

    def list_weights(self) -> list[str]:
        """The people's columns that are called weights."""
        return [name for name in self.features if self.frame is not None
                and _WEIGHT.search(fold(name)) and _is_numeric(self.frame[name])]  # fmt: skip

    def is_complete(self, name: str) -> bool:
        """Whether everybody has a value of a column, as far as is known."""
        return self.frame is None or name not in self.frame or not self.frame[name].isna().any()

    def find_scores(self, text: str) -> str:
        """The people's column of numbers whose thresholds a name like `score at least` tells."""
        split = split_threshold(text)
        return self.find_number(split[0]) if split else ""

    def list_scores(self) -> list[str]:
        """The people's columns that are called scores, probabilities or risks."""
        return [name for name in self.features if self.frame is not None
                and re.search("score|prob|risk|risiko", name.casefold())
                and _is_numeric(self.frame[name])]  # fmt: skip

    @cached_property
    def _values(self) -> dict[str, dict[str, str]]:
        return {}

    def find_values(self, column: str) -> dict[str, str]:
        """The values of an attribute or column, by their folded texts."""
        if column not in self._values:
            values: Iterable[Any] = self.secrets.get(column, ())
            if not values and self.frame is not None and column in self.frame:
                own = self.frame[column]
                distinct = own.astype("object").dropna().unique()
                values = distinct if len(distinct) <= _MOST_VALUES else ()
            texts = name_values(values, f"column {column!r}")
            self._values[column] = {fold(text): text for text in texts}
        return self._values[column]

    @cached_property
    def features(self) -> list[str]:
        """The people's columns that are no attribute."""
        own = [] if self.frame is None else list(map(str, self.frame.columns))
        return [name for name in own if name not in self.secrets]

    @cached_property
    def texts(self) -> list[str]:
        """The people's columns of texts that are no attribute."""
        return [name for name in self.features
                if self.frame is not None and not _is_numeric(self.frame[name])]  # fmt: skip

    def spell(self, column: str) -> list[tuple[str, str]]:
        """Names of the values of an attribute or column, and the value; single letters aside."""
        own = self.find_values(column).values()
        others = {name for names in _SAME for name in names if len(name) > 1}
        alike = [(name, dict(self._find(name, [column])).get(column, "")) for name in others]
        return [(value, value) for value in own] + [pair for pair in alike if pair[1]]

    def find_group(self, text: str) -> list[tuple[str, str]]:
        """Attributes and groups that a text may name."""
        return self._find(text, self.secrets)

    def _find(self, text: str, columns: Iterable[str]) -> list[tuple[str, str]]:
        """Columns and values that a text names: as it is, without marks, or by another name."""
        text = self.map(text)
        values = {column: self.find_values(column) for column in columns}
        name = fold(drop_marks(text))
        for one in (fold(text), name):
            if found := [(column, own[one]) for column, own in values.items() if one in own]:
                return found
        if match := _NAMED.fullmatch(text):  # `sex: Female`, or `Female total`
            of, value, part = match.groups()
            column = self.find_column(of) if of else None
            if part or column in values:
                return self._find(part or value, [column] if column else columns)
        same = next((names for names in _SAME if name in names), frozenset())
        alike = {
            column: [value for known, value in own.items() if known in same]
            for column, own in values.items() if column in self.secrets
        }  # fmt: skip
        return [(column, own[0]) for column, own in alike.items() if len(own) == 1]

    def find_value(self, text: str) -> list[tuple[str, str]]:
        """Attributes, or else columns of texts, and the values that a text may be."""
        if groups := self.find_group(text):
            return groups
        if self.frame is None:
            return []
        return self._find(text, self.texts)

    def find_counted(self, text: str) -> str | None:
        """`PREDICTION` or `LABEL` for the name of their column; None for another text."""
        if self.label is not None and fold(text) == fold(self.label):
            return LABEL
        return PREDICTION if fold(text) in map(fold, self.predictions) else None

    def read_bit(self, text: str) -> str | None:
        """`1` or `0` for a value of predictions or labels; None for another text."""
        name = text.strip().casefold()
        if self.positive is not None:
            if name == self.positive.strip().casefold():
                return "1"
            return "0" if name not in ("", *_TOTALS) else None
        return "1" if name in _ONE else "0" if name in _ZERO else None

    def find_crossing(self, text: str) -> dict[str, str] | None:
        """The groups or values that a text like `Female x White` names; None if it names none."""
        for mark in (r"\s+[x\u00d7&+|/-]\s+", r"\s*[,;:|/\u00d7_]\s*", r"\s+and\s+", r"\s+"):
            parts = re.split(mark, text.strip())
            if not 2 <= len(parts) <= 6:
                continue
            for cut in range(1, len(parts)) if mark == r"\s+" else (0,):
                names = [" ".join(parts[:cut]), " ".join(parts[cut:])] if cut else parts
                read = [self.find_value(name) for name in names]
                keys = dict(one[0] for one in read if len(one) == 1)
                if len(keys) == len(names):
                    return keys
        return None

    def check_value(self, column: str, text: str, where: str) -> str:
        """The value of an attribute that a text names; InputError if it has none of that name."""
        values, found = self.find_values(column), dict(self._find(text, [column])).get(column)
        if found is None:
            raise InputError(
                f"{where}: {text!r} is the group of none of the people; "
                f"{suggest_name(text, sorted(values.values()))} (--map {text!r}=GROUP says which "
                f"it is; --map {text!r}=- leaves its numbers out)"
            )
        return found


def _is_numeric(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype))
