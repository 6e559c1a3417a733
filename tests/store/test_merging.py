"""Merging runs: the same as one run of all, and no conflict passes in silence."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_runs import ATTACK, PARROTS

import fpbench
from fpbench import InputError
from fpbench.errors import StoreError
from fpbench.matrix.plan import Cell
from fpbench.plugin import Status
from fpbench.store.merging import merge
from fpbench.store.store import Store

MATRIX = ATTACK | {
    "title": "toy",
    "learner": PARROTS,
    "adversary": [{"use": "coin"}, {"use": "peek"}],
    "corrector": [{"use": "flip"}, {"use": "none"}],
}
TIMES = ["seconds", "correct_seconds"]


def results(run):
    return run.frame().drop(columns=TIMES)


@pytest.mark.slow
def test_parts_from_many_machines_are_the_whole(tmp_path, toys):
    whole = fpbench.run(MATRIX | {"seeds": 4}, out=tmp_path / "whole")
    parts = [
        fpbench.run(MATRIX | {"seeds": seeds}, out=tmp_path / f"part{seeds[0]}").path
        for seeds in ([3, 1], [0, 1], [2])  # one seed was run twice, with the same results
    ]
    before = [(path / "store.sqlite").read_bytes() for path in parts]
    merged = merge(parts, tmp_path / "merged")
    assert merged.counts == {"done": 32}
    assert merged.sessions == 3
    run = fpbench.load(merged.path)
    columns = list(results(whole).columns)
    assert results(run)[columns].equals(results(whole))
    assert [(path / "store.sqlite").read_bytes() for path in parts] == before
    again = fpbench.run(MATRIX | {"seeds": 4}, out=merged.path)
    assert again.finished == ()  # it goes on as any run, and nothing is left to do
    with Store(merged.path) as store, Store(whole.path) as other:
        count = {name: n for name, (n, _) in store.spent().items()}
        assert count["train", "parrot"] == 2 * 5
        assert {n for n, _ in other.spent().values()} == {1, 8, 4, 16, 32}
    environment = json.loads((merged.path / "environment.json").read_text())
    assert environment["packages"]["fpbench-toolkit"] == fpbench.__version__
    assert json.loads((merged.path / "matrix.json").read_text())["title"] == "toy"


ABOUT = {"matrix": "[]", "title": "toy", "rank_by": "gain"}
OUTCOMES = st.sampled_from(["absent", "planned", "skipped", "failed", "done"])


def made(directory, outcomes, gain=lambda i: i / 7, key="k"):
    """A run in which cells have come to these ends."""
    cells = [
        Cell(f"s{i}" if what == "skipped" else f"{key}{i}", {"dataset": "d", "learner": f"l{i}"}, 0,
             "no solver" if what == "skipped" else None)
        for i, what in enumerate(outcomes) if what != "absent"
    ]  # fmt: skip
    with Store(directory, create=True) as store:
        session = store.begin(ABOUT, {"machine": directory.name}, cells)
        for i, what in enumerate(outcomes):
            if what == "done":
                measures = {"gain": gain(i), "correct_seconds": len(directory.name) * 1.0}
                store.add(session, f"{key}{i}", Status.DONE, 1.0, measures)
            elif what == "failed":
                store.add(session, f"{key}{i}", Status.FAILED, 1.0, {}, directory.name, "trace")
    return directory


BETTER = ["absent", "skipped", "planned", "failed", "done"]


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(OUTCOMES, min_size=5, max_size=5), min_size=2, max_size=4))
def test_the_best_that_any_run_has_counts(tmp_path, parts):
    place = tmp_path / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    paths = [made(place / f"run{'x' * i}", part) for i, part in enumerate(parts)]
    merged = merge(paths, place / "merged")
    with Store(merged.path) as store:
        rows = {row["learner"]: row for row in store.rows()}
        sessions = store.sessions()
        assert [s.environment["machine"] for s in sessions] == [path.name for path in paths]
        for i in range(5):
            best = max((part[i] for part in parts), key=BETTER.index)
            row = rows.get(f"l{i}")
            if best == "absent":
                assert row is None
                continue
            assert row["status"] == ("" if best == "planned" else best)
            if best == "done":
                assert row["gain"] == i / 7
            if best == "failed":
                assert row["reason"] in {p.name for p in paths}
                assert store.trace(row["cell"]) == "trace"
        session = {s.number: s.environment["machine"] for s in sessions}
        for record in store.records():
            source = parts[paths.index(place / session[record.session])]
            assert source[int(record.key[1:])] == record.status.value


def test_the_same_cell_with_other_measures_is_named(tmp_path):
    one = made(tmp_path / "one", ["done"] * 20)
    other = made(tmp_path / "other", ["done"] * 20, gain=lambda i: i / 7 + (i > 3) * 1e-12)
    with pytest.raises(StoreError) as error:
        merge([one, other], tmp_path / "merged")
    message = str(error.value)
    assert "cannot be merged: 16 cells are not the same in all runs" in message
    assert f"d, l4, seed 0: gain is {4 / 7!r} in {one} and {4 / 7 + 1e-12!r} in {other}" in message
    assert "d, l3, seed 0" not in message
    assert message.endswith("and 6 more")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_a_cell_that_other_code_made_is_a_conflict(tmp_path):
    one = made(tmp_path / "one", ["done", "done"])
    other = made(tmp_path / "other", ["absent", "planned"], key="other")
    with pytest.raises(StoreError, match=r"1 cell is not .*\n  d, l1, seed 0: made by other code"):
        merge([one, other], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_runs_that_cannot_be_merged(tmp_path, toys):
    one = made(tmp_path / "one", ["done"])
    with pytest.raises(StoreError, match="two runs or more"):
        merge([one], tmp_path / "merged")
    with pytest.raises(StoreError, match="one: is named twice"):
        merge([one, tmp_path / "." / "one"], tmp_path / "merged")
    with pytest.raises(StoreError, match="not a run directory"):
        merge([one, tmp_path], tmp_path / "merged")
    other = fpbench.run(MATRIX, out=tmp_path / "other").path
    with pytest.raises(StoreError, match=r"other: is of another matrix \('toy'\) than .*one"):
        merge([one, other], tmp_path / "merged")
    nameless = {name: value for name, value in MATRIX.items() if name != "title"}
    bare = fpbench.run(nameless | {"seeds": 1}, out=tmp_path / "bare").path
    with pytest.raises(StoreError, match=r"one: is of another matrix \('toy'\) than .*bare$"):
        merge([bare, one], tmp_path / "merged")
    two = made(tmp_path / "two", ["done"])
    with pytest.raises(StoreError, match="other: already exists"):
        merge([one, two], other)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        merge([one, two], tmp_path / "file" / "merged")
    (tmp_path / "empty").mkdir()
    assert merge([one, two], tmp_path / "empty").counts == {"done": 1}


def test_odd_places_to_merge_into(tmp_path, monkeypatch):
    runs = [made(tmp_path / name, ["done"]) for name in ("one", "two")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = sorted(tmp_path.iterdir())
    for nowhere in ("-", "", "~nobody-of-this-name/x"):
        with pytest.raises(InputError, match="^out "):
            merge(runs, nowhere)
        with pytest.raises(InputError, match="^out "):
            fpbench.run(MATRIX, out=nowhere)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreError, match="^loop: is a link that leads nowhere"):
        merge(runs, "loop")
    (tmp_path / "loop").unlink()
    assert sorted(tmp_path.iterdir()) == before

    merge(runs, "~/merged")
    assert len(fpbench.load(tmp_path / "home" / "merged").rows()) == 1
    (tmp_path / "empty").mkdir()
    for name, target in (("to_empty", "empty"), ("to_new", "new")):
        (tmp_path / name).symlink_to(target)
        merge(runs, name)
        assert len(fpbench.load(tmp_path / target).rows()) == 1


@pytest.mark.slow
def test_the_command(command, toys, tmp_path):
    for seed in (0, 1):
        fpbench.run(MATRIX | {"seeds": [seed]}, out=tmp_path / "work" / f"run{seed}")
    done = command("merge", "run0", "run1", "-o", "all")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "merged 2 runs of 2 sessions: 16 done\nrun directory: all\n"
    again = command("merge", "run0", "run1", "-o", "all")
    assert again.returncode == 2
    assert "all: already exists" in again.stderr
