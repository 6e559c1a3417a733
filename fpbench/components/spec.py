"""Components by name and as data: specs that travel to workers, fingerprints of code for keys."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

from fpbench.base.arguments import show_value
from fpbench.base.errors import DISTRIBUTION, FpbenchError, InputError, MatrixError, find_near_name
from fpbench.base.public_names import list_public_names
from fpbench.base.text import add_article
from fpbench.base.validation import validate
from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.auditor import BASES
from fpbench.components.catalog import Catalog, discover
from fpbench.components.names import MATRIX_VALUES
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table


@dataclass(frozen=True)
class Spec:
    """A component by name and parameters: strings and numbers only."""

    kind: str
    use: str
    parameters: dict[str, Any]
    """All parameters, defaults included."""
    slots: dict[str, Spec] = field(default_factory=dict)
    """Components in its slots, by field."""

    chosen: dict[str, Any] = field(default_factory=dict)
    """The parameters that differ from their defaults."""

    def identity(self) -> str:
        """Canonical JSON: the same for the same component with the same parameters.

        Defaults are left out, so that a new parameter of a component does not change its random
        numbers. (Its code does change, and so do the keys of its steps.)
        """
        slots = {name: spec.identity() for name, spec in self.slots.items()}
        return json.dumps([self.kind, self.use, self.chosen, slots], sort_keys=True)


def specify(
    catalog: Catalog,
    kind: str,
    use: str,
    parameters: dict[str, Any],
    where: str,
    slots: Mapping[str, tuple[Component, Spec]] = MappingProxyType({}),
) -> tuple[Component, Spec]:
    """A component built from a user's parameters, and its spec.

    Components in `slots`, and inline tables with `use`, fill the fields of their kind.

    Raises MatrixError if a parameter is unknown, missing or out of range; NameUnknownError if there
    is no such component; PluginError if it cannot be loaded.
    """
    cls = catalog.component(kind, use)
    values = dict(parameters)
    components = {name: component for name, (component, _) in slots.items()}
    specs = {name: spec for name, (_, spec) in slots.items()}
    for name, slot_kind in find_slot_kinds(cls).items():
        value = values.pop(name, None)
        if isinstance(value, dict) and isinstance(value.get("use"), str):
            inner = {key: v for key, v in value.items() if key != "use"}
            inline = f"{where}: {name}"
            components[name], specs[name] = specify(catalog, slot_kind, value["use"], inner, inline)
        elif value is not None:
            raise MatrixError(f'{where}: {name}: must be a table with use = "NAME"')
        elif name not in components and cls.model_fields[name].is_required():
            # Only auditors are crossed with components of the matrix.
            named = (
                f"name some with [[{slot_kind}]], or one inline" if kind == "auditor" else "name it"
            )
            what = add_article(slot_kind)
            raise MatrixError(f'{where}: takes {what}: {named} with {name} = {{ use = "NAME" }}')
    for name in (*values,) if "[[" in where else ():
        if name not in cls.model_fields and (hint := _find_place(catalog, cls, name)):
            raise MatrixError(f"{where}: unknown key {name!r}; {hint}")
    component = validate(cls, {**values, **components}, where, ("use", "label"))
    return component, _describe(component, specs)


def _find_place(catalog: Catalog, cls: type[Component], key: str) -> str:
    """Where a key belongs that a component has not; empty if it is only a slip of the pen."""
    if key in MATRIX_VALUES:
        return "it is one of the matrix itself: write it at the top, above the first [[...]]"
    if find_near_name(key, [*cls.model_fields, "use", "label"]):
        return ""
    having = []
    for entry in catalog.of_kind(cls.kind):
        try:
            fields = catalog.component(cls.kind, entry.name).model_fields
        except FpbenchError:  # a broken plugin
            continue
        if key in fields:
            having.append(f'use = "{entry.name}"')
    return f"{' or '.join(having[:3])} has it" if having else ""


def describe_component(component: Component) -> Spec:
    """The spec of a component that code has built."""
    slots = {name: getattr(component, name) for name in find_slot_kinds(type(component))}
    filled = {name: inner for name, inner in slots.items() if inner is not None}
    return _describe(component, {name: describe_component(inner) for name, inner in filled.items()})


def _describe(component: Component, specs: dict[str, Spec]) -> Spec:
    slotted = set(find_slot_kinds(type(component)))
    dumped = component.model_dump(mode="json", exclude=slotted)
    chosen = component.model_dump(mode="json", exclude=slotted, exclude_defaults=True)
    return Spec(component.kind, component.name, dumped, specs, chosen)


def build_component(spec: Spec, catalog: Catalog) -> Component:
    """The component that a spec describes."""
    components = {name: build_component(inner, catalog) for name, inner in spec.slots.items()}
    return catalog.component(spec.kind, spec.use)(**spec.parameters, **components)


@cache
def find_slot_kinds(cls: type[Component]) -> dict[str, str]:
    """Kinds of the fields of a component that hold other components, by field."""
    kinds = {}
    for name, info in cls.model_fields.items():
        annotation: Any = info.annotation
        union = get_origin(annotation) in (Union, UnionType)
        for option in get_args(annotation) if union else (annotation,):
            if (
                isinstance(option, type)
                and issubclass(option, Component)
                and option in BASES.values()
            ):
                kinds[name] = option.kind
    return kinds


def is_third_party(spec: Spec, catalog: Catalog) -> bool:
    """Whether a component, or one in its slots, is of another distribution than fpbench's."""
    ours = catalog.entry(spec.kind, spec.use).source.distribution == DISTRIBUTION
    return not ours or any(is_third_party(inner, catalog) for inner in spec.slots.values())


def fingerprint(spec: Spec, catalog: Catalog) -> str:
    """A string that changes with the version and code of a component or of its slots."""
    entry = catalog.entry(spec.kind, spec.use)
    own = f"{entry.source}/{hash_code(catalog.component(spec.kind, spec.use))}"
    return "+".join([own, *(fingerprint(inner, catalog) for inner in spec.slots.values())])


@cache
def hash_code(cls: type[Component]) -> str:
    """Hash of the code, without prose, of a component's module, its base classes and their imports.

    Only imports from their own package or from fpbench count.
    """
    pending = [base.__module__ for base in cls.__mro__ if base.__module__ in sys.modules]
    hashes: dict[str, str] = {}
    while pending:
        name = pending.pop()
        if name not in hashes and name.partition(".")[0] not in _NOT_HASHED:
            hashes[name], imported = _hash_module(name, sys.modules.get(name))
            pending += imported
    text = "".join(hashes[name] for name in sorted(hashes))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_NOT_HASHED = {"abc", "builtins", "pydantic", "typing"}


@cache
def _hash_module(name: str, module: ModuleType | None) -> tuple[str, list[str]]:
    """Hash of the code of a module without prose, and the modules that count as part of it."""
    file = _find_source(name, module)
    nodes = _parse_code(file)
    digest = hashlib.sha256(ast.dump(nodes[0]).encode()).hexdigest()
    package = name if file and file.name == "__init__.py" else name.rpartition(".")[0]
    return digest, _list_imports(nodes, package)


def _find_source(name: str, module: ModuleType | None) -> Path | None:
    """The file of a module; for one not imported yet, the file in its package.

    So a key does not depend on what a process has imported, and computing it imports nothing.
    """
    if module is not None:
        file = getattr(module, "__file__", None)
        return Path(file) if file and file.endswith(".py") else None
    top, *rest = name.split(".")
    for folder in getattr(sys.modules.get(top), "__path__", ()):
        path = Path(folder, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _parse_code(file: Path | None) -> list[ast.AST]:
    """All nodes of a module's code without prose, the module first; None is an empty module.

    One walk serves all callers: a run looks at a million nodes before it starts.
    """
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8") if file else "")
    except (OSError, SyntaxError, UnicodeDecodeError):
        tree = ast.parse("")
    nodes = list(ast.walk(tree))
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_prose(s)]  # type: ignore[attr-defined]
    return nodes


def _is_prose(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _list_imports(nodes: list[ast.AST], package: str) -> list[str]:
    """Modules of its own package and of fpbench that code imports, also through public names.

    Relative imports start at `package`, the package that contains the module, or the module itself.
    """
    ours = {"fpbench", package.partition(".")[0]} - {""}
    names: list[str] = []
    bound: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            module = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            names += [f"{module}.{alias.name}" for alias in node.names]
            bound |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
            tops = (alias.name.partition(".")[0] for alias in node.names)
            bound |= {a.asname or t: a.name if a.asname else t
                      for a, t in zip(node.names, tops, strict=True)}  # fmt: skip
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, *rest = _split_dotted(node)
            if first in bound:
                names.append(".".join([bound[first], *rest]))
    modules = (_find_module(name) for name in names if name.partition(".")[0] in ours)
    return [module for module in modules if module]


def _split_dotted(node: ast.expr) -> list[str]:
    """Names in `a.b.c`; the first is empty if the expression does not start with a name."""
    if isinstance(node, ast.Attribute):
        return [*_split_dotted(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]


def _find_module(name: str) -> str | None:
    """The module of a dotted name; for a public name, the module that defines it.

    None for a package of public names: it has no code of its own.
    """
    current, *rest = name.split(".")
    for part in rest:
        current = list_public_names(current).get(part, f"{current}.{part}")
    while "." in current and not _find_source(current, sys.modules.get(current)):
        current = current.rpartition(".")[0]
    return None if list_public_names(current) else current


def component(kind: str, name: str, **parameters: Any) -> Component:
    """Any installed component by name.

    Parameters
    ----------
    kind
        `dataset`, `learner`, `disclosure`, `adversary`, `corrector`, `mechanism`, `policy` or
        `auditor`.
    name
        Its name, as `fpbench plugins` lists it.
    **parameters
        Its parameters, as `fpbench describe` lists them.

    Raises
    ------
    InputError
        If the kind, the name or a parameter is unknown, or a value is out of range.
    PluginError
        If the component cannot be loaded.
    """
    return specify(discover(), kind, name, parameters, f"{kind} {name!r}")[0]


def resolve_component(
    kind: str, chosen: str | Mapping[str, Any] | Component, **parameters: Any
) -> Component:
    """The component that a name with parameters, a table with `use`, or a component stands for.

    Raises InputError for anything else, for another kind, or for a component with further
    parameters.
    """
    if isinstance(chosen, str):
        return component(kind, chosen, **parameters)
    if parameters:
        raise InputError(f"{kind}: {', '.join(parameters)} can be given only with a name")
    if isinstance(chosen, Mapping):
        if not isinstance(chosen.get("use"), str):
            raise InputError(f'{kind}: a table needs use = "NAME"')
        return component(kind, chosen["use"], **{k: v for k, v in chosen.items() if k != "use"})
    if getattr(chosen, "kind", None) != kind or isinstance(chosen, type):
        article = "an" if kind[0] in "aeiou" else "a"
        raise InputError(
            f"{kind}: must be a name or {article} {kind}, not {show_value(chosen)}; "
            f"`fpbench describe {kind}` lists the names"
        )
    return chosen


def dataset(name: str, **parameters: Any) -> Table:
    """Load a dataset by name.

    Parameters
    ----------
    name
        Its name in a matrix, as `fpbench plugins` lists it.
    **parameters
        Its parameters, as in a matrix.

    Raises
    ------
    InputError
        If the name or a parameter is unknown; `DataError` if a file is missing or malformed.

    Warns
    -----
    UserWarning
        If a file is not the known original; with both checksums.
    """
    source, home = component("dataset", name, **parameters), DataHome.default()
    assert isinstance(source, Dataset)
    table = source.load(home)
    checksums = {name: compute() for name, compute in source.checksums(home).items()}
    for warning in source.unlike(home, checksums):
        warnings.warn(warning, stacklevel=2)
    return table
