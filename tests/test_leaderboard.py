"""Ranks, means and intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import boards
from fpbench.errors import InputError
from fpbench.kinds import KINDS
from fpbench.leaderboard import interval, rank


def row(learner, seed, status="done", reason=None, auditor="", **measures):
    labels = dict.fromkeys(KINDS, "") | {"dataset": "d", "learner": learner, "auditor": auditor}
    return {"cell": f"{learner}{seed}", **labels, "seed": seed, "status": status,
            "reason": reason, "seconds": 1.0, **measures}  # fmt: skip


def test_best_first_and_equals_share_a_rank():
    gains = {"low": 0.1, "high": 0.5, "twin": 0.5, "mid": 0.3}
    rows = [row(name, seed, gain=gain) for name, gain in gains.items() for seed in (0, 1)]
    (board,) = rank(rows, "gain", "title")
    assert [(line.rank, line.labels["learner"]) for line in board.lines] == [
        (1, "high"),
        (1, "twin"),
        (3, "mid"),
        (4, "low"),
    ]
    assert board.title == "title"
    assert board.kinds == ("dataset", "learner")
    assert list(board.frame()["gain"]) == [0.5, 0.5, 0.3, 0.1]


def test_mean_and_deviation_are_over_seeds_with_a_value():
    values = [0.1, 0.4, None, float("nan")]
    (board,) = rank([row("a", i, gain=v, word="x") for i, v in enumerate(values)], "gain")
    (line,) = board.lines
    gain = line.measures["gain"]
    assert (gain.mean, gain.count) == (0.25, 2)
    assert gain.deviation == pytest.approx(np.std([0.1, 0.4], ddof=1))
    assert line.done == 4
    assert "word" not in line.measures


def test_failed_and_skipped_cells():
    rows = [
        row("a", 0, gain=0.1),
        row("a", 1, status="failed", reason="why"),
        row("b", 0, status="failed", reason="why not"),
        row("c", 0, status="skipped", reason="no sense"),
        row("d", 0, status=""),
    ]
    (board,) = rank(rows, "gain")
    assert [(x.rank, x.labels["learner"], x.done, x.failed, x.reasons) for x in board.lines] == [
        (1, "a", 1, 1, ("why",)),
        (None, "b", 0, 1, ("why not",)),
    ]


def test_warnings_of_rows_are_told(capsys):
    said = ["all [bold] votes", "all [bold] votes", None]
    rows = [row("a", i, gain=0.1, votes_warning=text) for i, text in enumerate(said)]
    (board,) = rank([*rows, row("b", 0, gain=0.2, votes_warning=None)], "gain")
    assert [line.warnings for line in board.lines] == [(), ("all [bold] votes",)]
    boards.show_leaderboard(board)
    assert "warning: all [bold] votes (1 of 2 lines)" in capsys.readouterr().out


def test_attacks_and_audits_are_ranked_apart():
    rows = [row("a", 0, gain=0.1), row("a", 1, auditor="x", gap=3.0)]
    attacks, audits = rank(rows, "gain")
    assert "auditor" not in attacks.kinds
    assert audits.kinds == ("dataset", "learner", "auditor")
    assert audits.lines[0].rank is None


def test_audits_are_ranked_by_their_error_where_the_measure_is_one_of_attacks():
    rows = [
        row("a", 0, gain=0.1),
        *(row("a", seed, auditor=name, error=error, coverage=error)
          for seed in (0, 1) for name, error in (("far", 0.3), ("near", 0.1), ("mid", 0.2))),
        row("a", 0, auditor="gaps", independence_gap=0.5),
    ]  # fmt: skip
    attacks, audits = rank(rows, "gain")
    assert (attacks.rank_by, audits.rank_by) == ("gain", "error")
    assert [(line.rank, line.labels["auditor"]) for line in audits.lines] == [
        (1, "near"),
        (2, "mid"),
        (3, "far"),
        (None, "gaps"),
    ]
    for rank_by, first in (("error", "near"), ("coverage", "far")):  # of an error less is better
        (board,) = rank(rows[1:], rank_by)
        assert (board.rank_by, board.lines[0].labels["auditor"]) == (rank_by, first)
    (board,) = rank([rows[-1], row("a", 0, auditor="fair", independence_gap=0.2)], "gain")
    assert (board.rank_by, board.lines[0].labels["auditor"]) == ("independence_gap", "fair")
    risks = [row(name, 0, auditor="risk", risk_gap_train=gap) for name, gap in (("a", 2), ("b", 1))]
    (board,) = rank(risks, "gain")
    assert (board.rank_by, board.lines[0].labels["learner"]) == ("risk_gap_train", "b")
    with pytest.raises(InputError, match="rank by: 'errror'; did you mean 'error'"):
        rank(rows[1:], "errror")


def test_nothing_to_rank():
    assert rank([], "gain") == []
    with pytest.raises(InputError, match="rank by: 'gian'; did you mean 'gain'"):
        rank([row("a", 0, gain=0.1)], "gian")


def test_one_value_has_no_interval():
    only = interval(np.array([0.5]))
    assert (only.mean, only.deviation, only.low, only.high, only.count) == (
        0.5,
        None,
        None,
        None,
        1,
    )


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
@settings(deadline=None, max_examples=50)
def test_an_interval_is_within_the_values_and_does_not_change(values):
    one, other = interval(np.array(values), "gain"), interval(np.array(values), "gain")
    assert one == other
    slack = 1e-12
    assert min(values) - slack <= one.low <= one.high <= max(values) + slack


def test_intervals_cover_the_mean_nearly_as_often_as_they_say():
    """30 seeds: a percentile bootstrap covers a little less than 95 %."""
    rng = np.random.default_rng(0)
    draws = rng.normal(1.0, 2.0, (400, 30))
    covered = [(i := interval(values)).low <= 1.0 <= i.high for values in draws]
    assert 0.90 <= np.mean(covered) <= 0.98
