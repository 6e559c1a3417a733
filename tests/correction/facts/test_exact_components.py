"""Exact beliefs given facts of any laws, against all vectors of groups; and their calibration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench.claims import Facts
from fpbench.claims.cell_keys import find_transitions
from fpbench.claims.clauses import Clauses
from fpbench.claims.count_laws import CELL_KEY, EXACT, EXPONENTIAL, ROUNDING, CountLaws
from fpbench.correction import condition_beliefs, propagate
from fpbench.correction.conditioning.count_tables import CountLaw
from fpbench.correction.facts import exact_components
from fpbench.correction.poisson_binomial import CountedPeople
from fpbench.reports.rounding import Rounding

NUMBERS = [*range(CELL_KEY), CELL_KEY + 1, CELL_KEY + 4]


def publish(rng, members, truth, k, kinds, width=None):
    """Facts of what is published of true groups, each set by one of these laws."""
    counts = members.T.astype(int) @ np.eye(k)[truth]
    m, sizes = len(counts), members.sum(axis=0)
    draws = np.eye(k, dtype=np.int64)[truth] * rng.integers(1 << 40, size=(len(truth), 1))
    keys = pd.util.hash_array((members.T.astype(np.int64) @ draws).ravel()).reshape(m, k) / 2.0**64
    kind = rng.choice(kinds, m)
    widths = rng.choice([1.0, 2.0, 5.0], m) if width is None else np.full(m, float(width))
    kind = np.where(kind >= CELL_KEY, max(kinds), kind)  # one p-table for all
    widths[kind >= CELL_KEY] = widths.max(initial=0)
    widths = np.where(kind == ROUNDING, np.ceil(widths) + (width is None), widths)
    low, high, rounded = counts.copy(), counts.copy(), np.full((m, k), np.nan)
    for j, (law, w) in enumerate(zip(kind, widths, strict=True)):
        if law == EXACT:
            slack = rng.integers(0, 2) if width is None else 0
            low[j], high[j] = low[j] - slack, high[j] + slack
        elif law == ROUNDING:
            below = counts[j] // w
            rounded[j] = w * (below + (rng.random(k) < counts[j] / w - below))
            low[j], high[j] = rounded[j] - w + 1, rounded[j] + w - 1
        elif law >= CELL_KEY:
            most = law - CELL_KEY + 1
            rows = find_transitions(most, float(w))[np.minimum(counts[j], most).astype(int)]
            rounded[j] = counts[j] + (keys[j][:, None] >= rows.cumsum(axis=1)).sum(axis=1) - most
            low[j], high[j] = Rounding.by_keys(most, float(w)).find_ranges(rounded[j])
        elif law < ROUNDING:
            noise = rng.normal(0, w, k) if law == 1 else rng.laplace(0, w, k)
            low[j] = high[j] = np.rint(counts[j] + noise)
        else:
            loss = [np.abs, np.square, lambda d: np.sqrt(np.abs(d)), lambda d: 1.0 * (d != 0)]
            every = np.arange(sizes[j] + 1.0)
            for group in range(k):
                chance = np.exp(-loss[law - EXPONENTIAL](every - counts[j, group]) / w)
                low[j, group] = high[j, group] = rng.choice(every, p=chance / chance.sum())
    laws = CountLaws(kind.astype(np.int8), np.where(kind > 0, widths, 0.0), rounded)
    return Facts.from_counts(members, low, high, laws=laws)


def enumerate_beliefs(facts, beliefs, possible):
    """(n, K) by all vectors of groups."""
    n, k = beliefs.shape
    vectors = np.array(list(product(range(k), repeat=n)))
    ones = (vectors[:, :, None] == np.arange(k)).astype(np.int64)
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(possible, beliefs, 0))[np.arange(n), vectors].sum(axis=1)
    members = facts.membership.toarray().astype(np.int64)
    for number in range(len(facts)):
        counts = np.einsum("ang,n->ag", ones, members[:, number])
        if facts.laws.kind[number] < CELL_KEY:
            logs += facts.weigh(number, counts)
            continue
        alone = facts.take([number])
        for group in range(k):
            alone.laws.rounded[:] = np.nan
            alone.laws.rounded[0, group] = facts.laws.rounded[number, group]
            own = alone.weigh(0, counts)
            for other in range(number):  # the same people have the same noise
                if facts.laws.kind[other] >= CELL_KEY:
                    apart = members[:, number] != members[:, other]
                    same = ~(apart & ones[:, :, group].astype(bool)).any(axis=1)
                    equal = facts.laws.rounded[[number, other], group]
                    own[same & np.isfinite(own)] = 0 if equal[0] == equal[1] else -np.inf
            logs += own
    mass = np.exp(logs - logs.max())
    return np.einsum("a,ang->ng", mass, ones) / mass.sum()


def draw_members(rng, n, nested):
    if not nested:
        return rng.random((n, int(rng.integers(1, 5)))) < 0.5
    code, within = rng.integers(0, 3, n), rng.integers(0, 2, n)
    cells = [np.ones(n, bool), *(code == c for c in range(3))]
    cells += [(code == c) & (within == s) for c, s in product(range(3), (0, 1))]
    members = np.column_stack(cells)
    return members[:, rng.random(members.shape[1]) < 0.7]


@given(
    st.integers(0, 2**32),
    st.sampled_from([2, 2, 3]),
    st.booleans(),
    st.sampled_from([*NUMBERS, 99]),
)
def test_beliefs_are_those_of_all_vectors_whatever_the_laws(seed, k, nested, law):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9 if k == 2 else 6))
    beliefs = rng.dirichlet(np.full(k, 1.5), n)
    truth = (rng.random((n, 1)) > beliefs.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    facts = publish(rng, draw_members(rng, n, nested), truth, k, NUMBERS if law == 99 else [law])
    possible = propagate(facts)
    possible[0] = np.arange(k) == truth[0]  # somebody is known
    after = condition_beliefs(facts, beliefs, possible)
    assert after.exact.all()
    assert after.error_bound == 0
    wanted = enumerate_beliefs(facts, beliefs, possible)
    np.testing.assert_allclose(after.beliefs, wanted, atol=1e-8)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.floats(0.05, 6))
def test_counts_of_many_people_are_those_of_a_sum_person_by_person(seed, spread):
    rng = np.random.default_rng(seed)
    logits = rng.normal(rng.normal(0, 3), spread, int(rng.integers(1, 250)))
    logs = -np.logaddexp(0, np.column_stack([-logits, logits]))
    quick, slow = CountedPeople(logits), CountLaw(logs)
    np.testing.assert_allclose(quick.box, slow.box, rtol=1e-7, atol=1e-7)
    at = rng.integers(0, len(logits) + 1)
    weights = -np.abs(np.arange(len(logits) + 1) - at) * rng.uniform(0.1, 30)
    weights[rng.integers(0, len(logits) + 1)] += rng.uniform(0, 500)
    np.testing.assert_allclose(quick.walk_back(weights), slow.walk_back(weights), atol=1e-8)


@pytest.mark.parametrize("law", NUMBERS)
def test_cells_of_many_people_within_everybody(law):
    """Against the same sums with nothing trimmed, and no tree of convolutions."""
    rng = np.random.default_rng(law)
    n = 340
    code = rng.choice(3, n, p=[0.5, 0.45, 0.05])
    members = np.column_stack([np.ones(n, bool), *(code == c for c in range(3))])
    chances = rng.beta(2, 3, n)
    beliefs = np.column_stack([1 - chances, chances])
    truth = (rng.random(n) < chances).astype(int)
    facts = publish(rng, members, truth, 2, [law], width=6)
    after = condition_beliefs(facts, beliefs)
    assert after.exact.all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_components, "_FEW", n)
        patch.setattr(exact_components, "_TRIM", np.inf)
        patch.setattr(exact_components, "_STEEP", 0.0)
        patch.setattr(exact_components, "_MOST_STEPS", 1 << 40)
        slow = condition_beliefs(facts, beliefs)
    assert slow.exact.all()
    np.testing.assert_allclose(after.beliefs, slow.beliefs, atol=1e-8)


def test_counts_that_were_left_out_and_matter_are_noticed(monkeypatch):
    """Two cells whose noisy counts are far from what everybody's exact count leaves."""
    monkeypatch.setattr(exact_components, "_TRIM", 10.0)
    n = 60
    members = np.column_stack([np.ones(n, bool), np.arange(n) < 30, np.arange(n) >= 30])
    beliefs = np.full((n, 2), 0.5)
    low = np.array([[10.0, 50], [24, 6], [24, 6]])
    facts = Facts.from_counts(members, low, scale=[0.0, 1.0, 1.0])
    assert not condition_beliefs(facts, beliefs).exact.any()
    monkeypatch.setattr(exact_components, "_TRIM", 200.0)
    assert condition_beliefs(facts, beliefs).exact.all()


def test_what_is_not_linked_to_large_crossing_sets_is_exact_beside_them():
    rng = np.random.default_rng(0)
    n = 100
    members = np.zeros((n, 12), bool)
    members[:90, :10] = rng.random((90, 10)) < 0.5
    members[90:95, 10] = members[95:, 11] = True
    beliefs = rng.dirichlet([2, 2], n)
    truth = (rng.random(n) < beliefs[:, 1]).astype(int)
    facts = publish(rng, members, truth, 2, [ROUNDING], width=5)
    after = condition_beliefs(facts, beliefs)
    assert after.exact.tolist() == [not members[i, :10].any() for i in range(n)]
    assert after.error_bound > 0
    for rows in (slice(90, 95), slice(95, 100)):
        own = facts.take([10 if rows.start == 90 else 11])
        np.testing.assert_allclose(
            after.beliefs[rows], condition_beliefs(own, beliefs).beliefs[rows], atol=1e-12
        )


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 2, *range(EXPONENTIAL, CELL_KEY)]))
def test_as_noise_goes_to_nothing_beliefs_become_those_of_the_exact_table(seed, nested, law):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    beliefs = rng.dirichlet([2, 2], n)
    truth = (rng.random(n) < beliefs[:, 1]).astype(int)
    members = draw_members(rng, n, nested)
    exact = publish(rng, members, truth, 2, [EXACT], width=0)
    wanted = condition_beliefs(exact, beliefs, propagate(exact)).beliefs
    for width, most in ((0.08, 1e-3), (0.02, 1e-12), (1e-6, 1e-12)):
        facts = publish(rng, members, truth, 2, [law], width=width)
        if (facts.low == facts.count(np.eye(2)[truth])).all():  # noise changed nothing
            found = condition_beliefs(facts, beliefs).beliefs
            np.testing.assert_allclose(found, wanted, atol=most)


@given(st.integers(0, 2**32))
def test_rounding_to_multiples_of_1_and_ranges_of_one_number_are_exact(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    beliefs = rng.dirichlet([2, 2], n)
    truth = (rng.random(n) < beliefs[:, 1]).astype(int)
    members = draw_members(rng, n, nested=True)
    exact = publish(rng, members, truth, 2, [EXACT], width=0)
    rounded = publish(rng, members, truth, 2, [ROUNDING], width=1)
    np.testing.assert_allclose(
        condition_beliefs(rounded, beliefs).beliefs, condition_beliefs(exact, beliefs).beliefs,
        atol=1e-9,
    )  # fmt: skip


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 10))
def test_as_the_variance_of_cell_keys_goes_to_0_beliefs_become_those_of_the_exact_table(
    seed, nested, most
):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    beliefs = rng.dirichlet([2, 2], n)
    truth = (rng.random(n) < beliefs[:, 1]).astype(int)
    members = draw_members(rng, n, nested)
    exact = publish(rng, members, truth, 2, [EXACT], width=0)
    wanted = condition_beliefs(exact, beliefs, propagate(exact)).beliefs
    for variance, off in ((1e-4, 0.05), (1e-9, 1e-4)):
        facts = publish(rng, members, truth, 2, [CELL_KEY + most - 1], width=variance)
        if (facts.laws.rounded == facts.count(np.eye(2)[truth])).all():  # nothing was changed
            found = condition_beliefs(facts, beliefs).beliefs
            np.testing.assert_allclose(found, wanted, atol=off)


@given(st.integers(0, 2**32), st.sampled_from([2, 3]))
@settings(max_examples=60, deadline=None)
def test_beliefs_keep_clauses_of_any_rows(seed, k):
    """Those of all vectors that keep them, also where some people are decided."""
    rng = np.random.default_rng(seed)
    n, sizes = int(rng.integers(2, 8)), rng.integers(1, 4, 2)
    tables = [(rng.integers(-1, size, n), int(size)) for size in sizes]
    m, truth = int(sizes.sum()), rng.integers(0, k, n)
    terms, rows = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    sets, group = rng.integers(0, m, (rows, terms)), rng.integers(0, k, (rows, terms))
    factors = rng.integers(-3, 4, (rows, terms))
    clause = np.unique(rng.integers(0, rows, rows), return_inverse=True)[1]
    clause.sort()
    members = np.column_stack([codes[:, None] == np.arange(size) for codes, size in tables])
    sums = (factors * (members.T @ np.eye(k)[truth])[sets, group]).sum(axis=1).astype(int)
    first = np.diff(clause, prepend=-1) > 0  # the other rows of a clause need not hold
    most = sums + np.where(first, rng.integers(0, 2, rows), rng.integers(-3, 2, rows))
    clauses = Clauses.of(sets, group, factors, most, clause)
    facts = Facts.from_tables(
        tables, np.zeros((m, k)), np.full((m, k), n), clauses=clauses, derived=True
    )
    beliefs = rng.dirichlet(np.ones(k), n).clip(1e-3)
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    possible = rng.random((n, k)) < 0.9
    possible[np.arange(n), truth] = True
    vectors = np.array(list(product(range(k), repeat=n)))
    kept = [facts.allows(v) and possible[np.arange(n), v].all() for v in vectors]
    mass = beliefs[np.arange(n), vectors].prod(axis=1) * kept
    wanted = np.einsum("a,ang->ng", mass, vectors[:, :, None] == np.arange(k)) / mass.sum()
    found = condition_beliefs(facts, beliefs, possible)
    assert found.exact.all()
    np.testing.assert_allclose(found.beliefs, wanted, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("law", NUMBERS)
def test_who_is_believed_by_more_than_999_in_1000_is_right_995_times_in_1000(law):
    """Of simulated worlds, exact and by maximum entropy; and beliefs expect what they get."""
    rng = np.random.default_rng(law)
    for limit, worlds, off in ((exact_components._MOST_STEPS, 400, 0.03), (-1, 100, 0.06)):
        sure, right, expected, got, people = 0, 0, 0.0, 0, 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact_components, "_MOST_STEPS", limit)
            for _ in range(worlds):
                n = int(rng.integers(4, 13))
                beliefs = rng.dirichlet([1, 1], n)
                truth = (rng.random(n) < beliefs[:, 1]).astype(int)
                members = draw_members(rng, n, bool(rng.integers(0, 2)))
                facts = publish(rng, members, truth, 2, [law])
                if not len(facts):
                    continue
                after = condition_beliefs(facts, beliefs, propagate(facts), iterations=100).beliefs
                named = after.argmax(axis=1)
                new = (after.max(axis=1) > 0.999) & (beliefs.max(axis=1) <= 0.999)
                sure, right = sure + new.sum(), right + (named == truth)[new].sum()
                expected, got = expected + after.max(axis=1).sum(), got + (named == truth).sum()
                people += n
        assert right >= 0.995 * sure - (sure < 200), (law, limit, right, sure)
        assert expected / people == pytest.approx(got / people, abs=off)
