"""The default leaderboard: what attacks reach with a disclosure, what it adds, and sentences."""

import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fpbench.base.sheet import write_html, write_latex, write_markdown
from fpbench.base.text import format_percent, format_points, format_points_above
from fpbench.cli.screen.results import show_leaderboards
from fpbench.components.names import KINDS
from fpbench.results import leaderboard
from fpbench.results.leaderboard import LEAK_COLUMNS, choose_best, make_sheet, to_data
from fpbench.results.ranking import rank
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.signed_ranks import adjust_by_holm, compare_signed_ranks
from fpbench.results.waterfall import draw_bar
from fpbench.store.results import Results

NEW = ("without_accuracy", "with_accuracy", "leak", "disclosure_bits")


def attack(adversary, seed, without, leak, *, sees="features, predictions", **more):
    """A row as the core writes it; without a leak, of a corrector that uses nothing."""
    return {
        **dict.fromkeys(KINDS, ""), "cell": "", "dataset": "adult", "learner": "plain",
        "disclosure": "published", "corrector": "none" if leak is None else "posterior",
        "adversary": adversary, "seed": seed, "status": "done", "reason": None, "seconds": 1.0,
        "people": 15_074, "n_groups": 2, "majority_accuracy": 0.671, "adversary_sees": sees,
        "initial_accuracy": 0.79, "corrected_accuracy": None if leak is None else 0.85,
        "gain": None if leak is None else 0.06, "without_accuracy": without,
        "with_accuracy": None if leak is None else without + leak, "leak": leak,
        "disclosure_bits": 12.3, "limit_covers": "disclosure", **more,
    }  # fmt: skip


def boards_of(rows, by="with_accuracy", **options):
    return rank(add_comparisons(Results.of(rows)), by, "title", **options)


def run(leaks, adversaries=(("a2", 0.85), ("a1", 0.8)), **more):
    """A row for each adversary and seed, with these leaks at the seeds."""
    return [
        attack(name, seed, without + seed / 1e4, leak, **more)
        for name, without in adversaries
        for seed, leak in enumerate(leaks)
    ]


def labels(board, *kinds):
    return [(line.rank, *(line.labels[kind] for kind in kinds)) for line in board.lines]


NULL = [0.0005 * (-1) ** seed for seed in range(12)]
CLEAR = [0.003 + seed / 1e5 for seed in range(12)]


def test_attacks_are_ranked_among_those_on_the_same_model_given_the_same():
    rows = run(NULL, learner="first") + run(NULL, (("a2", 0.7), ("a1", 0.9)), learner="second")
    rows += run(NULL, (("a1", 0.6),), learner="first", disclosure="rounded")
    (board,) = boards_of(rows)
    assert labels(board, "learner", "disclosure", "adversary") == [
        (1, "first", "published", "a2"), (2, "first", "published", "a1"),
        (1, "second", "published", "a1"), (2, "second", "published", "a2"),
        (1, "first", "rounded", "a1"),
    ]  # fmt: skip
    # Three groups make two comparisons: of 12 seeds the least p-value is 2 / 2^12, times two.
    assert [line.p_above for line in board.lines] == [
        None, pytest.approx(4 / 2**12), None, pytest.approx(4 / 2**12), None,
    ]  # fmt: skip


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_groups_are_ranked_as_alone_but_for_the_number_of_comparisons(seed):
    rng = np.random.default_rng(seed)
    names = [f"a{i}" for i in range(4)]
    rows = [
        attack(name, s, 0.8 + 0.002 * rng.integers(4) + rng.normal(0, 0.001), 0.0, learner=learner)
        for learner in ("x", "y")
        for name in names
        for s in range(8)
    ]
    (both,) = boards_of(rows)
    raw = []
    for learner in ("x", "y"):
        mine = [line for line in both.lines if line.labels["learner"] == learner]
        means = [line.measures["with_accuracy"].mean for line in mine]
        assert means == sorted(means, reverse=True)
        assert mine[0].rank == 1 and mine[0].p_above is None
        for above, below in pairwise(mine):
            values = [
                [r["with_accuracy"] for r in rows if r["learner"] == learner
                 and r["adversary"] == line.labels["adversary"]]
                for line in (above, below)
            ]  # fmt: skip
            raw.append((float(compare_signed_ranks(*values)[0][0]), below))
    for p, (_, line) in zip(adjust_by_holm([p for p, _ in raw]), raw, strict=True):
        # The mean and the ranks may contradict each other: nothing is told then.
        assert line.p_above >= p - 1e-12 or line.p_above == 1
    starts = [line for line in both.lines if line.rank == 1]
    assert len(starts) >= 2


def test_attacks_without_a_corrector_are_not_ranked():
    rows = run(NULL) + run([None] * 12)
    (board,) = boards_of(rows)
    assert labels(board, "adversary", "corrector") == [
        (1, "a2", "posterior"), (2, "a1", "posterior"),
        (None, "a2", "none"), (None, "a1", "none"),
    ]  # fmt: skip
    assert (board.reference.rank, board.reference.labels["adversary"]) == (None, "largest group")
    reference = board.reference.measures
    assert reference["majority_accuracy"].mean == reference["without_accuracy"].mean
    assert reference["majority_accuracy"].mean == pytest.approx(0.671)
    assert set(reference) == {"majority_accuracy", "without_accuracy"}


def test_a_run_without_any_disclosure_is_ranked_by_what_it_measured():
    (board,) = boards_of(run([None] * 3))
    assert board.rank_by == "without_accuracy"


def test_columns_are_in_percent_in_the_order_of_what_is_known():
    (board,) = boards_of(run(CLEAR))
    table = make_sheet(board)
    assert [column.heading for column in table.columns] == [
        "#", "adversary", "baseline", "without", "with", "leak", "limit", "95 % of leak", "95 %",
        "p",
    ]  # fmt: skip
    assert table.rows[0][:8] == (
        "1", "a2", "67.1", "85.1", "85.4", "+0.31", "0.92", "+0.30 to +0.31",
    )  # fmt: skip
    assert table.rows[-1][1:4] == ("largest group", "67.1", "67.1")
    assert "% of people" in table.about
    # What is asked for by name has the decimals of all other boards.
    chosen = make_sheet(board, ["leak", "limit_covers", "people"])
    assert [column.heading for column in chosen.columns][2:5] == ["leak", "people", "with"]
    assert chosen.rows[0][2:5] == ("0.31", "15,074", "85.36")


@pytest.mark.parametrize("width", [80, 140])
def test_all_columns_of_a_leak_fit_a_terminal_of_80(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    rows = run(CLEAR, learner="exponentiated-gradient tolerance=0.02") + run(NULL, learner="plain")
    show_leaderboards(boards_of(rows + run([None] * 12)))
    shown = capsys.readouterr().out.splitlines()
    head = next(line for line in shown if line.startswith("#"))
    assert all(word in head for word in ("baseline", "without", "with", "leak", "limit", "95 % of"))
    assert shown[1] == "Naming the largest group is right for 67.1 % of people."
    groups = [line.rstrip() for line in shown if line.startswith(("learner", "no attack"))]
    assert groups == [
        "learner exponentiated-gradient tolerance=0.02", "learner plain", "no attack",
    ]  # fmt: skip
    assert max(len(line) for line in shown if "each level" not in line) <= width


def test_other_forms_keep_the_labels_of_groups_in_columns_and_open_with_the_sentences():
    (board,) = boards_of(run(CLEAR, learner="one") + run(NULL, learner="two"))
    table = make_sheet(board)
    said = " ".join(board.sentences)
    assert len(board.sentences) == 3
    assert "| learner |" in write_markdown(
        [table]
    ) and "67.1 % of people. From features" in write_markdown([table])
    assert "<th scope='col' style='text-align:left'>learner</th>" in write_html([table])
    assert write_html([table]).startswith(f"<p>{said}</p>")
    assert "learner & adversary" in write_latex([table])
    plain = to_data(board)
    assert plain["sentences"] == list(board.sentences) and plain["within"] == list(board.within)
    assert len(plain["lines"]) == 4
    assert plain["reference"]["labels"]["adversary"] == "largest group"
    json.dumps(plain)


def test_rows_without_beliefs_are_ranked_by_gain():
    old = [{k: v for k, v in row.items() if k not in NEW} for row in run(NULL)]
    (board,) = boards_of(old)
    assert (board.rank_by, board.sentences) == ("gain", ())
    assert board.reference is None
    table = make_sheet(board)
    assert not {"with", "leak", "limit"} & {column.heading for column in table.columns}
    (mixed,) = boards_of(run(NULL) + [{**row, "adversary": "old"} for row in old])
    assert mixed.rank_by == "with_accuracy"
    assert labels(mixed, "adversary")[2:] == [(None, "old")]
    assert make_sheet(mixed).rows[2][2:7] == ("67.1", "-", "-", "-", "-")


def test_ranked_by_gain_the_board_is_the_papers_and_marks_what_is_above_the_limit():
    rows = run(CLEAR) + run([None] * 12)
    (board,) = boards_of(rows, "gain")
    assert board.within == () and board.reference is None
    headings = [column.heading for column in make_sheet(board).columns]
    assert headings[-6:] == ["repair", "guess", "corrected", "gain", "sd", "95 %"]
    said = "gain exceeds its limit in 2 lines: at least the difference is repair"
    assert any(note.startswith(said) for note in make_sheet(board).notes)
    modest = [{**row, "gain": 0.001} for row in rows if row["gain"] is not None]
    (board,) = boards_of(modest, "gain")
    assert "repair" not in [column.heading for column in make_sheet(board).columns]
    assert not any("limit" in note for note in make_sheet(board).notes)


def test_means_over_data_sets_say_nothing_and_each_data_set_says_its_own():
    rows = run(NULL) + run(CLEAR, dataset="compas", majority_accuracy=0.9)
    overall, adult, compas = boards_of(rows)
    assert overall.sentences == ()
    assert overall.within == ("learner", "disclosure")
    assert adult.sentences[0] == "Naming the largest group is right for 67.1 % of people."
    assert compas.sentences[0] == "Naming the largest group is right for 90.0 % of people."


def test_audits_alone_say_nothing():
    row = {**dict.fromkeys(KINDS, ""), "cell": "", "dataset": "d", "learner": "l", "auditor": "p",
           "seed": 0, "status": "done", "reason": None, "seconds": 1.0, "error": 0.1}  # fmt: skip
    (board,) = boards_of([row])
    assert board.sentences == () and board.lines[0].rank == 1


def test_sorted_lines_keep_their_ranks_in_groups_and_name_the_group():
    from fpbench.cli.leaderboard import _sort_lines

    (board,) = boards_of(run(CLEAR, learner="one") + run(NULL, learner="two"))
    assert make_sheet(board).sections == ("learner",)
    table = make_sheet(_sort_lines(board, "adversary"))
    assert table.sections == ()
    assert [row[:3] for row in table.rows[:4]] == [
        ("2", "one", "a1"), ("2", "two", "a1"), ("1", "one", "a2"), ("1", "two", "a2"),
    ]  # fmt: skip


# Sentences


def said(rows):
    (board,) = boards_of(rows)
    assert len(board.sentences) <= 3
    return board.sentences


ALONE = (("a2", 0.85),)


def beside(leaks, others=NULL, count=9, **more):
    """One line, and others of which nothing is to be said: 120 values at 12 seeds."""
    rows = run(leaks, ALONE, learner="first", **more)
    return rows + [
        row
        for i in range(count)
        for row in run(
            [leak * (1 - i / 100) for leak in others], ALONE, learner=f"other{i}", **more
        )
    ]


def write_student(values, lines):
    """Student's interval, each end of which is exceeded with 2 % in all lines together."""
    error = stats.sem(values)
    low, high = stats.t(len(values) - 1, np.mean(values), error).interval(1 - 0.04 / lines)
    return f"{format_points(low)} to {format_points(high)}"


def test_a_leak_that_seeds_tell():
    baseline, best, added = said(beside(CLEAR))
    assert baseline == "Naming the largest group is right for 67.1 % of people."
    assert best == "From features and predictions the best attack on first guesses 85.1 % (a2)."
    limits = [row["limit"] for row in add_comparisons(Results.of(beside(CLEAR))).rows()]
    assert added == (
        "Of the best attacks on 10 learners, the one on first gains most: the published claim "
        f"adds 0.31 points (95 % of 10 at once: {write_student(CLEAR, 10)}); an attacker who knows "
        f"the population gains at most {format_points_above(np.mean(limits))} points on average "
        "from it."
    )
    # What uses no disclosure is not among the lines that it was chosen from.
    assert said(beside(CLEAR) + run([None] * 12, ALONE, learner="first"))[-1] == added


def test_a_leak_that_seeds_do_not_tell():
    (*_, added) = said(beside(NULL))
    assert (
        "adds nothing that 12 seeds can tell (0.00 points, 95 % of 10 at once: "
        f"{write_student(NULL, 10)}); an" in added
    )


@pytest.mark.parametrize("scale", [1, 1.05])
def test_an_effect_is_told_from_the_width_on_that_the_interval_says(scale):
    """Just inside, and just outside of it: neither end is too near or too far."""
    noise = np.array(NULL)
    half = stats.t(11).ppf(1 - 0.02 / 10) * stats.sem(noise)
    (*_, added) = said(beside([*(noise + (scale - 0.025) * half)]))
    assert ("can tell" in added) is (scale == 1)
    (*_, added) = said(beside([*(noise - (scale - 0.025) * half)], [*(noise - 2 * half)]))
    assert ("can tell" in added) is (scale == 1)


def test_few_values_are_told_as_they_are():
    """Fewer than 10 seeds, or 100 values of the board."""
    told = "adds 0.31 points on average over 12 seeds (+0.30 to +0.31; too few to tell about others"
    for rows in (run(CLEAR, ALONE), beside(CLEAR, count=7)):
        assert f"{told}); an attacker" in said(rows)[-1]
    assert "at once" in said(beside(CLEAR, count=8))[-1]
    assert "at once" in said(beside(CLEAR[:10], NULL[:10]))[-1]
    assert "too few to tell" in said(beside(CLEAR[:9], NULL[:9], 20))[-1]
    assert "too few to tell" in said(beside(CLEAR[:10], NULL[:10], 8))[-1]
    assert "on average over 2 seeds (+0.30 to +0.30; too few" in said(run(CLEAR[:2], ALONE))[-1]
    three = said(run([0.006, 0.001, 0.002], ALONE))[-1]
    assert "adds 0.30 points on average over 3 seeds (+0.10 to +0.60; too few to tell" in three
    # Values that are all the same show no law.
    assert "too few to tell" in said(beside(CLEAR, [0.001] * 12))[-1]


def test_skewed_values_are_not_judged():
    rare = [-0.0003] * 11 + [0.0033]
    for sign in (1, -1):
        added = said(beside(CLEAR, [sign * leak for leak in rare]))[-1]
        assert "adds 0.31 points on average over 12 seeds (+0.30 to +0.31; too skewed to" in added
    # One skewed line of ten is within what normal values do.
    assert "at once" in said(beside(CLEAR) + run(SKEWED, ALONE, learner="skewed"))[-1]


SKEWED = [0.0001 * seed**2 - 0.0042 for seed in range(12)]


def test_an_attack_that_gains_more_without_being_the_best_is_named():
    """So that the largest leak of the board does not contradict the sentence."""
    much = [10 * leak for leak in CLEAR]
    best = beside(CLEAR) + run(NULL, (("a2", 0.9),), learner="other")
    *_, added = said(best + run(much, (("a1", 0.8),), learner="other"))
    points = format_points(np.mean(much)).lstrip("+")
    assert (
        f"; other attacks gain up to {points} points (a1 on other), but guess no more than the "
        "best; an" in added
    )
    few = [row for row in best + run(much, (("a1", 0.8),), learner="other") if row["seed"] < 9]
    unsure = run([0.2, -0.1] * 6, (("a1", 0.8),), learner="other")
    less = run([leak / 2 for leak in CLEAR], (("a1", 0.8),), learner="other")
    for rows in (few, best + unsure, best + less, best):
        assert "other attacks" not in said(rows)[-1]


LAWS = {
    "normal": lambda rng, size: rng.normal(0, 1, size),
    "exponential": lambda rng, size: rng.exponential(1, size) - 1,
    "minus exponential": lambda rng, size: 1 - rng.exponential(1, size),
    "lognormal": lambda rng, size: rng.lognormal(0, 1, size) - math.exp(0.5),
    "minus lognormal": lambda rng, size: math.exp(0.5) - rng.lognormal(0, 1, size),
    "mostly 0": lambda rng, size: (rng.random(size) < 0.3) * rng.choice([-1, 1], size),
    "counts": lambda rng, size: np.round(rng.normal(0, 1.2, size)),
    "rare": lambda rng, size: np.where(rng.random(size) < 0.1, 9, -1) * rng.uniform(0.9, 1.1, size),
    "minus rare": lambda rng, size: (
        np.where(rng.random(size) < 0.1, -9, 1) * rng.uniform(0.9, 1.1, size)
    ),
}  # fmt: skip
"""Laws of mean 0."""


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("seeds", "learners", "runs", "most"), [
    (10, 10, 20, 3),
    (20, 1, 10, 0),
    pytest.param(10, 40, 400, 30, marks=pytest.mark.slow),
    pytest.param(12, 12, 400, 30, marks=pytest.mark.slow),
    pytest.param(20, 5, 200, 17, marks=pytest.mark.slow),
])  # fmt: skip
def test_false_effects_are_rare(law, seeds, learners, runs, most):
    rng = np.random.default_rng([len(law), seeds, learners])
    wrong = 0
    for _ in range(runs):
        leaks = LAWS[law](rng, (learners, seeds)) / 1000
        rows = [
            attack("a2", seed, 0.8, leaks[i, seed], learner=f"l{i}")
            for i in range(learners)
            for seed in range(seeds)
        ]
        added = said(rows)[-1]
        wrong += "adds nothing" not in added and "on average over" not in added
    assert wrong <= most


@given(st.floats(0, 1))
def test_a_bound_is_never_rounded_down(share):
    assert float(format_points_above(share)) >= 100 * share - 1e-7
    assert float(format_points_above(share)) <= 100 * share + 0.01 + 1e-9
    assert abs(float(format_percent(share)) - 100 * share) <= 0.05 + 1e-9
    assert format_points(-share) != "-0.00"
    assert format_points(share).strip("+-") == format_points(-share).strip("+-")


def test_halves_are_rounded_up_as_the_page_does():
    assert [format_percent(share) for share in (0.7125, 0.7135, 1.0, 0.0)] == [
        "71.3",
        "71.4",
        "100.0",
        "0.0",
    ]
    assert [format_points(share) for share in (0.00125, -0.00125, 1e-9)] == [
        "+0.13",
        "-0.13",
        "0.00",
    ]
    assert (
        format_percent(math.inf) == format_points(math.nan) == format_points_above(math.inf) == "-"
    )


def test_a_leak_that_is_no_number_breaks_nothing():
    (board,) = boards_of(run([math.inf, math.nan, 0.001], ALONE))
    assert board.sentences[-1].startswith("The published claim adds 0.10 points at one seed")
    assert leaderboard.list_columns(board) == [
        name for name in LEAK_COLUMNS if name != "without_model_accuracy"
    ]


# The waterfall


SEEN = {"a1": "features", "a2": "features, predictions", "a3": "features, labels, scores"}


def levels(rows):
    (board,) = boards_of(rows)
    return board.waterfall


def test_levels_are_the_best_attacks_that_see_no_more():
    rows = [
        row
        for name, without in (("a1", 0.8), ("a2", 0.85), ("a3", 0.9))
        for row in run(CLEAR, ((name, without),), sees=SEEN[name])
    ]
    rows += run([None] * 12, (("weak", 0.7), ("strong", 0.81)), sees="features")
    waterfall = levels(rows)
    assert [(level.name, level.attack) for level in waterfall.levels] == [
        ("largest group", ""), ("features", "strong"), ("predictions", "a2"), ("scores", "a3"),
        ("claim", "a3"),
    ]  # fmt: skip
    mean = {name: np.mean([r["without_accuracy"] for r in rows if r["adversary"] == name])
            for name in ("strong", "a2", "a3")}  # fmt: skip
    best = np.mean([r["with_accuracy"] for r in rows if r["adversary"] == "a3"])
    assert [level.right.mean for level in waterfall.levels] == pytest.approx(
        [0.671, mean["strong"], mean["a2"], mean["a3"], best]
    )
    assert waterfall.lacking == () and waterfall.chosen == ""
    assert waterfall.caption == (
        "Learner plain, disclosure published: each level is the best attack that sees no more, "
        "calibrated."
    )


def test_a_waterfall_is_of_one_model_and_names_it_and_what_is_not_there():
    rows = run(NULL, ALONE, learner="first") + run(CLEAR, ALONE, learner="second")
    waterfall = levels(rows)
    assert waterfall.about == "learner second, disclosure published"
    assert waterfall.lacking == ("features", "scores")
    assert (
        "Of 2 learners, the one where the disclosure adds most to the best attack is shown"
        in waterfall.caption
    )
    assert "attacks that see features at most, attacks that see scores at most" in waterfall.caption
    assert levels(run([None] * 3)) is None
    assert levels([{**row, "adversary_sees": "", "majority_accuracy": None}
                   for row in run(NULL)]) is None  # fmt: skip


def test_levels_of_the_waterfall_never_fall():
    """So that the bar of the claim says what the sentence says."""
    rows = run(CLEAR, (("a1", 0.82),), sees=SEEN["a1"]) + run(NULL, (("a2", 0.81),))
    waterfall = levels(rows)
    assert [level.attack for level in waterfall.levels[1:]] == ["a1", "a1", "a1"]
    means = [level.right.mean for level in waterfall.levels]
    assert means[1] == means[2]
    assert means[3] - means[2] == pytest.approx(np.mean(CLEAR))
    assert "its own guess" not in waterfall.caption
    # Where another attack was the best before, its own gain is said, too.
    rows = run(CLEAR, (("a1", 0.82),), sees=SEEN["a1"]) + run(NULL, (("a2", 0.821),))
    waterfall = levels(rows)
    assert [level.attack for level in waterfall.levels[1:]] == ["a1", "a2", "a1"]
    assert ". a1 adds +0.31 points to its own guess without the disclosure." in waterfall.caption


@given(st.floats(0, 1), st.floats(0, 1))
def test_bars_are_as_long_as_the_shares(before, after):
    bar = "".join(draw_bar(before, after)).rstrip()
    light, dark = bar.count("░"), bar.lstrip("░")
    length = sum(8 if letter == "█" else " ▏▎▍▌▋▊▉".index(letter) for letter in dark) / 8
    assert abs(light - 26 * min(before, after)) <= 0.5 + 1e-9
    assert abs(length - 26 * max(after - before, 0)) <= 1 / 16 + 1e-9


def test_the_meaning_of_p_is_noted():
    table = make_sheet(boards_of(run(CLEAR))[0])
    note = "p: whether a line differs from the line above"
    wide, narrow = table.fit(200)[0], table.fit(60)[0]
    assert (note in wide.legend, note in narrow.legend) == (True, False)
    assert [column.heading for column in narrow.columns].count("p") == 0
    assert note not in make_sheet(boards_of(run(CLEAR, ALONE))[0]).legend


def test_a_leak_above_its_limit_is_explained():
    much = [20 * leak for leak in CLEAR]
    for leaks, noted in ((much, True), (NULL, False)):
        remarks = make_sheet(boards_of(run(leaks, ALONE))[0]).remarks
        assert any(text.startswith("leak may exceed limit: ") for text in remarks) is noted


def test_bars_are_shown_below_the_board_unless_columns_are_chosen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    boards = boards_of(run(CLEAR))
    show_leaderboards(boards)
    shown = capsys.readouterr().out
    assert re.search(r"^predictions +85\.1 \+17\.96 ░{17}█{4}[▋▊]? ", shown, re.MULTILINE)
    assert "each level is the best attack" in shown
    show_leaderboards(boards, ["leak"])
    assert "each level" not in capsys.readouterr().out


def test_attacks_given_claims_with_other_guarantees_stand_on_one_board():
    """None is ranked against an attack that was given another claim; by another measure it is."""
    rows = run(NULL) + run(NULL, disclosure="noisy", claim_delta=1e-6, claim_epsilon=1.0)
    rows += run(NULL, disclosure="noisier", claim_delta=1e-5, claim_epsilon=1.0)
    (board,) = boards_of(rows)
    assert board.apart == ()
    assert {line.labels["disclosure"] for line in board.lines} == {"published", "noisy", "noisier"}
    assert len(boards_of(rows, "leak")) == 3


def test_a_terminal_shows_the_best_of_each_task(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    rows = [
        {**row, "adversary": f"a{i}", "learner": f"l{j}", "with_accuracy": row["with_accuracy"] - i / 50}
        for i in range(4) for j in range(5) for row in run(CLEAR)
    ]  # fmt: skip
    boards = boards_of(rows)
    (board,) = boards
    for most in range(1, 25):
        chosen = [board.lines[i] for i in choose_best(board, most)]
        assert len(chosen) <= most
        assert len({line.labels["learner"] for line in chosen}) == min(most, 5)
        best = {f"a{i}" for i in range(4) if i < max(most // 5, 1)}
        assert {line.labels["adversary"] for line in chosen} == best
    show_leaderboards(boards)
    shown = capsys.readouterr().out
    assert re.findall(r"^ ?=?\d a(\d)", shown, re.M) == ["0", "1"] * 5
    assert "10 more lines" in shown
    show_leaderboards(boards, most=100)
    assert len(re.findall(r"^ ?=?\d a(\d)", capsys.readouterr().out, re.M)) == 20
