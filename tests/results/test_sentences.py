"""Sentences of leaderboards that are made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fpbench.results import sentences
from fpbench.results.intervals import Interval
from fpbench.results.leaderboard import Leaderboard, Line
from fpbench.results.sentences import (
    choose_line,
    count_groups,
    describe_added,
    list_words,
    name_attack,
    summarise_leak,
    summarise_ranking,
)


def line(rank, adversary, learner="plain", corrector="posterior", **means):
    labels = {
        "learner": learner, "disclosure": "counts", "adversary": adversary, "corrector": corrector
    }  # fmt: skip
    measures = {n: Interval(m, 0.01, m - 0.01, m + 0.01, 5) for n, m in means.items()}
    return Line(rank, labels, measures, 5, 0, ())


def board(*lines, **options):
    kinds = ("learner", "disclosure", "adversary", "corrector")
    return Leaderboard("title", options.pop("by", "gain"), kinds, lines, **options)


@pytest.mark.parametrize(
    ("ranks", "tied"),
    [((1, 2), ""), ((1, 1, 3, None), "; 1 other is tied with it"),
     ((1, 1, 1, 4), "; 2 others are tied with it")],
)  # fmt: skip
def test_the_first_of_a_ranking_and_what_is_tied_with_it(ranks, tied):
    lines = [line(rank, f"a{i}", gain=0.5 - i / 10) for i, rank in enumerate(ranks)]
    count = sum(rank is not None for rank in ranks)
    assert summarise_ranking(board(*lines)) == (
        f"Of {count} lines, a0 has the greatest gain: 50.00 % (95 %: 49.00 to 51.00 %){tied}.",
    )


def test_a_ranking_says_where_it_is_and_names_what_differs_among_the_ranked():
    lines = [line(1, "a1", gain=0.1), line(2, "a1", "fair", gain=0.05), line(None, "a2")]
    assert summarise_ranking(board(*lines, scope="adult", apart=("people 5",)))[0].startswith(
        "Of 2 lines (adult, people 5), plain has the greatest gain: 10.00 % "
    )
    assert not summarise_ranking(board(lines[0], lines[2]))
    quick = summarise_ranking(
        board(*(line(r, f"a{r}", seconds=float(r)) for r in (1, 2)), by="seconds")
    )
    assert quick[0].startswith("Of 2 lines, a1 has the least ")


BOTH = "features, predictions"
LINES = (
    line(1, "a1", without_accuracy=0.7, leak=0.02, limit=0.05, majority_accuracy=0.6),
    line(1, "a2", without_accuracy=0.7, leak=0.01),
    line(3, "a3", without_accuracy=0.6, leak=0.03),
    line(1, "a1", "fair", without_accuracy=0.8, leak=0.01),
    line(None, "a9", "fair", without_accuracy=0.9, leak=0.5),
    line(2, "blind", "fair", without_accuracy=0.75, leak=0.0),
    line(3, "blinder", "fair", without_accuracy=0.72, leak=0.0),
)
ADDED = np.array([0.018, 0.019, 0.020, 0.021, 0.022, np.nan]) - np.arange(len(LINES))[:, None] / 1e3


def summarise(lines, texts, **options):
    of = board(*lines, by="with_accuracy", within=("learner",), **options)
    return summarise_leak(of, ADDED[: len(lines)], lambda name, at: texts[name][at])


def test_the_sentences_of_several_models():
    sees = [BOTH] * 5 + ["features"] * 2
    texts = {"adversary_sees": sees, "limit_covers": ["disclosure, not model"] * 7}
    assert summarise(LINES, texts) == (
        "Naming the largest group is right for 60.0 % of people.",
        "From features and predictions the best attack on plain guesses 70.0 % (a1; tied with a2); "
        "the predictions of fair add 5.00 points to what the other columns tell, and the best attack "
        "guesses 80.0 %.",
        "Of the best attacks on 2 learners, the one on plain gains most: the counts claim adds 2.00 "
        "points on average over 5 seeds (+1.80 to +2.20; too few to tell about others); an attacker "
        "who knows the population gains at most 5.00 points on average from it, apart from what "
        "the model itself gives away.",
    )


def test_the_sentences_of_attacks_that_see_no_predictions():
    texts = {"adversary_sees": ["features"] * 7, "limit_covers": ["disclosure"] * 7}
    assert summarise(LINES, texts)[1:] == (
        "From features the best attack on plain guesses 70.0 % (a1; tied with a2); the best on "
        "fair guesses 80.0 % from features.",
        "Of the best attacks on 2 learners, the one on plain gains most: the counts claim, with the "
        "predictions that it is about, adds 2.00 points on average over 5 seeds (+1.80 to +2.20; "
        "too few to tell about others); an attacker who knows the population gains at most 5.00 "
        "points on average from the claim alone.",
    )


def test_the_sentences_of_one_model_and_of_what_is_not_known():
    texts = {"adversary_sees": [""] * 3, "limit_covers": [""] * 3}
    without_limit = line(1, "a1", without_accuracy=0.7, leak=0.05)
    assert summarise((without_limit, *LINES[1:3]), texts) == (
        "From what it sees the best attack guesses 70.0 % (a1; tied with a2).",
        "The counts claim, with the predictions that it is about, adds 2.00 points on average over "
        "5 seeds (+1.80 to +2.20; too few to tell about others).",
    )
    assert summarise((line(None, "a1", leak=0.1),), texts) == ()


def test_no_other_model_is_the_best_by_what_is_not_printed():
    """Nor is the same model, given something else."""
    texts = dict.fromkeys(("adversary_sees", "limit_covers"), ["features"] * 2)
    one, other = (
        line(1, "a1", name, without_accuracy=0.7 + more, leak=0.02 - more)
        for name, more in (("plain", 0.0), ("fair", 0.0002))
    )
    assert "the best on" not in summarise((one, other), texts)[0]
    better = line(1, "a1", without_accuracy=0.75, leak=0.01)
    better = replace(better, labels={**better.labels, "disclosure": "rates"})
    of = board(one, better, by="with_accuracy", within=("learner", "disclosure"))
    said = summarise_leak(of, ADDED[:2], lambda name, at: texts[name][at])
    assert said[0] == "From features the best attack guesses 70.0 % (a1)."
    assert said[1].startswith("Of the best attacks on 2 disclosures, the one here gains most: the ")


def test_the_other_attack_with_the_greatest_gain_is_named():
    drawn = np.random.default_rng(1).normal(0, 0.002, 60)
    gains = {"a1": 0.02, "a2": 0.03, "a3": 0.06, "a4": 0.04}
    lines = [
        line(at, name, without_accuracy=0.9 - gain, leak=gain)
        for at, (name, gain) in enumerate(gains.items(), 1)
    ]
    of = board(*lines, by="with_accuracy", within=("learner",))

    def summary(*shifts):
        leaks = np.array([*gains.values()])[:, None] + np.array(shifts)[:, None] + drawn
        return summarise_leak(of, leaks, lambda name, at: "")[-1]

    assert summary(0, 0, 0, 0).endswith(
        "; other attacks gain up to 6.00 points (a3), but guess no more than the best."
    )
    assert "other attacks" not in summary(0, 0, -0.06, 0)  # which may be none


@pytest.mark.parametrize(
    ("tied", "words"),
    [(0, "a0"), (1, "a0; tied with a1"), (2, "a0; tied with a1 and a2"),
     (3, "a0; tied with 3 others")],
)  # fmt: skip
def test_two_tied_attacks_are_named_and_more_are_counted(tied, words):
    lines = [line(1, f"a{i}", without_accuracy=0.7) for i in range(tied + 1)]
    lines += [line(2, "other", without_accuracy=0.6)]
    texts = dict.fromkeys(("adversary_sees", "limit_covers"), ["features"] * len(lines))
    assert summarise(lines, texts)[0].endswith(f"guesses 70.0 % ({words}).")


def test_an_attack_is_named_by_what_differs_among_the_ranked():
    one = line(1, "a1", corrector="posterior")
    other, twin = line(2, "a1", corrector="cp"), line(2, "a2", corrector="cp")
    unranked = line(None, "a9", corrector="none")
    assert name_attack(board(one, unranked), one) == "a1"
    assert name_attack(board(one, other), one) == "posterior"
    assert name_attack(board(one, twin), one) == "a1 + posterior"
    assert name_attack(board(one, twin), one, adversary=True) == "a1"


def test_the_line_that_is_described_leaks_most_of_the_best_of_each_group():
    of = board(*LINES, by="with_accuracy", within=("learner",))
    assert choose_line(of) == 0
    assert count_groups(of) == {"learner": 2}
    swapped = board(*LINES[3:], *LINES[:3], by="with_accuracy", within=("learner",))
    assert choose_line(swapped) == 4


@pytest.mark.parametrize(("values", "words"), [
    ([0.02], "adds 2.00 points at one seed (other seeds may differ)"),
    ([-0.02] * 3, "takes away 2.00 points at each of 3 seeds"),
])  # fmt: skip
def test_what_equal_seeds_add(values, words):
    assert describe_added(np.array(values), np.array([values])) == words


@pytest.mark.parametrize(("values", "lines", "ends", "words"), [
    ([0.01, 0.03], 1, (0.001, 0.039), "adds 2.00 points (95 %: +0.10 to +3.90)"),
    ([0.01, 0.03], 3, (0.001, 0.039), "adds 2.00 points (95 % of 3 at once: +0.10 to +3.90)"),
    ([-0.01, -0.03], 1, (-0.03, -0.01), "takes away 2.00 points (95 %: -3.00 to -1.00)"),
    ([0.01, 0.03], 1, (0.0, 0.04),
     "adds nothing that 2 seeds can tell (+2.00 points, 95 %: 0.00 to +4.00)"),
    ([-0.01, -0.03], 1, (-0.04, 0.0),
     "adds nothing that 2 seeds can tell (-2.00 points, 95 %: -4.00 to 0.00)"),
])  # fmt: skip
def test_an_effect_is_one_whose_interval_is_without_zero(monkeypatch, values, lines, ends, words):
    monkeypatch.setattr(sentences, "bound_jointly", lambda *_: ends)
    assert describe_added(np.array(values), np.array([values] * lines)) == words


def test_words_are_listed():
    assert list_words([]) == ""
    assert list_words(["a", ""]) == "a"
    assert list_words(["a", "b"]) == "a and b"
    assert list_words(["a", "b", "c"]) == "a, b and c"
