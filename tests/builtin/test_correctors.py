from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fpbench import (
    FORMS,
    METRICS,
    Dataset,
    Guess,
    InputError,
    Problem,
    RateConstraint,
    SolverStatus,
    Table,
    scale_confidence,
)
from fpbench.builtin.correctors.exact import Exact
from fpbench.builtin.correctors.none import NoCorrection
from fpbench.builtin.disclosures.hidden import Hidden
from fpbench.builtin.disclosures.published import Published
from fpbench.builtin.learners.plain import Plain


class Toy(Dataset):
    name = "toy"
    summary = "a number of groups"
    groups: int | None = None

    @property
    def n_groups(self) -> int | None:
        return self.groups

    def load(self, home) -> Table:
        raise NotImplementedError


def problem(seed=0, n=200, constraint=None):
    rng = np.random.default_rng(seed)
    guess, labels = (rng.integers(0, 2, n).astype(np.int8) for _ in range(2))
    predictions = (rng.random(n) < 0.3 + 0.3 * guess).astype(np.int8)
    return Problem(guess, 2, predictions, labels, constraint or RateConstraint(tolerance=0.01))


def guess_for(known, held_out, seed=0):
    rng = np.random.default_rng(seed)
    return Guess(
        known.guess,
        rng.random(len(known.guess)),
        np.arange(len(held_out.guess)),
        held_out.guess,
        rng.random(len(held_out.guess)),
    )


class TestNone:
    def test_it_goes_with_everything(self):
        for other in (Hidden(), Published(), Plain(), Toy(groups=5)):
            assert NoCorrection().incompatible(other) is None

    def test_the_guess_is_left_as_it_is(self):
        given_problem = replace(problem(), constraint=None, groups=3)
        correction = NoCorrection().correct(given_problem)
        np.testing.assert_array_equal(correction.values, given_problem.guess)
        assert not np.shares_memory(correction.values, given_problem.guess)
        assert correction.status is None
        assert correction.objective is None
        assert correction.gap is None

    def test_it_weighs_nothing(self):
        known = problem()
        weights = NoCorrection().weigh(guess_for(known, known), known, known.guess)
        assert weights == (None, {})


class TestExact:
    def test_what_it_goes_with(self):
        assert Exact().incompatible(Toy(groups=2)) is None
        assert Exact().incompatible(Toy()) is None
        assert Exact().incompatible(Published()) is None
        assert Exact().incompatible(Toy(groups=5)) == (
            "corrector 'exact' is for two groups, and dataset 'toy' has 5"
        )
        assert "makes no claim" in Exact().incompatible(Hidden())

    @given(
        seed=st.integers(0, 10_000),
        n=st.integers(2, 60),
        metric=st.sampled_from(METRICS),
        form=st.sampled_from(FORMS),
        tolerance=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    )
    def test_it_satisfies_the_claim_or_says_it_cannot(self, seed, n, metric, form, tolerance):
        given_problem = problem(seed, n, RateConstraint(metric, tolerance, form))
        correction = Exact().correct(given_problem)
        if correction.status is SolverStatus.INFEASIBLE:
            assert correction.values is None
            return
        assert correction.status is SolverStatus.OPTIMAL
        assert given_problem.constraint.holds(
            correction.values, given_problem.predictions, given_problem.labels, 2
        )
        assert correction.objective == np.count_nonzero(correction.values != given_problem.guess)
        assert correction.gap == 0

    def test_sharpened_weights_and_their_exponent(self):
        known, held_out = problem(0), problem(1, 120)
        guess = guess_for(known, held_out)
        truth = np.where(guess.held_out_confidence > 0.3, held_out.guess, 1 - held_out.guess)
        weights, measures = Exact().weigh(guess, held_out, truth)
        exponent = measures["exponent"]
        assert set(measures) == {"exponent"}
        assert 0 < exponent <= 99
        np.testing.assert_allclose(weights, scale_confidence(guess.confidence) ** exponent)
        _, fewer = Exact(exponents=0).weigh(guess, held_out, truth)
        assert fewer == {"exponent": 0}

    def test_identity_weights(self):
        known = problem()
        identity = Exact(weights="identity")
        assert identity.weigh(guess_for(known, known), known, known.guess) == (None, {})

    def test_weights_decide_who_is_moved(self):
        known = problem(3)
        weights = np.random.default_rng(3).random(200) + 0.01
        cheap = Exact().correct(replace(known, weights=weights))
        even = Exact().correct(known)
        changed, changed_even = (c.values != known.guess for c in (cheap, even))
        assert changed.any()
        assert cheap.objective == pytest.approx(weights[changed].sum())
        assert weights[changed].sum() < weights[changed_even].sum()

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [({"groups": 3}, "two groups, not 3"), ({"constraint": None}, "nothing was claimed")],
    )
    def test_problems_it_does_not_take(self, wrong, message):
        known = problem()
        given_problem = replace(known, **wrong)
        with pytest.raises(InputError, match=message):
            Exact().correct(given_problem)
        with pytest.raises(InputError, match=message):
            Exact().weigh(guess_for(known, known), given_problem, known.guess)

    @pytest.mark.parametrize(
        "wrong", [{"exponents": 100}, {"exponents": -1}, {"weights": "none"}, {"k": 3}]
    )
    def test_wrong_parameters_are_refused(self, wrong):
        with pytest.raises(ValidationError):
            Exact(**wrong)
