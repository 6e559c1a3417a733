"""Attacks, correctors, mechanisms and defences, ranked by themselves."""

import numpy as np
import pytest

from fpbench.base.errors import InputError
from fpbench.components.names import KINDS
from fpbench.components.own_measures import GUARANTEE
from fpbench.results.defences import STRONGEST
from fpbench.results.ranking import ON_FRONT, PARETO
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.snapshot import VIEWS, check_view, make_view_boards
from fpbench.store.results import Results

SEEDS = 12
PROMISE = {"model_epsilon": 1.5, "model_delta": 1e-5, "model_neighbours": "add-remove"}


def attack(learner, adversary, corrector, seed, guess, corrected, dataset="d", **more):
    labels = dict.fromkeys(KINDS, "") | {
        "dataset": dataset, "learner": learner, "disclosure": "published", "adversary": adversary,
        "corrector": corrector,
    }  # fmt: skip
    noise = seed / 1e4
    gain = None if corrected is None else corrected - guess
    return {"cell": "", **labels, "seed": seed, "status": "done", "reason": None, "seconds": 1.0,
            "majority_accuracy": 0.6, "initial_accuracy": guess + noise, "gain": gain,
            "corrected_accuracy": None if corrected is None else corrected + noise,
            "test_accuracy": 0.8 if learner == "open" else 0.7,
            "test_unfairness": 0.3 if learner == "open" else 0.1, "model_epsilon": None,
            **more}  # fmt: skip


def failed(row):
    kept = {name: row[name] for name in ("cell", *KINDS, "seed")}
    return {**kept, "status": "failed", "reason": "it broke", "seconds": 1.0}


def run(learners=("open", "fair"), **more):
    """A strong guess that nothing improves, and a weak one that is improved beyond it."""
    rows = []
    for learner in learners:
        leaky = 0.05 * (learner == "open")
        for seed in range(SEEDS):
            rows += [
                attack(learner, "weak", "none", seed, 0.65, 0.65, **more),
                attack(learner, "weak", "exact", seed, 0.65, 0.75 + leaky, **more),
                attack(learner, "strong", "none", seed, 0.72, 0.72, **more),
                attack(learner, "strong", "exact", seed, 0.72, None, **more),
            ]
    return rows


def views(rows, name, rank_by=None):
    return make_view_boards(
        add_comparisons(Results.of(rows)),
        name,
        rank_by or ("advantage" if name == "defences" else "gain"),
    )


def test_attacks_are_ranked_over_learners():
    (board,) = views(run(), "attacks")
    assert board.kinds == ("disclosure", "adversary", "corrector")
    first = board.lines[0]
    assert (first.rank, first.labels["adversary"], first.labels["corrector"]) == (
        1,
        "weak",
        "exact",
    )
    assert first.measures["gain"].mean == pytest.approx(0.125)
    assert "averaged over 2 learners" in board.notes
    # `exact` has no gain where the claim cannot be met, so that its mean would be of other settings.
    strong = [line for line in board.lines if line.labels["adversary"] == "strong"]
    assert [(x.labels["corrector"], x.rank is None) for x in strong] == [
        ("none", False), ("exact", True)
    ]  # fmt: skip


def test_defences_are_ranked_by_the_strongest_attack():
    (board,) = views(run(), "defences")
    fair, exposed = board.lines
    assert [(x.rank, x.labels["learner"]) for x in board.lines] == [(1, "fair"), (2, "open")]
    assert fair.labels[STRONGEST] == "weak + exact"
    assert fair.measures["advantage"].mean == pytest.approx(0.15, abs=1e-3)
    assert exposed.measures["advantage"].mean == pytest.approx(0.20, abs=1e-3)
    # A correction that was not possible leaves the guess.
    assert fair.measures["mean_advantage"].mean == pytest.approx(0.11, abs=1e-3)
    assert fair.measures["gain_over_best"].mean == pytest.approx(0.03)
    assert GUARANTEE not in board.kinds


def test_a_guess_alone_may_be_the_strongest_attack():
    rows = [
        row for row in run(["fair"]) if (row["adversary"], row["corrector"]) != ("weak", "exact")
    ]
    (board,) = views(rows, "defences")
    assert board.lines[0].labels[STRONGEST] == "strong alone"
    assert board.lines[0].measures["advantage"].mean == pytest.approx(0.12, abs=1e-3)
    assert board.lines[0].measures["gain_over_best"].mean == 0


def test_the_worst_case_is_at_least_the_mean_and_at_most_the_best_seed():
    rng = np.random.default_rng(0)
    rows = [
        attack(learner, f"a{i}", "none", seed, *[rng.uniform(0.5, 0.9)] * 2)
        for learner in ("x", "y", "z") for i in range(6) for seed in range(SEEDS)
    ]  # fmt: skip
    (board,) = views(rows, "defences")
    for line in board.lines:
        best = np.mean([
            max(r["initial_accuracy"] for r in rows
                if r["learner"] == line.labels["learner"] and r["seed"] == seed)
            for seed in range(SEEDS)
        ])  # fmt: skip
        leak = line.measures["advantage"].mean
        assert line.measures["mean_advantage"].mean <= leak <= best - 0.6 + 1e-12


def test_an_attack_on_one_learner_only_is_left_out():
    rows = run() + [attack("fair", "special", "none", seed, 0.9, 0.9) for seed in range(SEEDS)]
    (board,) = views(rows, "defences")
    assert board.lines[0].labels["learner"] == "fair"
    assert board.notes[0] == "left out: 1 attack that was not made on every learner"


def test_learners_whose_cells_failed_are_seen():
    rows = run() + [failed(row) for row in run(["sick"])]
    (board,) = views(rows, "defences")
    last = board.lines[-1]
    assert (last.rank, last.labels["learner"], last.done, last.failed) == (None, "sick", 0, SEEDS)
    assert last.reasons == ("it broke",)


def test_several_datasets_have_their_own_defences_and_one_of_all():
    rows = run(dataset="one") + run(dataset="two")
    overall, one, two = views(rows, "defences")
    assert (overall.scope, overall.kinds[0]) == ("overall: 2 data sets", "learner")
    assert [board.lines[0].labels["learner"] for board in (overall, one, two)] == ["fair"] * 3
    assert overall.lines[0].measures["advantage"].count == SEEDS


def test_notes_are_those_of_the_data_set_and_stand_above_all():
    rows = run(dataset="a", proven=0) + run(dataset="data", proven=1)
    notes = [board.notes for board in views(rows, "defences")]
    said = "optimum not proven at every seed: the strongest attack on 2 learners"
    assert [[note for note in each if said in note] for each in notes] == [
        [f"a: {said}"],
        [said],
        [],
    ]


def test_guarantees_stand_beside_leaks():
    rows = run(["open"]) + run(["dp"], **PROMISE)
    (board,) = views(rows, "defences")
    dp, other = sorted(board.lines, key=lambda line: line.labels["learner"])
    assert other.labels[GUARANTEE] == "none"
    assert "epsilon" not in other.measures
    assert dp.labels[GUARANTEE] == "add-remove, delta 1e-05"
    assert dp.measures["epsilon"].mean == 1.5


def without(rows, *names):
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("changed", "words"), [
    ({"model_epsilon": None}, "none"),
    ({"model_epsilon": -1.0}, "none"),
    ({"model_epsilon": float("inf")}, "none"),
    ({"model_epsilon": "0.1"}, "none"),
    (None, "none"),
])  # fmt: skip
def test_a_learner_promises_no_more_than_the_least_of_its_rows(changed, words):
    """Whatever notes say, and be it at one seed only."""
    notes = {"dp_epsilon": 0.1, "dp_neighbours": "add-remove", "dp_delta": 0.0}
    rows = run(["dp"], **PROMISE, **notes)
    rows[-1:] = without(rows[-1:], *PROMISE) if changed is None else [rows[-1] | changed]
    (board,) = views(rows + run(["other"], **PROMISE), "defences")
    (line,) = [line for line in board.lines if line.labels["learner"] == "dp"]
    assert line.labels[GUARANTEE] == words
    assert "epsilon" not in line.measures


def test_unproven_optima_are_noted():
    rows = run(["open"], proven=0) + run(["dp"], proven=1, **PROMISE)
    (board,) = views(rows, "defences")
    assert "optimum not proven at every seed: the strongest attack on 1 learner" in board.notes
    (board,) = views(run(["open"], proven=1), "defences")
    assert not any("proven" in note for note in board.notes)


def test_the_strongest_attack_names_its_disclosure_where_there_are_several():
    (board,) = views(run(["open"]), "defences")
    assert board.lines[0].labels[STRONGEST] == "weak + exact"
    (board,) = views([*run(["open"]), *({**row, "disclosure": "hidden", "corrected_accuracy": 0.61}
                     for row in run(["open"]))], "defences")  # fmt: skip
    assert board.lines[0].labels[STRONGEST] == "weak + exact, published"


def test_mechanisms_and_policies_are_ranked_by_the_error_of_audits():
    rows = [
        {"cell": "", **dict.fromkeys(KINDS, ""), "dataset": "d", "learner": "l",
         "auditor": f"pafer epsilon={e}", "mechanism": m, "policy": p, "seed": s, "status": "done",
         "reason": None, "seconds": 1.0, "error": base / e + s / 1e4, "epsilon": e,
         "delta": 1e-6 if m == "gaussian" else 0.0}
        for e in (1.0, 2.0) for s in range(SEEDS)
        for m, p, base in (("laplace", "uniform", 0.1), ("laplace", "zero", 0.2), ("gaussian", "zero", 0.3))
    ]  # fmt: skip
    pure, approximate = views(rows, "audits")
    assert pure.apart == ("delta 0",)
    assert [(x.rank, x.labels["policy"]) for x in pure.lines] == [(1, "uniform"), (2, "zero")]
    assert pure.lines[0].measures["error"].mean == pytest.approx(0.075, abs=1e-3)
    assert approximate.apart == ("delta 1e-06",)


def test_views_without_rows_of_their_kind_are_empty():
    rows = run()
    assert views(rows, "audits") == []
    audits = [{**row, "auditor": "x", "adversary": ""} for row in rows]
    assert views(audits, "defences") == []
    for name in VIEWS:
        assert views([], name) == []


@pytest.mark.parametrize(("name", "by", "words"), [
    ("defense", None, "unknown view 'defense'; did you mean 'defences'?"),
    ("defences", "advantge",
     "unknown measure to rank defences by: 'advantge'; did you mean 'advantage'?"),
    ("attacks", "gian", "unknown measure to rank by: 'gian'; did you mean 'gain'?"),
])  # fmt: skip
def test_bad_views(name, by, words):
    with pytest.raises(InputError) as told:
        views(run(), name, by)
    assert words in str(told.value)


def test_defenses_is_another_spelling_of_defences():
    assert check_view("defenses") == check_view("defences") == "defences"
    american, british = (views(run(), name) for name in ("defenses", "defences"))
    assert [board.view for board in american] == ["defences"] * len(british)


def front(rows):
    """The learners on the front, and the costs of all."""
    (board,) = views(rows, "defences")
    names = ("test_accuracy", "test_unfairness", "advantage")
    costs = {
        line.labels["learner"]: np.array([line.measures[name].mean for name in names]) * [-1, 1, 1]
        for line in board.lines if all(name in line.measures for name in names)
    }  # fmt: skip
    return {x.labels["learner"] for x in board.lines if x.labels[PARETO] == ON_FRONT}, costs


@pytest.mark.slow
def test_the_front_is_that_of_comparing_all_pairs():
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = []
        for i in range(8):
            accuracy, unfairness, leak = rng.integers(0, 4, size=3) / 10
            rows += [
                attack(f"l{i}", "a", "none", seed, 0.6 + leak, 0.6 + leak, test_accuracy=accuracy,
                       test_unfairness=unfairness)
                for seed in range(2)
            ]  # fmt: skip
        found, costs = front(rows)
        for name, one in costs.items():
            beaten = any((p <= one).all() and (p < one).any() for p in costs.values())
            assert (name in found) is not beaten


@pytest.mark.slow
def test_epsilons_of_other_guarantees_are_not_compared():
    def private(name, epsilon, neighbours, accuracy):
        return [
            {**row, "learner": name, "model_epsilon": epsilon, "model_neighbours": neighbours,
             "test_accuracy": accuracy}
            for row in run(["fair"])
        ]  # fmt: skip

    rows = private("one", 1.0, "attribute", 0.9) + private("two", 2.0, "add-remove", 0.8)
    assert front(rows)[0] == {"one", "two"}
    rows = private("one", 1.0, "attribute", 0.9) + private("two", 2.0, "attribute", 0.8)
    assert front(rows)[0] == {"one"}
    # Whoever promises nothing is beaten by any promise, all else being the same.
    rows = private("one", 1.0, "attribute", 0.9)
    rows += [{**row, "learner": "none", "test_accuracy": 0.9} for row in run(["fair"])]
    assert front(rows)[0] == {"one"}


def test_learners_without_an_objective_are_not_on_the_front():
    rows = run(["open", "fair"])
    rows += [{**row, "learner": "half", "test_accuracy": 1.0, "test_unfairness": None}
             for row in run(["fair"])]  # fmt: skip
    assert front(rows)[0] == {"open", "fair"}


def test_over_all_data_sets_lines_compare_that_are_on_all_of_them():
    """A mean over the settings that all lines share would else speak of one data set only."""
    rows = [*run(dataset="one"), *run(dataset="two")]
    rows = [r for r in rows if (r["dataset"], r["corrector"]) != ("two", "none")]
    overall, one, two = views(rows, "attacks")
    assert overall.scope == "overall: 2 data sets"
    assert {line.labels["corrector"] for line in overall.lines} == {"exact"}
    left = "published + weak + none, published + strong + none"
    assert f"left out, as not run on every data set: {left}" in overall.notes
    assert {line.labels["corrector"] for line in one.lines} == {"exact", "none"}
    assert {line.labels["corrector"] for line in two.lines} == {"exact"}


def lose(row):
    """Seeds that a forger, or a limit on time, takes from an attack on a learner."""
    return row["seed"] >= 6 if row["adversary"] == "strong" else False


@pytest.mark.parametrize("lack", [
    lambda row: [] if lose(row) else [row],
    lambda row: [failed(row) if lose(row) else row],
    lambda row: [] if lose(row) or (row["adversary"] == "weak" and row["seed"] < 6) else [row],
], ids=["left out", "failed", "other seeds"])  # fmt: skip
@pytest.mark.parametrize("learners", [("open",), ("open", "fair")])
@pytest.mark.parametrize("view", [view for view in VIEWS if view not in ("audits", "reports")])
def test_lines_of_different_seeds_are_told(view, learners, lack):
    whole, part = run(learners), run(learners, dataset="e")
    part = [each for row in part for each in lack(row)]
    for rows, lacking in ((whole, False), (part, True), (whole + part, True)):
        boards = views(rows, view)
        assert boards
        for board in boards:
            scope = board.scope.removeprefix("data set ")
            told = any("warning: lines have different seeds" in note for note in board.notes)
            assert told == (lacking and scope != "d"), (scope, board.notes)
