"""To read a run directory changes nothing, in it or around it, whoever made it."""

import inspect
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing

import pytest
import typer.main
from malformed import command
from strangers import MATRIX, STORE_FILES, TRAPS, add_journal, copy_run, look, set_trap

import fpbench
from fpbench.cli.main import app
from fpbench.errors import StoreError
from fpbench.matrix.plan import Cell
from fpbench.plugin import Status
from fpbench.results.snapshot import VIEWS
from fpbench.store import connections
from fpbench.store.store import Store

FORMS = ("table", "markdown", "latex", "html", "json")
NO_RUNS = {
    "output", "matrix", "directory", "file", "ledger", "token_file", "certfile", "keyfile",
    "report", "people", "known", "json", "protected", "record", "check", "certificate",
    "earlier",
}  # fmt: skip
"""Options and arguments that name a path, but no run directory."""

READING = {
    "leaderboard": [
        *(["RUN", "--view", view] for view in VIEWS),
        *(["RUN", "--format", form, "-o", "OUT"] for form in FORMS),
    ],
    "compare": [
        ["RUN", "HONEST"],
        ["HONEST", "RUN", "--json"],
        ["RUN", "HONEST", "--cells"],
        ["HONEST", "RUN", "--cells"],
    ],
    "export": [["RUN"], ["RUN", "--long"], ["RUN", "--format", "jsonl", "-o", "OUT"]],
    "page": [["RUN", "-o", "OUT"]],
    "figure": [["RUN"], ["RUN", "accuracy", "-o", "OUT.svg"]],
    "merge": [["RUN", "HONEST", "--out", "OUT"], ["HONEST", "RUN", "--out", "OUT"]],
    "verify": [["RUN", "--sample", "1", "--seed", "0"]],
    "plan": [["MATRIX", "--out", "RUN"]],
}
"""How each command that reads run directories is called."""
WRITING = {
    "run": [["MATRIX", "--out", "RUN"], ["MATRIX", "--out", "RUN", "--seeds", "3"]],
    "reproduce": [["MATRIX", "--out", "RUN"]],
}
"""Those that go on with a run."""
CALLS = {
    "load": lambda run, honest, out: [
        fpbench.load(run).rows(), fpbench.load(run).frame(), fpbench.load(run).leaderboards(),
        fpbench.load(run).labels("learner"),
        fpbench.load(run)._repr_html_(),
    ],
    "diff": lambda run, honest, out: fpbench.load(run).diff(honest),
    "merge": lambda run, honest, out: fpbench.load(run).merge([honest], out),
    "verify": lambda run, honest, out: fpbench.load(run).verify(1, seed=0),
    "plan": lambda run, honest, out: fpbench.plan(honest.parent / "m.toml", out=run),
}  # fmt: skip
"""How each function that reads run directories is called."""


@pytest.fixture(autouse=True)
def _no_endless_wait():
    """Who opens a pipe that nobody writes to would never come back."""
    signal.alarm(300)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    place = tmp_path_factory.mktemp("honest")
    (place / "m.toml").write_text(MATRIX)
    ended = command("--quiet", "run", str(place / "m.toml"), "--out", str(place / "run"))
    assert ended.code == 0, ended
    return place / "run"


@pytest.fixture(scope="module")
def killed(honest, tmp_path_factory):
    """What a run leaves that was killed: results that are only in the log."""
    place = tmp_path_factory.mktemp("killed") / "run"
    live = copy_run(honest, place.with_name("live"))
    with Store(live, create=True) as store:
        record = next(store.records())
        store.add(1, record.key, Status.DONE, 77.0, record.measures)
        copy_run(live, place)
    return place


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where a stranger's run lies, beside files of ours; temporary files are elsewhere."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "precious").write_text("mine")
    yield tmp_path / "place"
    assert list((tmp_path / "temporary").iterdir()) == []


def words(name, arguments, run, honest, out):
    known = {"RUN": str(run), "HONEST": str(honest), "MATRIX": str(honest.parent / "m.toml")}
    known |= {"OUT": str(out), "OUT.svg": f"{out}.svg"}
    return [*name.split(), *(known.get(word, word) for word in arguments)]


def fine(said):
    """Whether a command has read the run, and shown what there is to be shown."""
    nothing = (
        "has no results for the view 'audits'",
        "has no results for the view 'reports'",
        "no figure is possible",
    )
    return said.code == 0 or any(why in said.error for why in nothing)


def outputs(tmp_path):
    for number in range(1000):
        yield tmp_path / f"out{number}"


def commands_with_runs():
    """Commands that take a path which is not known to be something else than a run directory."""

    def walk(each, name=""):
        for inner, below in getattr(each, "commands", {}).items():
            yield from walk(below, f"{name} {inner}".strip())
        if not hasattr(each, "commands"):
            yield name, each

    for name, each in walk(typer.main.get_command(app)):
        parameters = inspect.signature(each.callback).parameters
        paths = {k for k, parameter in parameters.items() if "Path" in str(parameter.annotation)}
        if paths - NO_RUNS:
            yield name


def test_no_command_and_no_function_is_forgotten():
    assert set(commands_with_runs()) == {*READING, *WRITING}
    public = {name: getattr(fpbench, name) for name in fpbench.__all__}
    methods = {name: each for name, each in vars(fpbench.Run).items() if name[0] != "_"}
    taking = {
        name
        for name, each in (public | methods).items()
        if inspect.isfunction(each)
        and any(
            "Path" in str(parameter.annotation) and argument not in NO_RUNS
            for argument, parameter in inspect.signature(each).parameters.items()
        )
    }
    assert taking | {"verify"} == {*CALLS, "run"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["honest", "killed"])
def test_reading_changes_nothing(kind, request, honest, place, tmp_path):
    run = copy_run(request.getfixturevalue(kind), place / "run")
    assert (run / "store.sqlite-wal").exists() is (kind == "killed")
    before, out = look(place, honest.parent), outputs(tmp_path)
    for name, calls in READING.items():
        for arguments in calls:
            said = command(*words(name, arguments, run, honest, next(out)))
            assert fine(said), (name, arguments, said)
            assert look(place, honest.parent) == before, (name, arguments)
    for name, call in CALLS.items():
        call(run, honest, next(out))
        assert look(place, honest.parent) == before, name
    seconds = {row["seconds"] for row in fpbench.load(run).rows()}
    assert (77.0 in seconds) is (kind == "killed")  # what is in the log was read, too


@pytest.mark.slow
def test_a_journal_is_obeyed_by_nobody(killed, honest, place, tmp_path):
    """The journal of a store that was in another mode, too: SQLite would delete what it names."""
    run = copy_run(honest, place / "run")
    add_journal(run, place / "precious")
    before, out = look(place, honest.parent), outputs(tmp_path)
    for name, calls in (READING | WRITING).items():
        for arguments in calls:
            said = command(*words(name, arguments, run, honest, next(out)))
            assert said.refused, (name, arguments, said)
            assert "store.sqlite-journal" in said.error
            assert look(place, honest.parent) == before, (name, arguments)
    for name, call in CALLS.items():
        with pytest.raises(StoreError, match="fpbench never writes such a file"):
            call(run, honest, next(out))
        assert look(place, honest.parent) == before, name


def test_the_journal_of_these_tests_would_be_obeyed(honest, place):
    """Otherwise the test above showed nothing."""
    run = copy_run(honest, place / "run")
    add_journal(run, place / "precious")
    with closing(sqlite3.connect(run / "store.sqlite")) as db:
        db.execute("SELECT * FROM about").fetchall()
    assert not (place / "precious").exists()


@pytest.mark.parametrize("kind", TRAPS)
@pytest.mark.parametrize("name", STORE_FILES)
def test_traps_in_the_place_of_a_store(name, kind, killed, honest, place):
    """Refused at once by who reads and by who goes on; nothing is followed, opened or changed."""
    run = copy_run(killed, place / "run")
    if not set_trap(run / name, kind, place / "outside"):
        pytest.skip("only root makes devices")
    before = look(place)
    for create in (False, True):
        with pytest.raises(StoreError, match=r"cannot be used: |not a run directory"):
            Store(run, create=create)
        if kind == "dangling" and name == "store.sqlite":
            break  # to read, nothing is there; who writes is refused by the test below
        assert look(place) == before
    assert command("leaderboard", str(run)).refused
    assert look(place) == before


@pytest.mark.parametrize(("name", "kind"), [("matrix.toml", "link"), ("matrix.json", "fifo")])
def test_traps_in_the_place_of_a_matrix(name, kind, honest, place, tmp_path):
    """Neither published by a report, nor copied by a merge, nor parsed."""
    run = copy_run(honest, place / "run")
    (run / "matrix.toml").unlink()
    set_trap(run / name, kind, place / "outside")
    before = look(place)
    for call in (
        ["page", str(run), "-o", str(tmp_path / "out")],
        ["verify", str(run)],
        ["merge", str(run), str(honest), "--out", str(tmp_path / "merged")],
    ):
        said = command(*call)
        assert said.refused, said
        assert f"{run / name}: cannot be read: it " in said.error
        assert look(place) == before
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("name", ["store.sqlite", "store.sqlite-wal"])
def test_a_store_without_end_is_refused(name, killed, place):
    run = copy_run(killed, place / "run")
    os.truncate(run / name, connections.STORE_BYTES + 1)  # of which next to nothing is on disk
    assert "is larger than 16,384 MiB" in command("leaderboard", str(run)).error


# A run that goes on while it is read

WRITER = """
import sys
from pathlib import Path
from fpbench.plugin import Status
from fpbench.matrix.plan import Cell
from fpbench.store.store import Store
store = Store(Path(sys.argv[1]), create=True)
store._db.execute("PRAGMA wal_autocheckpoint = 8")
cells = [Cell(f"k{i}", {"dataset": "d"}, i) for i in range(200_000)]
if not store.matrix:
    session = store.begin({"matrix": "[]", "title": "t", "rank_by": "gain"}, {}, cells[:5000])
started = len(store.done())
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        key = f"k{started}"
        store.add(1, key, Status.DONE, float(started), {"gain": started / 7, "word": key * 50})
        started += 1
    print(started, flush=True)
"""


class Live:
    """A process that writes to a run, as much as it is told to."""

    def __init__(self, run):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, run],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, cells):
        self.process.stdin.write(f"{cells}\n")
        self.process.stdin.flush()

    def add(self, cells):
        self.tell(cells)
        return int(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def live(place):
    writer = Live(place / "run")
    yield writer
    writer.end()


def whole(run):
    """How many cells are done, once it is sure that they are the first ones, and as written."""
    with Store(run) as store:
        rows = store.rows()
        done = [row for row in rows if row["status"]]
        (state,) = store._db.execute("PRAGMA integrity_check").fetchone()
    assert state == "ok"
    assert [row["cell"] for row in done] == [f"k{i}" for i in range(len(done))]
    for i, row in enumerate(done):
        assert (row["gain"], row["word"], row["seconds"]) == (i / 7, f"k{i}" * 50, float(i))
    return len(done)


@pytest.mark.slow
def test_a_reader_sees_committed_cells_of_a_live_run(live, place):
    for cells in (1, 7, 40, 300):
        assert whole(place / "run") == live.add(cells) - cells
    assert whole(place / "run") == 348
    live.end()
    before = look(place)
    assert whole(place / "run") == 348
    assert look(place) == before


@pytest.mark.slow
def test_a_run_that_writes_all_the_time_is_never_read_torn(live, place):
    """Its log begins anew every few cells; a copy is of one moment all the same, or is refused."""
    live.tell(1500)
    counts = []
    while not counts or counts[-1] < 1500:
        try:
            counts.append(whole(place / "run"))
        except StoreError as error:
            assert "is written to faster than it can be copied" in str(error)  # noqa: PT017
    assert counts == sorted(counts)


@pytest.mark.slow
def test_a_copy_that_was_overtaken_is_made_anew(live, place, monkeypatch):
    """Between the first half of the store and the second, hundreds of cells are written into it."""
    live.add(500)
    copies = []
    original = connections._copy

    def overtaken(stream, target):
        copies.append(target.name)
        original(stream, target)
        if len(copies) == 1:
            half = target.stat().st_size // 2
            live.add(500)
            with target.open("r+b") as copy:
                copy.seek(half)
                stream.seek(half)
                copy.write(stream.read(half))

    monkeypatch.setattr(connections, "_copy", overtaken)
    assert whole(place / "run") == 1000
    assert copies == ["store.sqlite", "store.sqlite-wal"] * 2


@pytest.mark.slow
def test_a_store_that_is_written_to_while_it_is_read_is_no_garbage(live, place):
    """It lay still when it was opened; what is read later would be of two states."""
    live.add(300)
    live.process.stdin.close()
    live.process.wait()
    assert not (place / "run" / "store.sqlite-wal").exists()
    with Store(place / "run") as reader:
        assert len(reader.done()) == 300
        again = Live(place / "run")
        assert len(reader.done()) == 300
        again.add(200)
        with pytest.raises(StoreError, match="it was written to while it was read; read it again"):
            reader.rows()
        again.end()
    assert whole(place / "run") == 500


def test_a_writer_that_reads_keeps_its_lock(place):
    """POSIX locks of a process go when any descriptor of the file is closed, whoever opened it."""
    run = place / "run"
    with Store(run, create=True) as store:
        session = store.begin({}, {}, [Cell("k0", {"dataset": "d"}, 0)])
        store.add(session, "k0", Status.DONE, 1.0, {})
        with Store(run) as reader:
            assert reader.done() == {"k0"}
        script = (
            "import sqlite3, sys\n"
            "db = sqlite3.connect(sys.argv[1])\n"
            "print(db.execute('SELECT count(*) FROM result').fetchone())\n"
            "db.close()\n"
        )
        subprocess.run([sys.executable, "-c", script, run / "store.sqlite"], check=True)
        assert (run / "store.sqlite-wal").exists()  # not taken for one that nobody uses
        store.add(session, "k0", Status.DONE, 1.0, {})
