from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import oracles
import pytest
from instances import KINDS, WEIGHTS, check_correction, check_values, draw

import fpbench.correction.exact.lattice
from fpbench import Problem
from fpbench.claims import METRICS, KnownUnfairness, RateConstraint, ShareBounds
from fpbench.claims.rates import FORMS
from fpbench.correction import CountedProblem, solve_exact
from fpbench.correction.exact.cost_programs import CountProgram, LinkedPrograms, Optimum
from fpbench.correction.exact.many_groups import solve_many_groups
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.plugin import SolverStatus

MOST = {2: 9, 3: 7, 4: 6}
"""Most people of problems that brute force solves soon, by number of groups."""


def solve(problem, time_limit=np.inf):
    return solve_many_groups(CountedProblem(problem), time_limit)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_a_claim_equals_all_vectors(metric, form):
    rng = np.random.default_rng([1, METRICS.index(metric), FORMS.index(form)])
    statuses = set()
    for at in range(24):
        k = 2 + at % 3
        n = int(rng.integers(k - 1, MOST[k] + 1))
        problem = draw(rng, n, k, ["rate"], metrics=[metric], forms=[form])
        least = oracles.brute_force(problem)
        statuses.add(least is None)
        check_correction(problem, solve(problem), least)
    assert statuses == {True, False}


@pytest.mark.slow
def test_constraints_together_equal_all_vectors():
    rng = np.random.default_rng(3)
    statuses = []
    for at in range(150):
        k = 2 + at % 3
        kinds = rng.choice(KINDS, rng.choice([2, 3]))
        problem = draw(rng, int(rng.integers(1, MOST[k] + 1)), k, kinds)
        least = oracles.brute_force(problem)
        statuses.append(least is None)
        check_correction(problem, solve(problem), least)
    assert 30 < sum(statuses) < 120


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_any_size_equal_all_vectors(weights):
    rng = np.random.default_rng([4, list(WEIGHTS).index(weights)])
    for at in range(15):
        k = 2 + at % 3
        problem = draw(rng, MOST[k], k, ["rate", "bounds"][: 1 + at % 2], weights=weights)
        check_correction(problem, solve(problem), oracles.brute_force(problem))


def test_the_integer_program_finds_what_the_lattice_finds(monkeypatch):
    monkeypatch.setattr(CountProgram, "_solve_lattice", lambda *_: None)
    rng = np.random.default_rng(5)
    for at in range(60):
        k = 2 + at % 3
        problem = draw(rng, int(rng.integers(1, MOST[k] + 1)), k)
        check_correction(problem, solve(problem), oracles.brute_force(problem))


@pytest.mark.slow
def test_a_lattice_search_that_is_given_up_changes_nothing(monkeypatch):
    rng = np.random.default_rng(6)
    monkeypatch.setattr(fpbench.correction.exact.lattice, "MOST", 2)
    for at in range(30):
        k = 2 + at % 3
        problem = draw(rng, MOST[k], k, ["rate"])
        check_correction(problem, solve(problem), oracles.brute_force(problem))


def large(rng, n, k, constraints):
    """People of groups whose rates differ, and costs as an adversary has."""
    guess = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    predictions = (rng.random(n) < rng.uniform(0.1, 0.5, k)[guess]).astype(int)
    labels = (rng.random(n) < 0.2 + 0.5 * predictions).astype(int)
    return Problem(guess, k, predictions, labels, constraints, rng.uniform(1, 2, n) ** 6)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_two_groups_are_only_the_fewest(metric, form):
    """The solver for two groups, by a scan, and that for many, by programs."""
    rng = np.random.default_rng([8, METRICS.index(metric), FORMS.index(form)])
    for n, tolerance in ((300, 0.0), (1000, 0.03), (3000, 0.003)):
        problem = large(rng, n, 2, (RateConstraint(metric, tolerance, form),))
        tally = CountedProblem(problem)
        assert separate_regions(tally.conditions, tally.classes) is not None
        by_scan, by_programs = solve_exact(problem), solve(problem)
        assert by_scan.status is by_programs.status
        if by_scan.values is not None:
            assert by_programs.objective == pytest.approx(by_scan.objective, rel=2e-9, abs=0)
            check_values(problem, by_scan)
            check_values(problem, by_programs)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("n", "k", "metric", "tolerance", "form"),
    [
        (3000, 3, "statistical-parity", 0.002, "to-overall"),
        (3000, 5, "statistical-parity", 0.03, "to-overall"),
        (3000, 4, "equalized-odds", 0.02, "to-overall"),
        (3000, 3, "statistical-parity", 0.02, "between-groups"),
        (2000, 4, "equal-opportunity", 0.05, "between-groups"),
        (2000, 3, "predictive-equality", 0.2, "ratio"),
        (1200, 5, "statistical-parity", 0.0, "to-overall"),
    ],
)
def test_many_people_are_proven_and_nothing_nearby_is_cheaper(n, k, metric, tolerance, form):
    rng = np.random.default_rng([n, k])
    problem = large(rng, n, k, (RateConstraint(metric, tolerance, form),))
    if tolerance == 0:  # equal rates need numbers that divide
        predictions = np.zeros(n, int)
        predictions[rng.permutation(n)[: n // 4]] = 1
        problem = replace(problem, predictions=predictions)
    found = solve(problem, 60.0)
    assert found.status is SolverStatus.OPTIMAL
    assert found.gap == 0
    check_values(problem, found)
    # The same problem, its people and groups in another order.
    people, names = rng.permutation(n), rng.permutation(k)
    other = replace(
        problem, guess=names[problem.guess][people], predictions=problem.predictions[people],
        labels=problem.labels[people], weights=problem.weights[people],
    )  # fmt: skip
    assert solve(other, 60.0).objective == pytest.approx(found.objective, rel=2e-9, abs=0)


@pytest.mark.slow
def test_names_order_and_units_do_not_matter():
    rng = np.random.default_rng(9)
    for at in range(30):
        k = 2 + at % 3
        n = MOST[k] + 6
        # Constraints that name no group.
        kinds = ["rate"] if at % 3 else ["rate", "unfairness"]
        problem = draw(rng, n, k, kinds, weights="random")
        found = solve(problem)
        people, names = rng.permutation(n), rng.permutation(k)
        scale = float(10.0 ** rng.integers(-9, 10))
        other = solve(replace(
            problem, guess=names[problem.guess][people], predictions=problem.predictions[people],
            labels=problem.labels[people], weights=scale * problem.weights[people],
        ))  # fmt: skip
        assert other.status is found.status
        if found.objective is not None:
            assert other.objective == pytest.approx(scale * found.objective, rel=4e-9, abs=0)


HARD = {
    "between": (RateConstraint(tolerance=0.01, form="between-groups"),),
    "ratio": (RateConstraint("equalized-odds", 0.05, "ratio"),),
    "linked": (RateConstraint("equalized-odds", 0.01), ShareBounds(0, 0.2, 0.3)),
    "known": (KnownUnfairness("statistical-parity", 0.05, 0.0501, "ratio"),),
}


@pytest.mark.slow
@pytest.mark.parametrize("constraints", HARD.values(), ids=HARD)
def test_a_time_limit_gives_a_true_bound_or_none(constraints):
    rng = np.random.default_rng(11)
    problem = large(rng, 150, 3, constraints)
    best = solve(problem)
    assert best.status is SolverStatus.OPTIMAL
    seen = set()
    for seconds in (0.0, 1e-3, 0.01, 0.03, 0.1, 0.3):
        found = solve(problem, seconds)
        seen.add(found.status)
        if found.status is SolverStatus.TIMEOUT:
            assert found.values is None
        elif found.status is SolverStatus.FEASIBLE:
            check_values(problem, found)
            assert found.bound <= best.objective * (1 + 2e-9)
            assert found.objective >= best.objective * (1 - 2e-9)
            assert found.gap >= 0
        else:
            check_correction(problem, found, best.objective)
    assert SolverStatus.TIMEOUT in seen


def test_nothing_to_do_changes_nothing():
    problem = Problem(np.array([0, 1, 2]), 3, np.array([1, 1, 1]), None, (RateConstraint(),))
    found = solve(problem)
    assert found.objective == 0
    assert not found.moves.any()
    assert not np.shares_memory(found.values, problem.guess)


def test_what_an_integer_program_was_stopped_at_is_feasible(monkeypatch):
    """Counts that HiGHS had when its time was over: they keep the claim, and are not the optimum."""
    monkeypatch.setattr(CountProgram, "_solve_lattice", lambda *_: None)
    model = CountProgram._optimise

    def stopped(self, conditions, whole, time_limit):
        answer = model(self, conditions, whole, time_limit)
        if not whole or answer is None:
            return answer
        return answer._replace(bound=answer.bound / 2, proven=False)

    monkeypatch.setattr(CountProgram, "_optimise", stopped)
    rng = np.random.default_rng(9)
    seen = Counter()
    for at in range(40):
        k = 2 + at % 3
        problem = draw(rng, MOST[k], k, ["rate"], weights="random")
        found = solve(problem)
        seen[found.status] += 1
        if found.status is SolverStatus.FEASIBLE:
            least = oracles.brute_force(problem)
            check_values(problem, found)
            assert found.bound <= least * (1 + 2e-9)
            assert found.objective >= least * (1 - 2e-9)
            assert found.gap > 0
        elif found.status is SolverStatus.OPTIMAL and found.objective > 0:
            check_correction(problem, found, oracles.brute_force(problem))
    assert seen[SolverStatus.FEASIBLE] >= 5


def test_what_was_found_on_the_way_is_shown_if_time_runs_out(monkeypatch):
    """Both ways out of a violated claim together keep it: feasible, whatever comes afterwards."""
    whole = LinkedPrograms.solve
    solved = []

    def two_solved(self, conditions):
        solved.append(conditions)
        return whole(self, conditions) if len(solved) <= 2 else Optimum(None, 0.0, False)

    monkeypatch.setattr(LinkedPrograms, "solve", two_solved)
    rng = np.random.default_rng(10)
    feasible = 0
    for _ in range(6):
        problem = large(rng, 100, 3, HARD["between"])
        with monkeypatch.context() as patch:
            patch.setattr(LinkedPrograms, "solve", whole)
            best = solve(problem)
        solved.clear()
        found = solve(problem)
        if found.status is SolverStatus.FEASIBLE:
            feasible += 1
            check_values(problem, found)
            assert found.bound <= best.objective * (1 + 2e-9)
            assert found.objective >= best.objective * (1 - 2e-9)
    assert feasible >= 3
