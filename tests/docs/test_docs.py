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
import typer
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

from fpbench.builtin.datasets.own_tables import OwnFile
from fpbench.cli.main import app
from fpbench.components.catalog import OWN_PLUGINS
from fpbench.components.names import ATTACK, KINDS
from fpbench.matrix.matrix import _FIELDS, read
from fpbench.matrix.plan import make_plan
from fpbench.plugin import DataHome, discover

LANGUAGES = {
    "python",
    "toml",
    "sh",
    "bash",
    "console",
    "json",
    "text",
    "yaml",
    "bibtex",
    "csv",
    "r",
}
ELSEWHERE = {
    "docs/curator.md": "../plugins/fpbench-curator/tests/test_curator_service.py",
    "docs/data.md": "test_packaging.py",
    "docs/paper-pate.md": "builtin/pate/test_pate.py",
    "docs/pflr.md": "../plugins/fpbench-defences/tests/test_pflr.py",
    "docs/paper-private-fair-tree.md": "builtin/private_tree/test_private_trees.py",
    "docs/page-and-figures.md": "page/test_report.py",
    "docs/tutorial.md": "docs/test_tutorial.py",
    "docs/write-a-plugin.md": "docs/test_writing_plugins.py",
    "docs/plugin-templates.md": "docs/test_writing_plugins.py",
}
"""Pages whose Python runs in another test, which looks at what comes of it."""


def having(*languages):
    return [page for page, path in PAGES.items() if blocks(path, *languages)]


def read_page(page):
    return (ROOT / page).read_text(encoding="utf-8")


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
    "docs/privacy.md": _privacy,
    "docs/threat-model.md": _threat,
}
"""What must come of the code of some pages."""


def test_the_code_that_runs_elsewhere_does():
    assert {*ELSEWHERE} <= {*PAGES}
    assert not [page for page, test in ELSEWHERE.items()
                if page.rpartition("/")[2] not in (ROOT / "tests" / test).read_text(encoding="utf-8")]  # fmt: skip


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
@pytest.mark.parametrize("page", sorted(set(having("toml")) - {"docs/write-a-plugin.md"}))
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


def test_every_benchmark_is_a_matrix():
    """Those of plugins name components that need not be installed here."""
    for path in (ROOT / "benchmarks").glob("*.toml"):
        for profile in read(path).profiles:
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


COMMAND = typer.main.get_command(app)


def check_command(words):
    """Whether the command line understands it, as far as it can tell without running it."""
    command = COMMAND
    rest = [word for word in words[1:] if word not in {"--plain", "-q", "--quiet"}]
    for stop in ("|", ">", "&&", "<"):
        if stop in rest:
            rest = rest[: rest.index(stop)]
    while hasattr(command, "commands"):
        flags = {"--help", *(flag for param in command.params for flag in param.opts)}
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


OTHERS = {".", "chmod", "dask", "docker", "eval", "export", "git", "openssl", "pip", "podman", "pytest",
          "python", "python3", "rm", "tox", "umask", "useradd"}  # fmt: skip
"""What pages tell to type besides fpbench."""


def test_the_commands_of_pages_are_understood(monkeypatch):
    monkeypatch.setattr("fpbench.cli.groups.forbid_third_party", lambda: None)
    wrong = []
    for page, path in ALL.items():
        assert list(shell_lines(path)) or not blocks(path, "sh", "bash", "console"), page
        for words, line in shell_lines(path):
            program = next(word for word in words if "=" not in word)  # NAME=value before it
            if program not in {"fpbench", *OTHERS}:
                wrong.append(f"{page}, line {line}: {program}")
            try:
                if words[0] == "fpbench" and (found := check_command(words)):
                    found[0].make_context("fpbench", list(found[1]))
            except (Exception, SystemExit) as error:  # click's own, of whichever version
                wrong.append(f"{page}, line {line}: {' '.join(words)}: {error}")
    assert not wrong


def test_the_commands_in_sentences_exist():
    """Changes of the past may name commands of the past."""
    unknown = []
    for page in set(ALL) - {"CHANGELOG.md"}:
        for words in spoken(ALL[page]):
            if found := check_command(words):
                command, rest = found
                options = {
                    o for p in command.params for o in (*p.opts, *p.secondary_opts, "--help")
                }
                unknown += [
                    (page, word) for word in rest if word[:2] == "--" and word not in options
                ]
    assert not unknown


def test_a_command_that_is_none_is_found():
    with pytest.raises(AssertionError, match="no command 'rnu'"):
        check_command(["fpbench", "rnu", "matrix.toml"])


def test_the_extras_that_pages_name_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"(?:fpbench|\.)\[([\w,]+)\]", "".join(map(read_page, PAGES)))
    assert set(",".join(named).split(",")) <= set(project["optional-dependencies"])


def test_json_is_json():
    for page in having("json"):
        for block in blocks(PAGES[page], "json"):
            json.loads(block.text)


# Links, names, and what is generated.


def test_links_lead_somewhere():
    lost = []
    for page, path in ALL.items():
        for link in links(path):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (anchor and anchor not in anchors(target)):
                lost.append(f"{page}: {link}")
    assert not lost


def test_the_files_that_pages_name_exist():
    """Those of the checkout, named from its top; changes of the past may name files of the past."""
    named = [
        (page, name)
        for page in (*PAGES, "CONTRIBUTING.md")
        for name in re.findall(
            r"`((?:tests|benchmarks|fpbench|plugins|\.ci)/[\w./-]+)`", read_page(page)
        )
    ]
    assert not [(page, name) for page, name in named if not (ROOT / name).exists()]


def test_every_page_can_be_found():
    """From the site's navigation; the build, which is strict, says so too."""
    named = re.findall(r": ([\w-]+\.md)$", (ROOT / ".ci" / "mkdocs.yml").read_text(), re.M)
    assert sorted(f"docs/{name}" for name in named) == sorted(set(PAGES) - {"README.md"})


def ours(kind):
    """Names of the components of a kind that fpbench brings."""
    return [entry.name for entry in discover().of_kind(kind)
            if entry.source.distribution == "fpbench-toolkit"]  # fmt: skip


def test_every_component_has_a_method():
    """In a table on the page of methods, data sets on theirs."""
    for kind in KINDS:
        page = read_page("docs/data.md" if kind == "dataset" else "docs/methods.md")
        told = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.M)))
        assert set(ours(kind)) <= set(told)


def test_there_is_a_how_to_for_every_kind():
    text = PAGES["docs/write-a-plugin.md"].read_text(encoding="utf-8")
    written = re.findall(r"^## Write an? ([a-z ]+?)(?: in 20 lines)?$", text, re.M)
    assert sorted(one.replace(" ", "") for one in written) == sorted(KINDS)


def test_the_study_of_everything_leaves_nothing_out():
    """Its page says that it takes two data sets, and three policies; its head names what has a study
    of its own."""
    text = (ROOT / "benchmarks" / "everything.toml").read_text()
    head, _, names = text.partition("have studies of their own: ")
    elsewhere = set(re.findall(r"`([^`]+)`", head.splitlines()[-1]))
    assert all(
        (ROOT / "benchmarks" / name).exists()
        for name in re.findall(r"[\w-]+\.toml", names.splitlines()[0])
    )
    for kind in set(KINDS) - {"dataset", "policy"}:
        study = {component["use"] for component in tomllib.loads(text)[kind]}
        defences = {name for (own, name), package in OWN_PLUGINS.items()
                    if (own, package) == (kind, "fpbench-defences")}  # fmt: skip
        assert not elsewhere & study
        assert (set(ours(kind)) | defences) - elsewhere == study


def test_the_picture_is_of_the_matrix_of_claims():
    """As far as it can be told without a run: `python .ci/picture.py` draws it anew."""
    drawn = (ROOT / "docs" / "assets" / "leaderboard.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", drawn)) == {"http://www.w3.org/2000/svg"}
    said = defaultdict(str)
    for height, text in re.findall(r"<text[^>]* y=\"([\d.]+)\"[^>]*>([^<]*)</text>", drawn):
        said[height] += html.unescape(text).replace("\xa0", " ")
    lines = [line.rstrip() for line in said.values()]
    matrix = tomllib.loads((ROOT / "benchmarks" / "claims.toml").read_text())
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
    assert "assets/waterfall.svg" in ALL["docs/leaderboards.md"].read_text(encoding="utf-8")


def test_the_first_screen_is_shown_alike():
    shown = [re.search(r"```text\n.*?(a claim of parity.*?)```", ALL[page].read_text("utf-8"), re.S)
             for page in ("README.md", "docs/index.md")]  # fmt: skip
    assert shown[0][1] == shown[1][1]


SCRIPT = runpy.run_path(str(ROOT / ".ci" / "reference.py"))


def test_generated_pages_are_what_the_code_and_the_study_of_reports_say():
    """`python .ci/reference.py` writes them anew."""
    written = {name: SCRIPT["fill"](name) for name in SCRIPT["PARTS"]}
    written |= {f"docs/{name}": make() for name, make in SCRIPT["PAGES"].items()}
    assert not [name for name, text in written.items() if read_page(name) != text]


def test_the_reference_knows_every_command_and_parameter():
    """Whatever the script that writes it leaves out, this finds."""

    def leaves(group, path):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from leaves(command, f"{path} {name}")
            elif not command.hidden:
                yield f"{path} {name}", command

    text = PAGES["docs/commands.md"].read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    commands = dict(leaves(COMMAND, "fpbench"))
    assert sorted(sections) == sorted(commands)
    for name, command in commands.items():
        for param in command.params:
            if param.param_type_name == "option" and param.name != "help":
                assert all(f"`{flag}" in sections[name] for flag in param.opts), (name, param.opts)
