from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import Dataset, Guess, InputError, Problem, Table
from fpbench.builtin.correctors.none import NoCorrection
from fpbench.builtin.disclosures.claims import Hidden
from fpbench.builtin.ferry.correctors import Exact
from fpbench.builtin.ferry.published import Published
from fpbench.claims import METRICS, LinearConstraint, RateConstraint
from fpbench.claims.rates import FORMS
from fpbench.correction.weights import scale_confidence
from fpbench.plugin import SolverStatus, Weighing


class Toy(Dataset):
    name = "toy"
    summary = "a number of groups"
    groups: int | None = None

    @property
    def n_groups(self) -> int | None:
        return self.groups

    def load(self, home) -> Table:
        raise NotImplementedError


def problem(seed=0, n=200, constraint=None, k=2):
    rng = np.random.default_rng(seed)
    guess, labels = (rng.integers(0, most, n).astype(np.int8) for most in (k, 2))
    predictions = (rng.random(n) < 0.3 + 0.3 * guess / (k - 1)).astype(np.int8)
    claim = constraint or RateConstraint(tolerance=0.01)
    return Problem(guess, k, predictions, labels, (claim,))


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
    def test_the_guess_is_left_as_it_is(self):
        compute_posterior = replace(problem(), constraints=(), groups=3)
        correction = NoCorrection().correct(compute_posterior)
        np.testing.assert_array_equal(correction.values, compute_posterior.guess)
        assert not np.shares_memory(correction.values, compute_posterior.guess)
        assert correction.status is None
        assert correction.objective is None
        assert correction.gap is None

    def test_it_weighs_nothing(self):
        known = problem()
        weighing = NoCorrection().weigh(guess_for(known, known), known, known.guess)
        assert weighing == Weighing(None)


class TestExact:
    def test_incompatible_components(self):
        assert Exact().incompatible(Toy(groups=2)) is None
        assert Exact().incompatible(Toy()) is None
        assert Exact().incompatible(Published()) is None
        assert Exact().incompatible(Toy(groups=5)) is None
        assert Exact().incompatible(Hidden()) == (
            "disclosure 'hidden' makes no claim, so there is nothing to correct with"
        )

    @pytest.mark.slow
    @given(
        seed=st.integers(0, 10_000),
        n=st.integers(2, 60),
        k=st.integers(2, 4),
        metric=st.sampled_from(METRICS),
        form=st.sampled_from(FORMS),
        tolerance=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    )
    def test_it_satisfies_the_claim_or_says_it_cannot(self, seed, n, k, metric, form, tolerance):
        compute_posterior = problem(seed, n, RateConstraint(metric, tolerance, form), k)
        correction = Exact().correct(compute_posterior)
        if correction.status is SolverStatus.INFEASIBLE:
            assert correction.values is None
            return
        assert correction.status is SolverStatus.OPTIMAL
        assert oracles.admissible(compute_posterior, correction.values)
        assert correction.objective == np.count_nonzero(
            correction.values != compute_posterior.guess
        )
        assert correction.gap == 0

    @pytest.mark.parametrize("k", [2, 3])
    def test_sharpened_weights_and_their_exponent(self, k):
        known, held_out = problem(0, k=k), problem(1, 120, k=k)
        guess = guess_for(known, held_out)
        truth = np.where(guess.held_out_confidence > 0.3, held_out.guess, k - 1 - held_out.guess)
        weighing = Exact(exponents=99 if k == 2 else 9).weigh(guess, held_out, truth)
        exponent = weighing.measures["exponent"]
        assert set(weighing.measures) == {"exponent"}
        assert 0 < exponent <= 99
        assert weighing.values is None
        np.testing.assert_allclose(weighing.weights, scale_confidence(guess.confidence) ** exponent)
        assert Exact(exponents=0).weigh(guess, held_out, truth).measures == {"exponent": 0}

    def test_identity_weights(self):
        known = problem()
        identity = Exact(weights="identity")
        weighing = identity.weigh(guess_for(known, known), known, known.guess)
        assert weighing == Weighing(None)

    def test_weights_decide_who_is_moved(self):
        known = problem(3)
        weights = np.random.default_rng(3).random(200) + 0.01
        cheap = Exact().correct(replace(known, weights=weights))
        even = Exact().correct(known)
        changed, changed_even = (c.values != known.guess for c in (cheap, even))
        assert changed.any()
        assert cheap.objective == pytest.approx(weights[changed].sum())
        assert weights[changed].sum() < weights[changed_even].sum()

    @pytest.mark.parametrize(("constraints", "message"), [
        ((), "corrector 'exact' needs a claim, and nothing was claimed"),
        ((RateConstraint(), LinearConstraint(0, [1.0] * 200)),
         "corrector 'exact' cannot express the constraint 'linear'; it can express: "),
    ])  # fmt: skip
    def test_problems_it_does_not_take(self, constraints, message):
        with pytest.raises(InputError) as error:
            Exact().correct(replace(problem(), constraints=constraints))
        assert str(error.value).startswith(message)

    def test_when_time_runs_out_it_says_how_far_it_came(self):
        hard = problem(1, 3000, RateConstraint(tolerance=0.002), k=7)
        found = Exact(time_limit=1e-6).correct(hard)
        assert found.status is SolverStatus.TIMEOUT
        assert (found.values, found.objective) == (None, None)
        assert Exact().correct(hard).status is SolverStatus.OPTIMAL
