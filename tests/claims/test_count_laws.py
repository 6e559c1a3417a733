"""Laws of published numbers against sums of 1, and against what mechanisms release."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fpbench
from fpbench import InputError
from fpbench.claims import Facts
from fpbench.claims.count_laws import (
    CELL_KEY,
    EXPONENTIAL,
    LAWS,
    LOSSES,
    ROUNDING,
    CountLaws,
    weigh_number,
)
from fpbench.privacy import Sensitivity

pytestmark = pytest.mark.numeric


@given(
    st.sampled_from(range(1, len(LAWS))), st.floats(0.2, 8), st.integers(0, 30), st.integers(2, 9)
)
def test_probabilities_of_what_is_published_sum_to_the_same_for_every_true_number(
    kind, width, size, base
):
    counts = np.arange(size + 1)
    published = np.arange(-200, 240)
    if kind == ROUNDING:
        width, published = float(base), base * np.arange(-1, size + 2)
    if EXPONENTIAL <= kind < CELL_KEY:
        published = counts
    law = np.exp([weigh_number(kind, width, r, counts, size) for r in published])
    np.testing.assert_allclose(law.sum(axis=0), law.sum(axis=0)[0], rtol=1e-9)
    if kind == ROUNDING or kind >= CELL_KEY:  # the mean is kept
        np.testing.assert_allclose(published @ law, counts, atol=1e-9)


@pytest.mark.parametrize("utility", LOSSES)
def test_the_exponential_mechanism_chooses_by_its_law(utility):
    mechanism = fpbench.component("mechanism", "exponential", utility=utility)
    size, true, sensitivity, draws = 12, 3, Sensitivity(2.0, 2**0.5), 20_000
    rng = np.random.default_rng(0)
    chosen = mechanism.release(np.full(draws, true), sensitivity, 3.0, rng, size).astype(int)
    name, width = mechanism.find_exact_law(sensitivity, 3.0, np.array([size]))
    kind = LAWS.index(name)
    law = np.exp(
        [weigh_number(kind, width[0], r, np.array([true]), size)[0] for r in range(size + 1)]
    )
    often = draws * law / law.sum() >= 5
    seen = np.bincount(chosen, minlength=size + 1)
    seen, law = (np.append(x[often], x[~often].sum()) for x in (seen, law))
    kept = law > 0
    p = stats.chisquare(seen[kept], draws * law[kept] / law[kept].sum()).pvalue
    assert p > 0.001


def test_a_mechanism_without_an_own_law_has_the_one_that_it_tells():
    laplace = fpbench.component("mechanism", "discrete-laplace")
    name, width = laplace.find_exact_law(Sensitivity(2.0, 2**0.5), 0.5, np.array([7, 9]))
    assert (name, width.tolist()) == ("laplace", [4.0, 4.0])


@pytest.mark.parametrize(
    ("kind", "width", "rounded"),
    [(len(LAWS), 1.0, 0.0), (-1, 1.0, 0.0), (3, 0.0, 0.0), (3, np.inf, 0.0)],
)
def test_what_is_no_law_is_refused(kind, width, rounded):
    laws = CountLaws(np.array([kind], np.int8), np.array([width]), np.full((1, 2), rounded))
    with pytest.raises(InputError, match="laws must be"):
        Facts.from_counts(np.ones((3, 1), bool), [[1, 2]], laws=laws)
    with pytest.raises(InputError, match="noise of one law"):
        Facts.from_counts(np.ones((3, 1), bool), [[1, 2]], sigma=1.0, scale=1.0)


def test_two_rounded_numbers_of_a_set_are_both_kept():
    laws = CountLaws(np.full(2, ROUNDING, np.int8), np.full(2, 5.0), np.array([[5.0, 5], [10, 0]]))
    members = np.ones((8, 2), bool)
    low, high = laws.rounded - 4, laws.rounded + 4
    facts = Facts.from_counts(members, low, high, laws=laws)
    assert len(facts) == 2
    counts = np.stack([np.arange(9), 8 - np.arange(9)], axis=1)
    logs = facts.weigh(0, counts) + facts.weigh(1, counts)
    # 1 - |c - r| / 5 for each of the four numbers.
    wanted = [
        np.prod(
            [max(1 - abs(x - r) / 5, 0) for r, x in zip((5, 5, 10, 0), (c, d) * 2, strict=True)]
        )
        for c, d in counts
    ]
    np.testing.assert_allclose(np.exp(logs), wanted, atol=1e-12)
