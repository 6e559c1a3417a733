"""The limits of a gate: how they are written, and when a leak is within them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reports import make_people, make_report

from fpbench import InputError, assess
from fpbench.reports.assessments.attack import Allowed


@given(st.data(), st.integers(1, 10**6))
def test_leaks_are_compared_as_numbers_of_people(data, n):
    """177 of 300 people are guessed right, then 183: two of a hundred, in floats a little more."""
    with_, without = (data.draw(st.integers(0, n)) for _ in range(2))
    more = data.draw(st.integers(max(with_ - without - 2, 0), max(with_ - without + 2, 0)))
    assume(more < n)
    allowed = Allowed.of(more / n, 0)
    assert allowed.holds(with_ / n - without / n, 0) == (with_ - without <= more)
    whole = data.draw(st.integers(0, 99))
    leak = with_ / n - without / n
    inside = Fraction(with_ - without, n) <= Fraction(whole, 100)
    assert Allowed.of(f"{whole}%", 0).holds(leak, 0) == inside
    assert Allowed.of(whole / 100, 0).holds_leak(leak) == inside


def test_a_report_that_gives_away_what_is_allowed_passes():
    """And all that it says of itself agrees."""
    X, predictions, groups = make_people(300, seed=5)
    report = make_report(X, predictions, groups, order=1, by=["likely"])
    options = {"groups": groups, "beliefs": "shares", "max_proven": 300}
    leak = assess(report, X, predictions, **options).leak
    right = round(300 * leak)
    for most in (right, right - 1):
        result = assess(report, X, predictions, max_leak=most / 300, **options)
        passes = most == right
        assert result.passes == passes
        assert [check["outcome"] == "met" for check in result.to_json()["checks"]] == [
            passes,
            True,
            True,
        ]
        assert result.verdict.startswith("May be" if passes else "Do not")


@pytest.mark.parametrize(
    ("written", "share"),
    [(0, 0), (0.01, 0.01), ("0.01", 0.01), ("1%", 0.01), ("1 %", 0.01), ("100%", 1.0), ("0%", 0.0),
     (np.float32(0.5), 0.5), (0.999, 0.999), (".5%", 0.005)],
)  # fmt: skip
def test_a_leak_is_written_in_either_way(written, share):
    assert Allowed.of(written, 3) == Allowed(share, 3)


@pytest.mark.parametrize(
    ("written", "mend"),
    [(1, "1% or 0.01"), (1.0, "1% or 0.01"), ("1", "1% or 0.01"), ("1.0", "1% or 0.01"),
     (2.5, "2.5% or 0.025"), ("100", "1% or 0.01"), (-0.1, "1% or 0.01"), ("-1%", "1% or 0.01"),
     ("101%", "1% or 0.01"), ("nan", "1% or 0.01"), ("nan%", "1% or 0.01"),
     (True, "1% or 0.01"), (False, "1% or 0.01"), (float("inf"), "1% or 0.01"), ("%", "1% or 0.01"),
     ("1%%", "1% or 0.01"), ("", "1% or 0.01"), ([0.01], "1% or 0.01")],
)  # fmt: skip
def test_a_leak_that_can_be_misread_is_refused(written, mend):
    X, predictions, groups = make_people(20)
    report = make_report(X, predictions, groups, order=0)
    with pytest.raises(InputError) as raised:
        assess(report, X, predictions, max_leak=written)
    assert f"is no share of people: write {mend} (a number without % is below 1)" in str(
        raised.value
    )
