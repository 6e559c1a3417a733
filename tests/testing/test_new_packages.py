"""What `fpbench new` writes works as it stands, where fpbench is installed from a wheel."""

import inspect
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from itertools import chain
from pathlib import Path

import pytest

import fpbench
from fpbench import InputError
from fpbench.components.names import KINDS
from fpbench.testing import stages
from fpbench.testing.scaffold import make_component, make_files, write_package

ROOT = Path(__file__).parents[2]
PACKAGES = {kind: f"fpbench-my-{kind}" for kind in KINDS}


def run(*command, cwd=None, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    env |= {"PYTHONPATH": "", **more}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A new virtual environment: fpbench from a wheel, and a package of every kind.

    What fpbench depends on is borrowed from this environment, as tests do without a network.
    """
    place = tmp_path_factory.mktemp("fresh")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    local = ["--no-deps", "--no-build-isolation", "--no-index"]
    run(*pip, "wheel", *local, "--wheel-dir", place / "wheels", ROOT)
    (wheel,) = (place / "wheels").glob("fpbench_toolkit-*.whl")
    venv.create(place / "venv", symlinks=True)
    python = place / "venv" / "bin" / "python"
    (site,) = (place / "venv" / "lib").glob("python*/site-packages")
    paths = sysconfig.get_paths()
    install = [*pip, "--python", python, "install", *local]
    run(*install, wheel)  # before anything is borrowed, that pip would take for installed here
    (site / "borrowed.pth").write_text(
        "\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]]))
    )
    for kind in KINDS:
        write_package(kind, f"my-{kind}", place)
    run(*install, *(place / package for package in PACKAGES.values()))
    return place


@pytest.mark.slow
def test_they_are_discovered_beside_a_wheel(place):
    script = (
        "import json, fpbench; found = fpbench.plugin.discover(); "
        "print(json.dumps([fpbench.__file__, len(found.broken), "
        "[(e.kind, e.name, str(e.source), len(e.rivals)) for e in found]]))"
    )
    where, broken, entries = json.loads(run(place / "venv/bin/python", "-c", script, cwd=place))
    assert Path(where).is_relative_to(place / "venv")
    assert broken == 0
    for kind, package in PACKAGES.items():
        assert [kind, f"my-{kind}", f"{package} 0.1.0", 0] in entries


@pytest.mark.slow
def test_they_pass_their_own_tests_unedited(place):
    said = run(place / "venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *PACKAGES.values(), cwd=place)  # fmt: skip
    last = said.splitlines()[-1]
    assert " passed" in last
    assert "failed" not in last
    assert "error" not in last


@pytest.mark.slow
def test_an_audit_of_ones_own_runs_to_a_leaderboard(place, tmp_path):
    """It measures nothing that leaderboards know; the tests of the packages do the same."""
    example = place / PACKAGES["auditor"] / "my-auditor.toml"
    said = run(place / "venv/bin/fpbench", "run", example, "--out", tmp_path / "run", cwd="/")
    assert "The auditor my-auditor" in said
    assert "accuracy gap" in said


@pytest.mark.slow
def test_one_is_checked_in_each_way(place):
    """By path and by pytest, with one line a law; the lines of the page check one by name."""
    package = PACKAGES["policy"]
    by_path = run(place / "venv/bin/fpbench", "check", ".", cwd=place / package)
    first, *laws, last = by_path.splitlines()
    assert first == "policy my-policy  (fpbench-my-policy 0.1.0)"
    assert "  kept     is deterministic for a seed" in laws
    assert last == f"{len(laws)} kept, 0 broken, 0 skipped"
    by_pytest = run(place / "venv/bin/python", "-m", "pytest", "--fpbench", "-p",
                    "no:cacheprovider", cwd=place / package)  # fmt: skip
    said = by_pytest.partition("= laws of fpbench =")[2]
    for law in laws:
        words = law.removeprefix("  kept     ")
        assert f"\nkept     policy my-policy {words}\n" in said


@pytest.mark.slow
def test_the_lines_of_the_page_run(place, tmp_path):
    """Of docs/write-a-plugin.md, in a shell whose pip has no network and builds as we did."""
    page = (ROOT / "docs" / "write-a-plugin.md").read_text()
    (lines,) = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pip").write_text(f'#!/bin/sh\nexec {place}/venv/bin/python -m pip "$@"\n')
    (tools / "pip").chmod(0o755)
    path = os.pathsep.join([str(tools), str(place / "venv" / "bin"), os.environ["PATH"]])
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    said = run("sh", "-euc", lines, cwd=tmp_path, PATH=path, **offline)
    assert "15 kept, 0 broken, 0 skipped" in said
    assert (tmp_path / "runs" / "commonest" / "store.sqlite").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_is_plain(kind):
    """Whoever reads it sees one class of the kind, and no name of another's."""
    code = make_component(kind, "very-own")
    assert f"class VeryOwn{KINDS[kind].base}({KINDS[kind].base}):" in code
    assert 'name = "very-own"' in code
    assert "xample" not in code
    assert len(code.splitlines()) < 80
    assert sorted(make_files(kind, "very-own")) == [
        "README.md", "fpbench_very_own.py", "pyproject.toml",
        "tests/test_fpbench_very_own.py", "tox.ini", "very-own.toml",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "message"), [
    ("lerner", "mine", "unknown kind 'lerner'; did you mean 'learner'"),
    ("learner", "My Learner", "name 'My Learner': must be lower case"),
    ("learner", "../up", "must be lower case"),
    ("learner", "plain", "learner 'plain' is already in fpbench"),
    ("policy", "there", "fpbench-there: already exists"),
    ("policy", "gone", "name 'gone': fpbench-gone 1.0 is installed already, and the new"),
])  # fmt: skip
def test_what_cannot_be_written_is_refused(tmp_path, install, kind, name, message):
    site = install("fpbench-gone", "gone", "from fpbench import hookimpl")
    (tmp_path / "fpbench-there").mkdir()
    with pytest.raises(InputError, match=message):
        write_package(kind, name, tmp_path)
    assert set(tmp_path.iterdir()) == {tmp_path / "fpbench-there", site}


@pytest.mark.slow
def test_the_command_says_what_comes_next(command, tmp_path):
    done = command("new", "adversary", "keen", "--directory", tmp_path)
    assert done.returncode == 0
    made = tmp_path / "fpbench-keen"
    assert done.stdout.splitlines()[0] == f"package: {made}"
    assert f"pip install -e {made}" in done.stdout
    assert fpbench.testing.checks(made)
    again = command("new", "adversary", "keen", "--directory", tmp_path)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_a_template_says_what_its_kit_hands_it_beside_good_input():
    kit = inspect.getsource(stages)
    for part in re.split(r"^class (?=_\w+Stage)", kit, flags=re.MULTILINE)[1:]:
        kind = re.match(r"_(\w+)Stage", part)[1].lower()
        tried = re.findall(r'yield "([^"]+)"|\(\("([^"]+)", 1\), \("([^"]+)", 0\)\)', part)
        template = make_component(kind, "my-own")
        for words in filter(None, chain.from_iterable(tried)):
            assert f"# - {words}" in template, (kind, words)
        assert "# - " in template
