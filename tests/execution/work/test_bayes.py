import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpbench
from fpbench import Sample
from fpbench.components.catalog import discover
from fpbench.execution.work.actions import make_view
from fpbench.execution.work.execute import execute
from fpbench.execution.work.scores import measure_bayes
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan
from fpbench.plugin import DataHome

SEES = ("features", "labels")


def people_of(chances):
    n = len(chances)
    return Sample(
        tuple("abcdefgh"[: chances.shape[1]]),
        features=pd.DataFrame({"x": np.arange(n)}),
        labels=np.zeros(n, np.int8),
        sensitive=np.zeros(n, np.int8),
        group_chances=chances,
    )


@settings(max_examples=20)
@given(k=st.integers(2, 5), seed=st.integers(0, 2**32))
def test_no_guess_is_more_accurate_on_average(k, seed):
    """400 draws of the groups from their chances; guesses that know the chances, and some noise."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(k, 0.5), 150)
    bayes = measure_bayes(people_of(chances), SEES)
    draws = (rng.random((400, 150, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=2)
    error = 4.5 * 0.5 / np.sqrt(draws.size)
    best = np.mean(draws == chances.argmax(axis=1))
    assert abs(best - bayes) < error
    for noise in (0.05, 0.3, 2.0):
        other = (chances + rng.normal(scale=noise, size=chances.shape)).argmax(axis=1)
        assert np.mean(draws == other) < bayes + error


def test_it_is_known_only_where_the_law_is_and_for_who_sees_features_and_label():
    people = people_of(np.array([[0.9, 0.1], [0.3, 0.7]]))
    assert measure_bayes(people, SEES) == pytest.approx(0.8)
    assert measure_bayes(people, (*SEES, "predictions", "scores")) == pytest.approx(0.8)
    for sees in ((), ("features",), ("labels",), ("predictions", "features")):
        assert measure_bayes(people, sees) is None
    assert measure_bayes(people.only(frozenset(SEES)), SEES) is None
    assert measure_bayes(people.take(np.arange(0)), SEES) is None


def test_a_split_carries_the_chances_and_no_view_does():
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 900, "groups": 3}],
        "learner": [{"use": "plain"}],
        "auditor": [{"use": "group-fairness"}],
    }
    plan = make_plan(read(matrix), discover(), DataHome.default())
    load, cut = list(plan.steps.values())[:2]
    split = execute(cut, (execute(load, (DataHome.default(),)).value,)).value
    dataset = fpbench.component("dataset", "census-synthetic", rows=900, groups=3)
    for part in (split.train, split.test, split.attack):
        np.testing.assert_allclose(part.group_chances, dataset.posterior(part), rtol=0, atol=1e-12)
        assert measure_bayes(part, SEES) > np.bincount(part.sensitive).max() / len(part) - 0.02

    class Greedy(fpbench.Adversary):
        name, summary = "greedy", "wants it all"
        sees = frozenset({"features", "labels", "group_chances", "sensitive"})

        def guess(self, view, rng):
            raise AssertionError

    view = make_view(Greedy(), split)
    for part, seen in ((view.target, set(SEES)), (view.attack, {*SEES, "sensitive"})):
        assert part.seen == seen
        assert part.group_chances is None
