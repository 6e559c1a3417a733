"""Excessive risks of students of noisy votes: sampled, or in closed form, with their bounds."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.auditing import VotedModel, VoteLabels
from fpbench.base.arguments import show_value
from fpbench.builtin.pate.excessive_risk.closed_form import (
    NormalStudents,
    bound_first_moment,
    bound_risks,
    bound_second_moment,
    compute_label_moments,
    fit_normal_students,
)
from fpbench.builtin.pate.excessive_risk.draws import (
    ModelBatch,
    People,
    RiskSums,
    Scale,
    average_pairs,
    compute_losses,
    draw_students,
    estimate_error,
    find_scale,
    predict_chances,
    split_by_norm,
)
from fpbench.builtin.pate.excessive_risk.report import EvaluationRisks
from fpbench.builtin.pate.noisy_votes import flip_probabilities
from fpbench.plugin import MeasureValues

_Floats = NDArray[np.float64]

_TOLERANCE = 3.0
"""A bound holds if the measured value is at most this many standard errors above it."""

Answer = tuple[list[EvaluationRisks], list[dict[str, Any]], MeasureValues, list[dict[str, Any]]]
"""Risks on each evaluation, rows of the tables of bounds and ranges, measures of the model."""


def sample_risks(
    model: VotedModel,
    parts: list[People],
    repetitions: int,
    antithetic: bool,
    rng: np.random.Generator,
) -> Answer:
    """Risks of the public people and the test people, by training R students with fresh noise.

    R, the repetitions, is even if noise is antithetic.
    """
    baseline, scale = _predict_baseline(model, parts, rng), find_scale(model)
    tallies = [
        RiskSums.of(people, compute_losses(margins, people.labels, scale))
        for people, margins in zip(parts, baseline, strict=True)
    ]
    batches: list[ModelBatch] = []
    for batch in draw_students(model, parts, repetitions, antithetic, rng):
        for tally, scores in zip(tallies, batch.scores, strict=True):
            tally.add(scores, scale, antithetic)
        batches.append(batch.without_scores())
    flips = flip_probabilities(model.votes, model.sigma)
    changed = _list_units([cast("NDArray[np.bool_]", batch.flips) for batch in batches], antithetic)
    about: MeasureValues = {
        "method": "monte-carlo", "repetitions": repetitions, "antithetic": int(antithetic),
        **_measure_flips(flips, changed, repetitions, antithetic),
    }  # fmt: skip
    risks = [EvaluationRisks.of_draws(tally, _to_chances(margins, scale)) for tally, margins in
             zip(tallies, baseline, strict=True)]  # fmt: skip
    pulls = None
    if batches[0].distances is not None:
        moved = _list_units([cast("_Floats", batch.distances) for batch in batches], antithetic)
        squared = _list_units(
            [cast("_Floats", batch.distances) ** 2 for batch in batches], antithetic
        )
        about |= {
            "sensitivity": float(moved.mean()),
            "sensitivity_error": float(estimate_error(moved)),
            "sensitivity_squared": float(squared.mean()),
            "sensitivity_squared_error": float(estimate_error(squared)),
        }
    if batches[0].not_convex is not None:
        shown = np.concatenate([cast("NDArray[np.bool_]", batch.not_convex) for batch in batches])
        about["students_not_convex"] = float(shown.mean())
    if scale != "chances":
        pulls = np.concatenate([cast("_Floats", batch.pulls) for batch in batches])
    risks[0] = risks[0].having(flips=flips, flips_drawn=changed.mean(axis=0))
    risks, bounds, about = _add_bounds(model, risks, about, pulls)
    ranges: list[dict[str, Any]] = []
    if batches[0].range_distances is not None:
        away = np.concatenate([cast("_Floats", batch.range_distances) for batch in batches])
        ranges = _list_ranges(risks[0], _list_units([away], antithetic))
    return risks, bounds, about, ranges


def approximate_risks(model: VotedModel, parts: list[People], rng: np.random.Generator) -> Answer:
    """Risks under the normal approximation of logistic students; no noise is drawn.

    InputError if the student is not logistic, weighs its labels, has no penalty, or is far from
    normal.
    """
    need = "method closed-form needs a logistic student"
    use = 'use method = "monte-carlo"'
    if find_scale(model) != "logits" or model.theta_star is None:
        raise InputError(f"{need}, not {show_value(model.student)}; {use}")
    if _uses_weights(model, rng):
        raise InputError(f"{need} that learns from all its labels, with one weight; {use}")
    if not model.penalty > 0:
        raise InputError(f"{need} with a penalty above 0; {use}")
    moments = compute_label_moments(model.votes, model.sigma, cast("VoteLabels", model.labels))
    students = fit_normal_students(_get_design(parts[0]), moments, model.penalty)
    linear = cast("NormalStudents", students.linear)
    (first, second), (linear_first, linear_second) = (
        s.distance(model.theta_star) for s in (students, linear)
    )
    flips = flip_probabilities(model.votes, model.sigma)
    about: MeasureValues = {
        "method": "closed-form", "repetitions": 0, "antithetic": 0,
        "flip_probability": float(flips.mean()),
        "sensitivity": first, "sensitivity_error": abs(first - linear_first),
        "sensitivity_squared": second, "sensitivity_squared_error": abs(second - linear_second),
    }  # fmt: skip
    risks = []
    for people, baseline in zip(parts, _predict_baseline(model, parts, rng), strict=True):
        evaluation = _get_design(people), people.labels
        base, expected = (
            compute_losses(baseline, people.labels, "logits"),
            students.losses(*evaluation),
        )
        right = students.accuracy(*evaluation)
        exact = EvaluationRisks.exact(
            people, base, _to_chances(baseline, "logits"), expected - base, right
        )
        risks.append(exact.with_errors(expected - linear.losses(*evaluation)))
    risks[0] = risks[0].having(flips=flips)
    return *_add_bounds(model, risks, about, None), []


def _list_ranges(public: EvaluationRisks, distances: _Floats) -> list[dict[str, Any]]:
    """Rows of the table of ranges, from the distances (units, ranges) of their students."""
    rows = split_by_norm(_get_design(public.people))
    return [
        {
            "range": number, "people": len(chosen),
            "input_norm": float(public.lengths[chosen].mean()),
            "flip_probability": float(public.flips[chosen].mean()),
            "sensitivity": float(moved.mean()),
            "sensitivity_error": float(estimate_error(moved)),
        }
        for number, (chosen, moved) in enumerate(zip(rows, distances.T, strict=True), 1)
    ]  # fmt: skip


def _add_bounds(
    model: VotedModel, risks: list[EvaluationRisks], about: MeasureValues, pulls: _Floats | None
) -> tuple[list[EvaluationRisks], list[dict[str, Any]], MeasureValues]:
    """Risks with the bounds of linear students; other students have no bounds."""
    if model.theta_star is None:
        norms = getattr(model, "gradient_norms", None)
        if norms is not None:
            people = [risk.people for risk in risks]
            known = [np.asarray(norms(_get_design(p), p.labels)) for p in people]
            risks = [risk.having(gradients=g) for risk, g in zip(risks, known, strict=True)]
        return risks, [], about
    first, second = (cast("float", about[name]) for name in ("sensitivity", "sensitivity_squared"))
    bounded, curvature = [], 1.0 if find_scale(model) == "values" else 0.25
    for risk in risks:
        gradients = np.abs(risk.chance - risk.people.labels) * risk.lengths
        bound = bound_risks(gradients, curvature * risk.lengths**2, first, second)
        bounded.append(risk.having(gradients=gradients, bound=bound))
    if not model.penalty > 0 or model.labels == "equation-12":  # it need not be strongly convex
        return bounded, [], about
    values: dict[str, dict[str, float]] = {"sensitivity": {}, "sensitivity_squared": {}}
    if pulls is not None:
        values["sensitivity"]["gradient"] = float(pulls.mean())
        values["sensitivity_squared"]["gradient_squared"] = float((pulls**2).mean())
    if not _uses_weights(model, np.random.default_rng(0)):
        moments = compute_label_moments(model.votes, model.sigma, cast("VoteLabels", model.labels))
        student = _get_design(risks[0].people), moments, model.penalty
        values["sensitivity"] |= bound_first_moment(*student)
        values["sensitivity_squared"] |= bound_second_moment(*student)
    rows = [_make_row(name, target, value, about) for target, named in values.items()
            for name, value in named.items()]  # fmt: skip
    return bounded, rows, about


def _make_row(name: str, of: str, value: float, about: MeasureValues) -> dict[str, Any]:
    measured = cast("float", about[of])
    error = cast("float", about.get(f"{of}_error", 0.0))
    # Rounding must not break a bound that is met exactly.
    most = value * (1 + 1e-9) + 1e-12
    holds: int | None = int(measured - (0.0 if np.isnan(error) else _TOLERANCE * error) <= most)
    if np.isnan(error) and not holds:  # a single draw may lie above a mean
        holds = None
    return {"bound": name, "of": of, "measured": measured, "error": error, "value": value,
            "holds": holds}  # fmt: skip


def _measure_flips(
    flips: _Floats, changed: _Floats, repetitions: int, antithetic: bool
) -> MeasureValues:
    shares = changed.mean(axis=0)
    return {
        "flip_probability": float(flips.mean()),
        "flip_drawn": float(shares.mean()),
        "flip_drawn_error": float(estimate_error(changed.mean(axis=1))),
        "flip_deviation": _measure_deviation(flips, shares, repetitions, antithetic),
    }


def _measure_deviation(flips: _Floats, drawn: _Floats, repetitions: int, antithetic: bool) -> float:
    """The greatest deviation of drawn flips, as the normal quantile of its binomial tail.

    At most one of two antithetic draws flips a vote: half as many trials of twice the probability.
    Exact tails do not mistake one rare flip, many standard errors off, for a real deviation.
    """
    from scipy.special import bdtr, bdtrc, ndtri

    trials = repetitions // 2 if antithetic else repetitions
    chance = np.minimum(flips * repetitions / trials, 1.0)
    count = np.rint(drawn * repetitions)
    above = np.where(count > 0, bdtrc(np.maximum(count - 1, 0), trials, chance), 1.0)
    tails = np.minimum(bdtr(count, trials, chance), above)
    # A tail of 0 has no quantile, and a tail above one half is no deviation.
    return float((-ndtri(np.clip(tails, 1e-300, 0.5))).max())


def _list_units(parts: list[NDArray[Any]], paired: bool) -> _Floats:
    """Values of independent units: of repetitions, or means of antithetic pairs."""
    return np.concatenate([average_pairs(part) if paired else part for part in parts]).astype(float)


def _predict_baseline(
    model: VotedModel, parts: list[People], rng: np.random.Generator
) -> list[_Floats]:
    """X'theta (n,) of a linear baseline, or probabilities (n,) of any other, for each part."""
    if model.theta_star is None:
        return [predict_chances(model.baseline, people, rng) for people in parts]
    return [_get_design(people) @ model.theta_star for people in parts]


def _to_chances(scores: _Floats, scale: Scale) -> _Floats:
    from scipy.special import expit

    return np.asarray(expit(scores)) if scale == "logits" else scores


def _uses_weights(model: VotedModel, rng: np.random.Generator) -> bool:
    """Whether students leave labels out, by weights."""
    return model.targets(model.draw_noise(1, rng))[1] is not None


def _get_design(people: People) -> _Floats:
    assert people.design is not None
    return people.design
