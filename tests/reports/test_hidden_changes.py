"""Whoever knows everybody's columns recovers no suppressed number, by exact linear algebra."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fpbench import FairnessReport, InputError
from fpbench.reports.defences.hidden_changes import Basis, Freedom, find_changed

PRIME = 2**31 - 1
METRICS = [
    ("selection-rate",), ("selected", "rejected"), ("selection-rate", "selected"),
    ("true-positive-rate", "false-positive-rate"), ("selection-rate", "true-positives"),
]  # fmt: skip


def make_told_columns(n, seed, kinds):
    """People with columns that tell each other: wholly, for some values, not at all; or nothing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])})
    for place, kind in enumerate(kinds):
        last = X.iloc[:, rng.integers(X.shape[1])].to_numpy()
        free = rng.integers(0, 3, n)
        X["bcdefg"[place]] = {
            "told": rng.integers(0, 3, 9)[last],
            "renamed": rng.permutation(9)[last],
            "finer": 3 * last % 9 + (free > 1),
            "partly": np.where(last == last[0], 1, free),
            "never": np.where(last == last[0], free % 2, free),
            "constant": np.zeros(n, int),
            "free": free,
        }[kind]
    missing = rng.random(X.shape) < rng.choice([0, 0.05])
    X = X.astype(str).mask(missing)
    predictions, labels = rng.integers(0, 2, (2, n))
    return X, predictions, labels, np.array(["f", "m", "x"])[rng.integers(0, 2 + seed % 2, n)]


def reduce_rows(rows):
    """Echelon form of whole numbers modulo a prime: pivot columns and rows."""
    echelon = []
    for row in rows:
        rest = remove_echelon(row, echelon)
        if rest.any():
            pivot = int(np.flatnonzero(rest)[0])
            echelon.append((pivot, rest * pow(int(rest[pivot]), -1, PRIME) % PRIME))
    return echelon


def remove_echelon(row, echelon):
    """What is left of a row without its part in the echelon form; 0 if it is a combination."""
    rest = row.astype(np.int64)
    for pivot, own in echelon:
        rest = (rest - rest[pivot] * own) % PRIME
    return rest


def find_sets(report, people):
    """The sets of people whose numbers a report tells, of those that have some."""
    X, predictions, labels = people
    codes = np.column_stack([np.zeros(len(X), int), *(c.code(X) for c in report.columns)])
    sets = set()
    for row in np.flatnonzero(~report.suppressed & (report.group == 0)):
        cell = np.append(-1, report.cells[row])
        inside = ((cell < 0) | (codes == cell)).all(axis=1)
        if report.label[row] >= 0:
            inside &= labels == report.label[row]
        counted = [0, 1] if report.is_rate[row] else [report.prediction[row]]
        sets |= {tuple((inside & (predictions == p)).astype(int)) for p in counted}
    return sets - {(0,) * len(X)}


def list_tables(report):
    """The columns and the metric of each row."""
    names = np.array([column.name for column in report.columns], object)
    return [
        (frozenset(names[cells >= 0]), metric)
        for cells, metric in zip(report.cells, report.metric, strict=True)
    ]


def find_recovered(exact, hidden, people):
    """Sets of which the exact report tells the number, the other does not, and which follow."""
    told = find_sets(hidden, people)
    echelon = reduce_rows(np.array(sorted(told)))
    return [
        secret
        for secret in find_sets(exact, people) - told
        if not remove_echelon(np.array(secret), echelon).any()
    ]


@pytest.mark.slow
@given(
    seed=st.integers(0, 999),
    n=st.integers(15, 70),
    kinds=st.lists(
        st.sampled_from(["told", "renamed", "finer", "partly", "never", "constant", "free"]),
        min_size=1, max_size=4,
    ),
    order=st.integers(1, 3),
    metrics=st.sampled_from(METRICS),
    defences=st.sampled_from(
        [{"min_cell": 3}, {"min_cell": 8}, {"min_group": 2}, {"min_cell": 5, "min_group": 1}]
    ),
    before=st.booleans(),
    sizes=st.booleans(),
)  # fmt: skip
def test_no_suppressed_number_follows_where_columns_tell_each_other(
    seed, n, kinds, order, metrics, defences, before, sizes
):
    X, predictions, labels, groups = make_told_columns(n, seed, kinds)
    people = X, predictions, labels
    exact = FairnessReport.from_predictions(
        X, predictions, groups, by=list(X), order=order, labels=labels, metrics=metrics, min_cell=0
    )
    hidden = exact.protect(**defences) if before else exact
    # What an earlier defence left out of a table must not follow either.
    left = set(list_tables(hidden))
    exact = exact.take(np.array([table in left for table in list_tables(exact)], bool))
    hidden = hidden.protect(**defences, complementary=True, sizes=sizes)
    assert find_recovered(exact, hidden, people) == []


def make_towns(n=600):
    rng = np.random.default_rng(4)
    town = rng.choice(6, n, p=[0.4, 0.3, 0.2, 0.06, 0.03, 0.01])
    X = pd.DataFrame({"town": town, "county": town // 2, "job": rng.integers(0, 6, n)}).astype(str)
    return X, rng.integers(0, 2, n), np.array(["f", "m"])[rng.integers(0, 2, n)]


def test_people_are_given_to_a_report_from_a_file(tmp_path):
    X, predictions, groups = make_towns()
    exact = FairnessReport.from_predictions(X, predictions, groups, by=list(X), order=2, min_cell=0)
    exact.to_csv(tmp_path / "report.csv")
    read = FairnessReport.from_file(tmp_path / "report.csv")
    with pytest.raises(InputError, match=r"give the people by report.with_people\(X, predictions"):
        read.protect(min_cell=10, complementary=True)
    hidden = read.with_people(X, predictions).protect(min_cell=10, complementary=True)
    own = exact.protect(min_cell=10, complementary=True)
    pd.testing.assert_frame_equal(
        hidden.to_frame(), own.to_frame()[list(hidden.to_frame())], check_dtype=False
    )
    with pytest.raises(InputError, match="the report is about other people"):
        read.with_people(X[::-1], predictions)
    X["job"] = "1"
    with pytest.raises(InputError, match="the report is not about its people"):
        exact.protect(min_cell=10, complementary=True)


def test_people_do_not_go_with_a_report_that_is_handed_on():
    X, predictions, groups = make_towns()
    report = FairnessReport.from_predictions(X, predictions, groups, by=["job"])
    assert report.people is not None
    assert report.protect(min_cell=20).people is report.people
    assert pickle.loads(pickle.dumps(report)).people is copy.deepcopy(report).people is None


def test_nothing_is_given_up_by_chance():
    """Of 1,200 unknown numbers in a grid whose margins are known, none follows from these."""
    cells = np.eye(1200)
    rows, columns = np.divmod(np.arange(1200), 400)
    margins = [rows == r for r in range(3)] + [columns == c for c in range(400)]
    members = csr_array(np.vstack([cells, margins]))
    margin = np.arange(len(cells) + len(margins)) >= len(cells)
    change = Basis(members, margin).find_change(~margin, np.ones(len(margin)))
    assert (find_changed(members, change) == ~margin).all()


def test_unneeded_suppressions_are_published():
    """Of two rows of three cells, one of each is secret: two more are enough."""
    members = csr_array(np.vstack([np.eye(6), np.kron(np.eye(2), np.ones(3)),
                                   np.tile(np.eye(3), 2)]))  # fmt: skip
    margins = np.arange(11) >= 6
    hidden = ~margins
    freedom = Freedom(Basis(members, margins), hidden, np.isin(np.arange(11), [1, 2, 4, 5]))
    assert freedom.find_told(2).tolist() == [2, 5]
    freedom.publish(2)
    assert freedom.find_told(2).tolist() == []
    assert freedom.find_told(1).tolist() == [0, 1, 3, 4]


def test_too_many_numbers_are_refused(monkeypatch):
    X, predictions, groups = make_towns()
    exact = FairnessReport.from_predictions(X, predictions, groups, by=list(X), order=2, min_cell=0)
    monkeypatch.setattr("fpbench.reports.defences.hidden_changes._MOST", 9)
    with pytest.raises(InputError, match="what follows can be found from at most 9"):
        exact.protect(min_cell=10, complementary=True)
