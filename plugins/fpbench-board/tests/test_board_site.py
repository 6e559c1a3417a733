"""The site of several runs: honest, forged, of a stranger who writes HTML; in a browser."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from fpbench_board import site as site_module
from fpbench_board.commands import app
from fpbench_board.site import build_site, make_names
from typer.testing import CliRunner

import fpbench
from fpbench import InputError
from fpbench.errors import StoreError


@pytest.fixture(scope="module")
def place(run, hands, tmp_path_factory):
    """An honest run, a copy, one with other numbers, one that is damaged."""
    place = tmp_path_factory.mktemp("place")
    hands.copy(run, place / "honest")
    hands.copy(run, place / "sent")
    forged = hands.copy(run, place / "forged")
    hands.forge(forged, "with_accuracy", 0.2)
    damaged = hands.copy(run, place / "Damaged <b>")
    (damaged / "store.sqlite").write_bytes(b"no store")
    return place


NAMES = ("honest", "sent", "forged", "Damaged <b>")


@pytest.fixture(scope="module")
def site(place, quick):
    """The site of all of them."""
    runs = [place / name for name in NAMES]
    return build_site(runs, place / "site", quick, title="Who & what")


def read(site, page):
    return (site.directory / page).read_text(encoding="utf-8")


class Elements(HTMLParser):
    """The tags of a page, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.styled = set(), set(), set(), False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links |= {value for name, value in attributes if name in ("href", "src")}
        self.ids |= {value for name, value in attributes if name == "id"}
        self.styled |= any(name == "style" or name.startswith("on") for name, _ in attributes)


def pages(site):
    return {
        path.relative_to(site.directory).as_posix(): Elements(path.read_text(encoding="utf-8"))
        for path in site.directory.rglob("*.html")
    }


def test_what_is_not_verified_is_shown_as_such_and_has_no_rank(site):
    assert [entrant.verified for entrant in site.entrants] == [True, True, False, False]
    assert "4 submissions, 2 verified" in read(site, "index.html")
    reasons = [entrant.reason for entrant in site.entrants]
    assert " differs in with_accuracy" in reasons[2]
    assert reasons[3].startswith("run: Damaged <b>")
    (section,) = [each for each in site.sections if each.task.name == "attacks"]
    runs = [(entry.run, entry.rank) for entry in section.entries]
    assert sorted(runs[:4]) == [(0, 1), (0, 1), (1, 1), (1, 1)]
    assert runs[4:] == [(2, None), (2, None)]  # last, though it claims to be the strongest
    claimed = [entry.measures["with_accuracy"].mean for entry in section.entries]
    assert min(claimed[4:]) > max(claimed[:4])
    rows = re.findall(r"<tr[^>]*>.*?</tr>", read(site, "attacks.html"), re.S)
    forged = [row for row in rows if "forged.html" in row]
    assert len(forged) == 2
    assert all("not verified" in row and 'class="doubtful"' in row for row in forged)
    assert "not verified" in read(site, "submissions/damaged-b.html")
    assert "not a database" in read(site, "submissions/damaged-b.html")


def test_components_have_a_card_and_are_not_what_their_labels_say(site):
    card = read(site, "components/adversary-prior.html")
    component = fpbench.plugin.discover().component("adversary", "prior")
    for words in (component.summary, "fpbench-toolkit", "Its numbers", "submissions/honest.html"):
        assert words in card
    paper = fpbench.plugin.discover().component("disclosure", "published").reference
    assert f"<dt>paper</dt><dd>{escape(paper)}</dd>" in read(
        site, "components/disclosure-published.html"
    )
    entries = [entry for section in site.sections for entry in section.entries]
    names = {entry.components.get("adversary") for entry in entries}
    assert names == {"majority", "prior", None}
    assert "the best of all" not in read(site, "attacks.html")


def test_a_submission_shows_how_it_was_checked_and_what_it_measured(site, place, hands):
    page = read(site, "submissions/sent.html")
    for name in ("run", "seeds", "data", "components", "recomputation"):
        assert f">{name}<" in page
    assert "1 of 1 cells run again are the same to the last bit" in page
    assert "All that it measured" in page and "the best of all" in page
    assert "<h2>Its matrix</h2>" in page and page.count("census-synthetic") >= 4
    assert not [name for name in pages(site) if str(place) in read(site, name)]


def test_no_text_of_a_stranger_becomes_an_element_and_every_link_leads_somewhere(site, hands):
    """Title, labels and folder are HTML; no page asks for anything, or runs anything."""
    allowed = {
        "html", "head", "meta", "link", "title", "style", "body", "a", "header", "p", "nav", "ul",
        "li", "h1", "h2", "h3", "main", "span", "table", "caption", "thead", "tbody", "tr", "th",
        "td", "dl", "dt", "dd", "code", "pre", "div", "strong", "br",
    }  # fmt: skip
    made = pages(site)
    assert any(
        hands.hostile.replace("<", "&lt;").replace(">", "&gt;") in read(site, p) for p in made
    )
    for name, page in made.items():
        assert page.tags <= allowed, name
        assert not page.styled, name
        assert "default-src 'none'" in read(site, name)
        for link in page.links - {"data:,"}:
            path, _, anchor = link.partition("#")
            target = (site.directory / name).parent / path
            key = (
                target.resolve().relative_to(site.directory.resolve()).as_posix() if path else name
            )
            assert key in made, (name, link)
            assert not anchor or anchor in made[key].ids, (name, link)


def test_no_page_publishes_a_path_of_this_machine(hands, unrun, tmp_path):
    """A run about a table of one's own, with its path in parameters and in the title."""
    file = tmp_path / "people.csv"
    rows = [f"{i % 2},{(i // 2) % 2},{i % 7}" for i in range(200)]
    file.write_text("\n".join(["sex,paid,x", *rows, ""]))
    table = {"use": "csv", "path": str(file), "label_column": "paid", "sensitive": "sex"}
    matrix = {**hands.matrix, "dataset": [table], "title": f"What lies in {file}"}
    own = fpbench.run(matrix, out=tmp_path / "own").path
    site = build_site([own], tmp_path / "site", unrun)
    texts = {name: read(site, name) for name in (*pages(site), "site.json")}
    places = (str(tmp_path), str(Path.home()) + "/")
    assert not [name for name, text in texts.items() if any(where in text for where in places)]
    assert "people.csv" in texts["submissions/own.html"]


def test_programs_read_it_too_and_it_is_built_again_quickly(site, place, quick, monkeypatch):
    record = json.loads(read(site, "site.json"))
    assert [each["verified"] for each in record["submissions"]] == [True, True, False, False]
    before = {each: read(site, each) for each in record["pages"]}

    def refuse(*args, **kwargs):
        raise AssertionError("it was run again")

    monkeypatch.setattr(fpbench.Run, "verify", refuse)
    runs = [place / name for name in NAMES]
    build_site(runs, site.directory, quick, title="Who & what")
    assert {each: read(site, each) for each in record["pages"]} == before
    others = ({"again": True}, {"options": replace(quick, sample=2)})
    for other in others:  # other options are another check
        with pytest.raises(AssertionError, match="it was run again"):
            build_site(runs[:1], site.directory, **{"options": quick, **other})
    with pytest.raises(AssertionError, match="it was run again"):
        build_site(runs[:1], place / "other", quick)


def test_whoever_changes_a_run_is_checked_again(place, hands, unrun, quick, tmp_path):
    sent = hands.copy(place / "honest", tmp_path / "sent")
    (before,) = build_site([sent], tmp_path / "site", quick).entrants
    hands.forge(sent, "with_accuracy", 0.2)
    (after,) = build_site([sent], tmp_path / "site", quick).entrants
    assert (before.verified, after.verified) == (True, False)
    assert before.seal != after.seal
    (sent / "link").symlink_to(tmp_path)
    (linked,) = build_site([sent], tmp_path / "site", unrun).entrants
    assert linked.seal == ""  # never taken for the run of an earlier build


def test_pages_of_what_has_gone_are_removed_and_nothing_else(site, place, unrun, tmp_path):
    directory = Path(shutil.copytree(site.directory, tmp_path / "site"))
    record = json.loads((directory / "site.json").read_text())
    record["pages"] += ["../../precious.html", "precious.txt"]
    (directory / "site.json").write_text(json.dumps(record))
    (tmp_path.parent / "precious.html").write_text("mine")
    (directory / "precious.txt").write_text("mine")
    build_site([place / "honest"], directory, unrun)
    assert not (directory / "submissions" / "forged.html").exists()
    assert (directory / "submissions" / "honest.html").exists()
    assert (tmp_path.parent / "precious.html").exists()
    assert (directory / "precious.txt").exists()


def test_a_folder_that_is_no_site_is_left_alone(place, unrun, tmp_path):
    (tmp_path / "thesis.html").write_text("mine")
    with pytest.raises(InputError, match=r"is not a site of fpbench .* name a new directory with"):
        build_site([place / "honest"], tmp_path, unrun)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.html"]
    with pytest.raises(StoreError, match="is not a run directory"):
        build_site([tmp_path], tmp_path / "site", unrun)
    before = sorted((place / "sent").rglob("*"))
    with pytest.raises(InputError, match=r"is in .*sent, which is only read; name another"):
        build_site([place / "sent"], place / "sent" / "site", unrun)
    assert sorted((place / "sent").rglob("*")) == before


@pytest.mark.parametrize(
    "matrix",
    ["", "[]", "[1, 2, 3]", '[{}, {"learner": [[["x"], "plain", 3]]}, []]', "[" * 3000,
     '[{"train": {}}, {"adversary": [["a2", "the best of all", "text"], [1, 2, 3]]}, []]'],
)  # fmt: skip
def test_whatever_a_store_says_of_its_matrix_it_is_shown(matrix, place, hands, unrun, tmp_path):
    run = hands.copy(place / "honest", tmp_path / "run")
    change = "UPDATE about SET value = ? WHERE name = ?"
    for name, value in (("matrix", matrix), ("rank_by", "nothing"), ("title", " ")):
        hands.edit(run, change, (value, name))
    site = build_site([run], tmp_path / "site", unrun)
    assert site.entrants[0].title == "run"
    assert not site.entrants[0].verified
    assert "not verified" in read(site, "submissions/run.html")


def test_a_flood_of_boards_drowns_none_that_is_verified(place, site, tmp_path, monkeypatch):
    """Boards with verified entries come first, and long pages say what they leave out."""
    monkeypatch.setattr(site_module, "_FEW_BOARDS", 2)
    monkeypatch.setattr(site_module, "_MOST", 3)
    (honest,) = [each for each in site.sections if each.task.name == "attacks"]
    doubted = [entry for entry in honest.entries if not entry.verified]
    flood = [type(honest)(honest.task, (("data set", f"x{i}"),), tuple(doubted)) for i in range(5)]
    made = site_module._write_pages("t", site.entrants, [*flood, honest], {})
    start, attacks = made["index.html"], made["attacks.html"]
    assert len(set(re.findall(r'attacks.html#board-\d"', start))) == 2
    assert "All 6 boards" in start
    assert start.index("submissions/honest.html") < start.index("no verified submission")
    assert attacks.count("<h2") == 3
    assert "3 more boards" in attacks and "3 more rows" in attacks


def test_a_run_of_too_many_combinations_is_not_ranked(place, quick, tmp_path, monkeypatch):
    monkeypatch.setattr(site_module, "_MOST_COMBINATIONS", 1)
    site = build_site([place / "honest"], tmp_path / "site", quick)
    reason = "honest: combines components in 2 ways, and a site shows runs of at most 1"
    assert [entrant.reason for entrant in site.entrants] == [reason]
    assert not site.sections
    assert reason in read(site, "submissions/honest.html")


def test_names_of_pages_are_plain_and_no_two_alike():
    names = make_names(["A b", "a-b", "../../etc", "\u202e", "", "x" * 999])
    assert names == ["a-b", "a-b-2", "etc", "unnamed", "unnamed-2", "x" * 60]


def test_texts_of_strangers_are_printable_and_of_limited_length():
    assert site_module._clean("a\x1b\u202e\nb") == "a\\x1b\\u202e\nb"
    assert site_module._clean("x" * 20_001).endswith("x ... (1 more letters)")


# The commands


def call(*words):
    """The command `board`, as fpbench runs it."""
    done = CliRunner().invoke(app, [*map(str, words)])
    return SimpleNamespace(
        code=done.exit_code, lines=done.output.splitlines(), error=done.exception
    )


def test_a_run_is_checked_by_a_command(place, tmp_path):
    record = tmp_path / "checks.json"
    done = call("check", place / "honest", "--sample", "1", "--seed", "0", "--json", record)
    assert (done.code, done.lines[0]) == (0, f"{place / 'honest'} passes")
    assert len(done.lines) == 7
    recorded = json.loads(record.read_text())
    assert recorded["passes"] and {each["outcome"] for each in recorded["checks"]} == {"passed"}
    done = call("check", place / "forged", "--sample", "0")
    reason = "recomputation: no cell was run again"
    assert (done.code, done.lines[0]) == (1, f"{place / 'forged'} does not pass: {reason}")
    assert isinstance(call("check", tmp_path).error, StoreError)
    over = place / "forged" / "store.sqlite"
    done = call("check", place / "forged", "--sample", "0", "--json", over)
    assert isinstance(done.error, InputError)


def test_a_site_is_built_by_a_command(place, tmp_path):
    honest, forged, out = place / "honest", place / "forged", tmp_path / "site"
    done = call("build", honest, forged, "-o", out, "--sample", "0")
    assert done.code == 0, done
    assert done.lines[:2] == [
        f"not verified: {honest}: recomputation: no cell was run again",
        f"not verified: {forged}: recomputation: no cell was run again",
    ]
    assert done.lines[2].startswith(f"site: {out / 'index.html'} (")
    assert "nothing is ranked" in (out / "attacks.html").read_text()


# In a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@contextmanager
def start_chromium(home):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-background-networking", f"--user-data-dir={home}"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The path of the driver is given, so that selenium looks for none to download.
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no browser here")
def test_it_is_read_in_a_browser_on_a_phone_and_in_the_dark(site, tmp_path):
    with start_chromium(tmp_path) as chromium:
        for width in (1280, 390):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            for name in pages(site):
                chromium.get((site.directory / name).as_uri())
                wide = chromium.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, (name, wide)
        events = [
            json.loads(each["message"])["message"] for each in chromium.get_log("performance")
        ]
        asked = [each["params"]["request"]["url"] for each in events
                 if each["method"] == "Network.requestWillBeSent"]  # fmt: skip
        asked = [url for url in asked if not url.startswith(("data:", "chrome"))]
        assert len(asked) >= 2 * len(pages(site))
        assert all(url.startswith(site.directory.as_uri()) for url in asked)
        chromium.get((site.directory / "index.html").as_uri())
        for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 26)")):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            body = chromium.find_element("tag name", "body")
            shown = chromium.execute_script(
                "return getComputedStyle(arguments[0]).backgroundColor", body
            )
            assert shown == colour
        chromium.get((site.directory / "attacks.html").as_uri())
        assert chromium.title == "Strongest attack · Who & what"
        assert chromium.get_log("browser") == []
