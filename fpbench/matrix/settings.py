"""Choices from a matrix, and overrides of it, without another file: `learner=plain`, `seeds=3`.

`KIND=NAMES` chooses components of the matrix, whose other cells are then not run. Any other key
overrides a value, as if the file said so: `seeds=3`, `split.train=0.5`, `learner.tolerance=0.1`.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from fpbench.base.errors import FpbenchError, InputError, MatrixError, suggest_name
from fpbench.base.toml_files import check_depth
from fpbench.components.catalog import discover
from fpbench.components.names import KINDS, MATRIX_VALUES
from fpbench.matrix.axes import ComponentChoice

VALUES = MATRIX_VALUES
"""Keys at the top of a matrix that can be overridden."""
TABLES = ("split", "leaderboard", "limits")
"""Tables at the top of a matrix whose keys can be overridden, `split.train` for instance."""
_PART = re.compile(r"""(?:\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')\s*(?=,|$)|[^,]*)""")
"""A value between commas: a text in quotes, as in TOML, or anything without a comma."""


@dataclass(frozen=True)
class Settings:
    """Choices and overrides, read but not yet compared with a matrix."""

    chosen: Mapping[str, tuple[str, ...]]
    """Names, labels or patterns of the components to run, by kind; none of a kind if empty."""
    overrides: Mapping[tuple[str, ...], tuple[Any, ...]]
    """Values by key, or by table or kind and key; several are a list, or swept."""

    def override(self, keys: dict[str, Any], origin: str) -> dict[str, Any]:
        """The keys of a matrix with the overrides; MatrixError if no component takes one."""
        for path, values in self.overrides.items():
            one = values[0] if len(values) == 1 else list(values)
            match path:
                case (key,):
                    keys = {**keys, key: one}
                case (kind, parameter) if kind in KINDS:
                    swept = one if len(values) == 1 else {"sweep": one}
                    keys = {**keys, kind: _replace(keys.get(kind), kind, parameter, swept, origin)}
                case (table, key):
                    keys = {**keys, table: {**_check_table(keys, table, origin), key: one}}
        return keys

    @property
    def changes_cells(self) -> bool:
        """Whether anything but the number of seeds is overridden."""
        return any(path != ("seeds",) for path in self.overrides)

    def choose(
        self, axes: Mapping[str, tuple[ComponentChoice, ...]], origin: str
    ) -> dict[str, frozenset[str]]:
        """Labels of the chosen components, by kind, for the kinds with a choice.

        Raises MatrixError if nothing in the matrix has such a name; names the nearest.
        """
        chosen: dict[str, frozenset[str]] = {}
        for kind, names in self.chosen.items():
            labels: set[str] = set()
            for name in names:
                matching = {
                    choice.label
                    for choice in axes[kind]
                    if any(fnmatchcase(own, name) or own == name for own in _names(choice))
                }
                if not matching:
                    known = {own for choice in axes[kind] for own in _names(choice)}
                    raise MatrixError(
                        f"{origin}: {kind}={name}: there is no {kind} {name!r} to choose; "
                        + (_suggest_quotes(kind, name, known) or suggest_name(name, known))
                    )
                labels |= matching
            chosen[kind] = frozenset(labels)
        return chosen


def read_settings(texts: Iterable[str]) -> Settings:
    """Choices and overrides as they are written on the command line.

    `texts`: `KEY=VALUE` each. Commas separate several values; a text with a comma needs quotes. The
    same kind may be chosen from repeatedly, no value may be overridden twice.

    Raises InputError if a text is not a setting, or there is no such key.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    overrides: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for text in [texts] if isinstance(texts, str) else texts:
        key, separator, value = (part.strip() for part in text.partition("="))
        if not (key and separator):
            raise InputError(
                f"{text!r} is not a setting: write KEY=VALUE, such as learner=plain, seeds=3 or "
                "dataset.rows=500"
            )
        if key in KINDS:
            names = [_unquote(name.strip()) for name in _split_values(value)] if value else []
            chosen[key] = (*chosen.get(key, ()), *names)
            continue
        path = tuple(key.split(".", 1))
        _check_key(path, text)
        if path in overrides:
            raise InputError(f"{text!r}: {key} is set twice; write several values with commas")
        overrides[path] = _read_values(value, text)
    return Settings(chosen, overrides)


def _check_key(path: tuple[str, ...], text: str) -> None:
    """Refuse an unknown key, with the nearest valid key."""
    first, *rest = path
    if rest and first in (*KINDS, *TABLES) and rest[0]:
        return
    if not rest and first in VALUES:
        return
    if first in TABLES:
        raise InputError(f"{text!r}: {first} is a table: set a key of it, {first}.KEY=VALUE")
    known = [*KINDS, *(TABLES if rest else VALUES)]
    near = get_close_matches(first, known, 1, 0.7)
    hint = f"did you mean {'.'.join([*near, *rest])!r}?" if near else f"valid: {', '.join(known)}"
    example = "" if rest else "; a parameter is KIND.PARAMETER, such as dataset.rows"
    raise InputError(f"{text!r}: there is no key {'.'.join(path)!r} to set; {hint}{example}")


def _read_values(text: str, setting: str) -> tuple[Any, ...]:
    """The values between commas: TOML where they are TOML, else texts."""
    if not text:
        raise InputError(f"{setting!r}: has no value")
    try:
        values = tuple(_read_key("values", f"[{text}]"))
    except ValueError:
        values = tuple(_read_value(part.strip()) for part in _split_values(text))
    except RecursionError:
        raise InputError(f"{setting[:40]!r}...: is nested too deeply") from None
    check_depth(values, setting.partition("=")[0])
    return values


def _split_values(text: str) -> list[str]:
    """The parts of a text between commas; a comma in quotes separates nothing."""
    parts, end = [], -1
    while end < len(text):
        match = _PART.match(text, end + 1)
        assert match is not None  # a text without a comma matches, even an empty one
        parts.append(match[0])
        end = match.end()
    return parts


def _unquote(name: str) -> str:
    """A name without the quotes around it, if any."""
    value = _read_value(name) if name[:1] in {'"', "'"} else name
    return value if isinstance(value, str) else name


def _suggest_quotes(kind: str, name: str, known: Iterable[str]) -> str:
    """How to write the label with commas that contains a name; empty if there is none."""
    for label in known:
        if "," in label and name in map(str.strip, _split_values(label)):
            setting = f"{kind}={json.dumps(label, ensure_ascii=False)}"
            return f"a name with a comma needs quotes: -s {shlex.quote(setting)}"
    return ""


def _read_value(text: str) -> Any:
    try:
        return _read_key("value", text)
    except ValueError:
        return text


def _read_key(key: str, text: str) -> Any:
    """The value of a key in TOML; ValueError if the text goes on with other keys."""
    table = tomllib.loads(f"{key} = {text}")
    if len(table) > 1:
        raise ValueError(text)
    return table[key]


def _names(choice: ComponentChoice) -> tuple[str, str]:
    return choice.use, choice.label


def _check_table(keys: Mapping[str, Any], name: str, origin: str) -> Mapping[str, Any]:
    table = keys.get(name, {})
    if not isinstance(table, Mapping):
        raise MatrixError(f"{origin}: {name}: must be a table, [{name}]")
    return table


def _replace(tables: Any, kind: str, parameter: str, value: Any, origin: str) -> list[Any]:
    """The tables of a kind, with another value wherever the component has that parameter."""
    setting = f"{kind}.{parameter}"
    replaced, known = [], set[str]()
    for table in tables if isinstance(tables, list) else ():
        use = table.get("use") if isinstance(table, Mapping) else None
        try:
            names = set(discover().component(kind, use).model_fields)  # type: ignore[arg-type]
        except FpbenchError:  # the plan reports it, and where it is
            names = set()
        known |= names
        replaced.append({**table, parameter: value} if parameter in names else table)
    if parameter not in known:
        what = f"no {kind} of the matrix has the parameter {parameter!r}"
        raise MatrixError(f"{origin}: {setting}: {what}; {suggest_name(parameter, known)}")
    return replaced
