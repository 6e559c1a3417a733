"""Results show themselves: printed, in a list, in a notebook; and write themselves as files."""

import ast
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy_runs import ATTACK

import fpbench
from fpbench import InputError
from fpbench.base.text import format_number
from fpbench.builtin.pate.excessive_risk.report import RiskReport
from fpbench.cli.screen.results import show_leaderboard
from fpbench.matrix.matrix import read
from fpbench.results.judging import _describe_scale
from fpbench.store.differences import CellChange

MATRIX = ATTACK | {
    "title": "toys",
    "seeds": 2,
    "learner": [{"use": "parrot", "number": {"sweep": [1, 2]}}],
    "adversary": [{"use": "coin"}, {"use": "peek"}],
}


@pytest.fixture
def run(tmp_path, toys):
    return fpbench.run(MATRIX, out=tmp_path / "run")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 200)
    X = pd.DataFrame({"hours": rng.normal(sex == "m", 0.5), "age": rng.normal(size=200)})
    return X, (X["hours"] > 0.5).to_numpy().astype(int), sex


@pytest.mark.slow
def test_a_run_writes_what_the_commands_write(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.report() == run.path / "page.html"
    assert run.report("page.html", by="gain").read_text().startswith("<!doctype html>")
    figures = run.figures()
    assert "with_accuracy-by-adversary" in figures
    assert run.figure("with_accuracy-by-adversary").name == "with_accuracy-by-adversary.pdf"
    drawn = run.figure("with_accuracy-by-adversary", "f.svg", where=["learner=*1"])
    assert drawn.read_text().startswith("<?xml")
    with pytest.raises(InputError, match="did you mean 'with_accuracy-by-adversary'"):
        run.figure("with_accuracy-by-adversry")
    rows = [json.loads(line) for line in run.export("rows.jsonl").read_text().splitlines()]
    assert [row["adversary"] for row in rows] == run.frame()["adversary"].tolist()
    assert run.export("r", format="csv", long=True).read_text().startswith("cell,dataset,")
    with pytest.raises(InputError, match="unknown format 'json'; did you mean 'jsonl'"):
        run.export("rows.json", format="json")


def test_a_run_without_results_for_a_figure_says_what_it_takes(tmp_path, toys):
    one = {"dataset": [{"use": "flock"}], "learner": [{"use": "parrot"}]}
    run = fpbench.run({**one, "auditor": [{"use": "group-fairness"}]}, out=tmp_path / "run")
    assert run.figures() == {}
    with pytest.raises(InputError, match="no figure is possible: it takes two learners, or a"):
        run.figure("accuracy")


def test_leaderboards_take_the_words_of_the_command(run):
    assert run.leaderboard(by="gain", view="attacks").rank_by == "gain"
    with pytest.raises(TypeError, match=r"\.leaderboard\(\) got an unexpected"):
        run.leaderboard(ranked="gain")


@pytest.mark.slow
def test_comparisons_and_verifications_print_what_the_commands_print(run, tmp_path, command):
    other = fpbench.run({**MATRIX, "seeds": 3}, out=tmp_path / "other")
    difference = run.diff(other)
    checked = run.verify(2, seed=0)
    for shown, words in (
        (difference, ["compare", "--cells", run.path, other.path]),
        (checked, ["verify", run.path, "--sample", 2, "--seed", 0]),
    ):
        assert repr(shown) == str(shown)
        printed = command("--plain", *map(str, words), COLUMNS="4000").stdout
        assert [line.split() for line in printed.splitlines()] == [
            line.split() for line in str(shown).splitlines()
        ]
    cells = [CellChange("<b>", "gain", 0.25, None)]
    html = replace(difference, changes=tuple(cells))._repr_html_()
    assert "<table>" in html
    assert "&lt;b&gt;" in html
    assert "cells compared to the last bit: they differ</p>" in html


def test_boards_show_themselves_in_any_list(run):
    boards = run.leaderboards(view="defences")
    assert str(boards) == repr(boards) == "\n\n".join(map(str, boards))
    assert boards._repr_html_().count("<table>") == len(boards)
    line = boards[0].lines[0]
    assert repr(line) == str(line)
    assert "_Measures" not in repr(boards) + repr([line]) + repr(run)
    assert repr(run) == f"Run(path={run.path!r})"
    waterfall = run.leaderboard().waterfall
    assert str(waterfall) == repr(waterfall)
    assert str(waterfall).split()[:3] == ["known", "%", "right"]
    assert "<table>" in waterfall._repr_html_()
    assert str(run.read()) == repr(run.read()) == f"toys ({run.path}): {run.results()}"
    assert re.fullmatch(r"8 rows of \d+ measures, 8 done", repr(run.results()))
    release = fpbench.audit([1, 0, 1, 1] * 9, None, ["b", "a", "a", "b"] * 9, epsilon=1.0, rng=0)
    for shown in (line, run.read(), run.results(), fpbench.plan(MATRIX, out=run.path), release):
        words = html.escape(str(shown)).replace("&#x27;", "&#39;")
        assert shown._repr_html_().replace("&#x27;", "&#39;") == f"<p>{words}</p>"
    assert (
        repr(fpbench.plan(MATRIX, out=run.path))
        == "8 cells to run, 0 skipped, 8 of them done already"
    )


def test_audits_reports_and_assessments_show_themselves(people):
    X, predictions, sex = people
    report = fpbench.FairnessReport.from_predictions(X, predictions, sex, by=["hours"], bins=2)
    rounded = report.protect(decimals=2, min_group=60)
    assert str(report) == (
        "Fairness report: selection-rate of f, m, in 6 rows; cut by hours; values exact"
    )
    assert str(rounded).endswith("values rounded and 4 suppressed")
    similar = fpbench.auditing.individual_fairness(predictions, X, tau=0.1)
    results = [
        fpbench.audit(predictions, None, sex, epsilon=1.0, rng=0),
        fpbench.audit(predictions, None, sex, resamples=0),
        fpbench.assess(report, X, predictions, groups=sex, seconds=1.0),
        report, rounded, similar,
    ]  # fmt: skip
    for one in results:
        assert repr(one) == str(one)
        assert "array(" not in str(one)
    for one in results[3:]:
        assert "<table" in one._repr_html_()


@pytest.mark.slow
def test_an_attack_draws_everybodys_risk_and_what_gives_groups_away(people, tmp_path, monkeypatch):
    X, predictions, sex = people
    attacked = fpbench.attack(predictions, X, predictions, sex, seeds=1)
    assert str(attacked) == "\n".join(attacked.sentences)
    assert len(attacked.people) + attacked.never_attacked == 200
    assert repr(attacked) == str(attacked)
    few = fpbench.attack(predictions[:90], X[:90], predictions[:90], sex[:90], seeds=1)
    *sentences, note = str(few).splitlines()
    assert tuple(sentences) == few.sentences
    assert note == "Only 45 people are attacked: so few tell of great leaks only."
    assert f"<li>{note}</li>" in few._repr_html_()
    everybody = fpbench.attack(predictions, X, predictions, sex, seeds=30)
    assert len(everybody.people) == 200
    assert str(everybody) == "\n".join(everybody.sentences)
    assert set(attacked.figures()) == {"people", "waterfall"}
    risks, levels = attacked._draw()
    for series in risks.panels[0].series:
        group = series.name.split()[0]
        counted = (attacked.people["group"] == group).sum()
        assert sum(point.y for point in series.points) == pytest.approx(100)
        assert all(point.seeds == counted for point in series.points)
    assert levels.panels[0].series[0].points[0].x == "largest group"
    assert attacked.figure("people", tmp_path / "risk.svg").read_text().startswith("<?xml")
    with pytest.raises(InputError, match="the attack: no figure 'risk'"):
        attacked.figure("risk", tmp_path / "risk.svg")
    monkeypatch.setattr("fpbench.page.drawing.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install .*\[figures\]"):
        attacked.figure("people", tmp_path / "risk.svg")


def test_curves_are_those_of_a_board_that_is_shown_whole(run, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr("fpbench.cli.screen.results.make_curve_sheet", drawn.append)
    board = run.leaderboard(by="gain")
    for most in (1, None, len(board.lines)):
        show_leaderboard(board, most=most)
    assert drawn == [board, board]


def test_a_reproduction_of_a_part_says_which(toys):
    matrix = read(MATRIX, settings=["learner=*1", "auditor="])
    assert _describe_scale(matrix, 2) == (
        "Not the whole matrix: learner parrot number=1, auditor -."
    )


def test_a_number_that_rounds_to_nothing_has_no_sign():
    assert [format_number(x) for x in (-1e-17, -0.00006, 0.0)] == [".0000", "-.0001", ".0000"]


NAME = "a\x1b]0;t\x07\u202eb\x9b\u2028c\n| forged"
"""A name that would control a terminal, turn text around or begin a line of its own."""


@pytest.fixture
def named(tmp_path, toys):
    """Results of every class that shows itself, with such names wherever a name can be."""
    rng = np.random.default_rng(0)
    sex = rng.choice([NAME, "m"], 200)
    X = pd.DataFrame({NAME: rng.normal(sex == "m", 0.5), "age": rng.normal(size=200)})
    predictions = (X[NAME] > 0.5).to_numpy().astype(int)
    report = fpbench.FairnessReport.from_predictions(X, predictions, sex, by=[NAME], bins=2)
    title = {**MATRIX, "title": NAME, "seeds": 1}
    run = fpbench.run(title, out=tmp_path / f"run {NAME}")
    board = run.leaderboard()
    line = replace(board.lines[0], labels=dict.fromkeys(board.lines[0].labels, NAME))
    planned = fpbench.plan(MATRIX, out=run.path)
    attacked = fpbench.attack(predictions, X, predictions, sex, seeds=1)
    audited = fpbench.audit(predictions, None, sex, epsilon=1.0, rng=0)
    return [
        report, report.protect(min_group=60), replace(attacked, warnings=(NAME,)), audited,
        fpbench.assess(report, X, predictions, groups=sex, seconds=1.0),
        fpbench.audit(predictions, None, sex, resamples=0), replace(audited, metric=NAME),
        fpbench.auditing.individual_fairness(predictions, X, tau=0.1),
        run, run.read(), run.results(), replace(board, title=NAME, lines=(line,)), line, board.waterfall,
        replace(planned, skipped={NAME: 1}), run.leaderboards(),
        run.diff(run), fpbench.privacy.Curator(sex),
        RiskReport(pd.DataFrame({"on": [NAME], "risk_gap": [0.5]}),
                      pd.DataFrame({"on": [NAME], "group": [NAME], "risk": [0.5]}),
                      pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), {}),
    ]  # fmt: skip


NO_RESULTS = (
    "Allowed Attribute Case Check Clause ComponentWords Content DataHome Filter HiddenNumbers Limits "
    "Placebo Recount Sample Source StatedGuarantee Step Verdict _Table"
)
"""Classes that are parts of texts which others print, show no names, or show them by `repr`."""


@pytest.mark.slow
def test_what_a_result_shows_can_be_printed(named):
    (run,) = (result for result in named if isinstance(result, fpbench.Run))
    assert str(replace(run, path=run.path / NAME)).isprintable()  # an error, as there is no run
    for result in named:
        kind = type(result).__name__
        for shown in (str(result), repr(result), getattr(result, "_repr_html_", str)()):
            assert all(line.isprintable() for line in shown.split("\n")), (kind, shown)
        assert "\n| forged" not in f"{result}{result!r}", kind
    tested = {own.__name__ for result in named for own in type(result).__mro__}
    showing = {
        node.name
        for path in Path(fpbench.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and {"__str__", "__repr__", "_repr_html_"} & {
            part.name for part in node.body if isinstance(part, ast.FunctionDef)
        }
    }  # fmt: skip
    assert " ".join(sorted(showing - tested)) == NO_RESULTS
