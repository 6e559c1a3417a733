"""Rows beside the strongest adversary of their run."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.components.names import AUDIT, KINDS
from fpbench.correction import limit_leak_by_error
from fpbench.results.rows import beside_others as comparisons
from fpbench.store.results import Results

FIXED = {"cell", *KINDS, "seed", "status", "reason", "seconds"}


def compared(rows):
    """Rows beside each other, with what columns add to every row left out again."""
    found = comparisons.add_comparisons(Results.of(rows)).rows()
    return [
        {name: value for name, value in new.items() if name in old or name not in FIXED}
        for old, new in zip(rows, found, strict=True)
    ]


def row(learner="l", seed=0, guess=0.7, corrected=0.8, dataset="d"):
    return {
        "dataset": dataset,
        "learner": learner,
        "seed": seed,
        "initial_accuracy": guess,
        "corrected_accuracy": corrected,
    }


SHARES = st.floats(0, 1)
ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from("lm"),
        st.integers(0, 1),
        SHARES,
        st.none() | SHARES,
        st.sampled_from("de"),
    )
)


@given(ROWS)
def test_the_strongest_is_one_of_the_rows_of_the_same_target(rows):
    for found, given_row in zip(compared(rows), rows, strict=True):
        target = [given_row[name] for name in ("dataset", "learner", "seed")]
        guesses = [
            r["initial_accuracy"]
            for r in rows
            if [r[name] for name in ("dataset", "learner", "seed")] == target
        ]
        assert found["best_initial_accuracy"] == max(guesses)
        if found["corrected_accuracy"] is None:
            assert found["gain_over_best"] is None
        else:
            gain = found["corrected_accuracy"] - found["best_initial_accuracy"]
            assert found["gain_over_best"] == gain
        assert found.items() >= given_row.items()


def leaking(adversary="a", seed=0, without=0.8, bits=8.0, gain=0.1, learner="l", **more):
    return {
        **row(learner, seed), "adversary": adversary, "people": 1_000, "n_groups": 2,
        "without_accuracy": without, "with_accuracy": without, "disclosure_bits": bits,
        "gain": gain, **more,
    }  # fmt: skip


def test_the_limit_is_that_of_the_best_beliefs_at_the_same_model_and_seed():
    weak, strong, other = compared([
        leaking("weak", without=0.7), leaking("strong", without=0.9, gain=0.001),
        leaking("weak", seed=1, without=0.6),
    ])  # fmt: skip
    assert weak["best_without_accuracy"] == strong["best_without_accuracy"] == 0.9
    limit = limit_leak_by_error(0.1, 8 * math.log(2), 1_000)
    assert weak["limit"] == strong["limit"] == pytest.approx(limit, abs=1e-12)
    assert weak["repair"] == pytest.approx(0.1 - limit)
    assert strong["repair"] == 0
    assert other["limit"] == limit_leak_by_error(0.4, 8 * math.log(2), 1_000)


def test_there_is_no_limit_where_bits_are_unknown_and_no_repair_where_nothing_was_corrected():
    unknown, hidden, audited, wrong = compared([
        leaking(bits=None), leaking(gain=None, bits=0.0),
        {"dataset": "d", "learner": "l", "seed": 0, "members": 3.0},
        leaking(bits=-1.0),
    ])  # fmt: skip
    assert unknown["limit"] is unknown["repair"] is None
    assert unknown["best_without_accuracy"] == 0.8
    assert hidden["limit"] == 0 and hidden["repair"] is None
    assert "limit" not in audited
    assert wrong["limit"] is None


def test_rows_without_bits_have_no_limit():
    old, new = row(), leaking(seed=1)
    assert set(compared([old])[0]) == {*old, "best_initial_accuracy", "gain_over_best"}
    beside_new, _ = compared([old, new])
    assert beside_new["best_without_accuracy"] is beside_new["limit"] is None


def test_rows_without_a_guess_stay_as_they_are():
    audit = {"dataset": "d", "learner": "l", "seed": 0, "members": 3.0}
    failed = {"dataset": "d", "learner": "l", "seed": 0, "status": "failed"}
    assert compared([audit, failed, row()])[:2] == [audit, failed]


def audit(tenth, recall, error, seed=0, **labels):
    return {
        **dict.fromkeys(AUDIT, "x"), **labels, "seed": seed, "true_tenth": tenth,
        "tenth_recall": recall, "error": error,
    }  # fmt: skip


@given(
    st.lists(
        st.builds(
            audit,
            st.sampled_from([0.1, 0.2, 0.3]),
            SHARES,
            SHARES,
            st.integers(0, 5),
            **{kind: st.sampled_from("xy") for kind in AUDIT},
        )
    )
)
def test_uar_is_the_mean_recall_of_the_classes_of_audits_alike(rows):
    alike = defaultdict(list)
    for row in rows:
        alike[tuple(row[kind] for kind in AUDIT)].append(row)
    for row, found in zip(rows, compared(rows), strict=True):
        group = alike[tuple(row[kind] for kind in AUDIT)]
        recalls = [
            np.mean([r["tenth_recall"] for r in group if r["true_tenth"] == tenth])
            for tenth in {r["true_tenth"] for r in group}
        ]
        assert found["uar"] == pytest.approx(np.mean(recalls))
        error = np.mean([r["error"] for r in group])
        assert found["uar_minus_error"] == pytest.approx(found["uar"] - error)
        assert {k: v for k, v in found.items() if not k.startswith("uar")} == row


def test_audits_that_estimate_nothing_have_no_recall():
    row = {**dict.fromkeys(AUDIT, "x"), "seed": 0, "independence_gap": 0.1}
    assert compared([row, {**row, "tenth_recall": None}]) == [row, {**row, "tenth_recall": None}]


def test_the_best_adversary_is_that_of_all_seeds_and_not_of_each():
    steady, lucky = ([leaking(name, seed=seed, without=without, **more) for seed, without, more in of]
                     for name, of in (
        ("steady", [(0, 0.8, {}), (1, 0.8, {}), (2, 0.8, {"household_size": 3})]),
        ("lucky", [(0, 0.9, {}), (1, 0.6, {})]),
    ))  # fmt: skip
    rows = compared([*steady, *lucky])
    assert [each["best_without_accuracy"] for each in rows] == [0.8] * 5
    nats = 8 * math.log(2)
    assert rows[0]["limit"] == pytest.approx(limit_leak_by_error(0.2, nats, 1_000))
    # Of three people who depend on each other three times as much is told.
    assert rows[2]["limit"] == pytest.approx(limit_leak_by_error(0.2, 3 * nats, 1_000))
