"""TOML files that a stranger may have written: read with bounds, or refused with one clear error.

The parser of Python takes memory that grows with the square of the parts of a dotted key, and
nested values stop whatever walks them; a file that says something sensible comes near neither.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fpbench.base.errors import MatrixError
from fpbench.base.files import MATRIX_BYTES, read_file

DEEPEST = 24
"""Tables and lists within each other: sweeps of components that hold components need six."""

_MOST_PARTS = 200
"""Of a key; depth is looked at once the file has been parsed."""
# Possessive, and never in vain: every letter is looked at once, whatever the text is.
_TOKEN = re.compile(
    r"""
    (?P<part>  [\w-]++ | "(?!"") (?:[^"\\\n]|\\.?)*+ "? | '(?!'') [^'\n]*+ '? )
    | (?P<dot> \. )
    | (?P<space> [ \t]++ )
    | \"{3} (?:[^"\\]|\\.?|"(?!""))*+ (?:"{3,5}+|\Z)  # texts of several lines
    | '{3} (?:[^']|'(?!''))*+ (?:'{3,5}+|\Z)
    | \#[^\n]*+
    | .
    """,
    re.ASCII | re.DOTALL | re.VERBOSE,
)


def parsed(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file that the user named, and what it says.

    Raises
    ------
    MatrixError
        If it cannot be read, is no TOML, or is larger or deeper than anything sensible.
    """
    try:
        content = read_file(path, most=MATRIX_BYTES, named=True)
    except OSError as error:
        raise MatrixError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse(content, str(path))


def parse(content: bytes, name: str) -> tuple[str, dict[str, Any]]:
    """The text of TOML, and what it says; the name is for messages.

    Raises
    ------
    MatrixError
        If it is no TOML, or is deeper than anything sensible.
    """
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        if _longest_key(text) > _MOST_PARTS:
            raise MatrixError(f"{name}: a key has more than {_MOST_PARTS} parts")
        data = tomllib.loads(text)
    except RecursionError as error:
        raise MatrixError(f"{name}: not valid TOML: nested too deeply") from error
    # Besides TOMLDecodeError: numbers of too many digits, other encodings.
    except ValueError as error:
        if isinstance(error, MatrixError):
            raise
        raise MatrixError(f"{name}: not valid TOML: {error}") from error
    check_depth(data, name)
    return text, data


def _longest_key(text: str) -> int:
    """How many parts the longest dotted key has, or more."""
    if text.count(".") < _MOST_PARTS:
        return 0
    longest = parts = 0
    dotted = False
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "part":
                parts = parts + 1 if dotted else 1
                longest, dotted = max(longest, parts), False
            case "dot":
                dotted = True
            case None:
                parts, dotted = 0, False
    return longest


def check_depth(data: Any, where: str) -> None:
    """Refuse data that is nested deeper than anything sensible.

    Raises
    ------
    MatrixError
        If it is; also if it holds itself.
    """
    level: list[Any] = [data]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise MatrixError(f"{where}: is nested more than {DEEPEST} deep")


def _inside(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return inner if isinstance(value, dict | list | tuple) else ()
