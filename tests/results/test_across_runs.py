"""Boards of several runs: who stands on which board, with what rank, and by which name."""

import json

import pytest

from fpbench.components.names import KINDS
from fpbench.results.across_runs import (
    TASKS,
    BoardEntry,
    _Names,
    _rank_entries,
    list_entries,
    rank_across,
    write_interval,
    write_value,
)
from fpbench.results.statistics.intervals import Interval
from fpbench.store.results import Results

ATTACKS, DEFENCES, REPORTS = TASKS


def attack(seed=0, *, accuracy=0.8, leak=0.1, status="done", **labels):
    """A row of an attack that names so many groups right; the largest group has 60 %."""
    told = {
        "dataset": "d", "learner": "plain", "disclosure": "exact", "adversary": "a2",
        "corrector": "posterior", **labels,
    }  # fmt: skip
    return {
        **dict.fromkeys(KINDS, ""), **told, "cell": "", "seed": seed, "status": status,
        "reason": None, "seconds": 1.0, "people": 1_000, "n_groups": 2, "majority_accuracy": 0.6,
        "initial_accuracy": accuracy - leak, "corrected_accuracy": accuracy, "gain": leak,
        "adversary_sees": "features, predictions", "without_accuracy": accuracy - leak,
        "with_accuracy": accuracy, "leak": leak, "disclosure_bits": 50.0, "test_accuracy": 0.7,
        "test_unfairness": 0.1, "limit_covers": "disclosure",
    }  # fmt: skip


def report(seed=0, *, error=0.1, **more):
    """A row of an attack that was given a report with such an error of its rates."""
    measured = {
        "facts": 10, "rate_error": error, "cells_published": 0.5, "disparities_visible": 0.5,
        "people_proven": 0.0, "proven_unsure": 0.0,
    }  # fmt: skip
    return attack(seed, **more) | measured


def entries(task, rows, matrix=None):
    """What a run has for the boards of a task: what each board shares, and an entry on it."""
    listed = list_entries(Results.of(rows), matrix)
    return [(dict(shared), one) for (number, shared), one in listed if TASKS[number] is task]


# Who stands together


def test_attacks_on_the_same_model_given_the_same_stand_together():
    rows = [attack(learner=name, adversary=own) for name in "ab" for own in ("a1", "a2")]
    placed = entries(ATTACKS, rows)
    assert [(shared["model"], one.components["adversary"]) for shared, one in placed] == [
        ("a", "a1"), ("a", "a2"), ("b", "a1"), ("b", "a2"),
    ]  # fmt: skip
    shared, one = placed[0]
    assert shared == {"data set": "d", "model": "a", "disclosure": "exact"}
    assert one.uses == (("dataset", "d"), ("learner", "a"), ("disclosure", "exact"),
                        ("adversary", "a1"), ("corrector", "posterior"))  # fmt: skip
    assert one.measures["with_accuracy"].mean == 0.8


def test_models_stand_with_those_that_met_the_same_attacks():
    """An attack counts if it was made on all models of the data set, whatever others met."""
    rows = [attack(learner=name) for name in "ab"]
    rows += [attack(learner="a", adversary="a1", corrector="")]
    rows += [attack(dataset="e", learner="c", adversary="a3")]
    met = [(shared["data set"], shared["attacks"], one.components["learner"])
           for shared, one in entries(DEFENCES, rows)]  # fmt: skip
    assert met == [("d", "exact, a2, posterior", "a"), ("d", "exact, a2, posterior", "b"),
                   ("e", "exact, a3, posterior", "c")]  # fmt: skip


def test_reports_stand_with_those_that_met_the_same_attacks():
    rows = [report(disclosure=name) for name in ("exact", "noisy")]
    rows += [report(disclosure="exact", adversary="a1", accuracy=0.75)]
    rows += [report(disclosure="exact", learner="other", adversary="a3")]
    rows += [report(disclosure="noisy", adversary="a4", status="failed")]
    met = {(shared["model"], one.components["disclosure"]): shared["attacks"]
           for shared, one in entries(REPORTS, rows)}  # fmt: skip
    assert met == {
        ("plain", "exact"): "a1, posterior; a2, posterior",
        ("plain", "noisy"): "a2, posterior",
        ("other", "exact"): "a3, posterior",
    }


def test_what_a_solver_left_open_stands_apart_and_nothing_else_of_a_run_does():
    """Others of the run decide nothing: a run of one learner meets one of several."""
    rows = [attack(adversary=name) | {"proven": int(name == "a1")} for name in ("a1", "a2")]
    rows += [attack(learner=f"private {i}") | {"model_delta": i / 10} for i in (1, 2)]
    placed = entries(ATTACKS, rows)
    assert {(shared["model"], one.components["adversary"]): shared.get("note")
            for shared, one in placed} == {
        ("plain", "a1"): None, ("plain", "a2"): "optimum not proven",
        ("private 1", "a2"): None, ("private 2", "a2"): None,
    }  # fmt: skip


def test_a_promise_stands_beside_a_model():
    promised = attack() | {"model_epsilon": 1.0, "model_neighbours": "add-remove"}
    ((_, one),) = entries(DEFENCES, [promised])
    assert one.guarantee


def test_what_is_not_finite_is_not_ranked():
    assert not entries(ATTACKS, [attack(seed, accuracy=1.7e308, leak=0) for seed in range(2)])
    assert not entries(REPORTS, [attack()])  # no report


def test_other_shares_of_people_are_another_data_set():
    """Whoever trains on more people attacks another model."""
    split = json.dumps([{"train": 0.5}, {}, []])
    ((shared, _),) = entries(ATTACKS, [attack()], split)
    assert shared == {"data set": "d, train=0.5", "model": "plain", "disclosure": "exact"}


def test_runs_meet_on_the_boards_of_the_same_task():
    """Boards are in the order of the tasks; entries know their run, and whether it was verified."""
    rows = [attack(seed, accuracy=0.8 + seed / 100) for seed in range(3)]
    mine = list_entries(Results.of(rows), None)
    other = list_entries(Results.of([attack(dataset="c", accuracy=0.9)]), None)
    sections = rank_across([(mine, True), (other, True), (mine, False), ([], False)])
    placed = [(section.task.name, dict(section.shared)["data set"]) for section in sections]
    assert placed == [("attacks", "c"), ("attacks", "d"), ("defences", "c"), ("defences", "d")]
    of_run = [(entry.run, entry.verified, entry.rank) for entry in sections[1].entries]
    assert of_run == [(0, True, 1), (2, False, None)]
    assert [entry.run for entry in sections[1].best] == [0]
    worse = list_entries(Results.of([attack(seed, accuracy=0.7) for seed in range(3)]), None)
    (section, *_) = rank_across([(mine, True), (worse, True)])
    assert [entry.rank for entry in section.entries] == [1, 2]
    assert [entry.run for entry in section.best] == [0]
    assert sections[0].best == ()  # of one seed


# Ranks


def entry(name, mean, deviation=0.01, count=10, *, verified=True, accuracy=0.8):
    ends = Interval(mean, deviation, None, None, count)
    measures = dict.fromkeys(("advantage", "with_accuracy", "leak"), ends) | {
        "test_accuracy": Interval(accuracy, 0, None, None, count),
        "rate_error": Interval(1 - accuracy, 0, None, None, count),
    }
    return BoardEntry({"learner": name}, (("learner", name),), measures, count, verified=verified)


def list_ranks(task, *named):
    return [(each.components["learner"], each.rank) for each in _rank_entries(task, named)]


def list_front(task, *named):
    return {each.components["learner"] for each in _rank_entries(task, named) if each.on_front}


def test_a_rank_is_one_more_than_those_that_are_better_for_certain():
    """Student's t over ten seeds: half the interval is 2.262 x .01 / sqrt(10), which is .0072."""
    assert list_ranks(
        DEFENCES, entry("worst", 0.3), entry("best", 0.1), entry("near", 0.1143),
        entry("far", 0.115), entry("liar", 0.0, verified=False), entry("once", 0.0, None, 1),
        entry("useless", 0.09), entry("noisy", 0.2, 1.0),
    ) == [
        ("useless", 1), ("best", 1), ("noisy", 1), ("near", 2), ("far", 3), ("worst", 5),
        ("once", None), ("liar", None),
    ]  # fmt: skip


def test_of_attacks_the_greatest_is_first():
    """Three seeds: half the interval is 4.303 x .01 / sqrt(3), which is .0248."""
    assert list_ranks(
        ATTACKS, entry("weak", 0.6, count=3), entry("strong", 0.7, count=3),
        entry("near", 0.651, count=3), entry("far", 0.65, count=3), entry("same", 0.7, count=3),
        entry("once", 0.9, None, 1), entry("liar", 0.9, verified=False),
    ) == [
        ("same", 1), ("strong", 1), ("near", 1), ("far", 3), ("weak", 5), ("once", None),
        ("liar", None),
    ]  # fmt: skip


def test_the_front_is_of_what_is_verified():
    """Who gives away less than nothing is no better than who gives away nothing."""
    named = [
        entry("useful", 0.3, accuracy=0.9), entry("silent", 0.0, accuracy=0.5),
        entry("below", -0.1, accuracy=0.5), entry("worse", 0.31, accuracy=0.9),
        entry("once", 0.2, None, 1, accuracy=0.8), entry("less", -0.2, accuracy=0.4),
        entry("liar", 0.0, accuracy=1.0, verified=False),
    ]  # fmt: skip
    for task in (DEFENCES, REPORTS):
        assert list_front(task, *named) == {"useful", "silent", "below", "once"}
    assert not list_front(ATTACKS, *named)


# Words


def test_an_interval_is_as_wide_as_ranks_take_it():
    value = Interval(0.99, 0.01, 0.98, 1.0, 3)
    assert write_interval("with_accuracy", value) == "96.5 to 100.0"  # a share ends at 100 %
    assert write_interval("leak", value) == "+96.52 to +101.48"
    assert write_interval("test_accuracy", Interval(0.01, 0.01, 0, 1, 3)) == "0.0 to 3.5"
    assert write_interval("leak", Interval(0.1, None, None, None, 1)) == "-"
    assert [write_value(name, 0.123411) for name in ("leak", "limit", "rate_error")] == [
        "+12.34", "12.35", "12.3",
    ]  # fmt: skip


def name(**parameters):
    axes = {"learner": [["knn", "mine", parameters]]}
    return _Names(json.dumps([{}, axes, []])).name("learner", "mine")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"k": 3, "base": "a-b.c:D"}, "knn base=a-b.c:D k=3"),
        ({"of": {"use": "svm", "c": [1]}}, "knn of=(svm c=[1])"),
        ({"of": {"c": 1}}, 'knn of={"c": 1}'),
        ({"on": True, "text": "no word"}, 'knn on=true text="no word"'),
    ],
)
def test_a_component_is_named_by_its_parameters(parameters, named):
    assert name(**parameters) == named


def test_components_that_differ_have_names_that_differ():
    texts = [{"a": "x b=1"}, {"a": "x", "b": 1}, {"a": "1"}, {"a": 1}, {"a": "true"}, {"a": True}]
    long = [{"a": "x" * 400 + end} for end in "12"]
    names = [name(**parameters) for parameters in (*texts, *long)]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 350
    assert _Names(None).name("learner", "mine") == "mine"
