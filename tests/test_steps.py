"""What a component is handed: never more than it declares."""

import gc
import types

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench import HiddenError, Predictions, Sample, discover
from fpbench.matrix import read
from fpbench.plan import make_plan
from fpbench.steps import execute, view_for

SECRET = 23  # rows of the training part, where the truth is a pattern that is nowhere else


@pytest.fixture
def split(toys):
    matrix = read(
        {
            "dataset": [{"use": "flock", "rows": 3 * SECRET}],
            "learner": [{"use": "parrot"}],
            "auditor": [{"use": "counter", "mechanism": {"use": "hiss"}}],
        }
    )
    plan = make_plan(matrix, discover())
    load, cut = list(plan.steps.values())[:2]
    table = execute(load, ()).value
    return execute(cut, (table,)).value


def predictions_of(split):
    rng = np.random.default_rng(0)
    parts = (split.train, split.test, split.attack)
    return Predictions(*(rng.integers(0, 2, len(p)).astype(np.int8) for p in parts), asked=None)


def reachable(root):
    """Every object that can be reached from one, through containers, attributes and memory."""
    seen, waiting = {}, [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(thing)] = thing
        waiting += gc.get_referents(thing)
        for name in ("base", "_mgr", "blocks", "values", "array", "_values", "__dict__"):
            try:
                waiting.append(getattr(thing, name))
            except Exception:  # anything may refuse to be looked at
                continue
        for name in getattr(type(thing), "__slots__", ()):
            waiting.append(getattr(thing, name, None))
    return list(seen.values())


def secrets_in(view, truth):
    """Arrays in reach of a view that say who belongs to which group."""
    found = []
    for thing in reachable(view):
        try:
            values = (
                np.asarray(thing).ravel() if isinstance(thing, np.ndarray | pd.Series) else None
            )
        except (TypeError, ValueError):
            continue
        if values is None or values.dtype.kind not in "iufb" or len(values) < len(truth):
            continue
        for start in range(len(values) - len(truth) + 1):
            piece = values[start : start + len(truth)]
            if np.array_equal(piece, truth) or np.array_equal(piece, 1 - truth):
                found.append(thing)
    return found


@pytest.mark.parametrize("name", ["a1", "a2", "coin", "peek"])
def test_adversaries_cannot_reach_the_groups_of_the_training_part(split, name):
    adversary = fpbench.component("adversary", name)
    view = view_for(adversary, split, predictions_of(split))
    truth = split.train.sensitive.astype(int)
    assert not secrets_in(view, truth)
    with pytest.raises(HiddenError, match="'sensitive' is not to be seen here"):
        _ = view.target.sensitive
    assert len(view.attack.sensitive) == len(split.attack)


def test_the_walk_finds_a_leak(split):
    """The test above can fail: it finds the truth wherever a careless view would leave it."""
    truth = split.train.sensitive.astype(int)
    whole = np.concatenate([truth, truth])
    leaky = [
        split.train,
        split.train.only(frozenset({"features"})).having(labels=whole[: len(truth)]),
        types.SimpleNamespace(hidden={"deep": [pd.Series(truth)]}),
        1 - truth,
    ]
    for view in leaky:
        assert secrets_in(view, truth)


def test_an_adversary_that_declares_the_secret_is_still_not_shown_it(split):
    class Greedy(fpbench.Adversary):
        name, summary = "greedy", "wants it all"
        sees = frozenset({"features", "labels", "predictions", "sensitive"})

        def guess(self, view, rng):
            raise AssertionError

    view = view_for(Greedy(), split, predictions_of(split))
    assert view.target.seen == {"features", "labels", "predictions"}
    assert not secrets_in(view, split.train.sensitive.astype(int))


def test_an_adversary_sees_what_it_declares_and_no_more(split):
    for name, seen in (
        ("a1", {"features", "labels"}),
        ("a2", {"features", "labels", "predictions"}),
        ("coin", {"features"}),
    ):
        view = view_for(fpbench.component("adversary", name), split, predictions_of(split))
        assert view.target.seen == seen
        assert view.attack.seen == seen | {"sensitive"}


def test_parts_share_nobody_and_no_memory(split):
    parts = [split.train, split.test, split.attack]
    people = np.concatenate([part.features["x"] for part in parts])
    assert len(set(people)) == len(people) == 3 * SECRET
    for one in parts:
        for other in parts:
            if one is not other:
                assert not np.shares_memory(one.sensitive, other.sensitive)


def test_a_sample_is_only_what_it_was_given():
    sample = Sample(("a", "b"), labels=np.array([0, 1]))
    assert len(sample) == 2
    assert sample.having(sensitive=np.array([1, 0])).only(frozenset({"labels"})).seen == {"labels"}
    assert len(Sample(("a",))) == 0
    assert repr(sample) == "Sample(2 people; labels)"
    with pytest.raises(HiddenError, match="'features' is not to be seen here; seen: labels"):
        _ = sample.features
