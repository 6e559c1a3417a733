"""The learner, as it is used: installed, found by name, in a matrix."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fpbench_error_parity.relaxed_odds import Mixture
from pydantic import ValidationError

import fpbench
from fpbench import FpbenchError, InputError, Sample, testing
from fpbench.claims import METRICS, RateConstraint
from fpbench.errors import DataError


def people(seed, n=600, k=2):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % k)
    features = pd.DataFrame({"x": rng.normal(size=n) + group, "z": rng.normal(size=n)})
    labels = (features["x"] + features["z"] + rng.normal(size=n) > k / 2).to_numpy().astype(np.int8)
    return Sample(tuple("abcd"[:k]), features=features, labels=labels,
                  sensitive=group.astype(np.int8))  # fmt: skip


def fitted(sample, **parameters):
    options = {"base": "logistic-regression", **parameters}
    learner = fpbench.component("learner", "relaxed-odds", **options)
    return learner.fit(sample, np.random.default_rng(0))


def rates(model, sample):
    """Expected false- and true-positive rates and rates of selection, (3, groups)."""
    positive = model.predict_proba(sample.features, None, sample.sensitive)[:, 1]
    return np.array([
        [positive[(sample.sensitive == g) & part].mean() for g in np.unique(sample.sensitive)]
        for part in (sample.labels == 0, sample.labels == 1, sample.labels >= 0)
    ])  # fmt: skip


pytest.importorskip("ecos", reason="no wheel of ECOS for this Python")

COMPARED = {"statistical-parity": [2], "predictive-equality": [0], "equal-opportunity": [1],
            "equalized-odds": [0, 1]}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [2, 3])
def test_no_two_groups_differ_by_more_than_the_tolerance(metric, k):
    sample, accuracies = people(0, k=k), []
    for tolerance in (0.0, 0.05, 0.2):
        model = fitted(sample, metric=metric, tolerance=tolerance)
        compared = rates(model, sample)[COMPARED[metric]]
        assert np.ptp(compared, axis=1).max() <= tolerance + 1e-6
        positive = model.predict_proba(sample.features, None, sample.sensitive)[:, 1]
        accuracies.append(np.where(sample.labels == 1, positive, 1 - positive).mean())
        assert accuracies[-1] == pytest.approx(model.notes["relaxed_odds_accuracy"], abs=1e-6)
    assert (np.diff(accuracies) > -1e-6).all()


def test_no_mixture_of_two_thresholds_a_group_is_better():
    # Brute force over pairs of points of both curves, mixed in tenths, equal opportunity.
    sample = people(3, 60)
    best, model = 0.0, fitted(sample, metric="equal-opportunity", tolerance=0.1)
    scores = model.estimator.predict_proba(sample.features.to_numpy(float))[:, 1]
    points = []
    for g in (0, 1):
        mine = sample.sensitive == g
        cuts = np.append(np.inf, np.sort(scores[mine])[::-1])
        hits = np.array([[((scores[mine] >= c) & (sample.labels[mine] == y)).sum() for y in (0, 1)]
                         for c in cuts])  # fmt: skip
        mixed = [(1 - t) * hits[i] + t * hits[j] for i in range(len(hits))
                 for j in range(i, len(hits)) for t in (0, 0.3, 0.7)]  # fmt: skip
        points.append(np.unique(np.round(mixed, 6), axis=0))
    sizes = [[(sample.labels[sample.sensitive == g] == y).sum() for y in (0, 1)] for g in (0, 1)]
    right = [p[:, 1] + sizes[g][0] - p[:, 0] for g, p in enumerate(points)]
    tprs = [p[:, 1] / sizes[g][1] for g, p in enumerate(points)]
    fits = np.abs(tprs[0][:, None] - tprs[1]) <= 0.1 + 1e-9
    best = np.where(fits, right[0][:, None] + right[1], 0).max() / len(sample)
    assert model.notes["relaxed_odds_accuracy"] >= best - 1e-6


def test_a_mixture_reaches_every_point_between_hull_and_diagonal():
    rng = np.random.default_rng(0)
    scores, labels = rng.random(200).round(2), rng.integers(0, 2, 200)
    from sklearn.metrics import roc_curve

    curve = roc_curve(labels, scores + 0.3 * labels)
    for x in np.linspace(0.01, 0.99, 12):
        top = np.interp(x, curve[0], curve[1])
        for y in np.linspace(x, top, 4):
            positive = Mixture.reach(curve, np.array([x, y])).find_positive(scores + 0.3 * labels)
            reached = positive[labels == 0].mean(), positive[labels == 1].mean()
            assert reached == pytest.approx((x, y))


def test_it_keeps_the_contract_of_a_model():
    sample, others = people(0), people(1)
    before = np.random.get_state()[1].copy()
    model, again = fitted(sample), fitted(sample)
    predictions = model.predict(others.features, np.random.default_rng(0), others.sensitive)
    same = again.predict(others.features, np.random.default_rng(0), others.sensitive)
    assert (predictions == same).all()
    assert (np.random.get_state()[1] == before).all()
    proba = model.predict_proba(others.features, np.random.default_rng(0), others.sensitive)
    draws = [model.predict(others.features, np.random.default_rng(s), others.sensitive)
             for s in range(200)]  # fmt: skip
    assert np.abs(np.mean(draws, axis=0) - proba[:, 1]).max() < 0.2
    learner = fpbench.component("learner", "relaxed-odds", tolerance=0.1)
    assert learner.asked() == RateConstraint("equalized-odds", 0.1)
    assert learner.twin().name == "plain"


def test_bad_input_is_refused():
    sample = people(0)
    with pytest.raises(InputError, match="needs everyone's group to predict"):
        fitted(sample).predict(sample.features, np.random.default_rng(0))
    labels = np.where(sample.sensitive == 0, 1, sample.labels).astype(np.int8)
    with pytest.raises(DataError, match="everyone of group 'a' has label 1"):
        fitted(sample.having(labels=labels))
    strangers = np.full(len(sample), 2, np.int8)
    with pytest.raises(DataError, match="it has thresholds for a, b"):
        fitted(sample).predict(sample.features, np.random.default_rng(0), strangers)
    with pytest.raises((ValidationError, FpbenchError), match="tolerance"):
        fpbench.component("learner", "relaxed-odds", tolerance=1.5)


@pytest.mark.parametrize("check", testing.checks("fpbench-error-parity"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


def test_the_matrix_of_the_benchmarks_runs(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "plugins-error-parity.toml"
    matrix = tomllib.loads(path.read_text(encoding="utf-8")) | {"seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
