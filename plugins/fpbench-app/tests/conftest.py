"""People, tables about them, and the page of each test."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fpbench_app.web import App
from starlette.testclient import TestClient

TOKEN = "a-token-of-many-letters"
SECONDS = 120
FPBENCH = [Path(sys.executable).parent / "fpbench"]


@pytest.fixture(scope="session")
def people():
    """People, a prediction that depends on their sex, and four pilots who are all men."""
    rng, n = np.random.default_rng(0), 300
    X = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "job": rng.choice(["clerk", "cook", "driver", "nurse"], n)}
    )
    sex = np.where(rng.random(n) < 0.35 + 0.3 * (X["job"] == "nurse"), "Female", "Male")
    X.loc[:3, "job"], sex[:4] = "pilot", "Male"
    hired = rng.random(n) < 0.3 + 0.25 * (sex == "Male")
    return X.assign(sex=sex, hired=np.where(hired, "yes", "no"))


@pytest.fixture(scope="session")
def files(people, tmp_path_factory):
    """The file of the people, and that of a table by job and sex."""
    folder = tmp_path_factory.mktemp("files")
    people.to_csv(folder / "people.csv", index=False)
    hired = people.assign(hired=people["hired"] == "yes").groupby(["job", "sex"])["hired"]
    table = hired.agg(["mean", "size"]).reset_index()
    table.columns = ["job", "sex", "Hire rate", "Count"]
    table.to_csv(folder / "table.csv", index=False)
    return folder / "people.csv", folder / "table.csv"


@pytest.fixture
def client(tmp_path):
    """A browser without a window."""
    app = App(tmp_path, TOKEN).to_asgi()
    return TestClient(app, f"http://127.0.0.1:8000/{TOKEN}/")


@pytest.fixture
def upload(client, files):
    """Give the page files; those of the session by default."""

    def give(people=None, table=None, name="people.csv"):
        own = people or files[0].read_bytes(), table or files[1].read_bytes()
        return client.post(
            "files", files={"people": (name, own[0]), "table": ("table.csv", own[1])}
        )

    return give


@pytest.fixture
def wait_for(client):
    """Wait for work, and the page of its result."""

    def wait(name):
        until = time.monotonic() + SECONDS
        while not client.get(f"progress/{name}").json()["done"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        return client.get(name)

    return wait


class Served:
    """A running `fpbench app`."""

    def __init__(self, where):
        self.out = where / "out"
        with self.out.open("w") as out:
            self.process = subprocess.Popen(
                [*FPBENCH, "app", "--no-open"],
                cwd=where, stdout=out, env={"TMPDIR": str(where), "PATH": "/usr/bin:/bin",
                                            "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        until = time.monotonic() + SECONDS
        while not (found := re.search(r"http://\S+", self.out.read_text())):
            assert self.process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        self.url, self.where = found[0], where

    @property
    def folders(self):
        """Where it keeps uploads."""
        return list(self.where.glob("fpbench-app-*"))

    def stop(self, kind):
        """End it by a signal."""
        if self.process.poll() is None:
            self.process.send_signal(kind)
        return self.process.wait(30)
