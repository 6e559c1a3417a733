"""Debian's Chromium without a network, driven by selenium."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="no browser here: apt-get install chromium chromium-driver",
)
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


@contextmanager
def start_chromium(home: Path) -> Iterator:
    """A browser whose profile and downloads are in a folder of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*_FLAGS, f"--user-data-dir={home / 'profile'}", "--window-size=1280,900"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(home)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The path of the driver is given, so that selenium looks for none to download.
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = home
    try:
        yield driver
    finally:
        driver.quit()


def set_width(driver, width: int) -> None:
    """Give the page a width in pixels; a small one is that of a phone."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )


def list_requests(driver) -> list[str]:
    """What was asked for since the last call, besides what a page holds itself."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return [
        url
        for url in asked
        if not url.startswith(("data:", "blob:", "chrome:", "chrome-untrusted:"))
    ]
