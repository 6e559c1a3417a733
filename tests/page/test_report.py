"""The report as a file: what it carries, what it asks for, and what it says of bad runs."""

import base64
import hashlib
import math
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from coded import decode_column, unpack
from runs import HOSTILE, REAL

import fpbench
from fpbench.base.errors import InputError, StoreError
from fpbench.components.names import KINDS
from fpbench.page.content import make_content
from fpbench.page.gathered import gather
from fpbench.page.writing import write_page, write_report
from fpbench.store.packing import is_identical


def carried(text):
    """What a page carries."""
    (packed,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', text)
    return unpack(packed)


def reported(run, **options):
    return write_report(run, **options).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def text(real, tmp_path_factory):
    """The report of the real run."""
    return reported(real, output=tmp_path_factory.mktemp("report") / "report.html")


def rows_of(said):
    names, kinds = said["cells"]["columns"], said["kinds"]
    columns = {name: decode_column(coded) for name, coded in names.items()}
    of = decode_column(said["cells"]["combination"])
    return [
        {name: column[i] for name, column in columns.items()}
        | dict(zip(kinds, said["combinations"][of[i]], strict=True))
        for i in range(said["cells"]["count"])
    ]


def test_it_carries_every_row_to_the_last_bit(real, text):
    carries = rows_of(carried(text))
    rows = real.rows()
    assert len(carries) == len(rows) == 48
    for mine, row in zip(carries, rows, strict=True):
        assert all(is_identical(mine[name], row.get(name)) for name in mine)
        assert set(row) <= set(mine)


def test_it_carries_every_leaderboard_and_what_its_lines_are_about(real, text):
    said = carried(text)
    assert [board["view"] for board in said["boards"]] == [
        "combinations", "attacks", "defences"]  # fmt: skip
    (board,) = real.leaderboards()
    mine = said["boards"][0]
    assert (mine["rank_by"], mine["in_points"]) == ("with_accuracy", True)
    assert mine["sentences"] == list(board.sentences) and len(board.sentences) == 3
    # The last line is that of the largest group, which is of all attacks.
    assert mine["rank"] == [*(line.rank for line in board.lines), None]
    assert mine["compared"] == len(board.lines) == len(mine["of"]) - 1
    assert mine["labels"][-1][mine["kinds"].index("adversary")] == "largest group"
    assert len(mine["of"][-1]) == len(said["combinations"])
    means = decode_column(mine["measures"]["without_accuracy"]["mean"])
    for mean, line, of in zip(means[:-1], board.lines, mine["of"][:-1], strict=True):
        assert math.isclose(mean, line.measures["without_accuracy"].mean, rel_tol=1e-7)
        (number,) = of
        labels = dict(zip(KINDS, said["combinations"][number], strict=True))
        assert {kind: labels[kind] for kind in line.labels} == dict(line.labels)
    attacks = said["boards"][2]
    assert {len(of) for of in attacks["of"][: attacks["compared"]]} == {4}  # over the learners


def test_parameters_are_those_of_the_matrix_and_the_defaults(text):
    learner = carried(text)["components"]["learner"]["exponentiated-gradient tolerance=0.05"]
    assert learner["use"] == "exponentiated-gradient"
    assert learner["parameters"] == {
        "metric": "statistical-parity",
        "tolerance": 0.05,
        "max_iter": 5,
    }
    assert learner["defaults"]["base"] == "decision-tree"
    assert not set(learner["parameters"]) & set(learner["defaults"])


def test_it_says_first_what_the_run_says(real, audited, text):
    (board,) = real.leaderboards()
    (message,) = carried(text)["messages"]
    assert message["sentences"] == list(board.sentences)
    assert message["waterfall"] == 0 and "--where" not in message["caption"]
    assert carried(text)["statements"] is None
    said = make_content(gather(audited), fpbench.plugin.discover())
    best = said["boards"][0]["measures"]["error"]["mean"]
    (message,) = said["messages"]
    (sentence,) = message["sentences"]
    least = f"{min(decode_column(best)):.4f}".lstrip("0")
    apart = ", ".join(said["boards"][0]["apart"])
    assert sentence.startswith(f"Of 4 lines ({apart}), pafer epsilon=1.0, ")
    assert f" has the least error: {least}; 3 others are tied with it." in sentence  # of 2 seeds


def test_every_cell_is_of_a_session_with_its_versions(real, text):
    said = carried(text)
    assert set(decode_column(said["cells"]["session"])) == {1}
    (session,) = said["sessions"]
    assert session["environment"]["packages"]["fpbench-toolkit"] == fpbench.__version__
    assert session["started"].startswith("20")
    assert {action for action, *_ in said["timings"]} >= {"train", "guess", "correct"}
    assert "census-synthetic" in said["matrix"]


def test_other_versions_may_have_other_defaults(real, monkeypatch):
    run = gather(real)
    session = run.sessions[0]
    session.environment["packages"] = {
        **session.environment["packages"],
        "fpbench-toolkit": "0.0.9",
    }
    learner = make_content(run, fpbench.plugin.discover())["components"]["learner"]["plain"]
    assert learner["defaults"] == {}
    assert learner["note"].startswith(
        "defaults are not known: made with fpbench-toolkit 0.0.9, and "
    )


@pytest.mark.slow
def test_the_same_run_is_the_same_file(real, text, tmp_path):
    assert reported(real, output=tmp_path / "again.html") == text


def test_nothing_is_fetched_and_only_its_own_scripts_run(text):
    head, _, _ = text.partition('<script type="text/plain" id="data">')
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", text.partition('id="library"')[0])
    assert not re.search(r"@import|url\(", head)
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src" not in policy
    assert "'unsafe-eval'" not in policy
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert "script-src 'sha256-" in policy


def test_the_words_of_a_run_are_never_html(text):
    assert HOSTILE not in text
    assert "alert(2)" in text  # in the title, escaped
    assert "<script>alert" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(2)&lt;/script&gt;" in text
    assert text.count("</script>") == text.count("<script") == 3


def test_control_characters_of_a_run_are_escaped():
    """In the title and in all that the page's script shows; letters of other languages stay."""
    name = "a\x1b]0;t\x07\u202eb\u2028ü\n\tc"
    shown = "a\\x1b]0;t\\x07\\u202eb\\u2028ü\n\tc"
    content = {"title": name, "boards": [{name: [name, 1, None]}]}
    page = write_page(content)
    assert f"<title>{shown} · fpbench</title>" in page
    assert f"<h1>{shown}</h1>" in page
    assert carried(page) == {"title": shown, "boards": [{shown: [shown, 1, None]}]}


def test_its_file_is_small(text):
    assert len(text) < 2_500_000


def test_it_is_ranked_as_asked(real, tmp_path):
    said = carried(reported(real, output=tmp_path / "r.html", by="seconds"))
    assert said["boards"][0]["rank_by"] == "seconds"
    with pytest.raises(InputError, match="unknown measure to rank by: 'gian'; .*'gain'"):
        write_report(real, by="gian")


@pytest.mark.slow
def test_failures_keep_their_reasons(toy_run, tmp_path):
    said = carried(reported(toy_run()))
    rows = rows_of(said)
    failed = [row for row in rows if row["status"] == "failed"]
    assert len(failed) == 4
    assert {row["learner"] for row in failed} == {"biter"}
    assert all("the parrot" in row["reason"] for row in failed)
    board = said["boards"][0]
    assert sorted(board["failed"][: board["compared"]]) == [0, 0, 2, 2]
    assert [bool(reasons) for reasons in board["reasons"]] == [bool(n) for n in board["failed"]]


def test_a_run_of_failures_only_is_reported(toy_run):
    run = toy_run(learner=[{"use": "parrot", "fails": "raises"}])
    said = carried(reported(run))
    assert {row["status"] for row in rows_of(said)} == {"failed"}
    assert said["figures"] == []
    assert said["boards"][0]["rank"] == [None, None]


def test_a_run_of_one_seed_has_no_intervals(toy_run):
    said = carried(reported(toy_run(seeds=1, learner=[{"use": "parrot"}])))
    ends = said["boards"][0]["measures"]["gain"]
    assert set(decode_column(ends["low"])) == {None}
    assert said["boards"][0]["done"] == [1, 1, 1]


def test_a_run_of_which_nothing_was_run_is_refused(toy_run):
    run = toy_run()
    with closing(sqlite3.connect(run.path / "store.sqlite")) as db, db:
        db.executescript("DELETE FROM measure; DELETE FROM page; DELETE FROM result")
    with pytest.raises(StoreError, match="no cell has been run yet"):
        write_report(run)


ODD = """
import numpy as np
from fpbench import Auditor, hookimpl

class Odd(Auditor):
    "Measures odd things."
    name = "odd"
    summary = "measures odd things"
    sees = frozenset({"model"})

    def audit(self, subject, rng):
        return {"odd_error": float("nan"), "wide": float("inf"), "big": 2**60, "said": "<b>bold</b>",
                "none": None, "size": 1e-9}

@hookimpl
def fpbench_auditors():
    return [Odd]
"""


def test_measures_that_are_no_numbers_are_kept(install, toys, tmp_path):
    install("fpbench-odd", "odd_plugin", ODD)
    matrix = {
        "dataset": [{"use": "flock"}],
        "learner": [{"use": "parrot"}],
        "auditor": [{"use": "odd"}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run")
    text = reported(run)
    assert "<b>bold" not in text
    (row,) = rows_of(carried(text))
    assert row["status"] == "done"
    assert math.isnan(row["odd_error"])
    assert (row["wide"], row["big"], row["said"]) == (math.inf, 2**60, "<b>bold</b>")
    assert row["none"] is None
    (board,) = carried(text)["boards"]
    assert (board["rank_by"], board["notes"][0]) == (
        "toy_note",
        "nothing here has with_accuracy: ranked by toy_note",
    )


def test_without_plotly_the_command_that_installs_it_is_said(real, monkeypatch):
    monkeypatch.setattr("fpbench.page.writing.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'fpbench-toolkit\[report\]'"):
        write_page({"title": "x"})


@pytest.mark.slow
def test_the_commands_write_and_list(real, command, tmp_path):
    done = command("page", real.path, "-o", tmp_path / "r.html")
    assert (done.returncode, done.stdout) == (0, f"page: {tmp_path / 'r.html'}\n"), done.stderr
    assert carried((tmp_path / "r.html").read_text())["title"] == REAL["title"]
    done = command("figure", real.path)
    assert done.stdout.splitlines()[1].split() == ["accuracy", "Accuracy", "before", "and", "after",
                                                  "the", "correction"]  # fmt: skip
    done = command("figure", real.path, "accuracy", "-o", tmp_path / "a.svg")
    assert (done.returncode, done.stdout) == (0, f"figure: {tmp_path / 'a.svg'}\n"), done.stderr
    done = command("figure", real.path, "acuracy")
    assert done.returncode == 2
    assert done.stderr.startswith("error: small run: no figure 'acuracy'")
    done = command("page", real.path, "-o", tmp_path / "none" / "r.html")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_code_of_the_documentation_reads_the_file(real, text, tmp_path, monkeypatch):
    docs = Path(__file__).parents[2] / "docs" / "page-and-figures.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", docs.read_text(), re.M | re.S)
    (tmp_path / "page.html").write_text(text)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    assert names["gains"] == [row["gain"] for row in real.rows()]
