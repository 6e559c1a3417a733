"""Sweeps in one line each."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fpbench.cli.screen.results import LEVELS, draw_sparkline, list_curves
from fpbench.results.intervals import Interval
from fpbench.results.leaderboard import Leaderboard, Line
from fpbench.results.rows.labels import ConfiguredComponent, name_parameters


def settings(labels):
    """What a matrix stores of labels: here, what their ends name."""
    components = {}
    for label in labels:
        use, *swept = label.split()
        values = dict(each.split("=") for each in swept)
        numbers = {k: float(v) if v[0].isdigit() else v for k, v in values.items()}
        components[label] = ConfiguredComponent(use, numbers)
    return name_parameters({"learner": components})


def board(means, **others):
    lines = tuple(
        Line(1, {"learner": label, "corrector": other}, {"gain": Interval(mean, None, None, None, 1)},
             1, 0, ())
        for other in others or ("exact",)
        for label, mean in means.items()
    )  # fmt: skip
    return Leaderboard("", "gain", ("learner", "corrector"), lines, settings=settings(means))


def test_a_sweep_is_a_curve():
    means = {
        "fair tolerance=0.1": 3.0,
        "fair tolerance=0.0": 1.0,
        "fair tolerance=0.01": 2.0,
        "plain": 9,
    }
    (curve,) = list_curves(board(means))
    assert (curve.parameter, curve.values, curve.means) == (
        "tolerance",
        (0.0, 0.01, 0.1),
        (1, 2, 3),
    )
    assert curve.labels == ("fair",)
    assert curve.line == "▁▅█"


def test_what_differs_otherwise_is_another_curve():
    means = {f"fair tolerance={i}.0 depth={j}.0": i * j for i in (1, 2, 3) for j in (1, 2, 3)}
    found = {(c.parameter, c.labels): c.means for c in list_curves(board(means))}
    assert found["tolerance", ("fair depth=2.0",)] == (2, 4, 6)
    assert found["depth", ("fair tolerance=3.0",)] == (3, 6, 9)
    assert len(found) == 6


def test_two_points_and_flat_curves_are_none():
    assert list_curves(board({"a x=1.0": 1.0, "a x=2.0": 2.0})) == []
    assert list_curves(board({"a x=1.0": 1.0, "a x=2.0": 1.0, "a x=3.0": 1.0})) == []
    assert list_curves(board({"a x=one": 1.0, "a x=two": 2.0, "a x=three": 3.0})) == []


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_heights_follow_the_numbers(means):
    drawn = draw_sparkline(means)
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
        Line(1, {"learner": f"fair tolerance={i}.0", "strongest attack": f"a{i}"},
             {"leak": Interval(i, None, None, None, 1)}, 1, 0, ())
        for i in (1, 2, 3)
    )  # fmt: skip
    (curve,) = list_curves(Leaderboard("", "leak", ("learner", "strongest attack"), lines,
                                      settings=settings(line.labels["learner"] for line in lines)))  # fmt: skip
    assert (curve.means, curve.labels) == ((1, 2, 3), ("fair",))


def test_a_label_that_only_looks_like_a_sweep_is_none():
    """Parameters are those of the matrix; a label may hold any text."""
    means = {"a x=1.0": 1.0, "a x=2.0": 2.0, "a x=3.0": 3.0}
    other = {label: ConfiguredComponent("a", {"y": i}) for i, label in enumerate(means)}
    named = replace(board(means), settings=name_parameters({"learner": other}))
    assert list_curves(board(means))
    assert list_curves(named) == []
