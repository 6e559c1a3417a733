"""What is known besides a claim: facts are true, and become constraints once the truth is known."""

from __future__ import annotations

import importlib.util
from fractions import Fraction

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import fpbench
from fpbench import InputError, Problem, Sample
from fpbench.claims import METRICS
from fpbench.claims.facts import Fact
from fpbench.claims.rates import FORMS

FACT = TypeAdapter(Fact)


def fact(use, **parameters):
    return FACT.validate_python({"use": use, **parameters})


@st.composite
def samples(draw, least=1):
    """People of two to four groups, each with members of both labels."""
    k = draw(st.integers(2, 4))
    everywhere = [(group, label) for group in range(k) for label in (0, 1)]
    pair = st.tuples(st.integers(0, k - 1), st.integers(0, 1))
    pairs = everywhere * least + draw(st.lists(pair, max_size=20))
    n = len(pairs)
    said = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    amounts = draw(st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n))
    features = pd.DataFrame(
        {"amount": amounts, "colour": pd.Categorical(["red"] * n), "whole": np.arange(n)}
    )
    sensitive, labels = (np.array(column, dtype=np.int8) for column in zip(*pairs, strict=True))
    names = tuple(f"g{code}" for code in range(k))
    return Sample(
        names,
        features=features,
        labels=labels,
        sensitive=sensitive,
        predictions=np.array(said, dtype=np.int8),
    )


margins = st.sampled_from([0.0, 0.001, 0.1, 1.0]) | st.floats(0, 1)
facts = st.one_of(
    st.builds(lambda m, g: fact("share", group=g, margin=m), margins, st.sampled_from(["g0", "g1"])),
    st.builds(
        lambda m, g, metric: fact("positive-rate", group=g, margin=m, metric=metric),
        margins, st.sampled_from(["g0", "g1"]), st.sampled_from(METRICS),
    ),
    st.builds(
        lambda m, metric, form: fact("unfairness", metric=metric, form=form, margin=m),
        margins, st.sampled_from(METRICS), st.sampled_from(FORMS),
    ),
    st.builds(lambda share: fact("known", share=share), st.floats(0, 1)),
    st.builds(
        lambda m, g, column: fact("linear", group=g, column=column, margin=m),
        st.floats(0, 10), st.sampled_from(["g0", "g1"]), st.sampled_from(["amount", "whole"]),
    ),
)  # fmt: skip


@given(samples(), facts, st.integers(0, 5))
def test_facts_are_true(people, drawn, seed):
    constraint = drawn.constraint(people, np.random.default_rng(seed))
    assert constraint.word == drawn.word
    constraint.check(len(people), len(people.groups))
    problem = Problem(
        people.sensitive, len(people.groups), people.predictions, people.labels, (constraint,)
    )
    assert oracles.admissible(problem, people.sensitive)


@given(samples(), st.sampled_from(["g0", "g1"]), st.floats(0, 1))
def test_bounds_are_the_true_value_less_and_plus_the_margin(people, group, margin):
    code = people.groups.index(group)
    members = people.sensitive == code
    truths = {
        "share": Fraction(int(members.sum()), len(people)),
        "positive-rate": Fraction(int(people.predictions[members].sum()), int(members.sum())),
    }
    for use, truth in truths.items():
        bounds = fact(use, group=group, margin=margin).constraint(people, None)
        assert bounds.group == code
        assert bounds.low == max(truth - Fraction(str(margin)), 0)
        assert bounds.high == min(truth + Fraction(str(margin)), 1)
        exact = fact(use, group=group).constraint(people, None)
        assert exact.low == exact.high == truth


@given(samples(), st.sampled_from(METRICS), st.sampled_from(FORMS))
def test_an_unfairness_is_known_from_both_sides(people, metric, form):
    constraint = fact("unfairness", metric=metric, form=form).constraint(people, None)
    claim = fpbench.claims.RateConstraint(metric, form=form)
    truth = claim.unfairness(
        people.sensitive, people.predictions, people.labels, len(people.groups)
    )
    assert (constraint.metric, constraint.form) == (metric, form)
    assert constraint.low == constraint.high == truth
    near = fact("unfairness", metric=metric, form=form, margin=0.25).constraint(people, None)
    assert near.low == max(truth - Fraction(1, 4), 0)
    assert near.high == min(truth + Fraction(1, 4), 1)


@given(samples())
def test_a_rate_in_two_slices_lies_between_the_bounds_of_both(people):
    constraint = fact("positive-rate", group="g1", metric="equalized-odds").constraint(people, None)
    rates = []
    for label in (0, 1):
        said = people.predictions[(people.sensitive == 1) & (people.labels == label)]
        rates.append(Fraction(int(said.sum()), len(said)))
    assert (constraint.low, constraint.high) == (min(rates), max(rates))


def few(sensitive, labels=(0, 0, 0, 0), predictions=(1, 0, 1, 0)):
    return Sample(
        ("Female", "Male"), sensitive=np.array(sensitive), labels=np.array(labels),
        predictions=np.array(predictions),
        features=pd.DataFrame({"age": [1.0, 2, 3, 4], "colour": list("abcd"), "pay": [-1, 2, 2, 4]}),
    )  # fmt: skip


def test_bounds_that_are_said_are_taken_as_they_are_said():
    people = few([0, 0, 0, 1])
    said = fact("share", group="Male", low=0.1, high=0.9).constraint(people, None)
    assert (said.low, said.high) == (0.1, 0.9)
    half = fact("share", group="Male", low=0.1, margin=0.05).constraint(people, None)
    assert (half.low, half.high) == (0.1, Fraction(3, 10))


def test_a_group_without_members_has_any_rate():
    people = few([0, 0, 0, 0])
    found = fact("positive-rate", group="Male").constraint(people, None)
    assert (found.low, found.high) == (0, 1)
    # Nobody of label 1: what is known is the rate of the others.
    people = few([0, 0, 1, 1])
    found = fact("positive-rate", group="Male", metric="equalized-odds").constraint(people, None)
    assert found.low == found.high == Fraction(1, 2)


@given(samples(least=3), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 3))
def test_known_people_are_drawn_at_random(people, share, seed):
    constraint = fact("known", share=share).constraint(people, np.random.default_rng(seed))
    rows, groups = constraint.pairs()
    assert len(rows) == round(share * len(people))
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(groups, people.sensitive[rows])
    again = fact("known", share=share).constraint(people, np.random.default_rng(seed))
    np.testing.assert_array_equal(again.pairs()[0], rows)


def test_other_seeds_know_other_people():
    people = few([0, 1, 0, 1])
    drawn = {
        tuple(fact("known", share=0.5).constraint(people, np.random.default_rng(seed)).pairs()[0])
        for seed in range(60)
    }
    assert len(drawn) == 6  # all pairs of four


@given(samples(), st.floats(0, 1))
def test_a_total_is_known_up_to_a_share_of_it(people, margin):
    constraint = fact("linear", group="g1", column="amount", margin=margin).constraint(people, None)
    amounts = people.features["amount"].to_numpy()
    total = amounts[people.sensitive == 1].sum()
    rounding = 2e-9 * np.abs(amounts).sum()
    assert constraint.group == 1
    np.testing.assert_array_equal(constraint.array(), amounts)
    assert constraint.low == pytest.approx(total - margin * abs(total), abs=rounding)
    assert constraint.high == pytest.approx(total + margin * abs(total), abs=rounding)


@pytest.mark.parametrize(("use", "parameters", "message"), [
    ("share", {"group": "female"}, "no group 'female'; did you mean 'Female'?"),
    ("positive-rate", {"group": "Mal"}, "no group 'Mal'; did you mean 'Male'?"),
    ("linear", {"group": "Males", "column": "age"}, "no group 'Males'; did you mean 'Male'?"),
    ("linear", {"group": "Male", "column": "agee"}, "linear fact: no numeric column 'agee'; did"),
    ("linear", {"group": "Male", "column": "colour"}, "linear fact: no numeric column 'colour'"),
])  # fmt: skip
def test_names_that_are_not_there_say_the_nearest(use, parameters, message):
    with pytest.raises(InputError) as error:
        fact(use, **parameters).constraint(few([0, 1, 0, 1]), None)
    assert str(error.value).startswith(message)


def matrix(facts, disclosure="hidden", corrector="exact", **parameters):
    metric = {"metric": "statistical-parity"} if disclosure == "published" else {}
    return {
        "seeds": 2,
        "dataset": [{"use": "flock", "rows": 90}],
        "learner": [{"use": "parrot"}],
        "disclosure": [{"use": disclosure, "also": facts, **metric}],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": corrector, **parameters}],
    }


SHARE = {"use": "share", "group": "g1"}
RATE = {"use": "positive-rate", "group": "g0", "margin": 0.02}
UNFAIRNESS = {"use": "unfairness", "metric": "statistical-parity", "margin": 0.01}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("disclosure", ["hidden", "published"])
@pytest.mark.parametrize(
    "facts",
    [[SHARE], [RATE], [UNFAIRNESS], [{"use": "known", "share": 0.5}], [SHARE, RATE, UNFAIRNESS]],
    ids=lambda facts: " ".join(one["use"] for one in facts),
)
def test_runs_know_facts(toys, tmp_path, disclosure, facts):
    frame = fpbench.run(matrix(facts, disclosure), out=tmp_path / "run").frame()
    assert set(frame["status"]) == {"done"}
    # Facts and a published claim are true, so that they can hold.
    assert set(frame["solver_status"]) == {"optimal"}
    assert frame["claim_metric"].notna().all() == (disclosure == "published")
    assert frame["corrected_accuracy"].notna().all()
    assert (frame["changes"] >= 0).all()


@pytest.mark.slow
def test_who_is_known_is_right_in_the_end(toys, tmp_path):
    for share in (0.0, 0.4, 1.0):
        run = fpbench.run(matrix([{"use": "known", "share": share}]), out=tmp_path / str(share))
        frame = run.frame()
        if share == 0:
            assert (frame["changes"] == 0).all()
        else:
            assert (frame["corrected_accuracy"] > frame["initial_accuracy"]).all()
            assert (frame["change_precision"] == 1).all()
        if share == 1:
            assert (frame["corrected_accuracy"] == 1).all()


def test_facts_that_contradict_are_infeasible_and_so_reported(toys, tmp_path):
    facts = [{**SHARE, "low": 0.9, "high": 1.0}, SHARE]
    frame = fpbench.run(matrix(facts), out=tmp_path / "run").frame()
    assert set(frame["status"]) == {"done"}
    assert set(frame["solver_status"]) == {"infeasible"}
    assert frame["corrected_accuracy"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "message"), [
    ({"use": "share", "group": "g2"}, "disclose hidden: no group 'g2'; did you mean "),
    ({"use": "positive-rate", "group": "G1"}, "disclose hidden: no group 'G1'; did you mean 'g1'?"),
])  # fmt: skip
def test_a_group_that_is_not_there_is_bad_input(toys, tmp_path, wrong, message):
    run = fpbench.run(matrix([wrong]), out=tmp_path / "run")
    (reason,) = set(run.frame()["reason"])
    assert reason.startswith(message)
    assert "\n" not in reason
    assert all(cell.bad_input for cell in run.finished)


@pytest.mark.slow
def test_a_total_helps_a_corrector_that_knows_individuals(toys, tmp_path):
    if not (importlib.util.find_spec("pyomo") and importlib.util.find_spec("highspy")):
        pytest.skip("needs pyomo and highspy: pip install 'fpbench-toolkit[ip]'")
    total = {"use": "linear", "group": "g1", "column": "x", "margin": 1e-4}
    for disclosure in ("hidden", "published"):
        frame = fpbench.run(
            matrix([total], disclosure, "ip", weights="identity"), out=tmp_path / disclosure
        ).frame()
        assert set(frame["status"]) == {"done"}
        assert set(frame["solver_status"]) == {"optimal"}
        assert (frame["changes"] > 0).all()
    wrong = {**total, "column": "y"}
    run = fpbench.run(matrix([wrong], "hidden", "ip"), out=tmp_path / "wrong")
    (reason,) = set(run.frame()["reason"])
    assert reason.startswith("disclose hidden: linear fact: no numeric column 'y'; ")
    assert all(cell.bad_input for cell in run.finished)
