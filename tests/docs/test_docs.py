"""Every page of the documentation: its code runs, its matrices are planned, its commands exist.

Pages are found by themselves. What a page takes for granted is in `pages.py`.
"""

import html
import io
import json
import re
import runpy
import tomllib
from collections import defaultdict
from contextlib import redirect_stdout

import pytest
from pages import (
    ALL,
    GRANTED,
    PAGES,
    ROOT,
    anchors,
    blocks,
    joined,
    links,
    names_package,
    nothing,
    prose,
)

from fpbench import DataHome, discover
from fpbench.builtin.datasets._own import OwnFile
from fpbench.components.names import ATTACK, KINDS
from fpbench.components.own_plugins import OWN_PLUGINS
from fpbench.matrix.matrix import _FIELDS, read
from fpbench.matrix.plan import make_plan

LANGUAGES = {"python", "toml", "sh", "bash", "console", "json", "text", "yaml", "bibtex", "csv"}
ELSEWHERE = {
    "docs/curator.md": "../plugins/fpbench-curator/tests/test_curator_service.py",
    "docs/data.md": "test_packaging.py",
    "docs/pate.md": "builtin/test_pate.py",
    "docs/pflr.md": "../plugins/fpbench-defences/tests/test_pflr.py",
    "docs/private-fair-tree.md": "builtin/test_private_trees.py",
    "docs/report.md": "report/test_report.py",
    "docs/tutorial.md": "docs/test_tutorial.py",
    "docs/writing-plugins.md": "docs/test_writing_plugins.py",
}
"""Pages whose Python runs in another test, which looks at what comes of it."""


def having(*languages):
    return [page for page, path in PAGES.items() if blocks(path, *languages)]


def typed():
    """Pages that tell what to type."""
    return [page for page, path in ALL.items() if blocks(path, "sh", "bash", "console")]


def test_there_are_pages_with_code_of_every_kind():
    assert len(PAGES) > 20
    for language in ("python", "toml", "sh", "console"):
        assert having(language)


def test_every_block_says_what_it_is():
    """So that none escapes the tests below."""
    wrong = [(page, block.line) for page, path in ALL.items() for block in blocks(path)
             if block.language not in LANGUAGES]  # fmt: skip
    assert wrong == []
    for page, path in ALL.items():
        fences = len(re.findall(r"^ *```", path.read_text(encoding="utf-8"), re.M))
        assert fences == 2 * len(blocks(path)), page


# Python.


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(set(having("python")) - set(ELSEWHERE)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with GRANTED.get(page, nothing)(tmp_path) as (names, here):
        with redirect_stdout(io.StringIO()) as said:
            for block in blocks(PAGES[page], "python"):
                code = "\n" * (block.line - 1) + here(block.text)
                exec(compile(code, str(PAGES[page]), "exec"), names)
        check = CHECKS.get(page)
        if check:
            check(names, said.getvalue())


def _individual(names, said):
    report = names["report"]
    assert (report.certified_consistency <= report.pair_consistency).all()


def _excessive(names, said):
    assert names["report"].private is False


def _guide(names, said):
    curator, release = names["curator"], names["release"]
    assert curator.remaining.epsilon == 1.5
    assert (release.noise, release.guarantee.neighbours) == ("secure", "attribute")
    errors = [float(error) for error in re.findall(r"off by (\S+)$", said, re.M)]
    assert errors == sorted(errors, reverse=True)
    assert len(errors) == 3


def _privacy(names, said):
    assert "asked for epsilon 0.7, left epsilon 0.6 of epsilon 1" in said
    assert round(names["total"].epsilon, 9) == 10


def _threat(names, said):
    code = blocks(PAGES["docs/threat-model.md"], "python")[0].text
    assert said.strip() == re.search(r"print\(error\)  # (.*)$", code, re.M)[1]


def _readme(names, said):
    assert names["result"].people["risk"].between(0, 1).all()
    assert re.search(r"^(Do not publish|Publish|May be published)", said, re.M), said


CHECKS = {
    "README.md": _readme,
    "docs/audit-guide.md": _guide,
    "docs/excessive-risk.md": _excessive,
    "docs/individual-fairness.md": _individual,
    "docs/privacy.md": _privacy,
    "docs/threat-model.md": _threat,
}
"""What must come of the code of some pages."""


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_the_code_that_runs_elsewhere_does(page):
    test = ROOT / "tests" / ELSEWHERE[page]
    assert page in PAGES
    assert page.rpartition("/")[2] in test.read_text(encoding="utf-8")


# Matrices.

BASE = {
    "dataset": [{"use": "census-synthetic"}],
    "learner": [{"use": "exponentiated-gradient", "metric": "statistical-parity"}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "a2"}],
    "corrector": [{"use": "exact"}, {"use": "ip"}],
}
"""What a page that shows a part of a matrix leaves out."""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Files of all data sets, as far as a plan looks at them."""
    home = tmp_path / "data"
    home.mkdir()
    for entry in discover().of_kind("dataset"):
        try:
            made = discover().component("dataset", entry.name)()
        except ValueError:  # it has no defaults
            continue
        for file in made.files:
            (home / file.name).parent.mkdir(parents=True, exist_ok=True)
            (home / file.name).touch()
    monkeypatch.setenv("FPBENCH_DATA", str(home))
    monkeypatch.chdir(tmp_path)
    columns = "paid,income,sex,race,age,job,relationship"
    rows = [f"{'yes' if i % 2 else 'no'},{i % 2},{'fm'[i % 3 > 0]},a,{20 + i},clerk,x"
            for i in range(60)]  # fmt: skip
    (tmp_path / "people.csv").write_text("\n".join([columns, *rows, ""]))


def matrices(block):
    """The matrices that a block shows: whole, a part of one, or parameters of a data set."""
    try:
        said = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError:
        said = None
    if said is not None and set(said) <= {*_FIELDS, "profile"}:
        yield said
        return
    for line in block.text.splitlines():  # several ways to say one thing, a line each
        yield {"dataset": [{"use": "adult", **tomllib.loads(line)}]}


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("page", sorted(set(having("toml")) - {"docs/writing-plugins.md"}))
def test_the_matrices_of_a_page_are_planned(page, data, monkeypatch):
    # The files that pages name hold next to nothing here.
    monkeypatch.setattr(OwnFile, "check", lambda self, home: None)
    for block in blocks(PAGES[page], "toml"):
        for said in () if names_package(block.text) else matrices(block):
            assert said, (page, block.line)
            matrix = {**BASE, **said}
            if "auditor" in said or said.get("split", {}).get("attack", 1) == 0:
                matrix = {k: v for k, v in matrix.items() if k in said or k not in ATTACK[2:]}
                matrix.setdefault("auditor", [{"use": "group-fairness"}])
            planned = make_plan(read(matrix), discover(), DataHome.default())
            assert planned.runnable, (page, block.line, [cell.reason for cell in planned.cells])
            for profile in said.get("profile", {}):
                read(matrix, profile)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.toml")), ids=lambda p: p.stem)
def test_every_benchmark_is_a_matrix(path):
    """Those of plugins name components that need not be installed here."""
    matrix = read(path)
    for profile in matrix.profiles:
        read(path, profile)


# Commands.


def shell_lines(path):
    """What a page tells to type: words of each line, and its line number."""
    for block in blocks(path, "sh", "bash"):
        for words in joined(block.text):
            yield words, block.line
    for block in blocks(path, "console"):
        text = block.text.replace("\\\n", " ")
        for line in text.splitlines():
            if prompt := re.match(r"\w*\$ (.*)", line):
                for words in joined(prompt[1]):
                    yield words, block.line


def spoken(path):
    """Commands in the middle of sentences, where they are more than the name of one."""
    for code in re.findall(r"`(fpbench [^`]*)`", prose(path)):
        plain = re.sub(r"\[[^\]]*\]|\.\.\.|\\", "", code)
        yield plain.split()


def check_command(words):
    """Whether the command line understands it, as far as it can tell without running it."""
    import typer

    from fpbench.cli.main import app

    command = typer.main.get_command(app)
    rest = [word for word in words[1:] if word not in {"--plain", "-q", "--quiet"}]
    for stop in ("|", ">", "&&", "<"):
        if stop in rest:
            rest = rest[: rest.index(stop)]
    while hasattr(command, "commands"):
        flags = (
            "--help",
            "--version",
            "--no-third-party",
            "--install-completion",
            "--show-completion",
        )
        if not rest or rest in [[flag] for flag in flags]:
            return None
        name = rest.pop(0)
        if "|" in name:  # one of several
            assert all(one in command.commands for one in name.split("|")), name
            return None
        if ("command", name) in OWN_PLUGINS:
            return None
        assert name in command.commands, f"no command {name!r}"
        command = command.commands[name]
    return command, rest


OTHERS = {
    ".",
    "chmod",
    "dask",
    "docker",
    "eval",
    "export",
    "openssl",
    "pip",
    "podman",
    "pytest",
    "python",
    "python3",
    "tox",
    "umask",
    "useradd",
}
"""What pages tell to type besides fpbench."""


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("page", typed())
def test_the_commands_of_a_page_are_understood(page, monkeypatch):
    monkeypatch.setattr("fpbench.cli.groups.forbid_third_party", lambda: None)
    seen = 0
    for words, line in shell_lines(ALL[page]):
        seen += 1
        program = next(word for word in words if "=" not in word)  # NAME=value before it
        assert program in {"fpbench", *OTHERS}, f"{page}, line {line}: {program}"
        if words[0] == "fpbench" and (found := check_command(words)):
            command, rest = found
            try:
                command.make_context("fpbench", list(rest))
            except Exception as error:  # click's own, of whichever version
                pytest.fail(f"{page}, line {line}: {' '.join(words)}: {error}")
    assert seen


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("page", sorted(set(ALL) - {"CHANGELOG.md"}))
def test_the_commands_in_sentences_exist(page):
    """Changes of the past may name commands of the past."""
    for words in spoken(ALL[page]):
        found = check_command(words)
        if found:
            command, rest = found
            options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            unknown = {word for word in rest if word.startswith("--")} - options
            assert not unknown, (page, words)


def test_a_command_that_is_none_is_found():
    with pytest.raises(AssertionError, match="no command 'rnu'"):
        check_command(["fpbench", "rnu", "matrix.toml"])


@pytest.mark.parametrize("page", PAGES)
def test_the_extras_that_a_page_names_exist(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for named in re.findall(r"(?:fpbench|\.)\[([\w,]+)\]", PAGES[page].read_text(encoding="utf-8")):
        assert set(named.split(",")) <= set(extras), page


@pytest.mark.parametrize("page", having("json"))
def test_json_is_json(page):
    for block in blocks(PAGES[page], "json"):
        json.loads(block.text)


# Links, names, and what is generated.


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page):
    for link in links(ALL[page]):
        name, _, anchor = link.partition("#")
        target = (ALL[page].parent / name).resolve() if name else ALL[page]
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page}: {link}"


@pytest.mark.parametrize("page", sorted({*PAGES, "CONTRIBUTING.md"}))
def test_the_files_that_a_page_names_exist(page):
    """Those of the checkout, named from its top; changes of the past may name files of the past."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|benchmarks|fpbench|plugins|\.ci)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_can_be_found():
    """From the site's navigation; the build, which is strict, says so too."""
    named = re.findall(r": ([\w-]+\.md)$", (ROOT / ".ci" / "mkdocs.yml").read_text(), re.M)
    assert sorted(f"docs/{name}" for name in named) == sorted(set(PAGES) - {"README.md"})


def ours(kind):
    """Names of the components of a kind that fpbench brings."""
    return [entry.name for entry in discover().of_kind(kind)
            if entry.source.distribution == "fpbench-toolkit"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_component_has_a_method(kind):
    """In a table on the page of methods, data sets on theirs."""
    page = PAGES["docs/data.md" if kind == "dataset" else "docs/methods.md"]
    firsts = re.findall(r"^\| (`.*?) \|", page.read_text(encoding="utf-8"), re.M)
    told = {name for first in firsts for name in re.findall(r"`([^`]+)`", first)}
    assert set(ours(kind)) <= told


def test_there_is_a_how_to_for_every_kind():
    text = PAGES["docs/writing-plugins.md"].read_text(encoding="utf-8")
    written = re.findall(r"^## Write an? ([a-z ]+?)(?: in 20 lines)?$", text, re.M)
    assert sorted(one.replace(" ", "") for one in written) == sorted(KINDS)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"dataset", "policy"}))
def test_the_study_of_everything_leaves_nothing_out(kind):
    """Its page says that it takes two data sets, and three policies; its head names what has a study
    of its own."""
    text = (ROOT / "benchmarks" / "everything.toml").read_text()
    head, _, names = text.partition("have studies of their own: ")
    elsewhere = set(re.findall(r"`([^`]+)`", head.splitlines()[-1]))
    assert all(
        (ROOT / "benchmarks" / name).exists()
        for name in re.findall(r"[\w-]+\.toml", names.splitlines()[0])
    )
    study = {component["use"] for component in tomllib.loads(text)[kind]}
    defences = {name for (own, name), package in OWN_PLUGINS.items()
                if (own, package) == (kind, "fpbench-defences")}  # fmt: skip
    assert not elsewhere & study
    assert (set(ours(kind)) | defences) - elsewhere == study


def test_the_picture_is_of_the_quickstart():
    """As far as it can be told without a run: `python .ci/picture.py` draws it anew."""
    drawn = (ROOT / "docs" / "assets" / "leaderboard.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", drawn)) == {"http://www.w3.org/2000/svg"}
    said = defaultdict(str)
    for height, text in re.findall(r"<text[^>]* y=\"([\d.]+)\"[^>]*>([^<]*)</text>", drawn):
        said[height] += html.unescape(text).replace("\xa0", " ")
    lines = [line.rstrip() for line in said.values()]
    matrix = tomllib.loads((ROOT / "benchmarks" / "quickstart.toml").read_text())
    assert matrix["title"] in lines
    assert f"· {matrix['seeds']} seeds ·" in " ".join(lines)
    assert sum(line.startswith("learner ") for line in lines) == 5  # three of them by a sweep
    pattern = r"[= ]*\d+ (\S+) +([\d.]+) +([\d.]+) +([\d.]+) +([-+]?[\d.]+) +([\d.]+) "
    board = [found.groups() for line in lines if (found := re.match(pattern, line))]
    adversaries = {one.get("label", one["use"]) for one in matrix["adversary"]}
    assert len(board) == 5 * len(adversaries)
    assert {name for name, *_ in board} == adversaries
    reached = []
    for name, baseline, without, given, leak, limit in board:
        # In percent with one decimal, and points with two.
        assert abs(float(given) - float(without) - float(leak)) < 0.11
        assert float(leak) < float(limit)
        assert name == "majority" or float(without) > float(baseline)
        reached.append(float(given))
    width = len(adversaries)
    for start in range(0, len(reached), width):
        group = reached[start : start + width]
        assert group == sorted(group, reverse=True)


def test_the_waterfall_is_drawn():
    drawn = (ROOT / "docs" / "assets" / "waterfall.svg").read_text(encoding="utf-8")
    assert "<image" not in drawn and 'href="http' not in drawn
    for page in ("README.md", "docs/index.md"):
        assert "assets/waterfall.svg" in ALL[page].read_text(encoding="utf-8")


SCRIPT = runpy.run_path(str(ROOT / ".ci" / "reference.py"))
REFERENCE = SCRIPT["PAGES"]


@pytest.mark.parametrize("name", SCRIPT["PARTS"])
def test_pages_say_what_the_study_of_reports_measured(name):
    """`python .ci/reference.py` writes these parts anew."""
    assert (ROOT / name).read_text(encoding="utf-8") == SCRIPT["fill"](name)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_is_what_the_code_says(name):
    """`python .ci/reference.py` writes it anew."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == REFERENCE[name]()


def test_the_reference_knows_every_command_and_parameter():
    """Whatever the script that writes it leaves out, this finds."""
    import typer

    from fpbench.cli.main import app

    def leaves(group, path):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from leaves(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command

    text = PAGES["docs/commands.md"].read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    commands = dict(leaves(typer.main.get_command(app), "fpbench"))
    assert sorted(sections) == sorted(commands)
    for name, command in commands.items():
        for param in command.params:
            if param.param_type_name == "option" and param.name != "help":
                assert all(f"`{flag}" in sections[name] for flag in param.opts), (name, param.opts)
