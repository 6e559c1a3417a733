from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr, xlogy
from scipy.stats import binom

from fpbench import InputError
from fpbench.correction import (
    compute_count_leak,
    count_leak,
    limit_leak,
    limit_leak_by_error,
    limit_realised_gain,
)
from fpbench.correction.leak_limits import limit_leaks_by_error


def two(chances):
    """Beliefs (n, 2) of probabilities of group 1."""
    chances = np.asarray(chances, dtype=float)
    return np.column_stack([1 - chances, chances])


def worlds(beliefs):
    """All assignments of groups (K^n, n) and their probabilities."""
    people, groups = beliefs.shape
    every = np.array(list(product(range(groups), repeat=people)))
    return every, np.prod(beliefs[np.arange(people), every], axis=1)


def tell(beliefs, channel):
    """Information in nats and leak of a channel: P(disclosed | world), (worlds, values)."""
    every, prior = worlds(beliefs)
    joint = prior[:, None] * channel
    disclosed = joint.sum(axis=0)
    information = xlogy(joint, joint).sum() - xlogy(prior, prior).sum()
    information -= xlogy(disclosed, disclosed).sum()
    right = [
        max(joint[every[:, person] == group, value].sum() for group in range(beliefs.shape[1]))
        for person in range(beliefs.shape[0])
        for value in range(channel.shape[1])
    ]
    return max(information, 0.0), sum(right) / len(beliefs) - beliefs.max(axis=1).mean()


@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 2), (3, 3), (2, 4)]))
def test_no_channel_leaks_more_than_the_limit(seed, shape):
    rng = np.random.default_rng(seed)
    beliefs = rng.dirichlet(np.full(shape[1], rng.choice([0.3, 1.0, 20.0])), shape[0])
    values = int(rng.integers(2, 6))
    channel = rng.dirichlet(np.full(values, rng.choice([0.05, 1.0])), shape[1] ** shape[0])
    nats, leak = tell(beliefs, channel)
    limit = limit_leak(beliefs, nats)
    error = 1 - beliefs.max(axis=1).mean()
    by_error = limit_leak_by_error(error, nats, shape[0], shape[1])
    assert leak <= limit + 1e-9
    assert limit <= by_error + 1e-9
    assert by_error <= math.sqrt(error * nats / shape[0]) + 1e-9


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_the_limit_is_reached_by_randomised_response(groups):
    # Everybody's posterior has one value, whichever group is named: all nats are spent alike.
    keep = 0.55
    channel = np.full((groups, groups), (1 - keep) / (groups - 1))
    np.fill_diagonal(channel, keep)
    beliefs = np.full((1, groups), 1 / groups)
    nats, leak = tell(beliefs, channel)
    assert limit_leak(np.repeat(beliefs, 7, axis=0), 7 * nats) == pytest.approx(leak, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0, 6))
def test_two_groups_are_a_case_of_many(seed, nats):
    chances = np.random.default_rng(seed).beta(0.7, 0.9, 40)
    third = np.column_stack([two(chances), np.zeros(40)])
    assert limit_leak(third, nats) == pytest.approx(limit_leak(two(chances), nats), abs=1e-9)
    assert limit_leak(two(chances), nats, household_sizes=np.ones(40)) == limit_leak(
        two(chances), nats
    )


# Everybody at one half, counts of two classes, one a quarter: nats, limit, sqrt(nats / 2n).
@pytest.mark.parametrize(
    ("people", "nats", "limit"),
    [
        (50, 4.5102, 0.2091),
        (500, 6.8317, 0.08245),
        (5_000, 9.1344, 0.03021),
        (500, 1.0281, 0.03205),
    ],
)
def test_the_limit_of_people_of_whom_nothing_is_known(people, nats, limit):
    beliefs = two(np.full(people, 0.5))
    assert limit_leak(beliefs, nats) == pytest.approx(limit, rel=1e-3)
    assert limit_leak_by_error(0.5, nats, people) == pytest.approx(limit, rel=1e-3)


def test_the_limit_by_error_of_adult():
    assert limit_leak_by_error(0.1487, 8.49, 15_074) == pytest.approx(0.00915, abs=1e-5)


def test_a_little_and_all_of_the_information():
    beliefs = two([0.5, 0.7, 0.9])
    assert limit_leak(beliefs, 0) == 0
    entropy = (entr(beliefs)).sum()
    assert limit_leak(beliefs, entropy) == pytest.approx(0.3)
    assert limit_leak(two([0.0, 1.0]), 5.0) == 0
    assert limit_leak_by_error(0.0, 5.0, 10) == 0
    assert limit_leak_by_error(0.3, 1e9, 10) == limit_leak_by_error(0.3, 1e9, 10, 3) == 0.3
    three = np.full((4, 3), 1 / 3)
    assert limit_leak(three, 0) == pytest.approx(0, abs=1e-9)
    assert limit_leak(three, 4 * math.log(3)) == pytest.approx(2 / 3)


def test_many_people_are_priced_by_a_sample():
    beliefs = np.random.default_rng(0).dirichlet(np.full(3, 0.7), 120_000)
    few = beliefs[:2_000]
    whole = limit_leak(np.tile(few, (60, 1)), 600.0)
    assert whole == pytest.approx(limit_leak(few, 10.0), rel=1e-5)
    assert whole >= limit_leak(few, 10.0) - 1e-12


@pytest.mark.parametrize(("size", "leak"), [(3, 0.031), (5, 0.040), (20, 0.081)])
def test_people_who_live_together_leak_more_than_the_limit_for_strangers(size, leak):
    # One bit: whether most of about 500 / size households are of group 1; members are alike.
    households = 500 // size
    households -= 1 - households % 2
    beliefs, sizes = two(np.full(households * size, 0.5)), np.full(households * size, size)
    half = households // 2
    gain = 0.5 * math.comb(households - 1, half) * 0.5 ** (households - 1)
    assert gain == pytest.approx(leak, abs=0.002)
    assert limit_leak(beliefs, math.log(2)) < gain
    assert gain <= limit_leak(beliefs, math.log(2), household_sizes=sizes)


def test_calibrated_beliefs_that_lump_people_together_are_exceeded():
    # Everybody is believed to be .9 of group 1: right on average, but 200 of the 1,000 are at one
    # half and the others certain. 12 bits name the majority of 12 blocks of 17 of the 200.
    gain = 12 * 17 * 0.5 * math.comb(16, 8) * 0.5**16 / 1_000
    assert gain == pytest.approx(0.0200, abs=2e-4)
    nats = 12 * math.log(2)
    coarse = limit_leak(two(np.full(1_000, 0.9)), nats)
    assert coarse < gain
    assert coarse == pytest.approx(0.0037, abs=1e-4)
    safe = limit_leak_by_error(0.1, nats, 1_000)
    assert safe > gain
    assert safe == pytest.approx(0.0286, abs=1e-4)


@pytest.mark.parametrize(
    ("most", "gain", "limit"), [(200, 0.207, 0.221), (150, 0.403, 0.412), (100, 0.601, 0.608)]
)
def test_what_was_claimed_may_tell_more_than_its_nats_are_worth_on_average(most, gain, limit):
    # "At most k of 500 are of group 1", everybody at one half and a bit more.
    counts = np.arange(most + 1)
    nats = -binom.logcdf(most, 500, 0.5)
    law = binom.pmf(counts, 500, 0.5) / binom.cdf(most, 500, 0.5)
    expected = 1 - 2 * (law @ counts) / 500  # of naming group 0 instead of group 1
    assert expected == pytest.approx(gain, abs=1e-3)
    beliefs = two(np.full(500, 0.5))
    realised = limit_realised_gain(beliefs, nats)
    assert realised > expected
    assert realised == pytest.approx(limit, abs=1e-3)
    assert limit_leak(beliefs, nats) < expected  # the wrong formula
    assert math.sqrt(nats / 1_000) < expected


def test_realised_gains_exceed_their_limit_as_seldom_as_it_says():
    rng, delta = np.random.default_rng(3), 0.05
    chances = rng.uniform(0.3, 0.9, 11)
    beliefs = two(chances)
    every, prior = worlds(beliefs)
    counts = every.sum(axis=1)
    law = np.bincount(counts, prior, 12)
    best = chances > 0.5
    exceeded = 0.0
    for count in range(12):
        inside = counts == count
        posterior = prior[inside] @ every[inside] / law[count]
        gains = ((every[inside] == (posterior > 0.5)).sum(1) - (every[inside] == best).sum(1)) / 11
        exceeded += prior[inside][gains > limit_realised_gain(
            beliefs, -math.log(law[count]), delta=delta
        ) + 1e-12].sum()  # fmt: skip
        expected = prior[inside] @ gains / law[count]
        assert expected <= limit_realised_gain(beliefs, -math.log(law[count])) + 1e-12
    assert exceeded <= delta


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_the_exact_leak_of_counts_is_that_of_all_worlds(seed, people):
    rng = np.random.default_rng(seed)
    chances = rng.choice([0.0, 1.0, 0.5, 0.2, 0.2, *rng.uniform(size=4)], people)
    cells = rng.integers(0, 3, people)
    every, _ = worlds(two(chances))
    sums = np.stack([every[:, cells == cell].sum(axis=1) for cell in range(3)], axis=1)
    _, value = np.unique(sums, axis=0, return_inverse=True)
    channel = np.eye(value.max() + 1)[value.ravel()]
    assert compute_count_leak(chances, cells) == pytest.approx(
        tell(two(chances), channel)[1], abs=1e-12
    )


@pytest.mark.parametrize(("people", "leak"), [(50, 0.075933), (500, 0.024400), (5_000, 0.007706)])
def test_the_exact_leak_of_counts_of_people_of_whom_nothing_is_known(people, leak):
    cells = np.arange(people) >= people - people // 4
    assert compute_count_leak(np.full(people, 0.5), cells) == pytest.approx(leak, abs=6e-7)


def test_a_count_is_worth_less_than_a_person_however_many_people():
    # f(1/2) / (16 mean p (1 - p)) = .375 a count of uniform beliefs.
    chances = (np.arange(20_000) + 0.5) / 20_000
    cells = np.arange(20_000) % 4 == 0
    people = compute_count_leak(chances, cells) * 20_000
    assert people == pytest.approx(0.75, rel=0.02)
    # All that the counts tell is at most sum_i I_i, about half a nat each.
    assert compute_count_leak(chances, cells) <= limit_leak(two(chances), 1.01)


@pytest.mark.slow
@pytest.mark.parametrize("block", [1 << 17, 100])
@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_people_and_columns_left_out_add_nothing(spread, block, monkeypatch):
    # Beliefs far from one half beside many: the shortcuts must not lose the few who change.
    monkeypatch.setattr(count_leak, "_BLOCK", block)
    rng = np.random.default_rng(0)
    chances = np.concatenate(
        [np.full(300, 0.02), rng.uniform(0.5 - spread, 0.5 + spread, 400), np.full(40, 0.97)]
    )
    one = np.zeros(len(chances), int)
    law = np.array([1.0])
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    gained = 0.0
    for chance in chances:
        without = np.zeros(len(law) - 1)
        if chance <= 0.5:
            for count in range(len(without)):
                before = without[count - 1] if count else 0.0
                without[count] = (law[count] - chance * before) / (1 - chance)
        else:
            for count in reversed(range(len(without))):
                after = without[count + 1] if count + 1 < len(without) else 0.0
                without[count] = (law[count + 1] - (1 - chance) * after) / chance
        best = np.maximum(
            chance * np.concatenate([[0.0], without]), (1 - chance) * np.append(without, 0.0)
        )
        gained += best.sum() - max(chance, 1 - chance)
    assert compute_count_leak(chances, one) * len(chances) == pytest.approx(gained, abs=1e-10)


@pytest.mark.parametrize(
    ("beliefs", "message"),
    [
        ([0.5, 0.5], r"must be \(n, K\) with K at least 2, not \(2,\)"),
        ([[0.5, 0.6]], "must sum to 1; those of person 0 sum to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], "that of person 1 in group 1 is -0.5"),
        ([[0.5, float("nan")]], "that of person 0 in group 1 is nan"),
        ([["a", "b"]], "must be (n, K) numbers"),
        (np.zeros((0, 2)), "with K at least 2"),
    ],
)
def test_beliefs_that_are_none_are_refused(beliefs, message):
    with pytest.raises(InputError) as refused:
        limit_leak(beliefs, 1.0)
    assert message.replace("\\", "") in str(refused.value)


def test_an_entropy_that_is_rounded_below_0_is_0():
    beliefs = np.full((4, 2), 0.5)
    for sizes in (None, [2, 2, 1, 1]):
        assert limit_leak(beliefs, -1e-16, household_sizes=sizes) == 0
        assert limit_leak(beliefs[:, [0, 1, 1]] / 1.5, -1e-16, household_sizes=sizes) < 1e-6
    assert limit_leak_by_error(0.5, -1e-16, 4) == limit_leak_by_error(0.5, 0, 4)
    assert limit_realised_gain(beliefs, -1e-16) == limit_realised_gain(beliefs, 0)


def test_other_wrong_numbers_are_refused():
    beliefs = two([0.4, 0.6])
    with pytest.raises(InputError, match="nats must be at least 0 and finite, not -1"):
        limit_leak(beliefs, -1)
    with pytest.raises(InputError, match=r"household sizes must be \(2,\) numbers of at least 1"):
        limit_leak(beliefs, 1, household_sizes=[1, 0])
    with pytest.raises(InputError, match="error must be a share"):
        limit_leak_by_error(1.2, 1, 10)
    with pytest.raises(InputError, match="people must be at least 1 and groups 2"):
        limit_leak_by_error(0.2, 1, 0)
    with pytest.raises(InputError, match="delta must be above 0"):
        limit_realised_gain(beliefs, 1, delta=0)
    with pytest.raises(InputError, match="of the same people"):
        compute_count_leak([0.5], [1, 2])
    with pytest.raises(InputError, match="probabilities of group 1"):
        compute_count_leak([1.5], [1])


def bisect_limit(error, nats, people):
    """Two groups, in exact decimals: 2 e (q - 1/2) where h(q) = ln 2 - I / (2 n e)."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 40
        error = min(Decimal(error), Decimal("0.5"))
        wanted = Decimal(nats) / (2 * Decimal(people) * error)
        low, high = Decimal(0), Decimal(1)
        for _ in range(110):
            x = (low + high) / 2
            spent = ((1 + x) * (1 + x).ln() + (1 - x) * (1 - x).ln()) / 2
            low, high = (x, high) if spent < wanted else (low, x)
        return float(error * high)


@given(
    st.floats(1e-4, 1.0), st.floats(-9, 0, exclude_max=True), st.sampled_from([1, 7, 15_074, 10**6])
)
def test_many_limits_are_those_of_exact_arithmetic_and_never_below(error, share, people):
    """Nats from one billionth to nearly all that can be told of the people who are unsure."""
    nats = 2 * people * min(error, 0.5) * math.log(2) * 10**share
    exact = bisect_limit(error, nats, people)
    (limit,) = limit_leaks_by_error(*(np.array([one]) for one in (error, nats, people, 2.0)))
    assert exact <= limit <= exact + 1e-9
    assert limit == limit_leak_by_error(error, nats, people)


def test_many_limits_at_once_are_each_its_own_and_unknown_ones_stay_unknown():
    errors = np.array([0.15, 0.15, 0.0, 0.3, np.nan, 0.15, 0.9, 0.15])
    nats = np.array([8.5, 8.5, 5.0, 1e9, 8.5, np.nan, 3.0, 0.0])
    people = np.array([15_074.0] * 3 + [10.0] + [15_074.0] * 4)
    groups = np.array([2.0, 5.0, 2.0, 3.0, 2.0, 2.0, 5.0, 2.0])
    limits = limit_leaks_by_error(errors, nats, people, groups)
    assert np.isnan(limits[4:6]).all()
    for i in (0, 1, 2, 3, 6, 7):
        alone = limit_leak_by_error(errors[i], nats[i], int(people[i]), int(groups[i]))
        assert limits[i] == alone
    assert limits[1] == pytest.approx(math.sqrt(0.15 * 8.5 / 15_074)) and limits[1] > limits[0]
    assert limits[2] == limits[7] == 0
