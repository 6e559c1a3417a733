from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

import fpbench
from fpbench import InputError, Problem
from fpbench.builtin.correctors.posterior import Posterior
from fpbench.builtin.datasets.adult import Adult
from fpbench.builtin.disclosures.claims import Hidden
from fpbench.builtin.ferry.published import Published
from fpbench.claims import (
    METRICS,
    Facts,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.plugin import SolverStatus

TOLERANCES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


def beliefs_of(problem: Problem) -> np.ndarray:
    """Its beliefs; or weights as log-odds of the guess, other groups alike."""
    if problem.beliefs is not None:
        return problem.beliefs
    odds, k = oracles.costs(problem), problem.groups
    guessed = np.eye(k, dtype=bool)[problem.guess]
    return np.where(guessed, expit(odds)[:, None], expit(-odds)[:, None] / (k - 1))


def enumerated(problem: Problem) -> tuple[np.ndarray, float, np.ndarray | None]:
    """Beliefs before; the log-probability of what is claimed, and beliefs given it.

    From all vectors. Who is known is known, whatever the odds.
    """
    prior, k = beliefs_of(problem).copy(), problem.groups
    for constraint in problem.constraints:
        if isinstance(constraint, KnownPeople):
            prior[list(constraint.rows)] = np.eye(k)[list(constraint.groups)]
    vectors = oracles.all_vectors(len(prior), k)
    vectors = vectors[oracles.satisfied(problem, vectors)]
    with np.errstate(divide="ignore"):
        logs = np.log(prior)[np.arange(len(prior)), vectors].sum(axis=1)
    if not len(vectors) or logs.max() == -np.inf:
        return prior, -np.inf, None
    claim = logsumexp(logs)
    mass = np.exp(logs - claim)
    return prior, float(claim), np.stack([mass @ (vectors == g) for g in range(k)], axis=1)


def check(problem: Problem, found) -> None:
    """The answer is that of all vectors, and all it says of itself is true."""
    prior, claim, posterior = enumerated(problem)
    if posterior is None:
        assert found.status is SolverStatus.INFEASIBLE
        assert (found.values, found.objective, found.moves, found.posterior) == (None,) * 4
        assert found.measures == {}
        return
    assert found.status is None  # nothing was optimised, so nothing is claimed to be optimal
    np.testing.assert_allclose(found.posterior, posterior, rtol=1e-9, atol=1e-12)
    assert set(found.measures) == {"claim_bits", "prior_expected_accuracy", "expected_accuracy"}
    bits = -claim / math.log(2)
    assert found.measures["claim_bits"] == pytest.approx(bits, rel=1e-9, abs=1e-9)
    for name, p in (("prior_expected_accuracy", prior), ("expected_accuracy", posterior)):
        assert found.measures[name] == pytest.approx(p.max(axis=1).mean(), rel=1e-9)
    ranked = np.sort(posterior, axis=1)
    sure = ranked[:, -1] - ranked[:, -2] > 1e-9
    np.testing.assert_array_equal(found.values[sure], posterior[sure].argmax(axis=1))
    assert found.values.dtype == problem.guess.dtype
    changed = found.values != problem.guess
    assert found.objective == pytest.approx(oracles.costs(problem)[changed].sum())
    moves = np.zeros((2, problem.groups, problem.groups), dtype=int)
    at = problem.predictions[changed], problem.guess[changed], found.values[changed]
    np.add.at(moves, at, 1)
    np.testing.assert_array_equal(found.moves, moves)


@st.composite
def problems(draw) -> Problem:
    k = draw(st.sampled_from([2, 2, 3, 4]))
    n = draw(st.integers(1, {2: 9, 3: 7, 4: 5}[k]))

    def column(values, dtype=int):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=dtype)

    bits, group = st.integers(0, 1), draw(st.integers(0, k - 1))
    odds = st.sampled_from([1e-6, 0.5, 0.5, 2.0, 30.0, 40.0, 700.0]) | st.floats(1e-3, 10)
    bounds = st.lists(st.sampled_from(TOLERANCES), min_size=2, max_size=2).map(sorted)
    metric, form = draw(st.sampled_from(METRICS)), draw(st.sampled_from(FORMS))
    known = [RateConstraint(metric, draw(st.sampled_from(TOLERANCES)), form)]
    if draw(st.booleans()):
        known = [KnownUnfairness(metric, *draw(bounds), form)]
    if draw(st.booleans()):
        known.append(ShareBounds(group, *draw(bounds)))
    if draw(st.booleans()):
        known.append(RateBounds(group, *draw(bounds), draw(st.sampled_from(METRICS))))
    if draw(st.booleans()):
        person = st.tuples(st.integers(0, n - 1), st.integers(0, k - 1))
        pairs = draw(st.lists(person, max_size=3))
        known.append(KnownPeople([row for row, _ in pairs], [code for _, code in pairs]))
    if draw(st.integers(0, 4)) == 0:
        ends = sorted(draw(st.lists(st.integers(0, 2 * n), min_size=2, max_size=2)))
        known.append(LinearConstraint(group, column(st.integers(0, 3), float), *ends))
    weights = draw(st.sampled_from([None, odds]))
    return Problem(
        column(st.integers(0, k - 1)), k, column(bits), column(bits),
        tuple(draw(st.permutations(known))),
        None if weights is None else column(weights, float),
    )  # fmt: skip


def correct(problem: Problem):
    """The same through the public function."""
    return fpbench.correct(
        problem.guess, problem.predictions, labels=problem.labels, weights=problem.weights,
        metric=None, constraints=problem.constraints, groups=problem.groups,
        corrector="posterior",
    )  # fmt: skip


@pytest.mark.slow
@given(problems())
def test_small_problems_equal_all_vectors(problem):
    check(problem, correct(problem))


def test_beliefs_count_and_weights_are_costs():
    """Beliefs that are given are conditioned; the guess and its weights say what a change costs."""
    rng = np.random.default_rng(2)
    for k, n in ((2, 9), (3, 7), (4, 5)):
        beliefs = rng.dirichlet(np.ones(k), n)
        guess, said = rng.integers(0, k, n), rng.integers(0, 2, n)
        claim = (RateConstraint(tolerance=0.4, form="between-groups"),)
        problem = Problem(guess, k, said, None, claim, rng.uniform(1, 2, n), beliefs)
        check(problem, Posterior().correct(problem))
        # Not even those of impossible weights.
        huge = replace(problem, weights=np.full(n, 1e9))
        np.testing.assert_array_equal(Posterior().correct(huge).values,
                                      Posterior().correct(problem).values)  # fmt: skip


def test_improbable_groups_are_possible():
    """Costs too large for their probabilities to differ from 1: still the guess may be wrong."""
    guess, predictions = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    for cost in (30.0, 40.0, 233.0):
        weights = np.array([cost, 3 * cost, cost, 3 * cost])
        problem = Problem(guess, 2, predictions, None, (RateConstraint(),), weights)
        found = correct(problem)
        check(problem, found)
        assert found.values.tolist() == [1, 0, 0, 1]
        assert found.measures["claim_bits"] == pytest.approx(2 * cost / math.log(2))


def test_weights_that_are_no_log_odds_are_refused():
    problem = Problem(np.array([0, 1]), 2, np.array([1, 1]), None, (RateConstraint(),))
    assert correct(replace(problem, weights=np.array([1.0, 700.0]))).values.tolist() == [0, 1]
    with pytest.raises(InputError) as error:
        correct(replace(problem, weights=np.array([1.0, 2.0**50])))
    assert str(error.value) == (
        "corrector 'posterior' uses weights as log-odds of the guess: they must be at most 700, "
        "not 1.1259e+15"
    )


def test_ties_keep_the_guess():
    # Groups change places without changing the rates: nothing tells one from the other.
    guess = np.array([0, 1, 1, 0])
    problem = Problem(
        guess, 2, np.array([1, 1, 0, 0]), None, (RateConstraint(),), np.full(4, 1e-300)
    )
    found = Posterior().correct(problem)
    np.testing.assert_allclose(found.posterior, 0.5)
    np.testing.assert_array_equal(found.values, guess)
    assert found.objective == 0


def test_incompatible_components():
    for groups in ("sex", "race"):
        assert Posterior().incompatible(Adult(sensitive=groups)) is None
    assert Posterior().incompatible(Published()) is None
    assert "makes no claim" in Posterior().incompatible(Hidden())
    share = {"use": "share", "group": "Female"}
    linear = {"use": "linear", "group": "Female", "column": "age"}
    assert Posterior().incompatible(Hidden(also=[share, linear])) is None


def test_it_expresses_every_constraint_that_there_is():
    words = {KnownUnfairness("statistical-parity", 0, 1, form).word for form in FORMS}
    words |= {RateConstraint(form=form).word for form in FORMS}
    words |= {one.word for one in (ShareBounds(0), RateBounds(0), KnownPeople([], []))}
    assert Posterior.expresses == words | {LinearConstraint(0, [1.0]).word, Facts.word}


@pytest.mark.slow
def test_rows_say_what_the_claim_told(toys, tmp_path):
    matrix = {
        "seeds": 4,
        "dataset": [{"use": "flock", "rows": 240}],
        "learner": [{"use": "parrot"}],
        "disclosure": [
            {"use": "oracle", "label": "tight", "tolerance": 0.01},
            {"use": "oracle", "label": "loose", "tolerance": 0.2},
            {"use": "oracle", "label": "nothing", "tolerance": 1.0},
            {"use": "hidden", "also": [{"use": "known", "share": 0.5}]},
        ],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "posterior"}],
    }
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert set(frame["status"]) == {"done"}
    by = dict(list(frame.set_index("seed").groupby("disclosure")))
    bits = {name: rows["claim_bits"] for name, rows in by.items()}
    assert (bits["tight"] > bits["loose"]).all()
    assert (bits["loose"] > bits["nothing"]).all()
    assert bits["nothing"].between(0, 1e-9).all()
    for rows in by.values():
        assert rows["expected_accuracy"].between(0.5, 1).all()
        assert rows["prior_expected_accuracy"].between(0.5, 1).all()
        assert rows["proven"].isna().all()
    # Being told who half of the people are is no chance, so it has no bits; but it helps.
    known = by["hidden"]
    assert bits["hidden"].between(0, 1e-12).all()
    assert (known["prior_expected_accuracy"] > by["nothing"]["prior_expected_accuracy"]).all()
    assert (known["corrected_accuracy"] > known["initial_accuracy"]).all()


@pytest.mark.slow
def test_an_infeasible_claim_has_a_row(toys, tmp_path):
    matrix = {
        "seeds": 12,
        "dataset": [{"use": "flock", "rows": 36}],
        "learner": [{"use": "parrot"}],
        "disclosure": [{"use": "oracle", "tolerance": 0.0}],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "posterior"}, {"use": "exact"}],
    }
    frame = fpbench.run(matrix, out=tmp_path / "run").frame().set_index(["corrector", "seed"])
    assert set(frame["status"]) == {"done"}
    infeasible = frame["solver_status"] == "infeasible"
    assert set(infeasible) == {True, False}
    assert (infeasible.loc["posterior"] == infeasible.loc["exact"]).all()
    assert frame[infeasible]["corrected_accuracy"].isna().all()
    assert frame.loc["posterior"][infeasible.loc["posterior"]]["claim_bits"].isna().all()
    assert math.isfinite(frame.loc["posterior"]["claim_bits"].max())
