"""What facts tell, at most, against the exact mutual information by enumeration."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import xlogy

from fpbench import InputError
from fpbench.claims import Facts, fact_information, limit_fact_nats
from fpbench.claims.count_laws import GAUSSIAN, LAPLACE, ROUNDING, CountLaws
from fpbench.claims.fact_information import (
    _compute_noise_nats,
    _compute_noise_variance,
    _Part,
    _predict,
)
from fpbench.claims.information import limit_count_nats

pytestmark = pytest.mark.numeric


def draw_world(seed, groups=None):
    """Chances, sets, all assignments' probabilities, and their counts (A, M, K)."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 7)), groups or int(rng.integers(2, 4))
    chances = rng.dirichlet(np.full(k, rng.choice([0.2, 1, 20])), n)
    members = rng.random((n, int(rng.integers(1, 6)))) < 0.6
    members[0, ~members.any(axis=0)] = True
    members = np.unique(members, axis=1)
    assignments = np.array(list(product(range(k), repeat=n)))
    ones = assignments[:, :, None] == np.arange(k)
    probability = np.where(ones, chances, 1).prod(axis=2).prod(axis=1)
    counts = np.einsum("ang,nm->amg", ones.astype(int), members.astype(int))
    return chances, members, probability, counts, rng


def find_entropy(outcomes, probability):
    """Entropy of what is said, a row for each assignment."""
    _, codes = np.unique(outcomes.reshape(len(outcomes), -1), axis=0, return_inverse=True)
    mass = np.bincount(codes.ravel(), probability)
    mass = mass[mass > 0]
    return float(-(mass * np.log(mass)).sum())


def check(facts, chances, exact):
    assert exact <= limit_fact_nats(facts, chances) + 1e-9
    assert exact <= limit_fact_nats(facts) + 1e-9
    assert limit_fact_nats(facts) <= facts.people * math.log(facts.groups)


@given(st.integers(0, 2**32))
def test_exact_counts_tell_no_more_than_the_limit(seed):
    chances, members, probability, counts, _ = draw_world(seed)
    check(Facts.from_counts(members, counts[0]), chances, find_entropy(counts, probability))


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 4))
def test_sets_in_blocks_tell_no_more_than_the_limit(seed, first, own):
    chances, members, probability, counts, _ = draw_world(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fact_information, "_FIRST", first)
        patch.setattr(fact_information, "_OWN", own)
        patch.setattr(fact_information, "_GIVEN", 2)
        facts = Facts.from_counts(members, counts[0])
        check(facts, chances, find_entropy(counts, probability))


@given(st.integers(0, 2**32), st.integers(1, 5), st.booleans())
def test_rounded_counts_tell_no_more_than_the_limit(seed, step, some):
    chances, members, probability, counts, rng = draw_world(seed)
    offset = rng.integers(0, step, counts.shape[1:])
    loose = rng.random(counts.shape[1]) < (0.5 if some else 1)
    steps = np.where(loose, step, 1)[:, None]
    low = (counts + offset) // steps * steps - offset
    exact = find_entropy(low, probability)
    published = low[rng.integers(len(low))]
    check(Facts.from_counts(members, published, published + steps - 1), chances, exact)


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_counts_rounded_at_random_tell_no_more_than_the_limit(seed, base):
    """Of one set, all its groups, each rounded to a multiple of the base that keeps the mean."""
    chances, members, probability, counts, rng = draw_world(seed)
    members, counts = members[:, :1], counts[:, 0]
    if members.sum() < 2 * base - 1:
        return  # the range may be everybody, which facts take for no publication
    values, codes = np.unique(counts, axis=0, return_inverse=True)
    mass = np.bincount(codes.ravel(), probability)
    below, up = values // base, values % base / base
    ups = np.array(list(product((0, 1), repeat=counts.shape[1])))
    chance = np.where(ups == 1, up[:, None], 1 - up[:, None]).prod(axis=2)  # (values, ups)
    published = base * (below[:, None] + ups)
    entropy = find_entropy(
        published.reshape(-1, published.shape[2]), (mass[:, None] * chance).ravel()
    )
    noise = -(mass[:, None] * chance * np.log(np.maximum(chance, 1e-300))).sum()
    heard = published.reshape(-1, published.shape[2])[
        rng.choice(chance.size, p=chance.ravel() / len(mass))
    ]
    facts = Facts.from_counts(members, [heard - base + 1], [heard + base - 1])
    check(facts, chances, entropy - noise)


@given(st.integers(0, 2**32), st.integers(2, 5), st.booleans())
def test_rounded_counts_of_several_sets_tell_no_more_than_the_limit(seed, base, hidden):
    """All that is published: some sets rounded, others exact or hidden by a rule about groups."""
    chances, members, probability, counts, rng = draw_world(seed, groups=2)
    members, counts = members[:, :3], counts[:, :3]
    loose = rng.random(members.shape[1]) < 0.7
    # The law of what is published, set by set and group by group: how far up it was rounded.
    mass, rows, noise = probability, [()] * len(counts), 0.0
    for m, k in product(range(members.shape[1]), range(2)):
        values = counts[:, m, k][np.arange(len(mass)) % len(counts)]
        if not loose[m]:
            rows = [(*row, v) for row, v in zip(rows, values, strict=True)]
            continue
        up = values % base / base
        ways = np.stack([mass * (1 - up), mass * up])
        noise -= xlogy(ways, np.stack([1 - up, up])).sum()
        low = values // base * base
        told = list(zip(rows, low, strict=True))
        rows = [(*row, v + more) for more in (0, base) for row, v in told]
        mass = ways.ravel()
    exact = find_entropy(np.array(rows), mass) - noise
    rounded = np.where(loose[:, None], np.rint(counts[0] / base) * base, np.nan)
    low, high = (np.where(loose[:, None], rounded + d, counts[0]) for d in (1 - base, base - 1))
    laws = CountLaws(np.where(loose, ROUNDING, 0).astype(np.int8), loose * float(base), rounded)
    facts = Facts.from_counts(members, low, high, laws=laws)
    if hidden:  # NaN stands for any exact number
        unknown = np.where(facts.laws.kind[:, None] > 0, facts.low, np.nan)
        high = np.where(facts.laws.kind[:, None] > 0, facts.high, np.nan)
        facts = replace(facts, low=unknown, high=high)
    check(facts, chances, exact)


def test_the_law_of_rounding_tells_less_than_the_range():
    members = np.ones((200, 1), bool)
    for base in (3, 10, 30):
        rounded = np.array([[60.0, 140.0]])
        laws = CountLaws(np.array([ROUNDING], np.int8), np.array([float(base)]), rounded)
        low, high = rounded - base + 1, rounded + base - 1
        law = limit_fact_nats(Facts.from_counts(members, low, high, laws=laws))
        count = limit_fact_nats(Facts.from_counts(members, [[60, 140]]))
        assert law < limit_fact_nats(Facts.from_counts(members, low, high)) - 0.1
        # As a uniform error of this width: ln (base) less than the count.
        assert law < max(count - math.log(base), 0) + 0.8


@given(st.integers(0, 2**32), st.sampled_from(["sigma", "scale"]), st.floats(0.3, 5))
def test_a_noisy_count_tells_no_more_than_the_limit(seed, law, size):
    """Of one set with one group measured, by integration over the measurement."""
    chances, members, probability, counts, _ = draw_world(seed)
    count = counts[:, 0, 0]
    at = np.linspace(count.min() - 25 * size, count.max() + 25 * size, 20_001)
    away = (at[:, None] - np.arange(count.max() + 1)) / size
    density = np.exp(-(away**2) / 2 if law == "sigma" else -abs(away))
    density /= size * (math.sqrt(2 * math.pi) if law == "sigma" else 2)
    mixture = density @ np.bincount(count, probability)
    entropy = -np.trapezoid(mixture * np.log(np.maximum(mixture, 1e-300)), at)
    own = math.log(size) + (
        math.log(2 * math.pi * math.e) / 2 if law == "sigma" else math.log(2 * math.e)
    )
    k = chances.shape[1]
    low = np.array([[0.5] + [-np.inf] * (k - 1)])
    facts = Facts.from_counts(members[:, :1], low, np.abs(low), **{law: size})
    # A value between two kinks of the Laplace density costs the rule of trapezoids about 1e-6.
    check(facts, chances, entropy - own - 1e-5)


@given(st.integers(0, 2**32), st.sampled_from(["sigma", "scale"]), st.floats(0.1, 6))
def test_a_count_with_whole_noise_tells_no_more_than_the_limit(seed, law, size):
    chances, members, probability, counts, _ = draw_world(seed)
    steps = np.arange(-400, 401)
    noise = np.exp(-((steps / size) ** 2) / 2 if law == "sigma" else -abs(steps) / size)
    noise /= noise.sum()
    measured = np.convolve(noise, np.bincount(counts[:, 0, 0], probability))
    entropies = [-(p[p > 0] * np.log(p[p > 0])).sum() for p in (measured, noise)]
    low = np.array([[0.5] + [-np.inf] * (chances.shape[1] - 1)])
    facts = Facts.from_counts(members[:, :1], low, np.abs(low), **{law: size})
    check(facts, chances, entropies[0] - entropies[1])


@given(st.sampled_from([GAUSSIAN, LAPLACE]), st.one_of(st.floats(0.1, 1.2), st.floats(1.2, 8)))
def test_noise_has_the_entropy_and_the_variance_of_its_law(kind, width):
    """The less of the entropies of real and of whole numbers; a density of whole ones: 1/12 more."""
    sigma, scale = (width, 0.0) if kind == GAUSSIAN else (0.0, width)
    facts = Facts.from_counts([[True], [True]], [[1.0, 1.0]], sigma=sigma, scale=scale)
    real = stats.norm(scale=width) if kind == GAUSSIAN else stats.laplace(scale=width)
    whole = np.exp(real.logpdf(np.arange(-300, 301)) - real.logpdf(0))
    entropy = min(real.entropy(), stats.entropy(whole))
    assert _compute_noise_nats(facts) == pytest.approx([entropy], abs=1e-6)
    assert _compute_noise_variance(facts) == pytest.approx([real.var() + 1 / 12])


@given(st.integers(2, 50))
def test_a_rounding_at_random_has_those_of_a_uniform_number(base):
    rounded = np.full((1, 2), float(base))
    laws = CountLaws(np.array([ROUNDING], np.int8), np.array([float(base)]), rounded)
    members, low, high = np.ones((2 * base, 1), bool), rounded - base + 1, rounded + base - 1
    facts = Facts.from_counts(members, low, high, laws=laws)
    assert _compute_noise_nats(facts) == pytest.approx([math.log(base)])
    variance = np.var(np.arange(base)) + 1 / 12
    assert _compute_noise_variance(facts) == pytest.approx([variance])


@given(st.integers(0, 2**32))
def test_errors_of_prediction_are_schur_complements(seed):
    rng = np.random.default_rng(seed)
    members = np.unique(rng.random((30, 9)) < 0.5, axis=1)
    facts = Facts.from_counts(members, np.ones((members.shape[1], 2)), sigma=1.0)
    blocks = tuple(np.array_split(rng.permutation(len(facts)), 5))
    before, exact, wide, rest, random = blocks
    variances, error = rng.uniform(0.05, 0.25, 30), rng.uniform(0.1, 4, len(facts))
    noise = np.where(np.isin(np.arange(len(facts)), [*rest, *random]), error / 2, 0)
    sets = facts.sets.toarray()
    moment = sets * variances @ sets.T + np.diag(noise)

    def predict(one, *given):
        known = np.concatenate(given).astype(int)
        across = moment[known, one]
        return moment[one, one] - across @ np.linalg.solve(moment[np.ix_(known, known)], across)

    left, growth = _predict(facts, _Part(variances, noise=2.0, times=1), blocks, error)
    expected = [
        *(predict(one, before, exact[:i]) for i, one in enumerate(exact)),
        *(predict(one, before, exact) for one in wide),
    ]
    assert left == pytest.approx(expected, abs=1e-5)
    measured = [predict(one, before, exact, rest, random[:i]) for i, one in enumerate(random)]
    assert growth == pytest.approx(measured / noise[random], abs=1e-5)


@pytest.mark.parametrize("scale", [0.3, 1, 3])
def test_many_counts_with_whole_noise_tell_no_more_than_the_limit(scale):
    """One count of many people, all of whose groups are measured: sharper than of few people."""
    n, steps = 400, np.arange(-300, 301)
    noise = np.exp(-abs(steps) / scale)
    noise /= noise.sum()
    count = np.exp([math.lgamma(n + 1) - math.lgamma(c + 1) - math.lgamma(n - c + 1)
                    - n * math.log(2) for c in range(n + 1)])  # fmt: skip
    # Both are known if one and their sum are, n + x + y with the noises x and y.
    entropy = 0.0
    for shift in range(-90, 91):
        both = noise * np.roll(noise[::-1], shift)  # x, and y = shift - x
        law = np.convolve(count, both)
        entropy -= xlogy(law, law).sum()
    facts = Facts.from_counts(np.ones((n, 1), bool), [[n / 2] * 2], scale=scale)
    told = entropy + 2 * xlogy(noise, noise).sum()
    assert told <= limit_fact_nats(facts) <= told + 0.2


@given(st.integers(0, 2**32))
def test_noisy_and_exact_counts_together(seed):
    """By quadrature: one exact set, and another measured with Gaussian noise for two groups."""
    chances, members, probability, counts, rng = draw_world(seed, groups=2)
    if members.shape[1] < 2:
        return
    members, counts = members[:, :2], counts[:, :2]
    sigma = float(rng.choice([0.4, 1.0, 3.0]))
    values, codes = np.unique(counts[:, :, 0], axis=0, return_inverse=True)
    mass = np.bincount(codes.ravel(), probability)
    # The difference of both groups' measurements is all that they tell: size - 2 count + noise.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    told = find_entropy(values[:, 0], mass)
    for value in np.unique(values[:, 0]):
        here = values[:, 0] == value
        law = mass[here]
        at = 2 * values[here, 1][:, None] + math.sqrt(2) * sigma * nodes  # (counts, nodes)
        away = (at[:, :, None] - 2 * values[here, 1]) / (math.sqrt(2) * sigma)
        mixture = np.exp(-(away**2) / 2) @ (law / max(law.sum(), 1e-300))
        told += (
            law[:, None] * weights * (-(nodes**2) / 2 - np.log(np.maximum(mixture, 1e-300)))
        ).sum()
    facts = Facts.from_counts(members, counts[0], sigma=[0, sigma])
    if len(facts) == 2:
        check(facts, chances, told - 1e-3)


def make_table(n=4000, columns=4, values=5, seed=0):
    """Members of all one-way and two-way cells, and counts of two groups."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, columns))
    one = [codes[:, c] == v for c in range(columns) for v in range(values)]
    two = [
        (codes[:, a] == v) & (codes[:, b] == w)
        for a in range(columns)
        for b in range(a)
        for v in range(values)
        for w in range(values)
    ]
    people = rng.integers(0, 2, n)
    ones = np.column_stack([people == 0, people == 1]).astype(int)
    return np.column_stack(one), np.column_stack(two), ones


def test_what_follows_from_other_counts_costs_nothing():
    one, two, ones = make_table()
    cells = two[:, :25]
    alone = limit_fact_nats(Facts.from_counts(cells, cells.T @ ones))
    assert alone == pytest.approx(limit_count_nats(cells.sum(axis=0)), abs=1e-3)
    margins = np.column_stack([cells, one[:, :10]])
    assert limit_fact_nats(Facts.from_counts(margins, margins.T @ ones)) < alone + 0.05
    # 6 tables of 25 cells share margins: 16 counts each are new, 4 a column, and one in all.
    every = np.column_stack([one, two])
    told = limit_fact_nats(Facts.from_counts(every, every.T @ ones))
    assert told < limit_count_nats(two.sum(axis=0)) * (6 * 16 + 4 * 4 + 1) / 150 + 2


def test_sets_are_predicted_from_earlier_ones_that_include_one_of_them(monkeypatch):
    monkeypatch.setattr(fact_information, "_FIRST", 10)
    monkeypatch.setattr(fact_information, "_OWN", 7)
    one, two, ones = make_table()
    sets = np.column_stack([one, two])
    facts = Facts.from_counts(sets, sets.T @ ones)
    members, done, includes = facts.sets.toarray().astype(bool), [], {}
    for own, earlier in fact_information._make_blocks(facts):
        assert set(earlier) <= set(done)
        for one in earlier:
            includes[one, own[0]] = (members[one] >= members[own]).all(axis=1).any()
        done += [*own]
    assert sorted(done) == list(range(len(facts)))
    assert {one for one, _ in includes} >= set(range(20))  # all margins, which come first
    assert np.mean([*includes.values()]) > 0.9  # four people of a cell may be alike by chance


def test_the_range_of_a_complement_costs_nothing():
    whole, part = np.ones(200, bool), np.arange(200) < 90
    sets = np.column_stack([whole, part, ~part])
    low, high = [[80, 120], [30, 40], [31, 61]], [[80, 120], [49, 59], [50, 80]]
    told = limit_fact_nats(Facts.from_counts(sets, low, high))
    assert told == limit_fact_nats(Facts.from_counts(sets[:, :2], low[:2], high[:2]))
    other = [low[0], low[1], [32, 62]], [high[0], high[1], [51, 79]]  # of another rounding
    assert told < limit_fact_nats(Facts.from_counts(sets, *other))


def test_ranges_and_noise_tell_less():
    one, _, ones = make_table()
    counts = one.T @ ones
    exact = limit_fact_nats(Facts.from_counts(one, counts))
    rounded = [
        limit_fact_nats(Facts.from_counts(one, counts // s * s, counts // s * s + s - 1))
        for s in (20, 100)
    ]
    assert exact > rounded[0] > rounded[1] > 0
    for law in ("sigma", "scale"):
        noisy = [
            limit_fact_nats(Facts.from_counts(one, counts, **{law: size}))
            for size in (1e-9, 1, 10, 100, 1000)
        ]
        assert noisy == sorted(noisy, reverse=True)
        assert noisy[0] == pytest.approx(limit_count_nats(one.sum(axis=0)), rel=1e-6)
        assert noisy[-1] < 0.01
    # Both groups of one set are measured: the information of a Gaussian channel.
    everybody = Facts.from_counts(np.ones((4000, 1), bool), [[1, 2]], sigma=30.0)
    assert limit_fact_nats(everybody) == pytest.approx(0.5 * math.log(1 + 2000 / 900), abs=1e-3)


def test_a_range_of_everybody_tells_nothing_and_surely_known_people_have_no_information():
    assert limit_fact_nats(Facts.from_counts([[True], [True]], [[0, 0]], [[2, 2]])) == 0
    unmeasured = Facts.from_counts([[True]], [[-np.inf] * 2], [[np.inf] * 2], sigma=1.0)
    assert limit_fact_nats(unmeasured) == 0
    one = Facts.from_counts([[True], [True]], [[1, 1]])
    assert limit_fact_nats(one, [[1, 0], [0, 1]]) == 0
    assert limit_fact_nats(one, [[1, 0], [0.5, 0.5]]) == pytest.approx(math.log(2))


def test_the_derived_is_left_out():
    rest = Facts.from_counts([[True, True], [True, False]], [[1, 1], [0, 1]], derived=[False, True])
    alone = Facts.from_counts([[True], [True]], [[1, 1]])
    assert limit_fact_nats(rest) == limit_fact_nats(alone)


@pytest.mark.parametrize("beliefs", [[[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]], [[-1, 2], [0.5, 0.5]]])
def test_beliefs_must_be_probabilities_of_these_people(beliefs):
    facts = Facts.from_counts([[True], [True]], [[1, 1]])
    with pytest.raises(InputError, match=r"beliefs must be \(2, 2\) probabilities"):
        limit_fact_nats(facts, beliefs)
