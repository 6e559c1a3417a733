"""What correctors share that look for the cheapest correction."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import fpbench
from fpbench import Correction, Guess, InputError, Problem
from fpbench.claims import (
    COUNT_CONSTRAINTS,
    METRICS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.correction import OptimalCorrector
from fpbench.correction.calibration import calibrate, calibrate_guess
from fpbench.correction.weights import scale_confidence, sharpen
from fpbench.plugin import SolverStatus

BITS = st.integers(0, 1)


class Enumerator(OptimalCorrector):
    """Looks at every vector."""

    name = "enumerator"
    summary = "looks at every vector"
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS | {"linear"}
    solved: ClassVar[list[Problem]] = []

    def solve(self, problem):
        self.solved.append(problem)
        vectors = oracles.all_vectors(len(problem.guess), problem.groups)
        vectors = vectors[oracles.satisfied(problem, vectors)]
        if not len(vectors):
            return Correction(None, SolverStatus.INFEASIBLE, measures={"vectors": 0})
        cost = (vectors != problem.guess) @ oracles.costs(problem)
        best, least = vectors[cost.argmin()], float(cost.min())
        return Correction(
            best, SolverStatus.OPTIMAL, least, least, measures={"vectors": len(vectors)}
        )


def exact(**parameters):
    return fpbench.component("corrector", "exact", **parameters)


# What a claim cannot be, and the smallest claim that can


@st.composite
def problems(draw) -> Problem:
    k = draw(st.integers(2, 3))
    n = draw(st.integers(k, 7 if k == 2 else 6))
    group = st.integers(0, k - 1)

    def column(values, dtype=int):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=dtype)

    bound = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 0.8, 1.0])
    bounds = st.lists(bound, min_size=2, max_size=2).map(sorted)
    metric = draw(st.sampled_from(METRICS))
    claim = RateConstraint(
        metric, draw(st.sampled_from([0.0, 0.0, 0.001, 0.1])), draw(st.sampled_from(FORMS))
    )
    other = st.one_of(
        st.builds(lambda g, b: ShareBounds(g, *b), group, bounds),
        st.builds(lambda g, b: RateBounds(g, *b, metric), group, bounds),
        st.builds(lambda r, g: KnownPeople([r], [g]), st.integers(0, n - 1), group),
    )
    others = draw(st.lists(other, max_size=2))
    at = draw(st.integers(0, len(others)))
    return Problem(
        column(group), k, column(BITS), column(BITS),
        (*others[:at], claim, *others[at:]), column(st.sampled_from([1.0, 1.5, 2.25]), float),
    )  # fmt: skip


def smallest_tolerance(problem: Problem) -> Fraction | None:
    """The smallest tolerance of the claim that some vector satisfies, over all vectors."""
    (claim,) = (c for c in problem.constraints if isinstance(c, RateConstraint))
    loosest = tuple(replace(c, tolerance=1) if c is claim else c for c in problem.constraints)
    vectors = oracles.all_vectors(len(problem.guess), problem.groups)
    possible = vectors[oracles.satisfied(replace(problem, constraints=loosest), vectors)]
    both = [
        who
        for mask in oracles.masks(problem, claim.metric)
        for who in (mask, mask & (problem.predictions == 1))
    ]
    # Of each vector: slices, people and positives, groups. Equal tables are looked at once.
    codes = np.arange(problem.groups)
    tables = [(possible[:, who, None] == codes).sum(axis=1) for who in both]
    distinct = np.unique(np.stack(tables, axis=1), axis=0) if len(possible) else []
    found = {
        max(oracles.unfairness(*table[i : i + 2], claim.form) for i in range(0, len(both), 2))
        for table in distinct
    }
    return min(found, default=None)


@pytest.mark.slow
@given(problems())
def test_relaxing_finds_the_smallest_tolerance_that_some_satisfy(problem):
    reported, relaxed = (exact(on_infeasible=how).correct(problem) for how in ("report", "relax"))
    least = oracles.brute_force(problem)
    if least is not None:
        assert reported.objective == relaxed.objective == pytest.approx(least)
        assert "relaxed_tolerance" not in relaxed.measures
        return
    assert reported.status is SolverStatus.INFEASIBLE
    tolerance = smallest_tolerance(problem)
    if tolerance is None:
        assert relaxed.status is SolverStatus.INFEASIBLE
        assert relaxed.values is None
        assert "relaxed_tolerance" not in relaxed.measures
        return
    assert relaxed.status is SolverStatus.OPTIMAL
    assert relaxed.measures["relaxed_tolerance"] == float(tolerance)
    looser = tuple(
        replace(c, tolerance=tolerance) if isinstance(c, RateConstraint) else c
        for c in problem.constraints
    )
    loosened = replace(problem, constraints=looser)
    assert oracles.admissible(loosened, relaxed.values)
    assert relaxed.objective == pytest.approx(oracles.brute_force(loosened), rel=1e-9)
    assert reported.measures == {}


@settings(max_examples=30)
@given(problems(), st.lists(st.integers(-3, 3), min_size=7, max_size=7), st.integers(-3, 3))
def test_relaxing_with_what_only_the_solver_itself_can_express(problem, coefficients, total):
    n = len(problem.guess)
    linear = LinearConstraint(1, coefficients[:n], total, total)
    problem = replace(problem, constraints=(*problem.constraints, linear))
    found = Enumerator(on_infeasible="relax").correct(problem)
    assert oracles.brute_force(problem) is None or "relaxed_tolerance" not in found.measures
    tolerance = smallest_tolerance(problem)
    (claim,) = (c for c in problem.constraints if isinstance(c, RateConstraint))
    if tolerance is None:
        assert found.status is SolverStatus.INFEASIBLE
    elif tolerance > claim.exact_tolerance:
        assert found.measures["relaxed_tolerance"] == float(tolerance)
        assert found.measures["vectors"] > 0  # measures of the solver itself are kept


def test_the_smallest_tolerance_of_many_people_is_exact():
    rng = np.random.default_rng(2)
    n = 3001  # a prime: no two groups have exactly the same rate
    guess = rng.integers(0, 2, n)
    predictions = (rng.random(n) < 0.2 + 0.2 * guess).astype(int)
    problem = Problem(guess, 2, predictions, None, (RateConstraint(),), rng.uniform(1, 2, n))
    found = exact(on_infeasible="relax").correct(problem)
    positives = int(predictions.sum())
    # Over all pairs of groups' sizes: m people, of whom x are positive.
    m = np.arange(1, n)
    x = np.clip(np.round(positives * m / n), 0, positives)
    best = None
    for size, near in zip(m.tolist(), x.astype(int).tolist(), strict=True):
        for positive in (near - 1, near, near + 1):
            if 0 <= positive <= size and 0 <= positives - positive <= n - size:
                overall = Fraction(positives, n)
                both = Fraction(positive, size), Fraction(positives - positive, n - size)
                apart = max(abs(rate - overall) for rate in both)
                best = apart if best is None else min(best, apart)
    assert found.measures["relaxed_tolerance"] == float(best)
    assert found.status is SolverStatus.OPTIMAL
    tighter = replace(problem, constraints=(RateConstraint(tolerance=best - Fraction(1, 10**20)),))
    assert exact().correct(tighter).status is SolverStatus.INFEASIBLE
    exactly = replace(problem, constraints=(RateConstraint(tolerance=best),))
    assert exact().correct(exactly).objective == found.objective


IMPOSSIBLE = Problem(np.array([0, 1, 1]), 2, np.array([1, 0, 0]), None, (RateConstraint(),))


def test_only_a_claim_can_be_relaxed():
    nobody = (ShareBounds(0, 0.9), ShareBounds(1, 0.9))
    for known in (nobody, (*nobody, RateConstraint()), (KnownPeople([0, 0], [0, 1]),)):
        found = exact(on_infeasible="relax").correct(replace(IMPOSSIBLE, constraints=known))
        assert found.status is SolverStatus.INFEASIBLE
        assert found.measures == {}


def test_only_the_first_claim_is_relaxed():
    tight, loose = RateConstraint(), RateConstraint(tolerance=0.5)
    for known, tolerance in (((tight, loose), 1 / 3), ((loose, tight), None)):
        found = exact(on_infeasible="relax").correct(replace(IMPOSSIBLE, constraints=known))
        assert found.measures.get("relaxed_tolerance") == tolerance
        assert (found.status is SolverStatus.INFEASIBLE) == (tolerance is None)


def test_a_solver_that_runs_out_of_time_has_not_shown_that_nothing_satisfies_a_claim():
    class Slow(Enumerator):
        name = "slow"

        def solve(self, problem):
            found = super().solve(problem)
            late = len(self.solved) > 2
            return Correction(None, SolverStatus.TIMEOUT) if late else found

    Enumerator.solved.clear()
    problem = replace(
        IMPOSSIBLE, constraints=(RateConstraint(), LinearConstraint(0, [1.0, 1, 1], 1, 2))
    )
    found = Slow(on_infeasible="relax").correct(problem)
    assert found.status is SolverStatus.INFEASIBLE
    assert "relaxed_tolerance" not in found.measures


# What a change costs


def guesses(seed=0, n=40, m=300, k=2):
    """A guess whose confidence means something, and the truth of its held-out part."""
    rng = np.random.default_rng(seed)
    truth, held_out_truth = rng.integers(0, k, n), rng.integers(0, k, m)

    def guessed(groups):
        confidence = rng.uniform(0.5, 1, len(groups))
        wrong = rng.random(len(groups)) > confidence
        return np.where(wrong, (groups + 1) % k, groups), confidence

    (values, confidence), (held_out, sure) = guessed(truth), guessed(held_out_truth)
    guess = Guess(values, confidence, np.arange(m), held_out, sure)
    predictions = (rng.random(m) < 0.4 + 0.2 * (held_out == 0)).astype(int)
    claim = RateConstraint(tolerance=0.01)
    return guess, Problem(held_out, k, predictions, None, (claim,)), held_out_truth


@pytest.mark.parametrize(("k", "most"), [(2, 99), (2, 3), (2, 0), (3, 5)])
def test_sharpened_costs_are_a_power_of_the_scaled_confidence(k, most):
    guess, held_out, truth = guesses(1, k=k)
    weighing = exact(exponents=most).weigh(guess, held_out, truth)
    exponent = weighing.measures["exponent"]
    assert 0 <= exponent <= most
    assert weighing.measures.keys() == {"exponent"}
    assert weighing.values is None
    wanted = sharpen(guess.confidence, held_out, guess.held_out_confidence, truth, most)
    np.testing.assert_array_equal(weighing.weights, wanted[0])
    assert exponent == wanted[1]
    np.testing.assert_array_equal(weighing.weights, scale_confidence(guess.confidence) ** exponent)


@pytest.mark.parametrize("k", [2, 3])
def test_calibrated_costs_are_log_odds(k):
    guess, held_out, truth = guesses(2, k=k)
    weighing = exact(weights="calibrated").weigh(guess, held_out, truth)
    wanted = calibrate_guess(
        guess.values, guess.confidence, guess.held_out_values, guess.held_out_confidence, truth, k
    )
    np.testing.assert_array_equal(weighing.values, wanted[0])
    np.testing.assert_array_equal(weighing.weights, wanted[1])
    changed = int((weighing.values != guess.values).sum())
    assert weighing.measures == {"reconsidered": changed}
    assert (weighing.weights > 0).all()
    assert k == 2 or changed == 0


def test_guesses_that_are_less_probable_than_not_are_reconsidered():
    # In the held-out part whoever was taken for group 1 with little confidence was of group 0.
    guess, held_out, _ = guesses(3)
    values = np.array([1, 1, 0, 0])
    guess = replace(guess, values=values, confidence=np.array([0.55, 0.95, 0.55, 0.95]))
    truth = np.where(guess.held_out_confidence > 0.75, held_out.guess, 0)
    weighing = exact(weights="calibrated").weigh(guess, held_out, truth)
    assert weighing.values.tolist() == [0, 1, 0, 0]
    assert weighing.measures == {"reconsidered": 1}


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_correction_of_calibrated_costs_is_the_likeliest(seed):
    """Of all vectors that satisfy the claim, by the calibrated probabilities of the adversary."""
    guess, held_out, truth = guesses(seed, n=9)
    rng = np.random.default_rng(seed)
    predictions = rng.permutation([1, 1, 1, 1, 0, 0, 0, 0, 0])
    weighing = exact(weights="calibrated").weigh(guess, held_out, truth)
    claim = (RateConstraint(tolerance=0.1),)
    problem = Problem(weighing.values, 2, predictions, None, claim, weighing.weights)
    found = exact(weights="calibrated").correct(problem)
    of_one, held_out_of_one = (
        np.where(codes == 1, sure, 1 - sure)
        for codes, sure in (
            (guess.values, guess.confidence), (held_out.guess, guess.held_out_confidence),
        )
    )  # fmt: skip
    p = calibrate(of_one, held_out_of_one, truth == 1)
    vectors = oracles.all_vectors(9, 2)
    vectors = vectors[oracles.satisfied(problem, vectors)]
    likelihoods = np.where(vectors == 1, p, 1 - p).prod(axis=1)
    own = np.where(found.values == 1, p, 1 - p).prod()
    assert own == pytest.approx(likelihoods.max(), rel=1e-9)
    # Its cost is how much less likely it is than the likeliest vector of all.
    likeliest = np.maximum(p, 1 - p).prod()
    assert np.log(likeliest / own) == pytest.approx(found.objective, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        np.where(weighing.values == 1, p, 1 - p), expit(weighing.weights), rtol=1e-9
    )


def test_rows_say_how_costs_were_made_and_what_was_relaxed(toys, tmp_path):
    correctors = [
        {"use": "exact", "label": name, "on_infeasible": "relax", "weights": name}
        for name in ("sharpened", "identity", "calibrated")
    ]
    matrix = {
        "seeds": 8,
        "dataset": [{"use": "flock", "rows": 33, "groups": 2}],
        "learner": [{"use": "parrot"}],
        "disclosure": [{"use": "oracle", "tolerance": 0.0}],
        "adversary": [{"use": "coin"}],
        "corrector": [*correctors, {"use": "exact", "label": "reporting"}],
    }
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert set(frame["status"]) == {"done"}
    by = dict(list(frame.set_index("seed").groupby("corrector")))
    assert by["sharpened"]["exponent"].between(0, 99).all()
    assert by["calibrated"]["reconsidered"].between(0, 11).all()
    for name in ("identity", "calibrated"):
        assert by[name]["exponent"].isna().all()
    # At tolerance 0, eleven people can rarely be divided.
    impossible = by["reporting"]["solver_status"] == "infeasible"
    assert impossible.any()
    assert by["reporting"]["relaxed_tolerance"].isna().all()
    for name in ("sharpened", "identity", "calibrated"):
        assert (by[name]["solver_status"] == "optimal").all()
        assert (by[name]["relaxed_tolerance"].notna() == impossible).all()
        assert (by[name]["relaxed_tolerance"].dropna() > 0).all()


# What it can be handed


def test_what_is_not_expressed_is_refused_with_what_is():
    class Narrow(Enumerator):
        name = "narrow"
        expresses: ClassVar[frozenset[str]] = frozenset({"to-overall", "share"})

    for known, word in (
        (RateConstraint(form="ratio"), "ratio"),
        (RateConstraint(form="between-groups"), "between-groups"),
        (RateBounds(0), "positive-rate"),
        (KnownUnfairness("statistical-parity", 0, 1), "unfairness"),
        (KnownUnfairness("statistical-parity", 0, 1, "ratio"), "unfairness ratio"),
        (KnownPeople([], []), "known"),
        (LinearConstraint(0, [1, 2, 3]), "linear"),
    ):
        with pytest.raises(InputError) as error:
            Narrow().correct(replace(IMPOSSIBLE, constraints=(RateConstraint(), known)))
        assert str(error.value) == (
            f"corrector 'narrow' cannot express the constraint {word!r}; it can express: "
            "share, to-overall"
        )
    with pytest.raises(InputError, match="corrector 'narrow' needs a claim, and nothing was"):
        Narrow().correct(replace(IMPOSSIBLE, constraints=()))
    Narrow().check(replace(IMPOSSIBLE, constraints=(RateConstraint(), ShareBounds(0))))
