"""Whole people from published numbers, against all tables of people that give them."""

import math
import runpy
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fpbench import FairnessReport, InputError
from fpbench.reports import reconstruct_people
from fpbench.reports.reconstructed_people import _Program

COUNTED = {
    "selection-rate": (lambda p, y: p == 1, lambda p, y: p >= 0),
    "true-positive-rate": (lambda p, y: (p == 1) & (y == 1), lambda p, y: y == 1),
    "precision": (lambda p, y: (p == 1) & (y == 1), lambda p, y: p == 1),
    "accuracy": (lambda p, y: p == y, lambda p, y: p >= 0),
    "selected": (lambda p, y: p == 1, None),
    "rejected": (lambda p, y: p == 0, None),
    "false-negatives": (lambda p, y: (p == 0) & (y == 1), None),
}
"""People whom a metric counts, and whom it is taken over."""
METRICS = (
    ["selection-rate"],
    ["selected", "rejected"],
    ["selection-rate", "true-positive-rate"],
    ["accuracy", "precision", "selection-rate"],
    ["selected", "rejected", "false-negatives"],
)
DEFENCES = ({}, {}, {"decimals": 1}, {"min_group": 2}, {"round_to": 3, "rounding": "nearest"})


def list_worlds(report, kinds, n):
    """(W, kinds) all tables of n people that give the numbers of a report, row by row."""
    who = np.array(list(combinations_with_replacement(range(len(kinds)), n)))
    worlds = np.zeros((len(who), len(kinds)), np.int64)
    for person in who.T:
        worlds[np.arange(len(who)), person] += 1
    label = kinds.get("label", pd.Series(0, kinds.index)).to_numpy()
    prediction, frame = kinds["prediction"].to_numpy(), report.to_frame()
    columns = [column.name for column in report.columns]
    for row in frame.to_dict("records"):
        inside = (kinds["group"] == row["group"]).to_numpy().copy()
        for name in columns:
            inside &= (kinds[name] == row[name]).to_numpy() | (row[name] == "")
        top, base = COUNTED[row["metric"]]
        number = worlds @ (inside & top(prediction, label))
        if base is None:
            if report.rounding is not None:
                number = 3 * ((number + 1) // 3)
            fits = (number == row["value"]) | np.isnan(row["value"])
        else:
            size = worlds @ (inside & base(prediction, label))
            gap = np.abs(row["value"] * size - number)
            fits = np.isnan(row["value"]) | (gap <= row.get("within", 0) * size + 1e-9)
            fits &= (size == row["n"]) if row["n"] is not None and row["n"] >= 0 else True
        worlds = worlds[fits]
    return worlds


@given(
    chosen=st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from("cd"), st.integers(0, 3)),
        min_size=2,
        max_size=4,
    ),
    order=st.integers(0, 2),
    metrics=st.sampled_from(METRICS),
    defence=st.sampled_from(DEFENCES),
)
def test_rows_are_proven_that_all_tables_have(chosen, order, metrics, defence):
    """By brute force, both ways; one way only where the number of people is not published."""
    if "round_to" in defence and "selected" not in metrics:
        metrics = ["selected", "rejected"]
    if "decimals" in defence and "selected" in metrics:
        metrics = ["selection-rate"]
    u, v, bits = zip(*chosen, strict=True)
    X = pd.DataFrame({"u": u, "v": v}, dtype=object)
    predictions, labels = np.array(bits) % 2, np.array(bits) // 2
    groups = np.array(["x", "y", *"xyxy"])[: len(X)]
    report = FairnessReport.from_predictions(
        X,
        predictions,
        groups,
        by=["u", "v"],
        order=order,
        labels=labels,
        metrics=metrics,
        min_cell=0,
        **defence,
    )
    if report.suppressed.all():
        return
    rows = reconstruct_people(report, X, predictions, groups, labels=labels, worlds=3, rng=0)
    assert rows.attrs == {"worlds": 3, "undecided": 0}
    assert (rows["at_least"].diff()[1:] <= 0).all()
    names = [name for name in rows if name in ("u", "v", "group", "prediction", "label")]
    values = [[*column.values, ""] for column in report.columns]
    bit = [(0, 1)] * (2 if "label" in rows else 1)
    kinds = pd.DataFrame(list(product(*values, "xy", *bit)), columns=names)
    worlds = list_worlds(report, kinds, len(X))
    assert len(worlds)
    told = kinds.merge(rows, "left", names)
    least = worlds.min(axis=0)
    assert (told["at_least"].fillna(0) <= least).all()
    if not {"min_group", "round_to"}.intersection(defence):
        assert ((told["at_least"] > 0) == (least > 0)).all()
    tells = told["at_least"].notna() | (worlds.max(axis=0) == 0)
    if "min_group" not in defence:  # which may leave kinds of which nothing is told
        assert tells.all()


PEOPLE = pd.DataFrame({"age": [1, 1, 2, 2] * 3, "job": list("abcabcabcabc")})
BITS, GROUPS = np.array([0, 1, 1] * 4), np.array(["x", "y"] * 6)


def publish(**options):
    options = {"by": ["age", "job"], "min_cell": 0} | options
    return FairnessReport.from_predictions(PEOPLE, BITS, GROUPS, **options)


@pytest.mark.parametrize(
    ("report", "change", "error"),
    [
        (publish(noise="discrete-laplace", epsilon=1.0, rng=0), {}, "has noise, which proves noth"),
        (publish(sizes=False), {}, "row 0, selection-rate for everybody: .* publish sizes"),
        (publish(min_group=99), {}, "no number of people"),
        (publish(), {"X": PEOPLE[["age"]]}, "no column 'job'"),
        (publish(), {"groups": ["x", "z"] * 6}, "'z' is not a group of the report"),
        (publish(), {"worlds": 0}, "worlds"),
        (publish(), {"seconds": 0.0}, "seconds must be above 0"),
        (publish(metrics=["TPR"], labels=BITS), {}, "looks at labels: give labels"),
    ],
)
def test_mistakes_are_named(report, change, error):
    people = {"X": PEOPLE, "predictions": BITS, "groups": GROUPS} | change
    with pytest.raises(InputError, match=error):
        reconstruct_people(report, **people)


def test_numbers_of_different_people_are_refused():
    frame = publish().to_frame()
    whole = (frame["age"] == "") & (frame["job"] == "")
    frame.loc[whole, "n"] += 1
    frame.loc[whole, "value"] = 0.0
    with pytest.raises(InputError, match="no people give all its numbers together"):
        reconstruct_people(FairnessReport.from_frame(frame), PEOPLE, BITS, GROUPS)


def test_too_many_columns_and_taken_names_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(5, size=(200, 8)).astype(str)).add_prefix("c")
    bits, groups = rng.integers(2, size=200), rng.choice(["x", "y"], 200)
    report = FairnessReport.from_predictions(X, bits, groups, by=list(X), min_cell=0)
    with pytest.raises(InputError, match="8 columns have more than 131,072 combinations"):
        reconstruct_people(report, X, bits, groups)
    X = PEOPLE.rename(columns={"job": "prior"})
    report = FairnessReport.from_predictions(X, BITS, GROUPS, by=["prior"], min_cell=0)
    with pytest.raises(InputError, match="column 'prior': rename it"):
        reconstruct_people(report, X, BITS, GROUPS)


def test_a_table_by_all_columns_tells_everybody():
    """Whatever the population: here, one without the group y in most rows."""
    rows = reconstruct_people(publish(order=2), PEOPLE[:4], BITS[:4], GROUPS[:4], rng=0)
    assert rows["at_least"].sum() == len(PEOPLE)
    assert (rows["at_least"] == rows["frequency"] * rows["at_least"]).all()


def test_without_time_nothing_is_proven():
    rows = reconstruct_people(publish(order=2), PEOPLE, BITS, GROUPS, seconds=1e-9)
    assert rows.attrs == {"worlds": 0, "undecided": len(rows)}
    assert not rows["at_least"].any()
    assert (rows["frequency"] > 0).all()


def test_integer_programs_prove_what_linear_ones_do_not():
    """Of three people, any two at most one: one of them, though by halves one and a half."""
    pairs = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    matrix = np.zeros((7, 7))
    matrix[:3, 1:4] = matrix[3:6, 4:] = pairs
    matrix[6] = 1
    low, high, most = np.array([0.0] * 6 + [3]), np.array([1.0] * 6 + [7]), np.ones(7)
    program = _Program(np.zeros((7, 3), int), csr_array(matrix), low, high, most, most, most)
    (part,), at_least = program.split(), np.zeros(7, int)
    assert program.prove(part, np.zeros((0, 7)), at_least, math.inf) == 0
    assert at_least.tolist() == [1, 0, 0, 0, 0, 0, 0]


@pytest.mark.slow
def test_the_benchmark_measures_few_people(capsys):
    script = Path(__file__).parents[2] / "benchmarks" / "whole_people.py"
    make = runpy.run_path(str(script))["main"]
    make(["--dataset", "census-synthetic", "--people", "40", "--seeds", "1", "--seconds", "4"])
    head, _, one, two = capsys.readouterr().out.splitlines()
    assert head.startswith("| people | slices by")
    cells = [line.split(" | ") for line in (one, two)]
    assert float(cells[1][3]) > float(cells[0][3])
