"""Rows beside the strongest adversary of their run."""

from hypothesis import given
from hypothesis import strategies as st

from fpbench.comparisons import compared


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


def test_a_gain_over_a_weak_guess_is_not_one_over_a_strong_one():
    weak, strong, elsewhere = compared([row(), row(guess=0.85, corrected=0.84), row("m")])
    assert (weak["best_initial_accuracy"], strong["best_initial_accuracy"]) == (0.85, 0.85)
    assert weak["gain_over_best"] == 0.8 - 0.85
    assert strong["gain_over_best"] == 0.84 - 0.85
    assert elsewhere["best_initial_accuracy"] == 0.7  # another learner is another target


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


def test_rows_without_a_guess_stay_as_they_are():
    audit = {"dataset": "d", "learner": "l", "seed": 0, "members": 3.0}
    failed = {"dataset": "d", "learner": "l", "seed": 0, "status": "failed"}
    assert compared([audit, failed, row()])[:2] == [audit, failed]
