"""Means over settings: like is compared with like."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.components.names import KINDS
from fpbench.results.rows.lines import pool
from fpbench.store.results import Results


def row(adversary, learner, seed, gain, status="done"):
    labels = dict.fromkeys(KINDS, "") | {"dataset": "d", "learner": learner, "adversary": adversary}
    known = {"gain": gain} if status == "done" else {}
    return {"cell": "", **labels, "seed": seed, "status": status, "seconds": 1.0,
            "reason": "it broke" if status == "failed" else None, **known}  # fmt: skip


def means(rows):
    made = pool(Results.of(rows), ("adversary",))
    return made, {(row["adversary"], row["seed"]): row.get("gain") for row in made.results.rows()}


def test_a_setting_that_one_line_lacks_counts_for_none():
    rows = [row("a", "l", 0, 1.0), row("a", "easy", 0, 9.0), row("b", "l", 0, 2.0)]
    made, found = means(rows)
    assert found == {("a", 0): 1.0, ("b", 0): 2.0}
    assert (made.settings, made.left_out) == (1, 1)


def test_a_seed_that_lacks_a_setting_has_no_mean():
    rows = [row("a", x, s, 1.0) for x in "lm" for s in (0, 1)]
    rows += [row("b", "l", 0, 1.0), row("b", "m", 0, 1.0), row("b", "l", 1, 1.0)]
    rows += [row("b", "m", 1, None, "failed")]
    made, found = means(rows)
    assert found["b", 1] is None
    last = [r for r in made.results.rows() if (r["adversary"], r["seed"]) == ("b", 1)]
    assert [(r["status"], r["reason"]) for r in last] == [("failed", "it broke")]


def test_a_line_without_any_result_keeps_the_others_comparable():
    rows = [row("a", x, 0, 1.0) for x in "lm"] + [row("b", x, 0, None, "failed") for x in "lm"]
    made, found = means(rows)
    assert (made.settings, found["a", 0]) == (2, 1.0)
    assert [r["status"] for r in made.results.rows()] == ["done", "failed"]


@given(st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("lmn"), st.integers(0, 2)),
    st.floats(-5, 5), min_size=1,
))  # fmt: skip
def test_means_are_those_of_a_slow_reading(cells):
    made, found = means([row(a, x, s, g) for (a, x, s), g in cells.items()])
    having = {a: {x for b, x, _ in cells if b == a} for a, _, _ in cells}
    common = set.intersection(*having.values())
    assert made.settings == len(common)
    for a, s in {(a, s) for a, _, s in cells}:
        wanted = common or having[a]
        values = [cells[a, x, s] for x in wanted if (a, x, s) in cells]
        if len(values) == len(wanted):
            assert found[a, s] == pytest.approx(fmean(values))
        else:
            assert found[a, s] is None
