"""Ranks, means and intervals."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import Measure
from fpbench.base.errors import InputError
from fpbench.cli.screen import results as boards
from fpbench.components.names import KINDS
from fpbench.components.own_measures import GLOSSARY
from fpbench.results import leaderboard as board_columns
from fpbench.results import leaderboard as board_data
from fpbench.results.intervals import estimate_interval
from fpbench.results.leaderboard import list_columns, make_sheet
from fpbench.results.ranking import rank as rank_results
from fpbench.store.results import Results


def rank(rows, *arguments, **options):
    return rank_results(Results.of(rows), *arguments, **options)


def row(learner, seed, status="done", reason=None, auditor="", dataset="d", **measures):
    labels = dict.fromkeys(KINDS, "")
    labels |= {"dataset": dataset, "learner": learner, "auditor": auditor}
    return {"cell": f"{learner}{seed}", **labels, "seed": seed, "status": status,
            "reason": reason, "seconds": 1.0, **measures}  # fmt: skip


def apart(values, seeds=12, **more):
    """Rows of learners whose values differ at every seed, and by more than noise."""
    return [
        row(name, seed, gain=value + seed / 1000, **more)
        for name, value in values.items()
        for seed in range(seeds)
    ]


def places(board):
    return [(line.rank, line.labels["learner"]) for line in board.lines]


def test_best_first_and_equals_share_a_rank():
    (board,) = rank(apart({"low": 0.1, "high": 0.5, "twin": 0.5, "mid": 0.3}), "gain", "title")
    assert places(board) == [(1, "high"), (1, "twin"), (3, "mid"), (4, "low")]
    assert board.title == "title"
    assert board.kinds == ("dataset", "learner")
    assert board.notes == ()
    assert list(board.frame()["gain"]) == pytest.approx([0.5055, 0.5055, 0.3055, 0.1055])
    # Of 12 seeds the least p-value is 2 / 2^12, and two comparisons have differences.
    p_values = [line.p_above for line in board.lines]
    assert p_values == [None, 1.0, pytest.approx(4 / 2**12), pytest.approx(4 / 2**12)]


def test_too_few_seeds_share_ranks_and_say_so():
    (board,) = rank(apart({"low": 0.1, "high": 0.5}, seeds=5), "gain")
    assert places(board) == [(1, "high"), (1, "low")]
    assert board.notes == (
        "ranks are shared: 5 seeds are too few for any significant difference, use at least 6 "
        "(signed ranks, Holm, 5 %)",
    )


def test_a_chain_of_neighbours_shares_a_rank_and_a_note_says_so():
    """Each is too near to the next to tell; the first and the last are not."""
    wave = [0.05 * (-1) ** seed for seed in range(12)]
    rows = [row(f"l{i}", seed, gain=-0.02 * i + wave[seed] * i)
            for i in range(4) for seed in range(12)]  # fmt: skip
    (board,) = rank(rows, "gain")
    assert [line.rank for line in board.lines] == [1, 1, 1, 1]
    assert board.notes == (
        "lines with the same rank: neighbours are tied, but first and last may differ",
    )
    (pair,) = rank([r for r in rows if r["learner"] in ("l0", "l1")], "gain")
    assert pair.notes == ()


def test_a_winner_needs_the_same_seeds():
    rows = [row("a", seed, gain=0.9) for seed in range(8)]
    rows += [row("b", seed, gain=0.1) for seed in range(8, 16)]
    (board,) = rank(rows, "gain")
    assert places(board) == [(1, "a"), (1, "b")]
    assert board.notes == (
        "warning: lines have different seeds (8 of 16): the missing may be worst",
        "1 pair of neighbouring lines has no seed in common, so it shares a rank",
    )


def test_every_dataset_has_its_ranking_after_that_of_all():
    rows = apart({"a": 0.4, "b": 0.2, "only here": 0.9}, dataset="one")
    rows += apart({"a": 0.1, "b": 0.2}, dataset="two")
    overall, one, two = rank(rows, "gain")
    assert overall.scope == "overall: means over 2 data sets"
    assert overall.kinds == ("learner",)
    assert overall.notes == ("left out: 1 combination that not every data set has",)
    assert places(overall) == [(1, "a"), (2, "b")]
    assert overall.lines[0].measures["gain"].mean == pytest.approx(0.2555)
    assert places(one) == [(1, "only here"), (2, "a"), (3, "b")]
    assert places(two) == [(1, "b"), (2, "a")]
    assert [one.scope, two.scope] == ["data set one", "data set two"]


@pytest.mark.parametrize(
    ("measures", "described"),
    [
        ({"neighbours": ("attribute", "add-remove")}, ("neighbours attribute", "neighbours add-remove")),
        ({"delta": (0.0, 1e-6)}, ("delta 0", "delta 1e-06")),
        ({"noise": ("secure", "simulation")}, ("noise secure", "noise simulation")),
        ({"audit_metric": ("statistical-parity", "equal-opportunity")},
         ("metric statistical-parity", "metric equal-opportunity")),
        ({"claim_delta": (0.0, 1e-6)}, ("claim: delta 0", "claim: delta 1e-06")),
        ({"model_neighbours": ("replace-one", "add-remove")},
         ("learner: neighbours replace-one", "learner: neighbours add-remove")),
        ({"proven": (1, 0)}, ("optimum proven", "optimum not proven")),
    ],
)  # fmt: skip
def test_what_is_not_comparable_is_ranked_apart(measures, described):
    ((name, values),) = measures.items()
    rows = [
        row(f"l{i}", seed, gain=0.1 * i, **{name: values[i % 2]})
        for i in range(4)
        for seed in (0, 1)
    ]
    boards_found = rank(rows, "gain")
    assert [board.apart for board in boards_found] == [(words,) for words in described]
    for i, board in enumerate(boards_found):
        assert {line.labels["learner"] for line in board.lines} == {f"l{i}", f"l{i + 2}"}
        assert board.lines[0].rank == 1
    (mixed,) = rank(rows, "gain", together=True)
    assert len(mixed.lines) == 4
    assert mixed.notes[0] == (
        f"warning: ranked together, but not comparable: {described[0]}; {described[1]}"
    )


def test_a_guarantee_of_one_line_does_not_split_the_board():
    rows = apart({"open": 0.2}) + apart({"private": 0.1}, claim_delta=1e-6)
    (board,) = rank(rows, "gain")
    assert board.apart == ()
    rows += apart({"other": 0.3}, claim_delta=1e-5)
    assert [board.apart for board in rank(rows, "gain")] == [
        ("claim: delta not stated",),
        ("claim: delta 1e-06",),
        ("claim: delta 1e-05",),
    ]


def test_one_unproven_seed_makes_a_line_unproven():
    rows = [row("a", seed, gain=0.5, proven=int(seed > 0)) for seed in range(3)]
    rows += [row("b", seed, gain=0.1, proven=1) for seed in range(3)]
    rows += [row("c", seed, gain=0.0, proven=None) for seed in range(3)]
    proven, unproven = rank(rows, "gain")
    assert {x.labels["learner"] for x in proven.lines} == {"b", "c"}
    assert unproven.apart == ("optimum not proven",)


@given(
    st.lists(
        st.one_of(st.none(), st.floats(-1e100, 1e100), st.sampled_from([math.nan, math.inf])),
        max_size=9,
    )
)
def test_whatever_is_measured_is_ranked_shown_and_written(values):
    rows = [row("a", i, gain=v) for i, v in enumerate(values)] + [row("b", 0, gain=0.5)]
    (board,) = rank(rows, "gain")
    finite = [v for v in values if v is not None and math.isfinite(v)]
    assert [line.rank is not None for line in board.lines] == [True] * (1 + bool(finite)) + [
        False
    ] * (bool(values) and not finite)
    board_columns.make_sheet(board).fit(80)
    json.dumps(board_data.to_data(board), allow_nan=False)


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


GAPS = GLOSSARY.declaring(
    Measure(name, better="less", source="auditor gaps")
    for name in ("independence_gap", "risk_gap_train")
)


def test_a_measure_that_a_component_declares_is_ranked_its_way_and_has_a_column():
    leak = Measure("leak_bits", "bits leaked", "less", source="learner l")
    rows = [row(name, seed, gain=0.1, leak_bits=bits, odd=bits)
            for name, bits in (("loud", 2.0), ("quiet", 1.0)) for seed in range(8)]  # fmt: skip
    results = Results.of(rows, GLOSSARY.declaring([leak]))
    (board,) = rank_results(results, "Bits Leaked")
    assert (board.rank_by, board.least_first) == ("leak_bits", True)
    assert [line.labels["learner"] for line in board.lines] == ["quiet", "loud"]
    (board,) = rank_results(results, "gain")
    assert "leak_bits" in list_columns(board)
    assert "bits leaked" in [column.heading for column in make_sheet(board).columns]
    (board,) = rank_results(results, "odd")  # of which nobody says anything
    assert [line.labels["learner"] for line in board.lines] == ["loud", "quiet"]
    assert "odd is neither good nor bad: the greatest come first" in board.notes
    assert "odd" not in list_columns(rank_results(results, "gain")[0])


def test_audits_are_ranked_by_their_error_where_the_measure_is_one_of_attacks():
    rows = [
        row("a", 0, gain=0.1),
        *(row("a", seed, auditor=name, error=error, coverage=error)
          for seed in range(8) for name, error in (("far", 0.3), ("near", 0.1), ("mid", 0.2))),
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
    gaps = Results.of([rows[-1], row("a", 0, auditor="fair", independence_gap=0.2)], GAPS)
    (board,) = rank_results(gaps, "gain")
    assert (board.rank_by, board.lines[0].labels["auditor"]) == ("independence_gap", "fair")
    risks = [row(name, 0, auditor="risk", risk_gap_train=gap) for name, gap in (("a", 2), ("b", 1))]
    (board,) = rank_results(Results.of(risks, GAPS), "gain")
    assert (board.rank_by, board.lines[0].labels["learner"]) == ("risk_gap_train", "b")
    with pytest.raises(InputError, match="rank by: 'errror'; did you mean 'error'"):
        rank(rows[1:], "errror")


def test_nothing_to_rank():
    assert rank([], "gain") == []
    with pytest.raises(InputError, match="rank by: 'gian'; did you mean 'gain'"):
        rank([row("a", 0, gain=0.1)], "gian")


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_an_interval_leaves_the_values_at_the_long_tail_alone_and_does_not_change(values):
    one, other = (
        estimate_interval(np.array(values), "gain"),
        estimate_interval(np.array(values), "gain"),
    )
    assert one == other
    slack = 1e-12
    assert (one.low is None) is bool(np.ptp(values) <= slack * np.abs(values).max())
    if one.low is not None:
        assert one.low <= one.high
        # Only the end of the long tail of skewed values goes farther than they do.
        skewness = float(((np.array(values) - np.mean(values)) ** 3).sum())
        assert min(values) - slack <= one.low or skewness < 0
        assert one.high <= max(values) + slack or skewness > 0
