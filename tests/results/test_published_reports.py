"""The board of fairness reports: the strongest attack on each, the Pareto front, and sentences."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench.base.sheet import write_markdown
from fpbench.builtin.disclosures.counts import Report
from fpbench.components.names import KINDS
from fpbench.page.gathered import gather
from fpbench.page.ideas import make_figure
from fpbench.results.leaderboard import make_sheet, to_data
from fpbench.results.ranking import ON_FRONT, PARETO, find_front, rank
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.snapshot import RANK_BY, make_view_boards
from fpbench.store.results import Results


def attack(disclosure, seed, leak, error, adversary="a2", **more):
    labels = dict.fromkeys(KINDS, "") | {
        "dataset": "d", "learner": "plain", "disclosure": disclosure, "adversary": adversary,
        "corrector": "posterior",
    }  # fmt: skip
    report = {} if error is None else {
        "facts": 10, "rate_error": error, "cells_published": 0.5, "disparities_visible": 0.5,
        "people_proven": 0.0, "proven_unsure": 0.0,
    }  # fmt: skip
    return {
        "cell": "", **labels, "seed": seed, "status": "done", "reason": None, "seconds": 1.0,
        "people": 1_000, "n_groups": 2, "majority_accuracy": 0.6, "initial_accuracy": 0.8,
        "adversary_sees": "features, predictions", "without_accuracy": 0.8, "leak": leak,
        "with_accuracy": 0.8 + leak, "disclosure_bits": 50.0, "limit_covers": "disclosure",
        **report, **more,
    }  # fmt: skip


def boards_of(rows, by=None):
    results = Results.of(rows)
    declared = results.glossary.declaring(Report.measures)
    results = replace(results, glossary=declared)
    return make_view_boards(add_comparisons(results), "reports", by or RANK_BY["reports"], "title")


def run(reports, **more):
    """Four seeds of each report: its name, leak and error."""
    return [
        attack(name, seed, leak + seed / 1e4, error, **more)
        for name, leak, error in reports
        for seed in range(4)
    ]


def test_reports_are_ranked_by_the_error_of_their_rates_and_the_front_is_marked():
    rows = run([("exact", 0.1, 0.0), ("hidden", 0.09, 0.1), ("noisy", 0.01, 0.04),
                ("both", 0.02, 0.05)])  # fmt: skip
    (board,) = boards_of(rows + run([("claim", 0.3, None)]))
    named = [(line.labels["disclosure"], line.labels[PARETO]) for line in board.lines]
    assert named == [("exact", ON_FRONT), ("noisy", ON_FRONT), ("both", ""), ("hidden", "")]
    table = write_markdown([make_sheet(board)])
    assert "| front |" in table
    assert "+10.02" in table  # in points, beside rates in percent
    assert to_data(board)["lines"][0]["labels"][PARETO] == ON_FRONT
    json.dumps(to_data(board), allow_nan=False)


def test_the_strongest_attack_stands_for_a_report():
    rows = run([("exact", 0.1, 0.0)]) + run([("exact", 0.15, 0.0)], adversary="a1")
    (board,) = boards_of(rows)
    (line,) = board.lines
    assert line.labels["adversary"] == "a1"


def test_each_data_set_and_model_has_a_front():
    rows = run([("exact", 0.1, 0.0), ("noisy", 0.01, 0.04)])
    rows += run([("exact", 0.2, 0.0), ("noisy", 0.3, 0.2)], learner="fair")
    rows += run([("exact", 0.2, 0.0), ("noisy", 0.3, 0.2)], dataset="e")
    first, second = boards_of(rows)
    assert [each.scope for each in (first, second)] == ["data set d", "data set e"]
    front = {(line.labels["learner"], line.labels["disclosure"])
             for line in first.lines if line.labels[PARETO]}  # fmt: skip
    assert front == {("plain", "exact"), ("plain", "noisy"), ("fair", "exact")}
    assert first.sentences == ()  # of two models there is more to say than three sentences
    assert len(second.sentences) > 1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nothing_beats_the_front_and_something_on_it_beats_or_equals_all_others(costs):
    front = find_front(costs)
    costs = np.array(costs, float)
    for i, one in enumerate(costs):
        beaten = [(other <= one).all() and (other < one).any() for other in costs]
        assert front[i] == (not any(beaten))
        if not front[i]:
            assert any(beaten[j] and front[j] for j in range(len(costs)))


def test_sentences_say_what_leaks_most_and_what_is_good_and_leaks_least():
    rows = run([("exact", 0.1, 0.0)], people_proven=0.5, proven_unsure=0.1)
    rows += run([("noisy", 0.01, 0.04), ("useless", 0.0, 0.3)])
    (board,) = boards_of(rows)
    worst, near, nobody = board.sentences
    assert worst.startswith('The report "exact" gives away most: it adds 10.02 points (95 %: ')
    assert worst.endswith(
        "and proves the group of 50.0 % of people; of 10.0 % the adversary was unsure before."
    )
    assert near.startswith("Of the 2 whose rates are off by at most 5.0 points on average, ")
    assert '"noisy" gives away least: 1.01' in near or '"noisy" gives away least: 1.02' in near
    assert nobody == "2 of 3 reports prove nobody's group."


def test_reports_without_utility_are_ranked_by_their_leak():
    rows = run([("one", 0.1, 0.0), ("two", 0.2, 0.0)])
    for row in rows:
        del row["rate_error"]
    (board,) = boards_of(rows)
    assert board.rank_by == "leak"
    assert {line.labels[PARETO] for line in board.lines} == {""}


def test_seeds_that_an_attack_lacks_are_told():
    rows = run([("exact", 0.1, 0.0)]) + run([("exact", 0.05, 0.0)], adversary="a1")
    warning = "warning: lines have different seeds (3 to 4 of 4)"
    for kept, told in ((rows, False), (rows[:-1], True)):
        (board,) = boards_of(kept)
        assert any(note.startswith(warning) for note in board.notes) is told


def test_a_run_without_reports_has_no_such_board():
    assert boards_of(run([("claim", 0.3, None)])) == []


def test_the_waterfall_has_a_step_for_reports_above_the_one_for_claims():
    rows = run([("exact", 0.1, 0.0), ("claim", 0.01, None)])
    (board,) = rank(add_comparisons(Results.of(rows)), "with_accuracy", "title")
    names = [level.name for level in board.waterfall.levels]
    assert names == ["largest group", "predictions", "claim", "reports"]
    shares = [level.right.mean for level in board.waterfall.levels]
    assert shares == sorted(shares)
    assert "the exact report adds" in board.sentences[2]
    only = rank(add_comparisons(Results.of(run([("exact", 0.1, 0.0)]))), "with_accuracy")[0]
    assert [level.name for level in only.waterfall.levels][2:] == ["reports"]


@pytest.mark.slow
def test_a_page_and_a_figure_show_reports(tmp_path):
    matrix = tmp_path / "reports.toml"
    matrix.write_text("""
title = "reports"
seeds = 2
dataset = [{ use = "census-synthetic", rows = 900 }]
learner = [{ use = "plain" }]
adversary = [{ use = "a1" }]
corrector = [{ use = "posterior" }]
[[disclosure]]
use = "report"
order = { sweep = [1, 2] }
[[disclosure]]
use = "report"
label = "rounded"
round_to = 5
""")
    run = fpbench.run(matrix, out=tmp_path / "run")
    (board,) = run.leaderboards(view="reports")
    assert len(board.lines) == 3
    drawn = make_figure(gather(run), "reports")
    (panel,) = drawn.panels
    points = {point.x: point for series in panel.series for point in series.points}
    for line in board.lines:
        assert points[100 * line.measures["rate_error"].mean].y <= 100
    front = next(series for series in panel.series if series.name == "front")
    assert front.joined
    assert {point.combination for point in front.points} <= set(range(3))


def test_an_unknown_measure_of_reports_is_refused():
    with pytest.raises(fpbench.InputError, match="rate_eror"):
        boards_of(run([("exact", 0.1, 0.0)]), "rate_eror")
