"""Discovery: one plugin's failure is a row, and everything else works."""

import re

import pytest
from flips import FLIP
from pages import ROOT

import fpbench
from fpbench import PluginError
from fpbench.components.auditor import BASES
from fpbench.components.catalog import OWN_PLUGINS, _read_summary
from fpbench.components.hooks import HOOKS, OFFERED
from fpbench.components.names import ATTACK, AUDIT, KINDS
from fpbench.errors import NameUnknownError
from fpbench.plugin import discover


def test_the_table_of_kinds_is_what_hooks_and_bases_are_made_from():
    assert {name for name in vars(HOOKS) if not name.startswith("__")} == {
        kind.hook for kind in KINDS.values()
    } | {"fpbench_engines", "fpbench_commands"}
    assert list(BASES) == list(KINDS)
    for kind, base in BASES.items():
        assert (base.__name__, base.kind) == (KINDS[kind].base, kind)
        assert callable(getattr(base, KINDS[kind].method))
    assert set(ATTACK) | set(AUDIT) == set(KINDS)


def test_every_hook_has_a_line_of_documentation():
    for hook in OFFERED.values():
        assert (getattr(HOOKS, hook).__doc__ or "").endswith(".")


def test_a_toy_plugin_uses_every_hook(toys):
    from_toys = {
        e.kind for e in discover().entries.values() if e.source.distribution == "fpbench-toys"
    }
    assert from_toys == {*KINDS, "engine", "command"}


def test_what_is_installed_is_found_with_its_distribution(toys):
    catalog = discover()
    assert str(catalog.entry("corrector", "flip").source) == "fpbench-toys 1.0"
    assert catalog.component("corrector", "flip").name == "flip"
    names = [entry.name for entry in catalog.of_kind("corrector")]
    assert names == sorted(names)
    assert {"exact", "flip", "none"} <= set(names)
    assert catalog.broken == []


def test_every_component_of_ours_describes_itself():
    for entry in discover():
        cls = discover().component(entry.kind, entry.name)
        assert (cls.name, cls.kind) == (entry.name, entry.kind)
        assert cls.summary
        assert "\n" not in cls.summary
        for field in cls.model_fields.values():
            assert field.description, (cls, field)


@pytest.mark.parametrize(("kind", "name"), sorted(OWN_PLUGINS))
def test_a_component_of_our_plugins_that_are_not_installed_names_the_plugin(kind, name):
    if (kind, name) in discover().entries:
        pytest.skip("it is installed")
    package = OWN_PLUGINS[kind, name]
    with pytest.raises(NameUnknownError) as error:
        discover().load(kind, name)
    assert str(error.value) == (
        f"unknown {kind} {name!r}; the plugin {package} has it, which is not installed; in a "
        f"checkout of fpbench: pip install ./plugins/{package}"
    )
    assert (ROOT / "plugins" / package / "pyproject.toml").is_file()


def test_the_table_of_our_plugins_is_what_they_offer():
    """As their sources say: they need not be installed here."""
    offered = {
        (name, file.relative_to(ROOT / "plugins").parts[0])
        for file in (ROOT / "plugins").glob("*/fpbench_*/*.py")
        for name in re.findall(r'^    name = "([\w-]+)"', file.read_text(), re.MULTILINE)
    }
    offered |= {
        ("majority-hello", "fpbench-hello"),
        ("dask", "fpbench-dask"),
        ("app", "fpbench-app"),
        ("board", "fpbench-board"),
        ("curator", "fpbench-curator"),
    }
    assert offered == {(name, package) for (_, name), package in OWN_PLUGINS.items()}


def test_a_plugin_of_ours_that_is_broken_is_not_to_be_installed(install):
    install("fpbench-ortools", "fpbench_ortools", "raise ImportError('ortools')")
    with pytest.raises(NameUnknownError, match="has it, and is broken here: `fpbench plugins`"):
        discover().entry("corrector", "cp-sat")


def test_an_unknown_name_may_be_that_of_a_plugin():
    with pytest.raises(NameUnknownError, match="valid: .*; if a plugin has it, install that first"):
        discover().entry("learner", "zzzz")
    with pytest.raises(NameUnknownError, match="did you mean 'plain'.$"):
        discover().entry("learner", "plian")


def test_a_name_claimed_twice_names_both_owners_and_harms_nobody_else(install):
    install("first-flip", "first", FLIP.format(owner="first"))
    install("second-flip", "second", FLIP.format(owner="second"))
    catalog = discover()
    with pytest.raises(
        PluginError, match=r"'flip' is provided by first-flip 1.0 and second-flip 1.0"
    ):
        catalog.component("corrector", "flip")
    assert catalog.component("corrector", "exact")


@pytest.mark.parametrize(("source", "reason"), [
    ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    ("1 / 0", "ZeroDivisionError: division by zero"),
    ("from fpbench import hookimpl\n@hookimpl\ndef fpbench_correctors():\n    return 3",
     "TypeError"),
    ("from fpbench import hookimpl\n@hookimpl\ndef fpbench_correctors():\n    1 / 0",
     "ZeroDivision"),
    ("from fpbench import hookimpl\n@hookimpl\ndef fpbench_spells():\n    return []",
     "fpbench_spells"),
    ("def broken(:", "SyntaxError"),
    ("raise SystemExit(0)", "SystemExit: 0"),
])  # fmt: skip
def test_a_broken_plugin_is_a_row(install, source, reason):
    install("bad-plugin", "bad", source)
    catalog = discover()
    (broken,) = catalog.broken
    assert broken.plugin == "bad"
    assert str(broken.source) == "bad-plugin 1.0"
    assert reason in broken.reason
    assert "Traceback" in broken.trace
    assert catalog.component("corrector", "exact")


def test_troubles_of_every_sort_are_a_clear_row_each(install, command):
    """Two that claim one name, one that fails on import, one for newer hooks: the rest works."""
    install("first-flip", "first", FLIP.format(owner="first"))
    install("second-flip", "second", FLIP.format(owner="second"))
    install("torn", "torn", "import nowhere_to_be_found")
    install(
        "modern", "modern", "from fpbench import hookimpl\n@hookimpl\ndef fpbench_spells(): pass"
    )
    done = command("plugins")
    assert done.returncode == 0
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "flip first-flip 1.0 also claimed by second-flip 1.0" in rows
    assert (
        "broken: torn of torn 1.0: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        in rows
    )
    (row,) = [row for row in rows if row.startswith("broken: modern of modern 1.0: ")]
    assert "unknown hook 'fpbench_spells'" in row
    assert sum("flip" in row or "torn" in row or "modern" in row for row in rows) == 3
    assert command("describe", "corrector", "exact").returncode == 0
    claimed = command("describe", "corrector", "flip")
    assert claimed.returncode == 2
    assert "is provided by first-flip 1.0 and second-flip 1.0" in claimed.stderr


LAZY = """
from fpbench import hookimpl
from fpbench.plugin import Lazy

@hookimpl
def fpbench_correctors():
    return [Lazy("late", "{target}")]
"""


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere:Late", "fails on import: ModuleNotFoundError"),
        ("fpbench.claims.rates:Late", "fails on import: AttributeError"),
        ("fpbench.claims.rates:RateConstraint", "is not a subclass of Corrector"),
        ("fpbench.builtin.ferry.correctors:Exact", "calls itself 'exact'"),
    ],
)
def test_a_lazy_component_that_is_not_there(install, target, reason):
    install("late", "late", LAZY.format(target=target))
    with pytest.raises(PluginError, match=f"corrector 'late' of late 1.0 {reason}"):
        discover().component("corrector", "late")


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(NameUnknownError, match="unknown kind 'lerner'; did you mean 'learner'"):
        discover().component("lerner", "plain")
    with pytest.raises(NameUnknownError, match="unknown learner 'plane'; did you mean 'plain'"):
        discover().component("learner", "plane")


def test_summaries_are_read_without_an_import():
    """They are those of the classes, so that a listing may be both quick and right."""
    catalog = fpbench.plugin.discover()
    for entry in catalog:
        if isinstance(entry.registered, fpbench.plugin.Lazy):
            written = _read_summary(entry.registered.target)
            assert written == catalog.component(entry.kind, entry.name).summary, entry
    assert _read_summary("nowhere_to_be_found:Class") is None
    assert _read_summary("fpbench.builtin.learners.plain:NoSuchClass") is None


@pytest.mark.parametrize(("body", "summary"), [
    ('summary = "one line"\n    rest: int = 3', "one line"),
    ('summary: ClassVar[str] = (\n        "two "\n        "lines"\n    )\n    a = 3', "two lines"),
    ('def first(self):\n        summary = "not this"\n\n    summary = "this"', None),
    ('"""Told so:\n\n    summary = "not this"\n    """\n\n    summary = "this"', None),
    ('summary = """It goes on\nhere."""', None),
    ("summary = make_one()", None),
    ("name = 'none'\n\n\nclass Other:\n    summary = 'not this'", None),
])  # fmt: skip
def test_a_summary_is_the_one_of_its_class(tmp_path, monkeypatch, body, summary):
    """Where the source does not tell for sure, an import does (None)."""
    (tmp_path / "with_summary.py").write_text(f"class Named:\n    {body}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert _read_summary("with_summary:Named") == summary
