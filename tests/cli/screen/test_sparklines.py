"""Sweeps in one line each."""

from hypothesis import given
from hypothesis import strategies as st

from fpbench.cli.screen.sparklines import LEVELS, curves, sparkline
from fpbench.results.leaderboard import Leaderboard, Line
from fpbench.results.statistics.intervals import Interval


def board(means, **others):
    lines = tuple(
        Line(1, {"learner": label, "corrector": other}, {"gain": Interval(mean, None, None, None, 1)},
             1, 0, ())
        for other in others or ("exact",)
        for label, mean in means.items()
    )  # fmt: skip
    return Leaderboard("", "gain", ("learner", "corrector"), lines)


def test_a_sweep_is_found_in_labels():
    means = {
        "fair tolerance=0.1": 3.0,
        "fair tolerance=0.0": 1.0,
        "fair tolerance=1e-2": 2.0,
        "plain": 9,
    }
    (curve,) = curves(board(means))
    assert (curve.parameter, curve.values, curve.means) == (
        "tolerance",
        (0.0, 0.01, 0.1),
        (1, 2, 3),
    )
    assert curve.labels == ("fair",)
    assert curve.line == "▁▅█"


def test_what_differs_otherwise_is_another_curve():
    means = {f"fair tolerance={i} depth={j}": i * j for i in (1, 2, 3) for j in (1, 2, 3)}
    found = {(c.parameter, c.labels): c.means for c in curves(board(means))}
    assert found["tolerance", ("fair depth=2",)] == (2, 4, 6)
    assert found["depth", ("fair tolerance=3",)] == (3, 6, 9)
    assert len(found) == 6


def test_two_points_and_flat_curves_are_none():
    assert curves(board({"a x=1": 1.0, "a x=2": 2.0})) == []
    assert curves(board({"a x=1": 1.0, "a x=2": 1.0, "a x=3": 1.0})) == []
    assert curves(board({"a x=one": 1.0, "a x=two": 2.0, "a x=three": 3.0})) == []


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_heights_follow_the_numbers(means):
    drawn = sparkline(means)
    assert len(drawn) == len(means)
    heights = [LEVELS.index(letter) for letter in drawn]
    for one, x in zip(heights, means, strict=True):
        for other, y in zip(heights, means, strict=True):
            assert not (x < y and one > other)
    if max(means) > min(means):
        assert {0, 7} <= set(heights)


def test_what_is_said_beside_components_parts_no_sweep():
    """The strongest attack on a learner is another at each value of its parameter."""
    lines = tuple(
        Line(1, {"learner": f"fair tolerance={i}", "strongest attack": f"a{i}"},
             {"leak": Interval(i, None, None, None, 1)}, 1, 0, ())
        for i in (1, 2, 3)
    )  # fmt: skip
    (curve,) = curves(Leaderboard("", "leak", ("learner", "strongest attack"), lines))
    assert (curve.means, curve.labels) == ((1, 2, 3), ("fair",))
