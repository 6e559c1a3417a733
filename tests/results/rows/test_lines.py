"""Rows averaged over seeds: line by line what numpy gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fpbench.components.names import KINDS
from fpbench.results.intervals import estimate_interval
from fpbench.results.rows.lines import Tallies, describe_aspects
from fpbench.store.results import Results

ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["done", "done", "done", "failed", "skipped", ""]),
        st.none() | st.floats(-1, 1) | st.sampled_from([np.nan, np.inf, 1, True, "word"]),
    ),
    max_size=20,
)


def made(rows):
    return [
        {"cell": f"k{i}", **dict.fromkeys(KINDS, ""), "learner": learner, "seed": i,
         "status": status, "reason": f"why {i % 2}" if status == "failed" else None,
         "seconds": 1.0, "gain": value, "odd_warning": f"w{i % 2}" if i % 3 else ""}
        for i, (learner, status, value) in enumerate(rows)
    ]  # fmt: skip


@given(ROWS)
def test_a_line_is_the_mean_of_its_rows(given_rows):
    rows = made(given_rows)
    tally = Tallies(Results.of(rows))
    counted = [row for row in rows if row["status"] in ("done", "failed")]
    learners = tally.labels["learner"].to_list()
    assert learners == list(dict.fromkeys(row["learner"] for row in counted))
    measured = set()
    for i in range(len(tally)):
        mine = [row for row in counted if row["learner"] == learners[i]]
        done = [row for row in mine if row["status"] == "done"]
        assert tally.done[i] == len(done)
        assert tally.failed[i] == len(mine) - len(done)
        reasons = dict.fromkeys(row["reason"] for row in mine if row["status"] == "failed")
        assert tally.reasons[i] == list(reasons)
        said = dict.fromkeys(row["odd_warning"] for row in done if row["odd_warning"])
        assert tally.warnings[i] == list(said)
        numbers = [row["gain"] for row in done if isinstance(row["gain"], int | float)]
        values = np.array([float(n) for n in numbers if np.isfinite(n)])
        measures = tally.measures(i)
        assert ("gain" in measures) == (len(values) > 0)
        assert list(measures) == [name for name in ("seconds", "gain") if name in measures]
        if len(values):
            found, alone = measures["gain"], estimate_interval(values, "gain")
            assert (found.mean, found.deviation, found.count) == (
                alone.mean, alone.deviation, alone.count
            )  # fmt: skip
            if len(values) < 3:  # of which a board gives no interval
                assert found.low is found.high is None
            elif np.ptp(values) > 0:
                assert np.allclose([found.low, found.high], [alone.low, alone.high], atol=1e-12)
            else:
                assert found.low is found.high is None
            measured.add("gain")
    assert tally.names(range(len(tally))) & {"gain"} == measured


def test_numbers_that_are_written_alike_are_one_text():
    values = [0.1, 0.1 + 1e-12, "0.1", 0.2, None]
    rows = [row | {"delta": value} for row, value in
            zip(made([("a", "done", 1.0)] * 5), values, strict=True)]  # fmt: skip
    tally = Tallies(Results.of(rows[:3]))
    assert tally.texts("delta", numbers=True) == [["0.1"]]
    assert tally.texts("delta") == [["0.1"]]
    assert Tallies(Results.of(rows)).texts("delta", numbers=True) == [["0.1", "0.2"]]
    assert describe_aspects(tally) == {"delta": ["0.1"]}
