"""Our own components keep the laws that third parties' are tested by."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from flips import FLIP

from fpbench import InputError, PluginError
from fpbench.plugin import discover
from fpbench.testing import Outcome, checks

OURS = checks("fpbench")
COMPONENTS = list(dict.fromkeys(str(check.case) for check in OURS))


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("component", COMPONENTS)
def test_our_component_keeps_the_laws(component):
    mine = [check for check in OURS if str(check.case) == component]
    verdicts = {str(check): check() for check in mine}
    assert {name: v for name, v in verdicts.items() if v.outcome is Outcome.BROKEN} == {}
    assert any(verdict.outcome is Outcome.KEPT for verdict in verdicts.values())


def test_all_of_our_components_are_tested():
    tested = {(check.case.entry.kind, check.case.entry.name) for check in OURS}
    ours = {(e.kind, e.name) for e in discover() if e.source.distribution == "fpbench-toolkit"}
    assert tested == ours
    assert len(ours) > 50


# What is to be tested


def test_a_distribution_or_a_path_without_plugins_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bare"\n')
    (tmp_path / "dir").mkdir()
    for target, message in (
        ("fpbemch", "fpbemch: neither a path, nor an installed distribution .*"),
        (tmp_path, r"pyproject.toml: has no \[project.entry-points.fpbench\]"),
        (tmp_path / "dir", "no pyproject.toml and no __init__.py in it"),
        (tmp_path / "none.py", "neither a path"),
    ):
        with pytest.raises(InputError, match=message):
            checks(target)


def test_a_plugin_that_registers_nothing_is_nothing_to_test(tmp_path):
    (tmp_path / "idle_plugin.py").write_text("from fpbench import hookimpl\n")
    with pytest.raises(InputError, match="registers no component: nothing to test"):
        checks(tmp_path / "idle_plugin.py")


def test_a_module_that_fails_says_why(tmp_path):
    (tmp_path / "bad_plugin.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(PluginError, match="'bad_plugin' of bad_plugin: ModuleNotFoundError"):
        checks(tmp_path / "bad_plugin.py")


def test_a_path_wins_over_what_is_installed_of_it(install):
    site = install("fpbench-flip", "flip_plugin", FLIP.format(owner="me"))
    by_name = checks("fpbench-flip")
    by_path = checks(site / "flip_plugin.py")
    assert list(map(str, by_name)) == list(map(str, by_path))
    assert str(by_name[0].case.entry.source) == "fpbench-flip 1.0"
    assert by_path[0]().outcome is Outcome.KEPT


def test_a_name_that_two_claim_is_a_broken_law(install):
    install("first-flip", "first", FLIP.format(owner="first"))
    install("second-flip", "second", FLIP.format(owner="second"))
    for name in ("first-flip", "second_flip"):
        (check,) = checks(name)
        assert "provided by first-flip 1.0 and second-flip 1.0" in check().reason


# The command


@pytest.mark.slow
def test_the_command_shows_a_line_for_each_law(toys, command):
    done = command("check", "fpbench-toys")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "policy clamp  (fpbench-toys 1.0)" in lines
    assert "  broken   agrees with brute force: its answer to a problem about" in done.stdout
    assert "  kept     is deterministic for a seed" in lines
    assert "  kept     describes itself: summary, citation, parameters: it cites no source" in lines
    assert lines[-1].endswith("skipped")


def test_the_command_shows_broken_laws_alone(install, command):
    install("fpbench-flip", "flip_plugin", FLIP.format(owner="me"))
    lines = command("check", "fpbench-flip").stdout.splitlines()
    fewer = command("check", "fpbench-flip", "--broken").stdout.splitlines()
    assert fewer == [line for line in lines if not re.match("  (kept|skipped)", line)]
    assert 2 < len(fewer) < len(lines)


QUITS = """
from fpbench import Policy, hookimpl

class Quits(Policy):
    \"\"\"It ends the process that asks it.\"\"\"

    name = "quits"
    summary = "ends the process"
    {where}

    def repair(self, answers, total, upper=None):
        raise SystemExit(0)

@hookimpl
def fpbench_policies():
    return [Quits]
"""


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "  broken   gives results of the declared shape and range: SystemExit: 0"),
        (
            "@classmethod\n    def examples(cls, directory):\n        raise SystemExit(0)",
            "  broken   registers: SystemExit: 0",
        ),
    ],
)
def test_a_plugin_that_ends_the_process_breaks_a_law(tmp_path, command, where, said):
    """Otherwise the exit code would be its own: 0, and nothing was tested."""
    (tmp_path / "quitting.py").write_text(QUITS.format(where=where))
    done = command("check", tmp_path / "quitting.py")
    assert done.returncode == 1
    assert said in done.stdout.splitlines()


def test_the_command_with_nothing_to_test_is_bad_input(command):
    done = command("check", "fpbench-tolkit")
    assert done.returncode == 2
    assert "did you mean 'fpbench-toolkit'?" in done.stderr


# pytest --fpbench

PLUGIN = ["-p", "fpbench.cli.pytest_plugin", "-p", "no:cacheprovider"]


def run_pytest(where, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, *arguments],
        cwd=where, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "flipper"\n[project.entry-points.fpbench]\nflip = "flipping"\n'
    )
    (tmp_path / "flipping.py").write_text(FLIP.format(owner="me"))
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    return tmp_path


@pytest.mark.slow
def test_pytest_has_a_test_for_each_law(project):
    done = run_pytest(project, "--fpbench", "-k", "test_it or registers or itself or modify")
    assert done.returncode == 1
    said = done.stdout
    assert (
        "corrector flip describes itself: summary, citation, parameters: its class has no" in said
    )
    lines = said.partition("= laws of fpbench =")[2]
    assert "kept     corrector flip registers" in lines
    law = "corrector flip describes itself: summary, citation, parameters"
    assert f"\nbroken   {law}: its class has no docstring\n" in lines
    assert "Traceback" not in said
    law = "corrector flip does not modify what it is given"
    assert f"\nskipped  {law}: its run ends in an error: PluginError\n" in lines
    assert "1 failed, 2 passed, 1 skipped" in said


@pytest.mark.slow
def test_pytest_takes_a_target_for_the_flag(project, tmp_path_factory):
    """Also where a worker tests: what is said of a law travels with its report."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for more in ([], ["-p", "xdist.plugin", "-n", "1"]):
        done = run_pytest(
            elsewhere, "--fpbench-target", project, "-k", "registers or itself", *more
        )
        assert done.returncode == 1
        lines = done.stdout.partition("= laws of fpbench =")[2].splitlines()[1:3]
        assert lines[0] == "kept     corrector flip registers"
        assert lines[1].startswith("broken   corrector flip describes itself: summary, ")


@pytest.mark.slow
def test_pytest_without_a_plugin_has_nothing_to_test(tmp_path):
    done = run_pytest(tmp_path, "--fpbench")
    assert done.returncode == 4
    assert "ERROR: --fpbench:" in done.stderr


def test_pytest_without_the_flag_imports_nothing(project):
    (project / "test_it.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    assert 'fpbench.cli.pytest_plugin' in sys.modules\n"
        "    assert not {'fpbench.testing', 'pydantic', 'numpy'} & set(sys.modules)\n"
    )
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout
    assert "laws of fpbench" not in done.stdout


def test_the_entry_point_of_pytest_is_declared():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nfpbench = "fpbench.cli.pytest_plugin"\n' in text
