"""What must stay true of the house: floors, doors, light start, small rooms."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fpbench

PACKAGE = Path(fpbench.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
BUILTINS = sorted((PACKAGE / "builtin").rglob("*.py"))

# A module imports only from floors below its own.
FLOORS = [
    ["errors", "kinds", "decimals"],
    ["validation"],
    [
        "counts",
        "points",
        "pieces",
        "highs",
        "beliefs",
        "poisson_binomial",
        "home",
        "hookspecs",
        "attributes",
        "domains",
        "privacy",
        "row_blocks",
        "conversion",
        "events",
        "projection",
        "statements",
        "welch",
    ],
    [
        "ledger_books",
        "batched_logistic",
        "batched_mlp",
        "noisy_votes",
        "columns",
        "conditions",
        "lattice",
        "encoding",
        "estimators",
    ],
    ["ledger", "rates", "regions", "label_moments"],
    ["constraints", "records", "risk_bounds", "risk_closed_form"],
    [
        "protocols",
        "tables",
        "facts",
        "tally",
        "problems",
        "frontier",
        "relaxation",
        "rules",
        "releases",
    ],
    ["components", "two_groups", "programs", "posterior", "rule_lists", "grouping", "risk_draws"],
    ["auditing", "risk_report"],
    [
        "bases",
        "testing",
        "sklearn_learner",
        "tabular",
        "many_groups",
        "curator",
        "curator_files",
        "risk_votes",
    ],
    ["exact", "frames", "excess"],
    ["weights"],
    ["optimal", "scores", "plugins", "expectations", "curator_wire"],
    ["matrix"],
    ["specs", "remote"],
    ["steps", "curator_service"],
    ["actions"],
    ["plan"],
    ["planner"],
    ["store", "engines", "environment", "leaderboard", "export", "comparisons"],
    ["seedwise"],
    ["verdicts", "summary"],
    ["standings"],
    ["runner"],
    ["console", "commands", "curator_http"],
    ["data_listings", "summary_boards", "verdict_boards"],
    ["api", "listings", "boards", "data_cli", "curator_cli"],
    ["reproduce", "audits", "corrections"],
    ["cli"],
    ["__main__"],
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}

HEAVY = {"sklearn", "pandas", "fairlearn", "scipy", "pyomo", "docplex", "optuna", "plotly",
         "distributed", "loky", "numpy", "pydantic"}  # fmt: skip


def imports(path, *, typing_too=False):
    """Modules that a file imports anywhere, apart from those only for type checking."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        checking = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if checking and not typing_too:
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ([f"{node.module}.{a.name}" for a in node.names]
                        if node.module == "fpbench" else [node.module])  # fmt: skip
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_module_has_a_floor():
    top = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert top == set(FLOOR)


@pytest.mark.parametrize("name", sorted(FLOOR))
def test_a_module_imports_only_from_floors_below(name):
    for target in imports(PACKAGE / f"{name}.py"):
        parts = target.split(".")
        if parts[0] == "fpbench" and len(parts) > 1 and parts[1] in FLOOR:
            assert FLOOR[parts[1]] < FLOOR[name], f"{name} imports {target}"


def test_only_the_public_door_leads_into_builtins():
    """Nothing in the core knows a component of ours by name."""
    for name in FLOOR:
        assert not [t for t in imports(PACKAGE / f"{name}.py") if t.startswith("fpbench.builtin")]


@pytest.mark.parametrize("path", BUILTINS, ids=lambda path: path.stem)
def test_builtins_import_only_what_a_third_party_may(path):
    own_kind = ".".join(["fpbench", *path.relative_to(PACKAGE).parts[:-1]])
    for target in imports(path, typing_too=True):
        if not target.startswith("fpbench"):
            continue
        public = target.removeprefix("fpbench.") in fpbench.__all__
        shared = target.startswith(f"{own_kind}._")  # a private module of its own kind
        assert public or shared, f"{path.name} imports {target}"


def test_only_the_console_prints_and_only_the_command_line_exits():
    for path in MODULES:
        calls = {ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text()))
                 if isinstance(n, ast.Call)}  # fmt: skip
        assert "print" not in calls, path
        if path.stem != "cli":
            assert not calls & {"sys.exit", "exit", "quit", "os._exit"}, path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 320
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            prose = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            start = first.end_lineno if prose else node.lineno
            assert node.end_lineno - start <= 50, f"{path.name}: {node.name}"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["plugins"], ["run", "--help"], ["data", "path"], ["--version"]]
)
def test_quick_commands_import_nothing_heavy(arguments):
    script = (
        "import sys\nfrom importlib import metadata\nfrom fpbench.cli import main\n"
        # Of the plugins that may be installed here, only ours have to be light.
        "found = metadata.entry_points\n"
        "metadata.entry_points = lambda **k: [p for p in found(**k) if p.dist.name == 'fpbench']\n"
        f"sys.argv = ['fpbench', *{arguments}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"found = {HEAVY} & {{name.partition('.')[0] for name in sys.modules}}\n"
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
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                assert not {name.partition(".")[0] for name in names} & heavy, path
