"""What each published thing gives away: verdicts, words, and which things are told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.results.findings import (
    MOST_LEAK,
    PublishedThing,
    Verdict,
)
from fpbench.results.intervals import Interval
from fpbench.results.leaderboard import Leaderboard, Line
from fpbench.results.sentences import make_findings

SHARES = st.floats(0, 1)
ADDED = st.builds(
    lambda mean, below, above: Interval(mean, 0.01, mean - below, mean + above, 10),
    st.floats(-0.2, 0.5), st.floats(0, 0.1), st.floats(0, 0.1),
)  # fmt: skip


@given(added=ADDED, proven=SHARES, sure=SHARES)
def test_a_thing_is_within_the_limits_if_nobody_is_proven_and_little_is_added(added, proven, sure):
    thing = PublishedThing("a table", {}, 0.7, added, proven, sure)
    told = proven + sure > 0
    assert (thing.verdict is Verdict.WITHIN) == (not told and added.high <= MOST_LEAK)
    assert (thing.verdict is Verdict.BEYOND) == (told or added.low > MOST_LEAK)
    assert ("proven" in thing.words) == told
    assert ("adds nothing" in thing.words) >= (added.low <= 0 <= added.high)


def test_one_seed_tells_nothing_about_others():
    thing = PublishedThing("a table", {}, 0.7, Interval(0.001, None, None, None, 1))
    assert thing.verdict is Verdict.OPEN
    assert thing.words == "0.10 points more guessed right at one seed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"proven": 0.25, "rate_error": 0.0}, "1 in 4 people proven, 2.00 points more"),
        ({"proven": 0.9}, "90.0 % of people proven, 2.00 points more"),
        ({"sure": 0.01}, "1 in 100 people as good as proven, 2.00 points more"),
        ({"rate_error": 0.027}, "nobody is proven, 2.00 points more guessed right, rates off by 2.7"),
    ],
)  # fmt: skip
def test_words_are_those_of_the_numbers(options, words):
    thing = PublishedThing("a table", {}, 0.7, Interval(0.02, 0.01, 0.015, 0.025, 10), **options)
    assert thing.words.startswith(words)


def make_line(learner, disclosure, adversary, **means):
    labels = {"dataset": "flock", "learner": learner, "disclosure": disclosure,
              "adversary": adversary, "corrector": "posterior"}  # fmt: skip
    measures = {n: Interval(m, 0.01, m - 0.001, m + 0.001, 10) for n, m in means.items()}
    return Line(1, labels, measures, 10, 0, ())


SEES = {"a1": "features", "a2": "features, predictions"}


def find(*lines):
    kinds = ("dataset", "learner", "disclosure", "adversary", "corrector")
    board = Leaderboard("", "with_accuracy", kinds, lines, within=("learner", "disclosure"))
    seeds = np.linspace(-0.001, 0.001, 10)
    leaks, withouts = (
        np.array([line.measures[name].mean + seeds for line in lines])
        for name in ("leak", "without_accuracy")
    )
    texts = {"group_names": lambda line: "ewe, ram",
             "secret": lambda line: "sex",
             "adversary_sees": lambda line: SEES[line.labels["adversary"]]}  # fmt: skip
    return make_findings(board, leaks, withouts, lambda name, i: texts[name](lines[i]))


def test_predictions_are_a_thing_if_an_attack_does_not_see_them():
    seeing = make_line("fair", "published", "a2", without_accuracy=0.8, leak=0.0)
    blind = make_line("fair", "published", "a1", without_accuracy=0.75, leak=0.01)
    predictions, claim = find(seeing, blind).things
    assert predictions.name == "predictions of fair"
    assert predictions.added.mean == pytest.approx(0.05, abs=0.01)
    assert predictions.without == 0.75
    assert claim.name == "published claim"
    assert claim.added.mean == 0.0  # of the best attack
    assert [thing.name for thing in find(seeing).things] == ["published claim"]


def test_of_many_things_those_that_give_most_away_are_shown_in_order():
    order = [5, 1, 7, 3, 0, 6, 2, 4]
    lines = [
        make_line(f"m{i}", "table", "a2", without_accuracy=0.7, leak=i / 100, people=50.0,
                  majority_accuracy=0.6) for i in order
    ]  # fmt: skip
    findings = find(*lines)
    assert [thing.name for thing in findings.things] == [f"table of m{i}" for i in order if i > 1]
    assert findings.unshown == 2
    assert findings.baseline == 0.6
    assert findings.scene.startswith("The sex (ewe or ram) of 50 people of flock is secret.")
    assert "features and predictions" in findings.scene
    assert "70.0 % right (naming the largest group: 60.0 %)" in findings.scene
