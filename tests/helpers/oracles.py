"""Slow and obvious answers to compare fpbench's with; they share no code with it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from fpbench import Problem
from fpbench.claims import (
    Facts,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)

SLICES = {
    "statistical-parity": [None],
    "predictive-equality": [0],
    "equal-opportunity": [1],
    "equalized-odds": [0, 1],
}


def written(number) -> Fraction:
    """The number as its digits say it."""
    return number if isinstance(number, Fraction) else Fraction(str(float(number)))


def unfairness(members, positives, form) -> Fraction:
    """How far rates are apart, from the definition; groups of nobody have no rate."""
    counts = [(int(p), int(m)) for p, m in zip(positives, members, strict=True) if m]
    rates = [Fraction(p, m) for p, m in counts]
    if not rates:
        return Fraction(0)
    if form == "to-overall":
        overall = Fraction(sum(p for p, _ in counts), sum(m for _, m in counts))
        return max(abs(rate - overall) for rate in rates)
    pairs = list(product(rates, rates))
    if form == "between-groups":
        return max(one - other for one, other in pairs)
    return max(1 - one / other if other else Fraction(0) for one, other in pairs)


def rates_agree(members, positives, form, tolerance) -> bool:
    """Whether rates satisfy a claim, from its definition, in fractions; tolerance as written."""
    tolerance = written(tolerance)
    counts = [(int(p), int(m)) for p, m in zip(positives, members, strict=True) if m]
    rates = [Fraction(p, m) for p, m in counts]
    if form == "to-overall":
        overall = Fraction(sum(p for p, _ in counts), sum(m for _, m in counts) or 1)
        return all(abs(rate - overall) <= tolerance for rate in rates)
    if form == "between-groups":
        return all(one - other <= tolerance for one, other in product(rates, rates))
    return all(one >= (1 - tolerance) * other for one, other in product(rates, rates))


def masks(problem: Problem, metric: str) -> list[np.ndarray]:
    """Masks (n,) of the slices that a metric looks at."""
    everyone = np.ones(len(problem.guess), dtype=bool)
    return [
        everyone if label is None else np.asarray(problem.labels) == label
        for label in SLICES[metric]
    ]


def looked_at(problem: Problem) -> np.ndarray:
    """Mask (n,) of the people whose group can matter to what is known; of nobody if to none."""
    found = np.zeros(len(problem.guess), dtype=bool)
    for constraint in problem.constraints:
        if isinstance(constraint, ShareBounds | LinearConstraint):
            found[:] = True
        elif isinstance(constraint, KnownPeople):
            found[list(constraint.rows)] = True
        else:
            found |= np.logical_or.reduce(masks(problem, constraint.metric))
    return found


def costs(problem: Problem) -> np.ndarray:
    """Cost of changing each guess."""
    return np.ones(len(problem.guess)) if problem.weights is None else problem.weights


def admissible(problem: Problem, values: np.ndarray) -> bool:
    """Whether values satisfy all that is known."""
    return bool(satisfied(problem, np.asarray(values)[None, :])[0])


def satisfied(problem: Problem, vectors: np.ndarray) -> np.ndarray:
    """Mask (v,) of the vectors (v, n) that satisfy all that is known."""
    allowed = ((vectors >= 0) & (vectors < problem.groups)).all(axis=1)
    for constraint in problem.constraints:
        if isinstance(constraint, KnownPeople):
            for row, group in zip(constraint.rows, constraint.groups, strict=True):
                allowed &= vectors[:, row] == group
        elif isinstance(constraint, LinearConstraint):
            sums = (vectors == constraint.group) @ np.asarray(constraint.coefficients, dtype=float)
            allowed &= (constraint.low - 1e-7 <= sums) & (sums <= constraint.high + 1e-7)
        elif isinstance(constraint, Facts):
            members = constraint.membership.toarray()
            for group in range(problem.groups):
                counts = (vectors == group).astype(int) @ members
                low, high = constraint.low[:, group], constraint.high[:, group]
                exact = ~constraint.noisy
                allowed &= ((low <= counts) & (counts <= high))[:, exact].all(axis=1)
        elif isinstance(constraint, ShareBounds | RateBounds | RateConstraint | KnownUnfairness):
            allowed &= _satisfied_by_counts(problem, constraint, vectors)
        else:
            raise TypeError(constraint)
    return allowed


def _satisfied_by_counts(problem: Problem, constraint, vectors: np.ndarray) -> np.ndarray:
    """The same for one constraint on counts: each table of counts is decided once."""
    metric = getattr(constraint, "metric", "statistical-parity")
    columns = [
        (vectors[:, who] == k).sum(axis=1)
        for mask in masks(problem, metric)
        for who in (mask, mask & (problem.predictions == 1))
        for k in range(problem.groups)
    ]
    code = np.zeros(len(vectors), dtype=np.int64)
    if (len(problem.guess) + 1) ** len(columns) < 2**62:
        for column in columns:
            code = code * (len(problem.guess) + 1) + column
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
    else:
        first = which = np.arange(len(vectors))
    # Of each table: slices, people and positives, groups.
    shape = len(first), len(columns) // (2 * problem.groups), 2, problem.groups
    tables = np.stack(columns, axis=1)[first].reshape(shape).tolist()
    return np.array([holds(constraint, table) for table in tables], dtype=bool)[which]


def holds(constraint, slices) -> bool:
    """Whether counts of people and of positives of every group, slice by slice, satisfy it."""
    if isinstance(constraint, ShareBounds):
        ((members, _),) = slices
        share = Fraction(members[constraint.group], sum(members))
        return written(constraint.low) <= share <= written(constraint.high)
    if isinstance(constraint, RateBounds):
        own = [(members[constraint.group], said[constraint.group]) for members, said in slices]
        rates = [Fraction(said, members) for members, said in own if members]
        return all(written(constraint.low) <= r <= written(constraint.high) for r in rates)
    in_all = np.sum([members for members, _ in slices], axis=0)
    if (in_all == 0).any():
        return False
    if isinstance(constraint, RateConstraint):
        if constraint.every_slice and any(any(s[0]) and not all(s[0]) for s in slices):
            return False
        return all(rates_agree(*s, constraint.form, constraint.tolerance) for s in slices)
    found = max(unfairness(*s, constraint.form) for s in slices if sum(s[0]))
    return written(constraint.low) <= found <= written(constraint.high)


@cache
def all_vectors(n: int, k: int) -> np.ndarray:
    """(k^n, n) every way to say everyone's group."""
    return ((np.arange(k**n)[:, None] // k ** np.arange(n)) % k).astype(np.int8)


def brute_force(problem: Problem) -> float | None:
    """Least cost over all K^n vectors that satisfy what is known; None if none does."""
    vectors = all_vectors(len(problem.guess), problem.groups)
    for constraint in problem.constraints:
        vectors = vectors[satisfied(replace(problem, constraints=(constraint,)), vectors)]
    if not len(vectors):
        return None
    return float(((vectors != problem.guess) @ costs(problem)).min())


def least_cost_of_moves(problem: Problem, both_in_use: bool = True) -> float | None:
    """Least cost over every pair of net moves, a dense table for each slice; None if none does.

    Of two groups, and one claim about rates.
    """
    (claim,) = problem.constraints
    tables = [_least_by_empty_groups(problem, part) for part in masks(problem, claim.metric)]
    best = np.inf
    for chosen in product(*(table.items() for table in tables)):
        if both_in_use and any(all(empty[k] for empty, _ in chosen) for k in (0, 1)):
            continue
        if claim.every_slice and any(empty[0] != empty[1] for empty, _ in chosen):
            continue
        best = min(best, sum(cost for _, cost in chosen))
    return None if best == np.inf else float(best)


def _least_by_empty_groups(problem: Problem, part: np.ndarray) -> dict[tuple[bool, bool], float]:
    """Least cost in a slice, by whether group 0 and group 1 have nobody in it."""
    (claim,) = problem.constraints
    e, q = written(claim.tolerance).as_integer_ratio()
    cost_of = []
    for prediction in (1, 0):
        cell = part & (problem.predictions == prediction)
        up, down = (np.sort(costs(problem)[cell & (problem.guess == k)]) for k in (0, 1))
        # Members of group 1 from none to all: all of `down` leave, ..., all of `up` join.
        cost_of.append(np.concatenate([np.cumsum(down)[::-1], [0.0], np.cumsum(up)]))
    x_cost, y_cost = cost_of
    n, p = len(x_cost) + len(y_cost) - 2, len(x_cost) - 1
    kind = np.int64 if 4 * q * max(n, 1) ** 2 < 2**62 else object
    x = np.arange(len(x_cost)).astype(kind)[:, None]
    m = x + np.arange(len(y_cost)).astype(kind)[None, :]
    if claim.form == "to-overall":
        bad = q * abs(x * n - p * m) > e * m * n
        bad |= q * abs((p - x) * n - p * (n - m)) > e * (n - m) * n
    elif claim.form == "between-groups":
        bad = q * abs(x * (n - m) - (p - x) * m) > e * m * (n - m)
    else:
        bad = q * x * (n - m) < (q - e) * (p - x) * m
        bad |= q * (p - x) * m < (q - e) * x * (n - m)
    # A group of nobody has no rate, so nothing to compare.
    alone = np.asarray((m == 0) | (m == n), dtype=bool)
    cost = np.where(alone | ~np.asarray(bad, dtype=bool), x_cost[:, None] + y_cost, np.inf)
    found = {}
    for empty in product((False, True), repeat=2):
        here = cost[((m == n) == empty[0]) & ((m == 0) == empty[1])]
        if here.size:
            found[empty] = float(here.min())
    return found
