"""Whose code runs: what a matrix may name, and what the user forbids."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fpbench import InputError
from fpbench.base.trust import (
    ALLOWED,
    IMPORTS,
    NO_THIRD_PARTY,
    list_entry_points,
    why_not_importable,
)
from fpbench.matrix.matrix import read
from fpbench.models import Recipe
from fpbench.plugin import discover

MARKED = """
from importlib import metadata
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
    place = tmp_path / "packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))

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
        return place / f"ran-{name}"

    return make


@pytest.fixture
def allow(monkeypatch):
    """Put distributions in the list, whose packages have their names."""
    return lambda *names: [monkeypatch.setitem(ALLOWED, name, name) for name in names]


def test_packages_of_listed_distributions_may_be_named(package, allow):
    ran = package("extension", ["numpy"])
    allow("extension")
    assert why_not_importable("extension") is None
    assert why_not_importable("extension.deep.inside") is None
    assert not ran.exists()
    assert Recipe("extension:Mine").classifier().__name__ == "Mine"
    assert ran.exists()
    del sys.modules["extension"]


def test_a_plugin_may_be_named_for_its_code_runs_anyhow(package):
    package("plugged", [], "[fpbench]\nplugged = plugged\n")
    assert why_not_importable("plugged") is None


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "requires", [None, ["numpy"], ["scikit-learn"]], ids=["not installed", "other", "builds on it"]
)
def test_other_packages_are_not_imported(package, monkeypatch, requires):
    ran = package("stranger", requires)
    with pytest.raises(
        InputError,
        match=r"stranger:Mine is refused: module 'stranger' \(.*stranger.py\) did not come with "
        rf"scikit-learn, fairlearn, .* or a plugin, .*{IMPORTS}=stranger",
    ):
        Recipe("stranger:Mine").check()
    assert not ran.exists()
    monkeypatch.setenv(IMPORTS, "other,stranger")
    assert Recipe("stranger:Mine").classifier().__name__ == "Mine"
    assert ran.exists()
    del sys.modules["stranger"]


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """An empty folder that Python imports from first, as of a notebook: the matrix lies in it."""
    place = tmp_path / "beside"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend("")
    before = set(sys.modules)
    yield place
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(place, file, text=""):
    path = place / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def distribute(place, name, files, more=None):
    """Metadata of a distribution that requires scikit-learn and lists its files."""
    info = f"{name}-1.0.dist-info"
    listed = [
        *files,
        f"{info}/METADATA",
        f"{info}/RECORD",
        *(f"{info}/{file}" for file in more or {}),
    ]
    write(place, f"{info}/METADATA", f"Name: {name}\nVersion: 1.0\nRequires-Dist: scikit-learn\n")
    write(place, f"{info}/RECORD", "".join(f"{file},,\n" for file in listed))
    for file, text in (more or {}).items():
        write(place, f"{info}/{file}", text)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed distributions."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    return place


EVIL = "open('ran', 'w')\n"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["tests", "folktables", "sklearn", "deep.inside"])
@pytest.mark.parametrize("form", ["source", "namespace"])
def test_modules_beside_the_matrix_are_not_trusted(site, beside, monkeypatch, allow, package, form):
    """The names are those of installed packages, and found first."""
    allow("tests", "folktables", "deep")
    folder = package.replace(".", "/")
    distribute(site, "deep", ["deep/__init__.py", "deep/inside/__init__.py"])
    write(site, "deep/inside/__init__.py")
    write(site, "deep/__init__.py")
    if form != "namespace":
        for parent in Path(folder, "x").parents:
            if parent != Path("."):
                write(beside, parent / "__init__.py", EVIL)
    evil = write(beside, f"{folder}/evil.py", EVIL)
    for name in [
        name for name in sys.modules if f"{name}.".startswith(f"{package.split('.')[0]}.")
    ]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"did not come with|no module|cannot be imported"):
        Recipe(f"{package}.evil:C").check()
    assert not (beside / "ran").exists()
    assert evil.parent.exists()


def test_a_folder_beside_the_matrix_that_looks_installed_is_not(site, beside, allow):
    allow("looks")
    distribute(beside, "looks", ["looks.py"], {"entry_points.txt": "[fpbench]\nlooks = looks\n"})
    write(beside, "looks.py", EVIL)
    assert "did not come with" in why_not_importable("looks")
    assert "looks" not in {point.name for point in list_entry_points()}
    distribute(site, "looks", ["looks.py"])
    assert "did not come with" in why_not_importable(
        "looks"
    )  # for it is still found beside the matrix


def test_a_package_in_several_places_may_not_be_named(site, beside, allow):
    allow("spaced")
    distribute(site, "spaced", ["spaced/mine.py"])
    write(site, "spaced/mine.py", "from sklearn.naive_bayes import GaussianNB as C\n")
    assert why_not_importable("spaced.mine") is None
    write(beside, "spaced/evil.py", EVIL)
    for module in ("spaced.mine", "spaced.evil"):
        assert "did not come with" in why_not_importable(module)


def test_what_is_installed_to_be_edited_is_named_by_the_user(site, tmp_path, monkeypatch, allow):
    """Its source is a folder like any other: it may be the one beside the matrix."""
    allow("edited")
    source = tmp_path / "project"
    write(source, "src/edited/__init__.py")
    said = json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}})
    write(site, "_edited.pth", f"{source}/src\n")
    more = {"direct_url.json": said, "top_level.txt": "edited"}
    distribute(site, "edited", ["_edited.pth"], more)
    monkeypatch.syspath_prepend(str(source / "src"))
    assert f"if you trust it: {IMPORTS}=edited" in why_not_importable("edited")
    monkeypatch.setenv(IMPORTS, "edited")
    assert why_not_importable("edited") is None


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ValueError('two\\nlines')", "cannot be imported: two lines"),
        ("raise SystemExit", "cannot be imported: SystemExit"),
        ("import no_such_thing", "cannot be imported: No module named 'no_such_thing'"),
        ("def __getattr__(name):\n    raise RuntimeError('not\\nnow')", "cannot give 'C': not now"),
        ("", "has no 'C'"),
    ],
)
def test_a_trusted_module_that_fails_is_one_line(site, beside, allow, source, reason):
    """As of optuna.integration, which imports what it lacks when asked for a class."""
    allow("failing")
    distribute(site, "failing", ["failing.py"])
    write(site, "failing.py", source)
    with pytest.raises(InputError, match=reason) as caught:
        Recipe("failing:C").check()
    assert "\n" not in str(caught.value)


def test_without_third_parties_only_sklearn_may_be_named(package, monkeypatch):
    package("extension", ["scikit-learn"])
    monkeypatch.setenv(NO_THIRD_PARTY, "1")
    monkeypatch.setenv(IMPORTS, "extension")
    assert why_not_importable("sklearn.naive_bayes") is None
    assert "only classes of scikit-learn" in why_not_importable("extension")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("os", "part of Python itself"),
        ("antigravity", "part of Python itself"),
        ("sklearn.__main__", "or a program"),
        ("no_such_thing", r"no module 'no_such_thing'; is it installed\?"),
        ("numpy", "'numpy' (.*) did not come with scikit-learn"),
    ],
)
def test_modules_that_may_never_be_named(module, reason):
    assert re.search(reason, why_not_importable(module))
    assert "antigravity" not in sys.modules


PLUGIN = """
from importlib import metadata
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
    assert {entry.source.distribution for entry in catalog} == {"fpbench-toolkit"}
    assert "third-party 1.0" in map(str, catalog.left_out)
    with pytest.raises(InputError, match=r"third-party 1.0.* left out: --no-third-party"):
        catalog.component("corrector", "third")
    monkeypatch.setenv(NO_THIRD_PARTY, "0")
    discover.cache_clear()
    assert discover().component("corrector", "third")
    assert (site / "ran").exists()


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("words", [
    ["run", "m.toml"],
    ["plugins"],
    ["describe", "corrector", "none"],
    ["data", "verify", "census-synthetic"],
], ids=lambda words: ' '.join(words[:2]))  # fmt: skip
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


@pytest.mark.slow
def test_workers_do_without_third_parties_too(install, command, tmp_path):
    site = install("third-party", "third", PLUGIN)
    text = MATRIX.replace('census-synthetic"', 'census-synthetic"\nrows = 300')
    (tmp_path / "work" / "m.toml").write_text(text.replace("third", "none") + "[split]\n")
    done = command("run", "m.toml", "--jobs", "2", "--no-third-party", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert not (site / "ran").exists()


def test_every_command_that_discovers_has_the_option():
    import typer

    from fpbench.cli.main import app

    group = typer.main.get_command(app)

    def commands(group):
        for inner in group.commands.values():
            yield from commands(inner) if hasattr(inner, "commands") else [inner]

    found = {}
    for command in commands(group):
        options = {option for parameter in command.params for option in parameter.opts}
        found.setdefault(command.name, set()).add("--no-third-party" in options)
    for name in ("run", "plan", "reproduce", "plugins", "describe", "doctor", "list", "fetch",
                 "verify"):  # fmt: skip
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


def test_the_first_of_two_copies_of_a_plugin_counts(site, tmp_path, monkeypatch):
    text = "[other]\na = b\n\n[fpbench]\none = one.sub\ntwo=two : thing.part\n"
    distribute(site, "Some.Plugin", ["one.py"], {"entry_points.txt": text})
    first = tmp_path / "first"
    listed = "[fpbench]\none = first\n"
    distribute(first, "some_plugin", ["first.py"], {"entry_points.txt": listed})
    (one,) = (p for p in list_entry_points() if p.name == "one")
    assert (one.value, one.dist.name, one.dist.version) == ("one.sub", "Some.Plugin", "1.0")
    monkeypatch.syspath_prepend(str(first))
    found = {p.name: p.value for p in list_entry_points()}
    assert (found["one"], "two" in found) == ("first", False)
