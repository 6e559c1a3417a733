"""docs/tutorial.md from its first line to its last, on a wheel without any extra.

What fpbench depends on is borrowed from this environment, as tests do without a network; what only
extras bring cannot be imported.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from itertools import zip_longest

import pytest
from pages import PAGES, ROOT, blocks, joined

PAGE = PAGES["docs/tutorial.md"]
INSTALL = ["python3 -m venv .venv", ". .venv/bin/activate", "pip install ."]
EXTRAS = ["plotly", "matplotlib", "cplex",
          "folktables", "pyarrow", "python_calamine", "pyomo", "optuna", "pytest", "hypothesis", "selenium"]  # fmt: skip
HIDDEN = f"""
from importlib.machinery import PathFinder

found = PathFinder.find_spec.__func__

def find_spec(cls, name, path=None, target=None):
    hidden = name.partition(".")[0] in {EXTRAS}
    return None if hidden else found(cls, name, path, target)

PathFinder.find_spec = classmethod(find_spec)
"""
"""Makes a Python that has none of them."""


def run(*command, cwd):
    """Exit code 0 and what it said; errors belong to what a reader sees."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    env |= {
        "PYTHONPATH": "",
        "FPBENCH_DATA": str(cwd),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A new virtual environment with a wheel of fpbench, and an empty folder beside it."""
    place = tmp_path_factory.mktemp("tutorial")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    local = ["--no-deps", "--no-build-isolation", "--no-index"]
    run(*pip, "wheel", *local, "--wheel-dir", place / "wheels", ROOT, cwd=place)
    (wheel,) = (place / "wheels").glob("fpbench_toolkit-*.whl")
    venv.create(place / "venv", symlinks=True)
    python = place / "venv" / "bin" / "python"
    (site,) = (place / "venv" / "lib").glob("python*/site-packages")
    # Before anything is borrowed: a fpbench that is installed here would be taken for it.
    run(*pip, "--python", python, "install", *local, wheel, cwd=place)
    paths = sysconfig.get_paths()
    borrowed = dict.fromkeys([paths["purelib"], paths["platlib"]])
    (site / "borrowed.pth").write_text("\n".join(borrowed))
    (site / "without_extras.py").write_text(HIDDEN)
    (site / "without_extras.pth").write_text("import without_extras")
    (place / "work").mkdir()
    return place


def test_what_only_extras_bring_is_known():
    """So that no new extra goes unnoticed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    listed = [line for name in ("cp", "ip", "search", "acs", "parquet", "excel", "report",
                           "figures")
              for line in extras[name]]  # fmt: skip
    named = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in listed}
    assert named <= set(EXTRAS)
    assert "fpbench-toolkit[cp,ip,search,acs,parquet,excel,report,figures]" in extras["all"]


@pytest.mark.slow
def test_without_extras_is_without_extras(place):
    said = run(place / "venv/bin/fpbench", "doctor", cwd=place / "work")
    for extra in ("cp", "ip", "search", "parquet", "report", "figures"):
        assert re.search(rf"^ +{extra} +(?!installed)", said, re.M), said


def masked(line):
    """A line of output without its numbers and the widths of its columns."""
    ranked = re.sub(r"^=(?=\d)", "", line.strip())  # whether seeds tell it apart is a number, too
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d*\.?\d+", "#", re.sub("─+", "─", ranked)))


def compare(shown, said):
    """Whether every line that is shown was said; three dots stand for others.

    Numbers depend on the versions of libraries, and with them the order of lines.
    """
    lines = [masked(line) for line in said.splitlines()]
    for line in filter(None, map(masked, shown.splitlines())):
        if line != "...":
            assert line in lines, f"not said: {line}\n{said}"


@pytest.mark.slow
def test_every_block_in_its_order(place):
    work = place / "work"
    found = blocks(PAGE)
    assert [block.language for block in found].count("console") > 5
    first, *rest = found
    assert (first.language, first.text.split("\n")[:-1]) == ("sh", INSTALL)  # is what `place` did
    for block in rest:
        if block.language == "toml":
            name = re.match(r"# (\w+\.toml)\n", block.text)[1]
            (work / name).write_text(block.text)
        elif block.language == "python":
            (work / "block.py").write_text(block.text)
            assert run(place / "venv/bin/python", "block.py", cwd=work)
        else:
            assert block.language == "console"
            said = re.split(r"^\$ (.*)\n", block.text, flags=re.M)
            assert said[0] == ""
            for command, shown in zip_longest(said[1::2], said[2::2]):
                ((program, *words),) = joined(command)
                assert program == "fpbench"
                compare(shown, run(place / "venv/bin/fpbench", *words, cwd=work))
    assert (work / "rows.csv").read_text().count("\n") == 21
    assert (work / "fpbench-my-guess" / "pyproject.toml").exists()
