"""Changes one operator, constant or extreme of the code at a time: quick tests should notice.

`python .ci/mutants.py [places] [seed] [kind ...]` draws places evenly from the kinds of code below.
Cosmic Ray changes them, in a copy of the repository. A change is noticed if a quick test of the
room fails or does not end; those that name the module are tried first.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cosmic_ray.plugins
import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

KINDS = {
    "privacy": ["privacy/*.py"],
    "statistics": ["results/intervals.py", "results/signed_ranks.py", "results/verdicts.py"],
    "bounds": ["correction/leak_limits.py", "claims/fact_information.py",
               "auditing/epsilon_bounds/*.py"],
    "sentences": ["results/sentences.py"],
}  # fmt: skip
OPERATORS = re.compile(
    r"core/(NumberReplacer|Replace(AndWithOr|OrWithAnd|TrueWithFalse|UnaryOperator_Delete_\w+|"
    r"BinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Div|Mod_Mul|Pow_Mul|BitAnd_BitOr|"
    r"BitOr_BitAnd)|ComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq)))"
)
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
SECONDS = 600


class SwapExtremes(Operator):  # noqa: D101
    def mutation_positions(self, node):  # noqa: D102
        if node.type == "name" and node.value in EXTREMES:
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):  # noqa: D102
        return parso.python.tree.Name(EXTREMES[node.value], node.start_pos, node.prefix)

    examples = tuple


def _list_places(path):
    """The places of a module, each with its operators and the number of the place for them."""
    names = sorted(filter(OPERATORS.match, cosmic_ray.plugins.operator_names()))
    places, nodes = {}, list(ast_nodes(get_ast(path.read_text())))
    for operator in [SwapExtremes(), *(cosmic_ray.plugins.get_operator(name)() for name in names)]:
        found = [place for node in nodes for place in operator.mutation_positions(node)]
        for number, place in enumerate(found):
            places.setdefault((path, *place), []).append((operator, number))
    return list(places.items())


def _read(code):
    """What is run of a program: all but annotations, and which arguments are named."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        vars(node).update(dict.fromkeys({"annotation", "returns"} & vars(node).keys()))
        if isinstance(node, ast.arguments):  # Cosmic Ray takes the star before them for a product
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults = [*node.defaults, *filter(None, node.kw_defaults)]
            node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
    return ast.dump(tree)


def _find_room(root, path):
    return root / "tests" / path.relative_to(root / "fpbench").parts[0]


def _notices(root, tests):
    """Whether quick tests fail or do not end."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *map(str, tests)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            command, cwd=root, env=env, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _main(count="40", seed="0", *kinds):
    rng, missed, drawn = random.Random(int(seed)), 0, []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repository")
        shutil.copytree(Path(__file__).parents[1], root, ignore=shutil.ignore_patterns(".*"))
        for n, kind in enumerate(kinds := kinds or tuple(KINDS), 1):
            paths = sorted(path for glob in KINDS[kind] for path in (root / "fpbench").glob(glob))
            places = [place for path in paths for place in _list_places(path)]
            drawn += rng.sample(places, int(count) * n // len(kinds) - len(drawn))
        rooms = {_find_room(root, path) for (path, *_), _ in drawn}
        if broken := [room.name for room in rooms if _notices(root, [room])]:
            sys.exit(f"tests of {', '.join(broken)} fail without a change")
        for (path, (line, _), _), ways in rng.sample(drawn, len(drawn)):
            code, way = path.read_text(), rng.choice(ways)
            mutant = mutate_code(code, *way)
            if _read(mutant) == _read(code):
                continue
            room = _find_room(root, path)
            tests = sorted(room.rglob("test_*.py"))
            near = [test for test in tests if path.stem in f"{test.stem} {test.read_text()}"]
            path.write_text(mutant)
            noticed = (near and _notices(root, near)) or _notices(root, [room])
            path.write_text(code)
            missed += not noticed
            old, new = (text.splitlines()[line - 1].strip() for text in (code, mutant))
            words = "noticed" if noticed else "NOT NOTICED"
            print(f"{words}: {path.relative_to(root)}:{line}: {old}  ->  {new}", flush=True)
    print(f"{missed} of {len(drawn)} not noticed")


_main(*sys.argv[1:])
