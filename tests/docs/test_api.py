"""The reference of Python: every public name is on the page of its room, is explained, and is used."""

import ast
import importlib
import inspect
import re
from itertools import pairwise

from pages import ROOT, blocks

from fpbench.base.public_names import list_public_names, list_rooms

PACKAGES = ["fpbench", *list_rooms()]
NAMES = [
    (package, name, module)
    for package in PACKAGES
    for name, module in list_public_names(package).items()
    if module != f"fpbench.{name}"
]


def page(package):
    """The page of a tier or a room."""
    return ROOT / "docs" / f"{package.replace('fpbench', 'api').replace('.', '-')}.md"


def test_pages_show_every_name_of_their_room_once_and_use_it():
    """Blocks of a page run in `test_docs.py`."""
    nav = (ROOT / ".ci" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    for package in PACKAGES:
        shown = re.findall(r"^::: (\S+)$", page(package).read_text(encoding="utf-8"), re.M)
        names = [name for where, name, _ in NAMES if where == package]
        assert sorted(shown) == sorted(f"{package}.{name}" for name in names)
        assert f"      - {package}: {page(package).name}\n" in nav
        code = ast.parse("\n".join(block.text for block in blocks(page(package), "python")))
        used = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(code)}
        assert not set(names) - used, package


def documented(module, name):
    """The docstring of what a module defines, a constant's too, which is the text below it."""
    source = importlib.import_module(module)
    value = getattr(source, name)
    if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
        return inspect.getdoc(value)
    body = ast.parse(inspect.getsource(source)).body
    for before, after in pairwise(body):
        target = getattr(before, "target", None) or getattr(before, "targets", [None])[0]
        if getattr(target, "id", None) == name and isinstance(after, ast.Expr):
            return ast.literal_eval(after.value)
    return None


def parameters(value):
    """What a reader may pass: to a function, to a class that is made by hand, or as a field."""
    if inspect.isfunction(inspect.unwrap(value)):
        return list(inspect.signature(value).parameters)
    made = inspect.isclass(value) and not hasattr(value, "model_fields")
    plain = made and not issubclass(value, Exception) and not getattr(value, "_is_protocol", False)
    own = "__init__" in vars(value) or hasattr(value, "_fields") if plain else False
    if not own or inspect.isabstract(value):
        return []
    return [name for name in inspect.signature(value).parameters if name not in {"args", "kwargs"}]


def test_names_say_what_they_are_and_what_each_parameter_is():
    silent = []
    for _, name, module in NAMES:
        text = documented(module, name) or ""
        told = {"its docstring"} if text.strip() else set()
        for section in re.split(r"^(?=\w[\w ]*\n-+$)", text, flags=re.M):
            if section.startswith(("Parameters\n", "Attributes\n")):
                for head in re.findall(r"^(\*{0,2}\w.*)$", section, re.M):
                    told |= {word.strip(" *") for word in head.partition(" :")[0].split(",")}
        asked = {*parameters(getattr(importlib.import_module(module), name)), "its docstring"}
        silent += [f"{name}: {what}" for what in asked - told]
    assert not silent


def test_help_tells_each_field_of_a_guess():
    import fpbench

    text = inspect.getdoc(fpbench.Guess)
    for field in ("values", "confidence", "held_out", "held_out_values", "held_out_confidence"):
        assert re.search(rf"^{field}\n    \(", text, re.M), field
