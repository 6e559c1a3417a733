"""Filters on rows."""

import numpy as np
import pytest

from fpbench.base.errors import InputError
from fpbench.components.names import KINDS
from fpbench.results.rows.selection import chosen, meant, read_filter, scopes, using
from fpbench.store.results import Results


def results():
    rows = []
    for i, learner in enumerate(["plain", "pate x=1", "pate x=[2]", "tree"]):
        for seed in range(3):
            labels = dict.fromkeys(KINDS, "") | {"dataset": f"d{i % 2}", "learner": learner}
            status = "failed" if learner == "tree" and seed == 1 else "done"
            measures = {} if status == "failed" else {"epsilon": i + seed / 10, "word": f"w{i}"}
            rows.append({"cell": f"{i}{seed}", **labels, "seed": seed, "status": status,
                         "reason": "why" if status == "failed" else None, **measures})  # fmt: skip
    return Results.of(rows)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("learner=pate*", "10 11 12 20 21 22"),
        ("learner=pate x=[2]", "20 21 22"),
        ("learner!=pate*", "00 01 02 30 31 32"),
        ("dataset = d1", "10 11 12 30 31 32"),
        ("seed>=2", "02 12 22 32"),
        ("seed==0", "00 10 20 30"),
        ("epsilon<1", "00 01 02"),
        ("epsilon<=1", "00 01 02 10"),
        ("epsilon>3", "32"),
        ("epsilon!=0", "01 02 10 11 12 20 21 22 30 32"),
        ("word=w2", "20 21 22"),
        ("word!=w[01]", "20 21 22 30 31 32"),
        ("status=failed", "31"),
    ],
)
def test_filters(text, cells):
    found = results()
    kept = meant(found, [read_filter(text)])
    assert [found.cells[i] for i in np.flatnonzero(kept)] == cells.split()


def test_filters_are_joined():
    found = results()
    kept = meant(
        found, [read_filter("learner=p*"), read_filter("seed<1"), read_filter("epsilon>0")]
    )
    assert [found.cells[i] for i in np.flatnonzero(kept)] == ["10", "20"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learner", "'learner' is no filter: write COLUMN=VALUE"),
        ("leaner=plain", "unknown column 'leaner' to filter by; did you mean 'learner'?"),
        ("learner=plane", "no row has learner=plane; did you mean 'plain'?"),
        ("mechanism=laplace", "no row has mechanism=laplace: the run uses none"),
        ("learner<3", "learner is a word"),
        ("epsilon=many", "'many' is no number"),
        ("epsilon>99", "no row has epsilon>99"),
        ("=3", "is no filter"),
    ],
)
def test_bad_filters_are_one_clear_error(text, words):
    with pytest.raises(InputError) as told:
        meant(results(), [read_filter(text)])
    assert words in str(told.value)


def test_rows_that_are_chosen_are_the_same_rows():
    found = results()
    every = found.rows()
    for text in ("learner=p*", "seed>0", "learner=tree"):
        kept = meant(found, [read_filter(text)])
        expected = [row for row, keep in zip(every, kept, strict=True) if keep]
        assert chosen(found, kept).rows() == expected
    assert chosen(found, np.zeros(len(found), bool)).rows() == []


def test_scopes_are_all_rows_and_then_each_dataset():
    found = results()
    assert [(words, len(rows)) for words, rows in scopes(found)] == [
        ("overall: 2 data sets", 12),
        ("data set d0", 6),
        ("data set d1", 6),
    ]
    only = chosen(found, meant(found, [read_filter("dataset=d0")]))
    assert [(words, len(rows)) for words, rows in scopes(only)] == [("", 6)]
    assert using(found, "learner").all()
    assert not using(found, "auditor").any()
