"""Verifying a run: cells run again are the same to the last bit, or it is told what is not."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from strangers import drop_results
from toy_runs import ATTACK, COUNTER, PARROTS

import fpbench
from fpbench import InputError, Measure
from fpbench.errors import StoreError
from fpbench.execution import session
from fpbench.execution.verification import read_stored_matrix, verify
from fpbench.plugin import Status
from fpbench.store.store import Store

MATRIX = ATTACK | {
    "seeds": 3,
    "learner": PARROTS,
    "adversary": [{"use": "coin"}, {"use": "keen"}],
    "auditor": COUNTER,
}
TOML = """
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[auditor]]
use = "counter"
mechanism = { use = "hiss" }
[profile.more]
learner = [{ use = "parrot", number = 5 }]
"""


@pytest.fixture(autouse=True)
def _toys(toys):
    pass


def forge(run, row, **changes):
    """Change what a run says of a cell."""
    with Store(run, create=True) as store:
        measures = next(r.measures for r in store.records() if r.key == row["cell"])
        store.add(1, row["cell"], Status.DONE, 1.0, {**measures, **changes})


@pytest.mark.slow
def test_all_cells_of_an_honest_run_are_the_same(tmp_path):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    before = (run.path / "store.sqlite").read_bytes()
    found = verify(run.path, 1000)
    assert found.same
    assert len(found.checked) == found.done == 18
    assert all(each.same_code for each in found.checked)
    assert found.environment == ()
    assert (run.path / "store.sqlite").read_bytes() == before


def test_a_value_that_was_changed_in_its_last_bit_is_found(tmp_path):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    row = next(row for row in run.rows() if row["adversary"] == "keen" and row["seed"] == 1)
    forge(run.path, row, initial_accuracy=row["initial_accuracy"] + 2**-53, correct_seconds=99.0)
    found = verify(run.path, 18)
    assert not found.same
    (wrong,) = [each for each in found.checked if not each.same]
    assert wrong.cell.startswith("flock, ")
    assert wrong.cell.endswith("seed 1")
    (change,) = wrong.changes
    assert (change.name, change.other) == ("initial_accuracy", row["initial_accuracy"])
    assert change.one == row["initial_accuracy"] + 2**-53


def test_what_was_compared_is_told(tmp_path):
    found = verify(fpbench.run(MATRIX, out=tmp_path / "run").path, 1000)
    assert {"gain", "initial_accuracy", "corrected_accuracy", "claim_holds", "test_accuracy",
            "train_unfairness", "changes", "people"} <= {*found.computed}  # fmt: skip
    # Notes first, then what fpbench takes over from answers.
    assert found.reported[:3] == ("toy_note", "tuned_on", "members")
    assert {"objective", "solver_status", "proven", "model_epsilon"} <= {*found.reported}
    assert not {*found.computed} & {*found.reported}
    assert "correct_seconds" not in (*found.computed, *found.reported)


@pytest.mark.slow
@pytest.mark.parametrize(("audit", "planted", "misplaced"), [
    (False, {"gain": 99.0}, ()),
    (False, {"my_note": 99.0}, ()),
    (False, {"other_seconds": 1.0}, ()),
    (False, {"correct_seconds": None}, ()),
    (False, {"gain_over_best": 99.0}, ("gain_over_best",)),
    (False, {"limit": 0.0}, ("limit",)),
    (False, {"Gain": 99.0}, ("Gain",)),
    (False, {"true_ratio": 1.0}, ("true_ratio",)),
    (True, {"initial_accuracy": 0.0}, ("initial_accuracy",)),
    (True, {"model_epsilon": 0.01}, ()),
])  # fmt: skip
def test_whatever_is_written_into_a_store_is_found(tmp_path, audit, planted, misplaced):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    row = next(row for row in run.rows() if bool(row["auditor"]) is audit)
    forge(run.path, row, **planted)
    if planted == {"correct_seconds": None}:
        assert verify(run.path, 18).same  # a time is there
        return
    found = verify(run.path, 18)
    assert not found.same
    (wrong,) = [each for each in found.checked if not each.same]
    assert {change.name for change in wrong.changes} == planted.keys()
    assert found.misplaced == misplaced
    # Names are told of all rows, also of those that are not in the sample.
    other = next(seed for seed in range(99) if row["cell"] not in sampled(run.path, seed))
    assert verify(run.path, 1, seed=other).misplaced == misplaced


def sampled(run, seed):
    with Store(run) as store:
        results = store.results()
    rows = np.flatnonzero(results.finished()[0])
    return {results.cells[row] for row in np.random.default_rng(seed).choice(rows, 1)}


def test_measures_beside_others_are_computed_and_never_read(tmp_path):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    before = run.frame()[["best_initial_accuracy", "gain_over_best"]]
    for row in run.rows():
        forge(run.path, row, gain_over_best=99.0, best_initial_accuracy=0.0, uar=1.0)
    after = fpbench.load(run.path).frame()
    pd.testing.assert_frame_equal(after[before.columns], before)
    assert "uar" not in after


def test_a_store_that_names_what_every_row_has_is_refused(tmp_path):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    forge(run.path, run.rows()[0], learner="another")
    with pytest.raises(StoreError, match="reserved names of measures"):
        verify(run.path)


# Whether a run has all cells of its matrix


def replan(store, change):
    """Write the plan of a run anew, with other cells."""
    cells = [other for cell in store.cells() for other in change(cell)]
    with store.writing():
        store.plan({}, cells)


def is_chosen(cell):
    """Whether a cell is one of those that a forger would rather not show."""
    return cell.labels.get("adversary") == "keen" and cell.seed == 1


def drop(store):
    replan(store, lambda cell: [] if is_chosen(cell) else [cell])


def drop_line(store):
    replan(store, lambda cell: [] if cell.labels.get("adversary") == "keen" else [cell])


def skip(store):
    replan(store, lambda cell: [replace(cell, reason="not for it") if is_chosen(cell) else cell])


def repeat(store):
    replan(store, lambda cell: [cell] * (1 + is_chosen(cell)))


def renumber(store):
    replan(store, lambda cell: [replace(cell, seed=9) if is_chosen(cell) else cell])


def add_line(store):
    more = {"dataset": "flock", "learner": "another", "auditor": "counter"}
    replan(store, lambda cell: [cell, replace(cell, key="new", labels=more)])


def empty(store):
    drop_results(store, {cell.key for cell in store.cells() if is_chosen(cell)})


@pytest.mark.parametrize(("forgery", "told"), [
    (drop, "keen, flip: has 2 cells, and the run 3 seeds"),
    (drop_line, "keen, flip: has 0 cells, and the run 3 seeds"),
    (skip, "keen, flip: 1 of 3 cells are skipped, and run here"),
    (repeat, "keen, flip: has 4 cells, and the run 3 seeds"),
    (renumber, "has 3 cells, and the run 4 seeds"),
    (add_line, "another, counter: is not in the matrix"),
    (empty, "keen, flip: 1 of 3 cells have not been run"),
])  # fmt: skip
def test_cells_that_are_not_those_of_the_matrix_are_told_whatever_the_sample(
    tmp_path, forgery, told
):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    with Store(run.path, create=True) as store:
        forgery(store)
    found = verify(run.path, 1, seed=0)  # another may draw a cell that the forgery changed
    assert not found.same
    assert all(each.same for each in found.checked)
    assert any(told in each for each in found.contradictions), found.contradictions
    assert f"not as its matrix: {found.contradictions[0]}" in str(found)


def test_a_failed_cell_that_does_not_fail_here_is_a_contradiction(tmp_path):
    matrix = MATRIX | {"learner": [{"use": "parrot"}, {"use": "parrot", "fails": "raises", "label": "b"}]}  # fmt: skip
    run = fpbench.run(matrix, out=tmp_path / "run")
    assert verify(run.path, 9).same  # nine cells fail, and fail again
    chosen = [row for row in run.rows() if row["status"] == "done" and row["seed"] == 1]
    with Store(run.path, create=True) as store:
        for row in chosen:
            store.add(1, row["cell"], Status.FAILED, 60.0, {}, "exceeded the limit on time (60 s)")
    found = verify(run.path, 12)
    wrong = [change for each in found.checked for change in each.changes]
    assert [(one.name, one.one, one.other) for one in wrong] == 3 * [("status", "failed", "done")]
    assert not found.same


def test_a_failure_that_is_claimed_of_a_component_that_is_not_portable_is_one_too(
    tmp_path, monkeypatch
):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    with Store(run.path, create=True) as store:
        row = next(row for row in run.rows() if row["adversary"] == "keen")
        store.add(1, row["cell"], Status.FAILED, 60.0, {}, "no memory")
        store._db.execute("UPDATE session SET environment = '{}'")  # of other kernels
    keen = fpbench.plugin.discover().component("adversary", "keen")
    monkeypatch.setattr(keen, "portable", False)
    assert not verify(run.path, 1).same


def test_skipped_cells_have_the_reasons_of_the_matrix(tmp_path, monkeypatch):
    keen = fpbench.plugin.discover().component("adversary", "keen")
    monkeypatch.setattr(keen, "incompatible", lambda self, other: "sings too well" if other.kind == "corrector" else None)  # fmt: skip
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    assert len([row for row in run.rows() if row["status"] == "skipped"]) == 6
    assert verify(run.path, 1).same
    with Store(run.path, create=True) as store:
        replan(store, lambda cell: [replace(cell, reason="is ill") if cell.reason else cell])
    found = verify(run.path, 1)
    told = "keen, flip: is skipped for another reason than here: sings too well"
    assert [each.endswith(told) for each in found.contradictions] == [True, True]


def test_what_is_missing_depends_on_the_machine(tmp_path, monkeypatch):
    keen = fpbench.plugin.discover().component("adversary", "keen")
    monkeypatch.setattr(keen, "unavailable", classmethod(lambda _: "no bird in /home/ada"))
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    monkeypatch.setattr(keen, "unavailable", classmethod(lambda _: "no bird in /home/bob"))
    assert verify(run.path, 1).same
    monkeypatch.undo()
    assert "are skipped, and run here" in verify(run.path, 1).contradictions[0]
    fpbench.run(MATRIX, out=run.path)
    assert verify(run.path, 1).same
    monkeypatch.setattr(keen, "unavailable", classmethod(lambda _: "no bird"))
    assert "cannot be run here: no bird" in verify(run.path, 1).contradictions[0]


def test_what_was_not_chosen_yet_is_no_contradiction(tmp_path):
    out = tmp_path / "run"
    fpbench.run(MATRIX, out=out, settings=["adversary=coin", "auditor="])
    assert verify(out, 1).same
    fpbench.run(MATRIX, out=out, seeds=2, settings=["auditor="])
    assert verify(out, 1).same
    fpbench.run(MATRIX, out=out, settings=["adversary=coin"])  # keen has two of three seeds
    assert "1 of 3 cells have not been run" in verify(out, 1).contradictions[0]
    fpbench.run(MATRIX, out=out)
    assert verify(out, 1).same


def test_a_measure_is_as_good_as_its_component_says(tmp_path, monkeypatch):
    keen = fpbench.plugin.discover().component("adversary", "keen")
    monkeypatch.setattr(keen, "measures", (Measure("toy_note", better="greater"),))
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    assert verify(run.path, 1).same
    with Store(run.path, create=True) as store, store.writing():
        declared = store.about()["measures"].replace("greater", "less")
        store.plan({"measures": declared}, list(store.cells()))
    told = ("measure 'toy_note': 'greater' is better, not 'less'",)
    assert verify(run.path, 1).contradictions == told


def test_a_run_is_ranked_as_its_matrix_says(tmp_path):
    run = fpbench.run({**MATRIX, "profile": {"other": {"leaderboard": {"rank_by": "leak"}}}},
                      profile="other", out=tmp_path / "run")  # fmt: skip
    assert verify(run.path, 1).same
    with Store(run.path, create=True) as store, store.writing():
        store.plan({"rank_by": "limit"}, list(store.cells()))
    with pytest.raises(StoreError, match="ranks by 'with_accuracy', and the run by 'limit'"):
        verify(run.path, 1)


@pytest.mark.slow
def test_a_guarantee_that_was_taken_out_of_a_row_is_missed(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 400}],
        "learner": [{"use": "private-tree", "max_depth": 2}],
        "auditor": [{"use": "group-fairness", "resamples": 0}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run")
    with Store(run.path, create=True) as store:
        record = next(iter(store.records()))
        kept = {k: v for k, v in record.measures.items() if not k.startswith("model_")}
        store.add(1, record.key, Status.DONE, 1.0, kept)
    (wrong,) = verify(run.path).checked
    assert {"model_epsilon", "model_neighbours"} <= {change.name for change in wrong.changes}


@pytest.mark.slow
def test_a_sample_is_drawn_again_by_its_number(tmp_path):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    first = verify(run.path, 4, seed=1)
    assert len(first.checked) == 4
    assert verify(run.path, 4, seed=1, jobs=2) == first
    drawn = {tuple(c.cell for c in verify(run.path, 4, seed=s).checked) for s in range(2, 5)}
    assert len(drawn) > 1


@pytest.mark.slow
def test_only_what_the_sample_needs_is_run(tmp_path, toy_trace):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    toy_trace()
    verify(run.path, 1, seed=0)
    assert len([line for line in toy_trace() if line.startswith("train")]) == 1


@pytest.mark.slow
def test_processes_get_ready_for_what_the_sample_needs(tmp_path, monkeypatch):
    run = fpbench.run(MATRIX, out=tmp_path / "run").path
    opened = session.open_engine
    prepared = []

    def watched(request, home, limits, needs, steps):
        prepared.extend(steps)
        return opened(request, home, limits, needs, prepared)

    monkeypatch.setattr(session, "open_engine", watched)
    assert verify(run, 1, seed=3).same
    assert {step.action for step in prepared} >= {"load", "split", "train", "predict"}
    assert [step.action for step in prepared].count("train") == 1


@pytest.mark.parametrize("profile", [None, "more"])
def test_the_profile_is_found_out(tmp_path, profile):
    (tmp_path / "toy.toml").write_text(TOML)
    run = fpbench.run(tmp_path / "toy.toml", profile=profile, seeds=4, out=tmp_path / "run")
    with Store(run.path) as store:
        assert read_stored_matrix(store).profile == profile
    found = verify(run.path, 100)
    assert (found.same, len(found.checked)) == (True, 4)


def test_cells_that_cannot_be_run_again_are_told(tmp_path, install, monkeypatch):
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5] * 20, "y": [0, 0, 1] * 20, "g": ["a", "b"] * 30})
    table = fpbench.table(frame, label="y", sensitive="g")
    matrix = MATRIX | {"dataset": [{"use": "table", "table": "mine"}], "seeds": 1}
    run = fpbench.run(matrix, out=tmp_path / "run", tables={"mine": table})
    assert verify(run.path, 3, tables={"mine": table}).same
    found = verify(run.path, 3)
    assert not found.same
    assert all(each.problem.startswith("skipped: ") for each in found.checked)


def test_other_code_is_told(tmp_path, install):
    source = (
        "from fpbench import Auditor, hookimpl\n"
        "class Seven(Auditor):\n"
        "    name, summary, sees = 'seven', 'says a number', frozenset({'labels'})\n"
        "    def audit(self, subject, rng):\n"
        "        return {'number': 7.0 + 0 * rng.random()}\n"
        "@hookimpl\ndef fpbench_auditors():\n    return [Seven]\n"
    )
    install("seven", "seven", source)
    matrix = {**{k: MATRIX[k] for k in ("dataset", "learner")}, "auditor": [{"use": "seven"}]}
    run = fpbench.run(matrix, out=tmp_path / "run")
    assert verify(run.path).same
    with Store(run.path, create=True) as store:  # as a run that other code made
        db = store._db
        db.execute("UPDATE known SET key = 'other' || id")
        db.execute("UPDATE session SET environment = ?", (json.dumps({"python": "2.7"}),))
    found = verify(run.path)
    assert found.same  # the code differs, the results do not
    assert [each.same_code for each in found.checked] == [False, False]
    assert ("python", "2.7") in [change[:2] for change in found.environment]


def test_what_cannot_be_verified(tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        verify(tmp_path)
    with Store(tmp_path / "empty", create=True) as store:
        store.begin({"matrix": "[]"}, {}, [])
    with pytest.raises(StoreError, match="holds no matrix"):
        verify(tmp_path / "empty")
    failing = MATRIX | {"learner": [{"use": "parrot", "fails": "raises"}]}
    run = fpbench.run(failing, out=tmp_path / "run")
    with pytest.raises(StoreError, match="no cell is done"):
        verify(run.path)
    with pytest.raises(InputError, match="sample must be 1 or more, not 0"):
        verify(run.path, 0)
    good = fpbench.run(MATRIX, out=tmp_path / "good").path
    for text, message in (
        ("{", "matrix.json: cannot be read"),
        ("[]", "is not a matrix"),
        (json.dumps(failing), "is not the matrix that the run was made from"),
    ):
        (good / "matrix.json").write_text(text)
        with pytest.raises(StoreError, match=message):
            verify(good)


@pytest.mark.slow
def test_the_command(command, tmp_path):
    work = tmp_path / "work"
    run = fpbench.run(MATRIX, out=work / "run")
    done = command("verify", "run", "--sample", "3", "--seed", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "compared: 32 measures that fpbench computed again from guesses, corrections, predictions "
        "and releases, and 15 that components report themselves (toy_note, tuned_on, members, "
        "asked_metric, asked_tolerance, objective, solver_status, solver_gap, proven, "
        "people_proven, and 5 more); times only had to be present\n"
        "3 of 3 cells run again are the same to the last bit "
        "(18 are done; --seed 5 draws the same sample)\n"
    )
    for row in run.rows():
        if row["adversary"]:
            forge(run.path, row, initial_accuracy=0.123)
    done = command("verify", "run", "--sample", "18", COLUMNS="140")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "differs"
    assert lines[1].split() == ["cell", "measure", "in", "the", "run", "again"]
    assert "initial_accuracy" in lines[3]
    assert "0.123" in lines[3]
    assert len(lines) == 3 + 12 + 2
    assert lines[-1].startswith("6 of 18 cells run again are the same")
    assert command("verify", "nowhere").returncode == 2
