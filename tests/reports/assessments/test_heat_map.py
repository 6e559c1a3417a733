"""The heat map of a report's cells in notebooks."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from reports import make_people

from fpbench import FairnessReport, assess
from fpbench.reports.assessments.riskiest_cells import write_heat_map


def read_cells(html):
    """Words of each cell, by slice and prediction."""
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", html)
    ]
    heads = rows[0][1:]
    return {
        (unescape(name), head): words
        for name, *cells in rows[1:]
        for head, words in zip(heads, cells, strict=True)
    }


def make_report(n, by):
    X, predictions, groups = make_people(n)
    report = FairnessReport.from_predictions(X, predictions, groups, by=by, order=2, min_cell=0)
    return report, X, predictions, groups


def test_each_cell_counts_its_people():
    report, X, predictions, groups = make_report(60, ["a", "b", "likely"])
    result = assess(report, X, predictions, groups=groups, beliefs="shares")
    cells = read_cells(result._repr_html_().partition("Cells, and what is known")[2])
    assert len(cells) > 8
    frame = result.to_frame()
    after = frame[[f"after {name}" for name in result.groups]].to_numpy()
    guess = frame[[f"before {name}" for name in result.groups]].to_numpy().argmax(axis=1)
    gain = after.max(axis=1) - after[np.arange(len(after)), guess]
    for (name, head), words in cells.items():
        inside = predictions == int(head.removeprefix("predicted "))
        if name != "everybody":
            for part in name.split(" and "):
                column, value = part.split(" ", 1)
                codes = next(c for c in report.columns if c.name == column)
                inside &= codes.code(X) == codes.values.index(value)
        people, proven, adds = (
            float(((found := re.search(pattern, words)) and found[1]) or 0)
            for pattern in (r"(\d+) people", r"(\d+) proven", r"adds ([\d.]+)")
        )
        assert people == inside.sum()
        assert proven == frame["proven"][inside].sum()
        assert adds == pytest.approx(gain[inside].sum(), abs=0.06)
    assert any("proven" in words for words in cells.values())


def test_the_riskiest_cells_are_among_the_slices_that_are_shown():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(0, 4, 300).astype(str) for name in "abcdef"})
    predictions, groups = rng.integers(0, 2, 300), rng.choice(["f", "m"], 300)
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=list(X), order=2, min_cell=2
    )
    result = assess(report, X, predictions, groups=groups, beliefs="shares", max_proven=300)
    assert len(result.facts) > 400
    cells = read_cells(result._repr_html_().partition("Cells, and what is known")[2])
    assert len({name for name, _ in cells}) == 40
    assert len(result.riskiest) > 5
    for rank, cell in enumerate(result.riskiest, 1):
        assert f"(#{rank})" in cells[tuple(cell.name.split(", "))]


@pytest.mark.parametrize(
    ("proven", "sure", "colour"), [(1, 0, "179,38,30"), (0, 1, "215,120,0"), (0, 0, "30,100,200")]
)
def test_the_colour_is_of_the_worst(proven, sure, colour):
    report, X, predictions, _ = make_report(60, ["a"])
    everybody = np.ones(60)
    html = write_heat_map(
        report.facts(X, predictions), everybody * proven > 0, everybody * sure > 0, everybody, ()
    )
    assert set(re.findall(r"<td style=\"background:rgba\(([\d,]+),", html)) == {colour}


def test_a_report_that_tells_nothing_has_no_cells():
    report, X, predictions, groups = make_report(60, ["a"])
    hidden = report.protect(min_cell=1000)
    result = assess(hidden, X, predictions, groups=groups, beliefs="shares")
    assert "slice" not in result._repr_html_()
