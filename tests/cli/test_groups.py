"""What every command keeps to, whatever it is called with."""

from inspect import get_annotations, unwrap

import pytest
import typer.main
from typer.testing import CliRunner

from fpbench.base.errors import InputError
from fpbench.cli.groups import PANELS, _is_path
from fpbench.cli.main import app


def commands(group, *names):
    """The commands of a group and of its groups, by name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield " ".join((*names, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))
PATHS = [
    (name, parameter.name)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if _is_path(get_annotations(unwrap(command.callback)).get(parameter.name))
]


def fill_in(command, chosen):
    """The command line in which the chosen parameter is empty, and others that it needs are not."""
    words = []
    for parameter in command.params:
        if not (parameter.required or parameter.name == chosen):
            continue
        option = parameter.opts[0] if parameter.opts[0].startswith("-") else None
        value = "" if parameter.name == chosen else "1"
        words += [option, value] if option else [value]
    return words


def test_many_parameters_are_paths():
    assert len(PATHS) > 25
    assert {name for name, _ in PATHS} > {"run", "assess", "new"}


@pytest.mark.parametrize(("name", "parameter"), PATHS, ids=" ".join)
def test_an_empty_path_is_refused(name, parameter):
    """Python would take it for the current folder."""
    command = COMMANDS[name]
    with pytest.raises(InputError, match="is empty: name a file or a folder") as error:
        command.make_context(name, fill_in(command, parameter))
    (own,) = [each for each in command.params if each.name == parameter]
    said = str(error.value).partition(" is empty")[0]
    assert said in (*own.opts, own.metavar)


def test_every_command_of_our_own_is_listed_once_by_its_purpose():
    whole = typer.main.get_command(app)
    own = {name for name, command in whole.commands.items() if not command.hidden}
    listed = [name for names in PANELS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert own <= set(listed)
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    places = [shown.index(f"\n{panel}:\n") for panel in PANELS]
    assert places == sorted(places)
    assert "..." not in shown[places[0] :]  # no summary is cut
