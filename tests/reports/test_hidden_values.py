"""Reports that hide a value and show its size, or the other way round: what is shown is a fact."""

from io import StringIO
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import FairnessReport, InputError

HIDDEN = ((), ("value",), ("n",), ("value", "n"))


def publish(jobs, predictions, groups):
    return FairnessReport.from_predictions(
        pd.DataFrame({"job": jobs}), predictions, groups, by=["job"], order=1, min_cell=1,
        metrics=["selection-rate", "selected"],
    ).to_frame().astype(object)  # fmt: skip


def is_shown_by(world, frame, jobs, predictions):
    """Whether the people, of these groups, have every number that is shown."""
    for row in frame.to_dict("records"):
        here = (jobs == row.get("job", "")) | (row.get("job", "") == "")
        if row["metric"] == "selected":
            members, number = here & (world == row["group"]) & (predictions == 1), row["value"]
            if number != "*" and members.sum() != number:
                return False
            continue
        members = here & (world == row["group"])
        if row["n"] != "*" and members.sum() != row["n"]:
            return False
        rate = predictions[members].mean() if members.any() else np.nan
        # Of a rate without its size, nobody is 0 or 1, too: only its people are checked.
        if row["value"] not in ("*", "") and members.any() and abs(rate - row["value"]) > 1e-9:
            return False
    return True


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_facts_are_exactly_what_is_shown(data):
    """Worlds that have every number shown satisfy the facts; and all that do have every size."""
    n = data.draw(st.integers(4, 7))
    jobs = np.array(data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)), object)
    predictions = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    groups = np.array(
        ["f", "m", *data.draw(st.lists(st.sampled_from("fm"), min_size=n - 2, max_size=n - 2))]
    )
    frame = publish(jobs, predictions, groups)
    frame = frame.where(frame.notna(), "")
    for row in frame.index:
        for column in data.draw(st.sampled_from(HIDDEN)):
            frame.loc[row, column] = "*"
    people = pd.DataFrame({"job": jobs})
    facts = FairnessReport.from_frame(frame, groups=["f", "m"]).facts(people, predictions)
    for codes in product((0, 1), repeat=n):
        counts = facts.count(np.eye(2)[list(codes)])
        holds = bool(((counts >= facts.low - 1e-9) & (counts <= facts.high + 1e-9)).all())
        world = np.array(["f", "m"])[list(codes)]
        if is_shown_by(world, frame, jobs, predictions):
            assert holds
        elif holds:
            sizes = frame[(frame["metric"] == "selection-rate") & (frame["n"] != "*")]
            for row in sizes.to_dict("records"):
                here = (jobs == row.get("job", "")) | (row.get("job", "") == "")
                assert (here & (world == row["group"])).sum() == row["n"]


TABLE = """job,group,metric,value,n
,f,selection-rate,0.5,8
,m,selection-rate,0.25,8
a,f,selection-rate,{value},{f}
a,m,selection-rate,0.5,{m}
"""
PEOPLE = pd.DataFrame({"job": ["a"] * 8 + ["b"] * 8})
PREDICTIONS = np.array([1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0])


def read(value, f, m, **options):
    frame = pd.read_csv(
        StringIO(TABLE.format(value=value, f=f, m=m)), dtype=str, keep_default_na=False
    )
    return FairnessReport.from_frame(frame, **options)


@pytest.mark.parametrize("hidden", ["", "*"])
def test_a_hidden_value_follows_from_totals_or_is_open(hidden):
    facts = read(hidden, 6, 2).facts(PEOPLE, PREDICTIONS)
    assert any(
        (low == high).all() and set(low) == {6, 2}
        for low, high in zip(facts.low, facts.high, strict=True)
    )
    with pytest.raises(InputError, match="row 2, column 'n': .* sums to 9 over the groups, but 8"):
        read(hidden, 7, 2).facts(PEOPLE, PREDICTIONS)


def test_a_block_with_a_hidden_value_is_hidden_as_a_whole_when_it_is_protected():
    """Else the hidden number would be published as 0."""
    report = read("*", 6, 2).protect(min_group=1).to_frame()
    inside = report[report["job"] == "a"]
    assert len(inside) == 2
    assert inside["value"].isna().all()
