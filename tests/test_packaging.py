"""What pyproject.toml, tox and the lowest versions say must agree."""

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from fpbench.components.catalog import discover
from fpbench.store.environment import describe_environment

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lowest(requirements):
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in requirements)


def test_the_lowest_versions_are_the_declared_ones():
    lines = (ROOT / ".ci" / "lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    declared = lowest(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"])
    assert set(pinned) == set(declared)
    for name, version in declared.items():
        assert pinned[name] == version or pinned[name].startswith(f"{version}."), name


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text()
    _, _, run = recipe.partition("  run:\n")
    listed = re.findall(r"^    - ([\w-]+) >=([\d.]+)$", run.partition("tests:")[0], re.M)
    assert dict(listed) == lowest(PROJECT["dependencies"]) | {"python": "3.11"}


def test_the_code_of_others_in_workflows_is_pinned():
    """Actions by commit, the tag in a comment; what builds a release by its hash."""
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    uses = re.findall(r"uses:\s*(.*)", "".join(file.read_text() for file in files))
    assert len(uses) > 5
    for action in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    for line in re.findall(r"pip install (.*)", release):
        assert line == "--require-hashes -r .ci/release/requirements.txt"
    assert "--no-isolation" in re.search(r"-m build(.*)", release)[1]
    pinned = (ROOT / ".ci" / "release" / "requirements.txt").read_text()
    built_by = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in ("build", *built_by):
        assert f"\n{requirement.partition('>')[0]}==" in pinned


def test_the_image_is_made_of_what_is_there_and_runs_as_nobody_special(tmp_path):
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    sources = [line.split()[1:-1] for line in lines if re.match(r"COPY (?!--from)", line)]
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for source in (name.removeprefix("./") for names in sources for name in names):
        assert (ROOT / source).exists()
        assert f"!{source}" in allowed
    (last,) = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert last != "root"
    extras = re.search(r'"\.\[(.+)\]"', "\n".join(lines))[1]
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no docker daemon here to build the image with")
    image = tmp_path / "image"
    subprocess.run(["docker", "build", "-q", "--iidfile", image, ROOT], check=True)
    words = ["docker", "run", "--rm", image.read_text(), "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fpbench ")


def test_the_extras_are_there():
    extras = PROJECT["optional-dependencies"]
    names = {"cp", "ip", "search", "acs", "parquet"}
    assert {*names, "all"} <= set(extras)
    assert all(name in extras["all"][0] for name in names)


def test_the_other_kernels_of_tox_use_no_instructions_that_the_usual_ones_use():
    """Of numpy, whose older versions name them otherwise; what is not switched off is used."""
    used = describe_environment({}, discover())["simd"]
    if not any(name.startswith("X86_V") for name in used):
        pytest.skip(f"numpy uses {', '.join(used) or 'none'} here")
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    settings = dict(
        re.split(r"\s*=\s*", line) for line in tox["testenv:kernels"]["set_env"].split("\n") if line
    )
    assert set(used) <= set(settings["NPY_DISABLE_CPU_FEATURES"].split())


def test_the_readme_has_its_two_lines():
    readme = (ROOT / "README.md").read_text()
    for heading in ("Run it", "Test it"):
        (block,) = re.findall(rf"^## {heading}\n.*?^```\w*\n(.*?)^```", readme, re.M | re.S)
        assert len(block.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_frame_of_the_documentation_is_attacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/data.md").read_text(), re.M | re.S)
    names = {}
    exec("".join(code), names)
    assert names["declared"].domain.bounds == {"age": (17.0, 90.0)}
    (row,) = names["run"].rows()
    assert (row["status"], row["people"]) == ("done", 40)
    # The same table, in workers, is the same cell; another table is not.
    fpbench, people, matrix = names["fpbench"], names["people"], names["matrix"]
    again = fpbench.run(matrix, tables={"people": people}, out=tmp_path / "two", jobs=2)
    assert {**row, "seconds": 0, "correct_seconds": 0} == {
        **again.rows()[0], "seconds": 0, "correct_seconds": 0
    }  # fmt: skip
    frame = names["frame"].assign(age=names["frame"]["age"] + 1)
    older = fpbench.table(frame, label="paid", positive="yes", sensitive="sex")
    other = fpbench.run(matrix, tables={"people": older}, out=tmp_path / "other")
    assert other.rows()[0]["cell"] != row["cell"]
    with pytest.raises(fpbench.errors.DataError, match="no table 'people' was passed"):
        fpbench.run(matrix, out=tmp_path / "none")


def test_changelog_and_citation_tell_this_version():
    """A version that is not released yet ends in `.dev0`."""
    import fpbench

    heading = re.search(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert heading.replace(" (not released)", ".dev0") == fpbench.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {fpbench.__version__}\n" in citation
    assert f"  version = {{{fpbench.__version__}}},\n" in (ROOT / "README.md").read_text()
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text()
    assert f'  version: "{fpbench.__version__}"\n' in recipe


def test_the_action_and_the_hook_take_what_the_documentation_gives_them():
    page = (ROOT / "docs" / "running.md").read_text()
    action, hook = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    inputs = re.findall(r"^  ([\w-]+):$", (ROOT / "action.yml").read_text(), re.M)
    taken = re.findall(r"^    ([\w-]+): ", action.partition("with:")[2], re.M)
    assert {"report", "people"} <= set(taken) <= set(inputs)
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert re.search(r"- id: (\S+)", hook)[1] in re.findall(r"^- id: (\S+)", hooks, re.M)


def test_the_longest_files_of_tests_are_there(request):
    """They are named for the order in which xdist hands them out."""
    conftest = request.config.pluginmanager.getplugin(str(ROOT / "tests" / "conftest.py"))
    assert [name for name in conftest.LONGEST if not (ROOT / "tests" / name).exists()] == []
