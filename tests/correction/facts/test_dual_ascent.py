"""Beliefs given facts, against Bayes' rule by enumeration and by Poisson-binomial sums."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.claims import Facts
from fpbench.correction import condition_beliefs, propagate
from fpbench.correction.facts import dual_ascent, exact_components
from fpbench.correction.facts.dual_ascent import TableSweeps


@pytest.fixture(autouse=True)
def without_exact_components(monkeypatch):
    monkeypatch.setattr(exact_components, "_MOST_STEPS", -1)


def apply_bayes(beliefs, members, log_likelihood):
    """(n, K) exact posterior, by all assignments; `log_likelihood` of counts (A, M, K)."""
    n, k = beliefs.shape
    assignments = np.array(list(product(range(k), repeat=n)))
    ones = (assignments[:, :, None] == np.arange(k)).astype(float)
    log = np.einsum("ang,ng->a", ones, np.log(beliefs))
    log += log_likelihood(np.einsum("ang,nm->amg", ones, members.astype(float)))
    weight = np.exp(log - log.max())
    return np.einsum("a,ang->ng", weight, ones) / weight.sum()


def draw_people(rng, n, m, k=2):
    """Beliefs (n, K), members (n, M) and counts (M, K) of groups that the beliefs are right of."""
    beliefs = rng.dirichlet(np.full(k, 1.5), n)
    truth = np.array([rng.choice(k, p=row) for row in beliefs])
    members = np.ones((n, m), bool) if m == 1 else rng.random((n, m)) < 0.7
    counts = members.T.astype(int) @ (truth[:, None] == np.arange(k))
    return beliefs, members, counts


def exact(counts):
    return lambda table: np.where((table == counts).all(axis=(1, 2)), 0.0, -np.inf)


def count_errors(n, people=4):
    """Mean error of beliefs given one exact count over n people, exact by Poisson-binomial sums."""
    errors = []
    for seed in range(people):
        rng = np.random.default_rng(seed)
        beliefs, members, counts = draw_people(rng, n, 1)
        if 0 in counts:
            continue
        p, c = beliefs[:, 1], counts[0, 1]

        def spread(chances):
            total = np.ones(1)
            for chance in chances:
                total = np.convolve(total, [1 - chance, chance])
            return total

        right = np.array([p[i] * spread(np.delete(p, i))[c - 1] for i in range(n)]) / spread(p)[c]
        given_ = condition_beliefs(Facts.from_counts(members, counts), beliefs, error=1e-4)
        errors.append(np.abs(given_.beliefs[:, 1] - right).mean())
    return np.mean(errors)


@pytest.mark.slow
def test_the_error_of_one_count_falls_as_one_over_its_size():
    errors = {n: count_errors(n) for n in (10, 30, 100)}
    for n, error in errors.items():
        assert error < 0.3 / n, errors
    assert errors[100] < errors[30] < errors[10]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "m", "most"), [(2, 10, 1, 0.05), (2, 10, 3, 0.12), (3, 7, 2, 0.1)]
)
def test_it_is_near_bayes(k, n, m, most):
    errors, before = [], []
    for seed in range(12):
        beliefs, members, counts = draw_people(np.random.default_rng(seed), n, m, k)
        facts = Facts.from_counts(members, counts)
        found = condition_beliefs(facts, beliefs, propagate(facts), error=1e-3)
        right = apply_bayes(beliefs, members, exact(counts))
        errors.append(np.abs(found.beliefs - right).mean())
        before.append(np.abs(beliefs - right).mean())
    assert np.mean(errors) < most
    assert np.mean(errors) < np.mean(before) / 2


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("k", [2, 3])
def test_noise_counts_by_its_likelihood(law, k):
    errors, before = [], []
    n = 10 if k == 2 else 7
    for seed in range(12):
        rng = np.random.default_rng(seed)
        beliefs, members, counts = draw_people(rng, n, 2, k)
        noise = (
            rng.normal(0, 1.5, counts.shape)
            if law == "gaussian"
            else rng.laplace(0, 1, counts.shape)
        )
        told = counts + noise

        def log_likelihood(table, told=told):
            off = table - told
            return -(off**2 / 4.5 if law == "gaussian" else np.abs(off)).sum(axis=(1, 2))

        facts = Facts.from_counts(
            members, told, **({"sigma": 1.5} if law == "gaussian" else {"scale": 1.0})
        )
        right = apply_bayes(beliefs, members, log_likelihood)
        found = condition_beliefs(facts, beliefs, error=1e-3).beliefs
        errors.append(np.abs(found - right).mean())
        before.append(np.abs(beliefs - right).mean())
    assert np.mean(errors) < np.mean(before) / 2
    assert np.mean(errors) < 0.05


def test_counts_that_were_not_measured_are_nothing():
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet([1, 1, 1], 20)
    members = np.ones((20, 1), bool)
    low, high = np.array([[-np.inf, 9.0, -np.inf]]), np.array([[np.inf, 9.0, np.inf]])
    after = condition_beliefs(Facts.from_counts(members, low, high, sigma=0.5), beliefs).beliefs
    assert abs(after[:, 1].sum() - 9) < abs(beliefs[:, 1].sum() - 9) / 4
    odds = np.log(after[:, 0] / after[:, 2]) - np.log(beliefs[:, 0] / beliefs[:, 2])
    assert np.allclose(odds, 0)
    nothing = Facts.from_counts(
        members, np.full((1, 3), -np.inf), np.full((1, 3), np.inf), sigma=1.0
    )
    assert np.allclose(condition_beliefs(nothing, beliefs).beliefs, beliefs)


def test_a_range_pulls_no_farther_than_its_end():
    beliefs = np.tile([0.7, 0.3], (100, 1))
    members = np.ones((100, 1), bool)

    def expect(low, high):
        facts = Facts.from_counts(members, [[100 - high, low]], [[100 - low, high]])
        return condition_beliefs(facts, beliefs, error=1e-4).beliefs[:, 1].sum()

    assert expect(20, 40) == pytest.approx(30)
    assert expect(40, 60) == pytest.approx(40, abs=0.01)
    assert expect(10, 20) == pytest.approx(20, abs=0.01)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), k=st.integers(2, 3), error=st.sampled_from([0.3, 0.1, 0.03]))
def test_the_bound_of_the_error_holds(seed, k, error):
    rng = np.random.default_rng(seed)
    beliefs, members, counts = draw_people(rng, 60, 9, k)
    slack = rng.integers(0, 3, counts.shape) * rng.integers(0, 2, (9, 1))
    facts = Facts.from_counts(members, counts - slack, counts + slack)
    rough = condition_beliefs(facts, beliefs, error=error)
    fine = condition_beliefs(facts, beliefs, error=1e-5)
    apart = np.abs(rough.beliefs - fine.beliefs).sum(axis=1) / 2
    assert rough.error_bound <= error
    assert np.sqrt((apart**2).mean()) <= rough.error_bound + fine.error_bound
    assert np.allclose(rough.beliefs.sum(axis=1), 1)


def test_exact_counts_are_met_and_proven_people_stay_proven():
    rng = np.random.default_rng(1)
    beliefs, members, counts = draw_people(rng, 50, 6)
    members[:4, 0], members[4:, 0] = True, False
    counts[0] = [0, 4]
    facts = Facts.from_counts(members[:, :1], counts[:1])
    found = condition_beliefs(facts, beliefs, propagate(facts))
    assert (found.beliefs[:4] == [0, 1]).all()
    assert np.allclose(found.beliefs[4:], beliefs[4:])
    others = Facts.from_counts(members[:, 1:], counts[1:])
    after = condition_beliefs(others, beliefs, error=1e-3).beliefs
    assert np.allclose(members[:, 1:].T @ after, counts[1:], atol=0.05)


def test_limits_end_it_and_the_bound_says_so():
    beliefs, members, counts = draw_people(np.random.default_rng(2), 200, 40)
    facts = Facts.from_counts(members, counts)
    short = condition_beliefs(facts, beliefs, error=1e-9, iterations=3)
    assert short.iterations <= 3
    assert short.error_bound > 1e-9
    assert condition_beliefs(facts, beliefs, error=1e-9, seconds=0.0).iterations <= 1


def test_a_belief_of_zero_gives_way_to_a_fact():
    facts = Facts.from_counts(np.ones((2, 1), bool), [[1, 1]])
    after = condition_beliefs(facts, [[1.0, 0.0], [1.0, 0.0]], error=1e-3).beliefs
    assert np.allclose(after, 0.5, atol=0.05)  # an exact count is a little soft


def test_beliefs_of_others_are_refused():
    facts = Facts.from_counts(np.ones((2, 1), bool), [[1, 1]])
    with pytest.raises(InputError, match=r"beliefs must be \(2, 2\)"):
        condition_beliefs(facts, np.full((3, 2), 0.5))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("law", ["exact", "range", "gaussian", "laplace"])
def test_sweeps_by_table_come_to_the_same_beliefs(k, law, monkeypatch):
    rng = np.random.default_rng(4)
    beliefs, members, counts = draw_people(rng, 80, 8, k)
    ends = {"exact": (counts, counts), "range": (counts - 2, counts + 1)}.get(law, 2 * (counts,))
    noise = {"gaussian": {"sigma": 1.5}, "laplace": {"scale": 1.0}}.get(law, {})
    facts = Facts.from_counts(members, *ends, **noise)
    fine = condition_beliefs(facts, beliefs, error=1e-5)
    monkeypatch.setattr(dual_ascent, "_MANY", 0)
    swept = condition_beliefs(facts, beliefs, error=1e-3)
    apart = np.abs(swept.beliefs - fine.beliefs).sum(axis=1) / 2
    assert swept.error_bound <= 1e-3
    assert np.sqrt((apart**2).mean()) <= swept.error_bound + fine.error_bound


def test_a_sweep_does_not_swing_between_two_of_three_groups():
    facts = Facts.from_tables([(np.zeros(100, int), 1)], [[60, 40, 0]])
    logits = np.tile(np.log([0.5, 0.5, 1e-6]), (100, 1)).T.astype(np.float32)
    soft, most = np.full((1, 3), 0.05**2), np.full((1, 3), np.inf)
    sweeps = TableSweeps(facts.tables, logits, facts.low, facts.high, soft, most)
    gaps = [sweeps.sweep() for _ in range(6)]
    assert gaps[-1] < 1e-3 * gaps[0]


def test_sweeps_alone_settle_large_cells(monkeypatch):
    rng = np.random.default_rng(5)
    beliefs = rng.dirichlet([2, 2], 4000)
    truth = rng.random(4000) < beliefs[:, 1]
    columns = rng.integers(0, 4, (4, 4000))
    counts = np.concatenate([np.bincount(c, truth, minlength=4) for c in columns])
    sizes = np.concatenate([np.bincount(c, minlength=4) for c in columns])
    tables = [(codes, 4) for codes in columns]
    facts = Facts.from_tables(tables, np.stack([sizes - counts, counts], axis=1))
    monkeypatch.setattr(dual_ascent, "_MANY", 0)
    monkeypatch.setattr("scipy.optimize.minimize", None)
    after = condition_beliefs(facts, beliefs, error=1e-3)
    assert after.error_bound <= 1e-3
    assert after.iterations <= 20
    assert np.allclose(facts.count(after.beliefs[:, 1]), counts, atol=0.1)
