"""Slices of people by columns, and what is counted in them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_type, show_value, to_array, to_floats
from fpbench.base.arrays import check_binary, cut_scores
from fpbench.base.errors import InputError, suggest_name
from fpbench.data.groups import group_codes
from fpbench.reports.intervals import code_intervals

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame, Series

    from fpbench.models.rules import Rules

Codes = NDArray[np.int64]


class Counted(NamedTuple):
    """The people whom a metric counts in a slice: label and prediction, None for either."""

    label: int | None
    prediction: int | None
    """None for a rate: the share with prediction 1."""
    view: str = "prediction"
    """What stands for the prediction (`view_people`)."""

    @property
    def needs_labels(self) -> bool:
        """Whether it looks at labels."""
        return self.label is not None or self.view in ("label", "correct")

    @property
    def is_rate(self) -> bool:
        """Whether it is the share with prediction 1, not a number of people."""
        return self.prediction is None


REPORT_METRICS: Mapping[str, Counted] = {
    "selection-rate": Counted(None, None),
    "true-positive-rate": Counted(1, None),
    "false-positive-rate": Counted(0, None),
    "selected": Counted(None, 1),
    "rejected": Counted(None, 0),
    "true-positives": Counted(1, 1),
    "false-positives": Counted(0, 1),
    "false-negatives": Counted(1, 0),
    "true-negatives": Counted(0, 0),
    "accuracy": Counted(None, None, "correct"),
    "precision": Counted(1, None, "label"),
    "false-omission-rate": Counted(0, None, "label"),
    "prevalence": Counted(None, None, "label"),
    "labelled": Counted(None, 1, "label"),
    "people": Counted(None, 1, "everybody"),
}
"""Metrics of reports: rates of prediction 1, and numbers of people by prediction and label; then
those of which something else stands for the prediction."""

VIEWS = ("prediction", "label", "correct", "everybody")
"""What may stand for the prediction: itself, the label (and the prediction for the label), whether
both are the same, or 1 for everybody."""


def view_people(view: str, predictions: Codes, labels: Codes | None) -> tuple[Codes, Codes | None]:
    """(n,) what stands for predictions and for labels in a metric; both are 0 or 1."""
    if view == "prediction":
        return predictions, labels
    if view == "everybody":
        return np.ones_like(predictions), labels
    assert labels is not None
    if view == "label":
        return labels, predictions
    return (predictions == labels).astype(np.int64), labels


MISSING = ("na", "n/a", "nan", "none", "null", "<na>")
"""Texts that programs write for a missing value, in lower case."""

FIXED_COLUMNS = (
    "group", "metric", "value", "n", "within", "round_to", "noise", "measured", "guarantee",
    "below",
)  # fmt: skip
"""Columns of the long form that are not slice columns; those after `n` only if needed."""

LONGEST = 1000
"""Letters of a text in a report; to bring a text to NFC takes time that grows with their square."""
_NUMBER = r"(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
_WHOLE = re.compile(r"^(-?\d+)\.0+$")
_CUT = re.compile(r"(.+) (at least|above)")
"""The name of a column of thresholds: that of the scores, and whether these are 1 themselves."""
_BIN = re.compile(rf"<{_NUMBER}|\[{_NUMBER}, {_NUMBER}\)|>={_NUMBER}")


@check_arguments
@dataclass(frozen=True)
class SliceColumn:
    """A column that slices are cut by.

    Attributes
    ----------
    name
        Of the column.
    values
        Its values as texts, or bins of numbers: `<26`, `[26, 37)`, `>=37`.
    edges
        The numbers between bins, ascending; None of categories.
    rules
        The rules of a model, whose texts are `values`; None for a column of the people.
    """

    name: str
    values: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    rules: Rules | None = field(default=None, compare=False, repr=False)

    @classmethod
    @check_arguments
    def of(cls, column: Series, bins: int | Sequence[float]) -> SliceColumn:
        """A column of people; numbers are cut at the edges, or into equally large bins."""
        import pandas as pd

        check_type("column", column, pd.Series, "a column of a data frame")
        name = str(column.name)
        if name in FIXED_COLUMNS:
            raise InputError(
                f"a column that slices are cut by cannot be called {name!r}: rename it"
            )
        if not _is_number(column):
            try:
                category = pd.Categorical(column).remove_unused_categories()
            except TypeError:
                raise InputError(
                    f"column {name!r} holds what is neither text nor number: {column.iloc[0]!r}"
                ) from None
            values = _name_categories(category, name)
            if "" in values or len(set(values)) < len(values):
                raise InputError(f"column {name!r} has an empty value, or two of the same text")
            return cls(name, values)
        if isinstance(bins, int | np.integer):
            numbers = take_numbers(column.dropna())
            if bins < 1 or not len(numbers) or not np.isfinite(numbers).all():
                why = "" if np.isfinite(numbers).all() else ": a number is infinite"
                raise InputError(f"column {name!r} cannot be cut into {bins} bins{why}")
            cuts = np.unique(np.quantile(numbers, np.arange(1, bins) / bins, method="higher"))
            return cls.with_edges(name, cuts[cuts > numbers.min()])
        edges = to_floats(f"edges of column {name!r}", bins)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InputError(
                f"edges of column {name!r} must be ascending numbers, not {show_value(bins)}"
            )
        return cls.with_edges(name, edges)

    @classmethod
    @check_arguments
    def with_edges(cls, name: str, edges: Iterable[float]) -> SliceColumn:
        """Bins between ascending edges, and one at either end."""
        numbers = tuple(to_array(f"edges of column {name!r}", list(edges)).tolist())
        if not numbers:
            return cls(name, ("any number",), ())
        texts = [format_edge(edge) for edge in numbers]
        inner = [f"[{low}, {high})" for low, high in pairwise(texts)]
        return cls(name, (f"<{texts[0]}", *inner, f">={texts[-1]}"), numbers)

    @classmethod
    @check_arguments
    def parse(cls, name: str, texts: Iterable[str]) -> SliceColumn:
        """The column whose values are these texts."""
        values = sorted(set(texts))
        found = [_BIN.fullmatch(value) for value in values]
        if not values or not all(found):
            return cls(name, tuple(values))
        edges = {float(end) for match in found if match for end in match.groups() if end}
        if not np.isfinite(list(edges)).all():
            return cls(name, tuple(values))
        column = cls.with_edges(name, sorted(edges))
        overlapping = set(values).difference(column.values)
        if overlapping and {_shorten(value) for value in values} <= set(column.values):
            return cls(name, tuple(values))  # as `[0.0, 0.10)`, which `code` reads
        if overlapping:
            raise InputError(
                f"column {name!r}: the bin {min(overlapping)!r} overlaps others: "
                f"{', '.join(values[:20])}"
            )
        return column

    @property
    def is_threshold(self) -> bool:
        """Whether its values are thresholds of scores, as those of `score at least` are."""
        return split_threshold(self.name) is not None

    @check_arguments
    def code(self, people: DataFrame) -> Codes:
        """(n,) code of each person's value; -1 if it is missing or not in the report."""
        if self.rules is not None:
            where = {value: code for code, value in enumerate(self.values)}
            codes = [where.get(text, -1) for text in name_rules(self.rules)]
            return np.array(codes, np.int64)[self.rules.apply(people)]
        others = ", ".join(FIXED_COLUMNS)
        column = find_column(
            people, self.name, f" (in a report all columns but {others} cut slices)"
        )
        if self.edges is None:
            import pandas as pd

            category = pd.Categorical(column)
            texts, values = _name_categories(category, self.name), self.values
            if _is_number(column) and not set(values) <= set(texts):
                inside = code_intervals(self.name, values, take_numbers(column))
                if inside is not None:
                    return inside
            # pandas turns whole numbers into floats if a value is missing: 2 becomes 2.0.
            whole = tuple(map(strip_zeros, values))
            if len(set(whole)) == len(values):
                texts, values = tuple(map(strip_zeros, texts)), whole
            where = {value: code for code, value in enumerate(values)}
            codes = [where.get(text, -1) for text in texts]
            return np.asarray(np.append(codes, -1).astype(np.int64)[category.codes])
        if not _is_number(column):
            named = replace(self, edges=None).code(people)  # who cut bins of this name already
            if (named >= 0).any():
                return named
            wrong = (row for row, value in enumerate(column) if not _reads_as_number(value))
            row = next(wrong, 0)
            raise InputError(
                f"column {self.name!r} has bins of numbers in the report, and the people have no "
                f"number in row {row}: {column.iloc[row]!r}"
            )
        numbers = take_numbers(column)
        place = np.searchsorted(np.asarray(self.edges), numbers, side="right")
        return np.where(np.isnan(numbers), -1, place).astype(np.int64)


def split_threshold(name: str) -> tuple[str, str] | None:
    """The scores, and `at least` or `above`, of a column of thresholds; None of another name."""
    match = _CUT.fullmatch(name)
    return (match[1], match[2]) if match else None


def cut_scores_of(column: SliceColumn, people: DataFrame, code: int) -> Codes:
    """(n,) predictions at one of the thresholds of a column; InputError if a score is missing."""
    split, least = split_threshold(column.name), column.values[code]
    assert split is not None
    name, sign = split
    own = find_column(people, name)
    if not _is_number(own) or own.isna().any() or not _reads_as_number(least):
        raise InputError(
            f"column {column.name!r}: {least!r} is no threshold, or scores of {name!r} are "
            "missing or no numbers"
        )
    scores, end = take_numbers(own), float(least)
    return ((scores >= end) if sign == "at least" else (scores > end)).astype(np.int64)


def name_rules(rules: Rules) -> tuple[str, ...]:
    """Texts of rules; equal texts get the rules' numbers."""
    texts = [text or "everyone" for text in rules.texts]
    return tuple(
        f"{text} (rule {code + 1})" if texts.count(text) > 1 else text
        for code, text in enumerate(texts)
    )


def cross_groups(groups: Any) -> Any:
    """Groups in a data frame as one name a person, `f x black`, as data sets have them."""
    import pandas as pd

    if not isinstance(groups, pd.DataFrame):
        if np.ndim(groups) != 1:
            what = f"of shape {np.shape(groups)}" if np.ndim(groups) else show_value(groups)
            raise InputError(f"groups must be one name a person, not {what}")
        return groups
    if groups.shape[1] == 1:
        return groups.iloc[:, 0]
    codes, names = group_codes(groups, name="groups")
    return pd.Categorical.from_codes(codes, pd.Index(names))


def code_groups(values: Any, groups: Sequence[str], whose: str) -> NDArray[np.intp]:
    """Codes (n,) of groups by name.

    `values`: (n,) names. `groups`: names of the groups, in their order.

    Raises InputError if a name is none of the groups: names the row.
    """
    texts = list(map(str, np.asarray(values)))
    distinct = list(dict.fromkeys(texts))
    names = dict(zip(distinct, name_values(distinct, whose), strict=True))
    where = {name: code for code, name in enumerate(groups)}
    for text, name in names.items():
        if name not in where:
            raise InputError(
                f"{whose}, row {texts.index(text)}: {name!r} is not a group of the report; "
                f"{suggest_name(name, groups)}"
            )
    return np.array([where[names[text]] for text in texts], np.intp)


def name_values(values: Iterable[Any], whose: str = "groups") -> tuple[str, ...]:
    """Values as reports write them: texts without blanks around them, as files are read.

    Letters with accents are one character each (NFC), however a file has them. InputError if a text
    is too long, or holds a zero byte; `whose` it is begins the message.
    """
    texts = []
    for text in map(str, values):
        if len(text) > LONGEST or "\0" in text:
            fault = "a zero byte" if "\0" in text else f"{len(text):,} letters, too many"
            raise InputError(f"{whose}: the text {show_value(text)} has {fault}")
        texts.append(normalize("NFC", text.strip()))
    return tuple(texts)


def _name_categories(category: Categorical, column: str) -> tuple[str, ...]:
    """Categories as reports write them; dates as files have them, without midnight."""
    from pandas.api.types import is_datetime64_any_dtype

    names = category.categories
    texts = names.astype(str) if is_datetime64_any_dtype(names.dtype) else names
    return name_values(texts, f"column {column!r}")


def strip_zeros(text: str) -> str:
    """A text, that of a whole number without zeros behind the point."""
    return _WHOLE.sub(r"\1", text)


def find_column(people: DataFrame, name: str, more: str = "") -> Series:
    """The column of people that has this name, as text; `more` ends the message if none has."""
    names = people.columns
    if names.inferred_type != "string":
        names = names.map(str)
    places = np.flatnonzero(names == name).tolist()
    if len(places) != 1:
        what = "no column" if not places else "more than one column"
        hint = f"; {suggest_name(name, map(str, people.columns))}" if not places else ""
        raise InputError(f"the people have {what} {name!r}, by which slices are cut{hint}{more}")
    return people.iloc[:, places[0]]


def _shorten(text: str) -> str:
    """The text of a bin with its numbers as `format_edge` writes them."""
    return re.sub(_NUMBER, lambda number: format_edge(float(number[0])), text)


def format_edge(edge: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(edge)) if edge == int(edge) and abs(edge) < 1e15 else repr(float(edge))


def cross(codes: Sequence[Codes], sizes: Sequence[int], n: int) -> Codes:
    """(n,) one number for each combination of codes; -1 if any of them is."""
    if math.prod(sizes) >= 2**60:
        raise InputError("too many slices: cross fewer columns, or use fewer bins")
    key = np.zeros(n, np.int64)
    for code, size in zip(codes, sizes, strict=True):
        key = key * size + code
    for code in codes:
        key[code < 0] = -1
    return key


def number_slices(cells: Codes) -> tuple[Codes, Codes]:
    """First rows (S,) of each distinct row of codes, ascending, and (R,) the index of each row."""
    # Sums of random multiples, modulo 2^64, distinguish a row from a million others except with
    # probability 2^-24: far quicker than comparing rows.
    draws = np.random.default_rng(20260103).integers(2**63, size=cells.shape[1])
    _, first, inverse = np.unique(cells @ draws, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    order = np.argsort(first)
    place[order] = np.arange(len(first))
    return first[order], place[inverse.ravel()]


def locate(keys: Codes, among: Codes) -> Codes:
    """The place of each key among ascending ones; -1 if it is not there."""
    if among[-1] < 4 * len(keys):  # a table is quicker than a search
        table = np.full(max(int(among[-1]), int(keys.max(initial=0))) + 2, -1)
        table[among] = np.arange(len(among))
        return np.asarray(table[keys])  # a key of -1 finds the last, which nobody has
    place = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return np.where(among[place] == keys, place, -1)


def check_bits(
    values: Any,
    n: int,
    what: str,
    positive: Any = None,
    *,
    threshold: float | None = None,
    nameable: bool = False,
) -> NDArray[np.int64]:
    """(n,) labels or predictions of the people of X; as in `check_binary` and `cut_scores`."""
    if threshold is not None:
        values, positive = cut_scores(what, values, threshold), None
    bits = check_binary(what, values, positive, nameable=nameable, cuttable=what == "predictions")
    if len(bits) != n:
        raise InputError(f"{what}: has {len(bits)} values, and X {n} rows")
    return bits.astype(np.int64)


def check_people(X: object) -> None:
    """Raise InputError unless people are in a data frame."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise InputError(f"X must be a data frame, one row a person, not {type(X).__name__}")


def _is_number(column: Series) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype))


def take_numbers(column: Series) -> NDArray[np.float64]:
    """The numbers of a column as in a file: 0.1 of a short float equals that of a long one."""
    if (short := str(column.dtype).casefold()) in ("float16", "float32"):
        return column.to_numpy(short, na_value=np.nan).astype(str).astype(np.float64)
    return column.to_numpy(np.float64)


def _reads_as_number(value: Any) -> bool:
    """Whether a value is a finite number, or the text of one, or missing."""
    try:
        return value is None or value != value or math.isfinite(float(value))  # noqa: PLR0124
    except (TypeError, ValueError):
        return False
