"""Boards of several runs: who stands on which board, with what rank, and by which name."""

import json
from types import SimpleNamespace

import pytest
from fpbench_board.ranking import (
    TASKS,
    BoardEntry,
    Mean,
    _Names,
    _rank_entries,
    list_entries,
    rank_across,
    write_interval,
    write_value,
)

import fpbench

ATTACKS, DEFENCES, REPORTS = TASKS
BASE = {
    "seeds": 2,
    "dataset": [{"use": "census-synthetic", "rows": 200}],
    "learner": [{"use": "plain", "label": "a"}, {"use": "decision-tree", "label": "b"}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "prior", "label": "p"}, {"use": "majority", "label": "m"}],
    "corrector": [{"use": "posterior"}],
}
REPORT = {"use": "report", "order": 1, "label": "r"}


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    """Entries of a run of a matrix with changes, by task."""

    def make(**changes):
        run = fpbench.run({**BASE, **changes}, out=tmp_path_factory.mktemp("run"))
        return list_entries(run.read(keys=False))

    return make


@pytest.fixture(scope="module")
def usual(boards):
    return boards()


def placed(task, entries):
    """What each board of a task shares, and an entry on it."""
    return [(dict(shared), one) for (number, shared), one in entries if TASKS[number] is task]


# Who stands together


def test_attacks_on_the_same_model_given_the_same_stand_together(usual):
    found = placed(ATTACKS, usual)
    assert {(shared["model"], one.components["adversary"]) for shared, one in found} == {
        (model, attack) for model in ("plain", "decision-tree") for attack in ("majority", "prior")
    }
    shared, one = found[0]
    assert shared["data set"] == "census-synthetic rows=200"
    assert shared["disclosure"] == "published metric=statistical-parity"
    assert "attacks" not in shared and "note" not in shared
    assert ("dataset", "census-synthetic") in one.uses and ("corrector", "posterior") in one.uses
    assert 0 < one.measures["with_accuracy"].mean <= 1
    assert one.measures["with_accuracy"].count == one.seeds == 2


def test_models_stand_with_those_that_met_the_same_attacks(usual, boards):
    """An attack counts if it was made on all models of the data set, whatever others met."""
    told = "published metric=statistical-parity, "
    both = f"{told}majority, posterior; {told}prior, posterior"
    found = placed(DEFENCES, usual)
    assert [(shared["attacks"], one.components["learner"]) for shared, one in found] == [
        (both, "plain"), (both, "decision-tree")
    ] or {one.components["learner"] for _, one in found} == {"plain", "decision-tree"}  # fmt: skip
    fewer = boards(exclude=[{"learner": "a", "adversary": "m"}])
    assert {shared["attacks"] for shared, _ in placed(DEFENCES, fewer)} == {
        f"{told}prior, posterior"
    }


def test_reports_stand_with_those_that_met_the_same_attacks(boards):
    entries = boards(
        learner=BASE["learner"][:1],
        disclosure=[REPORT, {**REPORT, "min_cell": 30, "label": "s"}],
        exclude=[{"disclosure": "s", "adversary": "m"}],
    )
    met = {one.components["disclosure"]: shared["attacks"]
           for shared, one in placed(REPORTS, entries)}  # fmt: skip
    assert sorted(met.values()) == ["majority, posterior; prior, posterior", "prior, posterior"]
    assert not placed(REPORTS, boards(adversary=BASE["adversary"][:1]))


def test_a_promise_stands_beside_a_model(boards):
    entries = boards(learner=[{"use": "private-tree"}, {"use": "plain"}])
    promised = {one.components["learner"]: one.guarantee for _, one in placed(DEFENCES, entries)}
    assert promised == {"private-tree": "add-remove", "plain": "none"}


def test_other_shares_of_people_are_another_board(usual, boards):
    """Whoever trains on more people attacks another model."""
    other = boards(split={"train": 0.5, "test": 0.3, "attack": 0.2})
    places = [{place for place, _ in entries} for entries in (usual, other)]
    assert places[0] and places[1] and places[0].isdisjoint(places[1])
    assert "train=0.5" in dict(min(places[1])[1])["split"]


def test_what_a_solver_left_open_and_what_is_not_finite():
    def line(adversary, mean, proven):
        measures = {name: Mean(value, 0.1, 2) for name, value in
                    (("with_accuracy", mean), ("proven", proven))}  # fmt: skip
        labels = {"dataset": "d", "learner": "l", "disclosure": "x", "adversary": adversary,
                  "corrector": "c"}  # fmt: skip
        return SimpleNamespace(labels=labels, measures=measures, done=2)

    import pandas as pd

    frame = pd.DataFrame({"status": [], "dataset": []})
    lines = [line("open", 0.7, 0.5), line("closed", 0.6, 1.0), line("huge", float("inf"), 1.0)]
    snapshot = SimpleNamespace(
        components={kind: {} for kind in ("dataset", *ATTACKS.within, *ATTACKS.kinds)},
        matrix=None,
        results=SimpleNamespace(names=["with_accuracy"], frame=lambda: frame),
        leaderboards=lambda by, view: [
            SimpleNamespace(lines=lines if view == "combinations" else ())
        ],
    )
    noted = {one.components["adversary"]: shared.get("note")
             for shared, one in placed(ATTACKS, list_entries(snapshot))}  # fmt: skip
    assert noted == {"open": "optimum not proven", "closed": None}


def test_runs_meet_on_the_boards_of_the_same_task(usual):
    """Boards are in the order of the tasks; entries know their run, and whether it was verified."""
    sections = rank_across([(usual, True), (usual, False), ([], False)])
    assert [section.task.name for section in sections] == ["attacks", "attacks", "defences"]
    for section in sections:
        assert {(entry.run, entry.verified) for entry in section.entries} == {(0, True), (1, False)}
        assert all((entry.rank is None) is (entry.run == 1) for entry in section.entries)
        assert section.best and {entry.run for entry in section.best} == {0}


# Ranks


def entry(name, mean, deviation=0.01, count=10, *, verified=True, accuracy=0.8):
    ends = Mean(mean, deviation, count)
    measures = dict.fromkeys(("advantage", "with_accuracy", "leak"), ends) | {
        "test_accuracy": Mean(accuracy, 0, count),
        "rate_error": Mean(1 - accuracy, 0, count),
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
    value = Mean(0.99, 0.01, 3)
    assert write_interval("with_accuracy", value) == "96.5 to 100.0"  # a share ends at 100 %
    assert write_interval("leak", value) == "+96.52 to +101.48"
    assert write_interval("test_accuracy", Mean(0.01, 0.01, 3)) == "0.0 to 3.5"
    assert write_interval("leak", Mean(0.1, None, 1)) == "-"
    assert write_interval("leak", Mean(-0.00001, 0.0, 2)) == "0.00 to 0.00"
    assert [write_value(name, 0.123411) for name in ("leak", "limit", "rate_error")] == [
        "+12.34", "12.35", "12.3",
    ]  # fmt: skip


def name(**parameters):
    component = SimpleNamespace(use="knn", parameters=parameters)
    snapshot = SimpleNamespace(components={"learner": {"mine": component}}, matrix=None)
    return _Names(snapshot).name("learner", "mine")


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
    unknown = SimpleNamespace(components={"learner": {}}, matrix=json.dumps("no matrix"))
    assert _Names(unknown).name("learner", "mine") == "mine"
    assert _Names(unknown).split == ""
