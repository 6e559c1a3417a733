"""The excessive risk of private models: the cost of privacy for each person, in expected loss."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError, Sample
from fpbench.auditing import PrivateModel, VotedModel
from fpbench.base import suggest_name
from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_type, show_value, to_generator
from fpbench.builtin.pate.excessive_risk.draws import (
    People,
    RiskSums,
    compute_losses,
    draw_models,
    predict_chances,
)
from fpbench.builtin.pate.excessive_risk.report import EvaluationRisks, RiskReport, make_report
from fpbench.builtin.pate.excessive_risk.votes import approximate_risks, sample_risks
from fpbench.plugin import MeasureValues

RiskMethod: TypeAlias = Literal["monte-carlo", "closed-form"]
"""Train many models, or approximate their parameters by a normal distribution."""


@check_arguments
def excessive_risk(
    model: Any,
    train: Sample,
    test: Sample,
    *,
    repetitions: int = 100,
    method: RiskMethod = "monte-carlo",
    antithetic: bool = True,
    rng: np.random.Generator | int | None = None,
) -> RiskReport:
    """Risks of people and groups: by how much a private model's expected loss exceeds a baseline's.

    The risk of a person is E[loss(private model)] - loss(baseline): cross entropy without penalty
    (of least-squares students half the square), its mean over the randomness of the training. The
    risk of a group is the mean of its members' risks. NOT PRIVATE: see `RiskReport`.

    Parameters
    ----------
    model
        Has `predict_proba(features, rng, sensitive)` and a `baseline` that has it too
        (`fpbench.auditing.PrivateModel`). A student that learnt from noisy votes
        (`fpbench.auditing.VotedModel`) is trained R times at once; a model with `redraw` is
        redrawn; any other is the only draw, without a standard error.
    train
        The people it was trained on, in the order of the training: features, labels, groups.
    test
        Other people.
    repetitions
        Number R of private models.
    method
        `monte-carlo`; or `closed-form`, for logistic students of votes without weights. The latter
        approximates the parameters by a normal distribution; its errors are differences from the
        delta method. It is refused where the approximation is poor.
    antithetic
        Draw noise in pairs, Z and -Z: less error in what is nearly linear in it. For votes only.
    rng
        A generator, or a seed.

    Returns
    -------
    RiskReport
        Tables of groups and people, bounds, and measures of the model.

    Raises
    ------
    InputError
        If the model has no baseline or does not fit the method; a group has no member among the
        people that the model learnt from or in the test part; a number is out of range.

    References
    ----------
    Tran, Dinh, Beiter, Fioretto: A Fairness Analysis on Private Aggregation of Teacher Ensembles.
    2021, equation (3). See docs/excessive-risk.md for formulas, and departures from the paper.
    """
    if method not in get_args(RiskMethod):
        raise InputError(f"unknown method {method!r}; {suggest_name(method, get_args(RiskMethod))}")
    voted = is_voted(model)
    if getattr(model, "baseline", None) is None:
        raise InputError(
            f"excessive risk is measured against a baseline without privacy, and this "
            f"{type(model).__name__} has none"
        )
    if not isinstance(repetitions, int | np.integer) or isinstance(repetitions, bool):
        raise InputError(f"repetitions must be a whole number, not {show_value(repetitions)}")
    if repetitions < 1 or (voted and antithetic and method == "monte-carlo" and repetitions % 2):
        even = ", and even for antithetic noise" if antithetic else ""
        raise InputError(f"repetitions must be at least 1{even}, not {repetitions}")
    for name, people in (("train", train), ("test", test)):
        check_type(name, people, Sample, "a Sample")
    generator = to_generator("rng", rng)
    if voted:
        return _measure_students(
            model, train, test, method, 0 if method == "closed-form" else repetitions, antithetic,
            generator,
        )  # fmt: skip
    if method == "closed-form":
        raise InputError('method closed-form needs a student of votes; use method = "monte-carlo"')
    return _measure_any(model, train, test, repetitions, generator)


def is_voted(model: Any) -> bool:
    """Whether a model is a student of votes: `fpbench.auditing.VotedModel`."""
    return all(hasattr(model, name) for name in ("votes", "draw_noise", "fit_students"))


def _measure_any(
    model: PrivateModel, train: Sample, test: Sample, repetitions: int, rng: np.random.Generator
) -> RiskReport:
    parts = [_make_people("train", train), _make_people("test", test)]
    base = [predict_chances(model.baseline, people, rng) for people in parts]
    batch = draw_models(model, parts, repetitions, rng)
    risks = []
    for people, chance, scores in zip(parts, base, batch.scores, strict=True):
        tally = RiskSums.of(people, compute_losses(chance, people.labels, "chances"))
        tally.add(scores, "chances", paired=False)
        risks.append(EvaluationRisks.of_draws(tally, chance))
    count = len(batch.scores[0])
    about: MeasureValues = {"method": "monte-carlo", "repetitions": count, "antithetic": 0}
    return make_report(risks, train.groups, [], about, [])


def _measure_students(
    model: VotedModel, train: Sample, test: Sample, method: RiskMethod, repetitions: int,
    antithetic: bool, rng: np.random.Generator,
) -> RiskReport:  # fmt: skip
    clean = (model.votes[:, 1] > model.votes[:, 0]).astype(np.int8)
    rows = np.asarray(model.public_rows, np.intp)
    if len(rows) and rows.max() >= len(train):
        raise InputError(
            f"train has {len(train)} people, and the model learnt from its row {rows.max()}; give "
            "the sample that it was trained on"
        )
    public = train.only(frozenset({"features", "sensitive"})).take(rows).having(labels=clean)
    parts = [_make_people("train", public, model, rows), _make_people("test", test, model)]
    if method == "closed-form":
        risks, bounds, about, ranges = approximate_risks(model, parts, rng)
    else:
        risks, bounds, about, ranges = sample_risks(model, parts, repetitions, antithetic, rng)
    return make_report(risks, train.groups, bounds, about, ranges)


def _make_people(
    name: str, sample: Sample, model: VotedModel | None = None,
    rows: NDArray[np.intp] | None = None,
) -> People:  # fmt: skip
    members = np.bincount(sample.sensitive, minlength=len(sample.groups))
    for code in np.flatnonzero(members == 0):
        who, mend = f"the {len(sample)} {name} people", "choose other parts, or fewer groups"
        if rows is not None:
            who = f"the {len(sample)} public people that the student learnt from"
            mend = "choose more public people, or fewer groups"
        raise InputError(
            f"nobody of group {sample.groups[code]!r} is among {who}, so that it has no risk "
            f"there; {mend}"
        )
    return People(
        name,
        sample.features,
        sample.labels.astype(np.float64),
        sample.sensitive.astype(np.intp),
        np.arange(len(sample)) if rows is None else rows,
        None if model is None else model.design(sample.features),
    )
