"""The learners, as they are used: installed, found by name, in a matrix."""

from __future__ import annotations

import logging
import random
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fpbench_aif360.disparate_impact_remover import repair
from fpbench_aif360.reweighing import weigh
from pydantic import ValidationError

import fpbench
from fpbench import FpbenchError, InputError, Sample, testing
from fpbench.errors import DataError

NAMES = ("aif360-reweighing", "aif360-disparate-impact-remover")
every = pytest.mark.parametrize("name", NAMES)


def people(seed, n=400, k=2, unfair=0.35):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % k)
    x = rng.normal(size=n) + 1.5 * group
    features = pd.DataFrame({
        "x": x, "z": rng.integers(0, 6, n) + group,
        "c": pd.Categorical.from_codes(rng.integers(0, 3, n), ["p", "q", "r"]),
    })  # fmt: skip
    labels = (rng.random(n) < 0.3 + unfair * (group > 0)).astype(np.int8)
    return Sample(tuple("abcd"[:k]), features=features, labels=labels,
                  sensitive=group.astype(np.int8))  # fmt: skip


def fitted(name, sample, seed=0, **parameters):
    return fpbench.component("learner", name, **parameters).fit(sample, np.random.default_rng(seed))


def gap(model, sample):
    predictions = model.predict(sample.features, np.random.default_rng(0), sample.sensitive)
    rates = [predictions[sample.sensitive == g].mean() for g in np.unique(sample.sensitive)]
    return max(rates) - min(rates)


def test_all_that_is_registered_is_tested():
    entries = fpbench.plugin.discover().of_kind("learner")
    assert {e.name for e in entries if e.source.distribution == "fpbench-aif360"} == set(NAMES)
    for name in NAMES:
        assert fpbench.component("learner", name).reference


@every
@pytest.mark.parametrize("base", ["decision-tree", "logistic-regression"])
@pytest.mark.parametrize("k", [2, 3])
def test_it_is_fairer_than_its_base_alone(name, base, k):
    sample, others = people(0, k=k), people(1, 4000, k=k)
    base_parameters = {"max_depth": 3} if base == "decision-tree" else {}
    plain = fitted("plain", sample, base=base, base_parameters=base_parameters)
    model = fitted(name, sample, base=base, base_parameters=base_parameters)
    assert gap(plain, others) > 0.3
    assert gap(model, others) < 0.6 * gap(plain, others)


@every
def test_it_keeps_the_contract_of_a_model(name):
    sample, others = people(0), people(1)
    columns = sample.features.copy(), sample.labels.copy(), sample.sensitive.copy()
    states = np.random.get_state()[1].copy(), random.getstate()
    logs = list(logging.getLogger().handlers), logging.getLogger().level
    one, other = fitted(name, sample), fitted(name, sample)
    predictions = one.predict(others.features, np.random.default_rng(0), others.sensitive)
    again = other.predict(others.features, np.random.default_rng(5), others.sensitive)
    assert predictions.shape == (len(others),)
    assert set(predictions.tolist()) == {0, 1}
    assert (predictions == again).all()
    proba = one.predict_proba(others.features, np.random.default_rng(0), others.sensitive)
    assert proba.shape == (len(others), 2)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert ((proba[:, 1] > 0.5) == predictions).mean() > 0.99
    assert sample.features.equals(columns[0])
    assert (sample.labels == columns[1]).all()
    assert (sample.sensitive == columns[2]).all()
    assert (np.random.get_state()[1] == states[0]).all()
    assert random.getstate() == states[1]
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == logs


@every
def test_a_prediction_does_not_depend_on_the_other_people_of_the_call(name):
    model, others = fitted(name, people(0)), people(1)
    rng = np.random.default_rng(0)
    predictions = model.predict(others.features, rng, others.sensitive)
    for rows in (slice(0, 1), slice(5, 50)):
        some = model.predict(others.features.iloc[rows], rng, others.sensitive[rows])
        assert (some == predictions[rows]).all()


@pytest.mark.parametrize("k", [2, 3])
def test_weights_make_label_and_group_independent(k):
    sample = people(0, k=k)
    weights = weigh(sample)
    assert weights.sum() == pytest.approx(len(sample))
    rates = [np.average(sample.labels[mine], weights=weights[mine])
             for g in range(k) for mine in [sample.sensitive == g]]  # fmt: skip
    assert rates == pytest.approx([sample.labels.mean()] * k)
    for g in range(k):  # Kamiran & Calders, formula by formula
        for y in (0, 1):
            both = (sample.sensitive == g) & (sample.labels == y)
            expected = (sample.sensitive == g).mean() * (sample.labels == y).mean() / both.mean()
            assert weights[both] == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 3])
def test_edited_features_look_alike_and_keep_their_order(k):
    sample = people(0, 600, k)
    x = sample.features["x"].to_numpy()[:, None]
    repaired = repair(x, sample.sensitive, 1.0, 0)[:, 0]
    means = [repaired[sample.sensitive == g].mean() for g in range(k)]
    before = [x[sample.sensitive == g].mean() for g in range(k)]
    assert max(means) - min(means) < 0.02 * (max(before) - min(before))
    for g in range(k):
        mine = sample.sensitive == g
        order = np.argsort(x[mine, 0])
        assert (np.diff(repaired[mine][order]) >= 0).all()
    assert (repair(x, sample.sensitive, 0.0, 0) == x).all()


def test_training_people_are_edited_exactly_as_aif360_does():
    sample = people(0)
    model = fitted("aif360-disparate-impact-remover", sample)
    matrix = fpbench.models.encode(sample.features).astype(np.float64)
    expected = repair(matrix, sample.sensitive, 1.0, 3)
    assert (model.edit(sample.features, sample.sensitive) == expected).all()


def test_half_an_edit_is_between():
    sample, others = people(0), people(1, 4000)
    gaps = [gap(fitted(NAMES[1], sample, repair_level=level), others) for level in (0.0, 0.5, 1.0)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gap(fitted(NAMES[1], sample, repair_level=0.0), sample) == gap(
        fitted("plain", sample), sample
    )


def test_an_unknown_group_is_not_edited():
    sample, others = people(0), people(1)
    model = fitted(NAMES[1], sample)
    strangers = np.full(len(others), 3, dtype=np.int8)
    plain = fpbench.models.encode(others.features).astype(np.float64)
    assert (model.edit(others.features, strangers) == plain).all()


def test_groups_without_one_of_the_labels():
    sample = people(0)
    labels = np.where(sample.sensitive == 0, 0, sample.labels).astype(np.int8)
    for name in NAMES:
        model = fitted(name, sample.having(labels=labels))
        model.predict(sample.features, np.random.default_rng(0), sample.sensitive)
        alone = fitted(name, sample.having(labels=np.zeros_like(labels)))
        assert not alone.predict(sample.features, np.random.default_rng(0), sample.sensitive).any()


def test_bad_input_is_refused():
    sample = people(0)
    with pytest.raises(InputError, match="needs everyone's group to predict"):
        fitted(NAMES[1], sample).predict(sample.features, np.random.default_rng(0))
    with pytest.raises(DataError, match="3 people are too few"):
        fitted(NAMES[1], people(0, 3, 3))
    with pytest.raises((ValidationError, FpbenchError), match="repair_level"):
        fpbench.component("learner", NAMES[1], repair_level=1.5)
    with pytest.raises((ValidationError, FpbenchError), match="cannot use weights"):
        fpbench.component("learner", NAMES[0], base="sklearn.neighbors:KNeighborsClassifier")


@pytest.mark.parametrize("check", testing.checks("fpbench-aif360"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_they_run_in_a_matrix(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [{"use": name} for name in NAMES],
        "disclosure": [{"use": "published", "metric": "statistical-parity"}],
        "adversary": [{"use": "a2"}],
        "corrector": [{"use": "exact"}],
        "auditor": [{"use": "group-fairness"}],
    }
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
    assert len(frame) == 4


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


def test_the_matrix_of_the_benchmarks_runs(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "plugins-aif360.toml"
    matrix = tomllib.loads(path.read_text(encoding="utf-8")) | {"seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
