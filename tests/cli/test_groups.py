"""What every command keeps to, whatever it is called with."""

import pytest
import typer.main
from typer.testing import CliRunner

from fpbench.cli.groups import PANELS
from fpbench.cli.main import app, main


@pytest.mark.parametrize(
    "words", [["page", ""], ["run", "m.toml", "--out", ""], ["new", "--directory="]]
)
def test_an_empty_argument_is_refused(words, monkeypatch, capsys):
    """Python would take an empty path for the current folder."""
    monkeypatch.setattr("sys.argv", ["fpbench", *words])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "an argument is empty: name a file or a folder" in capsys.readouterr().err


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
