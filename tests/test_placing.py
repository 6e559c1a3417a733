"""Which worker a step is sent to."""

import heapq

from hypothesis import given
from hypothesis import strategies as st

from fpbench.placing import Places

LONG, SHORT = ("train", "slow"), ("score", "")


def places(**threads):
    made = Places()
    made.set_workers(threads)
    return made


def known(made, kind, seconds):
    """Have steps of a kind been seen to take so long."""
    made.give_back(made.take(kind, [], []), seconds)
    return made


def test_a_worker_that_has_what_a_step_needs_is_preferred():
    made = places(a=1, b=1)
    assert made.take(LONG, [{"b"}, {"b", "a"}], []).worker == "b"
    assert made.take(LONG, [{"b"}], []).worker == "a"  # rather than to wait for the other


def test_nobody_is_free_until_a_step_is_given_back():
    made = places(a=1)
    load = made.take(LONG, [], [])
    assert made.take(LONG, [], []) is None
    made.give_back(load, None)
    assert made.take(LONG, [], []).worker == "a"


def test_short_steps_are_sent_ahead_and_long_ones_are_not():
    made = known(known(places(a=1), SHORT, 0.01), LONG, 1.0)
    ahead = [made.take(SHORT, [], []) for _ in range(9)]
    assert sum(load is not None for load in ahead) == 5  # 0.05 seconds of work
    made = known(known(places(a=1), SHORT, 0.01), LONG, 1.0)
    assert made.take(LONG, [], []) is not None
    assert made.take(SHORT, [], []) is None


def test_workers_come_and_go():
    made = places(a=1)
    load = made.take(LONG, [], [])
    made.set_workers({"b": 2})
    assert [made.take(LONG, [{"a"}], []) for _ in range(3)][-1] is None
    made.give_back(load, 1.0)  # of a worker that is gone
    made.set_workers({"a": 1, "b": 2})
    assert made.take(LONG, [], []).worker == "a"
    assert places().take(LONG, [], []) is None


def test_unfit_workers_are_not_asked():
    made = places(a=1, b=1)
    assert made.take(LONG, [{"a"}], {"a"}).worker == "b"
    assert made.take(LONG, [{"a"}], {"a", "b"}) is None


@given(
    st.lists(st.floats(0.001, 3), min_size=1, max_size=60),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), min_size=1),
)
def test_no_thread_waits_while_another_has_more_than_short_work_ahead(durations, threads):
    """Played with a clock: all is done, and as soon as any schedule without idling can have it."""
    made = places(**threads)
    clock, running, waiting = 0.0, [], list(enumerate(durations))
    lanes = {worker: [0.0] * count for worker, count in threads.items()}
    while waiting or running:
        while waiting:
            number, seconds = waiting[0]
            load = made.take(("step", str(number)), [{"a"}], [])  # each of an unknown duration
            if load is None:
                break
            waiting.pop(0)
            lane = min(range(threads[load.worker]), key=lanes[load.worker].__getitem__)
            begin = max(clock, lanes[load.worker][lane])
            assert begin == clock  # what has been sent never waits
            lanes[load.worker][lane] = begin + seconds
            heapq.heappush(running, (begin + seconds, number, load))
        clock, _, load = heapq.heappop(running)
        made.give_back(load, 1.0)
    count = sum(threads.values())
    assert clock <= sum(durations) / count + max(durations) + 1e-9  # Graham's bound
