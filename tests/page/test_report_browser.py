"""The report in a browser: Debian's Chromium, without a network, driven by selenium."""

import csv
import json
import os
import re
import time
from pathlib import Path

import pytest
from browser import list_requests, needs_browser, set_width, start_chromium
from runs import HOSTILE
from strangers import drop_results

from fpbench.base.text import format_percent, format_points, format_points_above
from fpbench.page.writing import write_report
from fpbench.results.ranking import ON_FRONT, PARETO
from fpbench.store.store import Store

pytestmark = [needs_browser, pytest.mark.slow]
SECONDS = 90
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser with a profile of its own."""
    with start_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="session")
def file(real, tmp_path_factory):
    """The report of the real run."""
    return write_report(real, tmp_path_factory.mktemp("browser") / "report.html")


def wait(condition):
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it never happened")


class Page:
    """A report, open."""

    def __init__(self, driver, file, width=1280):
        self.driver = driver
        set_width(driver, width)
        driver.get_log("browser"), driver.get_log("performance")
        driver.get(file.as_uri())
        wait(lambda: self.js("return document.documentElement.dataset.ready === 'yes'"))

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def click(self, element):
        self.js("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", element)
        element.click()

    def texts(self, selector):
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].map((n) => n.textContent)",
            selector,
        )

    def column(self, table, title):
        """Texts of a column of a table, as far as it is drawn."""
        heads = [text.strip(" ▲▼") for text in self.texts(f"#{table} thead th")]
        return self.texts(f"#{table} tbody tr td:nth-child({heads.index(title) + 1})")

    def heading(self, table, title):
        heads = [text.strip(" ▲▼") for text in self.texts(f"#{table} thead th")]
        return self.all(f"#{table} thead th")[heads.index(title)]

    def requests(self):
        return list_requests(self.driver)

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def opened(chromium, file):
    """The report, open; nothing but itself may have been asked for, and nothing complained of."""
    made = Page(chromium, file)
    yield made
    assert made.requests() in ([file.as_uri()], [file.as_uri()] * 2)
    assert made.complaints() == []


def numbers(texts):
    return [float(text.replace(MINUS, "-")) for text in texts]


def test_the_leaderboard_is_that_of_the_run(opened, real):
    (board,) = real.leaderboards()
    lines = [*board.lines, board.reference]
    told = [text.replace("\xa0", " ") for text in opened.texts("#message .says details p")]
    assert told == list(board.sentences)
    things = [text.replace("\xa0", " ") for text in opened.texts("#message .says li")]
    assert things == [
        f"{thing.name}: {thing.verdict}: {thing.words}" for thing in board.findings.things
    ]
    heads = [text.strip(" ▲▼") for text in opened.texts("#board-0 thead th")]
    shown = ["baseline", "without", "with", "leak", "limit"]
    assert [head for head in heads if head in shown] == shown
    writes = {
        "without_accuracy": format_percent,
        "leak": format_points,
        "limit": format_points_above,
    }
    for name, write in writes.items():
        values = [line.measures.get(name) for line in lines]
        texts = [write(value.mean).replace("-", MINUS) if value else DASH for value in values]
        assert opened.column("board-0", board.glossary.heading(name)) == texts
    keys = [(line.rank, *(line.labels[kind] for kind in board.within)) for line in lines]
    ranks = [
        DASH if key[0] is None else f"={key[0]}" if keys.count(key) > 1 else str(key[0])
        for key in keys
    ]
    assert opened.column("board-0", "#") == ranks
    assert opened.column("board-0", "learner") == [line.labels["learner"] or DASH for line in lines]
    groups = dict.fromkeys(
        line.labels["learner"] for line in board.lines
    )  # ranks begin anew in each
    assert opened.texts("#board-0 tr.group") == [f"learner {name}" for name in groups] + [
        "no attack"
    ]
    ends = opened.column("board-0", "95 % of leak")
    low = next(line.measures["leak"].low for line in board.lines if "leak" in line.measures)
    assert ends[0].startswith(f"{format_points(low)} to ".replace("-", MINUS))
    assert "17 rows" in opened.one("#board-0 .count").text


def test_a_table_is_sorted_by_its_headings(opened):
    assert opened.all("#board-0 tr.group")
    heading = opened.heading("board-0", "without")
    assert heading.get_attribute("aria-sort") == "none"
    for state, ascending in (("descending", False), ("ascending", True)):
        opened.click(heading.find_element("css selector", "button"))
        assert heading.get_attribute("aria-sort") == state
        shown = numbers(opened.column("board-0", "without"))
        assert shown == sorted(shown, reverse=not ascending)
        assert len(set(shown)) > 1
        assert not opened.all("#board-0 tr.group")  # whose learners stand in a column again
        assert opened.heading("board-0", "learner").is_displayed()
    assert "sorted by without" in opened.one("#said").get_attribute("textContent")


def test_a_table_is_filtered_by_words_and_by_choice(opened):
    opened.js("document.querySelector('#board-0 .controls').open = true")
    search = opened.one("#board-0 input[type=search]")
    search.send_keys("tolerance=0.05 exact")
    wait(lambda: "4 of" not in (count := opened.one("#board-0 .count").text) and "of 17" in count)
    assert opened.one("#board-0 .count").text == "2 of 17 rows"
    assert set(opened.column("board-0", "learner")) == {"exponentiated-gradient tolerance=0.05"}
    search.clear()
    search.send_keys("no such thing")
    wait(lambda: opened.one("#board-0 .count").text == "0 of 17 rows")
    assert "Nothing matches" in opened.one("#board-0 tbody").text
    assert not opened.all("#board-0 tr.group")
    opened.js("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", search)
    wait(lambda: opened.one("#board-0 .count").text == "17 rows")
    opened.js(
        """const label = [...document.querySelectorAll('#board-0 .filters label')].find((l) => l.textContent.startsWith('adversary'));
        const select = label.querySelector('select');
        select.value = [...select.options].find((o) => o.text === arguments[0]).value;
        select.dispatchEvent(new Event('change'))""",
        HOSTILE,
    )
    assert set(opened.column("board-0", "adversary")) == {HOSTILE}  # text, and no image
    assert opened.one("#board-0 .count").text == "8 of 17 rows"
    assert not opened.all("td img, option img, h4 img, dialog img")


def test_a_number_is_one_click_from_where_it_comes_from(opened, real):
    (board,) = real.leaderboards()
    place, line = next(
        (i, line) for i, line in enumerate(board.lines) if "tolerance" in line.labels["learner"]
    )
    heads = [text.strip(" ▲▼") for text in opened.texts("#board-0 thead th")]
    cell = opened.all("#board-0 tbody tr.opens")[place].find_elements("css selector", "td")[
        heads.index("without")
    ]
    opened.click(cell)
    dialog = opened.one("dialog[open]")
    assert opened.js("return document.activeElement.id") == "details-title"
    for label in line.labels.values():
        assert label in opened.one("#details-title").text
    assert f"without: {100 * line.measures['without_accuracy'].mean:.2f}" in dialog.text
    (bits,) = (text for text in opened.texts("dialog tr") if text.startswith("disclosure bits"))
    assert re.match(r"disclosure bits\d\.\d\d\.\d\d\.\d to ", bits)  # mean, sd, interval
    assert "component exponentiated-gradient" in dialog.text
    assert "max_iter" in dialog.text
    assert "decision-tree (default)" in dialog.text
    assert opened.js("return location.hash").startswith("#combination=")
    opened.all("dialog button.link")[0].click()  # the first seed
    rows = [r for r in real.rows() if all(r[k] == v for k, v in line.labels.items())]
    text = opened.one("dialog").text
    assert rows[0]["cell"] in text
    assert repr(rows[0]["without_accuracy"]) in text  # to the last digit
    assert repr(rows[0]["seconds"]) in text
    assert "fpbench-toolkit 0." in text
    opened.driver.find_element("css selector", "dialog .top button").click()
    assert not opened.all("dialog[open]")
    assert opened.js("return location.hash") == ""


def test_the_keyboard_is_enough(opened):
    from selenium.webdriver import ActionChains, Keys

    ActionChains(opened.driver).send_keys(Keys.TAB).perform()
    assert opened.js("return document.activeElement.className") == "skip"
    opened.js("document.querySelector('#board-0 tbody button.open').focus()")
    ActionChains(opened.driver).send_keys(Keys.ENTER).perform()
    assert opened.all("dialog[open]")
    ActionChains(opened.driver).send_keys(Keys.ESCAPE).perform()
    wait(lambda: not opened.all("dialog[open]"))
    assert opened.js("return document.activeElement.matches('#board-0 tbody button.open')")


def test_figures_are_drawn_and_their_series_can_be_hidden(opened):
    assert [f.get_attribute("id") for f in opened.all("figure")] == [
        "figure-waterfall", "figure-accuracy", "figure-with_accuracy-tolerance",
    ]  # fmt: skip
    opened.js("document.querySelector('#figures details.rest').open = true")
    wait(lambda: len(opened.all("figure")) > 3)
    figures = opened.all("figure")
    assert [f.get_attribute("id") for f in figures] == [
        "figure-waterfall", "figure-accuracy",
        *(f"figure-{name}-{by}" for name in ("with_accuracy",) for by in ("tolerance", "by-learner", "by-adversary"))]  # fmt: skip
    opened.js("document.querySelector('#figure-waterfall').scrollIntoView({ behavior: 'instant' })")
    wait(lambda: len(opened.all("#figure-waterfall .plot .bars .point")) == 4)
    assert "each level is the best attack" in opened.one("#figure-waterfall figcaption").text
    opened.js("document.querySelector('#figure-accuracy').scrollIntoView({ behavior: 'instant' })")
    wait(lambda: opened.all("#figure-accuracy .plot .main-svg"))
    plots = len(opened.all(".plot"))  # the others follow by themselves
    wait(lambda: opened.js("return Number(document.documentElement.dataset.drawn)") == plots)
    lines = "#figure-accuracy .scatterlayer .trace"
    before = len(opened.all(lines))
    opened.all("#figure-accuracy .legend button")[0].click()
    wait(lambda: len(opened.all(lines)) < before)
    opened.all("#figure-accuracy .legend button")[0].click()
    wait(lambda: len(opened.all(lines)) == before)
    # Whatever is drawn can be read in a table, and followed from there.
    opened.js("document.querySelector('#figure-accuracy details').open = true")
    wait(lambda: opened.all("#numbers-accuracy tbody tr"))
    opened.js("document.querySelector('#numbers-accuracy tbody button').click()")
    assert opened.all("dialog[open]")


def test_a_point_of_a_figure_leads_to_where_it_comes_from(opened):
    opened.js("document.querySelector('#figures details.rest').open = true")
    wait(lambda: opened.all("#figure-with_accuracy-by-adversary"))
    opened.js(
        "document.querySelector('#figure-with_accuracy-by-adversary').scrollIntoView({ block: 'center', behavior: 'instant' })"
    )
    wait(lambda: opened.all("#figure-with_accuracy-by-adversary .main-svg .point"))
    from selenium.webdriver import ActionChains

    time.sleep(0.3)  # plotly listens a little later
    point = opened.all("#figure-with_accuracy-by-adversary .main-svg .point")[-1]
    ActionChains(opened.driver).move_to_element(point).pause(0.2).click().perform()
    wait(lambda: opened.all("dialog[open]"))
    assert "census-synthetic" in opened.one("#details-title").text


def test_the_frontier_is_that_of_the_run(opened, real):
    (board,) = real.leaderboards(view="defences")
    known = dict(
        zip(
            opened.column("table-models", "learner"),
            opened.column("table-models", "Pareto-optimal"),
            strict=True,
        )
    )
    assert known == {
        line.labels["learner"]: "yes" if line.labels[PARETO] == ON_FRONT else "no"
        for line in board.lines
    }
    assert opened.texts("#frontier .panel h3") == [
        "accuracy and unfairness", "accuracy and advantage", "unfairness and advantage"]  # fmt: skip
    opened.js("document.querySelector('#frontier').scrollIntoView({ behavior: 'instant' })")
    wait(lambda: opened.all("#frontier .panel:last-child .point"))
    for panel in range(1, 4):  # all models are in each, whatever beats them
        dots = opened.all(f"#frontier .panel:nth-child({panel}) .scatterlayer .points .point")
        assert len(dots) == len(board.lines)


def test_downloads_are_what_is_exported(opened, real, tmp_path):
    for form in ("csv", "json"):
        opened.click(opened.one(f"#save-{form}"))
    files = [opened.driver.downloads / f"small_run.{form}" for form in ("csv", "json")]
    wait(lambda: all(map(Path.exists, files)))
    wait(lambda: not list(opened.driver.downloads.glob("*.crdownload")))
    rows = real.rows()
    carried = json.loads(files[1].read_text())
    assert carried == [{name: row.get(name) for name in carried[0]} for row in rows]
    real.frame().to_csv(tmp_path / "rows.csv", index=False)
    with files[0].open() as ours, (tmp_path / "rows.csv").open() as exported:
        mine, other = list(csv.DictReader(ours)), list(csv.DictReader(exported))
    assert set(mine[0]) == set(other[0])
    for one, two in zip(mine, other, strict=True):
        for name in one:
            assert one[name] == two[name] or float(one[name]) == float(two[name])
    for file in files:
        file.unlink()


# Rows are alike, and charts are pictures with a name: of neither is every part looked at.
AXE = """
const done = arguments[arguments.length - 1];
const exclude = [['.main-svg'], ['tr:nth-child(n+6)'], ['figure:nth-child(n+3)']];
axe.run({ include: [[arguments[0]]], exclude }, { resultTypes: ['violations'] }).then(
  ({ violations }) => done(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html)}`)), (error) => done([String(error)]));
"""


CUT = "return [...document.querySelectorAll('td, th')].filter((n) => !n.closest('.wide') && n.getBoundingClientRect().right > innerWidth).length"
SMALL = "return [...document.querySelectorAll('header button, .filters select, .filters input')].filter((n) => n.type !== 'checkbox' && n.offsetHeight < 32).length"


def test_it_can_be_read_at_every_width_and_in_both_themes(chromium, file, tmp_path):
    """No sideways scrolling, no violation that axe-core finds, and a picture of each."""
    import axe_core_python

    page = Page(chromium, file, 1400)
    page.js((Path(axe_core_python.__file__).parent / "axe.min.js").read_text())

    def audit(part):
        return page.driver.execute_async_script(AXE, part)

    for width, themes in ((1400, ("light", "dark")), (768, ("light",)), (390, ("dark",))):
        set_width(chromium, width)
        wait(lambda width=width: bool(page.all("#board-0 .cards")) is (width < 600))
        for theme in themes:
            page.js("document.documentElement.dataset.theme = arguments[0]", theme)
            assert audit("body") == []
            picture = tmp_path / f"{width}-{theme}.png"
            assert page.driver.save_screenshot(str(picture))
            assert picture.stat().st_size > 30_000  # a page of nothing has a tenth of it
        page.js("document.querySelector('#board-0 tr.opens').click()")
        assert audit("dialog") == []
        assert page.js("return document.querySelector('dialog').scrollWidth") <= width
        page.js("document.querySelector('dialog').close()")
    page.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for width in (390, 768):
        set_width(chromium, width)
        wait(lambda width=width: page.js("return document.documentElement.scrollWidth") <= width)
        wait(lambda: page.js(CUT) == 0)
        assert page.js(SMALL) == 0
    assert page.complaints() == []


def test_the_message_is_first_and_no_section_is_empty(opened):
    sections = opened.js("return [...document.querySelectorAll('main > section')].map((n) => n.id)")
    assert sections == ["message", "boards", "figures", "frontier", "cells", "glossary", "about"]
    links = opened.js("return [...document.querySelectorAll('nav a')].map((n) => n.hash.slice(1))")
    assert links == sections
    assert min(map(len, opened.texts("main > section > :not(h2):first-of-type"))) > 0
    assert len(opened.all("#message .says li")) == 6
    wait(lambda: opened.all("#message #figure-waterfall .bars .point"))
    below = opened.js("return document.querySelector('#message').getBoundingClientRect().bottom")
    assert below < 900  # all of it is seen without scrolling


def test_an_address_leads_to_its_section(chromium, file):
    """Sections are made after the page is opened; it stays there when what is above it grows."""
    set_width(chromium, 1280)
    chromium.get("about:blank")
    chromium.get(f"{file.as_uri()}#glossary")
    top = "return document.querySelector('#glossary')?.getBoundingClientRect().top ?? 9999"
    wait(lambda: 0 <= chromium.execute_script(top) < 40)
    taller = "document.querySelector('#figures').style.paddingBottom = arguments[0]"
    chromium.execute_script(taller, "2000px")
    wait(lambda: 0 <= chromium.execute_script(top) < 40)
    # Who reads on is not called back.
    chromium.find_element("css selector", "body").send_keys("x")
    chromium.execute_script("scrollTo({ top: 0, behavior: 'instant' })")
    chromium.execute_script(taller, "3000px")
    chromium.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    assert chromium.execute_script("return scrollY") == 0


def test_the_glossary_holds_every_heading_that_is_shown(opened):
    opened.js("document.querySelectorAll('#boards details').forEach((one) => { one.open = true; })")
    views = opened.all("#boards details.view")
    wait(lambda: len(opened.all("#boards table")) == len(views))
    shown = {text.strip(" ▲▼") for text in opened.texts(":is(#boards, #frontier, #cells) thead th")}
    explained = opened.js(
        "return [...document.querySelectorAll('#glossary > dl dt')].map((n) => n.firstChild.textContent)"
    )
    assert len(shown) > 20
    assert shown - set(explained) == set()
    assert len(explained) == len(set(explained))
    words = opened.texts("#glossary > dl dd")
    assert all(words) and not any("not installed" in text for text in words)


EXPECTED = [
    {"check": "value", "says": "no gain <b>at all</b>", "source": "page 1", "measure": "gain", "expected": 0.0,
     "where": {"adversary": "peek"}},
    {"check": "at-least", "says": "all are found", "source": "page 2", "measure": "initial_accuracy", "than": 1.0,
     "per": ["adversary"]},
]  # fmt: skip


def test_statements_of_papers_are_shown_with_their_verdicts(chromium, toy_run, tmp_path):
    run = toy_run(learner=[{"use": "parrot"}], corrector=[{"use": "none"}], expect=EXPECTED)
    page = Page(chromium, write_report(run, tmp_path / "r.html"), 390)
    sections = page.js("return [...document.querySelectorAll('main > section')].map((n) => n.id)")
    assert sections[:3] == ["message", "statements", "boards"]
    assert page.texts("#message .says p")[0].startswith("Of 2 statements, 1 holds and 1 ")
    rows = [text.split() for text in page.texts("#table-statements-0 td:first-child")]
    assert rows[0] == ["✓", "holds"]
    assert rows[1][0] in "✗◑◔"
    assert page.column("table-statements-0", "statement")[0] == "no gain <b>at all</b> page 1"
    page.js("document.querySelectorAll('#table-statements-0 tr.opens')[1].click()")
    dialog = page.one("dialog[open]")
    assert "all are found" in dialog.text and "page 2" in dialog.text
    assert len(page.all("dialog tbody tr")) == 2  # a check of each adversary
    assert page.js("return document.documentElement.scrollWidth") == 390
    assert page.complaints() == []


def test_it_prints_without_its_controls(opened):
    opened.js("dispatchEvent(new Event('beforeprint'))")
    plots = len(opened.all(".plot"))
    wait(lambda: opened.js("return Number(document.documentElement.dataset.drawn)") == plots)
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not opened.one(".controls").is_displayed()
        assert not opened.one("nav").is_displayed()
        opened.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 794, "height": 1123, "deviceScaleFactor": 1, "mobile": False},
        )  # A4
        assert opened.js("return document.documentElement.scrollWidth") <= 794
        assert (
            opened.js("return getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        assert opened.js(
            "return [...document.querySelectorAll('#boards details')].every((one) => one.open || !one.matches('.view'))"
        )
    finally:
        opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_failures_say_why(chromium, toy_run, tmp_path):
    page = Page(chromium, write_report(toy_run(), tmp_path / "r.html"))
    assert "the parrot" in page.one(".notice.bad").text
    assert "4 failed" in page.one("#summary").text
    page.js("[...document.querySelectorAll('#board-0 tr.opens')].at(-2).click()")
    assert "failed" in page.one("dialog[open]").text
    page.all("dialog button.link")[0].click()
    assert "the parrot" in page.one("dialog .notice.bad").text
    assert page.complaints() == []


def test_what_is_skipped_or_missing_is_said(chromium, toy_run, tmp_path):
    run = toy_run(
        dataset=[{"use": "flock"}, {"use": "flock", "label": "three", "groups": 3}],
        learner=[{"use": "parrot"}],
    )
    key = next(row["cell"] for row in run.rows() if row["status"] == "done")
    with Store(run.path, create=True) as store:
        drop_results(store, {key})
    page = Page(chromium, write_report(run, tmp_path / "r.html"))
    assert page.one("#summary").text.startswith("8 cells (1 not run, 3 done, 4 skipped)")
    assert set(page.texts("#cells .notice")) == {
        "1 cell not run yet", "4 cells skipped: flip turns around two groups only"}  # fmt: skip
    assert sorted(page.column("board-0", "seeds")) == ["1 of 2", "2", "2"]
    assert page.complaints() == []


@pytest.mark.parametrize("keys", [
    {"learner": [{"use": "parrot", "fails": "raises"}]}, {"seeds": 1, "learner": [{"use": "parrot"}], "adversary": [{"use": "coin"}], "corrector": [{"use": "none"}]},
], ids=["all failed", "one cell"])  # fmt: skip
def test_poor_runs_are_shown(chromium, toy_run, tmp_path, keys):
    page = Page(chromium, write_report(toy_run(**keys), tmp_path / "r.html"))
    assert not page.all("#figures, #frontier")
    assert "figures" not in page.one("nav").text.lower()
    assert page.complaints() == []
    assert os.fspath(tmp_path) not in page.js("return document.body.textContent")
