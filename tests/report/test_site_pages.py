"""The pages of a site, word by word, of runs that nobody has to make."""

import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from fpbench.matrix.limits import Limits
from fpbench.report.site import entrants as entrants_of_site
from fpbench.report.site.building import _describe_entrant, _describe_section
from fpbench.report.site.entrants import Entrant, describe_checks, write_time
from fpbench.report.site.html import join, make_element, make_page, make_table
from fpbench.report.site.pages import Contents
from fpbench.results.across_runs import TASKS, BoardEntry, rank_across
from fpbench.results.statistics.intervals import Interval
from fpbench.testing.submissions.checking import CheckOptions, CheckOutcome, Checkup, Finding
from fpbench.testing.submissions.folder import Submission

ATTACKS, DEFENCES = 0, 1
PASSED = Finding("recomputation", CheckOutcome.PASSED, "3 of 3 cells")
FAILED = Finding("manifest", CheckOutcome.FAILED, "files differ")


def entrant(name, *findings, problem=""):
    submission = Submission(Path(name), Path(name))
    return Entrant(name, f"{name}'s", Checkup(submission, findings, 3), "0" * 64, problem=problem)


def entry(name, mean, *, count=5, **means):
    """An entry that 95 % intervals put 1.24 points to each side, of five seeds."""
    measures = {
        each: Interval(value, None if count == 1 else 0.01, None, None, count)
        for each, value in {"with_accuracy": mean, "advantage": mean, **means}.items()
    }
    return BoardEntry({"learner": name}, (("learner", name),), measures, count)


def write(task, *runs):
    """A board of runs, and the pages of a site of nothing else."""
    shared = (("data set", "adult"), ("attacks", "a1; a2"))
    sections = rank_across([
        ([((task, shared), each) for each in mine], verified) for mine, verified in runs
    ])  # fmt: skip
    named = [entrant(f"run-{i}", PASSED if verified else FAILED)
             for i, (_, verified) in enumerate(runs)]  # fmt: skip
    return sections, Contents("The site", named, sections, {}).write_pages()


def list_rows(text, caption):
    """The rows of a table: the class of each, and the text of its cells."""
    body = re.search(f"<caption>{caption}</caption>.*?<tbody[^>]*>(.*?)</tbody>", text, re.DOTALL)[
        1
    ]
    rows = re.findall(r"<tr([^>]*)>(.*?)</tr>", body, re.DOTALL)
    return [
        ("doubtful" in kind, [unescape(re.sub("<[^>]*>", "", cell)).strip()
                              for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)])
        for kind, row in rows
    ]  # fmt: skip


def write_attacks():
    strong = [entry("strong", 0.8, majority_accuracy=0.6, leak=0.1), entry("near", 0.79)]
    weak = [entry("weak", 0.7), entry("once", 0.9, count=1)]
    return write(ATTACKS, (strong, True), (weak, True), ([entry("liar", 0.99)], False))


def test_the_rows_of_a_board():
    _, pages = write_attacks()
    assert list_rows(pages["attacks.html"], "Strongest attack") == [
        (False, ["1", "-", "-", "60.0", "80.0", "+10.00", "78.8 to 81.2", "5", "run-0 verified"]),
        (False, ["1", "-", "-", "-", "79.0", "-", "77.8 to 80.2", "5", "run-0 verified"]),
        (False, ["3", "-", "-", "-", "70.0", "-", "68.8 to 71.2", "5", "run-1 verified"]),
        (False, ["-", "-", "-", "-", "90.0", "-", "-", "1", "run-1 verified"]),
        (True, ["-", "-", "-", "-", "99.0", "-", "97.8 to 100.0", "5", "run-2 not verified"]),
    ]


def test_what_a_board_says():
    _, pages = write_attacks()
    said = (
        "Of 3 that are ranked, strong names 80.0 % of people's groups right (95 %: 78.8 to 81.2). "
        "Naming the largest group is right for 60.0 %. "
        "1 other does not differ significantly from it."
    )
    text = unescape(pages["attacks.html"]).replace("\N{NO-BREAK SPACE}", " ")
    assert f"<p>{said}</p>" in text
    assert "Entries have different numbers of seeds, 1 to 5." in text
    assert ">adult, 2 attacks</h2>" in text
    ((_, cells),) = list_rows(pages["index.html"], "Strongest attack: the best of each board")
    assert cells == ["adult, 2 attacks", "strong and 1 not significantly different from it", "80.0",
                     "78.8 to 81.2", "run-0 verified"]  # fmt: skip
    _, pages = write(ATTACKS, ([entry("strong", 0.8)], True))
    text = unescape(pages["attacks.html"]).replace("\N{NO-BREAK SPACE}", " ")
    assert "<p>strong names 80.0 % of people's groups right (95 %: 78.8 to 81.2).</p>" in text
    assert "different numbers of seeds" not in text


def test_the_front_stands_beside_ranks():
    mine = [entry("a", 0.1, test_accuracy=0.8), entry("b", 0.2, test_accuracy=0.7)]
    sections, pages = write(DEFENCES, (mine, True))
    rows = list_rows(pages["defences.html"], "Best defence")
    assert [(cells[1], cells[-3]) for _, cells in rows] == [("a", "front"), ("b", "-")]
    board = _describe_section(sections[0], [entrant("run", PASSED)])
    assert [(each["rank"], each["front"]) for each in board["entries"]] == [(1, True), (2, False)]


def test_submissions_are_listed_with_what_is_wrong():
    _, pages = write_attacks()
    rows = list_rows(pages["index.html"], "Submissions")
    assert [(doubtful, cells[0], cells[-1]) for doubtful, cells in rows] == [
        (False, "run-0", "verified"), (False, "run-1", "verified"),
        (True, "run-2", "not verified manifest: files differ"),
    ]  # fmt: skip


def test_what_cannot_be_ranked_is_not_verified():
    lost = entrant("lost", PASSED, problem="no rows")
    assert not lost.verified
    assert lost.reason == "no rows"
    assert entrant("lost", FAILED, problem="no rows").reason == "manifest: files differ"
    told = [(each["verified"], each["reason"])
            for each in map(_describe_entrant, (entrant("fine", PASSED), lost))]  # fmt: skip
    assert told == [(True, ""), (False, "no rows")]


def test_numbers_that_json_has_no_word_for_are_nothing():
    sections, _ = write(ATTACKS, ([entry("a", 0.8, leak=math.inf)], True))
    (told,) = _describe_section(sections[0], [entrant("run", PASSED)])["entries"]
    assert told["means"] == {"with_accuracy": 0.8, "advantage": 0.8, "leak": None}
    assert TASKS[ATTACKS].name == "attacks"


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e300, -1e300])
def test_no_time_is_none(seconds):
    assert write_time(seconds) == ""
    assert write_time(0.0) == "1970-01-01 00:00:00+00:00"


def test_all_that_decides_a_check_makes_it_another(tmp_path, monkeypatch):
    """But for who draws the sample, and how many draw it."""
    plain = CheckOptions()
    (tmp_path / "signers").write_text("a")
    signed = replace(plain, signers=tmp_path / "signers")
    others = [replace(plain, sample=1), replace(plain, limits=Limits(timeout=1.0)), signed]
    told = [describe_checks(each) for each in (plain, *others)]
    assert describe_checks(replace(plain, seed=1, jobs=2)) == told[0]
    (tmp_path / "signers").write_text("b")
    told.append(describe_checks(signed))
    monkeypatch.setattr(entrants_of_site, "describe_environment", lambda data, catalog: {})
    told.append(describe_checks(plain))
    monkeypatch.setattr(entrants_of_site, "__version__", "9")
    told.append(describe_checks(plain))
    assert len(set(told)) == len(told) == 7


def test_elements_of_pages():
    assert make_element("p", "x" * 20_001) == f"<p>{'x' * 20_000} ... (1 more letters)</p>"
    assert join(["a", make_element("i"), None, "b"], "<") == "a&lt;<i></i>&lt;b"
    shown = make_table("all", ["name", "mean"], [(["a", "1"], None)], ["mean"])
    assert re.findall(r'class="number" data-name="(\w+)"', shown) == ["mean"]
    assert '<th scope="col" role="columnheader" class="number">mean</th>' in shown
    assert "<title>Home</title>" in make_page("Home", "Home", "")
    assert "<title>Card · Home</title>" in make_page("Card", "Home", "../")
    assert 'href="../attacks.html"' in make_page("Card", "Home", "../")
