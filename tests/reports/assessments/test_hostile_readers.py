"""Whatever anybody believes before, no report proves what is wrong, and proofs outweigh beliefs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import make_people, make_report

from fpbench import assess

DEFENCES = [
    {},
    {"min_cell": 9},
    {"min_group": 4},
    {"min_cell": 6, "complementary": True},
    {"decimals": 1},
    {"decimals": 2, "sizes": False},
    {"round_to": 3},
    {"noise": "discrete-laplace", "epsilon": 20.0},
]


@st.composite
def draw_beliefs(draw, codes, k):
    """(n, K): the same for everybody, at random, nearly certain of anything, certain and wrong."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n = len(codes)
    kind = draw(st.sampled_from(["uniform", "random", "overconfident", "wrong"]))
    if kind == "uniform":
        return np.full((n, k), 1 / k)
    if kind == "random":
        return rng.dirichlet(np.ones(k), n)
    named = (codes + 1) % k if kind == "wrong" else rng.integers(0, k, n)
    sure = np.eye(k)[named]
    return sure if kind == "wrong" else (1 - 1e-9) * sure + 1e-9 / k


@pytest.mark.slow
@settings(max_examples=10)
@given(data=st.data(), seed=st.integers(0, 99), k=st.integers(2, 5), two=st.booleans())
def test_proofs_are_right_and_outweigh_all_beliefs(data, seed, k, two):
    """Of one report, or of two of which the second lacks three people."""
    X, predictions, _ = make_people(80, seed)
    codes = np.random.default_rng(seed).permutation(np.arange(80) % k)
    groups = np.array(list("pqrst"))[codes]
    metrics = data.draw(st.sampled_from([["selection-rate"], ["selected", "rejected"]]))
    defences = dict(data.draw(st.sampled_from(DEFENCES)))
    if metrics[0] == "selected":
        defences.pop("decimals", None)
    options = {"order": 2, "by": ["a", "b", "likely"], "metrics": metrics} | defences
    reports = [make_report(X, predictions, groups, **options, rng=0)]
    answers = predictions[:, None].astype(float)
    if two:
        reports.append(make_report(X[3:], predictions[3:], groups[3:], **options, rng=1))
        answers = np.repeat(answers, 2, axis=1)
        answers[:3, 1] = np.nan
    beliefs = data.draw(draw_beliefs(codes, k))
    result = assess(
        reports if two else reports[0], X, answers if two else predictions, groups=groups,
        beliefs=beliefs, seconds=60,
    )  # fmt: skip
    truth = result.posterior[np.arange(80), codes]
    assert (truth[result.proven] == 1).all()
    assert np.isfinite(result.posterior).all()
    assert np.allclose(result.posterior.sum(axis=1), 1)
    if "noise" in defences:
        assert not result.proven.any()
