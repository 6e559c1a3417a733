"""Which worker is sent what, and how much of it."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.execution.engines.placing import Durations, Places


def places(**threads):
    made = Places()
    made.set_workers(threads)
    return made


def test_a_worker_that_has_what_is_needed_is_preferred():
    made = places(a=1, b=1)
    assert made.take([{"b"}, {"b", "a"}]) == "b"
    assert made.take([{"b"}]) == "a"  # rather than to wait for the other


def test_nobody_is_free_until_a_thread_is_given_back():
    made = places(a=2)
    assert [made.take([]) for _ in range(3)] == ["a", "a", None]
    made.give_back("a")
    assert made.take([]) == "a"


def test_workers_come_and_go():
    made = places(a=1)
    made.take([])
    made.set_workers({"b": 2})
    assert [made.take([{"a"}]) for _ in range(3)] == ["b", "b", None]
    made.give_back("a")  # of a worker that is gone
    made.set_workers({"a": 1, "b": 2})
    assert made.take([]) == "a"
    assert places().take([]) is None
    for worker in ("a", "a"):  # the second time, it is gone already
        made.drop(worker)
        made.give_back(worker)
    assert made.threads == 2
    assert made.take([{"a"}]) is None
    made.give_back("b")
    assert made.take([{"a"}]) == "b"


@given(
    st.lists(st.floats(0.001, 3), min_size=1, max_size=60),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), min_size=1),
)
def test_all_is_done_as_soon_as_whoever_never_idles_has_it(durations, threads):
    """Played with a clock: Graham's bound, however much one worker has of what is needed."""
    made = places(**threads)
    clock, running, waiting = 0.0, [], list(durations)
    while waiting or running:
        while waiting and (worker := made.take([{"a"}])) is not None:
            heapq.heappush(running, (clock + waiting.pop(0), worker))
        clock, worker = heapq.heappop(running)
        made.give_back(worker)
    assert clock <= sum(durations) / sum(threads.values()) + max(durations) + 1e-9


def test_short_steps_are_sent_together_and_others_are_not():
    known = Durations()
    known.learn(("score", ""), 0.01)
    known.learn(("train", "slow"), 1.0)
    score, train, new = ("score", ""), ("train", "slow"), ("guess", "never seen")
    assert known.together([score] * 9) == 5  # 0.05 seconds of work
    assert known.together([score, train, score]) == 1
    assert known.together([score, score, new, score]) == 2
    assert known.together([train, score]) == known.together([new, new]) == 1


@pytest.mark.parametrize(("first", "second", "together"), [(0.0, 0.02, 5), (0.02, 0.08, 1)])
def test_what_steps_take_is_their_mean(first, second, together):
    known = Durations()
    known.learn(("score", ""), first)
    known.learn(("score", ""), second)
    assert known.together([("score", "")] * 9) == together
