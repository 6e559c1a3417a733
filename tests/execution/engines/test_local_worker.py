"""Results travel to workers once, and are the same as if they had not travelled at all."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_runs import ATTACK, timeless

import fpbench
from fpbench.execution.answers import read_result
from fpbench.execution.engines import local as keeping
from fpbench.execution.engines.local import (
    SMALL,
    LocalOrder,
    MissingResults,
    Packed,
    ResultRef,
    carry_out,
    make_refs,
)
from fpbench.matrix.limits import NO_LIMITS
from fpbench.matrix.step import Failure, Result, Step

MATRIX = ATTACK | {
    "seeds": 2,
    "dataset": [{"use": "flock", "rows": 6000}],
    "adversary": [{"use": "coin"}, {"use": "keen"}],
    "corrector": [{"use": "flip"}, {"use": "none"}],
}
LARGE = pickle.dumps(np.arange(SMALL))


@pytest.fixture
def shelf(monkeypatch):
    """A worker that has just started."""
    made = keeping.ResultCache(10 * len(LARGE))
    monkeypatch.setattr(keeping, "_CACHE", made)
    return made


def doing(monkeypatch, value):
    """A step that gives this, and what it was handed."""
    seen = []

    def execute(step, given):
        seen.append(given)
        return Result(value, 0.5)

    monkeypatch.setattr(keeping, "execute_in_worker", execute)
    return Step("mine", "mine", "score", None, ("theirs",)), seen


def order(step, *given, final=False):
    return LocalOrder(step, given, final, NO_LIMITS, None)


def test_a_worker_says_what_it_lacks_is_sent_it_once_and_keeps_it(shelf, monkeypatch):
    step, seen = doing(monkeypatch, np.arange(SMALL))
    sent = Packed("theirs", LARGE)
    assert make_refs((sent,)) == (ResultRef("theirs"),)
    assert carry_out(order(step, *make_refs((sent,)))) == MissingResults(frozenset({"theirs"}))
    assert not seen
    result = carry_out(order(step, *make_refs((sent,), frozenset({"theirs"}))))
    again = carry_out(order(step, ResultRef("theirs"), ResultRef("mine")))
    assert np.array_equal(seen[0][0], np.arange(SMALL))
    assert seen[1][0] is seen[0][0]
    # What it made itself is there, too; the coordinator has its bytes.
    assert result.value.key == again.value.key == "mine"
    assert np.array_equal(pickle.loads(result.value.content), seen[1][1])


def test_small_final_and_failed_results_are_sent_as_they_are(shelf, monkeypatch):
    small = Packed("theirs", pickle.dumps(1))
    assert make_refs((small, "home")) == (small, "home")
    step, seen = doing(monkeypatch, {"gain": 1.0})
    told = carry_out(order(step, small, "home", final=True))
    assert read_result("score", told) == Result({"gain": 1.0}, 0.5)
    assert seen == [(1, "home")]
    failure = Failure("no", "", False)
    step, _ = doing(monkeypatch, failure)
    assert read_result("score", carry_out(order(step))).value == failure
    assert "theirs" not in shelf
    assert "mine" not in shelf


def test_final_measures_are_plain_or_a_failure(shelf, monkeypatch):
    """Nothing that a component leaves in its measures is a pickle that the coordinator opens."""
    step, _ = doing(monkeypatch, {"gift": object()})
    told = carry_out(order(step, final=True))
    assert isinstance(told, bytes)
    reason = read_result("score", told).value.reason
    assert reason.startswith("score: measure 'gift' must be a text, None, or a number")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5 * SMALL)), max_size=40))
def test_a_shelf_holds_no_more_than_it_may_and_what_was_used_last(asked):
    most = 4 * SMALL
    shelf, sizes = keeping.ResultCache(most), {}
    for number, size in asked:
        key = str(number)
        if key in shelf:
            assert shelf[key] == (key, sizes[key])
            continue
        sizes[key] = size
        shelf.add(key, (key, size), size)
        assert (key in shelf) == (SMALL < size <= most)
        assert sum(sizes[key] for key in map(str, range(10)) if key in shelf) <= most


def test_large_results_are_the_same_in_workers(tmp_path, toys):
    near = fpbench.run(MATRIX, out=tmp_path / "near")
    far = fpbench.run(MATRIX, out=tmp_path / "far", jobs=2)
    assert {row["status"] for row in far.rows()} == {"done"}
    assert timeless(near) == timeless(far)


@pytest.mark.slow
def test_workers_that_take_the_place_of_dead_ones_are_sent_what_these_had(tmp_path, toys, install):
    install("fpbench-troubles", "troubles")
    matrix = MATRIX | {"learner": [{"use": "deadly"}, {"use": "parrot"}], "seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run", jobs=2).frame()
    parrot = frame["learner"] == "parrot"
    assert set(frame[parrot]["status"]) == {"done"}
    assert not (frame[~parrot]["status"] == "done").any()
