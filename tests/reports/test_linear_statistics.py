"""F1 scores, means and sums of groups: facts that allow the groups that enumeration allows."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from report_worlds import check_examples, list_vectors

from fpbench import FairnessReport, InputError, assess
from fpbench.correction import propagate
from fpbench.correction.facts.worlds import find_worlds
from fpbench.reports.assessments.evidence import check_evidence, pack_evidence

NAMES = "abc"


def share(people, counted, other):
    """What people add to the two sums of a score of true positives, and of other people."""
    right = people.good & people.hired
    return counted * right, counted * right + other * (people.good ^ people.hired)


def average(people, inside=1):
    return people.age * inside, np.ones(len(people)) * inside


STATISTICS = {
    "F1": lambda people: share(people, 2, 1),
    "Jaccard index": lambda people: share(people, 1, 1),
    "mean age": average,
    "total age": lambda people: (people.age, None),
    "Average age of hired": lambda people: average(people, people.hired),
    "mean age of true positives": lambda people: average(people, people.hired & people.good),
}
"""Two sums over people, of which the first is divided by the second."""


def draw_people(seed):
    """Few people, codes of their groups, and the number of these."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 3]))
    n = int(rng.integers(4, {2: 11, 3: 8}[k]))
    ages = [rng.integers(18, 70, n), rng.integers(18, 22, n), rng.random(n).round(3)]
    people = pd.DataFrame({
        "dept": rng.choice(["x", "y"], n), "age": ages[int(rng.integers(3))],
        "hired": rng.integers(0, 2, n), "good": rng.integers(0, 2, n),
    })  # fmt: skip
    groups = rng.integers(0, k, n)
    groups[:k] = np.arange(k)
    return rng, people, groups, k


def count(name, people, mine):
    """Statistics of those of people who are mine (V, n), and whether anybody counts."""
    top, bottom = STATISTICS[name](people)
    total = mine @ np.asarray(top, float)
    of = mine.any(axis=1) if bottom is None else mine @ np.asarray(bottom, float)
    return np.divide(
        total, of if bottom is not None else 1, where=of > 0, out=np.zeros(len(total))
    ), of > 0


def publish(name, people, groups, k, digits, sliced):
    """A row for each group that has a number, which is rounded to some digits or not at all."""
    rows = []
    for dept in "xy" if sliced else [""]:
        for group in range(k):
            mine = (groups == group) & ((people.dept == dept) | (not sliced))
            (value,), (of,) = count(name, people, mine.to_numpy()[None])
            if of or (mine.any() and "age" not in name):
                text = repr(float(value)) if digits is None else f"{value:.{digits}f}"
                rows.append({"dept": dept, "sex": NAMES[group], name: text})
    return pd.DataFrame(rows, columns=["dept", "sex", name][not sliced :])


def allow(name, table, people, vectors, digits):
    """(V,) which groups of people (V, n) may have the published numbers."""
    possible = np.ones(len(vectors), bool)
    half = 1e-9 if digits is None else 0.5 * 10.0**-digits + 1e-9
    for *dept, sex, text in table.itertuples(index=False, name=None):
        mine = vectors == NAMES.index(sex)
        if dept:
            mine &= (people.dept == dept[0]).to_numpy()
        value, of = count(name, people, mine)
        told = float(text)
        nobody = abs(told) <= half or ("age" not in name and 1 - told <= half)
        possible &= np.where(of, abs(value - told) <= half, nobody)
    return possible


def read(table, people, k, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    return FairnessReport.read(
        tmp_path / "table.csv", X=people[["dept", "age"]], group="sex", groups=list(NAMES[:k]),
        names={"hired": "selected"},
    )  # fmt: skip


def find_digits(name, texts):
    """The decimals that numbers were rounded to, as far as their texts tell; None if they were not.

    Of means and sums that all end with 0, fewer.
    """
    digits = max(len(text.partition(".")[2]) for text in texts)
    while (
        "age" in name
        and any(map(float, texts))
        and all(float(x) % 10 ** (1 - digits) == 0 for x in texts)
    ):
        digits -= 1
    return digits if digits < 10 else None


def check_world(seed, name, tmp_path):
    """Facts allow what enumeration allows, and everybody is decided as it says."""
    rng, people, groups, k = draw_people(seed)
    digits, sliced = rng.choice([None, 0, 1, 2, 3]), bool(rng.integers(2))
    table = publish(name, people, groups, k, digits, sliced)
    if not len(table):
        return False
    digits = find_digits(name, table[name])
    report = read(table, people, k, tmp_path)
    facts = report.facts(people[["dept", "age"]], people.hired, people.good)
    vectors = list_vectors(k, len(people))
    own = allow(name, table, people, vectors, digits)
    assert own[(vectors == groups).all(axis=1)].all()
    assert [facts.allows(vector) for vector in vectors] == own.tolist(), (seed, name)
    left = vectors[own]
    possible = np.stack([(left == group).any(axis=0) for group in range(k)], axis=1)
    found = find_worlds(
        facts, propagate(facts), groups if seed % 2 else None, time.perf_counter() + 600
    )
    assert (found.possible | ~possible).all(), (seed, name)
    assert (possible | ~found.seen).all(), (seed, name)
    assert not found.undecided.any(), (seed, name)
    check_examples(facts, found, groups if seed % 2 else None)
    proven = int((found.possible.sum(axis=1) == 1).sum())
    measures = {"proven": proven, "proven_by_solver": proven, "undecided": 0}
    evidence = pack_evidence(found, facts)
    assert check_evidence({"measures": measures, "evidence": evidence}, facts).passes
    report.to_csv(tmp_path / "again.csv")
    again = FairnessReport.from_csv(tmp_path / "again.csv", groups=list(NAMES[:k]))
    assert set(again.statistics) == set(report.statistics)
    return True


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_allows_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_world(seed, name, tmp_path) for seed in range(8)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_many_statistics_allow_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_world(seed, name, tmp_path) for seed in range(1000, 1120)) >= 50
