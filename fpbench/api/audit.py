"""One audit of any model, private or not, without a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from fpbench.base.arguments import show_value, to_generator
from fpbench.base.arrays import check_binary, cut_scores
from fpbench.base.errors import InputError
from fpbench.base.sheet import Column, Sheet, write_html, write_plain
from fpbench.base.text import format_number
from fpbench.base.validation import validate
from fpbench.claims.rates import Metric, RateConstraint, parse_metric
from fpbench.components.auditor import Auditor, HistogramSource, Release, Subject
from fpbench.components.catalog import discover
from fpbench.components.guarantee import Neighbours
from fpbench.components.mechanism import Mechanism, Policy
from fpbench.components.records import MeasureValues
from fpbench.components.spec import resolve_component
from fpbench.data.groups import group_codes
from fpbench.data.people import read_people
from fpbench.data.sample import Codes, Sample
from fpbench.models.model_outputs import (
    choose_people,
    get_rules,
    is_bare_tree,
    read_predictions,
)
from fpbench.models.rules import Rules, tree_rules
from fpbench.privacy.curator import Curator

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class _Audited:
    """The model as the auditor sees it."""

    rules: Rules | None


@overload
def audit(
    model: Any,
    X: Any,
    groups: Any,
    *,
    labels: Any = None,
    positive: Any = None,
    threshold: float | None = None,
    epsilon: None = None,
    confidence: float = 0.95,
    resamples: int = 2_000,
    rng: np.random.Generator | int | None = None,
) -> GroupAudit: ...


@overload
def audit(
    model: Any,
    X: Any,
    groups: Any,
    *,
    labels: Any = None,
    positive: Any = None,
    threshold: float | None = None,
    epsilon: float,
    mechanism: str | Mapping[str, Any] | Mechanism = "laplace",
    policy: str | Mapping[str, Any] | Policy | None = None,
    mode: Literal["partition", "reference"] = "partition",
    metric: Metric = "statistical-parity",
    per_rule: bool = False,
    repetitions: int = 1,
    confidence: float = 0.95,
    resamples: int = 400,
    neighbours: Neighbours | None = None,
    rng: np.random.Generator | int | None = None,
) -> Release: ...


def audit(
    model: Any,
    X: Any,
    groups: Any,
    *,
    labels: Any = None,
    positive: Any = None,
    threshold: float | None = None,
    epsilon: float | None = None,
    mechanism: str | Mapping[str, Any] | Mechanism = "laplace",
    policy: str | Mapping[str, Any] | Policy | None = None,
    mode: Literal["partition", "reference"] = "partition",
    metric: Metric = "statistical-parity",
    per_rule: bool = False,
    repetitions: int = 1,
    confidence: float = 0.95,
    resamples: int | None = None,
    neighbours: Neighbours | None = None,
    rng: np.random.Generator | int | None = None,
) -> Release | GroupAudit:
    """Estimate a model's group fairness, with epsilon under differential privacy.

    Without epsilon the auditor `group-fairness` sees the groups and compares rates. With epsilon
    the auditor `pafer` queries a curator for noisy counts.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier of two labels; anything else with `predict`, and `rules`
        (`fpbench.models.Rules`) if the audit uses them; or its predictions (n,). One whose
        `predict` takes `sensitive_features` is given the groups.
    X
        Features of the n people, as the model takes them; ignored if predictions are given.
    groups
        (n,) the group of each person, a data frame of several attributes, which are crossed, of
        pandas, polars, Arrow or whatever narwhals reads; names of columns of X; or a
        curator of the groups: a `Curator`, or `fpbench-curator`'s `RemoteCurator` elsewhere.
    labels
        (n,) true labels; every metric but statistical parity needs them. Without epsilon they add
        the rates that depend on labels.
    positive
        The label that counts as 1; needed if labels are not 0 and 1 or booleans.
    threshold
        The least score that is prediction 1, if the model gives scores.
    epsilon
        Privacy of one audit; None for none. Arguments from `mechanism` to `repetitions`, and
        `neighbours`, need an epsilon.
    mechanism, policy
        The mechanism that adds noise, and the policy that makes noisy counts valid: a name, a table
        with `use` and parameters, or a component.
    mode, metric, per_rule, confidence, resamples
        See the auditors: `fpbench describe auditor pafer`, `fpbench describe auditor
        group-fairness`.
    repetitions
        Number R of identical audits, each with fresh noise. Each spends epsilon: use one for real
        people.
    neighbours
        The neighbouring relation of epsilon, `attribute` by default; a curator has its own.
    rng
        For simulated noise and for intervals: a generator, or a seed. By default noise is fresh,
        and a plain audit, without noise, is deterministic.

    Returns
    -------
    Release or GroupAudit
        With epsilon, estimates (R,) of the ratio of the least to the greatest group rate, their
        intervals, and the guarantee. Without, a table of rates by group, gaps and ratios, all with
        intervals.

    Raises
    ------
    InputError
        If an argument is not as described, or the model lacks rules that the audit uses.
    BudgetError
        If it costs more than a curator's remaining budget.

    Examples
    --------
    >>> import fpbench, numpy as np
    >>> hired, group = np.array([1, 0, 1, 1] * 500), np.array(["b", "a", "a", "b"] * 500)
    >>> release = fpbench.audit(hired, None, group, epsilon=1.0, rng=0)
    >>> bool(release.low[0] <= 0.5 <= release.high[0]), release.guarantee.neighbours
    (True, 'attribute')
    >>> print(fpbench.audit(hired, None, group, resamples=0).by_group)
       people  selection_rate  selection_rate_low  selection_rate_high
    a    1000             0.5                 NaN                  NaN
    b    1000             1.0                 NaN                  NaN
    """
    generator = to_generator("rng", 0 if rng is None and epsilon is None else rng)
    rest, groups, given = read_people(X, groups, labels=labels, model=model)
    labels, model, X = given["labels"], given["model"], choose_people(model, X, rest)
    if (
        isinstance(X, type)
        or getattr(X, "ndim", 1) == 0
        or hasattr(X, "predict")
        or not hasattr([] if X is None else X, "__len__")
    ):
        order = "; the model comes first" if hasattr(X, "predict") else ""
        raise InputError(f"X must be a table of people, not {show_value(X)}{order}")
    metric = parse_metric(metric)
    if epsilon is None:
        private = {
            "mechanism": mechanism != "laplace", "policy": policy is not None,
            "mode": mode != "partition", "metric": metric != "statistical-parity",
            "per_rule": per_rule is not False, "repetitions": repetitions != 1,
            "neighbours": neighbours is not None,
        }  # fmt: skip
        if unused := [name for name, named in private.items() if named]:
            every = ", which has one metric; a plain audit has all" * (unused[0] == "metric")
            raise InputError(
                f"{unused[0]}: is for private audits only{every}: leave it out, or give an epsilon"
            )
        return _audit_openly(
            model, X, groups, labels, positive, threshold, confidence, resamples, generator
        )
    cls = discover().component("auditor", "pafer")
    options = {
        "epsilon": epsilon, "mode": mode, "metric": metric, "per_rule": per_rule,
        "repetitions": repetitions, "confidence": confidence,
        "resamples": 400 if resamples is None else resamples,
        "mechanism": resolve_component("mechanism", mechanism),
        "policy": None if policy is None else resolve_component("policy", policy),
    }  # fmt: skip
    auditor: Auditor = validate(cls, {name: _to_plain(v) for name, v in options.items()}, "audit")
    predictions, audited, features = _read_model(
        model, X, groups, auditor.needs_rules, generator, positive, threshold
    )
    curator = _make_curator(groups, neighbours, generator)
    n = len(predictions)
    if curator.people != n:
        raise InputError(f"groups: has {curator.people} people, but the model predicts for {n}")
    columns: dict[str, Any] = {"features": features, "predictions": predictions}
    if RateConstraint(metric).labels != (None,):
        if labels is None:
            raise InputError(f"labels: are missing, but metric {metric!r} needs labels")
        columns["labels"] = check_binary("labels", labels, positive, nameable=True)
        if len(columns["labels"]) != n:
            raise InputError(f"labels: has {len(columns['labels'])} values, but X has {n} rows")
    people = Sample(curator.groups, **columns)
    subject = Subject(Sample(curator.groups), people.only(auditor.sees), audited, curator)
    release = auditor.audit(subject, generator)
    assert isinstance(release, Release)
    return release


def _audit_openly(
    model: Any,
    X: Any,
    groups: Any,
    labels: Any,
    positive: Any,
    threshold: float | None,
    confidence: float,
    resamples: int | None,
    rng: np.random.Generator,
) -> GroupAudit:
    """Rates by group, by an auditor that sees the groups."""
    if hasattr(groups, "histogram"):
        raise InputError("epsilon: is missing, but a curator answers only with one")
    options = {"confidence": confidence, "resamples": 2_000 if resamples is None else resamples}
    cls = discover().component("auditor", "group-fairness")
    auditor: Auditor = validate(cls, {name: _to_plain(v) for name, v in options.items()}, "audit")
    predictions, _, _ = _read_model(model, X, groups, False, rng, positive, threshold)
    codes, names = group_codes(groups, name="groups")
    # Without labels the result leaves out rates that depend on them.
    truth = (
        predictions if labels is None else check_binary("labels", labels, positive, nameable=True)
    )
    for what, count in (("groups", len(codes)), ("labels", len(truth))):
        if count != len(predictions):
            raise InputError(
                f"{what}: has {count} people, but the model predicts for {len(predictions)}"
            )
    people = Sample(names, labels=truth, sensitive=codes, predictions=predictions)
    measures = auditor.audit(Subject(people, people), rng)
    assert isinstance(measures, Mapping)
    return tabulate_audit(measures, names, confidence, labelled=labels is not None)


def _to_plain(value: Any) -> Any:
    """NumPy numbers as Python numbers."""
    return value.item() if isinstance(value, np.generic) else value


def _make_curator(
    groups: Any, neighbours: Neighbours | None, rng: np.random.Generator
) -> HistogramSource:
    if not hasattr(groups, "histogram"):
        codes, names = group_codes(groups, name="groups")
        return Curator(codes, names, neighbours=neighbours, rng=rng)
    source = cast("HistogramSource", groups)
    if neighbours not in (None, source.neighbours):
        raise InputError(
            f"neighbours: the curator's are {source.neighbours!r}, not {show_value(neighbours)}"
        )
    return source


def _read_model(
    model: Any,
    X: Any,
    groups: Any,
    needs_rules: bool,
    rng: np.random.Generator,
    positive: Any,
    threshold: float | None,
) -> tuple[Codes, _Audited, Any]:
    """Predictions, the model as the auditor sees it, and features if it uses them."""
    counts = None if threshold is not None else positive  # of predictions
    if not hasattr(model, "predict"):
        name, answer = read_predictions(model, X)
        answer = cut_scores(name, answer, threshold)
        bits = check_binary(name, answer, counts, nameable=True, cuttable=True)
        return bits, _Audited(None), None
    if X is None:
        raise InputError("X: is missing, but the model needs it to predict")
    if is_bare_tree(model):
        # Its rules predict the same, so people pass through the tree only once.
        rules = tree_rules(model, positive=positive)
        if not needs_rules:
            return rules.predict(X), _Audited(None), None
        codes = rules.apply(X)
        known = replace(rules, find=lambda _: codes)
        return rules.labels.take(codes), _Audited(known), X
    told = None if hasattr(groups, "histogram") else groups
    name, answer = read_predictions(model, X, rng, told)
    answer = cut_scores(name, answer, threshold)
    predictions = check_binary(name, answer, counts, nameable=True, cuttable=True)
    return predictions, _Audited(get_rules(model, positive) if needs_rules else None), X


_NOTIONS = {
    "independence": ("selection_rate",),
    "separation": ("true_positive_rate", "false_positive_rate"),
    "sufficiency": ("positive_predictive_value", "false_omission_rate"),
}
"""Rates shown by group, for each notion of fairness."""
_ENDS = ("low", "high")


@dataclass(frozen=True, eq=False)
class GroupAudit:
    """Rates of predictions by group, without any privacy; prints itself as a table.

    Attributes
    ----------
    by_group
        A row for each group: `people`, and for each rate its value, and `..._low` and `..._high`,
        the ends of its interval. Without labels there is only the selection rate. A rate over no
        members is NaN.
    gaps
        A row for each notion of fairness: `gap`, the greatest difference of a rate between groups,
        and `ratio`, the least rate over the greatest, each with its interval.
    confidence
        Confidence level of the intervals, which are about the population behind the sample.
    """

    by_group: DataFrame
    gaps: DataFrame
    confidence: float

    def _sheets(self) -> list[Sheet]:
        rates, gaps = _format_columns(self.by_group), _format_columns(self.gaps)
        lines = [(name.replace("_", " "), *cells) for name, cells in rates.items()]
        notions = list(zip(map(str, self.gaps.index), *gaps.values(), strict=True))
        level = f"{100 * self.confidence:.6g} % intervals, by bootstrap of the people"
        return [
            Sheet("", "", _make_columns("rate", map(str, self.by_group.index)), tuple(lines)),
            Sheet("", level, _make_columns("fairness", gaps), tuple(notions)),
        ]

    def __str__(self) -> str:
        return write_plain(self._sheets())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The HTML for notebooks."""
        return write_html(self._sheets())


def tabulate_audit(
    measures: MeasureValues, groups: Sequence[str], confidence: float, *, labelled: bool
) -> GroupAudit:
    """The measures of the auditor `group-fairness` as tables.

    `groups`: names of the K groups, in the order of their measures. `labelled`: whether to include
    rates that depend on labels.
    """
    import pandas as pd

    # The auditor respells groups for names of measures; their order is the same.
    spelt = [name.removeprefix("people_") for name in measures if name.startswith("people_")]
    notions = _NOTIONS if labelled else {"independence": _NOTIONS["independence"]}
    by_group: dict[str, list[object]] = {"people": [measures[f"people_{name}"] for name in spelt]}
    for rate in (rate for rates in notions.values() for rate in rates):
        by_group[rate] = [measures[f"{rate}_{name}"] for name in spelt]
        for end in _ENDS:
            by_group[f"{rate}_{end}"] = [
                measures.get(f"{rate}_{name}_interval_{end}") for name in spelt
            ]
    gaps: dict[str, list[object]] = {}
    for what in ("gap", "ratio"):
        gaps[what] = [measures[f"{notion}_{what}"] for notion in notions]
        for end in _ENDS:
            gaps[f"{what}_{end}"] = [
                measures.get(f"{notion}_{what}_interval_{end}") for notion in notions
            ]
    tables = pd.DataFrame(by_group, [*groups]), pd.DataFrame(gaps, [*notions])
    rates, compared = (
        table.astype({name: float for name in table.columns if name != "people"})
        for table in tables
    )
    return GroupAudit(rates, compared, confidence)


def _make_columns(first: str, names: Iterable[str]) -> tuple[Column, ...]:
    return Column(first, number=False, whole=True), *map(Column, names)


def _format_columns(frame: DataFrame) -> dict[str, list[str]]:
    """The cells of each column, an interval in brackets beside its number."""
    cells = {}
    for name in map(str, frame.columns):
        if name == "people":
            cells[name] = [f"{int(count):,}" for count in frame[name]]
        elif not name.endswith(_ENDS):
            numbers = (frame[column] for column in (name, f"{name}_low", f"{name}_high"))
            cells[name] = [_format_interval(*three) for three in zip(*numbers, strict=True)]
    return cells


def _format_interval(number: float, low: float, high: float) -> str:
    if isnan(number):
        return "-"
    ends = "" if isnan(low) else f" ({format_number(low)} to {format_number(high)})"
    return f"{format_number(number)}{ends}"
