"""Whose code runs: what a matrix may name, and what the user forbids."""

import subprocess
import sys
from pathlib import Path

import pytest

from fpbench import InputError, Recipe, discover
from fpbench.matrix import read
from fpbench.trust import IMPORTS, NO_THIRD_PARTY, why_not

MARKED = """
from pathlib import Path
from sklearn.base import BaseEstimator, ClassifierMixin

Path(__file__).with_name("ran-{name}").touch()

class Mine(ClassifierMixin, BaseEstimator):
    def fit(self, matrix, classes):
        return self
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a module that leaves a mark when it runs, installed or not."""
    from fpbench import trust

    place = tmp_path / "packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    trust._distributions.cache_clear()

    def make(name, requires=None, entry_points=""):
        (place / f"{name}.py").write_text(MARKED.format(name=name))
        if requires is not None:
            info = place / f"{name}-1.0.dist-info"
            info.mkdir()
            needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
            )
            (info / "top_level.txt").write_text(name)
            (info / "entry_points.txt").write_text(entry_points)
        trust._distributions.cache_clear()
        return place / f"ran-{name}"

    yield make
    trust._distributions.cache_clear()
    trust._builds_on_sklearn.cache_clear()


@pytest.mark.parametrize(
    "requires", [["scikit-learn>=1.6"], ["scikit_learn; extra == 'sklearn'"], ["Scikit.Learn"]]
)
def test_packages_that_build_on_sklearn_may_be_named(package, requires):
    ran = package("extension", ["numpy", *requires])
    assert why_not("extension") is None
    assert why_not("extension.deep.inside") is None
    assert not ran.exists()
    assert Recipe("extension:Mine").classifier().__name__ == "Mine"
    assert ran.exists()
    del sys.modules["extension"]


def test_a_plugin_may_be_named_for_its_code_runs_anyhow(package):
    package("plugged", [], "[fpbench]\nplugged = plugged\n")
    assert why_not("plugged") is None


@pytest.mark.parametrize(
    ("requires", "reason"),
    [
        (None, "'stranger' is not one that is installed and requires scikit-learn"),
        (["numpy"], "'stranger' is not one that requires scikit-learn"),
        (["scikit-learn-extra"], "'stranger' is not one that requires scikit-learn"),
    ],
)
def test_other_packages_are_not_imported(package, monkeypatch, requires, reason):
    ran = package("stranger", requires)
    with pytest.raises(
        InputError, match=f"stranger:Mine is refused: package {reason}.*{IMPORTS}=stranger"
    ):
        Recipe("stranger:Mine").check()
    assert not ran.exists()
    monkeypatch.setenv(IMPORTS, "other,stranger")
    assert Recipe("stranger:Mine").classifier().__name__ == "Mine"
    assert ran.exists()
    del sys.modules["stranger"]


def test_without_third_parties_only_sklearn_may_be_named(package, monkeypatch):
    package("extension", ["scikit-learn"])
    monkeypatch.setenv(NO_THIRD_PARTY, "1")
    monkeypatch.setenv(IMPORTS, "extension")
    assert why_not("sklearn.naive_bayes") is None
    assert "only classes of scikit-learn" in why_not("extension")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("os", "part of Python itself"),
        ("antigravity", "part of Python itself"),
        ("sklearn.__main__", "is a program"),
        ("no_such_thing", "no module 'no_such_thing'; is it installed?"),
        ("numpy", "'numpy' is not one that requires scikit-learn"),
    ],
)
def test_what_may_never_be_named(module, reason):
    assert reason in why_not(module)
    assert "antigravity" not in sys.modules


PLUGIN = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from fpbench import Corrector, hookimpl

class Third(Corrector):
    name = "third"
    summary = "from a third party"
    def correct(self, problem):
        raise NotImplementedError

@hookimpl
def fpbench_correctors():
    return [Third]
"""
MATRIX = """
[[dataset]]
use = "census-synthetic"
[[learner]]
use = "plain"
[[disclosure]]
use = "hidden"
[[adversary]]
use = "prior"
[[corrector]]
use = "third"
[[expect]]
check = "value"
measure = "gain"
expected = 0
tolerance = 1
says = "nothing is gained"
source = "nobody"
"""


def test_no_code_of_third_parties_is_imported(install, monkeypatch):
    site = install("third-party", "third", PLUGIN)
    monkeypatch.setenv(NO_THIRD_PARTY, "1")
    catalog = discover()
    assert not (site / "ran").exists()
    assert {entry.source.distribution for entry in catalog} == {"fpbench"}
    assert "third-party 1.0" in map(str, catalog.left_out)
    with pytest.raises(InputError, match=r"third-party 1.0.* left out: --no-third-party"):
        catalog.component("corrector", "third")
    monkeypatch.setenv(NO_THIRD_PARTY, "0")
    discover.cache_clear()
    assert discover().component("corrector", "third")
    assert (site / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "m.toml"],
        ["run", "m.toml"],
        ["reproduce", "m.toml"],
        ["plugins"],
        ["describe", "corrector", "none"],
        ["doctor"],
        ["data", "list"],
        ["data", "verify", "census-synthetic"],
        ["data", "fetch", "census-synthetic"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_that_loads_plugins_can_do_without_third_parties(
    install, command, tmp_path, words
):
    site = install("third-party", "third", PLUGIN)
    (tmp_path / "work" / "m.toml").write_text(MATRIX)
    done = command(*words, "--no-third-party")
    assert not (site / "ran").exists()
    assert "Traceback" not in done.stderr
    if "m.toml" in words:
        assert done.returncode == 2
        assert "unknown corrector 'third'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
    if words[0] == "plugins":
        assert "left out: third-party 1.0 (--no-third-party)" in done.stdout


def test_workers_do_without_third_parties_too(install, command, tmp_path):
    site = install("third-party", "third", PLUGIN)
    text = MATRIX.replace('census-synthetic"', 'census-synthetic"\nrows = 300')
    (tmp_path / "work" / "m.toml").write_text(text.replace("third", "none") + "[split]\n")
    done = command("run", "m.toml", "--jobs", "2", "--no-third-party", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert not (site / "ran").exists()


def test_every_command_that_discovers_has_the_option():
    import typer

    from fpbench.cli import app

    group = typer.main.get_command(app)

    def commands(group):
        for inner in group.commands.values():
            yield from commands(inner) if hasattr(inner, "commands") else [inner]

    found = {}
    for command in commands(group):
        options = {option for parameter in command.params for option in parameter.opts}
        found.setdefault(command.name, set()).add("--no-third-party" in options)
    for name in ("run", "plan", "reproduce", "plugins", "describe", "doctor", "list", "fetch",
                 "verify", "serve"):  # fmt: skip
        assert found[name] == {True}, name


def test_a_module_beside_the_matrix_is_no_classifier(install, command, tmp_path):
    """What comes with a stranger's matrix is not imported, wherever the command is called."""
    work = tmp_path / "work"
    (work / "evil.py").write_text(MARKED.format(name="evil"))
    text = MATRIX.replace('use = "plain"', 'use = "plain"\nbase = "evil:Mine"')
    (work / "m.toml").write_text(text.replace("third", "none"))
    for call in ([Path(sys.executable).parent / "fpbench"], [sys.executable, "-m", "fpbench"]):
        done = subprocess.run(
            [*call, "plan", "m.toml"], cwd=work, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "evil:Mine is refused: " in done.stderr
        assert not (work / "ran-evil").exists()


def test_profiles_cannot_lead_out_of_the_run_directory():
    base = {"dataset": [{"use": "d"}], "learner": [{"use": "l"}], "auditor": [{"use": "a"}]}
    for name in ("../up", "/etc", "a/b", "..", "", "a\x00", "a" * 200):
        with pytest.raises(InputError, match="a name has letters"):
            read({**base, "profile": {name: {"seeds": 1}}})
    assert read({**base, "profile": {"quick-2_x": {"seeds": 1}}}, "quick-2_x").profile
