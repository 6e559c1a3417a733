"""How far maximum entropy is from Bayes' rule, claim by claim: the table of `docs/correctors.md`.

    python benchmarks/perf/posterior_error.py [--draws N]

Beliefs, predictions and labels are drawn; posteriors are computed by maximum entropy and exactly:
by all vectors of groups (up to 10 people), by all tables of counts (60 people, three groups), by
convolutions (3,000 people, two groups). Errors are mean absolute errors of probabilities, times the
number of people. Claims with a probability below 2^-12 are left out of the few people: they leave a
handful of tables of counts. Exits with 1 if an error of 60 people or more is above 1.5.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
from collections.abc import Callable
from itertools import product

import numpy as np

from fpbench import Problem
from fpbench.claims import (
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.conditions import Constraint
from fpbench.correction import CountedProblem, compute_posterior
from fpbench.correction.conditioning.maximum_entropy import condition_approximately
from fpbench.testing.brute_force import satisfies

LIMIT = 1.5
SIZES = ((2, 10), (3, 7), (4, 5), (3, 60), (2, 3_000))
"""Groups and people."""
RARE = 12.0
"""Bits above which a claim about few people is left out."""


def list_claims(people: int, rng: np.random.Generator) -> dict[str, tuple[Constraint, ...]]:
    """Claims by what the table calls them; narrower of more people."""
    tolerance = 0.3 if people < 20 else 0.1 if people < 100 else 0.02
    hours = rng.integers(0, 5, people)
    middle = float(hours.sum()) / 2
    return {
        "to-overall": (RateConstraint(tolerance=tolerance),),
        "between-groups": (RateConstraint(tolerance=tolerance, form="between-groups"),),
        "ratio": (RateConstraint(tolerance=2 * tolerance, form="ratio"),),
        "to-overall, equalized odds": (RateConstraint("equalized-odds", 1.5 * tolerance),),
        "share": (ShareBounds(1, 0.3, 0.35 if people > 20 else 0.5),),
        "positive-rate": (RateBounds(1, 0.4, 0.4 + tolerance),),
        "unfairness": (KnownUnfairness("statistical-parity", tolerance, 2 * tolerance),),
        "tied slices": (RateConstraint("equal-opportunity", tolerance), ShareBounds(1, 0.2, 0.4)),
        "linear": (LinearConstraint(1, hours, 0.8 * middle, middle),),
    }


def enumerate_vectors(beliefs: np.ndarray, problem: Problem) -> tuple[float, np.ndarray]:
    """P(claim) and the posterior, by the definition of every constraint."""
    people, groups = beliefs.shape
    total, posterior = 0.0, np.zeros_like(beliefs)
    rows = np.arange(people)
    for vector in map(np.array, product(range(groups), repeat=people)):
        if satisfies(problem, vector):
            mass = float(beliefs[rows, vector].prod())
            total += mass
            posterior[rows, vector] += mass
    return total, posterior / total if total else posterior


def find_error(
    groups: int, people: int, seed: int, choose: Callable[[int, np.random.Generator], tuple]
) -> float | None:
    """People times the error of a draw; None if the claim is too rare, or not computed exactly."""
    rng = np.random.default_rng([groups, people, seed])
    beliefs = rng.dirichlet(np.full(groups, 1.0), people)
    predictions, labels = rng.integers(0, 2, (2, people))
    known = choose(people, rng)
    problem = Problem(np.zeros(people, dtype=np.int64), groups, predictions, labels, known)
    if people < 20:
        claim, exact = enumerate_vectors(beliefs, problem)
        if claim < 2**-RARE:
            return None
    else:
        answer = compute_posterior(beliefs, problem)
        if answer.method != "exact" or answer.probabilities is None:
            return None
        exact = answer.probabilities
    nearly = condition_approximately(beliefs, CountedProblem(problem))
    if nearly.probabilities is None:
        return float("inf")
    return float(people * np.abs(nearly.probabilities - exact).mean())


def main() -> int:
    """Print the table, in Markdown, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    draws, failed = parser.parse_args().draws, False
    heads = [f"{groups} groups, {people:,} people" for groups, people in SIZES]
    print(f"| claim | {' | '.join(heads)} |\n| --- |{' --- |' * len(heads)}")
    for name in list_claims(10, np.random.default_rng(0)):
        cells = []
        for groups, people in SIZES:
            errors = [
                error
                for seed in range(draws if people < 1000 else min(draws, 3))
                if (error := find_error(groups, people, seed,
                                        lambda n, rng, name=name: list_claims(n, rng)[name]))
                is not None
            ]  # fmt: skip
            cells.append(f"{np.mean(errors):.2f} / {max(errors):.2f}" if errors else "-")
            failed |= people > 20 and max(errors, default=0.0) > LIMIT
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
