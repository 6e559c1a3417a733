"""Rounding and cell keys: what is published, and which true numbers it leaves."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fpbench import FairnessReport, InputError
from fpbench.claims.cell_keys import find_transitions
from fpbench.reports.rounding import Rounding

NUMBERS = np.arange(80.0)
WAYS = st.one_of(
    st.builds(
        Rounding, st.sampled_from(["random", "nearest", "midpoint", "controlled"]),
        st.integers(2, 12), st.just(0.0),
    ),
    st.builds(Rounding.by_keys, st.integers(1, 10), st.sampled_from([0.5, 3.0])),
)  # fmt: skip


def list_published(rounding, number):
    """Every number that may be published of a true one, from the definitions."""
    m = rounding.base
    if rounding.way == "nearest":
        return {m * np.floor(number / m + 0.5)}
    if rounding.way == "midpoint":  # ceiling(x / m) * m - floor(m / 2) * (x != 0)
        return {m * np.ceil(number / m) - m // 2 * (number != 0)}
    if rounding.way == "cell-key":
        return {v for v in range(int(number) + m + 1) if abs(v - number) <= m} if number else {0}
    return {m * (number // m), m * -(-number // m)}


@given(WAYS, st.floats(-3, 60), st.floats(0, 20))
def test_a_reader_inverts_the_rounding(rounding, low, width):
    assert Rounding.parse(str(rounding)) == rounding
    published = sorted({value for number in NUMBERS for value in list_published(rounding, number)})
    for value in [value for value in published if value < 60][:12]:
        true = [number for number in NUMBERS if value in list_published(rounding, number)]
        least, most = rounding.find_ranges(np.array([value]))
        assert (least[0], most[0]) == (true[0], true[-1])
        assert max(abs(value - true[0]), abs(value - true[-1])) <= rounding.reach
    inside = [value for value in published if low <= value <= low + width]
    least, most = rounding.find_values(np.array([low]), np.array([low + width]))
    assert (least[0], most[0]) == (inside[0], inside[-1]) if inside else least[0] > most[0]
    if rounding.way in ("nearest", "midpoint"):
        assert [{value} for value in rounding.round(NUMBERS)] == [
            list_published(rounding, number) for number in NUMBERS
        ]


@pytest.mark.parametrize(
    "text", ["", "1", "2.5", "nearest", "nearest 1", "up 5", "cell-key 5", "cell-key 11 3.0",
             "cell-key 5 0", "5 5", "inf", "nan", "nearest 5 5"],
)  # fmt: skip
def test_other_texts_are_no_rounding(text):
    assert Rounding.parse(text) is None


def make(seed, columns=2, n=120, k=2, **options):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({c: rng.choice(list("pqr"), n) for c in "abcd"[:columns]})
    X.index = np.arange(100, 100 + n)
    people = X, rng.integers(0, 2, n), rng.choice(["f", "m", "n"][:k], n)
    return people, publish(*people, **options)


def publish(X, predictions, groups, **options):
    options = {"metrics": ["selected", "rejected"], "order": 2, "min_cell": 0} | options
    return FairnessReport.from_predictions(X, predictions, groups, by=list(X), **options)


def test_midpoint_6_shows_nothing_from_1_to_6_and_suppress_at_most_7_then_round_to_5():
    _, exact = make(0)
    middle = exact.protect(round_to=6, rounding="midpoint")
    assert set(middle.value) <= {0.0, *range(3, 1000, 6)}
    assert (middle.value[(exact.value >= 1) & (exact.value <= 6)] == 3).all()
    nhs = exact.protect(min_group=8, round_to=5, rounding="nearest")
    _, rows = exact.blocks
    small = (exact.value[rows] <= 7).any(axis=1)
    assert small.any()
    assert (np.isnan(nhs.value[rows]).all(axis=1) == small).all()
    shown = ~np.isnan(nhs.value)
    assert (nhs.value[shown] == 5 * np.floor(exact.value[shown] / 5 + 0.5)).all()
    assert (nhs.defences["min_group"], nhs.defences["rounding"]) == (8, "nearest")


@given(st.integers(0, 2**32), st.sampled_from([2, 3, 5, 10]), st.integers(1, 3), st.booleans())
def test_controlled_rounding_adds_up_within_the_base(seed, base, columns, rates):
    metrics = ["selection-rate"] if rates else ["selected", "rejected"]
    _, exact = make(seed, columns, metrics=metrics)
    try:
        report = exact.protect(round_to=base, rounding="controlled", rng=seed)
    except InputError:
        assert columns == 3  # three linked tables may have no such rounding
        return
    frame, true = report.to_frame(), exact.to_frame()
    for each in (frame, true):
        each["selected"] = each["value"].fillna(0) * each["n"] if rates else each["value"]
    off = np.rint(frame["selected"]) - np.rint(true["selected"])
    assert (abs(off) < base).all()
    assert (np.rint(frame["selected"]) % base == 0).all()
    keys = ["group", "metric"]
    names = list("abcd"[:columns])
    for name in names:
        for other in [None, *names]:
            fixed = [] if other in (None, name) else [other]
            empty = [c for c in names if c not in (*fixed, name)]
            own = frame[(frame[empty] == "").all(axis=1) & (frame[fixed] != "").all(axis=1)]
            whole = own[own[name] == ""].set_index([*keys, *fixed])["selected"]
            parts = own[own[name] != ""].groupby([*keys, *fixed])["selected"].sum()
            np.testing.assert_allclose(parts.reindex(whole.index, fill_value=0), whole, atol=1e-6)


def test_numbers_in_no_sum_are_rounded_up_as_often_as_keeps_the_mean():
    _, exact = make(3, tables=[["a", "b"]])
    off = [
        exact.protect(round_to=5, rounding="controlled", rng=seed).value - exact.value
        for seed in range(100)
    ]
    error = np.sqrt(6 / 100)  # of 1 to 4 above a multiple: a variance of 4 or 6
    assert abs(np.mean(off, axis=0)).max() < 4.5 * error


def test_no_controlled_rounding_is_an_error_that_says_what_to_do(monkeypatch):
    from fpbench.reports.defences import rounded_counts

    monkeypatch.setattr(rounded_counts, "milp", lambda *_, **__: type("none", (), {"x": None}))
    with pytest.raises(InputError, match="that add up were found in 60 s; cross fewer columns"):
        make(0, round_to=5, rounding="controlled")


@given(st.integers(0, 2**32), st.integers(1, 10), st.sampled_from([0.5, 3.0, 20.0]))
def test_the_same_people_get_the_same_noise_within_its_bound(seed, bound, variance):
    """In slices that are the same people, and in the report of another month."""
    options = {"cell_keys": {"bound": bound, "variance": variance}, "rng": seed}
    (X, predictions, groups), _ = make(seed, 2)
    X["again"] = X["a"].map({"p": "1", "q": "2", "r": "3"})
    exact, report = (publish(X, predictions, groups, **more) for more in ({}, options))
    noise = report.value - exact.value
    assert (abs(noise) <= bound).all()
    assert (report.value[exact.value == 0] == 0).all()
    assert (report.value >= 0).all()
    frame = report.to_frame()
    one, other = (
        frame[(frame[name] != "") & (frame[["a", "b", "again"]] != "").sum(axis=1).eq(1)]
        for name in ("a", "again")
    )
    assert one["value"].tolist() == other["value"].tolist()
    gone = int(np.flatnonzero(X["a"] == "p")[0])
    stay = np.arange(len(X)) != gone
    later = publish(X[stay], predictions[stay], groups[stay], **options).to_frame()
    keys = ["a", "b", "again", "group", "metric"]
    both = frame.merge(later, on=keys, suffixes=("", "_later"))
    other = both[(both["a"] != "p") & (both["a"] != "")]
    assert (other["value"] == other["value_later"]).all()


def test_noise_of_cell_keys_has_the_probabilities_of_its_table():
    (X, predictions, groups), exact = make(1, 1)
    true = exact.value.astype(int)
    draws = np.array(
        [publish(X, predictions, groups, cell_keys={}, rng=seed).value for seed in range(200)]
    )
    table = find_transitions(5, 3.0)
    for row in (0, 5, len(true) - 1):
        law = table[min(true[row], 5)]
        seen = np.bincount((draws[:, row] - true[row] + 5).astype(int), minlength=11)
        assert stats.chisquare(seen, 200 * law).pvalue > 1e-4
    assert abs(np.corrcoef(draws[:, 2], draws[:, 5])[0, 1]) < 0.2


def test_cell_keys_of_a_file_need_groups(tmp_path):
    (X, predictions, groups), exact = make(2, order=1, cell_keys=None)
    at_once = exact.protect(cell_keys={}, rng=1)
    exact.to_csv(tmp_path / "r.csv")
    read = FairnessReport.from_file(tmp_path / "r.csv")
    for report in (read, read.with_people(X, predictions)):
        with pytest.raises(InputError, match="cell_keys need to know everybody's group"):
            report.protect(cell_keys={})
    again = read.with_people(X, predictions, groups=groups).protect(cell_keys={}, rng=1)
    pd.testing.assert_frame_equal(again.to_frame(), at_once.to_frame())
    with pytest.raises(InputError, match="'x' is not a group of the report"):
        read.with_people(X, predictions, groups=np.where(groups == "f", "x", groups))


@pytest.mark.parametrize("options", [
    {"round_to": 5, "rounding": "nearest"}, {"round_to": 6, "rounding": "midpoint"}, {"round_to": 5},
])  # fmt: skip
def test_a_file_with_a_number_that_is_no_such_multiple_is_refused(options):
    (X, predictions, _), report = make(4, **options, rng=0)
    frame = report.to_frame()
    frame.loc[2, "value"] += 1
    with pytest.raises(
        InputError, match=r"row 2, column 'value': .* no number that was rounded by"
    ):
        FairnessReport.from_frame(frame).facts(X, predictions)
    frame["round_to"] = "up 5"
    with pytest.raises(
        InputError, match=r"column 'round_to': 'up 5' is no rounding: write the mul"
    ):
        FairnessReport.from_frame(frame)


@pytest.mark.parametrize("way", ["nearest", "midpoint", "controlled"])
def test_multiples_of_1_publish_the_exact_table(way):
    """As the base goes to 1, which is refused, ranges go to one number."""
    rounding = Rounding(way, 1)
    low, high = rounding.find_ranges(NUMBERS)
    assert (low == NUMBERS).all()
    assert (high == NUMBERS).all()
