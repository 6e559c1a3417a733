"""What must stay true of the house: public names, light start, who prints, who opens what.

Which room may import which is kept by import-linter: `[tool.importlinter]` in `pyproject.toml`.
"""

import ast
import importlib
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import fpbench
from fpbench.base.public_names import list_public_names, list_rooms

PACKAGE = Path(fpbench.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
BUILTINS = sorted((PACKAGE / "builtin").rglob("*.py"))

HEAVY = {"sklearn", "pandas", "fairlearn", "scipy", "pyomo", "docplex", "optuna", "plotly",
         "loky", "numpy", "pydantic"}  # fmt: skip


def place(path):
    """A module by its room and name."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(node):
    """The dotted name of an expression; of what a call returns, the part after it."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return getattr(node, "id", "")


def imports(path):
    """Modules that a file imports anywhere."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom):
            yield from ([f"{node.module}.{a.name}" for a in node.names]
                        if node.module == "fpbench" else [node.module])  # fmt: skip
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_names(code):
    """Dotted names of fpbench that code imports, or reaches as attributes of what it imports."""
    bound = {}
    for node in ast.walk(tree := ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fpbench":
            for alias in node.names:
                yield (name := f"{node.module}.{alias.name}")
                bound[alias.asname or alias.name] = name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "fpbench":
                    yield alias.name
                    bound[alias.asname or "fpbench"] = alias.name if alias.asname else "fpbench"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = name_of(node).partition(".")
            if bound.get(first) in {"fpbench", *list_rooms()}:
                yield f"{bound[first]}.{rest}"


def is_public(name):
    """Whether a dotted name is of either tier, or begins with one that is."""
    package, _, rest = name.partition(".")
    first, _, more = rest.partition(".")
    if first in {"", "__version__"}:
        return True
    if f"{package}.{first}" in list_rooms():
        return not more or more.split(".")[0] in list_public_names(f"{package}.{first}")
    return first in list_public_names()


THIRD_PARTIES = [
    *BUILTINS,
    *(PACKAGE / "testing/templates").glob("*.py"),
    *(PACKAGE.parent / "plugins").rglob("*.py"),
]


def test_builtins_import_only_what_a_third_party_may():
    """Public names of both tiers, and helpers of built-in components.

    What of them belongs to a paper, import-linter says; and which may check arguments as rooms do.
    """
    private = dict.fromkeys(BUILTINS, ("fpbench.builtin.", "fpbench.base."))
    assert not [
        f"{path} uses {name}"
        for path in THIRD_PARTIES
        for name in imported_names(path.read_text(encoding="utf-8"))
        if not is_public(name) and not name.startswith(private.get(path, "-"))
    ]


PAGES = [
    path
    for path in [*PACKAGE.parent.glob("docs/*.md"), *PACKAGE.parent.glob("plugins/*/README.md"),
                 PACKAGE.parent / "README.md"]
    if path.is_file()
]  # fmt: skip


def test_pages_show_only_what_a_third_party_may_use():
    wrong = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        names = {name for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
                 for name in imported_names(block)}  # fmt: skip
        names |= {name for name in re.findall(r"`(fpbench(?:\.\w+)+)", text)
                  if not re.search(r"\.(toml|svg|html)\b", name)}  # fmt: skip
        wrong += [f"{path}: {name}" for name in names if not is_public(name)]
    assert not wrong


def test_a_name_is_in_one_tier_and_one_room():
    where = {}
    for package in ("fpbench", *list_rooms()):
        for name in list_public_names(package):
            where.setdefault(name, []).append(package)
    assert {name: places for name, places in where.items() if len(places) > 1} == {}
    assert len(list_public_names()) - len(list_rooms()) <= 42


@pytest.mark.parametrize("room", list_rooms())
def test_a_room_lists_its_names_and_imports_nothing_until_one_is_used(room):
    module = importlib.import_module(room)
    assert sorted(module.__all__) == sorted(list_public_names(room))
    for name in module.__all__:
        assert getattr(module, name) is not None
    script = f"import sys, {room}; print([m for m in sys.modules if m.startswith('fpbench')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaders = {"fpbench", "fpbench.base", "fpbench.base.public_names", room}
    assert set(ast.literal_eval(done.stdout)) <= loaders


def test_a_name_of_a_room_tells_where_it_is():
    with pytest.raises(AttributeError, match=r"^fpbench has no 'encode': it is fpbench\.models\."):
        _ = fpbench.encode
    with pytest.raises(AttributeError, match=r"^fpbench has no 'adversary': did you mean 'Advers"):
        _ = fpbench.adversary
    assert not hasattr(fpbench, "encode")


@pytest.mark.slow
def test_only_the_console_prints_and_only_the_command_line_exits():
    for path in MODULES:
        calls = {name for _, name in calls_of(path)}
        assert "print" not in calls, path
        # A forked process ends itself: it must not clear up what is its parent's.
        forked = {"os._exit"}
        allowed = {
            "cli/main": calls,
            "execution/isolation/one_use_server": forked,
            "execution/work/execute": forked,
        }.get(place(path), set())
        assert not calls & {"sys.exit", "exit", "quit", "os._exit"} - allowed, path


@pytest.mark.parametrize(
    "arguments", [["--help"], ["plugins"], ["run", "--help"], ["data", "path"], ["--version"]]
)
def test_quick_commands_import_nothing_heavy(arguments):
    script = (
        "import sys\nfrom importlib import metadata\nfrom fpbench.cli.main import main\n"
        # Of the plugins that may be installed here, only ours have to be light.
        "found = metadata.entry_points\n"
        "metadata.entry_points = lambda **k: [p for p in found(**k) if p.dist.name == 'fpbench-toolkit']\n"
        f"sys.argv = ['fpbench', *{arguments}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"found = {HEAVY - {'pydantic'}} & {{name.partition('.')[0] for name in sys.modules}}\n"
        "print('HEAVY', sorted(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.endswith("HEAVY []\n"), done.stdout


def test_importing_fpbench_imports_nothing_of_it():
    script = "import sys, fpbench; print([m for m in sys.modules if m.startswith('fpbench')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['fpbench']"


def test_every_public_name_is_there():
    for name in fpbench.__all__:
        assert getattr(fpbench, name) is not None
    with pytest.raises(AttributeError):
        _ = fpbench.no_such_thing


def test_components_import_heavy_libraries_only_inside_methods():
    heavy = HEAVY - {"numpy", "pydantic"}
    for path in BUILTINS:
        if path.name == "estimator.py":
            continue  # has the base classes of scikit-learn
        for node in parse(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                assert not {name.partition(".")[0] for name in names} & heavy, path


# What processes send each other through pipes, or would; these modules open no file.
CHANNELS = {
    "execution/isolation/one_use", "execution/isolation/one_use_server", "testing/cases", "execution/engines/local", "testing/watching",
    "execution/sealing",
}  # fmt: skip
# They import what a user installed, what our stubs list, or of some packages what steps import anyway.
IMPORTERS = {
    "base/public_names",
    "components/catalog",
    "models/classifiers",
    "execution/isolation/one_use_server",
    "execution/engines/requirements",
}
PICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def calls_of(path):
    """Full names of what a file calls, as it writes them."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            yield node, name_of(node.func)


def find_unpickling(path):
    """What a module does that could read a pickle from a file, or start a shell."""
    read = {name.partition(".")[0] for name in imports(path) if name}
    channel = place(path) in CHANNELS
    if not channel:
        yield from read & PICKLERS
    for node, name in calls_of(path):
        last = name.rpartition(".")[2]
        first = ast.unparse(node.args[0]) if channel and node.args else ""
        system = first == "os.devnull" or first.startswith("'/proc/")
        keywords = {keyword.arg: getattr(keyword.value, "value", None) for keyword in node.keywords}
        if (
            (channel and name in {"pickle.load", "cloudpickle.load"})
            or (channel and not system and last in {"open", "read_bytes", "read_text", "fdopen"})
            or (place(path) not in IMPORTERS and last in {"__import__", "import_module"})
            or (last == "load" and keywords.get("allow_pickle", False) is not False)
            or (last == "system" and name.partition(".")[0] in {"os", "subprocess"})
            or "shell" in keywords
        ):
            yield name


def test_no_pickle_is_ever_read_from_disk():
    """Whoever can write a file that is unpickled can run code; so nothing unpickles files.

    Workers are sent pickles over pipes and sockets, mostly by libraries; of ours, only modules
    that open no file even import something that reads them.
    """
    assert not [f"{place(path)}: {what}" for path in MODULES for what in find_unpickling(path)]


@pytest.mark.slow
def test_nothing_is_unpickled_while_a_run_is_made_and_read(tmp_path):
    """Python itself tells when a pickle names something; a run directory makes it say nothing."""
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        '[[dataset]]\nuse = "census-synthetic"\nrows = 300\n[[learner]]\nuse = "plain"\n'
        '[[disclosure]]\nuse = "hidden"\n[[adversary]]\nuse = "prior"\n[[corrector]]\nuse = "none"\n'
    )
    script = (
        "import sys\n"
        "told = []\n"
        "sys.addaudithook(lambda event, said: told.append(said) if event == 'pickle.find_class'\n"
        "                 else None)\n"
        "import pickle\n"
        "pickle.loads(pickle.dumps(pickle.Pickler))\n"
        "assert told, 'the hook hears nothing'\n"
        "from fpbench.cli.main import main\n"
        "for words in (['run', sys.argv[1], '--out', 'r'], ['leaderboard', 'r'],\n"
        "              ['export', 'r', '-o', 'r.csv'], ['plan', sys.argv[1], '--out', 'r']):\n"
        "    told.clear()\n"
        "    sys.argv[2:] = []\n"
        "    before, sys.argv = sys.argv, ['fpbench', *words]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
        "    sys.argv = before\n"
        "    assert not told, (words, told)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(matrix)], cwd=tmp_path, check=True)


def test_the_page_of_the_rooms_names_files_that_are_there():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", page, re.M)
    assert {room for room, _ in rows} == {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    named = [
        (f"{room}/{name}", name)
        for room, row in rows
        for name in re.findall(r"`([\w/]+\.py|\w+/)`", row)
    ]
    named += [(name, name) for name in re.findall(r"`(\w+/[\w/]*\.py)`", page)]
    for inside, name in named:
        assert any(PACKAGE.glob(f"**/{inside.strip('/')}")) or any(
            PACKAGE.glob(f"{inside.split('/')[0]}/*/{name}")
        ), name


def test_the_house_can_be_looked_over():
    """What Python writes beside the code, also of rooms that are gone, does not count."""
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    assert len({path.parts[0] for path in files}) <= 25
    assert max(Counter(path.parent for path in files).values()) <= 25


def test_no_room_is_called_nearly_like_another():
    names = sorted(
        {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    )
    alike = [(a, b) for a in names for b in names if a != b and b.rstrip("s") == a.rstrip("s")]
    assert not alike


VERBS = set(
    re.findall(
        r"\w+",
        """
    accept accepts accumulate act add adjust adopt agrees align allows anonymise answer append
    apply approximate are as ask assess attach attack attempt audit average avoid believe blank
    bound build calibrate carry catch certify change check choose close code collect combine
    compare compile complain complete compose compress compute condition confine connect
    contradict contradicts contrast convert convolve copy correct correlate count create cross
    cut deal decide declares decode derive descend describe describes die diff differ disclose
    discover distinguishes divide do download draw draws drop enable encode end escape estimate
    evaluate exceeds exclude execute expand explain export extract fetch fill filter find
    fingerprint fit fits flatten flip floor fold follow forbid forget format fpbench from gather
    get gives group grow guess halve handle handles has hash have hide hides hold holds
    hyphenate identify import infer insert interpolate invert is iterate join judge keep kill
    lack lacks lay leaks learn leave leaves lies limit link list listen load locate lock log
    lower make mark match may measure merge migrate minimise mix move multiply name names narrow
    need needs normalise normalize note number numbers open orient pack pad pair parse part
    passes pause pick pickle place plan poll pool predict preload prepare price process project
    propagate protect prove pytest query quiet quote raise rank reaches read reads recall
    receive recompute reconstruct record recover reduce refuse refuses register registers
    release remove rename render reorder repair repeat repeats replace report reproduce request
    require resample resolve restore restrict reveal root round rule run runs sample satisfies
    satisfy save say scale scan score seal search sees select send separate serve settle share
    sharpen shield shift shorten show shuffle sign silence simplify simulate slice smooth solve
    sort specify spend split splits spread stack standardize stands start state straighten strip
    subtract suggest sum summarise suppress survives swallow tabulate take tally tell tells test
    tile to trace train transfer translate try tune unflatten unpack unquote unseal upgrade use
    uses validate validates varies verify view vote walk warm warn watch weigh why widen
    withstands write
        """,
    )
)
"""What names of functions start with; `why_`, `from_` and `to_` are as good as verbs."""
NO_VERBS = set(
    re.findall(
        r"\w+",
        """
    checks component data data_list dataset doctor domain_field
    encoded_names epsilon_lower_bound epsilon_to_rho excessive_risk figure gaussian_delta
    gaussian_epsilon gaussian_rho gaussian_sigma impurity individual_fairness leaderboard
    logistic_proba main measured_cuts new new_submission page path plugins random_state
    rho_to_delta rho_to_epsilon root rules_within sampled_gaussian_epsilon sampled_gaussian_sigma
    sensitive_field site table tree_rules
    unfairness
    """,
    )
)
"""Commands, and public names that are terms of the field."""


def test_names_of_functions_start_with_a_verb():
    """Add a verb that is missing; a noun, an adjective or a participle does not tell what is done."""
    others = [
        f"{place(path)}: {made.name}"
        for path in MODULES
        for made in parse(path).body
        if isinstance(made, ast.FunctionDef) and not made.name.startswith("__")
        if (name := made.name.lstrip("_")) not in NO_VERBS and name.split("_")[0] not in VERBS
    ]
    assert not others


@pytest.mark.slow
def test_a_wrong_value_is_shown_by_one_function():
    """`not {value!r}` would show np.int64(474), and a frame on ten lines; `show_value` does not."""
    raw = []
    for path in MODULES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.JoinedStr):
                for words, shown in itertools.pairwise(node.values):
                    ends = str(getattr(words, "value", "")).endswith(", not ")
                    if ends and getattr(shown, "conversion", 0) == ord("r"):
                        raw.append(f"{place(path)}, line {node.lineno}")
    assert not raw
