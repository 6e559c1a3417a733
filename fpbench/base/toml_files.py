"""TOML that a stranger may have written: parsed within limits, or refused with one clear error.

Python's parser takes memory quadratic in the parts of a dotted key, and deeply nested values
exhaust the stack of recursive code; no sensible file comes near these limits.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fpbench.base.errors import MatrixError
from fpbench.base.files import MATRIX_BYTES, MATRIX_NAMES, read_file

DEEPEST = 24
"""Greatest nesting of tables and lists; sweeps of components that hold components need six."""

# Bare or quoted parts with dots between; possessive, so that every letter is matched once.
_LONG_KEY = re.compile(
    r"""(?<![\w"'\\-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}"""
)
"""A key of more than 200 parts, or a text that looks like one."""


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file that the user named, and its data.

    MatrixError if the file cannot be read, is not TOML, or is larger or deeper than any sensible
    file.
    """
    try:
        content = read_file(path, most=MATRIX_BYTES, named=True)
    except OSError as error:
        own = next((path / name for name in MATRIX_NAMES if (path / name).is_file()), None)
        hint = f"; to use a run directory, name its matrix: {own}" if own else ""
        raise MatrixError(f"{path}: cannot be read: {error.strerror or error}{hint}") from error
    return parse_toml(content, str(path))


def parse_toml(content: bytes, name: str) -> tuple[str, dict[str, Any]]:
    """The text of a TOML document, and its data; MatrixError if it is wrong or too deep."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        if _LONG_KEY.search(text):
            raise MatrixError(f"{name}: a key has more than 200 parts")
        data = tomllib.loads(text)
    except MatrixError:
        raise
    except RecursionError as error:
        raise MatrixError(f"{name}: not valid TOML: nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, numbers of too many digits, other encodings
        raise MatrixError(
            f"{name}: not valid TOML: {error}{_show_place(content, error)}"
        ) from error
    check_depth(data, name)
    return text, data


def _show_place(content: bytes, error: ValueError) -> str:
    """The line that is not TOML, and a remedy for common mistakes; empty if unknown."""
    place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    lines = content.decode("utf-8-sig", "replace").splitlines()
    if place is None or int(place[1]) > len(lines):
        return ""
    line = lines[int(place[1]) - 1]
    word = re.match(r"[^\s,\]}#]*", line[int(place[2]) - 1 :])
    hint = ""
    if "\\" in line and re.search(r"escape|hex|[Uu]nescaped|'\\\\'", str(error)):
        hint = "; in a path write / for each \\, or put single quotes around it"
    elif word and word[0] in {"True", "False"}:
        hint = f"; write {word[0].lower()}, in lower case"
    elif word and word[0][:1].isalpha() and "value" in str(error):
        hint = f'; a text needs quotes: "{word[0][:40]}"'
    return f": {line.strip()[:80]}{hint}"


def check_depth(data: Any, where: str) -> None:
    """Raise MatrixError if data are nested deeper than anything sensible, or contain themselves."""
    level = [data]
    for _ in range(DEEPEST):
        parts = [part.values() if isinstance(part, dict) else part for part in level
                 if isinstance(part, dict | list | tuple)]  # fmt: skip
        level = [child for part in parts for child in part]
        if not level:
            return
    raise MatrixError(f"{where}: is nested more than {DEEPEST} deep")
