"""The run store: what is committed stays, and a wrong directory is one clear error."""

import errno
import json
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fpbench
from fpbench.base.errors import PluginError
from fpbench.components.names import KINDS
from fpbench.errors import StoreError
from fpbench.matrix.plan import Cell
from fpbench.plugin import Status
from fpbench.store.packing import is_identical
from fpbench.store.results import Results
from fpbench.store.store import Store
from fpbench.store.tables import CellRecord

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


def test_results_are_kept_when_the_plan_changes(store):
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

    def broken():
        yield CELLS[0]
        raise RuntimeError("the plan breaks off")

    with pytest.raises(RuntimeError, match="breaks off"):
        store.begin({**ABOUT, "title": "other"}, {}, broken())
    assert [row["cell"] for row in store.rows()] == ["k0", "k1", "k2"]
    assert store.title == "toy"


def test_what_cannot_be_measured_is_refused_and_changes_nothing(store):
    session = store.begin(ABOUT, {}, CELLS)
    with pytest.raises(PluginError, match="measure 'shares' must be"):
        store.add(session, "k0", Status.DONE, 1.0, {"gain": 0.5, "shares": [0.5]})
    assert store.done() == set()
    store.add(session, "k0", Status.DONE, 1.0, {"gain": 0.5})
    assert store.done() == {"k0"}


ODD = """
from typing import Literal
from fpbench import Auditor, hookimpl

class Odd(Auditor):
    name, summary, sees = "odd", "measures what is no number", frozenset({"labels"})
    what: Literal["list", "name", "fine"] = "fine"

    def audit(self, subject, rng):
        return {"list": {"shares": [0.5]}, "name": {7: 0.5}, "fine": {"share": 0.5}}[self.what]

@hookimpl
def fpbench_auditors():
    return [Odd]
"""


def test_an_auditor_that_measures_what_is_no_number_fails_alone(tmp_path, toys, install):
    install("odd", "odd", ODD)
    matrix = {key: MATRIX[key] for key in ("dataset", "learner")}
    auditor = {"use": "odd", "what": {"sweep": ["list", "name", "fine"]}}
    run = fpbench.run(matrix | {"auditor": [auditor]}, out=tmp_path / "run")
    assert [(row["status"], row["reason"]) for row in run.rows()] == [
        ("failed", "audit odd: measure 'shares' must be a text, None, or a number of at most "
                   "10000 bits, not list"),
        ("failed", "audit odd: auditor 'odd': the name of a measure must be a text, not 'int'"),
        ("done", None),
    ]  # fmt: skip


def test_text_that_is_no_unicode_is_kept_as_far_as_it_goes(store):
    session = store.begin(ABOUT, {}, [Cell("k0", {"dataset": "d"}, 0)])
    odd = "no such file: caf\udce9"
    store.add(session, "k0", Status.FAILED, 1.0, {"word": odd}, odd, odd)
    (row,) = store.rows()
    assert row["reason"] == row["word"] == store.trace("k0") == "no such file: caf\\udce9"


def test_a_directory_without_a_run(tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        fpbench.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store(tmp_path):
    (tmp_path / "store.sqlite").write_text("this is not a database, whatever its name says")
    with pytest.raises(StoreError, match=r"store\.sqlite: cannot be used"):
        fpbench.load(tmp_path)
    with pytest.raises(StoreError, match=r"store\.sqlite: is not a directory; choose another"):
        Store(tmp_path / "store.sqlite", create=True)


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
    with pytest.raises(StoreError, match="another version of fpbench made it"):
        Store(tmp_path)
    assert (tmp_path / "store.sqlite").stat().st_size == 0


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
    assert environment["packages"]["fpbench-toolkit"] == fpbench.__version__
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
    assert not any(
        "seeds that were run" in note for note in more.leaderboard("test_accuracy").notes
    )
    for _ in range(2):
        again = fpbench.run(MATRIX, out=tmp_path / "run", seeds=2)
        assert again.finished == ()
        assert again.frame()["seed"].tolist() == [0, 1]
        assert again.leaderboard("test_accuracy").notes[-1] == (
            "2 of the 3 seeds that were run are shown and counted; "
            "`fpbench run MATRIX --seeds 3` shows all"
        )
    other = fpbench.run(MATRIX | {"seeds": [7]}, out=tmp_path / "run").leaderboard("test_accuracy")
    assert other.notes[-1].endswith("`fpbench run MATRIX -s seeds=0,1,2,7` shows all")
    more = fpbench.run(MATRIX | {"seeds": [0, 1, 2, 7]}, out=tmp_path / "run")
    assert more.finished == ()
    assert not any(
        "seeds that were run" in note for note in more.leaderboard("test_accuracy").notes
    )


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


# What the file holds

MEASURES = st.dictionaries(
    st.sampled_from(["gain", "error", "solver_status", "changes"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.just(math.nan)
    | st.text("ab é", max_size=3),
)


def rows_alike(one, other):
    return len(one) == len(other) and all(
        list(a) == list(b) and all(is_identical(a[name], b[name]) for name in a)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from([Status.DONE, Status.FAILED]), MEASURES), max_size=12),
    st.randoms(use_true_random=False),
)
def test_pages_change_nothing_that_is_read(tmp_path, found, order):
    """Cells in any order, tidied up at any time: the same as if each had been kept apart."""
    directory = Path(tempfile.mkdtemp(dir=tmp_path))  # examples may be run again
    cells = [Cell(f"k{i}", {"dataset": "d", "learner": f"l{i % 3}"}, i) for i in range(12)]
    with Store(directory, create=True) as store:
        session = store.begin(ABOUT, {}, cells)
        expected = {}
        for i in order.sample(range(len(found)), len(found)):
            status, measures = found[i]
            reason = "why" if status is Status.FAILED else None
            store.add(session, f"k{i}", status, float(i), measures, reason)
            expected[f"k{i}"] = (status, measures)
            if order.random() < 0.4:
                with store.writing():
                    store.tidy()
        fixed = {"cell", *KINDS, "seed", "status", "reason", "seconds"}
        for row in store.rows():
            status, measures = expected.get(row["cell"], ("", {}))
            given_back = {name: value for name, value in row.items() if name not in fixed}
            assert row["status"] == status
            assert rows_alike([given_back], [measures])
        assert store.done() == {k for k, (s, _) in expected.items() if s is Status.DONE}
        records = {record.key: record for record in store.records()}
        assert {k: (r.status, r.reason) for k, r in records.items()} == {
            k: (s, "why" if s is Status.FAILED else None) for k, (s, _) in expected.items()
        }
        assert all(rows_alike([r.measures], [expected[k][1]]) for k, r in records.items())
        assert list(store.cells()) == cells
        plain = store.results(keys=False)
        assert set(plain.cells) <= {""}
        assert rows_alike(Results.of(store.rows()).rows(), store.rows())
    shutil.rmtree(directory)


def test_many_cells_are_collected_as_a_run_goes_on(store, monkeypatch):
    monkeypatch.setattr("fpbench.store.store.PAGE", 10)
    cells = [Cell(f"k{i}", {"dataset": "d"}, i) for i in range(95)]
    session = store.begin(ABOUT, {}, cells)
    order = random.Random(0).sample(range(95), 95)
    for i in order:
        store.add(session, f"k{i}", Status.DONE, 1.0, {"gain": i / 7, "word": "ab"[i % 2]})
    db = sqlite3.connect(store.directory / "store.sqlite")
    assert db.execute("SELECT COUNT(*) FROM page").fetchone()[0] >= 9
    assert db.execute("SELECT COUNT(*) FROM result").fetchone()[0] < 10
    db.close()
    assert [(row["gain"], row["word"]) for row in store.rows()] == [
        (i / 7, "ab"[i % 2]) for i in range(95)
    ]
    assert len(store.done()) == 95


def test_a_cell_that_is_measured_again_counts_once(store):
    session = store.begin(ABOUT, {}, CELLS)
    for gain in (0.25, 0.5, 0.75):
        with store.writing():
            store.put(CellRecord("k0", session, Status.DONE, 1.0, {"gain": gain, f"only{gain}": 1}))
            store.tidy()
        (row,) = [row for row in store.rows() if row["cell"] == "k0"]
        assert row["gain"] == gain
        assert [name for name in row if name.startswith("only")] == [f"only{gain}"]
        (record,) = store.records()
        assert record.measures["gain"] == gain
    assert store.done() == {"k0"}


# Versions


@pytest.mark.parametrize(("pragma", "told"), [
    ("application_id = 0", "another version of fpbench made it: run its matrix again"),
    ("user_version = 2", "another version of fpbench made it: run its matrix again"),
])  # fmt: skip
@pytest.mark.parametrize("create", [False, True])
def test_another_version_is_refused_and_stays_as_it_is(store, tmp_path, pragma, told, create):
    store.begin(ABOUT, {}, CELLS)
    store.close()
    with closing(sqlite3.connect(store.directory / "store.sqlite")) as db:
        db.execute(f"PRAGMA {pragma}")
    before = (store.directory / "store.sqlite").read_bytes()
    with pytest.raises(StoreError, match=told):
        Store(store.directory, create=create)
    assert (store.directory / "store.sqlite").read_bytes() == before


# One writer at a time


def test_a_second_run_is_refused_while_the_first_goes_on(store):
    with pytest.raises(StoreError, match=rf"in use by another run \(process {os.getpid()} on "):
        Store(store.directory, create=True)
    with Store(store.directory) as reader:  # who only reads is never in the way
        assert reader.title == ""
    store.close()
    Store(store.directory, create=True).close()


HOLD = """
import sys, time
from pathlib import Path
from fpbench.store.store import Store
store = Store(Path(sys.argv[1]), create=True)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_lock_dies_with_the_process_that_held_it(tmp_path):
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "run"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert held.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"process {held.pid} "):
            Store(tmp_path / "run", create=True)
    finally:
        held.kill()
        held.wait()
        held.stdout.close()
    Store(tmp_path / "run", create=True).close()


def test_a_forked_process_holds_no_lock(store):
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        store.close()
        Store(store.directory, create=True).close()
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)


# Disks that fail


def test_a_full_disk_is_one_clear_error_and_loses_nothing(store):
    session = store.begin(ABOUT, {}, CELLS)
    store.add(session, "k0", Status.DONE, 1.0, {"gain": 0.5})
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match=r"disk is full; what was committed is kept: make room"):
        store.add(session, "k1", Status.FAILED, 1.0, {}, "why", "x" * 10**6)
    with pytest.raises(StoreError, match="disk is full"):
        store.begin(ABOUT, {}, (Cell(f"new{i}", {}, i) for i in range(100_000)))
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert store.done() == {"k0"}
    assert len(store.rows()) == 3
    store.add(session, "k1", Status.DONE, 1.0, {})
    assert store.done() == {"k0", "k1"}


# Runs from strangers


def damaged(store, statement):
    """A run after somebody did something to its file."""
    session = store.begin(ABOUT, {}, CELLS)
    store.add(session, "k0", Status.DONE, 1.0, {"gain": 0.5, "word": "x", "big": 2**70})
    store.add(session, "k1", Status.FAILED, 1.0, {"gain": 0.5}, "why", "trace")
    with store.writing():
        store.tidy()
    store.close()
    db = sqlite3.connect(store.directory / "store.sqlite")
    db.executescript(statement)
    db.close()
    return store.directory


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON result BEGIN DELETE FROM page; END",
        "DROP TABLE result; CREATE VIEW result AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS number FROM n",
        "CREATE TABLE more (x)",
        "DROP TABLE measure",
        "CREATE INDEX i ON result (status)",
        "ALTER TABLE result ADD COLUMN y AS (hex(measures))",
    ],
)
def test_tables_that_are_not_ours_are_refused(store, statement):
    directory = damaged(store, statement)
    for create in (False, True):
        with pytest.raises(StoreError, match="is not a store of fpbench: see"):
            Store(directory, create=create)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE page SET data = x'00'",
        "UPDATE page SET count = -1",
        "UPDATE measure SET data = x'00'",
        "UPDATE measure SET data = CAST(zeroblob(length(data) - 3) || x'ffffff' AS BLOB) "
        "WHERE name = 'word'",
        "UPDATE measure SET kind = 'complex'",
        "UPDATE measure SET levels = '[[1]]' WHERE name = 'word'",
        "UPDATE measure SET levels = '" + "[" * 100_000 + "' WHERE name = 'word'",
        "UPDATE measure SET name = 'seed' WHERE name = 'word'",
        "UPDATE result SET measures = '{'",
        "UPDATE result SET measures = '{\"seed\": 1}'",
        "UPDATE result SET status = 'marvellous'",
        "UPDATE result SET seconds = 'long'",
        "UPDATE planned SET data = x'0102'",
        "UPDATE combination SET labels = '{\"dataset\": 3}' WHERE id = 1",
        "DELETE FROM combination",
    ],
)
def test_damage_is_one_clear_error(store, statement):
    directory = damaged(store, statement)
    with Store(directory) as reader, pytest.raises(StoreError, match="cannot be read"):
        reader.rows(), list(reader.records()), list(reader.cells())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bytes_that_were_changed_are_no_traceback(tmp_path, data):
    """Whatever the file holds: rows, or one error."""
    template = tmp_path / "template"
    if not template.exists():
        with Store(template, create=True) as made:
            damaged(made, "SELECT 1")
    directory = tmp_path / "fuzzed"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(template, directory)
    file = directory / "store.sqlite"
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 40))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        with Store(directory) as store:
            store.rows(), list(store.records()), store.environment(), store.timings(), store.done()
    except StoreError:
        pass


def test_nothing_is_written_through_links(tmp_path, toys):
    target = tmp_path / "precious"
    target.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("matrix.json", "environment.json"):
        (run / name).symlink_to(target)
    fpbench.run(MATRIX, out=run)
    assert target.read_text() == "mine"
    assert json.loads((run / "matrix.json").read_text()) == MATRIX
    (run / "store.lock").unlink()
    (run / "store.lock").symlink_to(target)
    with pytest.raises(StoreError, match=r"store\.lock: cannot be written"):
        fpbench.run(MATRIX, out=run)
    assert target.read_text() == "mine"


def test_fresh_moves_runs_only(tmp_path, toys, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match="has files, but no run .*nothing was renamed"):
        fpbench.run(MATRIX, out=tmp_path / "notes", fresh=True)
    assert (tmp_path / "notes" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in (".", tmp_path / "empty"):
        fpbench.run(MATRIX, out=name, fresh=True)
    first = fpbench.load(tmp_path / "here").frame()
    fpbench.run(MATRIX, out=tmp_path / "here", fresh=True)
    assert fpbench.load(tmp_path / "here.1").frame().equals(first)


def test_a_run_that_cannot_be_renamed_stays(tmp_path, toys, monkeypatch):
    """A place where another disk is mounted, for instance: nothing is copied and then deleted."""
    run = fpbench.run(MATRIX, out=tmp_path / "run").path
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    (tmp_path / "run.1").symlink_to(tmp_path / "nowhere")  # a name that is taken, too

    def refused(self, target):
        assert target == tmp_path / "run.2"
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refused)
        with pytest.raises(StoreError, match=r"run: cannot be renamed: .*busy; choose"):
            fpbench.run(MATRIX, out=run, fresh=True)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before | {
        "store.lock": (run / "store.lock").read_bytes()
    }
    fpbench.run(MATRIX, out=run, fresh=True)
    assert (tmp_path / "run.2" / "store.sqlite").read_bytes() == before["store.sqlite"]
