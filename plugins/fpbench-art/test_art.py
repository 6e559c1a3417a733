"""The attacks, as they are used: installed, found by name, beside a1 and a2 in a matrix."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import fpbench
from fpbench import FpbenchError, Sample, View, testing
from fpbench.errors import DataError, HiddenError

NAMES = {
    "art-baseline": {"features"},
    "art-true-label": {"features", "labels"},
    "art-black-box": {"features", "labels", "predictions"},
}
MODELS = ("rf", "gb", "lr", "dt", "knn")
every = pytest.mark.parametrize("name", NAMES)


def people(seed, n, k=2, signal="x"):
    """People whose group depends on one of the visible columns."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, k, n)
    coin = rng.integers(0, 2, n)
    features = pd.DataFrame(
        {
            "x": rng.normal(size=n) + 4.0 * group * (signal == "x"),
            "c": pd.Categorical.from_codes(rng.integers(0, 3, n), ["p", "q", "r"]),
        }
    )
    labels = (group > 0).astype(np.int8) if signal == "labels" else coin.astype(np.int8)
    predictions = (group > 0) if signal == "predictions" else rng.integers(0, 2, n)
    return Sample(
        tuple("abcd"[:k]), features=features, labels=labels, sensitive=group.astype(np.int8),
        predictions=np.asarray(predictions, dtype=np.int8),
    )  # fmt: skip


def make_view(name, target, attack):
    """The view that a runner makes: declared columns only."""
    sees = fpbench.component("adversary", name).sees
    return View(target.only(sees), attack.only(sees | {"sensitive"}))


def make_guess(name, k=2, signal="x", seed=7, n=300, **parameters):
    target, attack = people(1, n, k, signal), people(2, 2 * n, k, signal)
    adversary = fpbench.component("adversary", name, **parameters)
    return (
        adversary.guess(make_view(name, target, attack), np.random.default_rng(seed)),
        target,
        attack,
    )


def test_all_that_is_registered_is_tested():
    entries = fpbench.plugin.discover().of_kind("adversary")
    assert {e.name for e in entries if e.source.distribution == "fpbench-art"} == set(NAMES)
    for name, sees in NAMES.items():
        adversary = fpbench.component("adversary", name)
        assert adversary.sees == sees
        assert adversary.reference


@every
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("k", [2, 3])
def test_it_finds_what_is_there(name, model, k):
    guess, target, attack = make_guess(name, k, model=model)
    assert (guess.values == target.sensitive).mean() > 0.9
    truth = attack.sensitive[guess.held_out]
    assert (guess.held_out_values == truth).mean() > 0.9
    for sure in (guess.confidence, guess.held_out_confidence):
        assert ((sure >= 0) & (sure <= 1)).all()
        assert sure.mean() > 0.7
    assert len(guess.held_out) == round(0.3 * len(attack))
    assert len(set(guess.held_out.tolist())) == len(guess.held_out)


@every
@pytest.mark.parametrize("signal", ["labels", "predictions"])
def test_it_uses_what_it_sees_and_nothing_else(name, signal):
    guess, target, _ = make_guess(name, signal=signal)
    accuracy = (guess.values == target.sensitive).mean()
    assert accuracy > 0.95 if signal in NAMES[name] else accuracy < 0.65


@every
@pytest.mark.parametrize("model", MODELS)
def test_a_seed_decides_the_guess_and_no_other_state_changes(name, model):
    before = np.random.get_state()[1].copy()
    (one, target, _), (other, *_) = make_guess(name, model=model), make_guess(name, model=model)
    assert (np.random.get_state()[1] == before).all()
    for field in ("values", "confidence", "held_out", "held_out_values", "held_out_confidence"):
        assert (getattr(one, field) == getattr(other, field)).all()
    fresh = people(1, 300)
    assert target.features.equals(fresh.features)
    assert (target.predictions == fresh.predictions).all()
    assert not np.array_equal(one.held_out, make_guess(name, seed=8)[0].held_out)


@every
def test_confident_guesses_are_right_more_often(name):
    rng = np.random.default_rng(0)
    target, attack = people(1, 800), people(2, 1600)
    noisy = [s.having(features=s.features.assign(x=s.features["x"] + rng.normal(size=len(s)) * 4))
             for s in (target, attack)]  # fmt: skip
    adversary = fpbench.component("adversary", name)
    guess = adversary.guess(make_view(name, *noisy), np.random.default_rng(0))
    right = guess.values == target.sensitive
    sure = guess.confidence > np.median(guess.confidence)
    assert right[sure].mean() > right[~sure].mean() + 0.05


@every
def test_it_never_guesses_a_group_that_the_attack_set_lacks(name):
    target, attack = people(1, 50, 4), people(2, 200, 4)
    present = np.where(
        attack.sensitive == 1, 3, np.where(attack.sensitive == 2, 0, attack.sensitive)
    )
    guess = fpbench.component("adversary", name).guess(
        make_view(name, target, attack.having(sensitive=present.astype(np.int8))),
        np.random.default_rng(0),
    )
    assert set(guess.values.tolist()) <= {0, 3}
    alone = attack.having(sensitive=np.full(200, 2, dtype=np.int8))
    guess = fpbench.component("adversary", name).guess(
        make_view(name, target, alone), np.random.default_rng(0)
    )
    assert set(guess.values.tolist()) == {2}
    assert (guess.confidence == 1).all()


@every
def test_people_with_one_label_only(name):
    target, attack = people(1, 40), people(2, 80)
    zeros = [s.having(labels=np.zeros(len(s), np.int8), predictions=np.zeros(len(s), np.int8))
             for s in (target, attack)]  # fmt: skip
    guess = fpbench.component("adversary", name).guess(
        make_view(name, *zeros), np.random.default_rng(0)
    )
    assert (guess.values == target.sensitive).mean() > 0.9


@every
def test_bad_input_is_refused(name):
    adversary = fpbench.component("adversary", name)
    target, attack = people(1, 5), people(2, 1)
    with pytest.raises(DataError, match="too few to train"):
        adversary.guess(make_view(name, target, attack), np.random.default_rng(0))
    attack = people(2, 50)
    blind = View(target.only(frozenset()), attack.only(frozenset({"sensitive"})))
    with pytest.raises(HiddenError, match="'features' is not visible"):
        adversary.guess(blind, np.random.default_rng(0))
    with pytest.raises((ValidationError, FpbenchError), match="model"):
        fpbench.component("adversary", name, model="nn")


@pytest.mark.parametrize("check", testing.checks("fpbench-art"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_they_run_beside_a1_and_a2(tmp_path):
    ours = [{"use": name} for name in NAMES]
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 900}],
        "learner": [{"use": "exponentiated-gradient", "metric": "statistical-parity",
                     "tolerance": 0.05}],
        "disclosure": [{"use": "published"}],
        "adversary": [{"use": "a1"}, {"use": "a2"}, *ours],
        "corrector": [{"use": "exact"}],
    }  # fmt: skip
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
    assert len(frame) == 5
    assert (frame["initial_accuracy"] > 0.5).all()


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


def test_the_matrix_of_the_benchmarks_runs(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "plugins-art.toml"
    matrix = tomllib.loads(path.read_text(encoding="utf-8")) | {"seeds": 1}
    matrix["dataset"] = [{"use": "census-synthetic", "rows": 900}]  # COMPAS may not be here
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
