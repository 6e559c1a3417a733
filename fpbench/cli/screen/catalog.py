"""Output of the quick commands: installed components, descriptions, and health checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import DISTRIBUTION, InputError, PluginError, find_near_name
from fpbench.cli.screen import console
from fpbench.components.catalog import OWN_PLUGINS, Catalog, Entry
from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from fpbench.components.attack_kinds import Component


def show_catalog(catalog: Catalog, *, long: bool) -> None:
    """Show names and summaries by kind; `long` imports components to say which cannot be used."""
    for kind in KINDS:
        show_kind(catalog, kind, long=long)


def show_kind(catalog: Catalog, kind: str, *, long: bool = False) -> None:
    """Show the components of a kind, one a line, cut at the terminal's width unless `long`."""
    console.show_heading(f"{kind}  ({KINDS[kind].summary})")
    entries = catalog.of_kind(kind)
    if long:
        console.show_listing((e.name, str(e.source), _describe_state(catalog, e)) for e in entries)
        return
    console.show_listing([(e.name, _summarise(catalog, e)) for e in entries], cut=True)


def _summarise(catalog: Catalog, entry: Entry) -> str:
    """The summary of a component, after its distribution if it is not ours."""
    if entry.rivals:
        return f"{entry.source} also claimed by {' and '.join(map(str, entry.rivals))}"
    whose = "" if entry.source.distribution == DISTRIBUTION else f"{entry.source}: "
    try:
        return whose + catalog.summary(entry)
    except PluginError as error:
        return f"broken: {error}"


def show_broken(catalog: Catalog, *, trace: bool) -> None:
    """Show plugins that could not be registered, or were left out."""
    for source in catalog.left_out:
        console.show_listing([(f"left out: {source} (--no-third-party)",)], indent=0)
    for broken in catalog.broken:
        console.show_listing([(f"broken: {broken.plugin} of {broken.source}: {broken.reason}",)], 0)
        if trace:
            console.show_listing(((line,) for line in broken.trace.splitlines()), indent=4)
    if catalog.broken and not trace:
        console.show_listing([("--trace shows the tracebacks",)], indent=0)


def _describe_state(catalog: Catalog, entry: Entry) -> str:
    """The summary of a component, or what is wrong with it."""
    try:
        cls = catalog.component(entry.kind, entry.name)
    except PluginError as error:
        return f"broken: {error}"
    missing = cls.unavailable()
    return f"unavailable: {missing}" if missing else cls.summary


def _find_program(catalog: Catalog, entry: Entry) -> str | None:
    """What a component needs besides Python packages; None too if the component is broken."""
    try:
        return catalog.component(entry.kind, entry.name).runs_on()
    except PluginError:
        return None


def find_kind(catalog: Catalog, name: str) -> str:
    """The kind of the component with a name; InputError if there are none or several."""
    kinds = [entry.kind for entry in catalog if entry.name == name]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        choices = " or ".join(f"`fpbench describe {kind} {name}`" for kind in kinds)
        raise InputError(f"{name!r} is the name of several components: {choices}")
    if lacking := [kind for kind, own in OWN_PLUGINS if own == name and kind in KINDS]:
        return lacking[0]  # of which the catalog says where it is
    names = {entry.name for entry in catalog} | KINDS.keys()
    near = find_near_name(name, names)
    hint = f"did you mean {near!r}?" if near else "`fpbench plugins` lists all"
    raise InputError(f"no component {name!r}; {hint}")


def show_component(catalog: Catalog, kind: str, name: str, *, long: bool = False) -> None:
    """Show a component's summary, parameters, needs, reference; `long`: its whole docstring."""
    import inspect

    from fpbench.cli.screen.data_sets import show_about

    cls = catalog.component(kind, name)
    doc = inspect.getdoc(cls) or ""
    first, _, rest = doc.partition("\n")
    console.show_heading(f"{kind} {name}  ({catalog.entry(kind, name).source})")
    console.show_listing([(line,) for line in (cls.summary, first) if line])
    console.show_heading("parameters")
    schema = cls.model_json_schema()
    rows = [_describe_parameter(n, p, n in schema.get("required", ())) for n, p in
            schema.get("properties", {}).items()]  # fmt: skip
    console.show_listing(rows or [("none",)])
    if cls.reference:
        console.show_heading("reference")
        console.show_listing([(cls.reference,)])
    if missing := cls.unavailable():
        console.show_heading("unavailable here")
        console.show_listing([(missing,)])
    for what, words in _list_demands(cls):
        console.show_heading(what)
        console.show_listing([(words,)])
    show_about(cls)
    if long:
        console.show_heading("details")
        console.show_listing([(line,) for line in rest.strip("\n").splitlines()])
    elif rest.strip():
        console.show_heading(f"`fpbench describe {kind} {name} --long` says how it works")


def _list_demands(cls: type[Component]) -> Iterator[tuple[str, str]]:
    """What a component needs or can do, apart from its parameters."""
    for attribute, what in (
        ("needs", "needs, to train"),
        ("sees", "sees"),
        ("shows", "shows"),
        ("expresses", "constraints it can express"),
    ):
        if words := getattr(cls, attribute, None):
            yield what, ", ".join(sorted(words))
    if getattr(cls, "predicts_with_sensitive", None) is not None:
        closed = cls.predicts_with_sensitive is True  # type: ignore[attr-defined] # not a property
        groups_too = "people's groups too: who does not know them can ask it about every group"
        yield "needs, to predict", f"features{f', and {groups_too}' if closed else ''}"


def _describe_parameter(name: str, schema: dict[str, Any], required: bool) -> tuple[str, str, str]:
    options = schema.get("anyOf", [schema])
    kinds = " or ".join(dict.fromkeys(_describe_type(option) for option in options))
    default = "required" if required else f"= {_format_default(schema.get('default'))}"
    return name, default, f"{kinds}. {schema.get('description', '')}".strip()


def _format_default(value: Any) -> str:
    """A default as text, with tables and lists as in a matrix."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format_default(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_default, value)) + "]"
    return repr(value)


_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def _describe_type(option: dict[str, Any]) -> str:
    if "enum" in option:
        return " | ".join(map(str, option["enum"]))
    if "const" in option:
        return str(option["const"])
    if "$ref" in option:
        return "table"
    limits = [f"{sign} {option[key]:g}" for key, sign in _LIMITS.items() if key in option]
    return " ".join([str(option.get("type", "any")), ", ".join(limits)]).strip()


def show_health(catalog: Catalog) -> None:
    """Show what works here: components, engines, extras, data."""
    from fpbench.cli.screen.data_sets import show_missing_data
    from fpbench.store.environment import list_extras, warn_of_namesake

    if warning := warn_of_namesake():
        console.show_heading("installation")
        console.show_listing([(warning,)])
    console.show_heading("components")
    states = [(e.kind, e.name, _describe_state(catalog, e)) for e in catalog]
    wrong = [row for row in states if row[2].startswith(("broken", "unavailable"))]
    console.show_listing([(f"{len(states) - len(wrong)} of {len(states)} can be used",)])
    if wrong:
        console.show_listing(wrong)
    show_broken(catalog, trace=False)
    console.show_heading("engines")
    engines = catalog.of_kind("engine")
    lacking = [name for kind, name in OWN_PLUGINS if kind == "engine"]
    rows = [(engine.name, _summarise(catalog, engine)) for engine in engines]
    rows += [(name, catalog.explain_missing("engine", name)) for name in lacking
             if ("engine", name) not in catalog.entries]  # fmt: skip
    console.show_listing(rows)
    if programs := [
        (e.kind, e.name, program) for e in catalog if (program := _find_program(catalog, e))
    ]:
        console.show_heading("programs")
        console.show_listing(programs)
    console.show_heading("extras")
    console.show_listing(list_extras())
    console.show_heading("data")
    show_missing_data(catalog)
