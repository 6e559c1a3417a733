"""Every block of docs/write-a-plugin.md runs, every template is what `fpbench new` writes."""

import re
import tomllib
from pathlib import Path

import pytest

from fpbench.components.names import KINDS
from fpbench.testing import Outcome, checks
from fpbench.testing.laws import LAWS
from fpbench.testing.scaffold import make_component, make_files

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "write-a-plugin.md").read_text()
TEMPLATES = (DOCS / "plugin-templates.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE + TEMPLATES, re.M | re.S)
PYTHON = [text for language, text in BLOCKS if language == "python"]
PLUGINS = [text for text in PYTHON if "hookimpl" in text and "    summary = " in text]


def kind_and_name(text):
    name = re.search(r'^    name = "(.*)"$', text, re.M)[1]
    return next(k for k in KINDS.values() if f"({k.base}):" in text).name, name


def test_there_is_one_plugin_of_each_kind():
    assert sorted(kind_and_name(text)[0] for text in PLUGINS) == sorted(KINDS)
    assert len(BLOCKS) == len(PLUGINS) + 5


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("text", PLUGINS, ids=lambda text: kind_and_name(text)[0])
def test_a_plugin_is_what_is_written_and_keeps_the_laws(text, tmp_path):
    kind, name = kind_and_name(text)
    assert text == make_component(kind, name)
    module = tmp_path / f"page_{kind}.py"
    module.write_text(text)
    broken = [(str(check), verdict) for check in checks(module)
              if (verdict := check()).outcome is Outcome.BROKEN]  # fmt: skip
    assert broken == []


def test_the_other_python_runs_where_the_plugin_is_installed(install):
    others = [text for text in PYTHON if text not in PLUGINS]
    (source,) = [text for text in PLUGINS if '"commonest"' in text]
    install("fpbench-commonest", "fpbench_commonest", source)
    for code in others:
        exec(code, {})


def test_the_entry_point_is_the_one_that_is_written():
    (text,) = [text for language, text in BLOCKS if language == "toml"]
    written = tomllib.loads(make_files("adversary", "commonest")["pyproject.toml"])
    shown = tomllib.loads(text)["project"]["entry-points"]
    assert shown == written["project"]["entry-points"]


def test_every_law_is_on_the_page():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", PAGE, re.M)[2:]
    assert rows == [law.words.partition(":")[0] for law in LAWS]
