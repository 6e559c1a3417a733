"""Slow and obvious answers to compare fpbench's with; they share no code with it."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from fpbench import Problem


def rates_agree(members, positives, form, tolerance) -> bool:
    """Whether rates satisfy a claim, from its definition, in fractions; tolerance as written."""
    tolerance = Fraction(str(float(tolerance)))
    counts = [(int(p), int(m)) for p, m in zip(positives, members, strict=True) if m]
    rates = [Fraction(p, m) for p, m in counts]
    if form == "to-overall":
        overall = Fraction(sum(p for p, _ in counts), sum(m for _, m in counts) or 1)
        return all(abs(rate - overall) <= tolerance for rate in rates)
    if form == "between-groups":
        return all(one - other <= tolerance for one, other in product(rates, rates))
    return all(one >= (1 - tolerance) * other for one, other in product(rates, rates))


def parts(problem: Problem) -> list[np.ndarray]:
    """Masks (n,) of the slices that the claim looks at."""
    if problem.constraint.metric == "statistical-parity":
        return [np.ones(len(problem.guess), dtype=bool)]
    wanted = {"predictive-equality": [0], "equal-opportunity": [1], "equalized-odds": [0, 1]}
    return [problem.labels == label for label in wanted[problem.constraint.metric]]


def costs(problem: Problem) -> np.ndarray:
    """Cost of changing each guess."""
    return np.ones(len(problem.guess)) if problem.weights is None else problem.weights


def admissible(problem: Problem, values: np.ndarray) -> bool:
    """Whether values satisfy the claim, with both groups in use in the slices together."""
    looked_at = parts(problem)
    used = values[np.logical_or.reduce(looked_at)]
    if not ((used == 0).any() and (used == 1).any()):
        return False
    constraint = problem.constraint
    for part in looked_at:
        members = [np.sum(part & (values == k)) for k in (0, 1)]
        positives = [np.sum(part & (values == k) & (problem.predictions == 1)) for k in (0, 1)]
        if not rates_agree(members, positives, constraint.form, constraint.tolerance):
            return False
    return True


@cache
def _vectors(n: int) -> np.ndarray:
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def least_cost_of_all(problem: Problem) -> float | None:
    """Least cost over all 2^n vectors that satisfy the claim; None if none does."""
    constraint = problem.constraint
    vectors = _vectors(len(problem.guess))
    allowed = np.ones(len(vectors), dtype=bool)
    for part in parts(problem):
        size, positive = int(part.sum()), int((part & (problem.predictions == 1)).sum())
        table = np.zeros((size + 1, positive + 1), dtype=bool)
        for m, x in np.ndindex(*table.shape):
            table[m, x] = (x <= m and positive - x <= size - m) and rates_agree(
                (size - m, m), (positive - x, x), constraint.form, constraint.tolerance
            )
        ones = vectors @ part.astype(int)
        allowed &= table[ones, vectors @ (part & (problem.predictions == 1)).astype(int)]
    union = np.logical_or.reduce(parts(problem)).astype(int)
    ones = vectors @ union
    allowed &= (ones >= 1) & (ones <= union.sum() - 1)
    if not allowed.any():
        return None
    return float(((vectors != problem.guess) @ costs(problem))[allowed].min())


def least_cost_of_moves(problem: Problem, both_in_use: bool = True) -> float | None:
    """Least cost over every pair of net moves, a dense table for each slice; None if none does."""
    tables = [_least_by_empty_groups(problem, part) for part in parts(problem)]
    best = np.inf
    for chosen in product(*(table.items() for table in tables)):
        if both_in_use and any(all(empty[k] for empty, _ in chosen) for k in (0, 1)):
            continue
        best = min(best, sum(cost for _, cost in chosen))
    return None if best == np.inf else float(best)


def _least_by_empty_groups(problem: Problem, part: np.ndarray) -> dict[tuple[bool, bool], float]:
    """Least cost in a slice, by whether group 0 and group 1 have nobody in it."""
    e, q = Fraction(str(float(problem.constraint.tolerance))).as_integer_ratio()
    form = problem.constraint.form
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
    if form == "to-overall":
        bad = q * abs(x * n - p * m) > e * m * n
        bad |= q * abs((p - x) * n - p * (n - m)) > e * (n - m) * n
    elif form == "between-groups":
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
