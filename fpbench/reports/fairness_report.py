"""Fairness reports: rates by group for slices of people, as dashboards and model cards do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_methods
from fpbench.base.arguments import check_same_rows, show_value, to_path
from fpbench.base.errors import InputError, check_choice
from fpbench.base.files import write_output
from fpbench.base.text import escape_unprintable, show_lines
from fpbench.claims.count_laws import LAWS
from fpbench.claims.set_counts import Facts, Mask
from fpbench.components.mechanism import Mechanism
from fpbench.data.people import read_people
from fpbench.models.rules import RuleBased, Rules
from fpbench.reports.defences.protecting import (
    Defences,
    parse_metrics,
    protect_rows,
)
from fpbench.reports.exact_blocks import tabulate
from fpbench.reports.facts import find_facts
from fpbench.reports.html_tables import to_page
from fpbench.reports.reading.files import (
    MOST_BYTES,
    parse_report,
    to_json_text,
    to_parquet_bytes,
)
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.reading.long_form import read_frame
from fpbench.reports.reading.tables import read_table
from fpbench.reports.rows import ReportedPeople, ReportRows
from fpbench.reports.slices import (
    REPORT_METRICS,
    Codes,
    SliceColumn,
    check_bits,
    check_people,
    code_groups,
    cross_groups,
    find_column,
    name_rules,
    name_values,
)
from fpbench.tabular.table_files import load_content

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame

_MOST_ROWS = 20
"""Most rows that a notebook shows."""


class DefenceOptions(TypedDict, total=False):
    """Parameters of `FairnessReport.protect` that `from_predictions` hands on."""

    min_group: int
    complementary: bool
    protect_hidden: float | str | None
    sizes: bool
    decimals: int | None
    round_to: int | None
    rounding: str
    cell_keys: Mapping[str, float] | None
    noise: Mechanism | str | Mapping[str, Any] | None
    epsilon: float | None
    delta: float | None
    consistent: bool
    earlier: Sequence[ReportRows]
    rng: np.random.Generator | int | None


def read_groups(groups: Any, n: int) -> Categorical:
    """The groups (n,) of people, in the order of their categories."""
    import pandas as pd

    groups = cross_groups(groups)
    kinds = pd.Categorical(groups).remove_unused_categories()
    if len(kinds) != n or len(kinds.categories) < 2:
        raise InputError(f"groups must be {n} names, one a person of X, of two groups or more")
    if (missing := kinds.codes < 0).any():
        raise InputError(
            f"groups, row {np.flatnonzero(missing)[0]}: no group; leave out people without one, or "
            "give them one: fillna('unknown')"
        )
    if "" in (texts := name_values(kinds.categories)) or len(set(texts)) < len(texts):
        raise InputError("groups: a name is empty, or two have the same text")
    return kinds


class RuleOptions(DefenceOptions, total=False):
    """Parameters of `FairnessReport.from_predictions` that `per_rule` hands on."""

    bins: int | Mapping[str, int | Sequence[float]]
    labels: ArrayLike | None
    positive: Any
    threshold: float | None
    metrics: Sequence[str]
    min_cell: int


@check_methods
class FairnessReport(ReportRows):
    """A published report: rates, or numbers of people, by group for slices of people.

    Make it by `from_predictions`, `from_frame` or `from_file`.
    """

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        predictions: Any,
        groups: Any,
        *,
        by: str | Iterable[Any],
        order: int = 1,
        bins: int | Mapping[str, int | Sequence[float]] = 5,
        labels: Any = None,
        positive: Any = None,
        threshold: float | None = None,
        metrics: Sequence[str] = ("selection-rate",),
        tables: Iterable[str | Iterable[Any]] | None = None,
        min_cell: int = 10,
        **defences: Unpack[DefenceOptions],
    ) -> FairnessReport:
        """The report about people.

        Parameters
        ----------
        X
            n rows with the columns of `by`: numbers and categories; a frame of pandas, polars,
            Arrow or whatever narwhals reads.
        predictions
            (n,) of two values; or scores, with `threshold`.
        groups
            (n,) names of the groups; their order is that of a pandas categorical, or sorted.
            Columns of a frame are crossed. Or names of columns of X, which are left out of it.
        by
            Columns that slices are cut by. Those with one value, or without a value of `min_cell`
            people, are left out, as `left_out` and the printed report say.
        order
            Most columns that a slice crosses; everybody together is a slice of order 0.
        bins
            Number of equally large bins of numbers, or, by column, that or the edges between bins.
        labels
            (n,) of these values; needed by metrics that look at labels.
        positive
            The value that counts as 1; needed if values are not 0 and 1 or truth values.
        threshold
            The least score that is prediction 1.
        metrics
            Names from `REPORT_METRICS`, or other names of these (`TPR`). From a rate, the numbers
            of both predictions follow; numbers of people (`selected`, `rejected`, ...) are
            published for each prediction.
        tables
            Columns of `by` that are crossed, of each table, where not all up to `order` are.
        min_cell
            As in `protect`.
        **defences
            Further parameters of `protect`.

        Raises
        ------
        InputError
            If lengths differ, a name is unknown, or parameters exclude each other.
        """
        X, groups, given = read_people(X, groups, predictions=predictions, labels=labels)
        labels = given["labels"]
        check_people(X)
        n, names = len(X), [by] if isinstance(by, str) else list(dict.fromkeys(map(str, by)))
        kinds = read_groups(groups, n)
        predicted = check_bits(
            given["predictions"], n, "predictions", positive, threshold=threshold, nameable=True
        )
        labelled = np.zeros(n, np.int64)
        if labels is not None:
            labelled = check_bits(labels, n, "labels", positive, nameable=True)
        own_metrics = parse_metrics(metrics)
        for name in own_metrics:
            if REPORT_METRICS[name].needs_labels and labels is None:
                raise InputError(f"the metric {name!r} looks at labels: give labels")
        if not isinstance(order, int | np.integer) or order < 0:
            raise InputError(f"order must be a whole number of at least 0, not {show_value(order)}")
        if isinstance(bins, Mapping):
            for name in bins:
                check_choice("column of bins", name, names)
        per_column = bins if isinstance(bins, Mapping) else dict.fromkeys(names, bins)
        columns = [SliceColumn.of(find_column(X, name), per_column.get(name, 5)) for name in names]
        left_out = {one.name: "has one value" for one in columns if len(one.values) < 2}
        columns = [column for column in columns if len(column.values) > 1]
        crossed = [t for r in range(order + 1) for t in combinations(range(len(columns)), r)]
        if tables is not None:
            crossed = _find_tables(tables, [column.name for column in columns], names)
        blocks = tabulate(
            columns, [column.code(X) for column in columns], kinds, predicted, labelled,
            tables=crossed, metrics=own_metrics,
        )  # fmt: skip
        people = ReportedPeople(X, predicted, labelled, kinds.codes.astype(np.int64))
        exact = cls._of(replace(blocks.to_rows(), people=people))
        report = exact.protect(min_cell=min_cell, **defences)
        kept = {column.name for column in report.columns}
        for column in (columns[place] for place in sorted(set().union(*crossed))):
            if column.name not in kept:
                left_out[column.name] = f"no value has min_cell = {min_cell} people"
        return replace(report, left_out=left_out)

    def protect(
        self,
        *,
        by: str | Iterable[Any] | None = None,
        order: int | None = None,
        tables: Iterable[str | Iterable[Any]] | None = None,
        metrics: Sequence[str] | None = None,
        bins: Mapping[str, int | Sequence[float]] | None = None,
        min_cell: int = 0,
        min_group: int = 0,
        complementary: bool = False,
        protect_hidden: float | str | None = None,
        sizes: bool = True,
        decimals: int | None = None,
        round_to: int | None = None,
        rounding: str = "random",
        cell_keys: Mapping[str, float] | None = None,
        noise: Mechanism | str | Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        consistent: bool = True,
        earlier: Sequence[ReportRows] = (),
        rng: np.random.Generator | int | None = None,
    ) -> FairnessReport:
        """The report with defences, as far as it publishes what they need; an exact one does.

        They are applied in the order of the parameters, and recorded in `defences`.

        Parameters
        ----------
        by
            Columns that slices may be cut by; all by default.
        order
            Most columns that a slice crosses.
        tables
            Columns that are crossed, of each table that is kept: `[[], ["age"], ["age", "job"]]`.
        metrics
            The metrics that are kept.
        bins
            By column, the number of bins after merging, or the edges that stay. Merged slices with
            a part that is not published are left out.
        min_cell
            A rate or number is published for slices where it is taken over at least this many
            people, of all groups together.
        min_group
            The same for each group; else the value is suppressed, which reveals that a group is
            smaller.
        complementary
            Whether further cells are suppressed, so that no suppressed number follows by adding and
            subtracting published ones, for a reader who knows the people; bounds (0, sizes) may
            still fix some. The reason of a suppression is then hidden.
        protect_hidden
            Share, or percentage, of a number by which the interval that published numbers leave of
            each suppressed one must be wider on either side, as far as the people of its slice
            allow. What is suppressed then costs least, if that is found in a minute (as `defences`
            say: "optimal"); a block of a metric and slice costs 1 to 2, by its people.
        sizes
            Whether to publish n, the number of people that a value is taken over.
        decimals
            Decimals that rates are rounded to.
        round_to
            Numbers of people, those behind rates too, are rounded to a multiple of this.
        rounding
            How: at `random` to a neighbour, up with a probability that keeps the mean, as
            statistical offices do with 5; to the `nearest`, halves up; `midpoint`, which with 6
            publishes the middle of 1 to 6, 7 to 12 and so on (OpenSAFELY), and 0 as 0; or
            `controlled`, at random so that published parts sum up to published wholes (Cox, A
            constructive procedure for unbiased controlled rounding, JASA 82, 1987). `min_group` = 8
            with `nearest` 5 is the rule "suppress at most 7, then round to 5".
        cell_keys
            Perturbation of numbers by cell keys, as of censuses (`fpbench.claims.cell_keys`):
            the `bound` (5) and `variance` (3) of its noise. The same people get the same noise
            in all tables, and in other reports with the same seed and index of X.
        noise
            A mechanism, its name, or a table with `use`: numbers of people are measured with noise,
            and rates are those of the numbers that are published.
        epsilon, delta
            The whole report is epsilon-differentially private for a person whose group changes,
            with mechanisms of normal noise (epsilon, delta). Slices, their sizes and predictions
            are taken to be known.
        consistent
            Whether the numbers with noise are those of one table of people, which is likely given
            what was measured, and in which the sizes of slices and predictions are the true ones
            (see `fpbench.release`): far nearer to the truth, and as private. Only the
            largest tables and those by one column are measured. Readers take each number for one
            with normal noise. Otherwise noise is added to every number, and numbers contradict
            each other.
        earlier
            Reports with such numbers that were published about the same people: what was measured
            for them is fitted to, too, at no cost of privacy.
        rng
            A generator or seed of noise and random rounding.

        Raises
        ------
        InputError
            If a name is unknown, parameters exclude each other, the report does not publish what a
            defence needs, or an earlier report is about other people or has no measured numbers.
        """
        defences = Defences(
            by, order, tables, metrics, bins, min_cell, min_group, complementary, protect_hidden,
            sizes, decimals, round_to, rounding, cell_keys, noise, epsilon, delta, consistent,
            earlier, rng,
        )  # fmt: skip
        return self._of(protect_rows(self, defences))

    @classmethod
    def _of(cls, rows: ReportRows) -> FairnessReport:
        return cls(**{own.name: getattr(rows, own.name) for own in fields(rows)})

    def __str__(self) -> str:
        """A sentence: metrics, groups, slices, defences, and what is left out."""
        slices = ", ".join(column.name for column in self.columns) or "nothing"
        kinds = {
            "rounded": (self.within > 0).any()
            or self.rounding is not None
            or any(one.within for one in self.statistics),
            "noisy": self.noisy.any(),
            "suppressed": self.suppressed.any(),
        }
        metrics = dict.fromkeys([*self.metric.tolist(), *(one.metric for one in self.statistics)])
        told = [f"{int(self.suppressed.sum()):,} suppressed" if k == "suppressed" else k
                for k, v in kinds.items() if v]  # fmt: skip
        left = ", ".join(f"{name} ({why})" for name, why in self.left_out.items())
        return show_lines([
            f"Fairness report: {', '.join(metrics)} of {', '.join(self.groups)}, in "
            f"{len(self) + len(self.statistics):,} rows; cut by {slices}; "
            f"values {' and '.join(told) or 'exact'}{f'; left out: {left}' if left else ''}"
        ])  # fmt: skip

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        frame = self.to_frame().to_html(index=False, max_rows=_MOST_ROWS)
        return f"<p>{escape(str(self))}</p>\n{escape_unprintable(frame, but=chr(10))}"

    def to_frame(self) -> DataFrame:
        """Long form: slice columns (blank where a slice is not cut), group, metric, value, n.

        And where values are rounded, have noise or are suppressed: `within`, `round_to`, `noise`,
        `measured`, `guarantee` (of all rows, in the first), `below`.
        """
        import pandas as pd

        frame: dict[str, object] = {
            column.name: np.array([*column.values, ""], dtype=object)[self.cells[:, c]]
            for c, column in enumerate(self.columns)
        }
        frame["group"] = np.array(self.groups, dtype=object)[self.group]
        frame |= {"metric": self.metric.astype(object), "value": self.value}
        frame["n"] = _blank(self.n, self.n < 0)
        if self.within.any():
            frame["within"] = self.within
        if self.rounding is not None:
            frame["round_to"] = str(self.rounding)
        if self.noisy.any():
            frame["noise"] = [
                f"{LAWS[law]} {width!r}" if law else ""
                for law, width in zip(self.law.tolist(), self.width.tolist(), strict=True)
            ]
        if self.is_fitted:
            frame["measured"] = [
                " ".join("-" if np.isnan(number) else repr(number) for number in row)
                if np.isfinite(row).any() else ""
                for row in self.measured.tolist()
            ]  # fmt: skip
        if (stated := self.stated) is not None and len(self):
            frame["guarantee"] = [stated.model_dump_json(), *[""] * (len(self) - 1)]
        if self.below.any():
            frame["below"] = _blank(self.below, self.below == 0)
        whole = pd.DataFrame(frame)
        if not self.statistics:
            return whole
        blank = dict.fromkeys(column.name for column in self.columns) | {"n": None}
        others = pd.DataFrame([blank | one.to_row() for one in self.statistics], dtype=object)
        return pd.concat([whole.astype(object), others], ignore_index=True) if len(self) else others

    @classmethod
    def from_frame(
        cls, frame: DataFrame, *, groups: Sequence[str] | None = None, decimals: int | None = None
    ) -> FairnessReport:
        """A report in long form, as `to_frame` writes it.

        Parameters
        ----------
        frame
            Slice columns (blank where a slice is not cut), group, metric, value, n.
        groups
            Names of the groups in the order of beliefs' columns; sorted by default.
        decimals
            Decimals that rates were rounded to; needed if no column `within` says so.

        Raises
        ------
        InputError
            If a column is missing, or a row is wrong: names both.
        """
        return cls._of(read_frame(frame, groups, decimals))

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        X: DataFrame | None = None,
        group: str | Sequence[str] | None = None,
        groups: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        names: Mapping[str, str] | None = None,
        unit: str | None = None,
        decimals: int | None = None,
        strict: bool = False,
    ) -> FairnessReport:
        """A report from a table of any form, as people publish and keep them.

        Long tables, a column a group, crosstabs, confusion matrices, several blocks in one file;
        percentages, decimal commas, totals, suppressed cells (`*`, `<10`) and ranges. `read_as`
        says in a line what was read, and `unread` what was not.

        Parameters
        ----------
        source
            A file (CSV with any separator, a spreadsheet, Parquet, JSON, HTML, `-` for standard
            input), a folder of an ACRO session, a data frame, a `MetricFrame` of fairlearn; or a
            list of such frames, one for each choice of control features.
        X
            The people's columns: their names and values help to find slices.
        group
            The attribute whose groups the table is about, by the name that it has there or among
            the people; several are crossed.
        groups
            Names of the groups in the order of beliefs' columns, or by attribute; sorted by
            default.
        names
            What headings, values or cells stand for, where it is not seen: a metric of
            `REPORT_METRICS`, `value`, a column of the people, a group; `-` leaves a column out.
        unit
            `percent` or `share`, of rates for which the table does not tell.
        decimals
            Decimals that rates were rounded to; by default those that are written, unless the
            rates are exact.
        strict
            Whether to refuse a table with columns that tell of groups and are not read.

        Raises
        ------
        InputError
            If nothing can be read, or can be read in two ways: names both.
        """
        chosen = (group,) if isinstance(group, str) else tuple(group or ())
        if isinstance(groups, Mapping):
            secrets = {one: tuple(values) for one, values in groups.items()}
            order = None
        else:
            secrets = {chosen[0]: tuple(groups)} if groups is not None and len(chosen) == 1 else {}
            order = groups
        known = KnownNames(secrets, X, mapping=names or {})
        return read_by_names(
            source, known, chosen, groups=order, unit=unit, decimals=decimals, strict=strict
        )

    @classmethod
    def per_rule(
        cls,
        rules: Rules | RuleBased,
        X: DataFrame,
        predictions: ArrayLike,
        groups: ArrayLike,
        *,
        by: str | Iterable[Any] = (),
        order: int = 1,
        **options: Unpack[RuleOptions],
    ) -> FairnessReport:
        """The report for each rule of a published model, as slices by a column `rule`.

        Parameters
        ----------
        rules
            The rules, or a model that has some.
        X, predictions, groups
            As in `from_predictions`.
        by
            Columns that rules are crossed with.
        order
            Most columns that a slice crosses, the rule among them.
        **options
            Further parameters of `from_predictions`.

        Raises
        ------
        InputError
            If the model has no rules, or as of `from_predictions`.
        """
        own_rules = _find_rules(rules)
        if RULE in map(str, X.columns):
            raise InputError(f"the people have a column {RULE!r} of their own: rename it")
        people = X.assign(**{RULE: np.array(name_rules(own_rules), object)[own_rules.apply(X)]})
        names = [by] if isinstance(by, str) else list(by)
        report = cls.from_predictions(
            people, predictions, groups, by=[RULE, *names], order=order, **options
        )
        shown = any(column.name == RULE for column in report.columns)
        return report.with_rules(own_rules) if shown else report

    def with_rules(self, rules: Rules | RuleBased) -> FairnessReport:
        """The same report with the rules that its slices are; for a report read from a file.

        Raises
        ------
        InputError
            If the report has no column `rule`, or one of its values is none of the rules.
        """
        own_rules = _find_rules(rules)
        names = [column.name for column in self.columns]
        check_choice("column of the report", RULE, names)
        place = names.index(RULE)
        column = replace(self.columns[place], rules=own_rules)
        for value in column.values:
            check_choice("rule", value, name_rules(own_rules))
        columns = (*self.columns[:place], column, *self.columns[place + 1 :])
        return replace(self, columns=columns)

    def with_people(
        self,
        X: DataFrame,
        predictions: ArrayLike,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> FairnessReport:
        """The same report with the people whom it is about; for a report read from a file.

        `protect` needs them for complementary suppression, and their groups for cell keys. No file
        of the report holds them.

        Parameters
        ----------
        X, predictions, labels
            As in `facts`.
        groups
            (n,) names of their groups.

        Raises
        ------
        InputError
            If the report is about other people, or a group is none of its groups.
        """
        self.facts(X, predictions, labels)  # which refuses others
        predicted = check_bits(predictions, len(X), "predictions")
        labelled = np.zeros(len(X), np.int64)
        if labels is not None:
            labelled = check_bits(labels, len(X), "labels")
        codes = None
        if groups is not None:
            codes = code_groups(read_groups(groups, len(X)), self.groups, "groups")
        return replace(self, people=ReportedPeople(X, predicted, labelled, codes))

    def to_csv(self, file: str | Path) -> None:
        """Write the long form.

        Parameters
        ----------
        file
            Where to.
        """
        write_output(to_path("file", file), self.to_frame().to_csv(index=False))

    @classmethod
    def from_file(
        cls, file: str | Path, *, groups: Sequence[str] | None = None, decimals: int | None = None
    ) -> FairnessReport:
        """Read what `to_json` (.json), `to_parquet` (.parquet, .pq) or else `to_csv` writes.

        JSON may be a list of rows of the long form. Errors name the file; see `from_frame`.
        """
        path = to_path("file", file)
        try:
            return cls._of(parse_report(load_content(path, MOST_BYTES), path, groups, decimals))
        except InputError as error:
            named = str(error).startswith(str(file))
            raise InputError(str(error) if named else f"{file}: {error}") from None

    def to_json(self, file: str | Path) -> None:
        """Write the long form column by column, and what columns, bins, groups and defences are.

        Parameters
        ----------
        file
            Where to.
        """
        write_output(to_path("file", file), to_json_text(self, self.to_frame()))

    def to_parquet(self, file: str | Path) -> None:
        """Write the long form, with the same description among its attributes; needs pyarrow.

        Parameters
        ----------
        file
            Where to.
        """
        write_output(to_path("file", file), to_parquet_bytes(self, self.to_frame()))

    def to_html(self, file: str | Path | None = None, *, title: str = "Fairness report") -> str:
        """The report as a standalone HTML page, with a table for each crossing of columns.

        Parameters
        ----------
        file
            File to write the page to, which is returned in any case.
        title
            Of the page.
        """
        page = to_page(self, title)
        if file is not None:
            write_output(to_path("file", file), page)
        return page

    def facts(self, X: DataFrame, predictions: ArrayLike, labels: ArrayLike | None = None) -> Facts:
        """The facts of the report for a reader who knows everybody's columns and predictions.

        Parameters
        ----------
        X
            n rows, the people of the report, with its columns.
        predictions, labels
            (n,) in {0, 1}; labels are needed by metrics that look at them.

        Raises
        ------
        InputError
            If the report is about other people, columns or bins: names row and column.
        ContradictionError
            If cells contradict each other or the people.
        """
        check_same_rows(X=X, predictions=predictions, labels=labels)
        check_people(X)
        predicted = check_bits(predictions, len(X), "predictions")
        labelled = None if labels is None else check_bits(labels, len(X), "labels")
        return find_facts(self, X, predicted, labelled)[0]


def read_by_names(
    source: Any, names: KnownNames, secret: Sequence[str], **options: Any
) -> FairnessReport:
    """As `FairnessReport.read`, by all that is known of the people."""
    if isinstance(source, FairnessReport):
        return source
    return FairnessReport._of(read_table(source, names, secret, **options))


RULE = "rule"
"""The column of slices that are rules of a model."""


def _find_rules(rules: Rules | RuleBased) -> Rules:
    own_rules = rules if isinstance(rules, Rules) else getattr(rules, "rules", None)
    if not isinstance(own_rules, Rules):
        raise InputError(f"{type(rules).__name__} has no rules: give `Rules`, or a model with them")
    return own_rules


def _find_tables(
    tables: Iterable[str | Iterable[Any]], kept: Sequence[str], names: Sequence[str]
) -> list[tuple[int, ...]]:
    """Numbers of the columns of each table; columns of one value cut nothing."""
    crossings: dict[tuple[int, ...], None] = {}
    for table in tables:
        columns = [table] if isinstance(table, str) else list(map(str, table))
        for name in columns:
            check_choice("column of tables", name, names)
        crossings[tuple(sorted(kept.index(name) for name in columns if name in kept))] = None
    return list(crossings)


def _blank(numbers: Codes, where: Mask) -> NDArray[Any]:
    """Whole numbers with blanks."""
    if not where.any():
        return numbers
    blanked = numbers.astype(object)
    blanked[where] = None
    return blanked
