"""A site of runs and submissions: honest, forged, of a stranger who writes HTML; in a browser."""

import json
import re
import shutil
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import list_requests, needs_browser, set_width, start_chromium
from malformed import command
from strangers import look
from submissions import HOSTILE, MATRIX, QUICK, UNRUN, copy, forge, make_key

import fpbench
from fpbench import InputError, Status, StoreError
from fpbench.report.embedding import unpack
from fpbench.report.site import entrants as entrants_of_site
from fpbench.report.site import pages as pages_of_site
from fpbench.report.site.building import build_site
from fpbench.report.site.entrants import make_names
from fpbench.report.site.html import make_element, make_table
from fpbench.store.store import Store
from fpbench.testing.submissions.folder import make_submission
from fpbench.testing.submissions.manifest import compute_manifest, write_manifest
from fpbench.testing.submissions.signing import sign


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An honest run, its submission, one with other numbers, one that is damaged."""
    place = tmp_path_factory.mktemp("place")
    run = fpbench.run(MATRIX, out=place / "honest").path
    make_submission(run, place / "sent")
    forged = copy(place / "sent", place / "forged")
    forge(forged / "run", with_accuracy=0.2)
    (forged / "manifest.txt").write_text(write_manifest(compute_manifest(forged)))
    damaged = copy(place / "sent", place / "Damaged <b>")
    (damaged / "run" / "store.sqlite").write_bytes(b"no store")
    return place


@pytest.fixture(scope="module")
def site(place):
    """The site of all of them."""
    runs = [place / name for name in ("honest", "sent", "forged", "Damaged <b>")]
    return build_site(runs, place / "site", QUICK, title="Who & what")


def read(site, page):
    return (site.directory / page).read_text(encoding="utf-8")


class Elements(HTMLParser):
    """The tags of a page, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links |= {value for name, value in attributes if name in ("href", "src")}
        self.ids |= {value for name, value in attributes if name == "id"}


def pages(site):
    return {
        path.relative_to(site.directory).as_posix(): Elements(path.read_text(encoding="utf-8"))
        for path in site.directory.rglob("*.html")
    }


@pytest.mark.slow
def test_what_is_not_verified_is_shown_as_such_and_has_no_rank(site):
    assert [entrant.verified for entrant in site.entrants] == [True, True, False, False]
    assert re.search(r"4 submissions, 2 verified", read(site, "index.html"))
    reasons = [entrant.reason for entrant in site.entrants]
    assert " differs in with_accuracy" in reasons[2]
    assert reasons[3] == "manifest: files differ from manifest.txt: changed: run/store.sqlite"
    (section,) = [each for each in site.sections if each.task.name == "attacks"]
    runs = [(entry.run, entry.rank) for entry in section.entries]
    assert sorted(runs[:4]) == [(0, 1), (0, 1), (1, 1), (1, 1)]
    assert runs[4:] == [(2, None), (2, None)]  # last, though it claims to be the strongest
    claimed = [entry.measures["with_accuracy"].mean for entry in section.entries]
    assert min(claimed[4:]) > max(claimed[:4])
    rows = re.findall(r"<tr[^>]*>.*?</tr>", read(site, "attacks.html"))
    forged = [row for row in rows if "forged.html" in row]
    assert len(forged) == 2
    assert all("not verified" in row and 'class="doubtful"' in row for row in forged)
    assert "not verified" in read(site, "submissions/damaged-b.html")
    assert "not a database" in read(site, "submissions/damaged-b.html")


@pytest.mark.slow
def test_components_have_a_card_and_are_not_what_their_labels_say(site):
    card = read(site, "components/adversary-prior.html")
    component = fpbench.discover().component("adversary", "prior")
    for words in (component.summary, "fpbench-toolkit", "Its numbers", "submissions/honest.html"):
        assert words in card
    paper = fpbench.discover().component("disclosure", "published").reference
    assert f"<dt>paper</dt><dd>{escape(paper)}</dd>" in read(
        site, "components/disclosure-published.html"
    )
    entries = [entry for section in site.sections for entry in section.entries]
    assert {entry.components.get("adversary") for entry in entries} == {
        "majority", "prior", None
    }  # fmt: skip
    assert "the best of all" not in read(site, "attacks.html")


def test_a_submission_shows_where_it_comes_from(site, place):
    page = read(site, "submissions/sent.html")
    for name in ("manifest", "signature", "run", "seeds", "lock", "limits", "data", "components",
                 "recomputation"):  # fmt: skip
        assert f">{name}<" in page
    recorded = json.loads((place / "honest" / "environment.json").read_text())
    for words in (recorded["platform"], f"numpy {recorded['packages']['numpy']}"):
        assert words in page
    assert "1 of 1 cells run again are the same to the last bit" in page
    assert not [name for name in pages(site) if str(place) in read(site, name)]


@pytest.fixture(scope="module")
def own_files(place):
    """A run about a table of one's own, with its path in labels, and a list of signers."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(18, 80, 200), "sex": rng.choice(["f", "m"], 200)})
    people.assign(paid=rng.integers(0, 2, 200)).to_csv(place / "people.csv", index=False)
    table = {"use": "csv", "path": str(place / "people.csv"), "label_column": "paid",
             "sensitive": "sex"}  # fmt: skip
    matrix = {**MATRIX, "dataset": [table], "seeds": 2,
              "title": f"What lies in {place / 'people.csv'}"}  # fmt: skip
    (place / "signers").write_text("somebody ssh-ed25519 AAAA\n")
    return fpbench.run(matrix, out=place / "own").path


def test_no_page_publishes_a_path_of_this_machine(own_files, place):
    make_submission(own_files, place / "own-sent")
    (place / "own-sent" / "manifest.txt.sig").write_text("no signature\n")
    options = replace(QUICK, signers=place / "signers")
    built = build_site([own_files, place / "own-sent"], place / "own-site", options)
    places = (str(place), str(place.parent), str(Path.home()) + "/")
    texts = {name: (built.directory / name).read_text() for name in (*pages(built), "site.json")}
    report = (fpbench.load(own_files).report(place / "own.html")).read_text()
    data = re.search(r'id="data"[^>]*>([^<]*)<', report)
    texts["report.html"] = report + json.dumps(unpack(data[1]), ensure_ascii=False)
    assert not [name for name, text in texts.items() if any(where in text for where in places)]
    assert "people.csv" in texts["submissions/own.html"]
    assert "people.csv" in texts["report.html"]
    assert "signers" in texts["index.html"]


def test_no_text_of_a_stranger_becomes_an_element_and_every_link_leads_somewhere(site):
    """Title, labels and folder are HTML; no page asks for anything, or runs anything."""
    allowed = {
        "html", "head", "meta", "link", "title", "style", "body", "a", "header", "p", "nav", "ul",
        "li", "h1", "h2", "h3", "main", "span", "table", "caption", "thead", "tbody", "tr", "th",
        "td", "dl", "dt", "dd", "code", "pre",
    }  # fmt: skip
    made = pages(site)
    assert any(HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in read(site, p) for p in made)
    for name, page in made.items():
        assert page.tags <= allowed, name
        assert "default-src 'none'" in read(site, name)
        for link in page.links - {"data:,"}:
            path, _, anchor = link.partition("#")
            target = (site.directory / name).parent / path
            key = (
                target.resolve().relative_to(site.directory.resolve()).as_posix() if path else name
            )
            assert key in made, (name, link)
            assert not anchor or anchor in made[key].ids, (name, link)


def test_programs_read_it_too_and_it_is_built_again_quickly(site, place, monkeypatch):
    record = json.loads(read(site, "site.json"))
    assert [each["verified"] for each in record["submissions"]] == [True, True, False, False]
    before = {each: read(site, each) for each in record["pages"]}
    monkeypatch.setattr(
        "fpbench.testing.submissions.checking.recompute", None
    )  # nobody may call it
    runs = [place / name for name in ("honest", "sent", "forged", "Damaged <b>")]
    build_site(runs, site.directory, QUICK, title="Who & what")
    assert {each: read(site, each) for each in record["pages"]} == before
    with pytest.raises(TypeError, match="not callable"):
        build_site(runs[:1], place / "other", QUICK)
    with pytest.raises(TypeError, match="not callable"):
        build_site(runs[:1], site.directory, QUICK, again=True)
    with pytest.raises(TypeError, match="not callable"):  # other options are another check
        build_site(runs[:1], site.directory, replace(QUICK, sample=2))


def test_a_check_is_made_again_if_only_the_signature_has_changed(place, tmp_path):
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen: apt-get install openssh-client")
    key, public = make_key(tmp_path)
    (tmp_path / "signers").write_text(f"ada@example.org {public}\n")
    options = replace(UNRUN, signers=tmp_path / "signers")
    sent = copy(place / "sent", tmp_path / "sent")

    def check_signature():
        (entrant,) = build_site([sent], tmp_path / "site", options).entrants
        return next(
            str(each.outcome) for each in entrant.checkup.findings if each[0] == "signature"
        )

    assert check_signature() == "failed"
    sign(sent, key)
    assert check_signature() == "passed"
    (sent / "manifest.txt.sig").unlink()
    assert check_signature() == "failed"


def test_the_greatest_numbers_that_a_store_can_hold_are_shown(place, tmp_path):
    run = copy(place / "honest", tmp_path / "run")
    forge(run, with_accuracy=1e307, leak=-1e307)
    site = build_site([run], tmp_path / "site", UNRUN)
    assert "not verified" in read(site, "submissions/run.html")


def test_pages_of_what_has_gone_are_removed_and_nothing_else(site, place, tmp_path):
    directory = shutil.copytree(site.directory, tmp_path / "site")
    record = json.loads((directory / "site.json").read_text())
    record["pages"] += ["../../precious.html", "precious.txt"]
    (directory / "site.json").write_text(json.dumps(record))
    (tmp_path.parent / "precious.html").write_text("mine")
    (directory / "precious.txt").write_text("mine")
    build_site([place / "honest"], directory, UNRUN)
    assert not (directory / "submissions" / "forged.html").exists()
    assert (directory / "submissions" / "honest.html").exists()
    assert (tmp_path.parent / "precious.html").exists()
    assert (directory / "precious.txt").exists()


def test_a_folder_that_is_no_site_is_left_alone(place, tmp_path):
    (tmp_path / "thesis.html").write_text("mine")
    before = look(tmp_path)
    with pytest.raises(
        InputError, match="is not a site of fpbench .* name a new directory with -o"
    ):
        build_site([place / "honest"], tmp_path, UNRUN)
    assert look(tmp_path) == before
    with pytest.raises(StoreError, match="neither a run directory"):
        build_site([tmp_path], tmp_path / "site", UNRUN)
    before = look(place / "sent")
    with pytest.raises(
        InputError, match="is in .*sent, which is only read; name another directory"
    ):
        build_site([place / "sent"], place / "sent" / "run" / "site", UNRUN)
    assert look(place / "sent") == before


def test_the_command_says_what_is_verified(place, tmp_path):
    honest, forged, out = place / "honest", place / "forged", tmp_path / "site"
    before = look(honest, forged)
    said = command("site", str(honest), str(forged), "-o", str(out), "--sample", "0")
    assert said.code == 0, said
    assert said.output.splitlines()[:2] == [
        f"not verified: {honest}: recomputation: no cell was run again",
        f"not verified: {forged}: recomputation: no cell was run again",
    ]
    assert f"site: {out / 'index.html'} (" in said.output
    assert look(honest, forged) == before
    assert "nothing is ranked" in (out / "attacks.html").read_text()


@pytest.mark.parametrize(
    "matrix",
    ["", "[]", "[1, 2, 3]", '[{}, {"learner": [[["x"], "plain", 3]]}, []]', "[" * 3000,
     '[{"train": {}}, {"adversary": [["a2", "the best of all", "text"], [1, 2, 3]]}, []]'],
)  # fmt: skip
def test_whatever_a_store_says_of_its_matrix_it_is_shown(matrix, place, tmp_path):
    run = copy(place / "honest", tmp_path / "run")
    with Store(run, create=True) as store, store.writing():
        store._open.execute("UPDATE about SET value = ? WHERE name = 'matrix'", (matrix,))
        store._open.execute("UPDATE about SET value = 'nothing' WHERE name = 'rank_by'")
        store._open.execute("UPDATE about SET value = ' ' WHERE name = 'title'")
    site = build_site([run], tmp_path / "site", UNRUN)
    assert site.entrants[0].title == "run"
    assert not site.entrants[0].verified
    assert "not verified" in read(site, "submissions/run.html")


# Floods


def flood(run, kind, count):
    """Add combinations that differ in a component of a kind, as often as there are cells to have.

    Each has the numbers of the first cell; the matrix does not have them.
    """
    with Store(run, create=True) as store:
        cells = list(store.cells())
        measures = next(store.records()).measures
        more = [
            replace(cells[0], key=f"{kind} {i}", labels={**cells[0].labels, kind: f"x{i}"})
            for i in range(count)
        ]
        with store.writing():
            store.plan({}, [*cells, *more])
        session = store.sessions()[-1].number
        for cell in more:
            store.add(session, cell.key, Status.DONE, 1.0, measures)
    (run / "store.lock").unlink()


def test_a_flood_of_boards_drowns_none_that_is_verified(place, tmp_path, monkeypatch):
    monkeypatch.setattr(pages_of_site, "_FEW_BOARDS", 2)
    monkeypatch.setattr(pages_of_site, "_MOST_BOARDS", 3)
    monkeypatch.setattr(pages_of_site, "_MOST_ROWS", 1)
    monkeypatch.setattr(pages_of_site, "_MOST_SESSIONS", 1)
    flooding = copy(place / "honest", tmp_path / "flooding")
    flood(flooding, "learner", 5)
    flood(flooding, "adversary", 5)
    with Store(flooding, create=True) as store, store.writing():
        store.add_session(0.0, {"python": "0"})
        store.add_session(1e9, {"python": "1"})
    site = build_site([flooding, place / "honest"], tmp_path / "site", QUICK)
    assert [entrant.verified for entrant in site.entrants] == [False, True]
    assert len([each for each in site.sections if each.task.name == "attacks"]) == 6
    start, attacks = read(site, "index.html"), read(site, "attacks.html")
    boards = re.findall(r'attacks.html#board-\d"', start)
    assert len(boards) == 2
    assert "All 6 boards" in start
    assert start.index("submissions/honest.html") < start.index("no verified submission")
    assert attacks.count("<h2") == 3
    assert "3 more boards" in attacks
    assert "8 more rows" in attacks
    page = read(site, "submissions/flooding.html")
    assert '<p class="hint">4 more boards<' in page  # of 6 of attacks, and 1 of defences
    assert "2 more earlier sessions" in page
    assert "<dd>2001-09-09 01:46:40+00:00</dd>" in page
    assert "<dd>1970-01-01" not in page


def test_a_run_of_too_many_combinations_is_not_ranked(place, tmp_path, monkeypatch):
    monkeypatch.setattr(entrants_of_site, "_MOST_COMBINATIONS", 1)
    site = build_site([place / "honest"], tmp_path / "site", QUICK)
    reason = "honest: combines components in 2 ways, and a site shows runs of at most 1"
    assert [entrant.reason for entrant in site.entrants] == [reason]
    assert not site.sections
    assert reason in read(site, "submissions/honest.html")


def test_a_component_that_is_not_installed_has_no_page(place, tmp_path):
    run = copy(place / "honest", tmp_path / "run")
    axes = {"learner": [[f"x{i}", f"x{i}", {}] for i in range(9)] + [["plain", "plain", {}]]}
    with Store(run, create=True) as store, store.writing():
        matrix = json.dumps([{}, axes, []])
        store._open.execute("UPDATE about SET value = ? WHERE name = 'matrix'", (matrix,))
    build = build_site([run], tmp_path / "site", UNRUN)
    assert [name for name in pages(build) if name.startswith("components/")] == [
        "components/learner-plain.html"
    ]


# Pages


def test_names_of_pages_are_plain_and_no_two_alike():
    names = make_names(["A b", "a-b", "../../etc", "\u202e", "", "x" * 999])
    assert names == ["a-b", "a-b-2", "etc", "unnamed", "unnamed-2", "x" * 60]


def test_what_is_no_element_is_escaped():
    assert make_element("p", "<b>", make_element("i", "\x1b"), class_='"') == (
        '<p class="&quot;">&lt;b&gt;<i>\\x1b</i></p>'
    )
    assert "<td" in make_table("<", ["<"], [(["<script>"], "<")])
    assert "<script>" not in make_table("<", ["<"], [(["<script>"], "<")])


# In a browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with start_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.mark.slow
@needs_browser
def test_it_is_read_in_a_browser_on_a_phone_and_in_the_dark(site, chromium):
    start = (site.directory / "index.html").as_uri()
    for width in (1280, 390):
        set_width(chromium, width)
        for name in pages(site):
            chromium.get((site.directory / name).as_uri())
            wide = chromium.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, (name, wide)
    asked = list_requests(chromium)
    assert len(asked) >= 2 * len(pages(site))
    assert all(url.startswith(site.directory.as_uri()) for url in asked)
    chromium.get(start)
    cell = chromium.find_element("css selector", "#attacks ~ table td[data-name=best]")
    before = chromium.execute_script(
        "return getComputedStyle(arguments[0], '::before').content", cell
    )
    assert before == '"best"'  # a card names its values
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 26)")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        body = chromium.find_element("tag name", "body")
        shown = chromium.execute_script(
            "return getComputedStyle(arguments[0]).backgroundColor", body
        )
        assert shown == colour
    set_width(chromium, 1280)
    chromium.find_element("link text", "Attacks").click()
    assert chromium.title == "Strongest attack · Who & what"
    chromium.find_element("link text", "forged").click()
    assert "not verified" in chromium.find_element("css selector", "main .lead").text
    assert chromium.get_log("browser") == []
