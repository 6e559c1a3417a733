"""Names that others give the metrics of reports: those of toolkits, papers and laws.

A name is matched by meaning, with all its words; spelling is corrected within a word only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.base.text import hyphenate
from fpbench.reports.linear_statistics import is_rate, is_statistic
from fpbench.reports.reading.cells import drop_marks
from fpbench.reports.slices import REPORT_METRICS


class Reading(NamedTuple):
    """What a name tells: one of `REPORT_METRICS`, perhaps 1 less it, or a `Statistic`."""

    metric: str
    from_one: bool = False


_SAME: Mapping[str, str] = {
    "selection-rate": "positive-rate, positive-prediction-rate, acceptance-rate, hire-rate, "
    "hiring-rate, pass-rate, passing-rate, success-rate, approval-rate, admission-rate, "
    "admit-rate, offer-rate, promotion-rate, scoring-rate, favorable-rate, "
    "favourable-rate, pprev, predicted-prevalence, positive-decision-rate, selection-ratio, "
    "auswahlquote, "
    "einstellungsquote, taux-de-selection, tasa-de-seleccion, tasso-di-selezione",
    "true-positive-rate": "tpr, recall, recall-score, sensitivity, hit-rate",
    "false-positive-rate": "fpr, fall-out, fallout, false-alarm-rate",
    "selected": "predicted-positives, pp, hired, hires, accepted, passed, admitted, approved, "
    "approvals, offers, promoted, selections, selected-applicants, applicants-selected, "
    "predicted-positive, predicted-pos, numerator, ausgewaehlt, eingestellt",
    "rejected": "predicted-negatives, pn, not-selected, declined, denied, failed, rejections, "
    "not-hired, predicted-negative, predicted-neg, unselected",
    "true-positives": "tp, true-positive",
    "false-positives": "fp, false-positive",
    "false-negatives": "fn, false-negative",
    "true-negatives": "tn, true-negative",
    "accuracy": "accuracy-score, acc, share-correct",
    "precision": "precision-score, ppv, positive-predictive-value",
    "false-omission-rate": "for",
    "prevalence": "prev, base-rate, positive-base-rate, actual-positive-rate, label-rate",
    "labelled": "group-label-pos, label-positives, actual-positives, condition-positives, "
    "condition-positive, num-positives, base-positives",
    "f1-score": "f1, f1-measure, dice",
    "jaccard-score": "jaccard, jaccard-index, threat-score, critical-success-index",
    "people": "n, count, counts, size, group-size, support, sample-size, applicants, candidates, "
    "population, frequency, freq, total-applicants, denominator, headcount, observations, obs, "
    "persons, individuals, employees, sample, cases, num-instances, applications, members, anzahl, "
    "base, applied, effectif, numerosita, recuento, haeufigkeit, bewerber, total-people, n-obs, "
    "cnt, example-count, examples",
}
_FROM_ONE: Mapping[str, str] = {
    "selection-rate": "rejection-rate, denial-rate, negative-rate",
    "true-positive-rate": "false-negative-rate, fnr, miss-rate",
    "false-positive-rate": "true-negative-rate, tnr, specificity, selectivity",
    "accuracy": "error-rate, zero-one-loss, misclassification-rate, err",
    "precision": "false-discovery-rate, fdr",
    "false-omission-rate": "npv, negative-predictive-value",
}
READINGS: Mapping[str, Reading] = (
    {metric: Reading(metric) for metric in (*REPORT_METRICS, "f1-score", "jaccard-score")}
    | {name: Reading(own) for own, names in _SAME.items() for name in names.split(", ")}
    | {name: Reading(own, True) for own, names in _FROM_ONE.items() for name in names.split(", ")}
)
"""By every name that is read, as `hyphenate` writes it."""

AMBIGUOUS: Mapping[str, tuple[str, str]] = {
    "ppr": ("selection-rate", "a group's share of all selected people, as Aequitas has it"),
    "predicted-positive-rate": (
        "selection-rate", "a group's share of all selected people, as Aequitas has it"
    ),
    "positives": ("selected", "labelled"),
    "rate": ("selection-rate", "another rate"),
    "ratio": ("selection-rate", "an impact ratio"),
    "share": ("selection-rate", "a group's share of all people"),
    "percent": ("selection-rate", "a group's share of all people"),
    "mean": ("selection-rate", "a mean of something else"),
}  # fmt: skip
"""Names of two meanings; the first one is taken where the rest of the table shows it."""

UNREAD = frozenset({
    "balanced-accuracy", "balanced-accuracy-score", "f-score", "f-measure", "auc", "roc-auc",
    "roc-auc-score", "log-loss", "brier-score", "mcc", "mean-score", "average-score", "score",
    "median", "median-score", "mean-prediction", "score-threshold", "gini", "average-precision",
    "std", "standard-deviation", "standard-error", "se", "variance", "p-value", "ci-lower",
    "ci-upper", "lower", "upper", "confidence-interval",
})  # fmt: skip
"""Metrics of the field that reports are not read for, though they tell of groups, too."""
_COMPARES = re.compile(
    r"difference|-diff$|^diff-|ratio$|impact|disparit|parity|four-fifths|4[-/]5|80-rule|"
    r"rule-of-thumb|significan|pass-fail|adverse|max-rate|reference|ref-group"
)
"""Names of what compares groups."""
_COMPARED = {
    **dict.fromkeys(("impact", "adverse-impact", "disparate-impact", "demographic-parity"),
                    Reading("selection-rate")),
    "equal-opportunity": Reading("true-positive-rate"),
}  # fmt: skip
"""Names of comparisons of a metric, without the last word."""
TAKEN_OVER = {
    "true-positive-rate": "labelled", "precision": "selected", "false-omission-rate": "rejected"
}  # fmt: skip
"""Numbers of people that rates are taken over which are not of everybody of a group."""
_SHARE = re.compile(r"^(?:percent|percentage|pct|share|proportion|fraction|rate)-(?:of-)?|-"
                    r"(?:percent|percentage|pct|share|proportion|rate)$")  # fmt: skip
OF_ALL = re.compile(r"^(?:percent|percentage|pct|share|proportion|fraction)-of-")
"""A group's share of all selected people, or the selected people's of a group."""
_BOTH = re.compile(r",? *\(?(?:\bn|\bno\.?|\bnumber|#) *[(\[,/] *%[)\]]?")
"""Of numbers with percentages behind them, as `n (%)`."""
_INTERVAL = re.compile(
    r"(?<=\w)[,;]? *[(\[] *(?:\d\d(?:[.]\d)? ?% ?)?(?:ci|confidence intervals?) *[)\]]$"
)
"""Of numbers with intervals behind them."""
_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_UNITS = re.compile(
    r"(?:in )?(?:percent|number|pct|shares?|proportions?|decimals?)|n(?: ?= ?[\d,]+)?|no"
)
"""What a heading says in brackets of how its numbers are written; other texts may name a slice."""
_NUMBER = re.compile(
    r"^(?:number|no\.?|num|n|total|count)-(?:of-)?|-(?:count|counts|number|total)$"
)
_ARTICLES = re.compile(r"(?:^|-)(?:the|of-all|overall|observed|estimated)(?=-|$)")


def read_metric(name: str) -> Reading | None:
    """What a name tells, however it is written: `TPR`, `Selection rate`; None if it is unknown."""
    own = " ".join(name.split())
    return READINGS.get(hyphenate(name)) or (Reading(own) if is_statistic(own) else None)


@lru_cache(maxsize=2**12)
def read_heading(text: str) -> tuple[Reading | None, bool]:
    """What a heading tells, as `# Selected`, `% hired` or `Selection rate (%)`, and if in percent.

    None for a heading of another meaning.
    """
    text = _BOTH.sub(" ", _INTERVAL.sub("", drop_marks(text).casefold()))
    text = text.replace("unweighted", " ")
    percent = bool(re.search(r"%|\b(?:percent|percentage|pct)\b", text))
    plain = text.replace("#", " number ").replace("%", " percent ")
    plain = _BRACKETS.sub(lambda match: " " if _is_unit(match[1]) else f" {match[1]} ", plain)
    for old, new in (("\u00e4", "ae"), ("\u00f6", "oe"), ("\u00fc", "ue"), ("\u00e9", "e")):
        plain = plain.replace(old, new)
    plain = re.sub(r"\bin +percent", "percent", plain)
    name = hyphenate(re.sub(r"[^\w.&/-]+", " ", plain)).strip("-")
    for own in (name, _ARTICLES.sub("", name).strip("-")):
        if own in READINGS:
            return (_find_share(READINGS[own]) if percent else READINGS[own]), percent
    if OF_ALL.search(name):
        return None, percent
    share = _SHARE.sub("", name)
    if share != name and (of := READINGS.get(share)) is not None:
        return _find_share(of), percent
    number = _NUMBER.sub("", _NUMBER.sub("", name))
    if number != name:
        if not number:
            return Reading("people"), False
        if (of := READINGS.get(number)) is not None and not is_rate(of.metric):
            return of, False
    return None, percent


def _is_unit(text: str) -> bool:
    """Whether a text in brackets says nothing of whose numbers these are."""
    text = " ".join(text.replace(".", " ").split())
    return not text or bool(_UNITS.fullmatch(text)) or hyphenate(text) in READINGS


def _find_share(of: Reading) -> Reading | None:
    """What the share of people tells that a number of them, or a rate, is of."""
    if of.metric in ("selected", "rejected"):
        return Reading("selection-rate", of.metric == "rejected")
    if of.metric == "labelled":
        return Reading("prevalence")
    return of if is_rate(of.metric) else None


def read_title(text: str) -> Reading | None:
    """The one metric that a title names, as `Selection rates by sex, 2026`; None if not one."""
    words = re.findall(r"[\w%]+", _BOTH.sub("", text.casefold()))[:40]
    found: dict[Reading, None] = {}
    place = 0
    while place < len(words):
        for many in (4, 3, 2, 1):
            own = "-".join(words[place : place + many])
            reading = READINGS.get(own) or READINGS.get(own.removesuffix("s"))
            if reading is not None and len(own) > 2:
                found[reading] = None
                place += many - 1
                break
        place += 1
    return next(iter(found)) if len(found) == 1 else None


def is_comparing(name: str) -> bool:
    """Whether a heading is of a number that compares groups, as an impact ratio."""
    return bool(_COMPARES.search(hyphenate(re.sub(r"[^\w/-]+", " ", name.casefold()))))


def read_comparison(name: str) -> str:
    """The comparison that a name tells, as `ratio of selection-rate`; "" if it is another."""
    text = hyphenate(re.sub(r"[^\w/-]+", " ", name.casefold())).strip("-")
    if text in ("air", "disparate-impact"):
        text = "impact-ratio"
    of, _, what = text.rpartition("-")
    what = {"ratio": "ratio", "difference": "difference", "diff": "difference"}.get(what, "")
    reading = _COMPARED.get(of) or READINGS.get(of) or READINGS.get(f"{of}-rate")
    if not what or reading is None or reading.from_one or reading.metric not in REPORT_METRICS:
        return ""
    return f"{what} of {reading.metric}" if is_rate(reading.metric) else ""


def find_compared(name: str) -> str:
    """The metric whose values of groups a comparison follows from."""
    text = hyphenate(re.sub(r"[^\w/-]+", " ", name.casefold()))
    if re.search("odds|opportunity", text):
        return "true-positive-rate"
    words = re.split(_COMPARES, text)[0].strip("-")
    reading = READINGS.get(words) or READINGS.get(f"{words}-rate")
    return "selection-rate" if reading is None else reading.metric


@check_arguments
def parse_report_metric(name: str) -> str:
    """The metric of reports that a name stands for.

    Parameters
    ----------
    name
        One of `REPORT_METRICS`, or another name of it: `selection_rate`, `TPR`.

    Raises
    ------
    InputError
        If it is unknown, or 1 less a metric, as `FNR` is.
    """
    reading = read_metric(name)
    if reading is None:
        raise InputError(explain_unknown(name))
    if reading.from_one:
        raise InputError(f"the metric {name!r} is 1 less the {reading.metric}: name that")
    if reading.metric not in REPORT_METRICS:
        raise InputError(f"the metric {name!r} is read from tables, and no report is made of it")
    return reading.metric


def find_near_metric(name: object) -> str | None:
    """The name of which this one is a misspelling, word by word; None if it means something else.

    A name of the same letters may mean another thing: `pass-rate` is not `miss-rate`.
    """
    written = hyphenate(name) if isinstance(name, str) else ""
    if written in READINGS or written in UNREAD or written in AMBIGUOUS or len(written) > 60:
        return None
    words = written.split("-")
    near = [other for other in READINGS if _is_misspelt(words, other.split("-"))]
    return near[0] if near else None


def _is_misspelt(words: list[str], others: list[str]) -> bool:
    """Whether words are those of another name but for a letter or two within them."""
    return len(words) == len(others) and all(
        one == two
        or (max(len(one), len(two)) > 3 and min(len(one), len(two)) > 2 and one[0] == two[0]
            and SequenceMatcher(None, one, two).ratio() >= 0.75)
        for one, two in zip(words, others, strict=True)
    )  # fmt: skip


def explain_unknown(name: object) -> str:
    """The message about a name that no metric of reports has."""
    written = hyphenate(name) if isinstance(name, str) else ""
    if written in AMBIGUOUS:
        return f"{name!r} has two meanings: {list_meanings(AMBIGUOUS[written])}"
    if is_comparing(written):
        return (
            f"{name!r} compares groups, and is not read, though it may tell of people: give the "
            "rate of each group"
        )
    near = find_near_metric(name)
    hint = f"did you mean {near!r}?" if near else f"valid: {', '.join(REPORT_METRICS)}"
    return f"unknown metric {name!r}; {hint}"


def list_meanings(meanings: Iterable[str]) -> str:
    """`a, or b`."""
    return ", or ".join(meanings)
