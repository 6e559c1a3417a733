"""The excessive risk of students of noisy votes: drawn, or in closed form, with its bounds."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.excessive_risk.bounds import (
    first_moment_bounds,
    risk_bounds,
    second_moment_bounds,
)
from fpbench.auditing.excessive_risk.closed_form import NormalStudents, normal_students
from fpbench.auditing.excessive_risk.draws import (
    Batch,
    People,
    Tally,
    chances,
    loss,
    paired_mean,
    standard_error,
    voted_batches,
)
from fpbench.auditing.excessive_risk.label_moments import label_moments
from fpbench.auditing.excessive_risk.report import Found
from fpbench.auditing.private_models import VotedModel
from fpbench.base.errors import InputError
from fpbench.components.records import Measures
from fpbench.privacy.noisy_votes import VoteLabels, flip_probabilities

_Floats = NDArray[np.float64]

_DOUBT = 3.0
"""Standard errors that a measured value may lie above a bound that holds."""

Answer = tuple[list[Found], list[dict[str, Any]], Measures]
"""What was measured on each evaluation, rows of the table of bounds, and measures of the model."""


def drawn(
    model: VotedModel,
    parts: list[People],
    repetitions: int,
    antithetic: bool,
    rng: np.random.Generator,
) -> Answer:
    """By many students of fresh noise.

    Parameters
    ----------
    model
        The student.
    parts
        The public people with their clean votes, and the test people.
    repetitions
        Number R of students; even, if noise is antithetic.
    antithetic
        Draw noise in pairs.
    rng
        For the noise.
    """
    said, logits = _said(model, parts, rng), model.theta_star is not None
    tallies = [Tally.of(people, loss(s, people.labels, logits)) for people, s in
               zip(parts, said, strict=True)]  # fmt: skip
    rest: list[Batch] = []
    for batch in voted_batches(model, parts, repetitions, antithetic, rng):
        for tally, scores in zip(tallies, batch.scores, strict=True):
            tally.add(scores, logits, antithetic)
        rest.append(batch.without_scores())
    flips = flip_probabilities(model.votes, model.sigma)
    changed = _units([cast("NDArray[np.bool_]", batch.flips) for batch in rest], antithetic)
    about: Measures = {
        "method": "monte-carlo", "repetitions": repetitions, "antithetic": int(antithetic),
        **_flip_measures(flips, changed, repetitions, antithetic),
    }  # fmt: skip
    found = [Found.of_draws(tally, _chance(s, logits)) for tally, s in
             zip(tallies, said, strict=True)]  # fmt: skip
    pulls = None
    if rest[0].distances is not None:
        moved = _units([cast("_Floats", batch.distances) for batch in rest], antithetic)
        squared = _units([cast("_Floats", batch.distances) ** 2 for batch in rest], antithetic)
        about |= {
            "sensitivity": float(moved.mean()),
            "sensitivity_error": float(standard_error(moved)),
            "sensitivity_squared": float(squared.mean()),
            "sensitivity_squared_error": float(standard_error(squared)),
        }
    if logits:
        pulls = np.concatenate([cast("_Floats", batch.pulls) for batch in rest])
    found[0] = found[0].having(flips=flips, flips_drawn=changed.mean(axis=0))
    return _finished(model, found, about, pulls)


def closed_form(model: VotedModel, parts: list[People], rng: np.random.Generator) -> Answer:
    """By the normal distribution of logistic students: no noise is drawn.

    Raises
    ------
    InputError
        If the student is not logistic, does not learn from all its labels alike, has no penalty, or
        its labels are so noisy that its distribution is far from normal.
    """
    wanted = "method closed-form needs a logistic student"
    use = 'use method = "monte-carlo"'
    if model.theta_star is None:
        raise InputError(f"{wanted}, not {model.student!r}; {use}")
    if _weighted(model, rng):
        raise InputError(f"{wanted} that learns from all its labels, answered or not; {use}")
    if not model.penalty > 0:
        raise InputError(f"{wanted} with a penalty above 0; {use}")
    moments = label_moments(model.votes, model.sigma, cast("VoteLabels", model.labels))
    students = normal_students(_design(parts[0]), moments, model.penalty)
    linear = cast("NormalStudents", students.linear)
    (first, second), (one, two) = (s.distance(model.theta_star) for s in (students, linear))
    flips = flip_probabilities(model.votes, model.sigma)
    about: Measures = {
        "method": "closed-form", "repetitions": 0, "antithetic": 0,
        "flip_probability": float(flips.mean()),
        "sensitivity": first, "sensitivity_error": abs(first - one),
        "sensitivity_squared": second, "sensitivity_squared_error": abs(second - two),
    }  # fmt: skip
    found = []
    for people, said in zip(parts, _said(model, parts, rng), strict=True):
        of = _design(people), people.labels
        base, expected = loss(said, people.labels, logits=True), students.losses(*of)
        right = float(students.accuracy(*of).mean())
        exact = Found.exact(people, base, _chance(said, logits=True), expected - base, right)
        found.append(exact.doubted(expected - linear.losses(*of)))
    found[0] = found[0].having(flips=flips)
    return _finished(model, found, about, None)


def _finished(
    model: VotedModel, found: list[Found], about: Measures, pulls: _Floats | None
) -> Answer:
    """With the bounds, of logistic students; nothing is proven of others."""
    if model.theta_star is None:
        norms = getattr(model, "gradient_norms", None)
        if norms is not None:
            found = [one.having(gradients=np.asarray(norms(_design(one.people), one.people.labels)))
                     for one in found]  # fmt: skip
        return found, [], about
    first, second = (cast("float", about[name]) for name in ("sensitivity", "sensitivity_squared"))
    bounded = []
    for one in found:
        gradients = np.abs(one.chance - one.people.labels) * one.lengths
        bound = risk_bounds(gradients, one.lengths, first, second)
        bounded.append(one.having(gradients=gradients, bound=bound))
    if not model.penalty > 0:  # the objective need not be strongly convex
        return bounded, [], about
    values: dict[str, dict[str, float]] = {"sensitivity": {}, "sensitivity_squared": {}}
    if pulls is not None:
        values["sensitivity"]["gradient"] = float(pulls.mean())
        values["sensitivity_squared"]["gradient_squared"] = float((pulls**2).mean())
    if not _weighted(model, np.random.default_rng(0)):
        moments = label_moments(model.votes, model.sigma, cast("VoteLabels", model.labels))
        of = _design(found[0].people), moments, model.penalty
        values["sensitivity"] |= first_moment_bounds(*of)
        values["sensitivity_squared"] |= second_moment_bounds(*of)
    rows = [_row(name, of_, value, about) for of_, known in values.items()
            for name, value in known.items()]  # fmt: skip
    return bounded, rows, about


def _row(name: str, of: str, value: float, about: Measures) -> dict[str, Any]:
    measured = cast("float", about[of])
    error = cast("float", about.get(f"{of}_error", 0.0))
    # Rounding must not break a bound that is met exactly.
    most = value * (1 + 1e-9) + 1e-12
    holds: int | None = int(measured - (0.0 if np.isnan(error) else _DOUBT * error) <= most)
    if np.isnan(error) and not holds:  # a single draw may well lie above a mean
        holds = None
    return {"bound": name, "of": of, "measured": measured, "error": error, "value": value,
            "holds": holds}  # fmt: skip


def _flip_measures(
    flips: _Floats, changed: _Floats, repetitions: int, antithetic: bool
) -> Measures:
    drawn = changed.mean(axis=0)
    return {
        "flip_probability": float(flips.mean()),
        "flip_drawn": float(drawn.mean()),
        "flip_drawn_error": float(standard_error(changed.mean(axis=1))),
        "flip_deviation": _deviation(flips, drawn, repetitions, antithetic),
    }


def _deviation(flips: _Floats, drawn: _Floats, repetitions: int, antithetic: bool) -> float:
    """The greatest deviation of drawn flips, as that of a normal variable equally unlikely.

    Flips are binomial. Of two antithetic draws at most one flips a vote, so that of half as many
    pairs twice as many flip one. Exact tails tell one rare flip, which is none of many standard
    errors, from what cannot be chance.
    """
    from scipy.special import bdtr, bdtrc, ndtri

    trials = repetitions // 2 if antithetic else repetitions
    chance = np.minimum(flips * repetitions / trials, 1.0)
    count = np.rint(drawn * repetitions)
    above = np.where(count > 0, bdtrc(np.maximum(count - 1, 0), trials, chance), 1.0)
    tails = np.minimum(bdtr(count, trials, chance), above)
    # Zero tails have no quantile, and what is likelier than not does not deviate.
    return float((-ndtri(np.clip(tails, 1e-300, 0.5))).max())


def _units(parts: list[NDArray[Any]], paired: bool) -> _Floats:
    """Values of independent units: of repetitions, or means of antithetic pairs."""
    return np.concatenate([paired_mean(part) if paired else part for part in parts]).astype(float)


def _said(model: VotedModel, parts: list[People], rng: np.random.Generator) -> list[_Floats]:
    """By the baseline, logits if it is logistic, else probabilities (n,)."""
    if model.theta_star is None:
        return [chances(model.baseline, people, rng) for people in parts]
    return [_design(people) @ model.theta_star for people in parts]


def _chance(said: _Floats, logits: bool) -> _Floats:
    from scipy.special import expit

    return np.asarray(expit(said)) if logits else said


def _weighted(model: VotedModel, rng: np.random.Generator) -> bool:
    """Whether students leave labels out."""
    return model.targets(model.draw_noise(1, rng))[1] is not None


def _design(people: People) -> _Floats:
    assert people.design is not None
    return people.design
