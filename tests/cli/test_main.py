"""The installed command, as a user meets it."""

import csv
import hashlib
import io
import json
import re
import sys
from pathlib import Path

import pytest
from commands import bad, fine

import fpbench
from fpbench.results.findings import MOST_LEAK

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

TOY = """
title = "Toys"
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[disclosure]]
use = "oracle"
[[adversary]]
use = "peek"
[[corrector]]
use = "flip"
[[corrector]]
use = "none"
"""


@pytest.fixture
def toy_matrix(toys, tmp_path):
    file = tmp_path / "work" / "toy.toml"

    def write(text=TOY):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return "toy.toml"

    return write


@pytest.mark.slow
def test_seeds_that_are_not_shown_are_told_wherever_rows_are_read(command, toy_matrix):
    matrix = toy_matrix()
    fine(command("-q", "run", matrix, "--out", "some"))
    fine(command("-q", "run", matrix, "--out", "all"))
    done = command("export", "some")
    assert done.stderr == ""
    fine(command("-q", "run", matrix, "--out", "some", "--seeds", "1"))
    words = "warning: some: results of 1 seed (1) are left out"
    rows = fine(command("export", "some"))
    assert len(rows.stdout.splitlines()) == 3 < len(done.stdout.splitlines())
    assert words in rows.stderr
    assert words in fine(command("compare", "--cells", "some", "all"), 1).stderr
    toy_matrix(TOY.replace("seeds = 2", "seeds = [1]"))
    fine(command("-q", "run", matrix, "--out", "other"))
    assert words in fine(command("merge", "some", "other", "--out", "merged")).stderr
    board = fine(command("leaderboard", "some")).stdout
    assert "1 of the 2 seeds that were run are shown and counted" in board


@pytest.mark.slow
def test_a_run_says_what_it_found_and_is_resumed(command, toy_matrix):
    matrix = toy_matrix()
    first = fine(command("run", matrix))
    assert "Toys" in first.stdout
    assert "run directory: runs/toy" in first.stdout
    again = fine(command("run", matrix))
    told = first.stdout[: first.stdout.index("run directory")]
    assert again.stdout.startswith(told)
    board = fine(command("leaderboard", "runs/toy")).stdout
    assert fine(command("run", matrix, "--long")).stdout.startswith(board)


@pytest.mark.slow
def test_the_leaderboard_is_what_a_person_reads(command, toy_matrix):
    fine(command("run", toy_matrix(TOY.replace("seeds = 2", "seeds = 1"))))
    shown = fine(command("leaderboard", "runs/toy", COLUMNS="80")).stdout
    rows = [line.split() for line in shown.splitlines() if re.match(r" *[-\d] ", line)]
    assert [row[:3] for row in rows] == [
        ["1", "flip", "peek"], ["-", "none", "peek"], ["-", "largest", "group"],
    ]  # fmt: skip
    assert shown.splitlines()[1].startswith("Naming the largest group is right for ")
    assert "at one seed (other seeds may differ)" in " ".join(shown.split())
    wide = fine(command("leaderboard", "runs/toy", COLUMNS="140")).stdout
    assert re.search(r"#.*proven", wide)  # flip proves nothing
    assert "Fewer than 3 seeds give no interval" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "each level" not in line)


@pytest.mark.slow
def test_a_plan_says_what_would_run(command, toy_matrix):
    shown = fine(command("plan", toy_matrix())).stdout
    assert "4 cells to run, 0 skipped" in shown
    assert re.search(r"^train parrot +2 +4 *$", shown, re.MULTILINE)
    assert re.search(r"^all +19 +32 *$", shown, re.MULTILINE)
    assert "time: unknown on a first run" in shown
    fine(command("run", "toy.toml"))
    after = fine(command("plan", "toy.toml")).stdout
    assert "4 of them done already" in after
    assert "about 0 s of work left" in after


@pytest.mark.slow
def test_a_plan_says_what_is_skipped_and_why(command, toy_matrix):
    matrix = toy_matrix(TOY.replace('use = "flock"', 'use = "flock"\ngroups = 3'))
    shown = fine(command("plan", matrix)).stdout
    assert "2 cells to run, 2 skipped" in shown
    assert "skipped 2: flip turns around two groups only" in shown
    rows = list(csv.DictReader(io.StringIO(run_and_export(command, matrix))))
    assert [row["status"] for row in rows].count("skipped") == 2


def run_and_export(command, matrix):
    fine(command("run", matrix))
    return fine(command("export", "runs/toy")).stdout


COLUMNS = ["cell", "dataset", "learner", "disclosure", "adversary", "corrector", "mechanism",
           "policy", "auditor", "seed", "status", "reason", "seconds"]  # fmt: skip
MEASURES = {
    "majority_accuracy", "initial_accuracy", "corrected_accuracy", "gain", "changes",
    "change_precision", "objective", "solver_status", "solver_gap", "proven", "correct_seconds",
    "claim_metric", "claim_form", "claim_tolerance", "claim_holds", "train_accuracy",
    "test_accuracy", "train_unfairness", "test_unfairness",
}  # fmt: skip


@pytest.mark.slow
def test_exports_are_tidy(command, toy_matrix, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run_and_export(command, toy_matrix()))))
    assert len(rows) == 4
    assert list(rows[0])[:13] == COLUMNS
    assert set(rows[0]) >= MEASURES
    lines = fine(command("export", "runs/toy", "--format", "jsonl")).stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["cell"] for record in records] == [row["cell"] for row in rows]
    assert records[0]["solver_status"] == "feasible"

    long = fine(command("export", "runs/toy", "--long")).stdout
    gains = [row for row in csv.DictReader(io.StringIO(long)) if row["measure"] == "gain"]
    assert {row["cell"]: float(row["value"]) for row in gains} == {
        row["cell"]: float(row["gain"]) for row in rows
    }


@pytest.mark.slow
def test_parquet_goes_to_a_file(command, toy_matrix, tmp_path):
    pandas = pytest.importorskip("pandas")
    wide = pandas.read_csv(io.StringIO(run_and_export(command, toy_matrix())))
    fine(command("export", "runs/toy", "--format", "parquet", "-o", "rows.parquet"))
    fine(command("export", "runs/toy", "--format", "parquet", "--long", "-o", "long.parquet"))
    read = pandas.read_parquet(tmp_path / "work" / "rows.parquet")
    assert list(read["cell"]) == list(wide["cell"])
    assert read["gain"].tolist() == pytest.approx(wide["gain"].tolist())
    assert "measure" in pandas.read_parquet(tmp_path / "work" / "long.parquet")
    bad(command("export", "runs/toy", "--format", "parquet"), "--output")
    bad(command("export", "runs/toy", "-o", "no/such/place.csv"), "no/such/place.csv")
    bad(command("export", "runs/toy", "-o", "rows.xlsx"),
        "rows.xlsx: rows are written as csv, parquet, jsonl, not xlsx", "say --format")  # fmt: skip


def test_a_cell_that_fails_is_exit_code_one(command, toy_matrix):
    text = TOY + '[[learner]]\nuse = "parrot"\nlabel = "sick"\nfails = "raises"\n'
    done = bad(command("run", toy_matrix(text)), "4 of 8 cells failed", code=1)
    assert "failed: train parrot: RuntimeError: the parrot bit" in done.stdout
    rows = list(csv.DictReader(io.StringIO(fine(command("export", "runs/toy")).stdout)))
    assert [row["status"] for row in rows].count("done") == 4


def test_data_that_a_component_refuses_is_exit_code_two_and_nothing_is_lost(command, toy_matrix):
    text = TOY + '[[learner]]\nuse = "parrot"\nlabel = "picky"\nfails = "input"\n'
    bad(command("run", toy_matrix(text)), "4 of 8 cells failed", code=2)
    rows = list(csv.DictReader(io.StringIO(fine(command("export", "runs/toy")).stdout)))
    assert [row["status"] for row in rows].count("done") == 4


@pytest.mark.slow
def test_bad_input_is_one_line_and_runs_nothing(command, toy_matrix, toy_trace, tmp_path):
    cases = {
        TOY.replace("seeds", "seed"): "toy.toml: unknown key 'seed'; did you mean 'seeds'?",
        TOY.replace('"flip"', '"flap"'): "unknown corrector 'flap'; did you mean 'flip'?",
        TOY.replace(
            'use = "flock"', 'use = "flock"\nrows = 1'
        ): "greater than or equal to 3, not 1",
        "[[": "not valid TOML",
        with_facts(
            '{ use = "shares", group = "g0" }'
        ): "unknown use 'shares'; did you mean 'share'?",
        with_facts(SHARE, '{ use = "known", share = 2.0 }'): "also.1.share: input should be less",
        with_facts('{ use = "share", group = "g0", low = 0.5, high = 0.2 }'): "is above high 0.2",
    }
    for text, words in cases.items():
        bad(command("run", toy_matrix(text)), words)
        bad(command("plan", "toy.toml"), words)
    bad(command("run", "gone.toml"), "gone.toml: cannot be read")
    assert toy_trace() == []
    assert not (tmp_path / "work" / "runs").exists()


SHARE = '{ use = "share", group = "g1", margin = 0.1 }'


def with_facts(*facts):
    """The toys, of whom more is known than a claim."""
    text = TOY.replace('use = "oracle"', f'use = "oracle"\nalso = [{", ".join(facts)}]')
    return text.replace('use = "flip"', 'use = "exact"')


@pytest.mark.slow
def test_facts_are_run_and_those_that_cannot_be_used_are_skipped(command, toy_matrix):
    linear = '{ use = "linear", group = "g1", column = "x" }'
    shown = fine(command("plan", toy_matrix(with_facts(SHARE)))).stdout
    assert "4 cells to run, 0 skipped" in shown
    shown = fine(command("plan", toy_matrix(with_facts(SHARE, linear)))).stdout
    assert "2 cells to run, 2 skipped" in shown
    assert "corrector 'exact' cannot express the constraint 'linear'; it can express:" in (
        " ".join(shown.split())
    )
    rows = list(csv.DictReader(io.StringIO(run_and_export(command, toy_matrix(with_facts(SHARE))))))
    assert {row["status"] for row in rows} == {"done"}
    assert {row["claim_form"] for row in rows} == {"to-overall"}
    assert {row["claim_holds"] for row in rows} <= {"0", "1"}


@pytest.mark.slow
def test_bad_options(command, toy_matrix):
    matrix = toy_matrix()
    bad(command("run", matrix, "--jobs", "0"), "jobs must be 1 or more, not 0")
    bad(command("run", matrix, "--engine", "loki"), "unknown engine 'loki'; did you mean 'loky'?")
    bad(command("run", matrix, "--engine", "inline", "-j", "2"), "one job at a time, not 2")
    fine(command("run", matrix, "--jobs", "many"), code=2)
    fine(command("nonsense"), code=2)
    bad(command("leaderboard", "nowhere"), "nowhere: not a run directory")
    bad(command("export", "nowhere"), "nowhere: not a run directory")
    fine(command("run", matrix))
    bad(command("leaderboard", "runs/toy", "--by", "gian"), "did you mean 'gain'?")
    fine(command("run", matrix, "--seeds", "3"))
    assert "3 seeds" in fine(command("leaderboard", "runs/toy")).stdout
    toy_matrix(TOY + "[split]\ntrain = 0.4\ntest = 0.2\n")
    bad(command("run", matrix), "made by another matrix", "--out", "--fresh")
    fine(command("run", matrix, "--fresh"))
    assert "flip" in fine(command("leaderboard", "runs/toy.1")).stdout


@pytest.mark.slow
def test_an_interruption_says_how_to_go_on(command, install, toys, tmp_path):
    source = (Path(__file__).parents[1] / "plugins" / "toys.py").read_text()
    source = source[: source.index("class Flock")] + (
        "class Stop(Corrector):\n    name = 'stop'\n    summary = 'interrupts'\n"
        "    def correct(self, problem):\n        raise KeyboardInterrupt\n"
        "@hookimpl\ndef fpbench_correctors():\n    return [Stop]\n"
    )
    install("stopper", "stopper", source)
    (tmp_path / "work" / "toy.toml").write_text(TOY + '[[corrector]]\nuse = "stop"\n')
    done = bad(command("run", "toy.toml"), "continue with: fpbench run toy.toml\n", code=130)
    assert "interrupted" in done.stderr
    shown = fine(command("plan", "toy.toml")).stdout
    assert "2 of them done already" in shown
    options = ("--engine", "inline", "--retries", "1", "--max-cells", "50")
    bad(command("run", "toy.toml", *options), f"continue with: fpbench run toy.toml {' '.join(options)}\n",
        code=130)  # fmt: skip


def test_plugins_are_listed_with_their_distribution(command, install, toys):
    install("bad-plugin", "bad", "1 / 0")
    shown = fine(command("plugins")).stdout
    assert re.search(r"^  adult +UCI Adult: 45,222 people, income above 50K", shown, re.M)
    assert re.search(r"^  flock +fpbench-toys 1\.0: a few people with one feature$", shown, re.M)
    assert "broken: bad of bad-plugin 1.0: ZeroDivisionError: division by zero" in shown
    assert "Traceback" not in shown
    assert "Traceback" in command("plugins", "--trace").stdout
    narrow = fine(command("plugins", COLUMNS="80")).stdout.splitlines()
    assert all(len(line) <= 80 for line in narrow if not line.startswith("broken: "))
    long = fine(command("plugins", "--long")).stdout
    assert re.search(
        rf"^  adult +fpbench-toolkit {re.escape(fpbench.__version__)}  UCI ", long, re.M
    )


@pytest.mark.slow
def test_a_component_of_every_kind_can_be_described(command):
    shown = fine(command("describe", "learner", "exponentiated-gradient")).stdout
    assert "Agarwal" in shown
    assert re.search(r"tolerance +=\ 0\.01 +number >= 0, <= 1\. ", shown)
    assert "statistical-parity | predictive-equality" in shown
    for entry in {entry.kind: entry for entry in fpbench.plugin.discover()}.values():
        assert entry.name in fine(command("describe", entry.kind, entry.name)).stdout
    alone = fine(command("describe", "exponentiated-gradient")).stdout
    assert alone == shown
    bad(command("describe", "exponentiated-gradients"), "did you mean 'exponentiated-gradient'?")
    listed = fine(command("describe", "learner")).stdout
    assert listed.startswith(
        "learner  (trains the model under attack or audit)\n  correlation-remover  "
    )
    assert "\n  plain  " in listed
    bad(command("describe", "learners"), "did you mean 'learner'?")
    census = fine(command("describe", "census-synthetic")).stdout
    assert "parameters\n  rows " in census
    assert "P(v | g)" not in census
    assert "--long` says how it works" in census
    assert "P(v | g)" in fine(command("describe", "census-synthetic", "--long")).stdout
    assert "share, to-overall" in fine(command("describe", "corrector", "exact")).stdout
    bad(command("describe", "learner", "plan"), "unknown learner 'plan'; did you mean 'plain'?")
    bad(command("describe", "lerner", "plain"), "unknown kind 'lerner'; did you mean 'learner'?")


def test_the_doctor_says_what_works(command, tmp_path):
    shown = fine(command("doctor", FPBENCH_DATA=str(tmp_path), XDG_DATA_HOME=str(tmp_path))).stdout
    for words in ("components", "engines", "loky", "extras", "fpbench data fetch adult",
                  "data sets can be used; `fpbench data list`"):  # fmt: skip
        assert words in shown


def test_the_doctor_notices_the_other_fpbench_of_the_index(command, tmp_path):
    assert "both bring" not in fine(command("doctor")).stdout
    info = tmp_path / "fpbench-7.1.dist-info"  # this name belongs to somebody else
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fpbench\nVersion: 7.1\n")
    shown = " ".join(fine(command("doctor", PYTHONPATH=str(tmp_path))).stdout.split())
    assert "fpbench 7.1 is installed here beside fpbench-toolkit" in shown
    assert "pip uninstall fpbench, then" in shown


def test_versions_and_help(command):
    assert fine(command("--version")).stdout == f"fpbench {fpbench.__version__}\n"
    shown = fine(command("--help")).stdout
    for name in ("run", "plan", "leaderboard", "export", "plugins", "describe", "data", "doctor"):
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)
    bare = command()
    assert "Usage" in bare.stdout + bare.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")
def test_the_quickstart_says_what_may_be_published(command, tmp_path):
    """The README's main job, on one screen: who, what is given away, whether it is bad, what next."""
    matrix = BENCHMARKS / "quickstart.toml"
    done = fine(command("run", matrix, "--seeds", "4", COLUMNS="80"))
    assert done.stdout.count("\n") <= 24
    run = fpbench.load(tmp_path / "work" / "runs" / "quickstart")
    board = run.leaderboard()
    things = {thing.name: thing for thing in board.findings.things}
    claim, one, two, release = things.values()
    for line in board.lines:
        thing = things[line.labels["disclosure"]]
        assert thing.added == line.measures["leak"]
        assert f"{100 * line.measures['with_accuracy'].mean:.1f} % right" in done.stdout
    assert claim.proven == release.proven == release.sure == 0
    assert two.proven > 10 * one.proven > 0
    assert two.added.low > 0.05 > MOST_LEAK > abs(claim.added.mean)
    assert 0.01 < release.rate_error < 0.05
    shown = " ".join(done.stdout.split())
    for words in ("The group (A or B) of 2,000 people", "attacker sees", "do not publish: 1 in",
                  "may be published: nobody is proven", "next: fpbench"):  # fmt: skip
        assert words in shown
    whole = fine(command("run", matrix, "--seeds", "4", "--long")).stdout
    assert "disclosure a claim of parity" in whole


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")
def test_the_claims_show_the_leak(command, tmp_path):
    """Strong guesses beat the paper's, and a claim adds to one of them."""
    matrix = BENCHMARKS / "claims.toml"
    planned = fpbench.plan(matrix)
    assert (planned.runnable, planned.skipped) == (480, {})  # of five learners
    # The other learners take five times as long, and nothing below is about the other corrector.
    only = ("--set", "learner=threshold-optimizer", "--set", "corrector=posterior")
    done = fine(command("run", matrix, *only, "--seeds", "3", "--jobs", "2"))
    assert "run directory: runs/claims" in done.stdout
    run = fpbench.load(tmp_path / "work" / "runs" / "claims")
    assert run.frame()["status"].value_counts()["done"] == 12
    found = {
        (line.labels["adversary"], line.labels["corrector"]): line.measures
        for line in run.leaderboard().lines
        if line.labels["learner"] == "threshold-optimizer"
    }
    assert found["a1", "posterior"]["leak"].low > 0.005
    strong, paper = (found[name, "posterior"]["without_accuracy"] for name in ("a2", "a2-ferry"))
    assert strong.low > paper.high
    largest = found["majority", "posterior"]
    assert largest["leak"].mean == 0
    assert largest["with_accuracy"].mean == pytest.approx(0.666, abs=0.01)


def test_one_group_is_bad_input(command, toy_matrix):
    matrix = toy_matrix(TOY.replace('use = "flock"', 'use = "flock"\ngroups = 1'))
    done = bad(command("run", matrix), "4 of 4 cells failed", code=2)
    assert "data set 'flock': the sensitive attribute group has one group" in done.stdout


def test_a_data_file_with_a_missing_column_is_bad_input(command, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("adult.data", "adult.test"):
        (data / name).write_text("39, State-gov, 77516, Bachelors\n")
    matrix = TOY.replace('use = "flock"', 'use = "adult"').replace('"parrot"', '"plain"')
    matrix = (
        matrix.replace('"oracle"', '"hidden"')
        .replace('"peek"', '"a2"')
        .replace('"flip"', '"exact"')
    )
    (tmp_path / "work" / "adult.toml").write_text(matrix)
    done = bad(command("run", "adult.toml", FPBENCH_DATA=str(data)), "cells failed", code=2)
    assert "adult.data" in done.stdout
    assert "fpbench data verify adult" in done.stdout


@pytest.mark.slow
def test_other_data_makes_other_cells_and_a_warning(command, adult_home, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "adult.test").write_bytes(adult_home.find("adult.test").read_bytes())
    lines = adult_home.find("adult.data").read_bytes().splitlines(keepends=True)
    matrix = (
        '[[dataset]]\nuse = "adult"\n[[learner]]\nuse = "plain"\n[[disclosure]]\nuse = "hidden"\n'
        '[[adversary]]\nuse = "a1-ferry"\nparameters = { n_estimators = 3 }\n[[corrector]]\nuse = "none"\n'
    )
    (tmp_path / "work" / "adult.toml").write_text(matrix)
    cells = []
    for kept, differs in ((lines[:3000], True), (lines, False)):
        (data / "adult.data").write_bytes(b"".join(kept))
        done = fine(command("run", "adult.toml", FPBENCH_DATA=str(data)))
        assert ("adult.data is not the known original" in done.stderr) is differs
        rows = fine(command("export", "runs/adult")).stdout
        cells.append(next(iter(csv.DictReader(io.StringIO(rows)))))
        noted = json.loads((tmp_path / "work" / "runs" / "adult" / "environment.json").read_text())
        held = hashlib.sha256((data / "adult.data").read_bytes()).hexdigest()
        assert noted["data"]["adult.data"] == held
    assert cells[0]["cell"] != cells[1]["cell"]
    assert cells[0]["initial_accuracy"] != cells[1]["initial_accuracy"]


@pytest.mark.slow
def test_what_is_skipped_is_said_after_a_run(command, toy_matrix):
    text = TOY.replace('use = "oracle"', 'use = "published"').replace('"parrot"', '"plain"')
    both = toy_matrix(text + '[[disclosure]]\nuse = "oracle"\n')
    done = fine(command("run", both))
    assert "skipped 4: learner 'plain' is trained for no fairness metric" in done.stdout
    only = bad(command("run", both, "--set", "disclosure=published"), "nothing to run")
    assert "is trained for no fairness metric" in only.stderr


def test_places_that_cannot_be_used_are_one_clear_error(command, toy_matrix, tmp_path):
    matrix = toy_matrix()
    bad(command("run", matrix, "--out", "x" * 300), "File name too long")
    (tmp_path / "work" / "taken" / "environment.json").mkdir(parents=True)
    bad(command("run", matrix, "--out", "taken"), "environment.json", "directory")


@pytest.mark.slow
def test_a_terminal_that_lacks_letters_still_shows_the_rest(command, toy_matrix):
    fine(command("run", toy_matrix(), PYTHONIOENCODING="ascii"))


WAVES = """
import typer
from fpbench import InputError, hookimpl
from fpbench.plugin import Lazy

app = typer.Typer(help="Make waves.")

@app.command()
def make(height: int) -> None:
    \"\"\"Make waves of a height.\"\"\"
    if height < 0:
        raise InputError("waves are not negative")
    typer.echo("~" * height)

@app.command()
def count() -> None:
    \"\"\"Count waves.\"\"\"

def hail() -> None:
    \"\"\"Greet those who sail.\"\"\"
    typer.echo("ahoy")

@hookimpl
def fpbench_commands():
    return [Lazy("waves", "WHERE:app"), Lazy("hail", "WHERE:hail"), Lazy("lost", "nowhere:app"),
            Lazy("plan", "WHERE:hail")]
"""


def test_a_package_adds_commands(command, install):
    install("fpbench-sea", "sea", WAVES.replace("WHERE", "sea"))
    assert fine(command("hail")).stdout == "ahoy\n"
    assert fine(command("waves", "make", "3")).stdout == "~~~\n"
    bad(command("waves", "make", "--", "-3"), "waves are not negative")
    bad(command("lost"), "command 'lost' of fpbench-sea 1.0 fails on import: ModuleNotFoundError")
    whole = fine(command("--help"))
    assert "Make waves." in whole.stdout
    assert "Greet those who sail." in whole.stdout
    assert "command 'lost' of fpbench-sea 1.0 fails on import" in whole.stderr
    assert "fpbench-sea 1.0: fpbench itself has a command 'plan'" in whole.stderr
    assert "Usage: fpbench plan" in fine(command("plan", "--help")).stdout


def test_commands_of_packages_are_imported_only_when_they_are_used(install):
    from fpbench.cli.main import _take_command

    site = install("fpbench-sea", "sea", WAVES.replace("WHERE", "sea_waves"))
    (site / "sea_waves.py").write_text(WAVES)
    for words in (["plan", "m.toml"], ["--version"], ["run", "--help"], ["plann"]):
        _take_command(words)
        assert "sea_waves" not in sys.modules
    _take_command(["run"], completing=True)
    assert "sea_waves" not in sys.modules
    assert [c.name for c in _take_command(["hail"]).registered_commands if c.name] == ["hail"]


def test_commands_claimed_twice_are_nobodys(command, install):
    for name in ("first", "second"):
        install(f"fpbench-{name}", name, WAVES.replace("WHERE", name))
    bad(command("hail"), "command 'hail' is provided by fpbench-first 1.0 and fpbench-second 1.0")


@pytest.mark.parametrize(("name", "answer"), [
    ("list", "`fpbench plugins` lists components"), ("show", "`fpbench leaderboard RUN` shows"),
    ("audit", "in Python `fpbench.audit`"), ("plot", "`fpbench figure RUN NAME` draws"),
    ("help", "`fpbench --help` lists all"),
])  # fmt: skip
def test_a_command_named_as_people_would_is_answered(name, answer, command):
    bad(command(name, "runs/ok"), f"there is no command {name!r}: ", answer)


def test_a_matrix_in_place_of_a_run_is_to_be_run_first(toy_matrix, command):
    toy_matrix()
    bad(command("leaderboard", "toy.toml"), "it is a matrix: run it first, fpbench run toy.toml")
    bad(command("new", "attack", "mine"), "unknown kind 'attack'; did you mean 'adversary'?")
