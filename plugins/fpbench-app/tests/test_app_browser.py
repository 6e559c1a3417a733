"""The pages in a browser: Debian's Chromium, driven by selenium, as a user would go through them."""

import base64
import json
import shutil
import signal
import subprocess
import time

import pytest
from conftest import FPBENCH, SECONDS, Served
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="no browser here: apt-get install chromium chromium-driver",
    ),
]
WIDTHS = 1400, 768, 390
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


class Window:
    """A browser on the page of a running `fpbench app`."""

    def __init__(self, driver, served, home):
        self.driver, self.served, self.home = driver, served, home

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def press(self, *keys):
        """Type, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector):
        """Move the focus to an element, by the keyboard."""
        for _ in range(60):
            if self.js("return document.activeElement.matches(arguments[0])", selector):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"the keyboard does not reach {selector}")

    def wait(self, title):
        """Wait for a page with this heading."""
        until = time.monotonic() + SECONDS
        while not (texts := self.js("return [...document.querySelectorAll('h1')]"
                                    ".map((one) => one.textContent)")) or title not in texts[0]:  # fmt: skip
            assert time.monotonic() < until, texts
            time.sleep(0.05)
        return self

    def requests(self):
        """What was asked for."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]  # fmt: skip

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def check(self):
        """Every width without a horizontal scroll bar, and no barrier that axe finds."""
        from axe_core_python.selenium import Axe

        for width in WIDTHS:
            self.driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
            )
            wide = self.js("return document.documentElement.scrollWidth")
            assert wide <= width, self.driver.current_url
            found = Axe().run(self.driver)["violations"]
            assert not [(one["id"], one["nodes"][0]["html"]) for one in found]

    def read_download(self, name):
        """A file that was downloaded."""
        until = time.monotonic() + SECONDS
        while not (self.home / name).exists():
            assert time.monotonic() < until, list(self.home.iterdir())
            time.sleep(0.05)
        return self.home / name


@pytest.fixture
def window(tmp_path):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    served = Served(tmp_path)
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Window(driver, served, tmp_path)
    finally:
        driver.quit()
        served.stop(signal.SIGTERM)


def test_from_files_to_a_table_that_may_be_published(window, files):
    """By the keyboard alone; files are given as a dialog of the system would."""
    window.driver.get(window.served.url)
    window.driver.get_log("performance")
    window.check()
    window.tab_to("#people")
    window.one("#people").send_keys(str(files[0]))
    window.tab_to("#table")
    window.one("#table").send_keys(str(files[1]))
    window.tab_to("button")
    window.press(Keys.ENTER)
    window.wait("What was read")
    assert "selection rate of 2 groups of sex in 5 slices by job" in window.one("main").text
    window.tab_to("summary")
    window.press(Keys.ENTER)
    window.check()
    window.tab_to("#unit")
    window.press("share")
    window.tab_to("form[action=reading] button")
    window.press(Keys.ENTER)
    window.wait("What was read")
    window.tab_to("form[action=verdict] button")
    window.press(Keys.ENTER)
    window.wait("The table is attacked").check()
    window.wait("Verdict on table.csv")
    told = window.one(".told").text
    assert "Do not publish: the group of 4 of 300 people is proven" in told
    assert "job pilot" in told
    window.check()
    window.tab_to("form[action=releases] button")
    window.press(Keys.ENTER)
    window.wait("Tables are made").wait("Tables to publish")
    window.check()

    window.tab_to("#step")
    window.press(Keys.HOME)
    shown = []
    for _ in range(8):
        heading = window.one(".step:not([hidden]) h2").text
        assert window.one("#step").get_attribute("aria-valuetext") == heading
        shown.append(heading)
        window.press(Keys.ARROW_RIGHT)
    assert [one.partition(":")[0] for one in shown] == [
        "Nothing", *(f"Epsilon {e:g}" for e in (0.1, 0.5, 1, 2, 5, 10)), "Everything"
    ]  # fmt: skip
    assert shown[0].endswith("may be published")
    assert shown[-1].endswith("must not be published")
    # Noise is drawn anew by each test, so that one or another epsilon may leak too much.
    best = max(n for n, one in enumerate(shown[:-1]) if one.endswith(": may be published"))
    epsilon = shown[best].partition(":")[0].lower().replace(" ", "-")
    window.press(*[Keys.ARROW_LEFT] * (len(shown) - 1 - best))
    pages = base64.b64decode(window.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pages.count(b"/Type /Page\n") == 1
    window.tab_to(".step:not([hidden]) .button")
    window.press(Keys.ENTER)
    window.tab_to(".step:not([hidden]) .second")
    window.press(Keys.ENTER)
    table = window.read_download(f"table-{epsilon}.csv")
    record = window.read_download(f"certificate-{epsilon}.json")
    assert json.loads(record.read_text())["passes"]
    # fpbench recounts it from the file of the people: hash, guarantee, leak, errors.
    checked = subprocess.run(
        [*FPBENCH, "release", files[0], "-o", table, "--check", record, "--group", "sex",
         "--prediction", "hired", "--positive", "yes"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("right: ") == 7

    asked = window.requests()
    assert len(asked) > 10
    assert all(url.startswith((window.served.url, "data:,", "chrome")) for url in asked), asked
    assert window.complaints() == []


def test_what_is_wrong_is_said_on_the_page(window, files, tmp_path):
    window.driver.get(window.served.url)
    large = tmp_path / "large.csv"
    large.write_bytes(b"x" * (2**26 + 1))
    window.one("#people").send_keys(str(large))
    window.one("button").click()
    assert window.one("#large").text == "The files are too large."
    window.js("document.querySelector('form').removeAttribute('data-most')")
    window.driver.refresh()
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1\n")
    window.one("#people").send_keys(str(wrong))
    window.one("button").click()
    window.wait("This cannot be done").check()
    assert "wrong.csv, line 2: 1 columns" in window.one("[role=alert]").text
    # The server refuses as well, and the browser shows it.
    window.driver.get(window.served.url)
    window.js("document.querySelector('form').dataset.most = 2 ** 40")
    window.one("#people").send_keys(str(large))
    window.one("button").click()
    window.wait("This cannot be done")
    assert "at most 64 MiB" in window.one("[role=alert]").text
