"""The run store: what is committed stays, and a wrong directory is one clear error."""

import json
import sqlite3

import pytest

import fpbench
from fpbench import Status, StoreError
from fpbench.plan import Cell
from fpbench.store import Store

CELLS = [
    Cell("k0", {"dataset": "d", "learner": "l", "auditor": "a"}, 0),
    Cell("k1", {"dataset": "d", "learner": "l", "auditor": "a"}, 1),
    Cell("k2", {"dataset": "d", "learner": "m", "auditor": "a"}, 0, "makes no sense"),
]
ABOUT = {"matrix": "[]", "title": "toy", "rank_by": "gain"}


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "run", create=True) as store:
        yield store


def test_rows_are_planned_cells_with_what_is_known_of_them(store):
    session = store.begin(ABOUT, {"python": "3"}, CELLS)
    store.add(session, "k1", Status.DONE, 1.5, {"gain": 0.25, "solver_status": "optimal"})
    first, second, third = store.rows()
    assert (first["status"], first["seconds"]) == ("", None)
    assert second == {
        "cell": "k1", "dataset": "d", "learner": "l", "disclosure": "", "adversary": "",
        "corrector": "", "mechanism": "", "policy": "", "auditor": "a", "seed": 1,
        "status": "done", "reason": None, "seconds": 1.5, "gain": 0.25, "solver_status": "optimal",
    }  # fmt: skip
    assert (third["status"], third["reason"]) == ("skipped", "makes no sense")
    assert (store.title, store.rank_by, store.matrix) == ("toy", "gain", "[]")
    assert store.environment() == {"python": "3"}


def test_what_is_committed_outlives_the_plan(store):
    session = store.begin(ABOUT, {}, CELLS)
    store.add(session, "k0", Status.DONE, 1.0, {})
    store.add(session, "k1", Status.FAILED, 1.0, {}, "why", "trace")
    store.begin(ABOUT, {}, CELLS[1:])
    assert [row["cell"] for row in store.rows()] == ["k1", "k2"]
    assert store.done() == {"k0"}
    assert store.trace("k1") == "trace"
    store.begin(ABOUT, {}, CELLS)
    assert [row["status"] for row in store.rows()] == ["done", "failed", "skipped"]


def test_another_reader_sees_a_cell_as_soon_as_it_is_added(store):
    session = store.begin(ABOUT, {}, CELLS)
    store.add(session, "k0", Status.DONE, 1.0, {"gain": 0.5})
    with Store(store.directory) as other:
        assert other.done() == {"k0"}


def test_timings_add_up(store):
    store.add_timings({("train", "a"): (2, 3.0)})
    store.add_timings({("train", "a"): (1, 3.0), ("load", "b"): (1, 0.5)})
    assert store.timings() == {("train", "a"): 2.0, ("load", "b"): 0.5}


def test_a_failed_transaction_changes_nothing(store):
    store.begin(ABOUT, {}, CELLS)
    with pytest.raises(StoreError, match="cannot be written: NOT NULL"):
        store.begin(ABOUT, {}, [CELLS[0], Cell("k3", {}, None)])  # type: ignore[arg-type]
    assert len(list(store.rows())) == 3


def test_a_directory_without_a_run(tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        fpbench.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store(tmp_path):
    (tmp_path / "store.sqlite").write_text("this is not a database, whatever its name says")
    with pytest.raises(StoreError, match=r"store\.sqlite: cannot be used"):
        fpbench.load(tmp_path)


def test_another_writer_is_one_clear_error(store, monkeypatch):
    store._db.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(store.directory / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="cannot be written: database is locked"):
        store.begin(ABOUT, {}, CELLS)
    other.close()
    store.begin(ABOUT, {}, CELLS)


def test_a_run_that_is_just_being_made_is_not_touched(tmp_path):
    (tmp_path / "store.sqlite").touch()
    with pytest.raises(StoreError, match="has format 0"):
        Store(tmp_path)
    assert (tmp_path / "store.sqlite").stat().st_size == 0


def test_a_store_of_a_newer_version(store):
    store.close()
    with sqlite3.connect(store.directory / "store.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="has format 99; this fpbench reads 1"):
        Store(store.directory)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "file" / "run", create=True)


MATRIX = {
    "title": "toy",
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot"}],
    "auditor": [{"use": "counter", "mechanism": {"use": "hiss"}}],
}


def test_a_run_directory_says_what_it_ran_on(tmp_path, toys):
    run = fpbench.run(MATRIX, out=tmp_path / "run")
    environment = json.loads((run.path / "environment.json").read_text())
    assert environment["packages"]["fpbench"] == fpbench.__version__
    assert environment["packages"]["fpbench-toys"] == "1.0"
    assert "scikit-learn" in environment["packages"]
    assert environment["blas"]
    assert json.loads((run.path / "matrix.json").read_text()) == MATRIX
    with Store(run.path) as store:
        assert store.environment() == environment


def test_a_run_directory_of_another_matrix_is_left_alone(tmp_path, toys):
    first = fpbench.run(MATRIX, out=tmp_path / "run").frame()
    with pytest.raises(StoreError, match=r"made by another matrix \('toy'\).* --out, .* --fresh"):
        fpbench.run(MATRIX | {"split": {"train": 0.4, "test": 0.2}}, out=tmp_path / "run")
    assert fpbench.load(tmp_path / "run").frame().equals(first)


def test_a_run_goes_on_with_more_seeds_and_is_shown_with_fewer(tmp_path, toys):
    first = fpbench.run(MATRIX, out=tmp_path / "run")
    more = fpbench.run(MATRIX, out=tmp_path / "run", seeds=3)
    assert len(first.finished) == 1
    assert [cell.cell.seed for cell in more.finished] == [1, 2]
    assert more.frame()["seed"].tolist() == [0, 1, 2]
    again = fpbench.run(MATRIX, out=tmp_path / "run", seeds=2)
    assert again.finished == ()
    assert again.frame()["seed"].tolist() == [0, 1]


def test_a_fresh_run_moves_the_old_one_aside(tmp_path, toys):
    first = fpbench.run(MATRIX, out=tmp_path / "run").frame()
    for _ in range(2):
        fpbench.run(MATRIX | {"seeds": 2}, out=tmp_path / "run", fresh=True)
    assert fpbench.load(tmp_path / "run.1").frame().equals(first)
    assert len(fpbench.load(tmp_path / "run.2").frame()) == 2


def test_an_archived_run_is_read_as_it_lies_there(store, monkeypatch):
    session = store.begin(ABOUT, {}, CELLS)
    store.add(session, "k0", Status.DONE, 1.0, {})
    store.close()
    before = sorted(store.directory.iterdir())
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with Store(store.directory) as archived:
        assert archived.done() == {"k0"}
        assert sorted(store.directory.iterdir()) == before
        with pytest.raises(StoreError, match="cannot be written: attempt to write a readonly"):
            archived.begin(ABOUT, {}, CELLS)
