"""What reports give away to an adversary who knows everybody's columns and predictions."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arguments import check_type, show_value
from fpbench.base.arrays import cut_scores
from fpbench.base.errors import InputError
from fpbench.claims.fact_information import limit_fact_nats
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.components.beliefs import SURE, check_beliefs
from fpbench.components.guarantee import compose
from fpbench.correction.leak_limits import limit_leak_by_error
from fpbench.data.people import read_people, to_pandas
from fpbench.privacy.private_leak import limit_private_leak, limit_private_nats
from fpbench.reports.assessments.assessment import (
    Assessment,
    ReportAlone,
)
from fpbench.reports.assessments.attack import (
    Allowed,
    Findings,
    Reader,
    attack,
    attack_as_known,
    settle_folds,
)
from fpbench.reports.assessments.hidden_numbers import find_hidden, is_protected
from fpbench.reports.assessments.least_change import ChangeSearch, Progress, find_least_change
from fpbench.reports.assessments.placebo import measure_placebo
from fpbench.reports.assessments.prior_beliefs import (
    Prior,
    find_prior,
    mark_positive,
    tile_shares,
)
from fpbench.reports.assessments.report_series import (
    ReadReports,
    ReportSeries,
    name_people,
    read_reports,
)
from fpbench.reports.assessments.riskiest_cells import find_riskiest
from fpbench.reports.fairness_report import FairnessReport
from fpbench.reports.rows import ReportedPeople
from fpbench.reports.slices import (
    Codes,
    check_bits,
    check_people,
    code_groups,
    cross_groups,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_UNSURE = 0.05, 0.95
"""The adversary was unsure if its prior belief in the proven group was between these."""
_ATTACKED, _BOUNDED, _LISTED = 0.6, 0.7, 0.8
"""Shares of the time limit at which the attack, the search for ranges of suppressed numbers, and
the search for the riskiest cells, stop; of half the limit if changes are searched."""
_LONGEST = 1e6
"""Greatest time limit, in seconds."""
_MAX_LEAK = 0.01
"""Limit of the leak by default."""
_STATE = "the report states", "the reports state together"


def assess(
    report: Any,
    X: Any,
    predictions: Any,
    labels: Any = None,
    groups: Any = None,
    beliefs: Any = None,
    known_people: Any = None,
    *,
    households: Any = None,
    positive: Any = None,
    threshold: float | None = None,
    max_leak: float | str | None = None,
    max_proven: int = 0,
    max_undecided: int = 0,
    sure: float | str = SURE,
    protect_hidden: float | str | None = None,
    search: bool = False,
    placebo: bool = False,
    seconds: float = 60.0,
    error: float = 0.03,
    tell: Progress | None = None,
    rng: np.random.Generator | int | None = None,
) -> Assessment:
    """What a report gives away to an adversary who knows everybody's columns and predictions.

    Several reports are assessed together: two about overlapping people also say something about
    those in only one of them (`combine_facts`).

    Parameters
    ----------
    report
        The report, published or planned; or what `FairnessReport.read` takes: a file, a data frame,
        a `MetricFrame` of fairlearn. Several: a list, or a dictionary by name, in the order of
        publishing; `search` changes the last one.
    X
        n rows, the people of the report; with several, everybody who is in any. A frame of pandas,
        polars, Arrow or whatever narwhals reads.
    predictions, labels
        (n,) of two values; labels are needed by metrics that look at them. Predictions may be
        scores, with `threshold`, the least score that is prediction 1. Predictions of R reports
        may be (n, R), missing (NaN) where a person is not in that report; so may those of a model
        that was trained again. Beliefs use the first prediction of each person. Who is in none of
        them does not count, and is as little known after as before.
    groups
        (n,) names of the true groups, to measure what is guessed right; columns are crossed. Or
        names of columns of X, which are left out of it.
    beliefs
        (n, K) the adversary's calibrated prior beliefs; columns in the order of `report.groups`. By
        default they are learnt from `known_people`, or else from `groups` by cross-fitting: those
        about a person by the adversary `a2` from the people of four other fifths, so that they
        hold what anybody may know of people like these. Without either, and with "shares", they
        are the groups' shares, in `groups` or in the largest cells of the report; then what
        columns tell of people like these is charged to the report.
    known_people
        Other people whose groups the adversary knows: a frame with the columns of X, and `group`,
        `prediction` and, if labels are given, `label`. The adversary `a2` (boosted trees) is
        trained on 70 % of them and calibrated on the others.
    households
        (n,) values that are equal for people who are cross-fitted together, since their groups
        depend on each other's; everybody is alone by default.
    positive
        The value of predictions and labels, of known people too, that counts as 1; needed if
        they are not 0 and 1 or truth values.
    threshold
        The least score that is prediction 1; of known people's predictions too.
    max_leak, max_proven, max_undecided
        Limits: of the leak, as a share below 1 or in percent ("1%"), of the number of people
        proven or sure, and of those of whom it is open whether they can be proven. The limit of the
        leak is .01 by default, and none where beliefs are shares for want of anything better.
    sure
        A person about whom the report raises a belief above this, as a share or in percent, is as
        good as proven.
    protect_hidden
        The report passes only if readers cannot tell a suppressed number of people to this share of
        it, "10%" for instance: the range that published numbers leave reaches that far below and
        above it (`HiddenNumbers`). By default it need not.
    search
        Whether to search for the least change that passes, if the report does not.
    placebo
        Whether to measure the leak of a table of other people, too: each half of the people is
        attacked with the table of the other half. Needs `groups`.
    seconds
        Time limit of everything together; each attack spends at most half of its time on proofs by
        linear programs. `unfinished` lists what ran out of time; a report whose attack did so does
        not pass.
    error
        `error_bound` at which beliefs are accurate enough.
    tell
        Called with each change that is tried, and the number tried so far.
    rng
        Of noise and random rounding in changed reports; unpredictable by default.

    Raises
    ------
    InputError
        If the report, groups or beliefs are about other people or groups.
    ContradictionError
        If published cells contradict each other.
    """
    deadline = _find_deadline(seconds)
    allowed = Allowed.of(max_leak, max_proven, sure, max_undecided, protect_hidden)
    X, groups, given = read_people(
        X, groups, predictions=predictions, labels=labels, households=households, beliefs=beliefs
    )
    labels, households, beliefs = given["labels"], given["households"], given["beliefs"]
    check_people(X)
    known_people = to_pandas("known_people", known_people)
    if households is not None and np.shape(households) != (len(X),):
        raise InputError(f"households must be {len(X)} values, one a person of X")
    predictions = cut_scores("predictions", given["predictions"], threshold)
    of_predictions = None if threshold is not None else positive
    names = name_people(X, predictions, labels, groups, known_people, of_predictions)
    report = read_reports(report, *names)
    series = ReportSeries.of(report, predictions, len(X), of_predictions)
    if groups is not None:
        groups = cross_groups(groups)
    if labels is not None:
        labels = check_bits(labels, len(X), "labels", positive, nameable=True)
    if known_people is not None and threshold is not None and "prediction" in known_people:
        cut = cut_scores("known people: prediction", known_people["prediction"], threshold)
        known_people = known_people.assign(prediction=cut)
    if positive is not None and known_people is not None:
        known_people = mark_positive(known_people, positive)
    inside = series.inside
    if not inside.all():
        series, X = series.take(inside), X[inside]

    def take(rows: Any) -> Any:
        if rows is None or isinstance(rows, str) or inside.all():
            return rows
        return rows[inside] if hasattr(rows, "iloc") else np.asarray(rows)[inside]

    labels = take(labels)
    result = assess_series(
        series, series.read(X, labels), X, labels, take(groups), take(beliefs), known_people,
        households=take(households), allowed=allowed, search=search, placebo=placebo,
        seconds=deadline - time.perf_counter(), error=error, tell=tell, rng=rng,
    )  # fmt: skip
    if inside.all():
        return result
    if beliefs is None or isinstance(beliefs, str):
        return result.over(inside)
    return result.over(inside, check_beliefs(beliefs))


def assess_series(
    series: ReportSeries,
    read: ReadReports,
    X: DataFrame,
    labels: Codes | None,
    groups: ArrayLike | None,
    beliefs: ArrayLike | Literal["shares"] | None = None,
    known_people: DataFrame | None = None,
    *,
    households: ArrayLike | None = None,
    allowed: Allowed,
    search: bool,
    placebo: bool = False,
    seconds: float,
    error: float = 0.03,
    tell: Progress | None = None,
    rng: np.random.Generator | int | None = None,
) -> Assessment:
    """What reports give away, from their facts in `read`; other parameters as in `assess`."""
    _check_number("error", error, 1)
    check_type("search", search, bool, "True or False")
    check_type("placebo", placebo, bool, "True or False")
    deadline = time.perf_counter() + seconds
    facts = read.facts
    truth = None if groups is None else _match_groups(groups, series, facts)
    if placebo and truth is None:
        raise InputError("a placebo needs true groups: groups= (--group)")
    before = find_prior(
        X, series.first_predictions, labels, series.groups, facts, truth,
        beliefs=beliefs, known=known_people, households=households,
    )  # fmt: skip
    if before.fit is not None:
        before.fit(1)  # learning takes longest of many groups, and leaves the attack its share
    started = time.perf_counter()
    left = max(deadline - started, 0.0) / (2 if search else 1)
    attacked, bounded, listed = (started + left * s for s in (_ATTACKED, _BOUNDED, _LISTED))
    if allowed.leak is None and not (before.is_shares and truth is None):
        allowed = replace(allowed, leak=_MAX_LEAK)
    reader, findings, folds_matter = attack_as_known(
        facts, before.fit, Reader(before.beliefs, truth, error), allowed,
        attacked - time.perf_counter(),
    )  # fmt: skip
    prior = reader.prior
    hidden = find_hidden(read, findings.worlds, truth, allowed.protect_hidden, bounded)
    privacy = _read_guarantees(series, prior)
    without = reader.accuracy(prior)
    riskiest, numbers, listed_all = find_riskiest(
        facts, prior, read.row, read.report, deadline=listed
    )
    alone = attack(facts.take(numbers), reader, deadline - time.perf_counter())
    each = _assess_each(series, read, reader, allowed, deadline)
    channel = Facts.join([facts, *read.hidden])
    nats = limit_fact_nats(channel, seconds=deadline - time.perf_counter())
    cut = {
        "the attack": not findings.finished,
        "the ranges of suppressed numbers": time.perf_counter() > bounded
        and (hidden is not None and hidden.undecided.any()),
        "the list of riskiest cells": not listed_all or not alone.finished,
        "the limit from the bits": time.perf_counter() > deadline,
        "the attacks on each report alone": not all(one.finished for one in each),
    }
    nats = nats if privacy.nats is None else privacy.nats
    null = change = None
    if placebo:
        null = measure_placebo(facts, reader, households, deadline - time.perf_counter())
        if time.perf_counter() > deadline:
            null, cut["the placebo"] = None, True

    if search and not all(one.within(allowed) for one in each[:-1]):
        why = "an earlier report alone exceeds the limits"
        change = ChangeSearch((), (), (("changes of the last report", why),), 0)
    elif search and not (findings.within(allowed) and is_protected(hidden)):
        left = deadline - time.perf_counter()
        change = _search_change(series, X, labels, before, reader, allowed, left, tell, rng)
    return Assessment(
        groups=series.groups,
        people=facts.people,
        reports=each,
        without=without,
        with_=without + findings.leak,
        measured=truth is not None,
        leak_expected=float((findings.beliefs.max(axis=1) - prior.max(axis=1)).mean()),
        limit=limit_leak_by_error(1 - without, nats, facts.people, facts.groups),
        private_limit=privacy.limit,
        privacy=privacy.words,
        bits=nats / log(2),
        proven=findings.proven,
        proven_unsure=_find_unsure(findings),
        sure=findings.find_sure(allowed.sure),
        undecided=findings.worlds.undecided,
        worlds=findings.worlds,
        finished=findings.finished,
        unfinished=tuple(part for part, is_cut in cut.items() if is_cut),
        prior=prior,
        posterior=findings.beliefs,
        knowledge=before.source,
        error_bound=findings.error_bound,
        facts=facts,
        riskiest=riskiest,
        alone=(int(alone.proven.sum()), alone.leak),
        allowed=allowed,
        change=change,
        folds_matter=folds_matter,
        placebo=null,
        hidden=hidden,
        read_as=series.read_as,
    )


def _find_unsure(findings: Findings) -> Mask:
    """(n,) whether a person's group is proven, and the adversary was unsure of it before."""
    people = np.arange(len(findings.prior))
    before = findings.prior[people, findings.worlds.possible.argmax(axis=1)]
    return np.asarray(findings.proven & (before > _UNSURE[0]) & (before < _UNSURE[1]))


def _search_change(
    series: ReportSeries,
    X: DataFrame,
    labels: Codes | None,
    before: Prior,
    reader: Reader,
    allowed: Allowed,
    seconds: float,
    tell: Progress | None,
    rng: np.random.Generator | int | None,
) -> ChangeSearch:
    """The least change of the last report that passes."""
    fit, truth = before.fit, reader.truth

    def read(changed: FairnessReport) -> ReadReports:
        return series.change_last(changed).read(X, labels)

    def find_reader(changed: Facts) -> Reader:
        """The reader of a changed report; shares that the report told are those of the changed."""
        if fit is not None:
            return replace(reader, prior=(fit(0) + fit(1)) / 2)
        told = before.is_shares and truth is None
        return replace(reader, prior=tile_shares(changed, truth)) if told else reader

    def protects(changed: FairnessReport, found: Findings, until: float) -> bool:
        worlds, protect = found.worlds, allowed.protect_hidden
        return is_protected(find_hidden(read(changed), worlds, truth, protect, until))

    there = series.predictions[:, -1] >= 0
    own = np.zeros(len(X), np.int64) if labels is None else labels
    groups = truth[there] if truth is not None and series.groups == series.last.groups else None
    people = ReportedPeople(X[there], series.predictions[there, -1], own[there], groups)
    return find_least_change(
        replace(series.last, people=people), lambda changed: read(changed).facts, find_reader,
        allowed, seconds=seconds, tell=tell, rng=rng, protects=protects,
        settle=None if fit is None else partial(settle_folds, fit, reader, allowed),
    )  # fmt: skip


def _assess_each(
    series: ReportSeries, read: ReadReports, reader: Reader, allowed: Allowed, deadline: float
) -> tuple[ReportAlone, ...]:
    """What each of several reports gives away alone; a single report is not attacked again."""
    if len(series.reports) == 1:
        return (ReportAlone(series.names[0], len(series.predictions), None, None),)
    alone = []
    for place, (name, facts) in enumerate(zip(series.names, read.alone, strict=True)):
        inside = int((series.predictions[:, place] >= 0).sum())
        left = (deadline - time.perf_counter()) / (len(read.alone) + 1)
        findings = attack(facts, reader, left)
        proven, sure = (int(m.sum()) for m in (findings.proven, findings.find_sure(allowed.sure)))
        alone.append(ReportAlone(name, inside, proven, findings.leak, findings.finished, sure))
    return tuple(alone)


def _check_number(what: str, number: float, most: float) -> None:
    if not isinstance(number, int | float | np.number) or not 0 < number <= most:
        raise InputError(f"{what} must be above 0 and at most {most:g}, not {show_value(number)}")


def _find_deadline(seconds: float) -> float:
    """The end of the time limit, by `time.perf_counter`."""
    _check_number("seconds", seconds, _LONGEST)
    return time.perf_counter() + float(seconds)


def _match_groups(groups: ArrayLike, series: ReportSeries, facts: Facts) -> NDArray[np.intp]:
    """Codes of the true groups, which must be those that the reports are about."""
    own_groups = np.asarray(groups)
    if own_groups.shape != (facts.people,):
        raise InputError(f"groups must be {facts.people} names, one a person of X")
    series.check_groups(own_groups)
    names = series.groups
    truth = code_groups(own_groups, names, "groups")
    counts = facts.count(truth[:, None] == np.arange(facts.groups))
    if len(broken := facts.find_broken(counts)):
        first = int(broken[0])
        ends = facts.low[first], facts.high[first]
        k = int(((counts[first] < ends[0]) | (counts[first] > ends[1])).argmax())
        low, high = (end[k] for end in ends)
        published = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        if low <= counts[first, k] <= high:  # a clause about several groups or sets
            published = "that a group is smaller, or another rate or mean"
        which = f"{series.names[0]} does" if len(series.names) == 1 else "the reports do"
        raise InputError(
            f"{which} not match these groups: {counts[first, k]} people are {names[k]!r} in "
            f"{facts.name(first)}, where it says {published}"
        )
    return truth


class _Privacy(NamedTuple):
    """What the reports' guarantees of differential privacy limit."""

    limit: float | None
    """The greatest leak; None if there is no guarantee of everything."""
    words: str
    """The guarantee, or why there is none; empty if there is no noise."""
    nats: float | None = None
    """The most that is told of everybody's group, where noise has no law that tells it."""


def _read_guarantees(series: ReportSeries, prior: Floats) -> _Privacy:
    if not any(report.noisy.any() for report in series.reports):
        return _Privacy(None, "")
    stated = []
    for name, report in zip(series.names, series.reports, strict=True):
        if report.statistics or not report.noisy.all():
            return _Privacy(None, f"none, for numbers of {name} have no noise")
        if (own := report.stated) is None:
            return _Privacy(None, f"none, for {name} states no guarantee of exactly these rows")
        stated.append(own)
    try:
        whole = compose(one.guarantee for one in stated)
    except InputError as error:
        return _Privacy(None, f"none, for the guarantees do not add up: {error}")
    parts = f"epsilon {whole.epsilon:g}" + (f", delta {whole.delta:g}" if whole.delta else "")
    nats, n = None, len(prior)
    if any(one.fitted for one in stated):
        nats = min(limit_private_nats(whole, n), n * log(prior.shape[1]))
    words = f"{parts}, as {_STATE[len(stated) > 1]}"
    return _Privacy(limit_private_leak(prior, whole), words, nats)
