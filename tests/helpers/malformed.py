"""Matrices that are wrong, and matrices that may be: what the fuzz tests and scripts are fed."""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import io
import json
import sys
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

Path = tuple[str | int, ...]

TOYS: dict[str, Any] = {
    "title": "toys",
    "seeds": 2,
    "split": {"train": 0.4, "test": 0.3, "attack": 0.3},
    "dataset": [{"use": "flock", "rows": 90}],
    "learner": [{"use": "parrot", "number": {"sweep": [1, 2]}}],
    "disclosure": [{"use": "oracle", "tolerance": {"linspace": [0.1, 0.3, 3]}}],
    "adversary": [{"use": "coin", "label": "c"}, {"use": "peek"}],
    "corrector": [{"use": "flip", "sleep": 0.0}, {"use": "none"}],
    "mechanism": [{"use": "hiss", "scale": {"geomspace": [0.1, 10, 3]}}],
    "policy": [{"use": "clamp"}],
    "auditor": [{"use": "counter"}],
    "exclude": [{"adversary": "peek", "corrector": "flip"}],
    "leaderboard": {"rank_by": "gain"},
    "expect": [
        {"check": "value", "measure": "gain", "expected": 0.1, "tolerance": 0.1, "says": "x"}
    ],
    "profile": {"quick": {"seeds": 1, "dataset": [{"use": "flock", "rows": 30}]}},
}
OURS: dict[str, Any] = {
    "seeds": [3, 1],
    "split": {"test": 0.25},
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [
        {"use": "plain", "base": "decision-tree", "base_parameters": {"max_depth": 3}},
        {"use": "exponentiated-gradient", "metric": "equalized-odds", "tolerance": 0.1},
    ],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}, {"use": "hidden"}],
    "adversary": [{"use": "a2", "family": "random-forest", "parameters": {"n_estimators": 5}}],
    "corrector": [{"use": "exact"}],
    "auditor": [{"use": "pafer", "mechanism": {"use": "laplace"}, "epsilon": 0.5}],
    "policy": [{"use": "clip"}],
}
"""Good matrices, with everything that a matrix may say."""

_letters = st.characters(exclude_categories=["Cs"])  # what UTF-8 cannot say is no text
_words = st.sampled_from(
    ["use", "label", "sweep", "linspace", "geomspace", "flock", "a2", "plain", "", "original",
     "../../etc/passwd", "os:system", "\x1b[2J", "[red]", "{x}", "%s", "\n", "a" * 5000]
) | st.text(_letters, max_size=6)  # fmt: skip
_numbers = (
    st.integers()
    | st.floats()
    | st.sampled_from([-1, 0, 10**6, 2**63, 10**400, 1e308, -0.0, 5e-324])
)
_scalars = _words | _numbers | st.booleans() | st.dates() | st.datetimes() | st.times()
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)
"""Whatever TOML can say."""


def toml(value: Any) -> str:
    """A value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # JSON's escapes are TOML's, but for halves of letters and the delete character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{toml(k)} = {toml(v)}' for k, v in value.items())}}}"
    raise TypeError(value)


def document(data: dict[str, Any]) -> str:
    """A mapping as a TOML document, one line a key."""
    return "\n".join(f"{toml(key)} = {toml(value)}" for key, value in data.items())


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """Where there is something in nested data."""
    inner: Any = ()
    if isinstance(data, dict):
        inner = data.items()
    elif isinstance(data, list):
        inner = enumerate(data)
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def holder(data: Any, path: Path) -> Any:
    """What holds the last key of a path."""
    for key in path[:-1]:
        data = data[key]
    return data


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A good matrix with a few things changed, which may be harmless."""
    data = copy.deepcopy(draw(st.sampled_from([TOYS, OURS])))
    for _ in range(draw(st.integers(1, 3))):
        if not (paths := list(places(data))):
            break
        path = draw(st.sampled_from(paths))
        inside, key = holder(data, path), path[-1]
        match draw(st.sampled_from(["replace", "delete", "sweep", "rename", "add", "twice"])):
            case "replace":
                inside[key] = draw(values)
            case "delete":
                del inside[key]
            case "sweep":
                how = draw(st.sampled_from(["sweep", "linspace", "geomspace"]))
                inside[key] = {how: draw(values | st.lists(_numbers, min_size=3, max_size=3))}
            case "rename" if isinstance(inside, dict):
                inside[draw(_words)] = inside.pop(key)
            case "add" if isinstance(inside, dict):
                inside[draw(_words)] = draw(values)
            case _ if isinstance(inside, list):
                inside.append(copy.deepcopy(inside[key]))
    return document(data)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """A good matrix with letters changed, such that it is no TOML any more."""
    text = document(draw(st.sampled_from([TOYS, OURS])))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    new = draw(st.text(st.sampled_from('[]{}"=,.#\n\x00\ud7ff0a_-') | _letters, max_size=8))
    changed = text[:start] + new + text[end:]
    return changed if not _is_toml(changed) else changed + "\n" + draw(
        st.sampled_from(["[", "=", "seeds = 1", '"', "\x00", "x = 01", "[[title]]", "x = [" * 2000])
    )  # fmt: skip


_WRONG: dict[tuple[str | int, ...], Any] = {
    ("title",): st.one_of(_numbers, st.booleans(), st.lists(_scalars)),
    ("seeds",): st.integers(max_value=0)
    | st.integers(min_value=10**6)
    | st.floats()
    | st.booleans()
    | _words
    | st.lists(st.integers(max_value=-1) | st.floats() | _words, min_size=1, max_size=3)
    | st.just([])
    | st.integers(0, 9).map(lambda seed: [seed, seed]),
    ("split",): _scalars | st.lists(_scalars),
    ("split", "test"): _words.filter(lambda word: word != "original")
    | st.floats(max_value=0)
    | st.floats(min_value=1)
    | st.booleans(),
    ("exclude",): st.just([{}]) | _scalars | st.dictionaries(_words, _words),
    ("leaderboard",): _scalars | st.just({"rank_by": 3}),
    ("profile",): _scalars | st.lists(_scalars) | st.dictionaries(_words, _scalars, min_size=1),
    ("expect",): _scalars | st.just([{}]) | st.just([{"check": "vlaue"}]),
    **{
        (kind,): _scalars | st.just([]) | st.lists(_scalars, min_size=1, max_size=2)
        for kind in ("dataset", "learner", "disclosure", "adversary", "corrector")
    },
    ("dataset", 0, "use"): _scalars.filter(lambda word: word != "flock"),
    ("learner", 0, "use"): values.filter(lambda word: word not in ("plain", "parrot")),
    ("adversary", 0, "label"): _numbers | st.just("") | st.lists(_words),
    ("dataset", 0, "rows"): st.integers(max_value=2) | _words | st.booleans() | st.dates(),
    ("dataset", 0, "sensitive"): _numbers | st.dates(),
    ("corrector", 0, "sweep"): values,
}
"""What certainly is no good, by where it stands."""


@st.composite
def misfits(draw: st.DrawFn) -> str:
    """A good matrix in which something stands that certainly may not stand there."""
    data = copy.deepcopy(draw(st.sampled_from([TOYS, OURS])))
    if draw(st.booleans()):
        path = draw(st.sampled_from(list(_WRONG)))
        wrong = draw(_WRONG[path])
        if path == ("dataset", 0, "use") and data is not TOYS and wrong == "census-synthetic":
            wrong = "census"
        inside: Any = data
        for key in path[:-1]:
            inside = inside.setdefault(key, {}) if isinstance(inside, dict) else inside[key]
        inside[path[-1]] = wrong
    else:  # a key that nobody knows
        tables = [(), *(p for p in places(data) if isinstance(holder(data, (*p, "")), dict))]
        # A profile counts once it is chosen, arguments of scikit-learn are checked by it.
        tables = [p for p in tables if p[:1] != ("profile",) and not _is_free(data, p)]
        inside = holder(data, (*draw(st.sampled_from(tables)), ""))
        inside["zz" + draw(st.text(_letters, max_size=4))] = draw(values)
    return document(data)


def _is_free(data: Any, path: Path) -> bool:
    """Whether a table is a sweep: an unknown key makes it another value, and not a wrong key."""
    return bool({"sweep", "linspace", "geomspace"} & set(holder(data, (*path, ""))))


class Said(NamedTuple):
    """How a command ended."""

    code: int
    error: str
    output: str

    @property
    def refused(self) -> bool:
        """Whether it ended with one clear error, and nothing else."""
        from fpbench.base.text import escape_unprintable

        lines = [line for line in self.error.split("\n") if not line.startswith("warning: ")]
        return (
            self.code == 2
            and len(lines) == 2
            and lines[1] == ""
            and lines[0].startswith("error: ")
            and len(lines[0]) > len("error: ")
            and escape_unprintable(lines[0]) == lines[0]
        )


def command(*words: str) -> Said:
    """The command line, in this process: an exception that it lets through is one here too."""
    import typer.main

    from fpbench.cli.main import main

    # Typer would build the same command anew each time, which takes longer than to plan.
    if not hasattr(typer.main.get_command, "cache_info"):
        typer.main.get_command = functools.cache(typer.main.get_command)
    error, output, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["fpbench", *words]
    try:
        with contextlib.redirect_stderr(error), contextlib.redirect_stdout(output):
            main()
    except SystemExit as end:
        return Said(int(end.code or 0), error.getvalue(), output.getvalue())
    finally:
        sys.argv = before
    return Said(0, error.getvalue(), output.getvalue())
