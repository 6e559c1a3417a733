import math
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import Guarantee, InputError
from fpbench.components.spec import resolve_component
from fpbench.errors import BudgetError
from fpbench.privacy import Ledger, epsilon_to_rho

TENTH = Guarantee(0.1, rho=0.1**2 / 2)


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Makes a ledger; with a file if it is told so."""

    def ledger(*budget, **options):
        path = tmp_path / "ledger.db" if request.param == "file" else None
        return Ledger(*budget, **options, path=path)

    return ledger


# What it adds up


def test_ten_tenths_are_one_and_an_eleventh_is_refused(make):
    ledger = make(1.0)
    for step in range(10):
        ledger.spend(TENTH, f"query {step}")
    assert ledger.spent == (1.0, 0.0, None)
    assert ledger.remaining == (0.0, 0.0, None)
    with pytest.raises(BudgetError) as refused:
        ledger.spend(TENTH)
    assert str(refused.value) == (
        "the privacy budget does not allow this: asked for epsilon 0.1, left epsilon 0 of "
        "epsilon 1 (neighbours = 'attribute'); nothing was spent"
    )
    assert ledger.spent == (1.0, 0.0, None)
    assert [entry.note for entry in ledger.entries] == [f"query {step}" for step in range(10)]
    assert all(entry.guarantee == TENTH for entry in ledger.entries)


@pytest.mark.parametrize("mechanism", ["discrete-laplace", "gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_shares_of_what_remains_use_the_budget_up(make, mechanism, accounting):
    """A billionth of epsilon more, and the last release could not be paid."""
    ledger = make(1.0, 1e-4, accounting=accounting)
    own = resolve_component("mechanism", mechanism)
    ledger.spend(own.guarantee(0.1, "attribute"))

    def promise(epsilon):
        return own.guarantee(epsilon, "attribute")

    for left in range(7, 0, -1):
        share = ledger.find_share(left, promise)
        with pytest.raises(BudgetError):
            ledger.spend(promise(share + 2e-9), times=left)
        ledger.spend(promise(share))
    assert ledger.remaining.epsilon < 1e-4
    if accounting == "basic":
        assert ledger.remaining.epsilon < 1e-8
        assert share == pytest.approx(0.9 / 7, abs=1e-8)


def test_what_cannot_be_shared_is_refused(make):
    def promise(epsilon):
        return Guarantee(epsilon, 1e-6)

    for ledger, releases, error, why in (
        (make(1.0), 1, BudgetError, "delta 1e-06, left"),
        (Ledger(1.0, 1.5e-6), 2, BudgetError, "delta 2e-06, left"),
        (Ledger(math.inf), 1, InputError, "without a limit"),
        (Ledger(1.0, 1e-5), 0, InputError, "releases must be 1 or more"),
        (Ledger(1.0, 1e-5, neighbours="add-remove"), 1, InputError, "add-remove"),
    ):
        with pytest.raises(error, match=why):
            ledger.find_share(releases, promise)


def test_a_refusal_says_what_is_left(make):
    ledger = make(1.0, 1e-6)
    ledger.spend(Guarantee(0.25, 4e-7))
    with pytest.raises(BudgetError) as refused:
        ledger.spend(Guarantee(0.5, 7e-7))
    assert str(refused.value) == (
        "the privacy budget does not allow this: asked for epsilon 0.5 and delta 7e-07, left "
        "epsilon 0.75 and delta 6e-07 of epsilon 1 and delta 1e-06 (neighbours = 'attribute'); "
        "nothing was spent"
    )
    ledger.spend(Guarantee(0.75, 6e-7))
    assert ledger.remaining == (0.0, 0.0, None)


def test_a_delta_is_refused_where_there_is_none(make):
    with pytest.raises(
        BudgetError, match=r"asked for epsilon 0\.1 and delta 1e-09, left .* delta 0"
    ):
        make(1.0).spend(Guarantee(0.1, 1e-9))


amounts = st.integers(1, 400).map(lambda thousandths: thousandths / 1000)


@given(
    st.lists(st.tuples(amounts, st.sampled_from([0.0, 1e-7, 3e-7]), st.integers(1, 3)), max_size=30)
)
def test_it_never_spends_more_than_the_budget_nor_refuses_what_fits(spends):
    ledger, epsilon, delta = Ledger(1.0, 1e-6), Fraction(0), Fraction(0)
    for amount, part, times in spends:
        more = times * Fraction(str(amount)), times * Fraction(str(part))
        fits = epsilon + more[0] <= 1 and delta + more[1] <= Fraction("1e-6")
        try:
            ledger.spend(Guarantee(amount, part), times=times)
        except BudgetError:
            assert not fits
        else:
            assert fits
            epsilon, delta = epsilon + more[0], delta + more[1]
        assert ledger.spent == (float(epsilon), float(delta), None)
        assert ledger.remaining == (float(1 - epsilon), float(Fraction("1e-6") - delta), None)


def test_several_releases_are_paid_for_together_or_not_at_all(make):
    ledger = make(1.0)
    parts = [Guarantee(0.1), Guarantee(0.2)]
    ledger.spend(parts, "three of each", times=3)
    assert ledger.spent.epsilon == 0.9
    assert [(entry.guarantee, entry.times) for entry in ledger.entries] == [
        (part, 3) for part in parts
    ]
    with pytest.raises(BudgetError, match=r"asked for epsilon 0\.3, left epsilon 0\.1"):
        ledger.spend(parts)
    assert ledger.spent.epsilon == 0.9
    ledger.spend(iter([Guarantee(0.1)]))
    ledger.spend([])
    assert ledger.remaining.epsilon == 0
    assert len(ledger.entries) == 3


def test_numbers_of_numpy_are_decimals_too(make):
    ledger = make(np.float64(0.3))
    for _ in range(3):
        ledger.spend(Guarantee(np.float64(0.1)), times=np.int64(1))
    assert ledger.remaining.epsilon == 0


def test_zcdp_adds_up_rhos(make):
    ledger = make(1.0, 1e-6, accounting="zcdp")
    limit = epsilon_to_rho(1.0, 1e-6)
    spent = math.floor(limit / (0.02**2 / 2))
    assert spent > 100  # basic composition: 50
    for _ in range(spent):
        ledger.spend(Guarantee(0.02, rho=0.02**2 / 2))
    with pytest.raises(BudgetError) as refused:
        ledger.spend(Guarantee(0.02, rho=0.02**2 / 2))
    assert str(refused.value).startswith(
        "the privacy budget does not allow this: asked for rho 0.0002, left rho "
    )
    assert "of epsilon 1 at delta 1e-06" in str(refused.value)
    assert ledger.spent.rho == pytest.approx(spent * 0.02**2 / 2)
    assert 0.9 < ledger.spent.epsilon <= 1.0
    left = ledger.remaining
    assert left.rho == pytest.approx(limit - ledger.spent.rho)
    assert left.epsilon**2 / 2 == pytest.approx(left.rho)
    assert left.delta == 0


def test_zcdp_needs_rhos(make):
    with pytest.raises(InputError, match="has no rho"):
        make(1.0, 1e-6, accounting="zcdp").spend(Guarantee(0.1))


def test_a_release_of_another_relation_is_refused(make):
    ledger = make(1.0)
    with pytest.raises(InputError, match="the budget is for neighbours = 'attribute', and this"):
        ledger.spend([Guarantee(0.1), Guarantee(0.1, neighbours="add-remove")])
    assert ledger.spent.epsilon == 0


def test_without_a_limit_everything_may_be_spent_and_nothing_is_kept():
    ledger = Ledger(math.inf)
    ledger.spend([Guarantee(1e6, 0.5)] * 3, times=10**9)
    assert ledger.spent == (0.0, 0.0, None)
    assert ledger.remaining == (math.inf, math.inf, None)
    assert ledger.entries == []
    with pytest.raises(InputError, match="neighbours"):
        ledger.spend(Guarantee(1.0, neighbours="add-remove"))


def test_a_file_without_a_limit_still_adds_up(tmp_path):
    ledger = Ledger(math.inf, path=tmp_path / "ledger.db")
    ledger.spend(TENTH, times=20)
    assert Ledger(math.inf, path=tmp_path / "ledger.db").spent.epsilon == 2.0
    assert ledger.remaining.epsilon == math.inf


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be"),
        ({"epsilon": 1.0, "neighbours": "attributes"}, "did you mean 'attribute'"),
        ({"epsilon": 1.0, "accounting": "zcpd"}, "did you mean 'zcdp'"),
        ({"epsilon": 1.0, "accounting": "zcdp"}, "needs a finite budget with a delta"),
        ({"epsilon": math.inf, "delta": 0.1, "accounting": "zcdp"}, "needs a finite budget"),
    ],
)
def test_budgets_that_are_none_are_refused(budget, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Ledger(**budget, path=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("times", [0, -1, 1.5, math.nan, math.inf, 2**63])
def test_times_that_are_none_are_refused(make, times):
    with pytest.raises(InputError, match="times must be a whole number"):
        make(1.0).spend(TENTH, times=times)


# Its file


def test_a_restart_forgets_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    for step in range(4):
        ledger = Ledger(1.0, 1e-6, path=path)
        assert ledger.spent.epsilon == step * 0.25
        ledger.spend(Guarantee(0.25, 1e-7, rho=0.5), f"{step}")
    entries = Ledger(1.0, 1e-6, path=path).entries
    assert [entry.note for entry in entries] == ["0", "1", "2", "3"]
    assert {entry.guarantee for entry in entries} == {Guarantee(0.25, 1e-7, "attribute", 0.5)}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"epsilon": 2.0}, "epsilon = 1.0, not epsilon = 2.0"),
        ({"epsilon": 1.0, "delta": 1e-3}, "delta = 1e-06, not delta = 0.001"),
        ({"neighbours": "add-remove"}, "neighbours = attribute, not neighbours = add-remove"),
        ({"accounting": "zcdp"}, "accounting = basic, not accounting = zcdp"),
    ],
)
def test_a_file_of_another_budget_is_refused(tmp_path, other, says):
    budget = {"epsilon": 1.0, "delta": 1e-6, "path": tmp_path / "ledger.db"}
    Ledger(**budget).spend(TENTH)
    with pytest.raises(InputError) as refused:
        Ledger(**{**budget, **other})
    assert str(refused.value) == f"{tmp_path}/ledger.db is the ledger of another budget: {says}"
    assert Ledger(**budget).spent.epsilon == 0.1


def test_files_that_are_no_ledger_are_refused_and_left_alone(tmp_path):
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("a poem, rather long " * 100)
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("CREATE TABLE people (name TEXT)")
    before = [path.read_bytes() for path in (text, database)]
    for path, reason in (
        (text, "cannot be used: file is not a database"),
        (database, "is an SQLite file, but not of a ledger"),
        (tmp_path / "no folder" / "ledger.db", "cannot be used: unable to open"),
        (tmp_path, "cannot be used"),
    ):
        with pytest.raises(InputError, match=reason):
            Ledger(1.0, path=path)
    assert [path.read_bytes() for path in (text, database)] == before


def test_a_file_that_disappears_is_no_fresh_budget(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger(1.0, path=path)
    ledger.spend(Guarantee(1.0))
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(InputError, match="cannot be used"):
        ledger.spend(TENTH)
    Ledger(1.0, path=path)  # somebody else makes a new one
    with pytest.raises(InputError, match="moved, deleted or replaced"):
        ledger.spend(TENTH)


HARM = {
    "no total": "DELETE FROM total",
    "two totals": "INSERT INTO total SELECT * FROM total",
    "total a word": "UPDATE total SET first = 'abc'",
    "total divided by zero": "UPDATE total SET first = '1/0'",
    "total zero": "UPDATE total SET first = '0'",
    "total negative": "UPDATE total SET first = '-1000'",
    "total too large": "UPDATE total SET first = '1000'",
    "total nan": "UPDATE total SET first = 'nan'",
    "total infinite": "UPDATE total SET first = 'inf'",
    "total with an exponent": "UPDATE total SET first = '1e99999999'",
    "total without end": f"UPDATE total SET first = '{'9' * 100_000}'",
    "total bytes": "UPDATE total SET first = x'ff'",
    "total as large as a file allows": "UPDATE total SET first = zeroblob(2000000)",
    "delta of the total": "UPDATE total SET second = '1'",
    "number of entries": "UPDATE total SET entries = 2",
    "all entries deleted": "DELETE FROM entries",
    "first entry deleted": "DELETE FROM entries WHERE id = 1",
    "middle entry deleted": "DELETE FROM entries WHERE id = 2",
    "last entry deleted": "DELETE FROM entries WHERE id = 3",
    "an entry more": "INSERT INTO entries SELECT 4, epsilon, delta, neighbours, rho, times, note, at"
    " FROM entries WHERE id = 3",
    "last entry and its number taken back": "DELETE FROM entries WHERE id = 3; UPDATE total SET "
    "entries = 2",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "a view": "CREATE VIEW v AS SELECT * FROM entries",
    "another table": "CREATE TABLE people (name TEXT)",
    "no entries": "DROP TABLE entries",
    "epsilon": "UPDATE entries SET epsilon = 1e-9 WHERE id = 2",
    "epsilon infinite": "UPDATE entries SET epsilon = 9e999 WHERE id = 2",
    "epsilon a word": "UPDATE entries SET epsilon = 'x' WHERE id = 2",
    "delta": "UPDATE entries SET delta = 0.5 WHERE id = 2",
    "times": "UPDATE entries SET times = 0 WHERE id = 2",
    "note that is no text": "UPDATE entries SET note = CAST(x'ff' AS TEXT) WHERE id = 2",
    "note of bytes": "UPDATE entries SET note = x'ff' WHERE id = 2",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM.keys())
def test_a_damaged_file_is_an_error_not_a_budget(tmp_path, harm):
    path = tmp_path / "ledger.db"
    ledger = Ledger(1.0, path=path)
    for _ in range(3):
        ledger.spend(TENTH)
    with closing(sqlite3.connect(path)) as damaged:
        damaged.executescript(harm)
    with pytest.raises(InputError, match=f"the ledger {path} cannot be used: ") as refused:
        Ledger(1.0, path=path)
    assert len(str(refused.value)) < 400


def test_a_write_that_another_program_spoiled_is_noticed_before_the_next(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger(1.0, path=path)
    ledger.spend(TENTH)
    with closing(sqlite3.connect(path)) as damaged, damaged:
        damaged.execute("DELETE FROM entries")
    with pytest.raises(InputError, match="damaged"):
        ledger.spend(TENTH)


@pytest.mark.parametrize("earlier", [1, 2])
def test_an_earlier_state_put_back_while_it_is_in_use_is_refused(tmp_path, earlier):
    path = tmp_path / "ledger.db"
    ledger, states = Ledger(1.0, path=path), []
    for _ in range(3):
        ledger.spend(TENTH)
        states.append(path.read_bytes())
    put_back = [lambda: ledger.spend(TENTH), lambda: ledger.spent, lambda: ledger.entries]
    for use in put_back:
        path.write_bytes(states[earlier - 1])
        with pytest.raises(InputError, match="entry 3 is gone: an earlier state"):
            use()
    # Others may have spent since on the state that was put back.
    other = Ledger(1.0, path=path)
    for _ in range(4):
        other.spend(TENTH, "other")
    with pytest.raises(InputError, match="entry 3 is gone"):
        ledger.spend(TENTH)
    path.write_bytes(states[-1])
    ledger.spend(TENTH)
    assert ledger.spent.epsilon == 0.4


# Copies of it


def test_the_file_alone_is_the_whole_ledger(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "ledger.db")
    for step in range(1, 6):
        ledger.spend(TENTH)
        copy = shutil.copy(ledger._book.path, tmp_path / f"copy{step}.db")
        assert Ledger(1.0, path=copy).spent.epsilon == step / 10
    assert [path.name for path in tmp_path.glob("ledger.db*")] == ["ledger.db"]


def pages(content, size=512):
    return [content[start : start + size] for start in range(0, len(content), size)]


@pytest.mark.slow
def test_a_copy_taken_during_a_write_is_whole_or_refused(tmp_path):
    """Every mixture of old and new sectors that a copy may hold, of writes that split pages too."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    ledger, spent, whole, refused = Ledger(1e6, path=path), 0, 0, 0
    rng = np.random.default_rng(0)
    for step in range(12):
        before = path.read_bytes()
        entries = int(rng.integers(1, 60))
        ledger.spend([Guarantee(0.25)] * entries, "a query")
        after = path.read_bytes()
        for size in (4096, 512):
            old, new = pages(before, size), pages(after, size)
            old += [bytes(size)] * (len(new) - len(old))
            differ = [
                i for i, (one, other) in enumerate(zip(old, new, strict=True)) if one != other
            ]
            for _ in range(15):
                chosen = [i for i in differ if rng.random() < 0.5]
                mixed = [new[i] if i in chosen else old[i] for i in range(len(new))]
                ends = {len(before), len(after)}
                copy.write_bytes(b"".join(mixed)[: int(rng.choice(sorted(ends)))])
                try:
                    held = Ledger(1e6, path=copy)
                except InputError:
                    refused += 1
                else:
                    whole += 1
                    left = held.spent.epsilon
                    assert sum(entry.guarantee.epsilon for entry in held.entries) == left
                    assert left in (spent, spent + entries * 0.25), (step, size, chosen)
        spent += entries * 0.25
    assert refused > 100 and whole > 0


@pytest.mark.slow
def test_copies_of_a_busy_or_killed_ledger_never_hold_less_than_was_paid(tmp_path):
    """Only the one file is copied: while processes write, and after they were killed at it."""
    path, amount = tmp_path / "ledger.db", 2.0**-20
    paid, opened = 0, 0

    def check(number):
        nonlocal opened
        said, copy = paid, tmp_path / f"copy{number}.db"
        shutil.copyfile(path, copy)
        try:
            held = Ledger(1.0, path=copy).spent.epsilon
        except InputError:  # refused
            pass
        else:
            opened += 1
            assert held >= said * amount

    for attempt in range(4):
        (victim,) = hammers(path, 1, amount)
        with victim:
            for number in range(8):
                for _ in range(3):
                    assert victim.stdout.readline() == "paid\n"
                    paid += 1
                check(f"{attempt}-{number}")
            os.kill(victim.pid, signal.SIGKILL)
            paid += victim.stdout.read().split().count("paid")
        check(attempt)
        assert Ledger(1.0, path=path).spent.epsilon >= paid * amount
    assert opened > 4


@pytest.mark.parametrize("content", [b"", "only the first page of a file in WAL mode"])
def test_a_file_that_is_there_and_empty_is_no_fresh_budget(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.touch()
    if content:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    with pytest.raises(InputError, match="is empty: it was copied without"):
        Ledger(1.0, path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 2, 4])
def test_a_ledger_of_another_version_is_refused_and_left_alone(tmp_path, version):
    path = tmp_path / "ledger.db"
    Ledger(1.0, path=path).spend(TENTH)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"of version {version}, and this fpbench reads 3 only"):
        Ledger(1.0, path=path)
    assert path.read_bytes() == before


def test_what_a_file_would_round_or_drop_still_fits(tmp_path):
    """Integers, a negative zero, the least and the greatest numbers: written and read as the same."""
    path = tmp_path / "ledger.db"
    ledger = Ledger(math.inf, path=path)
    ledger.spend(Guarantee(1, -0.0), times=2**63 - 1)
    ledger.spend([Guarantee(np.float64(1e308), 5e-324, rho=1), Guarantee(1e-9)], "ü \x00 \n")
    again = Ledger(math.inf, path=path)
    assert again.spent == ledger.spent
    assert len(again.entries) == 3


def test_a_refusal_says_what_is_left_to_the_last_digit():
    ledger = Ledger(10.0)
    ledger.spend(Guarantee(0.020000001))
    with pytest.raises(BudgetError, match=r"asked for epsilon 9\.98, left epsilon 9\.979999999 "):
        ledger.spend(Guarantee(9.98))


def test_a_ledger_can_be_sent_to_another_process(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "ledger.db")
    again = pickle.loads(pickle.dumps(ledger))
    again.spend(TENTH)
    assert ledger.spent.epsilon == 0.1


def test_writes_are_on_disk_when_they_return(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "ledger.db")
    with ledger._book._take_turn() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# Many at once


def test_threads_together_cannot_overspend(make):
    ledger, refused = make(1.0), []
    start = threading.Barrier(16)

    def hammer(_):
        start.wait()
        for _ in range(10):
            try:
                ledger.spend(Guarantee(0.01), "a query")
            except BudgetError as error:
                refused.append(error)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(hammer, range(16)))
    assert ledger.spent.epsilon == 1.0
    assert len(ledger.entries) == 100
    assert len(refused) == 60


HAMMER = """
import sys
from fpbench import Guarantee
from fpbench.errors import BudgetError
from fpbench.privacy import Ledger
ledger = Ledger(1.0, path=sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
paid = 0
try:
    while True:
        ledger.spend(Guarantee(float(sys.argv[3])), sys.argv[2])
        paid += 1
        print("paid", flush=True)
except BudgetError:
    print("refused", flush=True)
"""


def hammers(path, count, amount):
    """Processes that spend until they are refused, all started together."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(path), str(number), str(amount)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    return started


def test_processes_together_cannot_overspend(tmp_path):
    path = tmp_path / "ledger.db"
    answers = [process.communicate(timeout=60)[0].split() for process in hammers(path, 4, 0.005)]
    assert all(words[-1] == "refused" for words in answers)
    paid = [words.count("paid") for words in answers]
    assert sum(paid) == 200
    ledger = Ledger(1.0, path=path)
    assert ledger.spent.epsilon == 1.0
    notes = [entry.note for entry in ledger.entries]
    assert [notes.count(str(number)) for number in range(4)] == paid


@pytest.mark.slow
def test_what_was_spent_survives_sigkill(tmp_path):
    """Whatever a killed process said was paid for is in the file, and it is still a ledger."""
    path, amount, said = tmp_path / "ledger.db", 1e-6, 0
    for _ in range(3):
        victims = hammers(path, 2, amount)
        for victim in victims:
            said += sum(victim.stdout.readline() == "paid\n" for _ in range(10))
            os.kill(victim.pid, signal.SIGKILL)
        for victim in victims:
            with victim:  # waits, and closes its pipes
                said += victim.stdout.read().split().count("paid")
            assert victim.returncode == -signal.SIGKILL
    ledger = Ledger(1.0, path=path)
    paid = round(ledger.spent.epsilon / amount)
    assert said >= 60
    # At most one spend of each of six killed processes was on disk, and not yet said.
    assert said <= paid <= said + 6
    assert len(ledger.entries) == paid
    ledger.spend(Guarantee(ledger.remaining.epsilon))
    with pytest.raises(BudgetError):
        ledger.spend(Guarantee(amount))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_spends_from_the_same_budget(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "ledger.db")
    ledger.spend(TENTH)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.spend(TENTH, times=4)
            code = 0 if ledger.spent.epsilon in (0.5, 0.8) else 2
        finally:
            os._exit(code)
    ledger.spend(TENTH, times=3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ledger.spent.epsilon == 0.8


def test_a_new_file_may_be_made_by_several_at_once(tmp_path):
    start = threading.Barrier(8)

    def make_one(_):
        start.wait()
        Ledger(1.0, path=tmp_path / "ledger.db").spend(TENTH)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make_one, range(8)))
    assert Ledger(1.0, path=tmp_path / "ledger.db").spent.epsilon == 0.8


def test_a_simulation_pays_next_to_nothing():
    """Two thousand times cost about as much as once: in time of this process, whatever else runs."""

    def cost(times):
        ledger, parts = Ledger(math.inf), [TENTH] * 3
        began = time.process_time()
        for _ in range(500):
            ledger.spend(parts, times=times)
        return time.process_time() - began

    cost(1)
    assert cost(2000) < 50 * cost(1)


def test_a_log_that_another_program_switched_on_holds_nothing_of_a_ledger(tmp_path):
    """A tool for SQLite files does so to make them faster; a copy of the one file would lack it."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    ledger = Ledger(1.0, path=path)
    ledger.spend(TENTH)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    ledger.spend(TENTH)
    assert not path.with_name("ledger.db-wal").exists()
    shutil.copy(path, copy)
    assert Ledger(1.0, path=copy).spent == ledger.spent == (0.2, 0.0, None)
    # While the other program has it open, and reads, nobody can switch the log off.
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        db.execute("BEGIN")
        db.execute("SELECT * FROM total").fetchall()
        ledger._book._db.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(InputError, match="cannot be used"):
            ledger.spend(TENTH)
        db.execute("COMMIT")
    ledger.spend(TENTH)
    assert Ledger(1.0, path=path).spent == (0.3, 0.0, None)


def test_a_note_of_a_mebibyte_is_the_longest(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger(1.0, path=path)
    ledger.spend(TENTH, "x" * 1_000_000)
    with pytest.raises(InputError, match="too big"):
        ledger.spend(TENTH, "x" * (1 << 20))
    assert Ledger(1.0, path=path).spent == (0.1, 0.0, None)


def test_a_damaged_schema_is_one_error(tmp_path):
    """SQLite repeats the damaged text in its message, which may be no UTF-8."""
    path = tmp_path / "ledger.db"
    Ledger(1.0, path=path).spend(TENTH)
    content = path.read_bytes()
    place = content.index(b"CREATE TABLE terms") + len("CREATE ")
    path.write_bytes(content[:place] + b"\xee" + content[place + 1 :])
    with pytest.raises(InputError, match="cannot be used"):
        Ledger(1.0, path=path)
