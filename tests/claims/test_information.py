"""What a claim can tell, at most, against exact entropies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError, Sample
from fpbench.claims import METRICS, limit_claim_nats
from fpbench.claims.facts import Known, Linear, PositiveRate, Share, Unfairness
from fpbench.claims.information import limit_count_nats

pytestmark = pytest.mark.numeric


def count_entropy(chances):
    """Exact entropy (nats) of the number of members of independent people."""
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    law = law[law > 0]
    return float(-(law * np.log(law)).sum())


@given(st.lists(st.floats(0, 1), max_size=40))
def test_no_count_tells_more_than_its_limit(chances):
    assert count_entropy(chances) <= limit_count_nats([len(chances)]) + 1e-12


def test_the_limit_of_a_count_is_nearly_reached():
    for n in (10, 100, 1000):
        assert limit_count_nats([n]) - count_entropy([0.5] * n) < 0.07


@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_counts_of_all_groups_tell_no_more_than_their_limit(n, groups):
    rng = np.random.default_rng(n)
    for chances in (np.full((n, groups), 1 / groups), *rng.dirichlet(np.ones(groups), (5, n))):
        law = np.ones((1,) * groups)
        for person in chances:
            law, before = np.zeros(np.add(law.shape, 1)), law
            for k, p in enumerate(person):
                law[tuple(slice(k == j, before.shape[j] + (k == j)) for j in range(groups))] += (
                    p * before
                )
        law = law[law > 0]
        assert -(law * np.log(law)).sum() <= limit_count_nats([n], groups) + 1e-12


def test_cells_add_up():
    for groups in (2, 4):
        alone = limit_count_nats([7], groups) + limit_count_nats([9], groups)
        assert limit_count_nats([7, 9], groups) == pytest.approx(alone)
    # Four groups' counts tell less than three times a count of one of two groups.
    assert limit_count_nats([50], 4) < 2.8 * limit_count_nats([50])
    assert limit_count_nats([]) == limit_count_nats([0]) == 0
    for sizes, groups in (([-1], 2), ([1], 1)):
        with pytest.raises(InputError, match="sizes must not be negative"):
            limit_count_nats(sizes, groups)


def people(n=60, k=2):
    rng = np.random.default_rng(0)
    return Sample(
        tuple("abcd"[:k]), labels=rng.integers(0, 2, n), predictions=rng.integers(0, 2, n),
        sensitive=rng.integers(0, k, n),
    )  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_a_claim_tells_what_the_counts_of_its_slices_tell(metric):
    sample = people()
    slices = {"statistical-parity": [None], "predictive-equality": [0], "equal-opportunity": [1]}
    sizes = [
        np.count_nonzero((sample.predictions == said) & (label is None or sample.labels == label))
        for label in slices.get(metric, [0, 1])
        for said in (0, 1)
    ]
    assert limit_claim_nats(metric, sample) == pytest.approx(limit_count_nats(sizes))


def test_facts_tell_a_count_a_bit_or_all():
    sample = people(k=3)
    share = Share(use="share", group="a")
    assert share.limit_nats(sample) == limit_count_nats([60])
    assert Share(use="share", group="a", low=0.1, high=0.5).limit_nats(sample) == math.log(2)
    rate = PositiveRate(use="positive-rate", group="a", margin=0.1)
    positive = int(sample.predictions.sum())
    assert rate.limit_nats(sample) == limit_count_nats([positive, 60 - positive])
    unfair = Unfairness(use="unfairness", metric="equalized-odds")
    assert unfair.limit_nats(sample) == limit_claim_nats("equalized-odds", sample)
    assert Known(use="known", share=0.5).limit_nats(sample) == 30 * math.log(3)
    assert Linear(use="linear", group="a", column="x").limit_nats(sample) == 60 * math.log(3)
