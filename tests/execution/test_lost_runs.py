"""A run whose directory is taken away while it goes on ends with one error, and claims nothing."""

import os
import shutil

import pytest
from toy_runs import ATTACK

import fpbench
from fpbench.base.errors import RunLostError
from fpbench.matrix.plan import Cell
from fpbench.plugin import Status
from fpbench.store.locks import Lock, move_aside
from fpbench.store.store import Store

MATRIX = ATTACK | {"seeds": 3}


def delete(run):
    shutil.rmtree(run)


def delete_store(run):
    for file in run.glob("store.sqlite*"):
        file.unlink()


def delete_log(run):
    (run / "store.sqlite-wal").unlink()


def move(run):
    run.rename(run.with_name("moved"))


def replace(run):
    """Another run takes its name, whole and in good order."""
    shutil.copytree(run, run.with_name("copy"))
    move(run)
    run.with_name("copy").rename(run)


def replace_store(run):
    copy = run.with_name("copy")
    shutil.copyfile(run / "store.sqlite", copy)
    copy.replace(run / "store.sqlite")


def link(run):
    move(run)
    run.mkdir()
    (run / "store.sqlite").symlink_to(run.with_name("moved") / "store.sqlite")


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "happens", [delete, delete_store, delete_log, move, replace, replace_store, link]
)
def test_it_is_noticed_at_the_next_cell(tmp_path, toys, happens):
    finished = []

    def first(cell):
        finished.append(cell)
        if len(finished) == 1:
            happens(tmp_path / "run")

    with pytest.raises(RunLostError, match=r"was deleted, moved or replaced while the run wrote"):
        fpbench.run(MATRIX, out=tmp_path / "run", on_cell=first)
    assert len(finished) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "jobs"), [("inline", 1), ("loky", 2)])
def test_on_every_engine(tmp_path, toys, engine, jobs):
    finished = []

    def first(cell):
        finished.append(cell)
        if len(finished) == 1:
            delete(tmp_path / "run")

    with pytest.raises(RunLostError):
        fpbench.run(MATRIX, out=tmp_path / "run", engine=engine, jobs=jobs, on_cell=first)
    assert len(finished) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("happens", [delete, delete_store, move, replace_store])
def test_after_the_last_commit_it_is_noticed_too(tmp_path, toys, monkeypatch, happens):
    original = Store.add_timings

    def then(self, timings):
        original(self, timings)
        happens(self.directory)

    monkeypatch.setattr(Store, "add_timings", then)
    with pytest.raises(RunLostError, match="are not there; run again"):
        fpbench.run(MATRIX, out=tmp_path / "run")


def test_what_took_its_place_is_left_alone(tmp_path):
    """SQLite deletes a log when it closes a store; not that of another run of the same name."""
    run, cell = tmp_path / "run", Cell("k0", {"dataset": "d"}, 0)
    with Store(run, create=True) as old:
        session = old.begin({}, {}, [cell])
        move(run)
        with Store(run, create=True) as new:
            session = new.begin({}, {}, [cell])
            new.add(session, "k0", Status.DONE, 1.0, {})
            with pytest.raises(RunLostError):
                old.add(session, "k0", Status.FAILED, 1.0, {})
            old.close()
            assert (run / "store.sqlite-wal").exists()
            new.add(session, "k0", Status.DONE, 2.0, {})
    with Store(run) as reader:
        assert [row["seconds"] for row in reader.rows()] == [2.0]


VANDAL = """
import shutil
from fpbench import Auditor, hookimpl

class Vandal(Auditor):
    name, summary, sees = "vandal", "deletes a directory", frozenset({"labels"})
    directory: str = ""

    def audit(self, subject, rng):
        shutil.rmtree(self.directory)
        return {"share": 0.5}

@hookimpl
def fpbench_auditors():
    return [Vandal]
"""


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("more", [(), ("--jobs", "2")])
def test_the_command_ends_with_exit_code_1(command, tmp_path, toys, install, more):
    install("vandal", "vandal", VANDAL)
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        '[[dataset]]\nuse = "flock"\n[[learner]]\nuse = "parrot"\n'
        f'[[auditor]]\nuse = "vandal"\ndirectory = "{tmp_path / "run"}"\n'
    )
    done = command("--quiet", "run", matrix, "--out", tmp_path / "run", *more)
    assert done.returncode == 1, done
    assert done.stdout == ""  # no run directory is named: there is none
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path / 'run'}")
    assert "was deleted, moved or replaced while the run wrote to it" in line


@pytest.mark.slow
def test_an_undisturbed_run_is_not_disturbed(tmp_path, toys):
    """Nor one whose directory is read, moved by its parent's name, or told another time."""
    (tmp_path / "parent").mkdir()
    run = tmp_path / "parent" / "run"

    def looked_at(cell):
        fpbench.load(run).rows()
        os.utime(run / "store.sqlite")
        (run / "notes.txt").write_text("mine")

    assert len(fpbench.run(MATRIX, out=run, on_cell=looked_at).finished) == 3


def test_a_directory_is_moved_aside_under_its_lock(tmp_path, toys, monkeypatch):
    """Nobody may begin to write to it between the look whether somebody does and the move."""
    run = fpbench.run(MATRIX, out=tmp_path / "run").path
    original, tried = type(run).rename, []

    def watched(self, target):
        with pytest.raises(fpbench.errors.StoreError, match="in use by another run"):
            Lock(self).release()
        tried.append(self)
        return original(self, target)

    monkeypatch.setattr(type(run), "rename", watched)
    assert move_aside(run) == tmp_path / "run.1"
    assert tried == [run]
    Lock(tmp_path / "run.1").release()  # and then it is free
