"""The disclosure of fairness reports: true facts, defences, two reports, and what a row says."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import InputError, Sample
from fpbench.builtin.disclosures.counts import Report, is_dominated
from fpbench.claims import combine_facts
from fpbench.correction import propagate, prove


@dataclass
class Context:
    asked: None
    target: Sample
    attack: Sample


def make_context(n=600, k=2, seed=0):
    rng = np.random.default_rng(seed)
    sensitive = rng.integers(0, k, n)
    sample = Sample(
        tuple(f"group {code}" for code in range(k)),
        features=pd.DataFrame({
            "age": rng.integers(18, 80, n) + 8 * sensitive,
            "city": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "same": np.ones(n),
        }),
        labels=rng.integers(0, 2, n).astype(np.int8),
        sensitive=sensitive.astype(np.int8),
        predictions=(rng.random(n) < 0.3 + 0.2 * (sensitive > 0)).astype(np.int8),
    )  # fmt: skip
    return Context(None, sample, sample)


def publish(context, seed=0, **parameters):
    report = fpbench.component("disclosure", "report", **parameters)
    return report.claim(context, np.random.default_rng(seed))


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("parameters", [
    {},
    {"order": 2, "metrics": ["selection-rate", "true-positive-rate", "false-positives"]},
    {"by": ["city"], "min_group": 20},
    {"order": 2, "min_group": 8, "complementary": True},
    {"order": 2, "decimals": 1},
    {"round_to": 5},
    {"round_to": 6, "rounding": "midpoint"},
    {"cell_keys": {"bound": 2, "variance": 1.0}, "leavers": 1},
    {"order": 2, "sizes": False, "decimals": 3},
    {"order": 2, "tables": [[], ["age", "city"]]},
    {"order": 2, "leavers": 3},
    {"bins": {"age": [30, 50]}, "leavers": 1},
])  # fmt: skip
def test_what_a_report_tells_is_true_of_the_target_people(parameters, k):
    context = make_context(k=k)
    claim = publish(context, **parameters)
    (facts,) = claim.also
    people = context.target
    counts = facts.count(np.eye(k)[people.sensitive])
    assert ((facts.low <= counts) & (counts <= facts.high)).all()
    assert facts.people == len(people)
    assert claim.constraint is None
    assert claim.guarantee is None
    assert 0 < claim.nats <= len(people) * np.log(k)
    possible = prove(facts, seconds=600)
    assert possible[np.arange(len(people)), people.sensitive].all()


def test_everybody_who_leaves_is_named_by_the_second_report():
    context = make_context(n=5_000)
    leavers = 1
    claim = publish(context, leavers=leavers, by=["city"])
    possible = prove(claim.also[0], seconds=600)
    proven = possible.sum(axis=1) == 1
    assert proven.sum() == leavers
    alone = prove(publish(context, by=["city"]).also[0], seconds=600)
    assert not (alone.sum(axis=1) == 1).any()


def test_noise_has_a_guarantee_and_no_proof():
    context = make_context()
    laplace = {"use": "discrete-laplace"}
    claim = publish(context, noise=laplace, epsilon=0.5, leavers=2)
    assert claim.guarantee.epsilon == 1.0  # who stays is in both
    assert (claim.guarantee.delta, claim.guarantee.neighbours) == (0.0, "attribute")
    assert claim.noise == "simulation"
    assert claim.also[0].noisy.all()
    gaussian = publish(context, noise={"use": "gaussian", "delta": 1e-5}, epsilon=2.0)
    assert gaussian.guarantee.delta == 1e-5
    assert claim.nats < publish(context, by=["age", "city"], order=2).nats
    again = publish(context, noise=laplace, epsilon=0.5, leavers=2)
    np.testing.assert_array_equal(claim.also[0].low, again.also[0].low)
    assert fpbench.component("disclosure", "report", noise=laplace, epsilon=1.0).protects == {
        "sensitive"
    }
    assert Report().protects == frozenset()


def test_bits_count_what_is_not_shown_where_groups_decide_it():
    context = make_context()
    shown = publish(context, by=["city"], min_group=500)
    assert not len(shown.also[0].take(~shown.also[0].derived))
    assert shown.nats == publish(context, by=["city"], min_cell=0).nats


def test_utility_is_that_of_the_report():
    context = make_context()
    exact = publish(context).notes
    assert exact == {
        "rate_error": 0.0, "rate_error_max": 0.0, "cells_published": 1.0,
        "disparities_visible": 1.0,
    }  # fmt: skip
    rounded = publish(context, decimals=1).notes
    assert 0 < rounded["rate_error"] < rounded["rate_error_max"] <= 0.05 + 1e-12
    hidden = publish(context, min_cell=10_000).notes
    assert hidden["cells_published"] == 0
    assert hidden["disparities_visible"] == 0
    assert hidden["rate_error"] > 0


def test_what_cannot_be_published_is_refused():
    context = make_context(n=30)
    with pytest.raises(InputError, match="leavers must be fewer than the 30 people"):
        publish(context, leavers=30)
    with pytest.raises(InputError, match="the people have no column 'town'"):
        publish(context, by=["town"])
    with pytest.raises(InputError, match="unknown metric 'selection'"):
        fpbench.component("disclosure", "report", metrics=["selection"])
    with pytest.raises(InputError, match="noise and epsilon go together"):
        fpbench.component("disclosure", "report", noise={"use": "discrete-laplace"})


MATRIX = """
title = "reports"
seeds = 1

[[dataset]]
use = "census-synthetic"
rows = 1_500

[[learner]]
use = "plain"

[[disclosure]]
use = "report"
order = {{ sweep = [1, 2] }}
{more}

[[disclosure]]
use = "published"
metric = "statistical-parity"

[[adversary]]
use = "a1"

[[corrector]]
use = {correctors}
"""


def run_matrix(tmp_path, more="", correctors='"posterior"', **settings):
    matrix = tmp_path / "reports.toml"
    matrix.write_text(MATRIX.format(more=more, correctors=correctors))
    run = fpbench.run(matrix, out=tmp_path / "run", **settings)
    return run.frame().set_index("disclosure")


@pytest.mark.slow
def test_rows_say_what_a_report_gives_away_and_what_it_is_good_for(tmp_path):
    rows = run_matrix(tmp_path)
    assert (rows.status == "done").all()
    one, two, claim = (rows.loc[name] for name in ("report order=1", "report order=2", "published"))
    assert 0 < one.facts < two.facts
    assert one.leak < two.leak < two.limit
    assert 0 <= one.people_proven <= two.people_proven
    assert 0 <= two.proven_unsure <= two.people_proven
    assert one.disclosure_bits < two.disclosure_bits
    assert one.rate_error == two.rate_error == 0
    # Of a claim there is no report.
    assert np.isnan(claim.facts)
    assert np.isnan(claim.rate_error)
    assert claim.people_proven == 0
    assert not one.portable


@pytest.mark.slow
def test_other_facts_are_added_to_those_of_the_report(tmp_path):
    more = 'also = [{ use = "known", share = 0.3 }, { use = "share", group = "A" }]'
    rows = run_matrix(tmp_path, more)
    assert (rows.people_proven[["report order=1", "report order=2"]] >= 0.299).all()


@pytest.mark.slow
def test_facts_pass_isolation_as_they_are(tmp_path):
    """With limits each component has a process of its own, and facts travel as plain arrays."""
    limits = "[limits]\ntimeout = 300\n"
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    rows = run_matrix(tmp_path / "open")
    closed = run_matrix(tmp_path / "closed", limits)
    assert (closed.status == "done").all()
    names = ["facts", "people_proven", "proven_unsure", "with_accuracy", "disclosure_bits"]
    np.testing.assert_array_equal(rows[names], closed[names])


def test_correctors_that_cannot_read_counts_are_skipped_with_the_reason(tmp_path):
    rows = run_matrix(tmp_path, correctors='"exact"')
    assert rows.status["report order=1"] == "skipped"
    assert "cannot express the constraint 'counts'" in rows.reason["report order=1"]


@pytest.mark.slow
def test_the_sex_of_most_people_of_adult_is_proven(tmp_path, adult_home):
    """Two-way slices whose cells have at least 10 people of each prediction."""
    matrix = tmp_path / "adult.toml"
    matrix.write_text("""
title = "Adult"
seeds = 1
[[dataset]]
use = "adult"
[[learner]]
use = "plain"
[[disclosure]]
use = "report"
order = 2
metrics = ["selected", "rejected"]
[[adversary]]
use = "a2"
[[corrector]]
use = "posterior"
""")
    (row,) = fpbench.run(matrix, out=tmp_path / "run").frame().to_dict("records")
    assert row["with_accuracy"] > 0.9
    assert row["people_proven"] * row["people"] > 8_000


def test_two_reports_about_adult_name_everybody_who_left(adult_home):
    """One-way slices; 754 who leave hide behind each other, 20 do not."""
    table = fpbench.dataset("adult", sensitive="sex")
    rows = np.random.default_rng(0).permutation(len(table))[:15_000]
    X = table.features.iloc[rows].reset_index(drop=True)
    codes, predictions = table.codes[rows], table.labels[rows]
    groups = np.array(table.groups)[codes]

    def publish(own, bins):
        people = X.iloc[own].reset_index(drop=True)
        report = fpbench.FairnessReport.from_predictions(
            people, predictions[own], groups[own], by=list(X), bins=bins,
            metrics=("selected", "rejected"),
        )  # fmt: skip
        cuts = {column.name: list(column.edges) for column in report.columns if column.edges}
        return report.facts(people, predictions[own]), cuts

    everybody = np.arange(len(rows))
    first, cuts = publish(everybody, 5)
    shares = {}
    for leavers in (1, 20, 754):
        gone = np.random.default_rng(leavers).choice(len(rows), leavers, replace=False)
        staying = np.delete(everybody, gone)
        facts, _ = combine_facts([(first, everybody), (publish(staying, cuts)[0], staying)])
        possible = propagate(facts)[gone]
        assert possible[np.arange(leavers), codes[gone]].all()
        shares[leavers] = (possible.sum(axis=1) == 1).mean()
    assert shares[1] == 1
    assert shares[20] >= 0.95
    assert 0.3 < shares[754] < 0.8


@pytest.mark.parametrize("k", [2, 3])
def test_means_are_true_and_tell_of_people(k):
    context = make_context(n=40, k=k)
    own = fpbench.component("disclosure", "means", column="age", decimals=1)
    claim = own.claim(context, np.random.default_rng(0))
    (facts,) = claim.constraints
    people = context.target
    assert facts.allows(people.sensitive)
    swapped = people.sensitive.copy()
    swapped[[np.argmax(people.features.age), np.argmin(people.features.age)]] = [0, k - 1]
    assert not facts.allows(swapped)
    assert 0 < claim.nats < k * np.log(1000)
    with pytest.raises(
        InputError, match="no numeric column 'city'; name one by `column`: age, same"
    ):
        fpbench.component("disclosure", "means", column="city").claim(context, None)


CELLS = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@given(CELLS, st.sampled_from([1, 10, 30, 50, 75, 100]))
def test_p_percent_refuses_what_a_contributor_could_tell(cell, p):
    """A reader, or the second largest contributor, of somebody's number: by all that it may be."""
    total, told = sum(cell), False
    for reader in (None, *range(len(cell))):
        others = [place for place in range(len(cell)) if place != reader]
        rest = total - (0 if reader is None else cell[reader])
        worlds = [
            world for world in product(range(rest + 1), repeat=len(others)) if sum(world) == rest
        ]
        for place, number in enumerate(others):
            most, true = max(world[place] for world in worlds), cell[number]
            told |= 100 * (most - true) < p * true or (most == true == 0)
    assert is_dominated(np.array(cell), p_percent=p) == told


@given(CELLS, st.integers(1, 5), st.sampled_from([1, 50, 80, 99]))
def test_dominance_refuses_where_some_have_more_than_their_percentage(cell, n, k):
    parts = combinations(cell, min(n, len(cell)))
    told = not sum(cell) or any(100 * sum(part) > k * sum(cell) for part in parts)
    assert is_dominated(np.array(cell), dominance=[n, k]) == told
    assert is_dominated(np.array(cell)) is False


def test_refused_means_are_suppressed():
    people = make_context(n=40, k=3).target
    first = np.flatnonzero(people.sensitive == 0)
    age = people.features.age.to_numpy().copy()
    age[first] = np.where(np.arange(len(first)) < 2, 5000, 1)

    def claim(age=age, **rules):
        sample = Sample(
            people.groups, features=people.features.assign(age=age), labels=people.labels,
            sensitive=people.sensitive, predictions=people.predictions,
        )  # fmt: skip
        own = fpbench.component("disclosure", "means", column="age", **rules)
        return own.claim(Context(None, sample, sample), None)

    everything = claim()
    for rules in ({"p_percent": 10}, {"dominance": [2, 80]}):
        ruled = claim(**rules)
        (facts,) = ruled.constraints
        assert 0 < len(facts.clauses) < len(everything.constraints[0].clauses)
        assert facts.allows(people.sensitive)
        assert ruled.nats > everything.nats
    (nothing,) = claim(dominance=[1, 1]).constraints
    assert len(nothing.low) == 0
    with pytest.raises(InputError, match="numbers of 0 or more, and column 'age' has others"):
        claim(-age, p_percent=10)
    with pytest.raises(InputError, match="dominance: must be .n, k."):
        claim(dominance=[0, 50])


def test_means_add_to_what_a_regression_gives_away():
    rng = np.random.default_rng(0)
    n = 400
    groups = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame({"hours": rng.normal(40, 8, n)})
    labels = 10 * X.hours + 40 * groups + rng.normal(0, 30, n)
    predicted = labels + rng.normal(0, 5, n)
    result = fpbench.attack(predicted.to_numpy(), X, labels, groups, seeds=2, disclosure="means")
    assert result.frame().gain.mean() > 0
    assert "The means report" in str(result)
