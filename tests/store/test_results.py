"""Rows as columns: the same as dictionaries, one a row."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.components.names import KINDS, Status
from fpbench.store.results import Results

VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab")
LABELS = st.fixed_dictionaries({kind: st.sampled_from(["", "x", "y"]) for kind in KINDS})
MEASURES = st.dictionaries(st.sampled_from(["gain", "error", "word", "seen"]), VALUES)


@st.composite
def rows(draw):
    found = []
    for i in range(draw(st.integers(0, 8))):
        status = draw(st.sampled_from(["", "done", "failed", "skipped"]))
        reason = "why" if status in ("failed", "skipped") else None
        found.append({
            "cell": f"k{i}", **dict.fromkeys(KINDS), **draw(LABELS), "seed": draw(st.integers(0, 2**63 - 1)),
            "status": status, "reason": reason,
            "seconds": draw(st.none() | st.floats(0, 1e9)),
            **draw(MEASURES),
        })  # fmt: skip
    return found


@given(rows())
def test_columns_are_the_rows(given_rows):
    results = Results.of(given_rows)
    assert results.rows() == given_rows
    assert [list(row) for row in results.rows()] == [list(row) for row in given_rows]
    assert len(results) == len(given_rows)
    for i, row in enumerate(given_rows):
        for name in ("gain", "error", "word", "seen"):
            value = row.get(name)
            found = results.numbers(name)[i]
            is_number = isinstance(value, (bool, int, float))
            assert found == value if is_number and abs(value) < 2**53 else True
            assert is_number or math.isnan(found)
            assert results.has(name)[i] == (name in row)
            assert results.values(name)[i] == value
    done, failed = results.finished()
    assert done.tolist() == [row["status"] == Status.DONE for row in given_rows]
    assert failed.tolist() == [row["status"] == Status.FAILED for row in given_rows]


@given(rows())
def test_names_come_in_the_order_of_the_rows(given_rows):
    fixed = {"cell", *KINDS, "seed", "status", "reason", "seconds"}
    names = dict.fromkeys(name for row in given_rows for name in row if name not in fixed)
    assert set(Results.of(given_rows).names) == set(names)
    if given_rows and len({tuple(row) for row in given_rows}) == 1:
        assert Results.of(given_rows).names == list(names)


def row(**measures):
    return {"cell": "k", **dict.fromkeys(KINDS, ""), "seed": 0, "status": "done",
            "reason": None, "seconds": 1.5, **measures}  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 1.5], [0.5, None], [1, 2], [1, None], [1, 0.5], ["a", "b"], ["a", None], [True, False],
        [True, None], [None, None], ["a", 1], [2**70, 1], [float("inf"), 1.0],
    ],
)  # fmt: skip
def test_a_frame_has_the_types_that_pandas_would_give(values):
    rows = [row(x=value) for value in values]
    frame = Results.of(rows).frame()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(rows))


def test_a_frame_of_rows_with_other_measures():
    rows = [row(a=1, b="x"), row(b=None), row(a=3, c=0.5)]
    pd.testing.assert_frame_equal(Results.of(rows).frame(), pd.DataFrame(rows))
    assert Results.of([]).frame().empty


def test_more_measures_beside():
    results = Results.of([row(a=1), row(), row(a=2)])
    more = results.beside(np.array([0, 2]), {"b": np.array([0.5, np.nan])})
    assert [r.get("b", "-") for r in more.rows()] == [0.5, "-", None]
    assert more.names == ["a", "b"]
    assert results.names == ["a"]
