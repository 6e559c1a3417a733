"""Write the reference pages of the documentation from the code: `python .ci/reference.py`.

`docs/commands.md` is made from the command line, `docs/components.md` from the models of the
built-in components, `docs/keys.md` from those of the matrix, `docs/measures.md` from
the declarations of measures, `docs/plugin-templates.md` from what `fpbench new` writes,
`docs/reports-tables.md` from `benchmarks/reports.csv`, which `.ci/reports_picture.py` writes, and
from the same file parts of pages, between `<!-- made: NAME -->` and `<!-- end -->`.
`tests/docs/test_docs.py` fails if a page differs from this script's output.
"""

import csv
import inspect
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typer.models import ArgumentInfo, OptionInfo

from fpbench.claims.facts import Fact
from fpbench.cli.main import app
from fpbench.cli.screen.catalog import _describe_parameter, _list_demands
from fpbench.components.auditor import BASES
from fpbench.components.measures import Measure
from fpbench.components.names import ATTACK, AUDIT, KINDS
from fpbench.components.own_measures import OWN
from fpbench.components.sights import SIGHTS
from fpbench.matrix.expectations import CHECKS, Expectation, SummaryColumn, SummaryTable
from fpbench.matrix.limits import Limits
from fpbench.matrix.matrix import Ranking, Shares, _File
from fpbench.plugin import discover
from fpbench.testing.scaffold import make_component

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STUDY = ROOT / "benchmarks" / "reports.csv"
"""What the study of reports measured, in percent and points: a line for each defence and order."""
MEASURED = ("leak", "proven", "error")
TEMPLATES = {
    "adversary": "commonest",
    "learner": "forest",
    "disclosure": "vague",
    "corrector": "step-by-step",
    "mechanism": "loud",
    "policy": "scaled",
    "auditor": "accuracy-gap",
    "dataset": "made-up",
}
"""The component that the page of templates shows of each kind."""
WAYS = {"1": "one column", "2": "two columns", "3": "three columns"}
PEOPLE = {
    "10,000 and more (Adult twice, bank, credit card)": range(10_000, 10**9),
    "2,000 to 3,000 (COMPAS, synthetic, Parkinsons)": range(1_000, 10_000),
    "333 (German credit)": range(1_000),
}
"""Numbers of people, as the table of what to publish calls them."""
CHOICES = {
    "as it is (cells of 10)": "cells >= 10",
    "below 8 suppressed, then to 5": "groups >= 8, nearest, to 5",
    "cell keys": "cell keys",
    "released, epsilon 1": "Laplace, eps 1",
    "released, epsilon 10": "Laplace, eps 10",
}
"""Defences of that table, as the study calls them."""
Study = list[dict[str, str]]
MADE = "<!-- Made by .ci/reference.py: change the code, then run it. -->"


def row(*cells: str) -> str:
    """A line of a table; bars within cells are escaped."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """A table, or nothing if there are no rows."""
    lines = [row(*cells) for cells in rows]
    if lines:
        yield from (row(*heads), row(*["---"] * len(heads)), *lines, "")


def keys(model: type[BaseModel], leave: Collection[str] = ()) -> Iterator[str]:
    """The table of a model's fields, but for those to leave out."""
    schema = model.model_json_schema()
    required = schema.get("required", ())
    rows = []
    for name, details in schema.get("properties", {}).items():
        if name in leave:
            continue
        key, default, text = _describe_parameter(name, details, name in required)
        kind, _, words = text.partition(". ")
        kind = kind.removesuffix(" or null").removesuffix(".")
        if kind.count("|") > 12:
            kind = f"one of {kind.count('|') + 1} words"
        rows.append((f"`{key}`", f"`{_toml(default)}`" if default != "required" else "required",
                     kind, _plain(words)))  # fmt: skip
    yield from table(("key", "default", "type", ""), rows)


def _toml(default: str) -> str:
    """A default as a matrix has it."""
    value = default.removeprefix("= ")
    words = {"None": "not given", "True": "true", "False": "false", "{  }": "{}"}
    if value in words:
        return words[value]
    return re.sub(r"'([^']*)'", lambda text: json.dumps(text[1]), value)


def _plain(text: str | None) -> str:
    """A description in one line."""
    return " ".join((text or "").split())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first(cls: type) -> str:
    """The first line of a class's documentation."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def matrix_page() -> str:
    """The reference of matrix files."""
    lines = [MADE, "", "# Reference: the matrix", ""]
    lines += ["What a matrix may say; [the matrix](matrix.md) says how it is read.", ""]
    lines += ["## Keys", ""]
    rows = [(f"`{name}`", _plain(field.description)) for name, field in _File.model_fields.items()
            if name not in KINDS]  # fmt: skip
    rows += [(f"`[[{kind.name}]]`", f"{kind.summary}: [components](components.md#{kind.plural})")
             for kind in KINDS.values()]  # fmt: skip
    rows.append(("`[profile.NAME]`", "keys that replace those above: `--profile NAME`"))
    lines += table(("key", ""), rows)
    lines += [f"An attack combines {_and(ATTACK)};",
              f"an audit {_and(AUDIT)}, the last two where the auditor takes them.", "",
              "## Tables of components", ""]  # fmt: skip
    lines += table(("key", ""), [
        ("`use`", "name of the component: `fpbench plugins`"),
        ("`label`", "what rows call it; its name, if not given. What is swept is added"),
        ("any other", "a parameter, or a sweep of it: `{ sweep = [...] }`, "
         "`{ linspace = [low, high, number] }`, `{ geomspace = [low, high, number] }`"),
    ])  # fmt: skip
    for heading, model in (
        ("[split]", Shares), ("[leaderboard]", Ranking), ("[limits]", Limits),
        ("[[summary]]", SummaryTable), ("Columns of a summary", SummaryColumn),
    ):  # fmt: skip
        lines += [f"## {heading}", "", *keys(model)]
    lines += ["## [[expect]]", ""]
    lines += [
        "[Statements as data](reproducing.md#statements-as-data) says how they are judged.",
        "",
    ]
    common = Expectation.model_fields.keys()
    lines += ["Keys of every check:", "", *keys(Expectation)]
    for model in dict.fromkeys(CHECKS.values()):
        name, words = _constant(model, "check"), _first(model).partition(": ")[2]
        lines += [f"### check = {name}", "", _sentence(words), "", *keys(model, leave=common)]
    lines += ["## Facts: `also` of a disclosure", ""]
    lines += ["[What a corrector can be told](correctors.md#what-a-corrector-can-be-told).", ""]
    for model in _members(get_args(Fact)[0]):
        lines += [
            f"### use = {_constant(model, 'use')}",
            "",
            _first(model),
            "",
            *keys(model, leave={"use"}),
        ]
    return _text(lines)


def _members(union: Any) -> Iterator[type[BaseModel]]:
    """The models of a (discriminated) union."""
    for member in get_args(union):
        if isinstance(member, type) and issubclass(member, BaseModel):
            yield member
        elif get_args(member):
            yield from _members(member)


def _constant(model: type[BaseModel], field: str) -> str:
    return " or ".join(f"`{word}`" for word in get_args(model.model_fields[field].annotation))


def _and(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}"


def components_page() -> str:
    """The reference of built-in components."""
    lines = [MADE, "", "# Reference: components", ""]
    lines += ["All that fpbench brings, with every parameter: `fpbench describe KIND NAME` in one."]
    lines += ["[Methods](methods.md) says what is computed; plugins add their own.", ""]
    lines += ["## What may be seen", ""]
    lines += ["What adversaries and auditors declare in `sees`, and disclosures in `shows`.",
              "Adversaries get columns of a `Sample`: of the target people, whose groups they",
              "never see, and of the attack set, whose groups they do. Cells are refused where the",
              "model cannot give what is to be seen.", ""]  # fmt: skip
    lines += table(("name", "what", "may be declared by"), [
        (f"`{sight.name}`", sight.meaning, ", ".join(KINDS[kind].plural for kind in KINDS
                                                     if kind in sight.kinds))
        for sight in SIGHTS.values()
    ])  # fmt: skip
    catalog = discover()
    for kind in KINDS.values():
        lines += [f"## {kind.plural.capitalize()}", "", f"{_first(BASES[kind.name])} "
                  f"Base class: `fpbench.{kind.base}`.", ""]  # fmt: skip
        for entry in catalog.of_kind(kind.name):
            if entry.source.distribution == "fpbench-toolkit":
                lines += _component(catalog.component(kind.name, entry.name))
    return _text(lines)


def _component(cls: Any) -> Iterator[str]:
    yield from (f"### {cls.kind} `{cls.name}`", "", f"{_sentence(_plain(cls.summary))}.", "")
    for what, words in _list_demands(cls):
        yield f"*{_sentence(what)}*: {words}."
        yield ""
    if cls.reference:
        yield from (f"*Source*: {cls.reference.rstrip('.')}.", "")
    yield from keys(cls)


def measures_page() -> str:
    """The glossary of measures."""
    lines = [MADE, "", "# Reference: measures", ""]
    lines += ["The measures of rows, and of columns of leaderboards and reports.",
              "`--by`, `--columns`, `--sort`, `--where` and `rank_by` accept a measure's",
              "name or heading; case and spaces do not matter.", ""]  # fmt: skip
    lines += ["## Measures of fpbench", "", *_measures(OWN), "## Measures of components", ""]
    lines += ["Components add measures under their own names; "
              "[writing plugins](write-a-plugin.md#notes-and-measures) says how. `*` stands for "
              "any letters, such as the name of a group.", ""]  # fmt: skip
    catalog = discover()
    for kind in KINDS.values():
        for entry in catalog.of_kind(kind.name):
            declared = catalog.component(kind.name, entry.name).measures
            if entry.source.distribution == "fpbench-toolkit" and declared:
                lines += [f"### {kind.name} `{entry.name}`", "", *_measures(declared)]
    return _text(lines)


def _measures(measures: Iterable[Measure]) -> Iterator[str]:
    better = {"greater": "more", "less": "less", "neither": ""}
    rows = [(f"`{one.name}`", one.heading, one.unit, better[one.better], one.meaning)
            for one in measures]  # fmt: skip
    yield from table(("name", "heading", "unit", "better", ""), rows)


def commands_page() -> str:
    """The reference of the command line."""
    lines = [MADE, "", "# Reference: commands", "", f"{_plain(app.info.help)}", "",
             "Each command has `--help`. Options of `fpbench` itself stand before the command.", "",
             *_options(_parameters(app.registered_callback.callback))]  # fmt: skip
    for words, callback in sorted(_commands(app, "fpbench"), key=lambda named: named[0]):
        parameters = _parameters(callback)
        arguments = [p for p in parameters if isinstance(p.info, ArgumentInfo)]
        usage = " ".join([words, *(a.shown if a.required else f"[{a.shown}]" for a in arguments)])
        lines += [f"## {words}", "", f"`{usage} [OPTIONS]`", ""]
        for part in re.split(r"\n\s*\n", inspect.getdoc(callback) or ""):
            lines += [_plain(part), ""]
        lines += table(("argument", ""), [(f"`{a.shown}`", _plain(a.info.help)) for a in arguments])
        lines += _options(parameters)
    return _text(lines)


class Parameter(NamedTuple):
    """A parameter of a command, as its function declares it."""

    name: str
    info: Any
    type: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> str:
        """What stands for its value."""
        kinds = [kind for kind in get_args(self.type) or (self.type,) if kind is not NoneType]
        if get_origin(kinds[0]) is None and issubclass(kinds[0], Enum):
            return "|".join(str(word.value) for word in kinds[0])
        plain = {Path: "PATH", int: "NUMBER", float: "NUMBER"}
        word = (
            plain.get(kinds[0], "TEXT") if isinstance(self.info, OptionInfo) else self.name.upper()
        )
        return self.info.metavar or word

    @property
    def flags(self) -> list[str]:
        """How it is written."""
        first = self.info.default  # where a declaration of Annotated[...] begins with a flag
        names = [first] if isinstance(first, str) else []
        names += self.info.param_decls or ()
        return names or [f"--{self.name.replace('_', '-')}"]


def _parameters(callback: Any) -> list[Parameter]:
    """The parameters of a command; typer makes the same of them, in each version its own way."""
    hints, parameters = get_type_hints(callback, include_extras=True), []
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, *extra = get_args(hints[name]) or (hints[name],)
        default = parameter.default
        if extra:
            info = extra[0]
        elif isinstance(default, OptionInfo | ArgumentInfo):  # the older way
            info, default = default, default.default
        else:
            continue
        parameters.append(Parameter(name, info, kind, default))
    return parameters


def _commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Each command with what is typed to call it."""
    for command in group.registered_commands:
        if command.hidden:
            continue
        name = command.name or command.callback.__name__.replace("_", "-")
        yield f"{words} {name}", command.callback
    for inner in group.registered_groups:
        yield from _commands(inner.typer_instance, f"{words} {inner.typer_instance.info.name}")


def _options(parameters: Iterable[Parameter]) -> Iterator[str]:
    rows = []
    for one in parameters:
        if isinstance(one.info, OptionInfo) and not one.info.hidden:
            value = "" if one.type is bool else f" {one.shown}"
            shown = ", ".join(f"`{flag}{value}`" for flag in one.flags)
            rows.append((shown, _default(one), _plain(one.info.help)))
    yield from table(("option", "default", ""), rows)


def _default(one: Parameter) -> str:
    if one.required:
        return "required"
    value = getattr(one.default, "value", one.default)
    return "" if value is None or value is False or value in ([], ()) else f"`{value}`"


def _text(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def read_study() -> Study:
    """What the study of reports measured."""
    with STUDY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reports_page() -> str:
    """The appendix of the study of reports: a table for each data set."""
    study = read_study()
    lines = [MADE, "", "# Appendix: what reports give away", "",
             "The numbers of [what may be published safely](reports.md), which says what leak,",
             "proven and error are: in percent and points, means over seeds."]  # fmt: skip
    for data in dict.fromkeys(one["data"] for one in study):
        mine = [one for one in study if one["data"] == data]
        orders = sorted({one["columns"] for one in mine})
        cells = {(one["defence"], one["columns"]): [one[name] for name in MEASURED] for one in mine}
        people, right = (mine[0][name] for name in ("people", "without"))
        lines += ["", f"{data}, {int(people):,} people, {right} % guessed right before by what "
                  "other people teach:", ""]  # fmt: skip
        heads = [f"{WAYS[order]}: {MEASURED[0]}" if name == MEASURED[0] else name
                 for order in orders for name in MEASURED]  # fmt: skip
        lines += [row("defence", "seeds", *heads), row("---", *["---:"] * (len(heads) + 1))]
        for name in dict.fromkeys(one["defence"] for one in mine):
            own = dict.fromkeys(one["seeds"] for one in mine if one["defence"] == name)
            seeds = " and ".join(own)
            numbers = (cells.get((name, order), [""] * len(MEASURED)) for order in orders)
            lines.append(row(name, seeds, *chain.from_iterable(numbers)))
    return _text(lines)


def templates_page() -> str:
    """The modules that `fpbench new` writes, one for each kind."""
    lines = [MADE, "", "# Reference: templates of plugins", "",
             "What `fpbench new KIND NAME` writes for each kind of component; what each gets and",
             "returns says [write a plugin](write-a-plugin.md).", ""]  # fmt: skip
    for kind, name in TEMPLATES.items():
        code = make_component(kind, name).rstrip()
        lines += [f"## {_sentence(kind)}", "", "```python", code, "```", ""]
    return "\n".join(lines)


def adult_by_columns(study: Study) -> str:
    """What exact tables of Adult add, by how many columns their slices cross."""
    one, two, three = find_adult(study)
    return (
        f"by single columns add {one['leak']} points\n  to what the adversary knows, by pairs "
        f"{two['leak']}, by three columns {three['leak']}: {guess(three)} % are guessed right, and "
        f"the sex of\n  {float(three['proven']):.0f} % of people is proven"
    )


def what_to_publish(study: Study) -> str:
    """What some defences give away and cost, by numbers of people and of columns."""
    lines = ["", row("people", "slices by", *CHOICES), row(*["---"] * (2 + len(CHOICES)))]
    for words, people in PEOPLE.items():
        own = [one for one in study if int(one["people"]) in people]
        for order in ("1", "2"):
            cells = []
            for name in CHOICES.values():
                mine = [one for one in own if (one["defence"], one["columns"]) == (name, order)]
                spans = [list_span([float(one[what]) for one in mine]) for what in MEASURED]
                cells.append(" / ".join(spans))
            lines.append(row(words if order == "1" else "", WAYS[order], *cells))
    return "\n".join([*lines, ""])


def list_span(numbers: list[float]) -> str:
    """The least and greatest of some numbers."""
    return " to ".join(dict.fromkeys(f"{end:.1f}" for end in (min(numbers), max(numbers))))


def adult_by_three_columns(study: Study) -> str:
    """What exact tables of Adult by three columns give away."""
    three = find_adult(study)[2]
    return (
        f"from {three['without']} %\n  to {guess(three)} %, and prove the sex of "
        f"{float(three['proven']):.0f} %"
    )


def find_adult(study: Study) -> Study:
    """Exact tables of Adult by sex, of slices by one column to three."""
    return [one for one in study
            if one["data"] == "Adult by sex" and one["defence"] == "cells >= 10"]  # fmt: skip


def guess(one: dict[str, str]) -> str:
    """The share guessed right given the report, in percent."""
    return f"{float(one['without']) + float(one['leak']):.1f}"


PARTS = {
    "README.md": {"adult-by-three-columns": adult_by_three_columns},
    "docs/reports.md": {
        "what-to-publish": what_to_publish,
        "adult-by-columns": adult_by_columns,
    },
}


def fill(name: str) -> str:
    """A page whose parts are made anew."""
    text = (ROOT / name).read_text(encoding="utf-8")
    study = read_study()
    for part, make in PARTS[name].items():
        before, start, rest = text.partition(f"<!-- made: {part} -->")
        _, end, after = rest.partition("<!-- end -->")
        assert end, f"{name} has no part {part}"
        text = f"{before}{start}{make(study)}{end}{after}"
    return text


PAGES = {
    "keys.md": matrix_page,
    "plugin-templates.md": templates_page,
    "reports-tables.md": reports_page,
    "components.md": components_page,
    "commands.md": commands_page,
    "measures.md": measures_page,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
    for name in PARTS:
        (ROOT / name).write_text(fill(name), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
