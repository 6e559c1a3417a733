"""Scripts with which a shell completes our commands, by themselves: no Python is started for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

SHELLS = {
    "bash": 'eval "$(fpbench completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(fpbench completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "fpbench completion fish > ~/.config/fish/completions/fpbench.fish",
}
"""Shells, and how each is told."""


@dataclass(frozen=True)
class _Place:
    """A command, by the words that lead to it."""

    words: str
    """`data list`, for instance; empty for the program itself."""
    summary: str
    commands: tuple[str, ...]
    options: tuple[str, ...]
    values: Mapping[str, Sequence[str]]
    """What options may be; and, under the empty name, what the arguments may be."""
    taking: tuple[str, ...]
    """The options that take a value."""


def script(shell: str, root: Any, known: Mapping[str, Sequence[str]]) -> str:
    """The completion script of a shell.

    Parameters
    ----------
    shell
        One of `SHELLS`.
    root
        The command line, as click sees it.
    known
        What options and arguments may be, by their names, after the words of their command where
        it matters, or by their metavars: `{"--view": ["attacks", ...], "export --format": [...]}`.
    """
    places = list(_places(root, known))
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](places)


def _places(command: Any, known: Mapping[str, Sequence[str]], words: str = "") -> Iterator[_Place]:
    commands = {name: each for name, each in getattr(command, "commands", {}).items()
                if not each.hidden}  # fmt: skip
    options: list[str] = []
    values: dict[str, Sequence[str]] = {}
    taking: list[str] = []
    for parameter in command.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        candidates = (*(f"{words} {name}" for name in names), *names, parameter.metavar)
        plain = next((list(known[name]) for name in candidates if name in known), [])
        if parameter.param_type_name == "argument":
            values[""] = [*values.get("", ()), *plain]
            continue
        options += names
        values.update((name, plain) for name in names if plain)
        taking += names if not parameter.is_flag else []
    text = (command.help or "").strip().split("\n")[0]
    yield _Place(words, text, tuple(commands), (*options, "--help"), values, tuple(taking))
    for name, each in commands.items():
        yield from _places(each, known, f"{words} {name}".strip())


def _step(places: Sequence[_Place]) -> str:
    """Cases that find the command which the words so far lead to; those of bash and zsh."""
    lines = []
    for place in places:
        for name in place.commands:
            below = f"{place.words} {name}".strip()
            lines.append(f'      "{place.words}:{name}") place="{below}" ;;')
    return "\n".join(lines)


def _cases(places: Sequence[_Place]) -> str:
    """Cases that set `found` for an option that needs a value, then for a command."""
    lines = ['  case "$place:$previous" in']
    for place in places:
        for option in place.taking:
            choices = quote(" ".join(place.values.get(option, ())))
            lines.append(f'    "{place.words}:{option}") found={choices}; files=1 ;;')
    lines += ["    *)", '      case "$place" in']
    for place in places:
        words = quote(" ".join([*place.commands, *place.values.get("", ())]))
        options = quote(" ".join(place.options))
        files = int(not place.commands and not place.values.get(""))
        lines.append(f'        "{place.words}") found={words}; options={options}; files={files} ;;')
    return "\n".join([*lines, "      esac ;;", "  esac"])


def _bash(places: Sequence[_Place]) -> str:
    return f"""\
# fpbench completion for bash: {SHELLS["bash"]}
_fpbench() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local place="" found="" options="" files=0 word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place:$word" in
{_step(places)}
    esac
  done
{_cases(places)}
  if [[ "$current" == -* ]]; then found="$options"; fi
  COMPREPLY=($(compgen -W "$found" -- "$current"))
  if [[ "$files" == 1 && ${{#COMPREPLY[@]}} == 0 ]]; then compopt -o default; fi
}}
complete -F _fpbench fpbench"""


def _zsh(places: Sequence[_Place]) -> str:
    return f"""\
#compdef fpbench
# fpbench completion for zsh: {SHELLS["zsh"]}
_fpbench() {{
  local current="${{words[CURRENT]}}" previous="${{words[CURRENT-1]}}"
  local place="" found="" options="" files=0 word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place:$word" in
{_step(places)}
    esac
  done
{_cases(places)}
  if [[ "$current" == -* ]]; then found="$options"; fi
  if [[ -n "$found" ]]; then compadd -- ${{=found}}; fi
  if [[ "$files" == 1 && -z "$found" ]]; then _files; fi
}}
compdef _fpbench fpbench"""


def _fish(places: Sequence[_Place]) -> str:
    lines = [f"# fpbench completion for fish: {SHELLS['fish']}"]
    summaries = {place.words: place.summary for place in places}
    for place in places:
        here = f"-n {quote(_seen(place))}"
        for name in place.commands:
            about = quote(summaries[f"{place.words} {name}".strip()])
            lines.append(f"complete -c fpbench -f {here} -a {quote(name)} -d {about}")
        if place.values.get(""):
            words = quote(" ".join(place.values[""]))
            lines.append(f"complete -c fpbench -f {here} -a {words}")
        for option in place.options:
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            choices = " ".join(place.values.get(option, ()))
            takes = f" -x -a {quote(choices)}" if choices else " -r" * (option in place.taking)
            lines.append(f"complete -c fpbench {here} {name}{takes}")
    return "\n".join(lines)


def _seen(place: _Place) -> str:
    """A condition of fish: these commands were given, and none below them."""
    given = [f"__fish_seen_subcommand_from {word}" for word in place.words.split()]
    if place.commands:
        given.append(f"not __fish_seen_subcommand_from {' '.join(place.commands)}")
    return "; and ".join(given)
