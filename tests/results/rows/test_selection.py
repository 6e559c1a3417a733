"""Filters on rows."""

import numpy as np
import pytest

from fpbench.base.errors import InputError
from fpbench.components.names import KINDS
from fpbench.results.rows.selection import (
    match_kind,
    match_rows,
    read_filter,
    read_where,
    select_rows,
    split_by_dataset,
)
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


@pytest.mark.parametrize(("text", "cells"), [
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
])  # fmt: skip
def test_filters(text, cells):
    found = results()
    assert select_rows(found, [read_filter(text)]).cells.tolist() == cells.split()


def test_filters_are_joined():
    found = results()
    filters = [read_filter(text) for text in ("learner=p*", "seed<1", "epsilon>0")]
    assert select_rows(found, filters).cells.tolist() == ["10", "20"]


@pytest.mark.parametrize(("text", "words"), [
    ("learner", "'learner' is not a filter: write COLUMN=VALUE"),
    ("leaner=plain", "unknown column 'leaner' to filter by; did you mean 'learner'?"),
    ("learner=plane", "no row has learner=plane; did you mean 'plain'?"),
    ("mechanism=laplace", "no row has mechanism=laplace: the run uses none"),
    ("learner<3", "learner is text"),
    ("epsilon=many", "'many' is not a number"),
    ("epsilon>99", "no row has epsilon>99"),
    ("=3", "is not a filter"),
])  # fmt: skip
def test_bad_filters_are_one_clear_error(text, words):
    with pytest.raises(InputError) as told:
        select_rows(results(), [read_filter(text)])
    assert words in str(told.value)


def test_rows_that_are_chosen_are_the_same_rows():
    found = results()
    every = found.rows()
    for text in ("learner=p*", "seed>0", "learner=tree"):
        taken = select_rows(found, [read_filter(text)])
        assert taken.rows() == [row for row in every if row["cell"] in taken.cells]
    assert found.take(np.zeros(len(found), bool)).rows() == []


def test_scopes_are_all_rows_and_then_each_dataset():
    found = results()
    assert [(words, len(rows)) for words, rows in split_by_dataset(found)] == [
        ("overall: 2 data sets", 12),
        ("data set d0", 6),
        ("data set d1", 6),
    ]
    only = select_rows(found, [read_filter("dataset=d0")])
    assert [(words, len(rows)) for words, rows in split_by_dataset(only)] == [("", 6)]
    assert match_kind(found, "learner").all()
    assert not match_kind(found, "auditor").any()


def test_where_of_a_matrix_names_values_and_no_patterns():
    found = results()

    def cells(where):
        return [found.cells[i] for i in np.flatnonzero(match_rows(found, read_where(where)))]

    assert cells({"learner": "pate*"}) == []  # a filter somebody types has patterns
    assert cells({"learner": ["plain", "tree"], "seed": 0}) == ["00", "30"]
    assert cells({"epsilon": [0, 1.1], "status": "done"}) == ["00", "11"]
    assert cells({"word": ["w2", 3], "seed": [1, 2]}) == ["21", "22"]
    assert cells({"reason": "why"}) == ["31"] and cells({"mechanism": ""}) == found.cells.tolist()
    assert cells({"nothing": 1}) == cells({"nothing": "x"}) == []
