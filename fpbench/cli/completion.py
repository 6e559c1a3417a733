"""Completions of options' and arguments' values, for typer's shell scripts.

Each Tab starts Python, so nothing heavy is imported here; but parameters are read from their
components.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer import Context
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from fpbench.base.errors import FpbenchError, InputError, suggest_name
from fpbench.components.names import KINDS

COMPLETE = "_FPBENCH_COMPLETE"
"""Environment variable by which typer's scripts ask for completions."""
SHELLS = ("bash", "zsh", "fish", "powershell")
"""Shells for which typer has a script."""
VIEWS = (
    "combinations",
    "paper",
    "attacks",
    "correctors",
    "defences",
    "mechanisms",
    "reports",
    "pareto",
)
"""The names in `fpbench.results.views`, which imports numpy."""


_BASH = """\
_fpbench_completion() {
    local IFS=$'\\n' word words=() last=-1 begun= i
    for ((i = 0; i <= COMP_CWORD; i++)); do  # bash ends a word at = and :, which fpbench does not
        word=${COMP_WORDS[i]}
        if [[ i -gt 0 && -n $word && ($word == [=:]* || ${COMP_WORDS[i - 1]} == *[=:]) ]]; then
            [[ $word == [=:]* ]] && begun=${words[last]}$word || begun=${words[last]}
            words[last]+=$word
        else
            begun= words[++last]=$word
        fi
    done
    COMPREPLY=($(
        env COMP_WORDS="${words[*]}" COMP_CWORD=$last COMPLETE_VAR=complete_bash $1
    ))
    for i in "${!COMPREPLY[@]}"; do
        word=${COMPREPLY[i]#"${begun//\\\\/}"}  # only what comes after it is replaced
        [[ $word == *[=.] ]] && compopt -o nospace 2> /dev/null
        [[ ${words[last]} != [\\"\\']* && $word == *[[:space:]\\"\\'\\*\\[\\(]* ]] \\
            && printf -v word %q "$word"
        COMPREPLY[i]=$word
    done
    return 0
}
complete -o default -F _fpbench_completion fpbench""".replace("COMPLETE_VAR", COMPLETE)

_ZSH = """\
#compdef fpbench
_fpbench_completion() {
    local -a found begun
    found=("${(@f)$(
        env COMP_WORDS="${(j: :)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \\
            COMPLETE_VAR=complete_bash $words[1]
    )}")
    found=(${found:#})
    (($#found)) || { _files; return }
    compset -P '--[^=]#='  # of --by=gain, the value alone is completed
    begun=(${(M)found:#*[=.]})  # what goes on gets no space
    found=(${found:#*[=.]})
    (($#begun)) && compadd -S '' -a begun
    (($#found)) && compadd -a found
}
compdef _fpbench_completion fpbench""".replace("COMPLETE_VAR", COMPLETE)


def write_script(shell: str) -> str:
    """The script with which a shell completes `fpbench`.

    The scripts of bash and zsh are ours: typer's takes the value of `--by=gain` for a separate word
    in bash, and makes zsh write a space after `learner=`.

    Raises InputError if typer has no script for the shell.
    """
    if shell not in SHELLS:
        raise InputError(f"unknown shell {shell!r}; {suggest_name(shell, SHELLS)}")
    if shell in ("bash", "zsh"):
        return _BASH if shell == "bash" else _ZSH
    return get_completion_script(prog_name="fpbench", complete_var=COMPLETE, shell=shell).strip()


def complete_shell(incomplete: str) -> list[str]:
    """Shells that begin with the typed text."""
    return [shell for shell in SHELLS if shell.startswith(incomplete)]


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of components that begin with the typed text."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def complete_measure(context: Context, incomplete: str) -> list[str]:
    """Measures that begin with the typed text: fpbench's, and those declared in the typed runs.

    In a list with commas, the last name is completed.
    """
    from fpbench.components.own_measures import OWN

    names = dict.fromkeys(measure.name for measure in OWN)
    # After an option without its value, positional arguments cannot be distinguished yet.
    runs = [*context.args, *(context.params.get(name) for name in ("run", "old", "new"))]
    for directory in filter(None, runs):
        names |= dict.fromkeys(_read_declared(Path(directory)))
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def _read_declared(directory: Path) -> list[str]:
    """Names of the measures that a run's components declare; none if it is not a run."""
    import json
    import sqlite3
    from contextlib import closing

    from fpbench.store.connections import connect_reader
    from fpbench.store.locks import STORE

    try:
        with closing(connect_reader(directory / STORE)) as store:
            rows = store.execute("SELECT value FROM about WHERE name = 'measures'").fetchall()
        names = [measure["name"] for row in rows for measure in json.loads(row[0])]
    except (FpbenchError, OSError, sqlite3.Error, ValueError, TypeError, LookupError):
        return []  # a Tab has no place for an error
    return [name for name in names if isinstance(name, str) and name.isidentifier()]


def complete_view(incomplete: str) -> list[str]:
    """Views of a leaderboard that begin with the typed text."""
    return [view for view in VIEWS if view.startswith(incomplete)]


def complete_column(context: Context, incomplete: str) -> list[str]:
    """Columns of the typed CSV file of people that begin with the typed text."""
    from fpbench.base.files import read_file

    try:
        content = read_file(Path(str(context.params.get("people"))), most=2**28, named=True)
        header = content.partition(b"\n")[0].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []  # a Tab has no place for an error
    names = [name.strip().strip('"') for name in header.split(",")]
    return [name for name in names if name.isprintable() and name.startswith(incomplete)]


def complete_setting(context: Context, incomplete: str) -> list[str]:
    """Settings of the typed matrix that begin with the typed text: keys, names, labels.

    In a list with commas, the last name is completed.
    """
    from fpbench.matrix.settings import TABLES, VALUES, split_values

    try:
        keys = _read_keys(context)
        kind, equals, names = incomplete.partition("=")
        if equals:
            last = split_values(names)[-1].lstrip()
            before = incomplete.removesuffix(last)
            return [before + name for name in _list_choices(keys, kind) if name.startswith(last)]
        kinds = [kind for kind in KINDS if kind in keys]
        settings = [f"{key}=" for key in (*(kinds or KINDS), *VALUES)]
        kind, dot, _ = incomplete.partition(".")
        settings += [f"{table}." for table in (*kinds, *TABLES) if not dot]
        settings += [f"{kind}.{name}=" for name in _list_parameters(keys, kind) if dot]
    except (FpbenchError, OSError):
        return []  # a Tab has no place for an error
    return [setting for setting in settings if setting.startswith(incomplete)]


def _read_keys(context: Context) -> Mapping[str, Any]:
    """The keys of the matrix that was typed before, in its profile; none if none was typed."""
    from fpbench.base.toml_files import read_toml
    from fpbench.matrix.studies import find_study_file

    # After an option without its value, positional arguments cannot be distinguished yet.
    typed = [*context.args, context.params.get("matrix"), context.params.get("name")]
    name = next((str(word) for word in typed if word), None)
    if name is None:
        return {}
    study = context.info_name == "reproduce"
    file = find_study_file(name) if study and not name.endswith(".toml") else Path(name)
    data = read_toml(file)[1]
    profiles = data.get("profile")
    chosen = context.params.get("profile") or ("quick" if study else None)
    keys = profiles.get(chosen, {}) if isinstance(profiles, dict) else {}
    return {**data, **keys} if isinstance(keys, dict) else data


def _list_choices(keys: Mapping[str, Any], kind: str) -> list[str]:
    """Names and labels of the components of a kind, in quotes if they have commas."""
    from fpbench.matrix.axes import list_choices

    if kind not in KINDS:
        return []
    choices = list_choices(kind, _list_tables(keys, kind), "matrix")
    names = dict.fromkeys(name for choice in choices for name in (choice.use, choice.label))
    return [json.dumps(name, ensure_ascii=False) if "," in name else name for name in names]


def _list_parameters(keys: Mapping[str, Any], kind: str) -> list[str]:
    """Parameters of the components of a kind."""
    from fpbench.components.catalog import discover

    if kind not in KINDS:
        return []
    names: dict[str, None] = {}
    for table in _list_tables(keys, kind):
        names |= dict.fromkeys(discover().component(kind, table.get("use", "")).model_fields)
    return [*names]


def _list_tables(keys: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    tables = keys.get(kind)
    return (
        [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    )


def complete_engine(incomplete: str) -> list[str]:
    """Engines that begin with the typed text."""
    return [engine for engine in ("inline", "loky", "dask") if engine.startswith(incomplete)]


def complete_component(context: Context, incomplete: str) -> list[str]:
    """Names of built-in and installed components of the kind that was typed before."""
    return _complete_name(str(context.params.get("kind")), incomplete)


def complete_dataset(incomplete: str) -> list[str]:
    """Names of data sets that begin so."""
    return _complete_name("dataset", incomplete)


def _complete_name(kind: str, incomplete: str) -> list[str]:
    from fpbench.components.catalog import discover

    names = (entry.name for entry in discover().of_kind(kind))
    return [name for name in names if name.startswith(incomplete)]
