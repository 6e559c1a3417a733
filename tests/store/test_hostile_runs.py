"""Run directories of strangers are data: read, or refused with one clear error; never obeyed."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from bombs import repeat_page, share_overflow
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import TOYS, command, document

from fpbench.errors import StoreError
from fpbench.store.connections import connect_reader
from fpbench.store.store import Store

READERS = (["leaderboard"], ["export"], ["export", "--long"])
UNSEEN = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E)}

hostile = st.one_of(
    st.none(),
    st.sampled_from([0, -1, 2**63 - 1, float("inf"), -1e308, 1e-320]),
    st.sampled_from([
        "", "{}", "[]", "[" * 5000, '{"a": ' * 3000, "null", '"x"', '{"dataset": 3}',
        '{"dataset": "\x1b[2J", "learner": "[red]x", "corrector": "\\u202e"}', "nan", "done",
        "\x1b]0;owned\x07", "[bold]", "%s{0}", "a" * 100_000, "../../etc/passwd",
    ]),
    st.binary(max_size=40),
    st.text(max_size=20),
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of toys, and its tables."""
    place = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        from fpbench.plugin import discover

        site = place / "site" / "toys-1.0.dist-info"
        site.mkdir(parents=True)
        (site / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
        (site / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
        patch.syspath_prepend(str(site.parent))
        patch.syspath_prepend(str(Path(__file__).parents[1] / "plugins"))
        discover.cache_clear()
        (place / "m.toml").write_text(document({**TOYS, "expect": []}))
        done = command("run", str(place / "m.toml"), "--out", str(place / "run"))
        assert done.code == 0, done
        discover.cache_clear()
    with closing(sqlite3.connect(place / "run" / "store.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        tables = {
            name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        filled = [
            (table, column)
            for table, columns in tables.items()
            for column in columns
            if db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        ]
    return place / "run", filled


def harmless(run, beside):
    """Whatever reads it ends well or with one clear error, and shows nothing a terminal obeys.

    Also beside an honest run, before and after it.
    """
    shutil.rmtree(run.parent / "merged", ignore_errors=True)
    honest, hostile, out = str(beside), str(run), str(run.parent / "merged")
    for words in (
        *([reader[0], hostile, *reader[1:]] for reader in READERS),
        ["compare", "--cells", honest, hostile],
        ["compare", "--cells", hostile, honest],
        ["verify", hostile, "--sample", "1", "--seed", "0"],
        ["merge", hostile, honest, "--out", out],
        ["merge", honest, hostile, "--out", out],  # refused if it is there, by then
    ):
        said = command(*words)
        assert said.code == 0 or said.refused or (words[1] == "--cells" and said.code == 1), said
        if words[0] != "export":  # which writes data for programs, as it is
            assert not UNSEEN & set(said.output), (words, said)
        assert not UNSEEN & set(said.error), said


@pytest.mark.slow
@settings(
    max_examples=12,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_stands_in_a_store(made, tmp_path, data):
    original, columns = made
    run = tmp_path / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(original, run)
    with closing(sqlite3.connect(run / "store.sqlite")) as db:
        for _ in range(data.draw(st.integers(1, 3))):
            table, column = data.draw(st.sampled_from(columns))
            where = data.draw(st.sampled_from(["", " WHERE rowid = 1"]))
            value = data.draw(hostile)
            try:
                with db:
                    db.execute(f"UPDATE OR REPLACE {table} SET {column} = ?{where}", (value,))
            except (sqlite3.Error, UnicodeEncodeError):  # the schema forbids it, as it should
                continue
    harmless(run, made[0])


def test_names_that_are_no_text_are_spelt_out(made, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(made[0], run)
    with closing(sqlite3.connect(run / "store.sqlite")) as db, db:
        db.execute("UPDATE measure SET levels = '[\"\\udc80\"]' WHERE levels IS NOT NULL")
        db.execute("UPDATE measure SET data = zeroblob(length(data)) WHERE levels IS NOT NULL")
        db.execute("UPDATE combination SET labels = replace(labels, 'flip', '\\udc80')")
    said = command("export", str(run))
    assert said.code == 0, said
    assert said.output.count("\\udc80") > 1
    harmless(run, made[0])


def test_control_characters_are_escaped(made, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(made[0], run)
    with closing(sqlite3.connect(run / "store.sqlite")) as db, db:
        db.execute("UPDATE about SET value = '[b]\x1b]0;owned\x07' WHERE name = 'title'")
        db.execute("UPDATE combination SET labels = replace(labels, 'flip', 'fl\\u001b[2Jip')")
    shown = command("leaderboard", str(run)).output
    assert r"[b]\x1b]0;owned" in shown
    assert r"fl\x1b[2Jip" in shown
    harmless(run, made[0])


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(("spoil", "why"), [
    (lambda file: repeat_page(file, "known"), "out of order"),
    (lambda file: repeat_page(file, "planned"), "out of order"),
    (lambda file: repeat_page(file, "sqlite_master"), "its list of tables has no end"),
    (share_overflow, "2nd reference to page"),
])  # fmt: skip
def test_pages_that_are_read_again_and_again_are_refused(
    made, tmp_path, monkeypatch, spoil, why, create
):
    monkeypatch.setattr("fpbench.base.files._MOST_STEPS", 3_000)  # the bomb is a small one
    run = tmp_path / "run"
    shutil.copytree(made[0], run)
    spoil(run / "store.sqlite")
    before = (run / "store.sqlite").read_bytes()
    with pytest.raises(StoreError, match=rf"store\.sqlite: cannot be used: .*{why}"):
        Store(run, create=create)
    with pytest.raises(sqlite3.DatabaseError):  # whoever connects without a store, as a Tab does
        connect_reader(run / "store.sqlite")
    assert (run / "store.sqlite").read_bytes() == before
    assert not list(run.glob("*-wal"))
